# SPDX-License-Identifier: Apache-2.0 OR MIT
"""HTML and PNG representations of scenarios, results, sweeps and tables for notebooks."""

from __future__ import annotations

import base64
import io
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from flowstamp import frames, overview
from flowstamp.errors import FlowstampError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flowstamp._flowstamp import Table
    from flowstamp.results import Results
    from flowstamp.scenario import Scenario
    from flowstamp.sweeps import Sweep


def scenario(shown: Scenario) -> str:
    """Returns network and flows as HTML, with the resolved TOML folded. An invalid scenario shows its error message."""
    try:
        resolved, toml = shown.resolved(), shown.to_toml()
    except FlowstampError as error:
        return f"<p><b>{escape(shown.source)}</b>: {escape(str(error))}</p>" + _picture(scenario_png(shown))
    title = f"{resolved.get('name') or 'Scenario'}: {resolved['duration']}, seed {resolved['seed']}"
    parts = [_title(title)]
    for kind in ("dumbbell", "parking_lot", "graph"):
        if kind in resolved:
            links = resolved[kind].get("links") or [resolved[kind]]
            keys = ("from", "to", "rate", "rates", "delay", "rtt", "buffer", "queue", "router")
            parts.append(_things(kind.replace("_", " "), links, keys))
    if resolved.get("wireless"):
        parts.append(_things("cell", resolved["wireless"], ("name", "standard", "queue", "router")))
    of_flows = ("name", "law", "count", "start", "every", "spread", "rtt", "size", "rate", "web", "list")
    parts.append(_things("flows", resolved["flows"], of_flows))
    parts.append(_picture(scenario_png(shown)))
    parts.append(f"<details><summary>TOML, with every default</summary><pre>{escape(toml)}</pre></details>")
    return "".join(parts)


def scenario_png(shown: Scenario) -> bytes | None:
    """Draws the network as PNG; None if the scenario is invalid or the network too large to draw."""
    from flowstamp import drawing

    return _png(lambda: drawing.scenario(shown))


def results(shown: Results) -> str:
    """Returns the tables of links and groups, and the picture of `Results.plot`, as HTML."""
    summary = shown.summary
    return "".join(
        [
            _title(f"{summary['name'] or 'run'}: {summary['duration_s']:g} s, seed {summary['seed']}"),
            _table(*overview.links(shown)),
            _table(*overview.groups(shown)),
            _picture(results_png(shown)),
        ]
    )


def results_png(shown: Results) -> bytes | None:
    """Draws `Results.plot` as PNG; None if the run sampled nothing to draw."""
    return _png(shown.plot)


def sweep(shown: Sweep) -> str:
    """Returns utilisation, queue and goodput of each point, and the picture of `sweep_png`, as HTML."""
    title = f"Sweep of {len(shown.points)} runs over {', '.join(shown.keys)}"
    return "".join([_title(title), _table(*overview.points(shown)), _picture(sweep_png(shown))])


def sweep_png(shown: Sweep) -> bytes | None:
    """Draws the utilisation as PNG: a heatmap if two keys vary, lines otherwise, None if no key varies."""
    return _png(shown.heatmap) or _png(shown.lines)


def table(shown: Table) -> str:
    """Returns the first and last rows of a table as HTML."""
    return _table(shown.column_names, frames.shown(shown)) + f"<p>{frames.size(shown)}</p>"


def _png(draw: Any) -> bytes | None:
    try:
        figure: Figure = draw()
    except FlowstampError:
        return None
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=150)
    return data.getvalue()


def _picture(png: bytes | None) -> str:
    if png is None:
        return ""
    # The picture is shown at half its pixels, for displays with twice the resolution.
    return f'<img style="max-width: 495px" src="data:image/png;base64,{base64.b64encode(png).decode()}">'


def _title(title: str) -> str:
    return f"<p><b>{escape(title)}</b></p>"


def _things(what: str, tables: Sequence[Mapping[str, Any]], keys: Iterable[str]) -> str:
    """Formats tables of a scenario as rows. Columns are the keys that are set in at least one of them."""
    said = [key for key in keys if any(one.get(key) not in (None, False, "none") for one in tables)]
    rows = [[str(number), *(_value(one.get(key)) for key in said)] for number, one in enumerate(tables, 1)]
    return _table([what, *said], rows)


def _value(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping) and (name := value.get("law") or value.get("kind")):
        return str(name)
    return value if isinstance(value, str) else json.dumps(value)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    lines = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(itertools.chain.from_iterable(("<tr>", line, "</tr>") for line in lines))
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
