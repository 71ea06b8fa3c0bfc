# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Videos and advice as users see them: summary, tables, what `flowstamp run` prints, and the figures' measures."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pytest

import flowstamp as fs
from flowstamp import overview
from flowstamp.figures import videos
from flowstamp.figures.measures import Finished, RunSet

VIDEO = {"kind": "video", "ladder": ["1Mbps", "2Mbps", "4Mbps"], "startup": "4s"}


@pytest.fixture(scope="module")
def result() -> fs.Results:
    """A run with advice, which no test changes."""
    cell = fs.dumbbell("100Mbps", rtt="20ms", scone={"rate": "3Mbps"})
    return cell.flows("cubic", name="tv", application=VIDEO).flows("cubic", name="download", size="1MB").run("60s")


def test_playback_is_in_the_summary_and_in_the_table(result: fs.Results, tmp_path: Path) -> None:
    seen = result.groups["tv"]["video"]["whole_run"]
    assert seen["played_s"] + seen["stalled_s"] + seen["startup_s"] == pytest.approx(60)
    assert "video" not in result.groups["download"]
    result.write(tmp_path / "run")
    flows = pa.table(fs.load_results(tmp_path / "run").flows)
    tv, download = (row for row in flows.to_pylist())
    assert (tv["group"], tv["video_segments"]) == ("tv", seen["segments"])
    assert tv["video_bitrate_bps"] == pytest.approx(seen["bitrate_bps"])
    assert download["video_segments"] is None
    plain = pa.table(fs.dumbbell("10Mbps", rtt="20ms").flows("cubic").run("1s").flows)
    assert not [name for name in plain.column_names if name.startswith("video_")]


def test_a_run_shows_playback_and_advice(result: fs.Results) -> None:
    header, rows = overview.videos(result)
    assert header[0] == "videos"
    assert [row[0] for row in rows] == ["tv"]
    _, links = overview.advice(result)
    assert links[0][0] == "bottleneck"
    assert links[0][-1] == "2.818 Mbps"
    assert overview.advice(fs.dumbbell("10Mbps", rtt="20ms").flows("cubic").run("1s"))[1] == []


def test_a_viewer_who_never_started_has_no_share_of_stalls() -> None:
    early = fs.dumbbell("500kbps", rtt="20ms").flows("cubic", name="tv", application=VIDEO).run("2s")
    assert early.groups["tv"]["video"]["whole_run"]["stalled_share"] is None
    assert overview.videos(early)[1][0][5] == "-"
    finished = Finished.of(early._source, flow_series=False, packet_bytes=1000, scenario=early.manifest["scenario"])
    assert math.isnan(RunSet("early", [finished], ("bottleneck",), "tv").measure("stalled_share")[0])


def test_measures_of_figures_are_those_of_the_summary(result: fs.Results) -> None:
    finished = Finished.of(result._source, flow_series=False, packet_bytes=1000, scenario=result.manifest["scenario"])
    runs = RunSet("advised", [finished], ("bottleneck",), "tv")
    seen = result.groups["tv"]["video"]["after_warmup"]
    assert seen["bitrate_bps"] is not None
    watched_h = (seen["played_s"] + seen["stalled_s"]) / 3600
    assert runs.measure("switches_per_hour").tolist() == pytest.approx([seen["switches"] / watched_h])
    assert runs.measure("video_mbps").tolist() == pytest.approx([seen["bitrate_bps"] / 1e6])
    assert runs.measure("advice_mbps").tolist() == pytest.approx([2.818382])
    assert videos.FUNCTIONS["video"][1](runs, "tv", "stalled_share").tolist() == [0]
    with pytest.raises(ValueError, match='"download" has no videos'):
        videos.FUNCTIONS["video"][1](runs, "download", "video_mbps")
