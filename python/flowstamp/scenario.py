# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Scenarios as Python objects: the same tables as in a TOML file, checked by the same code.

Quantities are strings with units ("45Mbps", "40ms", "1BDP", "10MB"), as in a file. Keyword arguments have the names of
the file's keys (`flowstamp.keys`). Every method that changes a scenario returns a new one. Unlike in a file, a link
without a router law gets the law that the first flow group with such a need requires.
"""

from __future__ import annotations

import inspect
import json
import os
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import wraps
from inspect import Parameter
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeAlias, TypeVar, Unpack

from flowstamp import _flowstamp, keys, machine, text
from flowstamp.errors import ScenarioError, ScenarioWarning, UsageError, one_line, translated
from flowstamp.keys import LinkRate, Spec
from flowstamp.names import nearest

if TYPE_CHECKING:
    from flowstamp.results import Results
    from flowstamp.simulation import Simulation

Progress: TypeAlias = Callable[[int, int, float, float, int], None]
"""A callback for about ten calls per second. Arguments: run, runs, simulated seconds, duration in seconds, events."""

_TOPOLOGIES = ("dumbbell", "parking_lot", "leaf_spine", "fat_tree", "graph")

MOST_BYTES = 1 << 26
"""Maximum size of a scenario file in bytes."""

MOST_NESTED = 64
"""Maximum nesting depth of tables and lists in a scenario; valid keys need a fraction of it."""
_TOO_DEEP = (
    f"is nested too deep; tables and lists in each other go to {MOST_NESTED}, and no key of a scenario is near that"
)


def laws() -> dict[str, list[str]]:
    """Returns the law names that a scenario may use, by kind: `senders`, `routers`, `queues` and `schedulers`."""
    return _flowstamp.laws()


def schema() -> dict[str, Any]:
    """Returns the JSON Schema of a scenario."""
    document: dict[str, Any] = json.loads(_flowstamp.scenario_schema())
    return document


P = ParamSpec("P")
R = TypeVar("R")


def _spelled_out(kind: type) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Adds a table's keys to a function's signature and docstring. Other keyword arguments raise `TypeError`."""
    required: frozenset[str] = kind.__required_keys__  # type: ignore[attr-defined]
    told, named = "", []
    for key in sorted(kind.__annotations__, key=lambda key: key not in required):
        annotated = kind.__annotations__[key]
        told += f"\n    {key}: {annotated.__metadata__[0]}"
        default, one = Parameter.empty if key in required else None, annotated.__origin__
        one = one.__args__[0] if key in required else one
        named.append(Parameter(key, Parameter.KEYWORD_ONLY, default=default, annotation=one))

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        *own, _ = (signature := inspect.signature(function)).parameters.values()
        signature = signature.replace(parameters=[*own, *named])

        @wraps(function)
        def checked(*args: P.args, **given: P.kwargs) -> R:
            known = [name for name in signature.parameters if name != "self"]
            unknown = [key for key in given if key not in known]
            if unknown:
                raise TypeError(f"{function.__name__}: {nearest(unknown[0], known, 'is not an argument')}")
            signature.bind(*args, **given)
            return function(*args, **given)

        doc = inspect.getdoc(function) or ""
        checked.__doc__ = doc + ("" if "\nArgs:" in doc else "\n\nArgs:") + told
        checked.__signature__ = signature  # type: ignore[attr-defined]
        return checked

    return decorate


@dataclass(frozen=True)
class Scenario:
    """A network, its flows, and what to record.

    `dumbbell`, `parking_lot`, `leaf_spine`, `fat_tree`, `graph`, `load` and `loads` return one; `run` runs it.
    """

    tree: Mapping[str, Any]
    """The scenario's tables as in the file format. Do not change them in place."""
    overrides: tuple[tuple[str, str], ...] = ()
    """Dotted keys and TOML values from `set`, applied in order after everything else."""
    source: str = "scenario"
    """Name in messages, such as the file's path."""
    base_dir: str = "."
    """Folder for relative paths in the scenario."""
    routers: bool = False
    """Whether links without a router law get the law that the flows need. False for scenarios from a file."""

    def __post_init__(self) -> None:
        """Raises `ScenarioError` for a file's name or text, which `load` and `loads` read."""
        if not isinstance(self.tree, Mapping):
            file = (
                f'write flowstamp.load("{self.tree}") to read' if _names_a_file(self.tree) else "flowstamp.load reads"
            )
            raise ScenarioError(f"Scenario takes tables, not {type(self.tree).__name__}; {file} a file")

    @_spelled_out(keys.FlowGroup)
    def flows(self, law: Spec, count: int | None = None, **given: Unpack[keys.FlowGroup]) -> Self:
        """Adds a group of flows. The default name is that of the law.

        Some laws, such as XCP, need a router law on their links. In a scenario from `dumbbell` or another topology
        function, links without a router law get it. A scenario from a file must name its router laws.

        Args:
            law: the sender's law, such as "xcp" or {"law": "xcp", "price": 5.0}.
            count: number of flows, default 1; for web flows and lists, number of host pairs, default 10.
        """
        groups = list(self.tree.get("flows", ()))
        taken = {group.get("name") for group in groups}
        base = _name_of(law, "law")
        numbered = (base if n == 1 else f"{base}-{n}" for n in range(1, len(groups) + 2))
        name = given.pop("name", None) or next(candidate for candidate in numbered if candidate not in taken)
        return self._with(flows=[*groups, _table(name=name, law=law, count=count, **given)])

    @_spelled_out(keys.Link)
    def link(self, from_: str, to: str, **given: Unpack[keys.Link]) -> Self:
        """Adds a link to a graph, in both directions unless `duplex` is false.

        `delay` is the one-way propagation delay. Links with the same `medium` transmit one at a time, in turn.
        `impairments` affect packets after they cross the link: `loss`, `jitter` and others (docs/impairments.md).
        If links have a `weight`, packets take the path of least weight instead of least delay.
        Raises `ScenarioError` if the topology is not a graph.
        """
        if "graph" not in self.tree:
            raise ScenarioError(f"{self.source}: only a graph has links of its own; start with flowstamp.graph()")
        old = self.tree["graph"]
        new = _table(from_=from_, to=to, **given)
        return self._with(graph={**old, "links": [*old.get("links", ()), new]})

    @_spelled_out(keys.Outage)
    def outage(self, link: str, from_: str, until: str | None = None, **given: Unpack[keys.Outage]) -> Self:
        """Adds an outage: from `from_` to `until`, a link carries no packets.

        The reverse direction fails too unless `both_ways` is false. Without `until` the link stays down. `on_failure`
        decides about the link's packets: "lose" (default) drops them, "hold" keeps them.
        """
        new = _table(link=link, from_=from_, until=until, **given)
        return self._with(outages=[*self.tree.get("outages", ()), new])

    @_spelled_out(keys.Routing)
    def routing(self, **given: Unpack[keys.Routing]) -> Self:
        """Sets whether routes follow outages (default: yes) and after which delay. Other keys keep their values."""
        return self._with(routing={**self.tree.get("routing", {}), **_table(**given)})

    @_spelled_out(keys.Probes)
    def probe(self, **given: Unpack[keys.Probes]) -> Self:
        """Sets which series are sampled, and how often. Other keys keep their values."""
        return self._with(probes={**self.tree.get("probes", {}), **_table(**given)})

    def capture(self, links: Sequence[str] | None = None, *, packets: int | None = None) -> Self:
        """Captures packets that leave `links` (default: all), frames of radio cells included, up to `packets`."""
        return self._with(capture=_table(links=links, packets=packets))

    @_spelled_out(keys.Scenario)
    def configure(self, **given: Unpack[keys.Scenario]) -> Self:
        """Sets keys of the whole run: name, times, seed, packet and header sizes."""
        return self._with(**_table(**given))

    def set(self, key: str, value: object) -> Self:
        """Overrides one value: `set("dumbbell.rate", "90Mbps")`, `set("flows.xcp.count", 3)`.

        Overrides apply in order after everything else. A key addresses a flow group by name or number, and several
        groups by a pattern: `set("flows.up*.law", "cubic")`. The key is checked when the scenario runs.
        """
        if _is_deep(value):
            raise ScenarioError(f"{key}: {_TOO_DEEP}")
        return replace(self, overrides=(*self.overrides, (key, toml(value, key))))

    def run(
        self,
        duration: str | None = None,
        *,
        warmup: str | None = None,
        seed: int | None = None,
        memory: str | None = None,
        progress: Progress | None = None,
        by_links: bool = False,
        threads: int | None = None,
        executor: str = "threads",
    ) -> Results:
        """Runs the scenario. Raises `ScenarioError` if it is invalid or may need more than `memory`.

        Args:
            duration: simulated time, such as "10s"; default from the scenario.
            warmup: start of the statistics, such as "2s"; default from the scenario.
            seed: source of every random choice, 0 to 2**63 - 1; default from the scenario.
            memory: limit for the run's estimated memory, such as "4GB". Default: three quarters of what is available
                to this process (`flowstamp.machine`).
            progress: callback for about ten calls per second. An exception that it raises stops the run.
            by_links: whether each link runs alone (docs/how-to/run-a-very-large-network.md). Flows' times are then
                estimates, and there are no series.
            threads: number of threads that share the run. Results are the same to the bit. Each thread has a part of
                the network, and a copy of all of it in memory. Default: 1, or one for each core with `by_links`.
            executor: where links run with `by_links`: "threads" of this process, "processes" of this machine, of which
                there are `threads`, or "dask=ADDRESS" for a cluster. Results are the same to the bit.
        """
        from flowstamp import apart, executors
        from flowstamp.progress import watching
        from flowstamp.results import Results

        if threads is not None and threads < 1:
            raise ScenarioError(f"threads: is {threads}; it must be at least 1")
        executors.check(executor)
        if executor != executors.THREADS and not by_links:
            raise UsageError(f"executor: {executor} runs links; give by_links, too, or leave executor out")
        timed = self._timed(duration, warmup, seed)
        source = timed._source(memory)
        with watching(progress, self.source) as told, translated():
            if executor != executors.THREADS:
                job = executors.Job.of(timed, memory=None)
                run = apart.run(job, executor=executor, seed=seed, threads=threads, memory=memory, progress=told)
            elif by_links:
                run = source.run_by_links(seed=seed, threads=threads, progress=told)
            else:
                run = source.run(seed=seed, threads=threads or 1, progress=told)
        results = Results(run)
        self._warn(results)
        return results

    def start(
        self,
        duration: str | None = None,
        *,
        warmup: str | None = None,
        seed: int | None = None,
        memory: str | None = None,
    ) -> Simulation:
        """Prepares a run in steps, see `Simulation`. Arguments and errors are those of `run`."""
        from flowstamp.simulation import Simulation

        source = self._timed(duration, warmup, seed)._source(memory)
        with translated():
            return Simulation(source.start(seed=seed))

    def to_toml(self, *, memory: str | None = None) -> str:
        """Checks the scenario and returns it as TOML with every default. `memory` and errors are as in `run`."""
        source = self._source(memory)
        with translated():
            return source.check()

    def resolved(self, *, memory: str | None = None) -> dict[str, Any]:
        """Checks the scenario and returns its tables with every default. `memory` and errors are as in `run`."""
        return tomllib.loads(self.to_toml(memory=memory))

    def router_loops(
        self, *, memory: str | None = None
    ) -> list[tuple[str, str, float, float, float | None, list[tuple[float, int]]]]:
        """Returns the control loop of each link whose router law has gains.

        A loop has the link's name, the law, alpha, beta, gamma (None if the law lacks it), and the compliant flows as
        pairs of round-trip propagation time in seconds and number of flows. `memory` and errors are as in `run`.
        """
        return [loop[:6] for loop in self._closed(memory)[0]]

    def warnings(self, *, memory: str | None = None) -> list[str]:
        """Returns the warnings that a run would give before it starts. `memory` and errors are as in `run`."""
        return self._closed(memory)[2]

    def _closed(
        self, memory: str | None = None
    ) -> tuple[
        list[tuple[str, str, float, float, float | None, list[tuple[float, int]], float]],
        list[tuple[list[tuple[str, float]], float, int]],
        list[str],
    ]:
        """Returns loops, routes and warnings.

        A loop is that of `router_loops` with the capacity in bit/s. A route of long-lived flows has its links with the
        data's delay to each in seconds, the RTT in seconds, and the number of flows.
        """
        source = self._source(memory)
        with translated():
            return source.router_loops()

    def _repr_html_(self) -> str:
        from flowstamp import notebook

        return notebook.scenario(self)

    def _repr_png_(self) -> bytes | None:
        from flowstamp import notebook

        return notebook.scenario_png(self)

    def _timed(self, duration: str | None, warmup: str | None, seed: int | None) -> Self:
        if seed is not None and not 0 <= seed < 2**63:
            raise ScenarioError(f"seed: is {seed}; it must be at least 0 and below 2^63")
        return self.configure(duration=duration, warmup=warmup)

    def _with(self, **tables: object) -> Self:
        return replace(self, tree={**self.tree, **tables})

    def _warn(self, results: Results) -> None:
        """Issues the run's warnings as `ScenarioWarning`, attributed to the caller of `run`."""
        for line in results.summary.get("warnings", ()):
            warnings.warn(f"{self.source}: {text.rounded(line)}", ScenarioWarning, stacklevel=3)

    def _source(self, memory: str | None) -> _flowstamp.Source:
        text, written_in = self._text()
        return _flowstamp.Source(
            text,
            source=self.source,
            format=written_in,
            sets=self.overrides,
            base_dir=self.base_dir,
            memory=machine.memory(memory),
        )

    def _text(self) -> tuple[str, str]:
        """Returns the tables as text, and its format: JSON, or TOML if JSON cannot express a value such as inf."""
        tree = _with_routers(self.tree) if self.routers else self.tree
        if _is_deep(tree):
            raise ScenarioError(f"{self.source}: {_TOO_DEEP}")
        try:
            return json.dumps(tree, allow_nan=False), "json"
        except (TypeError, ValueError):
            pass
        try:
            return toml_text(tree), "toml"
        except ScenarioError as error:
            raise ScenarioError(f"{self.source}: {error}") from None


@_spelled_out(keys.Dumbbell)
def dumbbell(rate: LinkRate, **given: Unpack[keys.Dumbbell]) -> Scenario:
    """Returns a network with one bottleneck: link `bottleneck` from left to right, `bottleneck.reverse` back.

    Args:
        rate: capacity of the bottleneck in both directions.
    """
    return _network("dumbbell", rate=rate, **given)


@_spelled_out(keys.ParkingLot)
def parking_lot(rates: Sequence[str], **given: Unpack[keys.ParkingLot]) -> Scenario:
    """Returns a network with several bottlenecks in a row: `link1` from `n0` to `n1`, `link1.reverse` back, and so on.

    Args:
        rates: capacity of each link in order, in both directions.
    """
    return _network("parking_lot", rates=list(rates), **given)


@_spelled_out(keys.LeafSpine)
def leaf_spine(leaves: int, spines: int, hosts: int, **given: Unpack[keys.LeafSpine]) -> Scenario:
    """Returns a two-stage data centre network: hosts `h0`, ..., switches `leaf0`, ... and `spine0`, ....

    Args:
        leaves: number of leaf switches, each linked to every spine switch.
        spines: number of spine switches.
        hosts: number of hosts per leaf.
    """
    return _network("leaf_spine", leaves=leaves, spines=spines, hosts=hosts, **given)


@_spelled_out(keys.FatTree)
def fat_tree(k: int, **given: Unpack[keys.FatTree]) -> Scenario:
    """Returns a fat tree of `k`-port switches with `k**3 / 4` hosts `h0`, ... and identical links.

    With `oversubscription` it has that many times as many hosts.

    Args:
        k: number of ports of each switch, even.
    """
    return _network("fat_tree", k=k, **given)


@_spelled_out(keys.Graph)
def graph(links: Sequence[Mapping[str, Any]] = (), **given: Unpack[keys.Graph]) -> Scenario:
    """Returns a network of named nodes; `Scenario.link` adds links. `rtt` defines the BDP of buffers given in BDP.

    Instead of links, `file` can name a GraphML (`networkx.write_graphml`) or CSV file (`source,target,rate,delay`).
    `rate`, `delay`, `weight` and the other link keys are then defaults for its links. In a `directed` graph a link
    without `duplex` has one direction.
    """
    own = [dict(link) for link in links] if given.get("file") is None or links else None
    return _network("graph", links=own, **given)


def _network(kind: str, **table: object) -> Scenario:
    return Scenario({kind: _table(**table)}, routers=True)


def loads(text: str, *, source: str = "scenario", base_dir: str | Path = ".") -> Scenario:
    """Reads a scenario from TOML text. Raises `ScenarioError` if the text is not TOML.

    `source` is its name in messages. Paths in the scenario are relative to `base_dir`.
    """
    tree = parse(text, source)
    if {"scenario", "claims"} <= tree.keys():
        tree = tree["scenario"]  # a figure's file
    return Scenario(tree, source=source, base_dir=str(base_dir))


def parse(text: str, source: str) -> dict[str, Any]:
    """Returns the tables of TOML text. `source` is its name in messages. Raises `ScenarioError` for invalid TOML."""
    try:
        tree = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{source}: not TOML: {one_line(error)}") from None
    except RecursionError:
        raise ScenarioError(f"{source}: {_TOO_DEEP}") from None
    if _is_deep(tree):
        raise ScenarioError(f"{source}: {_TOO_DEEP}")
    return tree


def _is_deep(tree: object) -> bool:
    """Whether tables and lists are nested too deep. The check itself must not recurse."""
    level: list[object] = [tree]
    for _ in range(MOST_NESTED):
        nested = (item for item in level if isinstance(item, Mapping | list | tuple))
        level = [inner for item in nested for inner in (item.values() if isinstance(item, Mapping) else item)]
        if not level:
            return False
    return True


def load(path: str | Path) -> Scenario:
    """Loads a scenario from a TOML file, from the `[scenario]` of a figure's file, or from a run's `manifest.json`.

    Paths in the scenario are relative to the file's folder. Raises `ScenarioError` if the file cannot be read or has
    no scenario.
    """
    if not isinstance(path, str | os.PathLike):
        raise ScenarioError(
            f"load takes a file's path, not {type(path).__name__}; for tables write flowstamp.Scenario(tables)"
        )
    text = read_text(path)
    if Path(path).suffix == ".json":
        return Scenario(_of_manifest(text, str(path)), source=str(path), base_dir=str(Path(path).parent))
    return loads(text, source=str(path), base_dir=Path(path).parent)


def _of_manifest(text: str, source: str) -> dict[str, Any]:
    """Returns the scenario in a run's manifest, with the run's seed."""
    try:
        manifest = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ScenarioError(f"{source}: not JSON: {one_line(error)}") from None
    tree = manifest.get("scenario") if isinstance(manifest, dict) else None
    if not isinstance(tree, dict):
        raise ScenarioError(f'{source}: has no "scenario"; name a TOML file or the manifest.json of a run')
    if _is_deep(tree):
        raise ScenarioError(f"{source}: {_TOO_DEEP}")
    if manifest.get("changes"):
        raise ScenarioError(f"{source}: changes: its run was changed while it ran, which a scenario cannot express")
    if manifest.get("version") != _flowstamp.__version__:
        warnings.warn(
            f"{source}: version: is {manifest.get('version')}, this is {_flowstamp.__version__}: results may differ",
            ScenarioWarning,
            stacklevel=3,
        )
    return {**tree, "seed": manifest.get("seed", tree.get("seed", 1))}


def read_text(path: str | Path) -> str:
    """Reads the UTF-8 text of a scenario from a file or a pipe, up to `MOST_BYTES`."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ScenarioError(f"{path}: has more than {MOST_BYTES} bytes, which no scenario has; name a TOML file")
        return data.decode("utf-8-sig")
    except FileNotFoundError:
        raise ScenarioError(f"{path}: does not exist{_beside(Path(path))}") from None
    except IsADirectoryError:
        raise ScenarioError(f"{path}: is a folder; name a TOML file") from None
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: is not UTF-8 text; a scenario is a TOML file") from None


def _beside(path: Path) -> str:
    """Returns a hint at the file beside `path` whose name is nearest, if there is one."""
    try:
        names = [file.name for file in path.parent.glob("*.toml")]
    except OSError:
        return ""
    near = get_close_matches(path.name, names, 1)
    return f"; did you mean {path.with_name(near[0])}?" if near else ""


def _names_a_file(given: object) -> bool:
    return isinstance(given, str | os.PathLike) and "\n" not in str(given)


def router_of(law: str, *, blind: bool = False) -> str:
    """Returns the default router law for a sender law; "none" if it needs no router or is unknown.

    With `blind`, prefers a router law that does not need the link's capacity.
    """
    return _flowstamp.router_of(blind=blind).get(law, "none")


def _with_routers(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """Gives links without a router law the one that the first flow group with such a need requires."""
    used = (_name_of(group.get("law", ""), "law") for group in tree.get("flows", ()) if isinstance(group, Mapping))
    law = next((router for router in map(router_of, used) if router != "none"), None)
    kind = next((kind for kind in _TOPOLOGIES if isinstance(tree.get(kind), Mapping)), None)
    if law is None or kind is None:
        return tree
    table: Mapping[str, Any] = tree[kind]
    if kind == "graph" and "file" not in table:
        links = [{"router": law, **link} for link in table.get("links", ())]
        return {**tree, kind: {**table, "links": links}}
    return {**tree, kind: {"router": law, **table}}


def _name_of(spec: Spec, tag: str) -> str:
    """The name in `"xcp"` or `{law = "xcp"}`."""
    return str(spec.get(tag, "")) if isinstance(spec, Mapping) else str(spec)


def _given(table: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the table without its None values."""
    return {key: value for key, value in table.items() if value is not None}


def _table(**given: object) -> dict[str, Any]:
    """Converts keyword arguments to a table of the file format: `from_` becomes `from`, paths become text."""
    plain = ((key.rstrip("_"), str(one) if isinstance(one, PurePath) else one) for key, one in given.items())
    return _given(dict(plain))


def plain(value: Any) -> Any:
    """Converts a NumPy scalar to the Python type; returns other values unchanged."""
    return value.item() if hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0 else value


def toml(value: object, key: str) -> str:
    """Formats a value as TOML on one line. Raises `ScenarioError`, naming `key`, for a type that TOML lacks."""
    value = plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # TOML's basic strings have JSON's escapes. JSON also escapes every character that TOML forbids, except DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(str(name))} = {toml(item, f'{key}.{name}')}" for name, item in _given(value).items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(toml(item, f"{key}[{at}]") for at, item in enumerate(value)) + "]"
    raise ScenarioError(f"{key}: {value!r} is not a value of a scenario; write text, a number, a list or a table")


def toml_text(tree: Mapping[str, Any]) -> str:
    """Formats tables as a TOML document with one line per top-level key."""
    return "".join(f"{json.dumps(str(key))} = {toml(value, str(key))}\n" for key, value in _given(tree).items())
