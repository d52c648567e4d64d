//! Groups of devices in several processes, by the functions of `ultramarine.collective/1`.

use super::buffer::BufferRef;
use super::{DeviceState, DeviceStream, Exec, Operand, interface_of, shutdown};
use crate::error::{Error, Result};
use crate::{dtype::Dtype, host_table};
use core::ffi::c_void;
use std::sync::Arc;
use ultramarine_abi::interface::collective::{
    CollectiveCommand, CollectiveId, CollectiveInterface, INTERFACE,
};
use ultramarine_abi::{Error as ErrorObject, Status, status};

type Errors = *mut *mut ErrorObject;

/// The functions that a backend needs for groups.
#[derive(Clone, Copy)]
struct Functions {
    make_id: unsafe extern "C" fn(*mut c_void, *mut CollectiveId, Errors) -> Status,
    open: unsafe extern "C" fn(
        *mut c_void,
        *const CollectiveId,
        u32,
        u32,
        *mut *mut c_void,
        Errors,
    ) -> Status,
    split: unsafe extern "C" fn(
        *mut c_void,
        *mut c_void,
        u32,
        i32,
        *mut *mut c_void,
        Errors,
    ) -> Status,
    status: unsafe extern "C" fn(*mut c_void, *mut c_void, Errors) -> Status,
    place: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut u32, *mut u32, Errors) -> Status,
    run: unsafe extern "C" fn(
        *mut c_void,
        *mut c_void,
        *mut c_void,
        *const CollectiveCommand,
        u32,
        Errors,
    ) -> Status,
    abort: unsafe extern "C" fn(*mut c_void, *mut c_void),
    close: unsafe extern "C" fn(*mut c_void, *mut c_void),
}

/// A device whose backend supports groups of processes, by `ultramarine.collective/1`.
#[derive(Clone, Copy)]
pub struct Collectives {
    device: &'static DeviceState,
    functions: Functions,
}

/// A group of devices, one in each process. Dropping it ends the group.
pub struct CollectiveGroup {
    on: Collectives,
    handle: *mut c_void,
    /// A buffer to which each operation counts as writing, so that operations run one after the
    /// other even if they are on different streams.
    order: BufferRef,
}

// SAFETY: by the contract any thread may call. The caller makes sure that there is only one call of
// `run` at a time.
unsafe impl Send for CollectiveGroup {}
// SAFETY: as above.
unsafe impl Sync for CollectiveGroup {}

/// A collective or a message, for a [`CollectiveGroup`].
#[derive(Clone, Copy)]
pub struct CollectiveWork<'a> {
    /// One of [`ultramarine_abi::interface::collective::kind`].
    pub kind: u32,
    /// Dtype of input and output.
    pub dtype: Dtype,
    /// Rank of the other side of a message, otherwise 0.
    pub peer: usize,
    /// The number of elements of the input, or of the output if there is no input. Not 0.
    pub count: usize,
    /// The input, row-major on the device.
    pub input: Option<&'a Operand<'a>>,
    /// The output, row-major on the device.
    pub output: Option<&'a Operand<'a>>,
}

impl DeviceState {
    /// Returns the backend's interface for groups, if it has one.
    pub fn collectives(&'static self) -> Option<Collectives> {
        let found: CollectiveInterface = interface_of(&self.table, INTERFACE)?;
        let functions = Functions {
            make_id: found.make_id?,
            open: found.open?,
            split: found.split?,
            status: found.status?,
            place: found.place?,
            run: found.run?,
            abort: found.abort?,
            close: found.close?,
        };
        // Groups need streams that run ahead, because the host relies on the order of streams.
        (self.info.synchronous == 0).then_some(Collectives { device: self, functions })
    }
}

impl Collectives {
    /// The device.
    pub fn device(&self) -> &'static DeviceState {
        self.device
    }

    /// Checks that the backend finds its communication library.
    ///
    /// # Errors
    /// [`Error::Runtime`] with the reason and the remedy.
    pub fn check_library(&self) -> Result<()> {
        shutdown::check(self.device)?;
        let (none, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the device is open. If the pointer for the id is NULL, no id is made.
        let code = unsafe { (self.functions.make_id)(self.device.handle, none, &mut error) };
        host_table::check("make_id", code, error)
    }

    /// Makes the id of a new group.
    ///
    /// # Errors
    /// [`Error::Runtime`] with the remedy if the backend does not find its communication library.
    pub fn make_id(&self) -> Result<Vec<u8>> {
        shutdown::check(self.device)?;
        let (mut id, mut error) = (CollectiveId::default(), std::ptr::null_mut());
        // SAFETY: the device is open, and the places are valid.
        let code = unsafe { (self.functions.make_id)(self.device.handle, &mut id, &mut error) };
        host_table::check("make_id", code, error)?;
        let bytes = id.bytes.get(..id.length as usize).ok_or_else(|| {
            Error::runtime(&self.device.backend, format!("The id has {} bytes, more than the contract allows. Report it to the authors of the backend.", id.length))
        })?;
        Ok(bytes.to_vec())
    }

    /// Begins to open a group of `size` devices as rank `rank`. The group is open once
    /// [`CollectiveGroup::is_ready`] returns true.
    ///
    /// # Errors
    /// [`Error::Value`] for an id that no backend makes; [`Error::Runtime`] for errors of the
    /// backend.
    pub fn open(&self, id: &[u8], rank: usize, size: usize) -> Result<Arc<CollectiveGroup>> {
        shutdown::check(self.device)?;
        let mut given = CollectiveId { length: id.len() as u32, ..CollectiveId::default() };
        let place = given.bytes.get_mut(..id.len()).ok_or_else(|| {
            Error::value("init", format!("An id of {} bytes is too long. Use the same version of ultramarine in all processes.", id.len()))
        })?;
        place.copy_from_slice(id);
        let (mut handle, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
        let device = self.device.handle;
        // SAFETY: the device is open, and the places are valid.
        let code = unsafe {
            (self.functions.open)(device, &given, rank as u32, size as u32, &mut handle, &mut error)
        };
        host_table::check("open", code, error)?;
        Ok(Arc::new(CollectiveGroup { on: *self, handle, order: order(self.device)? }))
    }
}

/// Allocates the buffer that orders a new group's operations.
fn order(device: &'static DeviceState) -> Result<BufferRef> {
    Exec::beside(device)?.buffer(1)
}

impl CollectiveGroup {
    /// Returns this process's device in the group.
    pub fn device(&self) -> &'static DeviceState {
        self.on.device
    }

    /// Begins to open a subgroup.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn split(&self, color: u32, key: i32) -> Result<Arc<CollectiveGroup>> {
        shutdown::check(self.on.device)?;
        let (mut handle, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
        let (split, device) = (self.on.functions.split, self.on.device.handle);
        // SAFETY: device and group are open, and the places are valid.
        let code = unsafe { split(device, self.handle, color, key, &mut handle, &mut error) };
        host_table::check("split", code, error)?;
        Ok(Arc::new(CollectiveGroup { on: self.on, handle, order: order(self.on.device)? }))
    }

    /// Returns true once the group is open.
    ///
    /// # Errors
    /// Those of the backend, if the group has failed.
    pub fn is_ready(&self) -> Result<bool> {
        shutdown::check_wait(self.on.device)?;
        let mut error = std::ptr::null_mut();
        // SAFETY: device and group are open, and the place is valid.
        let code =
            unsafe { (self.on.functions.status)(self.on.device.handle, self.handle, &mut error) };
        if code == status::NOT_YET {
            // Ignore the error object: the status is enough.
            let _ = host_table::check("status", code, error);
            return Ok(false);
        }
        host_table::check("status", code, error).map(|()| true)
    }

    /// Returns rank and size, once the group is open.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn place(&self) -> Result<(usize, usize)> {
        shutdown::check(self.on.device)?;
        let (mut rank, mut size, mut error) = (0, 0, std::ptr::null_mut());
        let (place, device) = (self.on.functions.place, self.on.device.handle);
        // SAFETY: device and group are open, and the places are valid.
        let code = unsafe { place(device, self.handle, &mut rank, &mut size, &mut error) };
        host_table::check("place", code, error)?;
        Ok((rank as usize, size as usize))
    }

    /// Aborts the group, including the work on the device that waits for other processes. Call
    /// [`DeviceStream::lose`] first, to mark the results that are lost.
    pub fn abort(&self) {
        if !shutdown::is_gone() {
            // SAFETY: device and group are open, and any thread may call `abort` at any time.
            unsafe { (self.on.functions.abort)(self.on.device.handle, self.handle) }
        }
    }
}

impl Drop for CollectiveGroup {
    fn drop(&mut self) {
        if shutdown::ended().is_none() {
            // SAFETY: the group was opened once and is closed once.
            unsafe { (self.on.functions.close)(self.on.device.handle, self.handle) }
        }
    }
}

impl Exec {
    /// Gives collectives to the stream as one group, so that they begin together. For each group
    /// there may be only one call at a time.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn collectives(&self, group: &CollectiveGroup, works: &[CollectiveWork<'_>]) -> Result<()> {
        let commands: Vec<_> = works.iter().map(CollectiveWork::command).collect();
        let reads = works.iter().filter_map(|w| w.input).map(|t| &*t.value.buffer);
        let outputs = works.iter().filter_map(|w| w.output).map(|t| &*t.value.buffer);
        let writes = outputs.chain([&*group.order]);
        self.ran_here();
        self.enqueue(reads, writes, |stream| {
            let mut error = std::ptr::null_mut();
            // SAFETY: device, group and stream are open, and this thread holds the stream's lock.
            // The buffers belong to the device, and are as large as the commands say.
            let code = unsafe {
                (group.on.functions.run)(
                    self.device.handle,
                    group.handle,
                    stream,
                    commands.as_ptr(),
                    commands.len() as u32,
                    &mut error,
                )
            };
            host_table::check("run", code, error)
        })
    }

    /// Returns the device's stream, and the number of its last submission. `None` on the host.
    pub fn position(&self) -> Option<(&'static DeviceStream, u64)> {
        self.stream.map(|stream| (stream, stream.last()))
    }
}

impl CollectiveWork<'_> {
    fn command(&self) -> CollectiveCommand {
        let place = |t: Option<&Operand<'_>>| match t {
            Some(t) => (t.value.buffer.handle(), t.value.offset as u64),
            None => (std::ptr::null_mut(), 0),
        };
        let ((input, input_offset), (output, output_offset)) =
            (place(self.input), place(self.output));
        CollectiveCommand {
            size: size_of::<CollectiveCommand>() as u32,
            kind: self.kind,
            dtype: self.dtype.to_dl(),
            peer: self.peer as u32,
            count: self.count as u64,
            input,
            input_offset,
            output,
            output_offset,
        }
    }
}
