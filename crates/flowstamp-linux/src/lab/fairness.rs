//! Jain's index of a group's flows while all of them are active.

use super::results::Results;
use flowstamp_results::{FlowRow, jain_index};

/// Jain's index of the goodputs in one part of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fairness {
    pub index: f64,
    pub from_s: f64,
    pub until_s: f64,
}

/// Returns the index of a group from samples, which are `every_s` apart and begin after warm-up. That part of the run
/// starts when the last flow starts and ends when the first one ends. None if there is one flow, or if the flows were
/// never active together.
pub fn while_all_active(results: &Results, group: &str, warmup_s: f64, every_s: f64) -> Option<Fairness> {
    let flows: Vec<&FlowRow> = results.flows.iter().filter(|row| &*row.group == group).collect();
    let from_s = flows.iter().map(|row| row.start_s).fold(warmup_s, f64::max);
    let ends = flows.iter().flat_map(|row| [row.end_s, row.stop_s.get()]).flatten();
    let until_s = ends.fold(results.summary["duration_s"].as_f64()?, f64::min);
    let series = &results.series;
    let total = |flow: &FlowRow| {
        let name = format!("{group}.{}", flow.index);
        let key = series
            .keys
            .iter()
            .position(|key| (key.kind, &*key.name, &*key.metric) == ("flow", name.as_str(), "goodput_bps"))?;
        let samples = series.key.iter().zip(&series.time_s).zip(&series.value);
        let inside = samples.filter(|((of, end_s), _)| {
            **of as usize == key && *end_s - every_s >= from_s - 1e-9 && **end_s <= until_s + 1e-9
        });
        let values: Vec<f64> = inside.map(|(_, value)| *value).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    };
    let totals: Vec<f64> = flows.iter().map(|flow| total(flow)).collect::<Option<_>>()?;
    (totals.len() > 1).then(|| Fairness { index: jain_index(&totals), from_s, until_s })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstamp_results::{Series, SeriesKey};
    use serde_json::{Value, json};

    fn flow(index: u32, start_s: f64, stop_s: Option<f64>) -> FlowRow {
        FlowRow {
            flow: index,
            group: "g".into(),
            index,
            law: "rcp",
            start_s,
            end_s: None,
            size_bytes: None,
            fct_s: None,
            fct_sender_s: None.into(),
            ideal_fct_s: None.into(),
            delivered_bytes: 0,
            delivered_bytes_after_warmup: 0,
            goodput_bps: 0.0,
            retransmissions: 0,
            retransmissions_after_warmup: 0,
            timeouts: 0,
            timeouts_after_warmup: 0,
            min_rtt_s: None.into(),
            srtt_s: None.into(),
            switched_s: None.into(),
            stop_s: stop_s.into(),
            video: None,
        }
    }

    /// Flow 0 has the link alone until 2 s. Later both have the same, until flow 1 stops at 4 s.
    #[test]
    fn only_the_time_of_all_flows_counts() {
        let key =
            |index| SeriesKey { kind: "flow", name: format!("g.{index}"), metric: "goodput_bps".to_owned() };
        let mut series = Series { keys: vec![key(0), key(1)], ..Series::default() };
        for second in 1..=6u32 {
            let shared = (3..=4).contains(&second);
            for (flow, value) in if shared { [5.0, 5.0] } else { [10.0, 0.0] }.into_iter().enumerate() {
                series.time_s.push(f64::from(second));
                series.key.push(flow as u32);
                series.value.push(value);
            }
        }
        let flows = vec![flow(0, 0.0, None), flow(1, 2.0, Some(4.0))];
        let summary = json!({"duration_s": 6.0});
        let mut results = Results { manifest: Value::Null, summary, series, flows, invalid: None };
        let found = while_all_active(&results, "g", 1.0, 1.0);
        assert_eq!(found, Some(Fairness { index: 1.0, from_s: 2.0, until_s: 4.0 }));
        results.flows.truncate(1);
        assert_eq!(while_all_active(&results, "g", 1.0, 1.0), None);
    }
}
