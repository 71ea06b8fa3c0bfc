# SPDX-License-Identifier: Apache-2.0 OR MIT
# ruff: noqa: T201
"""Two environments of gymnasium (XCP's gains, and a sender's window), and the rewards that training has to beat.

Usage: python examples/gym_baseline.py; needs flowstamp[gym]
"""

import numpy as np

import flowstamp as fs
from flowstamp.gym import Network

EPISODES = 3


def episode(env, policy, seed: int) -> float:
    """The mean reward of a step."""
    env.reset(seed=seed)
    rewards, ended = [], False
    while not ended:
        _, reward, terminated, ended, _ = env.step(policy())
        rewards.append(reward)
        ended = ended or terminated
    return float(np.mean(rewards))


def baseline(env, name: str, middle: str) -> None:
    """Prints the mean reward of actions of 0, in the middle of their ranges, and of random actions."""
    still = np.zeros(env.action_space.shape, np.float32)
    env.action_space.seed(1)
    for policy, act in {middle: lambda: still, "at random": env.action_space.sample}.items():
        rewards = [episode(env, act, seed) for seed in range(1, EPISODES + 1)]
        print(f"{name} {policy}: mean reward {np.mean(rewards):.4f} of {EPISODES} episodes")


web = {"load": 0.3, "sizes": {"distribution": "pareto", "mean": "30kB", "shape": 1.5}}
dumbbell = fs.dumbbell("20Mbps", rtt="40ms")
routers = dumbbell.flows("xcp", 3, name="long", spread="2s").flows("xcp", name="short", web=web)
gains = {"dumbbell.router.alpha": (0.2, 0.6), "dumbbell.router.beta": (0.113, 0.339)}
# In the middle are alpha as the paper has it, 0.4, and beta, 0.226.
baseline(Network(routers.configure(duration="10s"), gains, step="200ms"), "gains", "as published")

# A window between 10 and 1000 packets, by factors: in the middle is one bandwidth-delay product, 100 packets.
sender = dumbbell.flows("told", name="agent").configure(duration="10s")
baseline(Network(sender, {"flows.agent.law.window": (10.0, 1000.0)}, step="40ms"), "window", "of one BDP")
