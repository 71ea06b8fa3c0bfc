//! Tables in text: a line of column names, then one line per row, with commas, semicolons or tabs between values (RFC
//! 4180, section 2, each record on one line).

use flowstamp_laws::tree::nearest;
use std::borrow::Cow;

/// Separators of values: a comma, or those that spreadsheets write where a comma is the decimal point.
const SEPARATORS: [char; 3] = [',', ';', '\t'];
/// The separators in words, for messages.
pub const SEPARATED: &str = "commas, semicolons or tabs";

/// Returns the text without a UTF-8 byte-order mark, which some editors and spreadsheets put first.
#[must_use]
#[inline]
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Returns the separator that is most frequent in a line of column names, outside quotes; a comma if there is none.
#[must_use]
pub fn separator(names: &str) -> char {
    let mut counts = [0; SEPARATORS.len()];
    let mut quoted = false;
    for letter in names.chars() {
        quoted ^= letter == '"';
        if let Some(at) = SEPARATORS.iter().position(|separator| *separator == letter && !quoted) {
            counts[at] += 1;
        }
    }
    let most = counts.iter().max().copied().unwrap_or(0);
    counts.iter().position(|count| *count == most).map_or(',', |at| SEPARATORS[at])
}

/// Puts the values of a line into `into`.
///
/// # Errors
/// A quote that does not end, or text behind one.
#[inline]
pub fn split<'a>(line: &'a str, separator: char, into: &mut Vec<Cow<'a, str>>) -> Result<(), String> {
    into.clear();
    if !line.contains('"') {
        into.extend(line.split(separator).map(Cow::Borrowed));
        return Ok(());
    }
    let trim = |text: &'a str| text.trim_start_matches(|c: char| c.is_whitespace() && c != separator);
    let mut rest = line;
    loop {
        let Some(quoted) = trim(rest).strip_prefix('"') else {
            let (value, more) =
                rest.split_once(separator).map_or((rest, None), |(value, more)| (value, Some(more)));
            into.push(Cow::Borrowed(value));
            match more {
                Some(more) => rest = more,
                None => return Ok(()),
            }
            continue;
        };
        let (mut value, mut quoted) = (String::new(), quoted);
        let after = loop {
            let (part, after) = quoted.split_once('"').ok_or("has a quote that does not end")?;
            value.push_str(part);
            match after.strip_prefix('"') {
                Some(more) => (value, quoted) = (value + "\"", more),
                None => break after,
            }
        };
        into.push(Cow::Owned(value));
        match trim(after).strip_prefix(separator) {
            Some(more) => rest = more,
            None if after.trim().is_empty() => return Ok(()),
            None => {
                return Err(format!("has text behind a quote; {} is expected", named(separator)));
            }
        }
    }
}

fn named(separator: char) -> &'static str {
    match separator {
        ';' => "a semicolon",
        '\t' => "a tab",
        _ => "a comma",
    }
}

/// Returns the position of each known column, if it is present. An unknown column is refused unless `ignored` names it.
/// A pattern with `*` in `ignored` applies only to unknown columns.
///
/// # Errors
/// The first column that is unknown or occurs twice. `what` names the table in messages, such as "a list".
pub fn columns(
    names: &[Cow<'_, str>],
    known: &[&str],
    ignored: &[String],
    what: &str,
) -> Result<Vec<Option<usize>>, String> {
    let mut found = vec![None; known.len()];
    for (at, name) in names.iter().enumerate() {
        let name = name.trim();
        if ignored.iter().any(|ignored| ignored == name) {
            continue;
        }
        let Some(column) = known.iter().position(|column| *column == name) else {
            if ignored.iter().any(|ignored| ignored.contains('*') && matches(ignored, name)) {
                continue;
            }
            let near =
                nearest(name, known).map_or_else(String::new, |near| format!("did you mean \"{near}\"? "));
            let list = known.join(", ");
            let advice = if names.len() == 1 {
                format!("separate the columns by {SEPARATED}")
            } else {
                format!("correct the name, or set ignore_columns = [{name:?}]")
            };
            return Err(format!("has a column \"{name}\"; {near}{what} has {list}; {advice}"));
        };
        if found[column].replace(at).is_some() {
            return Err(format!("has two columns \"{name}\"; leave out one of them"));
        }
    }
    Ok(found)
}

/// Whether a name matches a pattern, in which `*` stands for any text.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((before, after)) => name.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices().map(|(i, _)| i).chain([rest.len()]).any(|i| matches(after, &rest[i..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_separator_is_that_of_the_names() {
        for (names, expected) in [
            ("start,size", ','),
            ("start;size", ';'),
            ("start\tsize", '\t'),
            ("start", ','),
            ("\"a,b,c\";size", ';'),
            ("", ','),
        ] {
            assert_eq!(separator(names), expected, "{names:?}");
        }
    }

    #[test]
    fn quotes_are_those_of_spreadsheets() {
        let mut cells = Vec::new();
        for (line, by, expected) in [
            ("a,b", ',', vec!["a", "b"]),
            ("a,\"b\"", ',', vec!["a", "b"]),
            ("\"a,b\",", ',', vec!["a,b", ""]),
            ("\"say \"\"x\"\"\",b,\"\"", ',', vec!["say \"x\"", "b", ""]),
            ("\"a;b\" ; 1,5", ';', vec!["a;b", " 1,5"]),
            ("\"a\"\t\t\"b\"", '\t', vec!["a", "", "b"]),
        ] {
            split(line, by, &mut cells).expect(line);
            assert_eq!(cells, expected, "{line}");
        }
    }

    #[test]
    fn unknown_columns_are_refused_unless_they_are_named() {
        let names = ["size", "colour", "start"].map(Cow::from);
        let found = |ignored: &[&str]| {
            let ignored: Vec<String> = ignored.iter().map(|name| (*name).to_owned()).collect();
            columns(&names, &["start", "size"], &ignored, "a list")
        };
        let refused = "has a column \"colour\"; a list has start, size; correct the name, or set ignore_columns = [\"colour\"]";
        assert_eq!(found(&[]), Err(refused.to_owned()));
        assert_eq!(found(&["colour"]), Ok(vec![Some(2), Some(0)]));
        assert_eq!(found(&["*"]), Ok(vec![Some(2), Some(0)]));
        assert_eq!(found(&["col*", "size"]), Ok(vec![Some(2), None]));
    }
}
