//! A heap of events that lie beyond the wheel.

use super::Key;

/// A heap with four children per node, which share a cache line.
#[derive(Clone, Debug, Default)]
pub(super) struct Heap(pub(super) Vec<Key>);

const ARITY: usize = 4;

/// Capacity below which the heap does not shrink.
const FEW: usize = 1024;

impl Heap {
    /// Gives back memory after many events have left.
    pub(super) fn shrink(&mut self) {
        if self.0.capacity() > FEW && self.0.len() < self.0.capacity() / 8 {
            self.0.shrink_to(self.0.capacity() / 4);
        }
    }

    /// Time of the first event, picoseconds.
    pub(super) fn first_time(&self) -> Option<u64> {
        self.0.first().map(|k| (k >> 32) as u64)
    }

    pub(super) fn push(&mut self, key: Key) {
        let mut at = self.0.len();
        self.0.push(key);
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.0[parent] <= key {
                break;
            }
            self.0[at] = self.0[parent];
            at = parent;
        }
        self.0[at] = key;
    }

    pub(super) fn pop(&mut self) -> Option<Key> {
        let last = self.0.pop()?;
        let Some(top) = self.0.first().copied() else { return Some(last) };
        let heap = &mut self.0[..];
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            if first >= heap.len() {
                break;
            }
            let mut best = first;
            for child in first + 1..(first + ARITY).min(heap.len()) {
                if heap[child] < heap[best] {
                    best = child;
                }
            }
            if heap[best] >= last {
                break;
            }
            heap[at] = heap[best];
            at = best;
        }
        heap[at] = last;
        Some(top)
    }
}
