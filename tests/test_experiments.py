# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Each difference names an experiment that a command reruns, and these commands are ones that run."""

from __future__ import annotations

import argparse
import importlib.util
import re
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

from flowstamp import _flowstamp
from flowstamp.cli.common import overrides
from flowstamp.cli.figure import figure
from flowstamp.errors import FlowstampError
from flowstamp.figures import FigureSpec, available, load, read, report
from flowstamp.figures.catalogue import matching
from flowstamp.figures.memory import Memory
from flowstamp.figures.spec import RunSpec, Sets

ROOT = Path(__file__).resolve().parents[1]
INTERPRETERS = ("python", "python3", ".venv/bin/python", "ns")
BY_HAND = {"tools/hardware.py": {"check", "netlist", "synthesis"}, "tools/cellular.py": {"FOLDER"}}
"""Tools that read their words themselves, and the words that explanations use."""


def commands(text: str) -> Iterator[str]:
    """The commands of a text: what stands in backticks and runs a figure or a tool."""
    for quoted in re.findall(r"`([^`]+)`", " ".join(text.split())):
        if "flowstamp figure " in quoted or "tools/" in quoted:
            yield quoted


@cache
def tool(path: str) -> ModuleType:
    """A tool as a module, which may import its neighbours."""
    file = ROOT / path
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(f"experiment_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    return module


class Parsed(Exception):  # noqa: N818
    """Ends a tool when it has read its words."""


def words_of(path: str, words: list[str]) -> argparse.Namespace:
    """These words as the tool's own parser reads them. Raises `FlowstampError` for words that it refuses."""
    read_words = argparse.ArgumentParser.parse_args

    def parsed(parser: argparse.ArgumentParser, *_: Any) -> None:
        raise Parsed(read_words(parser, words))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", parsed)
        try:
            tool(path).main()
        except Parsed as found:
            namespace: argparse.Namespace = found.args[0]
            return namespace
        except SystemExit as refused:
            raise FlowstampError(f"{path} refuses {shlex.join(words)}") from refused
    raise FlowstampError(f"{path} has no parser")


def check_scenario(spec: FigureSpec, run: RunSpec, sets: Sets = ()) -> None:
    """Raises `FlowstampError` if a run of a figure does not take these overrides at its last point."""
    point = max(point for point, there in enumerate(spec.where(run)) if there)
    text, source, own, folder = spec.job(run, point)
    _flowstamp.Source(text, source=source, sets=(*own, *sets), base_dir=folder).check()


def check_figure(words: list[str]) -> None:
    """Raises an error if `flowstamp figure` would refuse these words before or at its first run."""
    app = typer.Typer()
    app.command()(figure)
    found = typer.main.get_command(app).make_context("figure", list(words)).params
    sets = overrides(found["sets"])
    for spec in (load(known) for pattern in found["ids"] for known in matching(pattern)):
        for changed in [spec.changed(sets)] if sets else []:
            for run in changed.simulated:
                check_scenario(changed, run)


def check_beside_ns2(path: str, words: list[str]) -> None:
    """Raises an error if the figure, its run or its keys do not exist."""
    found = words_of(path, words)
    spec = load(found.figure)
    runs = {run.name: run for run in spec.simulated}
    if found.run not in runs:
        raise FlowstampError(f"{spec.id} has no run {found.run}")
    check_scenario(spec, runs[found.run], overrides(found.set))
    strange = {word.partition("=")[0] for word in found.ns2} - parameters("tools/ns2/ns2.py")
    if strange:
        raise FlowstampError(f"dumbbell.tcl does not know {', '.join(sorted(strange))}")


def parameters(program: str) -> set[str]:
    """The parameters of a script of ns-2. `ns2.py` hands its words to `dumbbell.tcl`, which has a table of defaults."""
    if program == "tools/ns2/ns2.py":
        script = (ROOT / "tools/ns2/dumbbell.tcl").read_text(encoding="utf-8")
        table = script.partition("array set param {")[2].partition("\n}")[0]
        return set(re.findall(r'([a-z_0-9]+) +(?:"[^"]*"|\S+)', table))
    return set(re.findall(r"\[param (\w+) ", (ROOT / program).read_text(encoding="utf-8")))


def check(command: str) -> None:
    """Raises an error if a command of an explanation cannot run."""
    words = shlex.split(command)
    if words[:2] == ["flowstamp", "figure"]:
        return check_figure(words[2:])
    program, *rest = words[1:] if words[0] in INTERPRETERS else words
    if not (ROOT / program).is_file():
        raise FlowstampError(f"{program} does not exist")
    if program in ("tools/ns2/same_flows.py", "tools/ns2/two_way.py"):
        return check_beside_ns2(program, rest)
    if program == "tools/ns2/ns2.py" or program.endswith(".tcl"):
        strange = [word for word in rest if word.partition("=")[0] not in parameters(program)]
    elif program in BY_HAND:
        strange = sorted(set(rest) - BY_HAND[program])
    else:
        words_of(program, rest)
        strange = []
    if strange:
        raise FlowstampError(f"{program} does not know {', '.join(strange)}")
    return None


def told() -> Iterator[tuple[str, str]]:
    """Every text that explains differences, by where it stands."""
    for name, file in available().items():
        for claim in read(file).claims:
            if claim.explanation:
                yield f"{name} {claim.id}", claim.explanation
    for law, causes in report.causes().items():
        for cause in causes:
            yield f"{law}: {cause.title}", f"`{cause.run}`"


def test_every_difference_names_a_command() -> None:
    """`test_results_pages.py` checks that explanations are short."""
    memory = Memory.beside(available())
    differing = [
        (spec.id, verdict.claim)
        for spec in map(read, available().values())
        for verdict in memory.all_verdicts(spec).values()
        if verdict.status in ("differs", "differs on average", "fails")
    ]
    assert len(differing) > 100
    assert [(name, claim.id) for name, claim in differing if not list(commands(claim.explanation or ""))] == []


TOLD: dict[str, list[str]] = {}
for _where, _text in told():
    for _command in commands(_text):
        TOLD.setdefault(_command, []).append(_where)


@pytest.mark.parametrize("command", TOLD)
def test_the_command_of_an_experiment_is_one_that_runs(command: str) -> None:
    try:
        check(command)
    except Exception as error:  # whatever is wrong, the message says where the command stands
        pytest.fail(f"{', '.join(TOLD[command])}: {command}: {error}")


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("flowstamp figure X44", "X44"),
        ("flowstamp figure X6 --sets dumbbell.rate=1Mbps", "--sets"),
        ("flowstamp figure X6 --set dumbbell.rat=1Mbps", "rat"),
        ("tools/ns2/same.py X6", "does not exist"),
        ("tools/ns2/same_flows.py R4.17 xpc --split 500", "no run xpc"),
        ("tools/ns2/same_flows.py R4.17 xcp --spilt 500", "refuses"),
        ("tools/ns2/two_way.py X4 xcp --set dumbbell.buffers=3pkt", "buffers"),
        ("tools/ns2/two_way.py X4 xcp --ns2 flow=3", "flow"),
        ("python3 tools/ns2/ns2.py rates_mbps=150", "rates_mbps"),
        ("ns tools/ns2/cell_tcp.tcl scales=10", "scales"),
        ("tools/hardware.py checks", "checks"),
    ],
)
def test_a_wrong_command_is_found(command: str, wrong: str) -> None:
    with pytest.raises(Exception, match=re.escape(wrong)):
        check(command)
