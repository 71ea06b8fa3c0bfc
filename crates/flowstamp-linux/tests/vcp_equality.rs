//! Compares the kernel's VCP in C with the Rust laws: every function of bpf/vcp.h, within the error bound
//! stated there. It runs 10^4 cases of each function, or 10^6 with FLOWSTAMP_NIGHTLY=1. A failure prints the
//! smallest failing case; PROPTEST_RNG_SEED=N repeats a run.

#![expect(clippy::cast_precision_loss, reason = "bounds are of 2^-29, f64's rounding is of 2^-53")]

#[macro_use]
mod c_laws;

use c_laws::{U, config, log_uniform, q16, q32};
use flowstamp_laws::router::{LinkView, PacketIn, RouterLaw, RouterView};
use flowstamp_laws::sender::{Ack, Congestion, FlowView, SenderLaw};
use flowstamp_laws::vcp::{self, Code};
use flowstamp_laws::{Rate, Ratio, Stamp, Time};
use proptest::prelude::*;
use std::collections::HashMap;

/// FS_VCP_FRACTION_BITS: a window's unit.
const FRACTIONS: f64 = (1u64 << 20) as f64;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Params {
    target_rate_q16: u64,
    k_q_q32: u64,
    queue_weight_q32: u64,
    t_rho_ns: u64,
    t_q_ns: u64,
    t_rho_us: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    input_bytes: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Router {
    queue_q16: u64,
    load_q32: u64,
    code: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct SenderParams {
    ln_growth_q40: u64,
    alpha_q44: u64,
    beta_q32: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    window: u64,
    frozen_until_us: u64,
    adds_until_us: u64,
}

#[link(name = "flowstamp_laws", kind = "static")]
unsafe extern "C" {
    safe fn fs_host_vcp_sample(p: &Params, s: &mut Router, queue_bytes: u64);
    safe fn fs_host_vcp_measure(p: &Params, s: &mut Router, sums: &Sums, interval_ns: u64);
    safe fn fs_host_vcp_raised(carried: u32, own: u32) -> u32;
    safe fn fs_host_vcp_echo(echo: u32, code: u32, packets: u32, t_rho_us: u32) -> u32;
    safe fn fs_host_vcp_came(before: u32, after: u32, code: u32) -> u32;
    safe fn fs_host_vcp_is_newer(before: u32, after: u32) -> bool;
    safe fn fs_host_vcp_growth(p: &SenderParams, srtt_us: u64, t_rho_us: u64) -> u64;
    safe fn fs_host_vcp_addition(
        p: &SenderParams,
        window: u64,
        srtt_us: u64,
        t_rho_us: u64,
        packet_bytes: u32,
    ) -> u64;
    safe fn fs_host_vcp_obey(
        p: &SenderParams,
        s: &mut Sender,
        now_us: u64,
        srtt_us: u32,
        t_rho_us: u32,
        code: u32,
        packets: u32,
        packet_bytes: u32,
        grows: bool,
    );
    safe fn fs_host_vcp_lost(window: u64, timeout: bool, packet_bytes: u32) -> u64;
}

fn link(queue_bytes: u64) -> LinkView {
    LinkView { now: Time::ZERO, queue_bytes, queue_packets: 0 }
}

/// One `t_rho`: the queue at each sample and what has come, as shares of what the link carries in it.
type Interval = (Vec<f64>, f64);

fn interval() -> impl Strategy<Value = Interval> {
    let queue = prop_oneof![Just(0.0), log_uniform(1e-4, 10.0)];
    (prop::collection::vec(queue, 0..6), prop_oneof![1 => Just(0.0), 3 => 0.0..3.0, 3 => 0.7..1.1])
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn load_factors_and_their_codes(
        rate in log_uniform(12_500.0, 12.5e9),
        gamma in 0.1..=1.0,
        k_q_q32 in prop_oneof![3 => 0..=1_u64 << 32, 1 => 0..=16_u64 << 32],
        // From 1e-6 on.
        weight_q32 in 4295..=1_u64 << 32,
        t_rho_us in log_uniform(1000.0, 16e6),
        intervals in prop::collection::vec(interval(), 1..8),
    ) {
        let (link_q16, t_rho_us) = ((rate * 65536.0) as u64, t_rho_us as u64);
        let target_rate_q16 = (link_q16 as f64 * gamma) as u64;
        let t_rho_ns = t_rho_us * 1000;
        let c_params = Params { target_rate_q16, k_q_q32, queue_weight_q32: weight_q32, t_rho_ns, t_q_ns: t_rho_ns / 20, t_rho_us };
        let params = vcp::router::Params {
            t_rho: Some(Time::from_micros(t_rho_us)),
            k_q: q32(k_q_q32),
            gamma: Ratio::new(target_rate_q16 as f64 / link_q16 as f64),
            queue_weight: Ratio::new(q32(weight_q32)),
            ..vcp::router::Params::default()
        };
        let mut rust = vcp::Router::new(&params, &RouterView::of(Rate::from_bytes_per_sec(q16(link_q16))));
        let mut c = Router { code: 1, ..Router::default() };
        let carried = q16(link_q16) * t_rho_us as f64 / 1e6;
        let target = q16(target_rate_q16) * t_rho_us as f64 / 1e6;
        let (mut before, mut error) = (0.0_f64, 0.0);
        for (queues, share) in intervals {
            for queue in queues {
                // A backlog is of 32 bits.
                let queue = (carried * queue).min(f64::from(u32::MAX)) as u64;
                rust.on_timer(1, link(queue));
                fs_host_vcp_sample(&c_params, &mut c, queue);
                error += U * q32(weight_q32) * (queue as f64 - before).abs() + 2f64.powi(-16);
                let mut names = HashMap::new();
                rust.variables(&mut |name, value| {names.insert(name, value);});
                before = names["persistent_queue_bytes"];
                close!(q16(c.queue_q16), before, error + before * 1e-14, "q~");
            }
            let input = (carried * share) as u64;
            let mut rest = input;
            while rest > 0 {
                let part = rest.min(u64::from(u32::MAX));
                rust.on_arrival(link(0), PacketIn::of(part as u32, None));
                rest -= part;
            }
            rust.on_timer(0, link(0));
            fs_host_vcp_measure(&c_params, &mut c, &Sums { input_bytes: input }, t_rho_ns);
            let rho = rust.load();
            let bound = 4.0 * U * rho + 2f64.powi(-32) + (1.0 + rho) * 2f64.powi(-15) / target + q32(k_q_q32) * error / target;
            close!(q32(c.load_q32), rho, bound, "rho");
            if [vcp::TRANSITION, 1.0].iter().all(|step| (rho - step).abs() > bound) {
                prop_assert_eq!(c.code, u64::from(Code::of_load(rho).bits()));
            }
        }
    }

    #[test]
    fn growth_at_low_load(kappa in log_uniform(1e-3, 1.0), srtt_us in log_uniform(10.0, 134e6), t_rho_us in log_uniform(100.0, 16.7e6)) {
        let (srtt_us, t_rho_us) = (srtt_us as u64, t_rho_us as u64);
        let params = vcp::sender::Params { kappa, t_rho: Some(Time::from_micros(t_rho_us)), ..vcp::sender::Params::default() };
        let exact = vcp::Sender::new(&params, &flow(1000, 1e4)).multiplies_by(Time::from_micros(srtt_us));
        let got = fs_host_vcp_growth(&c_params(kappa, 1.0, 0.875), srtt_us, t_rho_us) as f64 / 2f64.powi(40);
        close!(got, exact, growth_bound(exact), "xi_s");
    }

    #[test]
    fn additions_at_high_load(
        alpha in log_uniform(1e-3, 1000.0),
        x in log_uniform(1e-4, 30.0),
        t_rho_us in log_uniform(1e5, 16.7e6),
        packets in log_uniform(1.0, 1e6),
        packet in 64u32..9000,
    ) {
        let (t_rho_us, srtt_us) = (t_rho_us as u64, (x * t_rho_us) as u64);
        let window = (packets * f64::from(packet) * FRACTIONS) as u64;
        let packets = window as f64 / FRACTIONS / f64::from(packet);
        let params = vcp::sender::Params { alpha, t_rho: Some(Time::from_micros(t_rho_us)), ..vcp::sender::Params::default() };
        let law = vcp::Sender::new(&params, &flow(packet, 1e4));
        let exact = law.adds(Time::from_micros(srtt_us), packets) / packets;
        let got = fs_host_vcp_addition(&c_params(0.25, alpha, 0.875), window, srtt_us, t_rho_us, packet) as f64 / 2f64.powi(44);
        close!(got, exact, addition_bound(exact, srtt_us as f64 / t_rho_us as f64, packets), "alpha_s / w");
    }

    /// A flow's life: acks with codes, some of several packets, some while nothing may grow.
    #[test]
    fn windows(
        alpha in log_uniform(0.1, 10.0),
        beta_q32 in (1u64 << 31)..=(1 << 32),
        t_rho_us in 20_000u32..1_000_000,
        base in 0.05..3.0,
        packets in log_uniform(1.0, 1e4),
        packet in 64u32..9000,
        acks in prop::collection::vec((1u32..400_000, 1.0..2.0, 1u32..=3, 1u32..50, prop::bool::weighted(0.8)), 1..40),
    ) {
        let beta = q32(beta_q32);
        let params = vcp::sender::Params { alpha, beta: Ratio::new(beta), t_rho: Some(micros(t_rho_us)), ..vcp::sender::Params::default() };
        let c_params = SenderParams { beta_q32, ..c_params(params.kappa, alpha, beta) };
        let window = (packets * f64::from(packet) * FRACTIONS) as u64;
        let mut law = vcp::Sender::new(&params, &flow(packet, window as f64 / FRACTIONS));
        let mut c = Sender { window, ..Sender::default() };
        let (mut now, mut error) = (1_000_000, 0.0);
        let stamp = Stamp::default();
        for (gap, stretch, code, newly, grows) in acks {
            now += u64::from(gap);
            // A value equal to the end of a wait is within a picosecond of it in one of the two.
            if now == c.frozen_until_us || now == c.adds_until_us {
                now += 1;
            }
            let srtt_us = (f64::from(t_rho_us) * base * stretch) as u32;
            let before = law.cwnd();
            let (frozen, adds) = (now < c.frozen_until_us, now < c.adds_until_us);
            law.on_ack(&Ack {
                bits: code as u16,
                newly_acked: newly,
                window_limited: grows,
                ..Ack::of_one(Time::from_micros(now), micros(srtt_us), &stamp)
            });
            fs_host_vcp_obey(&c_params, &mut c, now, srtt_us, t_rho_us, code, newly, packet, grows);
            let after = law.cwnd();
            let bytes = f64::from(newly) * f64::from(packet);
            if !frozen && code == 3 && !adds {
                error = error * beta + U * after + 1.0 / FRACTIONS;
            } else if !frozen && grows {
                let each = (after - before) / bytes;
                error += bytes * if code == 1 && !adds {
                    growth_bound(each)
                } else {
                    let (w, x) = (before / f64::from(packet), f64::from(srtt_us) / f64::from(t_rho_us));
                    // The increment is one over a window that errs.
                    addition_bound(each, x, w) + each * error / before
                } + U * (after - before) + 1.0 / FRACTIONS;
            }
            close!(c.window as f64 / FRACTIONS, after, error + after * 1e-13, "window");
        }
    }

    #[test]
    fn losses(packets in log_uniform(1.0, 1e6), packet in 64u32..9000, timeout in any::<bool>()) {
        let window = (packets * f64::from(packet) * FRACTIONS) as u64;
        let mut law = vcp::Sender::new(&vcp::sender::Params::default(), &flow(packet, window as f64 / FRACTIONS));
        if timeout { law.on_congestion(Time::ZERO, Congestion::Timeout { flight: u32::MAX }) } else { law.on_congestion(Time::ZERO, Congestion::Loss { flight: u32::MAX }) }
        close!(fs_host_vcp_lost(window, timeout, packet) as f64 / FRACTIONS, law.cwnd(), 1.0 / FRACTIONS + law.cwnd() * 1e-14, "window");
    }

    /// A sender reads from two echoes the arrivals between them, modulo 256; whatever was lost between.
    #[test]
    fn echoes_count_what_has_come(t_rho in 1u32..1 << 24, packets in prop::collection::vec((0u32..=3, 1u32..70, any::<bool>()), 0..60)) {
        // The handshake's packet has no code.
        let told = fs_host_vcp_echo(0, 0, 1, t_rho);
        prop_assert_eq!(told, t_rho);
        let (mut echo, mut last, mut since) = (told, told, [0; 4]);
        for (code, count, heard) in packets {
            // One that no router has met says nothing.
            prop_assert_eq!(fs_host_vcp_echo(echo, code, count, 0), echo);
            echo = fs_host_vcp_echo(echo, code, count, t_rho);
            since[code as usize] += count;
            if code > 0 {
                prop_assert_eq!(echo >> 24, code);
            }
            if heard {
                let counted = since[1..].iter().any(|count| *count > 0);
                if since.iter().all(|count| *count < 128) {
                    prop_assert_eq!(fs_host_vcp_is_newer(last, echo), counted);
                    // One that has been overtaken, a handshake's among them.
                    prop_assert!(!counted || (!fs_host_vcp_is_newer(echo, last) && !fs_host_vcp_is_newer(echo, told)));
                }
                for code in 1..=3 {
                    prop_assert_eq!(fs_host_vcp_came(last, echo, code), since[code as usize] % 256, "{:x} to {:x}", last, echo);
                }
                (last, since) = (echo, [0; 4]);
            }
        }
    }
}

fn micros(us: u32) -> Time {
    Time::from_micros(u64::from(us))
}

fn flow(packet_bytes: u32, window_bytes: f64) -> FlowView {
    FlowView { packet_bytes, initial_window: window_bytes / f64::from(packet_bytes), app_rate: None }
}

fn c_params(kappa: f64, alpha: f64, beta: f64) -> SenderParams {
    SenderParams {
        ln_growth_q40: ((kappa * 0.25).ln_1p() * 2f64.powi(40)).round() as u64,
        alpha_q44: (alpha * 2f64.powi(44)).round() as u64,
        beta_q32: (beta * 4_294_967_296.0).round() as u64,
    }
}

/// That of fs_vcp_growth_q40.
fn growth_bound(growth: f64) -> f64 {
    8.0 * U * growth + 2f64.powi(-37)
}

/// That of fs_vcp_addition_q44.
fn addition_bound(addition: f64, x: f64, packets: f64) -> f64 {
    4.0 * U * addition + 2f64.powi(-44) * (1.0 + (1.0 + x) / packets)
}

#[test]
fn codes_only_rise() {
    let codes = [Code::NotCapable, Code::Low, Code::High, Code::Overload];
    for (carried, own) in codes.into_iter().flat_map(|c| codes.map(|o| (c, o))) {
        let got = fs_host_vcp_raised(carried.bits().into(), own.bits().into());
        assert_eq!(got, u32::from(carried.raised(own).bits()));
    }
}

/// The paper's own numbers: xi of 1/16 in a round trip of t_rho (eq. 5, section III-C); eq. 6 at 80 ms of 200 ms, (17/16)^0.4 - 1, and the authors'
/// bound of 2.5, (17/16)^2.5 - 1; eq. 8 at 80 ms of 200 ms, 0.16 packets in a round trip; an eighth less after a cut (eq. 4).
#[test]
fn the_papers_numbers() {
    let p = c_params(0.25, 1.0, 0.875);
    let growth = |srtt_us| fs_host_vcp_growth(&p, srtt_us, 200_000) as f64 / 2f64.powi(40);
    for (srtt_us, expected) in
        [(200_000, 0.0625), (80_000, 0.024_546_267), (500_000, 0.163_649_93), (2_000_000, 0.163_649_93)]
    {
        assert!((growth(srtt_us) - expected).abs() < 1e-7, "{srtt_us}: {}", growth(srtt_us));
    }
    let mut c = Sender { window: 1_000_000 << 20, ..Sender::default() };
    let mut ack = |now, code| {
        fs_host_vcp_obey(&p, &mut c, now, 80_000, 200_000, code, 1, 1000, true);
        c.window as f64 / FRACTIONS
    };
    // 1000 packets of 1000 bytes: 0.16 of a packet in 1000 of them.
    assert!((ack(1_000_000, 2) - 1_000_000.16).abs() < 1e-5);
    let cut = ack(1_000_001, 3);
    assert!((cut - 875_000.14).abs() < 1e-2);
    // Nothing for t_rho, then an RTT as for 10, whatever comes, then as it comes.
    for (now, code) in [(1_000_002, 3), (1_100_000, 1), (1_200_000, 2)] {
        assert_eq!(ack(now, code), cut);
    }
    let added = ack(1_200_001, 3);
    assert!((added - cut - 0.16 * 1e6 / cut).abs() < 1e-5);
    let multiplied = ack(1_280_001, 1);
    assert!((multiplied - added - 24.546_265).abs() < 1e-4);
    assert!(ack(1_280_002, 3) < multiplied * 0.8751);
}
