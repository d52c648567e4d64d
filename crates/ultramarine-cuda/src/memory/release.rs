//! The release of imported memory.

use crate::context;
use core::ffi::c_void;

/// The function that returns imported memory to its owner. It is called once, when the last use of
/// the memory has completed.
pub struct Release {
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    context: *mut c_void,
}

// SAFETY: the contract lets it be called on any thread.
unsafe impl Send for Release {}
// SAFETY: nothing of it is used through shared references.
unsafe impl Sync for Release {}

impl Release {
    /// The owner's function and its argument.
    pub fn new(function: Option<unsafe extern "C" fn(*mut c_void)>, context: *mut c_void) -> Self {
        Self { function, context }
    }

    /// Calls it, if that was not done yet. In a forked child the memory is the parent's, who
    /// will.
    pub fn now(&mut self) {
        if let Some(function) = self.function.take().filter(|_| !context::forked()) {
            // SAFETY: the owner's own function with its own argument, once.
            unsafe { function(self.context) };
        }
    }
}
