//! The stages of opening a device. A failure here would occur in every group.

use super::abi;
use crate::device::Device;
use crate::options::Options;
use crate::plugin::{Backend, Entry, Source, status_name};
use crate::record::{PASSED, Recorder, Result};
use serde_json::json;
use ultramarine_abi::{self as abi_crate, BackendScore, inline_str, status};

/// The property with the reason of a score of 0.
pub const CANNOT_RUN: &str = "cannot run here";

pub fn run(recorder: &mut Recorder, options: &Options, source: &Source) {
    let mut entry = None;
    recorder.check("load/open", || {
        entry = Some(source.entry()?);
        PASSED
    });
    let Some(entry) = entry else { return };
    let mut zero = None;
    recorder.check("load/score", || {
        zero = score(&entry)?;
        PASSED
    });
    if let Some(reason) = zero {
        recorder.property(CANNOT_RUN, json!(reason));
        return;
    }
    let mut backend = None;
    recorder.check("load/init", || {
        backend = Some(Backend { info: entry.info()?, table: entry.init()? });
        PASSED
    });
    let Some(backend) = backend else { return };
    recorder.check("load/functions", || abi::functions(&backend));
    recorder.check("load/device", || device(&backend, options.device));
}

/// The reason why the backend cannot run here, if its score is 0.
fn score(entry: &Entry) -> Result<Option<String>> {
    let Some(ask) = entry.score else { return Ok(None) };
    // SAFETY: all-zero bytes are a score.
    let mut score: BackendScore = unsafe { std::mem::zeroed() };
    score.size = size_of::<BackendScore>() as u32;
    // SAFETY: the struct is writable and says its size; there is room for no device.
    let code = unsafe { ask(&mut score) };
    let reason = inline_str(&score.reason);
    if code != status::OK {
        return Err(format!("score returned {} ({reason})", status_name(code)));
    }
    let most = abi_crate::MAX_SCORE;
    ensure!(score.score <= most, "score {} is above {most}", score.score);
    let silent = "it gives no reason: fill in `reason` beside a score of 0";
    let reason = if reason.is_empty() { silent.to_owned() } else { reason };
    Ok((score.score == 0).then_some(reason))
}

fn device(backend: &Backend, index: u32) -> Result {
    let count = backend.table.device_count.ok_or("no device_count")?;
    // SAFETY: the backend's function with the backend's pointer.
    let n = unsafe { count(backend.table.backend) };
    ensure!(
        n != 0,
        "init succeeded, but device_count is 0: fail in init, or return a score of 0 with a reason"
    );
    ensure!(index < n, "there is no device {index}: device_count is {n}");
    Device::open(backend, index)?.close();
    PASSED
}
