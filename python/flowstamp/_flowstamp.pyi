"""The native module: runs scenarios, holds results, knows the ideals. Glue only; the typed facade is in the other modules."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

__version__: str

class ScenarioError(ValueError):
    """Bad input: one line that names the source, the key, the value and what would be right."""

class OutputError(OSError):
    """Results could not be written: one line that names the path and the reason."""

class TheoryError(ValueError):
    """What was asked of a formula, a server or a statistic has no answer: one line that says why."""

@final
class Table:
    """A table of results; any Arrow consumer (pandas, polars, pyarrow, duckdb) reads it by the PyCapsule interface."""

    def __new__(cls, columns: Sequence[tuple[str, Sequence[int] | Sequence[float] | Sequence[str]]]) -> Table:
        """A table of columns: whole numbers, numbers or words, as many in each."""
    def parquet(self, notes: Sequence[tuple[str, str]] = ()) -> bytes:
        """The table as a Parquet file, with `notes` beside the columns."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    def column(self, name: str) -> list[Any]:
        """One column as a list (floats, ints, strings or None)."""
    def numbers(self, name: str) -> bytes:
        """A column of numbers as a native float64 buffer, NaN where there is none (numpy.frombuffer)."""
    def words(self, name: str) -> tuple[bytes, list[str]]:
        """A column of words as numbers into a list of them: a native int32 buffer, and the list."""
    def _repr_html_(self) -> str:
        """For notebooks."""

@final
class Run:
    """A finished run."""

    def summary_json(self, *, pretty: bool = False) -> str:
        """`summary.json`; `pretty` as the file has it."""
    def scenario_toml(self) -> str:
        """The scenario as it ran, with every default spelled out."""
    def manifest_json(self) -> str: ...
    @property
    def series(self) -> Table:
        """Long form: time_s, kind (link | group | flow | law), name, metric, value."""
    @property
    def flows(self) -> Table:
        """flow, group, index, law, start_s, end_s?, size_bytes?, fct_s?, delivered_bytes, goodput_bps, retransmissions,
        timeouts, min_rtt_s, srtt_s, switched_s?, stop_s?. One row per flow."""
    @property
    def delays(self) -> Table:
        """kind (link | group), name, min_bytes?, max_bytes?, delay_s, share: the distributions of queueing delays and of packet delays."""
    def series_points(self, kind: str, name: str, metric: str) -> tuple[bytes, bytes]:
        """Times and values of one series as native float64 buffers (numpy.frombuffer)."""
    def write(self, directory: str) -> list[str]:
        """Writes manifest.json, summary.json, series.parquet, flows.parquet, delays.parquet, and trace.pcapng + flowstamp.lua if packets were
        captured. Each file appears under its name only when it is whole. Returns the paths. Raises OutputError."""

# Progress: called about ten times a second from the running thread with
# (run_index, runs, simulated_s, duration_s, events). An exception that it raises (KeyboardInterrupt) stops the runs.
Progress = Callable[[int, int, float, float, int], None]

def run(
    text: str,
    *,
    source: str = "scenario",
    format: str = "toml",  # or "json"
    sets: Sequence[tuple[str, str]] = (),
    base_dir: str = ".",
    seed: int | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
) -> Run:
    """Runs one scenario, unless it may need more than `memory` bytes. `sets` are --set overrides: dotted key (flows by name or index: flows.long.count), TOML value;
    a value that is no TOML (45Mbps) is taken as a string. Raises ScenarioError."""

@final
class Simulation:
    """A run that has not ended."""

    @property
    def now_s(self) -> float:
        """Simulated seconds so far."""
    def run_until(self, until: str, *, progress: Progress | None = None) -> None:
        """Runs on to an instant, which is a time with its unit. An exception that `progress` raises stops it on the way; it
        can go on. Raises ScenarioError."""
    def set(self, key: str, value: str) -> None:
        """Sets a value from now on: a key of the scenario, and TOML or else text. Raises ScenarioError."""
    def results(self) -> Run:
        """The results as if the run ended now. Raises ScenarioError during warm-up."""
    def links(self) -> list[tuple[str, float, float]]:
        """The router links: name, mean rate of the run in bit/s (of a trace that of one period), buffer in bytes."""
    def senders(self) -> list[dict[str, Any]]:
        """Counts of the flows whose law is `told`, since each began; not of groups whose flows come and go. Packets: `sent`, `lost`
        (and sent again), `delivered`, `marked`; `acks`, and `rtt_sum_ps` of their samples modulo 2**64; `min_rtt_s`, zero before
        the first; `group`, `index`, `path_rtt_s`, `payload_bytes`."""
    def series(self, since: str = "0s") -> Table:
        """Samples taken after an instant, in long form."""
    def series_points(self, kind: str, name: str, metric: str, *, since: str = "0s") -> tuple[bytes, bytes]:
        """Times and values of one series after an instant, as native float64 buffers."""

def start(
    text: str,
    *,
    source: str = "scenario",
    format: str = "toml",
    sets: Sequence[tuple[str, str]] = (),
    base_dir: str = ".",
    seed: int | None = None,
    memory: int | None = None,
) -> Simulation:
    """Lays out a scenario, ready to run. Raises ScenarioError."""

# Text in TOML, source, sets, and base_dir or the contents of the files that the scenario names, by their paths.
Job = tuple[str, str, Sequence[tuple[str, str]], str | Mapping[str, str]]

def run_many(
    scenarios: Sequence[Job],
    *,
    seed: int | None = None,
    threads: int | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
) -> list[Run]:
    """Runs many scenarios on all cores; results in the order given. All are checked before the first starts. Of `memory` bytes all
    have their part: a run waits for room, and what would not fit one by one is refused."""

def run_each(
    scenarios: Sequence[Job],
    done: Callable[[int, Run], None],
    *,
    threads: int | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
) -> None:
    """The same; `done` gets each run and its number as it ends, in the calling thread. If it raises, or `progress` does, no more are
    begun; of those that had ended by then it has heard, unless it is what raised."""

def check(
    text: str,
    *,
    source: str = "scenario",
    format: str = "toml",
    sets: Sequence[tuple[str, str]] = (),
    base_dir: str = ".",
    memory: int | None = None,
) -> str:
    """Checks a scenario without running it; returns it as TOML with every default spelled out. Raises ScenarioError."""

def router_loops(
    text: str,
    *,
    source: str = "scenario",
    format: str = "toml",
    sets: Sequence[tuple[str, str]] = (),
    base_dir: str = ".",
    memory: int | None = None,
) -> tuple[
    list[tuple[str, str, float, float, float | None, list[tuple[float, int]], float]],
    list[tuple[list[tuple[str, float]], float, int]],
    list[str],
]:
    """Links of a checked scenario whose router law has gains: name, law, alpha, beta, gamma where it has one, the RTTs in seconds
    of flows that obey, each with their number, and the capacity in bit/s. And ways of flows that last: names of links, each with
    the time that data need to get there in seconds, RTT and number; none where other flows come and go. And what a run warns of."""

def resolve(
    text: str,
    *,
    source: str = "scenario",
    format: str = "toml",
    sets: Sequence[tuple[str, str]] = (),
    base_dir: str = ".",
    memory: int | None = None,
) -> tuple[str, dict[str, str], int]:
    """The same with the contents of the files that the scenario names, by their paths, and the bytes of memory that a run may need."""

def parquet_notes(bytes: bytes) -> dict[str, str] | None:
    """What stands beside the columns of a file that `Table.parquet` made; None of what is no whole Parquet file."""

def scenario_schema() -> str:
    """JSON Schema of a scenario."""

def dissector_lua() -> str:
    """Lua dissector for Wireshark: the headers in trace.pcapng, and the TCP option of hosts on Linux."""

def laws() -> dict[str, list[str]]:
    """Names in the registry: {"senders": [...], "routers": [...], "queues": [...], "schedulers": [...]}"""

def router_of(*, blind: bool = False) -> dict[str, str]:
    """The router law that each sender law has by itself, or "none"."""

# Formulas, ideal servers, statistics. Rates are bits per second, times seconds, sizes bytes; series are native float64
# buffers (array.tobytes(), numpy.frombuffer). All raise TheoryError.

def quantity(kind: str, text: str) -> float:
    """A quantity with its unit; kind: rate (bits per second), time (seconds) or size (bytes)."""

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
        """With `max` cut there, the mean kept."""
    @staticmethod
    def empirical(points: Sequence[tuple[float, float]]) -> Sizes:
        """Points (size, P(L <= size)), linear between them."""
    @property
    def mean(self) -> float: ...
    @property
    def second_moment(self) -> float: ...
    def cdf(self, x: float) -> float: ...

@final
class Link:
    """Flows that arrive as a Poisson process at one link: an M/G/1 queue."""

    def __new__(cls, sizes: Sizes, capacity_bps: float, load: float) -> Link: ...
    @property
    def load(self) -> float: ...
    @property
    def flows_per_s(self) -> float: ...
    def mean_time(self, discipline: str, size_bytes: float | None = None) -> float:
        """Mean time in the queue and in service, of all flows or of one size; discipline: fcfs, ps, srpt or fb."""
    def mean_duration(self, rate_share: float, reading: str, blocking: str) -> float:
        """Mean flow duration when every flow sends at a share of the capacity (appendix A). reading: last_packet or
        as_printed; blocking: two_point, two_point_smooth or erlang_c."""
    def mean_queue_bytes(self, rate_share: float, blocking: str) -> float: ...
    def best_rate(self, reading: str, blocking: str, range: tuple[float, float]) -> tuple[float, float]:
        """The share of the capacity with the least mean duration, and that duration."""

def completion_times(
    formula: str,
    sizes_bytes: bytes,
    rtt_s: float,
    capacity_bps: float,
    load: float = 0.0,
    packet_bytes: float = 1000.0,
) -> bytes:
    """Completion times of flows of some sizes; formula: ps, bound or slow_start."""

def round_trips(equation: str, rtt_s: float) -> float:
    """Seconds of round trips that the thesis adds in equation 2.1, 4.1 or 6.1."""

def serve(discipline: str, arrivals_s: bytes, sizes_bytes: bytes, capacity_bps: float) -> bytes:
    """How long each flow, sorted by arrival, is with an ideal server."""

def rate_limited(
    arrivals_s: bytes, sizes_bytes: bytes, flow_rate_bps: float, capacity_bps: float
) -> tuple[bytes, float, float]:
    """Flows that each send at one rate into a FIFO queue: durations, mean queue in bytes, utilisation."""

def batch_means(values: bytes, batches: int = 10, level: float = 0.95) -> tuple[float, float, float]:
    """Mean, half width of its confidence interval, correlation of successive batches."""

def mser5(values: bytes) -> int:
    """How many of the first values to leave out by the MSER-5 rule."""

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

# Numbers of a route's links, each with how long after they were sent data pass it, RTT, and number of flows.
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
