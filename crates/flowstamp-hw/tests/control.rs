//! The control path on the Verilated router against the Rust laws that see every packet themselves, slot by slot.
//!
//! The arrivals are drawn at random and do not follow the feedback: this is a replay, not a closed loop.
#![cfg(model)]

use flowstamp_hw::control::{Rcp, Vcp, Xcp};
use flowstamp_hw::model::{Law, Port};
use flowstamp_hw::{Registers, at, read_long};
use flowstamp_laws::link::LinkView;
use flowstamp_laws::router::{PacketIn, RouterLaw, RouterView};
use flowstamp_laws::xcp::Throughput;
use flowstamp_laws::{Rate, Stamp, Time, rcp, vcp, xcp};
use flowstamp_wire::frame::{FrameSpec, MAX_LEN, Shim};

const CAPACITY: Rate = Rate::from_mbps(1000.0);
const SLOTS: u32 = 300;

/// Draws a number from 0 to below `end`, from a sequence that is the same in every run.
fn draw(state: &mut u64, end: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % end
}

fn frame(shim: Option<Shim>, ip_len: u16) -> Vec<u8> {
    let spec = FrameSpec { shim, ip_len, src_host: 1, dst_host: 2, ..FrameSpec::default() };
    let mut buffer = [0; MAX_LEN];
    let len = spec.write(&mut buffer);
    let mut frame = buffer[..len].to_vec();
    frame.resize(spec.wire_len() as usize, 0);
    frame
}

/// Sends a slot's frames through the port.
fn pass(port: &mut Port, frames: Vec<Vec<u8>>) {
    let count = frames.len();
    frames.into_iter().for_each(|frame| port.send(frame));
    port.drain(count);
    while port.receive().is_some() {}
}

fn view(now: Time, queue_bytes: u32) -> LinkView {
    LinkView { now, queue_bytes: queue_bytes.into(), queue_packets: 0 }
}

#[test]
fn rcp_rates_are_those_of_the_law() {
    let params = rcp::router::Params { initial_rtt: Some(Time::from_millis(80)), ..Default::default() };
    let mut port = Port::new(Law::Rcp, 64);
    let mut driver = Rcp::new(&params, CAPACITY, &mut port).expect("carried out");
    let mut law = rcp::Router::new(&params, &RouterView::of(CAPACITY));
    let (mut now, mut state, mut least, mut most) = (Time::from_millis(10), 1, f64::INFINITY, 0.0f64);
    for _ in 0..SLOTS {
        let queue = draw(&mut state, 20_000) as u32;
        port.set_queue(queue);
        let mut frames = vec![];
        for _ in 0..draw(&mut state, 1200) {
            let (ms, len) = (20 + draw(&mut state, 200) as u16, 100 + draw(&mut state, 1400) as u16);
            let header = rcp::Header { rate: 0.0, rtt_s: f64::from(ms) * 1e-3, age_bytes: 0.0 };
            let shim = flowstamp_wire::rcp::Header::data(
                flowstamp_wire::rcp::BytesPerMilli::MAX,
                flowstamp_wire::rcp::Millis16::from_bits(ms),
            );
            frames.push(frame(Some(shim.into()), len));
            let size = frames.last().map_or(0, Vec::len) as u32;
            law.on_arrival(view(now, queue), PacketIn::of(size, Some(&header.into())));
        }
        pass(&mut port, frames);
        let next = driver.slot(now, &mut port);
        assert_eq!(next, law.on_timer(0, view(now, queue)));
        let (stamped, rate) = (f64::from(port.read(at::RCP_RATE)) * 1e3, law.rate());
        assert!((stamped - rate).abs() <= 1000.0 + 1e-9 * rate, "{stamped} bytes/s instead of {rate}");
        (least, most) = (least.min(rate), most.max(rate));
        now = next;
    }
    assert!(most > 2.0 * least, "R stayed between {least} and {most}");
}

#[test]
fn xcp_pools_are_those_of_the_law() {
    let params = xcp::router::Params { initial_interval: Some(Time::from_millis(50)), ..Default::default() };
    let mut port = Port::new(Law::Xcp, 64);
    let mut driver = Xcp::new(&params, CAPACITY, &mut port).expect("carried out");
    let mut law = xcp::Router::<Throughput>::new(&params, &RouterView::of(CAPACITY));
    let (mut now, mut state) = (Time::from_millis(50), 2);
    for _ in 0..SLOTS {
        let queue = draw(&mut state, 20_000) as u32;
        port.set_queue(queue);
        let mut frames = vec![];
        for _ in 0..draw(&mut state, 300) {
            let rtt_s = 0.02 + draw(&mut state, 200) as f64 * 1e-3;
            let x_s = rtt_s / (1 + draw(&mut state, 100)) as f64;
            let seconds = flowstamp_wire::xcp::Seconds28::from_secs_f64;
            let shim = flowstamp_wire::xcp::Header::standard(seconds(x_s), seconds(rtt_s), 0, i32::MAX);
            frames.push(frame(Some(shim.into()), 100 + draw(&mut state, 1400) as u16));
            let size = frames.last().map_or(0, Vec::len) as u32;
            law.on_arrival(view(now, queue), PacketIn::of(size, Some(&Stamp([x_s, rtt_s, 0.0]))));
        }
        pass(&mut port, frames);
        let next = driver.slot(now, &mut port);
        law.on_timer(1, view(now, queue));
        let expected = law.on_timer(0, view(now, queue));
        let (pos, neg) = law.residues();
        let pools = [at::XCP_POOL_POS, at::XCP_POOL_NEG].map(|at| read_long(&mut port, at) as f64 / 65536.0);
        for (pool, exact) in pools.into_iter().zip([pos, neg]) {
            // RTTs are at least 20 ms, and each is rounded down to a step of about a microsecond.
            assert!((pool - exact).abs() <= 1e-3 * exact + 1e4, "{pool} bytes/s instead of {exact}");
        }
        assert!((next.as_secs_f64() - expected.as_secs_f64()).abs() < 1e-4 * expected.as_secs_f64());
        now = expected;
    }
}

#[test]
fn vcp_codes_are_those_of_the_law() {
    let params = vcp::router::Params { t_rho: Some(Time::from_millis(1)), ..Default::default() };
    let mut port = Port::new(Law::Vcp, 64);
    let mut driver = Vcp::new(&params, CAPACITY, &mut port).expect("carried out");
    let mut law = vcp::Router::new(&params, &RouterView::of(CAPACITY));
    let (mut now, mut state, mut seen) = (Time::from_millis(1), 3, [0; 4]);
    for _ in 0..SLOTS {
        let queue = draw(&mut state, 10_000) as u32;
        port.set_queue(queue);
        let frames: Vec<_> = (0..60 + draw(&mut state, 60)).map(|_| frame(None, 1400)).collect();
        for frame in &frames {
            law.on_arrival(view(now, queue), PacketIn::of(frame.len() as u32, None));
        }
        pass(&mut port, frames);
        assert_eq!(driver.sample(now, &mut port), law.on_timer(1, view(now, queue)));
        let next = driver.slot(now, &mut port);
        assert_eq!(next, law.on_timer(0, view(now, queue)));
        let code = port.read(at::VCP_CODE) & 3;
        assert_eq!(code, u32::from(vcp::Code::of_load(law.load()).bits()), "at load {}", law.load());
        seen[code as usize] += 1;
        now = next;
    }
    assert!(seen[1..].iter().all(|n| *n > 0), "codes {seen:?}");
}
