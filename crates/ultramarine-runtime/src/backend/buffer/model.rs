//! A test of a buffer's counting word under loom: holders, exports and mirrors.

use super::{Buffer, BufferRef, Location, Owner};
use crate::device::{Device, DeviceType};
use crate::sync::explore::explore;
use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const GPU: Device = Device { kind: DeviceType::Gpu, index: 0 };

fn on(device: Device, owner: Owner) -> BufferRef {
    let place =
        Location { pointer: std::ptr::null_mut(), handle: std::ptr::null_mut(), bytes: 0, device };
    Buffer::owned_by(owner, place, false, false)
}

/// The memory of a buffer. Loom reports reads and writes that are not ordered.
struct Memory(Arc<UnsafeCell<u32>>);

impl Memory {
    fn read(&self) -> u32 {
        // SAFETY: loom checks that there is no concurrent write.
        self.0.with(|at| unsafe { *at })
    }

    fn write(&self, value: u32) {
        // SAFETY: loom checks that nothing else accesses it meanwhile.
        self.0.with_mut(|at| unsafe { *at = value });
    }
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        Memory(self.0.clone())
    }
}

// SAFETY: loom runs one thread at a time, and checks accesses.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

fn memory() -> Memory {
    Memory(Arc::new(UnsafeCell::new(0)))
}

/// Its drop stands for freeing the memory.
struct Freed(Memory);

impl Drop for Freed {
    fn drop(&mut self) {
        self.0.write(u32::MAX);
    }
}

/// The last holder or export frees the memory, once, after all uses.
#[test]
fn the_last_holder_frees_behind_all_uses() {
    explore(3, || {
        let memory = memory();
        let buffer = on(Device::CPU, Owner::Foreign(Box::new(Freed(memory.clone()))));
        let export = buffer.export();
        let holder = buffer.clone();
        let of_export = memory.clone();
        let exports = thread::spawn(move || {
            assert_eq!(of_export.read(), 0);
            drop(export);
        });
        let of_holder = memory.clone();
        let holds = thread::spawn(move || {
            let second = holder.clone();
            drop(holder);
            assert_eq!(of_holder.read(), 0);
            drop(second);
        });
        assert_eq!(memory.read(), 0);
        drop(buffer);
        exports.join().unwrap();
        holds.join().unwrap();
        assert_eq!(memory.read(), u32::MAX);
    });
}

/// Memory is overwritten (donated) only after all uses by other threads.
#[test]
fn memory_is_donated_behind_all_uses() {
    explore(3, || {
        let memory = memory();
        let buffer = on(Device::CPU, Owner::Host);
        let (export, holder) = (buffer.export(), buffer.clone());
        let of_export = memory.clone();
        let exports = thread::spawn(move || {
            of_export.write(1);
            drop(export);
        });
        let of_holder = memory.clone();
        let holds = thread::spawn(move || {
            if holder.is_unshared(1) {
                of_holder.write(2);
            }
            drop(holder);
        });
        while !buffer.is_unshared(1) {
            thread::yield_now();
        }
        memory.write(3);
        exports.join().unwrap();
        holds.join().unwrap();
    });
}

/// A mirror that is kept has the buffer's content, whatever a consumer of an export wrote.
#[test]
fn no_mirror_outlives_what_a_consumer_writes() {
    explore(3, || {
        let content = Arc::new(AtomicU64::new(0));
        let buffer = on(Device::CPU, Owner::Host);
        let (exported, written) = (buffer.clone(), content.clone());
        let consumer = thread::spawn(move || {
            let export = exported.export();
            // Mirrors of exported memory are not kept.
            assert!(exported.mirrored(GPU).is_none());
            written.store(1, Ordering::Relaxed);
            drop(export);
        });
        let copied = Arc::new(std::sync::atomic::AtomicU64::new(u64::MAX));
        let make = || {
            copied.store(content.load(Ordering::Relaxed), Ordering::Relaxed);
            Ok(on(GPU, Owner::Host))
        };
        buffer.mirror(GPU, make).unwrap();
        consumer.join().unwrap();
        if buffer.mirrored(GPU).is_some() {
            assert_eq!(copied.load(Ordering::Relaxed), content.load(Ordering::Relaxed));
        }
    });
}

/// If several threads make mirrors at the same time, each has a mirror, and one of them is kept.
#[test]
fn mirrors_made_at_once() {
    explore(3, || {
        let buffer = on(Device::CPU, Owner::Host);
        let other = buffer.clone();
        let mirrors = thread::spawn(move || {
            other.mirror(GPU, || Ok(on(GPU, Owner::Host))).unwrap();
        });
        buffer.mirror(GPU, || Ok(on(GPU, Owner::Host))).unwrap();
        mirrors.join().unwrap();
        assert!(buffer.mirrored(GPU).is_some());
        buffer.changes();
        assert!(buffer.mirrored(GPU).is_none());
        assert!(buffer.is_unshared(1));
    });
}
