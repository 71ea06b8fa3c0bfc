//! Reads a scenario from text: TOML or JSON, `--set` overrides, and the files that it names.

use crate::error::ScenarioError;
use crate::rows::{matches, without_mark};
use crate::{Files, Impairments, LinkRate, Loaded, Scenario, Sizes, graph_file};
use flowstamp_laws::tree::{self, Tree, Value};
use serde::{Deserialize, de};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest file that a scenario may name: a trace of a minute at 5 Gb/s, a list of ten million flows.
pub const MOST_BYTES: u64 = 1 << 28;
/// First bytes of a Parquet file.
const PARQUET: &[u8] = b"PAR1";
/// Maximum number of parts in a key of `--set`: several times as many as any key has.
const MOST_PARTS: usize = 64;

/// Maximum number of names of a list in a message.
const MOST_NAMED: usize = 40;

/// The format of a scenario's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As users write it.
    Toml,
    /// As Python objects arrive.
    Json,
}

/// Makes CSV of a Parquet file.
pub type Tables = fn(std::fs::File) -> Result<String, String>;

/// Where the files are that a scenario names.
#[derive(Clone, Copy, Debug)]
pub enum FilesFrom<'a> {
    /// On disk: paths in the scenario are relative to this folder, paths in `sets` to the current one.
    Folder(&'a Path),
    /// In memory: contents by the path that the scenario or `sets` name, as it is written there.
    Contents(&'a Files),
}

impl<'a> From<&'a Path> for FilesFrom<'a> {
    fn from(folder: &'a Path) -> Self {
        Self::Folder(folder)
    }
}

impl<'a> From<&'a PathBuf> for FilesFrom<'a> {
    fn from(folder: &'a PathBuf) -> Self {
        Self::Folder(folder)
    }
}

impl<'a> From<&'a Files> for FilesFrom<'a> {
    fn from(contents: &'a Files) -> Self {
        Self::Contents(contents)
    }
}

/// Reads a scenario from `text`. `source` names it in messages. `files` is the folder of the files that it names, or
/// their contents. `tables` reads Parquet, where the build supports it.
///
/// # Errors
/// One line for the first thing that is wrong.
pub fn read(
    text: &str,
    format: Format,
    source: &str,
    sets: &[(String, String)],
    from: FilesFrom<'_>,
    tables: Option<Tables>,
) -> Result<Loaded, ScenarioError> {
    let mut tree = parse(without_mark(text), format).map_err(|e| e.at(source))?;
    // Overrides of the graph's file apply before it is read, and overrides of its links after.
    let of_file =
        |key: &str| parts(key).is_ok_and(|p| p[0] == "graph" && p.get(1).is_some_and(|p| *p != "links"));
    let (before, after): (Vec<_>, Vec<_>) = sets.iter().partition(|(key, _)| of_file(key));
    let set_all = |tree: &mut Value, sets: Vec<&(String, String)>| {
        sets.into_iter().try_for_each(|(key, value)| set(tree, key, value, from).map_err(|e| e.at("--set")))
    };
    set_all(&mut tree, before)?;
    let places = graph_file::expand(&mut tree, |key, path| text_of(key, path, from, None));
    let places = places.map_err(|e| e.at(source))?;
    set_all(&mut tree, after)?;
    let scenario = from_tree(&tree).map_err(|e| places.name(e).at(source))?;
    let files = read_files(&scenario, from, tables).map_err(|e| e.at(source))?;
    Ok(Loaded { scenario, files, source: source.to_owned(), tree, places })
}

fn from_tree(tree: &Value) -> Result<Scenario, ScenarioError> {
    Scenario::deserialize(Tree(tree)).map_err(|error| by_name(error.into(), tree))
}

/// Replaces the number of a group of flows in an error's key by the group's name, as `--set` and later errors have it.
fn by_name(mut error: ScenarioError, tree: &Value) -> ScenarioError {
    let found = error
        .key
        .strip_prefix("flows[")
        .filter(|_| cfg!(feature = "full"))
        .and_then(|rest| rest.split_once(']'));
    if let (Some((index, rest)), Some(Value::Array(groups))) = (found, tree.get("flows"))
        && let Some(name) =
            index.parse::<usize>().ok().and_then(|index| groups.get(index)?.get("name")?.as_str())
        && name.chars().all(|c| c.is_alphanumeric() || "-_".contains(c))
    {
        error.key = format!("flows.{name}{rest}");
    }
    error
}

/// Returns the scenario with another value under `key`. No further file is read.
///
/// # Errors
/// One line for what is wrong.
pub fn with(loaded: &Loaded, key: &str, text: &str) -> Result<Loaded, ScenarioError> {
    let mut tree = loaded.tree.clone();
    set(&mut tree, key, text, FilesFrom::Contents(&loaded.files))?;
    let scenario = from_tree(&tree).map_err(|e| loaded.in_file(e))?;
    Ok(Loaded { scenario, tree, ..loaded.clone() })
}

fn parse(text: &str, format: Format) -> Result<Value, ScenarioError> {
    match format {
        #[cfg(feature = "full")]
        Format::Toml => crate::from_toml::tree(text),
        #[cfg(not(feature = "full"))]
        Format::Toml => Err(ScenarioError::new("", "this build reads no TOML; give the same as JSON")),
        Format::Json => match serde_json::from_str(text) {
            Ok(tree @ Value::Table(_)) => Ok(tree),
            Ok(other) => {
                let message: tree::Error = de::Error::invalid_type(Tree(&other).unexpected(), &"a table");
                Err(ScenarioError::new("", format!("not a scenario: {message}")))
            }
            Err(e) if e.is_data() => Err(ScenarioError::new("", format!("not a scenario: {e}"))),
            Err(e) => Err(ScenarioError::new("", format!("not JSON: {e}"))),
        },
    }
}

/// Removes nulls from JSON. Python's `None` means that a key is not given, and TOML has no null.
#[must_use]
pub fn without_nulls(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value::{Array, Object};
    match value {
        Object(map) => Object(
            map.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_nulls(v))).collect(),
        ),
        Array(items) => Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// Makes a file named by `--set` relative to the current folder, not to the scenario's.
fn from_here(key: &str, value: Value) -> Value {
    match (value, std::env::current_dir()) {
        (Value::String(path), Ok(here)) if matches!(key, "trace" | "file" | "list") => {
            Value::String(here.join(path).display().to_string())
        }
        (Value::Table(table), _) => Value::Table(
            table
                .into_iter()
                .map(|(k, v)| {
                    let v = from_here(&k, v);
                    (k, v)
                })
                .collect(),
        ),
        (value, _) => value,
    }
}

/// The value that `--set` gives: TOML, or JSON in builds without TOML, or else the text itself.
#[must_use]
pub fn value_of(text: &str) -> Value {
    #[cfg(feature = "full")]
    let value = crate::from_toml::value(text);
    #[cfg(not(feature = "full"))]
    let value = serde_json::from_str(text).ok();
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Sets `key` to the value in `text`. `key` is a dotted path. A group of flows is given by name or number,
/// or several by a pattern such as `up*`.
fn set(tree: &mut Value, key: &str, text: &str, files: FilesFrom<'_>) -> Result<(), ScenarioError> {
    let value = value_of(text);
    let parts = parts(key)?;
    let last = parts.last().copied().unwrap_or_default();
    let value = match files {
        FilesFrom::Folder(_) => from_here(last, value),
        FilesFrom::Contents(_) => value,
    };
    if parts.len() > MOST_PARTS {
        let begin: String = key.chars().take(40).collect();
        let message =
            format!("has {} parts; a key has at most {MOST_PARTS}, such as dumbbell.rate", parts.len());
        return Err(ScenarioError::new(format!("{begin}..."), message));
    }
    if parts.iter().any(|p| p.is_empty()) {
        return Err(ScenarioError::new(key, "is not a key; write for example dumbbell.rate=45Mbps"));
    }
    put(tree, "", &parts, value, key)
}

/// The parts of a dotted path. A part with dots of its own is in quotes: `graph.links."a.b->c".rate`.
///
/// # Errors
/// A quote that does not end, or does not end a part.
pub fn parts(key: &str) -> Result<Vec<&str>, ScenarioError> {
    let mut parts = Vec::new();
    let mut rest = key;
    loop {
        let (part, after) = match rest.strip_prefix('"') {
            Some(quoted) => {
                let after =
                    quoted.split_once('"').filter(|(_, after)| after.is_empty() || after.starts_with('.'));
                let message =
                    "has a quote that does not end a part; write for example graph.links.\"a->b\".rate";
                let (part, after) = after.ok_or_else(|| ScenarioError::new(key, message))?;
                (part, after.strip_prefix('.'))
            }
            None => rest.split_once('.').map_or((rest, None), |(part, after)| (part, Some(after))),
        };
        parts.push(part);
        match after {
            Some(after) => rest = after,
            None => return Ok(parts),
        }
    }
}

/// The name of a list's entry; for a link without a name, its ends.
fn called(item: &Value) -> String {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    match (text("name"), text("from"), text("to"), item.get("rate")) {
        (Some(name), ..) => name.to_owned(),
        (None, Some(from), Some(to), Some(_)) => format!("{from}->{to}"),
        _ => String::new(),
    }
}

/// The message for a name that is not in a list.
fn absent(name: &str, names: &[String]) -> String {
    let known: Vec<&str> = names.iter().map(String::as_str).filter(|known| !known.is_empty()).collect();
    if let Some(near) = tree::nearest(name, &known) {
        return format!("there is no \"{name}\"; did you mean \"{near}\"?");
    }
    let more = known.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    match &known[..known.len().min(MOST_NAMED)] {
        [] => format!("there is no \"{name}\"; write a number from 0"),
        [only] => format!("there is no \"{name}\"; there is {only}"),
        several => format!("there is no \"{name}\"; there are {}{more}", several.join(", ")),
    }
}

/// Puts `value` at `parts` below `node`, which is called `name`. `key` is the whole path, for messages.
fn put(node: &mut Value, name: &str, parts: &[&str], value: Value, key: &str) -> Result<(), ScenarioError> {
    let Some((first, rest)) = parts.split_first() else {
        *node = value;
        return Ok(());
    };
    match node {
        Value::Array(items) => {
            let names: Vec<String> = items.iter().map(called).collect();
            let matching: Vec<usize> = (0..names.len()).filter(|i| matches(first, &names[*i])).collect();
            if first.contains('*') && !matching.is_empty() {
                return matching
                    .into_iter()
                    .try_for_each(|i| put(&mut items[i], first, rest, value.clone(), key));
            }
            let index = names
                .iter()
                .position(|n| n == first)
                .or_else(|| first.parse().ok().filter(|i| *i < items.len()))
                .ok_or_else(|| {
                    let there = |(to, from): (&str, &str)| format!("{from}->{to}");
                    let there = first.strip_suffix(".reverse").map(str::to_owned).or_else(|| first.split_once("->").map(there));
                    let message = match there.filter(|there| names.contains(there)) {
                        Some(there) => format!(
                            "\"{first}\" is the way back of \"{there}\" and has its values; set \"{there}\", or give two links with duplex = false"
                        ),
                        None => absent(first, &names),
                    };
                    ScenarioError::new(key, message)
                })?;
            put(&mut items[index], first, rest, value, key)
        }
        Value::Table(table) => put(table.or_table(first), first, rest, value, key),
        other => {
            // A name becomes the table that it stands for: `router = "xcp"`, then `router.alpha=0.3`. Any other value
            // is replaced: `rate = "1Mbps"`, then `rate.trace=...`.
            let tag = match name {
                "queue" => Some("kind"),
                "router" | "law" => Some("law"),
                _ => None,
            };
            let table = tag.map(|tag| (tag.to_owned(), std::mem::replace(other, Value::Boolean(false))));
            *other = Value::Table(table.into_iter().collect());
            put(other, name, parts, value, key)
        }
    }
}

fn read_files(
    scenario: &Scenario,
    from: FilesFrom<'_>,
    tables: Option<Tables>,
) -> Result<Files, ScenarioError> {
    let mut files = Files::new();
    let mut read = |key: &str, path: &PathBuf| -> Result<(), ScenarioError> {
        files.insert(path.clone(), text_of(key, path, from, tables)?);
        Ok(())
    };
    for (key, rate) in link_rates(scenario) {
        if let LinkRate::Varying(v) = rate {
            if let Some(path) = &v.trace {
                read(&format!("{key}.trace"), path)?;
            }
        }
    }
    for (key, impairments) in impaired(scenario) {
        if let Some(path) = impairments.delays.as_ref().and_then(|delays| delays.trace.as_ref()) {
            read(&format!("{key}.delays.trace"), path)?;
        }
    }
    for group in &scenario.flows {
        if let Some((key, Sizes::Empirical { file })) = group.drawn_sizes() {
            read(&format!("flows.{}.{key}.file", group.name), file)?;
        }
        if let Some(list) = &group.list {
            read(&format!("flows.{}.list", group.name), list)?;
        }
    }
    Ok(files)
}

/// The text in a file that `key` of a scenario names.
fn text_of(
    key: &str,
    path: &Path,
    from: FilesFrom<'_>,
    tables: Option<Tables>,
) -> Result<String, ScenarioError> {
    match from {
        FilesFrom::Folder(folder) => {
            let full = folder.join(path);
            let text = contents(&full, tables).map_err(|message| {
                ScenarioError::new(key, format!("cannot read \"{}\": {message}", full.display()))
            })?;
            // Avoids a copy if there is no byte-order mark.
            Ok(if text.len() == without_mark(&text).len() { text } else { without_mark(&text).to_owned() })
        }
        FilesFrom::Contents(contents) => {
            contents.get(path).map(|text| without_mark(text).to_owned()).ok_or_else(|| {
                let path = path.display();
                let known: Vec<_> = contents.keys().map(|p| p.display().to_string()).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                ScenarioError::new(key, format!("\"{path}\" is not among the files given: {known}"))
            })
        }
    }
}

/// Reads the text in a file. It refuses pipes and devices, which could block or never end.
fn contents(path: &Path, tables: Option<Tables>) -> Result<String, String> {
    let said = |error: std::io::Error| error.to_string();
    let too_large = || {
        format!(
            "it has more than {MOST_BYTES} bytes, and a trace, a distribution, a list or a graph has at most that"
        )
    };
    let about = std::fs::metadata(path).map_err(said)?;
    if !about.is_file() {
        let kind = if about.is_dir() { "a folder" } else { "a pipe or device" };
        return Err(format!("it is {kind}; name a file of text"));
    }
    if about.len() > MOST_BYTES {
        return Err(too_large());
    }
    let mut begin = Vec::new();
    std::fs::File::open(path)
        .map_err(said)?
        .take(PARQUET.len() as u64)
        .read_to_end(&mut begin)
        .map_err(said)?;
    if begin == PARQUET {
        let Some(tables) = tables else {
            return Err("it is Parquet, which is not read here; write it as CSV".to_owned());
        };
        return tables(std::fs::File::open(path).map_err(said)?);
    }
    let mut bytes = Vec::new();
    // The length that the system reports for special files may be wrong.
    let mut file = std::fs::File::open(path).map_err(said)?.take(MOST_BYTES + 1);
    file.read_to_end(&mut bytes).map_err(said)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|wrong| not_text(wrong.as_bytes()).to_owned())
}

/// The message for a file that is not UTF-8 text, and what would be right.
fn not_text(bytes: &[u8]) -> &'static str {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it is UTF-16 text; save it as UTF-8",
        [0x1f, 0x8b, ..] => "it is compressed by gzip; unpack it",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "it is compressed by zstd; unpack it",
        _ => "it is not UTF-8 text; save it as UTF-8",
    }
}

fn impaired(s: &Scenario) -> Vec<(String, &Impairments)> {
    let mut all = Vec::new();
    if let Some(d) = &s.dumbbell {
        all.push(("dumbbell.impairments".to_owned(), &d.impairments));
        all.push(("dumbbell.reverse_impairments".to_owned(), &d.reverse_impairments));
    }
    all.extend(s.parking_lot.iter().map(|p| ("parking_lot.impairments".to_owned(), &p.impairments)));
    let of_graph = s.graph.iter().flat_map(|g| g.links.iter().enumerate());
    all.extend(of_graph.map(|(i, l)| (format!("graph.links[{i}].impairments"), &l.impairments)));
    all.into_iter().filter_map(|(key, given)| Some((key, given.as_ref()?))).collect()
}

fn link_rates(s: &Scenario) -> Vec<(String, &LinkRate)> {
    let mut rates = Vec::new();
    if let Some(d) = &s.dumbbell {
        rates.push(("dumbbell.rate".to_owned(), &d.rate));
        rates.extend(d.reverse_rate.as_ref().map(|r| ("dumbbell.reverse_rate".to_owned(), r)));
    }
    if let Some(g) = &s.graph {
        rates.extend(g.links.iter().enumerate().map(|(i, l)| (format!("graph.links[{i}].rate"), &l.rate)));
    }
    rates
}
