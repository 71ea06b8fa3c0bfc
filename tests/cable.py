# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A cable between two interfaces: what one receives the other sends, so many seconds later.

    cable.py LEFT RIGHT SECONDS

For kernels without netem; a few thousand frames a second.
"""

import collections
import select
import socket
import sys
import time

ETH_P_ALL = 3


def main(left: str, right: str, delay_s: float) -> None:
    """Forwards until it is killed."""
    ends = [socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) for _ in range(2)]
    for end, name in zip(ends, (left, right), strict=True):
        end.bind((name, 0))
    other = {ends[0]: ends[1], ends[1]: ends[0]}
    waiting: collections.deque[tuple[float, socket.socket, bytes]] = collections.deque()
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for end in select.select(ends, [], [], timeout)[0]:
            frame, address = end.recvfrom(65535)
            if address[2] != socket.PACKET_OUTGOING:
                waiting.append((time.monotonic() + delay_s, other[end], frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, end, frame = waiting.popleft()
            end.send(frame)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
