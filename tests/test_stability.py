# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp.stability` and `flowstamp stability`: what Python and a user see, beside closed forms and scipy."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from conftest import Command

from flowstamp import stability
from flowstamp.errors import TheoryError


def test_the_response_is_its_formula() -> None:
    """Equations 5.8: |G| and the phase, at 80 ms."""
    alpha, beta, d = 0.4, 0.226, 0.08
    omega = np.geomspace(0.01, 100.0, 500)
    response, phase = stability.response(alpha, beta, "80ms", omega)
    assert np.abs(response) == pytest.approx(np.hypot(beta, omega * d * alpha) / (omega * d) ** 2, rel=1e-12)
    assert phase == pytest.approx(-omega * d + np.arctan(omega * alpha * d / beta) - math.pi, abs=1e-9)


def test_margins_and_roots() -> None:
    """Theorem 1's curve: a phase margin of pi/4 - alpha sqrt 2, whatever the RTT."""
    for rtt in ("30us", "80ms", "1s"):
        s = stability.of("xcp", alpha=0.4, beta=0.16 * math.sqrt(2), rtt=rtt)
        assert s.phase_margin_deg == pytest.approx(math.degrees(math.pi / 4 - 0.4 * math.sqrt(2)))
        assert s.stable
        assert s.linear_stable
        assert s.gain_margin is not None
        assert s.gain_margin > 1
        assert s.roots
        for root in s.roots:
            z = root * s.rtt_s
            assert abs(z**2 + (0.4 * z + s.beta) * np.exp(-z)) < 1e-9
            assert root.real < 0


def test_the_thesis() -> None:
    """Section 5.2: some gains are stable of which the linear loop says that they are not, and the other way round."""
    wild = stability.of("rcp", alpha=1.44, beta=0.246)
    assert wild.linear_stable
    assert not wild.stable
    assert wild.settles_after_rtts is None
    here = stability.of("rcp", alpha=0.8, beta=0.6)
    assert here.stable
    assert not here.linear_stable
    map_ = stability.stable_map([0.8, 1.5], [0.3, 0.55])
    assert map_.tolist() == [[True, False], [True, False]]
    linear = stability.stable_map([0.8, 1.3], [0.3, 0.55], model="linear")
    assert linear.tolist() == [[True, True], [False, False]]


def test_a_map_is_what_each_point_says() -> None:
    """Only points near the border are tried; all of a coarse grid, here."""
    alphas, betas = np.linspace(0.1, 1.9, 19), np.linspace(0.1, 1.0, 10)
    a, b = np.meshgrid(alphas, betas)
    each = np.isfinite(stability.settling_time(a, b, model="switched", start=(0.5, 0.0), most=1000.0))
    assert (stability.stable_map(alphas, betas) == each).all()


def test_a_trajectory_settles_where_theory_has_it() -> None:
    """A router that takes the capacity for 5% more keeps a queue of alpha/beta of that (Abrantes 2006, equation 5)."""
    rate, queue = stability.trajectory(0.4, 0.226, [0.0, 300.0], model="linear", start=(0.0, 0.0), error=0.05)
    assert rate == pytest.approx([0, 0], abs=1e-9)
    assert queue == pytest.approx([0, 0.05 * 0.4 / 0.226], abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"law": "bic"}, 'law "bic" has no model here; it must be one of xcp, rcp'),
        ({"law": "rcp", "alpha": -0.1}, "alpha is -0.1; it must be a number above 0, and at most 100"),
        ({"law": "rcp", "alpha": 0.0}, "alpha is 0.0; it must be a number above 0, and at most 100"),
        ({"law": "rcp", "beta": 0.0}, "beta is 0.0; it must be a number above 0, and at most 100"),
        ({"law": "rcp", "beta": math.nan}, "beta is nan; it must be a number above 0, and at most 100"),
        ({"law": "rcp", "rtt": "0s"}, 'rtt is "0s"; it must be above 0'),
    ],
)
def test_nonsense_is_refused(arguments: dict[str, object], told: str) -> None:
    with pytest.raises(TheoryError) as raised:
        stability.of(**arguments)  # type: ignore[arg-type]
    assert str(raised.value) == told


def test_wild_gains_have_no_margins() -> None:
    """More than a turn of phase lost is not phase left."""
    for alpha, beta in ((5.0, 0.3), (20.0, 0.5), (0.1, 90.0)):
        s = stability.of("xcp", alpha=alpha, beta=beta)
        assert not s.linear_stable
        assert s.phase_margin_deg is not None
        assert s.phase_margin_deg < 0
        assert (s.gain_margin, s.delay_margin_s) == (None, None)
        assert s.roots[0].real > 0


def test_slow_gains_are_stable() -> None:
    """They have not settled after 2000 round trips, and die all the same."""
    assert stability.of("xcp", alpha=0.4, beta=1e-4).stable
    s = stability.of("xcp", alpha=0.001, beta=0.1)
    assert s.stable
    assert s.settles_after_rtts is None
    assert "more than 2000 round trips" in s.lines()[0]


def test_a_trajectory_may_be_dense() -> None:
    times = np.linspace(0.0, 20.0, 10_001)
    rate, queue = stability.trajectory(0.5, 0.5, times)
    coarse = stability.trajectory(0.5, 0.5, times[::100])
    assert rate[::100] == pytest.approx(coarse[0], abs=1e-12)
    assert queue[::100] == pytest.approx(coarse[1], abs=1e-12)
    with pytest.raises(TheoryError, match=r"^error is 0.1; the models that have it"):
        stability.trajectory(0.5, 0.5, times, error=0.1)


def test_a_bare_rtt_is_refused_by_name() -> None:
    with pytest.raises(TheoryError, match=r"^rtt: .*80"):
        stability.of("rcp", rtt="80")


def test_the_command(flowstamp: Command, tmp_path: Path) -> None:
    """Its verdict, its exit code, its picture."""
    found = json.loads(
        flowstamp("stability", "rcp", "--alpha", "0.5", "--beta", "0.5", "--rtt", "80ms", "--json").stdout
    )
    assert found["stable"] is True
    # Equation 5.10 has no margin there: it is stable as the queue is not below zero.
    assert found["linear"]["phase_margin_deg"] < 0
    assert (tmp_path / "out/stability/rcp.png").stat().st_size > 1000
    wild = flowstamp("stability", "xcp", "--alpha", "1.8", "--beta", "0.3")
    assert wild.returncode == 1
    assert "unstable" in wild.stdout


def test_a_scenario_gives_law_gains_and_rtt(flowstamp: Command, tmp_path: Path) -> None:
    """The mean RTT of its flows, and the gains that its router has."""
    (tmp_path / "s.toml").write_text(
        'duration = "1s"\n[dumbbell]\nrate = "10Mbps"\nrtt = "40ms"\nrouter = { law = "rcp", alpha = 0.6 }\n'
        '[[flows]]\nname = "a"\nlaw = "rcp"\ncount = 3\n[[flows]]\nname = "b"\nlaw = "rcp"\nrtt = "80ms"\n'
    )
    found = json.loads(flowstamp("stability", "s.toml", "--json").stdout)
    assert (found["law"], found["alpha"], found["beta"]) == ("rcp", 0.6, 0.5)
    assert found["rtt_s"] == pytest.approx(0.05)
    refused = flowstamp("stability", "s.toml", "--alpha", "0.5")
    assert refused.returncode == 2
    assert "--set dumbbell.router.alpha" in refused.stderr
    plain = flowstamp("stability", "s.toml", "--set", "dumbbell.router=none")
    assert plain.returncode == 2
    assert plain.stderr.count("\n") == 1
