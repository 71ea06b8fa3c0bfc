# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp run`: runs a scenario and prints its summary."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from flowstamp.cli.common import as_text, check_out, load, say, say_written, show_progress
from flowstamp.cli.options import Executor, Json, Memory, Out, ScenarioFile, Seed, Sets, ShownAs
from flowstamp.errors import UsageError

if TYPE_CHECKING:
    from flowstamp.results import Results
    from flowstamp.scenario import Scenario

MOST_ASSUMED = 3
"""Maximum number of assumed keys in the summary; summary.json has all."""

PAPERS = {"vcp.t_rho": "200ms", "vcp-exact.t_rho": "200ms", "hpcc.base_rtt": "13us"}
"""The papers' values of keys that we derive from the paths instead."""


def run(
    scenario: ScenarioFile,
    *,
    sets: Sets = None,
    seed: Seed = None,
    out: Out = None,
    as_json: Json = False,
    trace: Annotated[bool, typer.Option("--trace", help="Record packets to trace.pcapng in the folder --out.")] = False,
    live: Annotated[bool, typer.Option("--live", help="Show rates and queues in the terminal during the run.")] = False,
    json_stream: Annotated[
        bool, typer.Option("--json-stream", help="Print a line of JSON for each sample, and at the end the summary.")
    ] = False,
    by_links: Annotated[
        bool, typer.Option("--by-links", help="Run each link alone and estimate flows' times: for very large networks.")
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads",
            metavar="N",
            min=1,
            help="Divide the network among N threads; same results. Default: 1, with --by-links one for each core.",
        ),
    ] = None,
    executor: Executor = "threads",
    progress: ShownAs = "auto",
    memory: Memory = None,
) -> int:
    """Run a scenario and print its summary.

    With --out, the folder gets manifest.json, summary.json, series.parquet, flows.parquet and delays.parquet.

    --live shows links, groups and flows on standard error during the run. It samples up to 16 flows, unless the
    scenario sets probes.flows.

    --json-stream prints a line on standard output for each instant at which probes sample:
    {"time_s": ..., "link": {NAME: {METRIC: value}}, "group": ..., "flow": ..., "law": ...}.
    The last line is {"summary": ...}.

    --by-links runs each link alone, with the flows that cross it, and combines the delays of each flow. Links
    run on threads, or with --executor in processes or on a cluster.

    --threads N runs parts of the network side by side, with the same results to the bit. Every thread has a copy of the
    network in memory. Collectives, cells, captures and priority flow control need one thread. In networks with fewer
    than 256 router links, flows that arrive during the run need one thread, too.
    """
    show_progress(progress)
    from flowstamp.progress import Meter

    _check_shown(as_json, live, json_stream)
    _check_parts(by_links, threads, executor, live or json_stream or trace)
    if trace and out is None:
        raise UsageError("--trace needs --out DIR: the folder that trace.pcapng is written to")
    loaded = load(scenario, sets)
    if trace and "capture" not in loaded.tree:
        loaded = loaded.capture()
    check_out(out)
    if live:
        from flowstamp.live import watched

        results = watched(loaded, title=scenario.name, seed=seed, memory=memory)
    elif json_stream:
        results = _streamed(loaded, seed, memory)
    else:
        with Meter(scenario.name) as meter:
            results = loaded.run(
                seed=seed, memory=memory, progress=meter, by_links=by_links, threads=threads, executor=executor
            )
    written = results.write(out) if out is not None else []
    if json_stream:
        say(f'{{"summary": {results.summary_json()}}}')
    elif as_json:
        # With many flows the summary is long. The engine's text is used as it is, without parsing it.
        text = results.summary_json(pretty=True)
        if written:
            files = as_text([str(path) for path in written]).replace("\n", "\n  ")
            text = f'{text.removesuffix("}").rstrip()},\n  "files": {files}\n}}'
        say(text)
    else:
        say(_summary(results))
        if by_links:
            say("by links: flows' times are estimates, and queues are those of each link alone")
        if assumed := _assumed(results.summary.get("assumed", {})):
            say(f"assumed: {assumed}")
        if any(results.groups[group]["jain_index"] is not None for group in _staggered(results)):
            say("Jain: over each flow's own time, since not all start together (see flowstamp compare)")
        say_written(written)
    return 0


def _check_shown(as_json: bool, live: bool, json_stream: bool) -> None:
    if sum((as_json, live, json_stream)) > 1:
        raise UsageError("--json, --live and --json-stream are ways to show a run; give one of them")
    if live and not sys.stderr.isatty():
        raise UsageError("--live: standard error is not a terminal; --json-stream prints the same as JSON")


def _check_parts(by_links: bool, threads: int | None, executor: str, watched: bool) -> None:
    if executor != "threads" and not by_links:
        raise UsageError(f"--executor {executor} works only with --by-links; add --by-links, or leave --executor out")
    if by_links and watched:
        raise UsageError("--by-links has no queues or rates over time; leave out --live, --json-stream and --trace")
    if threads is not None and watched:
        raise UsageError("--threads: --live, --json-stream and --trace need a run on one thread; leave --threads out")


def _streamed(scenario: Scenario, seed: int | None, memory: str | None) -> Results:
    from flowstamp.live import lines

    for line in lines(scenario, seed=seed, memory=memory):
        if not isinstance(line, str):
            return line
        say(line)
        sys.stdout.flush()
    raise AssertionError("a run ends with its results")


def _assumed(assumed: dict[str, str]) -> str:
    """Formats the defaults that the engine assumed as one short line, with the commonest value over all links."""
    from flowstamp import text

    of: dict[str, list[str]] = {}
    for key, value in assumed.items():
        _, laws, name = key.partition(".router.")
        of.setdefault(f"{laws.strip('.')} {name}" if laws else key, []).append(text.rounded(value))
    told = []
    for key, values in of.items():
        papers = PAPERS.get(key, "")
        most = max(values, key=values.count)
        where = f" on {'most of ' if len(set(values)) > 1 else ''}{len(values)} links" if len(values) > 1 else ""
        other = f" (the paper: {papers})" if papers and most != papers else ""
        told.append(f"{key} = {most}{where}{other}")
    more = f" and {len(told) - MOST_ASSUMED} more" if len(told) > MOST_ASSUMED else ""
    return ", ".join(told[:MOST_ASSUMED]) + more


def _staggered(results: Results) -> list[str]:
    """Returns the groups whose flows start at different times: their Jain index is over each flow's own time."""
    groups = results.manifest.get("scenario", {}).get("flows", ())
    return [one["name"] for one in groups if isinstance(one.get("start"), list) or one.get("every", "0s") != "0s"]


def _summary(results: Results) -> str:
    """Formats the summary as text."""
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
    more = (overview.slowdowns, overview.operations, overview.videos, overview.advice)
    tables += [text.table(*table) for table in (of(results) for of in more) if table[1]]
    if (pauses := overview.pauses(results))[1]:
        tables.insert(1, text.table(*pauses))
    if stations:
        tables.insert(1, text.table(header_stations, stations))
    if impaired:
        tables.insert(1, text.table(["impaired link", *counts], impaired))
    return "\n\n".join([title, *tables, speed])
