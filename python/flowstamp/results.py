# SPDX-License-Identifier: Apache-2.0 OR MIT
"""What a run leaves: the summary, samples over time, one row per flow; from memory or from a run's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, Protocol, TypedDict, cast

from flowstamp.errors import MissingPackageError, ResultsError, translated

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from flowstamp import _flowstamp


class LinkCounts(TypedDict):
    """What a router link, or all of them, counted in a part of a simulated run."""

    arrivals: int
    drops: int
    drops_data: int
    """Of `drops`, data and what else goes their way: what opens and ends flows, and probes."""
    drops_acks: int
    """Of `drops`, acks and answers."""
    marks: int
    lost: NotRequired[int]
    """Lost behind it, of a link with impairments, as are the next four."""
    duplicated: NotRequired[int]
    reordered: NotRequired[int]
    detoured: NotRequired[int]
    marked: NotRequired[int]


class LinkSummary(TypedDict):
    """One router link; counters are those after warm-up."""

    rate_bps: float
    buffer_bytes: float
    utilization: float
    mean_queue_bytes: float
    p50_queue_bytes: float
    p90_queue_bytes: float
    p95_queue_bytes: float
    p99_queue_bytes: float
    max_queue_bytes: float
    queueing_delay_s: NotRequired[dict[str, Any] | None]
    """How long packets waited; of a simulated run."""
    arrivals: int
    drops: int
    marks: int
    drop_rate: float
    drops_data: NotRequired[int]
    """Of `drops`, data and what else goes their way; of a simulated run, as are the next three."""
    drops_acks: NotRequired[int]
    after_warmup: NotRequired[LinkCounts]
    whole_run: NotRequired[LinkCounts]
    """From the first packet on."""
    lost: NotRequired[int]
    """Lost behind it, of a link with impairments, as are the next four; the queue's `drops` and `marks` are others."""
    duplicated: NotRequired[int]
    reordered: NotRequired[int]
    detoured: NotRequired[int]
    marked: NotRequired[int]


class StationCounts(TypedDict):
    """What a node of a cell did in a part of the run."""

    sent: int
    given_up: int
    attempts: int
    collisions: int
    errors: int
    retries: int


class StationSummary(TypedDict):
    """A node of a cell, after warm-up."""

    rate_bps: float | None
    """Data rate at the end; `None` of an access point."""
    airtime: float
    """Share of the time in which it sent."""
    sent: int
    given_up: int
    attempts: int
    collisions: int
    errors: int
    retries: int
    mean_mac_delay_s: float
    whole_run: StationCounts
    """From the first packet on."""


class CellCounts(TypedDict):
    """What a cell's medium saw in a part of the run."""

    exchanges: int
    collisions: int


class CellSummary(TypedDict):
    """A cell of a radio, after warm-up."""

    busy: float
    """Share of the time that went into exchanges and collisions."""
    exchanges: int
    collisions: int
    whole_run: CellCounts
    """From the first packet on."""
    stations: dict[str, StationSummary]


class GroupCounts(TypedDict):
    """What the flows of a group did in a part of a simulated run."""

    flows: int
    """That started in it."""
    completed: int
    """That completed in it."""
    delivered_bytes: int
    """Unique bytes of payload."""
    retransmissions: int
    timeouts: int


class ApplicationCounts(TypedDict):
    """What the applications of a group did in a part of a simulated run, in packets, frames or responses."""

    offered: int
    """That were produced."""
    offered_bytes: int
    """Their payload."""
    completed: int
    """That arrived as a whole."""
    source_drops: int
    """Datagrams that their source dropped, as `send_buffer` was full."""


class ApplicationSummary(TypedDict):
    """What the applications of a group did."""

    after_warmup: ApplicationCounts
    whole_run: ApplicationCounts
    """From the start on."""
    time_s: dict[str, float] | None
    """From when something was produced or asked for until all of it had arrived: frame delays, response times."""


class GroupSummary(TypedDict):
    """One group of flows; rates in bits per second, times in seconds; counters are those of the whole run."""

    law: str
    flows: int
    completed: int
    capacity_bps: float
    """Of the slowest router link that the group's data takes; the mean over the run where it varies."""
    path_rtt_s: float
    """Round-trip propagation time, the mean of the flows'."""
    offered_load: float
    """What flows that arrive at random, of all groups, bring to that link on average, as a share of its capacity."""
    mean_size_bytes: float | None
    """Of the distribution, if the flows arrive at random; `None` of endless flows."""
    goodput_bps: float
    jain_index: float | None
    retransmissions: int
    timeouts: int
    after_warmup: NotRequired[GroupCounts]
    whole_run: NotRequired[GroupCounts]
    """From the first packet on."""
    packet_delay_s: NotRequired[dict[str, Any] | None]
    """How long data packets were on their way: statistics of all, and in `bins` by the size of their flows."""
    fct_s: dict[str, Any] | None
    """Completion times at the receiver of flows that started after warm-up: until the last byte arrived there."""
    fct_sender_s: NotRequired[dict[str, Any] | None]
    """The same at the sender: until all of the flow was acknowledged there."""
    fct_slowdown: NotRequired[dict[str, Any] | None]
    """`fct_s` over the shortest times that there could be (`ideal_fct_s` of the flows)."""
    application: NotRequired[ApplicationSummary]
    """What its applications produced, and how long that took."""
    littles_law: dict[str, float] | None


class Table(Protocol):
    """A table that any Arrow consumer reads: `pandas.DataFrame.from_arrow(t)`, `polars.DataFrame(t)`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream (PyCapsule interface)."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""

    def column(self, name: str) -> list[Any]:
        """One column as a list."""

    def numbers(self, name: str) -> bytes:
        """A column of numbers as a native float64 buffer, NaN where there is none: `numpy.frombuffer`."""

    def words(self, name: str) -> tuple[bytes, list[str]]:
        """A column of words as numbers into a list of them: a native int32 buffer, and the list."""


class _Source(Protocol):
    """Where results come from: `_flowstamp.Run`, or a folder."""

    def summary_json(self, *, pretty: bool = False) -> str: ...
    def manifest_json(self) -> str: ...
    @property
    def series(self) -> Table: ...
    @property
    def flows(self) -> Table: ...
    @property
    def delays(self) -> Table: ...
    def series_points(self, kind: str, name: str, metric: str) -> tuple[bytes, bytes]: ...


class Results:
    """The results of one run."""

    def __init__(self, source: _flowstamp.Run | _Source) -> None:
        self._source: _Source = source

    @cached_property
    def summary(self) -> dict[str, Any]:
        """`summary.json`: links, groups, flows and the whole, by the names of the file."""
        document: dict[str, Any] = json.loads(self._source.summary_json())
        return document

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """`manifest.json`: the scenario as it ran, seed, version, host, how long it took."""
        document: dict[str, Any] = json.loads(self._source.manifest_json())
        return document

    @property
    def took(self) -> dict[str, float]:
        """How long the run took: `wall_s`, `cpu_s` and `packet_hops_per_s`; empty of a lab."""
        took: dict[str, float] = self.manifest.get("took", {})
        return took

    @property
    def links(self) -> dict[str, LinkSummary]:
        """Router links by name."""
        return cast("dict[str, LinkSummary]", self.summary["links"])

    @property
    def cells(self) -> dict[str, CellSummary]:
        """Cells of a radio by name; empty where there are none."""
        return cast("dict[str, CellSummary]", self.summary.get("cells", {}))

    @property
    def groups(self) -> dict[str, GroupSummary]:
        """Groups of flows by name."""
        return cast("dict[str, GroupSummary]", self.summary["groups"])

    @property
    def flows(self) -> Table:
        """One row per flow: times in seconds, sizes in bytes, goodput in bits per second."""
        return self._source.flows

    @property
    def delays(self) -> Table:
        """Distributions of links' queueing delays and of groups' packet delays, of all flows and by their sizes.

        A row is a point: `kind` (link or group), `name`, `min_bytes` and `max_bytes` (None: all flows), `delay_s`, and
        the `share` of packets that took at most as long.
        """
        return self._source.delays

    @property
    def series_table(self) -> Table:
        """All samples in long form: time_s, kind, name, metric, value."""
        return self._source.series

    @cached_property
    def series_names(self) -> list[tuple[str, str, str]]:
        """Kind, name and metric of each series that was sampled."""
        table = self._source.series
        names = zip(table.column("kind"), table.column("name"), table.column("metric"), strict=True)
        return list(dict.fromkeys(names))

    def series(self, kind: str, name: str, metric: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Times in seconds and values of one series, such as `("link", "bottleneck", "utilization")`."""
        import numpy as np

        times, values = self._source.series_points(kind, name, metric)
        if not times:
            raise ResultsError(self._no_series(kind, name, metric))
        return np.frombuffer(times, np.float64), np.frombuffer(values, np.float64)

    def _no_series(self, kind: str, name: str, metric: str) -> str:
        known = self.series_names
        of_kind = [entry for entry in known if entry[0] == kind]
        of_name = [entry for entry in of_kind if entry[1] == name]
        wanted = f"no series {kind}/{name}/{metric}"
        if of_name:
            return f"{wanted}; {kind} {name} has {', '.join(entry[2] for entry in of_name)}"
        if of_kind:
            return f"{wanted}; of kind {kind} there are {', '.join(dict.fromkeys(entry[1] for entry in of_kind))}"
        return f"{wanted}; sampled were {', '.join(dict.fromkeys(entry[0] for entry in known)) or 'none'} (see probes)"

    def summary_json(self, *, pretty: bool = False) -> str:
        """The summary as text; `pretty` as the file has it."""
        return self._source.summary_json(pretty=pretty)

    def manifest_json(self) -> str:
        """The manifest as text."""
        return self._source.manifest_json()

    def series_points(self, kind: str, name: str, metric: str) -> tuple[bytes, bytes]:
        """Times and values of one series as float64 buffers; both empty if it was not sampled."""
        return self._source.series_points(kind, name, metric)

    def plot(self, link: str | None = None) -> Figure:
        """Draws throughputs, utilisation and queue over time, of the busiest link unless another is named."""
        from flowstamp import plot

        return plot.overview(self, link)

    def write(self, folder: str | Path) -> list[Path]:
        """Fills a run's folder: manifest, summary, series, flows and captured packets. Returns the files' paths."""
        write = getattr(self._source, "write", None)
        if write is None:
            raise ResultsError("these results were read from a folder; copy the folder")
        with translated():
            return [Path(path) for path in write(str(folder))]

    def _repr_html_(self) -> str:
        from flowstamp import notebook

        return notebook.results(self)

    def _repr_png_(self) -> bytes | None:
        from flowstamp import notebook

        return notebook.results_png(self)

    def __repr__(self) -> str:
        name = self.summary["name"] or "run"
        links = ", ".join(f"{link} {100 * values['utilization']:.1f}%" for link, values in self.links.items())
        return f"<Results of {name}: {self.summary['duration_s']:g} s, {len(self.groups)} groups; {links}>"


class _Columns:
    """A pyarrow table by the interface of `Table`."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    @property
    def num_rows(self) -> int:
        return int(self._table.num_rows)

    @property
    def column_names(self) -> list[str]:
        return list(self._table.column_names)

    def column(self, name: str) -> list[Any]:
        values: list[Any] = self._table.column(name).to_pylist()
        return values

    def numbers(self, name: str) -> bytes:
        import numpy as np

        return np.array(self.column(name), np.float64).tobytes()

    def words(self, name: str) -> tuple[bytes, list[str]]:
        import numpy as np

        known: dict[str, int] = {}
        codes = [known.setdefault(word, len(known)) for word in self.column(name)]
        return np.array(codes, np.int32).tobytes(), list(known)

    def _repr_html_(self) -> str:
        from flowstamp import notebook

        return notebook.table(self)


FOLDER_FILES = ("manifest.json", "summary.json", "series.parquet", "flows.parquet", "delays.parquet")


class RunFolder:
    """Results in a run's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _bytes(self, name: str) -> bytes:
        path = self._folder / name
        try:
            return path.read_bytes()
        except OSError as error:
            raise ResultsError(f"{path}: cannot be read: {error.strerror or error}") from None

    def summary_json(self, *, pretty: bool = False) -> str:
        """The file as it is, which is pretty."""
        del pretty
        return self._bytes("summary.json").decode()

    def manifest_json(self) -> str:
        """The file as it is."""
        return self._bytes("manifest.json").decode()

    def _table(self, name: str, words: list[str]) -> Table:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise MissingPackageError(
                "reading a run's tables needs pyarrow; install flowstamp[pandas], or read the files with polars"
            ) from None
        data = self._bytes(name)
        try:
            return _Columns(parquet.read_table(pyarrow.BufferReader(data), read_dictionary=words))
        except OSError as error:  # pyarrow's errors about files that are none derive from it, or from ValueError
            raise ResultsError(f"{self._folder / name}: cannot be read: {error.strerror or _NO_PARQUET}") from None
        except pyarrow.ArrowInvalid:
            raise ResultsError(f"{self._folder / name}: cannot be read: {_NO_PARQUET}") from None

    @cached_property
    def series(self) -> Table:
        """`series.parquet`."""
        return self._table("series.parquet", ["kind", "name", "metric"])

    @cached_property
    def flows(self) -> Table:
        """`flows.parquet`."""
        return self._table("flows.parquet", ["group", "law"])

    @cached_property
    def delays(self) -> Table:
        """`delays.parquet`, which labs have not."""
        return self._table("delays.parquet", ["kind", "name"])

    @cached_property
    def _points(self) -> dict[tuple[str, str, str], tuple[list[float], list[float]]]:
        points: dict[tuple[str, str, str], tuple[list[float], list[float]]] = {}
        columns: Sequence[list[Any]] = [self.series.column(c) for c in ("kind", "name", "metric", "time_s", "value")]
        for kind, name, metric, time_s, value in zip(*columns, strict=True):
            times, values = points.setdefault((kind, name, metric), ([], []))
            times.append(time_s)
            values.append(value)
        return points

    def series_points(self, kind: str, name: str, metric: str) -> tuple[bytes, bytes]:
        """Times and values of one series as float64 buffers; both empty if it was not sampled."""
        from array import array

        times, values = self._points.get((kind, name, metric), ([], []))
        return array("d", times).tobytes(), array("d", values).tobytes()


_NO_PARQUET = "not a Parquet file"


class _Carried(RunFolder):
    """The files of a run's folder, from another process."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(Path("results"))
        self._files = files

    def _bytes(self, name: str) -> bytes:
        if name not in self._files:
            raise ResultsError(f"these results came without {name}")
        return self._files[name]

    def write(self, directory: str) -> list[str]:
        """Fills a run's folder, as the run itself would have."""
        from flowstamp.files import write_whole

        if "trace.pcapng" not in self._files:
            (Path(directory) / "trace.pcapng").unlink(missing_ok=True)  # packets of another run
        return [str(write_whole(Path(directory) / name, data)) for name, data in self._files.items()]


def carried(files: Mapping[str, bytes]) -> RunFolder:
    """What `Results` takes, of the files of a run's folder by their names."""
    return _Carried(files)


def load(folder: str | Path) -> Results:
    """Results from a run's folder. The summary is read at once; tables, which need pyarrow, when first asked for."""
    results = Results(RunFolder(Path(folder)))
    try:
        _ = results.summary
    except json.JSONDecodeError as error:
        raise ResultsError(f"{Path(folder) / 'summary.json'}: is not JSON: {error}") from None
    return results
