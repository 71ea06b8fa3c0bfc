# SPDX-License-Identifier: Apache-2.0 OR MIT
# ruff: noqa: T201
"""A small provider's network: the bottleneck of each flow, and the effect of a link at half its capacity.

Usage: python examples/graph.py [--out DIR]
"""

import argparse
from pathlib import Path

import flowstamp as fs
from flowstamp import plot

MAINTENANCE = {"steps": [["0s", "100Mbps"], ["10s", "50Mbps"], ["20s", "100Mbps"]]}


def scenario() -> fs.Scenario:
    """The network of `graph.toml`. All links get XCP's router law, because the flows need it."""
    network = (
        fs.graph(rtt="50ms")
        .link("internet", "north", name="peering", rate="200Mbps", delay="15ms")
        .link("cache", "north", name="cache", rate="1Gbps", delay="100us")
        .link("north", "west", name="ring-west", rate=MAINTENANCE, delay="2ms")
        .link("west", "south", name="ring-southwest", rate="100Mbps", delay="2ms")
        .link("north", "east", name="ring-east", rate="100Mbps", delay="3ms")
        .link("east", "south", name="ring-southeast", rate="100Mbps", delay="4ms")
        .link("west", "old-town", name="old-town", rate="60Mbps", delay="1ms")
        .link("south", "new-town", name="new-town", rate="80Mbps", delay="1ms")
        .link("east", "office", name="office-down", rate="100Mbps", delay="1ms", duplex=False)
        .link("office", "east", name="office-up", rate="50Mbps", delay="1ms", duplex=False)
    )
    backup = {"start": "5s", "size": "50MB", "access": {"rate": "1Gbps", "delay": "1ms"}}
    web = {"flows_per_s": 100.0, "sizes": {"distribution": "pareto", "mean": "50kB", "shape": 1.5}}
    return (
        network.flows("xcp", 8, name="old-town", from_="internet", to="old-town")
        .flows("xcp", 4, name="new-town", from_="cache", to="new-town", spread="1s")
        .flows("xcp", name="camera", from_="office", to="internet", rate="5Mbps")
        .flows("xcp", 2, name="backup", from_="office", to="new-town", **backup)
        .flows("xcp", name="web", from_="internet", to="office", web=web)
        .configure(name="Small provider", duration="30s", warmup="2s")
        .probe(every="100ms")
    )


def main() -> None:
    """Runs it, prints the links that were full and draws the one under maintenance."""
    options = argparse.ArgumentParser(description="A small provider's network.")
    options.add_argument("--out", type=Path, default=Path("out/graph"))
    given = options.parse_args()
    result = scenario().run()
    for name, link in sorted(result.links.items(), key=lambda item: -item[1]["utilization"])[:4]:
        wait_ms = link["mean_queue_bytes"] * 8e3 / link["rate_bps"]
        print(f"{name}: {link['utilization']:.1%} used, mean wait {wait_ms:.2f} ms, {link['drops']} drops")
    for name in ("old-town", "new-town"):
        t, goodput = result.series("group", name, "goodput_bps")
        for when, chosen in {"normal": (t > 5) & (t < 10), "maintenance": (t > 12) & (t < 20)}.items():
            print(f"{name}, {when}: {goodput[chosen].mean() / 1e6:.1f} Mb/s")
    for path in plot.save(result.plot("ring-west"), given.out / "graph"):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
