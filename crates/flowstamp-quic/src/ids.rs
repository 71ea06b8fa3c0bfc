//! The connection IDs that a client has chosen, by which it knows datagrams of its own connection.

use quinn::{ConnectionId, ConnectionIdGenerator};
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Length of the IDs in bytes.
pub const LEN: usize = 8;

/// Random connection IDs, all of which it remembers. A connection has few.
#[derive(Clone, Debug, Default)]
pub struct OwnIds(Arc<Mutex<HashSet<[u8; LEN]>>>);

impl OwnIds {
    fn known(&self) -> MutexGuard<'_, HashSet<[u8; LEN]>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `id` is one of them, and `datagram` has it too, behind a short header.
    #[must_use]
    pub fn are_of(&self, id: &[u8], datagram: &[u8]) -> bool {
        let short = datagram.first().is_some_and(|first| first & 0x80 == 0);
        short
            && datagram.get(1..=LEN) == Some(id)
            && id.try_into().is_ok_and(|id: [u8; LEN]| self.known().contains(&id))
    }
}

impl ConnectionIdGenerator for OwnIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let mut id = [0; LEN];
        // Without randomness TLS fails before any packet leaves.
        let _ = SystemRandom::new().fill(&mut id);
        self.known().insert(id);
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        LEN
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_that_were_made_are_known() {
        let mut ids = OwnIds::default();
        let id = ids.generate_cid();
        let behind = |first: u8, id: &[u8]| [&[first][..], id, &[0; 20]].concat();
        assert!(ids.are_of(&id, &behind(0x40, &id)));
        assert!(!ids.are_of(&id, &behind(0xc0, &id)), "a long header");
        assert!(
            !ids.are_of(&id, &behind(0x40, &[1; LEN])) && !ids.are_of(&[1; LEN], &behind(0x40, &[1; LEN]))
        );
        assert!(!ids.are_of(&[], &[]) && !ids.are_of(&id[..3], &behind(0x40, &id[..3])));
    }
}
