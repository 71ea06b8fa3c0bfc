//! Results on disk and as Arrow tables.
//!
//! [`write()`] fills a run's folder:
//!
//! ```text
//!   manifest.json     the scenario with every default, seed, version, host
//!   summary.json      Results::summary
//!   series.parquet    Results::series in long form
//!   flows.parquet     Results::flows
//!   trace.pcapng      captured packets, one interface per link    } only if
//!   flowstamp.lua     Wireshark's dissector for XCP's and RCP's headers } packets were captured
//! ```
//!
//! Every file is written under a temporary name in that folder and synced; only when all are whole are they renamed,
//! so a full disk leaves what was there before.

use crate::results::{CapturedPacket, FlowRow, Results, Series};
use arrow_array::builder::{Float64Builder, UInt64Builder};
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use flowstamp_laws::Stamp;
use flowstamp_laws::registry::Protocol;
use flowstamp_laws::router::rcp::Header as RcpHeader;
use flowstamp_laws::router::xcp::{Encoding, Throughput, View, Window};
use flowstamp_wire::frame::{self, Ecn, Flags, FrameSpec, Shim};
use flowstamp_wire::{pcapng, rcp, xcp};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Why a run's folder could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// the path exists and is no folder
    #[error("{}: exists and is not a folder; give the path of a folder", .0.display())]
    NotAFolder(PathBuf),
    /// the system refused: not writable, disk full
    #[error("{}: cannot be written: {reason}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason, in its words.
        reason: String,
        /// The system's error.
        source: io::Error,
    },
}

impl OutputError {
    fn io(path: &Path, source: io::Error) -> Self {
        let mut reason = source.to_string().replace('\n', " ");
        // "No space left on device (os error 28)": the number helps nobody.
        if let Some(at) = reason.find(" (os error") {
            reason.truncate(at);
        }
        Self::Io { path: path.to_owned(), reason, source }
    }
}

/// `manifest.json`: what ran, where. Seed and version, the scenario with every default spelled out.
#[must_use]
pub fn manifest(results: &Results) -> serde_json::Value {
    let mut scenario = serde_json::json!(results.scenario);
    drop_nulls(&mut scenario);
    serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "seed": results.summary.seed,
        "scenario": scenario,
        "host": {
            "os": std::env::consts::OS,
            "arch": std::env::consts::ARCH,
            "cpus": std::thread::available_parallelism().map_or(1, usize::from),
        },
    })
}

/// TOML has no null: what is not given is left out, so that the manifest's scenario can be run again.
fn drop_nulls(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// The scenario as it ran, as TOML, with every default spelled out.
#[must_use]
pub fn scenario_toml(results: &Results) -> String {
    // Every type of the scenario serialises to TOML by construction.
    toml::to_string(&results.scenario).unwrap_or_default()
}

/// The series in long form: `time_s`, `kind`, `name`, `metric` (dictionaries), `value`; one row per sample.
///
/// # Errors
///
/// None that a run's results can cause; Arrow's constructors return one.
pub fn series_table(series: &Series) -> Result<RecordBatch, ArrowError> {
    let text = |words_of_keys: Vec<&str>| -> Result<ArrayRef, ArrowError> {
        let mut words: Vec<&str> = Vec::new();
        let mut seen: HashMap<&str, i32> = HashMap::new();
        let code_of_key: Vec<i32> = words_of_keys
            .into_iter()
            .map(|word| {
                *seen.entry(word).or_insert_with(|| {
                    words.push(word);
                    words.len() as i32 - 1
                })
            })
            .collect();
        let codes = Int32Array::from_iter_values(series.key.iter().map(|key| code_of_key[*key as usize]));
        let words = StringArray::from_iter_values(words);
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(codes, Arc::new(words))?))
    };
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let schema = Schema::new(vec![
        Field::new("time_s", DataType::Float64, false),
        Field::new("kind", dictionary.clone(), false),
        Field::new("name", dictionary.clone(), false),
        Field::new("metric", dictionary, false),
        Field::new("value", DataType::Float64, false),
    ]);
    RecordBatch::try_new(
        Arc::new(schema),
        vec![
            Arc::new(Float64Array::from(series.time_s.clone())),
            text(series.keys.iter().map(|key| key.kind).collect())?,
            text(series.keys.iter().map(|key| key.name.as_str()).collect())?,
            text(series.keys.iter().map(|key| key.metric.as_str()).collect())?,
            Arc::new(Float64Array::from(series.value.clone())),
        ],
    )
}

/// One row per flow, with the fields of [`crate::results::FlowRow`].
///
/// # Errors
///
/// As [`series_table`].
pub fn flows_table(rows: &[FlowRow]) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    let mut add = |name: &str, array: ArrayRef, nullable: bool| {
        fields.push(Field::new(name, array.data_type().clone(), nullable));
        arrays.push(array);
    };
    macro_rules! column {
        ($field:ident: text) => {
            let array: DictionaryArray<Int32Type> = rows.iter().map(|row| &*row.$field).collect();
            add(stringify!($field), Arc::new(array), false)
        };
        ($field:ident: option $builder:ty) => {
            let mut builder = <$builder>::with_capacity(rows.len());
            for row in rows {
                builder.append_option(row.$field);
            }
            add(stringify!($field), Arc::new(builder.finish()), true)
        };
        ($field:ident: $array:ty) => {
            let array = <$array>::from_iter_values(rows.iter().map(|row| row.$field));
            add(stringify!($field), Arc::new(array), false)
        };
    }
    column!(flow: UInt32Array);
    column!(group: text);
    column!(index: UInt32Array);
    column!(law: text);
    column!(start_s: Float64Array);
    column!(end_s: option Float64Builder);
    column!(size_bytes: option UInt64Builder);
    column!(fct_s: option Float64Builder);
    column!(delivered_bytes: UInt64Array);
    column!(goodput_bps: Float64Array);
    column!(retransmissions: UInt32Array);
    column!(timeouts: UInt32Array);
    column!(min_rtt_s: option Float64Builder);
    column!(srtt_s: option Float64Builder);
    column!(switched_s: option Float64Builder);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

/// Fills a run's folder, which is made if it does not exist, and returns the files' paths.
///
/// # Errors
///
/// [`OutputError`] names the path and the system's reason; nothing new is left then.
pub fn write(results: &Results, folder: &Path) -> Result<Vec<PathBuf>, OutputError> {
    whole(folder, |pending| {
        let (series, flows) = (&results.series, &results.flows);
        add_tables(pending, folder, &manifest(results), &results.summary, series, flows)?;
        if !results.capture.links.is_empty() {
            add_trace(pending, folder, |out| trace_to(results, out))?;
        }
        Ok(())
    })
}

/// Packets of a run that was no simulation, as they were on the wire.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// Names of links.
    pub links: Vec<String>,
    /// In the order of their departures.
    pub packets: Vec<TracedPacket>,
}

/// One of them.
#[derive(Clone, Debug)]
pub struct TracedPacket {
    /// Start of its transmission.
    pub time_ps: u64,
    /// Index into [`Trace::links`].
    pub link: usize,
    /// Its first bytes, from Ethernet's on.
    pub headers: Vec<u8>,
    /// All of its bytes.
    pub wire_len: u32,
}

/// Fills a folder with the results of a run that was no simulation.
///
/// # Errors
///
/// As [`write()`].
pub fn write_measured(
    folder: &Path,
    manifest: &serde_json::Value,
    summary: &serde_json::Value,
    series: &Series,
    flows: &[FlowRow],
    trace: Option<&Trace>,
) -> Result<Vec<PathBuf>, OutputError> {
    whole(folder, |pending| {
        add_tables(pending, folder, manifest, summary, series, flows)?;
        trace.map_or(Ok(()), |trace| {
            add_trace(pending, folder, |out| {
                let (mut writer, interfaces) = trace_writer(out, &trace.links)?;
                for packet in &trace.packets {
                    let interface = interfaces[packet.link];
                    writer.write_packet(interface, packet.time_ps, &packet.headers, packet.wire_len, None)?;
                }
                writer.finish().map(|_| ())
            })
        })
    })
}

const TRACE: &str = "trace.pcapng";

/// Makes the folder, adds files by `add`, and gives them their names if all are there.
fn whole(
    folder: &Path,
    add: impl FnOnce(&mut Pending) -> Result<(), OutputError>,
) -> Result<Vec<PathBuf>, OutputError> {
    let made = make_folder(folder)?;
    let mut pending = Pending { files: Vec::new() };
    let paths = add(&mut pending).and_then(|()| pending.commit());
    drop(pending);
    match &paths {
        Err(_) => remove_empty(&made),
        // A folder is one run's: packets of an earlier run would be taken for this one's.
        Ok(paths) if !paths.iter().any(|path| path.ends_with(TRACE)) => {
            let _ = fs::remove_file(folder.join(TRACE));
        }
        Ok(_) => {}
    }
    paths
}

/// The capture, and what Wireshark needs to read its stamps.
fn add_trace(
    pending: &mut Pending,
    folder: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), OutputError> {
    pending.add(folder, TRACE, write)?;
    pending.add(folder, "flowstamp.lua", |out| out.write_all(flowstamp_wire::DISSECTOR.as_bytes()))
}

/// A capture with an interface for each link.
fn trace_writer<W: Write>(out: W, links: &[String]) -> io::Result<(pcapng::Writer<W>, Vec<u32>)> {
    let mut writer = pcapng::Writer::new(out, concat!("flowstamp ", env!("CARGO_PKG_VERSION")))?;
    let interfaces = links
        .iter()
        .map(|link| writer.add_interface(link, "departures, at the start of transmission"))
        .collect::<io::Result<_>>()?;
    Ok((writer, interfaces))
}

fn add_tables(
    pending: &mut Pending,
    folder: &Path,
    manifest: &serde_json::Value,
    summary: &impl serde::Serialize,
    series: &Series,
    flows: &[FlowRow],
) -> Result<(), OutputError> {
    pending.add(folder, "manifest.json", |out| json_to(manifest, out))?;
    pending.add(folder, "summary.json", |out| json_to(summary, out))?;
    pending.add(folder, "series.parquet", |out| table_to(series_table(series), out))?;
    pending.add(folder, "flows.parquet", |out| table_to(flows_table(flows), out))
}

/// Makes the folder and those above it; returns the ones that were made, outermost first.
fn make_folder(folder: &Path) -> Result<Vec<PathBuf>, OutputError> {
    let mut missing = Vec::new();
    for path in folder.ancestors().filter(|path| !path.as_os_str().is_empty()) {
        if path.is_dir() {
            break;
        }
        if path.symlink_metadata().is_ok() {
            return Err(OutputError::NotAFolder(path.to_owned()));
        }
        missing.push(path.to_owned());
    }
    missing.reverse();
    for (index, path) in missing.iter().enumerate() {
        match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                remove_empty(&missing[..index]);
                return Err(OutputError::io(path, error));
            }
            _ => {}
        }
    }
    Ok(missing)
}

/// Removes folders, innermost first, as long as they are empty: the system refuses to remove any other.
fn remove_empty(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        let _ = fs::remove_dir(folder);
    }
}

/// Files under temporary names; those not committed are removed when this goes.
struct Pending {
    /// Temporary name, final name.
    files: Vec<(PathBuf, PathBuf)>,
}

impl Pending {
    /// Writes one file under a temporary name and syncs it.
    fn add(
        &mut self,
        folder: &Path,
        name: &str,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let path = folder.join(name);
        let failed = |error| OutputError::io(&path, error);
        if path.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        let temporary = folder.join(format!(".{name}.{}.tmp", std::process::id()));
        let file = File::create(&temporary).map_err(failed)?;
        self.files.push((temporary, path.clone()));
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let written = write(&mut out).and_then(|()| out.flush()).and_then(|()| out.get_ref().sync_all());
        if written.is_err() {
            // Else it would try once more to write what it holds.
            drop(out.into_parts());
        }
        written.map_err(failed)
    }

    /// Gives every file its name.
    fn commit(&mut self) -> Result<Vec<PathBuf>, OutputError> {
        let mut paths = Vec::with_capacity(self.files.len());
        // One by one: where this fails midway, the rest is removed.
        while let Some((temporary, path)) = self.files.first() {
            fs::rename(temporary, path).map_err(|error| OutputError::io(path, error))?;
            paths.push(self.files.remove(0).1);
        }
        Ok(paths)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        for (temporary, _) in &self.files {
            let _ = fs::remove_file(temporary);
        }
    }
}

fn json_to(document: &impl serde::Serialize, out: &mut BufWriter<File>) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    out.write_all(b"\n")
}

/// One table as Parquet, compressed by Snappy, which every reader knows.
fn table_to(table: Result<RecordBatch, ArrowError>, out: &mut BufWriter<File>) -> io::Result<()> {
    let table = table.map_err(io::Error::other)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        // The library's name and version would make the bytes differ between builds that give the same results.
        .set_created_by("flowstamp".to_owned())
        .build();
    // The writer tells of a failed write in words of its own; the system's reason is kept here.
    let mut out = Remember { out, error: None };
    let write = |out: &mut Remember<'_>| {
        let mut writer = ArrowWriter::try_new(out, table.schema(), Some(properties))?;
        writer.write(&table)?;
        writer.close().map(|_| ())
    };
    let result = write(&mut out);
    match out.error.take() {
        Some(error) => Err(error),
        None => result.map_err(io::Error::other),
    }
}

/// Passes bytes on and remembers the first error.
struct Remember<'a> {
    out: &'a mut BufWriter<File>,
    error: Option<io::Error>,
}

impl Remember<'_> {
    fn keep(&mut self, error: io::Error) -> io::Error {
        let told = io::Error::from(error.kind());
        self.error.get_or_insert(error);
        told
    }
}

impl Write for Remember<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(|error| self.keep(error))
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|error| self.keep(error))
    }
}

/// The captured packets as pcapng, one interface per link.
///
/// # Errors
///
/// Those of `out`.
pub fn trace_to(results: &Results, out: impl Write) -> io::Result<()> {
    let (mut writer, interfaces) = trace_writer(out, &results.capture.links)?;
    let mut buffer = [0; frame::MAX_LEN];
    let mut sack = Vec::with_capacity(frame::MAX_SACK_BLOCKS);
    for packet in &results.capture.packets {
        let blocks = packet.sack.iter();
        sack.clear();
        sack.extend(blocks.map(|block| (tcp_sequence(packet, block.0), tcp_sequence(packet, block.1))));
        let spec = frame_of(packet, &sack);
        let len = spec.write(&mut buffer);
        let interface = interfaces[packet.link as usize];
        writer.write_packet(interface, packet.time_ps, &buffer[..len], spec.wire_len(), None)?;
    }
    writer.finish().map(|_| ())
}

/// Bytes of the IPv4 header and of a TCP header without options.
const IP_TCP_LEN: u32 = 40;

/// Bytes of the header between IP and TCP.
fn shim_len(protocol: Protocol) -> u32 {
    match protocol {
        Protocol::Xcp | Protocol::XcpDraft => xcp::HEADER_LEN as u32,
        Protocol::Rcp => rcp::HEADER_LEN as u32,
        _ => 0,
    }
}

/// A sequence number in packets as TCP's in bytes; the first byte is number 1, after a SYN.
fn tcp_sequence(packet: &CapturedPacket, seq: u32) -> u32 {
    let payload = packet.packet_bytes.saturating_sub(IP_TCP_LEN + shim_len(packet.protocol)).max(1);
    // The last packet may be shorter.
    let short = if seq >= packet.packets { packet.packet_bytes.saturating_sub(packet.last_size) } else { 0 };
    seq.wrapping_mul(payload).wrapping_sub(short.min(payload)).wrapping_add(1)
}

/// What the stamp says in the terms of the Internet-Draft, if it is XCP's: the paper's window form becomes
/// `X = rtt s / cwnd` and a feedback divided by the RTT.
fn xcp_view(packet: &CapturedPacket) -> Option<View> {
    let read: fn(&Stamp, f64) -> View = match packet.protocol {
        Protocol::Xcp => Window::read,
        Protocol::XcpDraft => Throughput::read,
        _ => return None,
    };
    Some(read(&packet.stamp, f64::from(packet.packet_bytes)))
}

/// XCP's header; acks have the minimal one.
fn xcp_header(packet: &CapturedPacket, view: View) -> xcp::Header {
    let feedback = xcp::saturating_bytes_per_sec(view.feedback);
    if packet.data {
        let x = xcp::Seconds28::from_secs_f64(view.inter_packet_s);
        let rtt = xcp::Seconds28::from_secs_f64(view.rtt_s);
        xcp::Header::standard(x, rtt, 0, feedback)
    } else {
        xcp::Header::minimal(feedback)
    }
}

/// RCP's header. A wish beyond what it can tell is one for as much as there is.
fn rcp_header(packet: &CapturedPacket) -> rcp::Header {
    let stamp = RcpHeader::from(packet.stamp);
    let rate = rcp::BytesPerMilli::from_bytes_per_sec(stamp.rate);
    if !packet.data {
        return rcp::Header::ack(rate);
    }
    let wish = if rate == rcp::BytesPerMilli::MAX { rcp::BytesPerMilli::NONE } else { rate };
    let rtt =
        if stamp.rtt_s > 0.0 { rcp::Millis16::from_secs_f64(stamp.rtt_s) } else { rcp::Millis16::UNKNOWN };
    rcp::Header::data(wish, rtt)
}

fn shim_of(packet: &CapturedPacket) -> Option<Shim> {
    if packet.protocol == Protocol::Rcp {
        return Some(Shim::Rcp(rcp_header(packet)));
    }
    xcp_view(packet).map(|view| Shim::Xcp(xcp_header(packet, view)))
}

/// Sequence and acknowledgement number. A SYN takes the number before the first byte, a FIN the one after the last.
fn numbers(packet: &CapturedPacket) -> (u32, u32) {
    let here = tcp_sequence(packet, packet.seq);
    match (packet.data, packet.syn) {
        (true, true) => (0, 0),
        (false, true) => (0, 1),
        (true, false) => (here, 1),
        (false, false) => (1, here.wrapping_add(u32::from(packet.fin))),
    }
}

/// The packet as it would be on a real wire. Host `2 flow + 1` sends the data, host `2 flow + 2` the acks.
fn frame_of<'a>(packet: &CapturedPacket, sack: &'a [(u32, u32)]) -> FrameSpec<'a> {
    let (sender, receiver) = (2 * packet.flow + 1, 2 * packet.flow + 2);
    let port = 49_152 + (packet.flow % 16_384) as u16; // those that no service is registered for
    let (seq, ack) = numbers(packet);
    FrameSpec {
        src_host: if packet.data { sender } else { receiver },
        dst_host: if packet.data { receiver } else { sender },
        src_port: port,
        dst_port: port,
        seq,
        ack,
        window: u16::MAX,
        flags: Flags {
            syn: packet.syn,
            fin: packet.fin,
            ack: !(packet.syn && packet.data),
            ece: packet.ecn_echo,
            cwr: packet.cwr,
        },
        ecn: match (packet.ecn_capable, packet.congestion_experienced) {
            (_, true) => Ecn::Ce,
            (true, false) => Ecn::Ect0,
            (false, false) => Ecn::NotEct,
        },
        sack,
        shim: shim_of(packet),
        ip_len: packet.size.min(u32::from(u16::MAX)) as u16,
        id: packet.seq as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(protocol: Protocol, data: bool, stamp: [f64; 3]) -> CapturedPacket {
        CapturedPacket {
            time_ps: 0,
            link: 0,
            flow: 3,
            data,
            control: false,
            syn: false,
            fin: false,
            seq: 2,
            size: if data { 1000 } else { 40 },
            packet_bytes: 1000,
            packets: u32::MAX,
            last_size: 1000,
            ecn_capable: false,
            congestion_experienced: false,
            ecn_echo: false,
            cwr: false,
            protocol,
            stamp: Stamp(stamp),
            sack: Default::default(),
        }
    }

    fn xcp_of(packet: &CapturedPacket) -> xcp::Header {
        match frame_of(packet, &[]).shim {
            Some(Shim::Xcp(header)) => header,
            other => panic!("{other:?} is not XCP's"),
        }
    }

    #[test]
    fn the_window_form_is_told_as_throughput() {
        // 40 packets per 80 ms are one each 2 ms; 500 bytes more per 80 ms are 6250 bytes/s more.
        let stamp = [40_000.0, 0.08, 500.0];
        let data = xcp_of(&packet(Protocol::Xcp, true, stamp));
        assert_eq!(data.x, xcp::Seconds28::from_secs_f64(0.002));
        assert_eq!(data.rtt, xcp::Seconds28::from_secs_f64(0.08));
        assert_eq!((data.delta_throughput, data.reverse_feedback), (6250, 0));
        assert_eq!(xcp_of(&packet(Protocol::Xcp, false, stamp)), xcp::Header::minimal(6250));
    }

    #[test]
    fn the_draft_form_is_told_as_it_is() {
        let stamp = [0.002, 0.08, -6250.0];
        let data = xcp_of(&packet(Protocol::XcpDraft, true, stamp));
        assert_eq!((data.x.to_secs_f64() * 1e3).round(), 2.0);
        assert_eq!(data.delta_throughput, -6250);
        // Nothing is known before the first round trip.
        let first = xcp_of(&packet(Protocol::Xcp, true, [2000.0, 0.0, 0.0]));
        assert_eq!((first.x, first.rtt), (xcp::Seconds28::ZERO, xcp::Seconds28::ZERO));
    }

    #[test]
    fn sequence_numbers_are_of_payload_bytes() {
        let reno = frame_of(&packet(Protocol::Reno, true, [0.0; 3]), &[]);
        assert_eq!((reno.seq, reno.ack, reno.shim), (1 + 2 * 960, 1, None));
        assert_eq!((reno.src_host, reno.dst_host), (7, 8));
        let ack = frame_of(&packet(Protocol::Xcp, false, [0.0; 3]), &[]);
        assert_eq!((ack.seq, ack.ack), (1, 1 + 2 * 940));
        assert_eq!((ack.src_host, ack.dst_host), (8, 7));
    }

    fn rcp_of(packet: &CapturedPacket) -> rcp::Header {
        match frame_of(packet, &[]).shim {
            Some(Shim::Rcp(header)) => header,
            other => panic!("{other:?} is not RCP's"),
        }
    }

    #[test]
    fn rates_of_rcp_are_told_in_bytes_per_millisecond() {
        let rate = rcp::BytesPerMilli::from_bits;
        // 10 Mb/s are 1250 bytes/ms.
        let data = rcp_of(&packet(Protocol::Rcp, true, [1.25e6, 0.08, 5000.0]));
        assert_eq!(data, rcp::Header::data(rate(1250), rcp::Millis16::from_bits(80)));
        assert_eq!(
            rcp_of(&packet(Protocol::Rcp, false, [1.25e6, 0.08, 5000.0])),
            rcp::Header::ack(rate(1250))
        );
        // A SYN before any router: as much as there is, and no RTT.
        let syn = rcp_of(&packet(Protocol::Rcp, true, [1e15, 0.0, 0.0]));
        assert_eq!(syn, rcp::Header::data(rcp::BytesPerMilli::NONE, rcp::Millis16::UNKNOWN));
    }

    /// A flow of two packets, the second of 552 bytes: 948 and 500 of payload behind 52 of headers.
    #[test]
    fn a_flow_opens_and_ends_as_tcp_does() {
        let tcp = |data, seq, (control, syn, fin)| {
            let packet = CapturedPacket {
                seq,
                control,
                syn,
                fin,
                packets: 2,
                last_size: 552,
                ..packet(Protocol::Rcp, data, [1.25e6, 0.08, 0.0])
            };
            let frame = frame_of(&packet, &[]);
            (frame.seq, frame.ack, [frame.flags.syn, frame.flags.fin, frame.flags.ack])
        };
        let (data, syn, fin) = ((false, false, false), (true, true, false), (true, false, true));
        assert_eq!(tcp(true, 0, syn), (0, 0, [true, false, false]));
        assert_eq!(tcp(false, 0, syn), (0, 1, [true, false, true]));
        assert_eq!(tcp(true, 1, data), (949, 1, [false, false, true]));
        assert_eq!(tcp(false, 2, data), (1, 1449, [false, false, true]));
        assert_eq!(tcp(true, 2, fin), (1449, 1, [false, true, true]));
        assert_eq!(tcp(false, 2, fin), (1, 1450, [false, true, true]));
    }
}
