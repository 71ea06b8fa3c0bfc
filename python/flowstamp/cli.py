# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The command `flowstamp`: its words, options and exit codes.

Standard output carries what was asked for, and with `--json` one document and nothing else; progress and messages go
to standard error. Exit code 0: done; 1: done, and something that was claimed does not hold; 2: bad input, or results
that could not be written, in one line; 130: interrupted.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from flowstamp import streams
from flowstamp.errors import FlowstampError, ResultsError, ResultsWarning, ScenarioWarning, UsageError, one_line

if TYPE_CHECKING:
    from flowstamp.results import Results
    from flowstamp.scenario import Scenario

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="flowstamp",
    help="Explicit-feedback congestion control: simulate it, compare it, reproduce the papers' figures.",
    add_completion=True,
    rich_markup_mode=None,  # plain help and one-line errors, no boxes
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

SEED_END = 2**63  # where TOML's integers end


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) >= SEED_END:
        raise typer.BadParameter(f'"{text}" is not a whole number from 0 to 2^63 - 1')
    return int(text)


def _folder(text: str | Path) -> Path:
    if not str(text):
        raise typer.BadParameter("it is empty; give the path of a folder, . for this one")
    return Path(text)


def _among(*words: str) -> Callable[[str], list[str]]:
    """What a shell offers where one of a few words is wanted."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def _figure_ids(incomplete: str) -> list[str]:
    from flowstamp.figures.spec import available

    return [word for word in ("list", "all", *available()) if word.startswith(incomplete)]


def _protocols(incomplete: str) -> list[str]:
    """The last of a list: a law, or behind its plus a queue."""
    from flowstamp import _flowstamp

    before, comma, last = incomplete.rpartition(",")
    law, plus, queue = last.partition("+")
    known = _flowstamp.laws()
    words = [f"{law}+{word}" for word in known["queues"]] if plus else known["senders"]
    return [f"{before}{comma}{word}" for word in words if word.startswith(f"{law}{plus}{queue}")]


ScenarioFile = Annotated[
    Path, typer.Argument(metavar="SCENARIO.toml", help="The scenario, a TOML file, or a run's manifest.json.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a value: dumbbell.rate=90Mbps, flows.xcp.count=3."),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", metavar="N", parser=_seed, help="Every random choice follows from it; default the scenario's."
    ),
]
UnusedSeed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", parser=_seed, help="Accepted, and without effect: nothing is random here."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output and nothing else.")]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", parser=_folder, help="Folder for the results.")]
OutHere = Annotated[Path, typer.Option("--out", metavar="DIR", parser=_folder, help="Folder for the results.")]


def _show_progress(how: str) -> None:
    from flowstamp import progress

    progress.show(how)


ShownAs = Annotated[
    str,
    typer.Option(
        "--progress",
        metavar="HOW",
        help="auto: a bar, at a terminal; plain: a line every 10 s; none.",
        autocompletion=_among("auto", "plain", "none"),
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="Refuse runs that may need more, such as 4GB; default three quarters of what the machine has.",
    ),
]
Executor = Annotated[
    str,
    typer.Option(
        "--executor",
        metavar="WHERE",
        help="Where runs go on: threads of this process, processes of this machine, or dask=ADDRESS, a cluster.",
        autocompletion=_among("threads", "processes", "dask="),
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Run also what the folder has already.")]


def run_command(arguments: Sequence[str]) -> int:
    """Runs the command with these arguments; returns its exit code. Whatever goes wrong is one line."""
    try:
        with warnings.catch_warnings():
            for kind in (ScenarioWarning, ResultsWarning):
                warnings.simplefilter("always", kind)
            warnings.showwarning = _warn
            code = app(args=list(arguments), prog_name="flowstamp", standalone_mode=False)
        sys.stdout.flush()
    except FlowstampError as error:
        return _fail(one_line(error))
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except OSError as error:
        streams.output_failed(error)
        return EXIT_BAD_INPUT
    except Exception as error:
        # What typer says of a command line: it has no public base class in all its versions.
        told = getattr(error, "format_message", None)
        if told is None:
            raise
        return _fail(_usage(one_line(told())))
    if code == EXIT_INTERRUPTED:
        return _interrupted()  # typer turns KeyboardInterrupt into this code
    return int(code or 0)


def _usage(message: str) -> str:
    return f"{message.rstrip('.')}; see flowstamp --help" if message else "see flowstamp --help"


def _fail(message: str) -> int:
    streams.tell(f"flowstamp: {message}")
    return EXIT_BAD_INPUT


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    streams.tell(f"flowstamp: warning: {one_line(message)}")


def _interrupted() -> int:
    streams.tell("interrupted")
    return EXIT_INTERRUPTED


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _document(document: object) -> None:
    """The one JSON document on standard output."""
    _say(
        json.dumps(document, indent=2)
    )  # as a whole: in the parts that `json.dump` writes it takes three times as long


def _load(path: Path, sets: Sequence[str]) -> Scenario:
    from dataclasses import replace

    from flowstamp import scenario

    pairs = []
    for text in sets:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f'--set: "{text}" is not KEY=VALUE; write for example dumbbell.rate=90Mbps')
        pairs.append((key.strip(), value.strip()))
    return replace(scenario.load(path), overrides=tuple(pairs))


def _check_out(out: Path | None) -> None:
    """Says before any work, not after it, that results could not be written."""
    if out is not None:
        from flowstamp.files import check_folder

        check_folder(out)


def _version(value: bool) -> None:
    if value:
        from flowstamp import _flowstamp

        _say(f"flowstamp {_flowstamp.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    del version


@app.command()
def run(
    scenario: ScenarioFile,
    sets: Sets = None,
    seed: Seed = None,
    out: Out = None,
    as_json: Json = False,
    trace: Annotated[bool, typer.Option("--trace", help="Record packets to trace.pcapng in the folder --out.")] = False,
    live: Annotated[bool, typer.Option("--live", help="Show rates and queues as the run goes, in a terminal.")] = False,
    json_stream: Annotated[
        bool, typer.Option("--json-stream", help="A line of JSON for each sample as the run goes; at last the summary.")
    ] = False,
    progress: ShownAs = "auto",
    memory: Memory = None,
) -> int:
    """Run a scenario and print its summary.

    With --out, the folder gets manifest.json, summary.json, series.parquet, flows.parquet and delays.parquet.

    With --live a view of links, groups and flows stands on standard error as long as the run goes. Up to 16 flows are
    sampled for it, unless the scenario says what probes.flows is. With --json-stream each instant that probes sample is
    a line on standard output, {"time_s": ..., "link": {NAME: {METRIC: value}}, "group": ..., "flow": ..., "law": ...},
    and the last line is {"summary": ...}.
    """
    _show_progress(progress)
    from flowstamp.progress import Meter

    _check_shown(as_json, live, json_stream)
    if trace and out is None:
        raise UsageError("--trace needs --out DIR: the folder that trace.pcapng is written to")
    loaded = _load(scenario, sets or [])
    if trace and "capture" not in loaded.tree:
        loaded = loaded.capture()
    _check_out(out)
    if live:
        from flowstamp.live import watched

        results = watched(loaded, title=scenario.name, seed=seed, memory=memory)
    elif json_stream:
        results = _streamed(loaded, seed, memory)
    else:
        with Meter(scenario.name) as meter:
            results = loaded.run(seed=seed, memory=memory, progress=meter)
    written = results.write(out) if out is not None else []
    if json_stream:
        _say(f'{{"summary": {results.summary_json()}}}')
    elif as_json:
        # Of many flows it is long: as the engine writes it, and not taken apart and put together again.
        text = results.summary_json(pretty=True)
        if written:
            files = json.dumps([str(path) for path in written], indent=2).replace("\n", "\n  ")
            text = f'{text.removesuffix("}").rstrip()},\n  "files": {files}\n}}'
        _say(text)
    else:
        assumed = _assumed(results.summary.get("assumed", {}))
        _say(_summary(results) + (f"\nassumed: {assumed}" if assumed else ""))
        for path in written:
            _say(f"wrote {path}")
    return 0


def _check_shown(as_json: bool, live: bool, json_stream: bool) -> None:
    if sum((as_json, live, json_stream)) > 1:
        raise UsageError("--json, --live and --json-stream are ways to show a run; give one of them")
    if live and not sys.stderr.isatty():
        raise UsageError("--live: standard error is no terminal; --json-stream gives the same as lines of JSON")


def _streamed(scenario: Scenario, seed: int | None, memory: str | None) -> Results:
    from flowstamp.live import lines

    for line in lines(scenario, seed=seed, memory=memory):
        if not isinstance(line, str):
            return line
        _say(line)
        sys.stdout.flush()
    raise AssertionError("a run ends with its results")


def _assumed(assumed: dict[str, str]) -> str:
    """What the scenario left open; of many links what they have in common."""
    from flowstamp import text

    of: dict[str, list[str]] = {}
    for key, value in assumed.items():
        of.setdefault(key.rpartition(".router.")[2] if ".router." in key else key, []).append(value)
    if len(assumed) <= text.MOST_LINKS:
        return ", ".join(f"{key} = {value}" for key, value in assumed.items())
    told = []
    for key, values in of.items():
        most = max(values, key=values.count)
        others = f" (others of {len(set(values))} values)" if len(set(values)) > 1 else ""
        told.append(f"{key} = {most}" + (f" on {values.count(most)} links{others}" if len(values) > 1 else ""))
    return ", ".join(told)


def _summary(results: Results) -> str:
    """The summary for people."""
    from flowstamp import overview, text

    summary = results.summary
    stations = [
        [
            f"{name}.{node}",
            text.rate(station["rate_bps"]) if station["rate_bps"] else "-",
            f"{100 * station['airtime']:.1f}%",
            f"{100 * station['collisions'] / max(station['attempts'], 1):.1f}%",
            str(station["retries"]),
            str(station["given_up"]),
            text.seconds(station["mean_mac_delay_s"]),
        ]
        for name, cell in results.cells.items()
        for node, station in cell["stations"].items()
    ]
    counts = ("lost", "duplicated", "reordered", "detoured", "marked")
    broken = {name: link for name, link in results.links.items() if "lost" in link}
    impaired = [[name, *(str(link.get(key)) for key in counts)] for name, link in broken.items()]
    title = f"{summary['name'] or 'run'}: {summary['duration_s']:g} s simulated, seed {summary['seed']}"
    speed = (
        f"{summary['packet_hops']:,} packet-hops in {results.took['wall_s']:.2f} s"
        f" ({results.took['packet_hops_per_s'] / 1e6:.1f} million per second)"
    )
    header_stations = ["station", "data rate", "airtime", "collided", "retries", "given up", "time in MAC"]
    tables = [text.table(*overview.links(results)), text.table(*overview.groups(results))]
    if stations:
        tables.insert(1, text.table(header_stations, stations))
    if impaired:
        tables.insert(1, text.table(["impaired link", *counts], impaired))
    return "\n\n".join([title, *tables, speed])


@app.command()
def compare(
    scenario: ScenarioFile,
    *,
    protocols: Annotated[
        str,
        typer.Option(
            "--protocols",
            metavar="A,B+QUEUE,...",
            help="Laws, each with a queue if it is to change.",
            autocompletion=_protocols,
        ),
    ] = "",
    sets: Sets = None,
    seed: Seed = None,
    out: OutHere = Path("out/compare"),
    against: Annotated[
        str,
        typer.Option(
            "--against",
            metavar="sim",
            help="Of a lab's file: the lab beside the simulator.",
            autocompletion=_among("sim"),
        ),
    ] = "",
    trials: Annotated[
        int | None,
        typer.Option("--trials", metavar="N", min=1, help="Of a lab's file: runs of each protocol; default 3."),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            "--confidence", metavar="PERCENT", min=0.01, max=100.0, help="Wanted half width of 95% intervals of times."
        ),
    ] = 5.0,
    max_duration: Annotated[
        str,
        typer.Option(
            "--max-duration", metavar="TIME", help="Double the duration, up to this, until --confidence is reached."
        ),
    ] = "",
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Say of each two protocols which is better, flow by flow: mean_fct, p50_fct, p95_fct or p99_fct.",
            autocompletion=_among("mean_fct", "p50_fct", "p95_fct", "p99_fct"),
        ),
    ] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Every percentile, times by size, marks and Little's law.")
    ] = False,
    executor: Executor = "threads",
    as_json: Json = False,
    progress: ShownAs = "auto",
    memory: Memory = None,
) -> int:
    """Run a scenario under several protocols and show them side by side.

    All flows get the protocol's law and the links its router law, or none; cells get one that needs no capacity, as
    XCP has XCP-b, unless they say what it is told. Queues stay, unless one is named as in reno+red. One table has
    what is asked first, the rest with --all. The folder gets compare.pdf and compare.png, delays.pdf and delays.png
    (distributions of packet delays), and a run's folder for each protocol. With random flows (`web`) it is said of
    each protocol whether the 95% intervals (batch means after warm-up) of mean completion times, over all and by
    size, are as narrow as --confidence asks; with --all the table has them, beside processor sharing and the lower
    bound; and the folder gets afct.pdf and afct.png, times over size, and cdf.pdf and cdf.png, their distributions.
    --metric compares the same flows under each two protocols. With --max-duration, runs that are too short for
    --confidence are done again, each time twice as long.

    A lab's file runs on this machine's kernel, with real applications: under each protocol in turn, --trials times.
    The table has medians of the trials, and in brackets the lowest and the highest; times.pdf and times.png have the
    distribution of all downloads' times, as curl tells them. With --against sim a lab runs as its file says, and the
    simulator runs the same. Exit code 3 if the machine was too busy for a lab to say anything.
    """
    _show_progress(progress)
    if against:
        return _against(against, scenario, protocols, sets or [], out, seed, as_json)
    if not protocols:
        raise UsageError("--protocols is missing; write for example --protocols xcp,reno+red")
    from flowstamp import trials as labs

    if labs.is_lab(scenario):
        return _lab_trials(scenario, protocols, sets or [], trials or 3, out, seed, as_json)
    _no_trials(trials, scenario)
    from flowstamp import afct, paired
    from flowstamp import compare as comparison
    from flowstamp.executors import check
    from flowstamp.files import check_folder
    from flowstamp.progress import Meter
    from flowstamp.sweeps import run_many

    check(executor)
    if metric:
        paired.check(metric)
    loaded = _load(scenario, sets or [])
    names = [name.strip() for name in protocols.split(",") if name.strip()]
    scenarios = comparison.variants(loaded, names, memory=memory)
    check_folder(out)
    longest = comparison.longest(loaded, max_duration)
    while True:
        with Meter(scenario.name) as meter:
            runs = run_many(list(scenarios.values()), seed=seed, memory=memory, executor=executor, progress=meter)
            results = dict(zip(names, runs, strict=True))
        known = afct.confidence(results, confidence / 100)
        duration_s = next(iter(results.values())).summary["duration_s"]
        if duration_s >= longest or all(row["reached"] for group in known.values() for row in group.values()):
            break
        duration = f"{min(2 * duration_s, longest)!r}s"
        scenarios = {name: one.set("duration", duration) for name, one in scenarios.items()}
    times = afct.by_size(results)
    written = _pictures(results, times, out)
    differences = paired.differences(results, metric) if metric else []
    if as_json:
        _document(
            {
                "protocols": {name: result.summary for name, result in results.items()},
                "afct": times,
                "confidence": known,
                "paired": differences,
                "files": [str(path) for path in written],
            }
        )
        return 0
    _say(comparison.table(results, times, everything=everything))
    _say("")
    for row in differences:
        _say(paired.text_of(row))
    if metric:
        _say(
            ""
            if differences
            else "--metric compares two protocols or more, by flows that arrive at random or by a list\n"
        )
    for group in times:
        _say(afct.confidence_text(group, known[group]))
        _say("")
    for path in written:
        if path.parent == out:
            _say(f"wrote {path}")
    _say(f"wrote {', '.join(str(out / name) for name in names)}")
    return 0


def _pictures(results: dict[str, Results], times: dict[str, list[dict[str, Any]]], out: Path) -> list[Path]:
    """A folder for each protocol, and the pictures of all of them."""
    from flowstamp import afct, paired, plot
    from flowstamp.delays import delay_figure

    written = [path for name, result in results.items() for path in result.write(out / name)]
    written += plot.save(plot.overview(results), out / "compare")
    if any(group.get("packet_delay_s") for result in results.values() for group in result.groups.values()):
        written += plot.save(delay_figure(results), out / "delays")
    if times:
        written += plot.save(afct.draw(times, list(results)), out / "afct")
        written += plot.save(paired.distributions(results), out / "cdf")
    some = next(iter(results.values()))
    if any(key in some.manifest["scenario"] for key in ("leaf_spine", "fat_tree")) and any(
        one["fct_slowdown"] for result in results.values() for one in result.groups.values()
    ):
        from flowstamp.fct import slowdown_figure

        written += plot.save(slowdown_figure(results), out / "slowdown")
    return written


def _no_trials(trials: int | None, file: Path) -> None:
    if trials is not None:
        raise UsageError(f"--trials: is for a lab's file, which has a table [path]; {file} has none")


def _lab_trials(
    file: Path, protocols: str, sets: Sequence[str], trials: int, out: Path, seed: int | None, as_json: bool
) -> int:
    from flowstamp import plot, progress
    from flowstamp import trials as labs
    from flowstamp.files import check_folder, write_whole

    if sets:
        raise UsageError("--set: is not for a lab; write the value into its file")
    names = [name.strip() for name in protocols.split(",") if name.strip()]
    labs.check(names)
    check_folder(out)
    rows = labs.run(file, names, out, trials=trials, seed=seed, say=progress.note)
    document = {"lab": str(file), "protocols": rows}
    written = [write_whole(out / "trials.json", json.dumps(document, indent=2) + "\n")]
    picture = labs.draw(rows)
    if picture is not None:
        written += plot.save(picture, out / "times")
    if as_json:
        _document(document | {"files": [str(path) for path in written]})
    else:
        _say(labs.table(rows))
        _say("")
        for path in written:
            _say(f"wrote {path}")
    return labs.exit_code(rows)


def _against(
    against: str, file: Path, protocols: str, sets: Sequence[str], out: Path, seed: int | None, as_json: bool
) -> int:
    from flowstamp import lab

    if against != "sim":
        raise UsageError(f'--against is "{against}"; it must be sim')
    if protocols or sets:
        raise UsageError("--against sim runs a lab as its file says; leave out --protocols and --set")
    compared = lab.against_simulator(file, out, seed=seed)
    if as_json:
        _document(
            {
                "lab": compared.lab.results.summary,
                "sim": compared.simulated.summary,
                "invalid": compared.lab.invalid,
            }
        )
    else:
        _say(lab.text_of(compared))
        pictures = [out / f"{name}.png" for name in ("compare", "rate") if (out / f"{name}.png").exists()]
        _say(f"wrote {', '.join(str(path) for path in [*pictures, out / 'lab', out / 'sim'])}")
    return lab.exit_code(compared)


@app.command()
def sweep(
    scenario: ScenarioFile,
    *,
    grid: Annotated[
        list[str], typer.Option("--grid", metavar="KEY=V1,V2,...", help="Values of a key; every combination is run.")
    ],
    sets: Sets = None,
    seed: Seed = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Run each point with so many seeds.")] = 1,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Default: all cores.")] = None,
    executor: Executor = "threads",
    out: Out = None,
    tables: Annotated[bool, typer.Option("--tables", help="Keep each run's series and flows, too.")] = False,
    fresh: Fresh = False,
    as_json: Json = False,
    progress: ShownAs = "auto",
    memory: Memory = None,
) -> int:
    """Run a scenario over a grid of values on all cores, or on many machines; print a tidy table.

    With --out, the folder gets sweep.csv, a row for each run and metric, and as each run ends its file in points:
    called again, the sweep runs what is missing there. A file is of a scenario as it is resolved, with what is in the
    files that it names, of a seed, and of a build of this program. With --executor dask=ADDRESS runs go to the workers
    of that Dask scheduler, which need the same build; what a worker had that was killed is done by the others.
    """
    _show_progress(progress)
    from flowstamp import overview, text
    from flowstamp.executors import check
    from flowstamp.files import write_whole
    from flowstamp.progress import Meter
    from flowstamp.sweeps import sweep as run_sweep

    loaded = _load(scenario, sets or [])
    axes = dict(_axis(text) for text in grid)
    if len(axes) < len(grid):
        raise UsageError("--grid: a key is there twice; give all its values in one: dumbbell.rate=20Mbps,80Mbps")
    check(executor)
    _check_out(out)
    if (tables or fresh) and out is None:
        raise UsageError(f"{'--tables' if tables else '--fresh'} needs --out DIR: the folder that points are kept in")
    if threads is not None and executor.startswith("dask"):
        raise UsageError(
            "--threads: is not for --executor dask: how many runs a worker takes at a time, its --nthreads says"
        )
    if seed is not None and seeds == 1:
        loaded = loaded.set("seed", seed)
    first = seed if seed is not None else 1
    several = range(first, first + seeds) if seeds > 1 else ()
    with Meter(scenario.name) as meter:
        swept = run_sweep(
            loaded,
            axes,
            seeds=several,
            threads=threads,
            memory=memory,
            executor=executor,
            keep=out / "points" if out is not None else None,
            tables=tables,
            fresh=fresh,
            progress=meter,
        )
    if swept.kept:
        again = "--fresh runs all of them again"
        streams.tell(f"{swept.kept} of {len(swept.points)} points are in {out}/points from before; {again}")
    written = [write_whole(out / "sweep.csv", swept.csv())] if out is not None else []
    if as_json:
        runs = [
            {"point": point, "summary": result.summary}
            for point, result in zip(swept.points, swept.results, strict=True)
        ]
        _document({"keys": swept.keys, "runs": runs, "kept": swept.kept, "files": [str(path) for path in written]})
    else:
        _say(text.table(*overview.points(swept)))
        for path in written:
            _say(f"wrote {path}")
    return 0


def _axis(text: str) -> tuple[str, list[Any]]:
    """`KEY=V1,V2` of --grid; commas within brackets or quotes belong to a value. A value is TOML, or else a string."""
    import tomllib

    key, equals, values = text.partition("=")
    if not equals or not key.strip() or not values.strip():
        raise UsageError(f'--grid: "{text}" is not KEY=V1,V2,...; write for example dumbbell.rate=20Mbps,80Mbps')
    parts, depth, quote = [""], 0, ""
    for char in values:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        else:
            depth += (char in "[{") - (char in "]}")
        if char == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += char
    parsed: list[Any] = []
    for part in (part.strip() for part in parts):
        if not part:
            raise UsageError(f'--grid: "{text}" has an empty value')
        try:
            table = tomllib.loads(f"v = {part}")
            parsed.append(table["v"] if len(table) == 1 else part)
        except (tomllib.TOMLDecodeError, RecursionError):
            parsed.append(part)
    return key.strip(), parsed


@app.command()
def figure(
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="[list|ID...|all]",
            help="Figures by their ids, such as X10 or 'R4.*'; list alone names all.",
            autocompletion=_figure_ids,
        ),
    ],
    fast: Annotated[bool, typer.Option("--fast", help="The shorter version of each scenario.")] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Run seeds 1 to 5 and write what came out to figures/expected.json.")
    ] = False,
    seed: Seed = None,
    executor: Executor = "threads",
    out: OutHere = Path("out/figures"),
    fresh: Fresh = False,
    as_json: Json = False,
    progress: ShownAs = "auto",
    memory: Memory = None,
) -> int:
    """Reproduce published figures and check what the papers claim of them.

    A figure that this program has run, and of which the folder has all that it wrote, is not run again.

    Exit code 1 if a claim fails, or if its status or a differing value is no longer as figures/expected.json has it.
    With --accept each figure's part of that file is written anew as it ends; called again, it goes on where it was.
    """
    _show_progress(progress)
    from flowstamp.figures import cli_figure

    if ids[:1] != ["list"]:
        _check_out(out)
    return int(cli_figure(ids, fast, as_json, out, seed, accept=accept, memory=memory, executor=executor, fresh=fresh))


@app.command()
def demo(
    seed: Seed = None,
    out: OutHere = Path("out/demo"),
    as_json: Json = False,
) -> int:
    """See in a minute what explicit feedback does."""
    from flowstamp.demo import run as run_demo

    _check_out(out)
    return int(run_demo(out, as_json, seed))


@app.command()
def examples(
    folder: Annotated[Path, typer.Argument(metavar="DIR", parser=_folder, help="A folder that is new or empty.")],
    seed: UnusedSeed = None,
    as_json: Json = False,
) -> int:
    """Write the example scenarios, scripts and labs into a folder of yours."""
    from flowstamp import examples as shipped

    del seed
    written = shipped.write(folder)
    if as_json:
        _document({"files": [str(path) for path in written]})
    else:
        _say(f"wrote {len(written)} files to {folder}; {shipped.next_commands()}")
    return 0


@app.command()
def stability(
    what: Annotated[
        str, typer.Argument(metavar="LAW|SCENARIO.toml", help="xcp, rcp, or a scenario whose routers have them.")
    ],
    *,
    alpha: Annotated[
        float | None,
        typer.Option("--alpha", metavar="NUMBER", help="Gain on spare capacity, above 0; default the law's."),
    ] = None,
    beta: Annotated[
        float | None, typer.Option("--beta", metavar="NUMBER", help="Gain on the queue, above 0; default the law's.")
    ] = None,
    rtt: Annotated[
        str | None,
        typer.Option(
            "--rtt", metavar="TIME,...", help="RTT of all flows, or of several groups; default 100ms or the scenario's."
        ),
    ] = None,
    flows: Annotated[
        str | None,
        typer.Option("--flows", metavar="N,...", help="How many flows have each RTT; default one each."),
    ] = None,
    pictures: Annotated[
        bool, typer.Option("--pictures", help="Draw settling times over both gains, and a phase portrait, too.")
    ] = False,
    by_simulation: Annotated[
        bool,
        typer.Option("--check-by-simulation", help="Run packets over a grid of gains, and tell where they oscillate."),
    ] = False,
    points: Annotated[
        int | None, typer.Option("--points", min=2, help="Of that grid along each axis; default 12.")
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="Runs at each of its points; default 1.")] = None,
    sets: Sets = None,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", parser=_seed, help="Of these runs, the first; default 1.")
    ] = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Default: all cores.")] = None,
    executor: Executor = "threads",
    out: OutHere = Path("out/stability"),
    as_json: Json = False,
    progress: ShownAs = "auto",
    memory: Memory = None,
) -> int:
    """Tell whether a law is stable with its gains, its margins, and after how many round trips it settles.

    Draws the gains on their region into the folder. Exit code 0 if it is stable, 1 if not. With --check-by-simulation
    packets are run at each pair of a grid of gains, on a dumbbell with the RTTs given; the picture shows where they
    oscillate, and a line says at how many points the model agrees. Of a scenario's links that flows pass one after the
    other, a last line tells whether all come to rest together, and when.
    """
    _show_progress(progress)
    from flowstamp import stability_command as command

    check: command.Packets | None = None
    if by_simulation:
        check = command.Packets(points or 12, seeds or 1, 1 if seed is None else seed, threads, memory, executor)
    else:
        unused = {"--points": points, "--seeds": seeds, "--threads": threads, "--memory": memory}
        unused["--executor"] = None if executor == "threads" else executor
        for name, given in unused.items():
            if given is not None:
                raise UsageError(f"{name} is for --check-by-simulation")
    found, together = command.asked(what, alpha, beta, rtt, flows, _load, sets or [])
    _check_out(out)
    document, lines = command.tell(found, together, out, pictures, check)
    if as_json:
        _document(document)
    else:
        for line in lines:
            _say(line)
    return 0 if document["stable"] else 1


@app.command()
def doctor(seed: UnusedSeed = None, out: Out = None, as_json: Json = False) -> int:
    """Tell what is installed. With --out, the folder gets doctor.json."""
    from flowstamp import doctor as checks
    from flowstamp.files import write_whole

    del seed
    found = checks.report()
    text = json.dumps(found, indent=2)
    if out is not None:
        write_whole(out / "doctor.json", text + "\n")
    _say(text if as_json else "\n".join(checks.lines(found)))
    missing = checks.problems(found)
    if missing:
        raise ResultsError("; ".join(missing))
    return 0


@app.command()
def web(
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port on 127.0.0.1; 0 for any that is free.")
    ] = 8043,
    seed: UnusedSeed = None,
    out: Out = None,
    as_json: Json = False,
) -> int:
    """Serve the browser lab to this machine until Ctrl-C. With --out, write its one page, index.html, instead."""
    from flowstamp import web as lab
    from flowstamp.files import write_whole

    del seed
    if out is not None:
        written = write_whole(out / "index.html", lab.page())
        _say(json.dumps({"files": [str(written)]}, indent=2) if as_json else f"wrote {written}")
        return 0
    with lab.Server(port) as server:
        _say(json.dumps({"url": server.url}, indent=2) if as_json else f"{server.url} has the lab; Ctrl-C ends it")
        sys.stdout.flush()
        server.serve_forever()
    return 0


_PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


@app.command(context_settings=_PASSED_ON)
def host(context: typer.Context) -> None:
    """TCP of this host obeys stamps: enable, disable, status. Linux; see flowstamp host --help."""
    _linux("host", context)


@app.command(context_settings=_PASSED_ON)
def router(context: typer.Context) -> None:
    """An interface stamps what it sends: attach, detach, status, police, share. Linux; see flowstamp router --help."""
    _linux("router", context)


@app.command(context_settings=_PASSED_ON)
def lab(context: typer.Context) -> None:
    """Real applications over an emulated path: run, clean. Linux; see flowstamp lab --help."""
    _linux("lab", context)


def _linux(command: str, context: typer.Context) -> NoReturn:
    from flowstamp import linux

    linux.call(command, context.args)


@app.command()
def schema(seed: UnusedSeed = None, out: Out = None, as_json: Json = False) -> int:
    """Print the JSON Schema of scenarios. With --out, the folder gets scenario.schema.json."""
    from flowstamp import scenario
    from flowstamp.files import write_whole

    del seed, as_json  # it is a JSON document anyway
    text = json.dumps(scenario.schema(), indent=2)
    if out is not None:
        write_whole(out / "scenario.schema.json", text + "\n")
    _say(text)
    return 0


@app.command()
def dissector(seed: UnusedSeed = None, out: Out = None, as_json: Json = False) -> int:
    """Print the Lua plug-in that shows stamps in Wireshark and tshark. With --out, the folder gets flowstamp.lua."""
    from flowstamp._flowstamp import dissector_lua
    from flowstamp.files import write_whole

    del seed
    text = dissector_lua()
    if out is not None:
        write_whole(out / "flowstamp.lua", text)
    _say(json.dumps({"flowstamp.lua": text}) if as_json else text)
    return 0
