# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Runs a scenario in steps: run to an instant, inspect, change a rate or a parameter, continue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flowstamp.errors import ResultsError, translated
from flowstamp.progress import watching
from flowstamp.results import Results
from flowstamp.scenario import Progress, toml

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from flowstamp import _flowstamp
    from flowstamp._flowstamp import Table


class Simulation:
    """A run in progress, returned by `Scenario.start`.

    Neither the choice of steps nor inspection between them changes the results by a bit.
    """

    def __init__(self, native: _flowstamp.Simulation) -> None:
        self._native = native

    @property
    def now(self) -> float:
        """The simulated time in seconds."""
        return self._native.now_s

    def run_until(self, until: str, *, progress: Progress | None = None) -> None:
        """Runs until simulated time `until`, such as "2s". Events at that instant are included.

        `progress` is called about ten times a second. An exception that it raises stops the run early; a later call
        continues it. Raises `ScenarioError` if `until` is not a valid time.
        """
        with watching(progress, "run") as told, translated():
            self._native.run_until(until, progress=told)

    def set(self, key: str, value: object) -> None:
        """Changes a scenario key from now on: `set("dumbbell.rate", "5Mbps")`.

        These keys can change during a run:

        - the `rate` of a link, to a constant; its buffer in bytes and the access rates stay
        - delays, such as `dumbbell.rtt` or `flows.far.rtt`; packets in flight keep their delay on the current link
        - the `buffer` of a link; thresholds of queue laws that follow from the old buffer stay
        - the data `rate` of a station in a radio cell
        - parameters of a `router` law
        - `window` and `rate` of the sender law `told`, such as `flows.NAME.law.window`
        - the `start` of flows that have not started, and the `stop` of a group

        The run's manifest lists the changes. Raises `ScenarioError` for any other key or a bad value.
        """
        with translated():
            self._native.set(key, toml(value, key))

    def results(self) -> Results:
        """Returns the results as if the run ended now. Raises `ScenarioError` during warm-up."""
        with translated():
            return Results(self._native.results())

    def links(self) -> dict[str, dict[str, float]]:
        """Returns `mean_rate_bps` over the whole run and `buffer_bytes` for each router link by name.

        The mean rate of a trace covers one period.
        """
        return {name: {"mean_rate_bps": rate, "buffer_bytes": buffer} for name, rate, buffer in self._native.links()}

    def senders(self) -> dict[str, dict[str, Any]]:
        """Returns the counters of each flow whose law is `told`, by "GROUP.NUMBER", since the flow began.

        Groups of web flows and of listed flows are omitted.

        - `sent`: packets sent, retransmissions included
        - `lost`: retransmissions, less those that D-SACK reports as unnecessary
        - `delivered`: acknowledged packets
        - `marked`: packets that routers marked, as the acks report
        - `acks`: samples of the round-trip time
        - `rtt_sum_ps`: sum of these samples in picoseconds, modulo 2**64
        - `min_rtt_s`: the smallest sample in seconds, 0 before the first
        - `group`, `index`: group name and number of the flow
        - `path_rtt_s`: round-trip propagation delay in seconds, from the scenario
        - `payload_bytes`: payload of a full packet
        """
        return {f"{row['group']}.{row['index']}": row for row in self._native.senders()}

    def series_table(self, since: str = "0s") -> Table:
        """Returns the samples taken after `since` in long form: time_s, kind, name, metric, value."""
        with translated():
            return self._native.series(since)

    def series(
        self, kind: str, name: str, metric: str, *, since: str = "0s"
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the times in seconds and the values of one series after `since`.

        Both arrays are empty while there is no sample. Raises `ResultsError` if the scenario does not sample the
        series.
        """
        import numpy as np

        with translated():
            times, values = self._native.series_points(kind, name, metric, since=since)
        if not times and self.series_table().num_rows and not self._native.series_points(kind, name, metric)[0]:
            raise ResultsError(f"no series {kind}/{name}/{metric} is sampled (see probes)")
        return np.frombuffer(times, np.float64), np.frombuffer(values, np.float64)

    def __repr__(self) -> str:
        return f"<Simulation at {self.now:g} s>"
