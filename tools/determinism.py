# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Checks that results do not depend on the number of threads, the build, the folder or the number of processes.

Runs one set of scenarios with one and two threads, as a debug and a release build, from two folders. Also writes them
to two folders by one and by two processes of the command at a time. Prints a table. The exit code is 1 if a digest
differs.

    tools/determinism.py [--scenarios crates/flowstamp-sim/tests/golden] [NAME ...]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMMAND = ROOT / ".venv" / "bin" / "flowstamp"


def build(profile: str) -> Path:
    """Builds the example that prints digests, with this profile of cargo."""
    options = ["--release"] if profile == "release" else []
    command = ["cargo", "build", "--locked", "-p", "flowstamp-sim", "--example", "digests", *options]
    done = subprocess.run(
        [*command, "--message-format=json-render-diagnostics"], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    made = [m["executable"] for m in messages if m.get("target", {}).get("name") == "digests" and m.get("executable")]
    return Path(made[-1])


def digests(program: Path, folder: Path, threads: int) -> dict[str, str]:
    """Digests by scenario. The program runs in the scenarios' folder."""
    done = subprocess.run(
        [str(program), str(folder), str(threads)], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    )
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def written(program: Path, scenarios: list[Path], out: Path, processes: int) -> dict[str, str]:
    """Digests of the files that the command writes, `processes` at a time; not of the manifest, which has the date."""

    def run(scenario: Path) -> tuple[str, str]:
        folder = out / scenario.stem
        command = [str(program), "run", str(scenario), "--out", str(folder)]
        subprocess.run(command, cwd=out, check=True, stdout=subprocess.DEVNULL)
        digest = hashlib.sha256()
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "manifest.json"):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
        return scenario.stem, digest.hexdigest()

    with ThreadPoolExecutor(processes) as pool:
        return dict(pool.map(run, scenarios))


def main() -> int:
    """Runs all variants and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenarios", type=Path, default=ROOT / "crates" / "flowstamp-sim" / "tests" / "golden")
    parser.add_argument("--command", type=Path, default=COMMAND)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        folders = [Path(one), Path(other) / "a folder" / "of another name"]
        for folder in folders:
            shutil.copytree(arguments.scenarios, folder, dirs_exist_ok=True)
            for path in folder.glob("*.toml"):
                if arguments.names and path.stem not in arguments.names:
                    path.unlink()
        programs = {profile: build(profile) for profile in ("debug", "release")}
        columns = {
            "debug 1": digests(programs["debug"], folders[0], 1),
            "debug 2": digests(programs["debug"], folders[1], 2),
            "release 1": digests(programs["release"], folders[0], 1),
            "release 2": digests(programs["release"], folders[1], 2),
        }
        files = {}
        for processes, folder in enumerate(folders, start=1):
            out = folder / "results"
            out.mkdir()
            files[f"files {processes}"] = written(arguments.command, sorted(folder.glob("*.toml")), out, processes)
    names = sorted(columns["debug 1"])
    if not names:
        print("no such scenario", file=sys.stderr)
        return 2
    known_path = arguments.scenarios / "digests.txt"
    known = dict(line.split(" ", 1) for line in known_path.read_text().splitlines()) if known_path.exists() else {}
    print(f"{'':24}" + "".join(f"{column:>12}" for column in [*columns, *files]))
    differ = []
    for name in names:
        results = [column[name] for column in columns.values()]
        wrote = [column[name] for column in files.values()]
        same = len(set(results)) == 1 and len(set(wrote)) == 1 and known.get(name, results[0]) == results[0]
        short = [hashlib.sha256(text.encode()).hexdigest()[:8] for text in results] + [text[:8] for text in wrote]
        print(f"{name:24}" + "".join(f"{text:>12}" for text in short) + ("" if same else "  DIFFERS"))
        if not same:
            differ.append(name)
    print(f"{len(names)} scenarios, {len(differ)} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
