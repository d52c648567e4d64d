//! Inputs of users' kernels: sources, options, and included headers.

use crate::sys::{find, nvrtc};
use core::ffi::{CStr, c_char};
use std::path::PathBuf;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::interface::kernel::KernelSource;

/// The name of the source language, as users write it.
const LANGUAGE: &str = "cuda-c";
/// The names of the languages of compiled code.
const CUBIN: &str = "cubin";
const PTX: &str = "ptx";
/// Replaces CUDA's headers for half precision if they are not installed.
const HALVES: &str = include_str!("../../../kernels/halves.cuh");

/// Splits compiler options as a shell does: at spaces that are not in quotes.
fn parted(options: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in options.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if matches!(c, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => all.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}

/// Directories of NVIDIA's headers that match the compiler.
fn headers() -> Result<Vec<PathBuf>> {
    let (nvrtc, mut major, mut minor) = (nvrtc::nvrtc()?, 0, 0);
    // SAFETY: the output pointers are valid.
    unsafe { (nvrtc.version)(&mut major, &mut minor) };
    Ok(find::headers(major))
}

/// Options for NVRTC: the user's, and defaults for those that the user does not set.
fn options(users: &[String], headers: &[PathBuf]) -> Vec<String> {
    let mut all = users.to_vec();
    if !all.iter().any(|o| o.trim_start_matches('-').starts_with("std")) {
        all.push("--std=c++17".to_owned());
    }
    all.push("--device-as-default-execution-space".to_owned());
    // These come after the user's own directories.
    all.extend(headers.iter().map(|path| format!("--include-path={}", path.display())));
    all
}

/// A decoded kernel.
pub(super) enum Given {
    Source(Source),
    Code(Code),
}

/// Compiled code.
pub(super) struct Code {
    pub entry: String,
    /// The image for the driver; PTX ends with a NUL.
    pub image: Vec<u8>,
    pub is_ptx: bool,
}

/// A decoded source.
pub(super) struct Source {
    pub text: String,
    pub entry: String,
    /// `entry<arguments>`, if there are template arguments.
    pub expression: Option<String>,
    pub options: Vec<String>,
}

/// A text from the host.
///
/// # Safety
/// `text` is NULL or NUL-terminated and valid for `'a`.
unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str> {
    if text.is_null() {
        return Err(Failure::invalid(format!("a kernel without {what}")));
    }
    // SAFETY: by this function's contract.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .map_err(|_| Failure::invalid(format!("the {what} of a kernel is no UTF-8")))
}

impl Given {
    /// # Safety
    /// The source is valid by the contract.
    pub unsafe fn of(source: &KernelSource) -> Result<Self> {
        // SAFETY: guaranteed by the contract.
        let language = unsafe { text(source.language, "language") }?;
        if ![LANGUAGE, CUBIN, PTX].contains(&language) {
            return Err(Failure::unsupported(format!(
                "kernels are in {LANGUAGE}, {CUBIN} or {PTX} here, not in {language}"
            )));
        }
        // SAFETY: as above.
        let entry = unsafe { text(source.entry, "name") }?.to_owned();
        let bytes = match usize::try_from(source.source_bytes) {
            // SAFETY: as above; there are that many bytes.
            Ok(n) if !source.source.is_null() => unsafe {
                core::slice::from_raw_parts(source.source.cast::<u8>(), n)
            },
            _ => return Err(Failure::invalid("a kernel without source")),
        };
        if language != LANGUAGE {
            return Code::new(entry, bytes, language == PTX).map(Given::Code);
        }
        let whole = core::str::from_utf8(bytes)
            .map_err(|_| Failure::invalid("the source of a kernel is no UTF-8"))?;
        let mut arguments = Vec::new();
        for i in 0..source.n_template_arguments as usize {
            // SAFETY: as above; there are that many.
            arguments
                .push(unsafe { text(*source.template_arguments.add(i), "template argument") }?);
        }
        let expression =
            (!arguments.is_empty()).then(|| format!("{entry}<{}>", arguments.join(", ")));
        let users = match source.options.is_null() {
            true => Vec::new(),
            // SAFETY: as above.
            false => parted(unsafe { text(source.options, "options") }?),
        };
        let headers = headers()?;
        let text = match headers.is_empty() {
            true => format!("{HALVES}#line 1 \"{entry}\"\n{whole}"),
            false => whole.to_owned(),
        };
        let options = options(&users, &headers);
        Ok(Self::Source(Source { text, entry, expression, options }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_parted_as_a_shell_does() {
        assert_eq!(parted(""), [""; 0]);
        assert_eq!(parted("  --fmad=false\t-DX=1 "), ["--fmad=false", "-DX=1"]);
        assert_eq!(parted("-I\"a b\" '-DY=\"z\"' ''"), ["-Ia b", "-DY=\"z\"", ""]);
    }
}
