//! Converts the options of a command line into the registry's parameters.

use super::{Law, ROUTERS, router_named, vcp, xcp};
use crate::refusal::Refusal;
use flowstamp_laws::Time;
use flowstamp_laws::registry::{RouterSpec, SenderSpec};
use flowstamp_laws::tree::{Error, Table, Tree, Value};
use flowstamp_scenario::value_of;
use serde::de::DeserializeOwned;

/// The kernel's law for the registry's.
pub fn law_of(spec: &RouterSpec) -> Result<&'static Law, Refusal> {
    let name = spec.name();
    router_named(name).ok_or_else(|| {
        let there: Vec<_> = ROUTERS.iter().map(|law| law.name).collect();
        Refusal(format!("router: Linux has no law {name:?}; it has {}", there.join(", ")))
    })
}

/// The law with these parameters.
fn spec<S: DeserializeOwned>(law: &Law, mut parameters: Table) -> Result<S, Error> {
    parameters.insert("law", Value::String(law.name.to_owned()));
    S::deserialize(Tree(&Value::Table(parameters)))
}

/// The parameters of the law that `--set` gives. `example` is a pair that would be right.
fn parameters<S: DeserializeOwned>(law: &Law, sets: &[String], example: &str) -> Result<Table, Refusal> {
    let mut all = Table::default();
    for set in sets {
        let refuse = |what: String| Refusal(format!("--set {set}: {what}"));
        let (key, text) =
            set.split_once('=').ok_or_else(|| refuse(format!("it must be KEY=VALUE, such as {example}")))?;
        if key == "law" {
            return Err(refuse("the law is --law's".to_owned()));
        }
        let value = value_of(text);
        // Checks each key alone, so that the error can name it.
        let alone = Table::from_iter([(key.to_owned(), value.clone())]);
        spec::<S>(law, alone).map_err(|error| refuse(error.to_string()))?;
        if all.insert(key, value).is_some() {
            return Err(refuse("it appears twice".to_owned()));
        }
    }
    Ok(all)
}

/// Parameters of the hosts' senders, as in `struct fs_settings` of bpf/host_flow.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Senders {
    pub vcp: vcp::VcpSender,
    pub xcp: xcp::XcpSender,
}

/// The senders' parameters from `host enable --set`, which are those of `law`.
pub fn senders(law: &Law, sets: &[String]) -> Result<Senders, Refusal> {
    let name = law.name;
    let example = if name == xcp::LAW.name { "price=2" } else { "weight=2" };
    if let Some(set) = sets.first().filter(|_| name != vcp::LAW.name && name != xcp::LAW.name) {
        return Err(Refusal(format!("--set {set}: hosts have no parameters of {name}'s senders")));
    }
    let all = parameters::<SenderSpec>(law, sets, example)?;
    let spec: SenderSpec = spec(law, all).map_err(|error| Refusal(format!("--set: {error}")))?;
    spec.check().map_err(|(key, what)| Refusal(format!("{name} parameter `{key}` {what}")))?;
    let vcp =
        if let SenderSpec::Vcp(it) = &spec { vcp::sender(it) } else { vcp::sender(&Default::default()) };
    let xcp =
        if let SenderSpec::Xcp(it) = &spec { xcp::sender(it) } else { xcp::sender(&Default::default()) };
    Ok(Senders { vcp: vcp?, xcp: xcp? })
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
    let mut all = parameters::<RouterSpec>(law, sets, "alpha=0.4")?;
    let options = [
        ("eta", eta.map(Value::Float)),
        ("min_interval", min_interval.map(|time| Value::String(time.to_string()))),
    ];
    for (option, value) in options {
        let key = law.options.iter().find(|(its, _)| *its == option).map(|(_, key)| *key);
        let (Some(key), Some(value)) = (key, value) else { continue };
        if all.insert(key, value).is_some() {
            let option = option.replace('_', "-");
            return Err(Refusal(format!("--{option} is {}'s {key}: set only one of them", law.name)));
        }
    }
    for (key, value) in law.defaults {
        if all.get(key).is_none() {
            all.insert(key, value_of(value));
        }
    }
    let spec = spec(law, all).map_err(|error| Refusal(format!("--set: {error}")))?;
    Ok(Given { spec, eta: eta.unwrap_or(ETA), min_interval: min_interval.unwrap_or(MIN_INTERVAL) })
}
