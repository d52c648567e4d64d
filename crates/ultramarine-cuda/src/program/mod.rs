//! Kernels: CUDA C that NVRTC compiles for the device, once for each name. Compiled code is kept on disk
//! ([`ultramarine_abi::helper::disk`]). Kernels can also be compiled in the background ([`background`]).

pub mod background;
pub mod compile;
mod headers;
mod kernels;
mod source;

pub use kernels::Kernels;
pub use source::{Source, index};

use crate::context::failure::{self, cuda};
use crate::context::{Context, DeviceProperties, lock};
use crate::memory::Allocator;
use crate::sys::driver::{FunctionHandle, ModuleHandle, code};
use compile::TranslationUnit;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;
use ultramarine_abi::helper::disk::{self, Disk, Entry, Format};
use ultramarine_abi::helper::{Failure, Host, Level, Result};
use ultramarine_abi::status;

/// A function on the device, loaded by [`Programs`]. It stays loaded as long as the process lives.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    function: FunctionHandle,
    waits: bool,
}

// SAFETY: the driver's functions may be launched from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// The driver's handle.
    pub fn handle(&self) -> FunctionHandle {
        self.function
    }

    /// True if the kernel does nothing before the previous kernel has ended, even if it is launched
    /// early.
    pub fn waits(&self) -> bool {
        self.waits
    }
}

/// A kernel that was requested.
#[derive(Default)]
struct Slot {
    known: OnceLock<Result<Kernel>>,
    making: Mutex<()>,
}

impl Slot {
    /// The result of `make`, which runs at most once at a time. After a failure for lack of memory,
    /// the next call tries again.
    fn get(&self, make: impl FnOnce() -> Result<Kernel>) -> Result<Kernel> {
        let _one = lock(&self.making);
        if let Some(known) = self.known.get() {
            return known.clone();
        }
        let made = make();
        match &made {
            Err(failure) if failure.code == status::OUT_OF_MEMORY => {}
            _ => _ = self.known.set(made.clone()),
        }
        made
    }
}

type Compiled = Arc<OnceLock<Result<Entry>>>;

/// Counts of kernels by their origin, for all devices.
#[derive(Debug, Default)]
pub struct Counters {
    /// Compiled by NVRTC.
    pub compiled: AtomicU64,
    /// Time of the compilations, in milliseconds.
    pub compile_ms: AtomicU64,
    /// Read from disk.
    pub from_disk: AtomicU64,
    /// Found in memory, because another plan already needed them.
    pub from_memory: AtomicU64,
}

/// The process's counters.
pub static COUNTERS: Counters = Counters {
    compiled: AtomicU64::new(0),
    compile_ms: AtomicU64::new(0),
    from_disk: AtomicU64::new(0),
    from_memory: AtomicU64::new(0),
};

impl Counters {
    /// The counts as text.
    pub fn describe(&self) -> String {
        let [compiled, ms, disk, memory] =
            [&self.compiled, &self.compile_ms, &self.from_disk, &self.from_memory]
                .map(|n| n.load(Ordering::Relaxed));
        format!("{compiled} kernels compiled in {ms} ms, {disk} read from disk, {memory} shared")
    }
}

/// The file format of compiled code.
const FORMAT: Format = Format { magic: *b"UMCUDA\0\x01", ending: "cubin" };

/// The user's directory of compiled code, looked for once.
fn disk(host: &Host) -> Option<&'static Disk> {
    static DISK: OnceLock<Option<Disk>> = OnceLock::new();
    let open = || match Disk::open(disk::place("cuda", "ULTRAMARINE_CUDA_CACHE")?, FORMAT) {
        Ok(disk) => Some(disk),
        Err(why) => {
            host.log(Level::Warning, &format!("CUDA: compiled kernels are not kept: {why}"));
            None
        }
    };
    DISK.get_or_init(open).as_ref()
}

/// A unit's code, read from disk.
fn from_disk(host: &Host, key: &[u8]) -> Option<Entry> {
    let entry = disk(host)?.get(key)?;
    COUNTERS.from_disk.fetch_add(1, Ordering::Relaxed);
    Some(entry)
}

/// A unit's code, compiled by NVRTC and written to disk.
fn compiled(host: &Host, unit: &TranslationUnit, key: &[u8]) -> Result<Entry> {
    let start = Instant::now();
    let entry = compile::compile(unit)?;
    let ms = start.elapsed().as_millis() as u64;
    COUNTERS.compiled.fetch_add(1, Ordering::Relaxed);
    COUNTERS.compile_ms.fetch_add(ms, Ordering::Relaxed);
    let all = COUNTERS.describe();
    host.log(Level::Debug, &format!("CUDA: {} took {ms} ms to compile ({all})", unit.name));
    if let Some(Err(why)) = disk(host).map(|disk| disk.put(key, &entry)) {
        host.log(Level::Debug, &format!("CUDA: a compiled kernel is not kept: {why}"));
    }
    Ok(entry)
}

/// The kernels of a device, by the names of their sources. It is the only cache of loaded code. A
/// kernel is compiled by NVRTC at its first use, or read from disk. Plans keep the kernels that
/// they use in [`Kernels`].
pub struct Programs {
    host: Host,
    context: Arc<Context>,
    allocator: Arc<Allocator>,
    architecture: (u32, u32),
    target: OnceLock<Result<String>>,
    kernels: Mutex<HashMap<String, Arc<Slot>>>,
    /// Kernels that are being compiled in the background, or that were compiled and are not loaded
    /// yet.
    awaited: Mutex<HashMap<String, Compiled>>,
}

impl Programs {
    /// Without any kernels.
    pub fn new(
        host: Host,
        context: Arc<Context>,
        allocator: Arc<Allocator>,
        properties: &DeviceProperties,
    ) -> Self {
        Self {
            host,
            context,
            allocator,
            architecture: (properties.major, properties.minor),
            target: OnceLock::new(),
            kernels: Mutex::default(),
            awaited: Mutex::default(),
        }
    }

    /// NVRTC's architecture option for the device.
    pub fn architecture(&self) -> Result<String> {
        let target = self.target.get_or_init(|| compile::target(self.architecture)).clone()?;
        Ok(format!("--gpu-architecture={target}"))
    }

    /// Compiles a user's source, or reads its code from disk. Returns the image, and the mangled
    /// names of the functions for the expressions. `options` are all options except the
    /// architecture. Files that the source includes are part of the key of the code.
    pub fn compile(
        &self,
        name: &str,
        source: &str,
        options: &[String],
        expressions: &[String],
    ) -> Result<Entry> {
        let mut all = vec![self.architecture()?];
        all.extend_from_slice(options);
        let unit = TranslationUnit {
            name: name.to_owned(),
            source: source.to_owned(),
            options: all,
            expressions: expressions.to_vec(),
        };
        let Some(included) = headers::of(&unit.source, options) else {
            return compile::compile(&unit);
        };
        let mut key = unit.key()?;
        key.extend(included);
        match from_disk(&self.host, &key) {
            Some(entry) => Ok(entry),
            None => compiled(&self.host, &unit, &key),
        }
    }

    /// A kernel; it is compiled if it is not loaded yet. The device's context is current.
    pub fn kernel(&self, source: &Source) -> Result<Kernel> {
        let slot = self.slot(&source.name());
        if let Some(known) = slot.known.get() {
            COUNTERS.from_memory.fetch_add(1, Ordering::Relaxed);
            return known.clone();
        }
        // The lock is not held here, so that other threads can compile other kernels.
        slot.get(|| self.make(source))
    }

    /// A kernel that is in memory or on disk. Otherwise returns `None`, and its compilation is
    /// started in the background. `source` generates the source for the name. The device's context
    /// is current.
    pub fn ready(&self, name: &str, source: impl FnOnce() -> Source) -> Result<Option<Kernel>> {
        let slot = self.slot(name);
        if let Some(known) = slot.known.get() {
            return known.clone().map(Some);
        }
        let awaited = lock(&self.awaited).get(name).cloned();
        if let Some(compiled) = &awaited
            && compiled.get().is_none()
            // There is no other reference, so its compiler ended without a result.
            && Arc::strong_count(compiled) > 2
        {
            return Ok(None);
        }
        let source = source();
        let unit = self.unit(&source)?;
        let entry = match awaited.as_deref().and_then(OnceLock::get) {
            Some(result) => result.clone(),
            None => {
                let key = unit.key()?;
                match from_disk(&self.host, &key) {
                    Some(entry) => Ok(entry),
                    None => return self.order(unit, key, name),
                }
            }
        };
        let kernel = slot.get(|| {
            let image = entry?.image;
            // The driver rejects the cached image: compile the source again.
            self.load(&image, &source).or_else(|_| self.make(&source))
        });
        lock(&self.awaited).remove(name);
        kernel.map(Some)
    }

    /// Starts the compilation of a unit in the background.
    fn order(&self, unit: TranslationUnit, key: Vec<u8>, name: &str) -> Result<Option<Kernel>> {
        keep(&unit);
        if COUNTERS.compiled.load(Ordering::Relaxed) == 0 {
            // NVRTC registers exit handlers at its first use. The handlers of `background` have to
            // be registered later, so that they run earlier.
            let first = TranslationUnit {
                name: "first".to_owned(),
                source: "extern \"C\" __global__ void kernel() {}\n".to_owned(),
                options: unit.options.clone(),
                expressions: Vec::new(),
            };
            compile::compile(&first)?;
        }
        let place = Compiled::default();
        lock(&self.awaited).insert(name.to_owned(), place.clone());
        let host = self.host;
        background::spawn(move || {
            let _ = place.set(compiled(&host, &unit, &key));
        });
        Ok(None)
    }

    fn slot(&self, name: &str) -> Arc<Slot> {
        let mut kernels = lock(&self.kernels);
        match kernels.get(name) {
            Some(slot) => slot.clone(),
            None => kernels.entry(name.to_owned()).or_default().clone(),
        }
    }

    /// A kernel's source with the options of every kernel of this crate. Contraction is disabled,
    /// so that an operation is bitwise identical in a fused program and alone. Kernels that may
    /// contract call `fmaf` explicitly.
    fn unit(&self, source: &Source) -> Result<TranslationUnit> {
        let others = [
            "--std=c++17",
            "--fmad=false",
            "--device-as-default-execution-space",
            "--diag-suppress=177",
        ];
        let mut options = vec![self.architecture()?];
        options.extend(others.map(str::to_owned));
        let name = source.name();
        Ok(TranslationUnit { name, source: source.text(), options, expressions: Vec::new() })
    }

    fn make(&self, source: &Source) -> Result<Kernel> {
        let unit = self.unit(source)?;
        keep(&unit);
        let key = unit.key()?;
        if let Some(entry) = from_disk(&self.host, &key) {
            match self.load(&entry.image, source) {
                Ok(kernel) => return Ok(kernel),
                // The code on disk is from another driver, or from another build of the same NVRTC
                // version.
                Err(why) => {
                    let words = format!("CUDA: a kept kernel is made anew: {}", why.text);
                    self.host.log(Level::Debug, &words);
                }
            }
        }
        let entry = compiled(&self.host, &unit, &key)?;
        self.load(&entry.image, source)
    }

    /// Loads compiled code. The device's context is current; the module is never unloaded.
    fn load(&self, image: &[u8], source: &Source) -> Result<Kernel> {
        let driver = self.context.driver();
        let entry = CString::new(source.entry())
            .map_err(|_| Failure::invalid("a NUL in a kernel's name"))?;
        let (module, mut function) = (self.load_module(image)?, std::ptr::null_mut());
        // SAFETY: a loaded module; the output pointer is valid.
        unsafe { cuda!(driver.module_function(&mut function, module, entry.as_ptr())) }?;
        Ok(Kernel { function, waits: source.waits() })
    }

    /// Loads compiled code. If memory is short, frees cached memory and tries once more. The
    /// device's context is current.
    pub fn load_module(&self, image: &[u8]) -> Result<ModuleHandle> {
        let (driver, mut module) = (self.context.driver(), std::ptr::null_mut());
        // SAFETY: the image is from NVRTC and states its own length; the output pointer is valid.
        let mut load = || unsafe { (driver.module_load)(&mut module, image.as_ptr().cast()) };
        let mut result = load();
        if result == code::OUT_OF_MEMORY && self.allocator.spare() {
            result = load();
        }
        failure::check(driver, "cuModuleLoadData", result)?;
        Ok(module)
    }
}

/// Writes the source of a kernel to the directory named by `ULTRAMARINE_CUDA_SOURCES`: to read it,
/// for profilers, and for checks by other compilers.
fn keep(unit: &TranslationUnit) {
    let Some(directory) = std::env::var_os("ULTRAMARINE_CUDA_SOURCES") else { return };
    let mut hasher = std::hash::DefaultHasher::new();
    std::hash::Hash::hash(&unit.source, &mut hasher);
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let short: String = unit.name.chars().map(plain).take(60).collect();
    let file = format!("{short}-{:016x}.cu", std::hash::Hasher::finish(&hasher));
    // Errors are ignored, because nothing depends on this file.
    let _ = std::fs::write(std::path::Path::new(&directory).join(file), &unit.source);
}
