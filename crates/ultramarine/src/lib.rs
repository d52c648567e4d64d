//! core

pub mod memory;
pub mod pool;
