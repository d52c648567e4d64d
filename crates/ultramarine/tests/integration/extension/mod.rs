//! Primitives from outside, through the host's table: what they may do, and what becomes of those that misbehave.
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each calls the table, or reads what the table gave, as the contract says or as it must not"
)]

mod basics;
mod devices;
mod kernels;
mod memory;
mod merged;
mod misbehaving;
mod nested;
mod operations;
mod program;
mod raw;
mod sdk;
mod table;
