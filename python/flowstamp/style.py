# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The style of all pictures: sizes, fonts, colours, markers, line styles, and the numbers on axes.

Pictures have the width of a paper's column and fonts that stay legible there and on a phone. The colours are those of
Okabe and Ito, which colour-blind readers can distinguish, and darker ones that differ from them in lightness. Each
curve has its own marker and line style, for grey prints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath
from matplotlib.ticker import Locator, LogLocator, MaxNLocator

COLUMN_WIDTH_IN = 3.3  # one column of the ACM and IEEE two-column formats
PANEL_HEIGHT_IN = 1.35

# Okabe and Ito, Color Universal Design, without yellow, which is too pale for a line on white. Then Tol's wine, olive
# and indigo, so that a full legend repeats no colour.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#882255", "#999933", "#332288")
PUBLISHED_COLOURS = ("#000000", *COLOURS)
# More markers than colours: when colours repeat, markers and line styles differ.
MARKERS = ("o", "s", "^", "D", "v", "x", "+", "d", "<", ">", "p", "h", "P", "X")
PUBLISHED = "*"
"""The marker of published values, which nothing else has."""
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (7, 2)), (0, (1, 1)))

STYLE: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 7.0,
    "figure.titlesize": 8.0,
    "figure.titleweight": "bold",
    "axes.titlesize": 7.0,
    "axes.labelsize": 7.0,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.2,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "text.usetex": False,
    "pdf.fonttype": 42,  # embeds TrueType fonts, so that text in the PDF can be searched
    "figure.dpi": 200,
    "savefig.dpi": 200,
}


def powers(low: float, high: float) -> Locator:
    """Places the numbers of a logarithmic axis at powers of ten; below two decades, also at 2 and 5 times these.

    Where these are fewer than three, numbers have equal distances, so that every axis has some.
    """
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high))) if 0 < low < high else ()
    if sum(low <= factor * 10.0**decade <= high for decade in decades for factor in (1, 2, 5)) < 3:
        return MaxNLocator(5)
    return LogLocator(subs=(1.0,) if high > 100 * low else (1.0, 2.0, 5.0))


MOST_ENTRIES = 8  # maximum entries of a legend; further curves are grey
LEGEND_ROW_PT = 10.5
ROW_CHARACTERS = 54  # characters of a panel's title and its legend, if they share a row
TITLE_CHARACTERS = 48  # characters of a picture's bold title per line
LEGEND_WIDTH_PT = 218.0  # of the figure's 237.6; the rest is right of the axes
LEGEND_SPACING = {"columnspacing": 0.8, "handletextpad": 0.4, "borderaxespad": 0.1}  # in font sizes


def width_pt(text: str, size: float) -> float:
    """Returns the width of a text in points, in the font of all pictures."""
    if not text.strip():
        return 0.0  # an empty path has no extents
    return float(
        TextPath((0, 0), text, size=size, prop=FontProperties(family=STYLE["font.family"])).get_extents().width
    )


def legend_columns(labels: Sequence[str]) -> int:
    """Returns how many legend columns fit side by side. Matplotlib fills a legend column by column."""
    size = STYLE["legend.fontsize"]
    handle = (STYLE["legend.handlelength"] + LEGEND_SPACING["handletextpad"]) * size
    between = LEGEND_SPACING["columnspacing"] * size
    widths = [handle + width_pt(label, size) for label in labels]
    for columns in range(len(labels), 1, -1):
        longest, more = divmod(len(labels), columns)  # the first columns have one entry more
        ends = list(accumulate(longest + (column < more) for column in range(columns)))
        taken = sum(max(widths[first:end]) for first, end in zip([0, *ends], ends, strict=False))
        if taken + between * (columns - 1) <= LEGEND_WIDTH_PT:
            return columns
    return 1


def in_lines(label: str, room_pt: float) -> str:
    """Divides the label of an axis into two lines if it is wider than the axis."""
    size = STYLE["axes.labelsize"]
    spaces = [n for n, letter in enumerate(label) if letter == " "]
    if not spaces or width_pt(label, size) <= room_pt:
        return label
    # A unit stays whole.
    middle = min(spaces, key=lambda n: (label[:n].count("(") != label[:n].count(")"), abs(n - len(label) / 2)))
    return f"{label[:middle]}\n{label[middle + 1 :]}"


def plain(value: float, _: object = None) -> str:
    """Formats a number of an axis."""
    return f"{value:g}".replace("e+0", "e").replace("e-0", "e-")


def short(value: float, _: object = None) -> str:
    """Formats a number with three digits for a small cell: 0.984, 16.3k, 1.63M."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * factor and abs(value) >= 9995:
            return f"{value / factor:.3g}{prefix}"
    return plain(float(f"{value:.3g}"))
