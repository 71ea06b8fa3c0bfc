//! `router status`: shows the state of the routers as text, as JSON, or for Prometheus.

use super::report::Report;
use super::report::reports;
use super::{Pins, metrics, scone};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::ExitCode;

/// Output options.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print one JSON document on standard output.
    #[arg(long)]
    json: bool,
    /// Serve Prometheus at this address and port, such as 127.0.0.1:9400, until stopped.
    #[arg(long, value_name = "ADDR", conflicts_with = "json")]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    pins: Pins,
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(at) = arguments.metrics {
        return metrics::serve(metrics::listen(at)?, &arguments.pins.root);
    }
    let reports = reports(&arguments.pins.root)?;
    let elements = scone::elements(&arguments.pins.root);
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&document(&reports, &elements)?)?);
        return Ok(ExitCode::SUCCESS);
    }
    if reports.is_empty() && elements.is_empty() {
        println!("no interface is a router");
    }
    for r in reports {
        let variable = |name| r.variables.get(name).copied();
        println!(
            "{}: {:?} {}, {}{} Mb/s in, queue {} bytes{}{}{}, {} decisions, {:.3} ms late at most",
            r.interface,
            r.law,
            if r.attached { "attached" } else { "of an interface that is gone" },
            variable("load_factor").map_or_else(
                || format!(
                    "{:.3}",
                    variable("input_rate_bps").or_else(|| variable("dequeue_rate_bps")).unwrap_or(0.0) / 1e6
                ),
                |load| format!("load {load:.3}"),
            ),
            r.target_rate_bps.map_or_else(String::new, |target| format!(" of {:.3}", target / 1e6)),
            r.queue_bytes,
            variable("avg_rtt_s").map_or_else(String::new, |s| format!(", RTT {:.3} ms", s * 1e3)),
            variable("rate_bps").map_or_else(String::new, |v| format!(", flows at {:.3} Mb/s", v / 1e6)),
            r.split.as_ref().map_or_else(String::new, |s| format!(
                ", weight {:.3} ({}), {:.1} flows and {:.1} others at {:.3} Mb/s",
                s.own_weight,
                if s.is_updated { "updated" } else { "as it was: `router share` does not run" },
                s.own_flows,
                s.other_flows,
                s.other_input_bps / 1e6
            )),
            r.decisions,
            r.late_max_s * 1e3,
        );
        if r.attached && r.split.as_ref().is_some_and(|s| !s.has_classes) {
            println!(
                "{}: another root queueing discipline has removed the classes of --share htb: run `router attach` again",
                r.interface
            );
        }
    }
    elements.iter().for_each(|element| println!("{element}"));
    Ok(ExitCode::SUCCESS)
}

/// One object per interface. The key `scone` holds the state of its network element; an interface without a law has no keys of
/// a law.
fn document(reports: &[Report], elements: &[scone::Element]) -> serde_json::Result<Vec<Value>> {
    let mut interfaces = reports.iter().map(serde_json::to_value).collect::<Result<Vec<_>, _>>()?;
    for element in elements {
        let state = serde_json::to_value(element)?;
        match interfaces.iter_mut().find(|found| found["interface"] == element.interface.as_str()) {
            Some(interface) => interface["scone"] = state,
            None => interfaces.push(json!({
                "interface": element.interface, "attached": element.attached, "scone": state,
            })),
        }
    }
    Ok(interfaces)
}
