//! Reads the Parquet files of a run or a lab.

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, UInt32Array, UInt64Array,
};
use parquet::basic::{ConvertedType, Type as Physical};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, DoubleType, Int32Type as Int32, Int64Type as Int64,
};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::ColumnDescriptor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Rows read at a time. The row count that a damaged file claims therefore allocates no memory.
const BATCH: usize = 65_536;

/// Reads a table that a run or a lab wrote as Parquet. Strings become dictionaries. The library's own reader of Arrow tables needs
/// Arrow's IPC and selection crates, as its writer does.
///
/// # Errors
///
/// If `bytes` is no complete Parquet file, or a column has a type that no table of a run has.
pub fn parquet_table(bytes: Vec<u8>) -> Result<RecordBatch> {
    let read = || {
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes))?;
        let columns = reader.metadata().file_metadata().schema_descr().columns().iter().enumerate();
        let columns = columns.map(|(at, column)| {
            Ok((column.name().to_owned(), array(&reader, at, column)?, column.max_def_level() > 0))
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        RecordBatch::try_from_iter_with_nullable(columns)
            .map_err(|error| ParquetError::General(error.to_string()))
    };
    // The library may panic on files that are damaged on purpose.
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ParquetError::General("it is damaged".to_owned())))
}

/// All values of one column.
fn array(
    reader: &SerializedFileReader<bytes::Bytes>,
    at: usize,
    column: &ColumnDescriptor,
) -> Result<ArrayRef> {
    // Labs write converted types only, not the newer logical types.
    let signed = !matches!(column.converted_type(), ConvertedType::UINT_32 | ConvertedType::UINT_64);
    Ok(match column.physical_type() {
        Physical::DOUBLE => Arc::new(Float64Array::from(values::<DoubleType>(reader, at)?)),
        Physical::INT64 if signed => Arc::new(Int64Array::from(values::<Int64>(reader, at)?)),
        Physical::INT64 => {
            let values = values::<Int64>(reader, at)?.into_iter();
            Arc::new(values.map(|value| value.map(i64::cast_unsigned)).collect::<UInt64Array>())
        }
        Physical::INT32 if !signed => {
            let values = values::<Int32>(reader, at)?.into_iter();
            Arc::new(values.map(|value| value.map(i32::cast_unsigned)).collect::<UInt32Array>())
        }
        Physical::BYTE_ARRAY => {
            let words = values::<ByteArrayType>(reader, at)?;
            let words = words.iter().map(|word| word.as_ref().map(ByteArray::as_utf8).transpose());
            Arc::new(words.collect::<Result<DictionaryArray<Int32Type>>>()?)
        }
        other => {
            let name = column.name();
            return Err(ParquetError::General(format!(
                "column \"{name}\" is of type {other}, which no table of a run has"
            )));
        }
    })
}

/// The values of column `at`, `None` where a row has none.
fn values<T: DataType>(reader: &SerializedFileReader<bytes::Bytes>, at: usize) -> Result<Vec<Option<T::T>>> {
    let mut all = Vec::new();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let nullable = group.metadata().column(at).column_descr().max_def_level() > 0;
        let mut column = get_typed_column_reader::<T>(group.get_column_reader(at)?);
        let (mut values, mut levels) = (Vec::new(), Vec::new());
        loop {
            let (records, ..) =
                column.read_records(BATCH, nullable.then_some(&mut levels), None, &mut values)?;
            if records == 0 {
                break;
            }
            let mut there = values.drain(..);
            if nullable {
                all.extend(levels.drain(..).map(|level| if level > 0 { there.next() } else { None }));
            } else {
                all.extend(there.map(Some));
            }
        }
    }
    Ok(all)
}
