//! NVRTC: compiles a source to device code.

use crate::sys::nvrtc::{self, Nvrtc};
use core::ffi::{CStr, c_char, c_int};
use std::ffi::CString;
use ultramarine_abi::helper::disk::Entry;
use ultramarine_abi::helper::{Failure, Result};

/// A source for NVRTC, with everything that the result depends on.
#[derive(Clone, Debug)]
pub struct TranslationUnit {
    /// Its name in the compiler's messages.
    pub name: String,
    /// CUDA C.
    pub source: String,
    /// The compiler's options, including the architecture.
    pub options: Vec<String>,
    /// Expressions such as `scale<float>` whose mangled names are needed.
    pub expressions: Vec<String>,
}

impl TranslationUnit {
    /// Everything that the result depends on, as bytes. Equal keys mean equal code.
    pub fn key(&self) -> Result<Vec<u8>> {
        let nvrtc = nvrtc::nvrtc()?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the output pointers are valid.
        said(nvrtc, "nvrtcVersion", unsafe { (nvrtc.version)(&mut major, &mut minor) })?;
        let mut key = format!("nvrtc {major}.{minor} options {}", self.options.len()).into_bytes();
        let parts = self.options.iter().chain(&self.expressions).chain([&self.name, &self.source]);
        for part in parts {
            key.extend((part.len() as u64).to_le_bytes());
            key.extend(part.as_bytes());
        }
        Ok(key)
    }
}

/// The architecture for which NVRTC compiles. It is the device's own; from 9.0 on, with the architecture-specific features
/// (such as `wgmma`). If the device is newer than NVRTC, it is the newest architecture that NVRTC knows, as intermediate
/// code, which the driver compiles.
pub fn target((major, minor): (u32, u32)) -> Result<String> {
    let nvrtc = nvrtc::nvrtc()?;
    let wanted = (major * 10 + minor) as c_int;
    let mut count = 0;
    // SAFETY: the output pointer is valid.
    said(nvrtc, "nvrtcGetNumSupportedArchs", unsafe { (nvrtc.arch_count)(&mut count) })?;
    let mut known = vec![0; usize::try_from(count).unwrap_or(0)];
    // SAFETY: there is room for the number of entries that NVRTC reported.
    said(nvrtc, "nvrtcGetSupportedArchs", unsafe { (nvrtc.archs)(known.as_mut_ptr()) })?;
    if known.contains(&wanted) {
        let specific = if wanted >= 90 { "a" } else { "" };
        return Ok(format!("sm_{wanted}{specific}"));
    }
    match known.iter().filter(|arch| **arch <= wanted).max() {
        Some(newest) => Ok(format!("compute_{newest}")),
        None => Err(Failure::new(format!(
            "NVRTC compiles for compute capability {:?} and the device has {wanted}: install an NVRTC that knows it",
            known
        ))),
    }
}

/// Converts NVRTC's code to a result.
pub fn said(nvrtc: &Nvrtc, call: &str, code: nvrtc::Code) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    // SAFETY: NVRTC returns a static text for every code.
    let text = unsafe { CStr::from_ptr((nvrtc.error_string)(code)) };
    Err(Failure::new(format!("{call} failed: {}", text.to_string_lossy())))
}

fn c(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Failure::invalid("a NUL in a text for NVRTC"))
}

/// A program of NVRTC, destroyed when it is dropped.
struct Program {
    nvrtc: &'static Nvrtc,
    handle: nvrtc::ProgramHandle,
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once.
        unsafe { (self.nvrtc.destroy)(&mut self.handle) };
    }
}

/// Compiles a unit to device code; the failure contains the compiler's log.
pub fn compile(unit: &TranslationUnit) -> Result<Entry> {
    let nvrtc = nvrtc::nvrtc()?;
    let (source, name) = (c(&unit.source)?, c(&unit.name)?);
    let options = unit.options.iter().map(|o| c(o)).collect::<Result<Vec<_>>>()?;
    let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
    let expressions = unit.expressions.iter().map(|e| c(e)).collect::<Result<Vec<_>>>()?;
    let mut handle = std::ptr::null_mut();
    let none = std::ptr::null();
    // SAFETY: the texts are NUL-terminated and there are no headers.
    let code =
        unsafe { (nvrtc.create)(&mut handle, source.as_ptr(), name.as_ptr(), 0, none, none) };
    said(nvrtc, "nvrtcCreateProgram", code)?;
    let program = Program { nvrtc, handle };
    for expression in &expressions {
        // SAFETY: the program is not compiled yet; the text is NUL-terminated.
        let code = unsafe { (nvrtc.add_name)(program.handle, expression.as_ptr()) };
        said(nvrtc, "nvrtcAddNameExpression", code)?;
    }
    // SAFETY: the options are NUL-terminated, and their number is `pointers.len()`.
    let code =
        unsafe { (nvrtc.compile)(program.handle, pointers.len() as c_int, pointers.as_ptr()) };
    said(nvrtc, "nvrtcCompileProgram", code)
        .map_err(|failure| Failure::new(format!("{}\n{}", failure.text, program.log())))?;
    let names = expressions.iter().map(|e| program.lowered(e)).collect::<Result<_>>()?;
    Ok(Entry { image: program.image()?, names })
}

impl Program {
    fn lowered(&self, expression: &CStr) -> Result<String> {
        let mut name = std::ptr::null();
        // SAFETY: a compiled program, and an expression that was added to it.
        let code =
            unsafe { (self.nvrtc.lowered_name)(self.handle, expression.as_ptr(), &mut name) };
        said(self.nvrtc, "nvrtcGetLoweredName", code)?;
        // SAFETY: the name is NUL-terminated, and lives as long as the program.
        Ok(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
    }

    fn image(&self) -> Result<Vec<u8>> {
        let (nvrtc, mut size) = (self.nvrtc, 0);
        // SAFETY: a compiled program; the output pointer is valid.
        let native = unsafe { (nvrtc.cubin_size)(self.handle, &mut size) } == 0 && size > 0;
        if !native {
            // SAFETY: as above.
            let code = unsafe { (nvrtc.ptx_size)(self.handle, &mut size) };
            said(nvrtc, "nvrtcGetPTXSize", code)?;
        }
        let mut image = vec![0u8; size];
        let get = if native { nvrtc.cubin } else { nvrtc.ptx };
        // SAFETY: there is room for as many bytes as NVRTC reported.
        let code = unsafe { get(self.handle, image.as_mut_ptr().cast()) };
        said(nvrtc, "nvrtcGetCUBIN", code)?;
        Ok(image)
    }

    /// The compiler's log.
    fn log(&self) -> String {
        let (nvrtc, mut size) = (self.nvrtc, 0);
        // SAFETY: the output pointer is valid.
        if unsafe { (nvrtc.log_size)(self.handle, &mut size) } != 0 || size == 0 {
            return String::new();
        }
        let mut text = vec![0u8; size];
        // SAFETY: there is room for as many bytes as NVRTC reported.
        if unsafe { (nvrtc.log)(self.handle, text.as_mut_ptr().cast()) } != 0 {
            return String::new();
        }
        String::from_utf8_lossy(&text).trim_end_matches('\0').trim_end().to_owned()
    }
}
