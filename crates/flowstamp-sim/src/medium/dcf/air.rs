//! Durations of frames and exchanges.

use super::Params;
use flowstamp_laws::units::{Rate, Time};
use flowstamp_scenario::wireless::{Preamble, Rules};

/// Bytes of control frames, including their FCS.
const ACK: u64 = 14;
const CTS: u64 = 14;
const RTS: u64 = 20;

/// Times and rates of a cell, already scaled by `scale`.
#[derive(Clone, Debug)]
pub(super) struct Air {
    pub slot: Time,
    pub sifs: Time,
    pub difs: Time,
    /// Replaces DIFS after a frame that could not be read.
    pub eifs: Time,
    plcp: Time,
    plcp_short: Time,
    symbol: Time,
    service_bits: f64,
    extension: Time,
    /// The PHY's lowest rate.
    pub lowest: Rate,
    /// Basic rates, which control frames use, in ascending order.
    basic: Vec<Rate>,
    control: Option<Rate>,
    /// How long a station waits for an answer; `None` for the time that the rules give.
    pub ack_timeout: Option<Time>,
    /// Bytes of a data frame's headers and FCS, on top of the packet.
    pub(super) overhead: u64,
    pub(super) rts_threshold: u64,
    scale: f64,
    rules: Rules,
}

/// Times of an exchange, `RTS CTS DATA ACK` or `DATA ACK`, counted from its beginning.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exchange {
    /// An RTS opens the exchange.
    pub rts: bool,
    /// When the first frame ends, which is also how long a collision lasts.
    pub first: Time,
    /// When the data frame ends.
    pub data: Time,
    /// End of the ack.
    pub ack: Time,
    /// Time until which the other stations defer. It is the end of the ack. Under ns-2's rules it may be later, because
    /// frames announce whole microseconds.
    pub nav: Time,
    /// When the sender gives up waiting for an ack of its data frame.
    pub timeout: Time,
    /// When the sender gives up waiting for an answer to its first frame.
    pub first_timeout: Time,
    /// Time for which the sender itself transmits.
    pub sent: Time,
    /// The data frame's rate.
    pub rate: Rate,
}

impl Air {
    pub fn new(p: &Params) -> Self {
        let scale = p.scale.get();
        let (phy, slower) = if p.scale_plcp { (scale, 1.0 / scale) } else { (1.0, 1.0) };
        let scaled = |rate: &Rate| *rate * scale;
        let mut basic: Vec<_> = p.basic_rates.iter().map(scaled).collect();
        basic.sort_by(|a, b| a.bps().total_cmp(&b.bps()));
        let sifs = p.sifs.scale(1.0 / scale);
        let slot = p.slot.scale(1.0 / scale);
        let mut air = Self {
            slot,
            sifs,
            difs: sifs + slot * 2,
            eifs: Time::ZERO,
            plcp: p.plcp.scale(slower),
            plcp_short: if p.preamble == Preamble::Short { p.plcp_short } else { p.plcp }.scale(slower),
            symbol: p.symbol.scale(slower),
            service_bits: f64::from(p.service_bits),
            extension: p.signal_extension.scale(slower),
            lowest: p.mandatory_rate * phy,
            basic,
            control: p.control_rate.as_ref().map(scaled),
            ack_timeout: p.ack_timeout,
            overhead: p.overhead(),
            rts_threshold: p.rts_threshold.get(),
            scale,
            rules: p.rules,
        };
        let eifs = p.eifs.unwrap_or(sifs + air.frame(ACK, air.lowest) + air.difs);
        air.eifs = match p.rules {
            Rules::Standard => eifs,
            // ns-2 implements EIFS as a NAV in whole microseconds, and DIFS follows it.
            Rules::Ns2 => nearest_microsecond(eifs) + air.difs,
        };
        air
    }

    /// A configured rate, scaled.
    pub fn scaled(&self, rate: Rate) -> Rate {
        rate * self.scale
    }

    /// Duration of a frame of `bytes` bytes.
    pub fn frame(&self, bytes: u64, rate: Rate) -> Time {
        let bits = 8.0 * bytes as f64 + self.service_bits;
        let payload = if self.symbol == Time::ZERO {
            Time::from_secs_f64(bits / rate.bps())
        } else {
            // The margin absorbs rounding: 54 Mb/s times 4 us may not be exactly 216 bits in floating point.
            let symbols = bits / (rate.bps() * self.symbol.as_secs_f64());
            self.symbol * (symbols - 1e-9).ceil() as u64
        };
        self.preamble(rate) + payload + self.extension
    }

    /// Duration of preamble and PLCP header of a frame at `rate`.
    pub fn preamble(&self, rate: Rate) -> Time {
        if rate.bps() > self.lowest.bps() { self.plcp_short } else { self.plcp }
    }

    /// Duration of preamble and PLCP header at the lowest rate.
    pub fn longest_preamble(&self) -> Time {
        self.plcp
    }

    /// The value of a frame's duration field, microseconds.
    pub fn microseconds(&self, time: Time) -> u64 {
        match self.rules {
            Rules::Standard => time.as_ps().div_ceil(1_000_000), // 802.11-2012, 8.3.1.2
            Rules::Ns2 => nearest_microsecond(time).as_ps() / 1_000_000,
        }
    }

    /// Rate of the answer to a frame at `rate`, or of the RTS that announces one.
    pub fn control(&self, rate: Rate) -> Rate {
        self.control.unwrap_or_else(|| {
            let below = self.basic.iter().rev().find(|b| b.bps() <= rate.bps());
            // 802.11-2012, 9.7.6.5.2: where no basic rate is low enough, a mandatory rate that is. The frame's own rate
            // stands for it.
            *below.unwrap_or(&rate)
        })
    }

    /// The exchange for a packet of `packet` bytes.
    #[inline(always)] // into the path of cells without A-MPDUs
    pub fn exchange(&self, packet: u32, rate: Rate) -> Exchange {
        let bytes = u64::from(packet) + self.overhead;
        self.exchange_of(bytes, ACK, bytes > self.rts_threshold, rate)
    }

    /// The exchange for a transmission of `bytes` bytes that an answer of `ack` bytes acknowledges.
    #[inline(always)] // likewise
    pub(super) fn exchange_of(&self, bytes: u64, ack: u64, rts: bool, rate: Rate) -> Exchange {
        let control = self.control(rate);
        let (data, ack) = (self.frame(bytes, rate), self.frame(ack, control));
        let answer = self.sifs + ack;
        let (first, opening, answer_to_first) = if rts {
            let (rts, cts) = (self.frame(RTS, control), self.frame(CTS, control));
            (rts, rts + self.sifs + cts + self.sifs, self.sifs + cts)
        } else {
            (data, Time::ZERO, answer)
        };
        let end = opening + data;
        let mut nav = end + answer;
        let mut slack = Time::ZERO;
        if self.rules == Rules::Ns2 {
            nav = nav.max(end + nearest_microsecond(answer));
            if rts {
                let announced = nearest_microsecond(answer_to_first + self.sifs + data + answer);
                let answered = nearest_microsecond(announced.saturating_sub(answer_to_first));
                nav = nav.max(first + announced).max(first + answer_to_first + answered);
            }
            slack = Time::from_micros(4); // DSSS_MaxPropagationDelay, both ways
        }
        Exchange {
            rts,
            first,
            data: end,
            ack: end + answer,
            nav,
            timeout: end + self.ack_timeout.unwrap_or(answer + slack),
            first_timeout: first + self.ack_timeout.unwrap_or(answer_to_first + slack),
            sent: data + if rts { first } else { Time::ZERO },
            rate,
        }
    }
}

/// Rounds a duration as ns-2 does when it writes it into a frame.
fn nearest_microsecond(time: Time) -> Time {
    Time::from_micros((time.as_ps() + 500_000) / 1_000_000)
}
