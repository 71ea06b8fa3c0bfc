//! Applications of groups of flows: what may be asked of them, and the jitter of datagrams.

use super::{Builder, Result, error, of_full};
use crate::ScenarioError;
use crate::application::Process;
use crate::scenario::{Application, FlowGroup, Jitter};
use flowstamp_laws::sender::Recovery;
use flowstamp_laws::transport::Agreed;
use flowstamp_laws::units::{Rate, Time};

/// Jitter that datagrams have by default, in times that the slowest link on their way takes for one.
const JITTER_PACKETS: u64 = 8;
/// The longest jitter.
const LONGEST: Time = Time::from_secs(1);

/// What a group's application comes to.
pub(super) struct Produces {
    /// What its flows produce by messages, or as datagrams.
    pub process: Option<Process>,
    /// The constant rate of payload of flows with a window.
    pub rate: Option<Rate>,
    /// Up to so much later than it may does a packet leave.
    pub send_jitter: Time,
}

impl Builder<'_> {
    /// What the application of a group does that has been checked, whose data take these router links.
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

    /// What each of a group's flows produces, if there is an end to it.
    pub(super) fn process(&self, group: &FlowGroup) -> Result<Option<Process>> {
        Process::new(group, self.loaded)
            .map_err(|(k, m)| ScenarioError::new(format!("flows.{}.{k}", group.name), m))
    }

    /// The jitter of datagrams: as the scenario has it, or by default of those with a beat [`JITTER_PACKETS`] times as long as the slowest link takes for
    /// a packet.
    ///
    /// Floyd and Jacobson 1992 find one packet time S enough against phase effects. It does not make shares proportional. A place in a full
    /// queue goes to the next packet that comes, and a flow does not compete with itself: at a distance t from one of its packets the density of its
    /// others falls short of its rate. With a jitter J of a beat or more that is by (1 - t / J) / J, with a slower beat less. It matters up to t = S,
    /// so that shares differ by S / J at the most: with one packet time a flow of 1 Mb/s beside one of 20 Mb/s gets 0.65 of its share of
    /// 10 Mb/s, with four 0.91, with eight 0.98.
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

    /// The jitter of datagrams of a process that take these router links, if the scenario does not say it.
    pub(super) fn default_jitter(&self, process: &Process, links: &[u32]) -> Time {
        (self.slowest_packet_time(process.packet_bytes(), links) * JITTER_PACKETS).min(LONGEST)
    }

    /// How long the slowest of some router links takes for a packet of so many bytes, rounded up to microseconds; zero where nothing is known of it.
    pub(super) fn slowest_packet_time(&self, bytes: f64, links: &[u32]) -> Time {
        let rates = links.iter().map(|link| self.mean_rate(&self.links[*link as usize].capacity));
        let slowest = rates.filter(|rate| rate.bps() > 0.0).min_by(|a, b| a.bps().total_cmp(&b.bps()));
        slowest
            .map_or(Time::ZERO, |rate| Time::from_micros((bytes / rate.bytes_per_sec() * 1e6).ceil() as u64))
    }

    /// What may be asked of a group's application, apart from what the process itself refuses.
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
                _ => "what its window does not allow waits without bound",
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
        if matches!(application, Application::Requests { .. }) && datagrams {
            let message = format!(
                "is \"requests\", whose responses must come as a whole; \"{name}\" repairs no loss, take a law with a window"
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

    /// Whether a group's flows make up for losses at their end.
    fn counts(group: &FlowGroup) -> bool {
        Agreed::between(&group.transport, &group.law.traits()).recovery == Recovery::Count
    }
}
