#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compares five choices for the additive increase, which VCP's paper leaves open, on set-ups of figures 3 to 5, 7, 13.

.venv/bin/python tools/vcp.py             # about three minutes; writes the table into docs/notes/vcp-choices.md
.venv/bin/python tools/vcp.py --no-write
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import engine

from flowstamp import _flowstamp

DOCUMENT = engine.ROOT / "docs" / "notes" / "vcp-choices.md"

# Name, and the keys of the sender that the choice sets.
CHOICES: dict[str, dict[str, Any]] = {
    "a tenth (default)": {},
    "paper": {"ai_limiter": "none", "mi_limit": 1000},
    "table": {"ai_limiter": "table"},
    "base 100 ms, no limiter": {
        "ai_limiter": "none",
        "ai_base": "100ms",
        "ai_square_from": 0.2,
        "ai_square_to": 5,
    },
    "code": {"ai_limiter": "table", "ai_base": "100ms", "ai_square_from": 0.2, "ai_square_to": 5},
}
QUEUE_WEIGHT = {"code": 0.25}
"""The router's weight of a new queue sample where a choice sets it."""


def case(
    rate_mbps: float = 150,
    rtt: str = "80ms",
    flows: int = 30,
    reverse: int = 30,
    buffer: str = "1BDP",
    rtts: list[str] | None = None,
    duration_s: int = 120,
) -> dict[str, Any]:
    """A dumbbell of the paper's basic case, except for the arguments."""
    network = {
        "rate": f"{rate_mbps * 1000:.0f}kbps",
        "rtt": rtt,
        "buffer": buffer,
        "access_rate": f"{2 * rate_mbps * 1000:.0f}kbps",
        "router": {"law": "vcp", "t_rho": "200ms"},
    }
    forward: dict[str, Any] = {"name": "forward", "count": flows, "spread": "1s"}
    if rtts:
        forward["rtt"] = rtts
    groups = [forward]
    if reverse:
        groups.append({"name": "reverse", "count": reverse, "spread": "1s", "reverse": True})
    time = {"duration": f"{duration_s}s", "warmup": f"{duration_s // 5}s", "header": "0B"}
    return {**time, "dumbbell": network, "flows": groups}


CASES = {
    "V3, 0.5 Mb/s": case(0.5, buffer="120pkt"),
    "V3, 5 Mb/s": case(5, buffer="120pkt"),
    "V3, 15 Mb/s": case(15),
    "V3, 150 Mb/s": case(),
    "V4, 1 ms": case(rtt="1ms", buffer="120pkt"),
    "V4, 5 ms": case(rtt="5ms", buffer="120pkt"),
    "V4, 640 ms": case(rtt="640ms", duration_s=400),
    "V4, 1500 ms": case(rtt="1500ms", duration_s=400),
    "V5, 10 flows": case(flows=10),
    "V5, 300 flows": case(flows=300),
    "V5, 700 flows": case(flows=700),
    "V7, 40 to 330 ms": case(rtt="40ms", buffer="1500pkt", rtts=[f"{40 + 10 * j}ms" for j in range(30)]),
    "V13, 50 and 500 ms": case(10, "50ms", 2, 0, "625pkt", ["50ms", "500ms"], 400),
}

TEXT = """## What VCP's paper leaves open

Made by `python tools/vcp.py` at commit {commit}. Each cell has utilisation, mean queue in per cent of the buffer,
packets dropped both ways, and Jain's index of the forward flows. The set-ups are those of the paper's figures 3, 4,
5, 7 and 13, and the columns what may bound the [additive increase](../models/vcp.md). *A tenth* is equation 8 with
at most a tenth of the window in a round trip, *paper* equations 6 and 8 without limiters, *table* equation 8 with
the limiter that the authors' code computes and does not use, *base 100 ms* that code's scale. *Code* is all of that
code's constants, with its table. Figures V3 to V13 have *code*, and *paper* as a curve.

{rows}

Equation 8 alone drops at 0.5 Mb/s, where a share is a sixth of a packet and the queue makes the RTT a second: an
increase of 25 packets. Any limiter below the eighth that a cut takes mends that. The table goes down to 2% and is an
increase in proportion to the window where it binds: at long RTTs flows that are behind stay behind. The base of 100
ms uses more of the link, has a longer queue with many flows or at low capacity, and shares worst between 50 and 500 ms.
The paper's shares of long and cross flows (figure V8-shares) come out with equation 8.
"""


def cell(scenario: dict[str, Any], choice: str) -> str:
    """Runs one choice; returns the cell of the table."""
    vcp = {"law": "vcp", "t_rho": "200ms", **CHOICES[choice]}
    whole = {**scenario, "flows": [{**group, "law": vcp} for group in scenario["flows"]]}
    if choice in QUEUE_WEIGHT:
        router = {**scenario["dumbbell"]["router"], "queue_weight": QUEUE_WEIGHT[choice]}
        whole["dumbbell"] = {**scenario["dumbbell"], "router": router}
    summary = json.loads(_flowstamp.Source(json.dumps(whole), format="json").run().summary_json())
    link = summary["links"]["bottleneck"]
    drops = sum(each["drops"] for each in summary["links"].values())
    queue = 100 * link["mean_queue_bytes"] / link["buffer_bytes"]
    fair = summary["groups"]["forward"]["jain_index"]
    return f"{link['utilization']:.2f}, {queue:.1f}%, {drops}, {fair:.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--no-write", action="store_true", help="leave docs/notes/vcp-choices.md as it is")
    arguments = parser.parse_args()
    rows = ["| | " + " | ".join(CHOICES) + " |", "|---" * (len(CHOICES) + 1) + "|"]
    for name, scenario in CASES.items():
        print(name, file=sys.stderr)
        rows.append(f"| {name} | " + " | ".join(cell(scenario, choice) for choice in CHOICES) + " |")
    text = TEXT.format(commit=engine.commit(), rows="\n".join(rows))
    print(text)
    if not arguments.no_write:
        engine.write_section(DOCUMENT, "vcp", text, "Notes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
