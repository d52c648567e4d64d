//! Memory of backends' devices: tensors imported as buffers, and buffers exported as tensors.

use super::device::{self, Home};
use super::export::{Kind, StreamKeeper, managed};
use super::kinds::{self, Waiting};
use crate::backend::buffer::{Buffer, BufferRef, Export};
use crate::backend::{self, DeviceState, DeviceStream};
use crate::error::{Error, Result};
use crate::{
    array::Array, device::Device, devices, dtype::Dtype, memory::deferred_deleters, node::Value,
    ops, shape::Strides, stream,
};
use core::ffi::c_void;
use std::iter;
use std::sync::Arc;
use ultramarine_abi::dlpack::{Checked, DLDevice, Description, ManagedTensor, flag};
use ultramarine_abi::interface::memory::{self, ForeignMemory, kind};

/// A tensor's memory as a buffer, and the offset of its first element.
type Placed = (BufferRef, usize);

/// A tensor that is being imported.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub checked: Checked,
    pub dtype: Dtype,
    /// The tensor's place.
    pub home: Home,
    /// The device for its array; `None`: the tensor's own device.
    pub device: Option<Device>,
    /// As in [`super::ImportOptions`].
    pub copy: Option<bool>,
    /// The producer's stream. The values are valid after its present work. `None` if the producer already made our
    /// stream wait.
    pub after: Option<u64>,
}

impl Arrival {
    fn here(&self) -> Device {
        match self.home {
            Home::Host => Device::CPU,
            Home::Device(device) => device,
        }
    }

    /// Returns true if the tensor is in host memory and stays there.
    pub fn is_plain(&self) -> bool {
        self.home == Home::Host && self.device.is_none_or(|d| d == Device::CPU)
    }

    /// Takes the tensor's memory. It goes to the device that the array needs if that device can access the memory; else
    /// it stays in place, and the last result names the device to copy it to.
    pub fn take(&self, mut tensor: ManagedTensor) -> Result<(BufferRef, usize, Option<Device>)> {
        let here = self.here();
        let target = self.device.unwrap_or(here);
        let seen = here == Device::CPU && self.copy != Some(true);
        if here == target || seen {
            match self.import(tensor, target) {
                Ok((buffer, offset)) => return Ok((buffer, offset, None)),
                Err((Some(back), _)) if here != target && self.copy != Some(false) => tensor = back,
                Err((_, error)) => return Err(error),
            }
        } else if self.copy == Some(false) {
            return Err(Error::buffer(
                "from_dlpack",
                format!(
                    "The tensor is on {here}, and cannot get to {target} without a copy. Leave out copy=False."
                ),
            ));
        }
        let (buffer, offset) = match self.home {
            Home::Host => host(tensor, &self.checked),
            Home::Device(_) => self.import(tensor, here).map_err(|(_, error)| error)?,
        };
        Ok((buffer, offset, Some(target)))
    }

    /// Imports a tensor's memory to a device without a copy. Returns the tensor if this is impossible.
    fn import(
        &self,
        tensor: ManagedTensor,
        device: Device,
    ) -> Result<Placed, (Option<ManagedTensor>, Error)> {
        let found = devices::get(device).and_then(|state| {
            let block =
                if self.checked.elements == 0 { None } else { Some(self.block(&tensor, state)?) };
            Ok((state, block))
        });
        let (state, block) = match found {
            Ok(found) => found,
            Err(error) => return Err((Some(tensor), error)),
        };
        let Some((mut block, offset)) = block else {
            // An empty tensor has no memory to share, so the deleter runs now.
            return Buffer::new(0, state).map(|b| (b, 0)).map_err(|error| (Some(tensor), error));
        };
        let flags = tensor.flags();
        let context = Box::into_raw(Box::new(tensor));
        block.release = Some(release);
        block.context = context.cast();
        let made = match state.import(&block) {
            Ok(made) => made,
            Err(error) => {
                // SAFETY: a backend that rejects memory does not release it.
                return Err((Some(*unsafe { Box::from_raw(context) }), error));
            }
        };
        let address = if kinds::is_address(block.kind) { block.handle } else { 0 };
        let buffer = Buffer::imported(made, (address, block.bytes as usize), flags, state);
        // Host memory is ready; device memory is ready once its producer's work is done.
        if matches!(self.home, Home::Device(_)) {
            self.arrive(&buffer, state).map_err(|error| (None, error))?;
        }
        Ok((buffer, offset))
    }

    /// The tensor's memory as the contract describes it, and the offset of its first element.
    fn block(&self, tensor: &ManagedTensor, state: &DeviceState) -> Result<(ForeignMemory, usize)> {
        let header = tensor.tensor();
        let (below, bytes) = (self.checked.below, self.checked.bytes);
        if !state.stores(self.dtype) {
            return Err(Error::buffer_device(
                "from_dlpack",
                format!("{} ({}) cannot hold {}.", state.device, state.backend, self.dtype),
            ));
        }
        let kind = match self.home {
            Home::Host => kind::HOST,
            Home::Device(_) => kinds::kind_of("from_dlpack", header.device.device_type)?,
        };
        // Validation has checked that offsets and extents of the tensor fit.
        let start = header.byte_offset as usize;
        let (handle, bytes, offset, first) = if kinds::is_address(kind) {
            let first = header.data as usize + start;
            (first - below, bytes, below, first)
        } else if start >= below {
            // A handle represents the memory from its beginning.
            (header.data as usize, start - below + bytes, start, start)
        } else {
            return Err(Error::buffer(
                "from_dlpack",
                format!(
                    "Elements lie {} bytes before the start of the memory. Export a copy of the tensor.",
                    below - start
                ),
            ));
        };
        // Devices load whole elements, and a misaligned one may stop them permanently.
        if !first.is_multiple_of(self.dtype.size()) {
            return Err(Error::buffer(
                "from_dlpack",
                format!(
                    "The memory is not aligned for {}: {} needs elements at multiples of {} bytes. Export a copy of the tensor.",
                    self.dtype,
                    state.device,
                    self.dtype.size()
                ),
            ));
        }
        let read_only = if tensor.is_read_only() { memory::flag::READ_ONLY } else { 0 };
        let block = ForeignMemory {
            size: size_of::<ForeignMemory>() as u32,
            kind,
            flags: read_only,
            reserved: 0,
            handle: handle as u64,
            offset: 0,
            bytes: bytes as u64,
            release: None,
            context: std::ptr::null_mut(),
            ready: 0,
        };
        Ok((block, offset))
    }

    /// Makes users of the buffer wait for the producer's pending work: our present stream waits for it, and users wait
    /// for a point on that stream.
    fn arrive(&self, buffer: &Buffer, state: &'static DeviceState) -> Result<()> {
        let stream = present(state)?;
        if stream.native().is_none() {
            return match self.after {
                Some(_) => Err(Error::buffer_device(
                    "from_dlpack",
                    format!(
                        "Backend {} cannot wait for streams of other libraries. Wait for the stream first, or copy to the CPU.",
                        state.backend
                    ),
                )),
                None => Ok(()),
            };
        }
        stream.submit("from_dlpack", iter::empty(), iter::once(buffer), |native| match self.after {
            // SAFETY: `native` is the stream of this submission.
            Some(foreign) => unsafe { stream.wait_foreign(native, foreign) },
            None => Ok(()),
        })
    }
}

/// Called by the backend when its buffer for the import is gone.
unsafe extern "C" fn release(context: *mut c_void) {
    if backend::shutdown::ended().is_some() {
        // In a forked child, the tensor belongs to the parent; at process exit, its library may be unloaded.
        return;
    }
    // SAFETY: the context of a successful import, which the backend releases once.
    deferred_deleters::drop_outside(unsafe { Box::from_raw(context.cast::<ManagedTensor>()) });
}

/// Imports a tensor in host memory.
pub(super) fn host(tensor: ManagedTensor, checked: &Checked) -> Placed {
    let header = tensor.tensor();
    let lowest = (header.data as *mut u8)
        .wrapping_add(header.byte_offset as usize)
        .wrapping_sub(checked.below);
    (Buffer::from_tensor(lowest, checked.bytes, tensor), checked.below)
}

/// The device stream that this thread's work is submitted to.
fn present(state: &'static DeviceState) -> Result<&'static DeviceStream> {
    state.stream(stream::default_stream(state.device)?)
}

/// Returns the stream that a producer has to make wait, as `stream` of its `__dlpack__`. It is the stream that this
/// thread's work joins on the tensor's device. `None` if the device, such as the host, has no streams that libraries
/// share.
///
/// # Errors
/// [`Error::BufferDevice`] when no loaded backend serves the device.
pub fn consumer_stream(device: DLDevice) -> Result<Option<isize>> {
    match device::home(device)? {
        Home::Host => Ok(None),
        Home::Device(ours) => {
            Ok(present(devices::get(ours)?)?.native().and_then(|n| isize::try_from(n).ok()))
        }
    }
}

/// Returns the native stream that this thread's work joins on a device. It is NULL for the CPU, and for a device
/// without native streams.
///
/// # Errors
/// [`Error::BufferDevice`] when no loaded backend serves the device.
pub fn current_work_stream(device: DLDevice) -> Result<*mut c_void> {
    Ok(consumer_stream(device)?.map_or(std::ptr::null_mut(), |n| n as *mut c_void))
}

/// Makes the stream of [`current_work_stream`] wait for an array's values. The array can then be given to a consumer
/// that requests no other ordering (exported with the stream -1). If there is no such stream, the host waits.
///
/// # Errors
/// As [`Array::eval`].
pub fn join_current_stream(array: &Array) -> Result<()> {
    crate::eval::submit(array)?;
    let Some(value) = array.node().value() else { return array.eval() };
    let state = devices::get(value.buffer.device())?;
    if state.is_host() || value.buffer.written().is_none() {
        return Ok(());
    }
    let stream = present(state)?;
    match stream.native() {
        // The array's last write is on that stream itself, so nothing has to wait.
        Some(_) if value.buffer.written().is_some_and(|u| std::ptr::eq(u.stream, stream)) => Ok(()),
        Some(_) => {
            stream.submit("__dlpack__", iter::once(&*value.buffer), iter::empty(), |_| Ok(()))
        }
        None => array.eval(),
    }
}

/// Computes the array in memory of its own on a device.
pub(super) fn fresh(array: &Array, device: Device) -> Result<Array> {
    let value = array.value()?;
    let here = value.buffer.device();
    let alone = |array: &Array| -> Result<Array> {
        let copy = crate::with_stream(stream::default_stream(here)?, || ops::copy::fresh(array));
        copy.eval()?;
        Ok(copy)
    };
    if here == device {
        return alone(array);
    }
    // If the array is a view of a small part of its memory, transfer only that part.
    let packed = if array.nbytes() < value.buffer.bytes() { alone(array)? } else { array.clone() };
    let value = packed.value()?;
    let buffer = backend::copy_buffer(&value.buffer, devices::get(device)?, None)?;
    let strides = Strides::from_slice(&value.strides);
    let value = Value { buffer, offset: value.offset, strides };
    Ok(Array::given(value, array.shape().into(), array.dtype()))
}

/// The work after which an exported buffer can be reused when the consumer returns it. Consumers release a buffer once
/// they have submitted the work that uses it.
enum Behind {
    /// A stream of Ultramarine, on which the consumer works.
    Ours(&'static DeviceStream),
    /// Streams of the consumer.
    Theirs {
        state: &'static DeviceState,
        /// The device's default stream.
        default: Option<u64>,
        /// The stream that the consumer named, if something keeps it alive.
        named: Option<(u64, StreamKeeper)>,
    },
}

impl Behind {
    /// `None` if consumers have finished their work, or if their work cannot be tracked.
    fn of(
        waiting: Waiting,
        state: &'static DeviceState,
        keeper: Option<StreamKeeper>,
    ) -> Result<Option<Behind>> {
        let Some(present) = present(state).ok().filter(|stream| stream.native().is_some()) else {
            return Ok(None);
        };
        let theirs = match waiting {
            Waiting::Host => return Ok(None),
            Waiting::Nobody => return Ok(Some(Behind::Ours(present))),
            Waiting::Stream(theirs) => theirs,
        };
        if let Some(stream) = state.stream_called(theirs) {
            return Ok(Some(Behind::Ours(stream)));
        }
        let default = kinds::default_stream(state.dl.device_type);
        let keeper = match keeper {
            Some(keeper) => Some(keeper),
            None => state.retain_foreign(theirs)?.map(|stream| Arc::new(stream) as StreamKeeper),
        };
        let named = keeper.map(|keeper| (theirs, keeper));
        let known = default.is_some() || named.is_some();
        Ok(known.then_some(Behind::Theirs { state, default, named }))
    }

    /// Makes the next user of the buffer, or of its memory, wait.
    fn settle(self, buffer: &Buffer) -> Result<()> {
        let (stream, default, named) = match self {
            Behind::Ours(stream) => return stream.mark_written("__dlpack__", buffer),
            Behind::Theirs { state, default, named } => (state.returns()?, default, named),
        };
        stream.submit("__dlpack__", iter::empty(), iter::once(buffer), |native| {
            // SAFETY: `native` is the stream of this submission, here and below.
            let wait = |foreign| unsafe { stream.wait_foreign(native, foreign) };
            if let Some((named, _)) = &named {
                // Fails while a graph is captured from the stream: then no running work exists to wait for.
                let _ = wait(*named);
            }
            default.map_or(Ok(()), wait)
        })
    }
}

/// Owner of an exported buffer, held by a consumer.
struct Lent {
    block: Option<ForeignMemory>,
    behind: Option<Behind>,
    buffer: Export,
}

// SAFETY: the backend's release may be called on any thread, and so may the drop of exports.
unsafe impl Send for Lent {}
// SAFETY: as above; its content is never used through shared references.
unsafe impl Sync for Lent {}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(behind), None) = (self.behind.take(), backend::shutdown::ended()) {
            // A failure is reported to the threads that wait for later values.
            let _ = behind.settle(self.buffer.buffer());
        }
        if let Some(ForeignMemory { release: Some(release), context, .. }) = self.block
            && backend::shutdown::ended().is_none()
        {
            // SAFETY: the backend's own function with its own argument, called once; the buffer is alive.
            unsafe { release(context) };
        }
    }
}

/// The tensor of a value on a backend's device.
pub(super) fn export(
    array: &Array,
    value: &Value,
    kind: Kind,
    flags: u64,
    waiting: Waiting,
    keeper: Option<StreamKeeper>,
) -> Result<ManagedTensor> {
    let buffer = &value.buffer;
    let state = devices::get(buffer.device())?;
    let block = match array.size() {
        0 => None,
        _ => {
            let kind = kinds::kind_of("__dlpack__", state.dl.device_type)?;
            Some(state.export(buffer, kind)?)
        }
    };
    let mut owner = Lent { block, behind: None, buffer: buffer.export() };
    if block.is_some() {
        owner.behind = Behind::of(waiting, state, keeper)?;
    }
    // The consumer may also write to the memory, so it waits for pending readers as well.
    let uses = buffer.uses();
    match waiting {
        // Only a failure of the write matters.
        Waiting::Host => uses.iter().for_each(|u| drop(u.wait())),
        Waiting::Stream(stream) => uses.iter().try_for_each(|u| u.signal(stream))?,
        Waiting::Nobody => {}
    }
    buffer.check()?;
    let description = Description {
        data: block.map_or(0, |b| b.handle) as *mut c_void,
        device: state.dl,
        dtype: array.dtype().to_dl(),
        shape: array.shape(),
        strides: &value.strides,
        byte_offset: block.map_or(0, |b| b.offset + value.offset as u64),
        flags: flags | if buffer.is_read_only() { flag::READ_ONLY } else { 0 },
    };
    // SAFETY: the owner keeps the buffer alive, and value and backend describe it correctly.
    Ok(unsafe { managed(owner, &description, kind) })
}
