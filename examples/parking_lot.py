# SPDX-License-Identifier: Apache-2.0 OR MIT
# ruff: noqa: T201
"""Three bottlenecks in a row: the throughput of each flow, compared with its max-min share.

Usage: python examples/parking_lot.py [--out DIR]
"""

import argparse
from pathlib import Path

import flowstamp as fs
from flowstamp import plot

MAX_MIN_MBPS = {"long": 5.0, "cross.1": 10.0, "cross.2": 5.0, "cross.3": 15.0}
"""Each flow's max-min share of links of 30, 20 and 40 Mb/s."""


def scenario() -> fs.Scenario:
    """The network of `parking-lot.toml`."""
    return (
        fs.parking_lot(["30Mbps", "20Mbps", "40Mbps"], delay="10ms", access_delay="2ms")
        .flows("xcp", 2, name="long")
        .flows("xcp", 2, name="cross", each_hop=True, start="2s")
        .configure(name="Parking lot", duration="30s", warmup="10s")
        .probe(flows=True)
    )


def main() -> None:
    """Runs it, prints each group's share and draws it."""
    options = argparse.ArgumentParser(description="Three bottlenecks in a row.")
    options.add_argument("--out", type=Path, default=Path("out/parking-lot"))
    given = options.parse_args()
    result = scenario().run()
    for name, group in result.groups.items():
        each = group["goodput_bps"] / group["flows"] / 1e6
        print(f"{name}: {each:5.2f} Mb/s each, max-min {MAX_MIN_MBPS[name]:g}")
    for name, link in result.links.items():
        if not name.endswith(".reverse"):
            print(f"{name}: {link['utilization']:.1%} used, {link['drops']} drops")
    for path in plot.save(result.plot("link2"), given.out / "parking-lot"):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
