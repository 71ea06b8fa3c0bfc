# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Claims are as `figures/expected.json` has them, and what is not fails."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from costs import bits_of, scenarios, short
from msgspec.structs import replace

from flowstamp import linux
from flowstamp.figures import FigureError, FigureSpec, Outcome, Verdict, available, cli_figure, load, read
from flowstamp.figures.claims import Bound
from flowstamp.figures.kept import KEPT
from flowstamp.figures.measured import NotMeasuredError
from flowstamp.figures.memory import NAME, Form, Known, Memory
from flowstamp.figures.report import TITLES
from flowstamp.figures.runner import Runner
from flowstamp.figures.schedule import Queue, Run
from flowstamp.figures.scores import Score, results, scores
from flowstamp.figures.spec import Claim
from flowstamp.figures.verdicts import HOLDING, judged

ROOT = Path(__file__).resolve().parents[1]
RANDOM = (ROOT / "tests/data/T2.toml").read_text(encoding="utf-8")
NIGHTLY = os.environ.get("FLOWSTAMP_NIGHTLY") == "1"
MEASURED = {figure.id for figure in map(read, available().values()) if figure.measured}
"""On this machine's kernel: what comes out is no matter of the code alone."""
SHORT_BITS = 4e9
"""Figures whose links carry at most this are short tests: less than two seconds of a processor."""
CHANGE_BITS = 8e10
"""Figures whose links carry at most this are tests of each change."""


def words(tree: object) -> Iterator[str]:
    """Laws, queues, schedulers and distributions of a scenario with every default."""
    match tree:
        case dict():
            for key, value in tree.items():
                if key in ("law", "kind", "scheduler", "distribution", "recovery") and isinstance(value, str):
                    yield f"{key} {value}"
                yield from words(value)
        case list():
            for value in tree:
                yield from words(value)


def used(file: Path) -> set[str]:
    """The features of a figure: words of its scenarios, kind of network, measures and functions of its claims."""
    figure = short(file)
    found = {"reuse"} if figure.reuse else set()
    found |= {"theory" for curve in figure.runs if curve.theory is not None}
    for _, tree in scenarios(file):
        found |= {kind for kind in ("dumbbell", "parking_lot", "graph") if kind in tree} | set(words(tree))
    for claim in figure.claims:
        found |= set(
            re.findall(r"\b[a-z_0-9]+(?=\()|(?<=\.)[a-z][a-z_0-9]*", re.sub(r"'[^']*'|\"[^\"]*\"", "", claim.expr))
        )
    return found


def of_a_change() -> dict[str, float]:
    """The figures that each change runs: the cheap ones, and dearer ones for what only those show."""
    files = {name: file for name, file in available().items() if name not in MEASURED}
    bits = {name: bits_of(file) for name, file in files.items()}
    showing = {name: used(file) for name, file in files.items()}
    times = Counter(word for words in showing.values() for word in words)
    for name in sorted(bits, key=bits.__getitem__, reverse=True):
        if bits[name] > CHANGE_BITS and all(times[word] > 1 for word in showing[name]):
            times -= Counter(showing.pop(name))
    return {name: bits[name] for name in showing}


PER_CHANGE = of_a_change()


@pytest.fixture
def memory() -> Memory:
    return Memory.beside(available())


def run(capsys: pytest.CaptureFixture[str], figure: str, out: Path, *, fast: bool, **options: Any) -> tuple[int, Any]:
    code = cli_figure([figure], fast=fast, json=True, out=out, **options)
    [document] = json.loads(capsys.readouterr().out)["figures"]
    return code, document


FIGURES = [
    pytest.param(name, marks=() if PER_CHANGE.get(name, math.inf) <= SHORT_BITS else pytest.mark.long)
    for name in ([name for name in available() if name not in MEASURED] if NIGHTLY else PER_CHANGE)
]


@pytest.mark.parametrize("fast", [True, False] if NIGHTLY else [True])
@pytest.mark.parametrize("figure", FIGURES)
def test_claims_are_as_expected(figure: str, fast: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command's own judgement: no claim fails, none has changed; and there is a picture."""
    code, document = run(capsys, figure, tmp_path, fast=fast)
    assert "notes" not in document
    failing = [claim for claim in document["claims"] if claim["status"] == "fails"]
    assert (code, document.get("changes"), failing) == (0, None, [])
    assert (tmp_path / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / f"{figure}.pdf").read_bytes().startswith(b"%PDF")


def test_every_claim_of_a_figure_that_is_checked_is_known(memory: Memory) -> None:
    for figure in (figure for figure in map(read, available().values()) if not figure.measured):
        forms: list[tuple[Form, FigureSpec]] = [("fast", figure.fast_version()), ("full", figure)]
        for form, spec in forms:
            known = memory.claims(figure.id, form)
            if not known and not NIGHTLY and (form == "full" or figure.id not in PER_CHANGE):
                continue
            assert set(known) == {claim.id for claim in spec.claims}, (figure.id, form)
            verdicts = memory.verdicts(spec, form).values()
            assert all(verdict.finite for verdict in verdicts), (figure.id, form)
            assert form == "fast" or all(verdict.status != "fails" for verdict in verdicts), figure.id
    assert memory.text() == memory.path.read_text(encoding="utf-8")


def test_the_readme_has_the_scores(memory: Memory) -> None:
    """All in one line, each with a link to its paper's page."""
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    found = {score.law: score for score in scores(map(read, available().values()), memory)}
    told = {law: str(found[law]).removeprefix(law) for law in TITLES}
    line = ", ".join(f"[{law}](docs/results/{law.lower()}.md){score}" for law, score in told.items()) + "."
    assert line in readme.splitlines()
    results = [found[law].results for law in TITLES]
    *most, last = (sum(all(one.status == "holds" for one in result.verdicts) for result in each) for each in results)
    assert f"With all five seeds, {', '.join(map(str, most))} and {last} of them hold." in readme.splitlines()


# ---------------------------------------------------------------------------------------------------- made up

FIGURE = """
id = "T1"
title = "flow times by formula"
paper = "none"
[[runs]]
name = "ps"
label = "PS"
[runs.theory]
discipline = "ps"
capacity = "45Mbps"
rtt = "100ms"
sizes = { distribution = "exponential", mean = "25kB" }
[vary]
load = [0.1, 0.5]
[draw]
x = "vary"
xlabel = "Load"
[[draw.panels]]
y = "fct_s"
ylabel = "Mean time (s)"
[[claims]]
id = "one"
paper = "It is so"
expr = "EXPRESSION"
expected = "EXPECTED"
tolerance = "0"
source = "test"
explanation = "a test"
[fast]
reason = "the same"
"""


class Made:
    """A folder with one figure, whose only claim is a number."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        (folder / "figures").mkdir()

    @property
    def expected(self) -> Path:
        """The file of its figures."""
        return self.folder / "figures" / NAME

    def run(self, measured: float | str, expected: str = ">= 1", **options: Any) -> tuple[int, Any]:
        """Exit code and document of a claim that gives this."""
        text = FIGURE.replace("EXPRESSION", f"0 * ps.fct_s[0] + {measured}").replace("EXPECTED", expected)
        (self.folder / "figures" / "T1.toml").write_text(text)
        return run(self.capsys, "T1", self.folder / "out", fast=True, directory=self.folder / "figures", **options)

    def known(self, *values: float | None, **forms: list[float]) -> None:
        """Writes these values of the short version, and those of other versions, into the file."""
        told = {"fast": values, **forms}
        self.expected.write_text(json.dumps({"T1": {form: {"one": found} for form, found in told.items()}}))


@pytest.fixture
def made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Made:
    return Made(tmp_path, capsys)


@pytest.mark.parametrize(
    ("values", "measured", "code", "change"),
    [
        ((2.0, 1.5, 2.5), 2.0, 0, None),
        ((2.0, 1.5, 2.5), 9.0, 0, None),  # how well a claim holds is not compared
        ((0.5, 0.4, 0.6), 0.5, 0, None),
        ((0.5, 0.4, 0.6), 0.4, 0, None),
        ((0.5,), "0.5000000001", 0, None),  # beyond the file's digits
        ((2.0, 0.5, 2.5), 0.5, 1, "one: holds in expected.json, differs now (0.5)"),
        ((0.5, 2.5), 2.0, 1, "one: differs in expected.json, holds now (2)"),
        ((None, 2.5), 2.0, 1, "one: fails in expected.json, holds now (2)"),
        ((0.5, 0.4, 0.6), 0.61, 1, "one: 0.61 now; in expected.json it is in the band of seeds 1 to 5, 0.4 to 0.6"),
        ((0.5, 0.4, 0.6), 0.39, 1, "one: 0.39 now; in expected.json it is in the band of seeds 1 to 5, 0.4 to 0.6"),
        ((0.5, 0.4), "log10(0 - 1)", 1, "one: differs in expected.json, fails now (not a finite number)"),
        ((2.0, 1.5, 2.5), "1 / 0", 1, "one: holds in expected.json, fails now (not a finite number)"),
    ],
)
def test_what_changes_fails(
    made: Made, values: tuple[float | None, ...], measured: float | str, code: int, change: str | None
) -> None:
    made.known(*values)
    came, document = made.run(measured)
    assert (came, document.get("changes", [None])) == (code, [change])
    # Another seed is another experiment: its claims are its own.
    failing = document["claims"][0]["status"] == "fails"
    came, document = made.run(measured, seed=7)
    assert (came, document.get("changes")) == (int(failing), None)


@pytest.mark.parametrize(("values", "asks"), [((2.0, 1.5, 2.5), True), ((2.0, 0.5, 2.5), False), ((2.0, None), False)])
def test_an_explanation_of_what_holds_with_every_seed_is_out_of_date(made: Made, values: Any, asks: bool) -> None:
    made.known(*values)
    made.run(2.0)
    cli_figure(["T1"], fast=True, json=True, out=made.folder / "out", directory=made.folder / "figures")
    told = made.capsys.readouterr().err
    assert ("T1 one holds, though its file explains why it differs" in told) == asks


def test_of_a_provisional_value_only_seed_1_is_compared(made: Made) -> None:
    made.expected.write_text(json.dumps({"T1": {"fast": {"one": {"seed 1": 0.5}}}}))
    known = Memory(made.expected)
    assert json.loads(known.text()) == json.loads(made.expected.read_text())
    claim = Claim(id="one", paper="", expr="1", expected=">= 1", tolerance="0", source="", explanation="a test")
    for values, change in [
        ((0.5, 9.0, 0.1), ""),
        ((0.6, 9.0), "0.6 now; in expected.json it is 0.5 with seed 1"),
        ((2.0, 0.5), "differs in expected.json, holds now (2)"),
    ]:
        assert known.claims("T1", "fast")["one"].change(Verdict(claim, values)) == change


def test_what_is_no_number_fails_even_where_it_did_before(made: Made) -> None:
    made.known(None)
    code, document = made.run("1 / 0")
    assert (code, document["claims"][0]["status"], document.get("changes")) == (1, "fails", None)


def test_a_claim_that_comes_or_goes_is_a_change(made: Made) -> None:
    made.expected.write_text(json.dumps({"T1": {"fast": {"two": [2]}}}))
    code, document = made.run(2)
    assert (code, document["changes"]) == (
        1,
        ["one: not in expected.json", "two: in expected.json, but not in the figure"],
    )


def test_nothing_is_known_of_a_figure_that_was_never_accepted(made: Made) -> None:
    assert made.run(2)[1].get("notes") is None
    made.expected.write_text("{}")
    code, document = made.run(2)
    assert (code, document["notes"]) == (0, ["T1: expected.json has nothing of it (fast); --accept writes it"])


def test_accept_writes_what_came(made: Made) -> None:
    made.known(2.0)
    gone = json.loads(made.expected.read_text())
    made.expected.write_text(json.dumps(gone | {"T0": gone["T1"], "T1": gone["T1"] | {"full": gone["T1"]["fast"]}}))
    code, document = made.run(0.25, accept=True)
    assert (code, document["changes"]) == (0, ["one: holds in expected.json, differs now (0.25)"])
    assert (
        made.expected.read_text()
        == """{
  "T1": {
    "fast": {
      "one": [0.25]
    },
    "full": {
      "one": [2.0]
    }
  }
}
"""
    )
    made.known(0.25)
    assert made.run(0.25)[0] == 0
    assert made.run("1 / 0", accept=True)[0] == 1
    assert json.loads(made.expected.read_text())["T1"]["fast"]["one"] == [None]
    for option in ({"accept": True}, {"seeds": 5}):
        with pytest.raises(FigureError, match="leave out --seed"):
            made.run(2, seed=3, **option)


def test_an_interrupted_fill_goes_on_where_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The third seed's run is interrupted; the second call runs three seeds and no more."""
    seeds: list[int | None] = []
    whole = Runner.run
    folder, out = tmp_path / "figures", tmp_path / "out"
    folder.mkdir()
    (folder / "T2.toml").write_text(RANDOM)

    def once(runner: Runner, *rest: Any) -> Outcome:
        seeds.append(runner.seed)
        if len(seeds) == 3:
            raise KeyboardInterrupt
        return whole(runner, *rest)

    def fill() -> int:
        return run(capsys, "T2", out, fast=True, directory=folder, accept=True)[0]

    monkeypatch.setattr(Runner, "run", once)
    with pytest.raises(KeyboardInterrupt):
        fill()
    assert not (folder / NAME).exists()
    with (out / KEPT).open("a") as file:
        file.write('{"key": "half a li')  # what a machine that stops leaves
    assert fill() == 0
    assert seeds == [1, 2, 3, 3, 4, 5]
    (folder / "T2.toml").write_text(RANDOM.replace('"10Mbps"', '"11Mbps"'))  # another figure now
    assert fill() == 0
    assert seeds[6:] == [1, 2, 3, 4, 5]


def test_a_figure_whose_outcome_stands_is_not_run_again(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []
    whole = Runner.run

    def told(runner: Runner, spec: Any, *rest: Any) -> Outcome:
        ran.append(spec.id)
        return whole(runner, spec, *rest)

    def again(*arguments: Any, **options: Any) -> bool:
        before = len(ran)
        code, document = made.run(*arguments, **options)
        assert (code, document["claims"][0]["measured"]) == (0, arguments[0])
        assert document.get("kept", False) == (len(ran) == before)
        return len(ran) > before

    monkeypatch.setattr(Runner, "run", told)
    out = made.folder / "out"
    assert again(2)
    pictures = {name: (out / name).read_bytes() for name in ("T1.pdf", "T1.png")}
    assert not again(2)
    assert again(2, fresh=True)
    # A missing picture, or one with other contents, is drawn again.
    (out / "T1.png").unlink()
    assert again(2)
    (out / "T1.pdf").write_bytes(b"another")
    assert again(2)
    assert {name: (out / name).read_bytes() for name in pictures} == pictures
    # A change of seed, format or file also draws it again.
    assert again(2, seed=7)
    assert again(3)
    monkeypatch.setattr("test_expected.FIGURE", FIGURE.replace("flow times", "times"))
    assert again(3)
    assert not again(3)
    # A fill takes what it has of seed 1, and a line that was cut is as none.
    kept = out / KEPT
    kept.write_text(kept.read_text() + '{"key": "half a li')
    del ran[:]
    made.run(3, accept=True)
    assert not ran
    assert not again(3)
    # Claims are held against what the file expects now.
    assert made.run(3, expected=">= 4")[1]["claims"][0]["status"] == "differs"


def test_a_figure_in_processes_is_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parent / "data" / "X16.toml").read_text()
    folder = tmp_path / "figures"
    folder.mkdir()
    (folder / "X16.toml").write_text(text)
    found = []
    for executor in ("threads", "processes"):
        out = tmp_path / executor
        code, document = run(capsys, "X16", out, fast=False, directory=folder, executor=executor)
        del document["wall_s"]
        pictures = [(out / name).read_bytes() for name in ("X16.pdf", "X16.png", "X16.fct.json")]
        found.append((code, document, pictures))
    assert found[0] == found[1]


# ---------------------------------------------------------------------------------------------------- seeds


def test_each_seed_has_its_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Mean, band and count come from the seeds. The file records each seed. A figure without randomness runs once."""
    folder = tmp_path / "figures"
    folder.mkdir()
    (folder / "T2.toml").write_text(RANDOM)
    alone = []
    for seed in (1, 2, 3):
        _, document = run(capsys, "T2", tmp_path / f"seed{seed}", fast=False, directory=folder, seed=seed)
        alone.append(document["claims"][0]["measured"])
    assert len(set(alone)) == 3
    code, document = run(capsys, "T2", tmp_path / "out", fast=False, directory=folder, seeds=3)
    claim = document["claims"][0]
    assert (code, claim["values"], claim["measured"]) == (0, alone, pytest.approx(math.fsum(alone) / 3))
    assert (claim["held"], claim["status"]) == (3, "holds")
    assert (tmp_path / "out" / "T2.png").exists()
    run(capsys, "T2", tmp_path / "out", fast=False, directory=folder, accept=True)
    values = json.loads((folder / NAME).read_text())["T2"]["full"]["used"]
    assert (len(values), [float(f"{value:.6g}") for value in alone]) == (5, values[:3])
    # Without randomness two seeds give the same runs.
    (folder / "T2.toml").write_text(RANDOM.replace('spread = "500ms"', 'start = "0s"'))
    _, document = run(capsys, "T2", tmp_path / "out", fast=False, directory=folder, seeds=5)
    assert "values" not in document["claims"][0]


def test_the_next_seeds_runs_are_in_the_queue_behind_this_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No core idles, and a runner that drops its runs leaves those of another seed."""
    (tmp_path / "T2.toml").write_text(RANDOM)
    (tmp_path / "T3.toml").write_text(RANDOM.replace('id = "T2"', 'id = "T3"').replace("10Mbps", "9Mbps"))
    told: list[tuple[str, str]] = []
    ask, wait = Queue.ask, Queue.wait

    def asked(self: Queue, job: Any, owner: Any, **_: bool) -> Run:
        told.append(("9Mbps" if "9Mbps" in job[0] else "10Mbps", dict(job[2])["seed"]))
        return ask(self, job, owner)

    def waited(self: Queue, *rest: Any) -> None:
        told.append(("waited", ""))
        wait(self, *rest)

    monkeypatch.setattr(Queue, "ask", asked)
    monkeypatch.setattr(Queue, "wait", waited)
    cli_figure(["T2", "T3"], json=True, out=tmp_path / "out", directory=tmp_path, seeds=3)
    capsys.readouterr()
    fast, slow = ([(rate, f"{seed}") for seed in (1, 2, 3)] for rate in ("10Mbps", "9Mbps"))
    waits = [("waited", "")]
    later = [*slow[1:2], *waits, *slow[2:], *waits, *waits]
    assert told == [*fast[:2], *waits, *fast[2:], *waits, *slow[:1], *waits, *later]


def drawn(number: int) -> Iterator[tuple[Bound, list[float]]]:
    """Bounds, and values of one to five seeds, of which some lie on the bound or near it."""
    random = Random(number)
    for _ in range(number):
        value, slack = random.choice([0.0, 1.0, -2.5, 1e-6, 1e6]), random.choice(["0", "0.5", "5%"])
        bound = Bound.parse(f"{random.choice(['>=', '<=', '>', '<', '=='])} {value:g}", slack)
        near = [value, value + bound.slack, value - bound.slack, value + random.gauss(0, 1), random.uniform(-1e6, 1e6)]
        yield bound, [random.choice(near) for _ in range(random.randint(1, 5))]


def test_the_seeds_decide_if_they_agree_and_otherwise_their_mean() -> None:
    seen = set()
    for bound, values in drawn(2000):
        held = [bound.holds(value) for value in values]
        status = judged(bound, values)
        seen.add(status)
        assert (status == "holds") == all(held)
        assert (status == "differs") == (not any(held))
        if status.endswith("on average"):
            assert (status in HOLDING) == bound.holds(math.fsum(values) / len(values))
        assert judged(bound, values[::-1]) == status  # in whichever order the seeds ran
        assert judged(bound, values[:1]) in ("holds", "differs")
        # With a one-sided bound, one more seed that holds never makes a holding claim differ.
        better = bound.value + (1 if ">" in bound.relation else -1) * (bound.slack + 1)
        if bound.relation != "==" and status in HOLDING:
            assert judged(bound, [*values, better]) in HOLDING
    assert len(seen) == 4


def test_mean_band_and_count_are_recomputed_from_the_file() -> None:
    claim = load("X16").claims[0]
    for _, values in drawn(200):
        again = Known.read(json.loads(json.dumps(Known.of(Verdict(claim, tuple(values))).as_json()))).verdict(claim)
        assert list(again.values) == [float(f"{value:.6g}") for value in values]
        assert again.band == (min(again.finite), max(again.finite))
        assert again.measured == pytest.approx(np.mean(again.finite))
        assert again.held == sum(map(claim.bound.holds, again.finite))
    for missing in (None, math.nan, math.inf):
        known = Known.of(Verdict(claim, (1.0, missing)))
        assert (known.values, known.verdict(claim).band, known.verdict(claim).status) == ((1.0, None), None, "fails")


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ((2.0, 2.0), "holds"),
        ((0.5, 2.0), "holds on average"),
        ((0.5, 1.2), "fails"),  # unless the file explains it
        ((0.5, 0.5), "fails"),
        ((2.0, math.nan), "fails"),
    ],
)
def test_a_claim_that_differs_needs_an_explanation_unless_it_holds_on_average(values: Any, status: str) -> None:
    claim = replace(load("X16").claims[0], expected=">= 1", tolerance="0", explanation=None)
    assert Verdict(claim, values).status == status
    explained = Verdict(replace(claim, explanation="a test"), values).status
    assert explained == ({(0.5, 1.2): "differs on average", (0.5, 0.5): "differs"}.get(values, status))


def test_a_seed_that_differs_by_chance_needs_no_explanation(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("test_expected.FIGURE", FIGURE.replace('explanation = "a test"\n', ""))
    made.known(0.5, full=[0.5, 2, 2, 2, 2])
    code, document = made.run(0.5)
    assert (code, document["claims"][0]["status"]) == (0, "no verdict")  # the short version says otherwise
    made.known(0.5, 2, 2, 2, 2, full=[0.5, 2, 2, 2, 2])
    code, document = made.run(0.5)
    assert (code, document["claims"][0]["status"], document.get("changes")) == (0, "differs", None)
    made.known(0.5, full=[0.5])
    code, document = made.run(0.5)
    assert (code, document["claims"][0]["status"]) == (1, "fails")


@pytest.mark.parametrize(
    ("full", "status"),
    [([2, 2], "holds"), ([0.5, 2, 2], "holds"), ([0.5, 0.5], "no verdict"), ([2, 0.1, 0.1], "no verdict")],
)
def test_a_short_version_that_says_otherwise_gives_no_verdict(made: Made, full: list[float], status: str) -> None:
    made.known(2, full=full)
    code, document = made.run(2)
    claim = document["claims"][0]
    assert (code, claim["status"], claim["holds"]) == (0, status, True if status == "holds" else None)


def test_published_results_count_once() -> None:
    """Claims with the same words, or one `result`, are one result; ours and identities are none."""
    figure = load("X16")
    claim = replace(figure.claims[0], expected=">= 1", tolerance="0", source="section 5", explanation="a test")
    claims = [
        replace(claim, id="a", paper="one"),
        replace(claim, id="b", paper="one"),
        replace(claim, id="c", paper="two", result="three"),
        replace(claim, id="d", paper="three"),
        replace(claim, id="e", paper="four", source="ours: a wish"),
        replace(claim, id="f", paper="five", of="identity"),
        replace(claim, id="g", paper="six", source="ours: no", of="paper"),
        replace(claim, id="h", paper="not run"),
    ]
    values = {"a": 2, "b": 2, "c": 2, "d": 0, "e": 2, "f": 2, "g": 2}
    verdicts = {one.id: Verdict(one, (values[one.id],)) for one in claims[:-1]}
    verdicts["h"] = Verdict(claims[-1], (), untold="no verdict")
    found = tuple(results(replace(figure, claims=tuple(claims)), verdicts))
    assert [[v.claim.id for v in one.verdicts] for one in found] == [["a", "b"], ["c", "d"], ["g"], ["h"]]
    assert [one.holds for one in found] == [True, False, True, False]
    assert str(Score("XCP", found)) == "XCP 2 of 4 (1 not measured)"


def test_what_a_kernel_measures_is_noted_and_no_change(tmp_path: Path) -> None:
    figure = load("R6.T")
    path = tmp_path / NAME
    claim = figure.claims[0].id
    path.write_text(json.dumps({"R6.T": {"full": {claim: [0.03]}}}))
    differs = Outcome(figure, 1.0, [Verdict(figure.claims[0], (0.2,))], [])
    changes, notes = Memory(path).compared(differs, "full")
    assert (changes, notes) == ([], [f"R6.T {claim}: holds in expected.json, differs now (0.2); measured here"])
    untold = NotMeasuredError("skipped", "no BPF")
    skipped = Outcome(figure, 1.0, [Verdict(figure.claims[0], (None,), untold="skipped")], [], untold)
    assert Memory(path).compared(skipped, "full") == ([], [])


def test_a_skipped_figure_leaves_what_was_measured_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(linux, "program", lambda: None)
    folder = tmp_path / "figures"
    folder.mkdir()
    (folder / "R6.T.toml").write_text(available()["R6.T"].read_text())
    code, document = run(capsys, "R6.T", tmp_path, fast=True, directory=folder, accept=True)
    assert (code, document["status"]) == (0, "skipped")
    first = json.loads((folder / NAME).read_text())["R6.T"]["fast"]
    assert set(first.values()) == {"skipped"}
    claims = {name: [0.1] for name in first}
    (folder / NAME).write_text(json.dumps({"R6.T": {"fast": claims}}))
    run(capsys, "R6.T", tmp_path, fast=True, directory=folder, accept=True)
    assert json.loads((folder / NAME).read_text())["R6.T"]["fast"] == claims


def test_a_file_that_is_none_is_bad_input(made: Made) -> None:
    for text in ("[]", '{"T1": 1}', "{", '{"T1": {"fast": {"one": []}}}', '{"T1": {"fast": {"one": "well"}}}'):
        made.expected.write_text(text)
        with pytest.raises(FigureError, match="not what `flowstamp figure --accept` writes"):
            made.run(2)
