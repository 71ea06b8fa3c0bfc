//! Deficit round robin between the classes of a link (Shreedhar and Varghese 1996).
//!
//! In its turn a class may send its quantum plus the deficit left from earlier turns. The deficit is lost when the
//! queue empties. Quanta are proportional to the weights. The smallest quantum is the largest packet, so that every
//! turn sends something.

/// The class in turn, and the bytes that each class may still send.
#[derive(Clone, Debug)]
pub struct Drr {
    mtu: f64,
    deficit: Box<[f64]>,
    turn: usize,
    /// The class in turn has received its quantum.
    granted: bool,
}

impl Drr {
    /// Creates a scheduler in which no class has a deficit. `mtu_bytes` is the size of the largest packet.
    #[must_use]
    pub fn new(classes: usize, mtu_bytes: f64) -> Self {
        Self { mtu: mtu_bytes, deficit: vec![0.0; classes].into(), turn: 0, granted: false }
    }

    /// The class whose first packet is sent next. `heads` has the size of each class's first packet.
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
