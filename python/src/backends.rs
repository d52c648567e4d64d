//! The backends: what is loaded, and the counts of what they ran. `ultramarine/backends.py` is
//! the public face.

use crate::error::Res;
use crate::stream::{DeviceArg, PyDevice, PyDeviceType};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use ultramarine::backends::{self, BackendInfo};

/// A backend's facts, for the constructor of `Backend`.
fn facts<'py>(py: Python<'py>, info: BackendInfo) -> PyResult<Bound<'py, PyDict>> {
    let devices = info.devices.into_iter().map(PyDevice);
    let out = PyDict::new(py);
    out.set_item("name", info.name)?;
    out.set_item("variant", info.variant)?;
    out.set_item("version", info.version)?;
    out.set_item("score", info.score)?;
    out.set_item("device_type", PyDeviceType::of(info.device_type))?;
    out.set_item("devices", devices.collect::<Vec<_>>())?;
    out.set_item("descriptions", info.descriptions)?;
    out.set_item("path", info.path.map(|p| p.into_os_string()))?;
    Ok(out)
}

fn all<'py>(py: Python<'py>, infos: Vec<BackendInfo>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for info in infos {
        list.append(facts(py, info)?)?;
    }
    Ok(list)
}

#[pyfunction]
fn _backends(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    all(py, backends::backends())
}

#[pyfunction]
fn _backend_of(py: Python<'_>, device: DeviceArg) -> Res<Bound<'_, PyDict>> {
    Ok(facts(py, backends::get(device.get())?)?)
}

/// How often each operation ran, for the constructor of `OpCount`.
#[pyfunction]
fn _op_counts(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for count in ultramarine::op_counts() {
        let out = PyDict::new(py);
        out.set_item("device", PyDevice(count.device))?;
        out.set_item("backend", count.backend)?;
        out.set_item("variant", count.variant)?;
        out.set_item("op", count.op)?;
        out.set_item("native", count.native)?;
        out.set_item("decomposed", count.decomposed)?;
        out.set_item("cpu", count.cpu)?;
        list.append(out)?;
    }
    Ok(list)
}

#[pyfunction]
fn _reset_op_counts() {
    ultramarine::reset_op_counts();
}

/// Whether an operation that a device cannot run raises instead of running on the CPU; `allow`
/// names operations (as `op_counts` does) that may run there even so.
#[pyfunction]
#[pyo3(signature = (on, allow=vec![]))]
fn _set_strict(on: bool, allow: Vec<String>) {
    let allow: Vec<&str> = allow.iter().map(String::as_str).collect();
    ultramarine::set_strict(on, &allow);
}

/// Whether strict mode is on, see `set_strict`.
#[pyfunction]
fn _is_strict() -> bool {
    ultramarine::strict()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: _backends _backend_of _op_counts _reset_op_counts _set_strict _is_strict);
    Ok(())
}
