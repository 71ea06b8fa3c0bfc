//! Values that laws use for the RTT until packets carry one: the paths' RTTs, where the scenario sets none. Also
//! warnings about values that are probably wrong: time constants, and gains with which no loop is stable.

use super::{Builder, Result};
use crate::ScenarioError;
use crate::medium::Capacity;
use crate::plan::{LinkPlan, Loop, Network};
use crate::results::Named;
use flowstamp_fluid::control::frequency::OpenLoop;
use flowstamp_fluid::stability::{SWITCHED_WITHIN, switched_alpha};
use flowstamp_laws::AgreedTime;
use flowstamp_laws::registry::{Header, RouterSpec};
use flowstamp_laws::router::Gains;
use flowstamp_laws::share::police;
use flowstamp_laws::units::{Rate, Time};
use std::collections::BTreeMap;

/// A time constant this many times longer or shorter than the path's RTT is probably a mistake.
const FAR_OFF: u64 = 10;

/// Maximum number of different RTTs of a link's flows that are told apart.
const MOST_RTTS: usize = 32;

/// Ratio of RTTs from which XCP's windows starve the flow with the longest RTT, if they are sent at once. At 6 it had
/// its share in 17 of 18 set-ups, at 12 in none (docs/explanation/stability.md). ns-2's starves it, too, from 10 on.
const FAR_APART: u64 = 10;

/// Propagation RTTs of several flows.
#[derive(Clone, Debug, Default)]
struct Rtts {
    sum_ps: u64,
    count: u32,
    /// Number of flows with each RTT; beyond [`MOST_RTTS`] only the RTTs that came first.
    each: BTreeMap<Time, u32>,
}

/// Propagation RTTs of the flows over a link.
#[derive(Clone, Debug, Default)]
pub(super) struct PathRtts {
    /// RTTs of flows whose header the router writes: first flows whose data pass, then flows whose acks do.
    own: [Rtts; 2],
    /// The number of endless flows that pass data and take all the bandwidth they are given.
    lasting: u32,
    /// The shortest RTT of flows whose data pass, and the longest of those that last and send a window at once.
    apart: [Option<Time>; 2],
    /// The longest RTT of all flows.
    longest: Time,
}

impl PathRtts {
    pub(super) fn add(&mut self, acks: bool, rtt: Time, lasting: bool, at_once: bool) {
        let own = &mut self.own[usize::from(acks)];
        own.sum_ps = own.sum_ps.saturating_add(rtt.as_ps());
        own.count += 1;
        if own.each.len() < MOST_RTTS || own.each.contains_key(&rtt) {
            *own.each.entry(rtt).or_default() += 1;
        }
        self.lasting += u32::from(lasting && !acks);
        if !acks {
            let [least, most] = &mut self.apart;
            *least = Some(least.map_or(rtt, |least| least.min(rtt)));
            *most = (*most).max(Some(rtt).filter(|_| lasting && at_once));
        }
    }

    /// Whether no flow's data or acks pass.
    pub(super) fn is_unused(&self) -> bool {
        self.longest == Time::ZERO
    }

    /// Takes note of a flow whose data or acks pass.
    pub(super) fn longest(&mut self, rtt: Time) {
        self.longest = self.longest.max(rtt);
    }

    /// RTTs of flows whose header the router writes; those of acks only where no data pass.
    fn own(&self) -> Option<&Rtts> {
        self.own.iter().find(|own| own.count > 0)
    }

    /// Mean RTT of these flows.
    fn mean(&self) -> Option<Time> {
        let own = self.own()?;
        Some(Time::from_ps(own.sum_ps / u64::from(own.count))).filter(|t| *t > Time::ZERO)
    }

    /// Each RTT with the number of flows that have it; only the mean if there are too many.
    fn each(&self) -> Vec<(Time, u32)> {
        let Some((own, mean)) = self.own().zip(self.mean()) else { return Vec::new() };
        if own.each.values().sum::<u32>() == own.count && !own.each.contains_key(&Time::ZERO) {
            own.each.iter().map(|(rtt, count)| (*rtt, *count)).collect()
        } else {
            vec![(mean, own.count)]
        }
    }
}

/// Whether a time constant is far from the RTT for which it stands.
fn far_off(given: Time, rtt: Time) -> bool {
    given * FAR_OFF < rtt || rtt * FAR_OFF < given
}

/// The warning for gains with which the loop is unstable. For a single RTT the switched system decides, as in
/// `flowstamp stability` (Dukkipati 2007, section 5.2). Gains outside only the linear stability region, as RCP's own
/// are, still converge.
fn unstable(gains: Gains, rtts: &[(Time, u32)]) -> Option<String> {
    let Gains { alpha, beta, shuffle } = gains;
    if let [(shortest, _), .., (longest, _)] = rtts
        && cfg!(feature = "full")
    {
        let flows: Vec<_> = rtts.iter().map(|(rtt, count)| (f64::from(*count), rtt.as_secs_f64())).collect();
        let grows = |open: OpenLoop| open.unstable_roots(0.0) != Some(0);
        // The queue is either backlogged or empty. The system is unstable where both of these loops are.
        let both = |alpha: f64| {
            Some(
                grows(OpenLoop::of_flows(alpha, beta, shuffle, &flows)?)
                    && grows(OpenLoop::without_queue(alpha, shuffle, &flows)?),
            )
        };
        return both(alpha)?.then(|| {
            let advice = largest(alpha, |alpha| both(alpha) == Some(false)).map_or_else(
                || "set a smaller beta and alpha".to_owned(),
                |most| format!("set alpha to {most:.2} or less, which is stable with this beta"),
            );
            format!(
                "alpha = {alpha}, beta = {beta}, gamma = {shuffle}: the law's linear model is unstable with the flows' RTTs, {shortest} to {longest}; {advice}; see flowstamp stability"
            )
        });
    }
    let most = switched_alpha(beta)?;
    (alpha >= most + SWITCHED_WITHIN).then(|| {
        format!("alpha: is {alpha}; with beta = {beta} the law's model is stable below {most:.2}; set alpha below that; see flowstamp stability")
    })
}

/// The largest multiple of 0.01 below `alpha` for which `right` holds. It must hold up to some value and not above.
fn largest(alpha: f64, right: impl Fn(f64) -> bool) -> Option<f64> {
    let (mut low, mut high) = (0, (alpha * 100.0).ceil() as u32);
    while high - low > 1 {
        let middle = low.midpoint(high);
        *(if right(f64::from(middle) / 100.0) { &mut low } else { &mut high }) = middle;
    }
    (low > 0).then(|| f64::from(low) / 100.0)
}

/// The warning for an RCP router whose flows have less than a packet each per round trip.
fn sparse(plan: &LinkPlan, rtts: &PathRtts, packet_bytes: f64) -> Option<String> {
    let (RouterSpec::Rcp(_), Capacity::Constant(rate)) = (&plan.router, &plan.capacity) else { return None };
    let rtt = rtts.mean()?;
    let (packets, flows) = (rate.bytes_in(rtt) / packet_bytes, rtts.lasting);
    (packets < f64::from(flows)).then(|| {
        let rate = Rate::from_bytes_per_sec(f64::from(flows) * packet_bytes / rtt.as_secs_f64());
        let mbps = rate.bps() / 1e6;
        format!(
            "its link carries {packets:.2} packets in a round trip of {rtt}, fewer than its {flows} flows; packets that meet by chance then keep R low and the link is not full; set a rate of at least {mbps:.3}Mbps, a smaller packet or a smaller count"
        )
    })
}

/// The warning for flows whose windows are sent at once and so arrive in few of a router's control intervals.
fn bursts(rtts: &PathRtts) -> Option<String> {
    let [Some(shortest), Some(longest)] = rtts.apart else { return None };
    (shortest > Time::ZERO && longest >= shortest * FAR_APART).then(|| {
        format!("its flows' RTTs are {shortest} to {longest}; the longest starve where windows are sent at once: give their laws pacing = true")
    })
}

/// The warning for a share whose weights are measured over less than a round trip. Its defaults are 2 and 20 round
/// trips of 100 ms.
fn hasty_share(plan: &LinkPlan, rtt: Time) -> Option<String> {
    let given = plan.share.params()?.max_interval;
    (given < rtt).then(|| {
        format!(
            "max_interval: is {given}, but the flows' RTT is {rtt}, so that flows are counted over less than a round trip; set min_interval = \"{}\" and \
             max_interval = \"{}\"",
            rtt * 2,
            rtt * 20
        )
    })
}

/// The warning for a police whose tests last longer than it assumes. A test takes six round trips; for five of them a
/// flow has half of its rate or gets no more.
fn hasty_police(plan: &LinkPlan, rtt: Time) -> Option<String> {
    const TESTS_APART: u64 = 30;
    let retest = plan.police?.retest;
    if rtt > police::MAX_ROUND {
        let most = police::MAX_ROUND;
        return Some(format!(
            "judges flows within round trips of {most}, but their RTT is {rtt}, so that honest flows fail; leave it out"
        ));
    }
    (retest < rtt * TESTS_APART).then(|| {
        let told = "so that flows halve in a test for more than a tenth of the time";
        format!(
            "retest: is {retest}, but the flows' RTT is {rtt}, {told}; set retest = \"{}\" or more",
            rtt * (2 * TESTS_APART)
        )
    })
}

/// The values that routers and senders of one header give for the time that they must share.
#[derive(Debug, Default)]
struct Said {
    /// The parameter's name.
    name: &'static str,
    /// Values, each with the key that sets it.
    given: Vec<(Time, String)>,
    /// Some router or sender leaves the value open.
    open: bool,
    per_rtt: f64,
}

impl Said {
    fn hear(&mut self, agreed: &AgreedTime<'_>, who: impl FnOnce() -> String) {
        (self.name, self.per_rtt) = (agreed.name, agreed.per_rtt);
        match *agreed.value {
            Some(time) if self.given.iter().all(|(other, _)| *other != time) => {
                self.given.push((time, who()));
            }
            Some(_) => {}
            None => self.open = true,
        }
    }
}

impl Builder<'_> {
    /// Sets the time that routers and senders of one header must share, where the scenario leaves it open: to the value
    /// that others have, or else by the flows' RTTs.
    pub(super) fn agree(&mut self, network: &mut Network) {
        for header in Header::ALL {
            let mut said = Said::default();
            let of_header = |law: Header| law == *header;
            for plan in self.links.iter_mut().filter(|plan| of_header(plan.router.header())) {
                if let Some(agreed) = plan.router.open().agreed_time {
                    said.hear(&agreed, || format!("router of {}", plan.name));
                }
            }
            let (mut rtts_s, mut flows) = (0.0, 0.0);
            for plan in &mut network.groups {
                let mut laws = plan.laws.iter_mut().filter(|law| of_header(law.header())).peekable();
                if laws.peek().is_some() {
                    let count = f64::from(self.scenario.flows[plan.spec].count.unwrap_or(1));
                    (rtts_s, flows) = (rtts_s + count * plan.path_rtt_s, flows + count);
                }
                for agreed in laws.filter_map(|law| law.open().agreed_time) {
                    said.hear(&agreed, || format!("flows.{}", plan.name));
                }
            }
            if let [(first, one), (second, other), ..] = said.given.as_slice() {
                network.warnings.push(format!(
                    "{one}: {}: is {first}, but {second} in {other}; all of a network must have the same: set {first} in both, or leave it out of both",
                    said.name
                ));
            }
            let by_rtt = Some(Time::from_secs_f64(said.per_rtt * rtts_s / flows)).filter(|_| rtts_s > 0.0);
            let by_rtt = by_rtt.filter(|time| *time > Time::ZERO);
            if let (Some((given, who)), Some(time)) = (said.given.first(), by_rtt) {
                if far_off(*given, time) {
                    let message =
                        format!("is {given}, but {} of the flows' mean RTT are {time}", said.per_rtt);
                    network.warnings.push(format!("{who}: {}: {message}; leave it out for that", said.name));
                }
            }
            let Some(time) = said.given.first().map(|(time, _)| *time).or(by_rtt).filter(|_| said.open)
            else {
                continue;
            };
            let routers = self.links.iter_mut().filter(|plan| of_header(plan.router.header()));
            let senders = network.groups.iter_mut().flat_map(|plan| &mut plan.laws);
            let senders = senders.filter(|law| of_header(law.header()));
            let routers = routers.filter_map(|plan| plan.router.open().agreed_time);
            for agreed in routers.chain(senders.filter_map(|law| law.open().agreed_time)) {
                agreed.value.get_or_insert(time);
            }
            network.assumed.insert(format!("{}.{}", header.name(), said.name), time.to_string());
        }
    }

    /// Sets values that the scenario leaves open, and checks those that it sets.
    pub(super) fn assume(&mut self, network: &mut Network) -> Result<()> {
        let mut warnings = Warnings::default();
        for (plan, rtts) in self.links.iter_mut().zip(&self.rtts) {
            let longest = Some(rtts.longest).filter(|t| *t > Time::ZERO);
            if plan.router.traits().gains.is_some() {
                network.loops.push(Loop {
                    link: plan.name.clone(),
                    router: plan.router.clone(),
                    rtts: rtts.each(),
                    capacity: plan.capacity.mean(Time::ZERO, self.scenario.duration),
                });
            }
            warnings.look_at(plan, rtts, longest, self.scenario.packet.as_f64());
            warnings.time_constants(plan, rtts, longest, &mut network.assumed);
            warnings.longest_rtt(plan, longest, &mut network.assumed);
            // Assumed values must be consistent with given ones.
            plan.queue.check().map_err(|(k, m)| ScenarioError::new(plan.key(&format!("queue.{k}")), m))?;
        }
        for ((kind, message), links) in warnings.0 {
            network.warnings.push(format!("{kind} of {}: {message}", links.join(" and ")));
        }
        Ok(())
    }
}

/// Warnings about links: the kind of law and the message, with the links to which they apply.
#[derive(Default)]
struct Warnings(BTreeMap<(&'static str, String), Vec<String>>);

impl Warnings {
    fn add(&mut self, kind: &'static str, message: String, link: &str) {
        self.0.entry((kind, message)).or_default().push(link.to_owned());
    }

    /// Warns of given values that do not suit the RTTs of a link's flows.
    fn look_at(&mut self, plan: &LinkPlan, rtts: &PathRtts, longest: Option<Time>, packet_bytes: f64) {
        let router = [
            plan.router.traits().gains.and_then(|gains| unstable(gains, &rtts.each())),
            bursts(rtts),
            sparse(plan, rtts, packet_bytes),
            longest.and_then(|rtt| {
                let most = plan.router.header().longest_rtt().filter(|most| rtt > *most)?;
                let law = plan.router.name();
                Some(format!(
                    "packets of \"{law}\" carry RTTs up to {most}, but the flows' RTT is {rtt}; take another law"
                ))
            }),
        ];
        router.into_iter().flatten().for_each(|message| self.add("router", message, &plan.name));
        let share = longest.and_then(|rtt| hasty_share(plan, rtt));
        share.into_iter().for_each(|message| self.add("share", message, &plan.name));
        let police = longest.and_then(|rtt| hasty_police(plan, rtt));
        police.into_iter().for_each(|message| self.add("police", message, &plan.name));
    }

    /// Sets the time constants of router and queue that are left open.
    fn time_constants(
        &mut self,
        plan: &mut LinkPlan,
        rtts: &PathRtts,
        longest: Option<Time>,
        assumed: &mut Named<String>,
    ) {
        let router = plan.router.open().time_constant.and_then(|(name, value)| {
            let rtt = rtts.mean()?;
            Some(("router", name, value, rtt, true))
        });
        let queue = plan.queue.time_constant().and_then(|constant| {
            let rtt = longest?;
            let follows = constant.usual_for.is_none_or(|rtts| !rtts.contains(&rtt));
            Some(("queue", constant.name, constant.value, rtt, follows))
        });
        for (kind, name, value, rtt, follows) in router.into_iter().chain(queue) {
            match *value {
                None if follows => {
                    *value = Some(rtt);
                    assumed.insert(format!("{}.{kind}.{name}", plan.name), rtt.to_string());
                }
                Some(given) if far_off(given, rtt) => {
                    let message =
                        format!("{name}: is {given}, but the flows' RTT is {rtt}; leave it out for that");
                    self.add(kind, message, &plan.name);
                }
                _ => {}
            }
        }
    }

    /// Sets the longest RTT for which a router law allows, if it is left open and the usual one is too short.
    fn longest_rtt(&mut self, plan: &mut LinkPlan, longest: Option<Time>, assumed: &mut Named<String>) {
        let Some((bound, longest)) = plan.router.open().longest_rtt.zip(longest) else { return };
        let name = bound.name;
        match *bound.value {
            None if bound.on(longest) > bound.usual => {
                let time = *bound.value.insert(bound.on(longest));
                assumed.insert(format!("{}.router.{name}", plan.name), time.to_string());
            }
            Some(given) if given < longest => {
                let message = format!(
                    "{name}: is {given}, but the flows' RTT is {longest}; leave it out, or give more"
                );
                self.add("router", message, &plan.name);
            }
            _ => {}
        }
    }
}
