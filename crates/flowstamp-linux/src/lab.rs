//! `flowstamp lab`: runs real applications on two hosts with an emulated path between them, in their own
//! network namespaces.

mod applications;
mod backlog;
mod carried;
mod departures;
mod fairness;
mod file;
mod flows;
#[cfg(test)]
mod mutated;
mod namespaces;
mod network;
mod output;
mod parquet;
mod quic;
mod results;
mod shaper;
mod stamped;
mod watches;
mod wire;

use crate::law::Law;
use crate::path::{By, EmulatedPath, Epoch, Liars, LinkSpecification, QueueKind, Report, Specification};
use crate::refusal::Refusal;
use anyhow::Context;
use applications::{Applications, Planned};
use file::{Lab, Where};
use flowstamp_laws::liar::Hears;
use flowstamp_laws::registry::RouterSpec;
use flowstamp_laws::units::Time;
pub use namespaces::Within;
use namespaces::{Id, Lock};
use network::Network;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use watches::Watches;

/// Subcommands.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Run a lab. Exit code 3: the machine was too busy, and the results are invalid.
    Run(Run),
    /// Print the simulator's scenario of the same network and flows.
    Scenario {
        /// The lab's file.
        lab: PathBuf,
        /// Only check the file, which may be of a lab that the simulator cannot run.
        #[arg(long)]
        check: bool,
    },
    /// Remove the remains of a killed lab.
    Clean {
        /// The lab's name on this machine.
        #[arg(long, default_value = "lab")]
        id: String,
    },
}

/// Options of a run.
#[derive(clap::Args)]
pub struct Run {
    /// The lab's file.
    lab: PathBuf,
    /// Folder for the results.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the summary as one JSON document on standard output.
    #[arg(long)]
    json: bool,
    /// Seed of the random losses [default: the file's].
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The lab's name on this machine. Labs with different names can run at the same time.
    #[arg(long, default_value = "lab")]
    id: String,
    /// How frames reach the path [default: the first of these that the machine supports].
    #[arg(long)]
    path_by: Option<By>,
}

/// Exit code of a run that is invalid.
const INVALID: u8 = 3;
/// Time that programs may take to end after the lab's end.
const GRACE: Duration = Duration::from_secs(10);

pub fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(run) => run_lab(run),
        Command::Scenario { lab, check } => {
            let lab = Lab::read(lab)?;
            if !check {
                print!("{}", toml::to_string(&lab.scenario().map_err(Refusal)?)?);
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Clean { id } => {
            let id = Id::new(id)?;
            let _lock = Lock::take(&id)?;
            for name in network::clean(&id) {
                eprintln!("removed {name}");
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

static STOPPED: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: libc::c_int) {
    STOPPED.store(true, Ordering::Relaxed);
}

/// Makes signals such as Ctrl-C end the lab in order, so that it removes everything that it made.
fn catch_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(signal, stop as *const () as libc::sighandler_t) };
    }
    heed_pipes(false);
}

/// Sets whether a closed pipe ends the process: not while the lab has something to remove.
fn heed_pipes(heed: bool) {
    // SAFETY: no handler runs.
    unsafe { libc::signal(libc::SIGPIPE, if heed { libc::SIG_DFL } else { libc::SIG_IGN }) };
}

/// Prints a line of progress; ignores a closed pipe.
fn note(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn run_lab(run: &Run) -> anyhow::Result<ExitCode> {
    let id = Id::new(&run.id)?;
    let mut lab = Lab::read(&run.lab)?;
    lab.seed = run.seed.unwrap_or(lab.seed);
    applications::check(&lab)?;
    let _lock = Lock::take(&id)?;
    catch_signals();
    for name in network::clean(&id) {
        note(&format!("removed {name}, which an earlier lab had left"));
    }
    let begun = Epoch::start();
    let plan = applications::plan(&lab);
    let by = run.path_by.map_or_else(By::choose, Ok)?;
    let network = set_up(&id, &lab, by)?;
    let Some((report, observed)) = measure(&id, &lab, &plan, &network, begun)? else {
        note("stopped; nothing was written");
        return Ok(ExitCode::from(130));
    };
    drop(network);
    heed_pipes(true);
    deliver(run, &lab, &plan, &report, &observed)
}

/// Makes the network, with our laws on its hosts and its router.
fn set_up(id: &Id, lab: &Lab, by: By) -> anyhow::Result<Network> {
    let with_router = lab.router.place == Where::Bpf;
    let network = Network::make(id, with_router, by)?;
    if let Some(law) = our_law(lab) {
        stamped::enable_hosts(id, law, lab.host.any_rtt)?;
    }
    // The kernel's default where no flow is TCP's.
    let host = lab.tcp_laws().last().unwrap_or_default();
    network.congestion_control(&id.congestion_control(host))?;
    if with_router {
        stamped::attach_router(id, lab)?;
        stamped::police_router(id, lab)?;
    }
    Ok(network)
}

/// Runs the flows over the path and measures them; returns `None` if the lab was stopped.
fn measure(
    id: &Id,
    lab: &Lab,
    plan: &[Planned],
    network: &Network,
    begun: Epoch,
) -> anyhow::Result<Option<(Report, results::Observed)>> {
    let mut applications = Applications::start(id, lab, plan)?;
    let path = EmulatedPath::start(path_of(lab, plan, network))?;
    let epoch = path.epoch;
    // A TAP device drops the host's frames while the path does not run: before this point, and after the
    // path's end.
    let dropped_before = network.dropped()?;
    let mut watches = Watches::start(id, lab, epoch)?;
    let before = processors();
    let finished = drive(lab, plan, &path, &mut applications)?;
    if !path.is_running() {
        path.stop()?;
        anyhow::bail!("the path has ended by itself");
    }
    let after = processors();
    let dropped = network.dropped()? - dropped_before;
    // Ends the rate changes before the path, whose end would delay them.
    let changes = watches.as_mut().map_or(Ok(None), Watches::end_changes)?;
    let mut report = path.stop()?;
    if !finished {
        return Ok(None);
    }
    let router = watches.map(Watches::finish).transpose()?;
    let [idle, all] = [0, 1].map(|n| after[n].saturating_sub(before[n]) as f64);
    let idle_share = if all > 0.0 { idle / all } else { 0.0 };
    let failures = std::mem::take(&mut applications.failures);
    let said: Vec<_> = (0..plan.len()).map(|number| applications.said(number)).collect();
    quic::report(&mut report.flows, lab, plan, &said);
    let hosts = our_law(lab).map(|_| stamped::hosts_status(id)).transpose()?.unwrap_or_default();
    let control = |planned: &Planned| {
        let law = lab.law_of(&lab.flows[planned.group]);
        law.law().map(|_| id.congestion_control(law))
    };
    let controls: Vec<_> = plan.iter().map(control).collect();
    let left = departures::of_flows(lab, plan, &hosts, |at_s| epoch.since(at_s), &said, &controls);
    let counters = hosts["counters"].clone();
    let (by, wall_s) = (network.path_by(), begun.now().as_secs_f64());
    let observed = results::Observed {
        by,
        dropped,
        idle_share,
        said,
        failures,
        router,
        changes,
        counters,
        left,
        wall_s,
    };
    Ok(Some((report, observed)))
}

/// The law that the hosts' TCP requests: `host.law`, or the law of the first group with one of ours.
fn our_law(lab: &Lab) -> Option<&'static Law> {
    lab.tcp_laws().find_map(flows::Control::law)
}

/// Ticks of all CPUs since boot: idle, and total.
fn processors() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
    let ticks: Vec<u64> =
        text.split_whitespace().skip(1).take(8).filter_map(|word| word.parse().ok()).collect();
    [ticks.iter().skip(3).take(2).sum(), ticks.iter().sum()]
}

fn path_of(lab: &Lab, plan: &[Planned], network: &Network) -> Specification {
    // With a BPF router, the path of the data is only a delay, because the router has the link. The path back
    // is a plain link.
    let bpf = lab.router.place == Where::Bpf;
    let router = if bpf { RouterSpec::default() } else { results::router_of_path(&lab.router.law) };
    let told = crate::law::law_of(&lab.router.law).map_or(0, |law| (law.told)(&lab.router.law));
    let link = |name, service| LinkSpecification {
        service,
        delay: Time::from_ps(lab.path.rtt.as_ps() / 2),
        buffer_bytes: lab.path.buffer_bytes(),
        queue: if name == file::LINKS[0] { lab.path.queue } else { QueueKind::Droptail },
        loss: lab.path.loss.get(),
        router: router.build(&flowstamp_laws::router::RouterView {
            capacity: Some(lab.path.mean_rate()),
            limit: flowstamp_laws::queue::Limit::Bytes(lab.path.buffer_bytes()),
            packet_bytes: file::PACKET_BYTES as u32,
        }),
        timers: router.traits().first_timers,
        told,
        seed: (lab.seed, name),
        warmup: lab.warmup,
        until: lab.duration,
        every: lab.probes.every,
        recorded: lab.recorded(name),
    };
    Specification {
        by: network.path_by(),
        interfaces: network.path_interfaces(),
        links: [
            link("bottleneck", (!bpf).then(|| lab.path.capacity().service())),
            link("bottleneck.reverse", Some(lab.path.reverse_capacity().service())),
        ],
        preambles: applications::preambles(lab, plan),
        liars: liars_of(lab, plan),
    }
}

/// The liars, if any flow ignores feedback.
fn liars_of(lab: &Lab, plan: &[Planned]) -> Option<Liars> {
    let hears: Vec<_> = plan.iter().map(|planned| lab.flows[planned.group].hears).collect();
    let law = our_law(lab).filter(|_| hears.iter().any(|hears| *hears != Hears::All));
    law.map(|law| Liars::new(law, &hears))
}

/// Starts each flow on time; returns false if the lab was stopped.
fn drive(
    lab: &Lab,
    plan: &[Planned],
    path: &EmulatedPath,
    applications: &mut Applications,
) -> anyhow::Result<bool> {
    let mut order: Vec<usize> = (0..plan.len()).collect();
    order.sort_by_key(|number| plan[*number].start);
    let mut next = 0;
    let mut shown = 0;
    loop {
        let now = path.epoch.now();
        while next < order.len() && plan[order[next]].start <= now {
            applications.launch(order[next])?;
            next += 1;
        }
        let idle = applications.reap();
        if STOPPED.load(Ordering::Relaxed) {
            return Ok(false);
        }
        if !path.is_running() {
            return Ok(true);
        }
        if now > lab.duration + Time::from_millis(1) {
            let over = now.saturating_sub(lab.duration).as_secs_f64();
            if idle || over > GRACE.as_secs_f64() {
                applications.miss(GRACE);
                return Ok(true);
            }
        }
        let second = now.as_secs_f64() as u64;
        if second >= shown + 5 {
            shown = second;
            note(&format!("{second} s of {}", lab.duration));
        }
        let until = order.get(next).map_or(Time::MAX, |number| plan[*number].start).saturating_sub(now);
        std::thread::sleep(Duration::from_nanos(until.as_ps() / 1000).min(Duration::from_millis(20)));
    }
}

fn deliver(
    run: &Run,
    lab: &Lab,
    plan: &[Planned],
    report: &Report,
    observed: &results::Observed,
) -> anyhow::Result<ExitCode> {
    let results = results::results(lab, plan, report, observed);
    if let Some(folder) = &run.out {
        output::write(folder, lab, report, &results).context("results")?;
    }
    if run.json {
        println!("{}", serde_json::to_string_pretty(&results.summary)?);
    } else {
        tell(lab, &results);
    }
    if let Some(why) = &results.invalid {
        eprintln!("flowstamp: this run is invalid: {why}");
        return Ok(ExitCode::from(INVALID));
    }
    anyhow::ensure!(observed.failures.is_empty(), "{}", observed.failures.join("; "));
    Ok(ExitCode::SUCCESS)
}

/// Prints a summary as text.
fn tell(lab: &Lab, results: &results::Results) {
    let s = &results.summary;
    let link = &s["links"]["bottleneck"];
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or(f64::NAN);
    println!("{}", if lab.name.is_empty() { "lab" } else { &lab.name });
    println!(
        "  bottleneck  utilisation {:.1}%, queue mean {:.0} B, p95 {:.0} B, max {:.0} B, drops {}",
        100.0 * number(&link["utilization"]),
        number(&link["mean_queue_bytes"]),
        number(&link["p95_queue_bytes"]),
        number(&link["max_queue_bytes"]),
        link["drops"]
    );
    for flows in &lab.flows {
        let group = &s["groups"][&flows.name];
        print!(
            "  {}  {}: {:.3} Mb/s, retransmitted {}",
            flows.name,
            lab.law_of(flows).name(),
            number(&group["goodput_bps"]) / 1e6,
            group["retransmissions"]
        );
        let [warmup_s, every_s] = [lab.warmup, lab.probes.every].map(Time::as_secs_f64);
        if let Some(fair) = fairness::while_all_active(results, &flows.name, warmup_s, every_s) {
            print!(", Jain {:.4} with all active ({:.1} to {:.1} s)", fair.index, fair.from_s, fair.until_s);
        }
        match group["fct_s"]["all"]["mean"].as_f64() {
            Some(mean) => println!(", {} completed in {mean:.3} s on average", group["completed"]),
            None => println!(),
        }
        let group = &s["hosts"]["groups"][&flows.name];
        if group.is_object() {
            println!("    {}", departures::line(group));
        }
    }
    for video in s["applications"].as_array().into_iter().flatten().filter(|one| one["app"] == "video") {
        println!("  {}", quic::line(video));
    }
    if lab.router.scone.is_some() {
        let scone = &s["scone"];
        println!(
            "  scone  advice {:.3} Mb/s, {} packets, {} lowered, periods over the advice: {} of {}, dropped {}",
            number(&scone["advice_bps"]) / 1e6,
            scone["packets"],
            scone["lowered_packets"],
            scone["periods_over"],
            scone["periods"],
            scone["dropped_packets"]
        );
    }
    let late = &s["path"]["lateness"];
    println!(
        "  packets left late by {:.3} ms (median), {:.3} ms (98%), {:.3} ms (latest)",
        1e3 * number(&late["p50_s"]),
        1e3 * number(&late["p98_s"]),
        1e3 * number(&late["max_s"])
    );
}
