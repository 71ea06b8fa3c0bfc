# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp quic`: the command of the program `flowstamp-quic`."""

from __future__ import annotations

import typer

AS_IT_IS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""typer settings that pass all arguments on to the program."""


def quic(context: typer.Context) -> None:
    """Send files by HTTP/3 under the simulator's laws, without root. See flowstamp quic --help."""
    from flowstamp import quic as of_quic

    of_quic.call(context.args)
