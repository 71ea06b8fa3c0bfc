//! Converts a list of flows from Parquet to CSV, so that one reader handles all lists and their messages.

use super::arrow;
use super::zstd::Pages;
use crate::scenario::MOST_BYTES;
use parquet::basic::{CompressionCodec, ConvertedType, LogicalType};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Rows in memory at a time.
const BATCH: usize = 1 << 14;
/// Maximum length of a value, bytes. Dictionary values are repeated where they are used, so a small file could
/// otherwise demand all memory.
const MOST_LETTERS: usize = 4096;

/// Reads the table as CSV: numbers are unchanged and null is empty.
///
/// # Errors
/// A message that says what is wrong with the file, and what would be right.
pub fn csv(file: File) -> Result<String, String> {
    // The library may panic on files that are damaged on purpose.
    let read = catch_unwind(AssertUnwindSafe(|| read(file)));
    read.unwrap_or_else(|_| Err("it is Parquet, but damaged".to_owned()))
}

fn read(file: File) -> Result<String, String> {
    let said = |error: parquet::errors::ParquetError| format!("it is Parquet that is not read: {error}");
    // A clone shares the file position, which both set before they read.
    let pages = Arc::new(file.try_clone().map_err(|error| error.to_string())?);
    let reader = SerializedFileReader::new(file).map_err(said)?;
    let about = reader.metadata().file_metadata();
    let schema = about.schema_descr();
    let arrow = about.key_value_metadata().into_iter().flatten().find(|entry| entry.key == arrow::KEY);
    let durations =
        arrow.and_then(|entry| entry.value.as_deref()).and_then(arrow::durations).unwrap_or_default();
    let kinds: Vec<Kind> =
        schema.columns().iter().map(|column| Kind::of(column, &durations)).collect::<Result<_, _>>()?;
    let names = schema.columns().iter().map(|column| quoted(column.name()));
    let mut text = names.collect::<Vec<_>>().join(",") + "\n";
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).map_err(said)?;
        let columns = (0..group.num_columns()).map(|i| column_reader(&*group, i, &pages));
        let mut columns = columns.collect::<Result<Vec<_>, _>>()?;
        let mut left = u64::try_from(group.metadata().num_rows()).unwrap_or(0);
        while left > 0 {
            let batch = usize::try_from(left).map_or(BATCH, |left| left.min(BATCH));
            let read =
                columns.iter_mut().zip(&kinds).map(|(column, kind)| kind.read(column, batch).map_err(said));
            let cells = read.collect::<Result<Vec<_>, _>>()?;
            if cells.iter().any(|cells| cells.len() != batch) {
                return Err("it is Parquet, but columns end early".to_owned());
            }
            for row in 0..batch {
                for (i, cells) in cells.iter().enumerate() {
                    text.push_str(if i > 0 { "," } else { "" });
                    text.push_str(&cells[row]);
                }
                text.push('\n');
            }
            if text.len() as u64 > MOST_BYTES {
                return Err(format!(
                    "as CSV it has more than {MOST_BYTES} bytes, and a list has at most that"
                ));
            }
            left -= batch as u64;
        }
    }
    Ok(text)
}

/// Makes the reader of a column in a row group.
fn column_reader(group: &dyn RowGroupReader, i: usize, file: &Arc<File>) -> Result<ColumnReader, String> {
    use CompressionCodec as C;
    let column = group.metadata().column(i);
    // The library panics at these; this gives a message of one line.
    let starts =
        [Some(column.data_page_offset()), column.dictionary_page_offset(), Some(column.compressed_size())];
    if starts.into_iter().flatten().any(|number| number < 0) {
        return Err("it is Parquet, but damaged: a column begins before the file".to_owned());
    }
    let reader = match column.compression_codec() {
        C::ZSTD => {
            let rows = usize::try_from(group.metadata().num_rows()).unwrap_or(0);
            Pages::new(file.clone(), column, rows)
                .map(|pages| get_column_reader(column.column_descr_ptr(), Box::new(pages)))
        }
        C::UNCOMPRESSED | C::SNAPPY | C::GZIP | C::LZ4 | C::LZ4_RAW => group.get_column_reader(i),
        other => {
            return Err(format!(
                "it is Parquet that is compressed by {other:?}, which is not read; write it with zstd, snappy, gzip, lz4 or none"
            ));
        }
    };
    reader.map_err(|error| format!("it is Parquet, but damaged: {error}"))
}

/// Type of a column.
struct Kind {
    /// The unit of a duration.
    unit: &'static str,
    nullable: bool,
    unsigned: bool,
}

impl Kind {
    fn of(column: &ColumnDescriptor, durations: &[(String, Option<&'static str>)]) -> Result<Self, String> {
        let name = column.name();
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return Err(format!("its column \"{name}\" is nested; a list has numbers and text"));
        }
        use ConvertedType as C;
        let converted = column.converted_type();
        let plain =
            matches!(converted, C::NONE | C::UTF8 | C::ENUM | C::INT_8 | C::INT_16 | C::INT_32 | C::INT_64);
        let unsigned = matches!(converted, C::UINT_8 | C::UINT_16 | C::UINT_32 | C::UINT_64);
        // Times and decimals have a unit or scale that the number alone does not show.
        let logical = column.logical_type_ref();
        let logical =
            logical.is_none_or(|of| matches!(of, LogicalType::String | LogicalType::Integer { .. }));
        if !(plain || unsigned) || !logical {
            let of = column.logical_type_ref().map_or(format!("{converted}"), |of| format!("{of:?}"));
            let right = if matches!(
                column.logical_type_ref(),
                Some(LogicalType::Timestamp { .. } | LogicalType::Time { .. } | LogicalType::Date)
            ) {
                "a list has durations since its start, or seconds as numbers"
            } else {
                "a list has numbers, text and durations"
            };
            return Err(format!("its column \"{name}\" is of type {of}; {right}"));
        }
        let duration = durations.iter().find(|(of, _)| of == name).map(|(_, unit)| unit);
        let Some(unit) = duration.map_or(Some(""), |unit| *unit) else {
            return Err(format!(
                "its column \"{name}\" is a duration in an unknown unit; write s, ms, us or ns"
            ));
        };
        Ok(Self { unit, nullable: column.max_def_level() > 0, unsigned })
    }

    fn read(&self, column: &mut ColumnReader, rows: usize) -> parquet::errors::Result<Vec<String>> {
        use ColumnReader as R;
        match column {
            R::BoolColumnReader(column) => self.cells(column, rows, |value| value.to_string()),
            R::Int32ColumnReader(column) if self.unsigned => {
                self.cells(column, rows, |value| value.cast_unsigned().to_string())
            }
            R::Int32ColumnReader(column) => self.cells(column, rows, |value| value.to_string()),
            R::Int64ColumnReader(column) if self.unsigned => {
                self.cells(column, rows, |value| value.cast_unsigned().to_string())
            }
            R::Int64ColumnReader(column) => self.cells(column, rows, |value| format!("{value}{}", self.unit)),
            // A 32-bit float is written in its shortest form, 0.1, not as its 64-bit value.
            R::FloatColumnReader(column) => self.cells(column, rows, |value| value.to_string()),
            R::DoubleColumnReader(column) => self.cells(column, rows, |value| value.to_string()),
            R::ByteArrayColumnReader(column) => self.cells(column, rows, |value| text(value.data())),
            R::FixedLenByteArrayColumnReader(column) => self.cells(column, rows, |value| text(value.data())),
            R::Int96ColumnReader(column) => self.cells(column, rows, |value| format!("{value:?}")),
        }
    }

    fn cells<T: DataType>(
        &self,
        column: &mut ColumnReaderImpl<T>,
        rows: usize,
        text: impl Fn(&T::T) -> String,
    ) -> parquet::errors::Result<Vec<String>> {
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        let nullable = self.nullable.then_some(&mut levels);
        let (records, _, _) = column.read_records(rows, nullable, None, &mut values)?;
        let mut values = values.iter();
        let filled = (0..records).map(|row| !self.nullable || levels[row] > 0);
        Ok(filled
            .map(|there| if there { values.next().map_or(String::new(), &text) } else { String::new() })
            .collect())
    }
}

fn text(bytes: &[u8]) -> String {
    quoted(&String::from_utf8_lossy(&bytes[..bytes.len().min(MOST_LETTERS)]))
}

/// Quotes a value for CSV. Line breaks become spaces, because the reader takes each line as a row.
fn quoted(value: &str) -> String {
    let value = value.replace(['\n', '\r'], " ");
    if value.contains([',', '"']) || value != value.trim() {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value
    }
}
