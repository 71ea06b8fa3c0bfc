//! The expected output of the router for a frame, by the kernel's laws in C and an independent search for the stamp.

use crate::finder;
use crate::frames::protocol;
use flowstamp_hw::model::Law;
use std::ops::Range;

/// Structures of bpf/laws.h.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RcpSums {
    pub input_bytes: u64,
    pub sum_rtt_us: u64,
    pub sum_weight: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct XcpParams {
    pub capacity_q16: u64,
    pub alpha_q32: u64,
    pub beta_q32: u64,
    pub gamma_q32: u64,
    pub min_interval_ns: u64,
    pub max_rtt_us: u64,
    pub queue_window_q32: u64,
    pub min_queue_interval_ns: u64,
    pub max_weight_q16: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct XcpSums {
    pub input_bytes: u64,
    pub sum_x_q4: u64,
    pub sum_x_rtt_low: u64,
    pub sum_x_rtt_high: u64,
    pub x_bytes: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Gain {
    pub mantissa: u64,
    pub shift: i64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct XcpState {
    pub give: Gain,
    pub take: Gain,
    pub most_x: Gain,
    pub residue_pos_q16: u64,
    pub residue_neg_q16: u64,
    pub avg_rtt_q8: u64,
    pub persistent_queue_bytes: u64,
    pub min_queue_bytes: u64,
    pub aggregate_q16: i64,
    pub input_rate_q16: u64,
}

#[link(name = "flowstamp_laws", kind = "static")]
unsafe extern "C" {
    safe fn fs_host_rcp_input(sums: &mut RcpSums, bytes: u64);
    safe fn fs_host_rcp_rtt(sums: &mut RcpSums, max_rtt_us: u64, most_rtt_us: u64, rtt_us: u64, weight: u64);
    safe fn fs_host_rcp_stamp(offer: u32, carried: u32) -> u32;
    safe fn fs_host_rtt_unpack(bits: u32) -> u64;
    safe fn fs_host_xcp_arrival(
        p: &XcpParams,
        sums: &mut XcpSums,
        bytes: u64,
        packets: u64,
        rtt: u64,
        x: u64,
    );
    safe fn fs_host_xcp_departure(
        s: &mut XcpState,
        bytes: u64,
        packets: u32,
        rtt: u64,
        x: u64,
        carried: i32,
    ) -> i32;
    safe fn fs_host_vcp_raised(carried: u32, own: u32) -> u32;
}

/// A port as the kernel would keep it.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    pub rate: u32,
    pub rcp: RcpSums,
    pub xcp: XcpState,
    pub xcp_sums: XcpSums,
    pub code: u32,
    pub any_ecn: bool,
    pub t_rho_us: u32,
    /// Frames with a stamp, and frames that it has changed.
    pub stamped: u64,
    pub changed: u64,
}

/// A frame as it must leave: these bytes, except checksums, whose sums over a header stay what they were.
pub struct Expected {
    pub bytes: Vec<u8>,
    pub checksums: Vec<(Range<usize>, Range<usize>)>,
}

/// IP's header: where it and its payload are, the payload's protocol, header and payload together (zero: not said).
struct Ip {
    at: usize,
    v6: bool,
    l4: usize,
    protocol: u8,
    bytes: usize,
}

fn u16_at(frame: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes(frame.get(at..at + 2)?.try_into().ok()?)))
}

fn word(frame: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(frame[at..at + 4].try_into().expect("four"))
}

fn ip(frame: &[u8]) -> Option<Ip> {
    let mut at = 14;
    let mut kind = u16_at(frame, 12)?;
    while (kind == 0x8100 || kind == 0x88a8) && at < 22 {
        kind = u16_at(frame, at + 2)?;
        at += 4;
    }
    let first = *frame.get(at)?;
    match kind {
        0x0800 => {
            frame.get(at + 19)?;
            let protocol = frame[at + 9];
            let whole = u16_at(frame, at + 6)? & 0x1fff == 0;
            let l4 = at + usize::from(first & 15) * 4;
            let bytes = u16_at(frame, at + 2)?;
            (first >> 4 == 4 && first & 15 >= 5 && whole).then_some(Ip { at, v6: false, l4, protocol, bytes })
        }
        0x86dd => {
            let payload = u16_at(frame, at + 4)?;
            frame.get(at + 39)?;
            let (protocol, l4) = transport(frame, frame[at + 6], at + 40);
            let bytes = if payload == 0 { 0 } else { (payload + 40) & 0xffff };
            (first >> 4 == 6).then_some(Ip { at, v6: true, l4, protocol, bytes })
        }
        _ => None,
    }
}

/// The protocol behind at most six IPv6 extension headers, and where it begins; 59 stands for none.
fn transport(frame: &[u8], mut next: u8, mut at: usize) -> (u8, usize) {
    for headers in 0.. {
        let Some(header) = frame.get(at..at + 4).filter(|_| [0, 43, 44, 60].contains(&next)) else { break };
        let is_later = next == 44 && (header[2] != 0 || header[3] >= 8);
        at += if next == 44 { 8 } else { 8 * (usize::from(header[1]) + 1) };
        next = if is_later || headers == 6 || at > 368 { 59 } else { header[0] };
    }
    (next, at)
}

impl Kernel {
    /// Counts a frame and stamps it.
    pub fn packet(&mut self, law: Law, frame: &[u8]) -> Expected {
        let mut out = Expected { bytes: frame.to_vec(), checksums: vec![] };
        fs_host_rcp_input(&mut self.rcp, frame.len() as u64);
        let Some(ip) = ip(frame) else { return out };
        let place = finder::find(frame, 14, 0, protocol(law));
        let shim =
            |number, len| ip.protocol == number && frame.len() >= ip.l4 + len && fits(&ip, ip.l4 + len);
        match law {
            Law::Rcp if shim(254, 12) => {
                let ms = u16_at(frame, ip.l4 + 8).expect("within") as u64;
                let rtt_us = if ms == 0xffff { u64::MAX } else { ms * 1000 };
                // Zero asks for as much as there is.
                let wish = word(frame, ip.l4);
                let granted = self.rcp(rtt_us, if wish == 0 { u32::MAX } else { wish });
                if granted != wish && (wish != 0 || granted != u32::MAX) {
                    self.put(&mut out, ip.l4, granted);
                }
            }
            Law::Rcp => {
                let Some(place) = place else { return out };
                let float = u16_at(frame, place.option + 12).expect("within") as u32;
                let granted = self.rcp(fs_host_rtt_unpack(float), word(frame, place.option + 8));
                self.put(&mut out, place.option + 8, granted);
                out.checksums.push((place.tcp..frame.len(), place.tcp + 16..place.tcp + 18));
            }
            Law::Xcp => {
                if shim(253, 20) && frame[ip.l4 + 1] == 20 && frame[ip.l4 + 2] == 0x31 && ip.bytes > 0 {
                    self.xcp(&mut out, frame, &ip);
                }
            }
            Law::Vcp => {
                if let Some(place) = place {
                    let t_rho = word(frame, place.option + 8).max(self.t_rho_us);
                    self.put(&mut out, place.option + 8, t_rho);
                    out.checksums.push((place.tcp..frame.len(), place.tcp + 16..place.tcp + 18));
                }
                if place.is_some() || self.any_ecn {
                    self.raise(&mut out, &ip);
                }
            }
        }
        out
    }

    fn put(&mut self, out: &mut Expected, at: usize, value: u32) {
        self.stamped += 1;
        self.changed += u64::from(word(&out.bytes, at) != value);
        out.bytes[at..at + 4].copy_from_slice(&value.to_be_bytes());
    }

    fn rcp(&mut self, rtt_us: u64, carried: u32) -> u32 {
        fs_host_rcp_rtt(&mut self.rcp, 20_000_000, 0, rtt_us, 1);
        fs_host_rcp_stamp(self.rate, carried)
    }

    /// The kernel's units are microseconds and 1/16 ns; its arithmetic knows of none, so here they are 2^-20 and 2^-28 s.
    fn xcp(&mut self, out: &mut Expected, frame: &[u8], ip: &Ip) {
        let rtt = u64::from(word(frame, ip.l4 + 8) >> 8);
        let x = if rtt == 0 { 0 } else { word(frame, ip.l4 + 4).into() };
        let bytes = ((ip.at + ip.bytes) & 0xffff) as u64;
        let params = XcpParams { max_rtt_us: 4 << 20, ..XcpParams::default() };
        fs_host_xcp_arrival(&params, &mut self.xcp_sums, bytes, 1, rtt, x);
        let carried = word(frame, ip.l4 + 16) as i32;
        let granted = fs_host_xcp_departure(&mut self.xcp, bytes, 1, rtt, x, carried);
        self.put(out, ip.l4 + 16, granted.min(carried) as u32);
    }

    fn raise(&mut self, out: &mut Expected, ip: &Ip) {
        let shift = if ip.v6 { 4 } else { 0 };
        let Some(byte) = out.bytes.get_mut(ip.at + 1) else { return };
        let carried = u32::from(*byte >> shift & 3);
        let code = fs_host_vcp_raised(carried, self.code) as u8;
        *byte = *byte & !(3 << shift) | code << shift;
        self.changed += u64::from(u32::from(code) != carried);
        if !ip.v6 {
            out.checksums.push((ip.at..ip.l4, ip.at + 10..ip.at + 12));
        }
    }
}

/// Whether headers that end here are within the packet.
fn fits(ip: &Ip, end: usize) -> bool {
    ip.bytes == 0 || end - ip.at <= ip.bytes
}
