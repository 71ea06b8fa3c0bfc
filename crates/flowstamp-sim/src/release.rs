//! When the data of a flow become available to its sender: a curve over its packets.
//!
//! ```text
//!   packet  0    (n-1)/8    2(n-1)/8    ...    n-1
//!   time    t0      t1         t2       ...     t8     from the flow's start; straight lines between the points
//! ```

use flowstamp_laws::units::Time;
use serde::{Deserialize, Serialize};

/// Number of points of a curve.
const POINTS: usize = 9;

/// The times at which a flow's packets become available, from the flow's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release([u64; POINTS]);

impl Release {
    /// The packet of a point, in a flow of `packets` packets.
    fn packet(point: usize, packets: u32) -> u32 {
        (u64::from(packets.saturating_sub(1)) * point as u64 / (POINTS as u64 - 1)) as u32
    }

    /// Takes note that a packet left at `time`. Only the first copy of a packet counts.
    #[cfg(feature = "full")]
    pub fn record(&mut self, packets: u32, packet: u32, time: Time) {
        for (point, at) in self.0.iter_mut().enumerate() {
            if *at == 0 && Self::packet(point, packets) == packet {
                *at = time.as_ps();
            }
        }
    }

    /// The curve with times counted from `start`. It never falls: a packet that was lost is not available before the
    /// next copy, and no packet is available before those in front of it.
    #[cfg(feature = "full")]
    #[must_use]
    pub fn since(self, start: Time) -> Self {
        let mut last = 0;
        Self(self.0.map(|at| {
            last = at.saturating_sub(start.as_ps()).max(last);
            last
        }))
    }

    /// When the last packet is available.
    #[must_use]
    pub fn last(&self) -> Time {
        Time::from_ps(self.0[POINTS - 1])
    }

    /// Number of packets that are available at `since`, in a flow of `packets` packets.
    #[must_use]
    pub fn available(&self, packets: u32, since: Time) -> u32 {
        let since = since.as_ps();
        let reached = self.0.partition_point(|time| *time <= since);
        match reached {
            0 => 0,
            POINTS => u32::MAX,
            _ => {
                let (from, to) = (self.0[reached - 1], self.0[reached]);
                let first = Self::packet(reached - 1, packets);
                let further = u128::from(Self::packet(reached, packets) - first);
                first + 1 + (further * u128::from(since - from) / u128::from(to - from)) as u32
            }
        }
    }

    /// When a packet becomes available, in a flow of `packets` packets.
    #[must_use]
    pub fn time_of(&self, packets: u32, packet: u32) -> Time {
        let reached = (0..POINTS).find(|point| Self::packet(*point, packets) >= packet);
        let point = reached.unwrap_or(POINTS - 1);
        let (end, to) = (Self::packet(point, packets), self.0[point]);
        if packet >= end {
            return Time::from_ps(to);
        }
        let (begin, from) = (Self::packet(point - 1, packets), self.0[point - 1]);
        let passed = u128::from(to - from) * u128::from(packet - begin);
        Time::from_ps(from + passed.div_ceil(u128::from(end - begin)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each packet is available at its time, and not a picosecond before.
        #[test]
        fn a_packet_is_available_at_its_time(
            mut times in proptest::array::uniform9(0u64..1_000_000_000),
            packets in 1u32..5_000,
            part in 0.0..1.0,
        ) {
            times.sort_unstable();
            let release = Release(times);
            let packet = (f64::from(packets) * part) as u32;
            let at = release.time_of(packets, packet);
            prop_assert!(release.available(packets, at) > packet, "{times:?} {packet} of {packets}");
            if let Some(before) = at.as_ps().checked_sub(1) {
                prop_assert!(release.available(packets, Time::from_ps(before)) <= packet, "{times:?} {packet} of {packets}");
            }
        }
    }

    /// A recorded curve is that of the host: less the way to the link, and never falling.
    #[test]
    fn a_recorded_curve_is_that_of_the_host() {
        let mut recorded = Release::default();
        for packet in 0..9 {
            recorded.record(9, packet, Time::from_nanos(100 + 10 * u64::from(packet)));
        }
        recorded.record(9, 3, Time::from_nanos(500));
        let release = recorded.since(Time::from_nanos(70));
        assert_eq!(release.time_of(9, 3), Time::from_nanos(60));
        assert_eq!(release.available(9, Time::from_nanos(59)), 3);
    }
}
