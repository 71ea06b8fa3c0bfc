# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# TCP with selective acks over a link that loses packets at random, in ns-2: the reference for `impairments.loss`.
#
#     ns lossy_tcp.tcl key=value ...          prints the goodput of a flow, bits per second, and its retransmission timeouts
#
# `flows` flows of 1000-byte packets for `seconds`, each over a path of its own with a round trip of `rtt_ms`, whose way there loses the share
# `loss` of all packets, each by itself (ErrorModel). Nothing else is lost. Acks are not delayed, the timer is at least 0.2 s.

proc param {name default} {
    global argv
    foreach argument $argv {
        if {[string match "$name=*" $argument]} { return [string range $argument [expr {[string length $name] + 1}] end] }
    }
    return $default
}
set flows [param flows 5]
set seconds [param seconds 1000]
set warmup 20
set rtt [expr {[param rtt_ms 100] / 1000.0}]
ns-random [param seed 1]
Agent/TCP set packetSize_ 1000
Agent/TCP set useHeaders_ false
Agent/TCP set window_ 100000
Agent/TCP set tcpTick_ 0.01
Agent/TCP set minrto_ 0.2
Agent/TCP set singledup_ 1

set ns [new Simulator]
for {set i 0} {$i < $flows} {incr i} {
    set from($i) [$ns node]
    set to($i) [$ns node]
    $ns duplex-link $from($i) $to($i) 1Gb [expr {$rtt / 2}] DropTail
    $ns queue-limit $from($i) $to($i) 10000
    set losses [new ErrorModel]
    $losses set rate_ [param loss 0.01]
    $losses unit pkt
    $losses ranvar [new RandomVariable/Uniform]
    $losses drop-target [new Agent/Null]
    $ns link-lossmodel $losses $from($i) $to($i)
    set tcp($i) [new Agent/TCP/Sack1]
    set sink($i) [new Agent/TCPSink/Sack1]
    $ns attach-agent $from($i) $tcp($i)
    $ns attach-agent $to($i) $sink($i)
    $ns connect $tcp($i) $sink($i)
    [new Application/FTP] attach-agent $tcp($i)
    set ftp($i) [$tcp($i) attach-app FTP]
    $ns at [expr {0.01 * $i}] "$ftp($i) start"
}
proc acked {} {
    global tcp flows
    set sum 0
    for {set i 0} {$i < $flows} {incr i} { incr sum [$tcp($i) set ack_] }
    return $sum
}
$ns at $warmup {set before [acked]}
$ns at $seconds {
    set timeouts 0
    for {set i 0} {$i < $flows} {incr i} { incr timeouts [$tcp($i) set nrexmit_] }
    puts "[expr {([acked] - $before) * 8000.0 / ($seconds - $warmup) / $flows}] $timeouts"
    exit 0
}
$ns run
