//! Tensors that are made up, field by field, and what is true of them: for the tests of this crate
//! and for its fuzz target.
#![allow(dead_code)] // each binary uses a part

pub mod foreign;
pub mod header;
pub mod model;
pub mod trial;

/// Numbers that look random and are the same every time (splitmix64).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
