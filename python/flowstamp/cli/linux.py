# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp host`, `router` and `lab`: commands of the program `flowstamp-linux`."""

from __future__ import annotations

import typer

AS_IT_IS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""typer settings that pass all arguments on to the program."""


def host(context: typer.Context) -> None:
    """Make TCP of this host obey routers: enable, disable, status. Linux; see flowstamp host --help."""
    _linux("host", context)


def router(context: typer.Context) -> None:
    """Stamp an interface's packets: attach, status, police, share. Linux; see flowstamp router --help."""
    _linux("router", context)


def lab(context: typer.Context) -> None:
    """Run real applications over an emulated path: run, clean. Linux; see flowstamp lab --help."""
    _linux("lab", context)


def _linux(command: str, context: typer.Context) -> None:
    from flowstamp import linux

    linux.call(command, context.args)
