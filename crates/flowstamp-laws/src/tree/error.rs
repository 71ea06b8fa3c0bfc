//! The error for a tree that does not match its type. Its messages use the words of a scenario file, not the names of Rust
//! types.

use super::{Table, Tree, Value};
use serde::de::{self, Expected, Unexpected};
use std::fmt;

/// Beginning of the message for an unknown name. The browser lab's small build lacks names that the full build has.
const NONE: &str = if cfg!(feature = "full") { "there is no " } else { "this build has no " };

/// Beginning of the message for an unknown key.
const UNKNOWN_KEY: &str = "unknown key ";

/// Encloses the path in the alternate form of an error. No message begins with this character.
const MARK: char = '\0';

/// A message and the key it refers to. It is boxed because each deserialised type has a `Result` that is at least as large as
/// its error.
#[derive(Debug)]
pub struct Error(Box<Wrong>);

#[derive(Debug)]
struct Wrong {
    /// The parts of the path, `.key` or `[index]`, innermost first.
    path: Vec<String>,
    message: String,
}

impl Error {
    // Not inlined, so that generic code does not repeat it for each type.
    #[cold]
    #[inline(never)]
    fn new(message: String) -> Self {
        Self(Box::new(Wrong { path: Vec::new(), message }))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn under(mut self, key: &str) -> Self {
        self.0.path.push(format!(".{key}"));
        self
    }

    #[cold]
    #[inline(never)]
    pub(super) fn at(mut self, index: usize) -> Self {
        self.0.path.push(format!("[{index}]"));
        self
    }

    /// Restores a lost path: looks in the table `value` for the key that the message is about. Serde buffers the table of a
    /// tagged enum, such as an application, and loses the keys of its values. If several keys match, the path stays empty.
    /// The browser lab's small build does not restore paths.
    #[cold]
    #[inline(never)]
    pub(super) fn located(mut self, value: &Value) -> Self {
        if let (Value::Table(table), true) = (value, cfg!(feature = "full") && self.0.path.is_empty()) {
            let mut paths = Vec::new();
            about(table, "", &self.0.message, &mut paths);
            if let [_] = paths[..] {
                self.0.path = paths;
            }
        }
        self
    }

    /// The path from the outermost part inwards.
    fn path(&self) -> String {
        self.0.path.iter().rev().map(String::as_str).collect()
    }

    /// The key, such as `flows[0].rate`; empty for the whole tree.
    #[must_use]
    pub fn key(&self) -> String {
        let path = self.path();
        path.strip_prefix('.').map_or(path.clone(), str::to_owned)
    }
}

/// Formats the message. The alternate form has the path before it. Serde hands errors of inner parts to [`de::Error::custom`]
/// as text, which finds the path there.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() {
            write!(f, "{MARK}{}{MARK}", self.path())?;
        }
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}

impl de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let text = format!("{message:#}");
        match text.strip_prefix(MARK).and_then(|text| text.split_once(MARK)) {
            Some((path, message)) => {
                Self(Box::new(Wrong { path: vec![path.to_owned()], message: message.to_owned() }))
            }
            None => Self::new(text),
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("{} must be {}", shown(found), right(expected)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::new(format!("a list of {length} must be {}", right(expected)))
    }

    fn unknown_variant(name: &str, known: &'static [&'static str]) -> Self {
        Self::new(unknown(NONE, name, known))
    }

    fn unknown_field(name: &str, known: &'static [&'static str]) -> Self {
        Self::new(unknown(UNKNOWN_KEY, name, known))
    }

    fn missing_field(key: &'static str) -> Self {
        Self::new(format!("`{key}` is missing"))
    }
}

/// Collects the paths of all keys that a message may be about. The message begins with an unknown key or with a wrong value,
/// and this looks for that key or value.
fn about(table: &Table, path: &str, message: &str, paths: &mut Vec<String>) {
    let unknown = message.strip_prefix(UNKNOWN_KEY).and_then(|rest| rest.strip_prefix('`')?.split_once('`'));
    for (key, value) in &table.0 {
        let path = format!("{path}.{key}");
        match value {
            Value::Table(inner) => about(inner, &path, message, paths),
            Value::Array(_) => {}
            _ if unknown.is_some() => {}
            _ => {
                let rest = message.strip_prefix(&shown(Tree(value).unexpected()));
                if rest.is_some_and(|rest| rest.starts_with(' ')) {
                    paths.push(path.clone());
                }
            }
        }
        if unknown.is_some_and(|(name, _)| name == key) {
            paths.push(path);
        }
    }
}

/// Formats a wrong value as a file has it, or names its kind if it is a list or a table.
fn shown(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(value) => value.to_string(),
        Unexpected::Signed(value) => value.to_string(),
        Unexpected::Float(value) => format!("{value:?}"),
        Unexpected::Str(value) => format!("{value:?}"),
        Unexpected::Unit | Unexpected::Option => "nothing".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// Describes the expected value in plain words, where serde would name a Rust type.
fn right(expected: &dyn Expected) -> String {
    let expected = expected.to_string();
    let plain = match expected.as_str() {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" | "u128" => "a whole number of at least 0",
        "i64" => "a whole number",
        "f64" | "f32" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        _ if expected.starts_with("struct ") || expected.starts_with("internally tagged enum ") => "a table",
        _ if expected.starts_with("enum ") => "one of its names",
        _ => return expected.replacen("a tuple of size ", "a list of ", 1),
    };
    plain.to_owned()
}

/// The message for an unknown name. It has the known name that is nearest, or all known names if none is near.
fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    match (nearest(name, known), known) {
        (Some(near), _) => format!("{what}`{name}`; did you mean `{near}`?"),
        (None, []) => format!("{what}`{name}`"),
        (None, [only]) => format!("{what}`{name}`; there is `{only}`"),
        (None, _) => format!("{what}`{name}`; there are `{}`", known.join("`, `")),
    }
}

/// The name most similar to `text`, if one is similar: at most one letter in three differs.
#[must_use]
pub fn nearest<'a>(text: &str, names: &[&'a str]) -> Option<&'a str> {
    let distance = |name: &&&str| strsim::damerau_levenshtein(text, name);
    let name = names.iter().filter(|_| text.len() < 100).min_by_key(distance)?;
    (distance(&name) * 3 <= name.len().max(text.len())).then_some(*name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::Error as _;

    #[test]
    fn messages_are_in_plain_words() {
        let wrong = |found, expected: &str| Error::invalid_type(found, &expected).to_string();
        for (message, plain) in [
            (wrong(Unexpected::Str("a"), "u32"), "\"a\" must be a whole number from 0 to 4294967295"),
            (wrong(Unexpected::Signed(-1), "u32"), "-1 must be a whole number from 0 to 4294967295"),
            (wrong(Unexpected::Signed(-1), "u64"), "-1 must be a whole number of at least 0"),
            (wrong(Unexpected::Float(1.5), "usize"), "1.5 must be a whole number of at least 0"),
            (wrong(Unexpected::Float(2.0), "i64"), "2.0 must be a whole number"),
            (wrong(Unexpected::Bool(true), "f64"), "true must be a number"),
            (wrong(Unexpected::Map, "a string"), "a table must be a string"),
            (wrong(Unexpected::Seq, "struct Dumbbell"), "a list must be a table"),
            (wrong(Unexpected::Other("nothing"), "a sequence"), "nothing must be a list"),
            (wrong(Unexpected::Signed(1), "a rate such as \"1Mbps\""), "1 must be a rate such as \"1Mbps\""),
            (wrong(Unexpected::Str("0s"), "a tuple of size 2"), "\"0s\" must be a list of 2"),
            (Error::invalid_length(1, &"a tuple of size 2").to_string(), "a list of 1 must be a list of 2"),
            (
                Error::unknown_variant("xcpp", &["xcp", "rcp"]).to_string(),
                "there is no `xcpp`; did you mean `xcp`?",
            ),
            (
                Error::unknown_variant("moon", &["bpf", "path"]).to_string(),
                "there is no `moon`; there are `bpf`, `path`",
            ),
            (
                Error::unknown_field("cuont", &["count", "rate"]).to_string(),
                "unknown key `cuont`; did you mean `count`?",
            ),
            (Error::unknown_field("x", &["price"]).to_string(), "unknown key `x`; there is `price`"),
            (Error::unknown_field("x", &[]).to_string(), "unknown key `x`"),
            (Error::missing_field("rate").to_string(), "`rate` is missing"),
            (Error::custom("a rate has its unit").to_string(), "a rate has its unit"),
        ] {
            assert_eq!(message, plain);
        }
    }
}
