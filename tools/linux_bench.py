# SPDX-License-Identifier: Apache-2.0 OR MIT
"""RCP and XCP against the kernel's CUBIC and BBR: the same path, the same applications, the same script.

    python tools/linux_bench.py [--out DIR] [--router path|bpf] [--laws rcp,xcp,cubic,bbr] [--seconds 10] [--json]

Each row is one `flowstamp-linux lab run`. Goodput is the sum over the flows after the warm-up. RTTs are iperf3's
samples of the kernel's smoothed RTT: the median of the flows' medians, the largest of their 95th percentiles. CPU is
what the whole machine was busy for, path and strangers included: on a quiet machine it compares laws, and is no end
host's cost.
Rows that the lateness gate calls invalid are shown as such and tell nothing; each is tried `--tries` times.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

# Rate, RTT, flows.
PATHS = [
    ("100Mbps", "40ms", 4),
    ("100Mbps", "40ms", 8),
    ("500Mbps", "20ms", 4),
    ("500Mbps", "20ms", 8),
    ("1Gbps", "10ms", 4),
    ("1Gbps", "10ms", 8),
]
STAMPED = ("rcp", "xcp")
WARMUP_S = 3
INVALID = 3
ETA = 0.95  # of RCP: below 1, or the queue of a start would never drain


def lab_of(rate: str, rtt: str, flows: int, law: str, where: str, seconds: int) -> str:
    eta = f"\neta = {ETA}" if law == "rcp" else ""
    router = (
        f'[router]\nlaw = "{law}"\nwhere = "{where}"{eta}\n'
        if law in STAMPED
        else f'[router]\nlaw = "none"\nwhere = "{where}"\n'
    )
    return (
        f'name = "{law}: {flows} flows, {rate}, {rtt}"\nduration = "{seconds + WARMUP_S}s"\nwarmup = "{WARMUP_S}s"\n'
        f'[path]\nrate = "{rate}"\nrtt = "{rtt}"\nbuffer = "1BDP"\n{router}[host]\nlaw = "{law}"\n'
        f'[[flows]]\nname = "long"\napp = "iperf3"\ncount = {flows}\n'
    )


def busy_s() -> float:
    """Seconds that all processors together have been busy."""
    user, nice, system, _idle, _wait, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def measure(program: str, lab: str, lab_id: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lab.toml"
        file.write_text(lab)
        before = busy_s()
        done = subprocess.run(
            [program, "lab", "run", str(file), "--json", "--id", lab_id], capture_output=True, text=True, check=False
        )
        cpu_s = busy_s() - before
    if done.returncode not in (0, INVALID):
        return {"problem": done.stderr.strip().splitlines()[-1].removeprefix("flowstamp: ")}
    summary = json.loads(done.stdout)
    group, link = summary["groups"]["long"], summary["links"]["bottleneck"]
    applications = summary["applications"]
    gigabits = group["goodput_bps"] * summary["duration_s"] / 1e9
    return {
        "valid": summary["valid"],
        "sum_mbps": group["goodput_bps"] / 1e6,
        "jain": group["jain_index"],
        "rtt_p50_ms": 1e3 * statistics.median(a["rtt_p50_s"] for a in applications if a["rtt_p50_s"]),
        "rtt_p95_ms": 1e3 * max((a["rtt_p95_s"] for a in applications if a["rtt_p95_s"]), default=float("nan")),
        "retransmits": sum(a["retransmits"] or 0 for a in applications),
        "drops": link["drops"],
        "lateness_p98_ms": 1e3 * summary["path"]["lateness"]["p98_s"],
        "idle_share": summary["path"]["idle_share"],
        "cpu_s_per_gigabit": cpu_s / gigabits if gigabits else float("nan"),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.environ.get("FLOWSTAMP_LINUX", "flowstamp-linux"))
    parser.add_argument("--laws", default="rcp,xcp,cubic,bbr")
    parser.add_argument("--router", choices=("path", "bpf"), default="path")
    parser.add_argument("--rates", default="100Mbps,500Mbps,1Gbps")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--tries", type=int, default=3, help="for a run that is invalid")
    parser.add_argument("--id", default="bench")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for rate, rtt, flows in PATHS:
        if rate not in arguments.rates.split(","):
            continue
        for law in arguments.laws.split(","):
            lab = lab_of(rate, rtt, flows, law, arguments.router, arguments.seconds)
            tries, row = 1, measure(arguments.program, lab, arguments.id)
            while tries < arguments.tries and row.get("valid") is False:
                tries, row = tries + 1, measure(arguments.program, lab, arguments.id)
            row = {"rate": rate, "rtt": rtt, "flows": flows, "law": law, "tries": tries, **row}
            rows.append(row)
            print(line(row), file=sys.stderr if arguments.json else sys.stdout, flush=True)
    document = json.dumps({"router": arguments.router, "seconds": arguments.seconds, "rows": rows}, indent=2)
    if arguments.json:
        print(document)
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "linux-bench.json").write_text(document + "\n")
    return 1 if any("problem" in row for row in rows) else 0


def line(row: dict[str, Any]) -> str:
    head = f"{row['rate']:>8} {row['rtt']:>5} {row['flows']} flows {row['law']:>6}: "
    if "problem" in row:
        return head + row["problem"]
    return head + (
        f"{row['sum_mbps']:7.1f} Mb/s, Jain {row['jain']:.4f}, RTT {row['rtt_p50_ms']:.1f}/{row['rtt_p95_ms']:.1f} ms, "
        f"sent again {row['retransmits']}, drops {row['drops']}, {row['cpu_s_per_gigabit']:.2f} CPU s/Gb, "
        f"idle {100 * row['idle_share']:.0f}%, "
        f"late {row['lateness_p98_ms']:.3f} ms{'' if row['valid'] else '  INVALID'}"
    )


if __name__ == "__main__":
    sys.exit(main())
