//! Liars drawn at random, and what is left to honest flows beside them on a link with a police.
//!
//! A change run draws the same few liars each time. With `FLOWSTAMP_NIGHTLY=1` there are many, and `FLOWSTAMP_DRAWS=0..250`
//! chooses them. A failure prints the seed, and `FLOWSTAMP_LIARS=LAW:SEED` runs one again.
//!
//! The promise: 30 s after the last liar's start, honest flows together have 0.9 of the capacity that liars leave. 10 s
//! later, two newcomers have 0.8 of their share. How it is measured:
//!
//! 1. *Liars send* at most a fifth of the link each, the most that an isolated flow is allowed. A liar that gets more
//!    takes it from the honest flows, and so fails the test.
//! 2. *Honest throughput* is a mean over the 10 s that end 30 s after the last liar's start. Each honest flow is
//!    tested about once in this time. A test halves the flow and takes up to 2.4% of the link from the mean, also in a
//!    run without liars.
//! 3. *Capacity left* does not include the share that XCP gives to light liars and that they do not use. A liar below a
//!    tenth of the link is not tested, and no router can tell it from an honest flow whose application sends as little.
//!    [`used`] is that share by the law's equations. RCP wastes nothing.
//!
//! VCP has no police: its routers tell all flows the same two bits, so that none can be tested alone (docs/security.md).

mod common;

use common::run;
use flowstamp_sim::results::{Results, TestedFlow};
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher, RandomState};

/// The link's rate in payload: headers of 40 bytes in packets of 1500.
const LINK: f64 = 100e6 * 1460.0 / 1500.0;
/// The police's `heavy`, and the most that an isolated flow is allowed.
const HEAVY: f64 = 10e6;
const MOST: f64 = 2.0 * HEAVY;
/// A flow weighs at most as much as this many honest flows of its rate.
const MOST_FLOWS: f64 = 1.25;
/// When the newcomers start: 30 s after the latest start of a liar.
const COME: f64 = 38.0;
/// When goodputs are measured, in s.
const BEFORE: (f64, f64) = (COME - 10.0, COME);
const AFTER: (f64, f64) = (COME + 9.0, COME + 14.0);

/// A law's router, its honest sender and its liar.
const LAWS: [(&str, &str); 4] = [
    ("xcp", r#"{ law = "xcp", max_weight = 16 }"#),
    ("xcp-draft", r#"{ law = "xcp-draft", max_weight = 16 }"#),
    ("rcp", r#"{ law = "rcp", max_rtt_factor = 4 }"#),
    ("xcp-b", r#"{ law = "xcp-b", max_weight = 16 }"#),
];

/// splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }

    /// From 10^`low` to 10^`high`, evenly by exponents.
    fn decades(&mut self, low: f64, high: f64) -> f64 {
        10f64.powf(low + (high - low) * self.below(1 << 20) as f64 / f64::from(1 << 20))
    }
}

/// One to five liars: the RTT and the window that they name, what they hear, and their pace.
fn liars(law: &str, random: &mut Random) -> String {
    let mut flows = String::new();
    for number in 0..=random.below(5) {
        let mut lies = Vec::new();
        let rtts = ["0s", "1us", "1ms", "200ms", "1s", "2s", "10s", "15s", "100s"];
        if random.below(5) < 3 {
            lies.push(format!(r#"rtt = "{}""#, rtts[random.below(9) as usize]));
        }
        if law != "rcp" && random.below(5) < 2 {
            lies.push(format!("window = {:.4}", random.decades(-2.0, 4.0)));
        }
        let hears = ["increases", "largest", "nothing"][random.below(3) as usize];
        lies.push(format!(r#"hears = "{hears}""#));
        if hears == "nothing" || random.below(2) == 0 {
            lies.push(format!(r#"pace = "{}bps""#, random.decades(6.0, 8.3).round()));
        }
        let start = 3000 + random.below(5000);
        let sender = if law == "xcp-b" { "xcp" } else { law };
        let _ = write!(
            flows,
            "[[flows]]\nname = \"liar{number}\"\nlaw = {{ law = \"{sender}-liar\", {} }}\nstart = \"{start}ms\"\n",
            lies.join(", ")
        );
    }
    flows
}

/// Mean goodput of a group over some of the time, bits per second.
fn goodput(r: &Results, group: &str, (from_s, to_s): (f64, f64)) -> f64 {
    let key =
        r.series.keys.iter().position(|k| k.name == group && k.metric == "goodput_bps").expect("series");
    let values: Vec<f64> = (0..r.series.key.len())
        .filter(|i| r.series.key[*i] as usize == key)
        .filter(|i| from_s < r.series.time_s[*i] && r.series.time_s[*i] <= to_s)
        .map(|i| r.series.value[i])
        .collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// Utilisation of an XCP link beside `idle` liars that do not use their increases.
///
/// Liars with a share `w` of the weight get a share `w` of the increases. In equilibrium, the increases of the other
/// flows, `(1 - w) gamma y`, equal their decreases, `gamma y - alpha (C - y)` (equation 2).
///
/// XCP-b has no C, so equation 2 does not hold for it. It is allowed the same because light flows cost it as much: with three
/// honest flows and five more that send 1 Mb/s each, this link's utilisation is 0.94 with XCP and 0.91 with XCP-b. For five
/// that send nothing equation 2 gives 0.87. Without this allowance 68 of 250 draws miss 0.9 on XCP-b. RCP gives all flows one
/// rate, so light flows leave nothing unused.
fn used(law: &str, idle: usize, honest: usize) -> f64 {
    let (alpha, gamma) = (0.4, if law == "rcp" { 0.0 } else { 0.1 });
    let weight = MOST_FLOWS * idle as f64;
    alpha / (alpha + gamma * weight / (weight + honest as f64))
}

/// The fault of a run, if it has one.
fn judge(law: &str, r: &Results) -> Result<(), String> {
    let tested = r.summary.links["bottleneck"].police.as_ref().expect("there is a police");
    let liars: Vec<&String> = r.summary.groups.keys().filter(|name| name.starts_with("liar")).collect();
    let has_been = |name: &str, what: fn(&TestedFlow) -> u64| {
        tested.iter().any(|flow| flow.group == name && what(flow) > 0)
    };
    // Bits per second that liars leave to this number of honest flows.
    let left = |span, honest| {
        let is_idle =
            |name: &&&String| goodput(r, name, span) < HEAVY && !has_been(name, |t| t.isolations + t.drops);
        let idle = liars.iter().filter(is_idle).count();
        LINK * used(law, idle, honest)
            - liars.iter().map(|name| goodput(r, name, span).min(MOST)).sum::<f64>()
    };

    let honest = goodput(r, "honest", BEFORE);
    let all = left(BEFORE, 3);
    if honest < 0.9 * all {
        return Err(format!("honest flows have {honest:.3e} of {all:.3e}"));
    }
    let (newcomers, share) = (goodput(r, "newcomer", AFTER), left(AFTER, 5) * 2.0 / 5.0);
    if newcomers < 0.8 * share {
        return Err(format!("newcomers have {newcomers:.3e} of {share:.3e}"));
    }
    if let Some(flow) = tested.iter().find(|t| !t.group.starts_with("liar") && t.isolations > 0) {
        return Err(format!("an honest flow is isolated: {flow:?}"));
    }
    // A liar that has never been held back is light, or sends what RCP tells it.
    for name in liars {
        let has = goodput(r, name, BEFORE);
        if !has_been(name, |t| t.isolations + t.drops) && has > 1.05 * HEAVY.max(MOST_FLOWS * honest / 3.0) {
            return Err(format!("{name} has {has:.3e} and was never held back"));
        }
    }
    Ok(())
}

fn try_liars(law: &str, router: &str, seed: u64) -> Result<(), String> {
    let sender = if law == "xcp-b" { "xcp" } else { law };
    let flows = liars(law, &mut Random(seed));
    let r = run(&format!(
        r#"
        duration = "52s"
        packet = "1500B"
        [dumbbell]
        rate = "100Mbps"
        rtt = "50ms"
        router = {router}
        police = {{}}
        [[flows]]
        name = "honest"
        law = "{sender}"
        count = 3
        [[flows]]
        name = "newcomer"
        law = "{sender}"
        start = "{COME}s"
        count = 2
        {flows}
        [probes]
        every = "1s"
        "#
    ));
    judge(law, &r).map_err(|what| format!("FLOWSTAMP_LIARS={law}:{seed}: {what}\n{flows}"))
}

#[test]
fn honest_flows_have_what_isolated_ones_leave() {
    if let Ok(one) = std::env::var("FLOWSTAMP_LIARS") {
        let (law, seed) = one.split_once(':').expect("LAW:SEED");
        let (_, router) = LAWS.iter().find(|(name, _)| *name == law).expect("a law");
        return try_liars(law, router, seed.parse().expect("a number")).unwrap_or_else(|e| panic!("{e}"));
    }
    let nightly = std::env::var("FLOWSTAMP_NIGHTLY").is_ok_and(|v| v == "1");
    let drawn = if nightly { RandomState::new().build_hasher().finish() >> 1 } else { 0 };
    let mut draws = drawn..drawn + if nightly { 50 } else { 2 };
    // By docs/security.md one draw in 100 fails. Here up to six of 200 draws may fail. Chance exceeds six once in 200 nights.
    let mut allowed = if nightly { 6 } else { 0 };
    if let Ok(range) = std::env::var("FLOWSTAMP_DRAWS") {
        let (first, end) = range.split_once("..").expect("FIRST..END");
        draws = first.parse().expect("a number")..end.parse().expect("a number");
        allowed = 0;
    }
    let failures: Vec<String> = LAWS
        .iter()
        .flat_map(|(law, router)| draws.clone().map(move |seed| (law, router, seed)))
        .filter_map(|(law, router, seed)| try_liars(law, router, seed).err())
        .collect();
    let count = LAWS.len() as u64 * (draws.end - draws.start);
    assert!(failures.len() <= allowed, "{} of {count} fail:\n{}", failures.len(), failures.join("\n"));
}
