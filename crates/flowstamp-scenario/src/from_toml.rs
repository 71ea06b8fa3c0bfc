//! Reads TOML, in builds that support it.

use crate::error::ScenarioError;
use flowstamp_laws::tree;
use toml::{Table, Value};

/// Reads a whole TOML text.
///
/// # Errors
/// The line that is not TOML.
pub fn tree(text: &str) -> Result<tree::Value, ScenarioError> {
    let table = text.parse::<Table>().map_err(|e| {
        let line = e.span().map_or(1, |s| text[..s.start.min(text.len())].matches('\n').count() + 1);
        ScenarioError::new(format!("line {line}"), format!("not TOML: {}", e.message()))
    })?;
    Ok(tree_of(Value::Table(table)))
}

/// Reads a value as it can follow a key.
pub fn value(text: &str) -> Option<tree::Value> {
    let mut table = format!("v = {text}").parse::<Table>().ok().filter(|table| table.len() == 1)?;
    table.remove("v").map(tree_of)
}

fn tree_of(value: Value) -> tree::Value {
    match value {
        Value::String(text) => tree::Value::String(text),
        Value::Integer(number) => tree::Value::Integer(number),
        Value::Float(number) => tree::Value::Float(number),
        Value::Boolean(truth) => tree::Value::Boolean(truth),
        Value::Datetime(_) => tree::Value::Other("date"),
        Value::Array(items) => tree::Value::Array(items.into_iter().map(tree_of).collect()),
        Value::Table(table) => tree::Value::Table(table.into_iter().map(|(k, v)| (k, tree_of(v))).collect()),
    }
}
