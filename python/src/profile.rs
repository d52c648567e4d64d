//! Profiles of evaluations.

use crate::dtype;
use crate::error::{Fail, Res};
use crate::stream::PyDevice;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use ultramarine::profile::{Event, Profile, Report, Tensor};

enum State {
    New,
    Running(Profile),
    /// It ended, and its report is being made.
    Ending,
    Done(Arc<Report>),
}

fn error(text: &str) -> Fail {
    Fail::Py(PyRuntimeError::new_err(format!("[profile] {text}")))
}

/// Context manager that records what evaluations run, where, and for how long; made by `profile`.
///
/// A profile is of the whole process: evaluations of all threads that begin inside of the `with` statement are
/// recorded. Its end waits for all streams.
///
/// Example:
///     >>> with mx.profile() as p:
///     ...     mx.eval(mx.ones(3) * 2)
///     >>> isinstance(p, mx.Profile)
///     True
#[pyclass(name = "Profile", module = "ultramarine", frozen)]
pub struct PyProfile(Mutex<State>);

impl PyProfile {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self) -> Res<Arc<Report>> {
        match &*self.state() {
            State::Done(report) => Ok(report.clone()),
            State::New => Err(error(
                "Nothing was recorded. Evaluate arrays inside of `with mx.profile() as p:`, and ask p afterwards.",
            )),
            _ => Err(error("The profile is still running. Leave its `with` statement first.")),
        }
    }
}

#[pymethods]
impl PyProfile {
    fn __enter__(slf: PyRef<'_, Self>) -> Res<PyRef<'_, Self>> {
        let py = slf.py();
        let mut state = slf.state();
        if !matches!(*state, State::New) {
            return Err(error("A profile can be used once. Make another with `mx.profile()`."));
        }
        // Devices are asked for the time; no lock that Python code may want is held.
        *state = State::Running(py.detach(ultramarine::profile)?);
        drop(state);
        Ok(slf)
    }

    #[pyo3(signature = (exc_type=None, exc_value=None, traceback=None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: Option<&Bound<'_, PyAny>>,
        exc_value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> Res<()> {
        let _ = (exc_type, exc_value, traceback);
        let running = {
            let mut state = self.state();
            match std::mem::replace(&mut *state, State::Ending) {
                State::Running(running) => running,
                other => {
                    *state = other;
                    return Err(error(
                        "The profile is not running. Use it as `with mx.profile() as p:`.",
                    ));
                }
            }
        };
        let report = py.detach(|| running.finish());
        *self.state() = State::Done(Arc::new(report.unwrap_or_default()));
        Ok(())
    }

    /// Returns the events by operation, tensors, device and means, those that took the longest first, as text.
    ///
    /// Columns: the operation, or those of a fused program joined by `+`; dtypes and shapes; device; `native`,
    /// `decomposed` (by simpler operations), `fallback` (on the CPU) or `view` (without a command); the clock: `device`,
    /// `host`, or `submission` for a backend without a clock, whose times are those of the submission; number of calls, and
    /// of those that replayed a compiled function's commands; total and mean time, bytes read and written, and both per
    /// second. Calls of compiled functions have no rows of their own, but their operations have.
    ///
    /// Args:
    ///     limit (int | None): Most rows; by default all.
    ///
    /// Returns:
    ///     str: Table.
    ///
    /// Raises:
    ///     RuntimeError: If the profile has not ended.
    ///
    /// Example:
    ///     >>> with mx.profile() as p:
    ///     ...     mx.eval(mx.sum(mx.ones((2, 3)), axis=1))
    ///     >>> "sum" in p.table()
    ///     True
    #[pyo3(signature = (limit=None))]
    fn table(&self, limit: Option<usize>) -> Res<String> {
        Ok(self.report()?.table(limit.unwrap_or(usize::MAX)))
    }

    /// Returns one dictionary for each task, in the order in which the host was done with them: parts of a
    /// decomposition, and operations of a compiled function's call, before the whole. Their `depth` is above 0.
    ///
    /// Keys: `op` (str; of a fused program the last), `fused` (list of str, empty for an operation by itself), `inputs` and
    /// `outputs` (lists of tuples of shape and dtype), `device`, `backend`, `stream` (int), `dispatch` ("native",
    /// "decomposed", "fallback", "view"; "compiled" for the call of a compiled function), `depth`, `part` (bool: in a
    /// decomposition, whose time has this in it), `replayed` (bool: by recorded commands of a compiled function), `commands`,
    /// `bytes_read`, `bytes_written`, `clock` ("device", "host", "submission"), `start_ns` and `duration_ns` by that clock,
    /// `host_start_ns` and `host_duration_ns` by the host's, and `thread`. Times are in nanoseconds since the profile began.
    ///
    /// Returns:
    ///     list[dict[str, Any]]: Tasks.
    ///
    /// Raises:
    ///     RuntimeError: If the profile has not ended.
    ///
    /// Example:
    ///     >>> with mx.profile() as p:
    ///     ...     mx.eval(mx.sum(mx.ones((2, 3)), axis=1))
    ///     >>> [(e["op"], e["outputs"][0][0]) for e in p.events()]
    ///     [('full', (2, 3)), ('sum', (2, 1)), ('reshape', (2,))]
    fn events<'py>(&self, py: Python<'py>) -> Res<Bound<'py, PyList>> {
        let report = self.report()?;
        let list = PyList::empty(py);
        for event in report.events() {
            list.append(dictionary(py, event)?)?;
        }
        Ok(list)
    }

    /// Writes the events as JSON in Chrome's trace event format, which Perfetto (ui.perfetto.dev) and `chrome://tracing`
    /// show: a row for each stream of a device, and one for each thread of the host with planning and submissions.
    ///
    /// Args:
    ///     path (str | PathLike[str]): File.
    ///
    /// Raises:
    ///     RuntimeError: If the profile has not ended.
    ///     OSError: If the file cannot be written.
    ///
    /// Example:
    ///     >>> with mx.profile() as p:
    ///     ...     mx.eval(mx.sum(mx.ones((2, 3)), axis=1))
    ///     >>> p.save("trace.json")
    fn save(&self, py: Python<'_>, path: PathBuf) -> Res<()> {
        let report = self.report()?;
        let trace = py.detach(|| report.trace());
        Ok(std::fs::write(&path, trace).map_err(|e| match e.raw_os_error() {
            // Python makes FileNotFoundError and so on of the number.
            Some(code) => PyOSError::new_err((code, e.to_string(), path.into_os_string())),
            None => e.into(),
        })?)
    }

    fn __str__(&self) -> String {
        self.report().map_or_else(|_| self.__repr__(), |report| report.to_string())
    }

    fn __repr__(&self) -> String {
        match &*self.state() {
            State::New => "<ultramarine.Profile: not started>".to_owned(),
            State::Running(_) | State::Ending => "<ultramarine.Profile: running>".to_owned(),
            State::Done(report) => {
                format!("<ultramarine.Profile: {} tasks>", report.events().len())
            }
        }
    }
}

fn tensors<'py>(py: Python<'py>, tensors: &[Tensor]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for tensor in tensors {
        let shape = PyTuple::new(py, &tensor.shape[..])?;
        list.append((shape, dtype::object(py, tensor.dtype)?))?;
    }
    Ok(list)
}

fn dictionary<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("op", event.op)?;
    out.set_item("fused", &event.fused)?;
    out.set_item("inputs", tensors(py, &event.inputs)?)?;
    out.set_item("outputs", tensors(py, &event.outputs)?)?;
    out.set_item("device", PyDevice(event.device))?;
    out.set_item("backend", event.backend)?;
    out.set_item("stream", event.stream)?;
    out.set_item("dispatch", event.dispatch.name())?;
    out.set_item("depth", event.depth)?;
    out.set_item("part", event.part)?;
    out.set_item("replayed", event.replayed)?;
    out.set_item("commands", event.commands)?;
    out.set_item("bytes_read", event.bytes_read)?;
    out.set_item("bytes_written", event.bytes_written)?;
    out.set_item("clock", event.clock.name())?;
    out.set_item("start_ns", event.start)?;
    out.set_item("duration_ns", event.duration)?;
    out.set_item("host_start_ns", event.host_start)?;
    out.set_item("host_duration_ns", event.host_duration)?;
    out.set_item("thread", event.thread)?;
    Ok(out)
}

/// Returns a context manager that records what evaluations run: each operation with its shapes, device, means, bytes
/// and time.
///
/// Devices note the times themselves where their backend can, so that nothing waits for them. One profile runs at a time
/// in a process. Evaluate what is to be recorded inside: lazy arrays that are evaluated later are not.
///
/// Returns:
///     Profile: Context manager, which has the table, the events and the trace file when it has ended.
///
/// Example:
///     >>> with mx.profile() as p:
///     ...     mx.eval(mx.exp(mx.array([1.0, 2.0])) + 1)
///     >>> [(e["fused"], e["dispatch"]) for e in p.events()]
///     [(['exp', 'add'], 'native')]
#[pyfunction]
fn profile() -> PyProfile {
    PyProfile(Mutex::new(State::New))
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyProfile>()?;
    crate::functions!(m: profile);
    Ok(())
}
