# SPDX-License-Identifier: Apache-2.0 OR MIT
"""RCP and XCP against the kernel's CUBIC and BBR: the same path, the same applications, the same script.

    python tools/linux_bench.py [--out DIR] [--router path|bpf] [--laws rcp,xcp,cubic,bbr] [--seconds 10] [--json]
    python tools/linux_bench.py --write [--rates 100Mbps,500Mbps] [--flows 4]   the table of docs/performance.md
    python tools/linux_bench.py --only-router --write                           what a packet costs in the router

`python` is .venv/bin/python.

Each row is one `flowstamp-linux lab run`. Goodput is the sum over the flows after the warm-up. RTTs are iperf3's
samples of the kernel's smoothed RTT: the median of the flows' medians, the largest of their 95th percentiles. CPU is
what the whole machine was busy for, less what it was busy for just before, and less what the lab's own process, which
is the path, took: both end hosts and the veth between them. It says nothing on a machine that was busy before.
Rows that the lateness gate calls invalid are shown as such and tell nothing; each is tried `--tries` times.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import engine

from flowstamp import router_cost
from flowstamp.router_cost import BUSY_MAX, busy_s, idle_baseline

DOCUMENT = engine.ROOT / "docs" / "performance.md"

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


def children_cpu_s() -> float:
    """User and system time of all processes that this one has started and that are done."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def own_cpu_s(process: int) -> float:
    """User and system time of a process, its children left out."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(program: str, lab: str, lab_id: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        file = Path(folder) / "lab.toml"
        file.write_text(lab)
        baseline = idle_baseline()
        before, begun, path_cpu_s, children_s = busy_s(), time.monotonic(), 0.0, children_cpu_s()
        command = [program, "lab", "run", str(file), "--json", "--id", lab_id]
        done = subprocess.Popen(command, stdout=out, stderr=err)
        while done.poll() is None:
            path_cpu_s = max(path_cpu_s, own_cpu_s(done.pid))
            time.sleep(0.05)
        cpu_s = busy_s() - before - baseline * (time.monotonic() - begun)
        applications_cpu_s = children_cpu_s() - children_s - path_cpu_s
        for stream in (out, err):
            stream.seek(0)
        said, complaint = out.read().decode(), err.read().decode()
    if done.returncode not in (0, INVALID):
        return {"problem": complaint.strip().splitlines()[-1].removeprefix("flowstamp: ")}
    summary = json.loads(said)
    group, link = summary["groups"]["long"], summary["links"]["bottleneck"]
    applications = summary["applications"]
    # CPU is of the whole run; the warm-up is taken to deliver as the rest does, short of its first round trips.
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
        "busy_before": baseline,
        "applications_cpu_s_per_gigabit": applications_cpu_s / gigabits if gigabits else float("nan"),
        "path_cpu_s_per_gigabit": path_cpu_s / gigabits if gigabits else float("nan"),
        "cpu_s_per_gigabit": (cpu_s - path_cpu_s) / gigabits if gigabits and baseline <= BUSY_MAX else None,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.environ.get("FLOWSTAMP_LINUX", "flowstamp-linux"))
    parser.add_argument("--laws", default="rcp,xcp,cubic,bbr")
    parser.add_argument("--router", choices=("path", "bpf"), default="path")
    parser.add_argument("--rates", default="100Mbps,500Mbps,1Gbps")
    parser.add_argument("--flows", default="4,8")
    parser.add_argument("--write", action="store_true", help="into docs/performance.md")
    parser.add_argument("--only-router", action="store_true", help="what a packet costs in the router")
    parser.add_argument("--rounds", type=int, default=10, help="of --only-router")
    parser.add_argument("--packets", type=int, default=300_000, help="of --only-router, in each round")
    parser.add_argument("--prefix", default="flowstamp-cost", help="of --only-router's namespaces and pins")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--tries", type=int, default=3, help="for a run that is invalid")
    parser.add_argument("--id", default="bench")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.only_router:
        return cost_of_router(arguments)
    rows = []
    for rate, rtt, flows in PATHS:
        if rate not in arguments.rates.split(",") or str(flows) not in arguments.flows.split(","):
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
    if arguments.write:
        engine.write_section(DOCUMENT, "linux-paths", report(rows, arguments), "Performance")
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "linux-bench.json").write_text(document + "\n")
    return 1 if any("problem" in row for row in rows) else 0


def made() -> str:
    """What the tables were made with."""
    words = sys.argv[1:]
    for private in ("--program", "--prefix", "--id", "--out"):
        if private in words:
            at = words.index(private)
            del words[at : at + 2]
    command = " ".join([".venv/bin/python tools/linux_bench.py", *words])
    text: str = f"Made by `{command}` at commit {engine.commit()} on {time.strftime('%Y-%m-%d')}: {engine.machine()}."
    return text


def cost_of_router(arguments: argparse.Namespace) -> int:
    measured = router_cost.measure(
        arguments.program,
        arguments.prefix,
        arguments.rounds,
        arguments.packets,
        lambda line: print(line, file=sys.stderr),
    )
    text = "\n".join(["## Linux: the router's cost per packet", "", made(), "", router_report(measured)])
    if arguments.json:
        print(json.dumps(measured, indent=2))
    else:
        print(text)
    if arguments.write:
        engine.write_section(DOCUMENT, "linux-router", text, "Performance")
    return 0


def median_and_spread(values: list[float], form: str = ",.0f") -> str:
    low, _, high = statistics.quantiles(values, n=4)
    return f"{statistics.median(values):{form}} ({low:{form}} to {high:{form}})"


def router_report(measured: dict[str, Any]) -> str:
    thread, machine, own = measured["thread"], measured["machine"], measured["own"]
    forwarding = [off - sender for off, sender in zip(thread["forwarding"], thread["straight"], strict=True)]
    base = statistics.median(forwarding)
    busy = statistics.median(measured["baselines"])
    lines = [
        "| | thread's CPU, ns per packet | more than forwarding alone | share of forwarding | machine's CPU, ns |",
        "|---|---|---|---|---|",
    ]
    names = {
        "straight": "straight to the sink",
        "forwarding": "forwarding, no router",
        "rcp": "with RCP",
        "xcp": "with XCP",
    }
    for kind, name in names.items():
        row = f"| {name} | {median_and_spread(thread[kind])} | "
        if kind in router_cost.LAWS:
            more = [on - off for on, off in zip(thread[kind], thread["forwarding"], strict=True)]
            row += f"{median_and_spread(more)} | **{100 * statistics.median(more) / base:.1f}%** | "
        else:
            row += " | | "
        lines.append(row + f"{median_and_spread(machine[kind]) if busy <= BUSY_MAX else 'not measurable'} |")
    counted = "; ".join(
        f"{law.upper()} {statistics.median(own[law]):.0f} ({min(own[law]):.0f} to {max(own[law]):.0f})"
        for law in router_cost.LAWS
    )
    bench = "; ".join(f"{row['name']} {row['median_ns']:.0f}" for row in measured["bench"]["programs"])
    return "\n".join(
        [
            *lines,
            "",
            f"Median (quartiles) of {measured['rounds']} rounds of {measured['packets']:,} segments of "
            f"{len(router_cost.frame('rcp'))} bytes, each round all four in turn. Differences are taken within a "
            f"round. Forwarding is what a packet costs beyond sending it straight to the sink: {base:,.0f} ns, the "
            "second veth hop included. *Machine*: `/proc/stat`, less what it was busy for just before each round, the "
            f"sender's start included; {busy:.2f} of {os.cpu_count()} processors were busy before (median), and above "
            f"{BUSY_MAX} this says nothing and is left out.",
            "",
            "The thesis (section 6) has 2.6% for RCP: 9.9998 jiffies against 9.7368 through the forwarding path of a "
            "kernel of 2006, and at most 3 additions, 2 comparisons and 1 write. That share is **not** reproduced "
            "here. What the law itself does is little (`router bench`: an option whose rate stays, over an empty "
            "program); the rest is to enter a program, to find the option, to write to a packet and to mend its "
            "checksum, beside a forwarding path of veth that is cheap.",
            "",
            f"By the kernel's own statistics (`BPF_ENABLE_STATS`, ns per run, median and extremes of three, the two "
            f"readings of the clock partly included): {counted}. In `router bench` (`BPF_PROG_RUN`, ns): {bench}.",
        ]
    )


def report(rows: list[dict[str, Any]], arguments: argparse.Namespace) -> str:
    where = "in the path" if arguments.router == "path" else "in BPF"
    lines = [
        "## Linux: RCP and XCP beside the kernel's CUBIC and BBR",
        "",
        made(),
        "",
        "| path | flows | law | sum, Mb/s | Jain | RTT median / p95, ms | sent again | drops | CPU s per Gb: hosts |"
        " applications | path | busy before | late p98, ms | |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        head = f"| {row['rate']}, {row['rtt']} | {row['flows']} | {row['law']} |"
        if "problem" in row:
            lines.append(f"{head} {row['problem']} |" + " |" * 10)
            continue
        lines.append(
            f"{head} {row['sum_mbps']:.1f} | {row['jain']:.4f} | {row['rtt_p50_ms']:.1f} / {row['rtt_p95_ms']:.1f} | "
            f"{row['retransmits']:,} | {row['drops']:,} | {cpu(row)} | {row['applications_cpu_s_per_gigabit']:.2f} | "
            f"{row['path_cpu_s_per_gigabit']:.2f} | {100 * row['busy_before']:.0f}% | {row['lateness_p98_ms']:.3f} | "
            f"{'' if row['valid'] else '*invalid*'} |"
        )
    lines += [
        "",
        f"{arguments.seconds} s after {WARMUP_S} s of warm-up, buffer of one bandwidth-delay product, iperf3, router "
        f"{where}; RCP's eta is {ETA}. CPU: of the whole machine (`/proc/stat`), less what it was busy for in the 2 s "
        "before, which is shown as a share of one processor, less the process that is the path; per Gb delivered: both "
        f"hosts and the kernel between them; left out where more than {BUSY_MAX} of a processor was busy before. "
        "*Applications*: the processes inside the lab, by their rusage: what interrupts do on others' time is missing, "
        "and processes that were killed unreaped: a lower bound that does not compare laws. "
        "A run on a machine too busy to keep the path's times is *invalid* and says nothing.",
    ]
    return "\n".join(lines)


def cpu(row: dict[str, Any]) -> str:
    return "not measurable" if row["cpu_s_per_gigabit"] is None else f"{row['cpu_s_per_gigabit']:.2f}"


def line(row: dict[str, Any]) -> str:
    head = f"{row['rate']:>8} {row['rtt']:>5} {row['flows']} flows {row['law']:>6}: "
    if "problem" in row:
        return head + str(row["problem"])
    return head + (
        f"{row['sum_mbps']:7.1f} Mb/s, Jain {row['jain']:.4f}, RTT {row['rtt_p50_ms']:.1f}/{row['rtt_p95_ms']:.1f} ms, "
        f"sent again {row['retransmits']}, drops {row['drops']}, {cpu(row)} CPU s/Gb, "
        f"applications {row['applications_cpu_s_per_gigabit']:.2f}, "
        f"idle {100 * row['idle_share']:.0f}%, "
        f"late {row['lateness_p98_ms']:.3f} ms{'' if row['valid'] else '  INVALID'}"
    )


if __name__ == "__main__":
    sys.exit(main())
