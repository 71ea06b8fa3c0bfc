# SPDX-License-Identifier: Apache-2.0 OR MIT
#
# One ns-2 dumbbell: the reference run against which Flowstamp's XCP and TCP Reno over RED are compared.
#
#     ns dumbbell.tcl key=value ...          prints one JSON object on a line of stdout
#
#     L0 --.                          .-- R0        access links: access_rate_mbps, 0.05 rtt one way
#     L1 ---- left ===bottleneck=== right ---- R1   bottleneck:   rate_mbps, 0.40 rtt one way, protocol's queue
#     ...  '                          '  ...        every flow has its own L and R host
#
# With hops=n the bottleneck is n links of hop_delay_ms and rate_mbps each in a row: a parking lot, in which long flows and web flows
# without more go over all. Hosts' links have access_delay_ms then. Utilisation, queue and drops are those of the first link; hop_queue_bytes has
# the mean queue of each, from left to right. hop_rates_mbps and hop_buffers are lists for links that differ.
#
# Forward flow i sends L_i -> R_i. Reverse flows use hosts of their own and send R -> L. Web flows share
# `web_hosts` host pairs. Round trip = 2 (0.05 + 0.4 + 0.05) rtt, plus transmission times.
#
# Protocols
#   xcp       Agent/TCP/Reno/XCP over Queue/XCP: the authors' own model (alpha 0.4, beta 0.226, gamma 0.1 are
#             compiled in). `set-link-capacity` is mandatory: without it the router takes the capacity as 0.
#   reno-red  TCP Reno with ECN over gentle RED counted in packets: thresholds 1/3 and 2/3 of the buffer, max_p 0.1.
#   reno-rem  TCP Reno over REM, the authors' own model, counted in bytes, with ECN unless aqm_mark=0.
#   reno-avq  TCP Reno over AVQ (Queue/Vq), the authors' own model, likewise; its alpha of 0.15 is compiled in.
#   reno      TCP Reno over drop-tail.
#   rcp       Agent/RCP over Queue/DropTail/RCP, the authors' own host and router (R. Zhang-Shen and N. Dukkipati), web flows
#             only. ns-2 does not have it: NS2 must be one that was patched with it (ns2.py). Without retransmission in the thesis; the
#             patch has one, after two round trips without an ack of the last packet. Its packets are packet_bytes with the header of 40.
#
# With linux_ca the long flows of the last two are Agent/TCP/Linux with that module of Linux's (select_ca), selective acks
# and timestamps; linux_set sets its modules' parameters. cwnd_log names a file for the forward flows' windows in packets, one
# line "time window window ..." each cwnd_poll_s.
#
# Long flows are Reno's, or long_tcp's, and web flows Reno's, or web_tcp's. They arrive at random, or as the lines "start_s packets" of the file web_flows
# say, so that another simulator can be given the same ones, in the order of their starts; "start_s packets k extra_ms back" goes over link k alone, from 1 on (0: over all, as without it), has a round
# trip so much longer, and if back is 1 goes from right to left. One of RCP's whose line goes on, "k extra_ms back stop_s", is stopped then. web_log names a file for what became of them, one line "start_s packets seconds n" for each that was
# complete, the n-th of all, from 1 on; a flow counts from its SYN to its last ack.
#
# rcp_log names a file for what the first link's RCP router decides, one line for each of its intervals: the second word is the time, the fifth R/C.
#
# Long flow i is told of no more to send at the i-th of `stops` and `reverse_stops`, where that is not empty; its timer then goes on to expire, which `timeouts` counts. sample_s > 0 gives the forward link's utilisation in each such interval from 0 on.
#
# Sizes. ns-2 adds headers to packetSize_ by default (40 bytes, 50 with the timestamps XCP turns on). Here
# useHeaders_ is off, so that a data packet is packet_bytes on the wire and the size the agent computes with is
# that same number; an ack is 40 bytes, the SYN 40. agent_headers=1 keeps packet_bytes on the wire but lets the
# agent compute with the payload, header_bytes less: XCP's feedback then acts 5% too strongly (ns-2's default).
#
# What to know before comparing
#   - Windows are whole packets. At 20 Mb/s, 80 ms, 50 flows the fair window is exactly 4 packets and XCP settles at
#     .994 and 3 kB; with 53 flows (3.8 packets) it is .983 and 7 kB.
#   - RED's wait_ (on by default) spaces marks by 1 to 2 times 1/p: mean 1.5/p, where the RED paper's formula has
#     0.5/p; red_wait=0 gives the paper's. An ECT packet is dropped, not marked, once p exceeds red_mark_p.
#   - The buffer and RED's average count packets: an ack takes as much of either as a data packet, and acks are not
#     ECT, so that RED drops them where it would mark data. Two-way Reno therefore loses acks and times out.
#   - Two-way XCP: queue and even drops depend on the seed, the start times and access_rate_mbps.
#   - XCP: control interval at least 1 ms, RTT capped at 1 s, first interval drawn around 50 ms; RTT in ticks of
#     tick_s. The minimum RTO is 0.2 s: a flow with a longer RTT may time out once without any loss.
#   - Building the network costs about 5 ms of CPU per flow, most of it an agent's 90 Tcl variables: `setup_cpu_s`.
#     With web flows, agents are built as the run goes (`agent_pairs`), outside of setup_cpu_s.
#   - `drops`, `marks` and `timeouts` count the whole run, *_after_warmup the rest; retransmitted includes lost SYNs and go-back-N.
#   - `timeouts` has every expiry of a retransmission timer, also that of a window below one packet, which has nothing to send again;
#     `nrexmit`, ns-2's own counter, has no expiry of a flow whose last cut of the window was for an ECN echo: with ECN about half.
#
# Queue sizes exclude the packet in transmission: ns-2's monitor counts a packet out when transmission begins.

# ------------------------------------------------------------------------------------------------ parameters

array set param {
    protocol xcp        rate_mbps 150        rtt_ms ""            rtts_ms ""
    flows 50            reverse 0            duration_s 40        warmup_s ""
    buffer_packets ""   access_rate_mbps ""  packet_bytes 1000    seed 1
    starts ""           reverse_starts ""    stagger_s ""
    stops ""            reverse_stops ""     sample_s 0
    red_min_fraction 0.3333333333  red_max_fraction 0.6666666667  red_max_p 0.1  red_weight 0.002
    red_mark_p 0.1      red_wait 1           red_adaptive 0
    rcp_alpha 0.4       rcp_beta 0.4         rcp_gamma 1          rcp_interval_s 0.01  rcp_initial 0.05
    rcp_log ""
    aqm_mark 1          rem_gamma 0.001      rem_phi 1.001        rem_target_fraction 0.3333333333
    rem_update_packets 10  avq_gamma 0.98    avq_initial 0.98
    long_tcp Reno
    web_rate 0          web_mean_packets 30  web_shape 1.35       web_hosts 20   web_tcp Reno
    web_flows ""        web_log ""
    agent_headers 0     tick_s 0.001         tcp_set ""
    linux_ca ""         linux_set ""         cwnd_log ""          cwnd_poll_s 0.01
    hops 1              hop_delay_ms ""      access_delay_ms ""
    hop_rates_mbps ""   hop_buffers ""
    queue_poll_s 0      count_access 0       headers min          scheduler Calendar
}

proc die {message} {
    puts stderr "dumbbell.tcl: $message"
    exit 2
}

foreach argument $argv {
    if {![regexp {^([a-z_]+)=(.*)$} $argument -> key value]} { die "expected key=value, got '$argument'" }
    if {![info exists param($key)]} { die "unknown parameter '$key'; known: [lsort [array names param]]" }
    set param($key) $value
}

proc p {key} { global param; return $param($key) }
proc default {key value} { global param; if {$param($key) eq ""} { set param($key) $value } }
proc number_list {text} { return [split [string trim $text ,] ,] }

if {[lsearch {xcp reno-red reno-rem reno-avq reno rcp} [p protocol]] < 0} {
    die "protocol must be xcp, reno-red, reno-rem, reno-avq, reno or rcp, got '[p protocol]'"
}
if {[p protocol] eq "rcp"} {
    if {[catch {Agent/RCP set packetSize_}]} { die "this ns-2 has no RCP: name a patched one by NS2" }
    if {[p rtts_ms] ne "" || [p flows] > 0 || [p reverse] > 0} { die "rcp has web flows only: give flows=0" }
}
if {[lsearch {min all} [p headers]] < 0} { die "headers must be min or all, got '[p headers]'" }
foreach key {long_tcp web_tcp} {
    if {[lsearch {Reno Newreno Sack1} [p $key]] < 0} { die "$key must be Reno, Newreno or Sack1" }
}

set rtts_ms [number_list [p rtts_ms]]
if {[llength $rtts_ms]} {
    default rtt_ms [lindex [lsort -real $rtts_ms] 0]
    set param(flows) [llength $rtts_ms]
} else {
    default rtt_ms 80
    for {set i 0} {$i < [p flows]} {incr i} { lappend rtts_ms [p rtt_ms] }
}
set rtt [expr {[p rtt_ms] / 1000.0}]
set rate_bps [expr {[p rate_mbps] * 1e6}]
default access_rate_mbps [expr {10.0 * [p rate_mbps]}]
default warmup_s [expr {[p duration_s] / 4.0}]
default stagger_s $rtt
if {[p hops] < 1 || ([p hops] > 1 && [p reverse] > 0)} { die "hops must be 1 or more, without reverse flows beyond 1" }
default hop_delay_ms [expr {0.4 * [p rtt_ms] / [p hops]}]
default access_delay_ms [expr {0.05 * [p rtt_ms]}]
default buffer_packets [expr {max(1, int(round($rate_bps * $rtt / 8 / [p packet_bytes])))}]
foreach {key one} {hop_rates_mbps rate_mbps hop_buffers buffer_packets} {
    default $key [join [lrepeat [p hops] [p $one]] ,]
    if {[llength [number_list [p $key]]] != [p hops]} { die "$key must have one number for each hop" }
}
if {[p warmup_s] >= [p duration_s]} { die "warmup_s must be below duration_s" }

# ------------------------------------------------------------------------------------------------ simulator

# A packet carries room for every header compiled in, cleared each time: keep the four in use.
if {[p headers] eq "min"} {
    remove-all-packet-headers
    add-packet-header IP TCP Flags XCP
    if {[p protocol] eq "rcp"} { add-packet-header RCP }
}
set ns [new Simulator]
$ns use-scheduler [p scheduler]
# Expiries of retransmission timers are counted from ns-2's event trace: the agents' nrexmit_ leaves out those of a flow whose last cut
# of the window was for an ECN echo. The file has no name, and goes with its channel.
set event_trace [file tempfile event_path]
file delete $event_path
$ns eventtrace-all $event_trace
$ns rtproto Manual                  ;# routes are set below: all pairs of 100s of hosts would cost seconds
$defaultRNG seed [p seed]

set tcp_class [expr {[p protocol] eq "xcp" ? "TCP/Reno/XCP" : "TCP/[p long_tcp]"}]
set sink_class [expr {[p protocol] eq "xcp" ? "TCPSink/XCPSink" : [p long_tcp] eq "Sack1" ? "TCPSink/Sack1" : "TCPSink"}]
if {[p linux_ca] ne ""} {
    if {[p protocol] eq "xcp"} { die "linux_ca needs protocol reno or reno-red" }
    set tcp_class TCP/Linux
    set sink_class TCPSink/Sack1
    Agent/TCP set timestamps_ true
    Agent/TCPSink set ts_echo_rfc1323_ true
}
set web_class [expr {[p protocol] eq "xcp" ? "TCP/Reno/XCP" : [p protocol] eq "rcp" ? "RCP" : "TCP/[p web_tcp]"}]
set web_sink_class [expr {[p protocol] eq "xcp" ? "TCPSink/XCPSink" : [p protocol] eq "rcp" ? "RCP" :
                          [p web_tcp] eq "Sack1" ? "TCPSink/Sack1" : "TCPSink"}]

# The header ns-2 adds to each data packet: 40 bytes and, with the timestamps XCP's agent turns on, 10 more.
set header_bytes [expr {[p protocol] eq "xcp" ? 50 : 40}]
if {[p agent_headers]} {
    Agent/TCP set useHeaders_ true
    Agent/TCP set packetSize_ [expr {[p packet_bytes] - $header_bytes}]
} else {
    Agent/TCP set useHeaders_ false
    Agent/TCP set packetSize_ [p packet_bytes]
}
Agent/TCP set window_ 1000000000
Agent/TCP set windowInit_ 2
Agent/TCP set tcpTick_ [p tick_s]
Agent/TCP set ecn_ [expr {[p protocol] eq "reno-red" ||
                          ([p aqm_mark] && [lsearch {reno-rem reno-avq} [p protocol]] >= 0)}]
# Any variable of the TCP agent, for experiments: tcp_set=singledup_:0,SetCWRonRetransmit_:0
foreach pair [split [p tcp_set] ,] {
    if {[llength [split $pair :]] != 2} { die "tcp_set: expected name:value, got '$pair'" }
    lassign [split $pair :] name value
    if {[catch {Agent/TCP set $name}]} { die "tcp_set: Agent/TCP has no variable '$name'" }
    Agent/TCP set $name $value
}
Agent/TCPSink set packetSize_ 40
if {[p protocol] eq "rcp"} {
    Agent/RCP set packetSize_ [expr {[p packet_bytes] - 40}]
    foreach {name value} {alpha_ rcp_alpha beta_ rcp_beta gamma_ rcp_gamma upd_timeslot_ rcp_interval_s init_rate_fact_ rcp_initial} {
        Queue/DropTail/RCP set $name [p $value]
    }
    Queue/DropTail/RCP set print_status_ 0
}

Queue/RED set bytes_ false
Queue/RED set queue_in_bytes_ false
Queue/RED set mean_pktsize_ [p packet_bytes]
Queue/RED set gentle_ true
Queue/RED set adaptive_ [p red_adaptive]
Queue/RED set setbit_ true
Queue/RED set q_weight_ [p red_weight]
Queue/RED set linterm_ [expr {1.0 / [p red_max_p]}]
Queue/RED set wait_ [expr {[p red_wait] ? "true" : "false"}]
Queue/RED set use_mark_p_ true      ;# an ECT packet is marked while the probability is below mark_p_, else dropped
Queue/RED set mark_p_ [p red_mark_p]

foreach class {Queue/REM Queue/Vq} {
    $class set markpkts_ [expr {[p aqm_mark] ? "true" : "false"}]
    $class set mean_pktsize_ [p packet_bytes]
}
Queue/REM set qib_ true
Queue/REM set gamma_ [p rem_gamma]
Queue/REM set phi_ [p rem_phi]
Queue/Vq set queue_in_bytes_ true
Queue/Vq set gamma_ [p avq_gamma]
Queue/Vq set ecnlim_ [p avq_initial]

# ------------------------------------------------------------------------------------------------- topology

proc link_head {from to} { global ns; return [[$ns link $from $to] head] }

set routers [list [$ns node]]
for {set k 0} {$k < [p hops]} {incr k} { lappend routers [$ns node] }
set left [lindex $routers 0]
set right [lindex $routers end]
array set queue_of {xcp XCP reno-red RED reno-rem REM reno-avq Vq reno DropTail rcp DropTail/RCP}
set bottleneck_queue $queue_of([p protocol])
foreach one [lrange $routers 0 end-1] other [lrange $routers 1 end] rate_mbps [number_list [p hop_rates_mbps]] buffer [number_list [p hop_buffers]] {
    set hop_bps [expr {$rate_mbps * 1e6}]
    $ns duplex-link $one $other $hop_bps [expr {[p hop_delay_ms] / 1000.0}] $bottleneck_queue
    foreach {from to} [list $one $other $other $one] {
        $ns queue-limit $from $to $buffer
        set queue [[$ns link $from $to] queue]
        if {[p protocol] eq "xcp"} {
            $queue queue-limit $buffer                  ;# the wrapper's own limit_ is never looked at
            $queue set-link-capacity $hop_bps
        } elseif {[p protocol] eq "rcp"} {
            $queue set-link-capacity [expr {$hop_bps / 8}]      ;# in bytes, where XCP's is in bits
        } elseif {[p protocol] eq "reno-red"} {
            $queue set thresh_ [expr {[p red_min_fraction] * $buffer}]
            $queue set maxthresh_ [expr {[p red_max_fraction] * $buffer}]
        } elseif {[p protocol] eq "reno-rem"} {
            $queue set pbo_ [expr {[p rem_target_fraction] * $buffer}]
            $queue set pupdtime_ [expr {[p rem_update_packets] * 8.0 * [p packet_bytes] / $hop_bps}]
        }
    }
    if {[p rcp_log] ne "" && $one eq $left} {
        set rcp_log [open [p rcp_log] w]
        [[$ns link $one $other] queue] attach $rcp_log
    }
    # What a router does not know goes on to the right; what lies to its left it is told of.
    [$one entry] defaulttarget [link_head $one $other]
}
[$right entry] defaulttarget [link_head $right [lindex $routers end-1]]

set access_monitors {}

# A host on `router` with a round trip of `extra` seconds beyond the common one.
proc host {router {extra 0.0}} {
    global ns access_monitors routers
    set delay [expr {[p access_delay_ms] / 1000.0 + $extra / 2}]
    if {$delay < 0} { die "a flow's RTT is too short for the bottleneck's delay of hop_delay_ms" }
    set node [$ns node]
    $ns duplex-link $node $router [expr {[p access_rate_mbps] * 1e6}] $delay DropTail
    $ns queue-limit $node $router 10000000
    $ns queue-limit $router $node 10000000
    [$node entry] defaulttarget [link_head $node $router]
    $router add-route [$node id] [link_head $router $node]
    set at [lsearch $routers $router]
    for {set k [expr {$at + 1}]} {$k < [llength $routers]} {incr k} {
        [lindex $routers $k] add-route [$node id] [link_head [lindex $routers $k] [lindex $routers [expr {$k - 1}]]]
    }
    if {[p count_access]} {
        lappend access_monitors [$ns monitor-queue $node $router ""] [$ns monitor-queue $router $node ""]
    }
    return $node
}

proc connect_pair {tcp_class source sink_class destination} {
    global ns
    set tcp [new Agent/$tcp_class]
    set sink [new Agent/$sink_class]
    $ns attach-agent $source $tcp
    $ns attach-agent $destination $sink
    $ns connect $tcp $sink
    return [list $tcp $sink]
}

set start_rng [new RNG]
set fixed_starts(forward) [number_list [p starts]]
set fixed_starts(reverse) [number_list [p reverse_starts]]
# Empty ones count here: a flow that does not stop.
set stops(forward) [split [p stops] ,]
set stops(reverse) [split [p reverse_stops] ,]

proc long_flow {direction index tcp} {
    global ns start_rng fixed_starts stops
    if {[llength $fixed_starts($direction)]} {
        set start [lindex $fixed_starts($direction) $index]
        if {$start eq ""} { die "fewer start times than $direction flows" }
    } else {
        set start [$start_rng uniform 0 [p stagger_s]]
    }
    if {[p linux_ca] ne ""} {
        $ns at 0 "$tcp select_ca [p linux_ca]"
        foreach triple [split [p linux_set] ,] {
            lassign [split $triple :] module name value
            $ns at 0 "$tcp set_ca_param $module $name $value"
        }
    }
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at $start "$ftp start"
    set stop [lindex $stops($direction) $index]
    if {$stop ne ""} { $ns at $stop "$ftp stop" }
}

set senders(forward) {}
set senders(reverse) {}
for {set i 0} {$i < [p flows]} {incr i} {
    set extra [expr {([lindex $rtts_ms $i] - [p rtt_ms]) / 1000.0}]
    set tcp [lindex [connect_pair $tcp_class [host $left $extra] $sink_class [host $right]] 0]
    long_flow forward $i $tcp
    lappend senders(forward) $tcp
}
for {set i 0} {$i < [p reverse]} {incr i} {
    set tcp [lindex [connect_pair $tcp_class [host $right] $sink_class [host $left]] 0]
    long_flow reverse $i $tcp
    lappend senders(reverse) $tcp
}

# ------------------------------------------------------------------------------------------------ web flows

# Poisson arrivals of Pareto sizes on agents taken from a pool. A finished pair goes back to the pool and is
# reset when taken again; ns-2 discards packets older than the reset.
array set web {started 0 completed 0 packets 0 fct_sum 0.0 agents 0}
# By where they go, "link extra_ms back", of which link 0 is all. Each has hosts and a pool of its own.
array set web_pool {}
array set web_sources {}
array set web_destinations {}

proc web_arrival {} {
    global ns web_gap web_size
    $ns at [expr {[$ns now] + [$web_gap value]}] web_arrival
    web_start [expr {max(1, int(round([$web_size value])))}] {0 0 0}
}

# One flow of the file at a time is in the event queue.
proc web_next {} {
    global ns web_file
    if {[gets $web_file line] >= 0} { $ns at [lindex $line 0] "web_next; web_start [lindex $line 1] {[web_way $line]} {[lindex $line 5]}" }
}

# Where a flow of the file goes; what its line leaves out is 0.
proc web_way {line} { return [lrange [concat [lrange $line 2 end] {0 0 0}] 0 2] }

proc web_hosts {way} {
    global routers web_pool web_sources web_destinations
    if {[info exists web_pool($way)]} return
    lassign $way link extra_ms back
    if {$link > [p hops]} { die "web_flows: no such way: $way" }
    set web_pool($way) {}
    set from [lindex $routers [expr {$link ? $link - 1 : 0}]]
    set to [lindex $routers [expr {$link ? $link : "end"}]]
    for {set i 0} {$i < [p web_hosts]} {incr i} {
        set left [host $from [expr {$extra_ms / 1000.0}]]
        set right [host $to]
        lappend web_sources($way) [expr {$back ? $right : $left}]
        lappend web_destinations($way) [expr {$back ? $left : $right}]
    }
}

proc web_start {size way {stop ""}} {
    global ns web web_pool
    if {[llength $web_pool($way)]} {
        lassign [lindex $web_pool($way) end] tcp sink
        set web_pool($way) [lrange $web_pool($way) 0 end-1]
        $tcp reset
        $sink reset
    } else {
        lassign [web_new_pair $way] tcp sink
    }
    incr web(started)
    incr web(packets) $size
    set web(number,$tcp) $web(started)
    set web(start,$tcp) [$ns now]
    set web(size,$tcp) $size
    if {[p protocol] eq "rcp"} {
        # Either end takes packets of this flow for its own; what is under way of the one before is not.
        $tcp set fid_ $web(started)
        $sink set fid_ $web(started)
        $tcp set numpkts_ $size
        $tcp sendfile
        if {$stop ne ""} { $ns at $stop "$tcp stop" }
    } else {
        $tcp advanceby $size            ;# the SYN (packet 0) is added by ns-2
    }
}

proc web_new_pair {way} {
    global web web_class web_sink_class web_sources web_destinations
    set n [expr {$web(agents) % [llength $web_sources($way)]}]
    incr web(agents)
    set source [lindex $web_sources($way) $n]
    set pair [connect_pair $web_class $source $web_sink_class [lindex $web_destinations($way) $n]]
    set tcp [lindex $pair 0]
    set web(sink,$tcp) [lindex $pair 1]
    set web(way,$tcp) $way
    $tcp proc done {} { web_done $self }
    return $pair
}

proc web_done {tcp} {
    global ns web web_pool web_log
    incr web(completed)
    set fct [expr {[$ns now] - $web(start,$tcp)}]
    set web(fct_sum) [expr {$web(fct_sum) + $fct}]
    if {$web_log ne ""} { puts $web_log "$web(start,$tcp) $web(size,$tcp) $fct $web(number,$tcp)" }
    lappend web_pool($web(way,$tcp)) [list $tcp $web(sink,$tcp)]
}

set with_web [expr {[p web_rate] > 0 || [p web_flows] ne ""}]
set web_log [expr {[p web_log] eq "" ? "" : [open [p web_log] w]}]
if {[p web_flows] ne ""} {
    set web_file [open [p web_flows]]
    while {[gets $web_file line] >= 0} { web_hosts [web_way $line] }
    seek $web_file 0
    web_next
} elseif {$with_web} {
    web_hosts {0 0 0}
    set web_gap [new RandomVariable/Exponential]
    $web_gap set avg_ [expr {1.0 / [p web_rate]}]
    $web_gap use-rng [new RNG]
    set web_size [new RandomVariable/Pareto]
    $web_size set avg_ [p web_mean_packets]
    $web_size set shape_ [p web_shape]
    $web_size use-rng [new RNG]
    $ns at [$web_gap value] web_arrival
}

# --------------------------------------------------------------------------------------------- measurements

# Two monitors in all, on the two directions of the bottleneck. Their byte counters are 32-bit and wrap
# (8 Gb/s fills 2^31 bytes in 2 s), so they are read often and the differences summed here.
set second [lindex $routers 1]
foreach direction {forward reverse} from [list $left $second] to [list $second $left] {
    set monitor($direction) [$ns monitor-queue $from $to ""]
    foreach field {bdepartures_ last max} { set bytes($direction,$field) 0 }
    set bytes($direction,total) 0
}
# And one on each further link of a parking lot, for its queue.
set hop_monitors [list $monitor(forward)]
foreach one [lrange $routers 1 end-1] other [lrange $routers 2 end] { lappend hop_monitors [$ns monitor-queue $one $other ""] }
set read_interval_s [expr {min(1.0, 1e9 / ($rate_bps / 8))}]

proc read_bytes {} {
    global monitor bytes
    foreach direction {forward reverse} {
        set now [$monitor($direction) set bdepartures_]
        set delta [expr {(int($now) - int($bytes($direction,last))) & 0xffffffff}]
        set bytes($direction,total) [expr {$bytes($direction,total) + $delta}]
        set bytes($direction,last) $now
    }
}

proc read_periodically {} {
    global ns read_interval_s
    read_bytes
    $ns at [expr {[$ns now] + $read_interval_s}] read_periodically
}

proc sample_link {} {
    global ns bytes rate_bps sampled sampled_bytes
    read_bytes
    lappend sampled [expr {8.0 * ($bytes(forward,total) - $sampled_bytes) / ($rate_bps * [p sample_s])}]
    set sampled_bytes $bytes(forward,total)
    $ns at [expr {[$ns now] + [p sample_s]}] sample_link
}

proc poll_queue {} {
    global ns monitor bytes
    foreach direction {forward reverse} {
        set size [$monitor($direction) set size_]
        if {$size > $bytes($direction,max)} { set bytes($direction,max) $size }
    }
    $ns at [expr {[$ns now] + [p queue_poll_s]}] poll_queue
}

proc poll_windows {} {
    global ns senders cwnd_log
    set line [format %.3f [$ns now]]
    foreach tcp $senders(forward) { append line " " [format %.2f [$tcp set cwnd_]] }
    puts $cwnd_log $line
    $ns at [expr {[$ns now] + [p cwnd_poll_s]}] poll_windows
}

proc queue_integral {of} {
    global ns
    set integrator [$of get-bytes-integrator]
    $integrator newpoint [$ns now] [$integrator set lasty_]
    return [$integrator set sum_]
}

# State of every counter, to be subtracted: `at(warm,...)` and `at(end,...)`.
proc snapshot {moment} {
    global at monitor bytes senders hop_monitors
    read_bytes
    set at($moment,hops) [lmap of $hop_monitors {queue_integral $of}]
    foreach direction {forward reverse} {
        set at($moment,$direction,bytes) $bytes($direction,total)
        set at($moment,$direction,integral) [queue_integral $monitor($direction)]
        foreach field {parrivals_ pdepartures_ pdrops_ pmarks_} {
            set at($moment,$direction,$field) [$monitor($direction) set $field]
        }
        set at($moment,$direction,acked) {}
        foreach tcp $senders($direction) { lappend at($moment,$direction,acked) [$tcp set ack_] }
    }
}

# Expiries of the long flows' timers by direction, after the warm-up and in all. Linux's agents have no event for them: theirs are nrexmit_,
# which with them is of all that find data outstanding, and of the whole run.
proc timeouts {} {
    global senders event_trace
    foreach direction {forward reverse} {
        set count($direction) 0
        set count($direction,after) [expr {[p linux_ca] eq "" ? 0 : "null"}]
        foreach tcp $senders($direction) {
            set direction_of([$tcp set agent_addr_]) $direction
            if {[p linux_ca] ne ""} { incr count($direction) [$tcp set nrexmit_] }
        }
    }
    flush $event_trace
    seek $event_trace 0
    while {[p linux_ca] eq "" && [gets $event_trace line] >= 0} {
        # E time source destination TCP event ...
        lassign $line - time source - - event
        if {$event ne "TIMEOUT" || ![info exists direction_of($source)]} continue
        incr count($direction_of($source))
        if {$time >= [p warmup_s]} { incr count($direction_of($source),after) }
    }
    return [array get count]
}

# CPU seconds of this process so far, or null where Linux's /proc is not there.
proc cpu_seconds {} {
    if {[catch {
        set file [open /proc/self/schedstat]
        set nanoseconds [lindex [gets $file] 0]
        close $file
    }]} { return null }
    return [format %.6f [expr {$nanoseconds / 1e9}]]
}

proc json_list {values format} {
    set out {}
    foreach v $values { lappend out [format $format $v] }
    return "\[[join $out ,]\]"
}

proc jain {values} {
    set n [llength $values]
    set sum 0.0
    set squares 0.0
    foreach v $values { set sum [expr {$sum + $v}]; set squares [expr {$squares + $v * $v}] }
    return [expr {$squares > 0 ? $sum * $sum / ($n * $squares) : "null"}]
}

proc report {} {
    global at monitor bytes senders rate_bps web access_monitors setup_cpu_s with_web web_log
    if {$web_log ne ""} { close $web_log }
    if {[p cwnd_log] ne ""} { close $::cwnd_log }
    if {[p rcp_log] ne ""} { flush $::rcp_log }
    snapshot end
    set span [expr {double([p duration_s]) - [p warmup_s]}]
    array set timeouts [timeouts]
    set out {}
    lappend out "\"protocol\":\"[p protocol]\"" "\"duration_s\":[p duration_s]" "\"warmup_s\":[p warmup_s]"
    lappend out "\"rate_mbps\":[p rate_mbps]" "\"rtt_ms\":[p rtt_ms]" "\"flows\":[p flows]" "\"reverse\":[p reverse]"
    lappend out "\"buffer_packets\":[p buffer_packets]" "\"access_rate_mbps\":[p access_rate_mbps]" "\"seed\":[p seed]"
    foreach direction {forward reverse} {
        set suffix [expr {$direction eq "forward" ? "" : "_reverse"}]
        set sent [expr {$at(end,$direction,bytes) - $at(warm,$direction,bytes)}]
        set area [expr {$at(end,$direction,integral) - $at(warm,$direction,integral)}]
        lappend out "\"utilization$suffix\":[format %.6f [expr {8.0 * $sent / ($rate_bps * $span)}]]"
        lappend out "\"mean_queue_bytes$suffix\":[format %.1f [expr {$area / $span}]]"
        lappend out "\"max_queue_bytes$suffix\":[expr {[p queue_poll_s] > 0 ? $bytes($direction,max) : "null"}]"
        foreach {name field} {arrivals parrivals_ drops pdrops_ marks pmarks_} {
            lappend out "\"$name$suffix\":$at(end,$direction,$field)"
            lappend out "\"${name}_after_warmup$suffix\":[expr {$at(end,$direction,$field) - $at(warm,$direction,$field)}]"
        }
        set goodputs {}
        foreach before $at(warm,$direction,acked) after $at(end,$direction,acked) {
            lappend goodputs [expr {8.0 * [p packet_bytes] * ($after - max(0, $before)) / $span}]
        }
        lappend out "\"goodput_bps$suffix\":[json_list $goodputs %.0f]"
        lappend out "\"jain$suffix\":[jain $goodputs]"
        lappend out "\"timeouts$suffix\":$timeouts($direction)"
        lappend out "\"timeouts_after_warmup$suffix\":$timeouts($direction,after)"
        foreach {name field} {data_packets ndatapack_ retransmitted nrexmitpack_ nrexmit nrexmit_} {
            set count 0
            foreach tcp $senders($direction) { incr count [$tcp set $field] }
            lappend out "\"$name$suffix\":$count"
        }
    }
    set queues [lmap before $at(warm,hops) after $at(end,hops) {expr {($after - $before) / $span}}]
    lappend out "\"hop_queue_bytes\":[json_list $queues %.1f]"
    # Nothing is dropped on an access link, so that what reaches a bottleneck queue has crossed the access link
    # before it, and what leaves the queue crosses the one after it. Off by the packets on the wire at the end.
    set f_in $at(end,forward,parrivals_)
    set f_out $at(end,forward,pdepartures_)
    set r_in $at(end,reverse,parrivals_)
    set r_out $at(end,reverse,pdepartures_)
    lappend out "\"link_packets\":{\"left_to_router\":$f_in,\"bottleneck_forward\":$f_in,\"router_to_right\":$f_out,\"right_to_router\":$r_in,\"bottleneck_reverse\":$r_in,\"router_to_left\":$r_out}"
    lappend out "\"packet_hops\":[expr {2 * $f_in + $f_out + 2 * $r_in + $r_out}]"
    if {[p count_access]} {
        set exact [expr {$f_in + $r_in}]
        foreach m $access_monitors { incr exact [$m set parrivals_] }
        lappend out "\"packet_hops_exact\":$exact"
    }
    if {$with_web} {
        set n [expr {max(1, $web(completed))}]
        lappend out "\"web\":{\"started\":$web(started),\"completed\":$web(completed),\"mean_packets\":[format %.3f [expr {double($web(packets)) / max(1, $web(started))}]],\"mean_fct_s\":[format %.6f [expr {$web(fct_sum) / $n}]],\"agent_pairs\":$web(agents)}"
    }
    if {[p sample_s] > 0} { lappend out "\"utilization_samples\":[json_list $::sampled %.4f]" }
    lappend out "\"setup_cpu_s\":$setup_cpu_s"
    # RCP's agents have written lines of their own, of which half a one may stand here.
    puts "\n{[join $out ,]}"
    flush stdout
    exit 0
}

$ns at 0.0 read_periodically
if {[p queue_poll_s] > 0} { $ns at [p queue_poll_s] poll_queue }
if {[p sample_s] > 0} {
    set sampled {}
    set sampled_bytes 0
    $ns at [p sample_s] sample_link
}
if {[p cwnd_log] ne ""} {
    set cwnd_log [open [p cwnd_log] w]
    $ns at [p warmup_s] poll_windows
}
$ns at [p warmup_s] "snapshot warm"
$ns at [p duration_s] report
set setup_cpu_s [cpu_seconds]        ;# the network is built; what follows is the simulation
$ns run
