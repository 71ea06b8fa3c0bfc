//! Data-centre networks, expanded into graphs.

use super::{Builder, Result, error, of_full};
use crate::ScenarioError;
use crate::scenario::{Buffer, FatTree, Graph, LeafSpine, Link, LinkRate, check_rate};
use flowstamp_laws::units::{Rate, Time};

/// Ports per switch of the largest fat tree, which has 8192 hosts.
const MOST_PORTS: u32 = 32;
/// Maximum number of duplex links of a leaf-spine network: as many as the largest fat tree has.
const MOST_LINKS: u64 = 3 * 8192;

/// A topology as a graph.
#[derive(Clone, Debug)]
pub(super) struct Laid {
    pub graph: Graph,
    /// Key of the topology that the graph stands for; `None` for a graph itself.
    pub of: Option<&'static str>,
    /// Names of the hosts; empty for a graph.
    pub hosts: Vec<String>,
}

/// The options that all links of a topology share.
macro_rules! plain {
    ($of:expr) => {
        Link {
            from: String::new(),
            to: String::new(),
            name: None,
            rate: LinkRate::Constant($of.rate),
            delay: $of.delay,
            weight: None,
            buffer: $of.buffer,
            queue: $of.queue.clone(),
            router: $of.router.clone(),
            share: $of.share.clone(),
            priority: $of.priority,
            pfc: $of.pfc,
            police: None,
            scone: None,
            impairments: None,
            medium: None,
            duplex: true,
        }
    };
}

impl Laid {
    /// The key of a link in messages.
    pub(super) fn key(&self, link: usize) -> String {
        self.of.map_or_else(|| format!("graph.links[{link}]"), str::to_owned)
    }
}

impl Builder<'_> {
    /// The scenario's graph, or the expanded data-centre network.
    pub(super) fn laid(&self) -> Result<Option<Laid>> {
        let s = self.scenario;
        Ok(match (&s.graph, &s.leaf_spine, &s.fat_tree) {
            (Some(graph), None, None) => Some(Laid { graph: graph.clone(), of: None, hosts: Vec::new() }),
            (None, Some(of), None) => Some(leaf_spine(of)?),
            (None, None, Some(of)) => Some(fat_tree(of)?),
            _ => None,
        })
    }
}

fn leaf_spine(of: &LeafSpine) -> Result<Laid> {
    of_full("leaf_spine", "networks of data centres")?;
    let links = u64::from(of.leaves).saturating_mul(u64::from(of.spines) + u64::from(of.hosts));
    for (key, count) in [("leaves", of.leaves), ("spines", of.spines), ("hosts", of.hosts)] {
        if count == 0 {
            return error(format!("leaf_spine.{key}"), "is 0; it must be at least 1");
        }
    }
    if links > MOST_LINKS {
        return error("leaf_spine", format!("has {links} links; it may have {MOST_LINKS}"));
    }
    let kind = Links { plain: plain!(of), host_buffer: of.host_buffer };
    let spine_rate = spine_rate(of)?;
    let spine_delay = of.spine_delay.unwrap_or(of.delay);
    let mut links = Vec::new();
    let hosts: Vec<String> = (0..of.leaves * of.hosts).map(|host| format!("h{host}")).collect();
    for (host, number) in hosts.iter().zip(0..) {
        links.extend(kind.of_host(host, &format!("leaf{}", number / of.hosts), of.rate, of.delay));
    }
    for leaf in 0..of.leaves {
        let up = |spine| kind.link(&format!("leaf{leaf}"), &format!("spine{spine}"), spine_rate, spine_delay);
        links.extend((0..of.spines).map(up));
    }
    Ok(Laid { graph: Graph { links, rtt: of.rtt, ..Graph::default() }, of: Some("leaf_spine"), hosts })
}

/// The largest oversubscription.
const MOST_OVERSUBSCRIBED: f64 = 1000.0;

fn check_oversubscription(key: &str, ratio: f64) -> Result<()> {
    if (1.0..=MOST_OVERSUBSCRIBED).contains(&ratio) {
        return Ok(());
    }
    error(key, format!("is {ratio}; it must be 1 to {MOST_OVERSUBSCRIBED}, such as 4 for 4:1"))
}

/// Capacity of each link between leaf and spine.
fn spine_rate(of: &LeafSpine) -> Result<Rate> {
    const KEY: &str = "leaf_spine.oversubscription";
    let Some(ratio) = of.oversubscription else { return Ok(of.spine_rate.unwrap_or(of.rate)) };
    check_oversubscription(KEY, ratio)?;
    if of.spine_rate.is_some() {
        return error(KEY, "sets spine_rate, which is given too; leave out one of them");
    }
    let rate = Rate::from_bps(of.rate.bps() * f64::from(of.hosts) / (f64::from(of.spines) * ratio));
    check_rate(KEY, rate).map(|()| rate).map_err(|_| {
        ScenarioError::new(
            KEY,
            format!("is {ratio}, and gives links of spines {rate}, which no link can have"),
        )
    })
}

/// Number of hosts of each edge switch of a fat tree.
fn edge_hosts(of: &FatTree) -> Result<u32> {
    const KEY: &str = "fat_tree.oversubscription";
    let half = of.k / 2;
    let ratio = of.oversubscription.unwrap_or(1.0);
    check_oversubscription(KEY, ratio)?;
    let hosts = ratio * f64::from(half);
    // A ratio such as 29/7, rounded to a double, counts as exact.
    if (hosts - hosts.round()).abs() > 1e-9 * hosts {
        let (below, above) = (hosts.floor() / f64::from(half), hosts.ceil() / f64::from(half));
        let message = format!(
            "is {ratio}: an edge switch with k = {} would have {hosts} hosts; give {below} or {above} for a whole number",
            of.k
        );
        return error(KEY, message);
    }
    let hosts = hosts.round();
    let links = u64::from(of.k * half) * u64::from(hosts as u32 + of.k);
    if links > MOST_LINKS {
        return error(
            KEY,
            format!("is {ratio}, and gives {links} links; a topology has at most {MOST_LINKS}"),
        );
    }
    Ok(hosts as u32)
}

fn fat_tree(of: &FatTree) -> Result<Laid> {
    of_full("fat_tree", "networks of data centres")?;
    let k = of.k;
    if !(2..=MOST_PORTS).contains(&k) || k % 2 == 1 {
        return error("fat_tree.k", format!("is {k}; it must be even, and 2 to {MOST_PORTS}"));
    }
    let kind = Links { plain: plain!(of), host_buffer: of.host_buffer };
    let half = k / 2;
    let mut links = Vec::new();
    let at_edge = edge_hosts(of)?;
    let hosts: Vec<String> = (0..k * half * at_edge).map(|host| format!("h{host}")).collect();
    for (host, number) in hosts.iter().zip(0..) {
        let (pod, edge) = (number / (half * at_edge), number / at_edge % half);
        links.extend(kind.of_host(host, &format!("pod{pod}-edge{edge}"), of.rate, of.delay));
    }
    let link = |from: String, to: String| kind.link(&from, &to, of.rate, of.delay);
    for pod in 0..k {
        for edge in 0..half {
            links.extend(
                (0..half).map(|agg| link(format!("pod{pod}-edge{edge}"), format!("pod{pod}-agg{agg}"))),
            );
        }
        for agg in 0..half {
            let cores = agg * half..(agg + 1) * half;
            links.extend(cores.map(|core| link(format!("pod{pod}-agg{agg}"), format!("core{core}"))));
        }
    }
    Ok(Laid { graph: Graph { links, rtt: of.rtt, ..Graph::default() }, of: Some("fat_tree"), hosts })
}

/// The options that all links share.
struct Links {
    plain: Link,
    host_buffer: Buffer,
}

impl Links {
    fn link(&self, from: &str, to: &str, rate: Rate, delay: Time) -> Link {
        let (from, to) = (from.to_owned(), to.to_owned());
        Link { from, to, rate: LinkRate::Constant(rate), delay, ..self.plain.clone() }
    }

    /// The links of a host: up, with the host's buffer, and down.
    fn of_host(&self, host: &str, switch: &str, rate: Rate, delay: Time) -> [Link; 2] {
        let one_way = |from, to| Link { duplex: false, ..self.link(from, to, rate, delay) };
        [Link { buffer: self.host_buffer, ..one_way(host, switch) }, one_way(switch, host)]
    }
}
