# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The language of claims: arithmetic over measured numbers, and bounds on the result.

An expression has Python's syntax, but only these elements: numbers, runs and their measures, `x`, comparisons that
select points (`xcp.drops[x <= 800]`), and the functions below. Reading a file rejects everything else.
`docs/figures.md` documents the language, and `docs/reference/figure-curves.md` the functions of computed curves.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from flowstamp.fairness import jain
from flowstamp.figures import appendix_f, datacentre, fct, videos
from flowstamp.names import spelled

Floats = NDArray[np.float64]


class ExpressionError(ValueError):
    """An expression is not in the language, names something unknown, or cannot be evaluated."""


class RunValues(Protocol):
    """The data of a run that expressions can use."""

    def measure(self, name: str) -> Floats:
        """Returns one value for each point, link or flow."""

    def of(self, group: str) -> RunValues:
        """Returns the same runs with another group as the measured one."""

    def samples(self, metric: str, start_s: float, end_s: float) -> Floats:
        """Returns a link's samples between two times: `utilization`, `queue_packets`, `drops`."""

    def flow_samples(self, flow: str, start_s: float, end_s: float) -> Floats:
        """Returns throughput samples of a flow, `group.index`, in Mb/s."""

    def window_samples(self, flow: str, start_s: float, end_s: float) -> Floats:
        """Returns congestion window samples of a flow in packets."""

    def group_samples(self, group: str, start_s: float, end_s: float) -> Floats:
        """Returns throughput samples of a group in Mb/s."""

    def switched_s(self, flow: str) -> float:
        """Returns the time at which a flow fell back to TCP, in seconds."""

    def switches(self) -> float:
        """Returns the number of flows that fell back to TCP."""

    def packet_delay_ms(self, packets: float, statistic: str) -> Floats:
        """Returns a statistic of packet delays at each point, for the size bin that contains `packets`."""

    def policed(self, group: str, what: str) -> Floats:
        """Returns a value of the police's record, such as `judged_s`, for each tested flow of a group."""

    def isolated(self, group: str) -> float:
        """Returns the number of flows of a group that a police ever isolated."""

    def packets(self, flow: str, at_s: float) -> float:
        """Returns the number of packets of a flow that have arrived by a time."""

    def active_flows(self, start_s: float, end_s: float) -> list[str]:
        """Returns the flows that were active from start to end."""

    def end_s(self, flow: str) -> float:
        """Returns the arrival time of a flow's last byte, in seconds."""

    def first_end_s(self) -> float:
        """Returns the time at which the first flow completed, in seconds."""

    def megabytes(self, pattern: str) -> float:
        """Returns the payload that groups matching a pattern such as `up*` delivered, in 10^6 bytes."""

    def flow_samples_of_all(self, name: str, start_s: float, end_s: float) -> Floats:
        """Returns the samples of a measure of all flows while they are active, between two times."""

    def sample_s(self) -> float:
        """Returns the sampling interval in seconds."""


# ---------------------------------------------------------------------------------------------------- functions


def _samples(run: RunValues, metric: str, start_s: float, end_s: float) -> Floats:
    return run.samples(metric, start_s, end_s)


def _throughput(run: RunValues, flow: str, start_s: float, end_s: float) -> float:
    return fct.mean(run.flow_samples(flow, start_s, end_s))


def _throughputs(run: RunValues, start_s: float, end_s: float) -> Floats:
    return np.array([_throughput(run, flow, start_s, end_s) for flow in run.active_flows(start_s, end_s)])


def _window(run: RunValues, flow: str, start_s: float, end_s: float) -> float:
    return fct.mean(run.window_samples(flow, start_s, end_s))


def _group(run: RunValues, group: str, start_s: float, end_s: float) -> float:
    return fct.mean(run.group_samples(group, start_s, end_s))


def _normalized(run: RunValues, group: str) -> Floats:
    return run.of(group).measure("normalized")


def _packet_delay(run: RunValues, group: str, packets: float, statistic: str) -> Floats:
    return run.of(group).packet_delay_ms(packets, statistic)


def _megabytes(run: RunValues, pattern: str) -> float:
    return run.megabytes(pattern)


def _all_samples(run: RunValues, metric: str, start_s: float, end_s: float) -> Floats:
    return run.flow_samples_of_all(metric, start_s, end_s)


def _switched(run: RunValues, flow: str) -> float:
    return run.switched_s(flow)


def _switches(run: RunValues) -> float:
    return run.switches()


def _policed(run: RunValues, group: str, what: str) -> Floats:
    return run.policed(group, what)


def _isolated(run: RunValues, group: str) -> float:
    return run.isolated(group)


def _packets(run: RunValues, flow: str, at_s: float) -> float:
    return run.packets(flow, at_s)


def _end(run: RunValues, flow: str) -> float:
    return run.end_s(flow)


def _first_end(run: RunValues) -> float:
    return run.first_end_s()


def _settled_after(run: RunValues, flow: str, value: float, within: float, start_s: float, end_s: float) -> float:
    """Returns the seconds from `start_s` until a flow's throughput first comes within `within` x `value` of `value`."""
    values = run.flow_samples(flow, start_s, end_s)
    return _first(np.abs(values - value) <= within * value, run.sample_s())


def _above_after(run: RunValues, metric: str, value: float, start_s: float, end_s: float) -> float:
    """Returns the seconds from `start_s` after which a link's samples stay at or above `value`."""
    samples = run.samples(metric, start_s, end_s)
    if not _known(samples):
        return math.nan
    below = np.flatnonzero(samples < value)
    return float(below[-1] + 1) * run.sample_s() if below.size else 0.0


def _first(hits: NDArray[np.bool_], step_s: float) -> float:
    found = np.flatnonzero(hits)
    return float(found[0] + 1) * step_s if found.size else math.inf


def _known(values: Any) -> bool:
    """Whether there are values and none is NaN, which counting and comparing would silently ignore."""
    return np.size(values) > 0 and not np.isnan(values).any()


def _sum(values: Floats) -> float:
    return float(np.sum(values)) if np.size(values) else math.nan


def _count(values: Floats) -> float:
    return float(np.count_nonzero(values)) if _known(values) else math.nan


def _jain(shares: Floats) -> float:
    index = jain(np.asarray(shares, np.float64))
    return math.nan if index is None else index


def _least(*values: Any) -> float:
    return _reduced(np.min, values)


def _largest(*values: Any) -> float:
    return _reduced(np.max, values)


def _reduced(reduce: Callable[[Floats], Any], values: tuple[Any, ...]) -> float:
    everything = np.concatenate([np.atleast_1d(np.asarray(v, np.float64)) for v in values])
    return float(reduce(everything)) if everything.size else math.nan


def _first_value(values: Floats) -> float:
    return float(values[0]) if len(values) else math.nan


def _last_value(values: Floats) -> float:
    return float(values[-1]) if len(values) else math.nan


def _trend(x: Floats, y: Floats) -> float:
    """Returns the exponent k of the best fit y ~ x^k; NaN unless all values are positive."""
    if np.size(x) < 2 or not (np.all(x > 0) and np.all(y > 0)):
        return math.nan
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _minima(values: Floats) -> float:
    """Returns the number of local minima; an end counts if it is below its only neighbour."""
    if not _known(values):
        return math.nan
    falls = np.diff(np.asarray(values, np.float64)) < 0
    before, after = np.concatenate([[True], falls]), np.concatenate([falls, [False]])
    return float(np.count_nonzero(before & ~after))


def _where_least(values: Floats, others: Floats) -> float:
    """Returns the value of `others` at the point where `values` is smallest."""
    return float(np.asarray(others)[int(np.argmin(values))]) if _known(values) else math.nan


FUNCTIONS: dict[str, tuple[int | None, Callable[..., Any]]] = {
    # name: (number of arguments, None for any number; function)
    "min": (None, _least),
    "max": (None, _largest),
    "mean": (1, fct.mean),
    "median": (1, lambda v: float(np.median(v)) if np.size(v) else math.nan),
    "sum": (1, _sum),
    "std": (1, lambda v: float(np.std(v)) if np.size(v) else math.nan),
    "abs": (1, np.abs),
    "log10": (1, np.log10),
    "count": (1, _count),
    "first": (1, _first_value),
    "last": (1, _last_value),
    "changes": (1, lambda v: np.abs(np.diff(v))),
    "trend": (2, _trend),
    "minima": (1, _minima),
    "where_least": (2, _where_least),
    "jain": (1, _jain),
    "samples": (4, _samples),
    "throughput": (4, _throughput),
    "throughputs": (3, _throughputs),
    "window": (4, _window),
    "group": (4, _group),
    "normalized": (2, _normalized),
    "packet_delay": (4, _packet_delay),
    "megabytes": (2, _megabytes),
    "all_samples": (4, _all_samples),
    "switched": (2, _switched),
    "switches": (1, _switches),
    "policed": (3, _policed),
    "isolated": (2, _isolated),
    "packets": (3, _packets),
    "end": (2, _end),
    "first_end": (1, _first_end),
    "settled_after": (6, _settled_after),
    "above_after": (5, _above_after),
    **fct.FUNCTIONS,
    **appendix_f.FUNCTIONS,
    **datacentre.FUNCTIONS,
    **videos.FUNCTIONS,
}

# ---------------------------------------------------------------------------------------------------- evaluation

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: np.divide,
    ast.Pow: np.power,
    ast.BitAnd: operator.and_,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
}
MOST_CHARACTERS = 500


class Expression:
    """A parsed and checked expression."""

    def __init__(
        self,
        text: str,
        runs: Collection[str],
        measures: Collection[str],
        *,
        constants: Collection[str] = (),
        vector: bool = False,
    ) -> None:
        """Parses `text`. Raises `ExpressionError` if it is not in the language.

        `constants` are names of numbers. With `vector`, the result is an array that selects points.
        """
        self.text = spelled(" ".join(text.split()))
        self.vector = vector
        if len(self.text) > MOST_CHARACTERS:
            raise ExpressionError(f"longer than {MOST_CHARACTERS} characters; split the claim")
        try:
            self._tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise ExpressionError(f"not an expression: {error}") from error
        self._runs = frozenset(runs)
        self._constants = frozenset(constants)
        self._measures = frozenset(measures)
        self._check(self._tree)

    def _check(self, node: ast.expr) -> None:  # noqa: PLR0912 - one branch for each form of the language
        match node:
            case ast.Constant(value=bool() | None):
                raise ExpressionError(f'"{ast.unparse(node)}" is not a number')
            case ast.Constant(value=int() | float() | str()):
                return
            case ast.Name(id=name):
                if name != "x" and name not in self._runs | self._constants:
                    known = ", ".join(sorted(self._runs | self._constants))
                    raise ExpressionError(f'"{name}" is unknown; here are x, {known}')
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                self._check(node.value)
                if name not in self._runs or attribute not in self._measures:
                    raise ExpressionError(
                        f'"{name}.{attribute}" is not a measure; there are {", ".join(sorted(self._measures))}'
                    )
            case ast.Subscript(value=value, slice=index) if not isinstance(index, ast.Slice | ast.Tuple):
                self._check(value)
                self._check(index)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                if isinstance(op, ast.Pow) and not isinstance(right, ast.Constant):
                    raise ExpressionError("the exponent must be a number")
                self._check(left)
                self._check(right)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                self._check(operand)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARE:
                self._check(left)
                self._check(right)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                if name not in FUNCTIONS:
                    raise ExpressionError(f'"{name}" is not a function; there are {", ".join(sorted(FUNCTIONS))}')
                wanted = FUNCTIONS[name][0]
                if wanted is not None and len(arguments) != wanted:
                    raise ExpressionError(f"{name} takes {wanted} arguments, not {len(arguments)}")
                for argument in arguments:
                    self._check(argument)
            case _:
                raise ExpressionError(
                    f'"{ast.unparse(node)}" is not allowed here: numbers, runs, their measures and functions are'
                )

    def evaluate(self, runs: Mapping[str, RunValues], x: Floats, constants: Mapping[str, float] | None = None) -> Any:
        """Returns the value: a number, or an array for a `vector` expression.

        Raises `ExpressionError` if it cannot be evaluated or is not a single number.
        """
        try:
            with np.errstate(all="ignore"):
                value = self._value(self._tree, {**runs, **(constants or {})}, x)
        except (TypeError, ValueError, IndexError, KeyError, ArithmeticError) as error:
            raise ExpressionError(f'"{self.text}" cannot be evaluated: {error}') from error
        if self.vector:
            return np.asarray(value)
        if np.size(value) != 1:
            raise ExpressionError(
                f'"{self.text}" is {np.size(value)} numbers; a claim measures one: use min, max, mean, ...'
            )
        return float(np.asarray(value, np.float64).reshape(-1)[0])

    def _value(self, node: ast.expr, runs: Mapping[str, Any], x: Floats) -> Any:
        """Evaluates a node. An empty array raises `ValueError`, because a sum over nothing would satisfy any claim."""
        value = self._part(node, runs, x)
        if isinstance(value, np.ndarray) and not value.size:
            raise ValueError(f"{ast.unparse(node)} selects nothing")
        return value

    def _part(self, node: ast.expr, runs: Mapping[str, Any], x: Floats) -> Any:
        match node:
            case ast.Constant(value=str() as text):
                return text
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.Name(id="x"):
                return x
            case ast.Name(id=name):
                return runs[name]
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                return runs[name].measure(attribute)
            case ast.Subscript(value=value, slice=index):
                at = self._value(index, runs, x)
                return np.asarray(self._value(value, runs, x))[int(at) if isinstance(at, float) else at]
            case ast.BinOp(left=left, op=op, right=right):
                return _BINARY[type(op)](self._value(left, runs, x), self._value(right, runs, x))
            case ast.UnaryOp(operand=operand):
                return -self._value(operand, runs, x)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                sides = self._value(left, runs, x), self._value(right, runs, x)
                if not all(map(_known, sides)):
                    raise ValueError(f"{ast.unparse(node)} compares a value that is not a number")
                return _COMPARE[type(op)](*sides)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return FUNCTIONS[name][1](*(self._value(a, runs, x) for a in arguments))
        raise AssertionError(f"{ast.dump(node)} passed the check")


# ---------------------------------------------------------------------------------------------------- bounds


@dataclass(frozen=True)
class Bound:
    """The value that the paper expects: `>=`, `<=`, `>`, `<` or `==` a number, with a tolerance."""

    relation: str
    value: float
    slack: float
    expected: str
    tolerance: str

    @classmethod
    def parse(cls, expected: str, tolerance: str) -> Bound:
        """Parses a bound with an absolute ("0.02") or relative ("5%") tolerance. Raises `ValueError` if invalid."""
        bound = re.fullmatch(r"(>=|<=|==|>|<)\s*(-?[0-9.]+(?:[eE][+-]?\d+)?)", expected.strip())
        if bound is None:
            raise ValueError('a bound such as ">= 0.95", with >=, <=, ==, > or <')
        off = re.fullmatch(r"([0-9.]+(?:[eE][+-]?\d+)?)(%?)", tolerance.strip())
        if off is None:
            raise ValueError('a tolerance such as "0", "0.02" or "5%"')
        value = float(bound[2])
        slack = float(off[1]) / 100 * abs(value) if off[2] else float(off[1])
        return cls(bound[1], value, slack, expected, tolerance)

    def holds(self, measured: float | None) -> bool:
        """Whether a measured value satisfies the bound; None, NaN and infinite values do not."""
        if measured is None or not math.isfinite(measured):
            return False
        match self.relation:
            case ">=":
                return measured >= self.value - self.slack
            case "<=":
                return measured <= self.value + self.slack
            case ">":
                return measured > self.value - self.slack
            case "<":
                return measured < self.value + self.slack
            case _:
                return abs(measured - self.value) <= self.slack
