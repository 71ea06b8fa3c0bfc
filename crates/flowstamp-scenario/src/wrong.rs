//! Translates serde's messages about wrong input into the words of the person who writes the file, without names of
//! Rust types.

/// Beginning of the message for an unknown name, which another build may know.
const NONE: &str = if cfg!(feature = "full") { "there is no " } else { "this build has no " };

/// Translates a message: "expected u32" becomes a whole number, a variant one of the possible names, a field a key. Of
/// the known names the one nearest to an unknown name comes first.
#[must_use]
pub fn plainly(message: &str) -> String {
    length(message)
        .or_else(|| typed(message))
        .or_else(|| unknown(message))
        .unwrap_or_else(|| missing(message))
}

/// Translates `invalid length 1, expected a tuple of size 2`.
fn length(message: &str) -> Option<String> {
    let (found, size) = message.strip_prefix("invalid length ")?.split_once(", expected a tuple of size ")?;
    Some(format!("a list of {found} must be a list of {size}"))
}

/// Translates `invalid type: string "a", expected u32`, and the same of values.
fn typed(message: &str) -> Option<String> {
    let rest = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))?;
    let (found, expected) = rest.split_once(", expected ")?;
    let found = match found {
        "map" => "a table",
        "sequence" => "a list",
        "unit value" | "null" | "Option value" => "nothing",
        _ => found
            .split_once(' ')
            .filter(|(kind, _)| matches!(*kind, "string" | "integer" | "boolean" | "character"))
            .or_else(|| found.strip_prefix("floating point ").map(|value| ("", value)))
            .map_or(found, |(_, value)| value.trim_matches('`')),
    };
    // Text after the type, such as a place in JSON, is kept.
    let (kind, rest) =
        expected.split_once(" at line ").map_or((expected, None), |(kind, line)| (kind, Some(line)));
    let mut kind = match kind {
        "u8" => "a whole number from 0 to 255".into(),
        "u16" => "a whole number from 0 to 65535".into(),
        "u32" => "a whole number from 0 to 4294967295".into(),
        "u64" | "usize" | "u128" | "i64" => "a whole number".into(),
        "f64" | "f32" => "a number".into(),
        "a boolean" => "true or false".into(),
        "a sequence" => "a list".into(),
        "a map" => "a table".into(),
        _ if kind.starts_with("struct ") || kind.starts_with("internally tagged enum ") => "a table".into(),
        _ if kind.starts_with("a tuple of size ") => kind.replacen("a tuple of size ", "a list of ", 1),
        _ if kind.starts_with("enum ") => "one of its names".into(),
        _ => kind.to_owned(),
    };
    if let Some(line) = rest {
        kind = format!("{kind} at line {line}");
    }
    Some(format!("{found} must be {kind}"))
}

/// Translates ``unknown field `cout`, expected one of `count`, `rate` ``, and the same of variants.
fn unknown(message: &str) -> Option<String> {
    let (what, rest) = message
        .strip_prefix("unknown field ")
        .map(|rest| ("unknown key ", rest))
        .or_else(|| message.strip_prefix("unknown variant ").map(|rest| (NONE, rest)))?;
    let (found, known) = rest.split_once(", ").unwrap_or((rest, ""));
    let known = known.strip_prefix("expected ").unwrap_or(known);
    let names: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    let near = nearest(found.trim_matches('`'), &names)
        .map_or_else(String::new, |name| format!("did you mean `{name}`? "));
    let there = match names.as_slice() {
        [] => return Some(format!("{what}{found}")),
        [only] => format!("there is `{only}`"),
        _ => format!(
            "there are {}",
            names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        ),
    };
    Some(format!("{what}{found}; {near}{there}"))
}

/// Translates ``missing field `rate` ``.
fn missing(message: &str) -> String {
    match message.strip_prefix("missing field ") {
        Some(rest) => match rest.split_once("` ") {
            Some((key, rest)) => format!("{key}` is missing {rest}"),
            None => format!("{rest} is missing"),
        },
        None => message.to_owned(),
    }
}

/// The name most similar to `text`, if one is similar: at most one letter in three differs.
pub fn nearest<'a>(text: &str, names: &[&'a str]) -> Option<&'a str> {
    let distance = |name: &&&str| strsim::damerau_levenshtein(text, name);
    let name = names.iter().min_by_key(distance)?;
    (distance(&name) * 3 <= name.len().max(text.len()) && text.len() < 100).then_some(*name)
}

#[cfg(test)]
mod tests {
    use super::plainly;

    #[test]
    fn serde_is_translated() {
        for (said, plain) in [
            ("invalid type: string \"a\", expected u32", "\"a\" must be a whole number from 0 to 4294967295"),
            ("invalid value: integer `-1`, expected u32", "-1 must be a whole number from 0 to 4294967295"),
            ("invalid type: floating point `1.5`, expected u64", "1.5 must be a whole number"),
            ("invalid type: boolean `true`, expected f64", "true must be a number"),
            ("invalid type: map, expected a string", "a table must be a string"),
            ("invalid type: sequence, expected struct Dumbbell", "a list must be a table"),
            (
                "invalid type: integer `1`, expected a rate such as \"1Mbps\"",
                "1 must be a rate such as \"1Mbps\"",
            ),
            (
                "unknown variant `xcpp`, expected `xcp` or `rcp`",
                "there is no `xcpp`; did you mean `xcp`? there are `xcp`, `rcp`",
            ),
            (
                "unknown variant `moon`, expected one of `bpf`, `path`",
                "there is no `moon`; there are `bpf`, `path`",
            ),
            (
                "unknown field `cuont`, expected one of `count`, `rate`",
                "unknown key `cuont`; did you mean `count`? there are `count`, `rate`",
            ),
            ("unknown field `x`, expected `price`", "unknown key `x`; there is `price`"),
            ("unknown field `x`, there are no fields", "unknown key `x`"),
            ("invalid length 1, expected a tuple of size 2", "a list of 1 must be a list of 2"),
            ("invalid type: string \"0s\", expected a tuple of size 2", "\"0s\" must be a list of 2"),
            ("missing field `rate`", "`rate` is missing"),
            ("a rate has its unit", "a rate has its unit"),
        ] {
            assert_eq!(plainly(said), plain);
        }
    }
}
