# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The command `flowstamp`: its subcommands, options and exit codes.

Standard output carries only the results, and with `--json` only one document. Progress and messages go to standard
error. Exit codes: 0 success; 1 a claim does not hold; 2 invalid input or an output error, with a one-line message, or
the help if there is no subcommand; 130 interrupted.
"""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from typing import Annotated

import typer

from flowstamp import streams
from flowstamp.cli.common import say
from flowstamp.errors import FlowstampError, ResultsWarning, ScenarioWarning, one_line

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130
COMPLETION = "_FLOWSTAMP_COMPLETE"
"""The environment variable by which a shell asks for completions."""


def _version(value: bool) -> None:
    if value:
        from flowstamp import _flowstamp

        say(f"flowstamp {_flowstamp.__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    del version


LINUX = ("host", "router", "lab")
COMMANDS = (
    *("run", "compare", "sweep", "figure", "demo", "examples", "stability", "doctor", "web"),
    *LINUX,
    *("quic", "schema", "dissector"),
)


def _app(wanted: Iterable[str]) -> typer.Typer:
    """Builds the command with the wanted subcommands only, because importing all of them takes longer."""
    app = typer.Typer(
        name="flowstamp",
        callback=_root,
        help=(
            "Explicit-feedback congestion control: routers stamp feedback into packets, and senders obey it. "
            "Simulate it, compare it, reproduce the papers' figures, and run it on Linux."
        ),
        epilog="Start with flowstamp demo, and then flowstamp examples mine.",
        add_completion=True,
        rich_markup_mode=None,  # plain help and one-line errors, no boxes
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name in wanted:
        module = import_module(f"flowstamp.cli.{'linux' if name in LINUX else name}")
        app.command(context_settings=getattr(module, "AS_IT_IS", None))(getattr(module, name))
    return app


def run_command(arguments: Sequence[str]) -> int:
    """Runs the command with these arguments and returns its exit code. Reports every expected error in one line."""
    if not arguments and COMPLETION not in os.environ:
        # A script that forgets the subcommand must not go on: the help is an error message here.
        with redirect_stdout(sys.stderr):
            run_command(["--help"])
        return EXIT_BAD_INPUT
    try:
        with warnings.catch_warnings():
            for kind in (ScenarioWarning, ResultsWarning):
                warnings.simplefilter("always", kind)
            warnings.showwarning = _warn
            app = _app(arguments[:1] if set(COMMANDS).intersection(arguments[:1]) else COMMANDS)
            code = app(args=list(arguments), prog_name="flowstamp", standalone_mode=False)
        sys.stdout.flush()
    except FlowstampError as error:
        return _fail(one_line(error))
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except OSError as error:
        streams.output_failed(error)
        return EXIT_BAD_INPUT
    except Exception as error:
        # typer's usage errors: not all versions have a public base class for them.
        told = getattr(error, "format_message", None)
        if told is None:
            raise
        where = getattr(getattr(error, "ctx", None), "command_path", "flowstamp")
        return _fail(_usage(one_line(told()), where))
    if code == EXIT_INTERRUPTED:
        return _interrupted()  # typer turns KeyboardInterrupt into this code
    return int(code or 0)


NUMBERS = (
    (r"is not a valid int(?:eger)?(?: range)?", r"is not a whole number"),
    (r"is not a valid float(?: range)?", r"is not a number"),
    (r"is not in the range x>=(\S+)", r"is too small; use at least \1"),
    (r"is not in the range (\S+)<=x<=(\S+)", r"is out of range; use \1 to \2"),
)
"""Patterns of typer's messages about numbers, each with a plainer message."""


def _usage(message: str, command: str) -> str:
    message = re.sub(r"^Invalid value for '(--[\w-]+)'", r"\1", message.rstrip("."))
    for theirs, ours in NUMBERS:
        message = re.sub(rf"{theirs}$", ours, message)
    return f"{message}; see {command} --help" if message else f"see {command} --help"


def _fail(message: str) -> int:
    streams.tell(f"flowstamp: {message}")
    return EXIT_BAD_INPUT


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    streams.tell(f"flowstamp: warning: {one_line(message)}")


def _interrupted() -> int:
    streams.tell("interrupted")
    return EXIT_INTERRUPTED
