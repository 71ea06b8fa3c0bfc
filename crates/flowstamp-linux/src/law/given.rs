//! Converts the options of a command line into the registry's parameters.

use super::{Law, ROUTERS, VcpSender, router_named, vcp};
use crate::refusal::Refusal;
use flowstamp_laws::Time;
use flowstamp_laws::registry::{RouterSpec, SenderSpec};
use flowstamp_scenario::plainly;
use serde::Deserialize;
use toml::{Table, Value};

/// The kernel's law for the registry's.
pub fn law_of(spec: &RouterSpec) -> Result<&'static Law, Refusal> {
    let table = Table::try_from(spec).unwrap_or_default();
    let name = table.get("law").and_then(Value::as_str).unwrap_or_default();
    router_named(name).ok_or_else(|| {
        let there: Vec<_> = ROUTERS.iter().map(|law| law.name).collect();
        Refusal(format!("router: Linux has no law {name:?}; it has {}", there.join(", ")))
    })
}

/// Parses a value as TOML, or else takes it as a string, like a scenario's `--set`.
fn value_of(text: &str) -> Value {
    format!("v = {text}")
        .parse::<Table>()
        .ok()
        .filter(|table| table.len() == 1)
        .and_then(|mut table| table.remove("v"))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

fn spec(law: &Law, mut table: Table) -> Result<RouterSpec, toml::de::Error> {
    table.insert("law".to_owned(), Value::String(law.name.to_owned()));
    RouterSpec::deserialize(table)
}

/// Splits the `KEY=VALUE` of a `--set`.
fn pair<'a>(set: &'a str, example: &str) -> Result<(&'a str, Value), Refusal> {
    let refuse = |what: &str| Refusal(format!("--set {set}: {what}"));
    let (key, text) =
        set.split_once('=').ok_or_else(|| refuse(&format!("it must be KEY=VALUE, such as {example}")))?;
    if key == "law" {
        return Err(refuse("the law is --law's"));
    }
    Ok((key, value_of(text)))
}

/// The sender's parameters from `host enable --set`, as hosts implement them.
pub fn sender(law: &Law, sets: &[String]) -> Result<VcpSender, Refusal> {
    let mut all = Table::from_iter([("law".to_owned(), Value::String(law.name.to_owned()))]);
    for set in sets {
        let (key, value) = pair(set, "weight=2")?;
        if law.name != vcp::LAW.name {
            return Err(Refusal(format!("--set {set}: hosts have no parameters of {}'s senders", law.name)));
        }
        if all.insert(key.to_owned(), value).is_some() {
            return Err(Refusal(format!("--set {set}: it is there twice")));
        }
        let text = |error: toml::de::Error| Refusal(format!("--set {set}: {}", plainly(error.message())));
        SenderSpec::deserialize(all.clone()).map_err(text)?;
    }
    let spec =
        SenderSpec::deserialize(all).map_err(|e| Refusal(format!("--set: {}", plainly(e.message()))))?;
    let name = law.name;
    spec.check().map_err(|(key, what)| Refusal(format!("{name} parameter `{key}` {what}")))?;
    if let SenderSpec::Vcp(parameters) = spec {
        vcp::sender(&parameters)
    } else {
        vcp::sender(&vcp::SenderParams::default())
    }
}

/// The requested law, and the kernel's settings for laws without such parameters.
pub struct Given {
    pub spec: RouterSpec,
    pub eta: f64,
    pub min_interval: Time,
}

/// Default target utilisation of a kernel router, below 1 because a shaper's rate and a law's estimate never
/// match exactly.
const ETA: f64 = 0.95;
/// Default minimum interval between decisions.
const MIN_INTERVAL: Time = Time::from_millis(1);

/// The registry's law with the parameters from `--set`, `--eta` and `--min-interval`.
pub fn given(
    law: &Law,
    sets: &[String],
    eta: Option<f64>,
    min_interval: Option<Time>,
) -> Result<Given, Refusal> {
    if let Some(eta) = eta.filter(|_| law.blind) {
        let text =
            format!("--eta {eta}: it is a share of the rate, which {} does not know; leave it out", law.name);
        return Err(Refusal(text));
    }
    let mut all = Table::new();
    for set in sets {
        let refuse = |what: &str| Refusal(format!("--set {set}: {what}"));
        let (key, value) = pair(set, "alpha=0.4")?;
        // Checks each key alone, so that the error can name it.
        let alone = Table::from_iter([(key.to_owned(), value.clone())]);
        spec(law, alone).map_err(|error| refuse(&plainly(error.message())))?;
        if all.insert(key.to_owned(), value).is_some() {
            return Err(refuse("it is there twice"));
        }
    }
    let options = [
        ("eta", eta.map(Value::Float)),
        ("min_interval", min_interval.map(|time| Value::String(time.to_string()))),
    ];
    for (option, value) in options {
        let key = law.options.iter().find(|(its, _)| *its == option).map(|(_, key)| *key);
        let (Some(key), Some(value)) = (key, value) else { continue };
        if all.insert(key.to_owned(), value).is_some() {
            let option = option.replace('_', "-");
            return Err(Refusal(format!("--{option} is {}'s {key}: say it once", law.name)));
        }
    }
    for (key, value) in law.defaults {
        all.entry(*key).or_insert_with(|| value_of(value));
    }
    let spec = spec(law, all).map_err(|error| Refusal(format!("--set: {}", plainly(error.message()))))?;
    Ok(Given { spec, eta: eta.unwrap_or(ETA), min_interval: min_interval.unwrap_or(MIN_INTERVAL) })
}
