//! What tests of the loader share.

// Every test binary is compiled with all of it and uses a part.
#![allow(dead_code)]

pub mod bad;
pub mod workshop;
