# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Makes the reference pages from what the code says: the scenario format from its JSON Schema, the command from itself.

Usage: python docs/make_reference.py

It also makes the keyword arguments of scenarios in Python (`make_keys.py`). `tests/test_docs.py` compares all of it
with what this makes. No made file names the laws, so that a new law changes none: `_extensions/laws.py` adds their
tables to their page as Sphinx reads it.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
NOTE = "<!-- Made by docs/make_reference.py; change the code's own descriptions instead. -->\n"

# Sections in the order in which a scenario is written: the schema's name, the title, the key's name in a scenario.
TABLES = {
    "Dumbbell": "`[dumbbell]`",
    "ParkingLot": "`[parking_lot]`",
    "LeafSpine": "`[leaf_spine]`",
    "FatTree": "`[fat_tree]`",
    "Graph": "`[graph]`",
    "Link": "`[[graph.links]]`",
    "Impairments": "`impairments`",
    "BurstLoss": "`impairments.burst_loss`",
    "LinkJitter": "`impairments.jitter`",
    "Delays": "`impairments.delays`",
    "Detour": "`impairments.detours`",
    "LinkRate": "Capacity of a link",
    "VaryingRate": "A capacity that varies",
    "Police": "`police`",
    "Pfc": "`pfc`",
    "PfcThresholds": "Thresholds of priority flow control",
    "Scone": "`scone`",
    "Cell": "`[[wireless]]`",
    "Station": "`wireless.stations`",
    "Mac": "MAC",
    "Dcf": "MAC and PHY of a cell",
    "Outage": "`[[outages]]`",
    "Routing": "`[routing]`",
    "FlowGroup": "`[[flows]]`",
    "Access": "`access`",
    "Params": "`[flows.transport]`",
    "Incast": "`[flows.incast]`",
    "Collective": "`[flows.collective]`",
    "Web": "`[flows.web]`",
    "Arrivals": "`arrivals`",
    "Sizes": "`sizes`",
    "Application": "`[flows.application]`",
    "DrawnPeriods": "Periods",
    "WeightedSize": "A mix of packet sizes",
    "Probes": "`[probes]`",
    "Capture": "`[capture]`",
}
LAWS = {"SenderSpec": "Sender laws", "RouterSpec": "Router laws", "QueueSpec": "Queues", "ShareSpec": "Sharing"}
QUANTITIES = {
    "Time": "time",
    "Rate": "rate",
    "Bytes": "size",
    "Ratio": "share",
    "Buffer": "buffer",
    "QueueLength": "length of queue",
    "Weight": "weight",
}
PLAIN = {"string": "text", "number": "number", "integer": "whole number", "boolean": "true or false", "null": "nothing"}


def scenario_page(schema: Mapping[str, Any]) -> str:
    """The reference of the scenario format."""
    defs = schema["$defs"]
    unknown = set(defs) - {*TABLES, *LAWS, *QUANTITIES} - _inline(defs)
    if unknown:
        raise SystemExit(f"make_reference.py: no section for {', '.join(sorted(unknown))}")
    parts = [
        NOTE,
        "# Scenario reference\n",
        "Every table and key of a scenario, made from the JSON Schema (`flowstamp schema`). "
        "[Scenarios](../scenarios.md) explains them by examples. [Laws and queues](laws.md) have their own page.\n",
        "## Quantities\n",
        "Quantities are text with a unit. Bare numbers are refused, except for shares and weights.\n",
        "| quantity | meaning | example |\n|---|---|---|",
        *(_quantity(title, defs[name]) for name, title in QUANTITIES.items() if name in defs),
        "",
        "## The scenario\n",
        _section(schema, defs),
        *(f"## {title}\n\n{_section(defs[name], defs)}" for name, title in TABLES.items() if name in defs),
    ]
    return "\n".join(parts).rstrip() + "\n"


def laws(schema: Mapping[str, Any]) -> str:
    """The sections of the laws and queues, with their parameters."""
    defs = schema["$defs"]
    return "\n".join(f"## {title}\n\n{_section(defs[name], defs)}" for name, title in LAWS.items())


def _inline(defs: Mapping[str, Any]) -> set[str]:
    """Definitions shown where they are used: lists of words, and what may be written in several ways."""
    several = {"OneOrMany", "Periods", "MessageSizes", "PacketSizes", "Jitter"}
    return {name for name, d in defs.items() if name in several or _words(d)}


def _words(definition: Mapping[str, Any]) -> list[str]:
    """The words of an enumeration."""
    if "enum" in definition:
        return list(definition["enum"])
    return [
        option["const"]
        for option in definition.get("oneOf", ())
        if option.get("type") == "string" and "const" in option
    ]


def _quantity(title: str, definition: Mapping[str, Any]) -> str:
    examples = definition.get("examples") or ["25%", "0.25"]
    return f"| {title} | {definition['description']} | {', '.join(f'`{_json(e)}`' for e in examples)} |"


def alternatives(definition: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Returns the alternatives of a definition, including alternatives of alternatives."""
    for option in (*definition.get("oneOf", ()), *definition.get("anyOf", ())):
        if "oneOf" in option or "anyOf" in option:
            yield from alternatives(option)
        else:
            yield option


def _section(definition: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    told = definition.get("description", "")
    text = [told[:1].upper() + told[1:] + "\n"]
    options = list(alternatives(definition))
    if any("properties" in option for option in options):
        text += [_option(option, defs) for option in options if "properties" in option]
    elif options:
        text += [
            f"- {_type(option, defs)}: {option.get('description', '')}".removesuffix(": ") for option in options
        ] + [""]
    else:
        text.append(_keys(definition, defs))
    return "\n".join(text)


def _option(option: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    """One law or distribution: its tag and its parameters."""
    tag, name = next((key, d["const"]) for key, d in option["properties"].items() if "const" in d)
    properties = {key: d for key, d in option["properties"].items() if key != tag}
    keys = _keys({**option, "properties": properties}, defs) if properties else "No parameters.\n"
    return f'### `{tag} = "{name}"`\n\n{option.get("description", "")}\n\n{keys}'


def _keys(definition: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    required = set(definition.get("required", ()))
    rows = ["| key | value | default | |", "|---|---|---|---|"]
    properties = definition["properties"]
    for key in sorted(properties, key=lambda key: (key not in required, key)):
        what = properties[key]
        default = "**required**" if key in required else _default(what)
        description = " ".join(what.get("description", "").split()).replace("|", "\\|")
        rows.append(f"| `{key}` | {_type(what, defs)} | {default} | {description} |")
    return "\n".join(rows) + "\n"


def _default(what: Mapping[str, Any]) -> str:
    value = what.get("default")
    if isinstance(value, Mapping):
        # A law without parameters is its name; the keys of any other table have their defaults in its own section.
        value = next(iter(value.values())) if len(value) == 1 else None
    # An empty list, and nothing, say no more than the description does.
    return "" if value in (None, "", [], {}) else f"`{_json(value)}`"


def _json(value: object) -> str:
    return json.dumps(value) if not isinstance(value, float) else f"{value:.6g}"


def _type(what: Mapping[str, Any], defs: Mapping[str, Any]) -> str:
    if "$ref" in what:
        name = what["$ref"].rsplit("/", 1)[-1]
        if name in QUANTITIES:
            return QUANTITIES[name]
        if name in TABLES:
            return f"[{TABLES[name].strip('`')}](#{_anchor(TABLES[name])})"
        if name in LAWS:
            return f"[{LAWS[name]}](laws.md#{_anchor(LAWS[name])})"
        return _type(defs[name], defs)
    if _words(what):
        return ", ".join(f"`{_json(word)}`" for word in _words(what))
    if "const" in what:
        return f"`{_json(what['const'])}`"
    options = [option for key in ("anyOf", "oneOf") for option in what.get(key, ()) if option.get("type") != "null"]
    if options:
        return " or ".join(dict.fromkeys(_type(option, defs) for option in options))
    kinds = what.get("type", "object")
    kind = next(k for k in ([kinds] if isinstance(kinds, str) else kinds) if k != "null")
    if kind == "array":
        if "prefixItems" in what:
            return f"[{', '.join(_type(item, defs) for item in what['prefixItems'])}]"
        return f"list of {_type(what['items'], defs)}"
    return PLAIN.get(kind, "table")


def _anchor(title: str) -> str:
    """The anchor that MyST gives a heading, as GitHub does."""
    kept = "".join(c for c in title.lower() if c.isalnum() or c in " -_")
    return kept.replace(" ", "-")


def command_page() -> str:
    """The reference of the command: what `--help` says."""
    overview = _help()
    commands = re.findall(r"^  (\w+)  ", overview[overview.index("Commands:") :], re.MULTILINE)
    parts = [
        NOTE,
        "# Command reference\n",
        "Results go to standard output, progress and messages to standard error. Exit code 0: success; 1: success, but "
        "a claim does not hold; 2: bad input, or results that could not be written, with a message of one line; 130: "
        "interrupted.\n",
        f"```text\n{overview}```\n",
        *(f"## `flowstamp {name}`\n\n{_said(name)}" for name in commands),
    ]
    return "\n".join(parts).rstrip() + "\n"


def _said(name: str) -> str:
    """The help of a command; those of the programs for Linux and for QUIC have pages of their own."""
    from flowstamp.linux import COMMANDS

    if name in COMMANDS:
        return f"For Linux: [its own page](linux.md#flowstamp-{name}).\n"
    if name == "quic":
        return "For QUIC: [its own page](../quic.md).\n"
    return f"```text\n{_help(name)}```\n"


def _help(*command: str) -> str:
    """The help of a command at a fixed width."""
    environment = {**os.environ, "COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"}
    arguments = [sys.executable, "-m", "flowstamp", *command, "--help"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True, env=environment)
    lines = [line.rstrip() for line in done.stdout.strip("\n").splitlines()]
    return "\n".join(lines) + "\n"


def pages() -> dict[Path, str]:
    """Every page that is made, by its path."""
    from flowstamp import schema

    keys = runpy.run_path(str(HERE / "make_keys.py"))
    return {
        HERE.parent / "python/flowstamp/keys.py": keys["module"](schema()),
        HERE / "reference/scenario.md": scenario_page(schema()),
        HERE / "reference/command.md": command_page(),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
