//! Mirrors: copies of a buffer on other devices, made when work there reads it, and dropped when memory runs out.

use super::{Buffer, BufferRef, holders::MIRRORED};
use crate::{device::Device, error::Result, sync::lock};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak};

/// Copies of a buffer on other devices.
#[derive(Default)]
pub(super) struct Mirrors {
    list: Vec<BufferRef>,
    /// Number of exports, whose holders may write to the memory.
    stale: u64,
}

impl Buffer {
    /// The copy on another device, if there is one.
    #[inline]
    pub fn mirrored(&self, device: Device) -> Option<BufferRef> {
        let mirrors = lock(self.mirrors.get()?);
        mirrors.list.iter().find(|m| m.device == device).cloned()
    }

    /// The copy of this buffer on another device, made by `make` at the first need.
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
        // A later export sees this mark and drops the mirrors.
        self.counts.fetch_or(MIRRORED, Ordering::AcqRel);
        let stale = {
            let mirrors = lock(mirrors);
            if let Some(found) = mirrors.list.iter().find(|m| m.device == device) {
                return Ok(found.clone());
            }
            mirrors.stale
        };
        // Made without the lock: running out of memory drops mirrors.
        let made = make()?;
        let mut mirrors = lock(mirrors);
        // An export may have come meanwhile; it may have gone, too.
        if self.exports() == 0 && mirrors.stale == stale {
            mirrors.list.push(made.clone());
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

/// Drops mirrors, without the lock.
fn clear(mirrors: &Mutex<Mirrors>) {
    let dropped = std::mem::take(&mut lock(mirrors).list);
    drop(dropped);
}

/// The mirrors of all buffers that have, or had, any.
static MIRRORS: Mutex<Vec<Weak<Mutex<Mirrors>>>> = Mutex::new(Vec::new());

/// A place for a buffer's mirrors.
fn note() -> Arc<Mutex<Mirrors>> {
    let mirrors = Arc::<Mutex<Mirrors>>::default();
    let mut list = lock(&MIRRORS);
    if list.len() == list.capacity() {
        list.retain(|m| m.strong_count() > 0);
    }
    list.push(Arc::downgrade(&mirrors));
    mirrors
}

/// Drops every mirror; those in use live until their use ends.
pub(super) fn drop_all_mirrors() {
    let list: Vec<_> = lock(&MIRRORS).iter().filter_map(Weak::upgrade).collect();
    list.iter().for_each(|mirrors| clear(mirrors));
}
