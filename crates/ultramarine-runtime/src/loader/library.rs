//! An open plugin: its entry points, and the information that they return before init.

use super::reason::{Code, Reason};
use crate::backend::start::{Guarded, MOST_DEVICES};
use libloading::Library;
use std::mem::ManuallyDrop;
use std::path::Path;
use ultramarine_abi::{
    self as abi, BackendAbiInfo, BackendAbiInfoFn, BackendInit, BackendScore, BackendScoreFn,
    DeviceIdentity, inline_str, negotiate, status, symbol,
};

/// The most devices that a score may describe. Further devices are only counted.
const DESCRIBED: usize = 64;

/// An open plugin. Its code stays mapped until the process ends, even if the plugin is not used:
/// constructors and the score function may have started threads or registered exit handlers.
pub(super) struct Plugin {
    info: BackendAbiInfoFn,
    score: Option<BackendScoreFn>,
    init: BackendInit,
}

impl Plugin {
    /// Opens a file and looks up its entry points. This runs its constructors.
    pub fn open(real: &Path) -> Result<Plugin, Reason> {
        let library = ManuallyDrop::new(open(real)?);
        // SAFETY: by the ABI, the symbols have these types, and the library outlives their use.
        unsafe {
            let missing = |name: &std::ffi::CStr| {
                let text = format!("it does not export {}", name.to_string_lossy());
                let reason = Reason::new(Code::NoEntryPoint, text);
                if name != symbol::ABI_INFO {
                    return reason;
                }
                reason.with_remedy(
                    "write UM_DEFINE_BACKEND(...) of helper.h once in the library, at file scope (in Rust: export_backend!)",
                )
            };
            let info = lookup::<BackendAbiInfoFn>(&library, symbol::ABI_INFO);
            let init = lookup::<BackendInit>(&library, symbol::INIT);
            let score = lookup::<BackendScoreFn>(&library, symbol::SCORE);
            let info = info.ok_or_else(|| missing(symbol::ABI_INFO))?;
            let init = init.ok_or_else(|| missing(symbol::INIT))?;
            Ok(Plugin { info, score, init })
        }
    }

    /// Calls the entry point that returns the ABI info.
    pub fn info(&self) -> Result<BackendAbiInfo, Reason> {
        let room = size_of::<BackendAbiInfo>() as u32;
        // SAFETY: all-zero is a valid BackendAbiInfo.
        let mut place = Guarded::<BackendAbiInfo>::new(unsafe { std::mem::zeroed() });
        place.value.size = room;
        // SAFETY: the pointer is valid for writing, and the struct has its size in it.
        let code = unsafe { (self.info)(place.place()) };
        let garbage = |text: String| Reason::new(Code::InfoGarbage, text);
        if code != status::OK {
            return Err(garbage(format!("its ABI info failed with status {code}")));
        }
        if !place.is_whole() {
            return Err(garbage(format!("its ABI info wrote beyond its {room} bytes")));
        }
        let written = place.value.size;
        if written > room {
            return Err(garbage(format!(
                "its ABI info says that it wrote {written} bytes into {room}"
            )));
        }
        // SAFETY: the struct begins with its size, which is at most the size of its memory.
        unsafe { abi::read_sized(&place.value) }.ok_or_else(|| garbage("no ABI info".to_owned()))
    }

    /// Calls the score function. Returns the plugin's score on this machine, and the devices that
    /// it found.
    pub fn score(&self) -> Result<(u32, Vec<DeviceIdentity>), Reason> {
        let Some(score) = self.score else { return Ok((abi::DEFAULT_SCORE, Vec::new())) };
        // SAFETY: all-zero is a valid DeviceIdentity.
        let mut empty: DeviceIdentity = unsafe { std::mem::zeroed() };
        empty.size = size_of::<DeviceIdentity>() as u32;
        let mut devices = Guarded::new([empty; DESCRIBED]);
        let mut place = Guarded::new(BackendScore {
            size: size_of::<BackendScore>() as u32,
            score: 0,
            device_count: 0,
            device_capacity: DESCRIBED as u32,
            device_stride: size_of::<DeviceIdentity>() as u32,
            reserved: 0,
            devices: devices.place().cast(),
            reason: [0; 256],
        });
        // SAFETY: the pointers are valid for writing, and the structs have their sizes in them.
        let code = unsafe { score(place.place()) };
        let garbage = |text: String| Err(Reason::new(Code::ScoreGarbage, text));
        if !place.is_whole() || !devices.is_whole() {
            return garbage("its score wrote beyond its structs".to_owned());
        }
        let scored = place.value;
        let reason = inline_str(&scored.reason);
        let zero = |text: String| Err(Reason::new(Code::ScoreZero, text));
        match (code, reason.is_empty()) {
            (status::OK, _) => {}
            (_, true) => return zero(format!("its score failed with status {code}")),
            (_, false) => return zero(format!("its score failed with status {code}: {reason}")),
        }
        match (scored.score, reason.is_empty()) {
            (0, true) => {
                let reason = "it cannot run on this machine (score 0), and gives no reason";
                let reason = Reason::new(Code::ScoreZero, reason);
                return Err(reason.with_remedy(
                    "have its score function set `reason`, or ask its authors for that",
                ));
            }
            (0, false) => return zero(format!("it cannot run on this machine: {reason}")),
            (n, _) if n > abi::MAX_SCORE => {
                return garbage(format!("its score is {n}, above the maximum {}", abi::MAX_SCORE));
            }
            _ => {}
        }
        if scored.device_count > MOST_DEVICES {
            return garbage(format!("its score claims {} devices", scored.device_count));
        }
        let n = (scored.device_count as usize).min(DESCRIBED);
        Ok((scored.score, devices.value[..n].to_vec()))
    }

    /// Returns the entry point that starts the plugin.
    pub fn init(&self) -> BackendInit {
        self.init
    }
}

/// # Safety
/// `F` is the type of the symbol, a function pointer. The library stays open while it is used.
unsafe fn lookup<F: Copy>(library: &Library, name: &std::ffi::CStr) -> Option<F> {
    // SAFETY: by this function's contract.
    unsafe { library.get::<F>(name.to_bytes_with_nul()) }.ok().map(|symbol| *symbol)
}

/// Opens the library with `RTLD_NOW` and `RTLD_LOCAL`. All symbols are bound at once, so that
/// missing ones are detected here and not in the middle of work; and the plugin's symbols stay
/// private. `RTLD_DEEPBIND` is not used, because the plugin could then use another allocator than
/// the process.
#[cfg(unix)]
fn open(real: &Path) -> Result<Library, Reason> {
    use libloading::os::unix;
    // SAFETY: constructors of the file run. The user or the administrator put the library into a
    // directory for backends. It is for this machine and, if it has a note, for this processor.
    unsafe { unix::Library::open(Some(real), unix::RTLD_NOW | unix::RTLD_LOCAL) }
        .map(Library::from)
        .map_err(|e| refused(real, &message(&e)))
}

#[cfg(not(unix))]
fn open(real: &Path) -> Result<Library, Reason> {
    // SAFETY: its DllMain runs. The reasons are the same as on other systems.
    unsafe { Library::new(real) }.map_err(|e| refused(real, &message(&e)))
}

/// Returns the system's message without the text that libloading adds.
fn message(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

fn refused(real: &Path, message: &str) -> Reason {
    let reason = Reason::new(Code::OpenFailed, format!("it cannot be opened: {message}"));
    // glibc's message: "libfoo.so.1: cannot open shared object file: No such file or directory".
    let missing = message.split_once(": cannot open shared object file").map(|(name, _)| name);
    match missing.filter(|name| std::path::Path::new(name) != real) {
        Some(name) => reason.with_remedy(format!("install the package with the library {name}")),
        None if message.contains("undefined symbol") => {
            reason.with_remedy("link it against the library that defines the symbol")
        }
        None => reason,
    }
}

/// The host that a plugin must be compatible with: this build, and the sanitizers whose runtimes are in the process.
pub(super) fn host() -> negotiate::Host {
    let here = negotiate::Host::here();
    negotiate::Host { sanitizers: here.sanitizers | sanitizers(), ..here }
}

/// The sanitizers whose runtimes are in the process.
#[cfg(unix)]
fn sanitizers() -> u32 {
    use abi::sanitizer;
    let runtimes = [
        (c"__asan_init", sanitizer::ADDRESS),
        (c"__tsan_init", sanitizer::THREAD),
        (c"__msan_init", sanitizer::MEMORY),
    ];
    let this = Library::from(libloading::os::unix::Library::this());
    // SAFETY: the symbol is only looked up, and not used.
    let found = |name| unsafe { lookup::<*const ()>(&this, name) }.is_some();
    runtimes.into_iter().filter(|(name, _)| found(name)).fold(0, |bits, (_, bit)| bits | bit)
}

/// On other systems, sanitizers cannot be detected.
#[cfg(not(unix))]
fn sanitizers() -> u32 {
    0
}
