//! Runs of single links, put together, against runs of the whole network.

use flowstamp_sim::results::{FlowRow, Results};
use flowstamp_sim::{Format, Loaded, Simulation, load, run_by_links};
use std::ops::ControlFlow;
use std::path::Path;

fn loaded(text: &str) -> Loaded {
    load(text, Format::Toml, "test.toml", &[], Path::new(".")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn by_links(text: &str, threads: usize) -> Results {
    run_by_links(&loaded(text), None, Some(threads), None, &|_| ControlFlow::Continue(()))
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
        .expect("nobody stops it")
}

fn whole(text: &str) -> Results {
    let simulation = Simulation::new(&loaded(text), None).expect("a network");
    simulation.run(&mut |_| ControlFlow::Continue(())).expect("nobody stops it")
}

fn refused(text: &str) -> String {
    let result = run_by_links(&loaded(text), None, Some(1), None, &|_| ControlFlow::Continue(()));
    result.err().unwrap_or_else(|| panic!("not refused: {text}")).to_string()
}

fn slowdowns(flows: &[FlowRow]) -> Vec<f64> {
    flows.iter().filter_map(|row| Some(row.fct_s? / row.ideal_fct_s.get()?)).collect()
}

/// A fat tree with 16 hosts.
fn fat_tree(law: &str, router: &str, load: f64) -> String {
    format!(
        r#"
        duration = "4ms"
        warmup = "400us"
        [fat_tree]
        k = 4
        rate = "10Gbps"
        delay = "1us"
        buffer = "200kB"
        router = "{router}"
        queue = {{ kind = "red", step = 20, step_drops = false }}
        [[flows]]
        name = "web"
        law = "{law}"
        pattern = "random"
        [flows.web]
        load = {load}
        sizes = {{ distribution = "pareto", mean = "20kB", shape = 1.5 }}
        [probes]
        links = false
        groups = false
        "#
    )
}

/// A network of one link: the run of that link is the run of the network, to within the rounding of times.
#[test]
fn one_link_is_the_whole_network() {
    for (law, router) in [("rcp", "rcp"), ("xcp", "xcp"), ("sack", "none")] {
        let text = format!(
            r#"
            duration = "2s"
            warmup = "200ms"
            [[graph.links]]
            from = "a"
            to = "b"
            rate = "20Mbps"
            delay = "10ms"
            buffer = "1BDP"
            router = "{router}"
            [[flows]]
            name = "web"
            law = "{law}"
            from = "a"
            to = "b"
            [flows.web]
            load = 0.6
            sizes = {{ distribution = "pareto", mean = "20kB", shape = 1.5 }}
            "#
        );
        let (parts, all) = (by_links(&text, 1), whole(&text));
        assert_eq!(parts.flows.len(), all.flows.len());
        for (part, all) in parts.flows.iter().zip(&all.flows) {
            assert_eq!((part.start_s, part.size_bytes), (all.start_s, all.size_bytes));
            assert_eq!(part.fct_s.is_some(), all.fct_s.is_some());
            let (Some(part), Some(all)) = (part.fct_s, all.fct_s) else { continue };
            assert!((part / all - 1.0).abs() < 1e-3, "{law}: {part} s by links, {all} s in all");
        }
    }
}

/// A flow that is alone on each link of its path takes its ideal time, as on the whole network.
#[test]
fn an_empty_path_delays_no_flow() {
    for (law, router) in [("rcp", "rcp"), ("xcp", "xcp"), ("dctcp", "none")] {
        let text = fat_tree(law, router, 0.3);
        let text = text.split("pattern").next().expect("a head").to_owned()
            + "from = \"h0\"\nto = \"h15\"\nsize = \"960B\"\n[probes]\nlinks = false\ngroups = false\n";
        let text = text.replace(
            "name = \"web\"",
            "name = \"one\"\ntransport = { handshake = false, initial_window = 10 }",
        );
        let (parts, all) = (by_links(&text, 1), whole(&text));
        let (part, all) = (slowdowns(&parts.flows), slowdowns(&all.flows));
        assert!((part[0] - all[0]).abs() < 1e-3, "{law}: {part:?} {all:?}");
        assert!((part[0] - 1.0).abs() < 0.01, "{law}: {part:?}");
    }
}

/// Results do not depend on the number of threads.
#[test]
fn threads_change_nothing() {
    let text = fat_tree("rcp", "rcp", 0.3);
    assert_eq!(by_links(&text, 1).digest(), by_links(&text, 3).digest());
}

/// The flows are those of the whole run.
#[test]
fn flows_are_those_of_the_whole_run() {
    let text = fat_tree("dctcp", "none", 0.4);
    let (parts, all) = (by_links(&text, 1), whole(&text));
    let key = |row: &FlowRow| {
        (row.flow, row.index, row.size_bytes, row.start_s.to_bits(), row.ideal_fct_s.get().map(f64::to_bits))
    };
    assert_eq!(
        parts.flows.iter().map(key).collect::<Vec<_>>(),
        all.flows.iter().map(key).collect::<Vec<_>>()
    );
    assert_eq!(parts.summary.links.len(), all.summary.links.len());
    assert!(parts.by_links && !all.by_links);
}

/// A long flow leaves most of the first link to another flow, because the second link is slower. In a run of the first
/// link alone, both would share it evenly, and the other flow would take almost twice as long.
#[test]
fn a_flow_meets_others_as_other_links_let_them_through() {
    for (law, router, least) in [("rcp", "rcp", 0.9), ("xcp", "xcp", 0.8)] {
        let link = |from: &str, to: &str, rate: &str| {
            format!(
                "[[graph.links]]\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}\"\ndelay = \"5ms\"\n\
                 buffer = \"1BDP\"\nrouter = \"{router}\"\n"
            )
        };
        let flow = |name: &str, to: &str, size: &str| {
            format!(
                "[[flows]]\nname = \"{name}\"\nlaw = \"{law}\"\nfrom = \"a\"\nto = \"{to}\"\nsize = \"{size}\"\n"
            )
        };
        let text = [
            "duration = \"60s\"\n".to_owned(),
            link("a", "b", "100Mbps"),
            link("b", "c", "10Mbps"),
            flow("far", "c", "50MB"),
            flow("near", "b", "50MB"),
        ]
        .concat();
        let (parts, all) = (by_links(&text, 1), whole(&text));
        for (part, all) in parts.flows.iter().zip(&all.flows) {
            let (part_s, all_s) = (part.fct_s.expect("it ends"), all.fct_s.expect("it ends"));
            let ratio = part_s / all_s;
            // Below: XCP may leave a fifth of a link unused whose flows are limited elsewhere (Low, Andrew and Wydrowski
            // 2005), and a link alone does not show that. Above: the bound of figure DC-links. With an even share, the flow near
            // by would have 0.5 of the link in place of 0.8 to 0.9, and the ratio would be 1.6 to 1.8.
            assert!(
                (least..1.15).contains(&ratio),
                "{law}, {}: {part_s} s by links, {all_s} s in all",
                all.flow
            );
        }
    }
}

#[test]
fn what_it_cannot_answer_is_refused() {
    let text = fat_tree("rcp", "rcp", 0.3);
    let endless = text.split("pattern").next().expect("a head").to_owned() + "from = \"h0\"\nto = \"h1\"\n";
    assert!(refused(&endless).contains("flows.web.size: is missing"), "{}", refused(&endless));
    assert!(refused(&(text.clone() + "laws = true\n")).contains("probes.laws"));
    assert!(refused(&(text.clone() + "[capture]\n")).contains("capture"));
    assert!(refused(&(text + "[routing]\nbalance = \"spray\"\n")).contains("routing.balance"));
}
