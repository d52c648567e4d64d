//! Buffers: memory that knows its device and goes back there.
//!
//! A [`BufferRef`] is a holder of a buffer. One word counts the holders and, apart from them, the
//! exports: holders outside of the library, who may write. So one load tells whether memory
//! is ours alone.
//!
//! Host work is synchronous within its stream, so on the host a buffer's
//! reference count is exact: when it falls to zero, nothing reads or writes it.
//! For a device that runs ahead the buffer remembers its last uses by commands, and
//! goes back only when the device has completed them all.

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
    /// Host memory of our allocator.
    Host,
    /// A buffer of a backend with memory of its own.
    Device(&'static DeviceState, Box<Mutex<Uses>>),
    /// A backend's buffer over somebody else's memory, who is told when it is freed; and the
    /// address there, where it is one.
    Imported(&'static DeviceState, Box<Mutex<Uses>>, u64),
    /// Somebody else's memory, released by dropping the value.
    Foreign(#[allow(dead_code, reason = "held, not read")] Box<dyn Any + Send + Sync>),
    /// Host memory of a tensor of another library.
    Tensor(#[allow(dead_code, reason = "held, not read")] ManagedTensor),
}

/// A command's use of a buffer: the number of its submission on a stream. Once the stream's event
/// has reached the number, the use has completed.
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
    /// The command that produces the content.
    write: Option<Use>,
    /// The last commands that read it, one for each stream.
    reads: SmallVec<[Use; 1]>,
}

/// A block of memory on one device, which it returns to. [`BufferRef`] holds it.
pub struct Buffer {
    /// Holders, exports, and whether there are mirrors.
    counts: AtomicU64,
    /// Address for the host: NULL where it has none, dangling for size zero.
    pointer: *mut u8,
    /// The backend's handle; NULL for host memory.
    handle: *mut c_void,
    bytes: usize,
    device: Device,
    owner: Owner,
    read_only: bool,
    /// A copy that another library made for us: as good as our own, for all its owner.
    given: bool,
    /// Copies on other devices, made when work there read this buffer.
    mirrors: OnceLock<Arc<modelled::Mutex<Mirrors>>>,
}

/// Where memory is.
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

// SAFETY: the memory is written only by the one operation that produces it and
// is immutable afterwards (or, once exported, under the rules that the docs of
// exports state); handles are usable from any thread by the contract.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Uninitialised memory on a device.
    ///
    /// # Errors
    /// [`crate::Error::Memory`] when there is none.
    #[allow(clippy::new_ret_no_self, reason = "buffers are had by their holders only")]
    #[inline]
    pub fn new(bytes: usize, device: &'static DeviceState) -> Result<BufferRef> {
        Self::for_stream(bytes, device, None)
    }

    /// Likewise, for work of a stream, if there is one: it may be memory that the stream's earlier
    /// work still uses, which all other work waits for.
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
        // Written where it stays: to move what was just written would cost more.
        // SAFETY: nobody else has the new buffer, and each field is written.
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
            // It may have the address of one that a recording knows.
            executable::with(|recording| recording.forget(at));
            BufferRef(NonNull::from(Box::leak(buffer.assume_init())))
        }
    }

    /// Takes over host memory that somebody else owns; dropping `owner` releases it.
    ///
    /// # Safety
    /// `bytes` bytes at `pointer` stay readable (and, unless `read_only`, writable)
    /// until `owner` is dropped, on whatever thread that happens.
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

    /// Takes over a tensor in host memory: `bytes` bytes at `pointer` are its elements.
    #[inline]
    pub fn from_tensor(pointer: *mut u8, bytes: usize, tensor: ManagedTensor) -> BufferRef {
        let flags = tensor.flags();
        let read_only = flags & flag::READ_ONLY != 0;
        let given = flags & flag::IS_COPIED != 0 && !read_only;
        Buffer::owned_by(Owner::Tensor(tensor), Location::host(pointer, bytes), read_only, given)
    }

    /// Takes over what a backend made of the memory of a tensor with these flags, which is at an
    /// address, or (0) what the device aligns. It is not counted as the device's memory in use.
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

    /// Address of the memory for the host; NULL where the host cannot reach it.
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        self.pointer
    }

    /// Returns true if the block begins at a multiple of 256 bytes, where other libraries expect tensors to begin.
    #[inline]
    pub fn is_aligned_base(&self) -> bool {
        (self.pointer as usize).is_multiple_of(256)
    }

    /// Returns true if the byte at an offset has an address that is a multiple of `to`.
    pub fn is_aligned(&self, offset: usize, to: usize) -> bool {
        let base = match &self.owner {
            Owner::Imported(_, _, address) => *address as usize,
            // Devices align their memory for every dtype.
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

    /// Bytes in the block.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that were taken from the allocator for it.
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

    /// Returns true for memory that was imported or is exported. It is never donated, mirrored, merged or recycled while
    /// another library may see it.
    #[inline]
    pub fn is_escaped(&self) -> bool {
        self.is_foreign() || self.exports() > 0
    }

    /// Returns true if another library may write to the memory for as long as it lives.
    #[inline]
    fn is_foreign(&self) -> bool {
        !matches!(self.owner, Owner::Host | Owner::Device(..)) && !self.given
    }

    /// Number of exports that are alive.
    #[inline]
    fn exports(&self) -> u64 {
        (self.counts.load(Ordering::Acquire) & !MARKS) / EXPORT
    }

    /// Returns true if the memory was ever exported to a consumer, which may have written to it.
    #[inline]
    pub fn was_exported(&self) -> bool {
        self.counts.load(Ordering::Acquire) & EXPORTED != 0
    }

    /// Returns true if a caller that knows of `holders` holders may write over the memory: there are no other holders,
    /// inside or outside.
    #[inline]
    pub fn is_unshared(&self, holders: usize) -> bool {
        self.counts.load(Ordering::Acquire) & !MARKS == holders as u64
            && !self.is_foreign()
            && !self.read_only
    }

    fn in_flight(&self) -> Option<MutexGuard<'_, Uses>> {
        match &self.owner {
            // In a forked child the lock may be somebody's who is not there, and nothing is
            // in flight.
            Owner::Device(_, uses) | Owner::Imported(_, uses, _) if !shutdown::is_gone() => {
                Some(lock(uses))
            }
            _ => None,
        }
    }

    /// The command that produces the content, unless it is known to have done so.
    #[inline]
    pub fn written(&self) -> Option<Use> {
        let mut uses = self.in_flight()?;
        if uses.write.as_ref().is_some_and(|w| w.stream.knows_confirmed(w.number)) {
            uses.write = None;
        }
        uses.write
    }

    /// All commands that may still use the memory.
    #[inline]
    pub fn uses(&self) -> SmallVec<[Use; 2]> {
        let mut all = SmallVec::new();
        self.each_use(|u, _| all.push(*u));
        all
    }

    /// Calls `f` for each command that may still use the memory, and says whether it writes.
    #[inline]
    pub fn each_use(&self, mut f: impl FnMut(&Use, bool)) {
        if let Some(uses) = self.in_flight() {
            uses.reads.iter().for_each(|u| f(u, false));
            uses.write.iter().for_each(|u| f(u, true));
        }
    }

    /// Notes a command that uses the memory. One that writes has waited for all others.
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

    /// Waits until the content is there.
    ///
    /// # Errors
    /// The error of the command that should have produced it.
    #[inline]
    pub fn ready(&self) -> Result<()> {
        match &self.owner {
            Owner::Device(..) | Owner::Imported(..) => self.wait(),
            _ => Ok(()),
        }
    }

    #[cold]
    fn wait(&self) -> Result<()> {
        // Without the lock: others may look meanwhile.
        let write = self.written();
        write.map_or(Ok(()), |w| w.wait())
    }

    /// An error if it is known that the content will never be there.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.written() {
            Some(w) => w.stream.failure(w.number).map_err(|e| w.explain(e)),
            None => Ok(()),
        }
    }
}

/// Allocates; when memory runs out, once more without mirrors.
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
                    // SAFETY: the pointer came from `alloc` with this size, and the
                    // last reference is gone.
                    unsafe { alloc::free(pointer, self.bytes) }
                }
            }
            // In a forked child the memory is the parent's.
            Owner::Device(device, _) if shutdown::ended().is_none() => {
                PendingFree::Buffer(device, self.handle, self.bytes, self.uses()).release();
            }
            // Its bytes are not ours to count, and its owner waits for it.
            Owner::Imported(device, ..) if shutdown::ended().is_none() => {
                let uses = self.uses();
                uses.iter().for_each(|u| u.stream.look(u.number));
                PendingFree::Buffer(device, self.handle, 0, uses).release();
            }
            _ => {}
        }
    }
}
