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
    impairments: Annotated[Mapping[str, Any] | None, 'Losses, marks, copies, delays and detours of packets after they have crossed the bottleneck, in both directions. Default: none.']
    police: Annotated[Mapping[str, Any] | None, 'Tests flows, and isolates those that do not obey the router (Katabi 2002, section 7). `{}` takes all defaults. Needs a router law of XCP or RCP. Default: no tests.']
    priority: Annotated[str | None, "Packets that are sent before all others. Default: acks if the router law asks for it, as VCP's does; otherwise none. It excludes `share`."]
    queue: Annotated[Spec | None, "The bottleneck's queue."]
    reverse_impairments: Annotated[Mapping[str, Any] | None, 'Impairments from right to left; `{}` for none. Default: as `impairments`.']
    reverse_rate: Annotated[LinkRate | None, 'Capacity from right to left. Default: as `rate`.']
    router: Annotated[Spec | None, "The bottleneck's router law."]
    rtt: Annotated[Required[str], 'Round-trip propagation time of flows without an `rtt` of their own. It covers all six links.']
    scone: Annotated[Mapping[str, Any] | None, 'Throughput advice for videos (SCONE): `{}` for the rate of the RCP router, `{ rate = "3Mbps" }` for a fixed rate. Default: no advice.']
    share: Annotated[Spec | None, 'How the router law shares the link with traffic of other protocols. Default: it treats all traffic as its own.']


class ParkingLot(TypedDict, total=False):
    """Keys of a parking lot."""

    access_delay: Annotated[str | None, 'One-way propagation delay of each access link.']
    access_rate: Annotated[str | None, "Capacity of each access link. Default: ten times the fastest link's."]
    buffer: Annotated[str | None, "Buffer of each link; `BDP` is the link's capacity times `rtt`."]
    delay: Annotated[Required[str], 'One-way propagation delay of each link.']
    impairments: Annotated[Mapping[str, Any] | None, 'Losses, marks, copies, delays and detours of packets after they have crossed each link. Default: none.']
    police: Annotated[Mapping[str, Any] | None, 'Tests flows, and isolates those that do not obey the router (Katabi 2002, section 7). `{}` takes all defaults. Needs a router law of XCP or RCP. Default: no tests.']
    priority: Annotated[str | None, "Packets that are sent before all others. Default: acks if the router law asks for it, as VCP's does; otherwise none. It excludes `share`."]
    queue: Annotated[Spec | None, 'The queue of each link.']
    router: Annotated[Spec | None, 'The router law of each link.']
    rtt: Annotated[str | None, 'The round-trip time that `BDP` refers to. Default: that of a flow over all links.']
    share: Annotated[Spec | None, 'How the router law shares the link with traffic of other protocols. Default: it treats all traffic as its own.']


class LeafSpine(TypedDict, total=False):
    """Keys of a leaf-spine network."""

    buffer: Annotated[str | None, "Buffer in front of each link of a switch, to another switch or to a host. `BDP` is the link's capacity times `rtt`."]
    delay: Annotated[Required[str], "One-way propagation delay of each host's link."]
    host_buffer: Annotated[str | None, "Buffer in front of a host's own link: the host's send memory. Default: 2MB."]
    oversubscription: Annotated[float | None, "Capacity of a leaf's hosts over that of its links to spines, 1 to 1000: with 4, all hosts of a leaf together get a quarter of their capacity to other leaves. It sets `spine_rate`."]
    pfc: Annotated[bool | Mapping[str, Any] | None, 'Priority flow control of all links: switches pause links before a buffer overflows. Default: none.']
    priority: Annotated[str | None, "Packets that are sent before all others. Default: acks if the router law asks for it, as VCP's does; otherwise none. It excludes `share`."]
    queue: Annotated[Spec | None, 'The queue of each link.']
    rate: Annotated[Required[str], "Capacity of each host's link, both ways."]
    router: Annotated[Spec | None, "The router law of each link, including the hosts' own."]
    rtt: Annotated[str | None, 'The round-trip time that `BDP` refers to. Default: the longest of any flow.']
    share: Annotated[Spec | None, 'How the router law shares the link with traffic of other protocols. Default: it treats all traffic as its own.']
    spine_delay: Annotated[str | None, 'One-way propagation delay of each link between leaf and spine. Default: as `delay`.']
    spine_rate: Annotated[str | None, 'Capacity of each link between leaf and spine, both ways. Default: as `rate`.']


class FatTree(TypedDict, total=False):
    """Keys of a fat tree."""

    buffer: Annotated[str | None, "Buffer in front of each link of a switch, to another switch or to a host. `BDP` is the link's capacity times `rtt`."]
    delay: Annotated[Required[str], 'One-way propagation delay of each link.']
    host_buffer: Annotated[str | None, "Buffer in front of a host's own link: the host's send memory. Default: 2MB."]
    oversubscription: Annotated[float | None, "Capacity of an edge switch's hosts over that of its links to aggregation switches, 1 to 1000. It sets the number of hosts of each edge switch, `oversubscription * k/2`, which must be whole. Default: 1."]
    pfc: Annotated[bool | Mapping[str, Any] | None, 'Priority flow control of all links: switches pause links before a buffer overflows. Default: none.']
    priority: Annotated[str | None, "Packets that are sent before all others. Default: acks if the router law asks for it, as VCP's does; otherwise none. It excludes `share`."]
    queue: Annotated[Spec | None, 'The queue of each link.']
    rate: Annotated[Required[str], 'Capacity of each link, both ways.']
    router: Annotated[Spec | None, "The router law of each link, including the hosts' own."]
    rtt: Annotated[str | None, 'The round-trip time that `BDP` refers to. Default: the longest of any flow.']
    share: Annotated[Spec | None, 'How the router law shares the link with traffic of other protocols. Default: it treats all traffic as its own.']


class Graph(TypedDict, total=False):
    """Keys of a graph, and of its links that do not name them."""

    buffer: Annotated[str | None, "Buffer of the file's links that have none of their own."]
    delay: Annotated[str | None, "One-way propagation delay of the file's links that have none of their own."]
    delay_key: Annotated[str | None, "The file's column or attribute that holds the one-way propagation delay. Default: `delay`."]
    delay_unit: Annotated[str | None, 'The unit of delays that are bare numbers in the file, such as `"ms"`. Default: bare numbers are refused.']
    directed: Annotated[bool | None, 'Whether links without `duplex` lead one way only, from the first node to the second. Default: as the GraphML file says; otherwise false.']
    file: Annotated[str | Path | None, "A file of links in place of `links`, relative to the scenario's folder. GraphML, as networkx writes it, has `rate` (or `capacity`) and `delay` on its edges. CSV, with commas, semicolons or tabs, has columns `source`, `target`, `rate` and `delay`. Both may also have `weight`, `name`, `buffer`, `queue`, `router`, `priority`, `medium` and `duplex`. An edge of an undirected graph leads both ways, and so does a row of CSV."]
    ignore_columns: Annotated[Sequence[str] | None, 'Columns of a CSV file to ignore. Any other unknown column is refused; `"*"` ignores all unknown columns. In GraphML, unknown attributes are ignored anyway, and a known one is ignored if it is named here.']
    pfc: Annotated[bool | Mapping[str, Any] | None, "Priority flow control of the file's links that have none of their own."]
    priority: Annotated[str | None, "Packets that the file's links send before all others, if a link does not say otherwise."]
    queue: Annotated[Spec | None, "Queue of the file's links that have none of their own."]
    rate: Annotated[LinkRate | None, "Capacity of the file's links that have none of their own."]
    rate_key: Annotated[str | None, "The file's column or attribute that holds the capacity. Default: `rate` or `capacity`."]
    rate_unit: Annotated[str | None, 'The unit of capacities that are bare numbers in the file: `"bps"`, `"kbps"`, `"Mbps"`, `"Gbps"` or `"Tbps"`. Default: bare numbers are refused.']
    router: Annotated[Spec | None, "Router law of the file's links that have none of their own."]
    rtt: Annotated[str | None, 'The round-trip time that a buffer in `BDP` refers to. Default: the longest of any flow.']
    share: Annotated[Spec | None, "How the router laws of the file's links share them with traffic of other protocols."]
    weight: Annotated[float | None, "Weight of the file's links that have none of their own. Routes go by weights."]
    weight_key: Annotated[str | None, "The file's column or attribute that holds the weight. Default: `weight`."]


class Link(TypedDict, total=False):
    """Keys of a link of a graph."""

    buffer: Annotated[str | None, 'Buffer in front of the link.']
    delay: Annotated[Required[str], 'One-way propagation delay of the link.']
    duplex: Annotated[bool | None, 'Whether the same link also leads back, as `to->from` or `name.reverse`.']
    impairments: Annotated[Mapping[str, Any] | None, 'Losses, marks, copies, delays and detours of packets after they have crossed the link. Default: none.']
    medium: Annotated[str | None, 'The medium that carries the link. Links with the same medium share it: they send one at a time, in turn. Default: a medium of its own for each direction.']
    name: Annotated[str | None, 'Name in results. Default: `from->to`, and `from->to#2` for a second link between the same nodes.']
    pfc: Annotated[bool | Mapping[str, Any] | None, 'Priority flow control: the node to which the link leads pauses it before a buffer overflows. It needs a link that leads back. Default: none.']
    police: Annotated[Mapping[str, Any] | None, 'Tests flows, and isolates those that do not obey the router (Katabi 2002, section 7). `{}` takes all defaults. Needs a router law of XCP or RCP. Default: no tests.']
    priority: Annotated[str | None, "Packets that are sent before all others. Default: acks if the router law asks for it, as VCP's does; otherwise none. It excludes `share`."]
    queue: Annotated[Spec | None, "The link's queue."]
    rate: Annotated[Required[LinkRate], 'Capacity of the link.']
    router: Annotated[Spec | None, "The link's router law."]
    scone: Annotated[Mapping[str, Any] | None, 'Throughput advice for videos (SCONE): `{}` for the rate of the RCP router, `{ rate = "3Mbps" }` for a fixed rate. It cannot be combined with `pfc`. Default: no advice.']
    share: Annotated[Spec | None, 'How the router law shares the link with traffic of other protocols. Default: it treats all traffic as its own.']
    weight: Annotated[float | None, 'Cost of taking the link. If one link has a weight, all need one, and packets take the path whose weights have the least sum. Default: packets take the path of least delay.']


class FlowGroup(TypedDict, total=False):
    """Keys of a group of flows."""

    access: Annotated[Mapping[str, Any] | None, 'Gives each flow hosts of its own on such access links. Default: as the topology says; in a graph none, and flows start at the node.']
    application: Annotated[Mapping[str, Any] | None, 'The traffic that the application of each flow produces, and when. Default: there is always more to send.']
    collective: Annotated[Mapping[str, Any] | None, 'Repetitions of the operation, with `pattern = "all-to-all"` or `"ring-all-reduce"`. Default: there is one.']
    each_hop: Annotated[bool | None, 'In a parking lot, whether there is one such group over each single link.']
    every: Annotated[str | None, 'Time between the starts of successive flows.']
    from_: Annotated[str | None, 'The node that data comes from. Default: the first node.']
    governs: Annotated[str | None, 'Name of the link that the flow governs. Packets leave the link at the rate of this flow, which has no data of its own. Needs the law of a macro-flow, `"xcp-edge"` or `"vcp-edge"`. The flow goes from the link\'s end to where all flows over the link leave the cloud.']
    hosts: Annotated[Sequence[str] | None, 'The hosts between which `pattern` places flows; a ring is in their order. Default: all.']
    ignore_columns: Annotated[Sequence[str] | None, 'Columns of `list` to ignore. Any other unknown column is refused; `"*"` ignores all unknown columns.']
    incast: Annotated[Mapping[str, Any] | None, 'Incasts of a given size, with `pattern = "incast"`. They need no `count` and no `size`.']
    jitter: Annotated[str | None, 'Longest random delay of datagrams after the ticks of their application\'s clock, at most 1 s. It is drawn uniformly for each datagram, and they keep their order. `"none"` has no delay. Default: eight transmission times of a packet on the slowest link of the path, at most 1 s; none for Poisson datagrams.']
    label: Annotated[int | None, 'Priority on links with `priority = "labels"`: packets of flows with a greater label go first, and so do their acks. 0 to 7, as the priority code point of IEEE 802.1Q.']
    lifetime: Annotated[str | None, 'How long each flow sends new data from its start. Default: until `stop`.']
    lifetime_spread: Annotated[str | None, "Longest random extension of each flow's `lifetime`, drawn uniformly from 0."]
    list_: Annotated[str | Path | None, "A file that lists flows, one in each row, relative to the scenario's folder: CSV whose first line names the columns, or Parquet. The columns `start` (seconds, or with a unit: `0.25`, `250ms`) and `size` (bytes of payload, or with a unit: `15000`, `15kB`) are required. In the columns `from`, `to` and `law`, a node or a law's name replaces the group's for its row. The group's own law keeps the group's parameters; any other law has its defaults. A file whose first line is a number has the text format of HPCC's simulator, with hosts `h0` and so on."]
    name: Annotated[str | None, 'Name in results; unique.']
    packet: Annotated[str | Sequence[Mapping[str, Any]] | None, 'Sizes of datagrams on the wire: one size, `"imix"`, or a list of sizes with weights. They range from the scenario\'s `header` to its `packet`, which is the default.']
    pattern: Annotated[str | None, 'Which hosts the flows connect, in place of `from` and `to`. Hosts are those of a fat_tree or leaf_spine; in a graph they are the nodes with one neighbour.']
    rate: Annotated[str | None, 'Rate at which the application produces payload: short for an `application` of kind `"constant"`. Default: there is always more to send.']
    receiver: Annotated[str | None, 'Which protocols the receiving hosts know. With `"tcp"` they echo no stamps. Laws that rely on stamps are then refused, unless they ask for their protocol first (`negotiate`).']
    reverse: Annotated[bool | None, 'Whether `from` and `to` change places, so that data goes the other way.']
    rtt: Annotated[str | Sequence[str] | None, 'Round-trip propagation time: one for all flows, or a list with one for each. A longer access link at the sender makes up the difference.']
    send_buffer: Annotated[str | None, "Maximum size on the wire of all datagrams that wait for the host's own link. The source drops further datagrams. Needs hosts of their own (`access`). Default: unbounded."]
    size: Annotated[str | None, 'Payload that each flow transfers. Default: endless. With a collective `pattern` it is the data of each host.']
    spread: Annotated[str | None, "Longest random delay of each flow's start, drawn uniformly from 0."]
    start: Annotated[str | Sequence[str] | None, "When the first flow starts, or a list with one time for each flow. With `list`, it is added to each row's start."]
    stop: Annotated[str | None, 'When the flows stop sending new data. Default: never.']
    to: Annotated[str | None, 'The node that data goes to. Default: the last node.']
    transport: Annotated[Mapping[str, Any] | None, 'Window, acks and recovery.']
    web: Annotated[Mapping[str, Any] | None, 'Flows that arrive at random, each with a size of its own.']


class Outage(TypedDict, total=False):
    """Keys of an outage."""

    both_ways: Annotated[bool | None, 'Whether the way back, `b->a` or `name.reverse`, fails with it.']
    on_failure: Annotated[str | None, 'The fate of packets that wait for the link or are on it.']


class Routing(TypedDict, total=False):
    """Keys of routing."""

    balance: Annotated[str | None, 'How packets are balanced over paths of equal cost, data and acks alike. At each node, all links on such paths are equally likely. Flows that govern a link keep one path.']
    convergence: Annotated[str | None, 'Time from the failure or return of a link until all routes follow.']
    flowlet_gap: Annotated[str | None, 'With `balance = "flowlet"`, the least pause between two packets of a flow that lets it change its path. It is measured where packets leave the flow\'s host.']
    reroute: Annotated[bool | None, 'Whether routes are computed anew, without the links that are down. A flow without another route keeps its own.']


class Probes(TypedDict, total=False):
    """Keys of probes."""

    cells: Annotated[bool | None, 'Share of time that each cell is busy; airtime, collisions, retries, data rate and MAC delay of each station.']
    every: Annotated[str | None, 'Sampling interval. Default: a hundredth of the duration.']
    flows: Annotated[bool | None, 'Throughput, window and RTT of each long flow.']
    groups: Annotated[bool | None, 'Throughput of each group.']
    laws: Annotated[bool | None, 'Variables of router and queue laws.']
    links: Annotated[bool | None, 'Utilisation, queue, drops and marks of each router link.']


class Scenario(TypedDict, total=False):
    """Keys of the whole run."""

    ack: Annotated[str | None, 'Size of an ack on the wire.']
    description: Annotated[str | None, 'The purpose of the scenario, in a sentence.']
    duration: Annotated[str | None, 'Simulated time.']
    header: Annotated[str | None, 'Bytes of headers in a data packet; the rest is payload. Flow sizes, application rates, goodput and delivered bytes count payload. Links, queues and windows count whole packets.']
    name: Annotated[str | None, 'A name for titles and tables.']
    packet: Annotated[str | None, 'Size of a data packet on the wire.']
    seed: Annotated[int | None, 'Every random choice follows from this and from stable names.']
    warmup: Annotated[str | None, 'When statistics start. Series cover the whole run.']
