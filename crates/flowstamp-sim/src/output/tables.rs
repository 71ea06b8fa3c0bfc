//! Arrow tables of series, flows and delays, and their Parquet files.

use crate::results::{DelayCurve, FlowRow, Seconds, Series, Values, flow_columns};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type as Int32, Int64Type as Int64};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The series in long form: `time_s`, `kind`, `name`, `metric` (dictionaries), `value`; one row per sample.
///
/// # Errors
///
/// None for results of a run; Arrow's constructors return one.
pub fn series_table(series: &Series) -> Result<RecordBatch, ArrowError> {
    let mut table = Table::default();
    series.columns(&mut |name, values| table.add(name, values));
    table.finish()
}

/// One row per flow, with the fields of [`FlowRow`].
///
/// # Errors
///
/// As [`series_table`].
pub fn flows_table(rows: &[FlowRow]) -> Result<RecordBatch, ArrowError> {
    let mut table = Table::default();
    flow_columns(rows, &mut |name, values| table.add(name, values));
    table.finish()
}

/// A table under construction.
#[derive(Default)]
struct Table {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Table {
    fn add(&mut self, name: &str, values: Values<'_>) {
        let array: ArrayRef = match values {
            Values::Words { words, codes } => {
                let words = StringArray::from_iter_values(words);
                Arc::new(DictionaryArray::<Int32Type>::new(codes.into(), Arc::new(words)))
            }
            Values::Numbers(numbers) => Arc::new(Float64Array::from(numbers.into_owned())),
            Values::Seconds(seconds) => {
                let array: Float64Array = seconds.into_iter().map(Seconds::get).collect();
                return self.push(name, Arc::new(array), true);
            }
            Values::OptionalCounts(counts) => {
                return self.push(name, Arc::new(UInt64Array::from(counts)), true);
            }
            Values::Counts(counts) => Arc::new(UInt64Array::from(counts)),
            Values::Small(counts) => Arc::new(UInt32Array::from(counts)),
        };
        self.push(name, array, false);
    }

    fn push(&mut self, name: &str, array: ArrayRef, nullable: bool) {
        self.fields.push(Field::new(name, array.data_type().clone(), nullable));
        self.arrays.push(array);
    }

    fn finish(self) -> Result<RecordBatch, ArrowError> {
        RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays)
    }
}

/// Distributions of delays: `kind`, `name`, `min_bytes`, `max_bytes` (null where flows of all sizes count), `delay_s`,
/// `share`.
///
/// # Errors
///
/// As [`series_table`].
pub fn delays_table(curves: &[DelayCurve]) -> Result<RecordBatch, ArrowError> {
    let rows = || curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (curve, *point)));
    let kinds: DictionaryArray<Int32Type> = rows().map(|(curve, _)| curve.kind).collect();
    let names: DictionaryArray<Int32Type> = rows().map(|(curve, _)| curve.name.as_str()).collect();
    let least: UInt64Array = rows().map(|(curve, _)| Some(curve.bytes?.0)).collect();
    let most: UInt64Array = rows().map(|(curve, _)| Some(curve.bytes?.1)).collect();
    let delays = Float64Array::from_iter_values(rows().map(|(_, (delay_s, _))| delay_s));
    let shares = Float64Array::from_iter_values(rows().map(|(_, (_, share))| share));
    RecordBatch::try_from_iter_with_nullable([
        ("kind", Arc::new(kinds) as ArrayRef, false),
        ("name", Arc::new(names), false),
        ("min_bytes", Arc::new(least), true),
        ("max_bytes", Arc::new(most), true),
        ("delay_s", Arc::new(delays), false),
        ("share", Arc::new(shares), false),
    ])
}

/// Writes one table as Parquet, compressed with Snappy, which every reader supports.
pub(super) fn table_to(table: Result<RecordBatch, ArrowError>, out: &mut BufWriter<File>) -> io::Result<()> {
    let table = table.map_err(io::Error::other)?;
    // The Parquet writer replaces a failed write's error by its own; `Remember` keeps the system's reason.
    let mut out = Remember { out, error: None };
    let result = write_columns(&table, &mut out, &[]);
    match out.error.take() {
        Some(error) => Err(error),
        None => result.map_err(io::Error::other),
    }
}

/// Converts a column of numbers to floats, with NaN for null; `None` if it has no numbers. It is in this crate because
/// this crate is compiled for speed.
#[must_use]
pub fn numbers_of(column: &dyn Array) -> Option<Float64Array> {
    let or_nan = |value: Option<f64>| value.unwrap_or(f64::NAN);
    if let Some(values) = column.as_primitive_opt::<Float64Type>() {
        Some(values.iter().map(or_nan).collect::<Vec<_>>().into())
    } else if let Some(values) = column.as_primitive_opt::<UInt32Type>() {
        Some(values.iter().map(|v| or_nan(v.map(f64::from))).collect::<Vec<_>>().into())
    } else if let Some(values) = column.as_primitive_opt::<Int64Type>() {
        Some(values.iter().map(|v| or_nan(v.map(|v| v as f64))).collect::<Vec<_>>().into())
    } else {
        let values = column.as_primitive_opt::<UInt64Type>()?;
        Some(values.iter().map(|v| or_nan(v.map(|v| v as f64))).collect::<Vec<_>>().into())
    }
}

/// Writes a table as Parquet into memory, with key-value metadata ([`parquet_notes`]).
///
/// # Errors
///
/// If a column has a type that no table of a run has.
pub fn parquet_of(table: &RecordBatch, notes: &[(String, String)]) -> Result<Vec<u8>, ParquetError> {
    let mut bytes = Vec::new();
    write_columns(table, &mut bytes, notes)?;
    Ok(bytes)
}

/// Reads the key-value metadata that [`parquet_of`] wrote; `None` if `bytes` is not a complete Parquet file.
#[must_use]
pub fn parquet_notes(bytes: Vec<u8>) -> Option<Vec<(String, String)>> {
    // The library may panic on files that are damaged on purpose.
    catch_unwind(AssertUnwindSafe(|| {
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).ok()?;
        let notes = reader.metadata().file_metadata().key_value_metadata()?;
        Some(notes.iter().filter_map(|note| Some((note.key.clone(), note.value.clone()?))).collect())
    }))
    .ok()
    .flatten()
}

/// Writes column by column. The crate's own Arrow writer needs Arrow's IPC and selection crates, which take longer to
/// compile than this function. It also looks each string up by content, which takes longer to run.
fn write_columns<W: Write + Send>(
    table: &RecordBatch,
    out: &mut W,
    notes: &[(String, String)],
) -> Result<(), ParquetError> {
    let notes = notes.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        // Numbers seldom repeat, and looking each one up would take longer than the rest of the writing.
        .set_dictionary_enabled(false)
        // Statistics serve readers that skip parts; a table is read whole.
        .set_statistics_enabled(EnabledStatistics::None)
        // The library's name and version would change the bytes between builds that give the same results.
        .set_created_by("flowstamp".to_owned())
        .set_key_value_metadata(Some(notes.collect::<Vec<_>>()).filter(|notes| !notes.is_empty()));
    let mut fields = Vec::new();
    for field in table.schema().fields() {
        let (physical, logical) = match field.data_type() {
            DataType::Float64 => (Physical::DOUBLE, None),
            DataType::Int64 => (Physical::INT64, None),
            DataType::UInt64 => (Physical::INT64, Some(LogicalType::integer(64, false))),
            DataType::UInt32 => (Physical::INT32, Some(LogicalType::integer(32, false))),
            _ => {
                properties = properties.set_column_dictionary_enabled(field.name().as_str().into(), true);
                (Physical::BYTE_ARRAY, Some(LogicalType::String))
            }
        };
        let repetition = if field.is_nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let column = Type::primitive_type_builder(field.name(), physical)
            .with_repetition(repetition)
            .with_logical_type(logical);
        fields.push(Arc::new(column.build()?));
    }
    let schema = Type::group_type_builder("schema").with_fields(fields).build()?;
    let mut writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))?;
    let mut group = writer.next_row_group()?;
    for (field, array) in table.schema().fields().iter().zip(table.columns()) {
        let Some(mut column) = group.next_column()? else { break };
        // A nullable column has a level of 0 or 1 for each row, and then the values that exist.
        let levels: Option<Vec<i16>> =
            field.is_nullable().then(|| (0..array.len()).map(|row| i16::from(array.is_valid(row))).collect());
        let levels = levels.as_deref();
        write_column(&mut column, array, levels)?;
        column.close()?;
    }
    group.close()?;
    writer.close().map(|_| ())
}

/// Writes the values of one column, with its levels if it is nullable.
fn write_column(
    column: &mut SerializedColumnWriter<'_>,
    array: &ArrayRef,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    match array.data_type() {
        DataType::Float64 => {
            let values: Vec<f64> = array.as_primitive::<Float64Type>().iter().flatten().collect();
            column.typed::<DoubleType>().write_batch(&values, levels, None)?;
        }
        DataType::UInt64 => {
            let values = array.as_primitive::<UInt64Type>().iter().flatten();
            let values: Vec<i64> = values.map(u64::cast_signed).collect();
            column.typed::<Int64>().write_batch(&values, levels, None)?;
        }
        DataType::Int64 => {
            let values: Vec<i64> = array.as_primitive::<Int64Type>().iter().flatten().collect();
            column.typed::<Int64>().write_batch(&values, levels, None)?;
        }
        DataType::UInt32 => {
            let values = array.as_primitive::<UInt32Type>().iter().flatten();
            let values: Vec<i32> = values.map(u32::cast_signed).collect();
            column.typed::<Int32>().write_batch(&values, levels, None)?;
        }
        _ => {
            let array = array.as_dictionary::<Int32Type>();
            let words: Vec<ByteArray> =
                array.values().as_string::<i32>().iter().flatten().map(ByteArray::from).collect();
            // Writes some rows at a time, because a code of four bytes expands to a long value here.
            for codes in array.keys().values().chunks(10_000) {
                let values: Vec<ByteArray> = codes.iter().map(|code| words[*code as usize].clone()).collect();
                column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
            }
        }
    }
    Ok(())
}

/// Passes bytes on and keeps the first error.
struct Remember<'a> {
    out: &'a mut BufWriter<File>,
    error: Option<io::Error>,
}

impl Remember<'_> {
    fn keep(&mut self, error: io::Error) -> io::Error {
        let told = io::Error::from(error.kind());
        self.error.get_or_insert(error);
        told
    }
}

impl Write for Remember<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes).map_err(|error| self.keep(error))
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|error| self.keep(error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::parquet_table;
    use super::*;

    /// Table and metadata come back from a complete file, and neither from a truncated one.
    #[test]
    fn what_is_written_is_read() {
        let words: DictionaryArray<Int32Type> = ["a", "b", "a"].into_iter().collect();
        let table = RecordBatch::try_from_iter_with_nullable([
            ("word", Arc::new(words) as ArrayRef, false),
            ("whole", Arc::new(arrow_array::Int64Array::from(vec![-1, 0, i64::MAX])), false),
            ("number", Arc::new(Float64Array::from(vec![0.5, f64::MIN_POSITIVE, f64::MAX])), false),
            ("count", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None, Some(0)])), true),
            ("small", Arc::new(UInt32Array::from(vec![u32::MAX, 0, 1])), false),
        ])
        .expect("a table");
        let notes =
            vec![("first".to_owned(), "eins".to_owned()), ("second".to_owned(), "\u{1f30a}\n".to_owned())];
        let bytes = parquet_of(&table, &notes).expect("it is written");
        assert_eq!(parquet_notes(bytes.clone()), Some(notes.clone()));
        assert_eq!(parquet_table(bytes.clone()).expect("it is read"), table);
        for cut in 0..bytes.len() {
            assert_eq!(parquet_notes(bytes[..cut].to_vec()), None, "{cut} bytes of {}", bytes.len());
            assert!(parquet_table(bytes[..cut].to_vec()).is_err(), "{cut} bytes of {}", bytes.len());
        }
        assert_eq!(parquet_notes(parquet_of(&table, &[]).expect("it is written")), None);
    }
}
