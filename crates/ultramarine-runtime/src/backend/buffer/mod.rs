//! Buffers: memory that belongs to a device, and returns to that device.
//!
//! A [`BufferRef`] is a holder of a buffer. One word counts the holders, and separately the
//! exports, which are holders outside the library that may write to the memory. Therefore a single
//! load shows whether the memory has other holders.
//!
//! Host work is synchronous within its stream, so the reference count of a host buffer is exact:
//! when it becomes zero, no thread reads or writes the memory. For a device that runs
//! asynchronously, the buffer records the last commands that use it. The memory returns to the
//! device only when these commands are complete.

mod holders;
mod mirrors;
#[cfg(all(test, ultramarine_loom))]
mod model;

pub use holders::{BufferRef, Export};
pub use mirrors::limit_host_mirrors;

use crate::backend::{DeviceState, DeviceStream, PendingFree, executable, shutdown};
use crate::memory::{alloc, deferred_deleters};
use crate::sync::modelled::{self, AtomicU64};
use crate::{device::Device, error::Result, sync::lock};
use core::ffi::c_void;
use holders::{EXPORT, EXPORTED, HOLDER, MARKS};
use mirrors::{Mirrors, drop_all_mirrors};
use smallvec::SmallVec;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use ultramarine_abi::dlpack::{ManagedTensor, flag};

enum Owner {
    /// Host memory from this library's allocator.
    Host,
    /// A buffer in a backend's own memory.
    Device(&'static DeviceState, Box<Mutex<Uses>>),
    /// A backend's buffer over foreign memory. The owner is notified when it is freed. The number
    /// is the address of the memory, if known.
    Imported(&'static DeviceState, Box<Mutex<Uses>>, u64),
    /// Foreign memory, which is released by dropping the value.
    Foreign(#[allow(dead_code, reason = "held, not read")] Box<dyn Any + Send + Sync>),
    /// Host memory of another library's tensor.
    Tensor(#[allow(dead_code, reason = "held, not read")] ManagedTensor),
}

/// A command's use of a buffer, identified by a stream and the number of the submission. The use is
/// complete once the stream's event has reached the number.
#[derive(Clone, Copy)]
pub struct Use {
    pub stream: &'static DeviceStream,
    pub number: u64,
    /// The graph operation, for errors.
    pub op: &'static str,
}

/// Uses that the device may not have completed yet.
#[derive(Default)]
struct Uses {
    /// The command that writes the content.
    write: Option<Use>,
    /// The last commands that read the content, one for each stream.
    reads: SmallVec<[Use; 1]>,
}

/// A block of memory on one device, to which the block returns. A [`BufferRef`] holds the buffer.
pub struct Buffer {
    /// Holders, exports, and whether there are mirrors.
    counts: AtomicU64,
    /// Address for the host. NULL if the host has no access, dangling if the size is zero.
    pointer: *mut u8,
    /// The backend's handle; NULL for host memory.
    handle: *mut c_void,
    bytes: usize,
    device: Device,
    owner: Owner,
    read_only: bool,
    /// True for a copy that another library made for this one. It is treated like this library's
    /// own memory, although it has a foreign owner.
    given: bool,
    /// Copies on other devices, made when work on these devices read the buffer.
    mirrors: OnceLock<Arc<modelled::Mutex<Mirrors>>>,
}

/// Address and handle of memory.
struct Location {
    pointer: *mut u8,
    handle: *mut c_void,
    bytes: usize,
    device: Device,
}

impl Location {
    #[inline]
    fn host(pointer: *mut u8, bytes: usize) -> Location {
        Location { pointer, handle: std::ptr::null_mut(), bytes, device: Device::CPU }
    }
}

// SAFETY: only the operation that produces the memory writes to it, and afterwards the memory is
// immutable. (Exported memory follows the rules in the docs of exports.) By the ABI, any thread may
// use the handles.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Allocates uninitialised memory on a device.
    ///
    /// # Errors
    /// [`crate::Error::Memory`] if there is not enough memory.
    #[allow(clippy::new_ret_no_self, reason = "buffers are had by their holders only")]
    #[inline]
    pub fn new(bytes: usize, device: &'static DeviceState) -> Result<BufferRef> {
        Self::for_stream(bytes, device, None)
    }

    /// Allocates memory for the work of a stream, if one is given. The stream's earlier work may
    /// still use the memory, and work on other streams has to wait for that.
    pub fn for_stream(
        bytes: usize,
        device: &'static DeviceState,
        stream: Option<&'static DeviceStream>,
    ) -> Result<BufferRef> {
        let (pointer, handle, owner) = if bytes == 0 {
            (NonNull::<u128>::dangling().as_ptr().cast(), std::ptr::null_mut(), Owner::Host)
        } else if device.is_host() {
            let pointer = retrying(|| {
                alloc::alloc(bytes).map_err(|e| crate::Error::Memory(e.to_string().into()))
            })?;
            (pointer.as_ptr(), std::ptr::null_mut(), Owner::Host)
        } else {
            let (handle, pointer) = retrying_on(device, || device.alloc(bytes, stream))?;
            let write = stream.and_then(|s| s.owes());
            let uses = Uses { write, reads: SmallVec::new() };
            (pointer, handle, Owner::Device(device, Box::new(Mutex::new(uses))))
        };
        let place = Location { pointer, handle, bytes, device: device.device };
        Ok(Buffer::owned_by(owner, place, false, false))
    }

    #[inline]
    fn owned_by(owner: Owner, place: Location, read_only: bool, given: bool) -> BufferRef {
        let Location { pointer, handle, bytes, device } = place;
        let mut buffer = Box::<Buffer>::new_uninit();
        let at = buffer.as_mut_ptr();
        // Write the fields in place, because moving them afterwards would cost more.
        // SAFETY: the buffer is new and not shared, and each field is written.
        unsafe {
            (&raw mut (*at).counts).write(AtomicU64::new(HOLDER));
            (&raw mut (*at).pointer).write(pointer);
            (&raw mut (*at).handle).write(handle);
            (&raw mut (*at).bytes).write(bytes);
            (&raw mut (*at).device).write(device);
            (&raw mut (*at).owner).write(owner);
            (&raw mut (*at).read_only).write(read_only);
            (&raw mut (*at).given).write(given);
            (&raw mut (*at).mirrors).write(OnceLock::new());
            // The buffer may have the address of a dropped buffer that a recording knows.
            executable::with(|recording| recording.forget(at));
            BufferRef(NonNull::from(Box::leak(buffer.assume_init())))
        }
    }

    /// Takes over foreign host memory. Dropping `owner` releases the memory.
    ///
    /// # Safety
    /// `bytes` bytes at `pointer` stay readable (and, unless `read_only`, writable) until `owner`
    /// is dropped, which may happen on any thread.
    pub unsafe fn from_foreign(
        pointer: NonNull<u8>,
        bytes: usize,
        read_only: bool,
        owner: Box<dyn Any + Send + Sync>,
    ) -> BufferRef {
        Buffer::owned_by(
            Owner::Foreign(owner),
            Location::host(pointer.as_ptr(), bytes),
            read_only,
            false,
        )
    }

    /// Takes over a tensor in host memory. Its elements are the `bytes` bytes at `pointer`.
    #[inline]
    pub fn from_tensor(pointer: *mut u8, bytes: usize, tensor: ManagedTensor) -> BufferRef {
        let flags = tensor.flags();
        let read_only = flags & flag::READ_ONLY != 0;
        let given = flags & flag::IS_COPIED != 0 && !read_only;
        Buffer::owned_by(Owner::Tensor(tensor), Location::host(pointer, bytes), read_only, given)
    }

    /// Takes over a backend's buffer over the memory of a tensor with these flags. The address is 0
    /// if the device aligns the memory itself. The memory is not counted as the device's memory in
    /// use.
    pub fn imported(
        (handle, pointer): (*mut c_void, *mut u8),
        (address, bytes): (u64, usize),
        flags: u64,
        device: &'static DeviceState,
    ) -> BufferRef {
        let read_only = flags & flag::READ_ONLY != 0;
        let given = flags & flag::IS_COPIED != 0 && !read_only;
        let place = Location { pointer, handle, bytes, device: device.device };
        Buffer::owned_by(Owner::Imported(device, Box::default(), address), place, read_only, given)
    }

    /// Address of the memory for the host. NULL if the host has no access.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.pointer
    }

    /// Returns true if the block begins at a multiple of 256 bytes. Other libraries expect tensors
    /// to begin at such addresses.
    #[inline]
    pub fn is_aligned_base(&self) -> bool {
        (self.pointer as usize).is_multiple_of(256)
    }

    /// Returns true if the address of the byte at `offset` is a multiple of `to`.
    pub fn is_aligned(&self, offset: usize, to: usize) -> bool {
        let base = match &self.owner {
            Owner::Imported(_, _, address) => *address as usize,
            // Devices align their memory for all dtypes.
            Owner::Device(..) => 0,
            _ => self.pointer as usize,
        };
        base.wrapping_add(offset).is_multiple_of(to)
    }

    /// The backend's handle, NULL for host memory.
    #[inline]
    pub fn handle(&self) -> *mut c_void {
        self.handle
    }

    /// Size of the block in bytes.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of bytes that the allocator provided for the buffer.
    #[inline]
    pub fn allocated(&self) -> usize {
        match self.owner {
            Owner::Host if self.bytes > 0 => alloc::size_class(self.bytes),
            _ => self.bytes,
        }
    }

    /// The device that owns the memory.
    #[inline]
    pub fn device(&self) -> Device {
        self.device
    }

    /// Returns true if the owner forbids writing.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns true for memory that was imported or is exported. Such memory is not donated,
    /// mirrored, merged or recycled while another library may access it.
    /// another library may see it.
    #[inline]
    pub fn is_escaped(&self) -> bool {
        self.is_foreign() || self.exports() > 0
    }

    /// Returns true if another library may write to the memory during the memory's whole lifetime.
    #[inline]
    fn is_foreign(&self) -> bool {
        !matches!(self.owner, Owner::Host | Owner::Device(..)) && !self.given
    }

    /// Number of live exports.
    #[inline]
    fn exports(&self) -> u64 {
        (self.counts.load(Ordering::Acquire) & !MARKS) / EXPORT
    }

    /// Returns true if the memory was ever exported. The consumer may have written to it.
    #[inline]
    pub fn was_exported(&self) -> bool {
        self.counts.load(Ordering::Acquire) & EXPORTED != 0
    }

    /// Returns true if a caller that knows of `holders` holders may overwrite the memory, because
    /// there are no other holders, inside or outside the library.
    #[inline]
    pub fn is_unshared(&self, holders: usize) -> bool {
        self.counts.load(Ordering::Acquire) & !MARKS == holders as u64
            && !self.is_foreign()
            && !self.read_only
    }

    fn in_flight(&self) -> Option<MutexGuard<'_, Uses>> {
        match &self.owner {
            // In a forked child no work is in flight, and the lock may be held by a thread that
            // does not exist there.
            Owner::Device(_, uses) | Owner::Imported(_, uses, _) if !shutdown::is_gone() => {
                Some(lock(uses))
            }
            _ => None,
        }
    }

    /// Returns the command that writes the content, unless the command is known to be complete.
    #[inline]
    pub fn written(&self) -> Option<Use> {
        let mut uses = self.in_flight()?;
        if uses.write.as_ref().is_some_and(|w| w.stream.knows_confirmed(w.number)) {
            uses.write = None;
        }
        uses.write
    }

    /// Returns all commands that may still use the memory.
    #[inline]
    pub fn uses(&self) -> SmallVec<[Use; 2]> {
        let mut all = SmallVec::new();
        self.each_use(|u, _| all.push(*u));
        all
    }

    /// Calls `f` for each command that may still use the memory. The flag is true if the command
    /// writes.
    #[inline]
    pub fn each_use(&self, mut f: impl FnMut(&Use, bool)) {
        if let Some(uses) = self.in_flight() {
            uses.reads.iter().for_each(|u| f(u, false));
            uses.write.iter().for_each(|u| f(u, true));
        }
    }

    /// Records a command that uses the memory. A command that writes has waited for all other uses.
    pub fn used(&self, by: Use, writes: bool) {
        let Some(mut uses) = self.in_flight() else { return };
        if writes {
            *uses = Uses { write: Some(by), reads: SmallVec::new() };
            return;
        }
        match uses.reads.iter_mut().find(|u| std::ptr::eq(u.stream, by.stream)) {
            Some(known) => *known = by,
            None => uses.reads.push(by),
        }
    }

    /// Waits until the content is written.
    ///
    /// # Errors
    /// The error of the command that should have written it.
    #[inline]
    pub fn ready(&self) -> Result<()> {
        match &self.owner {
            Owner::Device(..) | Owner::Imported(..) => self.wait(),
            _ => Ok(()),
        }
    }

    #[cold]
    fn wait(&self) -> Result<()> {
        // Wait without the lock, so that other threads can read the uses.
        let write = self.written();
        write.map_or(Ok(()), |w| w.wait())
    }

    /// Returns an error if the content is known to be lost.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.written() {
            Some(w) => w.stream.failure(w.number).map_err(|e| w.explain(e)),
            None => Ok(()),
        }
    }
}

/// Allocates. If memory runs out, drops the mirrors and tries again.
fn retrying<T>(allocate: impl Fn() -> Result<T>) -> Result<T> {
    match allocate() {
        Err(crate::Error::Memory(_)) => {
            drop_all_mirrors();
            allocate()
        }
        result => result,
    }
}

/// Allocates on a device; when memory runs out, once more when what is in flight there has
/// been completed, and at last without mirrors.
fn retrying_on<T>(device: &DeviceState, allocate: impl Fn() -> Result<T>) -> Result<T> {
    retrying(|| match allocate() {
        Err(crate::Error::Memory(_)) => {
            device.reclaim();
            allocate()
        }
        result => result,
    })
}

impl Drop for Buffer {
    fn drop(&mut self) {
        match &self.owner {
            Owner::Tensor(_) | Owner::Foreign(_) => {
                deferred_deleters::drop_outside(std::mem::replace(&mut self.owner, Owner::Host));
            }
            Owner::Host if self.bytes > 0 => {
                if let Some(pointer) = NonNull::new(self.pointer) {
                    // SAFETY: the pointer came from `alloc` with this size, and the last holder is
                    // gone.
                    unsafe { alloc::free(pointer, self.bytes) }
                }
            }
            // In a forked child, the memory belongs to the parent.
            Owner::Device(device, _) if shutdown::ended().is_none() => {
                PendingFree::Buffer(device, self.handle, self.bytes, self.uses()).release();
            }
            // The bytes belong to the owner and are not counted. The owner waits until they are
            // released.
            Owner::Imported(device, ..) if shutdown::ended().is_none() => {
                let uses = self.uses();
                uses.iter().for_each(|u| u.stream.look(u.number));
                PendingFree::Buffer(device, self.handle, 0, uses).release();
            }
            _ => {}
        }
    }
}
