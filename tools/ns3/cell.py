# SPDX-License-Identifier: Apache-2.0 OR MIT
"""A saturated cell of ns-3's Wi-Fi, as `tools/ns2/cell.tcl` has ns-2's: prints one JSON object.

    VENV/bin/pip install ns3
    VENV/bin/python tools/ns3/cell.py standard=b stations=10 seconds=60 seed=1

The network is ad hoc, so that only data and acks are sent. C++ sets everything up, which the package compiles when it
starts. A call from Python for each packet would take longer than the packet.
"""

from __future__ import annotations

import json
import sys

import cppyy  # type: ignore[import-not-found]
from ns import ns  # type: ignore[import-not-found]  # noqa: F401 (the import loads ns-3's libraries)

SOURCE = r"""
using namespace ns3;
namespace cell {
uint64_t attempts = 0, received = 0;
bool counting = false;
void Sent(Ptr<const Packet> packet, double) { attempts += counting && packet->GetSize() > 100; }
void Got(Ptr<const Packet>, const Address&) { received += counting; }
void Start() { counting = true; }

void Run(int stations, double seconds, int seed, bool g, int packet) {
  RngSeedManager::SetSeed(seed);
  Config::SetDefault("ns3::WifiRemoteStationManager::RtsCtsThreshold", StringValue("100000"));
  NodeContainer nodes;
  nodes.Create(stations + 1);
  WifiHelper wifi;
  wifi.SetStandard(g ? WIFI_STANDARD_80211g : WIFI_STANDARD_80211b);
  wifi.SetRemoteStationManager("ns3::ConstantRateWifiManager", "DataMode",
                               StringValue(g ? "ErpOfdmRate54Mbps" : "DsssRate11Mbps"));
  YansWifiPhyHelper phy;
  phy.SetChannel(YansWifiChannelHelper::Default().Create());
  phy.DisablePreambleDetectionModel();
  WifiMacHelper mac;
  mac.SetType("ns3::AdhocWifiMac");
  NetDeviceContainer devices = wifi.Install(phy, mac, nodes);
  WifiHelper::AssignStreams(devices, 100);
  auto positions = CreateObject<ListPositionAllocator>();
  positions->Add(Vector(0, 0, 0));
  for (int i = 1; i <= stations; ++i)
    positions->Add(Vector(5 * std::cos(2 * M_PI * i / stations), 5 * std::sin(2 * M_PI * i / stations), 0));
  MobilityHelper mobility;
  mobility.SetPositionAllocator(positions);
  mobility.Install(nodes);
  PacketSocketHelper().Install(nodes);
  for (int i = 0; i <= stations; ++i) {
    auto device = DynamicCast<WifiNetDevice>(devices.Get(i));
    if (g) device->GetPhy()->SetSlot(MicroSeconds(9)); // an ad-hoc network has long slots else
    PacketSocketAddress address;
    address.SetSingleDevice(device->GetIfIndex());
    address.SetPhysicalAddress(devices.Get(0)->GetAddress());
    address.SetProtocol(1);
    if (i == 0) {
      auto server = CreateObject<PacketSocketServer>();
      server->SetLocal(address);
      nodes.Get(0)->AddApplication(server);
      server->TraceConnectWithoutContext("Rx", MakeCallback(&Got));
      continue;
    }
    auto client = CreateObject<PacketSocketClient>();
    client->SetRemote(address);
    client->SetAttribute("PacketSize", UintegerValue(packet));
    client->SetAttribute("MaxPackets", UintegerValue(0));
    client->SetAttribute("Interval", TimeValue(Seconds(packet * 8.0 * stations / 60e6)));
    client->SetStartTime(Seconds(0.1 + 0.8 * i / stations));
    nodes.Get(i)->AddApplication(client);
    device->GetPhy()->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Sent));
  }
  Simulator::Schedule(Seconds(1), &Start);
  Simulator::Stop(Seconds(1 + seconds));
  Simulator::Run();
  Simulator::Destroy();
}
}
"""


def main() -> int:
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    seconds, packet = float(given.get("seconds", 60)), int(given.get("packet", 1300))
    cppyy.cppdef(SOURCE)
    cell = cppyy.gbl.cell
    cell.Run(
        int(given.get("stations", 10)), seconds, int(given.get("seed", 1)), given.get("standard", "b") == "g", packet
    )
    attempts, received = int(cell.attempts), int(cell.received)
    print(json.dumps({"throughput_bps": received * packet * 8 / seconds, "collisions": 1 - received / attempts}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
