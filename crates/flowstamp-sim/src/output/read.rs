//! Reads the Parquet files of a run or a lab.

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, UInt32Array, UInt64Array,
};
use parquet::basic::{ConvertedType, LogicalType, Type as Physical};
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
/// If `bytes` is no complete Parquet file, or a column has a type that no table of a run has. One line names the column.
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
    let name = column.path().string();
    let refused = |why: String| Err(ParquetError::General(format!("column \"{name}\" {why}")));
    if column.max_rep_level() > 0 || column.max_def_level() > 1 || column.path().parts().len() > 1 {
        return refused("is a list or a struct; a column of a run has one value for each row".to_owned());
    }
    // Labs write converted types only, not the newer logical types.
    let converted = column.converted_type();
    let logical = column.logical_type_ref().filter(|kind| !matches!(kind, LogicalType::Integer(_)));
    Ok(match (column.physical_type(), converted) {
        (Physical::DOUBLE, _) => Arc::new(Float64Array::from(values::<DoubleType>(reader, at)?)),
        (Physical::INT64, ConvertedType::NONE | ConvertedType::INT_64) if logical.is_none() => {
            Arc::new(Int64Array::from(values::<Int64>(reader, at)?))
        }
        (Physical::INT64, ConvertedType::UINT_64) => {
            let values = values::<Int64>(reader, at)?.into_iter();
            Arc::new(values.map(|value| value.map(i64::cast_unsigned)).collect::<UInt64Array>())
        }
        (Physical::INT32, ConvertedType::UINT_32) => {
            let values = values::<Int32>(reader, at)?.into_iter();
            Arc::new(values.map(|value| value.map(i32::cast_unsigned)).collect::<UInt32Array>())
        }
        (Physical::BYTE_ARRAY, _) => {
            let words = values::<ByteArrayType>(reader, at)?;
            let words = words.iter().map(|word| word.as_ref().map(ByteArray::as_utf8).transpose());
            Arc::new(words.collect::<Result<DictionaryArray<Int32Type>>>()?)
        }
        (physical, ConvertedType::NONE) => {
            let kind = logical.map_or_else(String::new, |kind| format!(", {kind:?}"));
            return refused(format!("is of type {physical}{kind}, which no table of a run has"));
        }
        (physical, converted) => {
            return refused(format!("is of type {physical}, {converted}, which no table of a run has"));
        }
    })
}

/// The values of column `at`, `None` where a row has none. [`array`] has checked that its levels are 0 and 1.
fn values<T: DataType>(reader: &SerializedFileReader<bytes::Bytes>, at: usize) -> Result<Vec<Option<T::T>>> {
    let mut all = Vec::new();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group)?;
        let present = group.metadata().column(at).column_descr().max_def_level();
        let nullable = present > 0;
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
                all.extend(levels.drain(..).map(|level| if level == present { there.next() } else { None }));
            } else {
                all.extend(there.map(Some));
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    /// A file of one INT64 column with the value 7 in one row.
    fn file(column: &str, definition: i16) -> Vec<u8> {
        let schema = parse_message_type(&format!("message table {{ {column} }}")).expect("a schema");
        let mut bytes = Vec::new();
        let mut writer =
            SerializedFileWriter::new(&mut bytes, Arc::new(schema), Arc::default()).expect("a writer");
        let mut group = writer.next_row_group().expect("a row group");
        let mut column = group.next_column().expect("a column").expect("a column");
        let levels = (Some(&[definition][..]), Some(&[0][..]));
        column.typed::<Int64>().write_batch(&[7], levels.0, levels.1).expect("a value");
        column.close().expect("the column ends");
        group.close().expect("the row group ends");
        writer.close().expect("the file ends");
        bytes
    }

    #[test]
    fn whole_numbers_are_read_whatever_their_annotation() {
        for column in [
            "required int64 a;",
            "optional int64 a;",
            "required int64 a (INT_64);",
            "required int64 a (INTEGER(64,true));",
        ] {
            let table = parquet_table(file(column, 1)).expect(column);
            assert_eq!(**table.column(0), Int64Array::from(vec![7]), "{column}");
        }
        for column in ["required int64 a (UINT_64);", "optional int64 a (INTEGER(64,false));"] {
            let table = parquet_table(file(column, 1)).expect(column);
            assert_eq!(**table.column(0), UInt64Array::from(vec![7]), "{column}");
        }
    }

    #[test]
    fn columns_that_no_run_has_are_refused_by_name() {
        let nested = "is a list or a struct; a column of a run has one value for each row";
        for (column, definition, name, why) in [
            ("repeated int64 a;", 1, "a", nested),
            ("optional group a (LIST) { repeated group list { optional int64 e; } }", 3, "a.list.e", nested),
            ("optional group g { optional int64 a; }", 2, "g.a", nested),
            ("required group g { required int64 a; }", 0, "g.a", nested),
            ("required int64 a (TIMESTAMP_MILLIS);", 0, "a", "is of type INT64, TIMESTAMP_MILLIS, which"),
            ("required int64 a (TIMESTAMP(NANOS,true));", 0, "a", "is of type INT64, Timestamp"),
            ("required int64 a (TIME_MICROS);", 0, "a", "is of type INT64, TIME_MICROS, which"),
            ("required int64 a (DECIMAL(18,2));", 0, "a", "is of type INT64, DECIMAL, which"),
        ] {
            let error = parquet_table(file(column, definition)).expect_err(column).to_string();
            assert!(error.contains(&format!("column \"{name}\" {why}")), "{column}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }
}
