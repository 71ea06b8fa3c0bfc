# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Says in a word or two what a claim's number is, such as `largest ratio`, and its unit, so that tables can be read.

A claim's words rarely say what was measured: "utilisation is above 0.9 in most cases" is measured as a share of the
points. Kind and unit follow from the claim's expression.
"""

from __future__ import annotations

import ast

REDUCED = {"max": "largest", "min": "least", "mean": "mean", "median": "median", "sum": "total"}
"""Functions that make one number of many, and the word for it."""
RATIOS = {"bin_ratios", "max_ratios", "bin_over", "slowdown", "group_slowdown", "slowdown_of", "max_over_mean"}
"""Functions whose values are ratios of two times."""
KEPT = {"first", "last", "abs"}
"""Functions whose value is of the same kind as their argument."""
NAMED = {"log10": "logarithm", "trend": "exponent", "jain": "Jain's index", "count": "number", "std": "deviation"}
UNITS = {
    "_mbps": "Mb/s",
    "_packets": "packets",
    "_drops": "packets",
    "_ms": "ms",
    "_us": "us",
    "_rtts": "RTTs",
    "_deg": "degrees",
    "drops": "packets",
    "max_fct": "s",
    "above_after": "s",
    "afct_of": "s",
    "afct": "s",
    "throughput": "Mb/s",
    "throughputs": "Mb/s",
    "group": "Mb/s",
    "window": "packets",
    "megabytes": "MB",
}
"""Units of measures and functions, by the name or by its end after an underscore."""
NOTES = (
    "- *Least*, *largest*, *mean* and *total* are over the points, links, flows or samples of the figure.\n"
    "- A *ratio* is one curve over another, and a *difference* is one curve less another. A *relative difference* is a "
    "ratio less 1.\n"
    "- A *distance* is a difference without its sign, from another curve, from the number in the claim, or from "
    "the number after *from*. A *relative distance* is divided by the number in the claim.\n"
    "- A *share of points* is the part of the points at which a condition holds.\n"
    "- A *logarithm* is decimal, an *exponent* is that of a power law, and a *relative deviation* is a standard "
    "deviation over the mean.\n"
    "- Without a word, the number is the quantity that the claim names."
)
"""The meaning of these words, for a page."""


def kind(expr: str) -> str:
    """Returns what the value of a claim's expression is; empty if there is no more to say than a measure's name."""
    return _kind(ast.parse(" ".join(expr.split()), mode="eval").body)


def unit(expr: str) -> str:
    """Returns the unit of a claim's value; empty if it has none, or if the expression computes with it."""
    return _unit(ast.parse(" ".join(expr.split()), mode="eval").body)


def origin(expr: str) -> str:
    """Returns the number that a claim's distance is measured from, as `from 0.55`; empty without such a number."""
    node = ast.parse(" ".join(expr.split()), mode="eval").body
    match node:
        case ast.Call(func=ast.Name(id=name), args=[inner]) if name in REDUCED:
            node = inner
    match node:
        case ast.Call(func=ast.Name(id="abs"), args=[ast.BinOp(op=ast.Sub(), right=ast.Constant() as number) as inner]):
            return f"from {ast.unparse(number)}" if _distance(inner) == "distance" else ""
    return ""


def _unit(node: ast.expr) -> str:
    match node:
        case ast.Subscript(value=inner) | ast.UnaryOp(operand=inner):
            return _unit(inner)
        case ast.Attribute(attr=name):
            return _named(name)
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
            sides = {_unit(side) for side in (left, right) if not _constant(side)}
            return sides.pop() if len(sides) == 1 else ""
        case ast.Call(func=ast.Name(id="samples" | "all_samples"), args=[_, ast.Constant(value=str(name)), *_]):
            return _named(name)
        case ast.Call(func=ast.Name(id=name), args=args) if name in (REDUCED.keys() | KEPT):
            units = {_unit(one) for one in args}
            return units.pop() if len(units) == 1 else ""
        case ast.Call(func=ast.Name(id=name)):
            return _named(name)
    return ""


def _named(name: str) -> str:
    end = f"_{name.rpartition('_')[2]}" if "_" in name else name
    return UNITS.get(name, UNITS.get(end, ""))


def _kind(node: ast.expr) -> str:
    match node:
        case ast.Subscript():
            return _kind(node.value)
        case ast.UnaryOp():
            return _kind(node.operand)
        case ast.BinOp():
            return _combined(node)
        case ast.Call(func=ast.Name(id=name)):
            return _called(name, node.args)
    return ""


def _combined(node: ast.BinOp) -> str:
    """Returns the kind of a sum, difference, product or quotient."""
    match node:
        case ast.BinOp(left=ast.BinOp(op=ast.Div()), op=ast.Sub(), right=ast.Constant(value=1)):
            return "relative difference"
    if _constant(node.right) or _constant(node.left):
        one = _kind(node.left if _constant(node.right) else node.right)
        # A factor makes something else of a ratio or a difference.
        return one if one in {"largest", "least"} or isinstance(node.op, ast.Add | ast.Sub) else ""
    if isinstance(node.op, ast.Sub):
        return "difference" if not isinstance(node.left, ast.BinOp) else ""
    if not isinstance(node.op, ast.Div):
        return _kind(node.left)
    names = [_function(side) for side in (node.left, node.right)]
    if names == ["count", "count"]:
        return "share of points"
    return "relative deviation" if names == ["std", "mean"] else "ratio"


def _called(name: str, args: list[ast.expr]) -> str:
    inner = _distance(args[0]) if name == "abs" else _kind(args[0])
    if name in REDUCED:
        # "the largest of means" is still a mean to the reader: only kinds with a unit of their own are named beside it.
        several = inner if inner not in {*REDUCED.values(), "number", "deviation", "Jain's index"} else ""
        return f"{REDUCED[name]} {several}".strip()
    if name in KEPT:
        return inner
    return "ratio" if name in RATIOS else NAMED.get(name, "")


def _distance(node: ast.expr) -> str:
    """Returns the kind of `abs(node)`."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        quotient = isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Div)
        return "relative distance" if quotient or "ratio" in _kind(node.left) else "distance"
    return _kind(node)


def _function(node: ast.expr) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _constant(node: ast.expr) -> bool:
    """Whether the value is a number that the claim states."""
    return not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node))
