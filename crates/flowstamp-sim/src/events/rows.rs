//! Events that wait for their turn of the wheel.

use super::NONE;

/// A pending event that waits for its turn of the wheel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub time: u64,
    pub source: u32,
}

/// Events of one turn in two cache lines, and the index of the next row. They are read once and all together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub events: [Waiting; 7],
    pub len: u32,
    next: u32,
}

const NO_EVENTS: [Waiting; 7] = [Waiting { time: 0, source: 0 }; 7];

/// Rows of events. Each is in the list of a turn or in the list of unused rows.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    rows: Vec<Row>,
    /// First unused row.
    free: u32,
}

impl Default for Rows {
    fn default() -> Self {
        Self { rows: Vec::new(), free: NONE }
    }
}

impl Rows {
    /// Adds an event to the list that begins with `first`. Returns the list's new first row.
    #[inline]
    pub(super) fn push(&mut self, first: u32, event: Waiting) -> u32 {
        if let Some(row) = self.rows.get_mut(first as usize) {
            if let Some(place) = row.events.get_mut(row.len as usize) {
                *place = event;
                row.len += 1;
                return first;
            }
        }
        let mut new = Row { events: NO_EVENTS, len: 1, next: first };
        new.events[0] = event;
        let at = self.free;
        if let Some(row) = self.rows.get_mut(at as usize) {
            self.free = row.next;
            *row = new;
            return at;
        }
        self.rows.push(new);
        (self.rows.len() - 1) as u32
    }

    /// Takes the first row of a list and advances `first` to the next row.
    #[inline]
    pub(super) fn take(&mut self, first: &mut u32) -> Option<Row> {
        let row = self.rows.get_mut(*first as usize)?;
        let taken = *row;
        row.next = self.free;
        self.free = std::mem::replace(first, taken.next);
        Some(taken)
    }

    /// The events in the list that begins with `first`.
    pub(super) fn list(&self, first: u32) -> impl Iterator<Item = Waiting> + '_ {
        let rows =
            std::iter::successors(self.rows.get(first as usize), |row| self.rows.get(row.next as usize));
        rows.flat_map(|row| row.events[..row.len as usize].iter().copied())
    }
}
