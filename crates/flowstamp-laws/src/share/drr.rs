//! Deficit round robin between the classes of a link (Shreedhar and Varghese 1996).
//!
//! A class whose turn comes may send its quantum and what it has left of earlier turns; what is left when its queue
//! empties is lost. Quanta are in proportion to the weights, the smallest one a largest packet, so that a turn always
//! sends something.

/// Whose turn it is, and what each class may still send.
#[derive(Clone, Debug)]
pub struct Drr {
    mtu: f64,
    deficit: Box<[f64]>,
    turn: usize,
    /// The class whose turn it is has got its quantum.
    granted: bool,
}

impl Drr {
    /// None of the classes has anything left. `mtu_bytes` is the largest packet.
    #[must_use]
    pub fn new(classes: usize, mtu_bytes: f64) -> Self {
        Self { mtu: mtu_bytes, deficit: vec![0.0; classes].into(), turn: 0, granted: false }
    }

    /// The class whose first packet is next, of those whose sizes `heads` has.
    pub fn pick(&mut self, heads: &[Option<u32>], weights: &[f64]) -> Option<usize> {
        if heads.iter().all(Option::is_none) {
            return None;
        }
        let least = weights.iter().copied().fold(f64::INFINITY, f64::min);
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
            self.turn = (class + 1) % heads.len();
            self.granted = false;
        }
    }
}
