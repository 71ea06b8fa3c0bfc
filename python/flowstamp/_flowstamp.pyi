"""The native module: runs scenarios, holds results. Glue only; the typed facade is in the other modules."""

from collections.abc import Callable, Sequence
from typing import Any, final

__version__: str

class ScenarioError(ValueError):
    """Bad input: one line that names the source, the key, the value and what would be right."""

class OutputError(OSError):
    """Results could not be written: one line that names the path and the reason."""

@final
class Table:
    """A table of results; any Arrow consumer (pandas, polars, pyarrow, duckdb) reads it by the PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    def column(self, name: str) -> list[Any]:
        """One column as a list (floats, ints, strings or None)."""

@final
class Run:
    """A finished run."""

    def summary_json(self) -> str: ...
    def scenario_toml(self) -> str:
        """The scenario as it ran, with every default spelled out."""
    def manifest_json(self) -> str: ...
    @property
    def series(self) -> Table:
        """Long form: time_s, kind (link | group | flow | law), name, metric, value."""
    @property
    def flows(self) -> Table:
        """flow, group, index, law, start_s, end_s?, size_bytes?, fct_s?, delivered_bytes, goodput_bps, retransmissions,
        timeouts, min_rtt_s, srtt_s, switched_s?. One row per flow."""
    def series_points(self, kind: str, name: str, metric: str) -> tuple[bytes, bytes]:
        """Times and values of one series as native float64 buffers (numpy.frombuffer)."""
    def write(self, directory: str) -> list[str]:
        """Writes manifest.json, summary.json, series.parquet, flows.parquet, and trace.pcapng + flowstamp.lua if packets were
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
    progress: Progress | None = None,
) -> Run:
    """Runs one scenario. `sets` are --set overrides: dotted key (flows by name or index: flows.long.count), TOML value;
    a value that is no TOML (45Mbps) is taken as a string. Raises ScenarioError."""

def run_many(
    scenarios: Sequence[tuple[str, str, Sequence[tuple[str, str]], str]],  # (text, source, sets, base_dir), TOML
    *,
    seed: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> list[Run]:
    """Runs many scenarios on all cores; results in the order given. All are checked before the first starts."""

def check(
    text: str,
    *,
    source: str = "scenario",
    format: str = "toml",
    sets: Sequence[tuple[str, str]] = (),
    base_dir: str = ".",
) -> str:
    """Checks a scenario without running it; returns it as TOML with every default spelled out. Raises ScenarioError."""

def scenario_schema() -> str:
    """JSON Schema of a scenario."""

def dissector_lua() -> str:
    """Wireshark dissector for the XCP header in trace.pcapng."""

def laws() -> dict[str, list[str]]:
    """Names in the registry: {"senders": [...], "routers": [...], "queues": [...]}"""
