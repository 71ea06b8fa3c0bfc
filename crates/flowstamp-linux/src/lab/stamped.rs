//! Flowstamp's programs in a lab: the end host on both hosts, and the BPF router on the router's interface.
//! All names contain the lab's id, and the machine's own Flowstamp objects stay untouched.

use super::file::{Lab, PACKET_BYTES};
use super::flows::Control;
use super::namespaces::{Id, Place, command, run};
use super::shaper;
use crate::features::Feature;
use crate::law::{self, Law};
use crate::path::Epoch;
use crate::refusal::Refusal;
use crate::router::police::Flow;
use anyhow::Context;
use flowstamp_laws::registry::RouterSpec;
use flowstamp_laws::router::RouterView;
use flowstamp_laws::share::{Params, split::Split};
use flowstamp_laws::units::Time;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

fn this_program() -> anyhow::Result<String> {
    Ok(std::env::current_exe()?.to_str().context("this program's path is not UTF-8")?.to_owned())
}

/// Exit code of a refusal.
const REFUSED: i32 = 2;

/// Runs `flowstamp-linux`, and passes its refusal on in the same words.
fn ours(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().context("flowstamp-linux")?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = said.lines().last().unwrap_or("it ended without a word");
    let line = line.trim_start_matches("flowstamp: ").to_owned();
    if output.status.code() == Some(REFUSED) { Err(Refusal(line).into()) } else { Err(anyhow::anyhow!(line)) }
}

impl Id {
    /// Prefix of the end host's pins and congestion controls.
    fn host_name(&self) -> String {
        format!("fs-{}", self.text())
    }

    /// The name of a congestion control in the kernel.
    pub fn congestion_control(&self, law: Control) -> String {
        match law {
            Control::Stamped(law) => law.congestion_control(&self.host_name()),
            Control::Kernel(name) | Control::Quic(name) => name.to_owned(),
        }
    }

    fn pins(&self) -> PathBuf {
        Path::new("/sys/fs/bpf").join(self.host_name())
    }

    fn router_pins(&self) -> PathBuf {
        Path::new("/sys/fs/bpf").join(format!("{}-router", self.host_name()))
    }
}

/// Enables our laws on both hosts.
pub fn enable_hosts(id: &Id, law: &Law, any_rtt: bool) -> anyhow::Result<()> {
    let cgroup =
        id.cgroup().ok_or_else(|| Refusal("there is no cgroup2 file system; mount one".to_owned()))?;
    for place in [Place::Left, Place::Right] {
        let mut host = command(id, place, &this_program()?)?;
        host.args(["host", "enable", "--law", law.name, "--cgroup"]).arg(&cgroup);
        host.args(any_rtt.then_some("--any-rtt"));
        ours(host.env("FLOWSTAMP_NAME", id.host_name()))?;
    }
    Ok(())
}

/// The hosts' `host status` as JSON.
pub fn hosts_status(id: &Id) -> anyhow::Result<serde_json::Value> {
    let mut host = Command::new(this_program()?);
    host.args(["host", "status", "--json", "--departures"]).env("FLOWSTAMP_NAME", id.host_name());
    let output = host.output().context("flowstamp-linux")?;
    anyhow::ensure!(
        output.status.success(),
        "host status: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Makes a shaped link out of the router's namespace, and attaches the law to it.
pub fn attach_router(id: &Id, lab: &Lab) -> anyhow::Result<()> {
    let rate = lab.path.mean_rate();
    let name = id.namespace(Place::Router);
    if lab.path.varies() {
        if !Feature::Htb.is_present() {
            let text = "lab: a rate that varies needs the qdisc htb where = \"bpf\", which this kernel lacks";
            return Err(Refusal(text.into()).into());
        }
        shaper::make(id, &lab.path.capacity(), lab.path.buffer_bytes())?;
    } else if lab.router.share.is_none() {
        // Burst: 1 ms at the rate, and at least two packets. Timers need that much at high rates, and no
        // more.
        let burst = (rate.bytes_per_sec() * 1e-3).max(2.0 * PACKET_BYTES as f64) as u64;
        let words = format!(
            "-n {name} qdisc replace dev out root tbf rate {:.0}bit burst {burst} limit {}",
            rate.bps(),
            lab.path.buffer_bytes()
        );
        run(Command::new("tc").args(words.split(' '))).map_err(|error| match Feature::Tbf.is_present() {
            true => error,
            false => {
                Refusal("lab: router.where = \"bpf\" needs the qdisc tbf, which this kernel lacks".into())
                    .into()
            }
        })?;
    }
    if lab.router.law == RouterSpec::default() && lab.router.scone.is_none() {
        return Ok(());
    }
    let mut router = Command::new(this_program()?);
    router.args(["router", "attach", "out", "--netns", &name]);
    if lab.router.law != RouterSpec::default() {
        let law = law::law_of(&lab.router.law)?;
        router.args(["--law", law.name]);
        if !law.blind {
            router.args(["--rate", &rate.to_string()]);
        }
    }
    for set in &lab.router.sets {
        router.args(["--set", set]);
    }
    if lab.router.share.is_some() {
        router.args(["--share", "htb", "--buffer", &format!("{}B", lab.path.buffer_bytes())]);
    }
    if let Some(scone) = lab.router.scone {
        router.args(["--scone", "--scone-rate", &scone.rate.to_string()]);
        router.args(scone.enforce.then_some("--scone-enforce"));
    }
    ours(router.arg("--pins").arg(id.router_pins()))
}

/// `router status` of the router's SCONE, as JSON.
pub fn scone_status(id: &Id) -> anyhow::Result<serde_json::Value> {
    let mut router = Command::new(this_program()?);
    router.args(["router", "status", "--json", "--pins"]).arg(id.router_pins());
    let output = router.output().context("flowstamp-linux")?;
    let mut status: serde_json::Value = serde_json::from_slice(&output.stdout).context("router status")?;
    Ok(status[0]["scone"].take())
}

/// Attaches the police before and after the law, if the file asks for it.
pub fn police_router(id: &Id, lab: &Lab) -> anyhow::Result<()> {
    let Some(police) = &lab.router.police else { return Ok(()) };
    let mut router = Command::new(this_program()?);
    router.args(["router", "police", "out", "--netns", &id.namespace(Place::Router)]);
    router.args(["--retest", &police.retest.to_string(), "--isolate", &police.isolate.to_string()]);
    if let Some(heavy) = police.heavy {
        router.args(["--least", &heavy.to_string()]);
    }
    ours(router.arg("--pins").arg(id.router_pins()))
}

/// The process `router share`, which updates a shared link's weights. It is killed when this is dropped.
pub struct Sharer(Child);

impl Sharer {
    pub fn start(id: &Id) -> anyhow::Result<Self> {
        let mut router = command(id, Place::Router, &this_program()?)?;
        router.args(["router", "share", "out", "--netns", &id.namespace(Place::Router), "--pins"]);
        router.arg(id.router_pins()).stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Self(router.spawn().context("flowstamp-linux")?))
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Sharer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A thread that queries the BPF router at fixed intervals until stopped.
pub struct Watch<T> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<(Time, T)>>>,
}

/// The law's variables, by the names of the simulator's laws.
pub type Variables = Vec<(&'static str, f64)>;

/// Names of the variables that `router status` and the simulator's laws have in common.
fn names(lab: &Lab) -> Vec<&'static str> {
    let mut names = Vec::new();
    let kernels = law::law_of(&lab.router.law).map_or(&[][..], |law| law.variables);
    if let Some(router) = lab.router.law.build(&RouterView::of(lab.path.mean_rate())) {
        router.variables(&mut |name, _| names.push(name));
        // Every kernel law has an interval, that of its timer.
        names.retain(|name| *name == "interval_s" || kernels.iter().any(|variable| variable.name == *name));
    }
    if lab.router.share.is_some() {
        let split = Split::resume(&Params::default(), lab.path.mean_rate(), 0.5, Time::ZERO);
        split.variables(&mut |name, _| names.push(name));
        names.extend(["own_queue_bytes", "other_queue_bytes"]);
    }
    names
}

/// Minimum interval between queries, because each one starts a process.
const MIN_INTERVAL: Duration = Duration::from_millis(200);

/// Samples the law's variables.
pub fn watch_law(id: &Id, lab: &Lab, every: Duration, epoch: Epoch) -> anyhow::Result<Watch<Variables>> {
    let names = names(lab);
    Watch::start(id, &["status", "--json"], every, epoch, move |answer| variables(&names, answer))
}

/// Samples the police's flows, if there is a police.
pub fn watch_police(
    id: &Id,
    lab: &Lab,
    every: Duration,
    epoch: Epoch,
) -> anyhow::Result<Option<Watch<Vec<Flow>>>> {
    let question = ["police", "out", "--netns", &id.namespace(Place::Router), "--list", "--json"];
    let known = |answer: &[u8]| serde_json::from_slice(answer).ok();
    lab.router.police.map(|_| Watch::start(id, &question, every, epoch, known)).transpose()
}

impl<T: Send + 'static> Watch<T> {
    fn start(
        id: &Id,
        question: &[&str],
        every: Duration,
        epoch: Epoch,
        read: impl Fn(&[u8]) -> Option<T> + Send + 'static,
    ) -> anyhow::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let mut router = Command::new(this_program()?);
        router.arg("router").args(question).arg("--pins").arg(id.router_pins());
        let every = every.max(MIN_INTERVAL);
        let thread = std::thread::Builder::new().name("status".to_owned()).spawn(move || {
            let mut all = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let time = epoch.now();
                if let Some(answer) = router.output().ok().and_then(|output| read(&output.stdout)) {
                    all.push((time, answer));
                }
                let next = time + Time::from_nanos(every.as_nanos() as u64);
                std::thread::sleep(Duration::from_nanos(next.saturating_sub(epoch.now()).as_ps() / 1000));
            }
            all
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Stops and returns the answers.
    pub fn finish(mut self) -> Vec<(Time, T)> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl<T> Drop for Watch<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn variables(names: &[&'static str], answer: &[u8]) -> Option<Vec<(&'static str, f64)>> {
    let answer: serde_json::Value = serde_json::from_slice(answer).ok()?;
    let router = answer.get(0)?;
    Some(names.iter().filter_map(|name| Some((*name, router[*name].as_f64()?))).collect())
}

/// Removes the hosts' and the router's programs; returns whether there were any.
pub fn remove(id: &Id) -> bool {
    let mut any = false;
    if id.pins().exists()
        && let Ok(program) = this_program()
    {
        let mut host = Command::new(program);
        any |= ours(host.args(["host", "disable"]).env("FLOWSTAMP_NAME", id.host_name())).is_ok();
    }
    for pins in [id.pins(), id.router_pins()] {
        // Programs and links live as long as their pins.
        any |= fs::remove_dir_all(&pins).is_ok();
    }
    any
}
