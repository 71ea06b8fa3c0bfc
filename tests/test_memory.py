# SPDX-License-Identifier: Apache-2.0 OR MIT
"""An upper bound of a run's memory is computed before the run; what is too much is refused in one line."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SCENARIO, Command

import flowstamp as fs
from flowstamp import _flowstamp, machine
from flowstamp.figures.catalogue import available, read

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "crates/flowstamp-sim/tests/golden"

DUMBBELL = '[dumbbell]\nrate = "{rate}"\nrtt = "40ms"\n'
FLOWS = '[[flows]]\nname = "{name}"\nlaw = "{law}"\n'


def hops(count: int, more: str = "") -> str:
    rates = ", ".join(['"10Mbps"'] * count)
    return f'duration = "10s"\n[parking_lot]\nrates = [{rates}]\ndelay = "10ms"\n{more}' + FLOWS.format(
        name="x", law="reno"
    )


TOO_MUCH = {
    "flows": (
        'duration = "1s"\n'
        + DUMBBELL.format(rate="1Gbps")
        + "".join(FLOWS.format(name=f"g{n}", law="reno") + "count = 1000000\n" for n in range(6)),
        r"flows\.g\d\.count: .* for 1000000 flows",
    ),
    "samples": (
        'duration = "100s"\n'
        + DUMBBELL.format(rate="1Gbps")
        + '[probes]\nevery = "10us"\nflows = true\n'
        + FLOWS.format(name="g", law="reno")
        + "count = 10000\n",
        r"probes\.every: .* for 10000001 samples of 30011 series",
    ),
    "packets that wait": (
        'duration = "1000s"\n'
        + DUMBBELL.format(rate="1Mbps")
        + 'access_rate = "10Gbps"\nbuffer = "4000000000pkt"\n'
        + FLOWS.format(name="g", law="udp")
        + 'rate = "5Gbps"\n',
        r"dumbbell\.buffer: .* for packets that may wait at 2 links",
    ),
    "packets at hosts": (
        'duration = "100s"\n'
        + DUMBBELL.format(rate="100Mbps")
        + 'access_rate = "20Mbps"\nrouter = "vcp"\n'
        + '[[flows]]\nname = "g"\nlaw = { law = "vcp", mi_limit = 1000, ai_limiter = "none" }\n',
        r"flows\.g\.count: .* for packets that these flows have on their way",
    ),
    "hops": (hops(2000) + "each_hop = true\n", r"(flows\.x\.count|parking_lot\.buffer): "),
    "captured packets": (
        'duration = "1000s"\n'
        + DUMBBELL.format(rate="10Gbps")
        + "[capture]\npackets = 4000000000\n"
        + FLOWS.format(name="g", law="reno"),
        r"capture\.packets: ",
    ),
}


@pytest.mark.parametrize(("text", "says"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_what_would_need_too_much_is_refused_before_it_runs(
    flowstamp: Command, tmp_path: Path, text: str, says: str
) -> None:
    (tmp_path / "large.toml").write_text(text)
    done = flowstamp("run", "large.toml", "--memory", "4GB", "--out", "out")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert re.search(says, line), line
    assert re.fullmatch(
        r"flowstamp: large\.toml: .*: the run may need \S+ [GT]B of memory, .* it may have 4\.0 GB: .*", line
    )
    assert not (tmp_path / "out").exists()


def test_a_unit_is_asked_for(flowstamp: Command, scenario: Path) -> None:
    done = flowstamp("run", scenario, "--memory", "4gb")
    assert done.returncode == 2
    assert "memory" in done.stderr
    assert "GB" in done.stderr


class StopError(Exception):
    """It began."""


def stop(*_: object) -> None:
    raise StopError


@pytest.mark.long
def test_what_figures_examples_and_golden_runs_need_fits_into_5_gb() -> None:
    for path in [*(ROOT / "examples").glob("*.toml"), *GOLDEN.glob("*.toml")]:
        if "[scenario]" not in path.read_text() and "[path]" not in path.read_text():
            fs.load(path).to_toml(memory="5GB")
    for path in available().values():
        figure = read(path)
        if figure.lab is not None:
            continue  # its scenario comes from the lab
        for spec in (figure, figure.fast_version()):
            simulated = [run for run in spec.runs if run.theory is None and run.on == "simulator"]
            # All runs of a figure together, as the command has them; of several seeds one after the other.
            jobs = [spec.job(run, point) for run in simulated for point in range(spec.points)]
            with contextlib.suppress(StopError):
                _flowstamp.run_many(jobs, memory=5_000_000_000, progress=stop)


# The estimate includes a process that only reads a scenario.
PROGRAM = 100e6
FACTOR = 10

MEASURED = {
    "flows": 'duration = "1s"\n'
    + DUMBBELL.format(rate="1Gbps")
    + FLOWS.format(name="g", law="reno")
    + 'count = 30000\nspread = "500ms"\n',
    "samples": 'duration = "10s"\n'
    + DUMBBELL.format(rate="10Mbps")
    + '[probes]\nevery = "1ms"\nflows = true\n'
    + FLOWS.format(name="g", law="reno")
    + "count = 100\n",
    "packets": 'duration = "4s"\n'
    + DUMBBELL.format(rate="10Gbps")
    + 'buffer = "10BDP"\n'
    + FLOWS.format(name="g", law="cubic")
    + "count = 4\n",
    "packets at hosts": 'duration = "20s"\n'
    + DUMBBELL.format(rate="1Gbps")
    + 'access_rate = "100Mbps"\n'
    + FLOWS.format(name="g", law="cubic"),
    "delivery rates": 'duration = "4s"\n[dumbbell]\nrate = "4Gbps"\nrtt = "200ms"\n'
    + FLOWS.format(name="g", law="bbr")
    + "count = 4\n",
    "web": 'duration = "20s"\n'
    + DUMBBELL.format(rate="1Gbps")
    + FLOWS.format(name="g", law="sack")
    + '[flows.web]\nload = 0.8\nsizes = { distribution = "exponential", mean = "20kB" }\n',
    "hops": hops(300, 'buffer = "50pkt"\n') + "each_hop = true\ncount = 4\n",
    "captured packets": 'duration = "4s"\n'
    + DUMBBELL.format(rate="1Gbps")
    + 'router = "xcp"\n[capture]\npackets = 400000\n'
    + FLOWS.format(name="g", law="xcp"),
}
GOLDEN_RUNS = ["bbr", "capture", "long-fat", "rcp-web", "wireless", "xcp-parking-lot", "xcp-shared-wfq", "fq-codel"]

PEAK = """
import sys
from flowstamp.cli import run_command
code = run_command(sys.argv[1:])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print("peak", peak.split()[1], file=sys.stderr)
sys.exit(code)
"""


def needs(path: Path) -> float:
    """The estimate, bytes."""
    with pytest.raises(fs.ScenarioError) as refused:
        fs.load(path).run(memory="1B")
    said = re.search(r"the run may need ([\d.]+) (\w+) of memory", str(refused.value))
    assert said
    return float(said[1]) * {"kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}[said[2]]


def peak(path: Path, out: Path) -> float:
    """The command's peak memory, bytes."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, "run", path, "--out", out, "--json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    return 1024 * float(done.stderr.split()[-1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("name", [*MEASURED, *GOLDEN_RUNS])
def test_the_estimate_is_an_upper_bound_and_not_far_above(tmp_path: Path, name: str) -> None:
    path = GOLDEN / f"{name}.toml"
    if name in MEASURED:
        path = tmp_path / "measured.toml"
        path.write_text(MEASURED[name])
    estimate, measured = needs(path), peak(path, tmp_path / "out")
    # Three digits are said.
    assert measured <= 1.05 * estimate
    assert estimate <= PROGRAM + FACTOR * measured


def test_runs_share_the_memory(flowstamp: Command, scenario: Path) -> None:
    grid = ["sweep", scenario, "--grid", "flows.long.count=" + ",".join(map(str, range(1, 9)))]
    # One at a time fits, all together would not: they wait for each other.
    assert flowstamp(*grid, "--memory", "110MB").returncode == 0
    refused = flowstamp(*grid, "--memory", "90MB")
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"flowstamp: {scenario}: the run may need")
    # Results stay, and those of all runs are too much: a million samples of each.
    many = ["--set", "probes.every=2us", "--grid", "flows.long.count=" + ",".join(map(str, range(1, 21)))]
    refused = flowstamp("sweep", scenario, *many, "--memory", "1500MB")
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"flowstamp: {scenario}: 20 runs may need ")
    assert refused.stderr.count("\n") == 1


def test_the_machine_is_what_the_process_may_have(tmp_path: Path) -> None:
    most = machine.memory()
    assert most is not None
    assert most > 0
    assert machine.memory("4GB") == 4_000_000_000
    with pytest.raises(fs.ScenarioError, match="memory"):
        machine.memory("4")
    groups = tmp_path / "cgroup"
    groups.write_text("9:name=systemd:/\n4:memory:/box/inner\n0::/slice/unit\n")
    for path, text in [
        ("memory/memory.limit_in_bytes", str(2**63 - 4096)),  # none
        ("memory/box/memory.limit_in_bytes", "3000"),
        ("memory/box/inner/memory.limit_in_bytes", "5000"),
        ("slice/memory.max", "max\n"),
        ("slice/unit/memory.max", "7000\n"),
    ]:
        file = tmp_path / "fs" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert sorted(machine.cgroup_limits(groups, tmp_path / "fs")) == [3000, 5000, 7000]
    assert list(machine.cgroup_limits(tmp_path / "none", tmp_path / "fs")) == []


def test_a_limit_of_the_process_counts(flowstamp: Command, tmp_path: Path) -> None:
    import resource

    (tmp_path / "many.toml").write_text(MEASURED["flows"].replace("30000", "60000"))

    def small() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (600_000_000, 600_000_000))

    done = flowstamp("run", "many.toml", preexec_fn=small)
    assert done.returncode == 2
    assert "it may have 450 MB" in done.stderr


def test_a_small_scenario_needs_little() -> None:
    assert fs.loads(SCENARIO).run(memory="150MB").summary["name"] == "three"
