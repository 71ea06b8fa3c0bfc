//! Headers that packets of a governed link carry across a cloud.

use crate::packet::{DATA, Packet};
use flowstamp_laws::Stamp;
use flowstamp_laws::registry::Header;

/// A cloud in which packets of a governed link carry the governing law's header.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// The header and its current stamp.
    pub stamp: (Header, Stamp),
    /// The link at whose end packets leave the cloud.
    pub egress: u32,
    /// Sum of the last words of the stamps that have left the cloud.
    pub feedback: f64,
}

impl Cloud {
    /// Puts the header on a packet that has none.
    pub(super) fn put_on(&self, packet: &mut Packet) {
        if packet.flags & DATA != 0 && packet.header == Header::Plain {
            (packet.header, packet.stamp) = self.stamp;
        }
    }

    /// Takes the header off a packet.
    pub fn take_off(&mut self, packet: &mut Packet) {
        if packet.flags & DATA != 0 && packet.header == self.stamp.0 {
            self.feedback += packet.stamp.0[2];
            (packet.header, packet.stamp) = (Header::Plain, Stamp::default());
        }
    }
}
