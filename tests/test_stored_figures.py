# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Curves of figures whose numbers a tool has counted and stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flowstamp.figures import analytic, stored
from flowstamp.figures.tables import TableError

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(("file", "of"), [(file, of) for file, all_of in stored.FILES.items() for of in all_of])
def test_every_stored_number_is_a_measure(file: str, of: str) -> None:
    values = analytic.curve({"stored": file, "of": of}).at([])
    assert set(values) <= set(stored.MEASURES)
    assert all(value.shape == (1,) for value in values.values())


def test_the_figure_reads_the_synthesis() -> None:
    record = json.loads((ROOT / "figures/hardware.json").read_text(encoding="utf-8"))
    values = analytic.curve({"stored": "hardware", "of": "rcp"}).at([])
    assert values["gates"].tolist() == [record["laws"]["rcp"]["gates"]]
    assert values["registers_32"].tolist() == [record["rcp_registers"]["registers_32"]]
    assert "registers_32" not in analytic.curve({"stored": "hardware", "of": "vcp"}).at([])


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"stored": "gates", "of": "rcp"}, "one of hardware, operations"),
        ({"stored": "hardware", "of": "pcp"}, "one of rcp, xcp, vcp"),
        ({"stored": "operations"}, "one of packet, interval"),
        ({"stored": "operations", "of": "packet", "rtt": "1s"}, "one of the keys stored, of"),
    ],
)
def test_another_table_is_refused(table: dict[str, str], expected: str) -> None:
    with pytest.raises(TableError, match=expected):
        analytic.curve(table)
