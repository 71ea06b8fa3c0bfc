//! Faults that random networks found (`random_networks/`), as small as it was shrunk.

mod common;

use common::{run, try_load};
use flowstamp_sim::{Format, load};
use std::path::Path;

/// A run's own record of its scenario is that scenario: 8300 Mb/s were written as 8.3Gbps, another number by a bit.
#[test]
fn a_scenario_is_written_as_it_is_read() {
    let loaded = try_load(
        "duration = \"1s\"\ndumbbell = { rate = \"8300Mbps\", rtt = \"10ms\" }\nflows = [{ name = \"a\", law = \"sack\" }]",
    )
    .expect("a scenario");
    assert_eq!(try_load(&loaded.scenario.to_toml()).expect("a scenario").scenario, loaded.scenario);
}

/// A TCP took any number for a parameter: with no number for its threshold its window was none either, and with a
/// negative increase it shrank until nothing could be sent.
#[test]
fn tcp_refuses_what_is_no_parameter() {
    for (law, parameter, value) in [
        ("reno", "initial_ssthresh", "nan"),
        ("newreno", "increase", "-5.0"),
        ("sack", "increase", "inf"),
        ("sack", "decrease", "1.5"),
        ("sack", "max_window", "0.0"),
        ("sack", "min_ssthresh", "nan"),
        ("highspeed", "initial_ssthresh", "nan"),
        ("highspeed", "low_window", "nan"),
        ("highspeed", "high_window", "30.0"),
        ("highspeed", "low_p", "0.0"),
        ("highspeed", "high_p", "0.5"),
        ("highspeed", "high_decrease", "0.9"),
    ] {
        let text = format!(
            "duration = \"1s\"\ndumbbell = {{ rate = \"1Mbps\", rtt = \"10ms\" }}\n\
             flows = [{{ name = \"a\", law = {{ law = \"{law}\", {parameter} = {value} }} }}]"
        );
        let error = try_load(&text).map(|l| l.source).expect_err(parameter).to_string();
        assert!(error.contains(&format!("flows.a.law.{parameter}: is ")), "{error}");
    }
}

/// On a trace a packet that waits for an opportunity takes less of it than there is, and what comes in the first instant
/// of a run is capacity too.
#[test]
fn a_trace_is_used_between_none_and_all() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/random_networks/data");
    for (trace, ms) in
        [("slow.down", "50ms"), ("slow.down", "60ms"), ("bursty.down", "6ms"), ("bursty.down", "1ms")]
    {
        let text = format!(
            "duration = \"{ms}\"\nflows = [{{ name = \"a\", law = \"sack\", from = \"x\", to = \"y\" }}]\n\
             graph.links = [{{ from = \"x\", to = \"y\", delay = \"1ps\", rate = {{ trace = \"{trace}\" }} }}]"
        );
        let loaded = load(&text, Format::Toml, "test.toml", &[], &folder).unwrap_or_else(|e| panic!("{e}"));
        let sim = flowstamp_sim::Simulation::new(&loaded, None).expect("a network");
        let results = sim.run(&mut |_| std::ops::ControlFlow::Continue(())).expect("nobody stops it");
        for (name, link) in results.summary.links {
            assert!(
                (0.0..=1.0).contains(&link.utilization),
                "{trace} for {ms}, {name}: {}",
                link.utilization
            );
        }
    }
}

/// A rate of next to nothing made a departure that is never, and a flow that waited for it asked for no better rate any
/// more: it must go on to probe the path, once in a hundred round trips at least.
#[test]
fn a_flow_at_next_to_no_rate_asks_for_a_better_one() {
    let r = run("duration = \"2s\"\nflows = [{ name = \"a\", law = \"rcp\" }]\n\
         parking_lot = { rates = [\"20Gbps\", \"20Gbps\"], delay = \"1ms\", \
         router = { law = \"rcp\", fairness = 0.001 } }");
    // Two routers that add up so make 2^-1000 of a rate. The path takes 4 ms: a SYN, a packet and four probes, and their answers.
    assert!(r.flows[0].delivered_bytes <= 1000, "{:?}", r.flows[0]);
    // Once in each round trip would be 500.
    assert!(
        (2 * (2 + 4)..40).contains(&r.summary.packets.expect("a whole run").sent),
        "{:?}",
        r.summary.packets.expect("a whole run")
    );
}

/// A single router leaves its own rate, whatever the exponent of alpha-fair sharing: a sender's wish for as much as there is
/// is no second one.
#[test]
fn a_single_router_is_not_two() {
    let goodput = |fairness: f64| {
        let r = run(&format!(
            "duration = \"20s\"\nwarmup = \"10s\"\nflows = [{{ name = \"a\", law = \"rcp\" }}]\n\
             dumbbell = {{ rate = \"10Mbps\", rtt = \"20ms\", router = {{ law = \"rcp\", fairness = {fairness} }} }}"
        ));
        r.flows[0].goodput_bps
    };
    let plain = goodput(0.0);
    assert!(plain > 9e6, "{plain}");
    for fairness in [0.01, 0.1, 1.0] {
        // The rates are the same except for the rounding of a product.
        assert!(
            (goodput(fairness) / plain - 1.0).abs() < 1e-3,
            "{fairness}: {} and {plain}",
            goodput(fairness)
        );
    }
}

/// A link may stand still for a whole run: what is offered to it is no share of nothing.
#[test]
fn a_link_without_capacity_has_finite_results() {
    let r = run("duration = \"10ms\"\nflows = [{ name = \"a\", law = \"sack\" }]\n\
         dumbbell = { rtt = \"1ms\", access_rate = \"1Mbps\", rate = { steps = [[\"0s\", \"0bps\"], [\"1s\", \"1Mbps\"]] } }");
    let group = &r.summary.groups["a"];
    assert!(group.offered_load == 0.0 && group.capacity_bps == 0.0, "{group:?}");
}
