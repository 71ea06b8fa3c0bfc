# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Reads tables of a figure's file into structs. Errors are one line with the wrong value and what would be right."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import msgspec

from flowstamp.errors import FlowstampError

T = TypeVar("T")
Way = Sequence[str | int]
"""The keys and indices that lead to a value."""


class FigureError(FlowstampError):
    """A figure file is invalid, or a figure does not exist."""


class TableError(ValueError):
    """A value in a table has a valid type but is invalid."""

    def __init__(self, key: str | Way, expected: str = "", *, reason: str = "") -> None:
        """`key` is a key of the table or a path into it. `expected` says what would be right; `reason` replaces it."""
        self.way: Way = (key,) if isinstance(key, str) else key
        super().__init__(reason or f"expected {expected}")

    def within(self, *way: str | int) -> TableError:
        """Returns the error with a path that starts at an outer table."""
        return TableError((*way, *self.way), reason=str(self))


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a figure's file. A check in `__post_init__` raises `TableError`."""


def said(expected: str, **limits: Any) -> msgspec.Meta:
    """Annotates a type with the description of valid values, for error messages."""
    return msgspec.Meta(extra={"expected": expected}, **limits)


def convert(data: Mapping[str, Any], kind: type[T], file: str) -> T:
    """Converts a document to a struct. Raises `FigureError` if it is invalid."""
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise refused(data, file, _wrong(error, data, kind)) from error


def refused(data: Mapping[str, Any], file: str, error: TableError) -> FigureError:
    """Makes an error that names file, key and value."""
    value: Any = data
    where, missing = "", False
    for step in error.way:
        missing = isinstance(value, Mapping) and step not in value
        if isinstance(step, int):
            value = value[step]
            where += f"[{value.get('id', value.get('name', step)) if isinstance(value, Mapping) else step}]"
        else:
            value = value.get(step) if isinstance(value, Mapping) else None
            where += f".{step}"
    found = " is missing; " if missing else f" = {shown(value)}: "
    return FigureError(f"{file}: {where.removeprefix('.')}{found}{error}")


def shown(value: Any) -> str:
    """Formats a value for a message, with at most 60 characters."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."


def _wrong(error: msgspec.ValidationError, value: Any, kind: Any) -> TableError:
    """Converts an error of msgspec: its message has the path to the value, and the types say what would be right."""
    way: list[str | int] = []
    for name, index in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", str(error).rpartition(" - at `")[2]):
        own = _bare(kind)
        if name:
            step: str | int = name
            kind = next(field.type for field in msgspec.structs.fields(own) if field.encode_name == name)
        elif index == "...":  # a table with arbitrary keys: msgspec does not name the key
            kind = get_args(own)[1]
            step = next(key for key, one in value.items() if not _fits(one, kind))
        else:
            step, kind = int(index), get_args(own)[0]
        value = value[step]
        way.append(step)
    if isinstance(error.__cause__, TableError):
        return error.__cause__.within(*way)
    own = _bare(kind)
    if isinstance(own, type) and issubclass(own, Table) and isinstance(value, Mapping):
        fields = {f.encode_name: f for f in msgspec.structs.fields(own) if f.encode_name[0] != "$"}
        for key in value:
            if key[:1] != "$" and key not in fields:
                return TableError((*way, key), f"one of the keys {', '.join(sorted(fields))}")
        key = next(key for key, field in fields.items() if field.required and key not in value)
        return TableError((*way, key), _expected(fields[key].type, key))
    return TableError(way, _expected(kind, str(way[-1])))


def _bare(kind: Any) -> Any:
    """Returns a type without annotations and without None."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    several = [one for one in get_args(kind) if one is not type(None)]
    return _bare(several[0]) if type(None) in get_args(kind) else kind


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _expected(kind: Any, key: str) -> str:
    for meta in (meta for one in (kind, *get_args(kind)) for meta in getattr(one, "__metadata__", ())):
        if meta.extra:
            return str(meta.extra["expected"])
    own = _bare(kind)
    if get_origin(own) is Literal:
        return f"one of {', '.join(get_args(own))}"
    if get_origin(own) is tuple:
        item = _bare(get_args(own)[0])
        return f"[[{key}]] tables" if isinstance(item, type) and issubclass(item, Table) else "a list of names"
    return {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}.get(own, "a table")
