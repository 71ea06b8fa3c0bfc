# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# Figure B6's cell in ns-2 under NewReno: pairs of a download and an upload between wired nodes and stations, 40 ms behind a base station.
#
#     ns cell_tcp.tcl key=value ... | grep total      goodput of each flow and of all, Mb/s, over the last 15 s
#
# `scale` is that of table 1, the PLCP scaled too, and 50 packets of queue times it. `preamble` is ns-2's PreambleLength_ in bits (72 or its default, 144). What a station sends has 20 bytes more on the air than in
# Flowstamp, as ns-2's DSDV adds an IP header, and DSDV's own packets share the air.

proc param {name default} {
    global argv
    foreach argument $argv {
        if {[string match "$name=*" $argument]} { return [string range $argument [expr {[string length $name] + 1}] end] }
    }
    return $default
}
set pairs [param pairs 3]
set seconds [param seconds 60]
set every [param every 20]
set measured [param measured 15]
set settled 5.0 ;# DSDV knows its routes by then
ns-random [param seed 1]
set scale [param scale 1]
Mac/802_11 set dataRate_ [expr {11e6 * $scale}]
Mac/802_11 set basicRate_ [expr {1e6 * $scale}]
Mac/802_11 set SlotTime_ [expr {20e-6 / $scale}]
Mac/802_11 set SIFS_ [expr {10e-6 / $scale}]
Mac/802_11 set RTSThreshold_ 100000
Mac/802_11 set PreambleLength_ [param preamble 72]
Mac/802_11 set PLCPHeaderLength_ 48
Mac/802_11 set PLCPDataRate_ [expr {1e6 * $scale}]
Phy/WirelessPhy set CPThresh_ 1e9
Agent/DSDV set perup_ 100
Agent/TCP set packetSize_ 1260 ;# and 40 of header
Agent/TCP set window_ 10000
Agent/TCP set tcpTick_ 0.001
Agent/TCP set minrto_ 0.2

set ns [new Simulator]
$ns node-config -addressType hierarchical
AddrParams set domain_num_ 2
AddrParams set cluster_num_ {1 1}
AddrParams set nodes_num_ [list [expr {$pairs + 1}] [expr {$pairs + 1}]]
set topology [new Topography]
$topology load_flatgrid 1000 1000
create-god [expr {$pairs + 1}]
$ns trace-all [open /dev/null w]
set router [$ns node 0.0.0]
for {set i 1} {$i <= $pairs} {incr i} { set wired($i) [$ns node 0.0.$i] }
$ns node-config -adhocRouting DSDV -llType LL -macType Mac/802_11 -ifqType Queue/DropTail/PriQueue -ifqLen [expr {50 * $scale}] \
    -antType Antenna/OmniAntenna -propType Propagation/TwoRayGround -phyType Phy/WirelessPhy \
    -channel [new Channel/WirelessChannel] -topoInstance $topology -wiredRouting ON \
    -agentTrace OFF -routerTrace OFF -macTrace OFF -movementTrace OFF
set base [$ns node 1.0.0]
$base random-motion 0
$base set X_ 500.0
$base set Y_ 500.0
$base set Z_ 0.0
$ns node-config -wiredRouting OFF
for {set i 1} {$i <= $pairs} {incr i} {
    set station($i) [$ns node 1.0.$i]
    $station($i) random-motion 0
    set angle [expr {2 * 3.141592653589793 * $i / $pairs}]
    $station($i) set X_ [expr {500.0 + 10 * cos($angle)}]
    $station($i) set Y_ [expr {500.0 + 10 * sin($angle)}]
    $station($i) set Z_ 0.0
    $station($i) base-station [AddrParams addr2id [$base node-addr]]
}
proc wire {a b delay} {
    global ns
    $ns duplex-link $a $b [param wire 100Mb] $delay DropTail
    $ns queue-limit $a $b 2000
    $ns queue-limit $b $a 2000
}
wire $router $base 1ms
for {set i 1} {$i <= $pairs} {incr i} { wire $wired($i) $router 40ms }

proc flow {name from to start} {
    global ns tcp
    set tcp($name) [new Agent/TCP/Newreno]
    set sink [new Agent/TCPSink]
    $ns attach-agent $from $tcp($name)
    $ns attach-agent $to $sink
    $ns connect $tcp($name) $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp($name)
    $ns at $start "$ftp start"
}
for {set i 1} {$i <= $pairs} {incr i} {
    set start [expr {$settled + $every * ($i - 1)}]
    flow down$i $wired($i) $station($i) $start
    flow up$i $station($i) $wired($i) $start
}
proc mark {} {
    global tcp before
    foreach name [array names tcp] { set before($name) [$tcp($name) set ack_] }
}
proc finish {} {
    global tcp before measured
    set total 0
    foreach name [lsort [array names tcp]] {
        set mbps [expr {([$tcp($name) set ack_] - $before($name)) * 1300 * 8 / 1e6 / $measured}]
        set total [expr {$total + $mbps}]
        puts -nonewline "$name [format %.2f $mbps] "
    }
    puts "total [format %.2f $total]"
    exit 0
}
$ns at [expr {$settled + $seconds - $measured}] mark
$ns at [expr {$settled + $seconds}] finish
$ns run
