"""The native module: runs scenarios, holds results, computes the ideals. It has only glue; the other modules are the typed interface."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, final

import polars

__version__: str

class ScenarioError(ValueError):
    """Invalid input. The message is one line that names the source, the key, the value and what would be right."""

class OutputError(OSError):
    """Results could not be written. The message is one line that names the path and the reason."""

class TheoryError(ValueError):
    """A formula, an ideal server or a statistic is undefined for the arguments. The message is one line that says why."""

@final
class Table:
    """A table of results. `table["goodput_bps"]` is a column, `for row in table` has the rows as dictionaries.

    Any Arrow consumer (polars, pyarrow, DuckDB, pandas from 3.0 on) reads it through the PyCapsule interface.
    """

    def __new__(cls, columns: Sequence[tuple[str, Sequence[int] | Sequence[float] | Sequence[str]]]) -> Table:
        """Makes a table from columns of equal length: integers, floats or strings."""
    @staticmethod
    def from_parquet(bytes: bytes) -> Table:
        """Reads a table that a run, a lab or `parquet` wrote. Raises `ValueError` for anything else."""
    def __getitem__(self, key: str, /) -> Any:
        """Returns a column of numbers as a float64 array, NaN where a value is missing, and one of strings as a list."""
    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterates over the rows as dictionaries, with None where a value is missing."""
    def __len__(self) -> int: ...
    def to_pandas(self) -> Any:
        """Returns a pandas frame: strings as categories, NaN where a value is missing. Needs flowstamp[pandas]."""
    def to_polars(self) -> polars.DataFrame:
        """Returns a polars frame. Needs flowstamp[polars]."""
    def parquet(self, notes: Sequence[tuple[str, str]] = ()) -> bytes:
        """Returns the table as a Parquet file, with `notes` as key-value metadata."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns the table as an Arrow stream (PyCapsule interface)."""
    @property
    def num_rows(self) -> int:
        """Number of rows."""
    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
    def column(self, name: str) -> list[Any]:
        """Returns one column as a list (floats, ints, strings or None)."""
    def numbers(self, name: str) -> bytes:
        """Returns a numeric column as a native float64 buffer for numpy.frombuffer; missing values are NaN."""
    def words(self, name: str) -> tuple[bytes, list[str]]:
        """Returns a text column dictionary-encoded: a native int32 buffer of indices, and the list of words."""
    def _repr_html_(self) -> str:
        """Returns the table as HTML for notebooks."""

@final
class Run:
    """A finished run."""

    def summary_json(self, *, pretty: bool = False) -> str:
        """Returns `summary.json` as text; `pretty` indents it as in the file."""
    def scenario_toml(self) -> str:
        """Returns the scenario as it ran, with every default."""
    def manifest_json(self) -> str: ...
    @property
    def series(self) -> Table:
        """All samples in long form: time_s, kind (link | group | flow | law), name, metric, value."""
    @property
    def flows(self) -> Table:
        """One row per flow: flow, group, index, law, start_s, end_s?, size_bytes?, fct_s?, fct_sender_s?, ideal_fct_s?, delivered_bytes,
        goodput_bps, retransmissions, timeouts, min_rtt_s?, srtt_s?, switched_s?, stop_s?. delivered_bytes, retransmissions and timeouts
        cover the whole run; columns with the suffix _after_warmup have them after warm-up."""
    @property
    def delays(self) -> Table:
        """Distributions of queueing delays and packet delays: kind (link | group), name, min_bytes?, max_bytes?, delay_s, share."""
    def series_points(self, kind: str, name: str, metric: str) -> tuple[bytes, bytes]:
        """Returns times and values of one series as native float64 buffers for numpy.frombuffer."""
    def write(self, directory: str) -> list[str]:
        """Writes manifest.json, summary.json, series.parquet, flows.parquet, delays.parquet, and trace.pcapng + flowstamp.lua if packets were
        captured. Each file appears under its name only when it is complete. Returns the paths. Raises OutputError."""

# The running thread calls it about ten times a second with (run_index, runs, simulated_s, duration_s, events).
# An exception that it raises, such as KeyboardInterrupt, stops the runs.
Progress = Callable[[int, int, float, float, int], None]

@final
class Source:
    """The text of a scenario. `sets` are --set overrides: dotted key (flows by name or index: flows.long.count) and TOML value. A value that
    is not TOML, such as 45Mbps, is taken as a string. The methods raise ScenarioError if the scenario is invalid or a run may need more than
    `memory` bytes."""

    def __new__(
        cls,
        text: str,
        *,
        source: str = "scenario",
        format: str = "toml",  # or "json"
        sets: Sequence[tuple[str, str]] = (),
        base_dir: str = ".",
        memory: int | None = None,
    ) -> Source: ...
    def check(self) -> str:
        """Checks the scenario without running it and returns it as TOML with every default."""
    def resolve(self) -> tuple[str, dict[str, str], int]:
        """Does the same as `check`, and also returns the contents of the scenario's files by path, and the run's estimated memory in bytes."""
    def router_loops(
        self,
    ) -> tuple[
        list[tuple[str, str, float, float, float | None, list[tuple[float, int]], float]],
        list[tuple[list[tuple[str, float]], float, int]],
        list[str],
    ]:
        """Returns loops, routes and warnings. A loop is a link whose router law has gains: name, law, alpha, beta, gamma (None if the law
        lacks it), RTTs in seconds of compliant flows with their numbers, and capacity in bit/s. A route of long-lived flows has its links'
        names with the data's delay to each in seconds, RTT and number of flows; there are none if other flows come and go."""
    def run(self, *, seed: int | None = None, threads: int = 1, progress: Progress | None = None) -> Run:
        """Runs the scenario, on `threads` threads."""
    def run_by_links(
        self, *, seed: int | None = None, threads: int | None = None, progress: Progress | None = None
    ) -> Run:
        """Runs each link alone, on `threads` threads (default: one per core), and combines the results. Raises ScenarioError for a
        scenario that needs the whole network, or may need more than `memory`."""
    def start(self, *, seed: int | None = None) -> Simulation:
        """Builds the scenario's network, ready to run."""

@final
class Simulation:
    """A run in progress."""

    @property
    def now_s(self) -> float:
        """The simulated time in seconds."""
    def run_until(self, until: str, *, progress: Progress | None = None) -> None:
        """Runs until a simulated time, given with its unit. An exception that `progress` raises stops the run early; a later call
        continues it. Raises ScenarioError."""
    def set(self, key: str, value: str) -> None:
        """Changes a scenario key from now on; the value is TOML or else text. Raises ScenarioError."""
    def results(self) -> Run:
        """Returns the results as if the run ended now. Raises ScenarioError during warm-up."""
    def links(self) -> list[tuple[str, float, float]]:
        """Returns the router links: name, mean rate of the run in bit/s (for a trace, over one period), buffer in bytes."""
    def senders(self) -> list[dict[str, Any]]:
        """Returns counters of the flows whose law is `told`, since each began; omits groups whose flows come and go. Packets: `sent`,
        `lost` (and retransmitted), `delivered`, `marked`. Samples of the RTT: their number `acks`, their sum `rtt_sum_ps` modulo
        2**64, and the smallest one `min_rtt_s`, 0 before the first. Constants: `group`, `index`, `path_rtt_s`, `payload_bytes`."""
    def series(self, since: str = "0s") -> Table:
        """Returns the samples taken after a simulated time, in long form."""
    def series_points(self, kind: str, name: str, metric: str, *, since: str = "0s") -> tuple[bytes, bytes]:
        """Returns times and values of one series after a simulated time, as native float64 buffers."""

# TOML text, source, sets, and base_dir or the contents of the files that the scenario names, by path.
Job = tuple[str, str, Sequence[tuple[str, str]], str | Mapping[str, str]]

@final
class Links:
    """The links of a scenario, which run one by one in several processes."""

    def __new__(cls, scenario: Job, *, seed: int | None = None, memory: int | None = None) -> Links:
        """Reads the scenario, lays out its network and draws its flows, which may need `memory` bytes."""
    @property
    def duration_s(self) -> float:
        """Simulated seconds."""
    @property
    def passes(self) -> int:
        """Number of times that each link runs."""
    def works(self) -> list[tuple[int, int]]:
        """Returns the links that carry data with their work in packets, most work first."""
    def needs(self, jobs: int, *, results: bool, memory: int | None = None) -> int:
        """Returns the bytes of memory that a process may need to run `jobs` links at a time. ScenarioError above `memory`."""
    def part(self, links: Sequence[int], before: bytes | None = None, *, progress: Progress | None = None) -> bytes:
        """Runs links and returns their results."""
    def take(self, part: bytes) -> int:
        """Takes the results that `part` returned; returns how many events there have been."""
    def next_pass(self) -> None:
        """Ends a pass."""
    def before(self, links: Sequence[int]) -> bytes | None:
        """Returns the argument `before` of `part`."""
    def end(self, wall_s: float) -> Run:
        """Combines the results. All of it took `wall_s` seconds."""

def run_many(
    scenarios: Sequence[Job],
    *,
    seed: int | None = None,
    threads: int | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
) -> list[Run]:
    """Runs many scenarios on all cores and returns results in the same order. Checks all before the first starts. `memory` limits all
    runs together: a run waits until it fits, and one that cannot fit on its own is an error."""

def run_each(
    scenarios: Sequence[Job],
    done: Callable[[int, Run], None],
    *,
    threads: int | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Does the same, but passes each run and its number to `done` as it ends, in the calling thread. If `done` or `progress` raises, no
    more runs start. If `progress` raises, `done` still gets every run that had ended."""

def parquet_notes(bytes: bytes) -> dict[str, str] | None:
    """Returns the key-value metadata of a file that `Table.parquet` made; None if it is not a complete Parquet file."""

def scenario_schema() -> str:
    """Returns the JSON Schema of a scenario."""

def dissector_lua() -> str:
    """Returns the Lua dissector for Wireshark: the headers in trace.pcapng, and the TCP option of hosts on Linux."""

def laws() -> dict[str, list[str]]:
    """Returns the names in the registry: {"senders": [...], "routers": [...], "queues": [...], "schedulers": [...]}"""

def router_of(*, blind: bool = False) -> dict[str, str]:
    """Returns the default router law of each sender law, or "none". With `blind`, prefers one that does not need the capacity."""

def dctcp_threshold(rate_bps: float, rtt_s: float) -> float:
    """Returns the least marking threshold for DCTCP in bytes, for a link of a rate in bit/s and a round trip in s."""

# Formulas, ideal servers, statistics. Rates are bits per second, times seconds, sizes bytes; series are native float64
# buffers (array.tobytes(), numpy.frombuffer). All raise TheoryError.

def quantity(kind: str, text: str) -> float:
    """Parses a quantity with its unit; kind: rate (bits per second), time (seconds) or size (bytes)."""

@final
class Sizes:
    """A distribution of flow sizes in bytes."""

    @staticmethod
    def fixed(size: float) -> Sizes: ...
    @staticmethod
    def uniform(min: float, max: float) -> Sizes: ...
    @staticmethod
    def exponential(mean: float) -> Sizes: ...
    @staticmethod
    def pareto(mean: float, shape: float, max: float | None = None) -> Sizes:
        """Makes a Pareto distribution; `max` truncates it and keeps the mean."""
    @staticmethod
    def empirical(points: Sequence[tuple[float, float]]) -> Sizes:
        """Makes a distribution from points (size, P(L <= size)), linear between them."""
    @property
    def mean(self) -> float: ...
    @property
    def second_moment(self) -> float: ...
    def cdf(self, x: float) -> float: ...

@final
class Link:
    """A link at which flows arrive as a Poisson process: an M/G/1 queue."""

    def __new__(cls, sizes: Sizes, capacity_bps: float, load: float) -> Link: ...
    @property
    def load(self) -> float: ...
    @property
    def flows_per_s(self) -> float: ...
    def mean_time(self, discipline: str, size_bytes: float | None = None) -> float:
        """Returns the mean time in queue and service, of all flows or of one size; discipline: fcfs, ps, srpt or fb."""
    def mean_duration(self, rate_share: float, reading: str, blocking: str) -> float:
        """Returns the mean flow duration if every flow sends at a share of the capacity (appendix A). reading: last_packet or
        as_printed; blocking: two_point, two_point_smooth or erlang_c."""
    def mean_queue_bytes(self, rate_share: float, blocking: str) -> float: ...
    def best_rate(self, reading: str, blocking: str, range: tuple[float, float]) -> tuple[float, float]:
        """Returns the share of the capacity with the least mean duration, and that duration."""

def completion_times(
    formula: str,
    sizes_bytes: bytes,
    rtt_s: float,
    capacity_bps: float,
    load: float = 0.0,
    packet_bytes: float = 1000.0,
) -> bytes:
    """Returns the completion time for each size; formula: ps, bound or slow_start."""

def round_trips(equation: str, rtt_s: float) -> float:
    """Returns the round trips in seconds that the thesis adds in equation 2.1, 4.1 or 6.1."""

def serve(discipline: str, arrivals_s: bytes, sizes_bytes: bytes, capacity_bps: float) -> bytes:
    """Returns the time of each flow, sorted by arrival, at an ideal server."""

def rate_limited(
    arrivals_s: bytes, sizes_bytes: bytes, flow_rate_bps: float, capacity_bps: float
) -> tuple[bytes, float, float]:
    """Simulates flows that each send at one rate into a FIFO queue; returns durations, mean queue in bytes, utilisation."""

def batch_means(values: bytes, batches: int = 10, level: float = 0.95) -> tuple[float, float, float]:
    """Returns the mean, the half width of its confidence interval, and the correlation of successive batches."""

def mser5(values: bytes) -> int:
    """Returns the length of the warm-up in values by the MSER-5 rule."""

def own_gains() -> dict[str, tuple[float, float]]: ...
def loop_crossings(alphas: bytes, betas: bytes) -> tuple[bytes, bytes]: ...
def loop_unstable_roots(delay: str, alphas: bytes, betas: bytes) -> bytes: ...
def loop_within(seen: str, alpha: float, beta: float, rtt_s: float, omega: bytes) -> tuple[bytes, bytes]: ...
def rcp_settling(
    alphas: bytes,
    betas: bytes,
    capacities: bytes,
    rtts: bytes,
    flows: bytes,
    buffers: bytes,
    start: tuple[float, float],
    most: float,
) -> bytes: ...
def rcp_trajectory(
    alpha: float,
    beta: float,
    capacity: float,
    rtt: float,
    flows: float,
    buffer_bdp: float,
    start: tuple[float, float],
    times: bytes,
) -> bytes: ...
def blind_steps(
    senders: str,
    detection: str,
    gains: tuple[float, float],
    chi: float | None,
    q_max: float,
    kappa: float,
    start: float,
    parts: int,
    rtts: int,
) -> bytes: ...
def vcp_windows(
    kappa: float,
    alpha: float,
    start: list[float],
    links: list[tuple[float, list[int]]],
    adjusts: tuple[float, float] | None,
    times: bytes,
) -> bytes: ...
def loop_border(shuffle: float, flows: list[tuple[float, float]], most: tuple[float, float]) -> tuple[bytes, bytes]: ...
def loop_encirclements(alpha: float, beta: float, shuffle: float, flows: list[tuple[float, float]]) -> int | None: ...
def loop_margins(
    alpha: float, beta: float, shuffle: float, flows: list[tuple[float, float]]
) -> tuple[float | None, float | None, float | None, float | None, float | None]: ...
def loop_response(
    alpha: float, beta: float, shuffle: float, flows: list[tuple[float, float]], omega: bytes
) -> tuple[bytes, bytes, bytes]: ...
def loop_roots(
    alpha: float, beta: float, shuffle: float, flows: list[tuple[float, float]], right_of: float
) -> list[tuple[float, float]]: ...
def proved(alphas: bytes, betas: bytes) -> bytes: ...
def switched_border(betas: bytes) -> bytes: ...
def settling(
    model: str,
    alphas: bytes,
    betas: bytes,
    buffers: bytes,
    start: tuple[float, float],
    flows: float,
    most: float,
) -> bytes: ...
def settling_map(
    model: str, alphas: bytes, betas: bytes, start: tuple[float, float], flows: float, most: float
) -> tuple[bytes, int]: ...
def shared_settling(
    law: str,
    shuffle: float,
    alphas: bytes,
    betas: bytes,
    rtts: bytes,
    flows: bytes,
    start: tuple[float, float],
    most: float,
) -> bytes: ...
def shared_map(
    law: str,
    shuffle: float,
    alphas: bytes,
    betas: bytes,
    rtts: bytes,
    flows: bytes,
    start: tuple[float, float],
    most: float,
) -> tuple[bytes, int]: ...

# A route: its links' numbers with the delay of data from the sender to each, RTT, and number of flows.
Route = tuple[Sequence[tuple[int, float]], float, float]

def max_min(capacities: Sequence[float], over: Sequence[Route]) -> list[float]: ...
def network_trajectory(
    law: str,
    gains: Sequence[float],
    capacities: Sequence[float],
    over: Sequence[Route],
    rates: Sequence[float],
    times: bytes,
) -> bytes: ...
def shared_trajectory(
    law: str,
    shuffle: float,
    alpha: float,
    beta: float,
    rtts: bytes,
    flows: bytes,
    start: tuple[float, float],
    times: bytes,
) -> bytes: ...
def trajectory(
    model: str,
    alpha: float,
    beta: float,
    start: tuple[float, float],
    flows: float,
    buffer_bdp: float,
    error: float,
    times: bytes,
) -> bytes: ...
