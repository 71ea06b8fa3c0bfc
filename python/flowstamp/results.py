# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Results of a run, from memory or from its folder: the summary, samples over time, and one row per flow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NotRequired, Protocol, TypedDict, cast

from flowstamp._flowstamp import Table
from flowstamp.errors import ResultsError, translated
from flowstamp.names import Named, nearest, spelled

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from flowstamp import _flowstamp


class LinkCounts(TypedDict):
    """Packet counters of one router link, or of all router links, in a part of a simulated run.

    Links with impairments also have the keys from `lost` to `marked`.
    """

    arrivals: int
    """Packets that reached the link."""
    drops: int
    """Packets that the queue dropped."""
    drops_data: int
    """Drops of packets in the data direction: data, probes, and packets that open or close a flow."""
    drops_acks: int
    """Drops of acks and other replies."""
    marks: int
    """Packets that the queue marked."""
    lost: NotRequired[int]
    """Packets lost after they crossed the link; `drops` does not include them."""
    duplicated: NotRequired[int]
    """Packets copied after they crossed the link."""
    reordered: NotRequired[int]
    """Packets held back, copies included."""
    detoured: NotRequired[int]
    """Packets sent on another route, copies included."""
    marked: NotRequired[int]
    """ECN-capable data packets marked after they crossed the link; `marks` does not include them."""


class PfcSummary(TypedDict):
    """Effects of priority flow control on a link after warm-up."""

    pauses: int
    """Pauses that reached the link's sender."""
    paused_s: float
    """Time for which the sender was paused, in seconds."""
    max_ingress_bytes: float
    """Most bytes that came over the link and waited at its far end."""
    drops: int
    """Packets lost at the far end for lack of headroom. They also count as drops of the next link."""
    xoff_bytes: float
    """Bytes above which the far end pauses the link; 0 for a link to a host, which is never paused."""
    xon_bytes: float
    """Bytes at which the far end lets the link go on."""
    headroom_bytes: float
    """Room above `xoff_bytes`."""


class SconeSummary(TypedDict):
    """Throughput advice of a link in the whole run."""

    packets: int
    lowered: int
    """SCONE packets that crossed the link, and those whose signal it lowered."""
    mean_advice_bps: float | None
    """Mean rate of the advice. None without SCONE packets."""


class LinkSummary(TypedDict):
    """Summary of one router link. Counters, shares and queue statistics cover the time after warm-up.

    Labs lack the keys that are not required. Links with impairments also have the keys from `lost` to `marked`.
    """

    rate_bps: float
    """Capacity in bits per second; the mean over the run where it varies."""
    buffer_bytes: float
    """Buffer in bytes."""
    utilization: float
    """Share of the capacity that carried packets, 0 to 1."""
    mean_queue_bytes: float
    """Time average of the queue in bytes, without the packet in transmission."""
    p50_queue_bytes: float
    """Percentiles over time: the queue was at most this long for 50% of the time."""
    p90_queue_bytes: float
    p95_queue_bytes: float
    p99_queue_bytes: float
    max_queue_bytes: float
    queueing_delay_s: NotRequired[dict[str, Any] | None]
    """Queueing delays in seconds: `count`, `mean`, `p50`, `p95`, `p99`, `p999`, `max`. None if no packet passed."""
    arrivals: int
    """Packets that reached the link."""
    drops: int
    """Packets that the queue dropped."""
    marks: int
    """Packets that the queue marked."""
    drop_rate: float
    """`drops` as a share of `arrivals`."""
    drops_data: NotRequired[int]
    """Drops of packets in the data direction: data, probes, and packets that open or close a flow."""
    drops_acks: NotRequired[int]
    """Drops of acks and other replies."""
    after_warmup: NotRequired[LinkCounts]
    """Counters after warm-up."""
    whole_run: NotRequired[LinkCounts]
    """Counters of the whole run, warm-up included."""
    pfc: NotRequired[PfcSummary]
    """Priority flow control, if the link has it."""
    scone: NotRequired[SconeSummary]
    """Throughput advice in the whole run, if the link gives any."""
    lost: NotRequired[int]
    """Packets lost after they crossed the link; `drops` does not include them."""
    duplicated: NotRequired[int]
    """Packets copied after they crossed the link."""
    reordered: NotRequired[int]
    """Packets held back, copies included."""
    detoured: NotRequired[int]
    """Packets sent on another route, copies included."""
    marked: NotRequired[int]
    """ECN-capable data packets marked after they crossed the link; `marks` does not include them."""


class StationCounts(TypedDict):
    """Frame counters of a node of a radio cell in a part of the run."""

    sent: int
    """Acknowledged frames."""
    given_up: int
    """Frames dropped at the retry limit."""
    attempts: int
    """Transmission attempts."""
    collisions: int
    """Attempts that collided."""
    errors: int
    """Attempts of which a radio error spoiled all frames."""
    retries: int
    """Attempts that repeated a failed one."""


class StationSummary(TypedDict):
    """Summary of a node of a radio cell after warm-up; the counters are those of `StationCounts`."""

    rate_bps: float | None
    """Data rate at the end of the run in bits per second; None for an access point."""
    airtime: float
    """Share of the time in which the node sent data frames or RTS, 0 to 1."""
    sent: int
    given_up: int
    attempts: int
    collisions: int
    errors: int
    retries: int
    mean_mac_delay_s: float
    """Mean time from the head of the queue until a packet is acknowledged or given up, in seconds."""
    ampdu: NotRequired[dict[str, int]]
    """With A-MPDUs: `exchanges` (turns that an ack ended), `frames` sent, and `frames_lost` of them to radio errors."""
    whole_run: StationCounts
    """Counters of the whole run, warm-up included."""


class CellCounts(TypedDict):
    """Counters of a radio cell's medium in a part of the run."""

    exchanges: int
    """Frame exchanges that an ack completed."""
    collisions: int
    """Collisions of two or more stations."""


class CellSummary(TypedDict):
    """Summary of a radio cell after warm-up; the counters are those of `CellCounts`."""

    busy: float
    """Share of the time that exchanges and collisions took, 0 to 1."""
    exchanges: int
    collisions: int
    whole_run: CellCounts
    """Counters of the whole run, warm-up included."""
    stations: dict[str, StationSummary]
    """The cell's nodes by name."""


class GroupCounts(TypedDict):
    """Counters of a group of flows in a part of a simulated run."""

    flows: int
    """Flows that started in this part."""
    completed: int
    """Flows that completed in this part."""
    delivered_bytes: int
    """Unique payload bytes delivered."""
    retransmissions: int
    """Retransmitted packets."""
    timeouts: int
    """Retransmission timeouts."""


class ApplicationCounts(TypedDict):
    """Counters of a group's applications in a part of a simulated run: packets, frames or responses."""

    offered: int
    """Packets, frames or responses that the applications produced."""
    offered_bytes: int
    """Payload of `offered` in bytes."""
    completed: int
    """Packets, frames or responses that arrived completely."""
    source_drops: int
    """Datagrams that the source dropped because its `send_buffer` was full."""


class ApplicationSummary(TypedDict):
    """Summary of a group's applications."""

    after_warmup: ApplicationCounts
    """Counters after warm-up."""
    whole_run: ApplicationCounts
    """Counters of the whole run, warm-up included."""
    time_s: dict[str, float] | None
    """Frame delays or response times in seconds: from production or request until the last byte arrives.

    None for single datagrams (see `packet_delay_s`) and if nothing arrived.
    """


class OperationsSummary(TypedDict):
    """Summary of a group's collective operations or incasts, each as a whole. Times are in seconds."""

    started: int
    """Operations that began."""
    completed: int
    """Operations that ended."""
    time_s: dict[str, float] | None
    """Completion times, until the last byte arrived at the last host, of operations that began after warm-up."""
    ideal_s: float | None
    """Lower bound of the completion time on an idle network. None for incasts."""
    slowdown: dict[str, float] | None
    """`time_s` divided by `ideal_s`."""
    runs: list[dict[str, float | None]]
    """Each operation: `start_s` and `end_s`, which is None if it did not end."""


class VideoCounts(TypedDict):
    """Playback of videos in a part of a simulated run, summed over the viewers."""

    played_s: float
    """Media played in seconds."""
    stalled_s: float
    """Time in seconds for which playback stood still after it had started."""
    stalls: int
    """Stalls that began."""
    stalled_share: float | None
    """`stalled_s` as a share of `played_s` and `stalled_s` together. None if playback never started."""
    startup_s: float
    """Time in seconds that the viewers waited for their first picture."""
    segments: int
    """Segments that arrived."""
    switches: int
    """Segments whose bitrate differs from that of the segment before."""
    bitrate_bps: float | None
    """Mean bitrate of the segments that arrived. None without any."""


class VideoSummary(TypedDict):
    """Playback of a group's videos."""

    after_warmup: VideoCounts
    whole_run: VideoCounts
    """Playback in the whole run, warm-up included."""


class GroupSummary(TypedDict):
    """Summary of one group of flows. Rates are in bits per second, times in seconds; counters cover the whole run.

    Distributions have `count`, `mean`, `p50`, `p95`, `p99`, `p999` (the 99.9th percentile) and `max`.
    """

    law: str
    """The sender's law."""
    flows: int
    """Flows that started."""
    completed: int
    """Flows that completed."""
    capacity_bps: float
    """Capacity of the slowest router link on the group's data path; the mean over the run where it varies."""
    path_rtt_s: float
    """Round-trip propagation time, averaged over the group's flows."""
    offered_load: float
    """Mean load of all randomly arriving flows on that link, as a share of its capacity.

    The scenario determines it, not the flows that arrived in this run.
    """
    mean_size_bytes: float | None
    """Mean flow size in payload bytes; that of the distribution if flows arrive at random. None for endless flows."""
    goodput_bps: float
    """Sum of the flows' goodputs: unique payload over the time after warm-up."""
    jain_index: float | None
    """Jain's index of the flows' goodputs while active, 0 to 1; None for web flows."""
    retransmissions: int
    """Retransmitted packets."""
    timeouts: int
    """Retransmission timeouts."""
    after_warmup: NotRequired[GroupCounts]
    """Counters after warm-up."""
    whole_run: NotRequired[GroupCounts]
    """Counters of the whole run, warm-up included."""
    packet_delay_s: NotRequired[dict[str, Any] | None]
    """One-way delays of data packets, retransmissions included; `bins` has them by flow size."""
    fct_s: dict[str, Any] | None
    """Completion times at the receiver, of flows that started after warm-up: `all`, and `bins` by flow size.

    A completion time ends when the last missing payload byte arrives.
    """
    fct_sender_s: NotRequired[dict[str, Any] | None]
    """Completion times at the sender, which end when the last byte is acknowledged."""
    fct_slowdown: NotRequired[dict[str, Any] | None]
    """`fct_s` divided by the ideal completion times (`ideal_fct_s` in the table of flows)."""
    application: NotRequired[ApplicationSummary]
    """Counters and times of the group's applications."""
    video: NotRequired[VideoSummary]
    """Playback of the group's videos."""
    operations: NotRequired[OperationsSummary]
    """Times of the group's collective operations or incasts."""
    littles_law: dict[str, float] | None
    """Check of Little's law after warm-up; None for groups without web flows."""


class _Source(Protocol):
    """Source of results: `_flowstamp.Run` or a folder."""

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
    """Results of one run, returned by `Scenario.run` and `load_results`."""

    def __init__(self, source: _flowstamp.Run | _Source) -> None:
        self._source: _Source = source

    @cached_property
    def summary(self) -> dict[str, Any]:
        """`summary.json` as a dictionary: links, groups, flows and totals. It accepts "utilisation", too."""
        document: dict[str, Any] = json.loads(self._source.summary_json(), object_hook=Named)
        return document

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """`manifest.json` as a dictionary: the resolved scenario, seed, version, host and wall time."""
        document: dict[str, Any] = json.loads(self._source.manifest_json())
        return document

    @property
    def took(self) -> dict[str, float]:
        """Cost of the run: `wall_s`, `cpu_s` and `packet_hops_per_s`. Empty for a lab."""
        took: dict[str, float] = self.manifest.get("took", {})
        return took

    @property
    def links(self) -> dict[str, LinkSummary]:
        """Router links by name."""
        return cast("dict[str, LinkSummary]", self.summary["links"])

    @property
    def cells(self) -> dict[str, CellSummary]:
        """Radio cells by name; empty if the network has none."""
        return cast("dict[str, CellSummary]", self.summary.get("cells", {}))

    @property
    def groups(self) -> dict[str, GroupSummary]:
        """Groups of flows by name."""
        return cast("dict[str, GroupSummary]", self.summary["groups"])

    @property
    def flows(self) -> Table:
        """Table with one row per flow: times in seconds, sizes in bytes, goodput in bits per second."""
        return self._source.flows

    @property
    def operations(self) -> list[dict[str, Any]]:
        """Collective operations and incasts, one row each: `group`, `number`, `start_s`, `end_s` and `time_s`.

        `end_s` and `time_s` are None if the operation did not end. `pandas.DataFrame(r.operations)` is a table of them.
        """
        return [
            {"group": group, "number": number, **run, "time_s": run["end_s"] and run["end_s"] - run["start_s"]}
            for group, summary in self.summary["groups"].items()
            for number, run in enumerate(summary.get("operations", {}).get("runs", ()))
        ]

    @property
    def delays(self) -> Table:
        """Distributions of the links' queueing delays and the groups' packet delays, over all flows and by flow size.

        Each row is one point: `kind` (link or group), `name`, `min_bytes` and `max_bytes` (None: all flows), `delay_s`,
        and the `share` of packets with at most this delay.
        """
        return self._source.delays

    @property
    def series_table(self) -> Table:
        """All samples in long form: time_s, kind, name, metric, value."""
        return self._source.series

    @cached_property
    def series_names(self) -> list[tuple[str, str, str]]:
        """Kind, name and metric of each sampled series."""
        table = self._source.series
        names = zip(table.column("kind"), table.column("name"), table.column("metric"), strict=True)
        return list(dict.fromkeys(names))

    def series(self, kind: str, name: str, metric: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the times in seconds and the values of one series, such as `("link", "bottleneck", "utilization")`.

        Both arrays have the same length. Raises `ResultsError` if the series was not sampled.
        """
        import numpy as np

        times, values = self.series_points(kind, name, metric)
        if not times:
            raise ResultsError(self._no_series(kind, name, metric))
        return np.frombuffer(times, np.float64), np.frombuffer(values, np.float64)

    def _no_series(self, kind: str, name: str, metric: str) -> str:
        known = self.series_names
        of_kind = [entry for entry in known if entry[0] == kind]
        of_name = [entry for entry in of_kind if entry[1] == name]
        if of_name:
            return nearest(metric, (entry[2] for entry in of_name), f"is not a series of {kind} {name}")
        if of_kind:
            return nearest(name, dict.fromkeys(entry[1] for entry in of_kind), f"is not a {kind} with series")
        return nearest(kind, dict.fromkeys(entry[0] for entry in known), "is not a kind with series (see probes)")

    def summary_json(self, *, pretty: bool = False) -> str:
        """Returns the summary as JSON text; `pretty` indents it as in the file."""
        return self._source.summary_json(pretty=pretty)

    def manifest_json(self) -> str:
        """Returns the manifest as JSON text."""
        return self._source.manifest_json()

    def series_points(self, kind: str, name: str, metric: str) -> tuple[bytes, bytes]:
        """Returns times and values of one series as float64 buffers; both are empty if it was not sampled."""
        return self._source.series_points(kind, name, spelled(metric))

    def plot(self, link: str | None = None) -> Figure:
        """Draws throughputs, utilisation and queue over time for `link`, by default the busiest one."""
        from flowstamp import plot

        return plot.overview(self, link)

    def write(self, folder: str | Path) -> list[Path]:
        """Writes manifest, summary, series, flows, delays and captured packets into a folder. Returns the files' paths.

        Raises `ResultsError` if the results were read from a folder, and `OutputError` if a file cannot be written.
        """
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
        groups = f"{len(self.groups)} group{'s' if len(self.groups) != 1 else ''}"
        return f"<Results of {name}: {self.summary['duration_s']:g} s, {groups}; {links}>"


FOLDER_FILES = ("manifest.json", "summary.json", "series.parquet", "flows.parquet", "delays.parquet")


class RunFolder:
    """Reads results from a run's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _bytes(self, name: str) -> bytes:
        path = self._folder / name
        try:
            return path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            raise ResultsError(f"{path}: does not exist; name a folder that a run with --out has written") from None
        except OSError as error:
            raise ResultsError(f"{path}: cannot be read: {error.strerror or error}") from None

    def summary_json(self, *, pretty: bool = False) -> str:
        """Returns the file unchanged; it is indented in any case."""
        del pretty
        return self._bytes("summary.json").decode()

    def manifest_json(self) -> str:
        """Returns the file unchanged."""
        return self._bytes("manifest.json").decode()

    def _table(self, name: str) -> Table:
        try:
            return Table.from_parquet(self._bytes(name))
        except ValueError as error:
            raise ResultsError(f"{self._folder / name}: is not a table of a run: {error}") from None

    @cached_property
    def series(self) -> Table:
        """`series.parquet`."""
        return self._table("series.parquet")

    @cached_property
    def flows(self) -> Table:
        """`flows.parquet`."""
        return self._table("flows.parquet")

    @cached_property
    def delays(self) -> Table:
        """`delays.parquet`; labs do not have it."""
        return self._table("delays.parquet")

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
        """Returns times and values of one series as float64 buffers; both are empty if it was not sampled."""
        from array import array

        times, values = self._points.get((kind, name, metric), ([], []))
        return array("d", times).tobytes(), array("d", values).tobytes()


class _Carried(RunFolder):
    """The files of a run's folder, received from another process."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(Path("results"))
        self._files = files

    def _bytes(self, name: str) -> bytes:
        if name not in self._files:
            raise ResultsError(f"these results came without {name}")
        return self._files[name]

    def write(self, directory: str) -> list[str]:
        """Writes the files into a folder, as the run itself would have done."""
        from flowstamp.files import write_whole

        if "trace.pcapng" not in self._files:
            (Path(directory) / "trace.pcapng").unlink(missing_ok=True)  # left by an earlier run
        return [str(write_whole(Path(directory) / name, data)) for name, data in self._files.items()]


def carried(files: Mapping[str, bytes]) -> RunFolder:
    """Returns a source for `Results` from the contents of a run's files by file name."""
    return _Carried(files)


def load(folder: str | Path) -> Results:
    """Loads results from a run's folder. Reads the summary at once and each table at first use.

    Raises `ResultsError` if `summary.json` is missing or malformed.
    """
    results = Results(RunFolder(Path(folder)))
    try:
        _ = results.summary
    except json.JSONDecodeError as error:
        raise ResultsError(f"{Path(folder) / 'summary.json'}: is not JSON: {error}") from None
    return results
