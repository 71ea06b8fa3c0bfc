# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Tables of results as arrays, rows, text, and frames of pandas and polars."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from flowstamp.errors import MissingPackageError
from flowstamp.names import nearest

if TYPE_CHECKING:
    import numpy as np
    import pandas
    import polars
    from numpy.typing import NDArray

    from flowstamp._flowstamp import Table

ROWS = 10
"""Number of rows shown of a table, half from its start and half from its end."""


def column(table: Table, name: str) -> NDArray[np.float64] | list[Any]:
    """Returns a column: a float64 array with NaN where a value is missing, or a list if it has strings."""
    import numpy as np

    if name not in table.column_names:
        raise KeyError(nearest(name, table.column_names, "is not a column"))
    try:
        return np.frombuffer(table.numbers(name))
    except TypeError:
        return table.column(name)


def rows(table: Table) -> Iterator[dict[str, Any]]:
    """Iterates over the rows as dictionaries, with None where a value is missing."""
    names = table.column_names
    for values in zip(*(table.column(name) for name in names), strict=True):
        yield dict(zip(names, values, strict=True))


def to_pandas(table: Table) -> pandas.DataFrame:
    """Returns a pandas frame: strings as categories, NaN where a value is missing. Needs flowstamp[pandas]."""
    try:
        import pandas as pd
    except ImportError:
        raise MissingPackageError("to_pandas needs pandas; install flowstamp[pandas]") from None
    import numpy as np

    def values(name: str) -> Any:
        cells = table.column(name)
        if None in cells:
            return np.frombuffer(table.numbers(name))
        return pd.Categorical(cells) if cells and isinstance(cells[0], str) else cells

    return pd.DataFrame({name: values(name) for name in table.column_names})


def to_polars(table: Table) -> polars.DataFrame:
    """Returns a polars frame. Needs flowstamp[polars]."""
    try:
        import polars as pl
    except ImportError:
        raise MissingPackageError("to_polars needs polars; install flowstamp[polars]") from None
    return pl.DataFrame(table)


def text(table: Table) -> str:
    """Returns the first and last rows as aligned text, with the columns that a terminal's line has room for."""
    columns = [[name, *cells] for name, cells in zip(table.column_names, zip(*shown(table), strict=True), strict=False)]
    room, aligned = shutil.get_terminal_size().columns, []
    for cells in columns or [[name] for name in table.column_names]:
        width = max(map(len, cells))
        room -= width + 2
        if room < 0:
            aligned.append(["..."] * len(cells))
            break
        aligned.append([cell.rjust(width) for cell in cells])
    return "\n".join([*("  ".join(line) for line in zip(*aligned, strict=True)), size(table)])


def size(table: Table) -> str:
    """Returns the numbers of rows and columns in words."""
    return f"{table.num_rows} rows, {len(table.column_names)} columns"


def shown(table: Table) -> list[list[str]]:
    """Returns the first and last rows as strings, with a row of dots between them if rows are left out."""
    count, columns = table.num_rows, [table.column(name) for name in table.column_names]
    numbers = range(count) if count <= ROWS else [*range(ROWS // 2), *range(count - ROWS // 2, count)]
    lines = [[_cell(column[row]) for column in columns] for row in numbers]
    if count > ROWS:
        lines.insert(ROWS // 2, ["..."] * len(columns))
    return lines


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
