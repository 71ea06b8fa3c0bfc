//! Flowstamp's own parts in a lab: the end host in both hosts, the BPF router on the router's interface. All of it carries the lab's
//! name and none of the machine's own is touched.

use super::file::{Lab, Law, PACKET_BYTES};
use super::network::{Id, Place, command, run};
use crate::refusal::Refusal;
use anyhow::Context;
use flowstamp_laws::registry::RouterSpec;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn this_program() -> anyhow::Result<String> {
    Ok(std::env::current_exe()?.to_str().context("this program's path is not UTF-8")?.to_owned())
}

/// What `flowstamp-linux` refuses, the lab refuses in the same words.
fn ours(command: &mut Command) -> anyhow::Result<()> {
    let output = command.output().context("flowstamp-linux")?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = said.lines().last().unwrap_or("it ended without a word");
    Err(Refusal(line.trim_start_matches("flowstamp: ").to_owned()).into())
}

impl Id {
    /// What the end host's pins and laws are named after.
    fn host_name(&self) -> String {
        format!("fs-{}", self.text())
    }

    /// The name of a law's congestion control to the kernel.
    pub fn congestion_control(&self, law: Law) -> String {
        match law {
            Law::Rcp | Law::Xcp => format!("{}_{}", self.host_name().replace('-', "_"), law.name()),
            other => other.name().to_owned(),
        }
    }

    fn pins(&self) -> PathBuf {
        Path::new("/sys/fs/bpf").join(self.host_name())
    }

    fn router_pins(&self) -> PathBuf {
        Path::new("/sys/fs/bpf").join(format!("{}-router", self.host_name()))
    }
}

/// Lets both hosts' applications choose our laws.
pub fn enable_hosts(id: &Id, law: Law) -> anyhow::Result<()> {
    let cgroup = id.cgroup().ok_or_else(|| Refusal("there is no cgroup2 file system; mount one".to_owned()))?;
    for place in [Place::Left, Place::Right] {
        let mut host = command(id, place, &this_program()?)?;
        host.args(["host", "enable", "--law", law.name(), "--cgroup"]).arg(&cgroup);
        ours(host.env("FLOWSTAMP_NAME", id.host_name()))?;
    }
    Ok(())
}

/// A shaped link out of the router's namespace, and the law on it.
pub fn attach_router(id: &Id, lab: &Lab) -> anyhow::Result<()> {
    let rate = lab.path.rate;
    // A millisecond's worth, and room for two packets: what timers need at high rates, and no more than that.
    let burst = (rate.bytes_per_sec() * 1e-3).max(2.0 * PACKET_BYTES as f64) as u64;
    let name = id.namespace(Place::Router);
    let words = format!(
        "-n {name} qdisc replace dev out root tbf rate {:.0}bit burst {burst} limit {}",
        rate.bps(),
        lab.path.buffer_bytes()
    );
    run(Command::new("tc").args(words.split(' ')))?;
    let (law, options) = match &lab.router.law {
        RouterSpec::Rcp(p) => {
            let options = vec![
                ("--eta", p.eta.to_string()),
                ("--alpha", p.alpha.to_string()),
                ("--beta", p.beta.to_string()),
                ("--initial-rate", p.initial_rate.to_string()),
                ("--initial-rtt", p.initial_rtt.to_string()),
            ];
            ("rcp", options)
        }
        RouterSpec::Xcp(p) => {
            let gains = [("--alpha", p.alpha), ("--beta", p.beta), ("--gamma", p.gamma)];
            ("xcp", gains.map(|(name, value)| (name, value.to_string())).to_vec())
        }
        _ => return Ok(()),
    };
    let mut router = Command::new(this_program()?);
    router.args(["router", "attach", "out", "--law", law, "--rate", &rate.to_string(), "--netns", &name]);
    for (option, value) in options {
        router.args([option, &value]);
    }
    ours(router.arg("--pins").arg(id.router_pins()))
}

/// Takes both away; whether there was anything.
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
