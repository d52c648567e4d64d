//! Evaluation on the CPU: from a call to its value, fusion, memory, threads, forks.

mod anchors;
mod donation;
mod end_to_end;
#[cfg(unix)]
mod fork;
mod fusion;
mod lowering;
mod memory;
mod pool;
#[cfg(target_os = "linux")]
mod processors;
mod profile;
mod repeated;
mod streams;
