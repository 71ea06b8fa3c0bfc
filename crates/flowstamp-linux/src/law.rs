//! The laws that the kernel's programs carry out, one file each: name and number, the registry's parameters in fixed point, the state
//! in the registry's units, and what the option says. These are the lists of them on Linux: a law of the registry that is not
//! in them, and a parameter that the kernel's law lacks, are refused by name before anything is touched.

mod fixed;
mod given;
mod parameters;
mod rcp;
mod vcp;
mod xcp;
mod xcpb;

pub use fixed::{bps, ns, q16, q32};
pub use given::{Given, given, law_of, sender};
pub use vcp::VcpSender;

use crate::bpf::router::types;
use crate::refusal::Refusal;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::{Header, RouterSpec};
use flowstamp_laws::{Rate, Stamp, Time};
use flowstamp_wire::option;

/// A law as the kernel has it.
pub struct Law {
    /// The registry's name.
    pub name: &'static str,
    /// `enum fs_law` of bpf/option.h.
    pub number: u32,
    /// What its packets carry: the stamp as laws read it, and the option as hosts write it.
    pub header: Header,
    pub option: option::Law,
    /// It knows the link by its queue alone: it takes no rate, and needs a queue that shows.
    pub blind: bool,
    /// Parameters whose default is not the registry's where the kernel carries the law out.
    defaults: &'static [(&'static str, &'static str)],
    /// `--eta` and `--min-interval`, where they are parameters of the law, by these names.
    options: &'static [(&'static str, &'static str)],
    /// What it knows of a link.
    pub variables: &'static [Variable],
    /// Refuses what its option cannot carry, whoever the router is.
    carries: fn(&RouterSpec) -> Result<(), Refusal>,
    /// Its parameters and first state, into what the program is loaded with.
    translate: fn(&RouterSpec, &Link, &mut types::fs_config, &mut types::fs_link) -> Result<(), Refusal>,
    /// Bytes that have come, as of the last decision.
    pub input_bytes: fn(&types::fs_link) -> u64,
    /// What the option carries, as the registry's law reads it.
    pub read: fn(&option::Stamp) -> Stamp,
    /// The option's four bytes, from what the registry's law has written.
    pub write: fn(&Stamp) -> u32,
    /// What its routers tell of themselves, if anything; and how they do.
    pub told: fn(&RouterSpec) -> u32,
    pub tell: fn(&mut Stamp, u32),
    /// The option's four bytes that no router changes, and those that a sender writes who asks for as much as there is.
    pub least: u32,
    pub most: u32,
    /// What they say.
    pub what: &'static str,
}

/// Every law that hosts obey, in the order of their numbers.
pub static LAWS: [&Law; 3] = [&rcp::LAW, &xcp::LAW, &vcp::LAW];

/// Every law of routers, in the order of their numbers: those, and others that write into their packets.
pub static ROUTERS: [&Law; 4] = [&rcp::LAW, &xcp::LAW, &vcp::LAW, &xcpb::LAW];

/// What a law knows of a link, by the name of the registry's law and in its units.
pub struct Variable {
    pub name: &'static str,
    /// For Prometheus.
    pub help: &'static str,
    pub of: fn(&types::fs_config, &types::fs_link) -> f64,
}

/// What the kernel's router is told of the link, beside the law's own parameters.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// What the link carries, unless nobody knows.
    pub rate: Option<Rate>,
    /// What may wait for it at the most, where that is known.
    pub limit: Option<Limit>,
    /// The law's own part of it at first.
    pub own_weight: f64,
    /// Share of the rate that a law without a target utilisation is told of.
    pub eta: f64,
    /// The shortest interval between decisions of a law without a parameter for it.
    pub min_interval: Time,
}

impl Link {
    /// The rate, for a law that cannot do without: [`translate`] has seen to it that there is one.
    fn known_rate(&self) -> Rate {
        self.rate.unwrap_or(Rate::ZERO)
    }
}

impl Law {
    /// The option of a packet of a flow with an RTT of 20 ms and 20 packets in flight, whose stamp is `value`.
    pub fn stamped(&self, value: u32) -> Vec<u8> {
        let stamp = option::Stamp { value, rtt: option::MicrosFloat::from_micros(20_000), last: 20 };
        option::StampOption { law: self.option, echo: 100, stamp: Some(stamp) }.to_vec()
    }

    /// Its congestion control's name to the kernel, which takes no hyphens in it, on a host called `host`.
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

/// Hosts' law of a name.
pub fn named(name: &str) -> Option<&'static Law> {
    LAWS.into_iter().find(|law| law.name == name)
}

/// Routers' law of a name.
pub fn router_named(name: &str) -> Option<&'static Law> {
    ROUTERS.into_iter().find(|law| law.name == name)
}

/// The law of a number.
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

/// `host enable --law`: one of them, or what would be right.
pub fn parse(text: &str) -> Result<&'static Law, String> {
    parse_one_of(&LAWS, text)
}

/// `router attach --law`.
pub fn parse_router(text: &str) -> Result<&'static Law, String> {
    parse_one_of(&ROUTERS, text)
}

/// Whether the registry's own law can run on a path between hosts of the kernel's.
pub fn on_path(spec: &RouterSpec) -> Result<(), Refusal> {
    (law_of(spec)?.carries)(spec)
}

/// What the router's program is loaded with for a link: the law's parameters and first state, all of them, or the one refused that
/// it cannot carry out.
pub fn translate(spec: &RouterSpec, link: &Link) -> Result<(types::fs_config, types::fs_link), Refusal> {
    let law = law_of(spec)?;
    let name = law.name;
    match link.rate {
        None if !law.blind => {
            let refusal = format!(
                "router: {name} has to know what the link carries; say it with --rate, or take xcp-b where nobody knows"
            );
            return Err(Refusal(refusal));
        }
        Some(_) if law.blind => {
            let refusal =
                format!("--rate: {name} goes by its queue and takes no rate; leave it out, or take xcp");
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
