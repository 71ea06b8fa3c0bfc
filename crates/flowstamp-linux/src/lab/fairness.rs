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
/// starts when the last flow starts and ends when the first one ends. None if the flows were never active together.
pub fn while_all_active(results: &Results, group: &str, warmup_s: f64, every_s: f64) -> Option<Fairness> {
    let flows: Vec<&FlowRow> = results.flows.iter().filter(|row| &*row.group == group).collect();
    let from_s = flows.iter().map(|row| row.start_s).fold(warmup_s, f64::max);
    let ends = flows.iter().flat_map(|row| [row.end_s, row.stop_s.get()]).flatten();
    let until_s = ends.fold(results.summary["duration_s"].as_f64()?, f64::min);
    let series = &results.series;
    let total = |flow: &FlowRow| {
        let name = format!("{group}.{}", flow.index);
        let key = series.keys.iter().position(|key| {
            (key.kind, &*key.name, &*key.metric) == ("flow", name.as_str(), "goodput_bps")
        })?;
        let samples = series.key.iter().zip(&series.time_s).zip(&series.value);
        let inside = samples.filter(|((of, end_s), _)| {
            **of as usize == key && *end_s - every_s >= from_s - 1e-9 && **end_s <= until_s + 1e-9
        });
        let values: Vec<f64> = inside.map(|(_, value)| *value).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    };
    let totals: Vec<f64> = flows.iter().map(|flow| total(flow)).collect::<Option<_>>()?;
    (!totals.is_empty()).then(|| Fairness { index: jain_index(&totals), from_s, until_s })
}
