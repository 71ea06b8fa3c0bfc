//! Flows that switched to the kernel's congestion control: when and why, according to the hosts.

use super::applications::{HTTP_PORT, Planned};
use super::file::Lab;
use super::flows::Application;
use super::quic;
use crate::path::PORTS;
use flowstamp_laws::units::Time;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// A flow that left.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Left {
    /// The cause, named as in `host status`.
    pub cause: String,
    /// `None` if only the application reported it; its start then counts as the time.
    pub at: Option<Time>,
}

/// Finds each flow's departure in `host status --departures`, by the ports of its sender.
///
/// `time` converts seconds of the monotonic clock to the lab's time. `controls` are the congestion controls'
/// names in the kernel by flow, for flows with one of our laws.
pub fn of_flows(
    lab: &Lab,
    plan: &[Planned],
    status: &Value,
    time: impl Fn(f64) -> Time,
    said: &[Value],
    controls: &[Option<String>],
) -> Vec<Option<Left>> {
    let all = status["departures"].as_array().map_or(&[][..], Vec::as_slice);
    let of = |number: usize| {
        let control = controls[number].as_deref()?;
        let own_port = u64::from(PORTS.start) + number as u64;
        let sender = |departure: &&Value| {
            let (local, remote) = (departure["local_port"].as_u64(), departure["remote_port"].as_u64());
            match lab.flows[plan[number].group].app {
                Application::Iperf3 => local == Some(own_port),
                Application::Http => local == Some(u64::from(HTTP_PORT)) && remote == Some(own_port),
                Application::H3 | Application::Video => false,
            }
        };
        if !lab.flows[plan[number].group].app.is_tcp() {
            return quic::left(&said[number]).map(|cause| Left { cause: cause.to_owned(), at: None });
        }
        if let Some(departure) = all.iter().find(sender) {
            let cause = departure["cause"].as_str().unwrap_or_default().to_owned();
            let at = departure["at_s"].as_f64().map(&time);
            // After the path has stopped, all packets are lost, so later departures do not count.
            return (at <= Some(lab.duration)).then_some(Left { cause, at });
        }
        // A flow that never ran our law leaves no record on the hosts; only its application reports it.
        let last = said[number]["end"]["sender_tcp_congestion"].as_str()?;
        (last != control).then(|| Left { cause: format!("it is {last}'s"), at: None })
    };
    (0..plan.len()).map(of).collect()
}

/// The summary of each group with one of our laws: how many flows stayed, and which left.
pub fn by_group(lab: &Lab, plan: &[Planned], opened: &[bool], left: &[Option<Left>]) -> Map<String, Value> {
    let mut groups = Map::new();
    for (number, group) in lab.flows.iter().enumerate().filter(|(_, group)| lab.law_of(group).law().is_some())
    {
        let flows = || plan.iter().enumerate().filter(|(flow, p)| p.group == number && opened[*flow]);
        let gone: Vec<Value> = flows()
            .filter_map(|(flow, planned)| {
                let left = left[flow].as_ref()?;
                let name = format!("{}.{}", group.name, planned.index);
                Some(json!({"flow": name, "cause": left.cause, "at_s": left.at.map(Time::as_secs_f64)}))
            })
            .collect();
        let count = flows().count();
        groups.insert(
            group.name.clone(),
            json!({"law": lab.law_of(group).name(), "flows": count, "stayed": count - gone.len(), "left": gone}),
        );
    }
    groups
}

/// One group's departures as a line of text.
pub fn line(group: &Value) -> String {
    const MOST_NAMES: usize = 5;
    let (law, flows) =
        (group["law"].as_str().unwrap_or_default(), group["flows"].as_u64().unwrap_or_default());
    let left = group["left"].as_array().map_or(&[][..], Vec::as_slice);
    if left.is_empty() {
        return format!("{flows} of {flows} flows stayed with {law}");
    }
    let mut names: Vec<String> = left
        .iter()
        .take(MOST_NAMES)
        .map(|left| {
            let text = |key: &str| left[key].as_str().unwrap_or_default().to_owned();
            let at = left["at_s"].as_f64().map_or(String::new(), |at_s| format!(" at {at_s:.2} s"));
            format!("{}{at} ({})", text("flow"), text("cause"))
        })
        .collect();
    if left.len() > MOST_NAMES {
        names.push("...".to_owned());
    }
    format!("{} of {flows} flows LEFT {law} for the kernel's own: {}", left.len(), names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lab() -> Lab {
        let text = r#"
            duration = "10s"
            path = {rate = "10Mbps", rtt = "50ms"}
            host = {law = "rcp"}
            [[flows]]
            name = "a"
            count = 3
            [[flows]]
            name = "pages"
            app = "http"
            size = "10kB"
            [[flows]]
            name = "other"
            law = "cubic"
        "#;
        Lab::parse(text).expect("a lab")
    }

    #[test]
    fn flows_are_known_by_the_sending_ends_ports() {
        let lab = lab();
        let plan = crate::lab::applications::plan(&lab);
        let port = |n: u16| PORTS.start + n;
        let at_s = 2.5;
        let left = |local: u16, remote: u16| json!({"local_port": local, "remote_port": remote, "cause": "loss", "at_s": at_s});
        let late = json!({"local_port": port(0), "remote_port": 5201, "cause": "silent", "at_s": 10.5});
        let status = json!({"departures": [
            late, left(port(1), 5202), left(5201, port(0)), left(HTTP_PORT, port(3)), left(port(4), 5205),
        ]});
        let said = |control: &str| json!({"end": {"sender_tcp_congestion": control}});
        let said = [said("ours"), said("cubic"), said("cubic"), Value::Null, said("cubic")];
        let controls = ["ours", "ours", "ours", "ours"].map(|c| Some(c.to_owned()));
        let controls: Vec<_> = controls.into_iter().chain([None]).collect();
        let found = of_flows(&lab, &plan, &status, Time::from_secs_f64, &said, &controls);
        let at = Some(Time::from_millis(2500));
        let loss = Some(Left { cause: "loss".to_owned(), at });
        let unknown = Some(Left { cause: "it is cubic's".to_owned(), at: None });
        assert_eq!(found, [None, loss.clone(), unknown, loss, None]);
        let groups = by_group(&lab, &plan, &[true; 5], &found);
        assert_eq!(groups.keys().collect::<Vec<_>>(), ["a", "pages"]);
        assert_eq!(
            line(&groups["a"]),
            "2 of 3 flows LEFT rcp for the kernel's own: a.1 at 2.50 s (loss), a.2 (it is cubic's)"
        );
        let stayed = by_group(&lab, &plan, &[true; 5], &[const { None }; 5]);
        assert_eq!(line(&stayed["a"]), "3 of 3 flows stayed with rcp");
    }
}
