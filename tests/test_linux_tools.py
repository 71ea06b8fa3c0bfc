# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`tools/linux_bench.py` without a kernel to measure: its table, its exclusion, its refusals."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
TOOLS = ROOT / "tools"
sys.path.insert(0, str(TOOLS))

linux_table = pytest.importorskip("linux_table")
linux_cpu = pytest.importorskip("linux_cpu")

HOW = linux_table.How("path", 10, 3, 0.95)


def row(rate: str, rtt: str, law: str, **more: Any) -> dict[str, Any]:
    measured: dict[str, Any] = {
        "valid": True,
        "left": 0,
        "sum_mbps": 90.0,
        "jain": 1.0,
        "rtt_p50_ms": 40.0,
        "rtt_p95_ms": 41.0,
        "retransmits": 0,
    }
    measured |= {"drops": 0, "hosts_cpu_s_per_gigabit": None, "hosts_processors": 0.2, "path_processors": 0.3}
    measured |= {"other_processors": 0.5, "lateness_p98_ms": 0.05}
    return {"rate": rate, "rtt": rtt, "flows": 4, "law": law, **measured, **more}


def test_a_row_says_what_it_is_not_worth() -> None:
    rows = [row("1Gbps", "10ms", "cubic", left=2), row("100Mbps", "40ms", "rcp", valid=False)]
    table = linux_table.report([*rows, row("100Mbps", "40ms", "xcp", problem="no a | b")], HOW).splitlines()
    assert table[2].endswith("| not measurable | 2 of 4 left cubic |")
    assert table[3].endswith("| *invalid* |")
    assert "no a / b" in table[4]
    assert len({line.count("|") for line in table if line.startswith("|")}) == 1


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
def test_what_the_lab_and_strangers_do_is_told_apart() -> None:
    burn = [sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(burn) as lab, subprocess.Popen(burn) as stranger:
        try:
            first = linux_cpu.sample(lab.pid)
            time.sleep(0.5)
            spent = linux_cpu.between(first, linux_cpu.sample(lab.pid))
        finally:
            lab.kill()
            stranger.kill()
    # However busy the machine is, both get a part of it.
    assert 0.05 < spent.path <= 1.1
    assert spent.strangers > 0.05
    assert spent.hosts_s_per_gigabit(1e9) is None
    assert linux_cpu.Spent(5, 0.3, 0.4, 0.01).hosts_s_per_gigabit(100e6) == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--rates", "10Mbps"], "--rates 10Mbps: there are 100Mbps, 500Mbps, 1Gbps"),
        (["--program", "/nowhere"], "/nowhere: No such file or directory; say make linux"),
        (["--seconds", "0"], "--seconds, --tries, --rounds and --packets must be 1 or more"),
    ],
)
def test_what_cannot_be_is_one_line_and_exit_code_2(options: list[str], line: str) -> None:
    command = [sys.executable, str(TOOLS / "linux_bench.py"), "--program", sys.executable, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert (line if os.geteuid() == 0 else "run it as root") in done.stderr
