//! Mirrors: copies of a buffer on other devices, made when work there reads it, and dropped when memory runs out.
//!
//! Those in host memory are what reading arrays of a device leaves behind. They are a cache, and together take no more than the
//! host's cache limit: the oldest go first.

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
    /// Number of exports, whose holders may write to the memory.
    stale: u64,
}

/// A copy that is kept.
struct Mirror {
    buffer: BufferRef,
    /// Bytes that count towards the host's limit.
    counted: usize,
    /// Younger ones have higher numbers.
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
    /// The copy on another device, if there is one.
    #[inline]
    pub fn mirrored(&self, device: Device) -> Option<BufferRef> {
        lock(self.mirrors.get()?).on(device)
    }

    /// The copy of this buffer on another device, made by `make` at the first need. One in host memory is not kept if it is
    /// larger than the host's cache limit.
    pub fn mirror(
        &self,
        device: Device,
        make: impl FnOnce() -> Result<BufferRef>,
    ) -> Result<BufferRef> {
        if self.is_escaped() {
            // Its owner may write to it at any time: a kept copy would go stale.
            return make();
        }
        let mirrors = self.mirrors.get_or_init(note);
        // A later export sees this mark, and counts up `stale`.
        self.counts.fetch_or(MIRRORED, Ordering::AcqRel);
        let stale = {
            let mirrors = lock(mirrors);
            if let Some(found) = mirrors.on(device) {
                return Ok(found);
            }
            mirrors.stale
        };
        // An export that came before, and whose `stale` is counted already.
        if self.exports() > 0 {
            return make();
        }
        // Made without the lock: running out of memory drops mirrors.
        let made = make()?;
        let on_host = made.device() == Device::CPU;
        if on_host && made.allocated() > memory::cache_limit() {
            return Ok(made);
        }
        let kept = {
            let mut all = lock(mirrors);
            // An export may have come since, and gone.
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

    /// Says that the memory is about to change: copies on other devices are dropped.
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

/// Drops mirrors, without the lock.
fn clear(mirrors: &Mutex<Mirrors>) {
    let dropped = std::mem::take(&mut lock(mirrors).list);
    drop(dropped);
}

/// The mirrors of all buffers that have, or had, any.
static MIRRORS: std::sync::Mutex<Vec<Weak<Mutex<Mirrors>>>> = std::sync::Mutex::new(Vec::new());

/// A place for a buffer's mirrors.
fn note() -> Arc<Mutex<Mirrors>> {
    let mirrors = Arc::new(Mutex::new(Mirrors::default()));
    let mut list = sync::lock(&MIRRORS);
    if list.len() == list.capacity() {
        list.retain(|m| m.strong_count() > 0);
    }
    list.push(Arc::downgrade(&mirrors));
    mirrors
}

/// Drops every mirror; those in use live until their use ends.
pub(super) fn drop_all_mirrors() {
    let list: Vec<_> = sync::lock(&MIRRORS).iter().filter_map(Weak::upgrade).collect();
    list.iter().for_each(|mirrors| clear(mirrors));
}

/// A mirror in host memory: the place that it is in, and its serial.
type Queued = (Weak<Mutex<Mirrors>>, u64);

/// Mirrors in host memory, the oldest first, with some that are gone.
static QUEUE: std::sync::Mutex<VecDeque<Queued>> = std::sync::Mutex::new(VecDeque::new());

fn queue(mirrors: &Arc<Mutex<Mirrors>>, serial: u64) {
    let mut queue = sync::lock(&QUEUE);
    if queue.len() == queue.capacity() {
        queue.retain(|(m, _)| m.strong_count() > 0);
        // Looking at all again is due when there are twice as many.
        let len = queue.len();
        queue.reserve(len);
    }
    queue.push_back((Arc::downgrade(mirrors), serial));
}

/// Drops the oldest mirrors in host memory until they take at most this number of bytes. Those in use live until their use ends.
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
