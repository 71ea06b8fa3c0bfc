# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp compare`: runs a scenario or a lab under several protocols."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from flowstamp.cli.common import as_text, document, load, say, say_written, show_progress
from flowstamp.cli.options import Executor, Json, Memory, OutHere, ScenarioFile, Seed, Sets, ShownAs, among
from flowstamp.errors import UsageError

if TYPE_CHECKING:
    from flowstamp.comparison import Comparison


class _Compared(NamedTuple):
    """Results of all protocols, and the files written."""

    results: Comparison
    times: dict[str, list[dict[str, Any]]]
    differences: list[dict[str, Any]]
    written: list[Path]

    def as_json(self) -> dict[str, Any]:
        return {
            "protocols": {name: result.summary for name, result in self.results.items()},
            "afct": self.times,
            "confidence": self.results.confidence,
            "fairness": {
                name: {group: vars(one) for group, one in groups.items()}
                for name, groups in self.results.fairness().items()
            },
            "paired": self.differences,
            "files": [str(path) for path in self.written],
        }


def _protocols(incomplete: str) -> list[str]:
    """Completes the last entry of the list: a law or, after a plus sign, a queue."""
    from flowstamp import _flowstamp

    before, comma, last = incomplete.rpartition(",")
    law, plus, queue = last.partition("+")
    known = _flowstamp.laws()
    words = [f"{law}+{word}" for word in known["queues"]] if plus else known["senders"]
    return [f"{before}{comma}{word}" for word in words if word.startswith(f"{law}{plus}{queue}")]


Protocols = Annotated[
    str,
    typer.Option(
        "--protocols",
        metavar="A,B+QUEUE,...",
        help="Sender laws to compare; +QUEUE also changes the queue, as in reno+red.",
        autocompletion=_protocols,
    ),
]
Against = Annotated[
    str,
    typer.Option(
        "--against",
        metavar="sim",
        help="For a lab's file: compare the lab with the simulator.",
        autocompletion=among("sim"),
    ),
]
Trials = Annotated[
    int | None,
    typer.Option("--trials", metavar="N", min=1, help="For a lab's file: number of runs of each protocol. Default: 3."),
]
Confidence = Annotated[
    float,
    typer.Option(
        "--confidence",
        metavar="PERCENT",
        min=0.01,
        max=100.0,
        help="Required half width of the 95% intervals of completion times.",
    ),
]
MaxDuration = Annotated[
    str,
    typer.Option(
        "--max-duration",
        metavar="TIME",
        help="Double the duration until --confidence is reached, but at most to this.",
    ),
]
Metric = Annotated[
    str,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="Compare each pair of protocols flow by flow: mean_fct, p50_fct, p95_fct or p99_fct.",
        autocompletion=among("mean_fct", "p50_fct", "p95_fct", "p99_fct"),
    ),
]
Everything = Annotated[
    bool, typer.Option("--all", help="Also show every percentile, times by size, marks and Little's law.")
]


def compare(
    scenario: ScenarioFile,
    *,
    protocols: Protocols = "",
    sets: Sets = None,
    seed: Seed = None,
    out: OutHere = Path("out/compare"),
    against: Against = "",
    trials: Trials = None,
    confidence: Confidence = 5.0,
    max_duration: MaxDuration = "",
    metric: Metric = "",
    everything: Everything = False,
    executor: Executor = "threads",
    as_json: Json = False,
    progress: ShownAs = "auto",
    memory: Memory = None,
) -> int:
    """Run a scenario under several protocols, side by side.

    All flows get the protocol's sender law, and all links its router law or none. Cells get a router law that needs
    no capacity (XCP-b for XCP), unless the scenario says what capacity they are told. Queues stay the same, unless
    --protocols names one, as in reno+red. DCTCP needs marks: its drop-tail queues become step queues, and over pi2 or
    dualpi2 its packets are L4S. Jain's index is measured while all flows of a group are active. A table shows the most
    important results; --all shows all. The folder gets compare.pdf and compare.png, and the distributions of packet
    delays in delays.pdf and delays.png. It also gets a folder with the run of each protocol.

    With random flows (`web`), a line for each protocol says whether the 95% intervals of mean completion times are as
    narrow as --confidence asks, over all flows and by size. The intervals are from batch means after warm-up. --all
    shows them beside processor sharing and the lower bound. The folder also gets completion times over size in afct.pdf
    and afct.png, and their distributions in cdf.pdf and cdf.png. With --max-duration, runs that are too short for
    --confidence are repeated, each time twice as long.

    A lab's file runs on this machine's kernel with real applications, --trials times under each protocol in turn. The
    table shows the median of the trials, with the lowest and the highest in brackets. The distribution of all download
    times, as curl reports them, is in times.pdf and times.png. With --against sim, the command runs the lab as its file
    says, and the same scenario in the simulator. Exit code 3: the machine was too busy, and the lab's results are
    invalid.
    """
    show_progress(progress)
    if against:
        return _against(against, scenario, protocols, sets, out, seed, as_json)
    if not protocols:
        raise UsageError("--protocols is missing; write for example --protocols xcp,reno+red")
    names = [name.strip() for name in protocols.split(",") if name.strip()]
    from flowstamp import comparison
    from flowstamp import trials as labs
    from flowstamp.files import check_folder
    from flowstamp.progress import Meter

    if labs.is_lab(scenario):
        return _lab_trials(scenario, names, sets, trials or 3, out, seed, as_json)
    _check(scenario, trials, executor, metric)
    loaded = load(scenario, sets)
    check_folder(out)
    with Meter(scenario.name) as meter:
        found = comparison.compare(
            loaded,
            names,
            seed=seed,
            confidence=confidence,
            max_duration=max_duration,
            memory=memory,
            executor=executor,
            progress=meter,
        )
    compared = _compared(found, metric, out)
    document(compared.as_json()) if as_json else _tell(compared, metric, out, everything=everything)
    return 0


def _check(scenario: Path, trials: int | None, executor: str, metric: str) -> None:
    from flowstamp import executors, paired

    if trials is not None:
        raise UsageError(f"--trials: is for a lab's file, which has a table [path]; {scenario} has none")
    executors.check(executor)
    if metric:
        paired.check(metric)


def _compared(found: Comparison, metric: str, out: Path) -> _Compared:
    from flowstamp import afct, paired

    times = afct.by_size(found)
    written = _write(found, times, out)
    differences = paired.differences(found, metric) if metric else []
    return _Compared(found, times, differences, written)


def _tell(compared: _Compared, metric: str, out: Path, *, everything: bool) -> None:
    """Prints the comparison as text."""
    from flowstamp import afct, comparison, paired

    say(comparison.table(compared.results, compared.times, everything=everything))
    say("")
    for line in comparison.notes(compared.results):
        say(line)
    for row in compared.differences:
        say(paired.text_of(row))
    if metric:
        several = "--metric compares two protocols or more, by flows that arrive at random or by a list\n"
        say("" if compared.differences else several)
    for group in compared.times:
        say(afct.confidence_text(group, compared.results.confidence[group]))
        say("")
    say_written(path for path in compared.written if path.parent == out)
    say(f"wrote {', '.join(str(out / name) for name in compared.results)}")


def _write(results: Comparison, times: dict[str, list[dict[str, Any]]], out: Path) -> list[Path]:
    """Writes a folder for each protocol, and pictures that compare them."""
    from flowstamp import afct, paired, plot
    from flowstamp.delays import delay_figure

    some = next(iter(results.values()))
    written = [path for name, result in results.items() for path in result.write(out / name)]
    written += plot.save(results.plot(), out / "compare")
    if any(group.get("packet_delay_s") for result in results.values() for group in result.groups.values()):
        written += plot.save(delay_figure(results), out / "delays")
    if times:
        written += plot.save(afct.draw(times, list(results), some.summary["name"]), out / "afct")
        written += plot.save(paired.distributions(results), out / "cdf")
    if any(key in some.manifest["scenario"] for key in ("leaf_spine", "fat_tree")) and any(
        one["fct_slowdown"] for result in results.values() for one in result.groups.values()
    ):
        from flowstamp.fct import slowdown_figure

        written += plot.save(slowdown_figure(results), out / "slowdown")
    return written


def _lab_trials(
    file: Path, names: list[str], sets: list[str] | None, trials: int, out: Path, seed: int | None, as_json: bool
) -> int:
    from flowstamp import plot, progress
    from flowstamp import trials as labs
    from flowstamp.files import check_folder, write_whole

    if sets:
        raise UsageError("--set: is not for a lab; write the value into its file")
    labs.check(names)
    check_folder(out)
    rows = labs.run(file, names, out, trials=trials, seed=seed, say=progress.note)
    found = {"lab": str(file), "protocols": rows}
    written = [write_whole(out / "trials.json", as_text(found) + "\n")]
    picture = labs.draw(rows)
    if picture is not None:
        written += plot.save(picture, out / "times")
    if as_json:
        document(found | {"files": [str(path) for path in written]})
    else:
        say(labs.table(rows))
        say("")
        say_written(written)
    return labs.exit_code(rows)


def _against(
    against: str, file: Path, protocols: str, sets: list[str] | None, out: Path, seed: int | None, as_json: bool
) -> int:
    from flowstamp import lab

    if against != "sim":
        raise UsageError(f'--against is "{against}"; it must be sim')
    if protocols or sets:
        raise UsageError("--against sim runs a lab as its file says; leave out --protocols and --set")
    compared = lab.against_simulator(file, out, seed=seed)
    if as_json:
        both = {"lab": compared.lab.results.summary, "sim": compared.simulated.summary}
        document(both | {"invalid": compared.lab.invalid})
    else:
        say(lab.text_of(compared))
        pictures = [out / f"{name}.png" for name in ("compare", "rate") if (out / f"{name}.png").exists()]
        say(f"wrote {', '.join(str(path) for path in [*pictures, out / 'lab', out / 'sim'])}")
    return lab.exit_code(compared)
