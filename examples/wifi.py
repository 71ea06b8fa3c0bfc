# SPDX-License-Identifier: Apache-2.0 OR MIT
# ruff: noqa: T201
"""A home's Wi-Fi under XCP-b, CUBIC and BBR: throughput of each flow, RTTs and page times.

Usage: python examples/wifi.py [--seed N] [--out DIR]

The cell is that of `wifi.toml`. Laws of TCP are tried with a plain queue and with FQ-CoDel.
"""

import argparse
from pathlib import Path

import numpy as np

import flowstamp as fs
from flowstamp import plot

HERE = Path(__file__).resolve().parent
FLOWS = ("tv", "tablet", "phone", "garden", "camera", "backup")
QUEUES = {"": "droptail", ", FQ-CoDel": "fq_codel"}


def setups() -> dict[str, fs.Scenario]:
    """The cell of `wifi.toml` as it is, under XCP-b, and for the laws of TCP without a router law."""
    home = fs.load(HERE / "wifi.toml")
    found = {"XCP-b": home}
    for name, law in (("CUBIC", "cubic"), ("BBR", "bbr")):
        for label, queue in QUEUES.items():
            tcp = home.set("flows.*.law", law).set("wireless.home.router", "none")
            found[name + label] = tcp.set("wireless.home.queue", queue)
    return found


def drawn(results: dict[str, fs.Results]) -> plot.Stack:
    """Goodput and round-trip time of each flow without end."""
    places = np.arange(1.0, len(FLOWS) + 1)

    def of_flows(result: fs.Results, column: str, scale: float) -> np.ndarray:
        rows = {row["group"]: row for row in result.summary["flows"]}
        return np.array([(rows[flow][column] or np.nan) * scale for flow in FLOWS])

    def panel(label: str, column: str, scale: float, yscale: plot.Scale) -> plot.Panel:
        curves = [
            plot.Curve(name, places, of_flows(result, column, scale), style)
            for style, (name, result) in enumerate(results.items())
        ]
        return plot.Panel(label, curves, yscale=yscale)

    return plot.Stack(
        "Station (camera and backup send, the others receive)",
        [panel("Goodput (Mb/s)", "goodput_bps", 1e-6, "linear"), panel("RTT (ms)", "srtt_s", 1e3, "log")],
        xticks=list(zip(places, FLOWS, strict=True)),
        lines=False,
    )


def main() -> None:
    """Runs all set-ups, prints a table and draws it."""
    options = argparse.ArgumentParser(description="A home's Wi-Fi under XCP-b, CUBIC and BBR.")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--out", type=Path, default=Path("out/wifi"))
    given = options.parse_args()
    scenarios = setups()
    runs = fs.run_many([scenario.configure(seed=given.seed) for scenario in scenarios.values()])
    results = dict(zip(scenarios, runs, strict=True))
    print(f"{'':16} Mb/s  Jain  queue p95  dropped  pages: p50    p95")
    for name, result in results.items():
        queue, total = result.links["home.ap"], result.summary["total"]
        pages = result.groups["pages"]["fct_s"]["all"]
        print(
            f"{name:16} {total['goodput_bps'] / 1e6:4.1f}  {total['jain_index']:4.2f}"
            f"  {queue['p95_queue_bytes'] / 1e3:6.0f} kB  {queue['drops']:7}"
            f"   {pages['p50']:8.2f} s {pages['p95']:5.2f} s"
        )
    for path in plot.save(plot.stack(drawn(results)), given.out / "wifi"):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
