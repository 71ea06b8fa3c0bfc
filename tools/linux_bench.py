# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compares RCP and XCP with the kernel's CUBIC and BBR: same path, same applications, same script.

    .venv/bin/python tools/linux_bench.py [--router path|bpf] [--laws rcp,xcp,cubic,bbr] [--seconds 10] [--json]
    .venv/bin/python tools/linux_bench.py --only-router       the cost of a packet in the router

Run it as root. Each row is one `flowstamp-linux lab run`. Goodput is the sum over the flows after the warm-up. RTTs are
iperf3's samples of the kernel's smoothed RTT: the median of the flows' medians, and the largest of their 95th
percentiles. RTTs and retransmissions cover the whole run. `linux_cpu.py` measures the hosts' CPU time by exclusion,
between the moments at which the lab reports 5 s and the last multiple of 5 s. A row that the lateness check calls
invalid is not usable; it is tried up to `--tries` times. The tool first removes what a killed run has left behind
(`--id`, `--prefix`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

import linux_cpu
from linux_table import How, number, report, router_report

from flowstamp import router_cost
from flowstamp.errors import FlowstampError

# Rate, RTT, flows.
PATHS = [
    ("100Mbps", "40ms", 4),
    ("100Mbps", "40ms", 8),
    ("500Mbps", "20ms", 4),
    ("500Mbps", "20ms", 8),
    ("1Gbps", "10ms", 4),
    ("1Gbps", "10ms", 8),
]
KERNELS = ("cubic", "bbr")  # congestion controls of the kernel
WARMUP_S = 3
INVALID = 3
ETA = 0.95  # of RCP: below 1, or the queue of a start would never drain


def lab_of(rate: str, rtt: str, flows: int, law: str, where: str, seconds: int) -> str:
    eta = f"\neta = {ETA}" if law == "rcp" else ""
    routers = "none" if law in KERNELS else law
    router = f'[router]\nlaw = "{routers}"\nwhere = "{where}"{eta}\n'
    return (
        f'name = "{law}: {flows} flows, {rate}, {rtt}"\nduration = "{seconds + WARMUP_S}s"\nwarmup = "{WARMUP_S}s"\n'
        f'[path]\nrate = "{rate}"\nrtt = "{rtt}"\nbuffer = "1BDP"\n{router}[host]\nlaw = "{law}"\n'
        f'[[flows]]\nname = "long"\napp = "iperf3"\ncount = {flows}\n'
    )


def run_lab(program: str, file: Path, lab_id: str) -> tuple[int, str, str, linux_cpu.Spent | None]:
    """Runs a lab; returns its exit code, both outputs, and the CPU time between the first and the last whole 5 s."""
    # A lab cleans up on SIGTERM, which it also gets when this process dies.
    command = ["setpriv", "--pdeathsig", "TERM", program, "lab", "run", str(file), "--json", "--id", lab_id]
    samples, complaint = [], ""
    with tempfile.TemporaryFile() as out:
        lab = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True)
        try:
            assert lab.stderr is not None
            for said in lab.stderr:
                if re.match(r"\d+ s of ", said):
                    samples.append(linux_cpu.sample(lab.pid))
                else:
                    complaint = said.strip()
        except KeyboardInterrupt:
            lab.terminate()
            raise
        finally:
            lab.wait()
        out.seek(0)
        spent = linux_cpu.between(samples[0], samples[-1]) if len(samples) > 1 else None
        return lab.returncode, out.read().decode(), complaint, spent


def measure(program: str, lab: str, lab_id: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lab.toml"
        file.write_text(lab)
        code, said, complaint, spent = run_lab(program, file, lab_id)
    if code not in (0, INVALID):
        return {"problem": complaint.removeprefix("flowstamp: ") or f"the lab left with code {code}"}
    summary = json.loads(said)
    group, link = summary["groups"]["long"], summary["links"]["bottleneck"]
    applications = summary["applications"]
    silent = [a["flow"] for a in applications if a["retransmits"] is None or not a["rtt_p50_s"]]
    if silent:
        return {"problem": f"iperf3 says nothing of {', '.join(silent)}"}
    return {
        "left": len(summary["hosts"]["groups"].get("long", {}).get("left", [])),
        "valid": summary["valid"],
        "sum_mbps": group["goodput_bps"] / 1e6,
        "jain": group["jain_index"],
        "rtt_p50_ms": 1e3 * statistics.median(a["rtt_p50_s"] for a in applications),
        "rtt_p95_ms": 1e3 * max(a["rtt_p95_s"] for a in applications),
        "retransmits": sum(a["retransmits"] for a in applications),
        "drops": link["drops"],
        "lateness_p98_ms": 1e3 * summary["path"]["lateness"]["p98_s"],
        "idle_share": summary["path"]["idle_share"],
        "hosts_cpu_s_per_gigabit": spent.hosts_s_per_gigabit(group["goodput_bps"]) if spent else None,
        "hosts_processors": spent.hosts if spent else None,
        "path_processors": spent.path if spent else None,
        "other_processors": spent.strangers if spent else None,
    }


def refuse(text: str) -> NoReturn:
    print(f"linux_bench: {text}", file=sys.stderr)
    raise SystemExit(2)


def chosen(option: str, text: str, there: list[str]) -> list[str]:
    """Splits a comma-separated list and checks that each part is one of `there`."""
    parts = text.split(",")
    for part in parts:
        if part not in there:
            refuse(f"{option} {part}: there are {', '.join(there)}")
    return parts


def check(arguments: argparse.Namespace) -> None:
    """Refuses wrong arguments with one line before anything runs."""
    if os.geteuid() != 0:
        refuse("makes network namespaces and loads BPF programs; run it as root")
    try:
        done = subprocess.run([arguments.program, "--version"], capture_output=True, check=False)
    except OSError as error:
        refuse(f"{arguments.program}: {error.strerror}; say make linux, or name the program in FLOWSTAMP_LINUX")
    if done.returncode != 0:
        refuse(f"{arguments.program} does not run; say make linux")
    if min(arguments.seconds, arguments.tries, arguments.rounds, arguments.packets) < 1:
        refuse("--seconds, --tries, --rounds and --packets must be 1 or more")
    if arguments.only_router and arguments.rounds < 2:
        refuse("--rounds must be 2 or more, for quartiles")


def clean(program: str, lab_id: str) -> None:
    """Removes what a lab of this id has left. Gives a lab that has just lost its parent time to clean up itself."""
    command = [program, "lab", "clean", "--id", lab_id]
    for _ in range(40):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        time.sleep(0.5)
    refuse(done.stderr.strip().removeprefix("flowstamp: "))


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.environ.get("FLOWSTAMP_LINUX", "flowstamp-linux"))
    parser.add_argument("--laws", help="those that `flowstamp-linux router laws` has and the kernel's own, unless said")
    parser.add_argument("--router", choices=("path", "bpf"), default="path")
    parser.add_argument("--rates", default="100Mbps,500Mbps,1Gbps")
    parser.add_argument("--flows", default="4,8")
    parser.add_argument("--only-router", action="store_true", help="what a packet costs in the router")
    parser.add_argument("--rounds", type=int, default=10, help="of --only-router")
    parser.add_argument("--packets", type=int, default=300_000, help="of --only-router, in each round")
    parser.add_argument("--prefix", default="flowstamp-cost", help="of --only-router's namespaces and pins")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--tries", type=int, default=3, help="for a run that is invalid")
    parser.add_argument("--id", default="bench")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", action="store_true")
    return parser


def main() -> int:
    arguments = options().parse_args()
    # On SIGTERM it cleans up as on Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        check(arguments)
        return cost_of_router(arguments) if arguments.only_router else paths(arguments)
    except KeyboardInterrupt:
        print("linux_bench: stopped", file=sys.stderr)
        return 130


def measure_paths(arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], How]:
    """One row for each path and law that `arguments` choose, and the settings that all rows share."""
    rates = chosen("--rates", arguments.rates, list(dict.fromkeys(rate for rate, _, _ in PATHS)))
    counts = chosen("--flows", arguments.flows, list(dict.fromkeys(str(flows) for _, _, flows in PATHS)))
    there = (*router_cost.laws(arguments.program), *KERNELS)
    laws = chosen("--laws", arguments.laws or ",".join(there), list(there))
    clean(arguments.program, arguments.id)
    rows = []
    for rate, rtt, flows in PATHS:
        if rate not in rates or str(flows) not in counts:
            continue
        for law in laws:
            lab = lab_of(rate, rtt, flows, law, arguments.router, arguments.seconds)
            tries, row = 1, measure(arguments.program, lab, arguments.id)
            while tries < arguments.tries and row.get("valid") is False:
                tries, row = tries + 1, measure(arguments.program, lab, arguments.id)
            row = {"rate": rate, "rtt": rtt, "flows": flows, "law": law, "tries": tries, **row}
            rows.append(row)
            print(line(row), file=sys.stderr, flush=True)
    return rows, How(arguments.router, arguments.seconds, WARMUP_S, ETA)


def paths(arguments: argparse.Namespace) -> int:
    try:
        rows, how = measure_paths(arguments)
    except FlowstampError as error:
        refuse(str(error))
    document = json.dumps({"router": arguments.router, "seconds": arguments.seconds, "rows": rows}, indent=2)
    print(document if arguments.json else report(rows, how))
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "linux-bench.json").write_text(document + "\n")
    return 1 if any("problem" in row for row in rows) else 0


def measure_router(arguments: argparse.Namespace) -> dict[str, Any]:
    """The cost of a packet in the router, as `flowstamp.router_cost` measures it."""
    measured: dict[str, Any] = router_cost.measure(
        arguments.program,
        arguments.prefix,
        arguments.rounds,
        arguments.packets,
        lambda line: print(line, file=sys.stderr),
    )
    return measured


def cost_of_router(arguments: argparse.Namespace) -> int:
    try:
        measured = measure_router(arguments)
    except FlowstampError as error:
        refuse(str(error))
    print(json.dumps(measured, indent=2) if arguments.json else router_report(measured))
    return 0


def line(row: dict[str, Any]) -> str:
    head = f"{row['rate']:>8} {row['rtt']:>5} {row['flows']} flows {row['law']:>6}: "
    if "problem" in row:
        return head + str(row["problem"])
    cells = [
        f"{row['sum_mbps']:7.1f} Mb/s",
        f"Jain {row['jain']:.4f}",
        f"RTT {row['rtt_p50_ms']:.1f}/{row['rtt_p95_ms']:.1f} ms",
        f"sent again {row['retransmits']}",
        f"drops {row['drops']}",
        f"hosts {number(row['hosts_cpu_s_per_gigabit'])} CPU s/Gb",
        f"processors: hosts {number(row['hosts_processors'])}",
        f"path {number(row['path_processors'])}",
        f"others {number(row['other_processors'])}",
        f"late {row['lateness_p98_ms']:.3f} ms{'' if row['valid'] else '  INVALID'}",
        f"{row['left']} left their law",
    ]
    return head + ", ".join(cells)


if __name__ == "__main__":
    sys.exit(main())
