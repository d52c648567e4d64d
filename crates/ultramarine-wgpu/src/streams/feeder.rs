//! The thread that submits commands which were left for later while the queue had enough to do.
//!
//! A submission costs more than many commands, so commands are collected while the queue is busy. If nothing more comes,
//! nobody else would submit them. The thread sleeps unless that has happened.

use super::Scheduler;
use super::scheduler::Next;
use crate::hal;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};

/// The thread, from its first use on.
pub(super) struct Feeder {
    wake: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Feeder {
    /// Starts the thread; `None` if the system has no more.
    pub fn start(scheduler: &Arc<Scheduler>) -> Option<Self> {
        let (wake, woken) = mpsc::channel();
        let scheduler = Arc::downgrade(scheduler);
        let thread = thread::Builder::new().name(format!("ultramarine-{}", hal::NAME));
        let thread = thread.spawn(move || feed(&scheduler, &woken)).ok()?;
        Some(Self { wake: Some(wake), thread: Some(thread) })
    }

    /// Has the thread look after commands that were left.
    pub fn wake(&self) {
        if let Some(wake) = &self.wake {
            // It ends only with this value.
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
            // Its owner may drop it meanwhile.
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

/// The names of what runs, for the message if the device is lost.
fn names_of(scheduler: &Weak<Scheduler>) -> String {
    scheduler.upgrade().map_or_else(String::new, |scheduler| scheduler.names())
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.wake = None;
        let thread = self.thread.take().filter(|t| t.thread().id() != thread::current().id());
        if let Some(thread) = thread {
            // A panic of it was reported by the hook.
            _ = thread.join();
        }
    }
}
