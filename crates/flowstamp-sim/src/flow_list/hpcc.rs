//! Lists of flows in the text format of HPCC's simulator (`flow.txt`):
//!
//! ```text
//! 2                                  number of flows; lines after them are notes
//! 0 1 3 100 20000 2.000001           source, destination, priority group, port, bytes, start in seconds
//! 5 1 3 100 1000000 2.0000013
//! ```
//!
//! Host 0 is the node `h0`. Priority group and port have no meaning here.

use super::{Counted, FlowList, KnownPairs, Listed, size_of, start_of};
use flowstamp_laws::registry::SenderSpec;

const COLUMNS: [&str; 6] = ["source", "destination", "priority group", "port", "size", "start"];

/// Reads `flows` rows from these lines, whose line numbers go with them.
///
/// # Errors
/// A message for the first bad row.
pub(super) fn read<'a>(
    flows: u64,
    lines: impl Iterator<Item = (&'a str, u64)>,
    group: &SenderSpec,
    ignored: &[String],
) -> Result<FlowList, String> {
    if !ignored.is_empty() {
        return Err("has no names of columns; leave out ignore_columns".to_owned());
    }
    if flows == 0 {
        return Err("line 1: says that there are 0 flows; it needs at least 1".to_owned());
    }
    let mut list = FlowList { laws: vec![group.clone()], ..FlowList::default() };
    let mut pairs = KnownPairs::new();
    for (line, number) in lines.take(usize::try_from(flows).unwrap_or(usize::MAX)) {
        let at = || Counted::Lines.at(number);
        let cells: Vec<&str> = line.split_whitespace().collect();
        let [from, to, priority, port, size, start] = cells[..] else {
            let (has, columns) = (cells.len(), COLUMNS.join(", "));
            return Err(format!("{}: has {has} values; a flow has 6: {columns}", at()));
        };
        let of = |column: usize| {
            move |what: String| format!("{}: {} {what}", Counted::Lines.at(number), COLUMNS[column])
        };
        let whole = |cell: &str| {
            let parsed = cell.parse::<u32>();
            parsed.map_err(|_| format!("is \"{cell}\"; write a whole number from 0 on"))
        };
        let (from, to) = (whole(from).map_err(of(0))?, whole(to).map_err(of(1))?);
        whole(priority).map_err(of(2))?;
        whole(port).map_err(of(3))?;
        let size = size_of(size).map_err(of(4))?;
        let start = start_of(start).map_err(of(5))?;
        let pair = list.pair(&mut pairs, (&format!("h{from}"), &format!("h{to}")), at)?;
        list.uses.entry((pair, 0)).or_insert_with(at);
        list.rows.push(Listed { start, size, pair, law: 0 });
    }
    let found = list.rows.len() as u64;
    if found < flows {
        return Err(format!("line 1: says that there are {flows} flows, but {found} follow"));
    }
    Ok(list.ordered())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<FlowList, String> {
        let group = SenderSpec::all().into_iter().find(|law| law.name() == "sack").expect("a law");
        FlowList::read(text, &group, Counted::Lines, &[])
    }

    #[test]
    fn rows_after_the_number_of_flows_are_notes() {
        let text = "3 \n2 1 3 100 200000000 2\n0 10 3 100 4000 2.000000001\n2 1 3 100 1 1.5\n9 9 notes\n\nFirst line: # of flows\n";
        let list = read(text).expect("a list");
        let rows: Vec<_> = list.rows.iter().map(|row| (row.start.as_ps(), row.size, row.pair)).collect();
        let second = 1_000_000_000_000;
        assert_eq!(
            rows,
            [(2 * second, 200_000_000, 0), (2 * second + 1000, 4000, 1), (3 * second / 2, 1, 0)]
        );
        assert_eq!(list.order, [2, 0, 1]);
        assert_eq!((list.pairs[1].from.as_deref(), list.pairs[1].to.as_deref()), (Some("h0"), Some("h10")));
        assert_eq!(list.pairs[1].at, "line 3");
    }

    #[test]
    fn bad_rows_are_named() {
        for (text, words) in [
            ("0\n", "line 1: says that there are 0 flows"),
            ("2\n0 1 3 100 1 2\n", "line 1: says that there are 2 flows, but 1 follow"),
            (
                "1\n0 1 3 1 2\n",
                "line 2: has 5 values; a flow has 6: source, destination, priority group, port, size, start",
            ),
            ("1\nh0 1 3 100 1 2\n", "line 2: source is \"h0\"; write a whole number"),
            ("1\n0 -1 3 100 1 2\n", "line 2: destination is \"-1\""),
            ("1\n0 1 x 100 1 2\n", "line 2: priority group is \"x\""),
            ("1\n0 1 3 100 0 2\n", "line 2: size is \"0\"; write whole bytes"),
            ("1\n\n0 1 3 100 1 soon\n", "line 3: start is \"soon\""),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }
}
