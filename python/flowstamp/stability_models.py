# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Models of XCP's and RCP's loops over gains and time. `flowstamp.stability` builds on them and re-exports them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from flowstamp import _flowstamp
from flowstamp.errors import TheoryError, translated

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

Model = Literal["rcp", "switched", "linear"]
"""RCP's equations 5.1 to 5.4, the switched system 5.14, or the linear system 5.15 (XCP's equations 15 and 16)."""

PATIENCE_RTTS = 2000.0
"""Longest settling time in RTTs that is computed."""

SETTLING_RTTS = 200.0
"""Longest settling time in RTTs on a map."""

STARTS = tuple((10.0 * rate - 1.0, queue) for rate in (0.5, 0.1, 0.01) for queue in (0.0, 2.0))
"""Starts of appendix E: R/C of 0.5, 0.1 and 0.01 with ten flows, each with a queue of 0 and of 2 BDP."""


def _buffer(values: ArrayLike) -> bytes:
    return np.ascontiguousarray(values, np.float64).tobytes()


def _array(buffer: bytes) -> Floats:
    return np.frombuffer(buffer, np.float64)


MOST_GAIN = 10.0
"""Largest gain, as for XCP in a scenario. It is far above every stable gain; more gain also means more roots."""


def _gain(name: str, value: float, most: float = MOST_GAIN) -> float:
    if not 0.0 < value <= most:
        raise TheoryError(f"{name} is {value:g}; it must be a number above 0, and at most {most:g}")
    return float(value)


def _finite(**values: ArrayLike) -> None:
    for name, value in values.items():
        if not np.isfinite(np.asarray(value, np.float64)).all():
            raise TheoryError(f"{name} is {value!r}; it must be finite numbers")


def _checked(
    alphas: ArrayLike,
    betas: ArrayLike,
    start: tuple[float, float],
    flows: float,
    most: float,
    buffer: ArrayLike = math.inf,
) -> None:
    _finite(alphas=alphas, betas=betas, start=start, flows=flows, most=most)
    if (np.asarray(alphas) < 0).any() or (np.asarray(betas) < 0).any():
        raise TheoryError("alphas and betas must be 0 or more")
    if np.shape(start) != (2,) or start[0] < -1.0 or start[1] < 0.0:
        raise TheoryError(f"start is {start}; the rate must be -1 or more, and the queue 0 or more")
    if flows < 1.0 or most <= 0.0:
        raise TheoryError(f"flows is {flows} and most is {most}; flows must be 1 or more, and most above 0")
    room = np.asarray(buffer, np.float64)
    if not ((room > 0.0) & (room >= start[1])).all():
        raise TheoryError(f"buffer is {buffer!r}; it must be above 0, and hold the queue of the start, {start[1]:g}")


def _of_rcp(model: Model, buffer: ArrayLike) -> None:
    if model != "rcp" and not np.isinf(np.asarray(buffer, np.float64)).all():
        raise TheoryError(f"buffer is {buffer!r}; the model that has it is rcp")


def settling_time(
    alphas: ArrayLike,
    betas: ArrayLike,
    *,
    model: Model = "rcp",
    start: tuple[float, float] = (1.0, 0.0),
    flows: float = 100.0,
    buffer: ArrayLike = math.inf,
    most: float = PATIENCE_RTTS,
) -> Floats:
    """Computes the time until the rate stays within 2% and the queue within 1% (Dukkipati 2007, section 5.4).

    Raises `TheoryError` for arguments out of range.

    Args:
        alphas: gains on spare capacity, 0 or more; broadcast with `betas` and `buffer`.
        betas: gains on the queue, 0 or more.
        model: the equations.
        start: initial rate relative to equilibrium less one, at least -1, and queue in bandwidth-delay products.
        flows: upper bound of the rate relative to equilibrium, because R is at most C; for `rcp`.
        buffer: buffer in bandwidth-delay products; for `rcp`.
        most: longest time that is computed, in round trips.

    Returns:
        Settling times in round trips, of the broadcast shape. NaN where the law does not settle within `most`.
    """
    _checked(alphas, betas, start, flows, most, buffer)
    _of_rcp(model, buffer)
    grids = np.broadcast_arrays(*(np.asarray(values, np.float64) for values in (alphas, betas, buffer)))
    a, b, room = (_buffer(grid.ravel()) for grid in grids)
    with translated():
        found = _flowstamp.settling(model, a, b, room, start, flows, most)
    return _array(found).reshape(grids[0].shape)


def stable_map(
    alphas: ArrayLike,
    betas: ArrayLike,
    *,
    model: Model = "switched",
    start: tuple[float, float] = (0.5, 0.0),
    flows: float = 100.0,
    most: float = 1000.0,
) -> NDArray[np.bool_]:
    """Returns where a model settles, as booleans of shape (betas, alphas).

    Computes only pairs of gains near the border of the stable region and assumes that the rest is uniform. Arguments
    are as in `settling_time`.
    """
    _checked(alphas, betas, start, flows, most)
    a, b = (np.asarray(values, np.float64).ravel() for values in (alphas, betas))
    with translated():
        cells, _ = _flowstamp.settling_map(model, _buffer(a), _buffer(b), start, flows, most)
    return np.frombuffer(cells, np.bool_).reshape(len(b), len(a))


def proved(alphas: ArrayLike, betas: ArrayLike) -> NDArray[np.bool_]:
    """Returns for which gains the switched system is proved stable. `alphas` and `betas` are broadcast.

    The proof holds for any RTT, capacity, number of flows and start. Gains without a proof may still be stable.
    """
    _finite(alphas=alphas, betas=betas)
    a, b = np.broadcast_arrays(np.asarray(alphas, np.float64), np.asarray(betas, np.float64))
    with translated():
        found = _flowstamp.proved(_buffer(a.ravel()), _buffer(b.ravel()))
    return np.frombuffer(found, np.bool_).reshape(a.shape)


def switched_border(betas: ArrayLike) -> Floats:
    """Returns, for each beta (0 or more), the alpha below which the switched system is stable, to within 0.001."""
    _checked(0.0, betas, (0.0, 0.0), 1.0, 1.0)
    b = np.asarray(betas, np.float64)
    with translated():
        return _array(_flowstamp.switched_border(_buffer(b.ravel()))).reshape(b.shape)


def trajectory(
    alpha: float,
    beta: float,
    rtts: ArrayLike,
    *,
    model: Model = "rcp",
    start: tuple[float, float] = (1.0, 0.0),
    flows: float = 100.0,
    buffer: float = math.inf,
    error: float = 0.0,
) -> tuple[Floats, Floats]:
    """Computes rate relative to equilibrium less one, and queue in bandwidth-delay products, at times in round trips.

    `error` is the share by which a router overestimates the capacity (Abrantes 2006, equation 3); for `switched` and
    `linear`. `buffer` is in bandwidth-delay products; for `rcp`. Raises `TheoryError` for arguments out of range.
    """
    _checked(alpha, beta, start, flows, 1.0, buffer)
    _of_rcp(model, buffer)
    _finite(error=error)
    if model == "rcp" and error != 0.0:
        raise TheoryError(f"error is {error}; the models that have it are switched and linear")
    with translated():
        found = _flowstamp.trajectory(model, alpha, beta, start, flows, buffer, error, _buffer(rtts))
    states = _array(found).reshape(-1, 2)
    return states[:, 0], states[:, 1]


def response(alpha: float, beta: float, rtt: str, omega: ArrayLike) -> tuple[NDArray[np.complex128], Floats]:
    """Returns the open loop's response at angular frequencies in rad/s, and its unwrapped phase in radians."""
    with translated():
        seconds = _flowstamp.quantity("time", rtt)
        re, im, phase = _flowstamp.loop_response(alpha, beta, 0.0, [(1.0, seconds)], _buffer(omega))
    return _array(re) + 1j * _array(im), _array(phase)


def phase_portrait(
    alpha: float,
    beta: float,
    *,
    starts: Sequence[tuple[float, float]] = STARTS,
    model: Model = "rcp",
    flows: float = 10.0,
    rtts: float = 100.0,
) -> Figure:
    """Draws the queue against the rate from several starts, as in appendix E of the thesis.

    Args:
        alpha: gain on spare capacity.
        beta: gain on the queue.
        starts: rates relative to equilibrium less one, and queues in bandwidth-delay products; at least one pair.
        model: the equations.
        flows: upper bound of the rate relative to equilibrium; for `rcp`.
        rtts: duration in round trips.
    """
    from flowstamp import stability_plots

    if len(starts) == 0:
        raise TheoryError("starts is empty; give at least one start")
    _finite(rtts=rtts)
    times = np.linspace(0.0, rtts, max(2, math.ceil(32.0 * rtts)))
    paths = [trajectory(alpha, beta, times, model=model, start=start, flows=flows) for start in starts]
    named = [f"from {rate + 1.0:.3g}, queue {queue:.3g}" for rate, queue in starts]
    return stability_plots.phase_portrait([(rate + 1.0, queue) for rate, queue in paths], named)


def settling_map(
    alphas: ArrayLike,
    betas: ArrayLike,
    *,
    model: Model = "rcp",
    start: tuple[float, float] = (1.0, 0.0),
    flows: float = 100.0,
    most: float = SETTLING_RTTS,
    point: tuple[float, float, str] | None = None,
) -> Figure:
    """Draws the `settling_time` of each pair of gains. Needs at least two alphas and two betas.

    `point` is a pair of gains to mark, and its name.
    """
    from flowstamp import stability_plots

    a, b = (np.asarray(values, np.float64).ravel() for values in (alphas, betas))
    if len(a) < 2 or len(b) < 2:
        raise TheoryError("a map needs at least two alphas and two betas")
    times = settling_time(a[None, :], b[:, None], model=model, start=start, flows=flows, most=most)
    return stability_plots.settling(a, b, times, _border(0.0, [(1.0, 1.0)], a, b), point)


def _border(shuffle: float, flows: list[tuple[float, float]], alphas: Floats, betas: Floats) -> tuple[Floats, Floats]:
    """Returns the border of the linear loop up to the largest gains: there it has a root on the imaginary axis."""
    with translated():
        found = _flowstamp.loop_border(shuffle, flows, (float(alphas[-1]), float(betas[-1])))
    return _array(found[0]), _array(found[1])


def _quantity(name: str, kind: Literal["rate", "time", "size"], text: str, *, zero: bool = False) -> float:
    if not zero and text.strip().startswith("-"):
        raise TheoryError(f'{name} is "{text}"; it must be above 0')
    try:
        with translated():
            value = _flowstamp.quantity(kind, text)
    except TheoryError as error:
        raise TheoryError(f"{name}: {error}") from error
    if value <= 0.0 and not (zero and value == 0.0):
        raise TheoryError(f'{name} is "{text}"; it must be above 0')
    return value
