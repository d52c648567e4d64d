//! NVTX, named ranges for CUDA's profilers.

use super::{find, functions};
use core::ffi::{c_char, c_int};
use std::sync::OnceLock;

functions! {
    /// Functions of NVTX. They are callable from any thread, and have no effect without a profiler.
    Nvtx {
        push = "nvtxRangePushA" fn(*const c_char) -> c_int;
        pop = "nvtxRangePop" fn() -> c_int;
    }
}

/// NVTX, opened once, at the first range; `None` if it is not installed.
pub fn nvtx() -> Option<&'static Nvtx> {
    static NVTX: OnceLock<Option<Nvtx>> = OnceLock::new();
    NVTX.get_or_init(|| Nvtx::of(find::open(find::Kind::Nvtx).ok()?).ok()).as_ref()
}
