//! `ultramarine.about/1`: a readable list of the adapters that were found on this machine.

use crate::hal::{Adapters, Properties};
use crate::program;
use core::ffi::{c_char, c_void};
use ultramarine_abi::helper::guard_value;
use ultramarine_abi::interface::about::AboutInterface;

/// The interface.
pub static TABLE: AboutInterface =
    AboutInterface { size: size_of::<AboutInterface>() as u32, flags: 0, describe: Some(describe) };

unsafe extern "C" fn describe(_backend: *mut c_void, text: *mut c_char, room: u64) -> u64 {
    guard_value(None, 0, || {
        let report = lines().join("\n");
        let bytes = report.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        if !text.is_null() {
            // SAFETY: the caller provides room for `bytes` bytes.
            unsafe { text.cast::<u8>().copy_from_nonoverlapping(report.as_ptr(), bytes) };
        }
        report.len() as u64
    })
}

/// A line for each adapter, and the directory of compiled kernels.
fn lines() -> Vec<String> {
    let mut lines = match Adapters::enumerate() {
        Ok(Adapters { list, left_out }) => {
            let devices = list.iter().map(|found| line(&found.properties));
            let left_out = left_out.into_iter().map(|why| format!("left out: {why}"));
            devices.chain(left_out).collect()
        }
        Err(why) => vec![why],
    };
    lines.push(match program::directory() {
        Some(place) => format!("compiled kernels: {}", place.display()),
        None => "compiled kernels are not kept".to_owned(),
    });
    lines
}

fn line(properties: &Properties) -> String {
    const MIB: u64 = 1 << 20;
    let Properties { name, driver, kind, memory, max_buffer, subgroup, .. } = properties;
    let float64 = if properties.float64 { "" } else { ", no float64" };
    format!(
        "{name} ({driver}): {kind:?}, {} MiB, buffers of {} MiB at most, subgroups of {subgroup}{float64}",
        memory / MIB,
        max_buffer / MIB
    )
}
