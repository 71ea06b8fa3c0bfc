//! Links that fail and return, and routes that follow.

mod common;

use common::{run, try_load};
use flowstamp_sim::results::Results;
use flowstamp_sim::{Progress, Simulation};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// How long a link of 100 Mb/s takes for a packet.
const TRANSMISSION_S: f64 = 80e-6;

fn seconds(ps: u64) -> f64 {
    ps as f64 / 1e12
}

/// The start of transmission on this link of each packet, by number.
fn on(r: &Results, link: &str) -> BTreeMap<u32, f64> {
    let number = r.capture.links.iter().position(|name| name == link).expect("it is recorded") as u32;
    let there = r.capture.packets.iter().filter(|p| p.link == number && p.data);
    there.map(|p| (p.seq, seconds(p.time_ps))).collect()
}

/// A datagram each millisecond from x to z over y for 5 s; the first link has 10 ms and fails from 2 s to 3 s.
fn one_way(on_failure: &str) -> Results {
    run(&format!(
        r#"
        duration = "6s"
        header = "0B"
        graph.links = [
            {{ name = "a", from = "x", to = "y", rate = "100Mbps", delay = "10ms", buffer = "2000pkt" }},
            {{ name = "b", from = "y", to = "z", rate = "100Mbps", delay = "1ms", buffer = "2000pkt" }},
        ]
        flows = [{{ name = "stream", law = "udp", jitter = "none", rate = "8Mbps", from = "x", to = "z", stop = "5s" }}]
        outages = [{{ link = "a", from = "2s", until = "3s", on_failure = "{on_failure}" }}]
        capture = {{ links = ["a", "b"], packets = 200000 }}
        "#
    ))
}

/// Packets on the line when it fails, and those that leave the transmitter before it returns, are lost. No others are.
#[test]
fn what_is_on_a_link_that_fails_is_lost() {
    let r = one_way("lose");
    let (sent, came) = (on(&r, "a"), on(&r, "b"));
    let mut lost = 0;
    for (seq, began) in &sent {
        let left = began + TRANSMISSION_S;
        let cut = left < 3.0 && left + 0.01 > 2.0;
        assert_eq!(cut, !came.contains_key(seq), "{seq} left at {left} s");
        lost += u64::from(cut);
    }
    // A second of them, and the ten that are on a line of 10 ms.
    assert!(lost.abs_diff(1010) <= 1, "{lost}");
    let link = &r.summary.links["a"];
    assert_eq!(
        (link.impaired.expect("it failed").lost, link.drops, r.summary.packets.expect("a whole run").lost),
        (lost, 0, lost)
    );
    assert_eq!(
        r.summary.packets.expect("a whole run").sent,
        r.summary.packets.expect("a whole run").arrived + lost
    );
}

/// Or nothing is lost: what has left arrives, and all else waits.
#[test]
fn what_waits_for_a_link_that_holds_waits() {
    let r = one_way("hold");
    let (sent, came) = (on(&r, "a"), on(&r, "b"));
    assert_eq!(
        (r.summary.packets.expect("a whole run").lost, r.summary.packets.expect("a whole run").arrived),
        (0, sent.len() as u64)
    );
    // Another may be at the stopped transmitter.
    assert!(sent.values().filter(|began| (2.0..3.0).contains(*began)).count() <= 1);
    for (seq, began) in &sent {
        let left = began + TRANSMISSION_S;
        let stood = if *began < 3.0 && left > 2.0 { 3.0 - began.max(2.0) } else { 0.0 };
        let left = left + stood;
        assert!((came[seq] - left - 0.01).abs() < 1e-6, "{seq} left at {left} s and came at {} s", came[seq]);
    }
    // A thousand packets wait, which leave one each 80 us while one comes each 1 ms: 1000 * 80 us / (1 - 0.08) = 87 ms.
    let waited = sent.iter().filter(|(_, began)| (3.0..3.0 + 0.08 / 0.92).contains(*began)).count();
    assert!(waited.abs_diff(1087) <= 2, "{waited}");
}

/// A TCP whose link fails has nothing until it returns. Its timer has doubled since: RFC 6298, section 5.5 sends again at 1, 3, 7, ... times the
/// first timeout, so that at the latest a time as long as the outage after it the flow goes on.
#[test]
fn a_flow_without_a_way_stalls_and_resumes() {
    for (on_failure, law, router) in
        [("lose", "sack", "none"), ("hold", "sack", "none"), ("lose", "xcp", "xcp"), ("lose", "rcp", "rcp")]
    {
        let r = run(&format!(
            r#"
            duration = "30s"
            dumbbell = {{ rate = "10Mbps", rtt = "40ms", router = "{router}" }}
            flows = [{{ name = "f", law = "{law}", count = 2 }}]
            outages = [{{ link = "bottleneck", from = "5s", until = "8s", on_failure = "{on_failure}" }}]
            probes = {{ every = "100ms" }}
            "#
        ));
        let key = r
            .series
            .keys
            .iter()
            .position(|k| k.kind == "group" && k.metric == "goodput_bps")
            .expect("a series");
        let rows = (0..r.series.value.len()).filter(|i| r.series.key[*i] as usize == key);
        let mean = |from: f64, to: f64| {
            let inside: Vec<f64> = rows
                .clone()
                .filter(|i| (from..to).contains(&r.series.time_s[*i]))
                .map(|i| r.series.value[i])
                .collect();
            inside.iter().sum::<f64>() / inside.len() as f64
        };
        let said = format!("{on_failure} {law}: {} {} {}", mean(3.0, 5.0), mean(5.2, 8.0), mean(15.0, 30.0));
        assert!(mean(3.0, 5.0) > 8e6, "{said}");
        assert!(mean(5.2, 8.0) == 0.0, "{said}");
        assert!(mean(15.0, 30.0) > 8e6, "{said}");
    }
}

/// Two ways from s to t: over a in 10 ms, over b in 20 ms. The first fails from 2 s to 4 s, which is known 100 ms later.
fn two_ways(routing: &str) -> Results {
    run(&format!(
        r#"
        duration = "6s"
        header = "0B"
        graph.links = [
            {{ name = "sa", from = "s", to = "a", rate = "100Mbps", delay = "5ms" }},
            {{ name = "at", from = "a", to = "t", rate = "100Mbps", delay = "5ms" }},
            {{ name = "sb", from = "s", to = "b", rate = "100Mbps", delay = "10ms" }},
            {{ name = "bt", from = "b", to = "t", rate = "100Mbps", delay = "10ms" }},
            {{ name = "tu", from = "t", to = "u", rate = "10Gbps", delay = "1ms" }},
        ]
        flows = [{{ name = "stream", law = "udp", jitter = "none", rate = "8Mbps", from = "s", to = "u", stop = "5s" }}]
        outages = [{{ link = "at", from = "2s", until = "4s" }}]
        {routing}
        capture = {{ packets = 200000 }}
        "#
    ))
}

#[test]
fn routes_follow_after_convergence() {
    let r = two_ways("routing = { convergence = \"100ms\" }");
    let [sa, sb, at, tu] = ["sa", "sb", "at", "tu"].map(|link| on(&r, link));
    // By whichever way it goes, a packet leaves as it is sent: its first link is idle.
    let sent: BTreeMap<u32, f64> = sa.iter().chain(&sb).map(|(seq, time)| (*seq, *time)).collect();
    assert_eq!(sent.len() as u64, r.summary.packets.expect("a whole run").sent);
    for (seq, time) in &sent {
        assert_eq!(sb.contains_key(seq), (2.1..4.1).contains(time), "{seq} was sent at {time} s");
    }
    // Lost is what would be on the second link while it is down.
    for (seq, began) in &at {
        let left = began + TRANSMISSION_S;
        assert_eq!(left < 4.0 && left + 0.005 > 2.0, !tu.contains_key(seq), "{seq} left at {left} s");
    }
    for (seq, came) in &tu {
        let way = if sb.contains_key(seq) { 0.02 } else { 0.01 };
        assert!(
            (came - sent[seq] - way - 2.0 * TRANSMISSION_S).abs() < 2e-6,
            "{seq} took {} s",
            came - sent[seq]
        );
    }
    assert_eq!(
        r.summary.packets.expect("a whole run").sent,
        r.summary.packets.expect("a whole run").arrived + r.summary.packets.expect("a whole run").lost
    );
}

#[test]
fn routes_follow_at_once_or_never() {
    let at_once = two_ways("");
    // Packets on their way to the link or on it when it failed: 10 ms, a packet each.
    assert!(
        at_once.summary.packets.expect("a whole run").lost.abs_diff(10) <= 1,
        "{}",
        at_once.summary.packets.expect("a whole run").lost
    );
    let never = two_ways("routing = { reroute = false }");
    assert!(on(&never, "sb").is_empty());
    assert!(
        never.summary.packets.expect("a whole run").lost.abs_diff(2005) <= 1,
        "{}",
        never.summary.packets.expect("a whole run").lost
    );
}

/// A leaf with four spines and 60 flows over them; `links` are those of the first leaf, `more` is added to the scenario.
fn spines(links: &[usize], more: &str) -> Results {
    let mut graph: Vec<String> = links
        .iter()
        .map(|n| format!("{{ from = \"leaf0\", to = \"spine{n}\", rate = \"1Gbps\", delay = \"1us\" }}"))
        .collect();
    graph
        .extend((0..4).map(|n| {
            format!("{{ from = \"spine{n}\", to = \"leaf1\", rate = \"1Gbps\", delay = \"1us\" }}")
        }));
    run(&format!(
        r#"
        duration = "3ms"
        graph.links = [{}]
        flows = [{{ name = "f", law = "udp", jitter = "none", rate = "20Mbps", count = 60, from = "leaf0", to = "leaf1" }}]
        capture = {{ packets = 1000000 }}
        {more}
        "#,
        graph.join(", ")
    ))
}

/// Which flows took which link of the first leaf in a part of the run.
fn taken(r: &Results, from: f64, to: f64) -> BTreeMap<String, BTreeSet<u32>> {
    let mut taken: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for p in r.capture.packets.iter().filter(|p| (from..to).contains(&seconds(p.time_ps))) {
        let name = &r.capture.links[p.link as usize];
        if name.starts_with("leaf0->") {
            taken.entry(name.clone()).or_default().insert(p.flow);
        }
    }
    taken
}

/// While a link is down flows are hashed over those that are left, as if there had never been more; afterwards as before.
#[test]
fn equal_cost_paths_are_chosen_among_those_that_are_left() {
    let r =
        spines(&[0, 1, 2, 3], "outages = [{ link = \"leaf0->spine2\", from = \"1ms\", until = \"2ms\" }]");
    let all = spines(&[0, 1, 2, 3], "");
    let left = spines(&[0, 1, 3], "");
    let (before, meanwhile, after) =
        (taken(&r, 0.0, 0.001), taken(&r, 0.00101, 0.002), taken(&r, 0.00201, 0.003));
    assert_eq!(before.len(), 4);
    assert_eq!((&before, &after), (&taken(&all, 0.0, 0.001), &taken(&all, 0.00201, 0.003)));
    assert_eq!(meanwhile, taken(&left, 0.00101, 0.002));
    assert_eq!(
        meanwhile.keys().map(String::as_str).collect::<Vec<_>>(),
        ["leaf0->spine0", "leaf0->spine1", "leaf0->spine3"]
    );
}

/// A network of everything whose routes change: hosts of their own, web flows, laws that obey routers and that do not.
const ALL: &str = r#"
duration = "3s"
warmup = "500ms"
[graph]
links = [
    { name = "sa", from = "s", to = "a", rate = "20Mbps", delay = "5ms", router = "xcp" },
    { name = "at", from = "a", to = "t", rate = "20Mbps", delay = "5ms", router = "xcp" },
    { name = "sb", from = "s", to = "b", rate = "10Mbps", delay = "10ms", router = "xcp" },
    { name = "bt", from = "b", to = "t", rate = "10Mbps", delay = "10ms", router = "xcp", impairments = { loss = 0.001 } },
    { name = "tu", from = "t", to = "u", rate = "15Mbps", delay = "1ms", queue = "fq_codel" },
]
[[flows]]
name = "xcp"
law = "xcp"
count = 3
from = "s"
to = "t"
access = { rate = "100Mbps", delay = "1ms" }
[[flows]]
name = "asks"
law = { law = "xcp", negotiate = true }
from = "s"
to = "t"
[[flows]]
name = "sack"
law = "sack"
count = 2
from = "s"
to = "u"
access = { rate = "100Mbps", delay = "1ms" }
[flows.transport]
delayed_acks = true
[[flows]]
name = "back"
law = "newreno"
from = "u"
to = "a"
[[flows]]
name = "web"
law = "cubic"
from = "s"
to = "u"
[flows.web]
flows_per_s = 30.0
sizes = { distribution = "exponential", mean = "20kB" }
[[outages]]
link = "at"
from = "1s"
until = "2s"
[[outages]]
link = "sb"
from = "1500ms"
until = "1600ms"
both_ways = false
on_failure = "hold"
[[outages]]
link = "tu"
from = "2300ms"
until = "2400ms"
[routing]
convergence = "20ms"
"#;

/// However it is cut and without the engine's short cuts a run gives the same bits.
#[test]
fn a_run_whose_routes_change_is_a_function_of_its_seed() {
    let loaded = try_load(ALL).unwrap_or_else(|e| panic!("{e}"));
    let mut go = |_: Progress| ControlFlow::Continue(());
    let sim = || Simulation::new(&loaded, None).expect("a network");
    let results = sim().run(&mut go).expect("nobody stops it");
    for name in ["sa", "sb", "at", "bt", "tu"] {
        assert!(results.summary.links[name].arrivals > 100, "{name}");
    }
    assert!(
        results.flows.iter().all(|flow| flow.switched_s.get().is_none()),
        "a flow gave up a protocol that all routers know"
    );
    let whole = results.digest();
    let mut cut = sim();
    for ms in [3, 999, 1000, 1020, 1021, 1550, 2310] {
        cut.run_until(flowstamp_laws::Time::from_millis(ms), &mut go).expect("a step");
    }
    assert_eq!(whole, cut.run(&mut go).expect("nobody stops it").digest());
    assert_eq!(whole, sim().one_by_one().run(&mut go).expect("nobody stops it").digest());
    let mut set = sim();
    for (key, text, said) in [
        ("graph.links.sb.rate", "5Mbps", "cannot change in mid-run: sb has outages that hold its packets"),
        ("graph.links.at.delay", "6ms", "cannot change in mid-run: at has impairments or outages"),
    ] {
        let error = set.set(key, text).expect_err(key).to_string();
        assert!(error.contains(said), "{error}");
    }
}

/// Runs a flow from s to t that counts routers. There are two on its route, and three while a link is down. The link from c has `router`.
fn counted(router: &str) -> Results {
    run(&format!(
        r#"
        duration = "6s"
        graph.links = [
            {{ name = "sa", from = "s", to = "a", rate = "10Mbps", delay = "5ms", router = "xcp" }},
            {{ name = "at", from = "a", to = "t", rate = "10Mbps", delay = "5ms", router = "xcp" }},
            {{ name = "sb", from = "s", to = "b", rate = "10Mbps", delay = "10ms", router = "xcp" }},
            {{ name = "bc", from = "b", to = "c", rate = "10Mbps", delay = "10ms", router = "xcp" }},
            {{ name = "ct", from = "c", to = "t", rate = "10Mbps", delay = "10ms", router = "{router}" }},
        ]
        flows = [{{ name = "asks", law = {{ law = "xcp", negotiate = true }}, from = "s", to = "t" }}]
        outages = [{{ link = "at", from = "2s", until = "4s" }}]
        capture = {{ packets = 200000 }}
        "#
    ))
}

/// XCP's section 8.2: a flow falls back if a router has no XCP, and only then, however many routers its routes have. For a while after
/// a change, packets of both routes return.
#[test]
fn a_change_of_route_makes_a_flow_fall_back_if_a_router_has_no_xcp() {
    let r = counted("xcp");
    assert!(on(&r, "ct").len() > 1000, "the flow took the other way");
    let late = on(&r, "at").into_values().filter(|began| *began > 4.5).count();
    assert!(late > 1000, "and came back: {late}");
    assert_eq!(r.summary.flows[0].switched_s.get(), None);

    // The first answers from the other route come a round trip of 60 ms after the failure.
    let at = counted("none").summary.flows[0].switched_s.get().expect("it fell back");
    assert!((2.06..3.0).contains(&at), "at {at} s");
}

#[test]
fn outages_that_make_no_sense_are_refused() {
    for (outages, expected) in [
        (
            "[{ link = \"nowhere\", from = \"1s\" }]",
            "outages[0].link: \"nowhere\" is not a link; there are sa, sa.reverse, at",
        ),
        (
            "[{ link = \"sa\", from = \"2s\", until = \"1s\" }]",
            "outages[0].until: is 1s; it must be later than from, 2s",
        ),
        (
            "[{ link = \"sa\", from = \"1s\" }, { link = \"sa.reverse\", from = \"2s\" }]",
            "outages[1].from: is 2s, but the link is down from 1s and does not return",
        ),
        (
            "[{ link = \"sa\", from = \"1s\", until = \"3s\" }, { link = \"sa\", from = \"2s\" }]",
            "outages[1].from: is 2s, but the link is down from 1s to 3s",
        ),
        ("[{ link = \"sa\" }]", "outages[0]: `from` is missing"),
        ("[{ link = \"sa\", from = \"1s\", on_failure = \"stop\" }]", "outages[0].on_failure"),
        (
            "[{ link = \"at\", from = \"1s\", on_failure = \"hold\" }]",
            "outages[0].on_failure: is \"hold\", but at follows a trace",
        ),
        (
            "[{ link = \"sa\", from = \"500ms\" }]",
            "flows.f.law: \"xcp\" obeys routers, but no link on the path that it takes from 500ms on, in an outage, has router = \"xcp\"",
        ),
    ] {
        let text = format!(
            r#"
            duration = "1s"
            graph.links = [
                {{ name = "sa", from = "s", to = "a", rate = "1Mbps", delay = "1ms", router = "xcp" }},
                {{ name = "at", from = "a", to = "t", rate = {{ trace = "even" }}, delay = "1ms" }},
                {{ name = "st", from = "s", to = "t", rate = "1Mbps", delay = "9ms" }},
            ]
            flows = [{{ name = "f", law = "xcp", from = "s", to = "t" }}]
            outages = {outages}
            "#
        );
        let files: flowstamp_sim::scenario::Files = [("even".into(), "1\n2\n".to_owned())].into();
        let loaded = flowstamp_sim::load(&text, flowstamp_sim::Format::Toml, "test.toml", &[], &files);
        let error =
            loaded.and_then(|l| Simulation::new(&l, None).map(|_| ())).expect_err(outages).to_string();
        assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    }
}
