# SPDX-License-Identifier: Apache-2.0 OR MIT
# ruff: noqa: T201
"""SCONE in a lab: sends QUIC-shaped datagrams with SCONE packets, and prints the advice that arrives.

Usage: python examples/scone.py listen 4433
       python examples/scone.py send HOST 4433 [--mbps 8] [--seconds 6] [--every 1]

It speaks no QUIC. Behind SCONE's packet the datagrams have bytes without meaning, as encrypted packets have for a
network element. docs/scone.md shows how to use it.
"""

import argparse
import os
import socket
import time

VERSION = 0x6F7DC0FD
UNKNOWN = 127
DATAGRAM_BYTES = 1200


def scone_packet(signal: int, dcid: bytes) -> bytes:
    """A SCONE packet with an empty source connection ID (draft-ietf-scone-protocol, section 5)."""
    first = 0xC0 | signal >> 1
    version = VERSION | (signal & 1) << 31
    return bytes([first]) + version.to_bytes(4, "big") + bytes([len(dcid)]) + dcid + b"\0"


def signal_of(datagram: bytes) -> int | None:
    """The rate signal at the head of the datagram, or None if there is no SCONE packet."""
    if len(datagram) < 7 or not datagram[0] & 0x80:
        return None
    version = int.from_bytes(datagram[1:5], "big")
    if version & 0x7FFFFFFF != VERSION:
        return None
    return (datagram[0] & 0x3F) << 1 | version >> 31


def send(arguments: argparse.Namespace) -> None:
    """Sends at a constant rate, and a SCONE packet in the first datagram of each interval."""
    with socket.socket(socket.AF_INET6 if ":" in arguments.host else socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.connect((arguments.host, arguments.port))
        dcid = os.urandom(8)
        gap = DATAGRAM_BYTES * 8 / (arguments.mbps * 1e6)
        start = time.monotonic()
        sent, asked = 0, 0
        while sent * gap < arguments.seconds:
            time.sleep(max(0.0, start + sent * gap - time.monotonic()))
            head = b""
            if sent * gap >= asked * arguments.every:
                head = scone_packet(UNKNOWN, dcid)
                asked += 1
            # A packet with a short header, as those of an open connection.
            body = bytes([0x40]) + dcid
            out.send((head + body).ljust(DATAGRAM_BYTES, b"\x55"))
            sent += 1
    print(f"sent {sent} datagrams, {asked} with a SCONE packet")


def listen(arguments: argparse.Namespace) -> None:
    """Prints each SCONE packet's advice, and at the end the mean rate of all datagrams."""
    family = socket.AF_INET6 if arguments.v6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as into:
        into.bind(("", arguments.port))
        into.settimeout(arguments.idle)
        first: float | None = None
        passed = 0.0
        received = 0
        while True:
            try:
                datagram, sender = into.recvfrom(65536)
            except TimeoutError:
                # Nothing for a while: the sender has ended, if there was one.
                if first is None:
                    continue
                break
            now = time.monotonic()
            first = now if first is None else first
            passed = now - first
            received += len(datagram)
            signal = signal_of(datagram)
            if signal is not None:
                advice = "no advice" if signal == UNKNOWN else f"signal {signal}, {0.1 * 10 ** (signal / 20):.3f} Mb/s"
                print(f"{passed:6.1f} s  {sender[0]}: {advice}", flush=True)
        print(f"received {received * 8 / max(passed, 1e-3) / 1e6:.2f} Mb/s")


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(required=True)
    sender = commands.add_parser("send", help="send datagrams with SCONE packets")
    sender.add_argument("host")
    sender.add_argument("port", type=int)
    sender.add_argument("--mbps", type=float, default=8.0, help="rate of the datagrams")
    sender.add_argument("--seconds", type=float, default=6.0, help="how long to send")
    sender.add_argument("--every", type=float, default=1.0, help="seconds between SCONE packets")
    sender.set_defaults(run=send)
    listener = commands.add_parser("listen", help="print the advice that arrives")
    listener.add_argument("port", type=int)
    listener.add_argument("--v6", action="store_true", help="over IPv6")
    listener.add_argument("--idle", type=float, default=3.0, help="end after so many seconds without a datagram")
    listener.set_defaults(run=listen)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
