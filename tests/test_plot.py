# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Pictures: axes as the papers have them, and files that are whole and always the same."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import numpy as np
import pytest
from matplotlib.text import Text

from flowstamp import plot, style
from flowstamp.figures import Runner, available, read
from flowstamp.figures.spec import FigureSpec

LINE = plot.Curve("a", np.array([1.0, 2.0]), np.array([3.0, 4.0]))


def test_x10_has_the_papers_axes() -> None:
    runner = Runner(fast=True)
    spec = runner.figure("X10")
    runner.run(spec, None)
    axes = runner.draw(spec).axes
    assert [ax.get_ylabel() for ax in axes] == ["Throughput (Mb/s)", "Utilisation", "Queue (packets)"]
    assert axes[-1].get_xlabel() == "Time (s)"
    # The first has five flows and their fair share.
    assert [len(ax.lines) for ax in axes] == [6, 2, 1]  # the second has the bound of a claim


def test_the_same_picture_is_the_same_file(tmp_path: Path) -> None:
    spec = plot.Stack("x (s)", [plot.Panel("y (ms)", [LINE])])
    first = [path.read_bytes() for path in plot.save(plot.stack(spec), tmp_path / "a")]
    second = [path.read_bytes() for path in plot.save(plot.stack(spec), tmp_path / "b")]
    assert first == second
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pdf", "a.png", "b.pdf", "b.png"]


def test_a_picture_that_is_saved_can_go_on_changing(tmp_path: Path) -> None:
    """It is laid out once for both formats, and anew the next time."""
    figure = plot.stack(plot.Stack("x (s)", [plot.Panel("y (ms)", [LINE])]))
    engine = figure.get_layout_engine()
    assert engine is not None
    plot.save(figure, tmp_path / "a")
    assert figure.get_layout_engine() is engine
    left = figure.axes[0].get_position().x0
    figure.axes[0].set_ylabel("two\nlines")
    plot.save(figure, tmp_path / "a")
    assert figure.axes[0].get_position().x0 > left


def test_a_picture_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(plot.PlotError, match="cannot write the picture"):
        plot.save(plot.stack(plot.Stack("x", [plot.Panel("y", [LINE])])), tmp_path / "file" / "a")


def test_a_line_of_one_point_can_be_seen() -> None:
    curves = [plot.Curve("one", np.array([30.0]), np.array([0.8])), LINE]
    axis = plot.Axis("x", markers=False)
    [ax] = plot.stack(plot.Stack("x", [plot.Panel("y", curves, axis=axis)])).axes
    assert [line.get_marker() for line in ax.lines] == [style.MARKERS[0], "None"]


def test_averages_end_where_their_interval_ends() -> None:
    t, v = plot.averaged(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([0.0, 2.0, 4.0, 6.0, 9.0]), 2.0)
    assert t.tolist() == [2.0, 4.0]
    assert v.tolist() == [1.0, 5.0]


@pytest.mark.parametrize(
    "labels", [["XCP"], ["XCP", "Reno, RED", "Reno, CSFQ", "Reno, REM", "Reno, AVQ"], ["x" * 40] * 3]
)
def test_a_title_stands_above_or_beside_its_legend(labels: list[str]) -> None:
    curves = [plot.Curve(f"{label} {n}", LINE.x, LINE.y, style=n) for n, label in enumerate(labels)]
    figure = plot.stack(plot.Stack("x", [plot.Panel("y", curves, title="RTT 40, 50, ... 330 ms", legend=True)]))
    figure.draw_without_rendering()
    [ax] = figure.axes
    legend = ax.get_legend()
    assert legend is not None
    titles = [text for text in cast("list[Text]", ax.findobj(Text)) if text.get_text().startswith("RTT")]
    entries = [text.get_window_extent() for text in legend.get_texts()]
    above = [title.get_window_extent().y0 >= legend.get_window_extent().y1 for title in titles]
    beside = [title.get_window_extent().x1 + 20 < min(entry.x0 for entry in entries) for title in titles]
    assert [one or other for one, other in zip(above, beside, strict=True)] == [True]


def test_a_panel_without_a_legend_colours_only_what_the_legend_above_names() -> None:
    """V5's panel of drop rates had a coloured curve that no legend named, because stars took an entry above."""
    curves = [plot.Curve(f"c{n}", LINE.x, LINE.y, style=n) for n in range(10)]
    star = plot.Curve("paper", LINE.x, LINE.y, published=True)
    panels = [plot.Panel("y", [*curves, star], legend=True), plot.Panel("z", curves, legend=False)]
    first, second = plot.stack(plot.Stack("x", panels)).axes
    legend = first.get_legend()
    assert legend is not None
    coloured = {text.get_text() for text in legend.get_texts()} - {"others", "paper"}
    drawn = [line.get_color() for line in second.get_lines() if len(np.atleast_1d(line.get_xdata())) == LINE.x.size]
    assert len(drawn) == 10
    assert sum(colour != "#bbbbbb" for colour in drawn) == len(coloured) == 6


def test_no_line_of_a_title_is_one_short_word() -> None:
    for path in available().values():
        spec = read(path)
        title = f"{spec.id}: {spec.title}"
        lines = plot.title_lines(title)
        assert "".join(lines).replace(" ", "") == title.replace(" ", "")
        assert len(lines) == 1 or len(lines[-1]) > plot.SHORT_WORD, title
        assert max(map(len, lines)) <= style.TITLE_CHARACTERS


V3 = ["VCP", "XCP", "Reno", "SACK", "HSTCP", "H-TCP", "others", "paper, other schemes: above 4%"]
ABC = ["ABC", "ABC, authors' emulation", "XCP", "XCP, told the rate of 20 ms", "XCPw", "XCPw, authors' emulation"]


@pytest.mark.parametrize("labels", [V3, ABC, [*ABC, "RCP"], ["W" * 30, "i"] * 4, ["", "XCP"]])
def test_a_legend_stays_within_the_picture_and_beside_the_axis_label(labels: list[str]) -> None:
    curves = [plot.Curve(f"{label}{' ' * n}", LINE.x, LINE.y, style=n) for n, label in enumerate(labels)]
    panel = plot.Panel("Mean queue (of the buffer)", curves, legend=True)
    figure = plot.stack(plot.Stack("x", [panel], title="a title"))
    figure.draw_without_rendering()
    [ax] = figure.axes
    legend = ax.get_legend()
    assert legend is not None
    box, label = legend.get_window_extent(), ax.yaxis.label.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    assert label.height <= ax.get_window_extent().height
    assert label.y1 <= box.y0


def test_every_label_of_a_figure_fits_into_a_legend() -> None:
    size = style.STYLE["legend.fontsize"]
    handle = (style.STYLE["legend.handlelength"] + style.LEGEND_SPACING["handletextpad"]) * size
    for name, spec in specs().items():
        labels = [run.label for run in spec.runs]
        labels += [marks.label for panel in spec.draw.panels for marks in panel.published]
        for label in labels:
            width = handle + style.width_pt(label, size)
            assert width <= style.LEGEND_WIDTH_PT, f"{name}: {label}"


def specs() -> dict[str, FigureSpec]:
    return {name: read(path) for name, path in available().items()}


def test_a_long_legend_makes_the_picture_higher_and_not_its_axes_lower() -> None:
    heights = []
    for count in (1, 8):
        curves = [plot.Curve(f"a law with a long name {n}", LINE.x, LINE.y, style=n) for n in range(count)]
        figure = plot.stack(plot.Stack("x", [plot.Panel("y", curves, title="a title", legend=True)]))
        figure.draw_without_rendering()
        heights.append(figure.axes[0].get_window_extent().height)
    assert heights[1] == pytest.approx(heights[0], rel=0.05)


def test_a_legend_has_at_most_eight_entries_and_published_values_have_one() -> None:
    ours = [plot.Curve(f"flow {n}", LINE.x, LINE.y, style=n) for n in range(12)]
    theirs = plot.Curve("paper", LINE.x, LINE.y, published=True)
    [ax] = plot.stack(plot.Stack("x", [plot.Panel("y", [*ours, theirs], legend=True)])).axes
    _, labels = ax.get_legend_handles_labels()
    assert labels == [*(f"flow {n}" for n in range(6)), "others", "paper"]
    grey = [line for line in ax.lines if line.get_color() == "#bbbbbb"]
    assert len(grey) == 6
    [ax] = plot.stack(plot.Stack("x", [plot.Panel("y", ours[:8], legend=True)])).axes
    assert len(ax.get_legend_handles_labels()[1]) == 8


def test_published_values_have_a_marker_of_their_own() -> None:
    assert style.PUBLISHED not in style.MARKERS
    curves = [plot.Curve(f"{n}", LINE.x, LINE.y, n, published=True) for n in range(3)]
    [ax] = plot.stack(plot.Stack("x", [plot.Panel("y", curves)])).axes
    assert [line.get_marker() for line in ax.lines] == [style.PUBLISHED] * 3
    assert len({line.get_color() for line in ax.lines}) == 3


def test_a_panel_shows_bounds_and_what_became_of_its_claims() -> None:
    panel = plot.Panel("y", [LINE], bounds=[(3.5, 3.5), (3.0, 3.2)], corner=("holds", True))
    [ax] = plot.stack(plot.Stack("x", [panel])).axes
    assert [line.get_ydata() for line in ax.lines if line.get_linestyle() == "--"] == [[3.5, 3.5]]
    assert len(ax.patches) == 1
    assert [text.get_text() for text in ax.texts] == ["holds"]
    # A logarithmic axis has no place for a bound of zero.
    [ax] = plot.stack(plot.Stack("x", [plot.Panel("y", [LINE], yscale="log", bounds=[(0.0, 0.0)])])).axes
    assert len(ax.lines) == 1


def test_a_full_legend_repeats_no_colour() -> None:
    assert len(set(style.COLOURS)) == len(style.COLOURS) >= style.MOST_ENTRIES
    curves = [plot.Curve(f"{n}", LINE.x, LINE.y, n) for n in range(style.MOST_ENTRIES)]
    [ax] = plot.stack(plot.Stack("x", [plot.Panel("y", curves)])).axes
    assert len({line.get_color() for line in ax.lines}) == style.MOST_ENTRIES


@pytest.mark.parametrize(("low", "high"), [(20.5, 44.0), (0.011, 0.019), (1.0, 70.0), (1e-3, 1e3)])
def test_a_logarithmic_axis_has_numbers(low: float, high: float) -> None:
    curve = plot.Curve("a", np.array([low, high]), np.array([0.0, 1.0]))
    figure = plot.stack(plot.Stack("x", [plot.Panel("y", [curve])], xscale="log", markers=False))
    figure.draw_without_rendering()
    [ax] = figure.axes
    shown = [tick.label1.get_text() for tick in ax.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    assert len([label for label in shown if label]) >= 2


def test_a_heat_map_has_numbers_that_a_person_reads() -> None:
    values = np.array([[163.0, 16_300.0], [1_630_000.0, 0.0]])
    figure = plot.heatmap(values, ("x", ["1", "2"]), ("y", ["1", "2"]), "Mean queue (bytes)", "Mean queue of a")
    figure.draw_without_rendering()
    ax, bar = figure.axes
    assert [text.get_text() for text in ax.texts] == ["163", "16.3k", "1.63M", "0"]
    assert not any("e+" in tick.get_text() for tick in bar.get_yticklabels())
    assert "1M" in [tick.get_text() for tick in bar.get_yticklabels()]
