//! Tables of results, handed to Python by the Arrow PyCapsule interface.

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator};
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

/// A table of results.
#[pyclass(frozen, module = "flowstamp._flowstamp")]
pub struct Table {
    batch: RecordBatch,
}

impl Table {
    pub fn new(batch: RecordBatch) -> Self {
        Self { batch }
    }
}

#[pymethods]
impl Table {
    /// The table as an `ArrowArrayStream` of one batch. A requested schema is not cast to: the interface allows that.
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

    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// One column as a list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let Some(column) = self.batch.column_by_name(name) else {
            let known = self.column_names().join(", ");
            return Err(PyKeyError::new_err(format!("no column \"{name}\"; there are {known}")));
        };
        if let Some(values) = column.as_primitive_opt::<Float64Type>() {
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

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }
}
