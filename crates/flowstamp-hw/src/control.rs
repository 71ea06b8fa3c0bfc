//! One driver per law. Each ends a slot on a port, hands the slot's sums to the Rust law, and writes what the law decides.
//!
//! A law counts packets one by one and does not care how many make up a sum. A slot is therefore one packet of its bytes
//! that states the mean RTT. The laws' text says which sums enter their equations; all of them survive this.
//!
//! A driver refuses, by name, each parameter of its law that the circuits cannot carry out.
//!
//! Deviations (laws say / we do / because):
//! 1. XCP measures the persistent queue over a propagation delay / over a slot / a slot is one RTT.

mod refusals;

use crate::{COMMIT, Registers, SNAPSHOT, at, read_long, write_long};
use flowstamp_laws::link::LinkView;
use flowstamp_laws::router::{PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::xcp::Throughput;
use flowstamp_laws::{Rate, Refused, Stamp, Time, rcp, vcp, xcp};

/// Seconds in a step of XCP's X.
const X_STEP_S: f64 = 1.0 / (1u64 << 28) as f64;
/// Seconds in a step of XCP's RTT.
const RTT_STEP_S: f64 = 1.0 / (1u64 << 20) as f64;

/// The counters of a port over one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Bytes that arrived.
    pub input_bytes: u32,
    /// The queue at its end, bytes.
    pub queue_bytes: u32,
    /// Counters that have reached their end.
    pub overflow: u32,
}

/// Ends the slot and reads what it counted.
fn close(port: &mut impl Registers) -> Slot {
    port.write(at::CONTROL, SNAPSHOT);
    Slot {
        input_bytes: port.read(at::INPUT),
        queue_bytes: port.read(at::QUEUE),
        overflow: port.read(at::OVERFLOW),
    }
}

fn view(now: Time, queue_bytes: u32) -> LinkView {
    LinkView { now, queue_bytes: queue_bytes.into(), queue_packets: 0 }
}

/// Sets the time to the next interrupt. A slot that is too long for the register has no interrupt: the caller uses a timer
/// of its own.
fn sleep(port: &mut impl Registers, wait: Time) {
    let micros = (wait.as_secs_f64() * 1e6).round().max(1.0) as u32;
    port.write(at::SLOT, if micros > u16::MAX.into() { 0 } else { micros });
}

/// RCP on a port.
#[derive(Clone, Debug)]
pub struct Rcp {
    law: rcp::Router,
}

impl Rcp {
    /// Starts the law, and writes its first rate and slot.
    ///
    /// # Errors
    ///
    /// The first parameter that is invalid or that the hardware cannot carry out.
    pub fn new(
        params: &rcp::router::Params,
        capacity: Rate,
        port: &mut impl Registers,
    ) -> Result<Self, Refused> {
        refusals::rcp(params)?;
        let first = rcp::Router::traits(params).first_timers[0].unwrap_or(params.max_interval);
        let mut this = Self { law: rcp::Router::new(params, &RouterView::of(capacity)) };
        this.offer(port);
        sleep(port, first);
        Ok(this)
    }

    /// The law.
    #[must_use]
    pub fn law(&self) -> &rcp::Router {
        &self.law
    }

    /// Ends a slot at `now` and returns when the next one ends.
    pub fn slot(&mut self, now: Time, port: &mut impl Registers) -> Time {
        let slot = close(port);
        let packets = port.read(at::RCP_RTT_PACKETS);
        // Sums that have reached their end say nothing of the mean.
        let rtt_s = if packets == 0 || slot.overflow & 0b110 != 0 {
            0.0
        } else {
            f64::from(port.read(at::RCP_SUM_RTT)) * 1e-6 / f64::from(packets)
        };
        let stamp = rcp::Header { rate: 0.0, rtt_s, age_bytes: 0.0 }.into();
        let link = view(now, slot.queue_bytes);
        self.law.on_arrival(link, PacketIn::of(slot.input_bytes, Some(&stamp)));
        let next = self.law.on_timer(0, link);
        self.offer(port);
        sleep(port, next.saturating_sub(now));
        next
    }

    /// Writes the rate that a packet which asks for everything gets: rounded down, because zero means no rate.
    fn offer(&mut self, port: &mut impl Registers) {
        let mut stamp = rcp::Header { rate: f64::INFINITY, rtt_s: 0.0, age_bytes: 0.0 }.into();
        let packet = PacketOut { size: 0, stamp: &mut stamp, bits: &mut 0 };
        self.law.on_departure(view(Time::ZERO, 0), packet, || 0.0);
        port.write(at::RCP_RATE, ((rcp::Header::from(stamp).rate / 1e3) as u32).max(1));
    }
}

/// XCP in the Internet-Draft's form on a port.
#[derive(Clone, Debug)]
pub struct Xcp {
    law: xcp::Router<Throughput>,
}

impl Xcp {
    /// Starts the law. In its first slot it gives and takes nothing.
    ///
    /// # Errors
    ///
    /// Those of [`Rcp::new`].
    pub fn new(
        params: &xcp::router::Params,
        capacity: Rate,
        port: &mut impl Registers,
    ) -> Result<Self, Refused> {
        refusals::xcp(params)?;
        let law = xcp::Router::new(params, &RouterView::of(capacity));
        let first = xcp::Router::<Throughput>::traits(params).first_timers[0];
        sleep(port, first.unwrap_or(params.min_interval));
        Ok(Self { law })
    }

    /// The law.
    #[must_use]
    pub fn law(&self) -> &xcp::Router<Throughput> {
        &self.law
    }

    /// Ends a slot at `now` and returns when the next one ends.
    pub fn slot(&mut self, now: Time, port: &mut impl Registers) -> Time {
        let slot = close(port);
        let (x_bytes, least_queue) = (port.read(at::XCP_X_BYTES), port.read(at::XCP_LEAST_QUEUE));
        let (sum_x, sum_x_rtt) = (read_long(port, at::XCP_SUM_X), read_long(port, at::XCP_SUM_X_RTT));
        let least = view(now, least_queue.min(slot.queue_bytes));
        if sum_x > 0 && slot.overflow == 0 {
            let rtt_s = sum_x_rtt as f64 / sum_x as f64 * RTT_STEP_S;
            let stamp = Stamp([sum_x as f64 * X_STEP_S, rtt_s, 0.0]);
            self.law.on_arrival(least, PacketIn::of(x_bytes, Some(&stamp)));
        }
        self.law.on_arrival(least, PacketIn::of(slot.input_bytes.saturating_sub(x_bytes), None));
        let link = view(now, slot.queue_bytes);
        self.law.on_timer(1, link);
        let next = self.law.on_timer(0, link);
        self.hand_out(port);
        sleep(port, next.saturating_sub(now));
        next
    }

    /// Writes gains and pools, which count together.
    fn hand_out(&self, port: &mut impl Registers) {
        let (mut give, mut take) = (0.0, 0.0);
        self.law.variables(&mut |name, value| match name {
            "xi_pos" => give = value,
            "xi_neg" => take = value,
            _ => {}
        });
        let (pos, neg) = self.law.residues();
        port.write(at::XCP_GIVE, gain(give * 65536.0 * X_STEP_S));
        port.write(at::XCP_TAKE, gain(take * 65536.0));
        write_long(port, at::XCP_POOL_POS, (pos * 65536.0) as u64);
        write_long(port, at::XCP_POOL_NEG, (neg * 65536.0) as u64);
        port.write(at::CONTROL, COMMIT);
    }
}

/// A gain as the registers have it: `mantissa 2^(16 - shift)`, rounded down.
#[must_use]
pub fn gain(value: f64) -> u32 {
    if value <= 0.0 {
        return 0;
    }
    let exponent = value.log2().floor() as i32 + 1;
    let shift = 40 - exponent;
    if shift < 0 {
        return 0xff_ffff;
    }
    if shift > 127 {
        return 0;
    }
    // A power of two may round up to 25 bits.
    let mantissa = (value * 2f64.powi(24 - exponent)) as u32;
    (shift as u32) << 24 | mantissa.min(0xff_ffff)
}

/// VCP on a port.
#[derive(Clone, Debug)]
pub struct Vcp {
    law: vcp::Router,
    /// Bit 2 of the register CODE.
    any: u32,
}

impl Vcp {
    /// Starts the law.
    ///
    /// # Errors
    ///
    /// Those of [`Rcp::new`].
    pub fn new(
        params: &vcp::router::Params,
        capacity: Rate,
        port: &mut impl Registers,
    ) -> Result<Self, Refused> {
        refusals::vcp(params)?;
        let this = Self {
            law: vcp::Router::new(params, &RouterView::of(capacity)),
            any: u32::from(params.mark_others) << 2,
        };
        let t_rho = vcp::Router::traits(params).first_timers[0].unwrap_or(Time::from_millis(200));
        port.write(at::VCP_T_RHO, (t_rho.as_secs_f64() * 1e6) as u32);
        port.write(at::VCP_CODE, this.any | u32::from(vcp::Code::Low.bits()));
        sleep(port, t_rho);
        Ok(this)
    }

    /// The law.
    #[must_use]
    pub fn law(&self) -> &vcp::Router {
        &self.law
    }

    /// Samples the queue and returns when to sample it next.
    pub fn sample(&mut self, now: Time, port: &mut impl Registers) -> Time {
        let queue = port.read(at::QUEUE_NOW);
        self.law.on_timer(1, view(now, queue))
    }

    /// Ends a slot at `now` and returns when the next one ends.
    pub fn slot(&mut self, now: Time, port: &mut impl Registers) -> Time {
        let slot = close(port);
        let link = view(now, slot.queue_bytes);
        self.law.on_arrival(link, PacketIn::of(slot.input_bytes, None));
        let next = self.law.on_timer(0, link);
        let mut bits = vcp::Code::Low.bits();
        let packet = PacketOut { size: 0, stamp: &mut Stamp::default(), bits: &mut bits };
        self.law.on_departure(link, packet, || 1.0);
        port.write(at::VCP_CODE, self.any | u32::from(bits));
        next
    }
}
