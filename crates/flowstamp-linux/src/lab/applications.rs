//! Runs iperf3, nginx, curl and `flowstamp quic`: starts them on time and ends them with the lab.

use super::file::Lab;
pub use super::flows::Planned;
use super::flows::{Application, Flows};
use super::namespaces::{Id, Place, command};
use super::network::{LEFT, RIGHT};
use super::quic;
use crate::path::{Epoch, PORTS};
use crate::refusal::Refusal;
use anyhow::{Context, bail};
use flowstamp_laws::units::Time;
use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const IPERF_PORT: u16 = 5201;
pub const HTTP_PORT: u16 = 8080;
/// Bytes that an iperf3 client writes to each connection before its data.
const IPERF_COOKIE_BYTES: u64 = 37;

/// All flows in the order of their groups; a flow's index here is its number.
pub fn plan(lab: &Lab) -> Vec<Planned> {
    let of = |(group, flows): (usize, &Flows)| {
        let (start, every) = (flows.start.as_ps(), flows.every.as_ps());
        (0..flows.count)
            .map(move |index| Planned {
                group,
                index,
                start: Time::from_ps(start + every * u64::from(index)),
            })
            .collect::<Vec<_>>()
    };
    lab.flows.iter().enumerate().flat_map(of).collect()
}

/// Bytes that each flow's connection carries before its data.
pub fn preambles(lab: &Lab, plan: &[Planned]) -> Vec<u64> {
    let of = |flow: &Planned| match lab.flows[flow.group].app {
        Application::Iperf3 => IPERF_COOKIE_BYTES,
        Application::Http | Application::H3 | Application::Video => 0,
    };
    plan.iter().map(of).collect()
}

/// The running programs, which are killed when this is dropped.
pub struct Applications<'a> {
    id: &'a Id,
    lab: &'a Lab,
    plan: &'a [Planned],
    servers: Vec<Child>,
    quic: Option<quic::Server>,
    clients: Vec<(usize, Child)>,
    /// Failures of flows' programs, with the reasons.
    pub failures: Vec<String>,
}

impl<'a> Applications<'a> {
    /// Starts the servers and waits until they listen.
    pub fn start(id: &'a Id, lab: &'a Lab, plan: &'a [Planned]) -> anyhow::Result<Self> {
        let (servers, clients, failures) = (Vec::new(), Vec::new(), Vec::new());
        let mut all = Self { id, lab, plan, servers, quic: None, clients, failures };
        if lab.flows.iter().any(|flows| !flows.app.is_tcp()) {
            all.quic = Some(quic::Server::start(id)?);
        }
        for (number, flow) in plan.iter().enumerate() {
            if lab.flows[flow.group].app == Application::Iperf3 {
                let port = (IPERF_PORT + number as u16).to_string();
                let mut server = command(id, Place::Right, "iperf3")?;
                all.servers.push(spawn(server.args(["-s", "-1", "-p", &port]).stdout(Stdio::null()))?);
            }
        }
        if lab.flows.iter().any(|flows| flows.app == Application::Http) {
            all.nginx()?;
        }
        let iperf3 =
            plan.iter().enumerate().filter(|(_, flow)| lab.flows[flow.group].app == Application::Iperf3);
        let mut ports: Vec<u16> = iperf3.map(|(number, _)| IPERF_PORT + number as u16).collect();
        if all.servers.len() > ports.len() {
            ports.push(HTTP_PORT);
        }
        all.wait_for(&ports)?;
        Ok(all)
    }

    fn nginx(&mut self) -> anyhow::Result<()> {
        let folder = self.id.folder();
        let www = folder.join("www");
        fs::create_dir(&www)?;
        for size in self.lab.flows.iter().filter_map(|flows| flows.size) {
            File::create(www.join(size.get().to_string()))?.set_len(size.get())?;
        }
        let dir = folder.display();
        // One process, which ends with the lab. Its temporary files are in the lab's directory.
        let configuration = format!(
            "daemon off; master_process off; user root; pid {dir}/nginx.pid; error_log {dir}/nginx.log;\n\
             events {{ worker_connections 2048; }}\n\
             http {{ access_log off; sendfile on; keepalive_timeout 0; client_body_temp_path {dir}/body;\n\
             proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi;\n\
             scgi_temp_path {dir}/scgi; server {{ listen {LEFT}:{HTTP_PORT}; root {dir}/www; }} }}\n"
        );
        let file = folder.join("nginx.conf");
        fs::write(&file, configuration)?;
        let mut nginx = command(self.id, Place::Left, "nginx")?;
        let log = folder.join("nginx.log");
        self.servers.push(spawn(nginx.arg("-e").arg(log).arg("-c").arg(file).stdout(Stdio::null()))?);
        Ok(())
    }

    /// Waits until every server's port is in its namespace's table of listening sockets.
    fn wait_for(&mut self, ports: &[u16]) -> anyhow::Result<()> {
        let since = Epoch::start();
        loop {
            let mut open = Vec::new();
            for server in &self.servers {
                open.extend(listening(server.id()));
            }
            if ports.iter().all(|port| open.contains(port)) {
                return Ok(());
            }
            let ended = self.servers.iter_mut().any(|server| !matches!(server.try_wait(), Ok(None)));
            if ended || since.now() > Time::from_secs(10) {
                let log = fs::read_to_string(self.id.folder().join("nginx.log")).unwrap_or_default();
                bail!("the lab's servers do not listen {}", log.lines().next().unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Starts the program of one flow.
    pub fn launch(&mut self, number: usize) -> anyhow::Result<()> {
        let flow = &self.plan[number];
        let flows = &self.lab.flows[flow.group];
        let own_port = (PORTS.start + number as u16).to_string();
        let mut client = match flows.app {
            Application::Iperf3 => {
                let mut iperf3 = command(self.id, Place::Left, "iperf3")?;
                let port = (IPERF_PORT + number as u16).to_string();
                let every = self.lab.probes.every.as_secs_f64().clamp(0.1, 60.0).to_string();
                iperf3.args(["-c", RIGHT, "-J", "-p", &port, "--cport", &own_port, "-i", &every]);
                iperf3.args(["-C", &self.id.congestion_control(self.lab.law_of(flows))]);
                let end = flows.stop.map_or(self.lab.duration, |stop| stop.min(self.lab.duration));
                let duration = end.saturating_sub(flow.start).as_secs_f64();
                iperf3.args(["-t", &(duration.ceil() as u64).to_string()]);
                if let Some(pace) = flows.pace {
                    iperf3.args(["--fq-rate", &format!("{:.0}", pace.bps())]);
                }
                iperf3
            }
            Application::Http => {
                let mut curl = command(self.id, Place::Right, "curl")?;
                let size = flows.size.map_or(0, flowstamp_laws::units::Bytes::get);
                curl.args(["-sS", "-o", "/dev/null", "--local-port", &own_port, "-w", "%{json}"]);
                curl.arg(format!("http://{LEFT}:{HTTP_PORT}/{size}"));
                curl
            }
            Application::H3 | Application::Video => {
                let server = self.quic.as_ref().context("quic serve does not run")?;
                server.client(self.id, self.lab, flows, number, flow.start)?
            }
        };
        let output = File::create(self.output(number))?;
        self.clients.push((number, spawn(client.stdout(output))?));
        Ok(())
    }

    fn output(&self, number: usize) -> std::path::PathBuf {
        self.id.folder().join(format!("flow-{number}.json"))
    }

    /// Removes clients that have ended and records their failures; returns whether none is left.
    pub fn reap(&mut self) -> bool {
        let mut failures = Vec::new();
        self.clients.retain_mut(|(number, child)| match child.try_wait() {
            Ok(None) => true,
            Ok(Some(status)) if status.success() => false,
            _ => {
                failures.push(*number);
                false
            }
        });
        for number in failures {
            let said = self.said(number);
            let why = said.get("error").or_else(|| said.get("errormsg")).and_then(Value::as_str);
            let name = &self.lab.flows[self.plan[number].group].name;
            let index = self.plan[number].index;
            self.failures.push(format!("{name}.{index}: {}", why.unwrap_or("its program failed")));
        }
        self.clients.is_empty()
    }

    /// Records a failure for each iperf3 program that still runs `after` the lab's end. Downloads may be cut
    /// short.
    pub fn miss(&mut self, after: Duration) {
        for (number, _) in &self.clients {
            let flow = &self.plan[*number];
            let group = &self.lab.flows[flow.group];
            if group.app == Application::Iperf3 {
                let what = format!("iperf3 had not ended {} s after the lab", after.as_secs());
                self.failures.push(format!("{}.{}: {what}", group.name, flow.index));
            }
        }
    }

    /// The document that a flow's program wrote; null if it wrote none.
    pub fn said(&self, number: usize) -> Value {
        let text = fs::read_to_string(self.output(number)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }
}

impl Drop for Applications<'_> {
    fn drop(&mut self) {
        for child in self.servers.iter_mut().chain(self.clients.iter_mut().map(|(_, child)| child)) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(command: &mut Command) -> anyhow::Result<Child> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Refusal(format!("{program} is missing; tools/install-linux.sh installs it")).into()
        }
        _ => anyhow::Error::new(error).context(program),
    })
}

/// Listening TCP ports in the network namespace of a process.
fn listening(pid: u32) -> Vec<u16> {
    let mut ports = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text =
            fs::read_to_string(Path::new("/proc").join(format!("{pid}/net/{table}"))).unwrap_or_default();
        for line in text.lines().skip(1) {
            let mut words = line.split_whitespace().skip(1);
            let (local, state) = (words.next(), words.nth(1));
            // 0A is LISTEN.
            if state == Some("0A")
                && let Some((_, port)) = local.and_then(|local| local.rsplit_once(':'))
                && let Ok(port) = u16::from_str_radix(port, 16)
            {
                ports.push(port);
            }
        }
    }
    ports
}

/// Checks that the programs that the lab needs are installed.
pub fn check(lab: &Lab) -> anyhow::Result<()> {
    let mut needed = vec!["ip", "ethtool"];
    for flows in &lab.flows {
        needed.extend(match flows.app {
            Application::Iperf3 => ["iperf3"].as_slice(),
            Application::Http => &["nginx", "curl"],
            Application::H3 | Application::Video => &[],
        });
        if !flows.app.is_tcp() {
            quic::program()?;
        }
    }
    let path = std::env::var_os("PATH").context("PATH is not set")?;
    for program in needed {
        if !std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
            return Err(Refusal(format!("{program} is missing; tools/install-linux.sh installs it")).into());
        }
    }
    Ok(())
}
