"""The capacity of a Wi-Fi link that ABC's router estimates, as a measure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

VARIABLE = "wifi_capacity_bps"
"""The variable of ABC's router with `capacity = "wifi"`."""


def _capacity(run: Any, link: str) -> float:
    """Returns the mean estimate after warm-up, in Mb/s."""
    times, values = run.links[link][VARIABLE]
    values = values[times > run.summary["warmup_s"]]
    if not values.size:
        needs = 'ABC\'s router with capacity = "wifi", and the run probes.laws'
        raise ValueError(f'"wifi_capacity_mbps" was not sampled on "{link}": the link needs {needs}')
    return float(np.mean(values)) / 1e6


LINK: dict[str, Callable[[Any, str], float]] = {"wifi_capacity_mbps": _capacity}
