#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Compares DCTCP's steady state with its paper's model and writes the table into docs/notes/dctcp.md.

    python3 tools/dctcp.py                # a few seconds, after the test has been built
    python3 tools/dctcp.py --no-write

The runs, the model and the bounds are those of crates/flowstamp-sim/tests/dctcp.rs, which prints the rows. It fails if
a value is out of its bounds; then nothing is written, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

import engine

DOCUMENT = engine.ROOT / "docs" / "notes" / "dctcp.md"
TEST = ("cargo", "test", "--quiet", "--locked", "--package", "flowstamp-sim", "--test", "dctcp")
CASE = "queue_marks_and_period_are_those_of_the_paper"

HEAD = r"""| | | $Q_\mathit{max}$ | $Q_\mathit{min}$ | $\alpha$, share marked | $T_C$, round trips |
|---|---|---|---|---|---|"""

TEXT = r"""## DCTCP in the steady state

Made by `python3 tools/dctcp.py` at commit {commit}: [DCTCP](../models/dctcp.md) against the steady state of Alizadeh
and others (2010), section 3.3 (`flowstamp_fluid::dctcp`), queues in packets. Packets of 1500 B, round trips of 100 us,
of which the model is given the least one measured; 300 ms after 100 ms. $K$ at 1 and 10 Gb/s is that of the paper's
section 4, then that of its figure 12.

The paper's windows grow also while acks have echoes; RFC 3168 holds them for that round trip, which makes a cycle one
round trip longer. Therefore each figure must be within bounds: from the paper's model to the same model with a round
trip held. Windows are whole packets, so the bounds are wider by half a packet for each window. The queue's are wider by
the packet that finds $K$ and goes unmarked. At 1 Gb/s a cycle has only a few round trips, so that the one held tells
most. Ten flows are no longer synchronised, and their queue falls lower; the paper's figure 12 shows the same beyond a
few flows.

{head}
{rows}
"""


def measure() -> list[str]:
    """The rows that the test prints."""
    command = [*TEST, CASE, "--", "--exact", "--nocapture"]
    done = subprocess.run(command, cwd=engine.ROOT, stdout=subprocess.PIPE, text=True, check=False)
    rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
    if done.returncode != 0 or not rows:
        raise engine.EngineError(f"`{' '.join(command)}` failed; its messages are above")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-write", action="store_true", help="leave docs/notes/dctcp.md as it is")
    arguments = parser.parse_args()
    try:
        text = TEXT.format(commit=engine.commit(), head=HEAD, rows="\n".join(measure()))
    except engine.EngineError as error:
        print(f"dctcp: {error}", file=sys.stderr)
        return 1
    print(text)
    if not arguments.no_write:
        engine.write_section(DOCUMENT, "dctcp", text, "Notes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
