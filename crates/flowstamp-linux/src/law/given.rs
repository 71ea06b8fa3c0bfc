//! From what users write to the registry's parameters.

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

/// TOML, or else a string, as `--set` of a scenario has it.
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

/// `KEY=VALUE` of `--set`, as it is written.
fn pair<'a>(set: &'a str, example: &str) -> Result<(&'a str, Value), Refusal> {
    let refuse = |what: &str| Refusal(format!("--set {set}: {what}"));
    let (key, text) =
        set.split_once('=').ok_or_else(|| refuse(&format!("it must be KEY=VALUE, such as {example}")))?;
    if key == "law" {
        return Err(refuse("the law is --law's"));
    }
    Ok((key, value_of(text)))
}

/// A sender's law with what `host enable --set` says, as hosts carry it out.
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

/// A law as it was asked for, and what the kernel adds for those that lack it.
pub struct Given {
    pub spec: RouterSpec,
    pub eta: f64,
    pub min_interval: Time,
}

/// Share of the rate that a kernel's router aims at if nothing is said: a shaper's rate and a law's estimate never agree quite.
const ETA: f64 = 0.95;
/// The shortest interval between decisions if nothing is said.
const MIN_INTERVAL: Time = Time::from_millis(1);

/// The registry's law with what `--set` says, and `--eta` and `--min-interval`, which some law has as a parameter.
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
        // Alone, so that what is wrong has a name.
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
