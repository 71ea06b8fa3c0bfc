//! Flows that ignore feedback. Our hosts obey each echo that they receive, so the path forges the echoes on
//! their way back. To a router, such a flow behaves like the simulator's liars.

use super::flows::number_of;
use super::frame::{self, Segment};
use crate::law::Law;
use flowstamp_laws::liar::{Hears, Mask};
use flowstamp_laws::{Stamp, rcp, xcp};
use flowstamp_wire::option;

/// The misbehaving flows and their echoes.
#[derive(Debug)]
pub struct Liars {
    law: &'static Law,
    /// State by flow number.
    flows: Vec<Heard>,
}

#[derive(Clone, Copy, Debug)]
struct Heard {
    hears: Hears,
    /// The last echo as received, and as passed on.
    echoes: Option<[u32; 2]>,
    /// The state of the liar's law.
    best: Option<Stamp>,
}

impl Heard {
    const fn new(hears: Hears) -> Self {
        Self { hears, echoes: None, best: None }
    }

    /// Returns the echo to pass on for a received one.
    fn pass(&mut self, protocol: option::Protocol, came: u32) -> u32 {
        let [before, passed] = self.echoes.unwrap_or([came; 2]);
        let pass = match protocol {
            option::Protocol::Xcp => {
                // XCP's echo is the sum of all changes.
                let change = f64::from(came.wrapping_sub(before) as i32);
                let answer = (Stamp([0.0, 0.0, change]), 0);
                let heard = <xcp::Sender<xcp::Throughput> as Mask>::heard(self.hears, answer, &mut self.best);
                passed.wrapping_add(heard.map_or(0, |(stamp, _)| stamp.0[2] as i32 as u32))
            }
            option::Protocol::Rcp => {
                let header = rcp::Header { rate: f64::from(came), ..rcp::Header::from(Stamp([0.0; 3])) };
                let heard = <rcp::Sender as Mask>::heard(self.hears, (header.into(), 0), &mut self.best);
                heard.map_or(passed, |(stamp, _)| rcp::Header::from(stamp).rate as u32)
            }
            option::Protocol::Vcp => came,
        };
        self.echoes = Some([came, pass]);
        pass
    }
}

impl Liars {
    /// Creates one entry per flow, by how it treats feedback.
    pub fn new(law: &'static Law, hears: &[Hears]) -> Self {
        Self { law, flows: hears.iter().copied().map(Heard::new).collect() }
    }

    /// Forges the echo of a segment in the direction of the acks, if its flow is a liar.
    pub fn answer(&mut self, bytes: &mut [u8], segment: &Segment) {
        let Some(number) = number_of([segment.source, segment.destination]) else { return };
        let Some(heard) = self.flows.get_mut(number).filter(|heard| heard.hears != Hears::All) else {
            return;
        };
        let Some(protocol) = self.law.option else { return };
        let Some(mut echo) = frame::echo(bytes, segment, self.law) else { return };
        echo.value = heard.pass(protocol, echo.value);
        frame::write_echo(bytes, &echo);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_heard_of_sums_and_of_rates() {
        let passed = |protocol, hears, came: &[u32]| {
            let mut heard = Heard::new(hears);
            came.iter().map(|echo| heard.pass(protocol, *echo)).collect::<Vec<_>>()
        };
        let [xcp, rcp] = [option::Protocol::Xcp, option::Protocol::Rcp];
        assert_eq!(passed(xcp, Hears::All, &[5, 8, 2]), [5, 8, 2]);
        assert_eq!(passed(xcp, Hears::Increases, &[5, 8, 2, 2, 4]), [5, 8, 8, 8, 10]);
        assert_eq!(passed(xcp, Hears::Largest, &[5, 8, 2, 2, 4]), [5, 8, 11, 14, 17]);
        // Sums wrap.
        assert_eq!(passed(xcp, Hears::Increases, &[u32::MAX, 1, u32::MAX - 1, 1]), [u32::MAX, 1, 1, 4]);
        assert_eq!(passed(rcp, Hears::Increases, &[5, 8, 2, 9]), [5, 8, 8, 9]);
        assert_eq!(passed(rcp, Hears::Nothing, &[5, 8, 2, 9]), [5, 5, 5, 5]);
    }
}
