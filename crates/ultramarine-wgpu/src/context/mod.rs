//! An open device of the hal: the state that memory, kernels and streams share, and the loss of the
//! device.

mod failure;
mod fork;
mod layouts;

pub use failure::{lock, of_hal};
pub use layouts::{BINDINGS, Layout};

use crate::hal::{self, Found, Properties};
use core::mem::ManuallyDrop;
use layouts::Layouts;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;
use wgpu_hal::Device as _;

/// The longest that a device's last work is waited for before its memory is destroyed.
const LAST_WAIT: Duration = Duration::from_secs(10);

/// A device of the hal with its fence and layouts. Every object made from the device holds a
/// reference to this, so the device is destroyed last. Once the driver reports the device's loss,
/// all calls fail with the reason.
pub struct Context {
    /// The hal's device.
    pub device: hal::Device,
    /// Reaches the number of each submission when the submission has completed.
    fence: ManuallyDrop<hal::Fence>,
    /// The adapter's properties.
    pub properties: Properties,
    layouts: Layouts,
    lost: OnceLock<String>,
    /// Number of forks when the device was opened.
    forks: u32,
    /// Number of buffers that were made.
    made: AtomicU64,
    /// Number of buffers that were destroyed.
    destroyed: AtomicU64,
    /// Number of items in the lists of waiting streams.
    held: AtomicU64,
    /// Number of barriers that were recorded, including the ends of lists.
    barriers: AtomicU64,
}

impl Context {
    /// Opens an adapter.
    pub fn open(found: &Found) -> Result<(Self, hal::Queue)> {
        fork::count_forks();
        let opened = hal::open(found).map_err(Failure::new)?;
        // SAFETY: the device is open.
        let fence = unsafe { opened.device.create_fence() };
        let fence = fence.map_err(|why| of_hal("a fence", why))?;
        let context = Self {
            device: opened.device,
            fence: ManuallyDrop::new(fence),
            properties: found.properties.clone(),
            layouts: Layouts::default(),
            lost: OnceLock::new(),
            forks: fork::forks(),
            made: AtomicU64::new(0),
            destroyed: AtomicU64::new(0),
            held: AtomicU64::new(0),
            // This is not 0, because 0 is the initial last use of every buffer.
            barriers: AtomicU64::new(1),
        };
        Ok((context, opened.queue))
    }

    /// The layout of kernels with the given number of bindings.
    pub fn layout(&self, bindings: usize) -> Result<&Layout> {
        self.layouts.get(&self.device, bindings)
    }

    /// A number for a new buffer.
    pub fn new_id(&self) -> u64 {
        self.made.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a destroyed buffer.
    pub fn count_destroyed(&self) {
        self.destroyed.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of destroyed buffers.
    pub fn destroyed(&self) -> u64 {
        self.destroyed.load(Ordering::Relaxed)
    }

    /// Sets how many items of work stay on the host because their streams wait.
    pub fn hold_work(&self, items: u64) {
        self.held.store(items, Ordering::Release);
    }

    /// Returns true while work stays on the host because its stream waits.
    pub fn holds_work(&self) -> bool {
        self.held.load(Ordering::Acquire) > 0
    }

    /// Counts a barrier between commands.
    pub fn count_barrier(&self) {
        self.barriers.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of barriers that were recorded.
    pub fn barriers(&self) -> u64 {
        self.barriers.load(Ordering::Relaxed)
    }

    /// The last submission that has completed.
    pub fn completed(&self) -> u64 {
        // SAFETY: the fence is the device's.
        unsafe { self.device.get_fence_value(&self.fence) }.unwrap_or(0)
    }

    /// The fence that submissions signal.
    pub fn fence(&self) -> &hal::Fence {
        &self.fence
    }

    /// Blocks until a submission has completed. `doing` names the running work, for the error if the
    /// device is lost.
    pub fn wait(&self, value: u64, doing: impl FnOnce() -> String) -> Result<()> {
        self.usable()?;
        if value == 0 {
            return Ok(());
        }
        loop {
            // SAFETY: the fence is the device's, and the value was submitted.
            match unsafe { self.device.wait(&self.fence, value, Some(Duration::from_secs(3600))) } {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(why) => return Err(self.lose(&doing(), why)),
            }
        }
    }

    /// Waits until no submission up to this one can still run, at most 10 s. Returns false if one may run longer.
    /// A device that was declared lost is waited for, too: what it was given may still be running.
    pub fn settle(&self, value: u64) -> bool {
        if value == 0 {
            return true;
        }
        // SAFETY: the fence is the device's, and the value was submitted.
        match unsafe { self.device.wait(&self.fence, value, Some(LAST_WAIT)) } {
            Ok(completed) => completed,
            // The driver runs nothing on a device that it has lost.
            Err(wgpu_hal::DeviceError::Lost) => true,
            Err(_) => false,
        }
    }

    /// True in a forked child of the process that opened the device. Drivers do not survive a fork, so in the child
    /// calls are refused, and dropped objects leak.
    pub fn forked(&self) -> bool {
        fork::forks() != self.forks
    }

    /// Fails in a forked child, and once the device is lost.
    pub fn usable(&self) -> Result<()> {
        if self.forked() {
            let text = "the device was opened before this process was forked. Open it in the child alone, or start \
                        processes by spawning them";
            return Err(Failure { code: status::FORKED, text: text.to_owned() });
        }
        match self.lost.get() {
            Some(why) => Err(Failure::new(why.clone())),
            None => Ok(()),
        }
    }

    /// The failure of a call that makes the device unusable, unless memory was lacking.
    pub fn lose(&self, doing: &str, why: wgpu_hal::DeviceError) -> Failure {
        if why == wgpu_hal::DeviceError::OutOfMemory {
            return of_hal(doing, why);
        }
        self.abandon(&format!("{doing}: {why}"))
    }

    /// Marks the device as lost: all later calls fail with this failure.
    pub fn abandon(&self, why: &str) -> Failure {
        let text = || {
            format!(
                "{} is lost, {why}. Results that were not read are gone. Restart the process",
                self.properties.name
            )
        };
        Failure::new(self.lost.get_or_init(text).clone())
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        self.layouts.destroy(&self.device);
        // SAFETY: the fence is taken only once; the queue held the context, so it is gone or idle.
        unsafe { self.device.destroy_fence(ManuallyDrop::take(&mut self.fence)) };
    }
}
