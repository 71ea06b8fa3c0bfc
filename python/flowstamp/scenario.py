# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Scenarios as Python objects: the same tree of tables as a TOML file, checked by the same code.

Quantities are strings with units ("45Mbps", "40ms", "1BDP", "10MB"), as in a file. Keyword arguments are a file's keys
(`flowstamp.keys`). Every method returns a new scenario and leaves the old one as it was. Links whose router law is not
given get that of the first flows that need one.
"""

from __future__ import annotations

import inspect
import json
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeAlias, TypeVar, Unpack

from flowstamp import _flowstamp, keys, machine
from flowstamp.errors import ScenarioError, ScenarioWarning, one_line, translated
from flowstamp.keys import LinkRate, Spec

if TYPE_CHECKING:
    from flowstamp.results import Results
    from flowstamp.simulation import Simulation

Progress: TypeAlias = Callable[[int, int, float, float, int], None]
"""Called about ten times a second with run, runs, simulated seconds, duration in seconds, events."""

_TOPOLOGIES = ("dumbbell", "parking_lot", "leaf_spine", "fat_tree", "graph")

MOST_BYTES = 1 << 26
"""The largest file that is read as a scenario."""

MOST_NESTED = 64
"""How deep tables and lists of a scenario may be nested: several times as deep as any key is."""
_TOO_DEEP = (
    f"is nested too deep; tables and lists in each other go to {MOST_NESTED}, and no key of a scenario is near that"
)


def laws() -> dict[str, list[str]]:
    """Names that a scenario may use: `senders`, `routers`, `queues`."""
    return _flowstamp.laws()


def schema() -> dict[str, Any]:
    """The JSON Schema of a scenario."""
    document: dict[str, Any] = json.loads(_flowstamp.scenario_schema())
    return document


P = ParamSpec("P")
R = TypeVar("R")


def _spelled_out(kind: type) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Lists the keys of a table in a function's signature and documentation, and refuses others as Python does."""
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
            signature.bind(*args, **given)
            return function(*args, **given)

        doc = inspect.getdoc(function) or ""
        checked.__doc__ = doc + ("" if "\nArgs:" in doc else "\n\nArgs:") + told
        checked.__signature__ = signature  # type: ignore[attr-defined]
        return checked

    return decorate


@dataclass(frozen=True)
class Scenario:
    """A network, the flows on it and what to record.

    Made by `dumbbell`, `parking_lot`, `leaf_spine`, `fat_tree`, `graph`, `load` and `loads`; run by `run`.
    """

    tree: Mapping[str, Any]
    """The scenario's tables, by the names of the file format; not to be changed in place."""
    overrides: tuple[tuple[str, str], ...] = ()
    """What `set` was given, applied in order after everything else: dotted key, TOML value."""
    source: str = "scenario"
    """What messages call it: the file it came from."""
    base_dir: str = "."
    """What the paths in it are relative to."""
    routers: bool = False
    """Links whose router is not named get the law that the flows need; a file names them."""

    @_spelled_out(keys.FlowGroup)
    def flows(self, law: Spec, count: int | None = None, **given: Unpack[keys.FlowGroup]) -> Self:
        """Adds a group of flows. Its name is the law's, if none is given.

        A law that needs routers, such as XCP, gets them in a scenario made by `dumbbell` and its like:
        where that names none, its links get the law. A scenario from a file names its routers.

        Args:
            law: the sender's law, such as "xcp" or {"law": "xcp", "price": 5.0}.
            count: how many flows; default 1, of web flows and of a list 10 pairs of hosts.
        """
        groups = list(self.tree.get("flows", ()))
        taken = {group.get("name") for group in groups}
        base = _name_of(law, "law")
        numbered = (base if n == 1 else f"{base}-{n}" for n in range(1, len(groups) + 2))
        name = given.pop("name", None) or next(candidate for candidate in numbered if candidate not in taken)
        return self._with(flows=[*groups, _table(name=name, law=law, count=count, **given)])

    @_spelled_out(keys.Link)
    def link(self, from_: str, to: str, **given: Unpack[keys.Link]) -> Self:
        """Adds a link to a graph, both ways unless `duplex` is false.

        `delay` is the one-way propagation delay. Links that name the same `medium` send one at a time, in turn.
        `impairments` are of packets that have crossed it: `loss`, `jitter` and others (docs/impairments.md).
        If links have a `weight`, packets take the path of least weight rather than of least delay.
        """
        if "graph" not in self.tree:
            raise ScenarioError(f"{self.source}: only a graph has links of its own; start with flowstamp.graph()")
        old = self.tree["graph"]
        new = _table(from_=from_, to=to, **given)
        return self._with(graph={**old, "links": [*old.get("links", ()), new]})

    @_spelled_out(keys.Outage)
    def outage(self, link: str, from_: str, until: str | None = None, **given: Unpack[keys.Outage]) -> Self:
        """Adds a time during which a link carries nothing, and its way back neither unless `both_ways` is false.

        Without `until` it does not return. `on_failure` is "lose" (default) or "hold": what becomes of its packets.
        """
        new = _table(link=link, from_=from_, until=until, **given)
        return self._with(outages=[*self.tree.get("outages", ()), new])

    @_spelled_out(keys.Routing)
    def routing(self, **given: Unpack[keys.Routing]) -> Self:
        """Says whether routes follow outages (default: they do), and how long after each; what is not named stays."""
        return self._with(routing={**self.tree.get("routing", {}), **_table(**given)})

    @_spelled_out(keys.Probes)
    def probe(self, **given: Unpack[keys.Probes]) -> Self:
        """Says what is sampled over time, and how often; what is not named stays."""
        return self._with(probes={**self.tree.get("probes", {}), **_table(**given)})

    def capture(self, links: Sequence[str] | None = None, *, packets: int | None = None) -> Self:
        """Records what leaves `links`, and the frames of the cells among them (default: all), at most `packets`."""
        return self._with(capture=_table(links=links, packets=packets))

    @_spelled_out(keys.Scenario)
    def configure(self, **given: Unpack[keys.Scenario]) -> Self:
        """Sets what concerns the whole run: name, times, seed, the sizes of packets and of their headers."""
        return self._with(**_table(**given))

    def set(self, key: str, value: object) -> Self:
        """Overrides one value: `set("dumbbell.rate", "90Mbps")`, `set("flows.xcp.count", 3)`.

        Overrides are applied in order after everything else. A group of flows goes by its name or number, several by a
        pattern: `set("flows.up*.law", "cubic")`.
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
    ) -> Results:
        """Runs the scenario.

        Args:
            duration: simulated time; default what the scenario says.
            warmup: statistics start here; default what the scenario says.
            seed: every random choice follows from this; default what the scenario says.
            memory: what the run may need, such as "4GB": if it may need more, it is refused before it takes any;
                default three quarters of what this process can have (`flowstamp.machine`).
            progress: called about ten times a second; what it raises stops the run.
        """
        from flowstamp.progress import watching
        from flowstamp.results import Results

        timed = self._timed(duration, warmup, seed)
        text, written_in = timed._text()
        with watching(progress, self.source) as told, translated():
            run = _flowstamp.run(
                text,
                source=self.source,
                format=written_in,
                sets=self.overrides,
                base_dir=self.base_dir,
                seed=seed,
                memory=machine.memory(memory),
                progress=told,
            )
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
        """Lays out the network, to be run in steps: see `Simulation`. The arguments are those of `run`."""
        from flowstamp.simulation import Simulation

        timed = self._timed(duration, warmup, seed)
        text, written_in = timed._text()
        with translated():
            simulation = _flowstamp.start(
                text,
                source=self.source,
                format=written_in,
                sets=self.overrides,
                base_dir=self.base_dir,
                seed=seed,
                memory=machine.memory(memory),
            )
        return Simulation(simulation)

    def to_toml(self, *, memory: str | None = None) -> str:
        """The scenario as a file would have it, checked, with every default spelled out; `memory` as in `run`."""
        text, written_in = self._text()
        with translated():
            return _flowstamp.check(
                text,
                source=self.source,
                format=written_in,
                sets=self.overrides,
                base_dir=self.base_dir,
                memory=machine.memory(memory),
            )

    def resolved(self, *, memory: str | None = None) -> dict[str, Any]:
        """The scenario's tables, checked, with every default spelled out; `memory` as in `run`."""
        return tomllib.loads(self.to_toml(memory=memory))

    def router_loops(
        self, *, memory: str | None = None
    ) -> list[tuple[str, str, float, float, float | None, list[tuple[float, int]]]]:
        """Links whose router law has gains: name, law, alpha, beta, gamma, RTTs of flows that obey, with their number.

        RTTs are those of propagation, in seconds; `memory` as in `run`.
        """
        return [loop[:6] for loop in self._closed(memory)[0]]

    def warnings(self, *, memory: str | None = None) -> list[str]:
        """What a run of it would warn of before it begins: what it probably does not mean; `memory` as in `run`."""
        return self._closed(memory)[2]

    def _closed(
        self, memory: str | None = None
    ) -> tuple[
        list[tuple[str, str, float, float, float | None, list[tuple[float, int]], float]],
        list[tuple[list[tuple[str, float]], float, int]],
        list[str],
    ]:
        """Those with capacities, bit/s; ways of lasting flows: links with times to them, RTT, number; warnings."""
        text, written_in = self._text()
        with translated():
            return _flowstamp.router_loops(
                text,
                source=self.source,
                format=written_in,
                sets=self.overrides,
                base_dir=self.base_dir,
                memory=machine.memory(memory),
            )

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
        """Passes on what the scenario probably does not mean, to whoever asked for the run."""
        for line in results.summary.get("warnings", ()):
            warnings.warn(f"{self.source}: {line}", ScenarioWarning, stacklevel=3)

    def _text(self) -> tuple[str, str]:
        """The tables as text, and what it is written in: JSON, or TOML where JSON has no word for a number."""
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
    """One bottleneck, `bottleneck` from left to right and `bottleneck.reverse` back.

    Args:
        rate: capacity of the bottleneck, both ways.
    """
    return _network("dumbbell", rate=rate, **given)


@_spelled_out(keys.ParkingLot)
def parking_lot(rates: Sequence[str], **given: Unpack[keys.ParkingLot]) -> Scenario:
    """Several bottlenecks in a row: `link1` leads from `n0` to `n1`, `link1.reverse` back, and so on.

    Args:
        rates: capacity of each link in turn, both ways.
    """
    return _network("parking_lot", rates=list(rates), **given)


@_spelled_out(keys.LeafSpine)
def leaf_spine(leaves: int, spines: int, hosts: int, **given: Unpack[keys.LeafSpine]) -> Scenario:
    """A network of a data centre in two stages: hosts `h0`, ..., switches `leaf0`, ... and `spine0`, ....

    Args:
        leaves: leaf switches, each joined with every spine switch.
        spines: spine switches.
        hosts: hosts of each leaf.
    """
    return _network("leaf_spine", leaves=leaves, spines=spines, hosts=hosts, **given)


@_spelled_out(keys.FatTree)
def fat_tree(k: int, **given: Unpack[keys.FatTree]) -> Scenario:
    """A fat tree of switches with `k` ports and `k**3 / 4` hosts, `h0`, ..., all links alike.

    Args:
        k: ports of each switch: even.
    """
    return _network("fat_tree", k=k, **given)


@_spelled_out(keys.Graph)
def graph(links: Sequence[Mapping[str, Any]] = (), **given: Unpack[keys.Graph]) -> Scenario:
    """Any network of named nodes; `Scenario.link` adds links. `rtt` is what a buffer in BDP refers to.

    `file` names GraphML (`networkx.write_graphml`) or CSV (`source,target,rate,delay`) in place of links; `rate`,
    `delay`, `weight` and the others are those of its links that name none. In a `directed` graph links that do not say
    `duplex` lead one way.
    """
    own = [dict(link) for link in links] if given.get("file") is None or links else None
    return _network("graph", links=own, **given)


def _network(kind: str, **table: object) -> Scenario:
    return Scenario({kind: _table(**table)}, routers=True)


def loads(text: str, *, source: str = "scenario", base_dir: str | Path = ".") -> Scenario:
    """A scenario from TOML text; `source` names it in messages, paths in it are relative to `base_dir`."""
    tree = parse(text, source)
    if {"scenario", "claims"} <= tree.keys():
        tree = tree["scenario"]  # a figure's file
    return Scenario(tree, source=source, base_dir=str(base_dir))


def parse(text: str, source: str) -> dict[str, Any]:
    """The tables of TOML text; `source` names it in messages."""
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
    """Whether tables and lists are nested deeper than they may be: without recursion, which it is to prevent."""
    level: list[object] = [tree]
    for _ in range(MOST_NESTED):
        nested = (item for item in level if isinstance(item, Mapping | list | tuple))
        level = [inner for item in nested for inner in (item.values() if isinstance(item, Mapping) else item)]
        if not level:
            return False
    return True


def load(path: str | Path) -> Scenario:
    """A scenario from a TOML file, the `[scenario]` of a figure's, or the `manifest.json` of a run.

    Paths in it are relative to the file's folder.
    """
    text = read_text(path)
    if Path(path).suffix == ".json":
        return Scenario(_of_manifest(text, str(path)), source=str(path), base_dir=str(Path(path).parent))
    return loads(text, source=str(path), base_dir=Path(path).parent)


def _of_manifest(text: str, source: str) -> dict[str, Any]:
    """The scenario of a run, by which it can be run again."""
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
        raise ScenarioError(f"{source}: changes: its run was changed on the way, which a scenario cannot say")
    if manifest.get("version") != _flowstamp.__version__:
        warnings.warn(
            f"{source}: version: is {manifest.get('version')}, this is {_flowstamp.__version__}: results may differ",
            ScenarioWarning,
            stacklevel=3,
        )
    return {**tree, "seed": manifest.get("seed", tree.get("seed", 1))}


def read_text(path: str | Path) -> str:
    """The text of a scenario file, or of a pipe."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ScenarioError(f"{path}: has more than {MOST_BYTES} bytes, which no scenario has; name a TOML file")
        return data.decode("utf-8-sig")
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}: is not UTF-8 text; a scenario is a TOML file") from None


def router_of(law: str, *, blind: bool = False) -> str:
    """The router law that flows of this law have by themselves; "none" if they rely on none or there is no such law.

    If `blind`, one that needs no capacity, where there is one.
    """
    return _flowstamp.router_of(blind=blind).get(law, "none")


def _with_routers(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """Puts the law of the first flows that need routers on links whose router is not named."""
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
    """Without what was not given."""
    return {key: value for key, value in table.items() if value is not None}


def _table(**given: object) -> dict[str, Any]:
    """Keyword arguments as a table of the file format."""
    plain = ((key.rstrip("_"), str(one) if isinstance(one, PurePath) else one) for key, one in given.items())
    return _given(dict(plain))


def plain(value: Any) -> Any:
    """A number of numpy as Python's own; all else as it is."""
    return value.item() if hasattr(value, "dtype") and getattr(value, "ndim", 1) == 0 else value


def toml(value: object, key: str) -> str:
    """A value as TOML on one line."""
    value = plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        # TOML's basic strings have the escapes of JSON, which also escapes what TOML forbids, except DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(str(name))} = {toml(item, f'{key}.{name}')}" for name, item in _given(value).items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(toml(item, f"{key}[{at}]") for at, item in enumerate(value)) + "]"
    raise ScenarioError(f"{key}: {value!r} is no value of a scenario; write text, a number, a list or a table")


def toml_text(tree: Mapping[str, Any]) -> str:
    """Tables as a TOML document, a line for each key."""
    return "".join(f"{json.dumps(str(key))} = {toml(value, str(key))}\n" for key, value in _given(tree).items())
