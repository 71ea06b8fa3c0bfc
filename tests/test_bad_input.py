# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Bad input, full disks and interrupts: one line on standard error, its exit code, and nothing left behind."""

from __future__ import annotations

import json
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
    pytest.param("flows.long.law=cubik", ["law", "cubik", "cubic"], id="unknown law"),
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


def test_a_byte_order_mark_is_no_text(flowstamp: Command, tmp_path: Path) -> None:
    """Editors of Windows put one first: in scenarios, traces, distributions and lists it is left out."""
    text = TRACE.replace("[[flows]]", '[[flows]]\nlist = "list.csv"\nname = "listed"\nlaw = "reno"\n\n[[flows]]', 1)
    web = '[flows.web]\nflows_per_s = 5.0\nsizes = { distribution = "empirical", file = "sizes.txt" }\n'
    text += f'[[flows]]\nname = "web"\nlaw = "reno"\n{web}'
    files = {
        "marked.toml": text,
        "rate.trace": "1\n2\n",
        "list.csv": "start,size\n0,1000\n",
        "sizes.txt": "0 0\n1000 50\n2000 100\n",
    }
    results = []
    for mark in ["", "\ufeff"]:
        for name, content in files.items():
            (tmp_path / name).write_text(mark + content, encoding="utf-8")
        done = flowstamp("run", "marked.toml", "--set", "flows.listed.list=list.csv", "--json")
        assert done.returncode == 0, done.stderr
        results.append(done.stdout)
    assert results[0] == results[1] or json.loads(results[0])["groups"] == json.loads(results[1])["groups"]


@pytest.mark.parametrize(
    ("begin", "what"), [(b"\xff\xfe1\x00", "UTF-16"), (b"\x1f\x8b\x08", "gzip"), (b"\xff", "not UTF-8")]
)
def test_what_is_no_text_is_named(flowstamp: Command, tmp_path: Path, begin: bytes, what: str) -> None:
    (tmp_path / "bad.toml").write_text(TRACE)
    (tmp_path / "rate.trace").write_bytes(begin)
    line = one_line(flowstamp("run", "bad.toml"))
    assert "dumbbell.rate.trace: cannot read" in line
    assert what in line


def test_a_missing_file_is_named(flowstamp: Command) -> None:
    assert "none.toml: does not exist" in one_line(flowstamp("run", "none.toml"))


def test_a_folder_is_no_scenario(flowstamp: Command, tmp_path: Path) -> None:
    assert "is a folder; name a TOML file" in one_line(flowstamp("run", tmp_path))


def test_binary_is_no_scenario(flowstamp: Command, tmp_path: Path) -> None:
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    assert "binary.toml" in one_line(flowstamp("run", "binary.toml"))


def test_what_has_no_end_is_no_scenario(flowstamp: Command) -> None:
    assert "/dev/zero: has more than" in one_line(flowstamp("run", "/dev/zero"))


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "large"])
def test_a_trace_is_a_file_of_a_sensible_size(flowstamp: Command, tmp_path: Path, kind: str) -> None:
    trace = tmp_path / "rate.trace"
    if kind == "pipe":
        os.mkfifo(trace)
    elif kind == "device":
        trace = Path("/dev/zero")
    elif kind == "folder":
        trace.mkdir()
    else:
        with trace.open("wb") as file:
            file.truncate(300_000_000)
    (tmp_path / "bad.toml").write_text(TRACE.replace("rate.trace", str(trace)))
    line = one_line(flowstamp("run", "bad.toml"))
    said = {"pipe": "pipe or device; name a file", "device": "pipe or device", "folder": "it is a folder"}
    for word in ["bad.toml: dumbbell.rate.trace: ", f'"{trace}"', said.get(kind, "more than 268435456 bytes")]:
        assert word in line


NESTED = {
    "lists": "x = " + "[" * 100_000 + "]" * 100_000,
    "tables": "x = " + "{a = " * 100_000 + "1" + "}" * 100_000,
    "dots": "[" + ".".join("a" * 10_000) + "]",  # tomllib's time grows with the square of their number
    "not that deep": "x = " + "[" * 100 + "]" * 100,
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_what_is_nested_too_deep_is_one_line(flowstamp: Command, tmp_path: Path, text: str) -> None:
    (tmp_path / "deep.toml").write_text(SCENARIO + text if text.startswith("[") else text + "\n" + SCENARIO)
    assert one_line(flowstamp("run", "deep.toml")).startswith("flowstamp: deep.toml: is nested too deep")


@pytest.mark.parametrize(
    ("override", "word"),
    [
        (".".join("a" * 40_001) + "=1", "has 40001 parts"),
        ("x=" + "[" * 60_000 + "]" * 60_000, "unknown key `x`"),
        ("x={" + ".".join("a" * 60_000) + "=1}", "unknown key `x`"),
    ],
    ids=["key", "lists", "dots"],
)
def test_an_override_that_is_nested_too_deep_is_one_line(
    flowstamp: Command, scenario: Path, override: str, word: str
) -> None:
    line = one_line(flowstamp("run", scenario, "--set", override))
    assert word in line
    assert len(line) < 500


@pytest.mark.parametrize(
    ("value", "said"), [("nan", "NaN"), ("inf", "inf"), ("-inf", "-inf"), ("1979-05-27", "datetime")]
)
def test_a_number_that_is_none_is_named(flowstamp: Command, tmp_path: Path, value: str, said: str) -> None:
    router = f'router = {{ law = "xcp", alpha = {value} }}'
    (tmp_path / "bad.toml").write_text(SCENARIO.replace('router = "xcp"', router))
    line = one_line(flowstamp("run", "bad.toml"))
    for word in ["bad.toml: ", "alpha: ", said]:
        assert word in line


BAD_LINES = [
    pytest.param(["--foo"], "--foo", id="unknown option"),
    pytest.param(["runn"], "runn", id="unknown command"),
    pytest.param(["run"], "SCENARIO.toml", id="no scenario"),
    pytest.param(["run", "three.toml", "--sed", "1"], "--sed", id="unknown option of a command"),
    pytest.param(["run", "three.toml", "--seed", "-1"], "-1", id="negative seed"),
    pytest.param(["run", "three.toml", "--seed", "x"], "x", id="seed that is no number"),
    pytest.param(["run", "three.toml", "--seed", str(2**63)], str(2**63), id="seed that no file could hold"),
    pytest.param(["run", "three.toml", "more"], "more", id="too many arguments"),
    pytest.param(["run", "three.toml", "--trace"], "--out", id="trace without a folder"),
    *(
        pytest.param([*command, "--out", ""], "--out", id=f"folder without a name: {command[0]}")
        for command in (
            ["run", "three.toml"],
            ["compare", "three.toml", "--protocols", "xcp"],
            ["sweep", "three.toml", "--grid", "flows.long.count=1"],
            ["figure", "X10"],
            ["demo"],
            ["doctor"],
            ["schema"],
            ["dissector"],
            ["web"],
        )
    ),
    pytest.param(["compare", "three.toml"], "--protocols", id="nothing to compare"),
    pytest.param(["compare", "three.toml", "--protocols", "xcp,cubik"], "cubik", id="unknown protocol"),
    pytest.param(
        ["compare", "three.toml", "--protocols", "xcp,cubik"],
        '"cubik" is not a protocol; did you mean "cubic"?',
        id="known protocols",
    ),
    pytest.param(["compare", "three.toml", "--protocols", "reno+blue"], "blue", id="unknown queue"),
    pytest.param(["compare", "three.toml", "--protocols", "reno+"], "is not a queue", id="no queue after a plus"),
    pytest.param(
        ["compare", "three.toml", "--protocols", "xcp,reno/red"], 'write "reno+red"', id="slash in a protocol"
    ),
    pytest.param(
        [
            *("compare", "three.toml", "--protocols", "reno,xcp", "--set", "flows.long.law=reno"),
            *("--set", "dumbbell.router=none", "--set", 'dumbbell.rate={steps=[["0s","1Mbps"]],known=false}'),
        ],
        'three.toml with xcp: dumbbell.router: "xcp" needs',
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


TOLD = [
    ["run", "three.toml"],
    ["run", "three.toml", "--json"],
    ["schema"],
    ["--help"],
    ["--version"],
    ["figure", "list"],
]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", TOLD, ids=" ".join)
def test_standard_output_that_is_full_is_an_error(scenario: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command_line(*arguments),
            cwd=scenario.parent,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "flowstamp: standard output: No space left on device\n"


@pytest.mark.parametrize("arguments", TOLD, ids=" ".join)
def test_standard_output_that_is_closed_is_an_error(flowstamp: Command, scenario: Path, arguments: list[str]) -> None:
    options = ["--out", "results"] if arguments[0] == "run" else []
    done = flowstamp(*arguments, *options, preexec_fn=lambda: os.close(1))
    said = "flowstamp: standard output is closed; send it to a file or a pipe, or to /dev/null\n"
    assert (done.returncode, done.stderr) == (2, said)
    assert [path.name for path in scenario.parent.iterdir()] == ["three.toml"]  # before any work


def test_without_standard_error_the_exit_code_says_it(flowstamp: Command) -> None:
    assert flowstamp("run", "none.toml", preexec_fn=lambda: os.close(2)).returncode == 2
    assert flowstamp("--version", preexec_fn=lambda: os.close(2)).returncode == 0


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


def test_an_interrupt_stops_the_loading_of_a_scenario(tmp_path: Path) -> None:
    # A row of many links takes a while to lay out, whose flows each have a path of one.
    rates = ", ".join(['"10Mbps"'] * 100_000)
    network = f'duration = "1s"\n[parking_lot]\nrates = [{rates}]\ndelay = "1ms"\nbuffer = "2pkt"\n'
    text = network + '[[flows]]\nname = "x"\nlaw = "reno"\neach_hop = true\n'
    (tmp_path / "long.toml").write_text(text)
    with subprocess.Popen(
        command_line("run", "long.toml"),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    ) as process:
        time.sleep(1.0)
        assert process.poll() is None
        os.kill(process.pid, signal.SIGINT)
        out, said = process.communicate(timeout=30)
    assert (process.returncode, out, said) == (130, "", "interrupted\n")


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
