# SPDX-License-Identifier: Apache-2.0 OR MIT
"""`flowstamp.stability_network`: against the equations stepped by Euler's rule here, max-min fairness, and packets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Command

import flowstamp as fs
from flowstamp.errors import TheoryError
from flowstamp.stability_network import Route, network, of_scenario

LINKS = {"first": "100Mbps", "second": "50Mbps"}
ROUTES = [Route(["first", "second"], "90ms", flows=2), Route(["first"], "30ms"), Route(["second"], "60ms", flows=3)]


def stepped(end: float, every: int, start: float) -> tuple[list[list[float]], list[list[float]]]:
    """RCP's equations 5.1 to 5.4 for these links and routes, by Euler's rule in steps of 20 us."""
    h, capacity, alpha, beta = 2e-5, [100e6, 50e6], 0.4, 0.226
    flows, rtts, passes = [2, 1, 3], [0.09, 0.03, 0.06], [{0: 0.0, 1: 0.0225}, {0: 0.0}, {1: 0.0}]
    over = [[i for i in range(3) if link in passes[i]] for link in (0, 1)]
    fair = [10e6, 80e6, 10e6]
    rate = [min(capacity[link], max(start * fair[i] for i in over[link])) for link in (0, 1)]
    queue, past = [0.0, 0.0], [tuple(rate)]
    queues, rates = [], []

    def then(link: int, steps: int) -> float:
        return past[max(0, len(past) - 1 - steps)][link]

    delay = {
        (i, link, other): round((passes[i][link] + rtts[i] - passes[i][other]) / h)
        for i in range(3)
        for link in passes[i]
        for other in passes[i]
    }
    for step in range(round(end / h) + 1):
        if step % every == 0:
            queues.append([queue[link] / capacity[link] for link in (0, 1)])
            rates.append([min(rate[link] for link in passes[i]) for i in range(3)])
        slopes = []
        for link in (0, 1):
            sent = {i: flows[i] * min(then(o, delay[i, link, o]) for o in passes[i]) for i in over[link]}
            arriving = sum(sent.values())
            d = sum(sent[i] * rtts[i] for i in sent) / arriving + queue[link] / capacity[link]
            spare = capacity[link] - arriving
            slopes.append((-spare, rate[link] * (alpha * spare - beta * queue[link] / d) / (capacity[link] * d)))
        for link, (filling, growing) in enumerate(slopes):
            queue[link] = max(0.0, queue[link] + h * filling)
            rate[link] = min(capacity[link], rate[link] + h * growing)
        past.append(tuple(rate))
    return queues, rates


def test_rcp_is_what_euler_makes_of_its_equations() -> None:
    lot = network("rcp", LINKS, ROUTES, alpha=0.4, beta=0.226)
    assert lot.fair_bps == pytest.approx([10e6, 80e6, 10e6])
    end, every = 2.0, 500
    queues, rates = stepped(end, every, 1.5)
    found = lot.trajectory(np.arange(0.0, end + 1e-9, every * 2e-5), start=1.5)
    assert max(queue[1] for queue in queues) > 0.01  # the second link is asked for half as much again as it carries
    for name, own in zip(LINKS, np.array(queues).T, strict=True):
        # Euler's error: in proportion to its step, a thousandth of the shortest RTT.
        assert found.queues_s[name] == pytest.approx(own, abs=2e-3 * own.max() + 1e-5)
    for own, expected in zip(found.rates_bps, np.array(rates).T, strict=True):
        assert own == pytest.approx(expected, rel=2e-3)


def test_xcp_rests_where_its_shuffling_is_made_up_for() -> None:
    """For the first link: `(F + h) / n = r h / y` for the one flow that is held back nowhere else (Low et al. 2005)."""
    alpha, gamma, held = 0.4, 0.1, 0.2
    lot = network("xcp", LINKS, ROUTES, alpha=alpha, beta=0.226, gamma=gamma)
    found = lot.trajectory([0.0, 400.0])
    # gamma y^2 / 3 = (y - held) (gamma y - alpha (1 - y)), y in shares of the capacity.
    y = max(np.roots([alpha + gamma * (1 - 1 / 3), -alpha - held * (gamma + alpha), held * alpha]))
    assert [rate[1] for rate in found.rates_bps] == pytest.approx([10e6, (y - held) * 100e6, 10e6], rel=1e-6)
    assert [queue[1] for queue in found.queues_s.values()] == pytest.approx([0.0, 0.0], abs=1e-9)


def test_vcp_rests_above_its_target_by_what_is_added() -> None:
    """`kappa w (1 - 1 / rho) = alpha` of a flow whose RTT is t_rho, equations 9 and 15."""
    links = {"only": "10Mbps"}
    lot = network("vcp", links, [Route(["only"], "200ms", flows=4)], kappa=0.2, target=0.9, packet="500B")
    found = lot.trajectory([0.0, 2000.0])
    assert found.queues_s == {}
    # Packets in an RTT, of the four flows: what the target carries and 4 alpha / kappa.
    packets = 0.9 * 10e6 * 0.2 / 8 / 500 + 4 / 0.2
    assert found.rates_bps[0][1] * 0.2 / 8 / 500 == pytest.approx(packets / 4, rel=1e-9)


def test_vcps_routers_adjust_their_target() -> None:
    """Xia 2008, equation 14: what is used is the target's, within a step, and not above it by what flows add."""
    lot = network("vcp", {"only": "10Mbps"}, [Route(["only"], "200ms", flows=4)], kappa=0.2, step=0.005)
    seconds = np.linspace(0.0, 400.0, 8001)
    found = lot.trajectory(seconds)
    used = 4 * found.rates_bps[0][seconds > 300].mean() / 10e6
    assert used == pytest.approx(0.98, abs=0.005)
    late = found.targets["only"][seconds > 300]
    # Packets in an RTT that flows add: 4 alpha / kappa of 250.
    assert late == pytest.approx(0.98 - 4 / 0.2 / 250, abs=0.0051)
    assert np.ptp(late) > 0.0
    assert lot.trajectory([0.0]).targets["only"] == [0.98]
    fixed = network("vcp", {"only": "10Mbps"}, [Route(["only"], "200ms", flows=4)], kappa=0.2).trajectory(seconds)
    assert fixed.targets == {}
    assert 4 * fixed.rates_bps[0][-1] / 10e6 == pytest.approx(0.98 + 0.08, rel=1e-6)


def test_rcps_packets_rest_where_the_model_does() -> None:
    fair = network("rcp", LINKS, ROUTES).trajectory([0.0, 100.0]).rates_bps
    links = "".join(
        f'[[graph.links]]\nname = "{name}"\nfrom = "{ends[0]}"\nto = "{ends[1]}"\nrate = "{rate}"\n'
        'delay = "5ms"\nbuffer = "2MB"\nrouter = "rcp"\n'
        for (name, rate), ends in zip(LINKS.items(), ("ab", "bc"), strict=True)
    )
    flows = "".join(
        f'[[flows]]\nname = "route{number}"\nlaw = "rcp"\ncount = {route.flows}\nrtt = "{route.rtt}"\n'
        f'from = "{ends[0]}"\nto = "{ends[1]}"\naccess = {{ rate = "1Gbps", delay = "1ms" }}\n'
        for number, (route, ends) in enumerate(zip(ROUTES, ("ac", "ab", "bc"), strict=True))
    )
    groups = fs.loads(f'duration = "30s"\nwarmup = "20s"\nheader = "0B"\n{links}{flows}').run().summary["groups"]
    for number, (route, rate) in enumerate(zip(ROUTES, fair, strict=True)):
        # The effect of a queue of a few packets: the router aims at the capacity itself.
        assert groups[f"route{number}"]["goodput_bps"] / route.flows == pytest.approx(rate[1], rel=0.01)


@pytest.mark.parametrize(
    ("law", "links", "routes", "parameters", "message"),
    [
        ("cubic", LINKS, ROUTES, {}, 'law "cubic" has no stability model; it must be one of xcp, rcp, vcp'),
        ("rcp", LINKS, ROUTES, {"gamma": 0.1}, "rcp has no parameter gamma; it has alpha, beta"),
        ("xcp", LINKS, ROUTES, {"gamma": 2.0}, "gamma is 2.0; it must be from 0 to 1"),
        ("xcp", LINKS, ROUTES, {"alpha": "much"}, 'alpha is "much"; it must be a number'),
        ("xcp", {"a": "fast"}, [Route(["a"], "1ms")], {}, 'links.a: "fast" is not a number with a unit'),
        (
            "xcp",
            LINKS,
            [Route(["third"], "1ms")],
            {},
            'routes[0].links: "third" is not a link; there are first, second',
        ),
        ("xcp", LINKS, [Route([], "1ms")], {}, "routes[0].links is []; it must have links, each once"),
        ("xcp", LINKS, [Route(["first"], "0ms")], {}, 'routes[0].rtt is "0ms"; it must be above 0'),
        ("xcp", LINKS, [Route(["first"], "9ms", flows=0)], {}, "routes[0].flows is 0; it must be 1 or more"),
        ("xcp", LINKS, [Route(["first"], "9ms", passes=["9ms"])], {}, "routes[0].passes is ['9ms']; it must have"),
        ("xcp", LINKS, [Route(["first"], "9ms", passes=["3"])], {}, 'routes[0].passes: "3" has no unit'),
        ("xcp", LINKS, [], {}, "0 routes; there must be 1 to 16"),
    ],
)
def test_what_is_no_network_is_refused_in_a_line(
    law: str, links: dict[str, str], routes: list[Route], parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(TheoryError) as refused:
        network(law, links, routes, **parameters)
    assert str(refused.value).startswith(message)
    assert "\n" not in str(refused.value)


def test_starts_are_checked() -> None:
    lot = network("xcp", LINKS, ROUTES)
    for start in (0.0, [1.0], [1.0, 1.0, -1.0]):
        with pytest.raises(TheoryError, match=r"start is .*; it must be a number above 0, or one for each of 3 routes"):
            lot.trajectory([0.0], start=start)


LOT = """
duration = "20s"
warmup = "10s"
header = "0B"

[parking_lot]
rates = ["100Mbps", "50Mbps", "80Mbps"]
delay = "10ms"
router = { law = "xcp", alpha = 0.4, beta = 0.226 }

[[flows]]
name = "long"
law = "xcp"
count = 2

[[flows]]
name = "first"
law = "xcp"
from = "n0"
to = "n1"

[[flows]]
name = "third"
law = "xcp"
count = 3
from = "n2"
to = "n3"
"""


def test_a_scenarios_links_come_to_rest_where_packets_do() -> None:
    """Its links, ways and times; and XCP's own rest, not max-min fair on the first link, is that of packets."""
    scenario = fs.loads(LOT)
    lot = of_scenario(scenario)
    assert lot is not None
    assert lot.capacities_bps == {"link1": 100e6, "link2": 50e6, "link3": 80e6}
    ways = {tuple(link for link, _ in way): (way, rtt, flows) for way, rtt, flows in lot.routes}
    # Access links have no delay.
    assert [after for _, after in ways[0, 1, 2][0]] == pytest.approx([0.0, 0.01, 0.02])
    assert {way: flows for way, (_, _, flows) in ways.items()} == {(0, 1, 2): 2.0, (0,): 1.0, (2,): 3.0}
    assert {way: rtt for way, (_, rtt, _) in ways.items()} == pytest.approx({(0, 1, 2): 0.06, (0,): 0.02, (2,): 0.02})
    assert lot.stable
    assert lot.settles_after_s is not None
    path = lot.trajectory(np.linspace(0.0, 20.0, 201))
    last = zip(lot.routes, path.rates_bps, strict=True)
    rests = {tuple(link for link, _ in way): float(rates[-1]) for (way, _, _), rates in last}
    assert rests[0,] < 0.9 * 68e6
    groups = scenario.run(seed=1).groups
    for name, way, flows in (("long", (0, 1, 2), 2), ("first", (0,), 1), ("third", (2,), 3)):
        # A window of whole packets: the long flows' 16 Mb/s in 60 ms are 120 of 1000 bytes, the third's in 20 ms 40:
        # one of these is 2.5%.
        assert groups[name]["goodput_bps"] / flows == pytest.approx(rests[way], rel=0.025), name


def test_links_that_no_flow_passes_together_are_not_together() -> None:
    assert of_scenario(fs.dumbbell(rate="10Mbps", rtt="40ms").configure(duration="1s").flows("xcp", 2)) is None


def test_links_of_several_laws_are_not_together() -> None:
    """The model has one law; a link that holds flows back by another is not left out."""
    links = "".join(
        f'[[graph.links]]\nfrom = "{ends[0]}"\nto = "{ends[1]}"\nrate = "10Mbps"\ndelay = "10ms"\nbuffer = "50kB"\n'
        f'router = {{ law = "xcp", gamma = {gamma} }}\n'
        for ends, gamma in (("ab", "0.1"), ("bc", "0.1"), ("cd", "0.2"))
    )
    flows = '[[flows]]\nname = "f"\nlaw = "xcp"\nfrom = "a"\nto = "%s"\naccess = { rate = "1Gbps", delay = "1ms" }\n'
    for to, together in (("c", True), ("d", False)):
        assert (of_scenario(fs.loads(f'duration = "1s"\n{links}{flows % to}')) is not None) == together


@pytest.mark.long
@pytest.mark.parametrize(
    ("gains", "code", "verdict"),
    [("alpha = 0.4, beta = 0.226", 0, "stable; settles in"), ("alpha = 1.9, beta = 0.9", 1, "unstable")],
)
def test_the_command_tells_of_links_together(
    flowstamp: Command, tmp_path: Path, gains: str, code: int, verdict: str
) -> None:
    file = tmp_path / "lot.toml"
    file.write_text(LOT.replace('law = "xcp"', 'law = "rcp"').replace("alpha = 0.4, beta = 0.226", gains))
    found = flowstamp("stability", str(file), "--out", str(tmp_path / "out"))
    assert found.returncode == code
    assert f"links link1, link2, link3 together, 3 routes: rcp: {verdict}" in found.stdout
    assert (tmp_path / "out" / "rcp-together.png").stat().st_size > 10_000
