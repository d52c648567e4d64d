//! Mirrors: copies of a buffer on other devices. A mirror is made when work on the other device
//! reads the buffer, and is dropped when memory runs out.
//!
//! Reading a device's arrays on the host leaves mirrors in host memory. They are a cache: together
//! they take at most the host's cache limit, and the oldest are dropped first.

use super::{Buffer, BufferRef, holders::MIRRORED};
use crate::sync::{self, modelled::Mutex, modelled::lock};
use crate::{device::Device, error::Result, memory};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

/// Copies of a buffer on other devices.
#[derive(Default)]
pub(super) struct Mirrors {
    list: Vec<Mirror>,
    /// Number of exports so far. The holders of exports may write to the memory, so a change of the
    /// number means that mirrors may be stale.
    stale: u64,
}

/// A copy that is kept.
struct Mirror {
    buffer: BufferRef,
    /// Bytes that count towards the host's limit.
    counted: usize,
    /// Newer mirrors have higher numbers.
    serial: u64,
}

/// Bytes of the mirrors in host memory.
static ON_HOST: AtomicUsize = AtomicUsize::new(0);

impl Mirror {
    fn new(buffer: BufferRef) -> Mirror {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let counted = if buffer.device() == Device::CPU { buffer.allocated() } else { 0 };
        ON_HOST.fetch_add(counted, Ordering::Relaxed);
        Mirror { buffer, counted, serial: NEXT.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        ON_HOST.fetch_sub(self.counted, Ordering::Relaxed);
    }
}

impl Buffer {
    /// Returns the copy on another device, if there is one.
    #[inline]
    pub fn mirrored(&self, device: Device) -> Option<BufferRef> {
        lock(self.mirrors.get()?).on(device)
    }

    /// Returns the copy of this buffer on another device. `make` makes it when it is first needed.
    /// A copy in host memory is not kept if it is larger than the host's cache limit.
    pub fn mirror(
        &self,
        device: Device,
        make: impl FnOnce() -> Result<BufferRef>,
    ) -> Result<BufferRef> {
        if self.is_escaped() {
            // Another library may write to the memory at any time, so a kept copy would become
            // stale.
            return make();
        }
        let mirrors = self.mirrors.get_or_init(note);
        // A later export sees this mark and increments `stale`.
        self.counts.fetch_or(MIRRORED, Ordering::AcqRel);
        let stale = {
            let mirrors = lock(mirrors);
            if let Some(found) = mirrors.on(device) {
                return Ok(found);
            }
            mirrors.stale
        };
        // There is an export from before, which `stale` counts already.
        if self.exports() > 0 {
            return make();
        }
        // Make the copy without the lock, because running out of memory drops mirrors.
        let made = make()?;
        let on_host = made.device() == Device::CPU;
        if on_host && made.allocated() > memory::cache_limit() {
            return Ok(made);
        }
        let kept = {
            let mut all = lock(mirrors);
            // An export may have been made and dropped since.
            (all.stale == stale).then(|| {
                let mirror = Mirror::new(made.clone());
                let serial = mirror.serial;
                all.list.push(mirror);
                serial
            })
        };
        if let Some(serial) = kept.filter(|_| on_host) {
            queue(mirrors, serial);
            limit_host_mirrors(memory::cache_limit());
        }
        Ok(made)
    }

    /// Called when the memory is about to change. Drops the copies on other devices.
    #[inline]
    pub fn changes(&self) {
        if self.counts.load(Ordering::Acquire) & MIRRORED != 0 {
            self.drop_mirrors();
        }
    }

    #[cold]
    pub(super) fn drop_mirrors(&self) {
        if let Some(mirrors) = self.mirrors.get() {
            lock(mirrors).stale += 1;
            clear(mirrors);
        }
    }
}

impl Mirrors {
    fn on(&self, device: Device) -> Option<BufferRef> {
        self.list.iter().find(|m| m.buffer.device == device).map(|m| m.buffer.clone())
    }
}

/// Drops mirrors after releasing the lock.
fn clear(mirrors: &Mutex<Mirrors>) {
    let dropped = std::mem::take(&mut lock(mirrors).list);
    drop(dropped);
}

/// The mirrors of all buffers that have or had mirrors.
static MIRRORS: std::sync::Mutex<Vec<Weak<Mutex<Mirrors>>>> = std::sync::Mutex::new(Vec::new());

/// Makes the list for a buffer's mirrors.
fn note() -> Arc<Mutex<Mirrors>> {
    let mirrors = Arc::new(Mutex::new(Mirrors::default()));
    let mut list = sync::lock(&MIRRORS);
    if list.len() == list.capacity() {
        list.retain(|m| m.strong_count() > 0);
    }
    list.push(Arc::downgrade(&mirrors));
    mirrors
}

/// Drops every mirror. A mirror that is in use lives until its use ends.
pub(super) fn drop_all_mirrors() {
    let list: Vec<_> = sync::lock(&MIRRORS).iter().filter_map(Weak::upgrade).collect();
    list.iter().for_each(|mirrors| clear(mirrors));
}

/// A mirror in host memory: the list that it is in, and its serial number.
type Queued = (Weak<Mutex<Mirrors>>, u64);

/// The mirrors in host memory, the oldest first. Some of them may have been dropped already.
static QUEUE: std::sync::Mutex<VecDeque<Queued>> = std::sync::Mutex::new(VecDeque::new());

fn queue(mirrors: &Arc<Mutex<Mirrors>>, serial: u64) {
    let mut queue = sync::lock(&QUEUE);
    if queue.len() == queue.capacity() {
        queue.retain(|(m, _)| m.strong_count() > 0);
        // The queue is cleaned again when it has twice as many entries.
        let len = queue.len();
        queue.reserve(len);
    }
    queue.push_back((Arc::downgrade(mirrors), serial));
}

/// Drops the oldest mirrors in host memory until they take at most this number of bytes. A mirror
/// that is in use lives until its use ends.
pub fn limit_host_mirrors(bytes: usize) {
    while ON_HOST.load(Ordering::Relaxed) > bytes {
        let Some((mirrors, serial)) = sync::lock(&QUEUE).pop_front() else { return };
        let Some(mirrors) = mirrors.upgrade() else { continue };
        let dropped = {
            let list = &mut lock(&mirrors).list;
            list.iter().position(|m| m.serial == serial).map(|i| list.swap_remove(i))
        };
        drop(dropped);
    }
}
