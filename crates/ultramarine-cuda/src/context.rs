//! A device's primary context, which is the one that the CUDA runtime and other libraries use.

use crate::failure::cuda;
use crate::sys::driver::{ContextHandle, Driver, Ordinal};
use std::sync::OnceLock;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;

/// The process that initialised the driver, which does not survive a fork.
fn home() -> u32 {
    static HOME: OnceLock<u32> = OnceLock::new();
    *HOME.get_or_init(std::process::id)
}

/// Whether this is a forked child of the process that initialised the driver.
pub fn forked() -> bool {
    home() != std::process::id()
}

/// What a forked child is told.
pub fn not_forked() -> Result<()> {
    match forked() {
        false => Ok(()),
        true => Err(Failure {
            code: status::FORKED,
            text: "CUDA cannot be used in a forked process: start it by spawn or exec".to_owned(),
        }),
    }
}

/// A retained primary context.
pub struct Context {
    driver: &'static Driver,
    handle: ContextHandle,
    ordinal: Ordinal,
}

// SAFETY: contexts may be used from any thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// Retains the primary context of a device.
    pub fn retain(driver: &'static Driver, ordinal: Ordinal) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        home();
        // SAFETY: the place is valid; the driver was initialised.
        unsafe { cuda!(driver.context_retain(&mut handle, ordinal)) }?;
        Ok(Self { driver, handle, ordinal })
    }

    /// The driver's handle.
    pub fn handle(&self) -> ContextHandle {
        self.handle
    }

    /// Makes it the calling thread's context until the result is dropped; then the thread has
    /// the one that it had, which may be another library's choice of device.
    #[inline]
    pub fn enter(&self) -> Result<Entered> {
        not_forked()?;
        let driver = self.driver;
        let mut current = std::ptr::null_mut();
        // SAFETY: the place is valid.
        unsafe { cuda!(driver.context_current(&mut current)) }?;
        if current == self.handle {
            return Ok(Entered { driver, pushed: false });
        }
        // SAFETY: a retained context.
        unsafe { cuda!(driver.context_push(self.handle)) }?;
        Ok(Entered { driver, pushed: true })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !forked() {
            // SAFETY: retained once, released once.
            unsafe { (self.driver.context_release)(self.ordinal) };
        }
    }
}

/// The device's context is the thread's.
pub struct Entered {
    driver: &'static Driver,
    pushed: bool,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.pushed {
            let mut left = std::ptr::null_mut();
            // SAFETY: it was pushed by this thread.
            unsafe { (self.driver.context_pop)(&mut left) };
        }
    }
}
