//! A graph in another program's file. `graph.file` becomes `graph.links` before anything else of the scenario is read.
//! Therefore `--set` reaches the file's links, and the recorded scenario names all of them.
//!
//! ```text
//! GraphML as networkx.write_graphml writes it        CSV as of networkx.to_pandas_edgelist
//!   <edge source="a" target="b">                       source,target,rate,delay
//!     <data key="d0">10Gbps</data> ...                 a,b,10Gbps,1us
//! ```

#[cfg(feature = "graph-files")]
mod csv;
#[cfg(feature = "graph-files")]
mod graphml;

use crate::error::ScenarioError;
use crate::weight::Weight;
use flowstamp_laws::tree::{Table, Value};
use flowstamp_laws::units::{Rate, Time};
use std::collections::BTreeMap;
use std::path::Path;

/// Keys of the graph's table that apply to links of the file that do not set them.
const OF_ALL: [&str; 9] =
    ["rate", "delay", "weight", "buffer", "queue", "router", "share", "priority", "pfc"];
/// Keys that an edge may have, besides its ends, rate, delay and weight, whose names the scenario may choose.
const OF_EDGE: [&str; 7] = ["name", "buffer", "queue", "router", "priority", "medium", "duplex"];
/// The keys of a link's laws.
const LAWS: [&str; 5] = ["router", "queue", "share", "priority", "pfc"];
/// The name of a rate in networkx's flow algorithms.
const CAPACITY: &str = "capacity";

type Result<T> = std::result::Result<T, ScenarioError>;
/// An error in a file, without the file's name.
type Read<T> = std::result::Result<T, String>;

/// An edge as the file has it.
struct Edge {
    from: String,
    to: String,
    says: Vec<(String, String)>,
    /// Whether it leads both ways, unless it says so itself.
    duplex: bool,
    line: usize,
}

/// Where the links of a graph's file stand in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    file: String,
    edges: Vec<Place>,
}

#[derive(Clone, Debug)]
struct Place {
    /// Line, and the edge's ends.
    at: String,
    /// The laws that the file itself gives the edge. Others are keys of the graph.
    laws: Vec<&'static str>,
}

impl Places {
    /// Returns the error, but names the file and the line if it is about a link of the file, whose key the user did not
    /// write.
    pub(crate) fn name(&self, error: ScenarioError) -> ScenarioError {
        let link = error.key.strip_prefix("graph.links[").and_then(|rest| rest.split_once(']'));
        let edge = link.and_then(|(number, key)| {
            Some((self.edges.get(number.parse::<usize>().ok()?)?, key.trim_start_matches('.')))
        });
        let Some((edge, key)) = edge else { return error };
        let Place { at, laws } = edge;
        if LAWS.iter().any(|law| key.starts_with(law) && !laws.contains(law)) {
            return ScenarioError { key: format!("graph.{key}"), ..error };
        }
        let key = if key.is_empty() { String::new() } else { format!("{key} ") };
        let message = format!("\"{}\": {at}: {key}{}", self.file, error.message);
        ScenarioError { key: "graph.file".to_owned(), message, ..error }
    }
}

/// How a file is read: keys of the scenario's graph that are about the file.
struct Reading {
    /// The names of what says an edge's rate, delay and weight.
    rate: String,
    delay: String,
    weight: String,
    /// Units of bare numbers.
    rate_unit: Option<String>,
    delay_unit: Option<String>,
    /// Whether edges lead one way; `None`: as the file says.
    directed: Option<bool>,
    /// Columns that are left alone.
    ignored: Vec<String>,
}

impl Reading {
    const KEYS: [&str; 6] =
        ["rate_key", "delay_key", "weight_key", "rate_unit", "delay_unit", "ignore_columns"];

    /// Takes the keys about the file out of the graph's table.
    fn take(graph: &mut Table) -> Result<Self> {
        let named = |graph: &mut Table, key: &str, default: &str| {
            Ok::<_, ScenarioError>(text(graph, key)?.unwrap_or_else(|| default.to_owned()))
        };
        let reading = Self {
            rate: named(graph, "rate_key", "rate")?,
            delay: named(graph, "delay_key", "delay")?,
            weight: named(graph, "weight_key", "weight")?,
            rate_unit: text(graph, "rate_unit")?,
            delay_unit: text(graph, "delay_unit")?,
            directed: directed(graph)?,
            ignored: names(graph, "ignore_columns")?,
        };
        let unit_is_right = |key: &str, unit: &Option<String>, parse: fn(&str) -> Option<String>| {
            let Some(wrong) = unit.as_ref().and_then(|unit| parse(&format!("1{unit}"))) else {
                return Ok(());
            };
            Err(ScenarioError::new(format!("graph.{key}"), wrong))
        };
        unit_is_right("rate_unit", &reading.rate_unit, wrong_rate)?;
        unit_is_right("delay_unit", &reading.delay_unit, wrong_delay)?;
        let chosen =
            [("rate_key", &reading.rate), ("delay_key", &reading.delay), ("weight_key", &reading.weight)];
        for (i, (key, name)) in chosen.iter().enumerate() {
            let other = chosen[..i].iter().find(|(_, other)| other == name);
            let taken = other.map(|(other, _)| *other).or(OF_EDGE.into_iter().find(|other| other == name));
            if let Some(taken) = taken {
                let message = format!("is \"{name}\", which is {taken}; name another column");
                return Err(ScenarioError::new(format!("graph.{key}"), message));
            }
        }
        Ok(reading)
    }

    /// Whether a name of an edge's attribute is known.
    fn means(&self, name: &str) -> bool {
        self.chosen().contains(&name) || OF_EDGE.contains(&name)
    }

    fn chosen(&self) -> Vec<&str> {
        let mut chosen = vec![self.rate.as_str(), &self.delay, &self.weight];
        if self.rate == "rate" {
            chosen.push(CAPACITY);
        }
        chosen
    }
}

/// Takes text out of the graph's table.
fn text(graph: &mut Table, key: &str) -> Result<Option<String>> {
    match graph.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.trim().to_owned())),
        Some(_) => Err(ScenarioError::new(format!("graph.{key}"), "must be text that is not empty")),
    }
}

/// Takes a list of names out of the graph's table.
fn names(graph: &mut Table, key: &str) -> Result<Vec<String>> {
    let wrong = || {
        ScenarioError::new(format!("graph.{key}"), "must be a list of names of columns, such as [\"colour\"]")
    };
    match graph.remove(key) {
        None => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            items.iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// Takes `directed` out of the graph's table.
fn directed(graph: &mut Table) -> Result<Option<bool>> {
    match graph.remove("directed") {
        None => Ok(None),
        Some(Value::Boolean(directed)) => Ok(Some(directed)),
        Some(_) => Err(ScenarioError::new("graph.directed", "must be true or false")),
    }
}

fn wrong_rate(text: &str) -> Option<String> {
    text.parse::<Rate>().err().map(|e| e.to_string())
}

fn wrong_delay(text: &str) -> Option<String> {
    text.parse::<Time>().err().map(|e| e.to_string())
}

/// Puts the links of a graph's file into its table, and gives links side by side names that differ.
pub(crate) fn expand(
    tree: &mut Value,
    text_of: impl FnOnce(&str, &Path) -> Result<String>,
) -> Result<Places> {
    let Value::Table(tree) = tree else { return Ok(Places::default()) };
    let Some(Value::Table(graph)) = tree.get_mut("graph") else { return Ok(Places::default()) };
    let Some(file) = graph.remove("file") else {
        inline(graph)?;
        return Ok(Places::default());
    };
    let Value::String(file) = file else {
        return Err(ScenarioError::new("graph.file", "is not text; name a file of GraphML or CSV"));
    };
    if matches!(graph.get("links"), Some(Value::Array(links)) if !links.is_empty()) {
        let message = "is together with graph.links; leave out one of them";
        return Err(ScenarioError::new("graph.file", message));
    }
    let reading = Reading::take(graph)?;
    let text = text_of("graph.file", Path::new(&file))?;
    let of_file = |message: String| ScenarioError::new("graph.file", format!("\"{file}\": {message}"));
    let edges = edges(&text, &reading).map_err(of_file)?;
    if edges.is_empty() {
        return Err(of_file("has no edges; a link is expected for each".to_owned()));
    }
    let defaults: Vec<_> = OF_ALL.into_iter().filter_map(|key| Some((key, graph.remove(key)?))).collect();
    let (mut links, mut places) = (Vec::new(), Vec::new());
    for edge in edges {
        let at = format!("line {} ({} to {})", edge.line, edge.from, edge.to);
        let laws = LAWS.into_iter().filter(|law| edge.says.iter().any(|(key, _)| key == law)).collect();
        let link = link(edge, &defaults, &reading).map_err(|message| of_file(format!("{at}: {message}")))?;
        links.push(Value::Table(link));
        places.push(Place { at, laws });
    }
    name_parallel(&mut links);
    graph.insert("links", Value::Array(links));
    Ok(Places { file, edges: places })
}

/// Handles a graph whose links are in the scenario: refuses keys that are for files.
fn inline(graph: &mut Table) -> Result<()> {
    if let Some(key) = OF_ALL.into_iter().find(|key| graph.get(key).is_some()) {
        let message = "is for the links of a file, and none is named; give it with each of graph.links";
        return Err(ScenarioError::new(format!("graph.{key}"), message));
    }
    if let Some(key) = Reading::KEYS.into_iter().find(|key| graph.get(key).is_some()) {
        let message = "is for graph.file, and none is named; leave it out";
        return Err(ScenarioError::new(format!("graph.{key}"), message));
    }
    let directed = directed(graph)?;
    let Some(Value::Array(links)) = graph.get_mut("links") else { return Ok(()) };
    if let Some(directed) = directed {
        for link in links.iter_mut() {
            if let Value::Table(link) = link {
                if link.get("duplex").is_none() {
                    link.insert("duplex", Value::Boolean(!directed));
                }
            }
        }
    }
    name_parallel(links);
    Ok(())
}

/// Names each link that has no name and the same ends as an earlier one: `a->b#2`.
fn name_parallel(links: &mut [Value]) {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for link in links {
        let Value::Table(link) = link else { continue };
        let (None, Some(from), Some(to)) = (link.get("name"), said(link, "from"), said(link, "to")) else {
            continue;
        };
        let (there, back) = (format!("{from}->{to}"), format!("{to}->{from}"));
        let one_way = matches!(link.get("duplex"), Some(Value::Boolean(false)));
        let ends = [&there, &back].into_iter().take(if one_way { 1 } else { 2 });
        let count = 1 + ends.clone().filter_map(|ends| counts.get(ends)).max().copied().unwrap_or(0);
        for ends in ends {
            counts.insert(ends.clone(), count);
        }
        if count > 1 {
            link.insert("name", Value::String(format!("{there}#{count}")));
        }
    }
}

fn said<'a>(link: &'a Table, key: &str) -> Option<&'a str> {
    link.get(key).and_then(Value::as_str)
}

/// Makes the table of a link from an edge, or says what is wrong with the edge.
fn link(edge: Edge, defaults: &[(&str, Value)], reading: &Reading) -> Read<Table> {
    if edge.from == edge.to {
        return Err("is a loop, but a link joins two nodes; remove the edge".to_owned());
    }
    let mut link: Table = defaults.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    let by_capacity = edge.says.iter().all(|(name, _)| *name != reading.rate);
    for (name, value) in &edge.says {
        let key = match name {
            name if *name == reading.rate => "rate",
            name if name == CAPACITY && reading.rate == "rate" && by_capacity => "rate",
            name if *name == reading.delay => "delay",
            name if *name == reading.weight => "weight",
            name => match OF_EDGE.into_iter().find(|key| key == name) {
                Some(key) => key,
                None => continue,
            },
        };
        let value = value.trim();
        if !value.is_empty() {
            let value =
                value_of(key, value, reading).map_err(|wrong| format!("{name} is \"{value}\": {wrong}"))?;
            link.insert(key, value);
        }
    }
    for (key, name, example) in [("rate", &reading.rate, "10Gbps"), ("delay", &reading.delay, "1us")] {
        if link.get(key).is_none() {
            return Err(format!(
                "has no {name}; give the edge one, such as {example}, or graph.{key} for all that have none"
            ));
        }
    }
    link.insert("from", Value::String(edge.from));
    link.insert("to", Value::String(edge.to));
    if link.get("duplex").is_none() {
        link.insert("duplex", Value::Boolean(edge.duplex));
    }
    Ok(link)
}

/// Converts an edge's value of `key` to the scenario's form.
fn value_of(key: &str, value: &str, reading: &Reading) -> Read<Value> {
    let (unit, wrong): (_, fn(&str) -> Option<String>) = match key {
        "rate" => (&reading.rate_unit, wrong_rate),
        "delay" => (&reading.delay_unit, wrong_delay),
        "weight" => {
            value.parse::<Weight>()?;
            return Ok(value.parse().map_or(Value::Other("number"), Value::Float));
        }
        "duplex" => {
            let duplex = value.to_ascii_lowercase().parse().map_err(|_| "write true or false")?;
            return Ok(Value::Boolean(duplex));
        }
        _ => return Ok(Value::String(value.to_owned())),
    };
    let bare = value.parse::<f64>().is_ok();
    let text = match unit {
        Some(unit) if bare => format!("{value}{unit}"),
        _ => value.to_owned(),
    };
    let hint = if bare && unit.is_none() { format!("; or set graph.{key}_unit") } else { String::new() };
    wrong(&text).map_or(Ok(Value::String(text)), |wrong| Err(format!("{wrong}{hint}")))
}

#[cfg(not(feature = "graph-files"))]
fn edges(_: &str, reading: &Reading) -> Read<Vec<Edge>> {
    let _ = (reading.directed, &reading.ignored, Reading::means, Reading::chosen);
    Err("this build reads no graphs of files; give graph.links".to_owned())
}

#[cfg(feature = "graph-files")]
fn edges(text: &str, reading: &Reading) -> Read<Vec<Edge>> {
    match other_format(text) {
        Some(format) => Err(unread(format)),
        None if text.trim_start().starts_with('<') => graphml::edges(text, reading),
        None => csv::edges(text, reading),
    }
}

#[cfg(feature = "graph-files")]
fn unread(format: &str) -> String {
    format!("is {format}, which is not read; write GraphML, as networkx.write_graphml does, or CSV")
}

/// The format of a graph file that is neither GraphML nor CSV, recognised by its beginning.
#[cfg(feature = "graph-files")]
fn other_format(text: &str) -> Option<&'static str> {
    /// Number of characters that identify the format: a GML file may begin with some words about its program.
    const LETTERS: usize = 1000;
    let begin: String = text.chars().take(LETTERS).collect();
    let lines = begin.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut lines = lines.skip_while(|line| line.starts_with(['#', '/']));
    let first = lines.next()?;
    if first.starts_with('{') || first.starts_with('[') {
        return Some("JSON");
    }
    if first.starts_with('*') {
        return Some("Pajek");
    }
    let spaced = begin.replace('[', " [ ").replace('{', " { ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let pair =
        |a: &str, b: &str| words.windows(2).any(|pair| pair[0].eq_ignore_ascii_case(a) && pair[1] == b);
    if pair("graph", "[") {
        return Some("GML");
    }
    let word = first.split(|c: char| !c.is_alphanumeric()).next()?.to_ascii_lowercase();
    let is_dot = matches!(word.as_str(), "graph" | "digraph" | "strict") && words.contains(&"{");
    is_dot.then_some("DOT")
}

#[cfg(all(test, feature = "graph-files"))]
mod tests;
