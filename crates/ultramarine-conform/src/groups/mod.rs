//! The groups of checks, each run in a process of its own.

mod abi;
mod accumulation;
mod collective;
mod errors;
mod foreign_memory;
mod forked;
mod forward_compatibility;
mod fused;
mod interfaces;
mod kernels;
mod large;
mod lists;
mod load;
mod memory;
mod ops;
mod replay;
mod stream_memory;
mod streams;
mod threads;
mod timing;
mod upload;

pub use load::CANNOT_RUN;
pub use ops::scope;

use crate::bench;
use crate::device::Device;
use crate::options::Options;
use crate::plugin::{Backend, Source};
use crate::record::Recorder;
use ultramarine_abi::{BackendAbiInfo, schema};

/// Runs a group.
type Run = fn(&mut Recorder, &Options, &Source);

/// The groups that are not for a single op.
const GROUPS: [(&str, Run); 10] = [
    ("abi", abi::run),
    ("errors", errors::run),
    ("memory", memory::run),
    ("streams", streams::run),
    ("threads", threads::run),
    ("interfaces", interfaces::run),
    ("collective", collective::run),
    ("kernels", kernels::run),
    ("fused", fused::run),
    ("large", large::run),
];

/// The group that runs before all groups that call the backend. It is not in [`names`].
pub const LOAD: &str = "load";

/// Names of all groups, in the order in which they are run. `file` is the parent's own.
pub fn names() -> Vec<&'static str> {
    let mut all = vec!["file"];
    all.extend(GROUPS.iter().map(|g| g.0).filter(|n| *n != "large"));
    all.extend(ops::names().iter().map(String::as_str));
    all.push("large");
    all
}

pub use collective::run_rank;

/// Runs a group; false if there is none of that name.
pub fn run(name: &str, recorder: &mut Recorder, options: &Options) -> bool {
    if name == LOAD {
        load::run(recorder, options, &options.source);
    } else if name == bench::GROUP {
        bench::measure(recorder, options);
    } else if let Some(group) = GROUPS.iter().find(|g| g.0 == name) {
        (group.1)(recorder, options, &options.source);
    } else if let Some(op) = name.strip_prefix("ops.").and_then(schema::find_name) {
        ops::run(recorder, options, op);
    } else {
        return false;
    }
    recorder.done();
    true
}

/// Loads the backend and opens the tested device for a group. If this fails, a check of the group
/// fails.
pub fn with_device(
    recorder: &mut Recorder,
    options: &Options,
    group: &str,
    f: impl FnOnce(&mut Recorder, &Device<'_>),
) {
    let mut loaded = None;
    let mut why = None;
    match Backend::load(&options.source) {
        Ok(backend) => loaded = Some(backend),
        Err(text) => why = Some(text),
    }
    let opened = loaded.as_ref().map(|backend| Device::open(backend, options.device));
    match (opened, why) {
        (Some(Ok(device)), _) => {
            f(recorder, &device);
            device.close();
        }
        (Some(Err(text)), _) | (None, Some(text)) => {
            recorder.check(&format!("{group}/open"), || Err(text));
        }
        (None, None) => {}
    }
}

/// The name of an op.
fn op_name(id: schema::OpId) -> &'static str {
    schema::find(id).map_or("unknown", |row| row.name)
}

/// An ABI info as text, to be compared.
pub fn info_bytes(info: &BackendAbiInfo) -> String {
    // SAFETY: the struct is plain integers without padding.
    let bytes = unsafe {
        std::slice::from_raw_parts((&raw const *info).cast::<u8>(), size_of::<BackendAbiInfo>())
    };
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
