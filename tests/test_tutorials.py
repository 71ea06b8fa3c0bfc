# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Follows each tutorial, and each how-to page that begins with `% followed`, in an empty folder from start to end.

A block with a caption is a file. In a `console` block, `$` is a shell that has the command, and `a#` and `b#` are root
shells on two machines: namespaces that a cable of 10 ms connects. The lines below a command are its output, where `...`
stands for anything. Its exit code is 0, unless `exit code N` follows the output.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from flowstamp import linux

ROOT = Path(__file__).resolve().parents[1]
HOW_TOS = (
    page for page in (ROOT / "docs/how-to").glob("*.md") if page.read_text(encoding="utf-8").startswith("% followed")
)
TUTORIALS = sorted([*(ROOT / "docs/tutorials").glob("*.md"), *HOW_TOS])
BLOCK = re.compile(r"^(`{3,})(?:\{code-block\} )?(\w+)\n(?::caption: (\S+)\n\n)?(.*?)^\1$", re.DOTALL | re.MULTILINE)
PROMPT = re.compile(r"^(\$|a#|b#) (.+)$")
NEEDS = {"tshark": "tshark", "iperf3": "iperf3"}


@dataclass
class Step:
    """A file that is written, or a command with what it says."""

    where: str
    prompt: str = ""
    command: str = ""
    said: list[str] = field(default_factory=list)
    code: int = 0
    file: str = ""
    text: str = ""


def steps(page: Path) -> Iterator[Step]:
    text = page.read_text(encoding="utf-8")
    for match in BLOCK.finditer(text):
        _, language, caption, body = match.groups()
        where = f"{page.name}:{text.count(chr(10), 0, match.start()) + 1}"
        if caption:
            yield Step(where, file=caption, text=body)
        elif language == "console":
            yield from commands(where, body)


def commands(where: str, body: str) -> Iterator[Step]:
    step: Step | None = None
    for line in body.splitlines():
        prompted = PROMPT.match(line)
        if prompted:
            if step:
                yield step
            step = Step(where, prompt=prompted[1], command=prompted[2])
            continue
        assert step, f"{where}: begins with no prompt"
        ends = re.fullmatch(r"exit code (\d+)", line)
        if ends:
            step.code = int(ends[1])
        else:
            step.said.append(line)
    if step:
        yield step


def mismatch(said: Sequence[str], expected: Sequence[str]) -> str:
    """The first line that was not said; empty if all were, in their order, with others only where `...` is."""
    at, gap = 0, False
    for line in expected:
        if line == "...":
            gap = True
            continue
        pattern = re.compile(".*".join(re.escape(" ".join(part.split())) for part in line.split("...")))
        rest = [" ".join(one.split()) for one in said[at:]]
        found = next((n for n, one in enumerate(rest) if pattern.fullmatch(one)), None)
        if found is None or (found and not gap):
            return line
        at, gap = at + found + 1, False
    return "" if gap or at == len(said) or not expected else f"nothing after {expected[-1]!r}"


class Shell:
    """A bash of one machine, which goes on from command to command."""

    def __init__(self, folder: Path, start: Sequence[str], settings: dict[str, str], preamble: str) -> None:
        self.process = subprocess.Popen(
            [*start, "bash", "--norc", "--noprofile"],
            cwd=folder,
            env={**os.environ, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.run(preamble)

    def run(self, command: str) -> tuple[int, list[str]]:
        """Its exit code and what it said."""
        mark = uuid.uuid4().hex
        assert self.process.stdin
        assert self.process.stdout
        # Commands read nothing of what is to come.
        self.process.stdin.write(f"{{ {command}\n}} </dev/null\ncode=$?; echo; echo {mark} $code\n")
        self.process.stdin.flush()
        said: list[str] = []
        for line in self.process.stdout:
            if line.startswith(mark):
                code = int(line.split()[1])
                while said and not said[-1].strip():
                    said.pop()
                return code, said
            said.append(line.rstrip("\n"))
        raise AssertionError(f"{command}: the shell has ended: {said}")

    def close(self) -> None:
        """Ends it, and all that it has begun."""
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.communicate(timeout=20)


PYTHON = f"""
flowstamp() {{ {shlex.quote(sys.executable)} -m flowstamp "$@"; }}
python() {{ {shlex.quote(sys.executable)} "$@"; }}
dask() {{ {shlex.quote(sys.executable)} -m dask "$@"; }}
"""


def machines(stack: ExitStack, folder: Path) -> dict[str, Shell]:
    """Two machines on one kernel, with `eth0` each: what is loaded and pinned there has names of this process."""
    program = linux.program()
    if os.geteuid() != 0 or program is None:
        pytest.skip("needs root and the program flowstamp-linux")
    for needed in ("ip", "tc", "ethtool", "nsenter"):
        if shutil.which(needed) is None:
            pytest.skip(f"needs {needed}")
    name = f"fst{os.getpid() % 10**6}"
    mounted = next(line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if " cgroup2 " in line)
    cgroup, pins = Path(mounted) / name, Path("/sys/fs/bpf") / f"{name}-r"

    def sh(command: str) -> None:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"

    cgroup.mkdir()
    stack.callback(
        lambda: sh(f"for p in $(cat {cgroup}/cgroup.procs); do kill $p; done; sleep 1; rmdir {cgroup}; rm -rf {pins}")
    )
    for end in "abm":
        sh(f"ip netns add {name}-{end}")
        stack.callback(sh, f"ip netns del {name}-{end}")
    for number, (end, port) in enumerate({"a": "left", "b": "right"}.items(), 1):
        sh(f"ip link add eth0 netns {name}-{end} type veth peer name {port} netns {name}-m")
        sh(f"ip -n {name}-{end} addr add 10.77.0.{number}/24 dev eth0")
        sh(f"ip -n {name}-{end} link set lo up")
        for space, device in ((f"{name}-{end}", "eth0"), (f"{name}-m", port)):
            sh(f"ip -n {space} link set {device} up")
            sh(f"ip netns exec {space} ethtool -K {device} gro off tso off gso off tx off rx off")
    # The host's law is the kernel's, whatever namespace disables it.
    command = [sys.executable, "-m", "flowstamp", "host", "disable"]
    settings = {"PYTHONPATH": str(ROOT / "python"), "FLOWSTAMP_NAME": name, "FLOWSTAMP_LINUX": str(program)}
    stack.callback(lambda: subprocess.run(command, env={**os.environ, **settings}, check=True))
    cable = [sys.executable, str(ROOT / "tests/cable.py"), "left", "right", "0.010"]
    process = subprocess.Popen(["nsenter", f"--net=/run/netns/{name}-m", *cable])
    stack.callback(process.wait)
    stack.callback(process.terminate)
    found = {}
    for end in "ab":
        # Settings for a whole machine apply here to this control group.
        preamble = f"""{PYTHON}
echo $$ > {cgroup}/cgroup.procs
flowstamp() {{
  case "$1 $2" in
    "host enable") set -- "$@" --cgroup {cgroup};;
    "router "*) set -- "$@" --pins {pins};;
  esac
  {shlex.quote(sys.executable)} -m flowstamp "$@"
}}
iperf3() {{ command iperf3 "${{@//flowstamp_/{name}_}}"; }}"""
        own = folder / end
        own.mkdir()
        found[f"{end}#"] = Shell(own, ["nsenter", f"--net=/run/netns/{name}-{end}"], settings, preamble)
        stack.callback(found[f"{end}#"].close)
    return found


def marked(page: Path) -> object:
    """The page, with its markers: each page but the first takes long."""
    marks = [] if page.stem == "first-scenario" else [pytest.mark.long]
    if any(step.prompt in ("a#", "b#") for step in steps(page)):
        marks.append(pytest.mark.kernel)
    return pytest.param(page, id=page.stem, marks=marks)


@pytest.mark.parametrize("page", [marked(page) for page in TUTORIALS])
def test_the_tutorial_leads_where_it_says(page: Path, tmp_path: Path) -> None:
    found = list(steps(page))
    assert sum(bool(step.command) for step in found) > 3
    used = {word for step in found for word in re.findall(r"\w+", step.command)}
    for program, package in NEEDS.items():
        if program in used and shutil.which(program) is None:
            pytest.skip(f"{page.name} needs {package}")
    with ExitStack() as stack:
        if any(step.prompt in ("a#", "b#") for step in found):
            shells = machines(stack, tmp_path)
        else:
            settings = {"COLUMNS": "100", "PYTHONPATH": str(ROOT / "python")}
            shells = {"$": Shell(tmp_path, [], settings, PYTHON)}
            stack.callback(shells["$"].close)
        for step in found:
            if step.file:
                for folder in {shell.process.pid: tmp_path for shell in shells.values()}.values():
                    (folder / step.file).write_text(step.text, encoding="utf-8")
                continue
            code, said = shells[step.prompt].run(step.command)
            shown = f"{step.where}: {step.command}\n" + "\n".join(said)
            assert code == step.code, shown
            assert not (line := mismatch(said, step.said)), f"{shown}\n\nexpected: {line}"


def test_what_was_not_said_is_found() -> None:
    assert not mismatch(["a", "b  c", "d"], ["a", "b c", "d"])
    assert not mismatch(["a", "b", "c"], ["...", "c"])
    assert not mismatch(["a", "path/x y", "c"], ["a", "...x y", "..."])
    assert not mismatch(["whatever"], [])
    assert mismatch(["a", "b", "c"], ["a", "c"]) == "c"
    assert mismatch(["a", "b"], ["...", "b", "a"]) == "a"
    assert mismatch(["a", "b"], ["a"]) == "nothing after 'a'"
