# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Curves of control theory in a figure: a `[runs.theory]` table whose key `control` names the kind.

response     frequency response of a loop, for Bode and Nyquist plots
margins      crossings, margins and unstable roots of the open loop over gains
border       smallest and largest alpha at which a loop or a model is stable, for each beta
trajectory   rate and queue of a model over time
settling     settling time of a model in round trips, over gains, capacity, RTT and flows
windows      VCP's MIAIMD model: windows over time, or their final state over kappa and capacity
blind        XCP-b's router with fluid traffic: how an under-used link fills, at the figure's points

The crate `flowstamp-fluid` does the mathematics. A number that may vary is one number, a list, or a range such as
`{ from = 0.1, to = 2.0, steps = 20, scale = "log" }`. If several vary, the curve has all combinations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from flowstamp import _flowstamp, stability, stability_blind
from flowstamp.errors import translated
from flowstamp.figures.keys import Keys
from flowstamp.figures.tables import TableError

Floats = NDArray[np.float64]
Measures = Mapping[str, Floats]
Compute = Callable[[], Measures]
AtPoints = Callable[[Sequence[float]], Measures]

RESPONSE = ("omega", "gain", "phase_deg", "re", "im")
MARGINS = ("gain_crossing", "phase_crossing", "crosses", "phase_margin_deg", "gain_margin", "unstable_roots")
BORDER = ("alpha_least", "alpha_most", "edge_alpha", "edge_beta")
TRAJECTORY = ("time_rtts", "time_s", "rate", "rate_share", "queue_bdp", "queue_bytes")
SETTLING = ("after_rtts", "settles")
WINDOWS = (
    *(f"window_{n}" for n in range(1, 5)),
    *("total", "swing", "rest", "claimed_after_rtts", "released_after_rtts"),
)
BLIND_OVER_TIME = ("time_rtts", "time_s", "used", "queue_bytes")
BLIND = (*BLIND_OVER_TIME, "peak_bytes", "peak_share", "peak_after_rtts", "max_queue_packets", "reached_90_rtts")
ADJUSTED = ("target", "used", "rest_used", "rest_target", "target_moves")
VARIED = ("alpha", "beta", "capacity_mbps", "rtt_ms", "flows", "buffer_bdp", "kappa", "carries")
IN_TIME_MEASURES = (*TRAJECTORY, *SETTLING, *WINDOWS, *ADJUSTED, *BLIND)
MEASURES = tuple(dict.fromkeys((*VARIED, *RESPONSE, *MARGINS, *BORDER, *IN_TIME_MEASURES)))

ALPHAS = (0.02, 2.0)
"""Range of alpha in which borders are searched: that of the thesis, and slightly less."""
LEAST_BUFFER = 1e-3
"""Smallest buffer in bandwidth-delay products."""
COARSE = 45
COARSE_IN_TIME = 20
"""Alphas on the initial grid. Models in time need fewer: each alpha costs hundreds of round trips, and their stable
stretches are not narrow."""


def _buffer(values: Floats) -> bytes:
    return np.ascontiguousarray(values, np.float64).tobytes()


def _array(buffer: bytes) -> Floats:
    return np.frombuffer(buffer, np.float64)


def _all_of(**values: Floats) -> dict[str, Floats]:
    """Returns all combinations as flat arrays; the values of the last name change fastest."""
    grids = np.meshgrid(*values.values(), indexing="ij")
    return {name: grid.ravel() for name, grid in zip(values, grids, strict=True)}


# ---------------------------------------------------------------------------------------------------- frequency


def _response(keys: Keys) -> Compute:
    loop = keys.choice("loop", ("open", "rest", "rest_by_pade", "queue"), "open")
    alpha = 1.0 if loop.startswith("rest") else keys.number("alpha")
    beta, rtt = keys.number("beta"), keys.quantity("rtt", "time", "1s")
    omega = keys.numbers("omega", least=1e-12)

    def compute() -> Measures:
        if loop == "open":
            re, im, phase = map(_array, _flowstamp.loop_response(alpha, beta, 0.0, [(1.0, rtt)], _buffer(omega)))
        else:
            re, im = map(_array, _flowstamp.loop_within(loop, alpha, beta, rtt, _buffer(omega)))
            phase = np.unwrap(np.arctan2(im, re))
        return {"omega": omega, "gain": np.hypot(re, im), "phase_deg": np.degrees(phase), "re": re, "im": im}

    return compute


THEOREM_1 = "sqrt(2) alpha^2"
"""Curve of Katabi 2002, theorem 1, as a value of `beta`."""


def _gains(keys: Keys, least: float) -> Callable[..., dict[str, Floats]]:
    """Returns a function for all combinations of gains and other varied numbers.

    If `beta` is theorem 1's curve, it follows from each alpha.
    """
    alphas = keys.numbers("alpha", least=least)
    if keys.table.get("beta") == THEOREM_1:
        keys.choice("beta", (THEOREM_1,))

        def coupled(**others: Floats) -> dict[str, Floats]:
            grid = _all_of(alpha=alphas, **others)
            return {**grid, "beta": math.sqrt(2.0) * grid["alpha"] ** 2}

        return coupled
    betas = keys.numbers("beta", least=least)
    return lambda **others: _all_of(alpha=alphas, beta=betas, **others)


def _margins(keys: Keys) -> Compute:
    gains, rtt = _gains(keys, 1e-9), keys.quantities("rtt", "time", "1s")

    def compute() -> Measures:
        grid = gains(rtt=rtt)
        alpha, beta, rtt_s = grid["alpha"], grid["beta"], grid["rtt"]
        gain_crossing, phase_crossing = map(_array, _flowstamp.loop_crossings(_buffer(alpha), _buffer(beta)))
        found = [
            _flowstamp.loop_margins(a, b, 0.0, [(1.0, seconds)])
            for a, b, seconds in zip(alpha, beta, rtt_s, strict=True)
        ]
        roots = _array(_flowstamp.loop_unstable_roots("exact", _buffer(alpha), _buffer(beta)))
        return {
            "alpha": alpha,
            "beta": beta,
            "rtt_ms": rtt_s * 1e3,
            "gain_crossing": gain_crossing,
            "phase_crossing": phase_crossing,
            "crosses": np.isfinite(phase_crossing).astype(np.float64),
            "phase_margin_deg": np.degrees([math.nan if m[2] is None else m[2] for m in found]),
            "gain_margin": np.array([math.nan if m[0] is None else m[0] for m in found]),
            "unstable_roots": roots,
        }

    return compute


# ---------------------------------------------------------------------------------------------------- borders

Stable = Callable[[Floats, Floats], NDArray[np.bool_]]
"""Tells for each pair of alpha and beta whether it is stable."""


def _by_bode(alpha: Floats, beta: Floats) -> NDArray[np.bool_]:
    """Tests equation 5.10: the gain crosses 1 at a lower frequency than the phase crosses -pi."""
    gain, phase = map(_array, _flowstamp.loop_crossings(_buffer(alpha), _buffer(beta)))
    before: NDArray[np.bool_] = gain < phase  # false without a phase crossing, which is NaN
    return before


def _by_roots(delay: str) -> Stable:
    def stable(alpha: Floats, beta: Floats) -> NDArray[np.bool_]:
        none: NDArray[np.bool_] = _array(_flowstamp.loop_unstable_roots(delay, _buffer(alpha), _buffer(beta))) == 0
        return none

    return stable


def _by_time(model: stability.Model, most: float) -> Stable:
    def stable(alpha: Floats, beta: Floats) -> NDArray[np.bool_]:
        start = (1.0, 0.0) if model == "rcp" else (0.5, 0.0)
        return np.isfinite(stability.settling_time(alpha, beta, model=model, start=start, most=most))

    return stable


def _edges(stable: Stable, beta: Floats, within: float, steps: int) -> tuple[Floats, Floats]:
    """Returns the smallest and the largest alpha of the first stable stretch for each beta; NaN if there is none."""
    coarse = np.linspace(*ALPHAS, steps)
    alphas, betas = (grid.ravel() for grid in np.meshgrid(coarse, beta))
    found = stable(alphas, betas).reshape(beta.size, coarse.size)
    first = np.argmax(found, axis=1)
    lengths = [int(np.argmin([*row[start:], False])) for row, start in zip(found, first, strict=True)]
    last = np.maximum(first + lengths - 1, 0)
    any_stable = found.any(axis=1)

    def narrowed(inside: Floats, outside: Floats) -> Floats:
        while np.max(np.abs(outside - inside), initial=0.0) > within:
            middle = (inside + outside) / 2
            good = stable(middle, beta)
            inside, outside = np.where(good, middle, inside), np.where(good, outside, middle)
        return inside

    low = narrowed(coarse[first], coarse[np.maximum(first - 1, 0)])
    high = narrowed(coarse[last], coarse[np.minimum(last + 1, coarse.size - 1)])
    return np.where(any_stable, low, np.nan), np.where(any_stable, high, np.nan)


def _by_network(network: Sequence[Floats], start: tuple[float, float], most: float) -> Stable:
    """Tests stability of RCP's model on several networks. The pairs of gains are grouped evenly by network."""

    def stable(alpha: Floats, beta: Floats) -> NDArray[np.bool_]:
        each = alpha.size // network[0].size
        endless = np.full_like(alpha, math.inf)
        return np.isfinite(_settled(alpha, beta, [np.repeat(values, each) for values in network], endless, start, most))

    return stable


IN_TIME = ("linear", "switched", "rcp")
BY = ("bode", "nyquist", "pade", "proof", *IN_TIME)


def _border(keys: Keys) -> Compute:
    by, betas = keys.choice("by", BY), keys.numbers("beta", least=1e-9)
    physical = by == "rcp" and keys.has("capacity")
    most = keys.number("patience_rtts", 500.0, least=30.0) if by in IN_TIME else 0.0
    within = keys.number("within", 0.01, least=1e-9)
    networks = {"capacity": np.array([1.0]), "rtt": np.array([1.0]), "flows": np.array([1.0])}
    if physical:
        networks = {"capacity": keys.quantities("capacity", "rate"), "rtt": keys.quantities("rtt", "time")}
        networks["flows"] = keys.numbers("flows", least=1.0)
    start = keys.pair("start", (2.0, 0.0)) if physical else (0.0, 0.0)
    in_time = cast("stability.Model", by) if by in IN_TIME else None

    def compute() -> Measures:
        grid = _all_of(**networks, beta=betas)
        if physical:
            stable = _by_network([grid[name] for name in networks], start, most)
        elif in_time:
            stable = _by_time(in_time, most)
        else:
            of_loops = {"bode": _by_bode, "nyquist": _by_roots("exact"), "pade": _by_roots("pade")}
            stable = stability.proved if by == "proof" else of_loops[by]
        low, high = _edges(stable, grid["beta"], within, COARSE_IN_TIME if in_time else COARSE)
        there = np.isfinite(high)
        kept = {name: values[there] for name, values in grid.items()}
        low, high = low[there], high[there]
        return {
            "beta": kept["beta"],
            "alpha_least": low,
            "alpha_most": high,
            "edge_alpha": np.concatenate([low, high[::-1]]),
            "edge_beta": np.concatenate([kept["beta"], kept["beta"][::-1]]),
            **_network(kept, physical=physical),
        }

    return compute


def _network(grid: Mapping[str, Floats], *, physical: bool) -> Measures:
    if not physical:
        return {}
    return {"capacity_mbps": grid["capacity"] / 1e6, "rtt_ms": grid["rtt"] * 1e3, "flows": grid["flows"]}


def _settled(
    alpha: Floats, beta: Floats, network: Sequence[Floats], buffer: Floats, start: tuple[float, float], most: float
) -> Floats:
    """Returns settling times in round trips of equations 5.1 to 5.4 in physical units; NaN without settling."""
    capacity, rtt, flows, buffers = map(_buffer, (*network, buffer))
    with translated():
        return _array(
            _flowstamp.rcp_settling(_buffer(alpha), _buffer(beta), capacity, rtt, flows, buffers, start, most)
        )


# ---------------------------------------------------------------------------------------------------- time


def _trajectory(keys: Keys) -> Compute:
    model = cast("stability.Model", keys.choice("model", ("rcp", "switched", "linear"), "rcp"))
    alpha, beta, start = keys.number("alpha"), keys.number("beta"), keys.pair("start", (1.0, 0.0))
    until, steps = keys.number("rtts", least=0.1), keys.steps()
    rtt = keys.quantity("rtt", "time", "1s")
    physical = model == "rcp" and keys.has("capacity")
    capacity = keys.quantity("capacity", "rate") if physical else 1.0
    flows = keys.number("flows", 100.0, least=1.0) if model == "rcp" else 1.0
    buffer = keys.number("buffer_bdp", least=LEAST_BUFFER) if keys.has("buffer_bdp") and model == "rcp" else math.inf
    error = keys.quantity("error", "rate") / 8.0 if keys.has("error") and model == "linear" else 0.0

    def compute() -> Measures:
        rtts = np.linspace(0.0, until, steps)
        if physical:
            shared = (start[0] / flows, start[1])
            with translated():
                found = _flowstamp.rcp_trajectory(
                    alpha, beta, capacity, rtt, flows, buffer, shared, _buffer(rtts * rtt)
                )
            states = _array(found).reshape(-1, 2)
            rate, queue = states[:, 0] * flows, states[:, 1]
        else:
            over, queue = stability.trajectory(
                alpha,
                beta,
                rtts,
                model=model,
                start=(start[0] - 1.0, start[1]),
                flows=flows,
                buffer=buffer,
                error=1.0 if error else 0.0,
            )
            rate = over + 1.0
        measures = {"time_rtts": rtts, "time_s": rtts * rtt, "rate": rate, "rate_share": rate / flows}
        measures["queue_bdp"] = queue
        if error:
            # The linear model has no capacity. Its unit of rates is the error, and its unit of queues is error x RTT.
            measures["queue_bytes"] = queue * error * rtt
        return measures

    return compute


def _settling(keys: Keys) -> Compute:
    model = cast("stability.Model", keys.choice("model", ("rcp", "switched", "linear"), "rcp"))
    gains = _gains(keys, 0.0)
    start, most = keys.pair("start", (2.0, 0.0)), keys.number("patience_rtts", 2000.0, least=30.0)
    physical = model == "rcp" and keys.has("capacity")
    networks: dict[str, Floats] = {}
    if physical:
        networks = {"capacity": keys.quantities("capacity", "rate"), "rtt": keys.quantities("rtt", "time")}
        networks["flows"] = keys.numbers("flows", least=1.0)
    buffered = model == "rcp" and keys.has("buffer_bdp")
    buffers = keys.numbers("buffer_bdp", least=LEAST_BUFFER) if buffered else np.array([math.inf])

    def compute() -> Measures:
        grid = gains(**networks, buffer_bdp=buffers)
        alpha, beta, buffer = grid["alpha"], grid["beta"], grid["buffer_bdp"]
        if physical:
            times = _settled(alpha, beta, [grid[name] for name in networks], buffer, start, most)
        else:
            from_rest = (start[0] - 1.0, start[1])
            times = stability.settling_time(alpha, beta, model=model, start=from_rest, buffer=buffer, most=most)
        return {
            "alpha": alpha,
            "beta": beta,
            **({"buffer_bdp": buffer} if buffered else {}),
            "after_rtts": times,
            "settles": np.isfinite(times).astype(np.float64),
            **_network(grid, physical=physical),
        }

    return compute


# ---------------------------------------------------------------------------------------------------- VCP

LINK = "tables such as { carries = 100, flows = [0, 1] }"
MOST_WINDOWS = 4
CLAIMED, RELEASED = 0.9, 1.1
"""Load at which spare capacity counts as claimed, and over-use as released: our reading of Xia 2008, theorem 3."""


def _windows(keys: Keys) -> Compute:
    kappas, alpha = keys.numbers("kappa", least=1e-9), keys.number("alpha", 1.0)
    windows = "one to four windows, packets above 0"
    start = keys.lists("start", windows)
    if len(start) > MOST_WINDOWS or not all(type(w) in (int, float) and 0 < w < math.inf for w in start):
        raise TableError("start", windows)
    links = [_link(table, len(start)) for table in keys.lists("links", LINK)]
    if {flow for _, flows in links for flow in flows} != set(range(len(start))):
        raise TableError("links", f"{LINK}, so that each of the {len(start)} flows crosses one")
    varies = keys.numbers("carries", least=1e-9) if keys.has("carries") else None
    each = keys.numbers("flows", 1.0, least=1.0)
    adjusts = keys.table_of("adjusts", ("step", "every")) if keys.has("adjusts") else None
    until, steps = keys.number("rtts", least=0.1), keys.steps()

    def compute() -> Measures:
        rtts = np.linspace(0.0, until, steps)
        first = np.array([links[0][0]]) if varies is None else varies
        grid = _all_of(kappa=kappas, flows=each, carries=first)
        found: list[Floats] = []
        targets: list[Floats] = []
        with translated():
            for kappa, flows, carries in zip(grid["kappa"], grid["flows"], grid["carries"], strict=True):
                # With n equal flows, each has the window of a single flow on 1/n of every link.
                here = [(share / flows, crossed) for share, crossed in ((carries, links[0][1]), *links[1:])]
                native = _flowstamp.vcp_windows(kappa, alpha, [*map(float, start)], here, adjusts, _buffer(rtts))
                rows = _array(native).reshape(steps, -1).T
                found.append(rows[: len(start)])
                targets.append(rows[len(start)] if adjusts else np.ones(steps))
        totals = np.array([windows.sum(axis=0) for windows in found]) * grid["flows"][:, None]
        late = totals[:, 3 * steps // 4 :]
        load = totals / grid["carries"][:, None]
        return {
            **grid,
            "time_rtts": rtts,
            **{f"window_{n + 1}": windows for n, windows in enumerate(found[0])},
            "total": totals[0],
            "target": targets[0],
            "used": totals[0] / first[0],
            "swing": np.ptp(late, axis=1) / late.mean(axis=1),
            "rest": late.mean(axis=1),
            "rest_used": late.mean(axis=1) / grid["carries"],
            "rest_target": np.array([target[3 * steps // 4 :].mean() for target in targets]),
            "target_moves": np.array([np.ptp(target[3 * steps // 4 :]) for target in targets]),
            "claimed_after_rtts": _first(load >= CLAIMED, rtts),
            "released_after_rtts": _first(load <= RELEASED, rtts),
        }

    return compute


def _first(there: NDArray[np.bool_], times: Floats) -> Floats:
    """Returns the time of the first true value in each row; NaN if there is none."""
    return np.where(there.any(axis=1), times[np.argmax(there, axis=1)], np.nan)


def _link(table: object, flows_in_all: int) -> tuple[float, list[int]]:
    match table:
        case {"carries": int() | float() as carries, "flows": list() as flows, **rest} if not rest:
            if 0 < carries < math.inf and all(type(flow) is int and 0 <= flow < flows_in_all for flow in flows):
                return float(carries), flows
    raise TableError("links", f"{LINK}, flows numbered from 0 as start has them")


# ---------------------------------------------------------------------------------------------------- XCP-b


def _blind(keys: Keys) -> AtPoints:
    over = keys.choice("over", ("capacity", "chi", "nothing"), "nothing")
    capacity = None if over == "capacity" else keys.quantity("capacity", "rate")
    chi = keys.number("chi", least=1e-6) if over != "chi" and keys.has("chi") else None
    gains = keys.number("alpha", 0.4), keys.number("beta", 0.2263, least=1e-6)
    rtt, rtts = keys.quantity("rtt", "time"), round(keys.number("rtts", least=1.0))
    q_max, kappa, start, packet = (keys.quantity(name, "size") for name in ("q_max", "kappa", "start", "packet"))
    senders = keys.choice("senders", stability_blind.SENDERS, "windows")
    detection = keys.choice("detection", stability_blind.DETECTIONS, "average")

    def compute(x: Sequence[float]) -> Measures:
        found = [
            stability_blind.filled(
                capacity_bps=1e6 * value if over == "capacity" else cast("float", capacity),
                rtt_s=rtt,
                chi=value if over == "chi" else chi,
                gains=gains,
                sizes=(q_max, kappa, start),
                senders=senders,
                detection=detection,
                rtts=rtts,
            )
            for value in (x if over != "nothing" else (0.0,))
        ]
        peaks = np.array([one.peak_bytes for one in found])
        return {
            "time_rtts": found[0].rtts,
            "time_s": found[0].rtts * rtt,
            "used": found[0].used,
            "queue_bytes": found[0].queue_bytes,
            "peak_bytes": peaks,
            "peak_share": peaks / q_max,
            "peak_after_rtts": np.array([one.peak_after_rtts for one in found]),
            "max_queue_packets": peaks / packet,
            "reached_90_rtts": np.array([one.reached_rtts(0.9) for one in found]),
        }

    return compute


# ---------------------------------------------------------------------------------------------------- curves


def _of_its_own(kind: Callable[[Keys], Compute]) -> Callable[[Keys], AtPoints]:
    """Wraps a kind of curve that has its own points and ignores those of the figure."""

    def made(keys: Keys) -> AtPoints:
        compute = kind(keys)
        return lambda _: compute()

    return made


KINDS: Mapping[str, Callable[[Keys], AtPoints]] = {
    "response": _of_its_own(_response),
    "margins": _of_its_own(_margins),
    "border": _of_its_own(_border),
    "trajectory": _of_its_own(_trajectory),
    "settling": _of_its_own(_settling),
    "windows": _of_its_own(_windows),
    "blind": _blind,
}


@dataclass(frozen=True)
class Curve:
    """A `[runs.theory]` table with `control`."""

    kind: str
    compute: AtPoints

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Curve:
        """Reads the table. Raises `TableError` if it is invalid."""
        keys = Keys(table)
        kind = keys.choice("control", tuple(KINDS))
        compute = KINDS[kind](keys)
        keys.done()
        return cls(kind, compute)

    def at(self, x: Sequence[float]) -> Measures:
        """Returns the curve's measures. Only `blind` uses the figure's points `x`."""
        return self.compute(x)
