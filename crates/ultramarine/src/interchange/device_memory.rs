//! Memory of backends' devices: tensors as buffers there, and buffers as tensors.

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

/// A tensor's memory as a buffer, and where the first element is in it.
type Placed = (BufferRef, usize);

/// A tensor that is taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub checked: Checked,
    pub dtype: Dtype,
    /// Where it is.
    pub home: Home,
    /// Where its array shall be; `None`: there.
    pub device: Option<Device>,
    /// As of [`super::ImportOptions`].
    pub copy: Option<bool>,
    /// The producer's stream behind whose present work the values are, if it did not make ours
    /// wait itself.
    pub after: Option<u64>,
}

impl Arrival {
    fn here(&self) -> Device {
        match self.home {
            Home::Host => Device::CPU,
            Home::Device(device) => device,
        }
    }

    /// Returns true if it is in host memory and stays there.
    pub fn is_plain(&self) -> bool {
        self.home == Home::Host && self.device.is_none_or(|d| d == Device::CPU)
    }

    /// Takes the tensor's memory: on the device where its array shall be if that can see it, else
    /// where it is. The last part then says where it has to be copied to.
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

    /// Takes a tensor's memory into a device without a copy. Gives the tensor back where that
    /// cannot be.
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
            // There is nothing to share: the deleter runs now.
            return Buffer::new(0, state).map(|b| (b, 0)).map_err(|error| (Some(tensor), error));
        };
        let flags = tensor.flags();
        let context = Box::into_raw(Box::new(tensor));
        block.release = Some(release);
        block.context = context.cast();
        let made = match state.import(&block) {
            Ok(made) => made,
            Err(error) => {
                // SAFETY: a backend that refuses memory does not release it.
                return Err((Some(*unsafe { Box::from_raw(context) }), error));
            }
        };
        let address = if kinds::is_address(block.kind) { block.handle } else { 0 };
        let buffer = Buffer::imported(made, (address, block.bytes as usize), flags, state);
        // The host's memory is ready; the device's is once its producer's work is done.
        if matches!(self.home, Home::Device(_)) {
            self.arrive(&buffer, state).map_err(|error| (None, error))?;
        }
        Ok((buffer, offset))
    }

    /// The tensor's memory in the words of the contract, and where the first element is in it.
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
        // Valid tensors' offsets and extents were seen to fit.
        let start = header.byte_offset as usize;
        let (handle, bytes, offset, first) = if kinds::is_address(kind) {
            let first = header.data as usize + start;
            (first - below, bytes, below, first)
        } else if start >= below {
            // A handle stands for the memory from its beginning.
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
        // Devices load whole elements, and may stop for good at one that is not aligned.
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

    /// Has those who use the buffer wait for what the producer still does: our present stream
    /// does, and they do for a point of it.
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
            // SAFETY: the stream that this submission was given.
            Some(foreign) => unsafe { stream.wait_foreign(native, foreign) },
            None => Ok(()),
        })
    }
}

/// The end of an import: the backend's buffer is gone.
unsafe extern "C" fn release(context: *mut c_void) {
    if backend::shutdown::ended().is_some() {
        // In a forked child it is the parent's; at the exit its library may be gone.
        return;
    }
    // SAFETY: the context of an import that succeeded, released once.
    deferred_deleters::drop_outside(unsafe { Box::from_raw(context.cast::<ManagedTensor>()) });
}

/// A tensor in host memory.
pub(super) fn host(tensor: ManagedTensor, checked: &Checked) -> Placed {
    let header = tensor.tensor();
    let lowest = (header.data as *mut u8)
        .wrapping_add(header.byte_offset as usize)
        .wrapping_sub(checked.below);
    (Buffer::from_tensor(lowest, checked.bytes, tensor), checked.below)
}

/// The stream of a device that work of this thread joins.
fn present(state: &'static DeviceState) -> Result<&'static DeviceStream> {
    state.stream(stream::default_stream(state.device)?)
}

/// Returns the stream that a producer makes wait, as `stream` of its `__dlpack__`: the stream that
/// work of this thread joins on the tensor's device. `None` if the device has no streams that
/// libraries share, as the host.
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

/// Returns the native stream that work of this thread joins on a device; NULL if it has none, and
/// for the CPU.
///
/// # Errors
/// [`Error::BufferDevice`] when no loaded backend serves the device.
pub fn current_work_stream(device: DLDevice) -> Result<*mut c_void> {
    Ok(consumer_stream(device)?.map_or(std::ptr::null_mut(), |n| n as *mut c_void))
}

/// Makes the stream of [`current_work_stream`] wait for an array's values. So the array can be
/// given to a consumer that asks for no other order (exported with the stream -1). If there is no
/// such stream, the host waits.
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
        // Its last write is on that stream itself.
        Some(_) if value.buffer.written().is_some_and(|u| std::ptr::eq(u.stream, stream)) => Ok(()),
        Some(_) => {
            stream.submit("__dlpack__", iter::once(&*value.buffer), iter::empty(), |_| Ok(()))
        }
        None => array.eval(),
    }
}

/// The array in memory of its own on a device, computed.
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
    // Of a view of little of its memory only that travels.
    let packed = if array.nbytes() < value.buffer.bytes() { alone(array)? } else { array.clone() };
    let value = packed.value()?;
    let buffer = backend::copy_buffer(&value.buffer, devices::get(device)?, None)?;
    let strides = Strides::from_slice(&value.strides);
    let value = Value { buffer, offset: value.offset, strides };
    Ok(Array::given(value, array.shape().into(), array.dtype()))
}

/// Behind whose present work an exported buffer is free to be used when it comes back: consumers
/// let go of it when they have submitted what uses it.
enum Behind {
    /// A stream of ours, on which the consumer works.
    Ours(&'static DeviceStream),
    /// Streams of theirs.
    Theirs {
        state: &'static DeviceState,
        /// The device's default stream.
        default: Option<u64>,
        /// The one that they named, if something keeps it alive.
        named: Option<(u64, StreamKeeper)>,
    },
}

impl Behind {
    /// `None`: consumers have done their work, or nobody can tell.
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

    /// Has whoever uses the buffer next, or its memory, wait.
    fn settle(self, buffer: &Buffer) -> Result<()> {
        let (stream, default, named) = match self {
            Behind::Ours(stream) => return stream.mark_written("__dlpack__", buffer),
            Behind::Theirs { state, default, named } => (state.returns()?, default, named),
        };
        stream.submit("__dlpack__", iter::empty(), iter::once(buffer), |native| {
            // SAFETY: the stream that this submission was given, here and below.
            let wait = |foreign| unsafe { stream.wait_foreign(native, foreign) };
            if let Some((named, _)) = &named {
                // Fails where a graph is being captured from it: nothing runs then that could be waited for.
                let _ = wait(*named);
            }
            default.map_or(Ok(()), wait)
        })
    }
}

/// Owner of an exported buffer, on behalf of a consumer.
struct Lent {
    block: Option<ForeignMemory>,
    behind: Option<Behind>,
    buffer: Export,
}

// SAFETY: the backend's release may be called on any thread; exports may be dropped there too.
unsafe impl Send for Lent {}
// SAFETY: as above; nothing of it is used through references.
unsafe impl Sync for Lent {}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(behind), None) = (self.behind.take(), backend::shutdown::ended()) {
            // A failure is reported to waits for later values.
            let _ = behind.settle(self.buffer.buffer());
        }
        if let Some(ForeignMemory { release: Some(release), context, .. }) = self.block
            && backend::shutdown::ended().is_none()
        {
            // SAFETY: the backend's own function with its own argument, once; the buffer lives.
            unsafe { release(context) };
        }
    }
}

/// The tensor of a value on a device of a backend.
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
    // Whoever gets the memory may also write to it: those who read it still come first.
    let uses = buffer.uses();
    match waiting {
        // Only a failure of the one that writes it matters.
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
    // SAFETY: the owner keeps the buffer, which is as the value and the backend say.
    Ok(unsafe { managed(owner, &description, kind) })
}
