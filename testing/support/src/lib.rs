//! Shared by the tests of all crates: one random generator, one comparison of numbers, one finite
//! difference, and tests in a process of their own. It depends on none of the crates it tests.

mod compare;
mod difference;
mod process;
mod random;

pub use compare::{Tolerance, assert_close, compare};
pub use difference::{directional, gradient};
pub use process::{Passed, is_child, run_child, test_of};
pub use random::Rng;
