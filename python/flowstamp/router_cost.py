# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Measures the BPF router's cost per packet, from the kernel's statistics and from forwarding with and without it.

    sender a0 ------ r0 router r1 ------ b0 sink        namespaces PREFIX-a, PREFIX-r, PREFIX-b

The sender repeatedly writes one small TCP segment with a stamp to a packet socket. On veth, its thread also does all
forwarding, in softirqs on its own processor. The thread's CPU time is therefore the cost of a packet to the nanosecond.
The busy time of the whole machine is recorded for comparison. The sink has no route and drops the packets. A second
veth leads from the sender straight to the sink, and measures the cost without forwarding.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from flowstamp import linux
from flowstamp.errors import FlowstampError

OPERATIONS = ("additions", "other_arithmetic", "comparisons", "writes")
"""Kinds of operations per packet of RCP's router, counted in the compiled program (`router bench`)."""
RATE = "10Gbps"  # above the sending rate, yet below the rate that packets request: the router rewrites every stamp
# Maximum number of processors busy with other work. Above it, /proc/stat does not show the load's own cost, because the
# load displaces the other work.
BUSY_MAX = 0.2
MAC = {"r0": "02:00:00:00:75:01", "b0": "02:00:00:00:75:02"}
BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}
BPF_OBJ_GET, BPF_PROG_GET_FD_BY_ID, BPF_ENABLE_STATS = 7, 13, 32

# Arguments: interface, frame in hexadecimal, packets, processor. Prints the thread's CPU ns.
SENDER = """
import os, socket, sys, time
os.sched_setaffinity(0, {int(sys.argv[4])})
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind((sys.argv[1], 0))
frame, count, send = bytes.fromhex(sys.argv[2]), int(sys.argv[3]), s.send
for _ in range(2000):
    send(frame)
begun = time.thread_time_ns()
for _ in range(count):
    send(frame)
print(time.thread_time_ns() - begun)
"""
WARMUP_PACKETS = 2000
# Prints the first frame that reaches the sink.
RECEIVER = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("b0", 0))
s.settimeout(10)
print("ready", flush=True)
print(s.recv(2048).hex())
"""
STAMP_OFFSET = 8  # bytes from the start of the TCP option, which starts with kind and length
OPTION = bytes([253, 16])
# Minimum extra cost of forwarding, as a share of the cost of the direct path; below it, noise hides differences. A
# kernel with CONFIG_IRQ_TIME_ACCOUNTING charges nearly no forwarding to the sender.
LEAST_FORWARDING = 0.1


def busy_s() -> float:
    """Returns the busy time in seconds of all processors together since boot."""
    user, nice, system, _idle, _wait, irq, softirq = map(int, Path("/proc/stat").read_text().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def idle_baseline(seconds: float = 2.0) -> float:
    """Measures the machine's other load: busy CPU seconds per second."""
    before, begun = busy_s(), time.monotonic()
    time.sleep(seconds)
    return (busy_s() - before) / (time.monotonic() - begun)


REFUSED = 2


def run(*command: str) -> str:
    """Runs a command and returns its output. Raises `NotHereError` or `FlowstampError` if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise linux.NotHereError(f"{command[0]}: {error.strerror}") from None
    said = (done.stderr or done.stdout).strip()
    if done.returncode == REFUSED and said.startswith("flowstamp: "):
        raise linux.NotHereError(said.splitlines()[-1].removeprefix("flowstamp: "))
    if done.returncode:
        raise FlowstampError(f"{' '.join(command)[:120]}: {' '.join(said.split())}")
    return done.stdout


def checksum(data: bytes) -> int:
    """Computes the Internet checksum (RFC 1071)."""
    total = sum(int.from_bytes(data[i : i + 2], "big") for i in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def laws(program: str) -> dict[str, bytes]:
    """Returns the laws that take a rate and have an option, each with the option of a packet that asks for the most."""
    found = json.loads(run(program, "router", "laws", "--json"))
    return {law["name"]: bytes.fromhex(law["option"]) for law in found if law["takes_rate"] and law["option"]}


def frame(option: bytes) -> bytes:
    """Builds an Ethernet frame with a TCP segment. Its options are in Linux's order: timestamps, then `option`."""
    options = bytes([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]) + option
    source, sink = bytes([10, 75, 1, 2]), bytes([10, 75, 3, 2])
    tcp = bytes.fromhex("1388 1389 00000001 00000001") + bytes([(5 + len(options) // 4) << 4, 0x10])
    tcp += bytes.fromhex("ffff 0000 0000") + options
    pseudo = source + sink + bytes([0, 6]) + len(tcp).to_bytes(2, "big")
    tcp = tcp[:16] + checksum(pseudo + tcp).to_bytes(2, "big") + tcp[18:]
    ip = bytes([0x45, 0]) + (20 + len(tcp)).to_bytes(2, "big") + bytes([0, 0, 0x40, 0, 64, 6, 0, 0]) + source + sink
    ip = ip[:10] + checksum(ip).to_bytes(2, "big") + ip[12:]
    return bytes.fromhex(MAC["r0"].replace(":", "")) + bytes([2, 0, 0, 0, 0, 9]) + b"\x08\x00" + ip + tcp


@contextlib.contextmanager
def network(prefix: str) -> Iterator[tuple[str, str, str]]:
    """Creates the namespaces of sender, router and sink with their links, and yields the three names."""
    if os.geteuid() != 0:
        raise linux.NotHereError("network namespaces need root")
    names = (f"{prefix}-a", f"{prefix}-r", f"{prefix}-b")
    a, r, b = names
    with contextlib.ExitStack() as stack:
        stack.enter_context(alone(prefix))
        stack.callback(remove, prefix, names)
        remove(prefix, names)  # left by a killed measurement
        for name in names:
            run("ip", "netns", "add", name)
        run("ip", "-n", a, "link", "add", "a0", "type", "veth", "peer", "name", "r0", "netns", r)
        run("ip", "-n", r, "link", "add", "r1", "type", "veth", "peer", "name", "b0", "netns", b)
        run("ip", "-n", a, "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", b)
        run("ip", "-n", r, "link", "set", "r0", "address", MAC["r0"])
        run("ip", "-n", b, "link", "set", "b0", "address", MAC["b0"])
        for place, interface in ((a, "a0"), (a, "near"), (b, "far"), (r, "r0"), (r, "r1"), (b, "b0")):
            run("ip", "netns", "exec", place, "sysctl", "-qw", f"net.ipv6.conf.{interface}.disable_ipv6=1")
            run("ip", "-n", place, "link", "set", interface, "up")
        run("ip", "-n", r, "address", "add", "10.75.1.1/24", "dev", "r0")
        run("ip", "-n", r, "address", "add", "10.75.2.1/24", "dev", "r1")
        run("ip", "-n", r, "neighbour", "add", "10.75.2.2", "lladdr", MAC["b0"], "dev", "r1", "nud", "permanent")
        run("ip", "-n", r, "route", "add", "10.75.3.0/24", "via", "10.75.2.2")
        run("ip", "-n", r, "route", "add", "10.75.1.2/32", "dev", "r0")
        run("ip", "netns", "exec", r, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        yield names


@contextlib.contextmanager
def alone(prefix: str) -> Iterator[None]:
    """Locks out a second measurement with this prefix. Raises `NotHereError` if one is running."""
    path = Path("/run") / f"{prefix}-cost.lock"
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise linux.NotHereError(f'a measurement of the prefix "{prefix}" runs already') from None
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def remove(prefix: str, names: Iterable[str]) -> None:
    """Removes namespaces and pins if they exist."""
    shutil.rmtree(pins(prefix), ignore_errors=True)
    for name in names:
        if (Path("/run/netns") / name).exists():
            for pid in run("ip", "netns", "pids", name).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            subprocess.run(["ip", "netns", "del", name], check=False)


def pins(prefix: str) -> Path:
    """Returns the folder where the router's programs are pinned."""
    return Path("/sys/fs/bpf") / f"{prefix}-cost"


class Router:
    """Attaches and detaches the router of one law, with its own pins."""

    def __init__(self, program: str, prefix: str, namespace: str) -> None:
        self.program = program
        self.pins = pins(prefix)
        self.where = ["r1", "--netns", namespace, "--pins", str(self.pins)]

    @contextlib.contextmanager
    def attached(self, law: str) -> Iterator[None]:
        """Keeps the router attached inside the context."""
        run(self.program, "router", "attach", *self.where, "--law", law, "--rate", RATE)
        try:
            yield
        finally:
            run(self.program, "router", "detach", *self.where)

    def link(self) -> Path:
        """Returns the path where the program's BPF link is pinned."""
        return next(path for path in self.pins.rglob("link"))


def bpf(command: int, attributes: bytes) -> int:
    """Performs the system call `bpf` and returns the new file descriptor."""
    machine = os.uname().machine
    if machine not in BPF_SYSCALL:
        raise linux.NotHereError(f"the number of bpf() on {machine} is not known here")
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes.ljust(128, b"\0"), 128)
    fd: int = libc.syscall(BPF_SYSCALL[machine], command, buffer, 128 if command != BPF_ENABLE_STATS else 4)
    if fd < 0:
        raise OSError(ctypes.get_errno(), f"bpf({command})")
    return fd


def field(fd: int, name: str) -> int:
    """Returns a field of a descriptor's fdinfo."""
    match = re.search(rf"^{name}:\s*(\d+)", Path(f"/proc/self/fdinfo/{fd}").read_text(), re.MULTILINE)
    if match is None:
        raise FlowstampError(f"the kernel does not say {name}")
    return int(match[1])


def statistics_of(link: Path, load: Callable[[], object]) -> tuple[int, int]:
    """Returns the program's run time in ns and its number of runs during `load`.

    Meanwhile, the kernel collects statistics of all BPF programs on the machine.
    """
    path = ctypes.create_string_buffer(bytes(link))
    opened = []
    try:
        opened.append(bpf(BPF_OBJ_GET, ctypes.addressof(path).to_bytes(8, sys.byteorder)))
        program = bpf(BPF_PROG_GET_FD_BY_ID, field(opened[0], "prog_id").to_bytes(4, sys.byteorder))
        opened.append(program)
        opened.append(bpf(BPF_ENABLE_STATS, bytes(4)))
        before = field(program, "run_time_ns"), field(program, "run_cnt")
        load()
        return field(program, "run_time_ns") - before[0], field(program, "run_cnt") - before[1]
    finally:
        for fd in opened:
            os.close(fd)


def check_rewritten(law: str, option: bytes, sink: str, load: Callable[[], object]) -> None:
    """Raises `FlowstampError` if the router does not rewrite the stamp, which the measurement assumes."""
    receiver = ["ip", "netns", "exec", sink, sys.executable, "-c", RECEIVER]
    with subprocess.Popen(receiver, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        load()
        came = bytes.fromhex(process.stdout.readline().strip())

    def stamp(packet: bytes) -> bytes:
        at = packet.find(OPTION) + STAMP_OFFSET
        return packet[at : at + 4]

    if stamp(came) == stamp(frame(option)):
        raise FlowstampError(f"the router of {law} left the stamp as it was")


def _check_counted(thread: Mapping[str, Sequence[float]]) -> None:
    """Raises `NotHereError` if the kernel does not charge forwarding to the sender's thread."""
    straight, forwarding = statistics.median(thread["straight"]), statistics.median(thread["forwarding"])
    if forwarding - straight < LEAST_FORWARDING * straight:
        raise linux.NotHereError(
            f"forwarding takes {forwarding - straight:.0f} ns of the sender's time, straight {straight:.0f}: this "
            "kernel does not count it there"
        )


def measure(program: str, prefix: str, rounds: int, packets: int, say: Callable[[str], object]) -> dict[str, Any]:
    """Measures in ns per packet: the direct path, forwarding without a router, and forwarding with each law.

    Each of `rounds` sends `packets` over each of them. Raises `NotHereError` if the kernel does not charge forwarding
    to the sender's thread.
    """
    thread: dict[str, list[float]] = {}
    machine: dict[str, list[float]] = {}
    baselines: list[float] = []
    with network(prefix) as (a, r, b):
        options = laws(program)
        own: dict[str, list[float]] = {law: [] for law in options}
        router = Router(program, prefix, r)
        processor = max(os.sched_getaffinity(0))
        received = ["ip", "netns", "exec", b, "cat", "/sys/class/net/b0/statistics/rx_packets"]

        baseline = 0.0

        def once(kind: str, interface: str, law: str, count: int = packets) -> None:
            came, before, begun = int(run(*received)), busy_s(), time.monotonic()
            sender = [sys.executable, "-c", SENDER, interface, frame(options[law]).hex(), str(count), str(processor)]
            said = run("ip", "netns", "exec", a, *sender)
            busy = busy_s() - before - baseline * (time.monotonic() - begun)
            came = int(run(*received)) - came
            if interface == "a0" and came < count + WARMUP_PACKETS:
                raise FlowstampError(f"{came} of {count + WARMUP_PACKETS} packets were forwarded")
            thread.setdefault(kind, []).append(int(said) / count)
            machine.setdefault(kind, []).append(1e9 * busy / count)

        for law, option in options.items():
            with router.attached(law):
                check_rewritten(law, option, b, partial(once, "checked", "a0", law, WARMUP_PACKETS))
        for number in range(rounds):
            baseline = idle_baseline(1.0)
            baselines.append(baseline)
            # The order alternates between rounds, so that a drift of the machine's speed affects all equally.
            order = [("straight", "near"), ("forwarding", "a0"), *((law, "a0") for law in options)]
            for kind, interface in order if number % 2 == 0 else reversed(order):
                with router.attached(kind) if kind in options else contextlib.nullcontext():
                    once(kind, interface, kind if kind in options else next(iter(options)))
            say(f"round {number + 1} of {rounds}")
        for law in options:
            for _ in range(3):
                with router.attached(law):
                    ns, runs = statistics_of(router.link(), partial(once, "counted", "a0", law))
                    if not runs:
                        raise FlowstampError(f"the kernel counted no run of the router's program ({law})")
                    own[law].append(ns / runs)
    _check_counted(thread)
    bench = json.loads(run(program, "router", "bench", "--json"))
    return {
        "rounds": rounds,
        "packets": packets,
        "frame_bytes": len(frame(next(iter(options.values())))),
        "baselines": baselines,
        "thread": thread,
        "machine": machine,
        "own": own,
        "bench": bench,
    }
