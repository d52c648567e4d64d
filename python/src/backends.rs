//! The backends: finding, loading, what is loaded, and the counts of what they ran.
//! `ultramarine/backends.py` is the public face.

use crate::error::{Fail, Res, value};
use crate::stream::{DeviceArg, PyDevice, PyDeviceType};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use ultramarine::backends::{self, BackendInfo, Code, LoadOptions, Offer, Stage};

/// A backend's properties, for the constructor of `Backend`.
fn properties<'py>(py: Python<'py>, info: BackendInfo) -> PyResult<Bound<'py, PyDict>> {
    let devices = info.devices.into_iter().map(PyDevice);
    let out = PyDict::new(py);
    out.set_item("name", info.name)?;
    out.set_item("variant", info.variant)?;
    out.set_item("version", info.version)?;
    out.set_item("score", info.score)?;
    out.set_item("device_type", PyDeviceType::of(info.device_type))?;
    out.set_item("devices", devices.collect::<Vec<_>>())?;
    out.set_item("descriptions", info.descriptions)?;
    out.set_item("dlpack_device_type", info.dlpack_device_type)?;
    out.set_item("path", info.path.map(PathBuf::into_os_string))?;
    Ok(out)
}

fn all<'py>(py: Python<'py>, infos: Vec<BackendInfo>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for info in infos {
        list.append(properties(py, info)?)?;
    }
    Ok(list)
}

/// Properties of a backend that a filter sees, for the constructor of `Offer`.
fn offer<'py>(py: Python<'py>, offer: &Offer) -> PyResult<Bound<'py, PyDict>> {
    let devices = PyList::empty(py);
    for device in &offer.devices {
        let out = PyDict::new(py);
        out.set_item("name", &device.name)?;
        out.set_item("memory", device.memory)?;
        out.set_item("uuid", &device.uuid)?;
        out.set_item("pci", &device.pci)?;
        devices.append(out)?;
    }
    let out = PyDict::new(py);
    out.set_item("name", &offer.properties.name)?;
    out.set_item("variant", &offer.properties.variant)?;
    out.set_item("version", &offer.properties.version)?;
    out.set_item("score", offer.score)?;
    out.set_item("device_type", PyDeviceType::of(offer.device_type))?;
    out.set_item("devices", devices)?;
    out.set_item("path", offer.path.as_os_str())?;
    Ok(out)
}

/// Tells the loader, once, of the directories that installed packages declare, and how to try a file
/// in a child process. No lock of the loader is held meanwhile, so the interpreter may be taken.
fn prepare(py: Python<'_>) -> PyResult<()> {
    static PREPARED: AtomicBool = AtomicBool::new(false);
    if PREPARED.load(Ordering::Acquire) {
        return Ok(());
    }
    let module = py.import("ultramarine.backends")?;
    let found = module.call_method0("_package_directories")?;
    for (path, package) in found.extract::<Vec<(PathBuf, String)>>()? {
        backends::add_search_directory(path, &format!("entry point of {package}"));
    }
    backends::set_probe_command(module.call_method0("_probe_command")?.extract()?);
    PREPARED.store(true, Ordering::Release);
    Ok(())
}

/// In a child process: tries a file, reports the outcome to the parent, and ends.
#[pyfunction]
fn _probe(py: Python<'_>, path: PathBuf) {
    py.detach(|| backends::probe_here(&path));
}

/// To be called before the core is asked for a GPU, which may load backends: without the
/// interpreter, which others want meanwhile.
pub fn before_gpu(py: Python<'_>) -> PyResult<()> {
    static READY: AtomicBool = AtomicBool::new(false);
    if READY.load(Ordering::Acquire) {
        return Ok(());
    }
    if backends::loads_by_itself() {
        prepare(py)?;
    }
    py.detach(|| backends::device_count(ultramarine::DeviceType::Gpu));
    READY.store(true, Ordering::Release);
    Ok(())
}

#[pyfunction]
fn _load(py: Python<'_>, path: PathBuf) -> Res<Bound<'_, PyDict>> {
    prepare(py)?;
    let file = std::path::absolute(&path).unwrap_or(path);
    let error = match py.detach(|| backends::load(&file)) {
        Ok(info) => return Ok(properties(py, info)?),
        Err(error) => error,
    };
    // Faults of the file or the system are an OSError, as it is for Python's own.
    let candidates = backends::report().candidates;
    let found = candidates.iter().find(|c| c.path == file);
    let code = found.and_then(|c| c.reason.as_ref()).map(|reason| reason.code);
    Err(match (found.map(|c| c.stage), code) {
        (_, Some(Code::Missing)) => Fail::Py(PyFileNotFoundError::new_err(error.to_string())),
        (Some(Stage::File | Stage::Open), _)
        | (_, Some(Code::NotALibrary | Code::CutShort | Code::Machine)) => {
            Fail::Py(PyOSError::new_err(error.to_string()))
        }
        _ => error.into(),
    })
}

#[pyfunction]
fn _load_best(py: Python<'_>, name: String) -> Res<Bound<'_, PyDict>> {
    prepare(py)?;
    Ok(properties(py, py.detach(|| backends::load_best(&name))?)?)
}

#[pyfunction]
fn _load_all<'py>(
    py: Python<'py>,
    allowed: Option<Vec<String>>,
    blocked: Vec<String>,
    filter: Option<Py<PyAny>>,
    duplicates: bool,
    probe: Option<bool>,
    probe_timeout: Option<f64>,
) -> Res<Bound<'py, PyList>> {
    if let Some(seconds) = probe_timeout {
        let limit = std::time::Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|limit| !limit.is_zero())
            .ok_or_else(|| value("probe_timeout: expected a positive number of seconds"))?;
        backends::set_probe_timeout(limit);
    }
    prepare(py)?;
    // The first exception of the filter: nothing is loaded any more, and it is raised in the end.
    let raised: Mutex<Option<PyErr>> = Mutex::new(None);
    let ask = |given: &Offer| -> ultramarine::Result<bool> {
        let mut raised = raised.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let asked = match (&filter, &*raised) {
            (None, _) => return Ok(true),
            (Some(_), Some(_)) => return Err(ultramarine::Error::Runtime("an exception".into())),
            (Some(filter), None) => Python::attach(|py| {
                let answer = filter.bind(py).call1((offer(py, given)?,))?;
                answer.is_truthy()
            }),
        };
        asked.map_err(|error| {
            let message = error.to_string();
            *raised = Some(error);
            ultramarine::Error::Runtime(message.into())
        })
    };
    let allowed: Option<Vec<&str>> =
        allowed.as_ref().map(|a| a.iter().map(String::as_str).collect());
    let blocked: Vec<&str> = blocked.iter().map(String::as_str).collect();
    let has_filter = filter.is_some();
    let loaded = py.detach(|| {
        backends::load_all(&LoadOptions {
            allowed: allowed.as_deref(),
            blocked: &blocked,
            filter: if has_filter { Some(&ask) } else { None },
            duplicates,
            probe,
        })
    });
    if let Some(error) = raised.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        return Err(Fail::Py(error));
    }
    Ok(all(py, loaded?)?)
}

#[pyfunction]
fn _report_json() -> String {
    backends::report_json()
}

#[pyfunction]
fn _report_table() -> String {
    backends::report_table()
}

/// The program shows the report, so that the log need not repeat its reasons.
#[pyfunction]
fn _show_report() {
    backends::show_report();
}

/// The directories that are searched, with the rule that each comes from.
#[pyfunction]
fn _search_paths(py: Python<'_>) -> PyResult<Vec<(std::ffi::OsString, String)>> {
    prepare(py)?;
    let paths = backends::search_paths().into_iter();
    Ok(paths.map(|s| (s.path.into_os_string(), s.rule.to_string())).collect())
}

#[pyfunction]
fn _set_search_paths(paths: Option<Vec<PathBuf>>) {
    backends::set_search_paths(paths);
}

#[pyfunction]
fn _backends(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    all(py, backends::backends())
}

#[pyfunction]
fn _backend_of(py: Python<'_>, device: DeviceArg) -> Res<Bound<'_, PyDict>> {
    Ok(properties(py, backends::get(device.get())?)?)
}

#[pyfunction]
fn _backend_named<'py>(py: Python<'py>, name: &str) -> Res<Bound<'py, PyDict>> {
    match backends::by_name(name) {
        Some(info) => Ok(properties(py, info)?),
        None => {
            let names: Vec<String> = backends::backends().into_iter().map(|b| b.name).collect();
            Err(value(format!(
                "No backend {name:?} is loaded. Loaded: {}. Load it by backends.load.",
                names.join(", ")
            )))
        }
    }
}

/// Counts of each operation, for the constructor of `OpCount`.
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

/// Counts of evaluation, by name.
#[pyfunction]
fn _stats(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let out = PyDict::new(py);
    for (name, count) in ultramarine::stats().named() {
        out.set_item(name, count)?;
    }
    Ok(out)
}

#[pyfunction]
fn _reset_stats() {
    ultramarine::reset_stats();
}

#[pyfunction]
fn _set_fusion(on: bool) {
    ultramarine::set_fusion(on);
}

#[pyfunction]
fn _fusion() -> bool {
    ultramarine::fusion()
}

#[pyfunction]
fn _set_executables(on: bool) {
    ultramarine::set_executables(on);
}

#[pyfunction]
fn _executables() -> bool {
    ultramarine::executables()
}

#[pyfunction]
fn _set_strict(on: bool, allow: Vec<String>) {
    let allow: Vec<&str> = allow.iter().map(String::as_str).collect();
    ultramarine::set_strict(on, &allow);
}

#[pyfunction]
fn _is_strict() -> bool {
    ultramarine::strict()
}

#[pyfunction]
fn _validation_findings() -> u64 {
    backends::validation_findings()
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    crate::functions!(m: _load _load_best _load_all _report_json _report_table _show_report _search_paths
        _set_search_paths _backends _backend_of _backend_named _op_counts _reset_op_counts
        _set_strict _is_strict _probe _validation_findings _stats _reset_stats _set_fusion _fusion
        _set_executables _executables);
    Ok(())
}
