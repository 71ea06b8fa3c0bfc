# SPDX-License-Identifier: Apache-2.0 OR MIT
# ruff: noqa: T201
"""A cellular downlink whose rate is unknown, or only estimated: XCP, XCP-b and TCP.

Usage: python examples/cellular.py [--trace FILE] [--sizes FILE] [--load SHARE] [--out DIR]

Without files it uses the invented ones in `data/`, as `cellular.toml` does.
"""

import argparse
from pathlib import Path

import flowstamp as fs
from flowstamp import plot

DATA = Path(__file__).resolve().parent / "data"


def downlink(law: str, trace: Path, sizes: Path, load: float = 0.3, **given: object) -> fs.Scenario:
    """Two downloads and web transfers of one law share a link that follows a trace. `given` has more of its keys."""
    rate = {"trace": str(trace), "capacity_window": "100ms"}
    link = {"rate": rate, "rtt": "60ms", "buffer": "500kB", "reverse_rate": "10Mbps"} | given
    return (
        fs.dumbbell(**link)
        .flows(law, 2, name="download")
        .flows(law, name="web", web={"load": load, "sizes": {"distribution": "empirical", "file": str(sizes)}})
        .configure(name=f"Cellular downlink, {law}", duration="120s", warmup="5s", packet="1500B")
        .probe(every="250ms", laws=True)
    )


def main() -> None:
    """Runs all set-ups, prints a table and draws it."""
    options = argparse.ArgumentParser(description="A cellular downlink under XCP, XCP-b and TCP.")
    options.add_argument("--trace", type=Path, default=DATA / "cellular.down", help="in Mahimahi's format")
    options.add_argument("--sizes", type=Path, default=DATA / "sizes.txt", help="lines of bytes and percent")
    options.add_argument("--load", type=float, default=0.3, help="of the web transfers, as a share of the mean rate")
    options.add_argument("--out", type=Path, default=Path("out/cellular"))
    given = options.parse_args()
    trace = given.trace.resolve()
    # The mean over ten minutes is the trace's. XCP-b knows no rate; its longest queue is a fifth of the buffer.
    mean = {"rate": {"trace": str(trace), "capacity_window": "600s"}}
    untold = {"rate": {"trace": str(trace), "known": False}, "router": {"law": "xcp-b", "q_max": "100kB"}}
    setups = {
        "XCP, told the rate": downlink("xcp", trace, given.sizes.resolve(), given.load),
        "XCP, told the mean": downlink("xcp", trace, given.sizes.resolve(), given.load, **mean),
        "XCP-b, told nothing": downlink("xcp", trace, given.sizes.resolve(), given.load, **untold),
        "TCP": downlink("cubic", trace, given.sizes.resolve(), given.load),
    }
    results = dict(zip(setups, fs.run_many(list(setups.values())), strict=True))
    for name, result in results.items():
        link = result.links["bottleneck"]
        wait_ms = link["mean_queue_bytes"] * 8e3 / link["rate_bps"]
        times = result.groups["web"]["fct_s"]
        typical = (
            f"web transfers {times['all']['p50']:.2f} s, one in 20 over {times['all']['p95']:.2f} s"
            if times
            else "none completed"
        )
        print(f"{name}: {link['utilization']:.0%} used, mean wait {wait_ms:.0f} ms, {link['drops']} lost, {typical}")
    for path in plot.save(plot.overview(results), given.out / "cellular"):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
