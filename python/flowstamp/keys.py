# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Keys of a scenario as keyword arguments. Made by docs/make_reference.py from the JSON Schema.

`from_` and `list_` are `from` and `list` in a file.
"""

# fmt: off
# Without `from __future__ import annotations`: TypedDict reads Required as the class is made.
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Required, TypeAlias, TypedDict

Spec: TypeAlias = str | Mapping[str, Any]
"""A law or queue: its name, or a table of its name (`law`, of a queue `kind`) and parameters."""

LinkRate: TypeAlias = str | Mapping[str, Any]
"""A capacity such as "45Mbps", or a table with `steps` or `trace`."""


class Dumbbell(TypedDict, total=False):
    """Keys of a dumbbell."""

    access_rate: Annotated[str | None, "Capacity of each access link. Default: ten times the bottleneck's."]
    buffer: Annotated[str | None, 'Buffer in front of the bottleneck; `BDP` is the capacity times `rtt`.']
    delay: Annotated[str | None, 'One-way propagation delay of the bottleneck. Default: 0.4 rtt, which leaves 0.05 rtt to each access link.']
    impairments: Annotated[Mapping[str, Any] | None, 'Packets that the bottleneck loses, copies, holds back or sends another way once they have crossed it. Both ways. Default: it does not.']
    police: Annotated[Mapping[str, Any] | None, 'Flows that do not obey are found by tests and isolated (Katabi 2002, section 7): `{}` for all defaults. For links with a router law of XCP or RCP. Default: nobody is tested.']
    priority: Annotated[str | None, "Packets that go before all others. Default: acks where the router law wants it (VCP's does), else none: packets go as they come. Not together with `share`."]
    queue: Annotated[Spec | None, "The bottleneck's queue."]
    reverse_impairments: Annotated[Mapping[str, Any] | None, 'What happens to packets from right to left, where it differs; `{}` is nothing.']
    reverse_rate: Annotated[LinkRate | None, 'Capacity from right to left, where it differs.']
    router: Annotated[Spec | None, "The bottleneck's router law."]
    rtt: Annotated[Required[str], 'Round-trip propagation time of flows that do not name their own, over all six links.']
    share: Annotated[Spec | None, 'How the router law shares the link with traffic of other protocols. Default: it takes all traffic for its own.']


class ParkingLot(TypedDict, total=False):
    """Keys of a parking lot."""

    access_delay: Annotated[str | None, 'One-way propagation delay of each access link.']
    access_rate: Annotated[str | None, "Capacity of each access link. Default: ten times the fastest link's."]
    buffer: Annotated[str | None, "Buffer of each link; `BDP` is the link's capacity times `rtt`."]
    delay: Annotated[Required[str], 'One-way propagation delay of each link.']
    impairments: Annotated[Mapping[str, Any] | None, 'Packets that each link loses, copies, holds back or sends another way once they have crossed it. Default: it does not.']
    police: Annotated[Mapping[str, Any] | None, 'Flows that do not obey are found by tests and isolated (Katabi 2002, section 7): `{}` for all defaults. For links with a router law of XCP or RCP. Default: nobody is tested.']
    priority: Annotated[str | None, "Packets that go before all others. Default: acks where the router law wants it (VCP's does), else none: packets go as they come. Not together with `share`."]
    queue: Annotated[Spec | None, 'The queue of each link.']
    router: Annotated[Spec | None, 'The router law of each link.']
    rtt: Annotated[str | None, 'The round-trip time that `BDP` refers to. Default: that of a flow over all links.']
    share: Annotated[Spec | None, 'How the router law shares the link with traffic of other protocols. Default: it takes all traffic for its own.']


class LeafSpine(TypedDict, total=False):
    """Keys of a leaf-spine network."""

    buffer: Annotated[str | None, "Buffer in front of each link between switches, and from a switch to a host; `BDP` is the link's capacity times `rtt`."]
    delay: Annotated[Required[str], "One-way propagation delay of each host's link."]
    host_buffer: Annotated[str | None, "Buffer of a host's own link, which is its memory. Default: 2MB."]
    priority: Annotated[str | None, "Packets that go before all others. Default: acks where the router law wants it (VCP's does), else none: packets go as they come. Not together with `share`."]
    queue: Annotated[Spec | None, 'The queue of each link.']
    rate: Annotated[Required[str], "Capacity of each host's link, both ways."]
    router: Annotated[Spec | None, "The router law of each link, hosts' own among them."]
    rtt: Annotated[str | None, 'The round-trip time that `BDP` refers to. Default: the longest of any flow.']
    share: Annotated[Spec | None, 'How the router law shares the link with traffic of other protocols. Default: it takes all traffic for its own.']
    spine_delay: Annotated[str | None, "One-way propagation delay of each link between leaf and spine. Default: the hosts'."]
    spine_rate: Annotated[str | None, "Capacity of each link between leaf and spine, both ways. Default: the hosts'."]


class FatTree(TypedDict, total=False):
    """Keys of a fat tree."""

    buffer: Annotated[str | None, "Buffer in front of each link between switches, and from a switch to a host; `BDP` is the link's capacity times `rtt`."]
    delay: Annotated[Required[str], 'One-way propagation delay of each link.']
    host_buffer: Annotated[str | None, "Buffer of a host's own link, which is its memory. Default: 2MB."]
    priority: Annotated[str | None, "Packets that go before all others. Default: acks where the router law wants it (VCP's does), else none: packets go as they come. Not together with `share`."]
    queue: Annotated[Spec | None, 'The queue of each link.']
    rate: Annotated[Required[str], 'Capacity of each link, both ways.']
    router: Annotated[Spec | None, "The router law of each link, hosts' own among them."]
    rtt: Annotated[str | None, 'The round-trip time that `BDP` refers to. Default: the longest of any flow.']
    share: Annotated[Spec | None, 'How the router law shares the link with traffic of other protocols. Default: it takes all traffic for its own.']


class Graph(TypedDict, total=False):
    """Keys of a graph, and of its links that do not name them."""

    buffer: Annotated[str | None, 'Buffer.']
    delay: Annotated[str | None, 'One-way propagation delay.']
    delay_key: Annotated[str | None, "The file's column or attribute that is the one-way propagation delay. Default: `delay`."]
    delay_unit: Annotated[str | None, 'The unit of delays in the file that have none, such as `"ms"`. Default: they are refused.']
    directed: Annotated[bool | None, 'Links that do not say `duplex` lead one way, from the first node to the second. Default: as the GraphML file says; false otherwise.']
    file: Annotated[str | Path | None, "In place of `links` a file of them, relative to the scenario's folder: GraphML as networkx writes it, whose edges have `rate` (or `capacity`) and `delay`, or CSV (with commas, semicolons or tabs) with columns `source`, `target`, `rate` and `delay`. Both may also say `weight`, `name`, `buffer`, `queue`, `router`, `priority`, `medium` and `duplex`. Edges of an undirected graph lead both ways, and so do rows of CSV."]
    ignore_columns: Annotated[Sequence[str] | None, 'Columns of a CSV file that are left alone; any other unknown column is refused. `"*"` stands for all unknown columns. Unknown attributes of GraphML are left alone anyway; one that is named here is, too, if it is known.']
    priority: Annotated[str | None, 'Packets that go before all others.']
    queue: Annotated[Spec | None, 'Queue.']
    rate: Annotated[LinkRate | None, "Capacity of the file's links that name none, as are the following."]
    rate_key: Annotated[str | None, "The file's column or attribute that is the capacity. Default: `rate` or `capacity`."]
    rate_unit: Annotated[str | None, 'The unit of capacities in the file that have none: `"bps"`, `"kbps"`, `"Mbps"`, `"Gbps"` or `"Tbps"`. Default: they are refused.']
    router: Annotated[Spec | None, 'Router law.']
    rtt: Annotated[str | None, 'The round-trip time that a buffer in `BDP` refers to. Default: the longest of any flow.']
    share: Annotated[Spec | None, 'How the router law shares the link with traffic of other protocols.']
    weight: Annotated[float | None, 'Weight, by which routes go.']
    weight_key: Annotated[str | None, "The file's column or attribute that is the weight. Default: `weight`."]


class Link(TypedDict, total=False):
    """Keys of a link of a graph."""

    buffer: Annotated[str | None, 'Buffer.']
    delay: Annotated[Required[str], 'One-way propagation delay.']
    duplex: Annotated[bool | None, 'The same link also leads back, as `to->from` or `name.reverse`.']
    impairments: Annotated[Mapping[str, Any] | None, 'Packets that the link loses, copies, holds back or sends another way once they have crossed it. Default: it does not.']
    medium: Annotated[str | None, 'Links that name the same medium share it: one of them sends at a time, in turn. Default: a medium of its own for each direction.']
    name: Annotated[str | None, 'Name in results. Default: `from->to`, and `from->to#2` of a second link between the same nodes.']
    police: Annotated[Mapping[str, Any] | None, 'Flows that do not obey are found by tests and isolated (Katabi 2002, section 7): `{}` for all defaults. For links with a router law of XCP or RCP. Default: nobody is tested.']
    priority: Annotated[str | None, "Packets that go before all others. Default: acks where the router law wants it (VCP's does), else none: packets go as they come. Not together with `share`."]
    queue: Annotated[Spec | None, 'Queue.']
    rate: Annotated[Required[LinkRate], 'Capacity.']
    router: Annotated[Spec | None, 'Router law.']
    share: Annotated[Spec | None, 'How the router law shares the link with traffic of other protocols. Default: it takes all traffic for its own.']
    weight: Annotated[float | None, 'What it costs to take the link. If one link has a weight, all need one, and packets take the path whose weights have the least sum. Default: paths go by delay.']


class FlowGroup(TypedDict, total=False):
    """Keys of a group of flows."""

    access: Annotated[Mapping[str, Any] | None, 'Hosts of their own on access links. Default: as the topology says; in a graph none, flows start at the node.']
    application: Annotated[Mapping[str, Any] | None, 'What the application of each flow produces, and when. Default: more than the network carries.']
    each_hop: Annotated[bool | None, 'In a parking lot: one such group of flows over each single link.']
    every: Annotated[str | None, 'How much later than the one before each flow starts.']
    from_: Annotated[str | None, 'Where data comes from: a node. Default: the first node.']
    governs: Annotated[str | None, 'The link that the flow governs, by its name: what waits for it leaves at the rate of this flow, which has no data of its own. For laws of macro-flows, `"xcp-edge"` and `"vcp-edge"`; the flow goes from the link\'s end to where all flows over the link leave the cloud.']
    ignore_columns: Annotated[Sequence[str] | None, 'Columns of `list` that are left alone; any other unknown column is refused. `"*"` stands for all unknown columns.']
    jitter: Annotated[str | None, 'How far a datagram application\'s packets leave behind the ticks of its clock, drawn uniformly for each, in their order: up to 1 s, or `"none"` for the bare clock. Default: up to eight times as long as the slowest link on the way takes for a packet, and at most 1 s; of Poisson datagrams none.']
    label: Annotated[int | None, 'Which packets go first on links with `priority = "labels"`: those of flows with a greater label, acks too. 0 to 7, as the priority code point of IEEE 802.1Q.']
    lifetime: Annotated[str | None, 'How long each flow sends new data, from its own start on. Default: until `stop`.']
    lifetime_spread: Annotated[str | None, 'Each flow lasts up to so much longer than `lifetime`, drawn uniformly.']
    list_: Annotated[str | Path | None, "Flows that a file lists, relative to the scenario's folder: CSV whose first line names its columns, or Parquet. A row is a flow. Columns `start` (seconds, or with a unit: `0.25`, `250ms`) and `size` (bytes of payload, or with a unit: `15000`, `15kB`) must be there; `from`, `to` and `law` say otherwise than the group, where they are not empty: nodes, and a law's name, with the group's parameters if it is the group's and its default ones else."]
    name: Annotated[str | None, 'Name in results; unique.']
    packet: Annotated[str | Sequence[Mapping[str, Any]] | None, 'Sizes of datagrams as they are on the wire: one size, `"imix"`, or a list of sizes with weights. From the scenario\'s `header` to its `packet`, which is the default.']
    pattern: Annotated[str | None, 'Between which hosts the flows go, in place of `from` and `to`. Hosts are those of a fat_tree or leaf_spine, and in a graph the nodes with one neighbour.']
    rate: Annotated[str | None, 'How fast the application produces payload: short for an `application` of kind `"constant"`. Default: faster than the network.']
    receiver: Annotated[str | None, 'What the receiving hosts know. With `"tcp"` stamps do not come back, and laws that rely on them are refused, unless they ask for their protocol first (`negotiate`).']
    reverse: Annotated[bool | None, 'Data goes the other way: `from` and `to` change places.']
    rtt: Annotated[str | Sequence[str] | None, 'Round-trip propagation time, by a longer access link at the sender; one for all, or a list, one for each flow.']
    send_buffer: Annotated[str | None, "The most datagrams, in bytes on the wire, that may wait for the host's own link. The source drops what an application produces beyond it. Needs hosts of their own (`access`). Default: without bound."]
    size: Annotated[str | None, 'How much payload each flow transfers. Default: without end.']
    spread: Annotated[str | None, 'Each flow starts up to so much later, drawn uniformly.']
    start: Annotated[str | Sequence[str] | None, "When the first flow starts, or a list, one for each flow; of a `list` in a file, what is added to each row's."]
    stop: Annotated[str | None, 'When the flows stop sending new data. Default: never.']
    to: Annotated[str | None, 'Where data goes: a node. Default: the last node.']
    transport: Annotated[Mapping[str, Any] | None, 'Window, acks and recovery.']
    web: Annotated[Mapping[str, Any] | None, 'Flows that arrive at random, each with a size of its own.']


class Outage(TypedDict, total=False):
    """Keys of an outage."""

    both_ways: Annotated[bool | None, 'Its way back, `b->a` or `name.reverse`, fails with it.']
    on_failure: Annotated[str | None, 'What becomes of packets that wait for the link or are on it.']


class Routing(TypedDict, total=False):
    """Keys of routing."""

    convergence: Annotated[str | None, 'How long after a link fails or returns all routes follow.']
    reroute: Annotated[bool | None, 'Routes are computed anew, without the links that are down. A flow without another way keeps its own. If false, all flows keep theirs.']


class Probes(TypedDict, total=False):
    """Keys of probes."""

    cells: Annotated[bool | None, 'Of cells, the share of time that is busy; of each of their stations, airtime, collisions, retries, data rate and MAC delay.']
    every: Annotated[str | None, 'Sampling interval. Default: a hundredth of the duration.']
    flows: Annotated[bool | None, 'Throughput, window and RTT of each long flow.']
    groups: Annotated[bool | None, 'Throughput of each group.']
    laws: Annotated[bool | None, 'Variables of router and queue laws.']
    links: Annotated[bool | None, 'Utilisation, queue, drops and marks of each router link.']


class Scenario(TypedDict, total=False):
    """Keys of the whole run."""

    ack: Annotated[str | None, 'Size of an ack as it is on the wire.']
    description: Annotated[str | None, 'What the scenario shows, in a sentence.']
    duration: Annotated[str | None, 'Simulated time.']
    header: Annotated[str | None, 'How much of a data packet is headers; the rest is payload, which is what sizes of flows, application rates, goodput and delivered bytes count. Links, queues and windows count whole packets.']
    name: Annotated[str | None, 'A name for titles and tables.']
    packet: Annotated[str | None, 'Size of a data packet as it is on the wire.']
    seed: Annotated[int | None, 'Every random choice follows from this and from stable names.']
    warmup: Annotated[str | None, 'Statistics start here; series cover the whole run.']
