# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A run in steps: run on to an instant, look, change a rate or a parameter, run on."""

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
    from flowstamp.results import Table


class Simulation:
    """A run that has not ended; `Scenario.start` makes it.

    However it is cut into steps, and whatever is looked at on the way, its results are the same to the bit.
    """

    def __init__(self, native: _flowstamp.Simulation) -> None:
        self._native = native

    @property
    def now(self) -> float:
        """Simulated seconds so far."""
        return self._native.now_s

    def run_until(self, until: str, *, progress: Progress | None = None) -> None:
        """Runs on to `until`, such as "2s": all that happens up to and at that instant has happened then.

        `progress` is called about ten times a second; what it raises stops the run on the way, and it can go on.
        """
        with watching(progress, "run") as told, translated():
            self._native.run_until(until, progress=told)

    def set(self, key: str, value: object) -> None:
        """Sets a value of the scenario from now on: `set("dumbbell.rate", "5Mbps")`.

        What can change in mid-run: a link's `rate` (to a constant one; its buffer keeps its bytes, access links their
        rates), delays (`dumbbell.rtt`, `flows.far.rtt`; what is under way keeps its part of the way), a link's `buffer`
        (thresholds of its laws that followed from it stay), the data `rate` of a cell's station, a parameter of a
        `router` law, `window` and `rate` of the law `told` (`flows.NAME.law.window`), the `start` of flows that have
        not begun and the `stop` of a group. All else is refused. The run's manifest lists what was set.
        """
        with translated():
            self._native.set(key, toml(value, key))

    def results(self) -> Results:
        """The results as if the run ended now; there are none before warm-up ends."""
        with translated():
            return Results(self._native.results())

    def links(self) -> dict[str, dict[str, float]]:
        """The router links by name: `mean_rate_bps` over the whole run, and `buffer_bytes`.

        The mean rate of a trace is that of one period.
        """
        return {name: {"mean_rate_bps": rate, "buffer_bytes": buffer} for name, rate, buffer in self._native.links()}

    def senders(self) -> dict[str, dict[str, Any]]:
        """Counts of each flow whose law is `told`, by "GROUP.NUMBER", since the flow began.

        `sent`, `lost`, `delivered` and `marked` are packets. `sent` includes those that were sent again. `lost` counts
        those, less the ones that the receiver had already, as D-SACK tells. `delivered` packets are acknowledged, and
        `marked` ones were marked by routers, as the acks say.

        `acks` counts samples of the round-trip time, whose sum is `rtt_sum_ps`, in picoseconds modulo 2**64.
        `min_rtt_s` is the least sample, 0 before the first. Constants are `group`, `index`, `path_rtt_s` without queues
        as the scenario states it, and a full packet's `payload_bytes`. Groups whose flows come and go (web, lists) are
        left out.
        """
        return {f"{row['group']}.{row['index']}": row for row in self._native.senders()}

    def series_table(self, since: str = "0s") -> Table:
        """Samples taken after `since` in long form: time_s, kind, name, metric, value."""
        with translated():
            return self._native.series(since)

    def series(
        self, kind: str, name: str, metric: str, *, since: str = "0s"
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Times in seconds and values of one series after `since`; empty if there is no sample yet."""
        import numpy as np

        with translated():
            times, values = self._native.series_points(kind, name, metric, since=since)
        if not times and self.series_table().num_rows and not self._native.series_points(kind, name, metric)[0]:
            raise ResultsError(f"no series {kind}/{name}/{metric} is sampled (see probes)")
        return np.frombuffer(times, np.float64), np.frombuffer(values, np.float64)

    def __repr__(self) -> str:
        return f"<Simulation at {self.now:g} s>"
