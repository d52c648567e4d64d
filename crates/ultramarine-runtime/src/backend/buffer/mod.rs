//! Buffers: memory that knows its device and is returned to this device.
//!
//! A [`BufferRef`] is a holder of a buffer. One word has two counts: one of the holders, and one of
//! the exports. An export is a holder outside of the library, which may write to the memory. So one
//! load shows if the library has the memory to itself.
//!
//! Host work is synchronous within its stream, so a host buffer's reference count is exact: when it
//! reaches zero, nothing reads or writes the buffer. For a device that runs ahead, the buffer
//! remembers its last uses by commands. It is freed only when the device has completed them all.

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
    /// Host memory of the library's allocator.
    Host,
    /// A buffer in a backend's own memory.
    Device(&'static DeviceState, Box<Mutex<Uses>>),
    /// A backend's buffer over memory of another library, which is notified when the buffer is
    /// freed. The number is the memory's address, if it has one.
    Imported(&'static DeviceState, Box<Mutex<Uses>>, u64),
    /// Memory of another library. Dropping the value releases it.
    Foreign(#[allow(dead_code, reason = "held, not read")] Box<dyn Any + Send + Sync>),
    /// Host memory of another library's tensor.
    Tensor(#[allow(dead_code, reason = "held, not read")] ManagedTensor),
}

/// A command's use of a buffer: the number of its submission on a stream. Once the stream's event
/// has reached the number, the use is completed.
#[derive(Clone, Copy)]
pub struct Use {
    pub stream: &'static DeviceStream,
    pub number: u64,
    /// The graph operation. Errors name it.
    pub op: &'static str,
}

/// Uses of a buffer that the device may not have completed yet.
#[derive(Default)]
struct Uses {
    /// The command that writes the content.
    write: Option<Use>,
    /// The last commands that read the buffer, one for each stream.
    reads: SmallVec<[Use; 1]>,
}

/// A block of memory on one device, to which it is returned. [`BufferRef`] holds it.
pub struct Buffer {
    /// Numbers of holders and of exports, and the marks.
    counts: AtomicU64,
    /// The host's address of the memory. NULL if the host has none, dangling for size zero.
    pointer: *mut u8,
    /// The backend's handle; NULL for host memory.
    handle: *mut c_void,
    bytes: usize,
    device: Device,
    owner: Owner,
    read_only: bool,
    /// True for a copy that another library made for this one. It can be used like own memory,
    /// although the other library owns it.
    given: bool,
    /// Copies on other devices. They were made when work on those devices read this buffer.
    mirrors: OnceLock<Arc<modelled::Mutex<Mirrors>>>,
}

/// The location of a buffer's memory.
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

// SAFETY: only the one operation that produces the memory's content writes it. Afterwards it is
// immutable or, once exported, follows the rules that the docs of exports state. By the contract,
// any thread may use the handles.
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

    /// Like [`Buffer::new`], but for the work of a stream, if one is given. The stream's earlier
    /// work may still use the memory; all other work waits for that.
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
        // Write the fields in place, because moving the finished buffer would cost more.
        // SAFETY: nothing else has access to the new buffer, and each field is written.
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
            // The new buffer may have the address of a freed buffer that a recording knows.
            executable::with(|recording| recording.forget(at));
            BufferRef(NonNull::from(Box::leak(buffer.assume_init())))
        }
    }

    /// Takes over host memory that another library owns. Dropping `owner` releases it.
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

    /// Takes over a backend's buffer over the memory of a tensor with these flags. `address` is the
    /// memory's address; 0 means that it has the device's alignment. The buffer does not count as
    /// the device's memory in use.
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

    /// Returns the host's address of the memory; NULL if the host cannot access it.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.pointer
    }

    /// Returns true if the block begins at a multiple of 256 bytes. Other libraries expect tensors
    /// to begin there.
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

    /// Returns the backend's handle; NULL for host memory.
    #[inline]
    pub fn handle(&self) -> *mut c_void {
        self.handle
    }

    /// Returns the number of bytes in the block.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of bytes that were taken from the allocator for the buffer.
    #[inline]
    pub fn allocated(&self) -> usize {
        match self.owner {
            Owner::Host if self.bytes > 0 => alloc::size_class(self.bytes),
            _ => self.bytes,
        }
    }

    /// Returns the device that owns the memory.
    #[inline]
    pub fn device(&self) -> Device {
        self.device
    }

    /// Returns true if the owner forbids writing.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns true for memory that was imported or is exported. While another library may see it,
    /// it is never donated, mirrored, merged or recycled.
    #[inline]
    pub fn is_escaped(&self) -> bool {
        self.is_foreign() || self.exports() > 0
    }

    /// Returns true if another library may write to the memory during the memory's whole lifetime.
    #[inline]
    fn is_foreign(&self) -> bool {
        !matches!(self.owner, Owner::Host | Owner::Device(..)) && !self.given
    }

    /// Returns the number of exports that are alive.
    #[inline]
    fn exports(&self) -> u64 {
        (self.counts.load(Ordering::Acquire) & !MARKS) / EXPORT
    }

    /// Returns true if the memory was ever exported. The consumer may have written to it.
    #[inline]
    pub fn was_exported(&self) -> bool {
        self.counts.load(Ordering::Acquire) & EXPORTED != 0
    }

    /// Returns true if a caller that knows of `holders` holders may overwrite the memory. This is
    /// true if there are no other holders, inside or outside of the library.
    #[inline]
    pub fn is_unshared(&self, holders: usize) -> bool {
        self.counts.load(Ordering::Acquire) & !MARKS == holders as u64
            && !self.is_foreign()
            && !self.read_only
    }

    fn in_flight(&self) -> Option<MutexGuard<'_, Uses>> {
        match &self.owner {
            // In a forked child, a thread that does not exist there may hold the lock; and no work
            // is in flight.
            Owner::Device(_, uses) | Owner::Imported(_, uses, _) if !shutdown::is_gone() => {
                Some(lock(uses))
            }
            _ => None,
        }
    }

    /// Returns the command that produces the content, unless the command is known to be completed.
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

    /// Calls `f` for each command that may still use the memory. The second argument is true if the
    /// command writes to it.
    #[inline]
    pub fn each_use(&self, mut f: impl FnMut(&Use, bool)) {
        if let Some(uses) = self.in_flight() {
            uses.reads.iter().for_each(|u| f(u, false));
            uses.write.iter().for_each(|u| f(u, true));
        }
    }

    /// Records a command that uses the memory. A command that writes has waited for all others.
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

    /// Waits until the command that produces the content is completed.
    ///
    /// # Errors
    /// The error of the command that should have produced the content.
    #[inline]
    pub fn ready(&self) -> Result<()> {
        match &self.owner {
            Owner::Device(..) | Owner::Imported(..) => self.wait(),
            _ => Ok(()),
        }
    }

    #[cold]
    fn wait(&self) -> Result<()> {
        // Do not hold the lock while waiting, because other threads may need it.
        let write = self.written();
        write.map_or(Ok(()), |w| w.wait())
    }

    /// Returns an error if it is known that the content will never be there.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.written() {
            Some(w) => w.stream.failure(w.number).map_err(|e| w.explain(e)),
            None => Ok(()),
        }
    }
}

/// Allocates memory. If memory runs out, drops all mirrors and tries again.
fn retrying<T>(allocate: impl Fn() -> Result<T>) -> Result<T> {
    match allocate() {
        Err(crate::Error::Memory(_)) => {
            drop_all_mirrors();
            allocate()
        }
        result => result,
    }
}

/// Allocates memory on a device. If memory runs out, waits for the device's work in flight and
/// tries again. If that does not suffice, drops all mirrors and tries a last time.
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
            // In a forked child the memory belongs to the parent.
            Owner::Device(device, _) if shutdown::ended().is_none() => {
                PendingFree::Buffer(device, self.handle, self.bytes, self.uses()).release();
            }
            // The bytes of imported memory are not counted here. Its owner waits for its release.
            Owner::Imported(device, ..) if shutdown::ended().is_none() => {
                let uses = self.uses();
                uses.iter().for_each(|u| u.stream.look(u.number));
                PendingFree::Buffer(device, self.handle, 0, uses).release();
            }
            _ => {}
        }
    }
}
