//! Kernels: CUDA C compiled by NVRTC for the device, once for each name.

use crate::device::{Device, Facts};
use crate::failure::cuda;
use crate::sys::driver::{FunctionHandle, ModuleHandle};
use crate::sys::nvrtc::{self, Nvrtc};
use core::ffi::{CStr, c_char, c_int};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, OnceLock};
use ultramarine_abi::helper::{Failure, Result};

/// A function on the device. It stays loaded for as long as the process.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    function: FunctionHandle,
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
}

/// What a kernel is made of: `head`, `texts` and `tail` in this order.
#[derive(Clone, Debug)]
pub struct Source {
    /// Tells it from all others: equal names are equal texts.
    pub name: String,
    /// What comes before the texts, such as macros that they look at.
    pub head: String,
    /// Texts of `kernels/`.
    pub texts: &'static [&'static str],
    /// What comes after: mostly the entry, an instance of a template of the texts.
    pub tail: String,
    /// The `extern "C"` function.
    pub entry: &'static str,
}

impl Source {
    /// A kernel of `texts`, `tail` holding the entry, which is called `kernel`.
    pub fn new(
        name: impl Into<String>,
        texts: &'static [&'static str],
        tail: impl Into<String>,
    ) -> Self {
        Self { name: name.into(), head: String::new(), texts, tail: tail.into(), entry: "kernel" }
    }

    /// The whole text.
    pub fn text(&self) -> String {
        let mut text = self.head.clone();
        for part in self.texts {
            text.push_str(part);
        }
        text.push_str(&self.tail);
        text
    }
}

/// A kernel that is compiled at its first launch.
pub struct Lazy {
    source: Source,
    kernel: OnceLock<Kernel>,
}

impl Lazy {
    /// Nothing is compiled yet.
    pub fn new(source: Source) -> Self {
        Self { source, kernel: OnceLock::new() }
    }

    /// The kernel. The device's context is current.
    pub fn get(&self, device: &Device) -> Result<Kernel> {
        if let Some(kernel) = self.kernel.get() {
            return Ok(*kernel);
        }
        let kernel = device.programs.kernel(device, &self.source)?;
        Ok(*self.kernel.get_or_init(|| kernel))
    }
}

type Slot = Arc<OnceLock<std::result::Result<Kernel, Failure>>>;

/// The kernels of a device.
pub struct Programs {
    architecture: (u32, u32),
    kernels: Mutex<HashMap<String, Slot>>,
}

impl Programs {
    /// None yet.
    pub fn new(facts: &Facts) -> Self {
        Self { architecture: (facts.major, facts.minor), kernels: Mutex::default() }
    }

    /// A kernel, compiled if nobody did so yet. The device's context is current.
    pub fn kernel(&self, device: &Device, source: &Source) -> Result<Kernel> {
        let slot = {
            let mut kernels = self.kernels.lock().unwrap_or_else(|e| e.into_inner());
            match kernels.get(&source.name) {
                Some(slot) => slot.clone(),
                None => kernels.entry(source.name.clone()).or_default().clone(),
            }
        };
        // Without the lock: others compile other kernels meanwhile.
        slot.get_or_init(|| self.make(device, source)).clone()
    }

    fn make(&self, device: &Device, source: &Source) -> Result<Kernel> {
        let options = options(self.architecture)?;
        let text = source.text();
        keep(&source.name, &text);
        let image = compile(&source.name, &text, &options)?;
        load(device, &image, source.entry)
    }
}

/// Writes the text of a kernel to the directory that `ULTRAMARINE_CUDA_SOURCES` names, for reading,
/// for profilers, and for checks by other compilers.
fn keep(name: &str, text: &str) {
    let Some(directory) = std::env::var_os("ULTRAMARINE_CUDA_SOURCES") else { return };
    let mut hasher = std::hash::DefaultHasher::new();
    std::hash::Hash::hash(text, &mut hasher);
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let short: String = name.chars().map(plain).take(60).collect();
    let file = format!("{short}-{:016x}.cu", std::hash::Hasher::finish(&hasher));
    // Nobody's work depends on it.
    let _ = std::fs::write(std::path::Path::new(&directory).join(file), text);
}

/// Options of every kernel of this crate. Nothing is contracted, so that an op has the same
/// bits in a fused program and alone; kernels that may say so themselves (`fmaf`).
fn options(architecture: (u32, u32)) -> Result<Vec<String>> {
    Ok(vec![
        format!("--gpu-architecture={}", target(architecture)?),
        "--std=c++17".to_owned(),
        "--fmad=false".to_owned(),
        "--device-as-default-execution-space".to_owned(),
    ])
}

/// The architecture for which NVRTC compiles: the device's own, or, where it is newer than
/// NVRTC, intermediate code of the newest that NVRTC knows, which the driver compiles.
pub fn target((major, minor): (u32, u32)) -> Result<String> {
    let nvrtc = nvrtc::nvrtc()?;
    let wanted = (major * 10 + minor) as c_int;
    let mut count = 0;
    // SAFETY: the place is valid.
    said(nvrtc, "nvrtcGetNumSupportedArchs", unsafe { (nvrtc.arch_count)(&mut count) })?;
    let mut known = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: there is room for as many as it says.
    said(nvrtc, "nvrtcGetSupportedArchs", unsafe { (nvrtc.archs)(known.as_mut_ptr()) })?;
    if known.contains(&wanted) {
        return Ok(format!("sm_{wanted}"));
    }
    match known.iter().filter(|arch| **arch <= wanted).max() {
        Some(newest) => Ok(format!("compute_{newest}")),
        None => Err(Failure::new(format!(
            "NVRTC compiles for compute capability {:?} and the device has {wanted}: install an NVRTC that knows it",
            known
        ))),
    }
}

/// NVRTC's code as a result.
pub fn said(nvrtc: &Nvrtc, call: &str, code: nvrtc::Code) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: NVRTC gives a static text for every code.
    let text = unsafe { CStr::from_ptr((nvrtc.error_string)(code)) };
    Err(Failure::new(format!("{call} failed: {}", text.to_string_lossy())))
}

/// Compiles a text to the device's code; the failure holds the log.
pub fn compile(name: &str, text: &str, options: &[String]) -> Result<Vec<u8>> {
    let nvrtc = nvrtc::nvrtc()?;
    let c =
        |text: &str| CString::new(text).map_err(|_| Failure::invalid("a NUL in a text for NVRTC"));
    let (text, name) = (c(text)?, c(name)?);
    let options = options.iter().map(|o| c(o)).collect::<Result<Vec<_>>>()?;
    let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
    let mut program = std::ptr::null_mut();
    let none = std::ptr::null();
    // SAFETY: the texts are NUL-terminated and there are no headers.
    let code = unsafe { (nvrtc.create)(&mut program, text.as_ptr(), name.as_ptr(), 0, none, none) };
    said(nvrtc, "nvrtcCreateProgram", code)?;
    // SAFETY: the program was made, the options are NUL-terminated and as many as it is told.
    let code = unsafe { (nvrtc.compile)(program, pointers.len() as c_int, pointers.as_ptr()) };
    let result = match said(nvrtc, "nvrtcCompileProgram", code) {
        Ok(()) => image(nvrtc, program),
        Err(failure) => Err(Failure::new(format!("{}\n{}", failure.text, log(nvrtc, program)))),
    };
    // SAFETY: made once, destroyed once.
    unsafe { (nvrtc.destroy)(&mut program) };
    result
}

fn image(nvrtc: &Nvrtc, program: nvrtc::ProgramHandle) -> Result<Vec<u8>> {
    let mut size = 0;
    // SAFETY: a compiled program; the place is valid.
    let native = unsafe { (nvrtc.cubin_size)(program, &mut size) } == 0 && size > 0;
    if !native {
        // SAFETY: as above.
        said(nvrtc, "nvrtcGetPTXSize", unsafe { (nvrtc.ptx_size)(program, &mut size) })?;
    }
    let mut image = vec![0u8; size];
    let get = if native { nvrtc.cubin } else { nvrtc.ptx };
    // SAFETY: there is room for as many bytes as it said.
    said(nvrtc, "nvrtcGetCUBIN", unsafe { get(program, image.as_mut_ptr().cast()) })?;
    Ok(image)
}

/// What the compiler said.
fn log(nvrtc: &Nvrtc, program: nvrtc::ProgramHandle) -> String {
    let mut size = 0;
    // SAFETY: the place is valid.
    if unsafe { (nvrtc.log_size)(program, &mut size) } != 0 || size == 0 {
        return String::new();
    }
    let mut text = vec![0u8; size];
    // SAFETY: there is room for as many bytes as it said.
    if unsafe { (nvrtc.log)(program, text.as_mut_ptr().cast()) } != 0 {
        return String::new();
    }
    String::from_utf8_lossy(&text).trim_end_matches('\0').trim_end().to_owned()
}

/// Loads compiled code. The device's context is current; the module is never unloaded.
pub fn load(device: &Device, image: &[u8], entry: &str) -> Result<Kernel> {
    let driver = device.driver;
    let entry = CString::new(entry).map_err(|_| Failure::invalid("a NUL in a kernel's name"))?;
    let (mut module, mut function): (ModuleHandle, FunctionHandle) =
        (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the image is NVRTC's, which says its own length; the places are valid.
    unsafe {
        cuda!(driver.module_load(&mut module, image.as_ptr().cast()))?;
        cuda!(driver.module_function(&mut function, module, entry.as_ptr()))?;
    }
    Ok(Kernel { function })
}
