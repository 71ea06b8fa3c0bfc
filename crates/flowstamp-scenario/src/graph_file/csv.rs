//! Reads edges from CSV with a line of column names.

use super::{Edge, OF_EDGE, Read, Reading};
use crate::rows::{columns, separator, split};
use std::borrow::Cow;

/// Names of the columns with an edge's ends.
const ENDS: [&str; 4] = ["source", "from", "target", "to"];

pub(super) fn edges(text: &str, reading: &Reading) -> Read<Vec<Edge>> {
    let lines = text.lines().zip(1..);
    let mut lines = lines.filter(|(line, _)| !line.trim().is_empty());
    let Some((names, number)) = lines.next() else {
        return Err(
            "is empty; GraphML, or CSV with columns source, target, rate and delay is expected".to_owned()
        );
    };
    let separator = separator(names);
    let at = |number: usize| move |what: String| format!("line {number}: {what}");
    let mut cells: Vec<Cow<'_, str>> = Vec::new();
    split(names, separator, &mut cells).map_err(at(number))?;
    let known: Vec<&str> = ENDS.into_iter().chain(reading.chosen()).chain(OF_EDGE).collect();
    let found = columns(&cells, &known, &reading.ignored, "a graph").map_err(at(number))?;
    let end = |either: usize| {
        found[either].or(found[either + 1]).ok_or_else(|| {
            let ignored = if reading.ignored.iter().any(|name| name == ENDS[either]) { ", which ignore_columns names" } else { "" };
            format!(
                "line {number}: has no column \"{}\"{ignored}; columns source, target, rate and delay are expected",
                ENDS[either]
            )
        })
    };
    let (from, to) = (end(0)?, end(2)?);
    for (key, name) in
        [("rate_key", &reading.rate), ("delay_key", &reading.delay), ("weight_key", &reading.weight)]
    {
        let chosen = !matches!(name.as_str(), "rate" | "delay" | "weight");
        if chosen && !cells.iter().any(|cell| cell.trim() == name) {
            return Err(format!("line {number}: has no column \"{name}\", which graph.{key} names"));
        }
    }
    let count = cells.len();
    let says: Vec<(&str, usize)> =
        known.iter().zip(&found).skip(ENDS.len()).filter_map(|(name, at)| Some((*name, (*at)?))).collect();
    let mut edges = Vec::new();
    for (line, number) in lines {
        split(line, separator, &mut cells).map_err(at(number))?;
        if cells.len() != count {
            return Err(format!("line {number}: has {} values for {count} columns", cells.len()));
        }
        let cell = |column: usize| cells[column].trim().to_owned();
        let (from, to) = (cell(from), cell(to));
        if from.is_empty() || to.is_empty() {
            return Err(format!("line {number}: names no two nodes; write source and target"));
        }
        let says = says.iter().map(|(name, column)| ((*name).to_owned(), cell(*column)));
        let duplex = !reading.directed.unwrap_or(false);
        edges.push(Edge { from, to, says: says.collect(), duplex, line: number });
    }
    Ok(edges)
}
