//! Primitives from outside, through the host's table: what they may do, and what becomes of those that misbehave.

mod basics;
mod devices;
mod memory;
mod misbehaving;
#[path = "../partial_backend/mod.rs"]
mod partial_backend;
mod raw;
mod sdk;
