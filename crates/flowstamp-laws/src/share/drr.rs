//! Deficit round robin between the classes of a link (Shreedhar and Varghese 1996).
//!
//! A class whose turn comes may send its quantum and what it has left of earlier turns; what is left when its queue
//! empties is lost. Quanta are in proportion to the weights, the smaller one a largest packet, so that a turn always
//! sends something.

use super::CLASSES;

/// Whose turn it is, and what each class may still send.
#[derive(Clone, Debug)]
pub struct Drr {
    mtu: f64,
    deficit: [f64; CLASSES],
    turn: usize,
    /// The class whose turn it is has got its quantum.
    granted: bool,
}

impl Drr {
    /// No class has anything left. `mtu_bytes` is the largest packet.
    #[must_use]
    pub fn new(mtu_bytes: f64) -> Self {
        Self { mtu: mtu_bytes, deficit: [0.0; CLASSES], turn: 0, granted: false }
    }

    /// The class whose first packet is next, of those whose sizes `heads` has.
    pub fn pick(&mut self, heads: [Option<u32>; CLASSES], weights: [f64; CLASSES]) -> Option<usize> {
        if heads.iter().all(Option::is_none) {
            return None;
        }
        let least = weights[0].min(weights[1]);
        loop {
            let class = self.turn;
            match heads[class] {
                None => self.deficit[class] = 0.0,
                Some(size) => {
                    if !self.granted {
                        self.granted = true;
                        self.deficit[class] += self.mtu * weights[class] / least;
                    }
                    if self.deficit[class] >= f64::from(size) {
                        self.deficit[class] -= f64::from(size);
                        return Some(class);
                    }
                }
            }
            self.turn = (class + 1) % CLASSES;
            self.granted = false;
        }
    }
}
