# SPDX-License-Identifier: Apache-2.0 OR MIT
# ruff: noqa: T201
"""Runs flows from a file, as other simulators use, and writes each completion time beside its row.

Usage: python examples/flow_list.py [--list FILE] [--out DIR]
"""

import argparse
import csv
from pathlib import Path

import flowstamp as fs

LIST = Path(__file__).with_name("data") / "flows.csv"


def scenario(flows: Path = LIST) -> fs.Scenario:
    """The network of `flow-list.toml`, and the flows of a file."""
    network = fs.graph(rtt="40us")
    ends = [("h1", "leaf1"), ("h2", "leaf1"), ("h3", "leaf2"), ("h4", "leaf2"), ("leaf1", "spine"), ("leaf2", "spine")]
    for host, switch in ends:
        delay = "5us" if switch == "spine" else "2us"
        queue = {"kind": "red", "step": 65}
        network = network.link(host, switch, rate="10Gbps", delay=delay, buffer="200pkt", queue=queue)
    network = network.flows("dctcp", name="listed", list_=flows, transport={"initial_rto": "1ms", "min_rto": "1ms"})
    return network.configure(name="A list of flows", duration="200ms", packet="1500B")


def main() -> None:
    """Runs the list, prints the mean times of each law's flows, and writes the list with one more column."""
    options = argparse.ArgumentParser(description="Completion times of flows that a file lists.")
    options.add_argument("--list", type=Path, default=LIST)
    options.add_argument("--out", type=Path, default=Path("out/flow-list"))
    given = options.parse_args()
    result = scenario(given.list.resolve()).run()
    # Flows of a list are in the order of its rows. Flows that have not ended have `None`.
    times = result.flows.column("fct_s")
    laws = result.flows.column("law")
    for law in sorted(set(laws)):
        ended = [time for time, of in zip(times, laws, strict=True) if of == law and time is not None]
        mean_us = 1e6 * sum(ended) / len(ended)
        print(f"{law}: {len(ended)} of {laws.count(law)} flows ended, after {mean_us:.0f} us on average")
    given.out.mkdir(parents=True, exist_ok=True)
    path = given.out / "flows.csv"
    with given.list.open(encoding="utf-8", newline="") as rows, path.open("w", encoding="utf-8", newline="") as out:
        names, *values = csv.reader(rows)
        csv.writer(out).writerows([[*names, "fct_s"], *([*row, fct] for row, fct in zip(values, times, strict=True))])
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
