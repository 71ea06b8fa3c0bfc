//! The program `flowstamp-quic`, which the command `flowstamp quic` starts.

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::units::{Bytes, Rate, Time};
use flowstamp_laws::video::{Advice, Choice, Params};
use flowstamp_quic::get::{Fetched, TIMEOUT, Watch, Wish, get, within};
use flowstamp_quic::serve::{Site, serve};
use flowstamp_quic::video::{Row, Watched};
use flowstamp_quic::{controller, endpoint, path, tls, video};
use flowstamp_wire::scone::Signal;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::fs::File;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// QUIC hosts with the laws of the simulator.
#[derive(Debug, Parser)]
#[command(name = "flowstamp", version, disable_help_subcommand = true)]
struct Options {
    #[command(subcommand)]
    command: Top,
}

#[derive(Debug, Subcommand)]
enum Top {
    /// Send files over QUIC under any law, without root
    #[command(subcommand)]
    Quic(Command),
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve files by HTTP/3 until stopped, and bodies of any size as /bytes/SIZE
    Serve(Serve),
    /// Fetch a page by HTTP/3, and print goodput, RTT and losses
    Get(Get),
    /// Watch a video by HTTP/3, whose bitrate adapts to buffer, throughput or the network's advice
    Video(Video),
    /// Forward between a client and a server with a rate, a delay and a router's law, until stopped
    Path(Path),
    /// List the laws that QUIC carries
    Laws,
}

#[derive(Debug, Args)]
struct Serve {
    /// Address and port; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:4433", value_parser = socket)]
    listen: SocketAddr,
    /// Law of connections whose client names none: a name, or a JSON table with `law` and its parameters
    #[arg(long, default_value = "cubic")]
    law: String,
    /// Refuse clients that name another law
    #[arg(long)]
    fixed: bool,
    /// Folder of the files
    #[arg(long)]
    root: Option<PathBuf>,
    /// Size of datagrams above UDP in bytes, 1200 to 1420
    #[arg(long, default_value_t = 1200, value_parser = mtu)]
    mtu: u16,
    /// Print address and certificate as one line of JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Get {
    /// https://HOST[:PORT]/PATH
    #[arg(value_parser = page)]
    url: http::Uri,
    #[command(flatten)]
    connect: Connect,
    /// File for the body. Default: it is discarded
    #[arg(long, short)]
    output: Option<PathBuf>,
    /// End the download after so many seconds, complete or not
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// Put the bytes received so far into the JSON, at this interval in seconds
    #[arg(long, value_parser = seconds, requires = "json")]
    every: Option<f64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// How a client connects.
#[derive(Debug, Args)]
struct Connect {
    /// Law of both ends: a name, or a JSON table with `law` and its parameters. Default: the server's
    #[arg(long)]
    law: Option<String>,
    /// SHA-256 of the server's certificate, which `serve` prints
    #[arg(long, conflicts_with = "insecure", value_parser = digits)]
    fingerprint: Option<String>,
    /// Trust any server
    #[arg(long)]
    insecure: bool,
    /// Ask for SCONE packets, in which the network writes throughput advice
    #[arg(long)]
    scone: bool,
    /// Size of datagrams above UDP in bytes, 1200 to 1420
    #[arg(long, default_value_t = 1200, value_parser = mtu)]
    mtu: u16,
    /// Timeout in seconds; for a video, it counts beyond the video's length
    #[arg(long, default_value_t = TIMEOUT.as_secs_f64())]
    timeout: f64,
    /// This host's UDP port. Default: a free one
    #[arg(long, default_value_t = 0)]
    local_port: u16,
}

#[derive(Debug, Args)]
struct Video {
    /// https://HOST[:PORT]/ of a server that has bodies of any size, such as `serve`
    #[arg(value_parser = page)]
    url: http::Uri,
    #[command(flatten)]
    connect: Connect,
    /// Duration of the video, a whole number of segments. Default: 60s
    #[arg(long)]
    length: Option<Time>,
    /// Duration of a segment. Default: 4s
    #[arg(long)]
    segment: Option<Time>,
    /// Bitrates, rising, such as 1Mbps,3Mbps. Default: eleven from 235kbps to 5Mbps
    #[arg(long, value_delimiter = ',')]
    ladder: Vec<Rate>,
    /// Rule for the next segment: rate, buffer, or advice. Default: rate
    #[arg(long, value_parser = choice::<Choice>)]
    choice: Option<Choice>,
    /// The use of the advice of --scone: follow or ignore. Default: follow
    #[arg(long, value_parser = choice::<Advice>)]
    advice: Option<Advice>,
    /// Other parameters of the client, as a JSON table with their names in scenarios, such as '{"max_buffer": "20s"}'
    #[arg(long, default_value = "{}")]
    player: String,
    /// End the client after so many seconds, before the video's end
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Path {
    /// Address and port for clients; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:4434", value_parser = socket)]
    listen: SocketAddr,
    /// Address and port of the server
    #[arg(long, default_value = "127.0.0.1:4433", value_parser = socket)]
    to: SocketAddr,
    /// Rate towards the client, such as 10Mbps
    #[arg(long)]
    rate: Rate,
    /// Delay each way, such as 20ms
    #[arg(long)]
    delay: Time,
    /// Buffer towards the client, such as 64kB. Default: what the rate carries in a round trip
    #[arg(long)]
    buffer: Option<Bytes>,
    /// Law of the router: none, rcp or xcp, or a JSON table with `law` and its parameters
    #[arg(long, default_value = "none")]
    law: String,
    /// Highest rate that SCONE packets may advise, such as 5Mbps
    #[arg(long)]
    scone_rate: Option<Rate>,
}

const HELP_INSTEAD: clap::error::ErrorKind = clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;

fn mtu(text: &str) -> Result<u16, String> {
    let range = endpoint::MTU;
    match text.parse() {
        Ok(mtu) if range.contains(&mtu) => Ok(mtu),
        _ => Err(format!("it must be {} to {}", range.start(), range.end())),
    }
}

fn seconds(text: &str) -> Result<f64, &'static str> {
    let good = |seconds: &f64| (1e-3..1e6).contains(seconds);
    text.parse().ok().filter(good).ok_or("it must be a number of seconds, from 0.001 to below 1000000")
}

/// Reads a word of a closed set.
fn choice<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(json!(text)).map_err(|error| error.to_string())
}

fn socket(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "it must be an IP address and a port, like 127.0.0.1:4433")
}

fn page(text: &str) -> Result<http::Uri, &'static str> {
    text.parse().map_err(|_| "it must be like https://127.0.0.1:4433/bytes/1000000")
}

fn digits(text: &str) -> Result<String, &'static str> {
    if text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        Ok(text.to_owned())
    } else {
        Err("it must be the 64 hexadecimal digits that `serve` prints")
    }
}

/// Joins clap's paragraphs to one line: the first says what is wrong, and a second may say what would be right.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let told: Vec<_> = text
        .split("\n\n")
        .filter(|part| !part.starts_with("Usage") && !part.starts_with("For more"))
        .collect();
    let told = told.join("; ").split_whitespace().collect::<Vec<_>>().join(" ");
    told.trim_start_matches("error: ").to_owned()
}

fn main() -> ExitCode {
    let Top::Quic(command) = match Options::try_parse() {
        Ok(options) => options.command,
        // Help, version, and the help that clap prints for a missing subcommand.
        Err(error) if !error.use_stderr() || error.kind() == HELP_INSTEAD => error.exit(),
        Err(error) => {
            let _ = writeln!(io::stderr(), "flowstamp: {}", one_line(&error));
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let done = runtime.context("no runtime").and_then(|runtime| runtime.block_on(run(command)));
    match done {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "flowstamp: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Laws => writeln!(io::stdout(), "{}", SenderSpec::names_over_quic().join("\n"))?,
        Command::Serve(options) => run_serve(options).await?,
        Command::Path(options) => run_path(options).await?,
        Command::Video(options) => run_video(options).await?,
        Command::Get(options) => return run_get(options).await,
    }
    Ok(ExitCode::SUCCESS)
}

async fn run_serve(options: Serve) -> anyhow::Result<()> {
    if let Some(root) = &options.root {
        anyhow::ensure!(root.is_dir(), "--root: there is no folder {}", root.display());
    }
    let law = controller::default_law(&options.law).map_err(anyhow::Error::msg)?;
    let server = endpoint::Server::bind(options.listen, options.mtu);
    let server = Arc::new(server.with_context(|| options.listen.to_string())?);
    let (address, print) = (server.address()?, server.fingerprint().to_owned());
    let mut out = io::stdout();
    if options.json {
        writeln!(
            out,
            "{}",
            json!({"url": format!("https://{address}/"), "law": law.name(), "fingerprint": print})
        )?;
    } else {
        writeln!(out, "serving      https://{address}/\nlaw          {}\nfingerprint  {print}", law.name())?;
    }
    out.flush()?;
    let site = Site { law, clients_choose: !options.fixed, root: options.root };
    tokio::select! {
        () = serve(server, Arc::new(site)) => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(())
}

async fn run_path(options: Path) -> anyhow::Result<()> {
    let router = controller::router(&options.law).map_err(anyhow::Error::msg)?;
    let scone = options.scone_rate.map(|rate| {
        Signal::at_most(rate.bps() as u64).with_context(|| {
            format!("--scone-rate: {rate} is below SCONE's lowest rate; use at least 100kbps")
        })
    });
    let Path { listen, to, rate, delay, buffer, .. } = options;
    let spec = path::Spec { listen, to, rate, delay, buffer, router, scone: scone.transpose()? };
    let path = path::Path::start(&spec).with_context(|| listen.to_string())?;
    let mut out = io::stdout();
    writeln!(out, "path         https://{}/ to {to}", path.address())?;
    out.flush()?;
    tokio::signal::ctrl_c().await?;
    writeln!(out, "{}", serde_json::to_string(&path.counts())?)?;
    Ok(())
}

/// Builds a client's request from its options.
fn wish(uri: http::Uri, connect: Connect, watch: Watch) -> anyhow::Result<Wish> {
    let Connect { law, fingerprint, insecure, scone, mtu, timeout, local_port: port } = connect;
    let law = match law {
        Some(text) => Some((controller::law(&text).map_err(anyhow::Error::msg)?, text)),
        None => None,
    };
    anyhow::ensure!(
        insecure || fingerprint.is_some(),
        "--fingerprint is missing; give the one that `serve` prints, or trust any server with --insecure"
    );
    let trust = fingerprint.map_or(tls::Trust::Anybody, tls::Trust::Fingerprint);
    anyhow::ensure!(timeout > 0.0 && timeout < 1e6, "--timeout: it must be above 0 and below 1e6");
    let timeout = Duration::from_secs_f64(timeout);
    Ok(Wish { law, mtu, scone, timeout, port, watch, ..Wish::new(uri, trust) })
}

async fn run_video(options: Video) -> anyhow::Result<()> {
    let mut params: Params =
        serde_json::from_str(&options.player).map_err(|error| anyhow::anyhow!("--player: {error}"))?;
    let length = options.length.or(params.length).unwrap_or(Time::from_secs(60));
    params.length = Some(length);
    params.segment = options.segment.unwrap_or(params.segment);
    params.choice = options.choice.unwrap_or(params.choice);
    params.advice = options.advice.unwrap_or(params.advice);
    if !options.ladder.is_empty() {
        params.ladder = options.ladder;
    }
    params.check().map_err(|(key, why)| anyhow::anyhow!("video: {key} {why}"))?;
    let watch = Watch { lasts: options.seconds.map(Duration::from_secs_f64), every: None };
    let mut wish = wish(options.url, options.connect, watch)?;
    wish.timeout += Duration::from_secs_f64(length.as_secs_f64());
    let line = |row: &Row| if options.json { Ok(()) } else { show_segment(row) };
    let watched = within(&wish, video::watch(&wish, &params, line)).await?;
    if options.json {
        writeln!(io::stdout(), "{}", serde_json::to_string(&watched)?)?;
    } else {
        show_watched(&watched)?;
    }
    Ok(())
}

fn megabits(bps: f64) -> String {
    format!("{:.2} Mb/s", bps / 1e6)
}

fn advised(bps: Option<u64>) -> String {
    bps.map_or_else(|| "none".to_owned(), |bps| megabits(bps as f64))
}

fn show_segment(row: &Row) -> io::Result<()> {
    let Row { segment, requested_seconds, bitrate_bps, bytes, seconds, buffer_seconds, advice_bps } = *row;
    let mut out = io::stdout();
    writeln!(
        out,
        "segment {segment:3}  at {requested_seconds:6.1} s  {}  {bytes:8} bytes in {seconds:6.3} s  buffer {buffer_seconds:4.1} s  advice {}",
        megabits(bitrate_bps),
        advised(advice_bps)
    )?;
    out.flush()
}

fn show_watched(watched: &Watched) -> io::Result<()> {
    let mut out = io::stdout();
    writeln!(out, "segments     {}, {} switches", watched.segments.len(), watched.switches)?;
    let mean = watched.mean_bitrate_bps.map_or_else(|| "none".to_owned(), megabits);
    writeln!(out, "bitrate      {mean} on average")?;
    writeln!(out, "startup      {:.2} s", watched.startup_seconds)?;
    writeln!(out, "stalls       {}, {:.2} s", watched.stalls, watched.stalled_seconds)?;
    if let Some(server) = &watched.server {
        writeln!(out, "law          {}", server.law)?;
        writeln!(out, "lost         {} of {} packets", server.lost_packets, server.sent_packets)?;
    }
    if watched.scone_packets > 0 {
        writeln!(
            out,
            "SCONE        {} packets, advice {}",
            watched.scone_packets,
            advised(watched.advice_bps)
        )?;
    }
    Ok(())
}

async fn run_get(options: Get) -> anyhow::Result<ExitCode> {
    let [lasts, every] = [options.seconds, options.every].map(|s| s.map(Duration::from_secs_f64));
    let wish = wish(options.url, options.connect, Watch { lasts, every })?;
    let mut start = Start::default();
    let fetched = match &options.output {
        Some(path) => {
            let mut file = File::create(path).with_context(|| path.display().to_string())?;
            get(&wish, &mut file).await?
        }
        None => get(&wish, &mut start).await?,
    };
    if options.json {
        writeln!(io::stdout(), "{}", serde_json::to_string(&fetched)?)?;
    } else {
        show(&fetched)?;
    }
    // Without a status, the download has ended by --seconds before the answer.
    if matches!(fetched.status, 0 | 200) {
        return Ok(ExitCode::SUCCESS);
    }
    // Without --output, this is the only place where the server's reason can be read.
    let reason = String::from_utf8_lossy(&start.0);
    let reason: String =
        reason.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).collect();
    if !reason.is_empty() {
        writeln!(io::stderr(), "flowstamp: {}: {}", fetched.url, reason)?;
    }
    Ok(ExitCode::FAILURE)
}

/// Keeps the first bytes of a body, which are a server's reason to refuse, and discards the rest.
#[derive(Default)]
struct Start(Vec<u8>);

impl Write for Start {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let room = 500_usize.saturating_sub(self.0.len());
        self.0.extend(piece.iter().take(room));
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn show(fetched: &Fetched) -> io::Result<()> {
    let mut out = io::stdout();
    match fetched.status {
        0 => writeln!(out, "status       none: no answer before the end")?,
        status => writeln!(out, "status       {status}")?,
    }
    writeln!(out, "body         {} bytes in {:.3} s", fetched.bytes, fetched.seconds)?;
    writeln!(out, "goodput      {:.2} Mb/s", fetched.goodput_bps / 1e6)?;
    writeln!(out, "handshake    {:.1} ms", fetched.handshake_seconds * 1e3)?;
    let Some(server) = &fetched.server else {
        return writeln!(out, "server       gave no account: its law and losses are unknown");
    };
    let fell_back = if server.fell_back { ", then TCP: its routers are not the bottleneck" } else { "" };
    writeln!(out, "law          {}{fell_back}", server.law)?;
    writeln!(out, "RTT          {:.2} ms smoothed, {:.2} ms least", server.rtt_ms, server.min_rtt_ms)?;
    writeln!(out, "lost         {} of {} packets", server.lost_packets, server.sent_packets)?;
    writeln!(out, "window       {:.1} packets", server.window_packets)?;
    if let Some(rate) = server.rate_bps {
        writeln!(out, "rate         {:.2} Mb/s", rate / 1e6)?;
    }
    if fetched.stamps > 0 {
        writeln!(out, "stamps       {}", fetched.stamps)?;
    }
    if fetched.scone_packets > 0 {
        writeln!(
            out,
            "SCONE        {} packets, advice {}",
            fetched.scone_packets,
            advised(fetched.advice_bps)
        )?;
    }
    Ok(())
}
