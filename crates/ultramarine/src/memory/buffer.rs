//! Buffers: memory that knows its device and goes back there.
//!
//! Host work is synchronous within its stream, so on the host a buffer's
//! reference count is exact: when it falls to zero, nothing reads or writes it.
//! For a device that runs ahead the buffer remembers its last uses by commands, and
//! goes back only when the device has passed them all.

use crate::{
    backend::{DeviceState, DeviceStream, Grave, life},
    device::Device,
    error::Result,
    memory::alloc,
    stream::lock,
};
use core::ffi::c_void;
use smallvec::SmallVec;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use ultramarine_abi::dlpack::{ManagedTensor, flag};

/// Memory that somebody else sees, until this is dropped.
pub struct Export(Arc<Buffer>);

impl Drop for Export {
    fn drop(&mut self) {
        self.0.exports.fetch_sub(1, Ordering::AcqRel);
    }
}

enum Owner {
    /// Host memory of our allocator.
    Host,
    /// A buffer of a backend with memory of its own.
    Device(&'static DeviceState, Box<Mutex<Uses>>),
    /// Somebody else's memory, released by dropping the value.
    Foreign(#[allow(dead_code, reason = "held, not read")] Box<dyn Any + Send + Sync>),
    /// Host memory of a tensor of another library.
    Tensor(#[allow(dead_code, reason = "held, not read")] ManagedTensor),
}

/// A command's use of a buffer: the number of its submission on a stream.
#[derive(Clone)]
pub(crate) struct Use {
    pub stream: &'static DeviceStream,
    pub number: u64,
    /// The graph operation, for errors.
    pub op: &'static str,
}

/// Uses that the device may not have passed yet.
#[derive(Default)]
struct Uses {
    /// The command that produces the content.
    write: Option<Use>,
    /// The last commands that read it, one for each stream.
    reads: SmallVec<[Use; 1]>,
}

/// A block of memory on one device.
pub struct Buffer {
    /// Address for the host: NULL where it has none, dangling for size zero.
    pointer: *mut u8,
    /// The backend's handle; NULL for host memory.
    handle: *mut c_void,
    bytes: usize,
    device: Device,
    owner: Owner,
    read_only: bool,
    /// Exports that are alive: somebody else may write to the memory.
    exports: AtomicUsize,
    /// A copy that another library made for us: as good as our own, for all its owner.
    given: bool,
    /// Copies on other devices, made when work there read this buffer.
    mirrors: OnceLock<Box<Mutex<Vec<Arc<Buffer>>>>>,
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
    pub(crate) fn new(bytes: usize, device: &'static DeviceState) -> Result<Arc<Buffer>> {
        let (pointer, handle, owner) = if bytes == 0 {
            (NonNull::<u128>::dangling().as_ptr().cast(), std::ptr::null_mut(), Owner::Host)
        } else if device.is_host() {
            let pointer =
                retrying(|| alloc::alloc(bytes).map_err(|e| crate::Error::Memory(e.to_string())))?;
            (pointer.as_ptr(), std::ptr::null_mut(), Owner::Host)
        } else {
            let (handle, pointer) = retrying_on(device, || device.alloc(bytes))?;
            (pointer, handle, Owner::Device(device, Box::default()))
        };
        Ok(Arc::new(Buffer {
            pointer,
            handle,
            bytes,
            device: device.device,
            owner,
            read_only: false,
            exports: AtomicUsize::new(0),
            given: false,
            mirrors: OnceLock::new(),
        }))
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
    ) -> Arc<Buffer> {
        Arc::new(Buffer {
            pointer: pointer.as_ptr(),
            handle: std::ptr::null_mut(),
            bytes,
            device: Device::CPU,
            owner: Owner::Foreign(owner),
            read_only,
            exports: AtomicUsize::new(0),
            given: false,
            mirrors: OnceLock::new(),
        })
    }

    /// Takes over a tensor in host memory: `bytes` bytes at `pointer` are its elements.
    #[inline]
    pub(crate) fn from_tensor(
        pointer: *mut u8,
        bytes: usize,
        tensor: ManagedTensor,
    ) -> Arc<Buffer> {
        let flags = tensor.flags();
        let read_only = flags & flag::READ_ONLY != 0;
        Arc::new(Buffer {
            pointer,
            handle: std::ptr::null_mut(),
            bytes,
            device: Device::CPU,
            owner: Owner::Tensor(tensor),
            read_only,
            exports: AtomicUsize::new(0),
            given: flags & flag::IS_COPIED != 0 && !read_only,
            mirrors: OnceLock::new(),
        })
    }

    /// Address of the memory for the host; NULL where the host cannot reach it.
    pub fn as_ptr(&self) -> *mut u8 {
        self.pointer
    }

    /// Whether the block begins where others want tensors to begin: at a multiple of 256 bytes.
    pub(crate) fn is_aligned_base(&self) -> bool {
        (self.pointer as usize).is_multiple_of(256)
    }

    /// The backend's handle, NULL for host memory.
    pub(crate) fn handle(&self) -> *mut c_void {
        self.handle
    }

    /// Bytes in the block.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The device that owns the memory.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Whether the owner forbids writing.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Memory that we did not allocate or that has left us: never donated,
    /// mirrored, merged or recycled while somebody else may see it.
    pub fn is_escaped(&self) -> bool {
        let foreign = matches!(self.owner, Owner::Foreign(_) | Owner::Tensor(_)) && !self.given;
        foreign || self.exports.load(Ordering::Acquire) > 0
    }

    /// Keeps the memory for somebody else, who may write to it: while the guard lives, it
    /// counts as escaped.
    pub fn export(self: &Arc<Self>) -> Export {
        self.exports.fetch_add(1, Ordering::AcqRel);
        self.drop_mirrors();
        Export(self.clone())
    }

    fn in_flight(&self) -> Option<MutexGuard<'_, Uses>> {
        match &self.owner {
            // In a forked child the lock may be somebody's who is not there, and nothing is
            // in flight.
            Owner::Device(_, uses) if life::ended().is_none() => Some(lock(uses)),
            _ => None,
        }
    }

    /// The command that produces the content, unless it is known to have done so.
    pub(crate) fn written(&self) -> Option<Use> {
        let mut uses = self.in_flight()?;
        if uses.write.as_ref().is_some_and(|w| w.stream.knows_confirmed(w.number)) {
            uses.write = None;
        }
        uses.write.clone()
    }

    /// All commands that may still use the memory.
    pub(crate) fn uses(&self) -> SmallVec<[Use; 1]> {
        let Some(uses) = self.in_flight() else { return SmallVec::new() };
        uses.reads.iter().chain(&uses.write).cloned().collect()
    }

    /// Notes a command that uses the memory. One that writes has waited for all others.
    pub(crate) fn used(&self, by: Use, writes: bool) {
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
    /// That of the command that should have produced it.
    #[inline]
    pub(crate) fn ready(&self) -> Result<()> {
        match &self.owner {
            Owner::Device(..) => self.wait(),
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
    pub(crate) fn check(&self) -> Result<()> {
        match self.written() {
            Some(w) => w.stream.failure(w.number).map_err(|e| w.explain(e)),
            None => Ok(()),
        }
    }

    /// The copy on another device, if there is one.
    pub(crate) fn mirrored(&self, device: Device) -> Option<Arc<Buffer>> {
        let mirrors = lock(self.mirrors.get()?);
        mirrors.iter().find(|m| m.device == device).cloned()
    }

    /// The copy of this buffer on another device, made by `make` at the first need.
    pub(crate) fn mirror(
        self: &Arc<Self>,
        device: Device,
        make: impl FnOnce() -> Result<Arc<Buffer>>,
    ) -> Result<Arc<Buffer>> {
        if self.is_escaped() {
            // Its owner may write to it at any time: a kept copy would go stale.
            return make();
        }
        let mirrors = self.mirrors.get_or_init(|| {
            MIRRORED.note(self);
            Box::default()
        });
        if let Some(found) = lock(mirrors).iter().find(|m| m.device == device) {
            return Ok(found.clone());
        }
        // Made without the lock: running out of memory drops mirrors.
        let made = make()?;
        lock(mirrors).push(made.clone());
        Ok(made)
    }

    /// Drops the copies on other devices: the memory is about to change, or memory
    /// is short.
    pub(crate) fn drop_mirrors(&self) {
        if let Some(mirrors) = self.mirrors.get() {
            let dropped = std::mem::take(&mut *lock(mirrors));
            drop(dropped);
        }
    }
}

/// Buffers that have, or had, mirrors.
struct Mirrored(Mutex<Vec<Weak<Buffer>>>);

static MIRRORED: Mirrored = Mirrored(Mutex::new(Vec::new()));

impl Mirrored {
    fn note(&self, buffer: &Arc<Buffer>) {
        let mut list = lock(&self.0);
        if list.len() == list.capacity() {
            list.retain(|b| b.strong_count() > 0);
        }
        list.push(Arc::downgrade(buffer));
    }

    /// Drops every mirror; those in use live until their use ends.
    fn drop_all(&self) {
        let list: Vec<_> = lock(&self.0).iter().filter_map(Weak::upgrade).collect();
        list.iter().for_each(|b| b.drop_mirrors());
    }
}

/// Allocates; when memory runs out, once more without mirrors.
fn retrying<T>(allocate: impl Fn() -> Result<T>) -> Result<T> {
    match allocate() {
        Err(crate::Error::Memory(_)) => {
            MIRRORED.drop_all();
            allocate()
        }
        result => result,
    }
}

/// Allocates on a device; when memory runs out, once more when what is in flight there has
/// been passed, and at last without mirrors.
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
            Owner::Host if self.bytes > 0 => {
                if let Some(pointer) = NonNull::new(self.pointer) {
                    // SAFETY: the pointer came from `alloc` with this size, and the
                    // last reference is gone.
                    unsafe { alloc::free(pointer, self.bytes) }
                }
            }
            // In a forked child the memory is the parent's.
            Owner::Device(device, _) if life::ended().is_none() => {
                Grave::Buffer(device, self.handle, self.bytes, self.uses()).close();
            }
            _ => {}
        }
    }
}
