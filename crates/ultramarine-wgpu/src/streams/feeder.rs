//! The thread that submits commands that were held back while the queue was busy.
//!
//! A submission costs more than many commands, so commands are collected while the queue is busy.
//! If no further command arrives, no other thread would submit them. The thread sleeps unless
//! commands are held back.

use super::Scheduler;
use super::scheduler::Next;
use crate::hal;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

/// The thread, which is started at its first use.
pub(super) struct Feeder {
    wake: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Feeder {
    /// Starts the thread. `None` if the system provides none.
    pub fn start(scheduler: &Arc<Scheduler>) -> Option<Self> {
        let (wake, woken) = mpsc::channel();
        let scheduler = Arc::downgrade(scheduler);
        let thread = thread::Builder::new().name(format!("ultramarine-{}", hal::NAME));
        let thread = thread.spawn(move || feed(&scheduler, &woken)).ok()?;
        Some(Self { wake: Some(wake), thread: Some(thread) })
    }

    /// Makes the thread check for commands that are held back.
    pub fn wake(&self) {
        if let Some(wake) = &self.wake {
            // The receiver ends only when this value is dropped.
            _ = wake.send(());
        }
    }
}

fn feed(weak: &Weak<Scheduler>, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        loop {
            let Some(scheduler) = weak.upgrade() else { return };
            let Some(next) = scheduler.feed() else { break };
            let context = scheduler.context.clone();
            // Drop it, because its owner may want to drop it too.
            drop(scheduler);
            match next {
                Next::Wait(submission) => _ = context.wait(submission, || names_of(weak)),
                Next::Sleep(time) => thread::sleep(time),
            }
            if context.usable().is_err() {
                break;
            }
        }
    }
}

/// The names of running commands, for the error if the device is lost.
fn names_of(scheduler: &Weak<Scheduler>) -> String {
    scheduler.upgrade().map_or_else(String::new, |scheduler| scheduler.names())
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.wake = None;
        let thread = self.thread.take().filter(|t| t.thread().id() != thread::current().id());
        if let Some(thread) = thread {
            // If it panicked, the panic hook has reported that.
            _ = thread.join();
        }
    }
}
