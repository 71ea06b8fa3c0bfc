//! Applications of groups of flows: checks, and the jitter of datagrams.

use super::{Builder, Result, error, of_full};
use crate::ScenarioError;
use crate::application::Process;
use crate::scenario::{Application, FlowGroup, Jitter};
use flowstamp_laws::sender::Recovery;
use flowstamp_laws::transport::Agreed;
use flowstamp_laws::units::{Rate, Time};

/// Default jitter of datagrams, in transmission times of one packet on the slowest link of their path.
const JITTER_PACKETS: u64 = 8;
/// Maximum jitter.
const LONGEST: Time = Time::from_secs(1);

/// The application of a group, resolved.
pub(super) struct Produces {
    /// The process that produces messages or datagrams.
    pub process: Option<Process>,
    /// Constant rate of payload, for flows with a window.
    pub rate: Option<Rate>,
    /// Upper bound of the random delay before a packet leaves its host.
    pub send_jitter: Time,
}

impl Builder<'_> {
    /// Resolves the application of a checked group whose data take these router links.
    pub(super) fn produces(&self, group: &FlowGroup, links: &[u32]) -> Result<Produces> {
        let process = self.process(group)?;
        if group.law.traits().datagrams {
            let send_jitter = self.datagram_jitter(group, process.as_ref(), links);
            return Ok(Produces { process, rate: None, send_jitter });
        }
        let rate = match &group.application {
            None => group.rate,
            Some(Application::Constant { rate: Some(rate), .. }) => Some(*rate),
            Some(_) => process.as_ref().and_then(Process::constant_rate),
        };
        let process = process.filter(|_| rate.is_none());
        Ok(Produces { process, rate, send_jitter: group.transport.send_jitter })
    }

    /// The process of each flow of a group; `None` if it always has data to send.
    pub(super) fn process(&self, group: &FlowGroup) -> Result<Option<Process>> {
        Process::new(group, self.loaded)
            .map_err(|(k, m)| ScenarioError::new(format!("flows.{}.{k}", group.name), m))
    }

    /// The jitter of datagrams: the scenario's, or by default for a periodic process [`JITTER_PACKETS`] packet times of
    /// the slowest link.
    ///
    /// Floyd and Jacobson 1992 find one packet time S enough against phase effects, but it does not make shares
    /// proportional. A place in a full queue goes to the next arriving packet, and a flow does not compete with itself.
    /// At a distance t from one of its packets, the density of its other packets falls short of its rate. With a jitter
    /// J of at least a period the shortfall is (1 - t / J) / J; with a longer period it is less. It matters up to t =
    /// S, so shares differ by at most S / J. With one packet time, a flow of 1 Mb/s beside one of 20 Mb/s gets 0.65 of
    /// its share of 10 Mb/s; with four 0.91, with eight 0.98.
    fn datagram_jitter(&self, group: &FlowGroup, process: Option<&Process>, links: &[u32]) -> Time {
        match group.jitter {
            Some(Jitter::None(_)) => return Time::ZERO,
            Some(Jitter::UpTo(time)) => return time,
            None if group.transport.send_jitter > Time::ZERO => return group.transport.send_jitter,
            None => {}
        }
        match process {
            Some(process) if process.beat() > Time::ZERO => self.default_jitter(process, links),
            _ => Time::ZERO,
        }
    }

    /// The default jitter of a process's datagrams on these router links.
    pub(super) fn default_jitter(&self, process: &Process, links: &[u32]) -> Time {
        (self.slowest_packet_time(process.packet_bytes(), links) * JITTER_PACKETS).min(LONGEST)
    }

    /// Transmission time of a packet of `bytes` bytes on the slowest of these links, rounded up to microseconds; zero
    /// if no rate is known.
    pub(super) fn slowest_packet_time(&self, bytes: f64, links: &[u32]) -> Time {
        let rates = links.iter().map(|link| self.mean_rate(&self.links[*link as usize].capacity));
        let slowest = rates.filter(|rate| rate.bps() > 0.0).min_by(|a, b| a.bps().total_cmp(&b.bps()));
        slowest
            .map_or(Time::ZERO, |rate| Time::from_micros((bytes / rate.bytes_per_sec() * 1e6).ceil() as u64))
    }

    /// Checks a group's application, except what the process itself checks.
    pub(super) fn check_application(&self, group: &FlowGroup) -> Result<()> {
        let key = |k: &str| format!("flows.{}.{k}", group.name);
        let name = group.law.name();
        if group.application.is_some() {
            of_full(key("application"), "applications but those of a constant rate")?;
        }
        let datagrams = group.law.traits().datagrams;
        let of_datagrams = [
            ("packet", group.packet.is_some()),
            ("jitter", group.jitter.is_some()),
            ("send_buffer", group.send_buffer.is_some()),
        ];
        if let Some((k, _)) = of_datagrams.iter().find(|(_, given)| !datagrams && *given) {
            let instead = match *k {
                "packet" => "the scenario's packet is the size of its packets",
                "jitter" => "set transport.send_jitter",
                _ => "its send queue is unbounded",
            };
            return error(
                key(k),
                format!("is for datagrams, and \"{name}\" has a window; leave it out: {instead}"),
            );
        }
        if let Some(Jitter::UpTo(time)) = group.jitter {
            if time > LONGEST {
                return error(key("jitter"), format!("is {time}; it must be at most {LONGEST}"));
            }
        }
        if group.jitter.is_some() && group.transport.send_jitter > Time::ZERO {
            let message = "says how long packets wait at random, and so does transport.send_jitter; leave out one of them";
            return error(key("jitter"), message);
        }
        if let Some(most) = group.send_buffer.filter(|most| *most < self.scenario.packet) {
            let packet = self.scenario.packet;
            return error(key("send_buffer"), format!("is {most}; it must hold a packet, {packet}"));
        }
        let Some(application) = &group.application else { return Ok(()) };
        let apart = [("size", group.size.is_some()), ("web", group.web.is_some())];
        if let Some((k, _)) = apart.iter().find(|(_, given)| *given) {
            let message = "says how much flows transfer, and so does application; leave out one of them";
            return error(key(k), message);
        }
        if matches!(application.kind(), "requests" | "video") && datagrams {
            let kind = application.kind();
            let message = format!(
                "is \"{kind}\", which needs every byte of a response, but \"{name}\" repairs no loss; use a law with a window"
            );
            return error(key("application.kind"), message);
        }
        let messages = !datagrams && !matches!(application, Application::Constant { .. });
        if messages && Self::counts(group) {
            let kind = application.kind();
            let message = format!(
                "is \"count\", which repairs losses only at a flow's end; \"{kind}\" needs its data in order, set \"sack\""
            );
            return error(key("transport.recovery"), message);
        }
        Ok(())
    }

    /// Whether a group's flows repair losses by count.
    fn counts(group: &FlowGroup) -> bool {
        Agreed::between(&group.transport, &group.law.traits()).recovery == Recovery::Count
    }
}
