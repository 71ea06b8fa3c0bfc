# SPDX-License-Identifier: Apache-2.0 OR MIT
"""The command when all is well."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import jsonschema
import pytest
from conftest import SCENARIO, Command

import flowstamp as fs
from flowstamp import text

FILES = ["delays.parquet", "flows.parquet", "manifest.json", "series.parquet", "summary.json"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def document(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    """The one JSON document of a command that did what was asked and said nothing else."""
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    parsed: dict[str, object] = json.loads(done.stdout)
    return parsed


def test_run_prints_a_summary(flowstamp: Command, scenario: Path) -> None:
    done = flowstamp("run", scenario)
    assert done.returncode == 0
    assert done.stderr == ""
    for word in ["three: 2 s simulated, seed 1", "bottleneck", "20 Mbps", "long", "xcp"]:
        assert word in done.stdout
    assert done.stdout.splitlines()[-1] == "assumed: router initial_interval = 40ms on 2 links"
    assert names(scenario.parent) == ["three.toml"]


def test_a_time_far_off_is_one_line_on_stderr(flowstamp: Command, scenario: Path) -> None:
    router = 'dumbbell.router={ law = "xcp", initial_interval = "4s" }'
    done = flowstamp("run", scenario, "--set", router, "--set", "duration=100ms", "--set", "warmup=0s")
    assert done.returncode == 0
    where = f"flowstamp: warning: {scenario}: router of bottleneck and bottleneck.reverse: initial_interval: "
    assert done.stderr == where + "is 4s, but the flows' RTT is 40ms; leave it out for that\n"


def test_run_fills_a_folder(flowstamp: Command, scenario: Path) -> None:
    out = scenario.parent / "a" / "b"
    summary = document(flowstamp("run", scenario, "--seed", 7, "--out", out, "--json"))
    assert names(out) == FILES
    assert sorted(summary.pop("files")) == [str(out / name) for name in FILES]  # type: ignore[call-overload]
    assert json.loads((out / "summary.json").read_text()) == summary
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["seed"] == 7
    assert manifest["scenario"]["dumbbell"]["rate"] == "20Mbps"
    assert set(manifest) == {"version", "seed", "scenario", "host", "took"}
    assert manifest["host"]["cpus"] >= 1


def test_runs_repeat_to_the_byte(flowstamp: Command, scenario: Path) -> None:
    for out in ("one", "two"):
        document(flowstamp("run", scenario, "--seed", 3, "--set", "flows.long.spread=100ms", "--out", out, "--json"))
    for name in ("flows.parquet", "series.parquet", "summary.json"):
        one, two = ((scenario.parent / out / name).read_bytes() for out in ("one", "two"))
        assert one == two
    # How long it took is the manifest's to tell, and all in which two of the same run differ.
    first, second = (json.loads((scenario.parent / out / "manifest.json").read_text()) for out in ("one", "two"))
    assert set(first.pop("took")) == set(second.pop("took")) == {"wall_s", "cpu_s", "packet_hops_per_s"}
    assert first == second


def test_what_a_killed_run_left_goes_with_the_next(flowstamp: Command, scenario: Path) -> None:
    (scenario.parent / "out").mkdir()
    for name in (".summary.json.4000000.tmp", ".trace.pcapng.1.tmp"):
        (scenario.parent / "out" / name).write_text("half")
    for name in (".notes.tmp", "sweep.csv.1.tmp"):
        (scenario.parent / "out" / name).write_text("somebody's")
    document(flowstamp("run", scenario, "--out", "out", "--json"))
    assert names(scenario.parent / "out") == sorted([*FILES, ".notes.tmp", "sweep.csv.1.tmp"])
    (scenario.parent / "out" / ".sweep.csv.1.tmp").write_text("half")
    document(flowstamp("sweep", scenario, "--grid", "flows.long.count=1", "--out", "out", "--json"))
    assert not (scenario.parent / "out" / ".sweep.csv.1.tmp").exists()


def test_a_folder_can_be_written_again(flowstamp: Command, scenario: Path) -> None:
    document(flowstamp("run", scenario, "--out", "out", "--trace", "--json"))
    assert names(scenario.parent / "out") == sorted([*FILES, "flowstamp.lua", "trace.pcapng"])
    document(flowstamp("run", scenario, "--out", "out", "--set", "name=again", "--json"))
    # The packets of the run before are not taken for this one's.
    assert names(scenario.parent / "out") == sorted([*FILES, "flowstamp.lua"])
    assert json.loads((scenario.parent / "out" / "summary.json").read_text())["name"] == "again"


@pytest.mark.long
@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
@pytest.mark.parametrize("law", ["xcp", "xcp-draft"])
def test_wireshark_reads_the_trace(flowstamp: Command, scenario: Path, law: str) -> None:
    laws = [f"--set=dumbbell.router={law}", f"--set=flows.long.law={law}"]
    document(flowstamp("run", scenario, *laws, "--out", "out", "--trace", "--json"))
    fields = ["frame.interface_name", "frame.len", "xcp.x", "xcp.rtt", "xcp.delta_throughput", "xcp.reverse_feedback"]
    shown = subprocess.run(
        ["tshark", "-X", "lua_script:out/flowstamp.lua", "-r", "out/trace.pcapng", "-T", "fields"]
        + [word for field in fields for word in ("-e", field)],
        cwd=scenario.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    if "aren't valid" in shown.stderr:
        pytest.skip("this tshark loads no scripts for this user")
    rows = [line.split("\t") for line in shown.stdout.splitlines()]
    data = [row for row in rows if row[0] == "bottleneck"]
    acks = [row for row in rows if row[0] == "bottleneck.reverse"]
    assert len(data) > 1000
    assert len(acks) > 1000
    # 1000 bytes of IP and 14 of Ethernet; an ack's 40 bytes of IP and TCP grow by the XCP header.
    assert {row[1] for row in data} == {"1014"}
    assert {row[1] for row in acks} == {"74"}
    # Once the first round trip is over, data carries an RTT of 40 ms and some queueing, and the time between packets
    # of a third of 20 Mb/s: 1.2 ms.
    for row in data[len(data) // 2 :]:
        assert 0.040 < float(row[3]) < 0.060
        assert 0.0006 < float(row[2]) < 0.0024
    assert any(float(row[4]) > 0 for row in data)
    assert any(float(row[5]) > 0 for row in acks)
    assert any(float(row[5]) < 0 for row in acks)


@pytest.mark.long
def test_compare_shows_protocols_side_by_side(flowstamp: Command, scenario: Path) -> None:
    done = flowstamp("compare", scenario, "--protocols", "xcp,reno+red", "--out", "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == ["xcp", "reno+red"]
    assert names(scenario.parent / "out") == [
        "compare.pdf",
        "compare.png",
        "delays.pdf",
        "delays.png",
        "reno+red",
        "xcp",
    ]
    found = document(flowstamp("compare", scenario, "--protocols", "xcp,reno+red", "--out", "out", "--json"))
    protocols = found["protocols"]
    assert isinstance(protocols, dict)
    assert {name: summary["groups"]["long"]["law"] for name, summary in protocols.items()} == {
        "xcp": "xcp",
        "reno+red": "reno",
    }
    # One table, whose cells are what the document has.
    first = [line for line in done.stdout.splitlines() if line.startswith("bottleneck ")]
    assert [line.split("  ")[0] for line in first] == [
        "bottleneck utilisation",
        "bottleneck mean queue",
        "bottleneck p95 queueing delay",
        "bottleneck drops",
        "bottleneck marks",
    ]
    everything = flowstamp("compare", scenario, "--protocols", "xcp,reno+red", "--out", "out", "--all")
    shown = everything.stdout.splitlines()
    for statistic in ("mean", "p50", "p95", "p99"):
        (cells,) = [line.split()[3:] for line in shown if line.startswith(f"bottleneck {statistic} queue ")]
        queues = [summary["links"]["bottleneck"][f"{statistic}_queue_bytes"] for summary in protocols.values()]
        assert " ".join(cells) == " ".join(text.size(queue) for queue in queues)
    # Nobody waits for the way back's acks.
    assert [line.split()[1] for line in shown if line.startswith("bottleneck.reverse")] == ["utilisation"]
    manifest = json.loads((scenario.parent / "out" / "reno+red" / "manifest.json").read_text())
    assert manifest["scenario"]["dumbbell"]["router"]["law"] == "none"
    assert manifest["scenario"]["dumbbell"]["queue"]["kind"] == "red"


def test_a_manifest_runs_again(flowstamp: Command, scenario: Path) -> None:
    first = flowstamp("run", scenario, "--seed", "7", "--set", "dumbbell.rate=9Mbps", "--out", "one", "--json")
    again = flowstamp("run", "one/manifest.json", "--out", "two", "--json")
    assert (first.returncode, again.returncode) == (0, 0), again.stderr
    for name in ("series.parquet", "flows.parquet"):
        one, two = (scenario.parent / folder / name for folder in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
    manifest = json.loads((scenario.parent / "one" / "manifest.json").read_text())
    for broken, said in (
        ("[]", 'has no "scenario"; name a TOML file or the manifest.json of a run'),
        ("{", "not JSON"),
        (json.dumps({**manifest, "changes": [{}]}), "changes: its run was changed while it ran"),
        (json.dumps({**manifest, "scenario": {"duration": "1s", "dumbell": {}}}), "did you mean `dumbbell`?"),
    ):
        (scenario.parent / "broken.json").write_text(broken)
        done = flowstamp("run", "broken.json")
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert said in done.stderr


IMPAIRED = [
    *("--set", "dumbbell.impairments={ loss = 0.02, duplicate = '1%' }"),
    *("--set", "dumbbell.reverse_impairments={}"),
]


def test_impaired_links_are_shown(flowstamp: Command, scenario: Path) -> None:
    link = document(flowstamp("run", scenario, *IMPAIRED, "--json"))["links"]["bottleneck"]  # type: ignore[index]
    assert link["lost"] > 0
    shown = [line.split() for line in flowstamp("run", scenario, *IMPAIRED).stdout.splitlines()]
    header = shown.index(["impaired", "link", "lost", "duplicated", "reordered", "detoured", "marked"])
    rows = [row for row in shown[header + 1 :] if row and row[0].startswith("bottleneck")]
    assert rows == [
        ["bottleneck", str(link["lost"]), str(link["duplicated"]), *"000"],
        ["bottleneck.reverse", *"00000"],
    ]


@pytest.mark.long
def test_impaired_links_stay_so_for_each_protocol(flowstamp: Command, scenario: Path) -> None:
    command = ("compare", scenario, *IMPAIRED, "--protocols", "xcp,reno+red", "--out", "out")
    protocols = document(flowstamp(*command, "--json"))["protocols"]
    lost = [summary["links"]["bottleneck"]["lost"] for summary in protocols.values()]  # type: ignore[attr-defined]
    assert min(lost) > 0
    (cells,) = [
        line.split()[-2:] for line in flowstamp(*command).stdout.splitlines() if line.startswith("bottleneck lost")
    ]
    assert cells == list(map(str, lost))


CELL = """
duration = "2s"
packet = "1300B"
[graph]
links = [{ name = "wire", from = "n", to = "ap", rate = "100Mbps", delay = "5ms" }]
[[wireless]]
name = "air"
access_point = "ap"
router = { law = "xcp-b", kappa = "5pkt" }
stations = [
    { name = "w0", rate = "11Mbps", router = "xcp-b", queue = "red" },
    { name = "w1", rate = "2Mbps" },
]
[[flows]]
name = "down"
law = "cubic"
from = "n"
to = "w0"
[[flows]]
name = "up"
law = "cubic"
from = "w1"
to = "n"
"""


@pytest.mark.parametrize("law", ["rcp", "vcp"])
def test_compare_refuses_a_law_that_a_cell_tells_too_little(flowstamp: Command, tmp_path: Path, law: str) -> None:
    (tmp_path / "cell.toml").write_text(CELL)
    refused = flowstamp("compare", "cell.toml", "--protocols", f"xcp,{law}", "--out", "none")
    assert refused.returncode == 2
    assert refused.stdout == ""
    (line,) = refused.stderr.splitlines()
    assert f'cell.toml with {law}: wireless.air.router: "{law}" needs the link\'s capacity' in line
    assert "set the capacity that it assumes with `told`" in line


@pytest.mark.long
def test_compare_puts_a_laws_router_on_cells(flowstamp: Command, tmp_path: Path) -> None:
    (tmp_path / "cell.toml").write_text(CELL)
    told = ["--set", "wireless.air.told=5Mbps"]

    def routers(protocols: str, *options: str) -> dict[str, tuple[object, ...]]:
        command = ["compare", "cell.toml", "--protocols", protocols, "--out", "out", "--json", *options]
        found = document(flowstamp(*command))["protocols"]
        assert isinstance(found, dict)
        laws: dict[str, tuple[object, ...]] = {}
        for name, summary in found.items():
            assert {group["law"] for group in summary["groups"].values()} == {name.partition("+")[0]}
            scenario = json.loads((tmp_path / "out" / name / "manifest.json").read_text())["scenario"]
            (cell,) = scenario["wireless"]
            (wire,) = scenario["graph"]["links"]
            near, far = cell["stations"]
            assert "router" not in far
            assert near["router"]["law"] == cell["router"]["law"]
            queues = cell["queue"]["kind"], near["queue"]["kind"], far.get("queue")
            laws[name] = (wire["router"]["law"], cell["router"]["law"], cell["router"].get("kappa"), queues)
        return laws

    stay, codel, by_flow = ("droptail", "red", None), ("codel", "codel", None), ("fq_codel", "fq_codel", None)
    assert routers("xcp,xcp-draft,cubic+codel,cubic+fq_codel,bbr+fq_codel,bbr") == {
        "xcp": ("xcp", "xcp-b", "5pkt", stay),  # as it was, with its parameters
        "xcp-draft": ("xcp-draft", "xcp-b-draft", "3pkt", stay),
        "cubic+codel": ("none", "none", None, codel),
        "cubic+fq_codel": ("none", "none", None, by_flow),
        "bbr+fq_codel": ("none", "none", None, by_flow),
        "bbr": ("none", "none", None, stay),
    }
    assert routers("xcp,rcp,vcp", *told) == {
        "xcp": ("xcp", "xcp", None, stay),
        "rcp": ("rcp", "rcp", None, stay),
        "vcp": ("vcp", "vcp", None, stay),
    }
    shown = flowstamp("compare", "cell.toml", "--protocols", "xcp,cubic", "--out", "out").stdout.splitlines()
    assert [len(line.split()) for line in shown if line.startswith("air busy")] == [4]


def test_compare_takes_the_scenario_of_a_figure(flowstamp: Command, tmp_path: Path) -> None:
    file = Path(__file__).parents[1] / "figures" / "X10.toml"
    options = ("--protocols", "xcp,cubic+codel", "--set", "duration=1s", "--out", tmp_path / "out", "--json")
    protocols = document(flowstamp("compare", file, *options))["protocols"]
    assert isinstance(protocols, dict)
    assert [summary["groups"]["flows"]["law"] for summary in protocols.values()] == ["xcp", "cubic"]
    assert {"compare.png", "delays.png", *protocols} <= set(names(tmp_path / "out"))


def test_sweep_runs_every_combination(flowstamp: Command, scenario: Path) -> None:
    grid = ["--grid", "dumbbell.rate=10Mbps,20Mbps", "--grid", "flows.long.count=1,2"]
    done = flowstamp(
        "sweep", scenario, *grid, "--set", "flows.long.spread=100ms", "--seeds", 2, "--out", "out", "--json"
    )
    runs = document(done)["runs"]
    assert isinstance(runs, list)
    assert len(runs) == 8
    assert runs[-1]["point"] == {"dumbbell.rate": "20Mbps", "flows.long.count": 2, "seed": 2}
    assert runs[-1]["summary"]["groups"]["long"]["flows"] == 2
    assert runs[-1]["summary"]["seed"] == 2
    header, *rows = (scenario.parent / "out" / "sweep.csv").read_text().splitlines()
    assert header == "dumbbell.rate,flows.long.count,seed,kind,name,metric,value"
    assert any(row.startswith("10Mbps,1,1,link,bottleneck,utilization,0.") for row in rows)
    assert flowstamp("sweep", scenario, *grid).stdout.count("\n") == 5


def test_schema_describes_the_scenario(flowstamp: Command) -> None:
    schema = document(flowstamp("schema"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(fs.loads(SCENARIO).resolved(), schema)
    wrong = fs.loads(SCENARIO).resolved()
    wrong["dumbbell"]["rate"] = "20mbps"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema)


def test_schema_knows_laws_by_name(flowstamp: Command) -> None:
    jsonschema.validate(tomllib.loads(SCENARIO), document(flowstamp("schema")))


def test_dissector_is_what_captures_come_with(flowstamp: Command, tmp_path: Path) -> None:
    text = flowstamp("dissector", "--out", tmp_path).stdout.removesuffix("\n")
    assert (tmp_path / "flowstamp.lua").read_text() == text
    assert document(flowstamp("dissector", "--json")) == {"flowstamp.lua": text}
    for proto in ['Proto("xcp"', 'Proto("rcp"', 'Proto("flowstamp"']:
        assert text.count(proto) == 1


def test_doctor_tells_what_is_installed(flowstamp: Command) -> None:
    found = document(flowstamp("doctor", "--json"))
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert "xcp" in found["laws"]["senders"]  # type: ignore[index]
    assert flowstamp("doctor").returncode == 0


def test_help_is_plain(flowstamp: Command) -> None:
    for command in ["", "run", "compare", "figure", "demo", "sweep", "doctor", "schema", "dissector", "web"]:
        done = flowstamp(*command.split(), "--help")
        assert done.returncode == 0
        assert "Usage: flowstamp" in done.stdout
        if command:
            for option in ["--json", "--out"]:
                assert option in done.stdout


def test_without_a_subcommand_the_help_is_an_error(flowstamp: Command) -> None:
    done = flowstamp()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == flowstamp("--help").stdout


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("run", "x.toml", "--threads", "two"), "--threads: 'two' is not a whole number; see flowstamp run --help"),
        (("run", "x.toml", "--threads", "0"), "--threads: 0 is too small; use at least 1; see flowstamp run --help"),
        (("web", "--port", "99999"), "--port: 99999 is out of range; use 0 to 65535; see flowstamp web --help"),
    ],
)
def test_a_wrong_number_is_one_plain_line(flowstamp: Command, arguments: tuple[str, ...], line: str) -> None:
    done = flowstamp(*arguments)
    assert (done.returncode, done.stderr) == (2, f"flowstamp: {line}\n")


def test_version_is_quick(flowstamp: Command) -> None:
    done = flowstamp("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("flowstamp ")


def test_run_loads_neither_numpy_nor_matplotlib(scenario: Path) -> None:
    program = (
        "import sys; from flowstamp.cli import run_command; code = run_command(sys.argv[1:]); "
        "print(*sorted({'numpy', 'matplotlib', 'rich', 'pandas', 'pyarrow'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program, "run", scenario], capture_output=True, text=True, check=True)
    assert done.stderr == "\n"


def test_progress_is_shown_at_a_terminal_only(scenario: Path) -> None:
    # The bar shows at once here: how long the work takes depends on the machine. The engine reports ten times a second.
    program = "from flowstamp import __main__, progress; progress.QUIET_S = 0; __main__.main()"
    slow = ["--set", "dumbbell.rate=1Gbps", "--set", "duration=60s", "--json"]
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", program, "run", str(scenario), *slow],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    ) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                read = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not read:
                break
            said += read
        assert process.stdout is not None
        json.loads(process.stdout.read())
    os.close(ours)
    assert process.returncode == 0
    assert b"three.toml" in said
    assert b"events" in said


@pytest.mark.long
def test_compare_shows_completion_times_by_size(flowstamp: Command, tmp_path: Path) -> None:
    scenario = tmp_path / "web.toml"
    scenario.write_text(
        'duration = "6s"\n[dumbbell]\nrate = "20Mbps"\nrtt = "50ms"\n[[flows]]\nname = "web"\nlaw = "sack"\n'
        "transport = { handshake = true }\n"
        '[flows.web]\nload = 0.5\nsizes = { distribution = "exponential", mean = "20kB" }\n'
    )
    out = tmp_path / "out"
    done = flowstamp("compare", str(scenario), "--protocols", "rcp,sack", "--out", str(out), "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["afct"]["web"]
    assert sum(row["flows"]["rcp"] for row in rows) > 100
    for row in rows:
        # Nothing beats the bound, and the bound is 1.5 RTT and more.
        assert row["ideal_s"]["ps"] > row["ideal_s"]["bound"] > 0.075
    common = [row for row in rows if {"rcp", "sack"} <= row["afct_s"].keys() and row["min_packets"] > 20]
    assert sum(row["afct_s"]["rcp"] for row in common) < sum(row["afct_s"]["sack"] for row in common)
    told = json.loads(done.stdout)["confidence"]["web"]
    for name, summary in json.loads(done.stdout)["protocols"].items():
        law = summary["groups"]["web"]["littles_law"]
        assert law["unaccounted"] == 0
        assert law["relative_difference"] <= law["edge_bound"] * (1 + 1e-12)
        product = law["completed_per_s"] * law["mean_fct_s"]
        assert abs(product / law["mean_active"] - 1) == pytest.approx(law["relative_difference"], abs=1e-9)
        mean, width = told[name]["afct_s"], told[name]["half_width_s"]
        assert mean == pytest.approx(summary["groups"]["web"]["fct_s"]["all"]["mean"])
        assert 0 < width < mean
    # 100% is reached wherever there are enough flows, 0.01% nowhere.
    for wanted, said in (("100", "95% confidence to 100% in all"), ("0.01", "NOT reached")):
        options = ("--protocols", "rcp", "--out", str(out), "--confidence", wanted)
        shown = flowstamp("compare", str(scenario), "--all", *options).stdout
        assert said in shown
        assert " ± " in shown
        assert shown.splitlines()[0].split() == ["rcp", "PS", "lower", "bound"]
        all_sizes = json.loads(done.stdout)["protocols"]["rcp"]["groups"]["web"]["fct_s"]["all"]
        for statistic in ("mean", "p50", "p95", "p99"):
            (row,) = [line for line in shown.splitlines() if line.startswith(f"web {statistic} time  ")]
            assert row.split("  ")[-1].strip() == text.seconds(all_sizes[statistic])
        assert ("NOT reached" in shown) is (wanted == "0.01")
    # Longer until it is reached, and no longer than asked for.
    first = json.loads(done.stdout)["protocols"]["rcp"]["duration_s"]
    longer = ("--protocols", "rcp", "--out", str(out), "--json", "--max-duration", f"{5 * first}s", "--confidence")
    lasted = [
        json.loads(flowstamp("compare", str(scenario), *longer, wanted).stdout)["protocols"]["rcp"]["duration_s"]
        for wanted in ("0.01", "100")
    ]
    assert lasted == [5 * first, first]
    refused = flowstamp("compare", str(scenario), "--protocols", "rcp", "--max-duration", "200")
    assert refused.returncode == 2
    assert "--max-duration" in refused.stderr
    assert "no unit" in refused.stderr
    assert (out / "afct.png").stat().st_size > 1000
