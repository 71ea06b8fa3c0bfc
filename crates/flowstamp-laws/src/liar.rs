//! Senders that lie to routers or ignore feedback, for tests of what a misbehaving stack does to other flows.
//!
//! A liar wraps an honest sender. It forges the headers of its packets, and [`Hears`] decides how it takes feedback:
//!
//! ```text
//!   says     forged RTT, packets in flight, wish; VCP: the two bits that it writes
//!   hears    all        obeys: only its headers are false
//!            increases  ignores decreases; RCP: ignores rates below the highest so far; VCP: takes overload as high load
//!            largest    takes each answer as the largest so far, a replay; VCP: takes each as low load, which is invented
//!            nothing    ignores answers and losses: it stays at its first window, or with RCP at the first rate
//!   pace     sends at this rate, whatever the feedback
//! ```
//!
//! No paper defines these senders. Section 7 of Katabi 2002 says that they have to be policed, which
//! `share/police.rs` does.

use crate::rcp;
use crate::sender::{
    AS_MUCH_AS_THERE_IS, Ack, Congestion, Feedback, FlowView, Pacing, SenderLaw, SenderTraits,
};
use crate::stamp::Stamp;
use crate::units::{Rate, Time};
use crate::vcp::{self, header::Code};
use crate::xcp::{self, Encoding};
use crate::{Open, Refused, check_times, within};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which feedback the sender follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Hears {
    /// It follows all feedback.
    All,
    /// It ignores decreases. RCP: it ignores rates below the highest so far. VCP: it takes overload as high load.
    Increases,
    /// It takes each answer as the largest so far. VCP: it takes each as low load.
    Largest,
    /// It ignores answers and losses.
    Nothing,
}

crate::params! {
    /// Parameters that a scenario may set.
    pub struct Params {
        /// Which feedback the sender follows.
        pub hears: Hears = Hears::Increases,
        /// Rate at which the sender sends, whatever the feedback; 1bps to 1Tbps. Its window and `most` still limit the
        /// packets in flight. Default: the pace of the honest law.
        pub pace: Option<Rate> = None,
        /// XCP and RCP: RTT that its headers state, up to 1000s; `0s` states none. Default: the RTT that it measures.
        pub rtt: Option<Time> = None,
        /// XCP: window that its headers state, in packets, above 0. Default: its actual window.
        pub window: Option<f64> = None,
        /// XCP and RCP: rate that its headers ask for; 1bps to 1Tbps. Default: unlimited.
        pub wish: Option<Rate> = None,
        /// VCP: code that it writes into the two ECN bits, 0 to 3. With 0, no router writes another code. Default: 1, as
        /// honest senders write.
        pub code: Option<u8> = None,
        /// VCP: the interval `t_rho`, which all routers and senders of a network share. Default: 2.5 times the mean RTT
        /// of the flows.
        pub t_rho: Option<Time> = None,
        /// Maximum number of packets in flight; 1 to 10000000. It stands for the sender's memory.
        pub most: f64 = 10_000.0,
    }
}

impl Params {
    /// Names of the parameters that are set and apply only to some headers.
    fn named(&self) -> impl Iterator<Item = &'static str> {
        let set = [
            ("rtt", self.rtt.is_some()),
            ("window", self.window.is_some()),
            ("wish", self.wish.is_some()),
            ("code", self.code.is_some()),
            ("t_rho", self.t_rho.is_some()),
        ];
        set.into_iter().filter(|(_, set)| *set).map(|(name, _)| name)
    }
}

/// A law that a liar can wrap.
pub trait Mask: SenderLaw {
    /// Parameters that apply to its header.
    const LIES: &'static [&'static str];
    /// Parameters of the honest law.
    fn honest(lies: &Params) -> Self::Params;
    /// The forged stamp of a packet.
    fn forged(&self, lies: &Params, packet_bytes: f64, now: Time, srtt: Time) -> Stamp;
    /// The forged bits of a packet.
    fn forged_bits(&self, lies: &Params) -> u16 {
        let _ = lies;
        self.bits()
    }
    /// The answer as the liar takes it; `None` if it ignores it. `best` is the largest answer so far.
    fn heard(hears: Hears, answer: (Stamp, u16), best: &mut Option<Stamp>) -> Option<(Stamp, u16)>;
    /// [`SenderLaw::open`].
    fn open(lies: &mut Params) -> Open<'_> {
        let _ = lies;
        Open::default()
    }
}

impl<E: Encoding> Mask for xcp::Sender<E> {
    const LIES: &'static [&'static str] = &["rtt", "window", "wish"];

    fn honest(lies: &Params) -> xcp::sender::Params {
        xcp::sender::Params { desired_rate: lies.wish, ..Default::default() }
    }

    fn forged(&self, lies: &Params, packet_bytes: f64, _: Time, srtt: Time) -> Stamp {
        let rtt_s = lies.rtt.unwrap_or(srtt).as_secs_f64();
        let window = lies.window.map_or(self.stamped_window(), |packets| packets * packet_bytes);
        let wanted = lies.wish.map_or(AS_MUCH_AS_THERE_IS, Rate::bytes_per_sec) * rtt_s;
        E::header(
            window,
            rtt_s,
            packet_bytes,
            xcp::sender::wish(rtt_s, wanted - window, window, packet_bytes),
        )
    }

    fn heard(hears: Hears, (stamp, bits): (Stamp, u16), best: &mut Option<Stamp>) -> Option<(Stamp, u16)> {
        let so_far = best.map_or(f64::NEG_INFINITY, |b| b.0[2]);
        let change = stamp.0[2];
        if change > so_far {
            *best = Some(stamp);
        }
        let Stamp([window, rtt, _]) = stamp;
        let heard = match hears {
            Hears::All => change,
            Hears::Increases => change.max(0.0),
            Hears::Largest => change.max(so_far),
            Hears::Nothing => return None,
        };
        Some((Stamp([window, rtt, heard]), bits))
    }
}

impl Mask for rcp::Sender {
    const LIES: &'static [&'static str] = &["rtt", "wish"];

    fn honest(_: &Params) -> rcp::sender::Params {
        rcp::sender::Params::default()
    }

    fn forged(&self, lies: &Params, _: f64, now: Time, srtt: Time) -> Stamp {
        let mut header = rcp::Header::from(self.stamp(now, srtt));
        header.rtt_s = lies.rtt.unwrap_or(srtt).as_secs_f64();
        header.rate = lies.wish.map_or(AS_MUCH_AS_THERE_IS, Rate::bytes_per_sec);
        header.into()
    }

    fn heard(hears: Hears, (stamp, bits): (Stamp, u16), best: &mut Option<Stamp>) -> Option<(Stamp, u16)> {
        let mut header = rcp::Header::from(stamp);
        let kept = rcp::Header::from(*best.get_or_insert(stamp)).rate;
        header.rate = match hears {
            Hears::All => header.rate,
            Hears::Increases | Hears::Largest => header.rate.max(kept),
            Hears::Nothing => kept, // without a first rate there is no pace
        };
        *best = Some(header.into());
        Some((header.into(), bits))
    }
}

impl Mask for vcp::Sender {
    const LIES: &'static [&'static str] = &["code", "t_rho"];

    fn honest(lies: &Params) -> vcp::sender::Params {
        vcp::sender::Params { t_rho: lies.t_rho, ..Default::default() }
    }

    fn forged(&self, _: &Params, _: f64, now: Time, srtt: Time) -> Stamp {
        self.stamp(now, srtt)
    }

    fn forged_bits(&self, lies: &Params) -> u16 {
        lies.code.map_or(self.bits(), u16::from)
    }

    fn heard(hears: Hears, (stamp, bits): (Stamp, u16), _: &mut Option<Stamp>) -> Option<(Stamp, u16)> {
        let heard = match (hears, Code::read(bits)) {
            (Hears::Increases, Code::Overload) => Code::High.bits(),
            (Hears::All | Hears::Increases, _) => bits,
            (Hears::Largest, _) => Code::Low.bits(),
            (Hears::Nothing, _) => return None,
        };
        Some((stamp, heard))
    }

    fn open(lies: &mut Params) -> Open<'_> {
        vcp::open(&mut lies.t_rho)
    }
}

/// State of one liar's flow.
#[derive(Clone, Debug)]
pub struct Sender<L> {
    mask: L,
    lies: Params,
    /// The largest answer so far.
    best: Option<Stamp>,
    packet_bytes: f64,
    srtt: Time,
}

impl<L: Mask> Sender<L> {
    /// Whether the liar ignores answers and losses.
    fn is_deaf(&self) -> bool {
        self.lies.hears == Hears::Nothing
    }
}

impl<L: Mask> SenderLaw for Sender<L> {
    type Params = Params;

    fn traits(p: &Params) -> SenderTraits {
        let SenderTraits { recovery, handshake, .. } = L::traits(&L::honest(p));
        SenderTraits { recovery, handshake, ..SenderTraits::DEFAULT }
    }

    fn check(p: &Params) -> Result<(), Refused> {
        if let Some(name) = p.named().find(|name| !L::LIES.contains(name)) {
            let lies = L::LIES.join(", ");
            return Err((
                name,
                format!("cannot be stated in this law's header; leave it out, or set one of {lies}"),
            ));
        }
        for (name, rate) in [("pace", p.pace), ("wish", p.wish)] {
            let Some(rate) = rate else { continue };
            within(name, rate.bps(), 1.0, 1e12)
                .map_err(|_| (name, format!("is {rate}; it must be 1bps to 1Tbps")))?;
        }
        if let Some(rtt) = p.rtt {
            within("rtt", rtt.as_secs_f64(), 0.0, 1000.0)
                .map_err(|_| ("rtt", format!("is {rtt}; it must be 0s to 1000s")))?;
        }
        p.window.map_or(Ok(()), |window| within("window", window, 1e-6, 1e9))?;
        p.code.map_or(Ok(()), |code| within("code", f64::from(code), 0.0, 3.0))?;
        check_times([("t_rho", p.t_rho)])?;
        within("most", p.most, 1.0, 1e7)
    }

    fn open(params: &mut Params) -> Open<'_> {
        <L as Mask>::open(params)
    }

    fn new(params: &Params, flow: &FlowView) -> Self {
        Self {
            mask: L::new(&L::honest(params), flow),
            lies: *params,
            best: None,
            packet_bytes: f64::from(flow.packet_bytes),
            srtt: Time::ZERO,
        }
    }

    fn cwnd(&self) -> f64 {
        let most = self.lies.most * self.packet_bytes;
        match self.lies.pace {
            // Two round trips' data, so that only the pace limits the flow.
            Some(pace) if self.srtt > Time::ZERO => {
                (2.0 * pace.bytes_per_sec() * self.srtt.as_secs_f64() + self.packet_bytes).min(most)
            }
            Some(_) => most,
            None => self.mask.cwnd().min(most),
        }
    }

    fn pacing(&self) -> Option<Pacing> {
        let honest = || self.mask.pacing().map(|pace| pace.rate);
        self.lies.pace.or_else(honest).map(Pacing::from)
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        self.srtt = ack.srtt;
        if let Some((stamp, bits)) = L::heard(self.lies.hears, (*ack.stamp, ack.bits), &mut self.best) {
            self.mask.on_ack(&Ack { stamp: &stamp, bits, ..*ack });
        }
    }

    fn on_feedback(&mut self, feedback: &Feedback<'_>) {
        self.srtt = feedback.srtt;
        let answer = (*feedback.stamp, feedback.bits);
        if let Some((stamp, bits)) = L::heard(self.lies.hears, answer, &mut self.best) {
            self.mask.on_feedback(&Feedback { stamp: &stamp, bits, ..*feedback });
        }
    }

    fn on_congestion(&mut self, now: Time, sign: Congestion<'_>) {
        if !self.is_deaf() {
            self.mask.on_congestion(now, sign);
        }
    }

    fn stamp(&self, now: Time, srtt: Time) -> Stamp {
        self.mask.forged(&self.lies, self.packet_bytes, now, srtt)
    }

    fn bits(&self) -> u16 {
        self.mask.forged_bits(&self.lies)
    }
}
