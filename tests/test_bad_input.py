# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Bad input, full disks and interrupts: one line on standard error, its exit code, and nothing left behind."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import SCENARIO, Command, command_line, heed_interrupts


def one_line(done: subprocess.CompletedProcess[str], code: int = 2) -> str:
    """Checks that the command failed as it should; returns its line."""
    assert done.returncode == code, done
    assert done.stdout == ""
    assert done.stderr.endswith("\n")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.rstrip("\n")


BAD_SETS = [
    pytest.param("dumbbell.speed=45Mbps", ["dumbbell.speed", "rate"], id="unknown key"),
    pytest.param("dumbell.rate=45Mbps", ["dumbell", "dumbbell"], id="unknown table"),
    pytest.param("dumbbell.rate=45", ["dumbbell.rate", "45", "Mbps"], id="missing unit"),
    pytest.param(
        "dumbbell.rate=45mbps", ["dumbbell.rate", "45mbps", 'did you mean "Mbps"'], id="unit in the wrong case"
    ),
    pytest.param("dumbbell.rate=0Mbps", ["dumbbell.rate", "0"], id="zero rate"),
    pytest.param("dumbbell.rtt=-40ms", ["dumbbell.rtt", "-40ms", "negative"], id="negative time"),
    pytest.param("duration=-1s", ["duration", "-1s", "negative"], id="negative duration"),
    pytest.param("duration=0s", ["duration"], id="no duration"),
    pytest.param("flows.long.from=nowhere", ["nowhere"], id="no such node"),
    pytest.param("flows.long.law=cubik", ["law", "cubik", "reno"], id="unknown law"),
    pytest.param("flows.short.count=1", ["flows.short.count", "short", "long"], id="unknown group"),
    pytest.param("dumbbell.buffer=10", ["dumbbell.buffer", "10"], id="buffer without unit"),
    pytest.param("=3", ["--set"], id="no key"),
    pytest.param("dumbbell.rate", ["--set", "KEY=VALUE"], id="no value"),
]


@pytest.mark.parametrize(("override", "words"), BAD_SETS)
def test_a_bad_value_is_named(flowstamp: Command, scenario: Path, override: str, words: list[str]) -> None:
    line = one_line(flowstamp("run", scenario, "--set", override, "--out", "results"))
    for word in words:
        assert word in line
    assert not (scenario.parent / "results").exists()


GRAPH = """\
duration = "1s"
[[graph.links]]
from = "a"
to = "b"
rate = "1Mbps"
delay = "1ms"
[[graph.links]]
from = "c"
to = "d"
rate = "1Mbps"
delay = "1ms"
[[flows]]
name = "lost"
law = "reno"
from = "a"
to = "d"
"""

TRACE = SCENARIO.replace('rate = "20Mbps"', 'rate = { trace = "rate.trace" }')

BAD_FILES = [
    pytest.param("duration = \n", ["line 1", "TOML"], id="no TOML"),
    pytest.param("", ["duration"], id="empty"),
    pytest.param('duration = "1s"\n', ["dumbbell"], id="no network"),
    pytest.param(GRAPH, ["lost", "a", "d", "path"], id="no path"),
    pytest.param(TRACE, ["rate.trace", "line 2"], id="trace that does not parse"),
    pytest.param(
        TRACE.replace("rate.trace", "none.trace"), ["none.trace", "No such file"], id="trace that is not there"
    ),
]


@pytest.mark.parametrize(("text", "words"), BAD_FILES)
def test_a_bad_file_is_named(flowstamp: Command, tmp_path: Path, text: str, words: list[str]) -> None:
    (tmp_path / "bad.toml").write_text(text)
    (tmp_path / "rate.trace").write_text("0\nsoon\n")
    line = one_line(flowstamp("run", "bad.toml"))
    for word in ["bad.toml", *words]:
        assert word in line


def test_a_missing_file_is_named(flowstamp: Command) -> None:
    assert "none.toml: cannot be read: No such file" in one_line(flowstamp("run", "none.toml"))


def test_a_folder_is_no_scenario(flowstamp: Command, tmp_path: Path) -> None:
    assert "cannot be read: Is a directory" in one_line(flowstamp("run", tmp_path))


def test_binary_is_no_scenario(flowstamp: Command, tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    assert "binary.toml" in one_line(flowstamp("run", "binary.toml"))


BAD_LINES = [
    pytest.param([], "Missing command", id="nothing"),
    pytest.param(["--foo"], "--foo", id="unknown option"),
    pytest.param(["runn"], "runn", id="unknown command"),
    pytest.param(["run"], "SCENARIO.toml", id="no scenario"),
    pytest.param(["run", "three.toml", "--sed", "1"], "--sed", id="unknown option of a command"),
    pytest.param(["run", "three.toml", "--seed", "-1"], "-1", id="negative seed"),
    pytest.param(["run", "three.toml", "--seed", "x"], "x", id="seed that is no number"),
    pytest.param(["run", "three.toml", "--seed", str(2**63)], str(2**63), id="seed that no file could hold"),
    pytest.param(["run", "three.toml", "more"], "more", id="too many arguments"),
    pytest.param(["run", "three.toml", "--trace"], "--out", id="trace without a folder"),
    pytest.param(["compare", "three.toml"], "--protocols", id="nothing to compare"),
    pytest.param(["compare", "three.toml", "--protocols", "xcp,cubik"], "cubik", id="unknown protocol"),
    pytest.param(["compare", "three.toml", "--protocols", "xcp,cubik"], "are xcp, xcp-draft", id="known protocols"),
    pytest.param(["compare", "three.toml", "--protocols", "reno+blue"], "blue", id="unknown queue"),
    pytest.param(["compare", "three.toml", "--protocols", "reno+"], "is no queue", id="no queue after a plus"),
    pytest.param(
        ["compare", "three.toml", "--protocols", "xcp,reno/red"], 'write "reno+red"', id="slash in a protocol"
    ),
    pytest.param(
        [
            *("compare", "three.toml", "--protocols", "reno,xcp", "--set", "flows.long.law=reno"),
            *("--set", "dumbbell.router=none", "--set", 'dumbbell.rate={steps=[["0s","1Mbps"]],known=false}'),
        ],
        'three.toml with xcp: router of bottleneck: "xcp" needs',
        id="law that a link cannot carry",
    ),
    pytest.param(["compare", "three.toml", "--protocols", "reno,reno"], "twice", id="protocol twice"),
    pytest.param(["sweep", "three.toml"], "--grid", id="no grid"),
    pytest.param(["sweep", "three.toml", "--grid", "dumbbell.rate"], "KEY=V1,V2", id="grid without values"),
    pytest.param(["sweep", "three.toml", "--grid", "dumbbell.rate=1Mbps,2"], "dumbbell.rate", id="bad value in a grid"),
]


@pytest.mark.parametrize(("arguments", "word"), BAD_LINES)
@pytest.mark.usefixtures("scenario")
def test_a_bad_command_line_is_one_line(flowstamp: Command, arguments: list[str], word: str) -> None:
    assert word in one_line(flowstamp(*arguments))


@pytest.mark.parametrize("command", ["run", "compare", "sweep"])
@pytest.mark.parametrize("out", ["three.toml", "three.toml/results", "/proc/results", "/dev/null"])
def test_a_folder_that_cannot_be_written_is_named(flowstamp: Command, scenario: Path, command: str, out: str) -> None:
    options = {"run": [], "compare": ["--protocols", "xcp"], "sweep": ["--grid", "flows.long.count=1"]}[command]
    line = one_line(flowstamp(command, scenario, *options, "--out", out))
    assert out.removesuffix("/results") in line
    assert scenario.read_text() == SCENARIO


def test_a_file_in_the_way_is_named_and_nothing_changes(flowstamp: Command, scenario: Path) -> None:
    out = scenario.parent / "results"
    (out / "flows.parquet").mkdir(parents=True)
    (out / "summary.json").write_text("old")
    assert "flows.parquet" in one_line(flowstamp("run", scenario, "--out", out))
    assert sorted(path.name for path in out.iterdir()) == ["flows.parquet", "summary.json"]
    assert (out / "summary.json").read_text() == "old"


# The first that does not fit: the manifest, the summary of 2,787 bytes, the series of 2,932.
@pytest.mark.parametrize("limit", [0, 1500, 2850])
def test_a_disk_that_fills_up_leaves_nothing(flowstamp: Command, scenario: Path, limit: int) -> None:
    out = scenario.parent / "new" / "results"

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    line = one_line(flowstamp("run", scenario, "--out", out, preexec_fn=small))
    assert str(out) in line
    assert "File too large" in line
    assert not out.parent.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 16 KiB, where we may make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], capture_output=True, check=False)
    if done.returncode:
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("trace", [False, True])
def test_a_full_disk_leaves_nothing(flowstamp: Command, scenario: Path, small_disk: Path, trace: bool) -> None:
    (small_disk / "filler").write_bytes(bytes(4096 if trace else 12288))
    out = small_disk / "results"
    line = one_line(flowstamp("run", scenario, "--out", out, *(["--trace"] if trace else [])))
    assert str(out) in line
    assert "No space left on device" in line
    assert not out.exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_standard_output_that_is_full_is_an_error(scenario: Path, as_json: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command_line("run", scenario, *as_json), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == "flowstamp: standard output: No space left on device\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--out", "results"],
        ["compare", "--protocols", "xcp,reno", "--out", "results"],
        ["sweep", "--grid", "flows.long.count=1,2,3", "--out", "results"],
    ],
)
def test_an_interrupt_stops_at_once_and_leaves_nothing(scenario: Path, arguments: list[str]) -> None:
    command, *options = arguments
    with subprocess.Popen(
        command_line(command, scenario, *options, "--set", "duration=1000h"),
        cwd=scenario.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    ) as process:
        time.sleep(1.5)
        assert process.poll() is None
        began = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        out, said = process.communicate(timeout=30)
    assert time.monotonic() - began < 5
    assert (process.returncode, out, said) == (130, "", "interrupted\n")
    assert [path.name for path in scenario.parent.iterdir()] == ["three.toml"]


def test_a_reader_that_goes_away_is_no_error_message(scenario: Path) -> None:
    with subprocess.Popen(
        command_line("run", scenario, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert said == ""
    assert process.returncode == -signal.SIGPIPE
