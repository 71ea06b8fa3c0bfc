# SPDX-License-Identifier: Apache-2.0 OR MIT
# ruff: noqa: T201
"""Two agents share a link: each sets its sender's window from what it observes of that sender alone.

The rule is TCP Vegas's (Brakmo 1994): each keeps about four packets in the queue. A learner goes in its place.

Usage: python examples/two_agents.py; needs flowstamp[gym]
"""

import numpy as np

import flowstamp as fs
from flowstamp.zoo import ParallelNetwork

WINDOW = (2.0, 200.0)  # packets
PACKETS = 4.0  # that each keeps in the queue

# The second starts when the first has had the link to itself for a second.
link = fs.dumbbell("20Mbps", rtt="40ms").flows("told", name="first").flows("told", name="second", start="1s")
agents = {name: {f"flows.{name}.law.window": WINDOW} for name in ("first", "second")}
env = ParallelNetwork(link.configure(duration="12s"), agents, step="80ms")


def action(window: float) -> np.ndarray:
    """The number from -1 to 1 that stands for a window: by factors, as the range is wide."""
    return np.array([2 * np.log(window / WINDOW[0]) / np.log(WINDOW[1] / WINDOW[0]) - 1], np.float32)


windows = dict.fromkeys(agents, 10.0)
observations, _ = env.reset(seed=1)
delivered, ratios = {name: [] for name in agents}, []
while env.agents:
    for name, observation in observations.items():
        seen = dict(zip(env.observed(name), observation, strict=False))
        rtt, least = seen[f"{name}.0.rtt"], seen[f"{name}.0.min_rtt"]
        waiting = windows[name] * (1 - least / rtt) if rtt > 0 else 0.0
        windows[name] = float(np.clip(windows[name] + np.sign(PACKETS - waiting), *WINDOW))
    observations, _, _, _, infos = env.step({name: action(window) for name, window in windows.items()})
    for name, info in infos.items():
        sender = info["senders"][f"{name}.0"]
        delivered[name].append(sender["delivery_rate_bps"])
        ratios.append(sender["rtt_s"] / 0.04)

half = len(ratios) // 4  # of each agent's steps
means = np.array([np.mean(rates[half:]) for rates in delivered.values()])
for name, mean in zip(agents, means, strict=True):
    print(f"{name}, Mb/s: {mean / 1e6:.2f}")
print(f"Jain's index: {means.sum() ** 2 / (len(means) * (means**2).sum()):.3f}")
print(f"share of the link: {means.sum() / 20e6:.3f}")
print(f"round-trip time, of the path's: {np.mean(ratios[2 * half :]):.2f}")
