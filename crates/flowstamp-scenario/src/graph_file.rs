//! A graph in a file of another program: `graph.file` becomes `graph.links` before anything else is known of the scenario, so that
//! `--set` reaches its links, and what is run names all of them.
//!
//! ```text
//! GraphML as networkx.write_graphml writes it        CSV as of networkx.to_pandas_edgelist
//!   <edge source="a" target="b">                       source,target,rate,delay
//!     <data key="d0">10Gbps</data> ...                 a,b,10Gbps,1us
//! ```

use crate::error::ScenarioError;
use flowstamp_laws::tree::{Table, Value};
use flowstamp_laws::units::{Rate, Time};
use std::path::Path;

/// What the table of a graph says of links that do not say it themselves.
const OF_ALL: [&str; 7] = ["rate", "delay", "buffer", "queue", "router", "share", "priority"];
/// What an edge may say of itself beside its ends; other attributes, such as weights and positions, are of no concern here.
const OF_EDGE: [&str; 9] =
    ["rate", "delay", "name", "buffer", "queue", "router", "priority", "medium", "duplex"];

type Result<T> = std::result::Result<T, ScenarioError>;

/// An edge as the file has it.
struct Edge {
    from: String,
    to: String,
    says: Vec<(String, String)>,
    duplex: bool,
    /// Where it stands.
    at: String,
}

/// Puts the links of a graph's file into its table.
pub fn expand(tree: &mut Value, text_of: impl FnOnce(&str, &Path) -> Result<String>) -> Result<()> {
    let Value::Table(tree) = tree else { return Ok(()) };
    let Some(Value::Table(graph)) = tree.get_mut("graph") else { return Ok(()) };
    let Some(file) = graph.remove("file") else {
        return match OF_ALL.into_iter().find(|key| graph.get(key).is_some()) {
            Some(key) => Err(ScenarioError::new(
                format!("graph.{key}"),
                "is for the links of a file, and none is named; give it with each of graph.links",
            )),
            None => Ok(()),
        };
    };
    let Value::String(file) = file else {
        return Err(ScenarioError::new("graph.file", "is no text; name a file of GraphML or CSV"));
    };
    if matches!(graph.get("links"), Some(Value::Array(links)) if !links.is_empty()) {
        let message = "is together with graph.links; leave out one of them";
        return Err(ScenarioError::new("graph.file", message));
    }
    let text = text_of("graph.file", Path::new(&file))?;
    let of_file = |message: String| ScenarioError::new("graph.file", format!("\"{file}\": {message}"));
    let edges = edges(&text).map_err(of_file)?;
    if edges.is_empty() {
        return Err(of_file("has no edges; a link is expected for each".to_owned()));
    }
    let defaults: Vec<_> = OF_ALL.into_iter().filter_map(|key| Some((key, graph.remove(key)?))).collect();
    let mut names = std::collections::BTreeMap::new();
    let links = edges.into_iter().map(|edge| {
        let at = format!("{} ({} to {})", edge.at, edge.from, edge.to);
        let mut link = link(edge, &defaults).map_err(|message| of_file(format!("{at}: {message}")))?;
        // Of several edges between two nodes each has a name.
        if link.get("name").is_none() {
            let ends = format!("{}->{}", said(&link, "from"), said(&link, "to"));
            let count = names.entry(ends.clone()).and_modify(|n| *n += 1).or_insert(1);
            if *count > 1 {
                link.insert("name", Value::String(format!("{ends}#{count}")));
            }
        }
        Ok(Value::Table(link))
    });
    let links = links.collect::<Result<Vec<_>>>()?;
    graph.insert("links", Value::Array(links));
    Ok(())
}

fn said<'a>(link: &'a Table, key: &str) -> &'a str {
    link.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The table of a link, or what is wrong with its edge.
fn link(edge: Edge, defaults: &[(&str, Value)]) -> std::result::Result<Table, String> {
    let mut link: Table = defaults.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    for (key, value) in edge.says {
        // networkx' algorithms on flows call it so.
        let key = if key == "capacity" { "rate".to_owned() } else { key };
        let value = value.trim();
        if value.is_empty() || !OF_EDGE.contains(&key.as_str()) {
            continue;
        }
        let wrong = match key.as_str() {
            "rate" => value.parse::<Rate>().err().map(|e| e.to_string()),
            "delay" => value.parse::<Time>().err().map(|e| e.to_string()),
            "duplex" if !matches!(value, "true" | "false") => Some("write true or false".to_owned()),
            _ => None,
        };
        if let Some(wrong) = wrong {
            return Err(format!("{key} is \"{value}\": {wrong}"));
        }
        let value =
            if key == "duplex" { Value::Boolean(value == "true") } else { Value::String(value.to_owned()) };
        link.insert(&key, value);
    }
    for (key, example) in [("rate", "10Gbps"), ("delay", "1us")] {
        if link.get(key).is_none() {
            return Err(format!(
                "has no {key}; give the edge one, such as {example}, or graph.{key} for all that have none"
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

#[cfg(not(feature = "graph-files"))]
fn edges(_: &str) -> std::result::Result<Vec<Edge>, String> {
    Err("this build reads no graphs of files; give graph.links".to_owned())
}

#[cfg(feature = "graph-files")]
fn edges(text: &str) -> std::result::Result<Vec<Edge>, String> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('<') { graphml(text) } else { table(text) }
}

/// CSV with a line of names.
#[cfg(feature = "graph-files")]
fn table(text: &str) -> std::result::Result<Vec<Edge>, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let names = reader.headers().map_err(|e| e.to_string())?.clone();
    let column = |either: [&str; 2]| {
        names.iter().position(|name| either.contains(&name)).ok_or_else(|| {
            format!(
                "line 1: has no column \"{}\"; columns source, target, rate and delay are expected",
                either[0]
            )
        })
    };
    let ends = [column(["source", "from"])?, column(["target", "to"])?];
    let mut edges = Vec::new();
    for row in reader.records() {
        let row = row.map_err(|e| e.to_string())?;
        let at = format!("line {}", row.position().map_or(0, csv::Position::line));
        let [from, to] = ends.map(|end| row.get(end).unwrap_or_default().to_owned());
        if from.is_empty() || to.is_empty() {
            return Err(format!("{at}: names no two nodes; write source and target"));
        }
        let says = names.iter().zip(&row).map(|(name, value)| (name.to_owned(), value.to_owned()));
        edges.push(Edge { from, to, says: says.collect(), duplex: true, at });
    }
    Ok(edges)
}

/// GraphML: keys that name attributes, nodes, and edges with data.
#[cfg(feature = "graph-files")]
fn graphml(text: &str) -> std::result::Result<Vec<Edge>, String> {
    use quick_xml::events::{BytesStart, Event};
    use std::collections::{BTreeMap, BTreeSet};

    let mut reader = quick_xml::Reader::from_str(text);
    let line = |at: u64| 1 + text.bytes().take(at as usize).filter(|b| *b == b'\n').count();
    let attribute = |tag: &BytesStart<'_>, name: &str| -> std::result::Result<Option<String>, String> {
        let found = tag.try_get_attribute(name).map_err(|e| e.to_string())?;
        found.map(|a| a.unescape_value().map(Into::into).map_err(|e| e.to_string())).transpose()
    };
    let (mut keys, mut defaults) = (BTreeMap::new(), Vec::new());
    let (mut nodes, mut edges): (BTreeSet<String>, Vec<Edge>) = Default::default();
    let (mut directed, mut graphs) = (false, 0);
    // The key, or the attribute of an edge, whose text comes next.
    let (mut of_key, mut of_data): (Option<String>, Option<String>) = (None, None);
    let mut in_edge = false;
    loop {
        let event = reader
            .read_event()
            .map_err(|e| format!("line {}: is not GraphML: {e}", line(reader.error_position())))?;
        let at = reader.buffer_position();
        let here = |message: String| format!("line {}: {message}", line(at));
        match &event {
            Event::Eof => break,
            Event::Start(tag) | Event::Empty(tag) => {
                let get = |name: &str| attribute(tag, name).map_err(here);
                let need = |name: &str| {
                    get(name)?.ok_or_else(|| {
                        let tag = String::from_utf8_lossy(tag.local_name().as_ref()).into_owned();
                        here(format!("<{tag}> has no {name}"))
                    })
                };
                match tag.local_name().as_ref() {
                    b"key" => {
                        let id = need("id")?;
                        let name = get("attr.name")?.unwrap_or_else(|| id.clone());
                        if get("for")?.is_none_or(|of| of == "edge" || of == "all") {
                            keys.insert(id, name.clone());
                            of_key = Some(name).filter(|_| matches!(event, Event::Start(_)));
                        }
                    }
                    b"graph" => {
                        directed = get("edgedefault")?.is_some_and(|d| d == "directed");
                        graphs += 1;
                        if graphs > 1 {
                            return Err(here("is a second graph; one is expected".to_owned()));
                        }
                    }
                    b"node" => {
                        nodes.insert(need("id")?);
                    }
                    b"edge" => {
                        let (from, to) = (need("source")?, need("target")?);
                        let own = get("directed")?.map(|d| d == "true");
                        let at = format!("line {}", line(at));
                        edges.push(Edge { from, to, says: Vec::new(), duplex: !own.unwrap_or(directed), at });
                        in_edge = matches!(event, Event::Start(_));
                    }
                    b"data" if in_edge => {
                        let id = need("key")?;
                        of_data = keys.get(&id).cloned().filter(|_| matches!(event, Event::Start(_)));
                    }
                    _ => {}
                }
            }
            Event::Text(told) => {
                let told = told.unescape().map_err(|e| here(e.to_string()))?.into_owned();
                if told.trim().is_empty() {
                    continue;
                }
                if let (Some(name), Some(edge)) = (of_data.clone(), edges.last_mut()) {
                    edge.says.push((name, told));
                } else if let Some(name) = of_key.clone() {
                    defaults.push((name, told));
                }
            }
            Event::End(tag) => match tag.local_name().as_ref() {
                b"edge" => in_edge = false,
                b"data" => of_data = None,
                b"key" => of_key = None,
                _ => {}
            },
            _ => {}
        }
    }
    if graphs == 0 {
        return Err("has no <graph>; GraphML or CSV is expected".to_owned());
    }
    for edge in &mut edges {
        if let Some(node) = [&edge.from, &edge.to].into_iter().find(|node| !nodes.contains(*node)) {
            return Err(format!("{}: the edge names \"{node}\", which is no node of the graph", edge.at));
        }
        // What the edge says comes later, and so has the last word.
        edge.says.splice(0..0, defaults.iter().cloned());
    }
    Ok(edges)
}
