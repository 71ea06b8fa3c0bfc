# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Exceptions and warnings. Every error of the package is a `FlowstampError` with a one-line message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class FlowstampError(Exception):
    """Base class of this package's errors. The message is one line: what is wrong and what would be right."""


class ScenarioError(FlowstampError, ValueError):
    """Invalid input. The message names the source, the key, the value and what would be right."""


class ScenarioWarning(UserWarning):
    """A scenario is valid but probably not intended. The message names the source, the key and the value."""


class ResultsWarning(UserWarning):
    """Results carry less information than they seem to, or a cached result is unusable."""


class OutputError(FlowstampError, OSError):
    """Results could not be written. The message names the path and the reason."""


class ResultsError(FlowstampError, LookupError):
    """The results do not contain the requested data."""


class TheoryError(FlowstampError, ValueError):
    """A formula, an ideal server or a statistic is undefined for the given arguments."""


class UsageError(FlowstampError):
    """The command line is invalid."""


class ExecutorError(FlowstampError):
    """The chosen executor (processes or Dask) could not do the runs. The message says where and what would help."""


class MissingPackageError(FlowstampError, ImportError):
    """A required optional package is not installed."""


def one_line(text: object) -> str:
    """Returns `text` on one line, with runs of white space as single spaces."""
    return " ".join(str(text).split())


@contextmanager
def translated() -> Iterator[None]:
    """Converts the native module's errors to those of this package."""
    from flowstamp import _flowstamp

    try:
        yield
    except _flowstamp.ScenarioError as error:
        raise ScenarioError(one_line(error)) from None
    except _flowstamp.OutputError as error:
        raise OutputError(one_line(error)) from None
    except _flowstamp.TheoryError as error:
        raise TheoryError(one_line(error)) from None
