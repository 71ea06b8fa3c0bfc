# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`tools/cellular.py`: laws on recordings of cellular links, which are not part of the project."""

from __future__ import annotations

import os
import re
import runpy
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECORDINGS = os.environ.get("FLOWSTAMP_CELLULAR", "")
tool = runpy.run_path(str(ROOT / "tools" / "cellular.py"))

pytestmark = pytest.mark.filterwarnings("ignore::flowstamp.ScenarioWarning")


def published() -> dict[str, dict[str, str]]:
    """The cells of both tables in the notes, by recording and law."""
    cells: dict[str, dict[str, str]] = {}
    columns: list[str] = []
    for line in (ROOT / "docs" / "notes" / "abc-cellular.md").read_text().splitlines():
        first, *rest = [part.strip() for part in line.strip("|").split("|")]
        if line.startswith("| law |"):
            columns = rest
        elif line.startswith("| ") and len(rest) == len(columns):
            for column, cell in zip(columns, rest, strict=True):
                cells.setdefault(column, {})[first] = cell
        else:
            columns = columns if line.startswith("|---") else []
    return cells


def test_the_notes_have_all_laws_of_the_figure() -> None:
    labels = [run["label"] for run in tomllib.loads(tool["FIGURE"].read_text())["runs"]]
    tables = published()
    assert len(tables) == 8  # five recordings of LTE and their mean, two of 3G
    assert all(list(cells) == labels for cells in tables.values())


def test_without_recordings_it_says_so_and_judges_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "README").write_text("no recording")
    assert tool["main"]([str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("no recordings: ")
    assert said.count("\n") == 1


def test_it_compares_all_laws_of_the_figure(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool["main"]([str(ROOT / "figures" / "cellular-model.txt")], "12s") == 0
    said = capsys.readouterr().out
    assert said.count("%, ") == 2 * 14  # one recording, and the mean
    assert re.search(r"ABC's mean utilisation over that of CUBIC with CoDel: \d\.\d\d", said)


def test_the_model_is_what_its_recipe_makes() -> None:
    recipe = runpy.run_path(str(ROOT / "tools" / "cellular_model.py"))
    lines = [*recipe["deliveries"](), 1000 * recipe["SECONDS"]]
    assert (ROOT / "figures" / "cellular-model.txt").read_text() == "".join(f"{ms}\n" for ms in lines)


@pytest.mark.long
@pytest.mark.skipif(not RECORDINGS, reason="no recordings: FLOWSTAMP_CELLULAR names no folder; nothing is judged")
def test_recordings_show_the_papers_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool["main"]([RECORDINGS]) == 0
    said = capsys.readouterr().out
    (of_codel,) = re.findall(r"CUBIC with CoDel: ([\d.]+)", said)
    assert float(of_codel) > 1
    throughput, tail = re.findall(r"over ABC's: ([\d.]+), ([\d.]+)", said)[0]
    assert float(tail) > 1.5
    assert float(throughput) < 1.1


@pytest.mark.long
@pytest.mark.skipif(not RECORDINGS, reason="no recordings: FLOWSTAMP_CELLULAR names no folder; nothing is judged")
def test_the_notes_have_what_is_measured() -> None:
    runs = tomllib.loads(tool["FIGURE"].read_text())["runs"]
    tables = published()
    known = [trace for trace in tool["recordings"]([RECORDINGS]) if trace.name in tables]
    assert known, f"no recording in {RECORDINGS} has the name of one in the notes"
    for trace in known:
        measured = {run["label"]: tool["cell"](tool["measured"](run, trace, tool["DURATION"])) for run in runs}
        assert measured == tables[trace.name], trace.name
