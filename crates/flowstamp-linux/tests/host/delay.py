# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Forwards frames between two interfaces, each SECONDS after it arrived: python delay.py ONE OTHER SECONDS."""

import heapq
import itertools
import select
import socket
import sys
import time

names, delay = sys.argv[1:3], float(sys.argv[3])
ends = []
for name in names:
    end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    end.bind((name, 3))
    end.setblocking(False)
    ends.append(end)
order, waiting = itertools.count(), []
sys.stdout.write("ready\n")
sys.stdout.flush()
while True:
    wait = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
    for end in select.select(ends, [], [], wait)[0]:
        for _ in range(64):
            try:
                frame, address = end.recvfrom(65536)
            except BlockingIOError:
                break
            except OSError:  # the namespace ends
                sys.exit()
            if address[2] != socket.PACKET_OUTGOING:
                heapq.heappush(waiting, (time.monotonic() + delay, next(order), ends[1 - ends.index(end)], frame))
    while waiting and waiting[0][0] <= time.monotonic():
        _, _, to, frame = heapq.heappop(waiting)
        to.send(frame)
