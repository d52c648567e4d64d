//! Wait values: words in pinned memory that streams can wait for (`cuStreamWaitValue32`).

use super::failure::{self, cuda};
use super::{Context, lock};
use crate::sys::driver::{Address, Driver, EventHandle, StreamHandle, code};
use core::ffi::c_void;
use std::sync::Mutex;
use ultramarine_abi::helper::Result;

/// A word that a stream waits for. Words are reused: each use waits for the next higher ticket.
pub(crate) struct WaitValue {
    pub word: *mut u32,
    pub address: Address,
    pub ticket: u32,
}

// SAFETY: the word is written atomically by the device, or by the host when nothing else accesses
// it.
unsafe impl Send for WaitValue {}

/// A word in use. It is free again when the event recorded after the wait has completed.
struct Spent {
    word: *mut u32,
    address: Address,
    ticket: u32,
    event: EventHandle,
}

/// The wait values of a context.
#[derive(Default)]
pub(crate) struct WaitValues {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pages: Vec<*mut c_void>,
    /// Words that nothing waits for, with the value last written to each.
    free: Vec<(*mut u32, Address, u32)>,
    spent: Vec<Spent>,
}

// SAFETY: pinned memory, reached under the lock.
unsafe impl Send for State {}

/// Bytes of a page of words.
const PAGE: usize = 4096;
/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`.
const PORTABLE_MAPPED: u32 = 3;

impl State {
    fn word(&mut self, driver: &'static Driver) -> Result<(*mut u32, Address, u32)> {
        // SAFETY: an event of this context, recorded after the wait.
        let over = |s: &Spent| unsafe { (driver.event_query)(s.event) } == code::SUCCESS;
        while let Some(at) = self.spent.iter().position(over) {
            let spent = self.spent.swap_remove(at);
            // SAFETY: made once, destroyed once; nothing waits for it.
            unsafe { (driver.event_destroy)(spent.event) };
            self.free.push((spent.word, spent.address, spent.ticket));
        }
        if let Some(found) = self.free.pop() {
            return Ok(found);
        }
        let (mut page, mut address) = (std::ptr::null_mut(), 0);
        // SAFETY: the output pointers are valid; the context is current.
        unsafe {
            cuda!(driver.host_alloc(&mut page, PAGE, PORTABLE_MAPPED))?;
            self.pages.push(page);
            page.cast::<u8>().write_bytes(0, PAGE);
            cuda!(driver.host_address(&mut address, page, 0))?;
        }
        let word = |i: usize| (page.cast::<u32>().wrapping_add(i), address + 4 * i as u64, 0);
        self.free.extend((1..PAGE / 4).map(word));
        Ok(word(0))
    }
}

impl WaitValues {
    /// Enqueues a wait for a word to the stream, and returns the word; `None` if the driver has no
    /// such waits. The context is current.
    pub(crate) fn wait(
        &self,
        context: &Context,
        stream: StreamHandle,
    ) -> Result<Option<WaitValue>> {
        let driver = context.driver();
        let mut state = lock(&self.state);
        let (word, address, last) = state.word(driver)?;
        let ticket = last.wrapping_add(1);
        // SAFETY: a word of pinned memory, and a stream of this context. Flags 0: the stream waits
        // until the word is at least the ticket, compared cyclically.
        match unsafe { (driver.stream_wait_value)(stream, address, ticket, 0) } {
            code::SUCCESS => {}
            code::NOT_SUPPORTED => {
                state.free.push((word, address, last));
                return Ok(None);
            }
            other => return Err(failure::of(driver, "stream_wait_value", other)),
        }
        let event = context.take_event()?;
        // SAFETY: both are of this context.
        unsafe { cuda!(driver.event_record(event, stream)) }?;
        state.spent.push(Spent { word, address, ticket, event });
        Ok(Some(WaitValue { word, address, ticket }))
    }

    /// Frees the words. The context is current, and its streams have drained.
    pub(crate) fn close(&self, driver: &'static Driver) {
        let mut state = lock(&self.state);
        for spent in state.spent.drain(..) {
            // SAFETY: made once, destroyed once.
            unsafe { (driver.event_destroy)(spent.event) };
        }
        state.free.clear();
        for page in state.pages.drain(..) {
            // SAFETY: allocated once, freed once.
            unsafe { (driver.host_free)(page) };
        }
    }
}
