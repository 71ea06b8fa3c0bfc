//! Propagation delays that vary over time: steps in a scenario, or a file.

use super::{Builder, Result};
use crate::ScenarioError;
use crate::medium::VaryingDelay;
use crate::scenario::Delays;
use flowstamp_laws::units::Time;
use std::path::Path;

impl Builder<'_> {
    /// Reads the `delays` of links.
    pub(super) fn varying_delays(&mut self) -> Result<()> {
        let files = &self.loaded.files;
        for plan in &mut self.links {
            let Some(delays) = plan.impairments.as_ref().and_then(|it| it.delays.as_ref()) else { continue };
            let text = |path: &Path| files.get(path).map_or("", String::as_str);
            let varying = varying(delays, text).map_err(|(key, message)| {
                ScenarioError::new(format!("impairments of {}: delays{key}", plan.name), message)
            })?;
            plan.varying_delay = Some(varying);
        }
        Ok(())
    }
}

/// Reads a delay over time. An error has the rest of the key and the message.
fn varying<'a>(
    delays: &Delays,
    text: impl FnOnce(&Path) -> &'a str,
) -> std::result::Result<VaryingDelay, (&'static str, String)> {
    let (entries, period) = match (&delays.steps, &delays.trace) {
        (Some(steps), None) => {
            if steps.first().is_none_or(|(from, _)| *from != Time::ZERO) {
                return Err((".steps", "must start with an entry at \"0s\"".to_owned()));
            }
            if steps.windows(2).any(|pair| pair[1].0 <= pair[0].0) {
                return Err((".steps", "must be in rising order of time".to_owned()));
            }
            (steps.clone(), None)
        }
        (None, Some(path)) => {
            let named = |message| (".trace", format!("\"{}\": {message}", path.display()));
            let entries = parse(text(path)).map_err(named)?;
            let period = entries.last().map(|(time, _)| *time);
            (entries, period)
        }
        _ => return Err(("", "needs exactly one of `steps` and `trace`".to_owned())),
    };
    Ok(VaryingDelay { entries, period, interpolate: delays.interpolate })
}

/// Reads lines of a time and a delay in milliseconds, separated by spaces or a comma. Empty lines, and those that begin
/// with #, are skipped.
fn parse(text: &str) -> std::result::Result<Vec<(Time, Time)>, String> {
    let mut entries: Vec<(Time, Time)> = Vec::new();
    let lines = (1..).zip(text.lines().map(str::trim));
    for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let numbers = line.split(|c: char| c.is_whitespace() || c == ',').filter(|part| !part.is_empty());
        let numbers: Option<Vec<Time>> = numbers.map(milliseconds).collect();
        let Some([time, delay]) = numbers.as_deref() else {
            return Err(format!(
                "line {number}: \"{line}\" is not a time and a delay in milliseconds, such as \"1500 27.5\""
            ));
        };
        match entries.last() {
            None if *time > Time::ZERO => {
                return Err(format!("line {number}: the first time is {time}; it must be 0"));
            }
            Some((last, _)) if time <= last => {
                return Err(format!("line {number}: {time} is not after the line above; times must rise"));
            }
            _ => entries.push((*time, *delay)),
        }
    }
    match entries.len() {
        0 => Err("has no lines; a time and a delay in milliseconds are expected per line".to_owned()),
        1 => Err("has one line; the last time is the period and must be above 0".to_owned()),
        _ => Ok(entries),
    }
}

fn milliseconds(text: &str) -> Option<Time> {
    /// Nineteen years, a bound below which times and delays can be added without overflow.
    const MOST_MS: f64 = 6e11;
    let ms: f64 = text.parse().ok()?;
    (0.0..=MOST_MS).contains(&ms).then(|| Time::from_secs_f64(ms / 1e3))
}
