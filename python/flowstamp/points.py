# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Cache of sweep points: one Parquet file per point, written when its run ends.

The file name is a hash of everything that determines the numbers: the resolved scenario with its seed, the contents of
the files it names, the version and the compiled module. A repeated sweep, or another one that shares a point, reuses
the file. A rebuilt simulator does not.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flowstamp import _flowstamp
from flowstamp.errors import ResultsError, ResultsWarning
from flowstamp.executors import Job, engine
from flowstamp.files import write_whole
from flowstamp.results import FOLDER_FILES, Results, RunFolder

if TYPE_CHECKING:
    from flowstamp._flowstamp import Table

Column = tuple[str, Sequence[int] | Sequence[float] | Sequence[str]]


def key(job: Job) -> str:
    """Returns the cache key: 32 hexadecimal digits of a hash over everything that determines a run's numbers."""
    files = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in job.files.items()}
    # The resolved scenario text includes the seed.
    parts = [job.text, files, _flowstamp.__version__, engine()]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


class Points:
    """A folder of cached points. With `tables`, each point also has a run's folder with series and flows."""

    def __init__(self, folder: Path, *, tables: bool = False) -> None:
        self.folder, self.tables = folder, tables

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.parquet"

    def get(self, name: str) -> Results | None:
        """Returns a cached point, or None if it is absent or incomplete.

        Warns of a damaged file. Raises `ResultsError` if the file cannot be read.
        """
        path = self._path(name)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ResultsError(f"{path}: cannot be read: {error.strerror or error}") from None
        notes = _flowstamp.parquet_notes(data) or {}
        texts = [notes.get(part, "") for part in ("summary", "manifest")]
        if notes.get("flowstamp") != name or notes.get("digest") != _digest(texts):
            warnings.warn(f"{path}: is not a whole point of a sweep, and is run again", ResultsWarning, stacklevel=4)
            return None
        if self.tables and not all((self.folder / name / file).is_file() for file in FOLDER_FILES):
            return None
        return Results(_Point(self.folder / name, *texts))

    def put(self, name: str, columns: Sequence[Column], results: Results) -> Results:
        """Writes a point and returns the results that its file holds. Ctrl-C takes effect after the file is written."""
        try:
            return self._put(name, columns, results)
        except KeyboardInterrupt:
            self._put(name, columns, results)
            raise

    def _put(self, name: str, columns: Sequence[Column], results: Results) -> Results:
        texts = [results.summary_json(), json.dumps(results.manifest)]
        pairs = zip(("flowstamp", "digest", "summary", "manifest"), (name, _digest(texts), *texts), strict=True)
        data = _flowstamp.Table(columns).parquet(list(pairs))
        if self.tables:
            results.write(self.folder / name)
        write_whole(self._path(name), data)
        return Results(_Point(self.folder / name, *texts))


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


class _Point(RunFolder):
    """Results of a cached point: summary and manifest from its file, tables from the folder beside it if present."""

    def __init__(self, folder: Path, summary: str, manifest: str) -> None:
        super().__init__(folder)
        self._summary, self._manifest = summary, manifest

    def summary_json(self, *, pretty: bool = False) -> str:
        return json.dumps(json.loads(self._summary), indent=2) if pretty else self._summary

    def manifest_json(self) -> str:
        return self._manifest

    def _table(self, name: str) -> Table:
        if not self._folder.is_dir():
            raise ResultsError(
                f"{self._folder}.parquet: a point of a sweep is kept without series and flows; ask for its tables"
                " (tables=True, --tables)"
            )
        return super()._table(name)
