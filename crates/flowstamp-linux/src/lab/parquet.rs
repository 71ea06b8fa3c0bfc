//! A minimal Parquet writer for a lab's results: one row group, one page per column, no compression.
//! It exists because the crate `parquet` takes longer to compile than the rest of `flowstamp-linux`.
//!
//! ```text
//!   "PAR1"   per column: dictionary page (for words only), data page   metadata   length of metadata   "PAR1"
//! ```
//!
//! Headers and metadata are structs in Thrift's compact protocol. Field numbers are those of
//! `parquet.thrift`.

use flowstamp_results::Values;

const MAGIC: &[u8] = b"PAR1";

const INT32: usize = 1;
const INT64: usize = 2;
const DOUBLE: usize = 5;
const BYTE_ARRAY: usize = 6;

const UTF8: usize = 0;
const UINT_32: usize = 13;
const UINT_64: usize = 14;

const PLAIN: usize = 0;
const RLE: usize = 3;
const RLE_DICTIONARY: usize = 8;

const UNCOMPRESSED: usize = 0;

/// The bytes of a table whose columns `fill` adds; all columns have the same number of rows.
pub fn table<'a>(fill: impl FnOnce(&mut dyn FnMut(&'static str, Values<'a>))) -> Vec<u8> {
    let mut table = Table { bytes: MAGIC.to_vec(), ..Table::default() };
    fill(&mut |name, values| table.add(name, values));
    table.finish()
}

#[derive(Default)]
struct Table {
    bytes: Vec<u8>,
    rows: usize,
    /// `SchemaElement` and `ColumnChunk` of each column.
    schema: Vec<Record>,
    chunks: Vec<Record>,
}

impl Table {
    fn add(&mut self, name: &str, values: Values<'_>) {
        let start = self.bytes.len();
        let is_optional = matches!(values, Values::Seconds(_) | Values::OptionalCounts(_));
        let (kind, converted, rows, page) = match values {
            Values::Words { words, codes } => {
                self.add_words(&words);
                let width = (usize::BITS - words.len().saturating_sub(1).leading_zeros()).max(1) as u8;
                (BYTE_ARRAY, Some(UTF8), codes.len(), [vec![width], runs(&codes, width)].concat())
            }
            Values::Numbers(all) => (DOUBLE, None, all.len(), plain(all.iter().map(|v| v.to_le_bytes()))),
            Values::Seconds(all) => {
                (DOUBLE, None, all.len(), present(all.iter().map(|v| v.get().map(f64::to_le_bytes))))
            }
            Values::Counts(all) => {
                (INT64, Some(UINT_64), all.len(), plain(all.iter().map(|v| v.to_le_bytes())))
            }
            Values::OptionalCounts(all) => {
                (INT64, Some(UINT_64), all.len(), present(all.iter().map(|v| v.map(u64::to_le_bytes))))
            }
            Values::Small(all) => {
                (INT32, Some(UINT_32), all.len(), plain(all.iter().map(|v| v.to_le_bytes())))
            }
        };
        let at = self.bytes.len();
        let has_words = at > start;
        let encoding = if has_words { RLE_DICTIONARY } else { PLAIN };
        let data = Record::default().number(1, rows).number(2, encoding).number(3, RLE).number(4, RLE);
        self.add_page(0, 5, data, &page);
        self.rows = rows;

        let mut element = Record::default().number(1, kind).number(3, usize::from(is_optional)).text(4, name);
        if let Some(converted) = converted {
            element = element.number(6, converted);
        }
        self.schema.push(element);
        let len = self.bytes.len() - start;
        let mut about = Record::default()
            .number(1, kind)
            .numbers(2, &[PLAIN, RLE, encoding])
            .texts(3, &[name])
            .number(4, UNCOMPRESSED)
            .long(5, rows)
            .long(6, len)
            .long(7, len)
            .long(9, at);
        if has_words {
            about = about.long(11, start);
        }
        self.chunks.push(Record::default().long(2, start).record(3, about));
    }

    /// Adds a dictionary page.
    fn add_words(&mut self, words: &[&str]) {
        let mut page = Vec::new();
        for word in words {
            page.extend((word.len() as u32).to_le_bytes());
            page.extend(word.as_bytes());
        }
        self.add_page(2, 7, Record::default().number(1, words.len()).number(2, PLAIN), &page);
    }

    /// Adds a page of type `kind`, whose own header is field `field` of `PageHeader`.
    fn add_page(&mut self, kind: usize, field: u8, header: Record, page: &[u8]) {
        let about = Record::default().number(1, kind).number(2, page.len()).number(3, page.len());
        self.bytes.extend(about.record(field, header).ended());
        self.bytes.extend(page);
    }

    fn finish(mut self) -> Vec<u8> {
        let root = Record::default().text(4, "schema").number(5, self.schema.len());
        self.schema.insert(0, root);
        let size = self.bytes.len() - MAGIC.len();
        let group = Record::default().records(1, self.chunks).long(2, size).long(3, self.rows);
        let file = Record::default()
            .number(1, 1)
            .records(2, self.schema)
            .long(3, self.rows)
            .records(4, vec![group])
            .text(6, "flowstamp")
            .ended();
        self.bytes.extend(&file);
        self.bytes.extend((file.len() as u32).to_le_bytes());
        self.bytes.extend(MAGIC);
        self.bytes
    }
}

fn plain<const N: usize>(values: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
    values.flatten().collect()
}

/// Encodes definition levels (whether each row has a value), then the values.
fn present<const N: usize>(values: impl Iterator<Item = Option<[u8; N]>> + Clone) -> Vec<u8> {
    let levels: Vec<i32> = values.clone().map(|value| i32::from(value.is_some())).collect();
    let levels = runs(&levels, 1);
    [(levels.len() as u32).to_le_bytes().to_vec(), levels, plain(values.flatten())].concat()
}

/// Encodes values in RLE, without bit-packed runs.
fn runs(values: &[i32], bits: u8) -> Vec<u8> {
    let mut bytes = Vec::new();
    for run in values.chunk_by(|a, b| a == b) {
        varint(&mut bytes, run.len() << 1);
        bytes.extend(&run[0].to_le_bytes()[..usize::from(bits.div_ceil(8))]);
    }
    bytes
}

/// Appends a varint: seven bits per byte, the lowest first.
fn varint(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// A struct in Thrift's compact protocol. Fields must be added in the order of their numbers.
#[derive(Default)]
struct Record {
    bytes: Vec<u8>,
    last: u8,
}

impl Record {
    fn field(mut self, field: u8, kind: u8) -> Self {
        self.bytes.push((field - self.last) << 4 | kind);
        self.last = field;
        self
    }

    /// An `i32` that is not negative.
    fn number(self, field: u8, value: usize) -> Self {
        self.zigzag(field, 5, value)
    }

    /// An `i64` that is not negative.
    fn long(self, field: u8, value: usize) -> Self {
        self.zigzag(field, 6, value)
    }

    fn zigzag(self, field: u8, kind: u8, value: usize) -> Self {
        let mut record = self.field(field, kind);
        varint(&mut record.bytes, value << 1);
        record
    }

    fn text(self, field: u8, text: &str) -> Self {
        let mut record = self.field(field, 8);
        varint(&mut record.bytes, text.len());
        record.bytes.extend(text.as_bytes());
        record
    }

    fn record(self, field: u8, inner: Self) -> Self {
        let mut record = self.field(field, 12);
        record.bytes.extend(inner.ended());
        record
    }

    fn list(self, field: u8, kind: u8, items: &[Vec<u8>]) -> Self {
        let mut record = self.field(field, 9);
        if items.len() < 15 {
            record.bytes.push((items.len() as u8) << 4 | kind);
        } else {
            record.bytes.push(0xf0 | kind);
            varint(&mut record.bytes, items.len());
        }
        record.bytes.extend(items.concat());
        record
    }

    fn numbers(self, field: u8, values: &[usize]) -> Self {
        let items: Vec<_> =
            values.iter().map(|value| Self::default().number(1, *value).bytes[1..].to_vec()).collect();
        self.list(field, 5, &items)
    }

    fn texts(self, field: u8, texts: &[&str]) -> Self {
        let items: Vec<_> =
            texts.iter().map(|text| Self::default().text(1, text).bytes[1..].to_vec()).collect();
        self.list(field, 8, &items)
    }

    fn records(self, field: u8, records: Vec<Self>) -> Self {
        let items: Vec<_> = records.into_iter().map(Self::ended).collect();
        self.list(field, 12, &items)
    }

    fn ended(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstamp_results::{FlowRow, Series, SeriesKey, flow_columns};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use std::fs::File;
    use std::io::Write;

    /// The rows as the crate `parquet` reads them.
    fn rows(bytes: &[u8]) -> Vec<String> {
        let path =
            std::env::temp_dir().join(format!("flowstamp-lab-{:p}-{}.parquet", bytes, std::process::id()));
        File::create(&path).and_then(|mut file| file.write_all(bytes)).expect("written");
        let reader = SerializedFileReader::new(File::open(&path).expect("it is there")).expect("Parquet");
        std::fs::remove_file(&path).expect("it is there");
        reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row").to_string()).collect()
    }

    #[test]
    fn another_reader_reads_the_series() {
        let key = |kind, metric: &str| SeriesKey { kind, name: "a".to_owned(), metric: metric.to_owned() };
        let mut series =
            Series { keys: vec![key("link", "drops"), key("flow", "rtt_s")], ..Series::default() };
        for row in 0..300 {
            series.time_s.push(f64::from(row));
            series.key.push(u32::from(row % 150 == 7));
            series.value.push(1.5);
        }
        let rows = rows(&table(|add| series.columns(add)));
        assert_eq!(rows.len(), 300);
        assert_eq!(rows[7], r#"{time_s: 7.0, kind: "flow", name: "a", metric: "rtt_s", value: 1.5}"#);
        assert_eq!(rows[299], r#"{time_s: 299.0, kind: "link", name: "a", metric: "drops", value: 1.5}"#);
    }

    #[test]
    fn another_reader_reads_the_flows() {
        let flow = |flow, size_bytes| FlowRow {
            flow,
            group: "g".into(),
            index: flow,
            law: "rcp",
            start_s: 0.25,
            end_s: None,
            size_bytes,
            fct_s: None,
            fct_sender_s: None.into(),
            ideal_fct_s: None.into(),
            delivered_bytes: u64::MAX,
            delivered_bytes_after_warmup: 1,
            goodput_bps: 1e6,
            retransmissions: u32::MAX,
            retransmissions_after_warmup: 3,
            timeouts: 0,
            timeouts_after_warmup: 0,
            min_rtt_s: Some(0.5).into(),
            srtt_s: None.into(),
            switched_s: None.into(),
            stop_s: None.into(),
            video: None,
        };
        let flows = [flow(0, None), flow(1, Some(1000)), flow(2, None)];
        let rows = rows(&table(|add| flow_columns(&flows, add)));
        let start = r#"{flow: 1, group: "g", index: 1, law: "rcp", start_s: 0.25, end_s: null, size_bytes: 1000, fct_s: null, "#;
        assert!(rows[1].starts_with(start), "{}", rows[1]);
        let counts = "delivered_bytes: 18446744073709551615, delivered_bytes_after_warmup: 1, goodput_bps: 1000000.0, \
                      retransmissions: 4294967295, ";
        assert!(rows[2].contains(counts) && rows[2].contains("size_bytes: null"), "{}", rows[2]);
        assert!(rows[0].contains("min_rtt_s: 0.5, srtt_s: null"), "{}", rows[0]);
    }
}
