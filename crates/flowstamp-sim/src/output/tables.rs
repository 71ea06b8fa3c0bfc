//! Series and flows as Arrow tables, and those as Parquet.

use crate::results::{FlowRow, Series};
use arrow_array::builder::{Float64Builder, UInt64Builder};
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

/// The series in long form: `time_s`, `kind`, `name`, `metric` (dictionaries), `value`; one row per sample.
///
/// # Errors
///
/// None that a run's results can cause; Arrow's constructors return one.
pub fn series_table(series: &Series) -> Result<RecordBatch, ArrowError> {
    let text = |words_of_keys: Vec<&str>| -> Result<ArrayRef, ArrowError> {
        let mut words: Vec<&str> = Vec::new();
        let mut seen: HashMap<&str, i32> = HashMap::new();
        let code_of_key: Vec<i32> = words_of_keys
            .into_iter()
            .map(|word| {
                *seen.entry(word).or_insert_with(|| {
                    words.push(word);
                    words.len() as i32 - 1
                })
            })
            .collect();
        let codes = Int32Array::from_iter_values(series.key.iter().map(|key| code_of_key[*key as usize]));
        let words = StringArray::from_iter_values(words);
        Ok(Arc::new(DictionaryArray::<Int32Type>::try_new(codes, Arc::new(words))?))
    };
    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let schema = Schema::new(vec![
        Field::new("time_s", DataType::Float64, false),
        Field::new("kind", dictionary.clone(), false),
        Field::new("name", dictionary.clone(), false),
        Field::new("metric", dictionary, false),
        Field::new("value", DataType::Float64, false),
    ]);
    RecordBatch::try_new(
        Arc::new(schema),
        vec![
            Arc::new(Float64Array::from(series.time_s.clone())),
            text(series.keys.iter().map(|key| key.kind).collect())?,
            text(series.keys.iter().map(|key| key.name.as_str()).collect())?,
            text(series.keys.iter().map(|key| key.metric.as_str()).collect())?,
            Arc::new(Float64Array::from(series.value.clone())),
        ],
    )
}

/// One row per flow, with the fields of [`crate::results::FlowRow`].
///
/// # Errors
///
/// As [`series_table`].
pub fn flows_table(rows: &[FlowRow]) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    let mut add = |name: &str, array: ArrayRef, nullable: bool| {
        fields.push(Field::new(name, array.data_type().clone(), nullable));
        arrays.push(array);
    };
    macro_rules! column {
        ($field:ident: text) => {
            let array: DictionaryArray<Int32Type> = rows.iter().map(|row| &*row.$field).collect();
            add(stringify!($field), Arc::new(array), false)
        };
        ($field:ident: option $builder:ty) => {
            let mut builder = <$builder>::with_capacity(rows.len());
            for row in rows {
                builder.append_option(row.$field);
            }
            add(stringify!($field), Arc::new(builder.finish()), true)
        };
        ($field:ident: $array:ty) => {
            let array = <$array>::from_iter_values(rows.iter().map(|row| row.$field));
            add(stringify!($field), Arc::new(array), false)
        };
    }
    column!(flow: UInt32Array);
    column!(group: text);
    column!(index: UInt32Array);
    column!(law: text);
    column!(start_s: Float64Array);
    column!(end_s: option Float64Builder);
    column!(size_bytes: option UInt64Builder);
    column!(fct_s: option Float64Builder);
    column!(delivered_bytes: UInt64Array);
    column!(goodput_bps: Float64Array);
    column!(retransmissions: UInt32Array);
    column!(timeouts: UInt32Array);
    column!(min_rtt_s: option Float64Builder);
    column!(srtt_s: option Float64Builder);
    column!(switched_s: option Float64Builder);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

/// One table as Parquet, compressed by Snappy, which every reader knows.
pub(super) fn table_to(table: Result<RecordBatch, ArrowError>, out: &mut BufWriter<File>) -> io::Result<()> {
    let table = table.map_err(io::Error::other)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        // The library's name and version would make the bytes differ between builds that give the same results.
        .set_created_by("flowstamp".to_owned())
        .build();
    // The writer tells of a failed write in words of its own; the system's reason is kept here.
    let mut out = Remember { out, error: None };
    let write = |out: &mut Remember<'_>| {
        let mut writer = ArrowWriter::try_new(out, table.schema(), Some(properties))?;
        writer.write(&table)?;
        writer.close().map(|_| ())
    };
    let result = write(&mut out);
    match out.error.take() {
        Some(error) => Err(error),
        None => result.map_err(io::Error::other),
    }
}

/// Passes bytes on and remembers the first error.
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
