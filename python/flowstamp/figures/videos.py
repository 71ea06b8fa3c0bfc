# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures of videos: playback of a group's viewers after warm-up, and the advice of a link."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def _playback(run: Any, group: str, part: str = "after_warmup") -> Mapping[str, Any]:
    found = run.summary["groups"][group].get("video")
    if found is None:
        raise ValueError(f'"{group}" has no videos')
    return found[part]  # type: ignore[no-any-return]


def _per_hour(count: str) -> Callable[[Any, str], float]:
    """Returns a count for each hour that a viewer watches."""

    def of(run: Any, group: str) -> float:
        seen = _playback(run, group)
        watched_s = float(seen["played_s"]) + float(seen["stalled_s"])
        return 3600 * float(seen[count]) / watched_s if watched_s else math.nan

    return of


def _bitrate(run: Any, group: str) -> float:
    bps = _playback(run, group)["bitrate_bps"]
    return math.nan if bps is None else float(bps) / 1e6


def _stalled(run: Any, group: str) -> float:
    share = _playback(run, group)["stalled_share"]
    return math.nan if share is None else float(share)


def _startup(run: Any, group: str) -> float:
    return float(_playback(run, group, "whole_run")["startup_s"]) / float(run.summary["groups"][group]["flows"])


def _advice(run: Any, link: str) -> float:
    found = run.used(link).get("scone")
    if found is None:
        raise ValueError(f"{link} gives no advice")
    bps = found["mean_advice_bps"]
    return math.nan if bps is None else float(bps) / 1e6


MEASURES: dict[str, Callable[[Any, str], float]] = {
    "stalled_share": _stalled,
    "stalls_per_hour": _per_hour("stalls"),
    "switches_per_hour": _per_hour("switches"),
    "video_mbps": _bitrate,
    "video_startup_s": _startup,
}
"""Measures of a group's viewers."""

LINK: dict[str, Callable[[Any, str], float]] = {"advice_mbps": _advice}
"""Measures of a link."""


def _of_group(runs: Any, group: str, name: str) -> Floats:
    """Returns a measure of the videos of a given group, for each point."""
    values: Floats = runs.of(group).measure(name)
    return values


FUNCTIONS: dict[str, tuple[int | None, Callable[..., Any]]] = {"video": (3, _of_group)}
