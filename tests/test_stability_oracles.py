# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The solver beside JiTCDDE, margins and responses beside python-control: what others compute of the same equations."""

from __future__ import annotations

import gc
import shutil
import sysconfig
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flowstamp import stability

TIMES = np.linspace(0.0, 40.0, 161)
GAINS = ((0.4, 0.226), (0.9, 0.4), (0.5, 0.5), (0.1, 1.0))


class Oracle:
    """A system of JiTCDDE's, compiled once for all gains."""

    def __init__(self, slopes: Sequence[Any], names: Sequence[Any]) -> None:
        import jitcdde

        self.names = names
        # Delays are named, and terms left as they are: to find and simplify them it would need sympy.
        self.system = jitcdde.jitcdde(slopes, control_pars=names, verbose=False, delays=[0.0, 1.0], max_delay=1.0)
        self.system.compile_C(simplify=False)

    def at(self, values: Sequence[float], start: Sequence[float], tolerance: float) -> tuple[Any, Any]:
        """Times from the first step on, and states at them; `tolerance` is of each step."""
        self.system.purge_past()
        self.system.constant_past(start)
        self.system.set_parameters(*values)
        self.system.set_integration_parameters(
            rtol=tolerance, atol=tolerance, first_step=1e-3, min_step=1e-14, max_step=0.5
        )
        self.system.step_on_discontinuities()
        times = TIMES[self.system.t <= TIMES]
        return times, np.array([self.system.integrate(t) for t in times])


@pytest.fixture
def symbols(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The names in its equations. It compiles where it stands, and reads a pyproject.toml there."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if not (shutil.which(compiler) and (Path(sysconfig.get_paths()["include"]) / "Python.h").exists()):
        pytest.skip("JiTCDDE needs a C compiler and Python's headers")
    pytest.importorskip("jitcdde")
    monkeypatch.chdir(tmp_path)
    import symengine

    yield symengine
    # It leaves its folder to the garbage collector, which warns of that in whatever test it comes.
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        gc.collect()


def ours(model: stability.Model, gains: tuple[float, float], start: tuple[float, float], times: Any) -> Any:
    return np.stack(stability.trajectory(*gains, times, model=model, start=start), axis=1)


@pytest.mark.filterwarnings("ignore:The target time is smaller:UserWarning")
def test_the_linear_system_is_jitcddes(symbols: Any) -> None:
    """Its error follows its tolerance as far as ours lets it: 32 steps in an RTT are good for 1e-8."""
    from jitcdde import t, y

    alpha, beta = symbols.symbols("alpha beta")
    oracle = Oracle([-alpha * y(0, t - 1) - beta * y(1, t - 1), y(0)], [alpha, beta])
    for gains in GAINS[:3]:
        differences = []
        for tolerance in (1e-4, 1e-6, 1e-9):
            times, states = oracle.at(gains, (0.5, 0.0), tolerance)
            differences.append(np.abs(states - ours("linear", gains, (0.5, 0.0), times)).max())
        # A loop near its border accumulates the errors of steps: 40 RTTs, of a dozen steps each or fewer.
        assert differences[1] < 500 * 1e-6, (gains, differences)
        assert differences[2] < 500 * 1e-9, (gains, differences)
        assert differences[0] > 10 * differences[1] > 100 * differences[2], (gains, differences)


@pytest.mark.filterwarnings("ignore:The target time is smaller:UserWarning")
@pytest.mark.parametrize("model", ["switched", "rcp"])
def test_systems_with_an_empty_queue_are_jitcddes(symbols: Any, model: stability.Model) -> None:
    """It has no switches: the queue's floor is as soft as a width, and the difference is that width's and no other.

    A queue that falls towards a soft floor falls on as the width's logarithm: from 1e-4 to 1e-6 the difference falls by
    100 and by some of the ratio of logarithms, 6/4.
    """
    from jitcdde import t, y

    alpha, beta, width = symbols.symbols("alpha beta width")
    rate, queue, then = y(0), y(1), y(0, t - 1)

    def drained(net: Any) -> Any:
        above = (1 - symbols.tanh(queue / width)) / 2
        return net + above * (symbols.sqrt(net**2 + width**2) - net) / 2

    if model == "switched":
        slopes, rest = [-alpha * then - beta * y(1, t - 1), drained(rate)], 0.0
    else:
        d = 1 + queue
        slopes, rest = [rate / d * (alpha * (1 - then) - beta * queue / d), drained(then - 1)], 1.0
    oracle = Oracle(slopes, [alpha, beta, width])
    start = (0.5, 0.0) if model == "switched" else (1.0, 0.0)
    for gains in GAINS:
        differences = []
        for width_is in (1e-4, 1e-6):
            times, states = oracle.at((*gains, width_is), (rest + start[0], start[1]), 1e-10)
            differences.append(np.abs(states - (rest, 0.0) - ours(model, gains, start, times)).max())
        assert differences[1] < differences[0] / 50, (gains, differences)
        assert differences[0] < 0.01, (gains, differences)


def test_margins_and_bode_are_python_controls() -> None:
    """Its exact response of the rational part, delayed exactly; margins as it finds them in that response."""
    control = pytest.importorskip("control")
    for alpha, beta in ((0.4, 0.226), (0.4, 0.1), (0.1, 0.3), (1.2, 0.2), (0.9, 0.4)):
        for rtt, d in (("30us", 30e-6), ("80ms", 0.08), ("1s", 1.0)):
            omega = np.geomspace(0.01 / d, 100.0 / d, 2000)
            exact = control.tf([alpha * d, beta], [d * d, 0.0, 0.0])(1j * omega) * np.exp(-1j * omega * d)
            response, phase = stability.response(alpha, beta, rtt, omega)
            # Rounding, of which an angle of 100 rad has the most.
            assert response == pytest.approx(exact, rel=1e-12)
            assert phase == pytest.approx(np.unwrap(np.angle(exact)) - 2 * np.pi * (np.angle(exact[0]) > 0), abs=1e-9)
            # Found between samples that are 0.5% apart, by their splines.
            gain, degrees, _, phase_at, gain_at, _ = control.stability_margins(
                control.frd(exact, omega, smooth=True), epsw=1e-9
            )
            s = stability.of("xcp", alpha=alpha, beta=beta, rtt=rtt)
            assert s.crossover_rad_s == pytest.approx(gain_at, rel=1e-6)
            assert s.phase_margin_deg is not None
            if s.linear_stable:
                assert s.gain_margin == pytest.approx(gain, rel=1e-6)
                assert s.phase_margin_deg == pytest.approx(degrees, abs=1e-5)
                assert s.delay_margin_s == pytest.approx(np.radians(degrees) / gain_at, rel=1e-5)
                assert phase_at > gain_at
            else:
                assert (s.gain_margin, s.delay_margin_s) == (None, None)
                assert s.phase_margin_deg == pytest.approx(degrees, abs=1e-5)


def open_loop(omega: Any, alpha: float, beta: float, shuffled: float, share: Any, rtts: Any) -> Any:
    """x_i' = F - shuffled / d (x_i - mean of x), an RTT later, F = -(alpha x + beta q / d) / d, q' = x."""
    d, ones, same = share @ rtts, np.ones(len(share)), np.eye(len(share))
    found = []
    for s in 1j * omega:
        heard = np.diag(np.exp(-s * rtts))
        each = np.linalg.solve(s * same + heard @ (same - np.outer(ones, share)) * shuffled / d, heard @ ones)
        found.append(share @ each * (alpha / d + beta / d**2 / s))
    return np.array(found)


@pytest.mark.long
def test_margins_of_several_rtts_are_python_controls() -> None:
    """The response by the groups' own equations, solved at each frequency; margins as it finds them in that."""
    control = pytest.importorskip("control")
    for law, shuffled in (("xcp", 0.1), ("rcp", 0.0)):
        for rtts, flows in (((0.04, 0.08, 0.32), (3, 2, 5)), ((0.02, 0.2), (3, 2)), ((0.05, 0.06), (1, 4))):
            share = np.array(flows) / sum(flows)
            d = float(share @ rtts)
            omega = np.geomspace(0.01 / d, 60.0 / d, 6000)
            for alpha, beta in ((0.4, 0.226), (0.4, 0.1), (1.0, 0.3), (1.6, 0.226)):
                exact = open_loop(omega, alpha, beta, shuffled, share, np.array(rtts))
                # Some responses cross -1's circle and axis more than once: the nearest counts, as ours does.
                gains, degrees, _, _, gain_at, _ = control.stability_margins(
                    control.frd(exact, omega, smooth=True), epsw=1e-9, returnall=True
                )
                s = stability.of(
                    law, alpha=alpha, beta=beta, rtt=[f"{1e3 * rtt:.0f}ms" for rtt in rtts], flows=list(flows)
                )
                shown = (law, rtts, alpha, beta)
                nearest = int(np.argmin(degrees))
                assert s.phase_margin_deg == pytest.approx(degrees[nearest], abs=1e-4), shown
                assert s.crossover_rad_s == pytest.approx(gain_at[nearest], rel=1e-5), shown
                assert s.linear_stable == (degrees[nearest] > 0), shown
                if s.linear_stable:
                    assert s.gain_margin == pytest.approx(min(g for g in gains if g > 1), rel=1e-5), shown
