//! Reads edges from GraphML: keys that name attributes, nodes, and edges with data.

use super::{Edge, Read, Reading, unread};
use quick_xml::events::{BytesStart, Event};
use std::collections::{BTreeMap, BTreeSet};

/// Line numbers of positions that only grow: each byte is looked at once.
struct Lines<'a> {
    text: &'a [u8],
    seen: usize,
    line: usize,
}

impl Lines<'_> {
    fn at(&mut self, position: u64) -> usize {
        let end = usize::try_from(position).unwrap_or(usize::MAX).min(self.text.len());
        if end > self.seen {
            #[cfg(test)]
            super::tests::LOOKED_AT.with(|bytes| bytes.set(bytes.get() + end - self.seen));
            self.line += self.text[self.seen..end].iter().filter(|byte| **byte == b'\n').count();
            self.seen = end;
        }
        self.line
    }
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Read<Option<String>> {
    let found = tag.try_get_attribute(name).map_err(|e| e.to_string())?;
    found.map(|a| a.unescape_value().map(Into::into).map_err(|e| e.to_string())).transpose()
}

/// The parser's state.
#[derive(Default)]
struct Reader {
    /// Names of edges' attributes by the ids of their keys, and the values of edges that have none.
    keys: BTreeMap<String, String>,
    defaults: Vec<(String, String)>,
    nodes: BTreeSet<String>,
    edges: Vec<Edge>,
    begun: bool,
    graphs: u32,
    directed: bool,
    /// The key, or the attribute of an edge, whose text comes next.
    of_key: Option<String>,
    of_data: Option<String>,
    in_edge: bool,
}

pub(super) fn edges(text: &str, reading: &Reading) -> Read<Vec<Edge>> {
    let mut source = quick_xml::Reader::from_str(text);
    let mut lines = Lines { text: text.as_bytes(), seen: 0, line: 1 };
    let mut read = Reader::default();
    loop {
        let event = source.read_event();
        let event =
            event.map_err(|e| format!("line {}: is not GraphML: {e}", lines.at(source.error_position())))?;
        let line = lines.at(source.buffer_position());
        let here = |message: String| format!("line {line}: {message}");
        match &event {
            Event::Eof => break,
            Event::Start(tag) => read.begin(tag, true, line, reading).map_err(here)?,
            Event::Empty(tag) => read.begin(tag, false, line, reading).map_err(here)?,
            Event::Text(told) => {
                let told = told.unescape().map_err(|e| here(e.to_string()))?;
                read.text(&told, reading);
            }
            Event::CData(told) => read.text(&String::from_utf8_lossy(told), reading),
            Event::End(tag) => read.end(tag.local_name().as_ref()),
            _ => {}
        }
    }
    read.whole(reading)
}

impl Reader {
    /// Handles a tag. `more` says whether the element has content.
    fn begin(&mut self, tag: &BytesStart<'_>, more: bool, line: usize, reading: &Reading) -> Read<()> {
        let name = tag.local_name();
        let name = String::from_utf8_lossy(name.as_ref());
        let get = |key: &str| attribute(tag, key);
        let need = |key: &str| get(key)?.ok_or_else(|| format!("<{name}> has no {key}"));
        if !std::mem::replace(&mut self.begun, true) && name != "graphml" {
            let format = if name == "gexf" { "GEXF".to_owned() } else { format!("XML of <{name}>") };
            return Err(unread(&format));
        }
        match &*name {
            "key" => {
                let id = need("id")?;
                let name = get("attr.name")?.unwrap_or_else(|| id.clone());
                if get("for")?.is_none_or(|of| of == "edge" || of == "all") {
                    self.keys.insert(id, name.clone());
                    self.of_key = Some(name).filter(|_| more);
                }
            }
            "graph" => {
                let directed = get("edgedefault")?.is_some_and(|directed| directed == "directed");
                self.directed = reading.directed.unwrap_or(directed);
                self.graphs += 1;
                if self.graphs > 1 {
                    return Err("is a second graph; one is expected".to_owned());
                }
            }
            "node" => {
                self.nodes.insert(need("id")?);
            }
            "edge" => {
                let (from, to) = (need("source")?, need("target")?);
                let own = get("directed")?.map(|directed| directed == "true");
                let duplex = !own.unwrap_or(self.directed);
                self.edges.push(Edge { from, to, says: Vec::new(), duplex, line });
                self.in_edge = more;
            }
            "hyperedge" => return Err("is a hyperedge, but a link joins two nodes; give edges".to_owned()),
            "data" if self.in_edge => self.of_data = self.keys.get(&need("key")?).cloned().filter(|_| more),
            _ => {}
        }
        Ok(())
    }

    fn text(&mut self, told: &str, reading: &Reading) {
        if told.trim().is_empty() {
            return;
        }
        let wanted = |name: &&String| reading.means(name) && !reading.ignored.contains(name);
        if let (Some(name), Some(edge)) = (self.of_data.as_ref(), self.edges.last_mut()) {
            edge.says.extend(Some(name).filter(wanted).map(|name| (name.clone(), told.to_owned())));
        } else if let Some(name) = self.of_key.as_ref().filter(wanted) {
            self.defaults.push((name.clone(), told.to_owned()));
        }
    }

    fn end(&mut self, name: &[u8]) {
        match name {
            b"edge" => self.in_edge = false,
            b"data" => self.of_data = None,
            b"key" => self.of_key = None,
            _ => {}
        }
    }

    /// Returns the edges of the whole file.
    fn whole(mut self, reading: &Reading) -> Read<Vec<Edge>> {
        if self.graphs == 0 {
            return Err("has no <graph>; GraphML or CSV is expected".to_owned());
        }
        let known = |name: &String| self.keys.values().any(|key| key == name);
        for (key, name, default) in [
            ("rate_key", &reading.rate, "rate"),
            ("delay_key", &reading.delay, "delay"),
            ("weight_key", &reading.weight, "weight"),
        ] {
            if name != default && !known(name) {
                let there = self.keys.values().map(String::as_str).collect::<Vec<_>>().join(", ");
                return Err(format!(
                    "has no attribute \"{name}\", which graph.{key} names; edges have {there}"
                ));
            }
        }
        for edge in &mut self.edges {
            if let Some(node) = [&edge.from, &edge.to].into_iter().find(|node| !self.nodes.contains(*node)) {
                return Err(format!(
                    "line {}: the edge names \"{node}\", which is not a node of the graph",
                    edge.line
                ));
            }
            // The edge's own values come later and so override the defaults.
            edge.says.splice(0..0, self.defaults.iter().cloned());
        }
        Ok(self.edges)
    }
}
