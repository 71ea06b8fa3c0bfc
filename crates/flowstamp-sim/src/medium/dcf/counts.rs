//! Counts of a cell's stations and of its medium.

use flowstamp_laws::units::Time;

/// Counts of a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Frames that the MAC has taken.
    pub offered: u64,
    /// Frames that were acknowledged.
    pub sent: u64,
    /// Frames that were given up.
    pub given_up: u64,
    /// Transmissions begun, of a frame or of the RTS that announces it.
    pub attempts: u64,
    /// Attempts that collided.
    pub collisions: u64,
    /// Attempts whose data frame was lost by an error.
    pub errors: u64,
    /// Attempts that repeat a failed one.
    pub retries: u64,
    /// Time spent sending data frames and RTSs, successful or not.
    pub airtime: Time,
    /// Sum of the times from offering a frame until it was sent or given up. Divide by `sent + given_up` for the mean.
    pub delay: Time,
    /// Turns with A-MPDUs that an ack or a block ack ended.
    pub exchanges: u64,
    /// Frames in these turns and in those that were lost by errors, repeated ones included.
    pub mpdus: u64,
    /// Those of them that were lost by errors.
    pub mpdus_lost: u64,
}

/// Counts of a medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Medium {
    /// Time in exchanges, including the gaps between their frames, and in collisions.
    pub busy: Time,
    /// All other time.
    pub idle: Time,
    /// Exchanges completed by an ack.
    pub exchanges: u64,
    /// Collisions, of two stations or more.
    pub collisions: u64,
    /// Exchanges whose data frame was lost by an error.
    pub errors: u64,
}
