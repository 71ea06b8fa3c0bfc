//! Invariants that must hold between two events, asserted in builds with debug assertions.

use super::{Flow, Group, Hosts, Record, Sends};
use crate::fabric::Fabric;
use flowstamp_laws::sender::SenderLaw;
use flowstamp_laws::units::Time;

impl Hosts {
    /// Asserts that packets are conserved, selective acks are released, and no flow waits for an event that never
    /// comes.
    ///
    /// # Panics
    /// If an invariant does not hold.
    pub fn audit(&self, net: &Fabric) {
        assert_eq!(net.sent, net.arrived + net.lost + net.held(), "packets are conserved");
        assert!(net.sacks.in_use() <= net.held(), "each selective ack is that of a packet");
        // Some flows are ahead of the event loop.
        let now = net.now.max(net.reached);
        for (number, flow) in self.flows.iter().enumerate().filter(|(_, f)| f.started) {
            let group = &self.groups[flow.group as usize];
            let cwnd = flow.law.cwnd();
            let packet = f64::from(self.packet_bytes);
            assert!(
                cwnd.is_finite() && cwnd >= packet * (1.0 - 1e-9),
                "flow {number}: window of {cwnd} bytes"
            );
            let over = flow.sender.is_complete();
            assert!(
                over || flow.goes_on(now, group, &self.records[flow.record as usize], self.ack_bytes.into()),
                "flow {number} waits for nothing: {flow:?}"
            );
        }
    }
}

impl Flow {
    /// Whether a timer will cause another transmission within the maximum retransmission timeout, unless the flow waits
    /// for its application.
    fn goes_on(&self, now: Time, group: &Group, record: &Record, probe_bytes: u32) -> bool {
        // Repair by count waits up to twice the RTT.
        let srtt = self.sender.srtt();
        let probe = self.law.pacing().map_or(srtt, |pacing| pacing.probe_after(srtt, probe_bytes));
        let limit = now + group.transport().last_rto(Time::ZERO).max(srtt * 2);
        if !self.open || self.sends == Sends::Requests {
            return self.control.due() <= limit;
        }
        if self.sends == Sends::Datagrams {
            return now >= group.stops(record) || !self.pace.is_idle();
        }
        let deadline = self.sender.deadline();
        if deadline < Time::MAX {
            return self.retransmit.due() <= deadline && deadline <= limit;
        }
        // All packets sent are acknowledged, so pacing or the application holds the flow back. If the pacing gap is
        // longer than a round trip, a probe asks for a new rate unless the packet is due sooner.
        let paced = self.pace.due() <= now + (srtt * 2).max(probe);
        let probed = !self.pace.is_idle() && self.control.due() <= limit.max(now + probe);
        let delayed = self.jitter.is_some() && !self.pace.is_idle();
        // In a collective operation, a flow whose messages are all sent waits for those of others.
        // A video of which all has been fetched needs no more.
        #[cfg(feature = "full")]
        let watched = self.has_whole_video();
        #[cfg(not(feature = "full"))]
        let watched = false;
        if (group.operations.is_some() || watched)
            && self.app.as_ref().is_some_and(|app| app.available() <= self.sender.next_seq())
        {
            return true;
        }
        let produces = group.supply.is_limited() || self.app.is_some();
        paced || probed || delayed || produces && (!self.application.is_idle() || now >= group.stops(record))
    }
}
