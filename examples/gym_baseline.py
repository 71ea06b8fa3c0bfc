# SPDX-License-Identifier: Apache-2.0 OR MIT
# ruff: noqa: T201
"""XCP's gains as an environment of gymnasium, and what nobody's training has to beat.

Usage: python examples/gym_baseline.py; needs flowstamp[gym]
"""

import numpy as np

import flowstamp as fs
from flowstamp.gym import Network

EPISODES = 3

network = (
    fs.dumbbell("20Mbps", rtt="40ms")
    .flows("xcp", 3, name="long", spread="2s")
    .flows("xcp", name="short", web={"load": 0.3, "sizes": {"distribution": "pareto", "mean": "30kB", "shape": 1.5}})
    .configure(duration="10s")
)
# An action of 0 is in the middle: alpha as the paper has it, 0.4, and beta, 0.226.
env = Network(network, {"dumbbell.router.alpha": (0.2, 0.6), "dumbbell.router.beta": (0.113, 0.339)}, step="200ms")


def episode(policy, seed: int) -> float:
    """The mean reward of a step."""
    env.reset(seed=seed)
    rewards, ended = [], False
    while not ended:
        _, reward, terminated, ended, _ = env.step(policy())
        rewards.append(reward)
        ended = ended or terminated
    return float(np.mean(rewards))


still = np.zeros(env.action_space.shape, np.float32)
env.action_space.seed(1)
for name, policy in {"as published": lambda: still, "at random": env.action_space.sample}.items():
    rewards = [episode(policy, seed) for seed in range(1, EPISODES + 1)]
    print(f"{name}: mean reward {np.mean(rewards):.4f} of {EPISODES} episodes")
