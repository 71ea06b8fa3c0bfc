# SPDX-License-Identifier: Apache-2.0 OR MIT
# ruff: noqa: T201
"""A cellular downlink under XCP and under TCP: what fills it, and how long packets wait.

Usage: python examples/cellular.py [--trace FILE] [--sizes FILE] [--load SHARE] [--out DIR]

Without files it uses the invented ones in `data/`, as `cellular.toml` does.
"""

import argparse
from pathlib import Path

import flowstamp as fs
from flowstamp import plot

DATA = Path(__file__).resolve().parent / "data"


def downlink(law: str, trace: Path, sizes: Path, load: float = 0.3) -> fs.Scenario:
    """Two downloads and web transfers of one law share a link that follows a trace."""
    return (
        fs.dumbbell(
            {"trace": str(trace), "capacity_window": "100ms"}, rtt="60ms", buffer="500kB", reverse_rate="10Mbps"
        )
        .flows(law, 2, name="download")
        .flows(law, name="web", web={"load": load, "sizes": {"distribution": "empirical", "file": str(sizes)}})
        .configure(name=f"Cellular downlink, {law}", duration="120s", warmup="5s", packet="1500B")
        .probe(every="250ms", laws=True)
    )


def main() -> None:
    """Runs both laws, prints what differs and draws it."""
    options = argparse.ArgumentParser(description="A cellular downlink under XCP and under TCP.")
    options.add_argument("--trace", type=Path, default=DATA / "cellular.down", help="in Mahimahi's format")
    options.add_argument("--sizes", type=Path, default=DATA / "sizes.txt", help="lines of bytes and percent")
    options.add_argument("--load", type=float, default=0.3, help="of the web transfers, as a share of the mean rate")
    options.add_argument("--out", type=Path, default=Path("out/cellular"))
    given = options.parse_args()
    scenarios = [downlink(law, given.trace.resolve(), given.sizes.resolve(), given.load) for law in ("xcp", "sack")]
    results = dict(zip(("XCP", "TCP"), fs.run_many(scenarios), strict=True))
    for name, result in results.items():
        link = result.links["bottleneck"]
        wait_ms = link["mean_queue_bytes"] * 8e3 / link["rate_bps"]
        times = result.groups["web"]["fct_s"]
        typical = f"{times['all']['p50']:.2f} s" if times else "none completed"
        print(f"{name}: {link['utilization']:.0%} used, mean wait {wait_ms:.0f} ms, median web transfer {typical}")
    for path in plot.save(plot.overview(results), given.out / "cellular"):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
