//! The format of a lab's file: a path, a router's law on it, the hosts' law, and applications.

use super::carried::{self, Sizes};
use super::flows::{Control, Flows};
pub use super::wire::PACKET_BYTES;
use super::wire::Path;
use crate::law;
use crate::path::QueueKind;
use crate::refusal::Refusal;
use flowstamp_laws::queue::Limit;
use flowstamp_laws::registry::RouterSpec;
use flowstamp_laws::tree::{self, Table, Tree, Value};
use flowstamp_laws::units::{Bytes, Rate, Time};
use flowstamp_laws::vcp::T_RHO;
use flowstamp_scenario::rows::without_mark;
use flowstamp_scenario::{Capture, Police, ScenarioError, tree_of_toml, without_nulls};
use flowstamp_wire::scone::Signal;
use serde::{Deserialize, Serialize};
use std::path::Path as FilePath;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lab {
    /// A name for titles.
    #[serde(default)]
    pub name: String,
    /// One sentence about what it shows.
    #[serde(default)]
    pub description: String,
    /// Duration of the measurement.
    pub duration: Time,
    /// When statistics start. Series cover the whole run.
    #[serde(default)]
    pub warmup: Time,
    /// Seed of the random losses.
    #[serde(default = "one")]
    pub seed: u64,
    /// The path between the two hosts.
    pub path: Path,
    /// The router on the path.
    #[serde(default)]
    pub router: Router,
    /// Settings of both hosts.
    #[serde(default)]
    pub host: Host,
    pub flows: Vec<Flows>,
    #[serde(default)]
    pub probes: Probes,
    /// Packets to record as they leave links, for `trace.pcapng`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<Capture>,
}

/// Maximum number of recorded packets, which are kept in memory until the lab's end.
const MAX_CAPTURED: u32 = 1_000_000;

/// The path's links, named as in the simulator's dumbbell: the link of the data, and the link of the acks.
pub const LINKS: [&str; 2] = ["bottleneck", "bottleneck.reverse"];

fn one() -> u64 {
    1
}

/// Where the router's law runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Where {
    /// In the emulated path, with the simulator's law.
    #[default]
    Path,
    /// In BPF in the kernel of a forwarding namespace, on a real queue.
    Bpf,
}

/// The scheduler that divides the link between the law's own traffic and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Share {
    /// The kernel's hierarchical token bucket.
    Htb,
}

/// Throughput advice: the rate that SCONE packets may carry at most.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scone {
    /// The advice, rounded down to SCONE's scale.
    pub rate: Rate,
    /// Limits flows that were over their advice for a period of 67 s.
    #[serde(default)]
    pub enforce: bool,
}

impl Scone {
    /// Checks that the router can give this advice, which only a BPF router can.
    fn check(&self, place: Where) -> Result<(), String> {
        if place != Where::Bpf {
            return Err("router.scone: only a BPF router gives advice; set where = \"bpf\"".to_owned());
        }
        match Signal::at_most(self.rate.bps() as u64) {
            Some(_) => Ok(()),
            None => Err(format!("router.scone.rate is {}; it must be at least 100kbps", self.rate)),
        }
    }
}

/// The router: `law`, its parameters, `where` it runs, and how it shares the link.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Router {
    /// Where the law runs.
    #[serde(rename = "where")]
    pub place: Where,
    /// How the link is shared with other traffic. Default: the law treats all traffic as its own. A lab that sets it cannot have
    /// flows of XCP over QUIC, because the router would count them as other traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// Settings of `router police`, as for a simulated link. Default: no police.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub police: Option<Police>,
    /// Throughput advice for QUIC, as of `router attach --scone`. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scone: Option<Scone>,
    #[serde(flatten)]
    pub law: RouterSpec,
    /// The parameters that the file sets, in the format of `router attach --set`. The kernel has its own
    /// defaults for the others.
    #[serde(skip)]
    pub sets: Vec<String>,
}

/// The router as the file has it.
#[derive(Deserialize)]
struct Written {
    #[serde(rename = "where", default)]
    place: Where,
    share: Option<Share>,
    police: Option<Police>,
    scone: Option<Scone>,
    #[serde(flatten)]
    law: Value,
}

impl TryFrom<Written> for Router {
    type Error = tree::Error;

    fn try_from(Written { place, share, police, scone, law: table }: Written) -> Result<Self, tree::Error> {
        let mut law = RouterSpec::deserialize(Tree(&table))?;
        let values = serde_json::json!(law);
        let keys = if let Value::Table(table) = table { table } else { Table::default() };
        let keys = keys.into_iter().map(|(key, _)| key).filter(|key| key != "law");
        let sets = keys.map(|key| format!("{key}={}", law::shown(&values[&key]))).collect();
        // The simulator would derive t_rho from the paths; hosts and routers here use the paper's value.
        if let RouterSpec::Vcp(parameters) = &mut law {
            parameters.t_rho.get_or_insert(T_RHO);
        }
        Ok(Self { place, share, police, scone, law, sets })
    }
}

impl Router {
    /// The settings for a kernel router. Where the file has none, the kernel router's defaults hold.
    fn kernels(&self) -> Result<law::Given, Refusal> {
        law::given(law::law_of(&self.law)?, &self.sets, None, None)
    }

    /// Checks that the kernel's police supports the file's settings.
    fn check_police(&self, rate: Rate) -> Result<(), String> {
        let Some(police) = &self.police else { return Ok(()) };
        let law = law::law_of(&self.law).map_err(|refusal| refusal.0)?;
        if self.place != Where::Bpf {
            return Err("router.police: only a BPF router has a police; set where = \"bpf\"".to_owned());
        }
        if !law.header.is_tested() {
            let name = law.name;
            return Err(format!(
                "router.police: {name} tells no flow a rate that could be tested; use rcp or xcp"
            ));
        }
        if law.blind && police.heavy.is_none() {
            let name = law.name;
            return Err(format!(
                "router.police.heavy: {name} does not know the link's rate; set the rate of a heavy flow here"
            ));
        }
        police.params(rate).map(drop).map_err(|(key, text)| format!("router.police.{key} {text}"))
    }

    /// Checks that the router supports the file's settings.
    fn check(&self, path: &Path) -> Result<(), Refusal> {
        if self.law == RouterSpec::default() {
            return Ok(());
        }
        if path.varies() && self.law.traits().needs_capacity {
            let name = law::law_of(&self.law)?.name;
            return Err(Refusal(format!(
                "router.law: {name} is told one rate, and path.rate varies; use xcp-b, or a constant rate"
            )));
        }
        if self.place == Where::Path || !law::law_of(&self.law)?.has_option() {
            return law::on_path(&self.law);
        }
        let law::Given { spec, eta, min_interval } = self.kernels()?;
        let law = law::law_of(&spec)?;
        let rate = (!law.blind).then_some(path.mean_rate());
        let limit = Some(Limit::Bytes(path.buffer_bytes()));
        law::translate(&spec, &law::LinkProperties { rate, limit, own_weight: 1.0, eta, min_interval })
            .map(drop)
    }

    /// The law with the parameters that it runs with.
    fn scenario(&self) -> RouterSpec {
        let kernels = (self.place == Where::Bpf).then(|| self.kernels().ok()).flatten();
        kernels.map_or_else(|| self.law.clone(), |given| given.spec)
    }
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    #[serde(default)]
    pub law: Control,
    /// Keeps flows on the law when their RTT doubles. By default they then fall back.
    #[serde(default)]
    pub any_rtt: bool,
}

/// Checks the number of packets and the names of the links.
fn check_capture(capture: &Capture) -> Result<(), String> {
    if !(1..=MAX_CAPTURED).contains(&capture.packets) {
        return Err(format!("capture.packets is {}; it must be 1 to {MAX_CAPTURED}", capture.packets));
    }
    if let Some(name) = capture.links.iter().flatten().find(|name| !LINKS.contains(&name.as_str())) {
        return Err(format!("capture.links: \"{name}\" is not a link; there are {}", LINKS.join(", ")));
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Probes {
    pub every: Time,
}

impl Default for Probes {
    fn default() -> Self {
        Self { every: Time::from_millis(100) }
    }
}

const MAX_FLOWS: u32 = 1000;

impl Lab {
    /// Reads and checks a file.
    pub fn read(path: &FilePath) -> Result<Self, Refusal> {
        let refuse = |what: String| Refusal(format!("{}: {what}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| {
            let reason = error.to_string();
            refuse(format!("cannot be read: {}", reason.split(" (os error").next().unwrap_or_default()))
        })?;
        let mut lab =
            Self::parse(&text).map_err(|e| Refusal(e.at(&path.display().to_string()).to_string()))?;
        let folder = path.parent().unwrap_or(FilePath::new("."));
        lab.path.resolve(folder, lab.duration).and_then(|()| lab.check()).map_err(refuse)?;
        Ok(lab)
    }

    /// Reads the text of a file, and checks only the types.
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        Ok(Self::deserialize(Tree(&tree_of_toml(without_mark(text))?))?)
    }

    fn check(&self) -> Result<(), String> {
        if self.duration <= self.warmup {
            return Err(format!("warmup is {}; it must be shorter than the duration", self.warmup));
        }
        self.path.check(self.router.place == Where::Bpf)?;
        if self.probes.every < Time::from_millis(10) {
            return Err(format!("probes.every is {}; it must be 10ms or longer", self.probes.every));
        }
        self.router.law.check().map_err(|(key, what)| format!("router.{key} {what}"))?;
        self.router.check(&self.path).map_err(|refusal| refusal.0)?;
        self.router.check_police(self.path.mean_rate())?;
        self.router.scone.map_or(Ok(()), |scone| scone.check(self.router.place))?;
        if self.router.police.is_some() && self.flows.iter().any(|flows| !flows.app.is_tcp()) {
            return Err("router.police reads TCP's option, not QUIC's stamp packets; leave it out".to_owned());
        }
        if self.router.share.is_some()
            && matches!(self.router.law, RouterSpec::Xcp(_))
            && self.flows.iter().any(|flows| !flows.app.is_tcp() && self.law_of(flows).name() == "xcp")
        {
            let why = "router.share is for XCP over TCP, because a router that shares its link does not stamp XCP over QUIC";
            return Err(format!("{why}; leave share out, or use law = \"rcp\""));
        }
        if self.router.share.is_some()
            && (self.router.place != Where::Bpf || matches!(self.router.law, RouterSpec::None(_)))
        {
            return Err("router.share divides a kernel's link; set where = \"bpf\", and a law".to_owned());
        }
        if self.router.share.is_some() && (self.path.varies() || !self.router.law.traits().needs_capacity) {
            return Err("router.share divides a rate that is known and constant; leave it out".to_owned());
        }
        self.capture.as_ref().map_or(Ok(()), check_capture)?;
        if self.flows.is_empty() {
            return Err("there are no flows; write a table [[flows]]".to_owned());
        }
        for (index, flows) in self.flows.iter().enumerate() {
            let checked = if self.flows[..index].iter().any(|other| other.name == flows.name) {
                Err("the name appears twice".to_owned())
            } else {
                flows.check(self.law_of(flows)).and_then(|()| flows.check_times(self.duration))
            };
            checked.map_err(|what| format!("flows.{}: {what}", flows.name))?;
        }
        if let Some(Control::Quic(name)) = self.tcp_laws().last() {
            return Err(format!("host.law: {}", Control::unknown(name)));
        }
        let mut ours = self.tcp_laws().filter_map(Control::law);
        if let Some(first) = ours.next()
            && let Some(other) = ours.find(|law| *law != first)
        {
            let (first, other) = (first.name, other.name);
            return Err(format!("host.law and flows.law: a host asks for {first} or {other}, not for both"));
        }
        let count: u64 = self.flows.iter().map(|flows| u64::from(flows.count)).sum();
        if count == 0 || count > u64::from(MAX_FLOWS) {
            return Err(format!("there are {count} flows; use 1 to {MAX_FLOWS}"));
        }
        Ok(())
    }

    /// The congestion controls of the hosts' TCP: those of groups, and last the hosts' own. Yields nothing if all flows use QUIC.
    pub fn tcp_laws(&self) -> impl Iterator<Item = Control> {
        let tcp = || self.flows.iter().filter(|flows| flows.app.is_tcp());
        tcp().map(|flows| self.law_of(flows)).chain(tcp().next().map(|_| self.host.law))
    }

    /// The congestion control of a group.
    pub fn law_of(&self, flows: &Flows) -> Control {
        flows.law.unwrap_or(self.host.law)
    }

    /// Number of departures of this link to record.
    pub fn recorded(&self, link: &str) -> usize {
        let wanted = |capture: &&Capture| {
            capture.links.as_ref().is_none_or(|links| links.iter().any(|name| name == link))
        };
        self.capture.as_ref().filter(wanted).map_or(0, |capture| capture.packets as usize)
    }

    /// Sizes of packets and headers, or the reason why one simulation cannot have them.
    fn sizes(&self) -> Result<Sizes, String> {
        let quic = self.flows.iter().filter(|flows| !flows.app.is_tcp());
        let laws: Vec<_> = quic.map(|flows| self.law_of(flows).law().is_some()).collect();
        match laws.first() {
            // Headers of Ethernet, IP and TCP with timestamps and, for our laws, the option.
            None => {
                let header = if self.host.law.law().is_some() { 82 } else { 66 };
                Ok(Sizes { packet: Bytes::new(PACKET_BYTES), header: Bytes::new(header) })
            }
            Some(stamped) if laws.len() == self.flows.len() && laws.iter().all(|law| law == stamped) => {
                Ok(carried::sizes(*stamped))
            }
            _ => Err(
                "the simulator has one packet size for all flows; use only TCP, only QUIC with stamp packets, or \
                      only QUIC without them"
                    .to_owned(),
            ),
        }
    }

    /// The same network and flows as a scenario for the simulator, or why it cannot run them.
    pub fn scenario(&self) -> Result<serde_json::Value, String> {
        let groups = self.flows.iter().map(|flows| flows.scenario(self.law_of(flows), self.duration));
        let groups: Vec<_> = groups.collect::<Result<_, _>>()?;
        let sizes = self.sizes()?;
        // A lab's flows do not use ECN.
        let queue = match self.path.queue {
            QueueKind::Droptail => serde_json::json!("droptail"),
            QueueKind::FqCodel => serde_json::json!({"kind": "fq_codel", "ecn": false}),
        };
        // Unset values are left out, because TOML has no null.
        Ok(without_nulls(serde_json::json!({
            "name": self.name,
            "description": self.description,
            "duration": self.duration,
            "warmup": self.warmup,
            "seed": self.seed,
            "packet": sizes.packet,
            "header": sizes.header,
            "ack": sizes.header,
            "dumbbell": {
                "rate": self.path.rate, "reverse_rate": self.path.reverse_rate, "rtt": self.path.rtt,
                "buffer": self.path.buffer, "queue": queue, "router": self.router.scenario(),
                "police": self.router.police,
                // Both guarantee each class its share and lend it the other's unused capacity.
                "share": self.router.share.map(|Share::Htb| "wfq"),
            },
            "flows": groups,
            "probes": {"every": self.probes.every, "flows": true, "laws": true},
            "capture": self.capture,
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAB: &str = r#"
        duration = "10s"
        [path]
        rate = "10Mbps"
        rtt = "50ms"
        [router]
        law = "rcp"
        eta = 0.9
        where = "path"
        [host]
        law = "rcp"
        [[flows]]
        name = "a"
        count = 4
        every = "2s"
    "#;

    /// A lab that passes its checks.
    fn good(text: &str) -> Lab {
        let mut lab = Lab::parse(text).expect("a lab");
        lab.path.resolve(FilePath::new("."), lab.duration).expect("rates");
        lab.check().expect("a good one");
        lab
    }

    /// The lab's scenario, which the simulator must accept, or the reason why there is none.
    fn simulated(lab: &Lab) -> Result<serde_json::Value, String> {
        let scenario = lab.scenario()?;
        let text = toml::to_string(&scenario).expect("TOML");
        flowstamp_sim::load(&text, flowstamp_sim::Format::Toml, "lab", &[], FilePath::new("."))
            .expect("the simulator takes it");
        Ok(scenario)
    }

    #[test]
    fn a_byte_order_mark_is_left_out() {
        let path = std::env::temp_dir().join(format!("flowstamp-marked-lab-{}.toml", std::process::id()));
        std::fs::write(&path, format!("\u{feff}{LAB}")).expect("a file");
        let read = Lab::read(&path);
        std::fs::remove_file(&path).expect("it is there");
        assert!(read.is_ok(), "{:?}", read.err().map(|refusal| refusal.0));
    }

    fn refusal(text: &str) -> String {
        match Lab::parse(text) {
            Err(error) => format!("{}: {}", error.key, error.message),
            Ok(mut lab) => lab
                .path
                .resolve(FilePath::new("/nowhere"), lab.duration)
                .and_then(|()| lab.check())
                .expect_err("refused"),
        }
    }

    /// Sums and products of a file's numbers may overflow their types.
    #[test]
    fn numbers_beyond_all_bounds_are_refused() {
        let late = refusal(&LAB.replace("every = \"2s\"", "every = \"5000h\""));
        assert_eq!(late, "flows.a: its last flow starts after the lab's end");
        let many = LAB.replace("count = 4\n", "count = 4294967295\n").replace("every = \"2s\"", "")
            + "[[flows]]\nname = \"b\"\ncount = 2\n";
        assert_eq!(refusal(&many), "there are 4294967297 flows; use 1 to 1000");
    }

    /// Rates may vary as in the simulator, for a law that needs no rate.
    #[test]
    fn a_rate_may_vary() {
        let steps = "{ steps = [[\"0s\", \"20Mbps\"], [\"5s\", \"10Mbps\"]] }\nreverse_rate = \"100Mbps\"";
        let text =
            LAB.replace("\"10Mbps\"", steps).replace("law = \"rcp\"\n        eta = 0.9", "law = \"xcp-b\"");
        for text in [text.clone(), text.replace("\"path\"", "\"bpf\"")] {
            let text = text.replace("law = \"rcp\"", "law = \"xcp\"");
            let lab = good(&text);
            // Each rate for half of the time; the buffer is 50 ms of the mean.
            assert_eq!((lab.path.mean_rate().bps(), lab.path.buffer_bytes()), (15e6, 93_750));
            assert_eq!(lab.path.capacity().bytes_between(Time::from_secs(4), Time::from_secs(6)), 3.75e6);
            assert_eq!(lab.path.reverse_capacity().mean(Time::ZERO, lab.duration).bps(), 100e6);
            simulated(&lab).expect("a scenario");
        }
    }

    #[test]
    fn the_file_becomes_a_scenario_that_the_simulator_takes() {
        let lab = good(LAB);
        assert_eq!(lab.path.buffer_bytes(), 62_500);
        simulated(&lab).expect("a scenario");
    }

    /// The scenario contains the kernel's own defaults.
    #[test]
    fn the_simulators_router_is_the_one_that_runs() {
        let router = |text: &str| {
            let lab = good(text);
            (lab.router.sets.clone(), lab.scenario().expect("a scenario")["dumbbell"]["router"].clone())
        };
        let bpf = LAB.replace("where = \"path\"", "where = \"bpf\"");
        let (sets, law) = router(&bpf);
        assert_eq!((sets, &law["eta"]), (vec!["eta=0.9".to_owned()], &0.9.into()));
        assert_eq!(router(&bpf.replace("eta = 0.9", "")).1["eta"], 0.95);
        assert_eq!(router(&LAB.replace("eta = 0.9", "")).1["eta"], 1.0);
        let xcp = bpf.replace("eta = 0.9", "").replace("\"rcp\"", "\"xcp\"");
        assert_eq!(router(&xcp).1["min_interval"], "1ms");
        for text in [&bpf, LAB] {
            let vcp = router(&text.replace("eta = 0.9", "").replace("\"rcp\"", "\"vcp\"")).1;
            assert_eq!(vcp["t_rho"], "200ms", "{vcp}");
            assert_eq!(vcp["gamma"], if *text == bpf { 0.95 } else { 0.98 }, "{vcp}");
        }
        assert_eq!(router(&xcp.replace("where", "min_interval = \"3ms\"\nwhere")).1["min_interval"], "3ms");
    }

    #[test]
    fn a_shared_link_is_one_in_the_simulator_too() {
        let text = LAB.replace("where = \"path\"", "where = \"bpf\"\nshare = \"htb\"");
        let scenario = simulated(&good(&text)).expect("a scenario");
        assert_eq!(scenario["dumbbell"]["share"], "wfq");
    }

    /// Packets have QUIC's sizes. A mix of sizes has no scenario, and a reason.
    #[test]
    fn flows_over_quic_are_flows_of_the_simulator() {
        let quic = LAB.replace("name = \"a\"", "name = \"a\"\napp = \"h3\"");
        let sizes = |text: &str| {
            let scenario = simulated(&good(text))?;
            Ok::<_, String>((scenario["packet"].clone(), scenario["header"].clone()))
        };
        assert_eq!(sizes(&quic), Ok(("1485B".into(), "98B".into())));
        let bbr3 = quic.replace("[host]\n        law = \"rcp\"", "[host]\n        law = \"bbr3\"");
        assert_eq!(sizes(&bbr3), Ok(("1462B".into(), "75B".into())));
        let mixed = quic + "[[flows]]\nname = \"b\"\n";
        assert!(sizes(&mixed).expect_err("two sizes").contains("one packet size"));
    }

    #[test]
    fn the_labs_that_are_shipped_are_read() {
        let folder = FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/labs");
        let labs: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(labs.len() >= 3, "{labs:?}");
        for lab in labs {
            Lab::read(&lab).unwrap();
        }
    }

    #[test]
    fn bad_input_is_refused_with_a_reason() {
        for (from, to, hint) in [
            ("\"10Mbps\"", "\"10mbps\"", "did you mean"),
            ("\"10Mbps\"", "10", "a rate with its unit"),
            ("\"50ms\"", "\"50\"", "no unit"),
            ("eta = 0.9", "eta = 9.0", "router.eta"),
            ("every = \"2s\"", "every = \"4s\"", "after the lab's end"),
            ("name = \"a\"", "name = \"a\"\napp = \"http\"", "needs a size"),
            ("name = \"a\"", "name = \"a\"\nstop = \"7.5s\"", "whole seconds"),
            ("name = \"a\"", "name = \"a\"\nstop = \"6s\"", "after its last flow's start"),
            ("name = \"a\"", "name = \"a\"\napp = \"http\"\nsize = \"1MB\"\nstop = \"7s\"", "leave out stop"),
            ("name = \"a\"", "name = \"a\"\nlaw = \"xcp\"", "asks for xcp or rcp, not for both"),
            ("name = \"a\"", "name = \"a\"\nsize = \"1MB\"", "use app"),
            ("count = 4", "counts = 4", "unknown key"),
            (
                "[router]",
                "[capture]\nlinks = [\"back\"]\n[router]",
                "there are bottleneck, bottleneck.reverse",
            ),
            ("[router]", "[capture]\npackets = 0\n[router]", "it must be 1 to"),
            ("where = \"path\"", "where = \"moon\"", "there is no"),
            ("where = \"path\"", "where = \"bpf\"\nfairness = 1.0", "rcp parameter `fairness` = 1.0 cannot"),
            ("where = \"path\"", "where = \"path\"\nlong_share = 0.5", "whose option has no age"),
            ("law = \"rcp\"\n        eta = 0.9", "law = \"xcp-draft\"", "Linux has no law \"xcp-draft\""),
            (
                "law = \"rcp\"\n        [[flows]]",
                "law = \"vegas\"\n        [[flows]]",
                "there are rcp, xcp, vcp, cubic",
            ),
            ("where = \"path\"", "share = \"htb\"", "where = \"bpf\""),
            ("rtt = \"50ms\"", "rtt = \"50ms\"\nqueue = \"sfq\"", "there is no `sfq`"),
            (
                "\"10Mbps\"",
                "{ steps = [[\"0s\", \"1Mbps\"]] }",
                "rcp is told one rate, and path.rate varies; use xcp-b",
            ),
            (
                "\"10Mbps\"",
                "{ steps = [[\"1s\", \"1Mbps\"]] }",
                "path.rate.steps: must start with an entry at \"0s\"",
            ),
            ("\"10Mbps\"", "{ trace = \"none\" }", "path.rate.trace: \"/nowhere/none\" cannot be read"),
            ("\"10Mbps\"", "{ known = false }", "needs exactly one of `steps` and `trace`"),
            ("\"10Mbps\"", "\"10Mbps\"\nreverse_rate = \"1kbps\"", "path.reverse_rate is 1kbps"),
            (
                "law = \"rcp\"\n        eta = 0.9",
                "law = \"xcp-b\"\nkappa = \"0pkt\"",
                "router.kappa is 0pkt; it must be above 0",
            ),
            (
                "law = \"rcp\"\n        eta = 0.9\n        where = \"path\"",
                "law = \"xcp-b\"\nwhere = \"bpf\"\nshare = \"htb\"",
                "divides a rate that is known",
            ),
            ("where = \"path\"", "where = \"bpf\"\nshare = \"cake\"", "there is no"),
            (
                "name = \"a\"",
                "name = \"a\"\nlaw = \"bbr3\"",
                "no law \"bbr3\" on hosts; there are rcp, xcp, vcp, cubic",
            ),
            (
                "name = \"a\"",
                "name = \"a\"\napp = \"h3\"\nlaw = \"vcp\"",
                "QUIC does not carry vcp; use one of xcp, rcp, reno",
            ),
            (
                "where = \"path\"",
                "scone = { rate = \"1Mbps\" }",
                "router.scone: only a BPF router gives advice; set where",
            ),
            (
                "where = \"path\"",
                "where = \"bpf\"\nscone = { rate = \"9kbps\" }",
                "router.scone.rate is 9kbps; it must be at least 100kbps",
            ),
            ("name = \"a\"", "name = \"a\"\nvideo = {}", "video is for app"),
            ("name = \"a\"", "name = \"a\"\napp = \"video\"\nsize = \"1MB\"", "leave out size"),
            (
                "name = \"a\"",
                "name = \"a\"\napp = \"video\"\nvideo = { segment = \"20s\" }",
                "video.segment is 20s; it must be 1s to 10s",
            ),
            ("name = \"a\"", "name = \"a\"\napp = \"h3\"\npace = \"1Mbps\"", "leave out pace"),
            ("name = \"a\"", "name = \"a\"\napp = \"h3\"\nhears = \"nothing\"", "leave out hears"),
            ("name = \"a\"", "name = \"a\"\napp = \"h3\"\nsize = \"1MB\"\nstop = \"7s\"", "leave out stop"),
            (
                "where = \"path\"\n        [host]\n        law = \"rcp\"\n        [[flows]]\n        name = \"a\"",
                "where = \"bpf\"\npolice = {}\n        [host]\n        law = \"rcp\"\n        [[flows]]\n        name = \"a\"\napp = \"h3\"",
                "not QUIC's stamp packets",
            ),
            (
                "law = \"rcp\"\n        eta = 0.9\n        where = \"path\"\n        [host]\n        law = \"rcp\"\n        [[flows]]\n        name = \"a\"",
                "law = \"xcp\"\n        where = \"bpf\"\nshare = \"htb\"\n        [host]\n        law = \"xcp\"\n        [[flows]]\n        name = \"a\"\napp = \"h3\"",
                "leave share out, or use law = \"rcp\"",
            ),
            ("where = \"path\"", "police = {}", "set where = \"bpf\""),
            (
                "where = \"path\"",
                "where = \"bpf\"\npolice = { havy = 1 }",
                "router.police.havy: unknown key `havy`; did you mean `heavy`?",
            ),
            (
                "where = \"path\"",
                "where = \"bpf\"\npolice = { heavy = \"1kbps\" }",
                "router.police.heavy is 1kbps; it must be",
            ),
            (
                "law = \"rcp\"\n        eta = 0.9\n        where = \"path\"",
                "law = \"vcp\"\nwhere = \"bpf\"\npolice = {}",
                "vcp tells no flow a rate",
            ),
            ("name = \"a\"", "name = \"a\"\npace = \"1kbps\"", "pace is 1kbps; it must be 8kbps"),
            ("name = \"a\"", "name = \"a\"\nhears = \"none\"", "there is no `none`"),
            (
                "name = \"a\"",
                "name = \"a\"\nlaw = \"cubic\"\nhears = \"increases\"",
                "hears: cubic gives flows no individual feedback",
            ),
        ] {
            let text = LAB.replace(from, to);
            let refusal = refusal(&text);
            assert!(refusal.contains(hint), "{to}: {refusal}");
        }
    }
}
