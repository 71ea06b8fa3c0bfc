//! How long a graph in a file takes to read and lay out, per edge: the same at 500 nodes as at 8000, because all of it is linear.
//! `cargo bench -p flowstamp-sim --features tables --bench graphs`.

#![expect(missing_docs, reason = "criterion's macros make functions without")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use flowstamp_sim::scenario::Files;
use flowstamp_sim::{Format, load};
use std::fmt::Write;

const SCENARIO: &str = "duration = \"1s\"\n[graph]\nfile = \"net\"\n[[flows]]\nname = \"a\"\nlaw = \"reno\"\nfrom = \"n0\"\nto = \"n1\"\n";

/// The ends of edges: a ring, and from each node a link to another far away.
fn edges(nodes: u32) -> impl Iterator<Item = (u32, u32)> {
    (0..nodes)
        .flat_map(move |node| [(node, (node + 1) % nodes), (node, (node * 7 + 3) % nodes)])
        .filter(|(a, b)| a != b)
}

fn csv(nodes: u32) -> String {
    let mut text = String::from("source,target,rate,delay\n");
    for (a, b) in edges(nodes) {
        let _ = writeln!(text, "n{a},n{b},10Gbps,1ms");
    }
    text
}

fn graphml(nodes: u32) -> String {
    let mut text = String::from(
        "<graphml>\n<key id=\"d0\" for=\"edge\" attr.name=\"rate\"/>\n<key id=\"d1\" for=\"edge\" attr.name=\"delay\"/>\n<graph edgedefault=\"undirected\">\n",
    );
    for node in 0..nodes {
        let _ = writeln!(text, "  <node id=\"n{node}\"/>");
    }
    for (a, b) in edges(nodes) {
        let data = "<data key=\"d0\">10Gbps</data>\n    <data key=\"d1\">1ms</data>";
        let _ = writeln!(text, "  <edge source=\"n{a}\" target=\"n{b}\">\n    {data}\n  </edge>");
    }
    text + "</graph>\n</graphml>\n"
}

fn graphs(c: &mut Criterion) {
    let mut group = c.benchmark_group("graph in a file, per edge");
    group.sample_size(10);
    for nodes in [500, 1000, 2000, 4000, 8000] {
        group.throughput(Throughput::Elements(edges(nodes).count() as u64));
        for (kind, text) in [("GraphML", graphml(nodes)), ("CSV", csv(nodes))] {
            let files: Files = [("net".into(), text)].into();
            group.bench_function(format!("{kind}/{nodes} nodes"), |b| {
                b.iter(|| load(SCENARIO, Format::Toml, "bench", &[], &files).expect("a graph"));
            });
        }
    }
    group.finish();
}

criterion_group!(benches, graphs);
criterion_main!(benches);
