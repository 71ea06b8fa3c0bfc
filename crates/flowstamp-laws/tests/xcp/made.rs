//! Made-up traffic, and routers that are driven through it.

use flowstamp_laws::Stamp;
use flowstamp_laws::router::{LinkView, PacketIn, PacketOut, RouterLaw};
use flowstamp_laws::units::{Rate, Time};
use flowstamp_laws::xcp::Encoding;
use proptest::prelude::*;

/// One packet of a made-up traffic: window in bytes, RTT in seconds, size in bytes, wish relative to the window.
#[derive(Clone, Debug)]
pub struct Made {
    pub cwnd: f64,
    pub rtt_s: f64,
    pub size: u32,
    pub wish: f64,
    pub queue: u64,
}

pub fn packet() -> impl Strategy<Value = Made> {
    (0.0..9.0f64, -6.0..0.3f64, 40u32..9000, -1.0..3.0f64, 0u64..10_000_000).prop_map(
        |(window, rtt, size, wish, queue)| Made {
            cwnd: f64::from(size) * 10f64.powf(window),
            rtt_s: 10f64.powf(rtt),
            size,
            wish,
            queue,
        },
    )
}

/// Rates from 1 kb/s to 400 Gb/s.
pub fn capacity() -> impl Strategy<Value = Rate> {
    (3.0..11.602f64).prop_map(|e| Rate::from_bps(10f64.powf(e)))
}

pub fn header<E: Encoding>(p: &Made) -> Stamp {
    E::header(p.cwnd, p.rtt_s, f64::from(p.size), p.wish * p.cwnd)
}

/// The stamp's change of throughput, bytes/s.
pub fn feedback<E: Encoding>(stamp: &Stamp, p: &Made) -> f64 {
    E::read(stamp, f64::from(p.size)).feedback
}

/// Drives a router through control intervals of made-up traffic; `check` sees each departure.
pub fn drive<L: RouterLaw, E: Encoding>(
    mut router: L,
    intervals: &[Vec<Made>],
    mut check: impl FnMut(&L, &Made, f64, f64) -> Result<(), TestCaseError>,
) -> Result<L, TestCaseError> {
    let mut now = Time::ZERO;
    for packets in intervals {
        for p in packets {
            let view = p.view(now);
            let mut stamp = header::<E>(p);
            let asked = feedback::<E>(&stamp, p);
            router.on_arrival(view, PacketIn::of(p.size, Some(&stamp)));
            router.on_departure(view, PacketOut { size: p.size, stamp: &mut stamp, bits: &mut 0 }, || 0.5);
            check(&router, p, asked, feedback::<E>(&stamp, p))?;
        }
        now = tick(&mut router, now, packets.last())?;
    }
    Ok(router)
}

/// The law's timers fire; returns when its control interval ends.
pub fn tick<L: RouterLaw>(router: &mut L, now: Time, last: Option<&Made>) -> Result<Time, TestCaseError> {
    let view = last.map_or(LinkView { now, queue_bytes: 0, queue_packets: 0 }, |p| p.view(now));
    let next = router.on_timer(0, view);
    prop_assert!(next > now, "the control interval is not empty");
    if L::traits(&L::Params::default()).first_timers[1].is_some() {
        prop_assert!(router.on_timer(1, view) > now);
    }
    Ok(next)
}

impl Made {
    /// The link as the packet finds it.
    pub fn view(&self, now: Time) -> LinkView {
        LinkView { now, queue_bytes: self.queue, queue_packets: (self.queue / u64::from(self.size)) as u32 }
    }
}

pub fn finite<L: RouterLaw>(router: &L) -> Result<(), TestCaseError> {
    let mut result = Ok(());
    router.variables(&mut |name, value| {
        if !value.is_finite() {
            result = Err(TestCaseError::fail(format!("{name} is {value}")));
        }
    });
    result
}

/// Window encoding keeps throughputs as feedback/RTT, which costs a rounding; the draft's has whole bytes/s.
pub fn same_or_less(after: f64, before: f64) -> bool {
    after <= before + before.abs() * 1e-12 + 1e-9
}

pub fn only_lowers<L: RouterLaw, E: Encoding>(
    router: L,
    intervals: &[Vec<Made>],
) -> Result<(), TestCaseError> {
    drive::<L, E>(router, intervals, |_, p, asked, got| {
        prop_assert!(same_or_less(got, asked), "{p:?}: asked {asked}, got {got}");
        Ok(())
    })
    .map(|_| ())
}

pub fn stays_finite<L: RouterLaw, E: Encoding>(
    router: L,
    intervals: &[Vec<Made>],
) -> Result<(), TestCaseError> {
    let router = drive::<L, E>(router, intervals, |router, p, _, got| {
        prop_assert!(got.is_finite(), "{p:?}: {got}");
        finite(router)
    })?;
    finite(&router)
}
