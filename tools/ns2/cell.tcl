# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# A saturated cell of ns-2's Mac/802_11: stations that always have a packet for one that only receives.
#
#     ns cell.tcl key=value ...          writes the MAC's trace to stdout, from 1 s on, to be counted by tools/dcf.py
#
# The stations stand in a circle about the receiver, as far from it one as the other, and nothing is captured. Who stands in
# one place would be told apart by the last bit of a floating-point time. There is no routing (DumbAgent); ARP asks once.

proc param {name default} {
    global argv
    foreach argument $argv {
        if {[string match "$name=*" $argument]} { return [string range $argument [expr {[string length $name] + 1}] end] }
    }
    return $default
}
set stations [param stations 10]
set seconds [param seconds 100]
set packet [param packet 1300]
set metres [param metres 10]
ns-random [param seed 1]
Mac/802_11 set dataRate_ [param rate 11Mb]
Mac/802_11 set basicRate_ [param basic_rate 1Mb]
Mac/802_11 set SlotTime_ [param slot 0.000020]
Mac/802_11 set SIFS_ [param sifs 0.000010]
Mac/802_11 set CWMin_ [param cw_min 31]
Mac/802_11 set CWMax_ [param cw_max 1023]
Mac/802_11 set PreambleLength_ [param preamble_bits 144]
Mac/802_11 set PLCPHeaderLength_ [param plcp_bits 48]
Mac/802_11 set PLCPDataRate_ [param plcp_rate 1e6]
Mac/802_11 set RTSThreshold_ [param rts_threshold 100000]
Phy/WirelessPhy set CPThresh_ 1e9

set ns [new Simulator]
set trace [open /dev/stdout w]
set topology [new Topography]
$topology load_flatgrid 1000 1000
create-god [expr {$stations + 1}]
$ns trace-all $trace
$ns node-config -adhocRouting DumbAgent -llType LL -macType Mac/802_11 -ifqType Queue/DropTail -ifqLen 10 \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $topology \
    -agentTrace OFF -routerTrace OFF -macTrace ON -movementTrace OFF
for {set i 0} {$i <= $stations} {incr i} {
    set node($i) [$ns node]
    $node($i) random-motion 0
    set angle [expr {2 * 3.141592653589793 * $i / $stations}]
    set radius [expr {$i == 0 ? 0 : $metres}]
    $node($i) set X_ [expr {500.0 + $radius * cos($angle)}]
    $node($i) set Y_ [expr {500.0 + $radius * sin($angle)}]
    $node($i) set Z_ 0.0
}
for {set i 1} {$i <= $stations} {incr i} {
    set udp [new Agent/UDP]
    $udp set packetSize_ 65000
    $ns attach-agent $node($i) $udp
    set sink [new Agent/Null]
    $ns attach-agent $node(0) $sink
    $ns connect $udp $sink
    set cbr [new Application/Traffic/CBR]
    $cbr set packetSize_ $packet
    $cbr set rate_ [expr {[param offered 60e6] / $stations}]
    $cbr attach-agent $udp
    # One after the other, so that each ARP request is heard.
    $ns at [expr {0.1 + 0.8 * $i / $stations}] "$cbr start"
}
$ns at [expr {1.0 + $seconds}] "exit 0"
$ns run
