//! Refuses, by name, parameters of the laws that the hardware cannot carry out. A value that describes what the hardware does
//! is accepted.

use flowstamp_laws::router::RouterLaw;
use flowstamp_laws::xcp::Throughput;
use flowstamp_laws::{Refused, Time, rcp, vcp, xcp};
use serde::Serialize;

/// The hardware ignores RTTs of this length or more: MAX_ALLOWABLE_RTT_US of fs_rcp_packet.sv.
const RCP_MAX_RTT: Time = Time::from_secs(20);
/// The hardware reduces longer RTTs to this one: MAX_RTT of fs_xcp.sv.
const XCP_MAX_RTT: Time = Time::from_secs(4);
/// The longest `t_rho` that fits into the option (2^24 us), in whole seconds.
const VCP_MAX_T_RHO: Time = Time::from_secs(16);

/// Formats a value as in a scenario.
fn shown(value: impl Serialize) -> String {
    match serde_json::to_value(value).unwrap_or_default() {
        serde_json::Value::String(text) => text,
        serde_json::Value::Null => "unset".to_owned(),
        value => value.to_string(),
    }
}

/// Refuses every value except `only`. `hardware` says why.
fn lacks<T: PartialEq + Serialize>(
    name: &'static str,
    value: &T,
    only: &T,
    hardware: &str,
) -> Result<(), Refused> {
    if value == only {
        return Ok(());
    }
    let right = match shown(only).as_str() {
        "unset" => "leave it out".to_owned(),
        only => format!("leave it at {only}"),
    };
    Err((name, format!("is {}; {hardware}, so {right}", shown(value))))
}

/// Refuses a bound on RTTs other than that of the circuits.
fn bounded(name: &'static str, value: Option<Time>, circuits: Time) -> Result<(), Refused> {
    lacks(name, &value.unwrap_or(circuits), &circuits, "the hardware's bound on RTTs is fixed")
}

pub(super) fn rcp(p: &rcp::router::Params) -> Result<(), Refused> {
    rcp::Router::check(p)?;
    let default = rcp::router::Params::default();
    // Destructured, so that each new parameter must be carried out or refused.
    let rcp::router::Params {
        alpha: _,
        beta: _,
        eta: _,
        max_interval: _,
        max_allowable_rtt,
        max_rtt_factor,
        mtu: _,
        initial_rate: _,
        initial_rtt: _,
        capacity: _,
        growth: _,
        fairness,
        long_share,
        long_after,
        levels,
        level_ratio,
        max_weight,
        rtt_gain,
        rtt_share,
    } = p;
    bounded("max_allowable_rtt", *max_allowable_rtt, RCP_MAX_RTT)?;
    lacks("max_rtt_factor", max_rtt_factor, &None, "the hardware sums RTTs without weights")?;
    lacks("fairness", fairness, &default.fairness, "the hardware stamps the lower of two rates")?;
    let no_age = "the headers that the hardware reads have no age";
    lacks("long_share", long_share, &default.long_share, no_age)?;
    lacks("long_after", long_after, &default.long_after, no_age)?;
    lacks("levels", levels, &default.levels, no_age)?;
    lacks("level_ratio", level_ratio, &default.level_ratio, no_age)?;
    lacks("max_weight", max_weight, &None, "the hardware gives every flow the weight 1")?;
    lacks("rtt_gain", rtt_gain, &None, "the hardware averages RTTs over a slot")?;
    lacks("rtt_share", rtt_share, &default.rtt_share, "the hardware reads the RTT of every packet")
}

pub(super) fn xcp(p: &xcp::router::Params) -> Result<(), Refused> {
    xcp::Router::<Throughput>::check(p)?;
    let default = xcp::router::Params::default();
    // Destructured likewise.
    let xcp::router::Params {
        alpha: _,
        beta: _,
        gamma: _,
        fairness,
        initial_interval: _,
        min_interval: _,
        max_rtt,
        queue_window,
        min_queue_interval,
        max_weight,
        target_queue: _,
        max_fill,
    } = p;
    let shares = "the hardware divides feedback as in section 3.5.2";
    lacks("fairness", fairness, &default.fairness, shares)?;
    bounded("max_rtt", *max_rtt, XCP_MAX_RTT)?;
    let a_slot = "the hardware measures the persistent queue over a slot";
    lacks("queue_window", queue_window, &default.queue_window, a_slot)?;
    lacks("min_queue_interval", min_queue_interval, &default.min_queue_interval, a_slot)?;
    lacks("max_weight", max_weight, &None, "the hardware believes every packet's X")?;
    lacks("max_fill", max_fill, &None, "the hardware does not know the buffer")
}

pub(super) fn vcp(p: &vcp::router::Params) -> Result<(), Refused> {
    vcp::Router::check(p)?;
    let default = vcp::router::Params::default();
    // Destructured likewise.
    let vcp::router::Params {
        t_rho,
        t_q: _,
        k_q: _,
        gamma: _,
        queue_weight: _,
        mark_others: _,
        tcp_friendly,
        red_min,
        red_max,
        red_max_p,
    } = p;
    if let Some(t_rho) = t_rho.filter(|t_rho| *t_rho > VCP_MAX_T_RHO) {
        return Err(("t_rho", format!("is {t_rho}; TCP's option holds at most {VCP_MAX_T_RHO}")));
    }
    let no_draw = "the hardware draws no random numbers";
    lacks("tcp_friendly", tcp_friendly, &default.tcp_friendly, no_draw)?;
    lacks("red_min", red_min, &default.red_min, no_draw)?;
    lacks("red_max", red_max, &default.red_max, no_draw)?;
    lacks("red_max_p", red_max_p, &default.red_max_p, no_draw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstamp_laws::{Bytes, Ratio};

    fn line(refused: Result<(), Refused>) -> String {
        refused.map_or_else(|(name, what)| format!("{name} {what}"), |()| "carried out".to_owned())
    }

    #[test]
    fn rcp_parameters_that_need_more_than_the_circuits_are_refused() {
        type P = rcp::router::Params;
        let with = |set: fn(&mut P)| {
            let mut p = P::default();
            set(&mut p);
            line(rcp(&p))
        };
        assert_eq!(with(|_| {}), "carried out");
        assert_eq!(with(|p| (p.alpha, p.eta, p.growth) = (0.1, 0.95, 0.2)), "carried out");
        assert_eq!(with(|p| p.max_allowable_rtt = Some(Time::from_secs(20))), "carried out");
        assert_eq!(with(|p| p.eta = 2.0), "eta is 2; it must be 0.01 to 1");
        assert_eq!(
            with(|p| p.max_allowable_rtt = Some(Time::from_secs(60))),
            "max_allowable_rtt is 60s; the hardware's bound on RTTs is fixed, so leave it at 20s"
        );
        assert_eq!(
            with(|p| p.max_rtt_factor = Some(4.0)),
            "max_rtt_factor is 4.0; the hardware sums RTTs without weights, so leave it out"
        );
        assert_eq!(
            with(|p| p.fairness = 1.0),
            "fairness is 1.0; the hardware stamps the lower of two rates, so leave it at 0.0"
        );
        assert_eq!(
            with(|p| p.long_share = 0.1),
            "long_share is 0.1; the headers that the hardware reads have no age, so leave it at 1.0"
        );
        assert!(with(|p| p.long_after = Bytes::new(7)).starts_with("long_after is 7"));
        assert!(with(|p| p.levels = 3).starts_with("levels is 3; the headers that"));
        assert!(with(|p| p.level_ratio = 2.0).starts_with("level_ratio is 2.0; the headers that"));
        assert_eq!(
            with(|p| p.max_weight = Some(8.0)),
            "max_weight is 8.0; the hardware gives every flow the weight 1, so leave it out"
        );
        assert_eq!(
            with(|p| p.rtt_gain = Some(0.02)),
            "rtt_gain is 0.02; the hardware averages RTTs over a slot, so leave it out"
        );
        assert_eq!(
            with(|p| p.rtt_share = 0.5),
            "rtt_share is 0.5; the hardware reads the RTT of every packet, so leave it at 1.0"
        );
    }

    #[test]
    fn xcp_parameters_that_need_more_than_the_circuits_are_refused() {
        type P = xcp::router::Params;
        let with = |set: fn(&mut P)| {
            let mut p = P::default();
            set(&mut p);
            line(xcp(&p))
        };
        assert_eq!(with(|_| {}), "carried out");
        assert_eq!(with(|p| p.target_queue = Some(Time::from_millis(5))), "carried out");
        assert_eq!(
            with(|p| p.fairness = xcp::fairness::Fairness::Proportional),
            "fairness is proportional; the hardware divides feedback as in section 3.5.2, so leave it at min-max"
        );
        assert_eq!(
            with(|p| p.max_rtt = Some(Time::from_secs(1))),
            "max_rtt is 1s; the hardware's bound on RTTs is fixed, so leave it at 4s"
        );
        assert_eq!(
            with(|p| p.queue_window = 0.5),
            "queue_window is 0.5; the hardware measures the persistent queue over a slot, so leave it at 1.0"
        );
        assert!(
            with(|p| p.min_queue_interval = Time::from_millis(2)).starts_with("min_queue_interval is 2ms; ")
        );
        assert_eq!(
            with(|p| p.max_weight = Some(16.0)),
            "max_weight is 16.0; the hardware believes every packet's X, so leave it out"
        );
        assert_eq!(
            with(|p| p.max_fill = Some(0.6)),
            "max_fill is 0.6; the hardware does not know the buffer, so leave it out"
        );
    }

    #[test]
    fn vcp_parameters_that_need_more_than_the_circuits_are_refused() {
        type P = vcp::router::Params;
        let with = |set: fn(&mut P)| {
            let mut p = P::default();
            set(&mut p);
            line(vcp(&p))
        };
        assert_eq!(with(|_| {}), "carried out");
        assert_eq!(with(|p| p.t_rho = Some(Time::from_millis(200))), "carried out");
        assert_eq!(
            with(|p| p.t_rho = Some(Time::from_secs(17))),
            "t_rho is 17s; TCP's option holds at most 16s"
        );
        assert_eq!(
            with(|p| p.tcp_friendly = true),
            "tcp_friendly is true; the hardware draws no random numbers, so leave it at false"
        );
        assert!(with(|p| p.red_min = Ratio::new(0.1)).starts_with("red_min is 0.1; the hardware draws"));
        assert!(with(|p| p.red_max = Ratio::new(0.9)).starts_with("red_max is 0.9; the hardware draws"));
        assert!(with(|p| p.red_max_p = Ratio::new(0.2)).starts_with("red_max_p is 0.2; the hardware draws"));
    }
}
