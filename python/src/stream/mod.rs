//! Devices and streams.

mod devices;

use crate::error::{Res, type_, value};
use crate::lease::Leased;
use pyo3::prelude::*;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use ultramarine::{Device, DeviceType, Scope, Stream, ThreadLocalStream, interchange};

fn hash_of(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Kind of a device, `cpu` or `gpu`. It stands for the first device of that kind; called with an
/// index, it gives any.
///
/// Example:
///     >>> mx.cpu(0)
///     Device(cpu, 0)
#[pyclass(name = "DeviceType", module = "ultramarine", frozen)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[allow(non_camel_case_types)]
pub enum PyDeviceType {
    cpu,
    gpu,
}

impl PyDeviceType {
    fn get(self) -> DeviceType {
        match self {
            PyDeviceType::cpu => DeviceType::Cpu,
            PyDeviceType::gpu => DeviceType::Gpu,
        }
    }

    /// The member for a type of the core.
    pub fn of(kind: DeviceType) -> PyDeviceType {
        match kind {
            DeviceType::Cpu => PyDeviceType::cpu,
            DeviceType::Gpu => PyDeviceType::gpu,
        }
    }
}

#[pymethods]
impl PyDeviceType {
    /// str: Name of the member.
    #[getter]
    fn name(&self) -> String {
        self.get().to_string()
    }

    /// int: Number of the member.
    #[getter]
    fn value(&self) -> usize {
        *self as usize
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        device_of(other).is_some_and(|d| d == Device { kind: self.get(), index: 0 })
    }

    fn __ne__(&self, other: &Bound<'_, PyAny>) -> bool {
        !self.__eq__(other)
    }

    fn __hash__(&self) -> u64 {
        hash_of(Device { kind: self.get(), index: 0 })
    }

    #[pyo3(signature = (index=0))]
    fn __call__(&self, index: isize) -> Res<PyDevice> {
        PyDevice::of(*self, index)
    }

    fn __reduce__(&self) -> String {
        self.name()
    }
}

/// Device: its kind, and its index among devices of that kind.
///
/// Args:
///     type (DeviceType): Kind of the device.
///     index (int): Index, from 0.
///
/// Raises:
///     ValueError: If the index does not fit into 16 bits.
///
/// Example:
///     >>> mx.Device(mx.cpu)
///     Device(cpu, 0)
///     >>> mx.Device(mx.cpu) == mx.cpu
///     True
#[pyclass(name = "Device", module = "ultramarine", frozen)]
pub struct PyDevice(pub Device);

#[pymethods]
impl PyDevice {
    #[new]
    #[pyo3(signature = (r#type, index = 0))]
    fn new(r#type: &Bound<'_, PyAny>, index: isize) -> Res<PyDevice> {
        let kind =
            r#type.cast::<PyDeviceType>().map_err(|_| type_("Device: expected a DeviceType"))?;
        PyDevice::of(*kind.get(), index)
    }

    /// DeviceType: Kind of the device.
    #[getter]
    fn r#type(&self) -> PyDeviceType {
        PyDeviceType::of(self.0.kind)
    }

    /// int: Index of the device among those of its kind.
    #[getter]
    fn index(&self) -> u16 {
        self.0.index
    }

    fn __repr__(&self) -> String {
        format!("Device({}, {})", self.0.kind, self.0.index)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        device_of(other) == Some(self.0)
    }

    fn __ne__(&self, other: &Bound<'_, PyAny>) -> bool {
        !self.__eq__(other)
    }

    fn __hash__(&self) -> u64 {
        hash_of(self.0)
    }

    fn __getnewargs__(&self) -> (PyDeviceType, u16) {
        (self.r#type(), self.0.index)
    }
}

impl PyDevice {
    fn of(kind: PyDeviceType, index: isize) -> Res<PyDevice> {
        let index = u16::try_from(index)
            .map_err(|_| value(format!("[Device] There is no index {index}. Use 0 to 65535.")))?;
        Ok(PyDevice(Device { kind: kind.get(), index }))
    }
}

fn device_of(object: &Bound<'_, PyAny>) -> Option<Device> {
    if let Ok(kind) = object.cast::<PyDeviceType>() {
        return Some(Device { kind: kind.get().get(), index: 0 });
    }
    object.cast::<PyDevice>().ok().map(|d| d.get().0)
}

/// Sees to it that what serves a device has been looked for.
#[inline]
fn found(py: Python<'_>, device: Device) -> PyResult<()> {
    match device.kind {
        DeviceType::Cpu => Ok(()),
        DeviceType::Gpu => crate::backends::before_gpu(py),
    }
}

/// An argument that is a device or a device type.
pub struct DeviceArg(pub Device);

impl DeviceArg {
    /// The device; of a type, its first.
    pub fn get(&self) -> Device {
        self.0
    }
}

impl FromPyObject<'_, '_> for DeviceArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let Some(device) = device_of(&object) else {
            return Err(type_(format!(
                "expected a Device or DeviceType, got {}",
                crate::error::type_name(&object)
            ))
            .into());
        };
        found(object.py(), device)?;
        Ok(DeviceArg(device))
    }
}

/// Ordered queue of work on a device. Made by `new_stream`.
///
/// Example:
///     >>> mx.new_stream(mx.cpu).device
///     Device(cpu, 0)
#[pyclass(name = "Stream", module = "ultramarine", frozen)]
pub struct PyStream(Leased);

impl PyStream {
    fn get(&self) -> Stream {
        self.0.stream()
    }
}

/// Stream of each thread's own: where a stream is asked for, it is the calling thread's.
///
/// Made by `new_thread_local_stream`.
///
/// Example:
///     >>> stream = mx.new_thread_local_stream(mx.cpu)
///     >>> mx.add(1, 2, stream=stream)
///     array(3, dtype=int32)
#[pyclass(name = "ThreadLocalStream", module = "ultramarine", frozen)]
pub struct PyThreadLocalStream(ThreadLocalStream);

impl PyThreadLocalStream {
    fn get(&self) -> ThreadLocalStream {
        self.0
    }
}

/// The methods of a class of streams, with the docstrings of its getters.
macro_rules! stream_methods {
    ($class:ident, $name:literal, $device:literal, $index:literal) => {
        #[pymethods]
        impl $class {
            #[doc = $device]
            #[getter]
            fn device(&self) -> PyDevice {
                PyDevice(self.get().device)
            }

            #[doc = $index]
            #[getter]
            fn index(&self) -> u32 {
                self.get().index
            }

            fn __repr__(&self) -> String {
                let Device { kind, index } = self.get().device;
                format!("{}(Device({kind}, {index}), {})", $name, self.get().index)
            }

            fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
                other.cast::<$class>().is_ok_and(|s| s.get().get() == self.get())
            }

            fn __ne__(&self, other: &Bound<'_, PyAny>) -> bool {
                !self.__eq__(other)
            }

            fn __hash__(&self) -> u64 {
                hash_of(self.get())
            }
        }
    };
}

stream_methods!(
    PyStream,
    "Stream",
    "Device: Device of the stream.",
    "int: Index of the stream, unique among streams that are in use."
);

#[pymethods]
impl PyStream {
    /// int | None: Number by which other libraries know the stream, such as the address of a CUDA stream for
    /// `torch.cuda.ExternalStream`; None on the CPU and on devices whose streams no other library knows.
    #[getter]
    fn native(&self, py: Python<'_>) -> Res<Option<isize>> {
        let stream = self.get();
        let native = || interchange::consumer_stream(interchange::dl_device(stream.device)?);
        Ok(py.detach(|| ultramarine::with_stream(stream, native))?)
    }
}
stream_methods!(
    PyThreadLocalStream,
    "ThreadLocalStream",
    "Device: Device of the streams.",
    "int: Index, unique among thread-local streams."
);

/// The `stream=` of an operation: a stream, or a device's default stream.
pub struct StreamArg(Leased);

impl StreamArg {
    /// The stream.
    pub fn get(&self) -> Stream {
        self.0.stream()
    }
}

impl FromPyObject<'_, '_> for StreamArg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(s) = object.cast::<PyStream>() {
            return Ok(StreamArg(s.get().0.clone()));
        }
        if let Ok(s) = object.cast::<PyThreadLocalStream>() {
            return Ok(StreamArg(Leased::for_good(s.get().0.stream())));
        }
        match device_of(&object) {
            Some(d) => {
                found(object.py(), d)?;
                let stream = ultramarine::default_stream(d);
                let stream = stream.map_err(|e| crate::error::exception(&e))?;
                Ok(StreamArg(Leased::for_good(stream)))
            }
            None => Err(type_(format!(
                "expected a Stream, Device, DeviceType or None, got {}",
                crate::error::type_name(&object)
            ))
            .into()),
        }
    }
}

/// Calls `f` with operations going to `stream`, if one is given.
#[inline]
pub fn on<T>(stream: Option<StreamArg>, f: impl FnOnce() -> T) -> T {
    match stream {
        None => f(),
        Some(StreamArg(leased)) => ultramarine::with_stream(leased.stream(), f),
    }
}

/// The stream of a function that takes `stream=` and `device=`: a device stands for its default
/// stream; both may be given if they agree.
pub fn placed_on(stream: Option<StreamArg>, device: Option<DeviceArg>) -> Res<Option<StreamArg>> {
    match (stream, device) {
        (stream, None) => Ok(stream),
        (None, Some(DeviceArg(device))) => {
            Ok(Some(StreamArg(Leased::for_good(ultramarine::default_stream(device)?))))
        }
        (Some(StreamArg(leased)), Some(DeviceArg(device))) => match leased.stream().device {
            same if same == device => Ok(Some(StreamArg(leased))),
            other => Err(value(format!(
                "The stream is of {other} but the device is {device}. Give one of them."
            ))),
        },
    }
}

crate::context_manager! {
    /// Context manager in which operations use a stream.
    ///
    /// Args:
    ///     s (Stream | ThreadLocalStream | Device | DeviceType): Stream, or device whose default
    ///         stream is meant.
    ///
    /// Example:
    ///     >>> with mx.StreamContext(mx.cpu):
    ///     ...     y = mx.add(1, 2)
    ///     >>> y
    ///     array(3, dtype=int32)
    StreamContext("StreamContext"): StreamArg => Leased, Scope
}

/// Returns a context manager in which operations use a stream.
///
/// Args:
///     s (Stream | ThreadLocalStream | Device | DeviceType): Stream, or device whose default
///         stream is meant.
///
/// Returns:
///     StreamContext: Context manager.
///
/// Example:
///     >>> with mx.stream(mx.cpu):
///     ...     y = mx.ones(2) + 1
#[pyfunction]
fn stream(s: StreamArg) -> StreamContext {
    StreamContext(s.0)
}

/// Returns the default stream of a device.
///
/// Args:
///     device (Device | DeviceType): Device.
///
/// Returns:
///     Stream: The stream that operations on the device use unless one is given.
///
/// Raises:
///     ValueError: If there is no such device.
///
/// Example:
///     >>> mx.default_stream(mx.cpu).device
///     Device(cpu, 0)
#[pyfunction]
fn default_stream(device: DeviceArg) -> Res<PyStream> {
    Ok(PyStream(Leased::of(ultramarine::default_stream(device.0)?)))
}

/// Makes a stream the default one of its device.
///
/// Threads that already used the former one keep it until they change device. The stream is kept
/// to the end of the process.
///
/// Args:
///     stream (Stream): Stream.
///
/// Example:
///     >>> former = mx.default_stream(mx.cpu)
///     >>> mx.set_default_stream(mx.new_stream(mx.cpu))
///     >>> mx.set_default_stream(former)
#[pyfunction]
fn set_default_stream(stream: &Bound<'_, PyStream>) {
    let leased = &stream.get().0;
    // Threads remember default streams.
    leased.keep();
    ultramarine::set_default_stream(leased.stream());
}

/// Makes a new stream on a device. Any thread may use it.
///
/// When nothing refers to the stream any more it is given back, and a later call may return it
/// again. Work that it was given is done, and arrays that are to be computed there are, too.
///
/// Args:
///     device (Device | DeviceType): Device of the stream.
///
/// Returns:
///     Stream: The stream.
///
/// Raises:
///     ValueError: If there is no such device.
///
/// Example:
///     >>> s = mx.new_stream(mx.cpu)
///     >>> mx.add(1, 2, stream=s)
///     array(3, dtype=int32)
#[pyfunction]
fn new_stream(device: DeviceArg) -> Res<PyStream> {
    Ok(PyStream(Leased::new(ultramarine::new_stream(device.0)?)))
}

/// Makes a stream of each thread's own on a device.
///
/// Args:
///     device (Device | DeviceType): Device of the streams.
///
/// Returns:
///     ThreadLocalStream: The stream, which each thread that uses it has for itself.
///
/// Raises:
///     ValueError: If there is no such device.
///
/// Example:
///     >>> stream = mx.new_thread_local_stream(mx.cpu)
///     >>> mx.add(1, 2, stream=stream)
///     array(3, dtype=int32)
#[pyfunction]
fn new_thread_local_stream(device: DeviceArg) -> Res<PyThreadLocalStream> {
    Ok(PyThreadLocalStream(ThreadLocalStream::new(device.0)?))
}

/// Waits for the streams that the calling thread made, and forgets them.
///
/// Thread-local ones begin anew. Arrays and other threads that use one of the streams may go
/// on.
///
/// Example:
///     >>> y = mx.add(1, 2, stream=mx.new_stream(mx.cpu))
///     >>> mx.eval(y)
///     >>> mx.clear_streams()
#[pyfunction]
fn clear_streams(py: Python<'_>) -> Res<()> {
    Ok(py.detach(ultramarine::clear_streams)?)
}

/// Waits until a stream has completed all its work.
///
/// Args:
///     stream (Stream | ThreadLocalStream | Device | DeviceType | None): Stream, or device
///         whose default stream is meant; by default that of the default device.
///
/// Raises:
///     RuntimeError: If the device failed, or work that `async_eval` began did; what failed first
///         and was not raised yet is raised, with the type of its own error, once.
///
/// Example:
///     >>> mx.async_eval(mx.ones(3) + 1)
///     >>> mx.synchronize()
#[pyfunction]
#[pyo3(signature = (stream=None))]
fn synchronize(py: Python<'_>, stream: Option<StreamArg>) -> Res<()> {
    let stream = match stream {
        Some(s) => s.get(),
        None => ultramarine::default_stream(ultramarine::default_device())?,
    };
    py.detach(|| ultramarine::synchronize(stream))?;
    Ok(())
}

pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<PyDevice>()?;
    m.add_class::<PyDeviceType>()?;
    m.add_class::<PyStream>()?;
    m.add_class::<PyThreadLocalStream>()?;
    m.add_class::<StreamContext>()?;
    let class = m.py().get_type::<PyDeviceType>();
    m.add("cpu", class.getattr("cpu")?)?;
    m.add("gpu", class.getattr("gpu")?)?;
    devices::register(m)?;
    crate::functions!(m: stream default_stream set_default_stream new_stream new_thread_local_stream clear_streams
        synchronize);
    m.add("new_thread_unsafe_stream", m.getattr("new_stream")?)?;
    Ok(())
}
