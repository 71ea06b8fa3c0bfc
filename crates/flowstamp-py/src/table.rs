//! Tables of results, passed to Python through the Arrow PyCapsule interface.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
};
use flowstamp_sim::output;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A table of results. `table["goodput_bps"]` is a column: an array of floats, NaN where a value is missing, or a list of strings.
/// `for row in table` has the rows as dictionaries.
///
/// Any Arrow consumer (polars, pyarrow, DuckDB, pandas from 3.0 on) reads it through the PyCapsule interface.
#[pyclass(frozen, module = "flowstamp._flowstamp")]
pub struct Table {
    batch: RecordBatch,
}

impl Table {
    pub fn new(batch: RecordBatch) -> Self {
        Self { batch }
    }

    /// Calls a function of the Python module that shows and converts tables.
    fn in_python<'py>(
        table: &Bound<'py, Self>,
        function: &str,
        arguments: impl PyCallArgs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        table.py().import("flowstamp.frames")?.call_method1(function, arguments)
    }

    fn named(&self, name: &str) -> PyResult<&ArrayRef> {
        self.batch.column_by_name(name).ok_or_else(|| {
            let known = self.column_names().join(", ");
            PyKeyError::new_err(format!("no column \"{name}\"; there are {known}"))
        })
    }
}

/// A column as a Python list.
#[derive(FromPyObject)]
enum Column {
    Whole(Vec<i64>),
    Numbers(Vec<f64>),
    Words(Vec<String>),
}

#[pymethods]
impl Table {
    /// A table of columns of equal length: integers, floats or strings.
    #[new]
    fn of(columns: Vec<(String, Column)>) -> PyResult<Self> {
        let arrays = columns.into_iter().map(|(name, column)| {
            let array: ArrayRef = match column {
                Column::Whole(values) => Arc::new(Int64Array::from(values)),
                Column::Numbers(values) => Arc::new(Float64Array::from(values)),
                Column::Words(words) => {
                    let words: DictionaryArray<Int32Type> = words.iter().map(String::as_str).collect();
                    Arc::new(words)
                }
            };
            (name, array, false)
        });
        let batch = RecordBatch::try_from_iter_with_nullable(arrays);
        batch.map(Self::new).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Reads a table that a run, a lab or [`Table::parquet`] wrote.
    #[staticmethod]
    fn from_parquet(bytes: &[u8]) -> PyResult<Self> {
        let batch = output::parquet_table(bytes.to_vec());
        batch.map(Self::new).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The table as a Parquet file, with `notes` in its metadata.
    #[pyo3(signature = (notes=Vec::new()), text_signature = "($self, notes=())")]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands objects over")]
    fn parquet<'py>(&self, py: Python<'py>, notes: Vec<(String, String)>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = output::parquet_of(&self.batch, &notes);
        bytes
            .map(|bytes| PyBytes::new(py, &bytes))
            .map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// The table as an `ArrowArrayStream` of one batch. It ignores `requested_schema`, as the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let reader = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// One column as a list, with None where a value is missing.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.named(name)?;
        if let Some(values) = column.as_primitive_opt::<Float64Type>() {
            PyList::new(py, values.iter().collect::<Vec<_>>())
        } else if let Some(values) = column.as_primitive_opt::<Int64Type>() {
            PyList::new(py, values.iter().collect::<Vec<_>>())
        } else if let Some(values) = column.as_primitive_opt::<UInt32Type>() {
            PyList::new(py, values.iter().collect::<Vec<_>>())
        } else if let Some(values) = column.as_primitive_opt::<UInt64Type>() {
            PyList::new(py, values.iter().collect::<Vec<_>>())
        } else if let Some(words) = column
            .as_dictionary_opt::<Int32Type>()
            .and_then(|d| d.downcast_dict::<arrow_array::StringArray>())
        {
            PyList::new(py, words.into_iter().collect::<Vec<_>>())
        } else {
            Err(PyTypeError::new_err(format!("column \"{name}\" has the type {}", column.data_type())))
        }
    }

    /// A column of numbers as a native float64 buffer (`numpy.frombuffer`), NaN where a value is missing.
    fn numbers<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let column = self.named(name)?;
        let Some(values) = output::numbers_of(column) else {
            return Err(PyTypeError::new_err(format!(
                "column \"{name}\" has the type {}",
                column.data_type()
            )));
        };
        Ok(PyBytes::new(py, values.values().inner().as_slice()))
    }

    /// A column of strings: a native int32 buffer of indices, and the list of distinct strings that they index.
    fn words<'py>(&self, py: Python<'py>, name: &str) -> PyResult<(Bound<'py, PyBytes>, Vec<String>)> {
        let column = self.named(name)?;
        let Some(words) = column.as_dictionary_opt::<Int32Type>() else {
            return Err(PyTypeError::new_err(format!(
                "column \"{name}\" has the type {}",
                column.data_type()
            )));
        };
        let known = words.values().as_string::<i32>().iter().map(|word| word.unwrap_or_default().to_owned());
        Ok((PyBytes::new(py, words.keys().values().inner().as_slice()), known.collect()))
    }

    /// One column as an array, or a list if it has strings.
    fn __getitem__<'py>(slf: &Bound<'py, Self>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        Self::in_python(slf, "column", (slf, name))
    }

    /// The rows as dictionaries.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::in_python(slf, "rows", (slf,))
    }

    /// A pandas frame: NaN where a value is missing. Needs flowstamp[pandas].
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::in_python(slf, "to_pandas", (slf,))
    }

    /// A polars frame. Needs flowstamp[polars].
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::in_python(slf, "to_polars", (slf,))
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::in_python(slf, "text", (slf,))
    }

    /// The table as HTML, for notebooks.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("flowstamp.notebook")?.call_method1("table", (slf,))
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }
}

/// The notes in the metadata of a file that [`Table::parquet`] made; `None` if it is not a whole Parquet file.
#[pyfunction]
pub fn parquet_notes(bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    output::parquet_notes(bytes.to_vec()).map(|notes| notes.into_iter().collect())
}
