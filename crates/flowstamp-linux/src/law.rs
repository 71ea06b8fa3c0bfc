//! The laws that the kernel's programs implement, one file each. A file holds the law's name and number, the
//! registry's parameters in fixed point, the state in the registry's units, and the option's fields. The
//! lists here define what Linux supports: commands refuse, by name and before they change anything, a law
//! that is not listed and a parameter that the kernel's law lacks.

mod abc;
mod fixed;
mod given;
mod parameters;
mod rcp;
mod vcp;
mod xcp;
mod xcpb;

pub use fixed::{bps, ns, q16, q32};
pub use given::{Given, Senders, given, law_of, senders};
pub use parameters::shown;

use crate::bpf::router::types;
use crate::refusal::Refusal;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::{Header, RouterSpec};
use flowstamp_laws::{Rate, Stamp, Time};
use flowstamp_wire::option;

/// Size of a full Ethernet frame without its checksum.
pub const PACKET_BYTES: u32 = 1514;

/// A law as the kernel implements it.
pub struct Law {
    /// The registry's name.
    pub name: &'static str,
    /// `enum fs_law` of bpf/option.h.
    pub number: u32,
    /// The header of its packets as the registry's laws read it, and the option as hosts write it. Packets of ABC have
    /// no option, only a mark in their ECN bits.
    pub header: Header,
    pub option: Option<option::Protocol>,
    /// The law observes only the link's queue: it takes no rate, and needs a queue whose backlog is visible.
    pub blind: bool,
    /// Parameters whose default in the kernel differs from the registry's.
    defaults: &'static [(&'static str, &'static str)],
    /// `--eta` and `--min-interval`, if they are parameters of the law, with the parameter's name.
    options: &'static [(&'static str, &'static str)],
    /// Its state variables of a link.
    pub variables: &'static [Variable],
    /// Refuses parameters that its option cannot support, wherever the router runs.
    carries: fn(&RouterSpec) -> Result<(), Refusal>,
    /// Writes its parameters and initial state into the program's configuration.
    translate:
        fn(&RouterSpec, &LinkProperties, &mut types::fs_config, &mut types::fs_link) -> Result<(), Refusal>,
    /// Bytes that have arrived up to the last decision.
    pub input_bytes: fn(&types::fs_link) -> u64,
    /// Converts the option's fields into the registry's header.
    pub read: fn(&option::Stamp) -> Stamp,
    /// Converts the registry's header into the option's four bytes.
    pub write: fn(&Stamp) -> u32,
    /// The value that its routers announce to packets (0 if none), and the function that writes it.
    pub told: fn(&RouterSpec) -> u32,
    pub tell: fn(&mut Stamp, u32),
    /// The four bytes that no router changes, and the four bytes of an unlimited request.
    pub least: u32,
    pub most: u32,
    /// The meaning of the four bytes, for output.
    pub what: &'static str,
}

/// The hosts' laws, in the order of their numbers.
pub static LAWS: [&Law; 3] = [&rcp::LAW, &xcp::LAW, &vcp::LAW];

/// The routers' laws, in the order of their numbers: the hosts' laws, and others.
pub static ROUTERS: [&Law; 5] = [&rcp::LAW, &xcp::LAW, &vcp::LAW, &xcpb::LAW, &abc::LAW];

/// A state variable of a law on a link, with the name and unit of the registry's law.
pub struct Variable {
    pub name: &'static str,
    /// Help text for Prometheus.
    pub help: &'static str,
    pub of: fn(&types::fs_config, &types::fs_link) -> f64,
}

/// Properties of the link for the kernel's router, in addition to the law's own parameters.
#[derive(Clone, Copy, Debug)]
pub struct LinkProperties {
    /// The link's capacity, if known.
    pub rate: Option<Rate>,
    /// The limit of its queue, if known.
    pub limit: Option<Limit>,
    /// The initial weight of the law's own traffic.
    pub own_weight: f64,
    /// Share of the rate that a law without its own target utilisation uses as capacity.
    pub eta: f64,
    /// Minimum interval between decisions, for a law without a parameter for it.
    pub min_interval: Time,
}

impl LinkProperties {
    /// The rate, for a law that needs one: [`translate`] has checked that it is known.
    fn known_rate(&self) -> Rate {
        self.rate.unwrap_or(Rate::ZERO)
    }
}

impl Law {
    /// Whether its packets carry an option.
    pub fn has_option(&self) -> bool {
        self.option.is_some()
    }

    /// The option of a packet whose stamp is `value`, from a flow with an RTT of 20 ms and 20 packets in
    /// flight; empty for a law without one.
    pub fn stamped(&self, value: u32) -> Vec<u8> {
        let Some(protocol) = self.option else { return Vec::new() };
        let stamp = option::Stamp { value, rtt: option::MicrosFloat::from_micros(20_000), last: 20 };
        option::StampOption { protocol, echo: 100, stamp: Some(stamp) }.to_vec()
    }

    /// The name of its congestion control in the kernel, which allows no hyphens, on a host called `host`.
    pub fn congestion_control(&self, host: &str) -> String {
        format!("{}_{}", host.replace('-', "_"), self.name)
    }
}

impl PartialEq for Law {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl std::fmt::Debug for Law {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl serde::Serialize for Law {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

/// The hosts' law with this name.
pub fn named(name: &str) -> Option<&'static Law> {
    LAWS.into_iter().find(|law| law.name == name)
}

/// The routers' law with this name.
pub fn router_named(name: &str) -> Option<&'static Law> {
    ROUTERS.into_iter().find(|law| law.name == name)
}

/// The routers' law with this number.
pub fn numbered(number: u64) -> Option<&'static Law> {
    ROUTERS.into_iter().find(|law| u64::from(law.number) == number)
}

/// The hosts' law whose packets carry `header`.
pub fn of_header(header: Header) -> Option<&'static Law> {
    LAWS.into_iter().find(|law| law.header == header)
}

fn parse_one_of(laws: &[&'static Law], text: &str) -> Result<&'static Law, String> {
    laws.iter().copied().find(|law| law.name == text).ok_or_else(|| {
        let names: Vec<_> = laws.iter().map(|law| law.name).collect();
        let (last, others) = names.split_last().expect("there are laws");
        format!("it must be {} or {last}", others.join(", "))
    })
}

/// Parses `host enable --law`; the error lists the valid names.
pub fn parse(text: &str) -> Result<&'static Law, String> {
    parse_one_of(&LAWS, text)
}

/// Parses `router attach --law`; the error lists the valid names.
pub fn parse_router(text: &str) -> Result<&'static Law, String> {
    parse_one_of(&ROUTERS, text)
}

/// Checks that the registry's law can run on a path between the kernel's hosts.
pub fn on_path(spec: &RouterSpec) -> Result<(), Refusal> {
    let law = law_of(spec)?;
    if !law.has_option() {
        let names: Vec<_> = LAWS.iter().map(|law| law.name).collect();
        let text = format!("router: hosts of a lab do not know {}; they know {}", law.name, names.join(", "));
        return Err(Refusal(text));
    }
    (law.carries)(spec)
}

/// The configuration and initial state of the router's program for a link. Refuses a parameter that the
/// kernel's law does not support.
pub fn translate(
    spec: &RouterSpec,
    link: &LinkProperties,
) -> Result<(types::fs_config, types::fs_link), Refusal> {
    let law = law_of(spec)?;
    let name = law.name;
    match link.rate {
        None if !law.blind => {
            let refusal = format!(
                "router: {name} needs the link's capacity; set it with --rate, or use xcp-b if it is unknown"
            );
            return Err(Refusal(refusal));
        }
        Some(_) if law.blind => {
            let refusal =
                format!("--rate: {name} goes by its queue and takes no rate; leave it out, or use xcp");
            return Err(Refusal(refusal));
        }
        Some(rate) if !(1e5..=1e11).contains(&rate.bps()) => {
            return Err(Refusal(format!("router: the rate is {rate}; it must be 100kbps to 100Gbps")));
        }
        _ => {}
    }
    if !(0.01..=1.0).contains(&link.eta) {
        return Err(Refusal(format!("--eta is {}; it must be 0.01 to 1", link.eta)));
    }
    let [least, most] = parameters::TIMER;
    if !(least..=most).contains(&link.min_interval) {
        let refusal = format!("--min-interval is {}; it must be {least} to {most}", link.min_interval);
        return Err(Refusal(refusal));
    }
    let wrong = |(key, what): (&str, String)| Refusal(format!("{name} parameter `{key}` {what}"));
    spec.check().map_err(wrong)?;
    let mut config = types::fs_config { law: law.number.into(), ..Default::default() };
    let mut first = types::fs_link::default();
    config.link_rate_q16 = q16(link.known_rate().bytes_per_sec());
    (law.carries)(spec)?;
    (law.translate)(spec, link, &mut config, &mut first)?;
    Ok((config, first))
}

#[cfg(test)]
mod tests;
