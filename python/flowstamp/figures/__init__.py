# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The papers' figures as an executable specification. Each figure is a TOML file with scenario, picture and claims."""

from flowstamp.figures.catalogue import available, load, read
from flowstamp.figures.command import cli_figure
from flowstamp.figures.runner import Runner
from flowstamp.figures.spec import FigureSpec
from flowstamp.figures.tables import FigureError
from flowstamp.figures.verdicts import Outcome, Verdict

__all__ = ["FigureError", "FigureSpec", "Outcome", "Runner", "Verdict", "available", "cli_figure", "load", "read"]
