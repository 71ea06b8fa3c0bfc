# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What can go wrong. Every error of the package is a `FlowstampError` and says itself in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class FlowstampError(Exception):
    """Base of every error of this package: one line that says what is wrong and what would be right."""


class ScenarioError(FlowstampError, ValueError):
    """Bad input: names the source, the key, the value and what would be right."""


class ScenarioWarning(UserWarning):
    """A scenario says what it probably does not mean: names the source, the key, the value and what would be right."""


class ResultsWarning(UserWarning):
    """Results say less than they seem to, or some that were kept cannot be used: says which, and what follows."""


class OutputError(FlowstampError, OSError):
    """Results could not be written: names the path and the reason."""


class ResultsError(FlowstampError, LookupError):
    """Something was asked of results that they do not hold."""


class TheoryError(FlowstampError, ValueError):
    """A formula, a server or a statistic has no answer to what was asked: says why."""


class UsageError(FlowstampError):
    """A command line that does not say what to do."""


class ExecutorError(FlowstampError):
    """Runs could not be done where they were to be: says where, and what would help."""


class MissingPackageError(FlowstampError, ImportError):
    """An optional package is needed that is not installed."""


def one_line(text: object) -> str:
    """`text` without line breaks."""
    return " ".join(str(text).split())


@contextmanager
def translated() -> Iterator[None]:
    """Turns the native module's errors into those of this package."""
    from flowstamp import _flowstamp

    try:
        yield
    except _flowstamp.ScenarioError as error:
        raise ScenarioError(one_line(error)) from None
    except _flowstamp.OutputError as error:
        raise OutputError(one_line(error)) from None
    except _flowstamp.TheoryError as error:
        raise TheoryError(one_line(error)) from None
