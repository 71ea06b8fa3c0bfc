//! `--metrics`: serves the data of `router status` to Prometheus. Each answer covers the routers that are
//! attached at that time.

use super::http::{self, Page};
use super::privileges;
use super::reader::Reader;
use super::report::{Report, reports};
use super::scone::{Element, elements};
use crate::law::ROUTERS;
use crate::refusal::Refusal;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;

type Labels = Vec<(String, String)>;
type Floats = Family<Labels, Gauge<f64, AtomicU64>>;
type Counts = Family<Labels, Counter>;
type Value = fn(&Report) -> Option<f64>;
type Count = fn(&Report) -> u64;

/// The Prometheus name of a variable, with the unit spelled out.
fn in_words(name: &str) -> String {
    name.strip_suffix("_s").map_or_else(|| name.to_owned(), |name| format!("{name}_seconds"))
}

/// The gauges of every law: name, help text and value.
const GAUGES: [(&str, &str, Value); 17] = [
    ("target_rate_bps", "Input rate that the law aims at", |r| r.target_rate_bps),
    ("queue_bytes", "Backlog of the law's queue: the root's, or its own class's", |r| {
        Some(r.queue_bytes as f64)
    }),
    ("queue_packets", "Its packets", |r| Some(r.queue_packets as f64)),
    ("own_weight", "Weight of the law's own class", |r| r.split.as_ref().map(|s| s.own_weight)),
    ("own_capacity_bps", "Part of the link that the law works with", |r| {
        r.split.as_ref().map(|s| s.own_capacity_bps)
    }),
    ("own_flows", "Flows of the law's own class", |r| r.split.as_ref().map(|s| s.own_flows)),
    ("other_flows", "All other flows", |r| r.split.as_ref().map(|s| s.other_flows)),
    ("own_input_bps", "Input of the law's own class", |r| r.split.as_ref().map(|s| s.own_input_bps)),
    ("other_input_bps", "All other input", |r| r.split.as_ref().map(|s| s.other_input_bps)),
    ("own_queue_bytes", "Backlog of the law's own class", |r| {
        r.split.as_ref().map(|s| s.own_queue_bytes as f64)
    }),
    ("other_queue_bytes", "Backlog of all others", |r| r.split.as_ref().map(|s| s.other_queue_bytes as f64)),
    ("update_interval_seconds", "Period of the weights", |r| r.split.as_ref().map(|s| s.update_interval_s)),
    ("share_is_updated", "Whether router share runs", |r| r.split.as_ref().map(|s| f64::from(s.is_updated))),
    ("share_has_classes", "Whether the classes that attach made are there", |r| {
        r.split.as_ref().map(|s| f64::from(s.has_classes))
    }),
    ("interval_seconds", "The last control interval", |r| Some(r.interval_s)),
    ("late_mean_seconds", "Mean lateness of decisions", |r| Some(r.late_mean_s)),
    ("late_max_seconds", "Greatest lateness of a decision", |r| Some(r.late_max_s)),
];

/// The counters of every law: name, help text and value.
const COUNTERS: [(&str, &str, Count); 3] = [
    ("input_bytes", "Bytes sent to the link", |r| r.input_bytes),
    ("decisions", "Control intervals that have ended", |r| r.decisions),
    ("dropped_packets", "Packets that the queueing discipline dropped", |r| r.dropped_packets),
];

type Advice = fn(&Element) -> Option<f64>;
type AdviceCount = fn(&Element) -> u64;

/// The gauges of SCONE's network elements.
const SCONE_GAUGES: [(&str, &str, Advice); 5] = [
    ("advice_bps", "Advice for all flows", |e| e.advice_bps.map(|bps| bps as f64)),
    ("law_advice_bps", "Advice from the law", |e| e.law_advice_bps.map(|bps| bps as f64)),
    ("law_mean_bps", "Mean of the law's rate over 67 s", |e| e.law_mean_bps.map(|bps| bps as f64)),
    ("prefixes", "Prefixes with advice of their own", |e| Some(e.prefixes.into())),
    ("enforced", "Whether flows over their advice are limited", |e| Some(f64::from(e.enforced))),
];

/// The counters of SCONE's network elements.
const SCONE_COUNTERS: [(&str, &str, AdviceCount); 11] = [
    ("packets", "Datagrams with a SCONE packet", |e| e.counts.packets),
    ("lowered_packets", "Datagrams whose signal was lowered", |e| e.counts.lowered_packets),
    ("kept_packets", "Datagrams whose signal was as low already", |e| e.counts.kept_packets),
    ("spared_packets", "Datagrams of flows changed often enough", |e| e.counts.spared_packets),
    ("unadvised_packets", "Datagrams for which there is no advice", |e| e.counts.unadvised_packets),
    ("untracked_packets", "Datagrams of flows without a place in the table", |e| e.counts.untracked_packets),
    ("flows", "Flows with SCONE packets", |e| e.counts.flows),
    ("flows_over", "Flows found over their advice", |e| e.counts.flows_over),
    ("periods", "Periods in which flows were monitored", |e| e.counts.periods),
    ("periods_over", "Those periods in which the flow was over its advice", |e| e.counts.periods_over),
    ("dropped_packets", "Frames that enforcement dropped", |e| e.counts.dropped_packets),
];

/// Registers the metrics of SCONE's network elements.
fn register_advice(all: &mut Registry, elements: &[Element]) {
    let registry = all.sub_registry_with_prefix("flowstamp_scone");
    let labels = |e: &Element| vec![("interface".to_owned(), e.interface.clone())];
    for (name, help, value) in SCONE_GAUGES {
        let family = Floats::default();
        registry.register(name, help, family.clone());
        for e in elements {
            if let Some(value) = value(e) {
                family.get_or_create(&labels(e)).set(value);
            }
        }
    }
    for (name, help, value) in SCONE_COUNTERS {
        let family = Counts::default();
        registry.register(name, help, family.clone());
        for e in elements {
            family.get_or_create(&labels(e)).inc_by(value(e));
        }
    }
}

/// Formats all `reports` and `elements` as OpenMetrics text.
fn render(reports: &[Report], elements: &[Element]) -> Result<String, std::fmt::Error> {
    let mut all = Registry::default();
    let attached = Gauge::<i64>::default();
    attached.set(reports.len() as i64);
    all.register("flowstamp_routers", "Interfaces with a router", attached);
    let registry = all.sub_registry_with_prefix("flowstamp_router");
    let labels = |r: &Report| {
        vec![("interface".to_owned(), r.interface.clone()), ("law".to_owned(), r.law.name.to_owned())]
    };
    for (name, help, value) in GAUGES {
        let family = Floats::default();
        registry.register(name, help, family.clone());
        for r in reports {
            if let Some(value) = value(r) {
                family.get_or_create(&labels(r)).set(value);
            }
        }
    }
    // The variables of all laws, each registered once.
    let mut told: Vec<&str> = Vec::new();
    for variable in ROUTERS.iter().flat_map(|law| law.variables) {
        if told.contains(&variable.name) {
            continue;
        }
        told.push(variable.name);
        let family = Floats::default();
        registry.register(in_words(variable.name), variable.help, family.clone());
        for r in reports {
            if let Some(value) = r.variables.get(variable.name) {
                family.get_or_create(&labels(r)).set(*value);
            }
        }
    }
    for (name, help, value) in COUNTERS {
        let family = Counts::default();
        registry.register(name, help, family.clone());
        for r in reports {
            family.get_or_create(&labels(r)).inc_by(value(r));
        }
    }
    register_advice(&mut all, elements);
    let mut text = String::new();
    encode(&mut text, &all)?;
    Ok(text)
}

/// The answer to a request.
fn page(request: &[u8], reader: &mut Reader) -> Page {
    let mut words = request.split(|b| b.is_ascii_whitespace());
    match (words.next(), words.next()) {
        (Some(b"GET"), Some(b"/metrics" | b"/")) => match reader.ask() {
            Ok(Ok(text)) => ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", text),
            Ok(Err(why)) => ("500 Internal Server Error", "text/plain", why + "\n"),
            Err(error) => {
                // Exits, so that a supervisor restarts the daemon.
                eprintln!("flowstamp: the process that reads the routers has ended ({error})");
                std::process::exit(1)
            }
        },
        (Some(b"GET"), _) => ("404 Not Found", "text/plain", "only /metrics is here\n".into()),
        _ => ("405 Method Not Allowed", "text/plain", "only GET is answered\n".into()),
    }
}

/// Opens the listening socket in the current network namespace.
pub fn listen(at: SocketAddr) -> Result<TcpListener, Refusal> {
    TcpListener::bind(at).map_err(|e| Refusal(format!("--metrics {at}: {e}")))
}

/// Metrics of the routers in `root` whose interface exists; others have no current values.
fn attached(root: &Path) -> anyhow::Result<String> {
    let mut reports = reports(root)?;
    reports.retain(|report| report.attached);
    let mut elements = elements(root);
    elements.retain(|element| element.attached);
    Ok(render(&reports, &elements)?)
}

/// Serves the metrics of the routers in `root` until stopped.
pub fn serve(listener: TcpListener, root: &Path) -> anyhow::Result<ExitCode> {
    reports(root)?; // refuses now what each request would refuse
    let (mut reader, listener) = Reader::start(listener, || attached(root))?;
    privileges::keep_only(&[])?;
    println!("listening at http://{}/metrics", listener.local_addr()?);
    http::serve(&listener, |request| page(request, &mut reader))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::report::Split;
    use std::collections::BTreeSet;

    /// A router of each law, on a shared link if the law uses a rate.
    fn reports() -> Vec<Report> {
        let report = |law: &'static crate::law::Law| Report {
            interface: "eth0".into(),
            law,
            attached: true,
            link_rate_bps: (!law.blind).then_some(1e8),
            target_rate_bps: (!law.blind).then_some(9.5e7),
            variables: law.variables.iter().map(|v| (v.name, 1.0)).collect(),
            queue_bytes: 3000,
            queue_packets: 2,
            dropped_packets: 1,
            split: (!law.blind).then_some(Split {
                is_updated: true,
                own_weight: 0.5,
                own_capacity_bps: 5e7,
                own_flows: 2.0,
                other_flows: 3.0,
                own_input_bps: 1e7,
                other_input_bps: 2e7,
                own_queue_bytes: 1500,
                other_queue_bytes: 1500,
                update_interval_s: 0.2,
                updates: 7,
                has_classes: true,
            }),
            input_bytes: 1_000_000,
            decisions: 100,
            interval_s: 0.01,
            late_mean_s: 1e-5,
            late_max_s: 1e-3,
        };
        ROUTERS.map(report).into()
    }

    fn element() -> Element {
        Element {
            interface: "eth0".into(),
            advice_bps: Some(1),
            law_advice_bps: Some(1),
            law_mean_bps: Some(1),
            ..Element::default()
        }
    }

    fn names(text: &str) -> BTreeSet<String> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        text.split(|c: char| !is_part(c))
            .filter(|word| word.starts_with("flowstamp_router_") || word.starts_with("flowstamp_scone_"))
            .map(str::to_owned)
            .collect()
    }

    /// Some router exports every metric that the Grafana dashboard uses.
    #[test]
    fn the_dashboard_asks_for_what_is_exported() {
        let text = render(&reports(), &[element()]).unwrap();
        let exported: BTreeSet<_> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split('{').next().map(str::to_owned))
            .collect();
        let dashboard = names(include_str!("../../../../grafana/flowstamp-router.json"));
        assert!(dashboard.len() > 20, "{dashboard:?}");
        let missing: Vec<_> = dashboard.difference(&exported).collect();
        assert!(missing.is_empty(), "not exported: {missing:?}");
        let scone = |name: &&String| name.starts_with("flowstamp_scone_");
        let unseen: Vec<_> =
            exported.iter().filter(scone).filter(|name| !dashboard.contains(*name)).collect();
        assert!(unseen.is_empty(), "SCONE's, and not in the dashboard: {unseen:?}");
        // Every law variable is also in the dashboard.
        let law = |name: &&String| {
            ROUTERS
                .iter()
                .flat_map(|law| law.variables)
                .any(|v| **name == format!("flowstamp_router_{}", in_words(v.name)))
        };
        let unseen: Vec<_> = exported.iter().filter(law).filter(|name| !dashboard.contains(*name)).collect();
        assert!(
            unseen.iter().all(|name| name.ends_with("_input_rate_bps")),
            "known, and not in the dashboard: {unseen:?}"
        );
    }
}
