# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compares two ways for the lab's path to get its frames, AF_XDP and a TAP device: same links, same script.

    python3 tools/linux_path.py [--by af_xdp,tap] [--rates 100Mbps,1Gbps,20Gbps] [--seconds 5] [--json]

Each row is one `flowstamp-linux lab run` of iperf3 flows with CUBIC, 10 ms, a buffer of one bandwidth-delay product. A
rate that neither way can carry shows the maximum of each. Lateness is that of packets due after the first second. CPU
is that of the path's thread, with the kernel's work in its name, per frame that arrived from either side.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

WAYS = ("af_xdp", "tap")
WARMUP_S = 1
INVALID = 3


def measure(program: str, by: str, rate: str, seconds: int, lab_id: str) -> dict[str, Any]:
    lab = (
        f'duration = "{seconds + WARMUP_S}s"\nwarmup = "{WARMUP_S}s"\n[path]\nrate = "{rate}"\nrtt = "10ms"\n'
        '[host]\nlaw = "cubic"\n[[flows]]\nname = "long"\ncount = 4\n'
    )
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(lab)
        file.flush()
        command = [program, "lab", "run", file.name, "--json", "--id", lab_id, "--path-by", by]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise SystemExit(f"linux_path: {program}: {error.strerror}") from None
    row: dict[str, Any] = {"by": by, "rate": rate}
    if done.returncode not in (0, INVALID):
        return row | {"problem": done.stderr.strip().splitlines()[-1].removeprefix("flowstamp: ")}
    summary = json.loads(done.stdout)
    path = summary["path"]
    return row | {
        "valid": summary["valid"],
        "sum_mbps": summary["groups"]["long"]["goodput_bps"] / 1e6,
        "us_per_frame": 1e6 * path["cpu_s"] / max(path["frames"], 1),
        "cpu_share": path["cpu_s"] / summary["wall_s"],
        "within_50us": path["lateness"]["within_50us"],
        "p98_ms": 1e3 * path["lateness"]["p98_s"],
        "max_ms": 1e3 * path["lateness"]["max_s"],
        "overruns": path["overruns"],
        "idle_share": path["idle_share"],
    }


def line(row: dict[str, Any]) -> str:
    head = f"| {row['rate']} | {row['by']} |"
    if "problem" in row:
        return f"{head} {row['problem']} |" + " |" * 7
    return (
        f"{head} {row['sum_mbps']:.0f} | {row['us_per_frame']:.1f} | {100 * row['cpu_share']:.0f}% | "
        f"{100 * row['within_50us']:.1f}% | {row['p98_ms']:.3f} / {row['max_ms']:.1f} | {row['overruns']:,} | "
        f"{100 * row['idle_share']:.0f}% | {'' if row['valid'] else '*invalid*'} |"
    )


def report(rows: list[dict[str, Any]], seconds: int) -> str:
    return "\n".join(
        [
            "| link | by | sum, Mb/s | CPU per frame, us | of a processor | within 50 us | late p98 / latest, ms |"
            " overruns | machine idle | |",
            "|---|---|---|---|---|---|---|---|---|---|",
            *map(line, rows),
            "",
            f"Four iperf3 flows with CUBIC over 10 ms for {seconds} s after {WARMUP_S} s of warm-up. "
            "A run whose path did not keep its times, or lost frames, is *invalid*: of a link that no way carries it "
            "shows how much each did.",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.environ.get("FLOWSTAMP_LINUX", "flowstamp-linux"))
    parser.add_argument("--by", default=",".join(WAYS))
    parser.add_argument("--rates", default="100Mbps,1Gbps,20Gbps")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--id", default="pathby")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for rate in arguments.rates.split(","):
        for by in arguments.by.split(","):
            rows.append(measure(arguments.program, by, rate, arguments.seconds, arguments.id))
            print(line(rows[-1]), file=sys.stderr, flush=True)
    print(json.dumps(rows, indent=2) if arguments.json else report(rows, arguments.seconds))
    return 1 if any("problem" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
