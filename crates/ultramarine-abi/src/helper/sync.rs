//! Streams and events for devices whose work is done when submit returns.

use std::sync::{Condvar, Mutex};

/// A stream without state. It takes a byte, so that each stream has its own address.
#[derive(Debug, Default)]
pub struct SyncStream {
    _place: u8,
}

/// A timeline event: a value that only increases, and for which threads can wait. It is for devices
/// whose work is done on return, and for devices that set the event from their own thread.
#[derive(Debug, Default)]
pub struct SyncEvent {
    value: Mutex<u64>,
    changed: Condvar,
}

impl SyncEvent {
    /// Makes an event with value 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the event to `value`. A higher value stays.
    pub fn reach(&self, value: u64) {
        let mut now = self.value.lock().unwrap_or_else(|e| e.into_inner());
        if value > *now {
            *now = value;
            self.changed.notify_all();
        }
    }

    /// Blocks until the event has reached `value`.
    pub fn wait(&self, value: u64) {
        let mut now = self.value.lock().unwrap_or_else(|e| e.into_inner());
        while *now < value {
            now = self.changed.wait(now).unwrap_or_else(|e| e.into_inner());
        }
    }

    /// Returns the present value.
    pub fn value(&self) -> u64 {
        *self.value.lock().unwrap_or_else(|e| e.into_inner())
    }
}
