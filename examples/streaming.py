# SPDX-License-Identifier: Apache-2.0 OR MIT
# ruff: noqa: T201
"""A video stream over UDP whose encoder follows RCP's rate, and its receiver.

Usage: python examples/streaming.py receive [--port 5004] [--streams N]
       python examples/streaming.py send HOST [--port 5004] [--seconds 10] [--fps 30] [--most 8]

Run `flowstamp host enable --law rcp --udp 5004` on both hosts, and a router of RCP between them. The kernel then
paces the datagrams at the lowest rate R of these routers. The sender reads R from its socket, and encodes no more than
R carries. Neither end needs root or a package.
"""

from __future__ import annotations

import argparse
import math
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field

SO_MAX_PACING_RATE = 47
UNKNOWN = 2**64 - 1
# Ethernet, RCP's header and UDP, with IPv4 or IPv6 between them: a datagram's bytes besides its payload.
OVERHEAD = {socket.AF_INET: 14 + 20 + 12 + 8, socket.AF_INET6: 14 + 40 + 12 + 8}
PAYLOAD = 1200
# Number of the datagram, time of sending, and the number of all datagrams: zero until the last.
HEADER = struct.Struct("!QdQ")
# The encoder's rate until the first answer, and its lowest, in bytes/s.
FIRST = 300e3 / 8
LEAST = 100e3 / 8


def rate_of(stream: socket.socket) -> float | None:
    """Returns R in bytes/s, which includes all headers. Returns None until a router is known."""
    value = stream.getsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 8)
    rate = int.from_bytes(value, "little")
    return None if rate == UNKNOWN else float(rate)


def encoded(rate: float, fps: float, overhead: int) -> list[int]:
    """Returns the payload sizes of one frame's datagrams, which with headers take at most `rate` bytes/s."""
    budget = int(rate / fps)
    whole, rest = divmod(budget, PAYLOAD + overhead)
    last = [rest - overhead] if rest >= overhead + HEADER.size else []
    return [PAYLOAD] * whole + last or [HEADER.size]


def send(args: argparse.Namespace) -> None:
    """Streams frames at the encoder's rate, and prints R and this rate each second."""
    family, _, _, _, address = socket.getaddrinfo(args.host, args.port, type=socket.SOCK_DGRAM)[0]
    stream = socket.socket(family, socket.SOCK_DGRAM)
    # Room for a frame or two: more would wait here when R falls.
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32768)
    stream.connect(address)
    sent = size = 0
    began = time.monotonic()
    for frame in range(int(args.seconds * args.fps)):
        time.sleep(max(0.0, began + frame / args.fps - time.monotonic()))
        rate = rate_of(stream)
        encoder = min(max(rate or FIRST, LEAST), args.most * 1e6 / 8)
        for payload in encoded(encoder, args.fps, OVERHEAD[family]):
            stream.send(HEADER.pack(sent, time.time(), 0).ljust(payload, b"\0"))
            sent += 1
            size += payload
        if (frame + 1) % round(args.fps) == 0:
            said = "not known" if rate is None else f"{rate * 8e-6:.2f} Mb/s"
            print(f"{(frame + 1) / args.fps:.0f} s: R {said}, encoder {encoder * 8e-6:.2f} Mb/s", flush=True)
    for _ in range(5):
        time.sleep(0.1)
        with suppress(ConnectionRefusedError):  # the receiver has ended
            stream.send(HEADER.pack(sent, time.time(), sent))
    print(f"sent {sent} datagrams, {size * 8e-6 / args.seconds:.2f} Mb/s of video")


@dataclass
class Stream:
    """The datagrams of one stream that have arrived."""

    datagrams: set[int] = field(default_factory=set)
    size: int = 0
    delays: tuple[float, float] = (math.inf, -math.inf)
    total: int = 0


def receive(args: argparse.Namespace) -> None:
    """Receives streams until all have ended, and prints their losses."""
    inbox = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    inbox.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    inbox.bind(("::", args.port))
    streams: dict[tuple[str, int], Stream] = {}
    while sum(stream.total > 0 for stream in streams.values()) < args.streams:
        datagram, source = inbox.recvfrom(65536)
        number, at, total = HEADER.unpack_from(datagram)
        stream = streams.setdefault(source[:2], Stream())
        delay = time.time() - at
        stream.delays = (min(stream.delays[0], delay), max(stream.delays[1], delay))
        if total:
            stream.total = total
        else:
            stream.datagrams.add(number)
            stream.size += len(datagram)
    for (host, port), stream in streams.items():
        lost = stream.total - len(stream.datagrams)
        waited = (stream.delays[1] - stream.delays[0]) * 1e3
        print(f"{host} {port}: {stream.total} sent, {lost} lost, {stream.size} bytes, waited up to {waited:.0f} ms")


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    receiver = commands.add_parser("receive")
    receiver.add_argument("--streams", type=int, default=1, help="end after this many streams have ended")
    receiver.set_defaults(run=receive)
    sender = commands.add_parser("send")
    sender.add_argument("host")
    sender.add_argument("--seconds", type=float, default=10.0)
    sender.add_argument("--fps", type=float, default=30.0, help="frames per second")
    sender.add_argument("--most", type=float, default=8.0, help="the encoder's best quality, Mb/s")
    sender.set_defaults(run=send)
    for command in (receiver, sender):
        command.add_argument("--port", type=int, default=5004)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
