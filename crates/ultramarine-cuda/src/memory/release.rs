//! The release of imported memory.

use crate::context;
use core::ffi::c_void;

/// The function that returns imported memory to its owner. It is called once, after the last use of
/// the memory.
pub struct Release {
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    context: *mut c_void,
}

// SAFETY: the contract allows calling it on any thread.
unsafe impl Send for Release {}
// SAFETY: shared references give no access to its fields.
unsafe impl Sync for Release {}

impl Release {
    /// The owner's function and its argument.
    pub fn new(function: Option<unsafe extern "C" fn(*mut c_void)>, context: *mut c_void) -> Self {
        Self { function, context }
    }

    /// Calls the function, unless it was called before. In a forked child it is not called, because
    /// the memory belongs to the parent, who will call it.
    pub fn now(&mut self) {
        if let Some(function) = self.function.take().filter(|_| !context::forked()) {
            // SAFETY: the owner's own function with its own argument, once.
            unsafe { function(self.context) };
        }
    }
}
