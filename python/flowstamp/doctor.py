# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Report of `flowstamp doctor`: installed packages, programs and kernel features."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from importlib import metadata
from typing import Any

from flowstamp import _flowstamp, linux, machine

CORE = ("numpy", "matplotlib", "msgspec", "typer", "rich")
EXTRAS = {"pandas": "pandas", "polars": "polars", "distributed": "dask"}
"""Optional packages, and the extra that installs each."""

TOOLS = {
    "tshark": (["tshark", "--version"], "reads trace.pcapng; the package tshark of the distribution"),
    "ns": ([], "ns-2, the reference that the simulator is compared with; the package ns2 of the distribution"),
}
"""Optional programs: the command that prints the version (ns-2 has none), and what the program is for."""


def report() -> dict[str, Any]:
    """Collects versions, machine, packages, programs and kernel features."""
    return {
        "flowstamp": _flowstamp.__version__,
        "laws": _flowstamp.laws(),
        "python": platform.python_version(),
        "executable": sys.executable,
        "machine": {
            "os": platform.system(),
            "release": platform.release(),
            "arch": platform.machine(),
            "cores": machine.cores(),
            "memory_bytes": _memory(),
        },
        "packages": {name: _package(name) for name in (*CORE, *EXTRAS)},
        "programs": {name: _program(name) for name in TOOLS},
        "linux": linux.features(),
    }


def problems(found: dict[str, Any]) -> list[str]:
    """Returns one line for each missing required package."""
    return [f"the package {name} is missing" for name in CORE if found["packages"][name] is None]


def lines(found: dict[str, Any]) -> list[str]:
    """Formats the report as lines of text."""
    machine = found["machine"]
    memory = machine["memory_bytes"]
    told = [
        f"flowstamp   {found['flowstamp']}",
        f"python      {found['python']}  {found['executable']}",
        f"machine     {machine['os']} {machine['release']} {machine['arch']}, {machine['cores']} cores"
        + (f", {memory / 2**30:.1f} GiB" if memory else ""),
        f"laws        {', '.join(found['laws']['senders'])}",
        f"queues      {', '.join(found['laws']['queues'])}",
    ]
    for name, version in found["packages"].items():
        hint = f"optional: install flowstamp[{EXTRAS[name]}]" if name in EXTRAS else "MISSING"
        told.append(f"{name:<11} {version or 'not installed; ' + hint}")
    for name, program in found["programs"].items():
        where = f"{program['version'] or 'installed'}  {program['path']}" if program else ""
        told.append(f"{name:<11} {where or 'not installed; optional: ' + TOOLS[name][1]}")
    return told + _linux_lines(found["linux"])


def _linux_lines(features: list[dict[str, Any]] | None) -> list[str]:
    if features is None:
        return [f"linux       host, router and lab: {linux.missing()}"]
    told = []
    for feature in features:
        users = f" (for {', '.join(feature['needed_by'])})" if feature["needed_by"] else " (optional)"
        told.append(f"linux       {feature['name']}: {'there' if feature['present'] else feature['without']}{users}")
    for command in linux.COMMANDS:
        needed = [f for f in features if command in f["needed_by"] and f.get("known", True)]
        lacking = [f["name"] for f in needed if not f["present"]]
        ways = [f["name"] for f in features if f["feature"] in ("af_xdp", "tap") and f["present"]]
        if command == "lab" and not lacking and not ways:
            lacking = ["AF_XDP sockets and TAP devices, one of which its path needs"]
        ready = f"ready; its path by {ways[0]}" if command == "lab" and ways else "ready"
        told.append(f"linux       {command}: {'lacks ' + ', '.join(lacking) if lacking else ready}")
    return told


def _memory() -> int | None:
    """Returns the machine's memory in bytes; None if the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _package(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _program(name: str) -> dict[str, str | None] | None:
    path = shutil.which(name)
    if path is None:
        return None
    command, version = TOOLS[name][0], None
    if command:
        try:
            # As root, tshark also prints a warning on standard error.
            said = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout
            version = said.splitlines()[0] if said else None
        except (OSError, subprocess.TimeoutExpired):
            version = None
    return {"path": path, "version": version}
