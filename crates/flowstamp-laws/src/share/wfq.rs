//! Weighted fair queueing between the classes of a link.
//!
//! ```text
//!   tag = max(tag of the class's previous packet, v) + size / weight    on arrival
//!   the smallest tag is next; v is the tag of the packet in transmission
//! ```
//!
//! Deviations:
//! 1. Parekh and Gallager's virtual time follows a fluid server. We take the tag in transmission (self-clocked fair
//!    queueing, Golestani 1994). It does not need the capacity, which may vary. Two backlogged classes stay within
//!    `L/w_1 + L/w_2` of each other for packets of at most `L`.
//! 2. A packet keeps its tag from the weights at its arrival.

use std::collections::VecDeque;

/// Tags of the queued packets.
#[derive(Clone, Debug)]
pub struct Wfq {
    tags: Box<[VecDeque<f64>]>,
    last: Box<[f64]>,
    virtual_time: f64,
}

impl Wfq {
    /// Creates a scheduler with empty queues.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        Self {
            tags: vec![VecDeque::new(); classes].into(),
            last: vec![0.0; classes].into(),
            virtual_time: 0.0,
        }
    }

    /// Adds a packet of `size` bytes to the queue of `class`.
    pub fn enqueue(&mut self, class: usize, size: u32, weight: f64) {
        let tag = self.last[class].max(self.virtual_time) + f64::from(size) / weight;
        self.last[class] = tag;
        self.tags[class].push_back(tag);
    }

    /// Removes the packet that is sent next, and returns its class.
    pub fn pick(&mut self) -> Option<usize> {
        // At equal tags the lower class is first.
        let mut next: Option<(usize, f64)> = None;
        for (class, tags) in self.tags.iter().enumerate() {
            if let Some(tag) = tags.front().filter(|tag| next.is_none_or(|(_, least)| **tag < least)) {
                next = Some((class, *tag));
            }
        }
        let (class, _) = next?;
        self.virtual_time = self.tags[class].pop_front()?;
        if self.tags.iter().all(VecDeque::is_empty) {
            // All queues are empty: reset the tags, so that they do not grow for ever.
            self.last.fill(0.0);
            self.virtual_time = 0.0;
        }
        Some(class)
    }
}
