//! `router bench`: measures the cost of a packet with repeated BPF_PROG_RUN, and counts the law's operations
//! per packet.

use super::operations::{self, Operations};
use super::program::{LinkConfig, Share, load, types};
use super::scone;
use crate::law::{self, LAWS, Law, ROUTERS};
use flowstamp_laws::queue::Limit;
use flowstamp_laws::{Bytes, Rate};
use libbpf_rs::{ProgramInput, ProgramMut};
use serde::Serialize;
use std::mem::MaybeUninit;
use std::process::ExitCode;

/// The length of the measurement.
#[derive(clap::Args)]
pub struct Arguments {
    /// Print one JSON document on standard output.
    #[arg(long)]
    json: bool,
    /// Number of repetitions in each run.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    repeat: u32,
    /// Number of runs. The result is their median and extremes.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
}

/// Time per run of one program on one packet.
#[derive(Serialize)]
struct Measured {
    name: String,
    median_ns: f64,
    min_ns: f64,
    max_ns: f64,
}

/// The document of `--json`.
#[derive(Serialize)]
struct Document {
    programs: Vec<Measured>,
    /// Operations of RCP's law per packet.
    rcp: Operations,
}

/// An Ethernet frame with IPv4 without options and TCP with `options`.
fn frame(options: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let total = 20 + 20 + options.len() as u16 + 1000;
    let [high, low] = total.to_be_bytes();
    frame.extend([0x45, 0, high, low, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([0x13, 0x88, 0x13, 0x89, 0, 0, 0, 1, 0, 0, 0, 1, (5 + options.len() as u8 / 4) << 4, 0x10]);
    frame.extend([0xff, 0xff, 0, 0, 0, 0]);
    frame.extend(options);
    frame.resize(14 + usize::from(total), 0);
    frame
}

/// A frame that the law looks at: with its option, or with the mark of laws without one in the ECN bits.
fn own_frame(law: &Law) -> Vec<u8> {
    if law.has_option() {
        return frame(&options(law));
    }
    let mut frame = frame(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
    frame[15] = 1; // ECT(1)
    frame
}

/// TCP options in Linux's order: timestamps, then a stamp that no router lowers.
fn options(law: &Law) -> Vec<u8> {
    let mut o = vec![1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
    o.extend(law.stamped(law.least));
    o
}

fn measure(
    arguments: &Arguments,
    name: String,
    program: &ProgramMut<'_>,
    frame: &[u8],
) -> anyhow::Result<Measured> {
    let mut ns = Vec::new();
    for _ in 0..arguments.runs {
        let input =
            ProgramInput { data_in: Some(frame), repeat: arguments.repeat, ..ProgramInput::default() };
        ns.push(program.test_run(input)?.duration.as_nanos() as f64);
    }
    ns.sort_by(f64::total_cmp);
    Ok(Measured { name, median_ns: ns[ns.len() / 2], min_ns: ns[0], max_ns: ns[ns.len() - 1] })
}

/// An Ethernet frame with IPv4 without options and UDP with `payload`, which is padded to 1000 bytes.
fn datagram(payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let total = 20 + 8 + 1000_u16;
    let [high, low] = total.to_be_bytes();
    frame.extend([0x45, 0, high, low, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let [high, low] = (total - 20).to_be_bytes();
    frame.extend([1, 0xbb, 0xc3, 0x50, high, low, 0x12, 0x34]);
    frame.extend(payload);
    frame.resize(14 + usize::from(total), 0);
    frame
}

/// The cost of SCONE's network element: datagrams of other flows first, because a SCONE packet begins a flow.
fn measure_scone(arguments: &Arguments) -> anyhow::Result<Vec<Measured>> {
    let mut object = MaybeUninit::uninit();
    let skeleton = scone::load_bench(&mut object)?;
    let program = &skeleton.progs.fs_scone;
    let low = flowstamp_wire::scone::Packet {
        signal: flowstamp_wire::scone::Signal::MIN,
        dcid: &[1; 8],
        scid: &[],
    };
    let mut packet = [0; 16];
    let len = low.emit(&mut packet)?;
    // A QUIC packet with a short header, of which most datagrams consist.
    let short = datagram(&[0x41, 1, 1, 1, 1, 1, 1, 1, 1]);
    [
        ("SCONE, TCP", frame(&[])),
        ("SCONE, UDP of other flows", short.clone()),
        ("SCONE, packet, signal stays", datagram(&packet[..len])),
        ("SCONE, UDP of the same flow", short),
    ]
    .into_iter()
    .map(|(name, frame)| measure(arguments, name.to_owned(), program, &frame))
    .collect()
}

pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut results = Vec::new();
    let shared = Share { own_weight: 0.5, buffer: Bytes::new(1_000_000) };
    for (law, share) in ROUTERS.map(|law| (law, None)).into_iter().chain(LAWS.map(|law| (law, Some(shared))))
    {
        let law::Given { spec, eta, min_interval } = law::given(law, &[], None, None)?;
        let rate = (!law.blind).then_some(Rate::from_gbps(1.0));
        let limit = Some(Limit::Bytes(1_000_000));
        let link = LinkConfig { law: spec, rate, limit, eta, min_interval, half_duplex: false, share };
        let (config, mut first) = link.translate(1, 14)?;
        // Full pools, so that each packet is given and taken some feedback.
        first.xcp.give = types::fs_gain { mantissa: 1 << 20, shift: 10 };
        first.xcp.take = first.xcp.give;
        first.xcp.residue_pos_q16 = u64::MAX >> 2;
        first.xcp.residue_neg_q16 = u64::MAX >> 2;
        let mut object = MaybeUninit::uninit();
        let skeleton = load(&mut object, &config, &first, true)?;
        let program = &skeleton.progs.fs_router;
        let (without, with) = (frame(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]), own_frame(law));
        if results.is_empty() {
            for (name, program) in [
                ("empty program", &skeleton.progs.fs_nothing),
                ("stamp rewritten, nothing else", &skeleton.progs.fs_rewrite),
            ] {
                results.push(measure(arguments, name.to_owned(), program, &with)?);
            }
        }
        let (name, stamp) = (law.name.to_uppercase(), law.what);
        let [none, some] = if share.is_some() {
            [format!("{name}, shared link, no option"), format!("{name}, shared link, {stamp} stays")]
        } else {
            let own = if law.has_option() { "option" } else { "ECT(1)" };
            [format!("{name}, no {own}"), format!("{name}, {own}, {stamp} stays")]
        };
        results.push(measure(arguments, none, program, &without)?);
        results.push(measure(arguments, some, program, &with)?);
    }
    results.extend(measure_scone(arguments)?);
    let document = Document { programs: results, rcp: operations::count()? };
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&document)?);
        return Ok(ExitCode::SUCCESS);
    }
    for r in document.programs {
        println!("{:32} {:6.0} ns  ({:.0} to {:.0})", r.name, r.median_ns, r.min_ns, r.max_ns);
    }
    let o = document.rcp;
    println!(
        "RCP's law, for each packet: {} additions, {} other arithmetic, {} comparisons, {} writes",
        o.additions, o.other_arithmetic, o.comparisons, o.writes
    );
    Ok(ExitCode::SUCCESS)
}
