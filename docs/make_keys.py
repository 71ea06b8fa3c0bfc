# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Makes `python/flowstamp/keys.py`, the keyword arguments of scenarios in Python, from the JSON Schema.

`docs/make_reference.py` writes it together with the reference pages.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Any

HEAD = '''\
# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Keys of a scenario as keyword arguments. Made by docs/make_reference.py from the JSON Schema.

`from_` and `list_` are `from` and `list` in a file.
"""

# fmt: off
# Without `from __future__ import annotations`: TypedDict reads Required as the class is made.
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Required, TypeAlias, TypedDict

Spec: TypeAlias = str | Mapping[str, Any]
"""A law or queue: its name, or a table of its name (`law`, of a queue `kind`) and parameters."""

LinkRate: TypeAlias = str | Mapping[str, Any]
"""A capacity such as "45Mbps", or a table with `steps` or `trace`."""
'''
CLASSES = {
    # definition in the schema: what has these keys, and which of them are arguments of their own
    "Dumbbell": ("a dumbbell", {"rate"}),
    "ParkingLot": ("a parking lot", {"rates"}),
    "LeafSpine": ("a leaf-spine network", {"leaves", "spines", "hosts"}),
    "FatTree": ("a fat tree", {"k"}),
    "Graph": ("a graph, and of its links that do not name them", {"links"}),
    "Link": ("a link of a graph", {"from", "to"}),
    "FlowGroup": ("a group of flows", {"law", "count"}),
    "Outage": ("an outage", {"link", "from", "until"}),
    "Routing": ("routing", set()),
    "Probes": ("probes", set()),
    "Scenario": ("the whole run", set()),
}
TYPES = {
    **dict.fromkeys(("SenderSpec", "RouterSpec", "QueueSpec", "ShareSpec"), "Spec"),
    **dict.fromkeys(("LinkRate",), "LinkRate"),
    **dict.fromkeys(("Rate", "Time", "Bytes", "Buffer", "Jitter"), "str"),
    **dict.fromkeys(("Balance", "Priority", "Pattern", "Receiver", "OnFailure"), "str"),
    "Pfc": "bool | Mapping[str, Any]",
    "Weight": "float",
    "OneOrMany": "str | Sequence[str]",
    "PacketSizes": "str | Sequence[Mapping[str, Any]]",
}
PLAIN = {"string": "str", "number": "float", "integer": "int", "boolean": "bool"}
PATHS = ("file", "list")


def module(schema: Mapping[str, Any]) -> str:
    """The text of the module."""
    tables = ("flows", "outages", "wireless")
    top = {k: one for k, one in schema["properties"].items() if k not in tables and "Mapping" not in _type(one, k)}
    definitions = {**schema["$defs"], "Scenario": {"properties": top}}
    return HEAD + "".join(
        f'\n\nclass {name}(TypedDict, total=False):\n    """Keys of {of}."""\n\n'
        + "".join(
            _key(key, one, definitions[name]) for key, one in definitions[name]["properties"].items() if key not in own
        )
        for name, (of, own) in CLASSES.items()
    )


def _key(key: str, what: Mapping[str, Any], of: Mapping[str, Any]) -> str:
    kind = _type(what, key)
    # A group's name has a default in Python.
    required = key in of.get("required", ()) and key != "name"
    kind = f"Required[{kind}]" if required else f"{kind} | None"
    name = f"{key}_" if keyword.iskeyword(key) or key == "list" else key
    return f"    {name}: Annotated[{kind}, {' '.join(what['description'].split())!r}]\n"


def _type(what: Mapping[str, Any], key: str) -> str:
    """The type of a value in Python."""
    options = [one for one in what.get("anyOf", [what]) if one.get("type") != "null"]
    if "$ref" in options[0]:
        return TYPES.get(options[0]["$ref"].rsplit("/", 1)[-1], "Mapping[str, Any]")
    kinds = what.get("type", "object")
    kind = next(one for one in ([kinds] if isinstance(kinds, str) else kinds) if one != "null")
    if kind == "array":
        return "Sequence[str]"
    return f"{PLAIN[kind]} | Path" if key in PATHS else PLAIN[kind]
