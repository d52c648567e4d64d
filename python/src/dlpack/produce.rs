//! `__dlpack__` and `__dlpack_device__`.

use super::capsule;
use crate::array::{PyArray, evaluate};
use crate::error::Res;
use pyo3::prelude::*;
use ultramarine::interchange::{DLDevice, ExportOptions, Kind};

#[pymethods]
impl PyArray {
    /// The array as a tensor in a capsule, for `from_dlpack` of another library.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<isize>,
        max_version: Option<(i64, i64)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> Res<Bound<'py, PyAny>> {
        let array = self.get(py);
        evaluate(py, &array)?;
        let kind = match max_version {
            Some((major, _)) if major >= 1 => Kind::Versioned,
            _ => Kind::Legacy,
        };
        let device = dl_device.map(|(device_type, device_id)| DLDevice { device_type, device_id });
        let tensor = array.to_dlpack_with(ExportOptions { kind, device, stream, copy })?;
        Ok(capsule::wrap(py, tensor)?)
    }

    /// DLPack's type and number of the device that the array is on.
    fn __dlpack_device__(&self, py: Python<'_>) -> Res<(i32, i32)> {
        let device = self.get(py).dlpack_device()?;
        Ok((device.device_type, device.device_id))
    }
}
