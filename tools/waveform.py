# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Draws docs/hardware.svg from a simulation of hardware/waveform.sv; `tools/hardware.py waveform` calls it."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

LEFT, CELL, ROW, HIGH = 104, 12, 34, 18  # pixels: labels, a cycle, a signal, a signal's swing
BLUE, ORANGE, GREY = "#0072b2", "#e69f00", "#555555"  # Okabe and Ito
# Scope and name in the VCD, and the label.
LINES = [
    ("waveform.s_axis_tvalid", "s_axis_tvalid"),
    ("waveform.s_axis_tready", "s_axis_tready"),
    ("waveform.s_axis_tdata", "s_axis_tdata"),
    ("waveform.dut.found_valid", "option found"),
    ("waveform.dut.write", "stamp lowered"),
    ("waveform.dut.edit_valid", "edit"),
    ("waveform.m_axis_tvalid", "m_axis_tvalid"),
    ("waveform.m_axis_tready", "m_axis_tready"),
    ("waveform.m_axis_tdata", "m_axis_tdata"),
]


def simulate(root: Path) -> list[dict[str, str]]:
    """Returns the values of all signals before each rising edge of the clock."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--binary", "--trace", "-Wno-fatal", "-CFLAGS", "-O0", "--top-module", "waveform", "-o", "model"]
        sources = [f"-I{root}/hardware/rtl", str(root / "hardware/waveform.sv")]
        subprocess.run(["verilator", *options, "--Mdir", folder, *sources], check=True, capture_output=True)
        subprocess.run(["./model"], check=True, cwd=folder, stdout=subprocess.DEVNULL)
        return list(edges((Path(folder) / "waveform.vcd").read_text().splitlines()))


def edges(lines: list[str]) -> Iterator[dict[str, str]]:
    """Reads Verilator's VCD, whose outermost scope is TOP; yields the values before each rising edge of the clock."""
    scope: list[str] = []
    names: dict[str, list[str]] = {}
    now: dict[str, str] = {}
    for line in lines:
        words = line.split()
        match words[:1]:
            case ["$scope"]:
                scope.append(words[2])
            case ["$upscope"]:
                scope.pop()
            case ["$var"]:
                names.setdefault(words[3], []).append(".".join([*scope[1:], words[4]]))
            case [change] if change[0] in "01xzb" and not change.startswith("$"):
                value, code = (change[1:], words[1]) if change[0] == "b" else (change[0], change[1:])
                if "waveform.clk" in names.get(code, []) and value == "1":
                    yield dict(now)
                now.update(dict.fromkeys(names.get(code, []), value))


def transfers(cycles: list[dict[str, str]], bus: str) -> dict[int, str]:
    """Returns the words that pass on a bus, by cycle."""
    passes = [c[f"{bus}_tvalid"] == "1" and c[f"{bus}_tready"] == "1" for c in cycles]
    return {i: cycles[i][f"{bus}_tdata"].zfill(64) for i, passed in enumerate(passes) if passed}


def draw(root: Path) -> Path:
    """Writes the picture, and returns where."""
    cycles = simulate(root)
    came, left = transfers(cycles, "waveform.s_axis"), transfers(cycles, "waveform.m_axis")
    first, last = min(came) - 1, max(left) + 2
    changed = [i for i, (a, b) in enumerate(zip(came.values(), left.values(), strict=True)) if a != b]
    width, height = LEFT + CELL * (last - first) + 12, ROW * len(LINES) + 24
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for cycle in range(first, last + 1, 5):
        x = LEFT + CELL * (cycle - first)
        out.append(f'<path d="M{x} 18V{height}" stroke="#dddddd"/>')
        out.append(f'<text x="{x}" y="13" text-anchor="middle" fill="{GREY}">{cycle - first}</text>')
    out.append('<text x="4" y="13">cycle</text>')
    for row, (signal, label) in enumerate(LINES):
        bottom = 24 + ROW * row + HIGH + 6
        out.append(f'<text x="4" y="{bottom - 4}">{label}</text>')
        shown = cycles[first:last]
        if signal.endswith("tdata"):
            offered = [c[signal.replace("tdata", "tvalid")] == "1" for c in shown]
            words, orange = (left, changed) if signal.startswith("waveform.m_") else (came, [])
            out += boxes(offered, [cycle - first for cycle in words], orange, bottom)
        else:
            out.append(wave([c[signal] for c in shown], bottom))
    out.append("</svg>\n")
    target = root / "docs" / "hardware.svg"
    target.write_text("\n".join(out))
    return target


def wave(values: list[str], bottom: int) -> str:
    """Returns the line of a signal of one bit."""
    heights = [bottom - (HIGH if value == "1" else 0) for value in values]
    path = f"M{LEFT} {heights[0]}" + "".join(f"V{y}h{CELL}" for y in heights)
    return f'<path d="{path}" fill="none" stroke="{BLUE}" stroke-width="2"/>'


def boxes(offered: list[bool], taken: list[int], orange: list[int], bottom: int) -> list[str]:
    """Returns a box for each word, with its number. A word that waits has a longer box."""
    parts, begin = [], 0
    for cycle, is_offered in enumerate(offered):
        if not is_offered or (cycle and not offered[cycle - 1]):
            begin = cycle
        if cycle not in taken:
            continue
        number = taken.index(cycle)
        x, width = LEFT + CELL * begin, CELL * (cycle + 1 - begin)
        style = f'fill="{ORANGE if number in orange else "white"}" stroke="{BLUE}"'
        parts.append(f'<rect x="{x}" y="{bottom - HIGH}" width="{width}" height="{HIGH}" {style}/>')
        parts.append(f'<text x="{x + width / 2}" y="{bottom - 4}" text-anchor="middle">{number}</text>')
        begin = cycle + 1
    return parts
