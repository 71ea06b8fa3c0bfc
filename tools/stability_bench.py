#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures trajectories of the switched system per second, beside JiTCDDE on the same problem, and a map of 200 x 200.

Usage: .venv/bin/python tools/stability_bench.py

Trajectories are per CPU second of one core. JiTCDDE has no switches: its queue has a soft floor of some width. Errors
are those at the end, against JiTCDDE with a width of 1e-8 and a tolerance of 1e-11.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
import warnings

import numpy as np
import symengine
from jitcdde import jitcdde, t, y

from flowstamp import stability

RTTS = 100.0
START = (0.5, 0.0)
GAINS = [(float(a), float(b)) for a in np.linspace(0.2, 1.1, 10) for b in np.linspace(0.1, 0.5, 10)]


def oracle() -> jitcdde:
    alpha, beta, width = names = symengine.symbols("alpha beta width")
    rate, queue = y(0), y(1)
    above = (1 - symengine.tanh(queue / width)) / 2
    drained = rate + above * (symengine.sqrt(rate**2 + width**2) - rate) / 2
    slopes = [-alpha * y(0, t - 1) - beta * y(1, t - 1), drained]
    found = jitcdde(slopes, control_pars=names, verbose=False, delays=[0.0, 1.0], max_delay=1.0)
    # JiTCDDE reads a pyproject.toml in the current folder.
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        found.compile_C(simplify=False)
    return found


def theirs(system: jitcdde, gains: tuple[float, float], width: float, tolerance: float) -> np.ndarray:
    system.purge_past()
    system.constant_past(START)
    system.set_parameters(*gains, width)
    system.set_integration_parameters(rtol=tolerance, atol=tolerance, first_step=1e-3, min_step=1e-15)
    system.step_on_discontinuities()
    return np.array(system.integrate(RTTS))


def ours(gains: tuple[float, float]) -> np.ndarray:
    return np.array(stability.trajectory(*gains, [RTTS], model="switched", start=START))[:, 0]


def told(name: str, found: list[np.ndarray], exact: list[np.ndarray], seconds: float) -> None:
    errors = [np.abs(a - b).max() for a, b in zip(found, exact, strict=True)]
    rate = len(GAINS) / seconds
    print(f"{name:36} {rate:8.0f} trajectories/s, median error {np.median(errors):.1e}, largest {max(errors):.1e}")


def main() -> None:
    warnings.simplefilter("ignore")
    system = oracle()
    exact = [theirs(system, gains, 1e-8, 1e-11) for gains in GAINS]
    began = time.process_time()
    found = [ours(gains) for gains in GAINS]
    told("flowstamp, 32 steps in an RTT", found, exact, time.process_time() - began)
    for width, tolerance in ((1e-4, 1e-6), (1e-6, 1e-8)):
        began = time.process_time()
        found = [theirs(system, gains, width, tolerance) for gains in GAINS]
        told(f"JiTCDDE, width {width:g}, tolerance {tolerance:g}", found, exact, time.process_time() - began)
    for model in ("switched", "rcp"):
        began, work = time.perf_counter(), time.process_time()
        stability.stable_map(np.linspace(*stability.ALPHAS, 200), np.linspace(*stability.BETAS, 200), model=model)
        seconds, work = time.perf_counter() - began, time.process_time() - work
        print(f"{'map of 200 x 200, ' + model:36} {seconds:8.2f} s on {os.cpu_count()} cores, {work:.2f} s of CPU")


if __name__ == "__main__":
    main()
