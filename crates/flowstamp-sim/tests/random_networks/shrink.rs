//! Makes a failing scenario smaller while it still fails in the same way: parts are dropped, then numbers made plain and
//! halved.

use super::check::Failure;
use toml::{Table, Value};

/// Runs that shrinking may take.
const MOST_RUNS: u32 = 600;

/// A smaller scenario of the same failure, and how many runs that took.
pub fn shrink(
    tree: Table,
    failure: Failure,
    fails: &dyn Fn(&Table) -> Option<Failure>,
) -> (Table, Failure, u32) {
    let mut best = (Value::Table(tree), failure);
    let mut runs = 0;
    loop {
        let before = best.0.clone();
        for change in [drop_part, plain_number, halve_number] as [fn(&Value, usize) -> Option<Value>; 3] {
            let mut at = 0;
            while let Some(smaller) = change(&best.0, at) {
                if runs >= MOST_RUNS {
                    return (table(best.0), best.1, runs);
                }
                runs += 1;
                // Another way to fail is another finding.
                match fails(&table(smaller.clone())).filter(|f| f.kind == best.1.kind) {
                    Some(failure) if smaller != best.0 => best = (smaller, failure),
                    _ => at += 1,
                }
            }
        }
        if best.0 == before {
            return (table(best.0), best.1, runs);
        }
    }
}

fn table(value: Value) -> Table {
    match value {
        Value::Table(t) => t,
        _ => Table::new(),
    }
}

/// Without the `n`th key or list entry, counted from the outside in; a table that has only its name becomes the name.
fn drop_part(tree: &Value, n: usize) -> Option<Value> {
    nth(tree, n, &|node, left| match node {
        Value::Table(t) => {
            let key = t.keys().nth(*left).cloned();
            *left = left.saturating_sub(t.len());
            let mut t = t.clone();
            t.remove(&key?);
            match t.values().next() {
                Some(Value::String(name))
                    if t.len() == 1 && ["law", "kind", "scheduler"].iter().any(|k| t.contains_key(*k)) =>
                {
                    Some(Value::String(name.clone()))
                }
                _ => Some(Value::Table(t)),
            }
        }
        Value::Array(items) => {
            let at = *left;
            *left = left.saturating_sub(items.len());
            let mut items = items.clone();
            (at < items.len()).then(|| {
                items.remove(at);
                Value::Array(items)
            })
        }
        _ => None,
    })
}

/// The `n`th number to one digit.
fn plain_number(tree: &Value, n: usize) -> Option<Value> {
    number(tree, n, &|v| format!("{v:.0e}").parse().unwrap_or(v))
}

/// The `n`th number halved.
fn halve_number(tree: &Value, n: usize) -> Option<Value> {
    number(tree, n, &|v| format!("{:.1e}", v / 2.0).parse().unwrap_or(v))
}

fn number(tree: &Value, n: usize, change: &dyn Fn(f64) -> f64) -> Option<Value> {
    nth(tree, n, &|node, left| {
        let changed = match node {
            Value::Integer(i) if *i > 0 => Value::Integer((change(*i as f64) as i64).max(1)),
            Value::Float(f) if f.is_finite() && f.abs() > 1e-9 => Value::Float(change(*f)),
            Value::String(s) => {
                let end = s.find(|c: char| !(c.is_ascii_digit() || ".-".contains(c))).unwrap_or(s.len());
                let number: f64 = s[..end].parse().ok()?;
                let to = change(number);
                // Sizes and times are whole.
                let whole = s.ends_with("pkt") || s.ends_with('B') || s.ends_with("ps");
                let to = if whole { to.round() } else { to };
                Value::String(format!("{to}{}", &s[end..]))
            }
            _ => return None,
        };
        if *left == 0 {
            return Some(changed);
        }
        *left -= 1;
        None
    })
}

/// The tree with one node changed: `change` is asked of each node with what is left of `n`, takes from it as many
/// changes as the node has, and makes the one that is due. `None` if there are not so many.
fn nth(tree: &Value, n: usize, change: &dyn Fn(&Value, &mut usize) -> Option<Value>) -> Option<Value> {
    fn walk(
        node: &Value,
        left: &mut usize,
        change: &dyn Fn(&Value, &mut usize) -> Option<Value>,
    ) -> Option<Value> {
        if let Some(changed) = change(node, left) {
            return Some(changed);
        }
        match node {
            Value::Table(t) => t.iter().find_map(|(key, child)| {
                let changed = walk(child, left, change)?;
                let mut t = t.clone();
                t.insert(key.clone(), changed);
                Some(Value::Table(t))
            }),
            Value::Array(items) => items.iter().enumerate().find_map(|(i, child)| {
                let changed = walk(child, left, change)?;
                let mut items = items.clone();
                items[i] = changed;
                Some(Value::Array(items))
            }),
            _ => None,
        }
    }
    let mut left = n;
    walk(tree, &mut left, change)
}
