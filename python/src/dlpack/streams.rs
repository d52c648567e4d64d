//! Streams of consumers that can be kept alive: those of torch and cupy.

use pyo3::intern;
use pyo3::prelude::*;
use std::sync::Arc;
use ultramarine::interchange::{DLDevice, StreamKeeper, dlpack::device_type};

/// The module of that name, if it was imported.
pub fn imported<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py.import("sys")?.getattr(intern!(py, "modules"))?;
    let found = modules.call_method1(intern!(py, "get"), (name,))?;
    Ok((!found.is_none()).then_some(found))
}

/// Returns what keeps a stream of a device alive, if it is the one that torch or cupy works on now.
pub fn keeper(py: Python<'_>, device: DLDevice, stream: isize) -> Option<StreamKeeper> {
    use device_type::{CUDA, CUDA_MANAGED, ROCM};
    if !matches!(device.device_type, CUDA | CUDA_MANAGED | ROCM) {
        return None;
    }
    /// CUDA's default streams, the old one and those of threads, which nothing has to keep.
    const DEFAULT: [isize; 2] = [1, 2];
    if device.device_type != ROCM && DEFAULT.contains(&stream) {
        return None;
    }
    let libraries = [torch_stream, cupy_stream];
    // One that cannot say what it works on does not say it.
    let mut found = libraries.iter().filter_map(|ask| ask(py, device.device_id).ok().flatten());
    let (object, _) = found.find(|(_, handle)| *handle == stream)?;
    Some(Arc::new(object))
}

/// A stream that its object keeps alive, and its handle.
type Kept = Option<(Py<PyAny>, isize)>;

fn torch_stream(py: Python<'_>, device: i32) -> PyResult<Kept> {
    let Some(torch) = imported(py, "torch")? else { return Ok(None) };
    let cuda = torch.getattr(intern!(py, "cuda"))?;
    if !cuda.call_method0(intern!(py, "is_initialized"))?.is_truthy()? {
        return Ok(None);
    }
    let current = cuda.call_method1(intern!(py, "current_stream"), (device,))?;
    let handle = current.getattr(intern!(py, "cuda_stream"))?.extract::<isize>()?;
    // The id of a stream that is not torch's own is its handle. (torch's own live as long as the process.)
    let is_external = current.getattr(intern!(py, "stream_id"))?.extract::<isize>()? == handle;
    Ok((!is_external).then(|| (current.unbind(), handle)))
}

fn cupy_stream(py: Python<'_>, device: i32) -> PyResult<Kept> {
    let Some(cupy) = imported(py, "cupy")? else { return Ok(None) };
    let cuda = cupy.getattr(intern!(py, "cuda"))?;
    let current = cuda.call_method1(intern!(py, "get_current_stream"), (device,))?;
    // An `ExternalStream` is somebody else's.
    if !current.is_instance(&cuda.getattr(intern!(py, "Stream"))?)? {
        return Ok(None);
    }
    let handle = current.getattr(intern!(py, "ptr"))?.extract::<isize>()?;
    Ok(Some((current.unbind(), handle)))
}
