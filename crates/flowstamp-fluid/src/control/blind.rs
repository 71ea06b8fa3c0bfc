//! XCP-b's router law over a link whose capacity it is not told, fed with fluid instead of packets (Abrantes and Ricardo 2006,
//! section 3). It shows how fast the router fills an under-used link, and the queue that results.
//!
//! The router decides once per interval and its feedback is discrete, so this is no differential equation. Time advances in
//! equal steps, a whole number to an RTT. In each step one parcel arrives at the router and one departs with feedback.

use flowstamp_laws::queue::Limit;
use flowstamp_laws::router::{LinkView, PacketIn, PacketOut, RouterLaw, RouterView};
use flowstamp_laws::units::{Bytes, QueueLength, Time};
use flowstamp_laws::xcp::blind::{Detection, Params, Router};
use flowstamp_laws::xcp::{Encoding, Window};
use std::collections::VecDeque;

/// How senders apply the feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Senders {
    /// Rates that change at the start of an interval by its feedback, and stay until the next: figure 4's model. Its queue shows
    /// in the interval that follows.
    AtOnce,
    /// Rates that change when acks bring feedback, an RTT after the router gave it. The RTT excludes the queue, as in the
    /// paper's figure 3.
    Rates,
    /// Windows, as hosts have them: traffic that leaves the link is acknowledged an RTT later, and replaced. The RTT includes
    /// the queue.
    Windows,
}

/// A link and its router. The unit of rates is the capacity, that of queues the bandwidth-delay product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlindLink {
    /// Gains on the queue's growth rate and on its distance from `kappa`.
    pub gains: [f64; 2],
    /// Share of `q_max` that is handed out per interval; `None` uses the law's own.
    pub chi: Option<f64>,
    /// `Qmax`.
    pub q_max: f64,
    /// The queue at equilibrium; above 0.
    pub kappa: f64,
    /// How the router detects under-use.
    pub detection: Detection,
    /// How senders apply the feedback.
    pub senders: Senders,
    /// Sending rate at the start.
    pub start: f64,
    /// Steps per RTT; 1 for the senders of figure 4.
    pub parts: u32,
}

/// Traffic and queue of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Arrival rate.
    pub arrived: f64,
    /// Departure rate.
    pub left: f64,
    /// Queue at the end of the step.
    pub queue: f64,
}

/// Bandwidth-delay product in bytes and RTT in seconds. With these a step's parcel is a whole number of bytes to six digits, below
/// 2^32.
const PRODUCT: f64 = 1e8;
const RTT: f64 = 0.1;
/// Largest queue or rate that a caller may ask for, in bandwidth-delay products. The largest window is never reached with it and a
/// `chi` of 1.
const MOST: f64 = 4.0;
const MOST_WINDOW: f64 = 10.0 * MOST;

impl BlindLink {
    fn params(&self) -> Params {
        let bytes = |share: f64| Bytes::new(((share * PRODUCT) as u64).max(1));
        Params {
            alpha: self.gains[0],
            beta: self.gains[1],
            kappa: QueueLength::Bytes(bytes(self.kappa)),
            q_max: Some(bytes(self.q_max)),
            chi: self.chi,
            detection: self.detection,
            initial_interval: Some(Time::from_secs_f64(RTT)),
            ..Params::default()
        }
    }

    /// Runs `rtts` RTTs from an empty queue and returns every step.
    ///
    /// # Errors
    ///
    /// A value or a parameter of the law that is out of range, named in the message.
    pub fn steps(&self, rtts: u32) -> Result<Vec<Seen>, String> {
        for (name, value) in [("q_max", self.q_max), ("kappa", self.kappa), ("start", self.start)] {
            if !(value > 0.0 && value <= MOST) {
                return Err(format!(
                    "{name} is {value} of the bandwidth-delay product; it must be above 0 and at most {MOST}"
                ));
            }
        }
        let (least, most) = if self.senders == Senders::AtOnce { (1, 1) } else { (2, 10_000) };
        if !(least..=most).contains(&self.parts) {
            return Err(format!("{} parts of an RTT; there must be {least} to {most}", self.parts));
        }
        let params = self.params();
        Router::<Window>::check(&params).map_err(|(name, wrong)| format!("{name} {wrong}"))?;
        Ok(self.run(&params, rtts))
    }

    fn run(&self, params: &Params, rtts: u32) -> Vec<Seen> {
        let view = RouterView { capacity: None, limit: Limit::Bytes(u64::MAX), packet_bytes: 1000 };
        let mut router = Router::<Window>::new(params, &view);
        let dt = RTT / f64::from(self.parts);
        let carries = PRODUCT / f64::from(self.parts);
        let mut next = Router::<Window>::traits(params).first_timers[0].unwrap_or(Time::MAX);
        let (mut queue, mut rtt) = (0.0f64, RTT);
        // The window; for senders with a rate, what they send in an RTT.
        let (mut window, mut flight) = (self.start * PRODUCT, 0.0);
        // Acks that are due: bytes, change of the window, RTT. Each is an RTT old when it is popped.
        let mut acks = VecDeque::from(vec![(0.0, 0.0, RTT); self.parts as usize]);
        let mut seen = Vec::with_capacity((rtts * self.parts) as usize);
        for step in 0..u64::from(rtts) * u64::from(self.parts) {
            let now = Time::from_secs_f64(step as f64 * dt);
            let link = LinkView { now, queue_bytes: queue as u64, queue_packets: 0 };
            if now >= next {
                next = router.on_timer(0, link);
            }
            if self.senders == Senders::AtOnce {
                window += stamped(&mut router, link, window, window, RTT);
            } else {
                let (acked, change, of) = acks.pop_front().unwrap_or_default();
                flight -= acked;
                (window, rtt) = ((window + change).clamp(1.0, MOST_WINDOW * PRODUCT), of);
            }
            let comes = match self.senders {
                Senders::AtOnce | Senders::Rates => window * dt / RTT,
                Senders::Windows => {
                    // The first window is spread over an RTT.
                    let part = ((step + 1) as f64 * dt / RTT).min(1.0);
                    (window * part - flight).max(0.0)
                }
            };
            let stamp = Window::header(window, rtt, comes, 1e15);
            router.on_arrival(link, PacketIn::of(comes as u32, Some(&stamp)));
            let leaves = (queue + comes).min(carries);
            queue += comes - leaves;
            flight += comes;
            if self.senders != Senders::AtOnce {
                let change = stamped(&mut router, link, leaves, window, rtt);
                let waits = if self.senders == Senders::Windows { queue / PRODUCT * RTT } else { 0.0 };
                acks.push_back((leaves, change, RTT + waits));
            }
            seen.push(Seen { arrived: comes / carries, left: leaves / carries, queue: queue / PRODUCT });
        }
        seen
    }
}

/// Stamps a departing parcel and returns the change of the window that its feedback asks for.
fn stamped(router: &mut Router<Window>, link: LinkView, size: f64, window: f64, rtt: f64) -> f64 {
    let mut stamp = Window::header(window, rtt, size, 1e15);
    let packet = PacketOut { size: size as u32, stamp: &mut stamp, bits: &mut 0 };
    router.on_departure(link, packet, || 0.5);
    Window::window_change(&stamp, rtt)
}
