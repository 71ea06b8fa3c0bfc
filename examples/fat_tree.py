# SPDX-License-Identifier: Apache-2.0 OR MIT
# ruff: noqa: T201
"""Slowdowns of flows by size, on a fat tree at 100 Gb/s under RCP, XCP, VCP and DCTCP.

Usage: python examples/fat_tree.py [--k PORTS] [--load SHARE] [--sizes FILE] [--duration TIME] [--out DIR]
"""

import argparse
import sys
from pathlib import Path

import flowstamp as fs
from flowstamp import plot
from flowstamp.fct import slowdown_figure

DATA = Path(__file__).resolve().parent / "data"


def scenario(law: str, sizes: Path, k: int = 8, load: float = 0.4, duration: str = "5ms") -> fs.Scenario:
    """Random flows of one law between random hosts."""
    # DCTCP's switches mark packets. The other laws need no marks.
    marks = {"kind": "red", "step": 40, "step_drops": False}
    queue = marks if law == "dctcp" else "droptail"
    return (
        fs.fat_tree(k, rate="100Gbps", delay="1us", buffer="200kB", queue=queue)
        .flows(
            law,
            name="web",
            pattern="random",
            web={"load": load, "sizes": {"distribution": "empirical", "file": str(sizes)}},
        )
        .configure(name=f"Fat tree, {law}", duration=duration, warmup="500us")
        .probe(every="50us", links=False)
    )


def main() -> None:
    """Runs all laws, prints a table and draws it."""
    options = argparse.ArgumentParser(description="A fat tree under RCP, XCP, VCP and DCTCP.")
    options.add_argument("--k", type=int, default=8, help="ports of each switch")
    options.add_argument("--load", type=float, default=0.4, help="of the hosts' links")
    options.add_argument("--sizes", type=Path, default=DATA / "datacentre-sizes.txt", help="lines of bytes and percent")
    options.add_argument("--duration", default="5ms")
    options.add_argument("--out", type=Path, default=Path("out/fat_tree"))
    given = options.parse_args()
    laws = {"RCP": "rcp", "XCP": "xcp", "VCP": "vcp", "DCTCP": "dctcp"}
    made = [scenario(law, given.sizes.resolve(), given.k, given.load, given.duration) for law in laws.values()]
    results = dict(zip(laws, fs.run_many(made), strict=True))
    for name, result in results.items():
        web = result.groups["web"]
        if web["fct_slowdown"] is None:
            sys.exit("no flow started after the warm-up and completed; give a longer --duration")
        slowdown = web["fct_slowdown"]["all"]
        queue = max(link["p99_queue_bytes"] for link in result.links.values())
        print(
            f"{name}: {web['completed']} of {web['flows']} flows, slowdown {slowdown['p50']:.1f}, "
            f"one in 100 over {slowdown['p99']:.0f}; {result.summary['total']['drops']} packets lost, "
            f"99% of the longest queue {queue / 1e3:.0f} kB"
        )
    for path in plot.save(slowdown_figure(results), given.out / "slowdown"):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
