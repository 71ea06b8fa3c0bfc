# SPDX-License-Identifier: Apache-2.0 OR MIT
"""How scenarios, results, sweeps and tables show themselves in a notebook."""

from __future__ import annotations

import base64
import io
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from flowstamp import overview
from flowstamp.errors import FlowstampError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flowstamp.results import Results, Table
    from flowstamp.scenario import Scenario
    from flowstamp.sweeps import Sweep

ROWS = 10
"""Of a table, as many as are shown: the first and the last."""


def scenario(shown: Scenario) -> str:
    """The network and the flows; behind a click the whole with every default. What is wrong with it, in its line."""
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
    """The drawing of its network; none of one that is wrong, or too large to be seen."""
    from flowstamp import drawing

    return _png(lambda: drawing.scenario(shown))


def results(shown: Results) -> str:
    """Links and groups, and the picture of `plot`."""
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
    """The picture of `plot`; none of a run that sampled nothing to draw."""
    return _png(shown.plot)


def sweep(shown: Sweep) -> str:
    """Utilisation, queue and goodput of each point, and the picture of `sweep_png`."""
    title = f"Sweep of {len(shown.points)} runs over {', '.join(shown.keys)}"
    return "".join([_title(title), _table(*overview.points(shown)), _picture(sweep_png(shown))])


def sweep_png(shown: Sweep) -> bytes | None:
    """Utilisation: a heatmap where two keys vary, else lines; none where nothing does."""
    return _png(shown.heatmap) or _png(shown.lines)


def table(shown: Table) -> str:
    """Its first and last rows."""
    count, names = shown.num_rows, shown.column_names
    columns = [shown.column(name) for name in names]
    numbers = range(count) if count <= ROWS else [*range(ROWS // 2), *range(count - ROWS // 2, count)]
    rows = [[_value(column[row]) for column in columns] for row in numbers]
    if count > ROWS:
        rows.insert(ROWS // 2, ["..."] * len(names))
    return _table(names, rows) + f"<p>{count} rows, {len(names)} columns</p>"


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
    # Half of its points, as displays of twice the resolution want it.
    return f'<img style="max-width: 495px" src="data:image/png;base64,{base64.b64encode(png).decode()}">'


def _title(title: str) -> str:
    return f"<p><b>{escape(title)}</b></p>"


def _things(what: str, tables: Sequence[Mapping[str, Any]], keys: Iterable[str]) -> str:
    """Tables of a scenario, a row each: of keys those that say something."""
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
