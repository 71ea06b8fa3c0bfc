# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The papers' figures as an executable specification: each a TOML file with scenario, picture and claims."""

from flowstamp.figures.command import cli_figure
from flowstamp.figures.runner import Outcome, Runner, Verdict
from flowstamp.figures.spec import FigureError, FigureSpec, available, load, read

__all__ = ["FigureError", "FigureSpec", "Outcome", "Runner", "Verdict", "available", "cli_figure", "load", "read"]
