//! Lists of flows in a file: CSV with commas, semicolons or tabs, one row per flow.
//!
//! ```text
//! start,size,from,to,law     columns in any order; start and size are required
//! 0.25,15000,h1,h2,xcp       seconds, bytes of payload
//! 250ms,15kB,h2,h1,          with units; an empty cell takes the group's value
//! ```
//!
//! A file whose first line is a number has the format of HPCC's simulator instead (`flow_list/hpcc.rs`).

#[cfg(feature = "tables")]
mod arrow;
mod hpcc;
#[cfg(feature = "tables")]
pub mod parquet;
#[cfg(feature = "tables")]
mod zstd;

use crate::scenario::rows::{columns, separator, split};
use flowstamp_laws::registry::SenderSpec;
use flowstamp_laws::units::{Bytes, Time};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The columns of a list.
pub const COLUMNS: [&str; 5] = ["start", "size", "from", "to", "law"];
const START: usize = 0;
const SIZE: usize = 1;
const FROM: usize = 2;
const TO: usize = 3;
const LAW: usize = 4;

/// A flow of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Start time, counted from the group's start.
    pub start: Time,
    /// Size, bytes of payload: at least one.
    pub size: u64,
    /// Index into [`FlowList::pairs`].
    pub pair: u32,
    /// Index into [`FlowList::laws`].
    pub law: u32,
}

/// The nodes between which flows go, where the list names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Node that sends the data.
    pub from: Option<String>,
    /// Node that receives the data.
    pub to: Option<String>,
    /// Place in the file that names the pair first.
    pub at: String,
}

/// A list.
#[derive(Clone, Debug, Default)]
pub struct FlowList {
    /// Flows in the order of the file.
    pub rows: Vec<Listed>,
    /// Row numbers in the order of start times; ties are in the order of the file.
    pub order: Vec<u32>,
    /// Pairs of nodes that the list names.
    pub pairs: Vec<Pair>,
    /// Laws of the flows: the group's, and others that the list names.
    pub laws: Vec<SenderSpec>,
    /// For each (pair, law) that occurs, the place in the file that names it first.
    pub uses: BTreeMap<(u32, u32), String>,
    /// Number of consecutive rows that are one incast; 0 for other lists.
    pub senders: u32,
}

/// How messages name a row of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// By line number; the line of names is the first.
    Lines,
    /// By row number in a table, from 1.
    Rows,
}

impl Counted {
    fn at(self, line: u64) -> String {
        match self {
            Self::Lines => format!("line {line}"),
            Self::Rows => format!("row {}", line - 1),
        }
    }
}

/// Maximum number of pairs of nodes in a list: far more than a network has, and few enough to keep the names until they
/// are looked up.
const MOST_PAIRS: usize = 1_000_000;

/// Index of each pair of nodes, by the names of its ends.
type KnownPairs = BTreeMap<String, BTreeMap<String, u32>>;

impl FlowList {
    /// The laws of the flows between one pair of nodes.
    pub fn laws_between(&self, pair: u32) -> impl Iterator<Item = &SenderSpec> {
        self.uses.range((pair, 0)..=(pair, u32::MAX)).map(|((_, law), _)| &self.laws[*law as usize])
    }

    /// Reads the list in `text`. Flows have the law `group` unless the list says otherwise. Columns in `ignored` are
    /// skipped.
    ///
    /// # Errors
    /// A message for the first bad row.
    pub fn read(
        text: &str,
        group: &SenderSpec,
        counted: Counted,
        ignored: &[String],
    ) -> Result<Self, String> {
        let lines = text.lines().zip(1u64..);
        let mut lines = lines.filter(|(line, _)| !line.trim().is_empty());
        let mut cells: Vec<Cow<'_, str>> = Vec::new();
        let Some((names, number)) = lines.next() else {
            return Err("is empty; its first line names the columns, such as start,size".to_owned());
        };
        if let Ok(flows) = names.trim().parse() {
            return hpcc::read(flows, lines, group, ignored);
        }
        let separator = separator(names);
        let of_names = |what: String| format!("{}: {what}", Counted::Lines.at(number));
        split(names, separator, &mut cells).map_err(of_names)?;
        let columns = columns(&cells, &COLUMNS, ignored, "a list").map_err(of_names)?;
        if let Some(missing) = [START, SIZE].into_iter().find(|column| columns[*column].is_none()) {
            let (missing, known) = (COLUMNS[missing], COLUMNS.join(", "));
            return Err(of_names(format!("has no column \"{missing}\"; a list has {known}")));
        }
        let count = cells.len();
        let mut list = Self { laws: vec![group.clone()], ..Self::default() };
        let mut pairs = KnownPairs::new();
        for (line, number) in lines {
            let at = || counted.at(number);
            split(line, separator, &mut cells).map_err(|what| format!("{}: {what}", at()))?;
            if cells.len() != count {
                return Err(format!("{}: has {} values for {count} columns", at(), cells.len()));
            }
            let cell = |column: usize| columns[column].map_or("", |i: usize| cells[i].trim());
            let of = |column: usize| {
                move |what: String| format!("{}: {} {what}", counted.at(number), COLUMNS[column])
            };
            let start = start_of(cell(START)).map_err(of(START))?;
            let size = size_of(cell(SIZE)).map_err(of(SIZE))?;
            let law = list.law(cell(LAW)).map_err(of(LAW))?;
            let pair = list.pair(&mut pairs, (cell(FROM), cell(TO)), at)?;
            list.uses.entry((pair, law)).or_insert_with(at);
            list.rows.push(Listed { start, size, pair, law });
        }
        if list.rows.is_empty() {
            return Err("has no flows; a row is expected for each".to_owned());
        }
        Ok(list.ordered())
    }

    /// Index of a pair of nodes in `pairs`, which is added if it is new. An empty name stands for the group's node.
    fn pair(
        &mut self,
        known: &mut KnownPairs,
        (from, to): (&str, &str),
        at: impl Fn() -> String,
    ) -> Result<u32, String> {
        if let Some(pair) = known.get(from).and_then(|known| known.get(to)) {
            return Ok(*pair);
        }
        if self.pairs.len() >= MOST_PAIRS {
            return Err(format!("{}: is the first of more than {MOST_PAIRS} pairs of nodes", at()));
        }
        let pair = self.pairs.len() as u32;
        known.entry(from.to_owned()).or_default().insert(to.to_owned(), pair);
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        self.pairs.push(Pair { from: given(from), to: given(to), at: at() });
        Ok(pair)
    }

    /// Sets the order of starts.
    #[must_use]
    pub fn ordered(mut self) -> Self {
        self.order = (0..self.rows.len() as u32).collect();
        self.order.sort_by_key(|row| self.rows[*row as usize].start);
        self
    }

    /// Index of a law in `laws`, which is added if it is new.
    fn law(&mut self, name: &str) -> Result<u32, String> {
        if name.is_empty() {
            return Ok(0);
        }
        if let Some(known) = self.laws.iter().position(|law| law.name() == name) {
            return Ok(known as u32);
        }
        let Some(law) = SenderSpec::all().into_iter().find(|law| law.name() == name) else {
            return Err(format!(
                "is \"{name}\", which is not a law; use one of {}",
                SenderSpec::NAMES.join(", ")
            ));
        };
        let reason = match &law {
            law if law.traits().governs => "has no data of its own",
            law if law.traits().datagrams => "gets no acks, and its flows have no size",
            _ => {
                self.laws.push(law);
                return Ok(self.laws.len() as u32 - 1);
            }
        };
        Err(format!("is \"{name}\", which {reason}; name another"))
    }

    /// Mean size, bytes of payload.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        self.rows.iter().map(|row| row.size as f64).sum::<f64>() / self.rows.len() as f64
    }
}

fn start_of(cell: &str) -> Result<Time, String> {
    let time = match cell.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 && seconds < Time::MAX.as_secs_f64() => Time::from_secs_f64(seconds),
        Err(_) if !cell.is_empty() => {
            cell.parse().map_err(|e| format!("is \"{cell}\": {e}; or write seconds, such as 0.25"))?
        }
        _ => return Err(format!("is \"{cell}\"; write seconds, such as 0.25, or 250ms")),
    };
    Ok(time)
}

fn size_of(cell: &str) -> Result<u64, String> {
    /// Largest whole number up to which floats are exact.
    const MOST: u64 = 1 << 53;
    let expected = || format!("is \"{cell}\"; write whole bytes, at least 1, such as 15000, or 15kB");
    let bytes = match (cell.parse::<u64>(), cell.parse::<f64>()) {
        (Ok(bytes), _) => bytes,
        (_, Ok(bytes)) if bytes.fract() == 0.0 && (0.0..=MOST as f64).contains(&bytes) => bytes as u64,
        (_, Err(_)) if !cell.is_empty() => {
            let bytes: Bytes =
                cell.parse().map_err(|e| format!("is \"{cell}\": {e}; or write bytes, such as 15000"))?;
            bytes.get()
        }
        _ => return Err(expected()),
    };
    if (1..=MOST).contains(&bytes) { Ok(bytes) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<FlowList, String> {
        let group = SenderSpec::all().into_iter().find(|law| law.name() == "sack").expect("a law");
        FlowList::read(text, &group, Counted::Lines, &[])
    }

    #[test]
    fn rows_keep_their_numbers_and_start_in_turn() {
        let list = read(
            "size, start,law,to,from\r\n1000,2,,,\r\n\r\n15kB,500ms,xcp,\"b, c\",a\r\n1e3,2.0,sack,,\r\n1,0.5,,\"b, c\",a",
        )
        .expect("a list");
        let rows: Vec<_> = list.rows.iter().map(|r| (r.start.as_ps(), r.size, r.pair, r.law)).collect();
        let (half, two) = (500_000_000_000, 2_000_000_000_000);
        assert_eq!(rows, [(two, 1000, 0, 0), (half, 15_000, 1, 1), (two, 1000, 0, 0), (half, 1, 1, 0)]);
        assert_eq!(list.order, [1, 3, 0, 2]);
        assert_eq!(
            list.pairs[1],
            Pair { from: Some("a".into()), to: Some("b, c".into()), at: "line 4".into() }
        );
        assert_eq!(list.laws.iter().map(SenderSpec::name).collect::<Vec<_>>(), ["sack", "xcp"]);
        assert_eq!(list.uses[&(1, 0)], "line 6");
        assert_eq!(list.mean_bytes(), 17_001.0 / 4.0);
    }

    #[test]
    fn bad_rows_are_named() {
        for (text, words) in [
            ("", "is empty"),
            ("start,size\n", "has no flows"),
            ("start,size,colour\n", "line 1: has a column \"colour\"; a list has start, size, from, to, law"),
            ("start,law\n0,sack", "line 1: has no column \"size\""),
            ("start,size,start\n", "line 1: has two columns \"start\""),
            ("start,size\n0,1000\n1", "line 3: has 1 values for 2 columns"),
            ("start,size\n0,1000\n\nsoon,1", "line 4: start is \"soon\""),
            ("start,size\n-1,1000", "line 2: start is \"-1\"; write seconds, such as 0.25, or 250ms"),
            ("start,size\n,1000", "line 2: start is \"\""),
            ("start,size\nNaN,1000", "line 2: start is \"NaN\""),
            ("start,size\n1e300,1000", "line 2: start is \"1e300\""),
            ("start,size\n1MS,1000", "did you mean \"ms\""),
            ("start,size\n0,0", "line 2: size is \"0\"; write whole bytes, at least 1"),
            ("start,size\n0,1.5", "line 2: size is \"1.5\""),
            ("start,size\n0,-3", "line 2: size is \"-3\""),
            ("start,size\n0,1Mb", "line 2: size is \"1Mb\""),
            ("start,size\n0,", "line 2: size is \"\""),
            ("start,size\n0,99999999999999999999", "line 2: size is"),
            ("start,size,law\n0,1,cubik", "line 2: law is \"cubik\", which is not a law; use one of "),
            ("start,size,law\n0,1,udp", "line 2: law is \"udp\", which gets no acks"),
            ("start,size,law\n0,1,xcp-edge", "line 2: law is \"xcp-edge\", which has no data"),
            ("start,size,to\n0,1,\"a", "line 2: has a quote that does not end"),
            ("start,size,to\n0,1,\"a\" b", "line 2: has text behind a quote"),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }
}
