//! What the tests share: streams of their own, random numbers.

use ultramarine::{Device, Result, Scope, new_stream};

/// A stream for the test alone, so that its work runs on its own thread, and what that let go of is
/// gone when it is over.
pub fn alone() -> Result<Scope> {
    Ok(Scope::new(new_stream(Device::CPU)?))
}

/// A generator that is good enough to choose cases.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }
}
