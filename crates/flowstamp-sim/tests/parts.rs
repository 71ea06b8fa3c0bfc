//! A run on several threads, or part by part on one, gives the same bits as a run as a whole.

use flowstamp_sim::results::Results;
use flowstamp_sim::{Divided, Format, Loaded, Progress, Simulation, load};
use std::ops::ControlFlow;
use std::path::Path;

fn loaded(text: &str) -> Loaded {
    load(text, Format::Toml, "test", &[], Path::new(".")).unwrap_or_else(|error| panic!("{error}"))
}

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn assert_same(text: &str, threads: &[usize]) {
    let loaded = loaded(text);
    let whole = whole(&loaded);
    for threads in threads {
        let divided = Divided::as_large(&loaded, *threads).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let parts = divided.run(&mut go_on).expect("nobody stops it");
        assert_equal(&parts, &whole, &format!("{threads} threads\n{text}"));
    }
    assert_same_in_rounds(text, threads[0]);
}

fn assert_equal(parts: &Results, whole: &Results, run: &str) {
    assert_eq!(format!("{:?}", parts.summary), format!("{:?}", whole.summary), "{run}");
    assert_eq!(parts.digest(), whole.digest(), "{run}");
}

fn whole(loaded: &Loaded) -> Results {
    let whole = Simulation::new(loaded, None).expect("a network").as_large();
    whole.run(&mut go_on).expect("nobody stops it")
}

fn assert_same_in_rounds(text: &str, parts: usize) {
    let loaded = loaded(text);
    let whole = whole(&loaded);
    // Rounds to the end, and rounds that end because no part ever has so many events.
    for fewest in [0, 1 << 40] {
        let rounds =
            Simulation::in_rounds(&loaded, parts, fewest).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let rounds = rounds.run(&mut go_on).expect("nobody stops it");
        assert_equal(&rounds, &whole, &format!("{fewest} events\n{text}"));
    }
}

/// Flows that arrive at random, some of them only up to a stop, and leave their slots to others. Probes sample the other flows.
#[test]
fn flows_that_arrive() {
    let sprayed = "[routing]\nbalance = \"spray\"\n";
    for (law, router) in [("dctcp", sprayed), ("rcp", "router = \"rcp\"\n"), ("xcp", "router = \"xcp\"\n")] {
        let text = format!(
            "duration = \"1ms\"\nwarmup = \"200us\"\nseed = 5\n[fat_tree]\nk = 4\nrate = \"10Gbps\"\ndelay = \"1us\"\n\
             buffer = \"30pkt\"\n{router}\
             [[flows]]\nname = \"web\"\nlaw = {law:?}\npattern = \"random\"\n\
             [flows.web]\nload = 0.6\nsizes = {{ distribution = \"pareto\", mean = \"10kB\", shape = 1.2 }}\n\
             [[flows]]\nname = \"late\"\nlaw = {law:?}\npattern = \"random\"\nstop = \"700us\"\ntransport = {{ delayed_acks = true, handshake = true }}\n\
             [flows.web]\nflows_per_s = 1000000\nsizes = {{ distribution = \"fixed\", size = \"3kB\" }}\n\
             [[flows]]\nname = \"all\"\nlaw = {law:?}\npattern = \"permutation\"\nsize = \"300kB\"\n\
             [probes]\nevery = \"70us\"\nflows = true\n"
        );
        assert_same(&text, &[2, 3]);
        assert_same_in_rounds(&text, 7);
    }
}

/// Copies of packets that come long after their flow has ended, when another flow has its slot or is about to take it.
#[test]
fn copies_that_come_late() {
    let links = [
        ("a", "b", "impairments = { duplicate = 0.5 }"),
        ("b", "c", "impairments = { reorder = 0.3, reorder_delay = \"6ms\" }"),
        ("c", "d", ""),
    ];
    let links = links.map(|(from, to, impaired)| {
        format!(
            "[[graph.links]]\nfrom = {from:?}\nto = {to:?}\nrate = \"100Mbps\"\ndelay = \"1ms\"\nbuffer = \"50pkt\"\n\
             {impaired}\n"
        )
    });
    let flows = [("a", "d"), ("d", "a"), ("c", "a")].map(|(from, to)| {
        format!(
            "[[flows]]\nname = \"{from}{to}\"\nlaw = \"sack\"\nfrom = {from:?}\nto = {to:?}\n[flows.web]\n\
             flows_per_s = 2000\nsizes = {{ distribution = \"fixed\", size = \"1kB\" }}\n"
        )
    });
    let text = format!("duration = \"1s\"\n{}{}", links.concat(), flows.concat());
    assert_same(&text, &[2]);
}

#[test]
fn data_centres() {
    for (law, router) in
        [("dctcp", "none"), ("rcp", "rcp"), ("xcp", "xcp"), ("sack", "none"), ("bbr3", "none")]
    {
        let router = if router == "none" { String::new() } else { format!("router = {router:?}\n") };
        let queue =
            if law == "dctcp" { "queue = { kind = \"red\", step = 20, step_drops = false }\n" } else { "" };
        let topologies = [
            "[fat_tree]\nk = 4\nrate = \"10Gbps\"\ndelay = \"1us\"\nbuffer = \"100pkt\"\n",
            "[leaf_spine]\nleaves = 4\nspines = 2\nhosts = 3\nrate = \"10Gbps\"\ndelay = \"2us\"\nbuffer = \"100pkt\"\n",
        ];
        for topology in topologies {
            let text = format!(
                "duration = \"3ms\"\nwarmup = \"1ms\"\nseed = 3\n{topology}{router}{queue}\
                 [[flows]]\nname = \"all\"\nlaw = {law:?}\npattern = \"permutation\"\n\
                 [[flows]]\nname = \"short\"\nlaw = {law:?}\npattern = \"permutation\"\nsize = \"300kB\"\n"
            );
            assert_same(&text, &[2, 3, 4]);
        }
    }
}

/// Two sites with links within them that are much shorter than the one between them, which sets the length of a round.
#[test]
fn short_links_within_parts() {
    let links =
        [("a", "b", "1us"), ("b", "c", "1us"), ("c", "d", "1ms"), ("d", "e", "1us"), ("e", "f", "1us")];
    let links = links.map(|(from, to, delay)| {
        format!("[[graph.links]]\nfrom = {from:?}\nto = {to:?}\nrate = \"100Mbps\"\ndelay = {delay:?}\nbuffer = \"50pkt\"\n")
    });
    let flows = [("a", "f"), ("f", "a"), ("a", "c"), ("f", "d")].map(|(from, to)| {
        format!("[[flows]]\nname = \"{from}{to}\"\nlaw = \"sack\"\ncount = 2\nfrom = {from:?}\nto = {to:?}\n")
    });
    let text = format!("duration = \"200ms\"\n{}{}", links.concat(), flows.concat());
    assert_same(&text, &[2]);
}
