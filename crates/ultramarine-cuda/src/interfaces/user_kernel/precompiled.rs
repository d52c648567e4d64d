//! Users' compiled code: PTX, cubins, and archives of several (fat binaries).

use super::function_of;
use super::source::Code;
use crate::context::failure;
use crate::launch::Device;
use crate::sys::driver::{FunctionHandle, ModuleHandle, code};
use core::ffi::{c_int, c_void};
use ultramarine_abi::helper::{Failure, Result};

/// `CUjit_option` values.
mod option {
    use core::ffi::c_int;
    pub const ERROR_LOG: c_int = 5;
    pub const ERROR_LOG_BYTES: c_int = 6;
}

/// Size in bytes of the log that the driver writes during a load.
const LOG: usize = 8 << 10;
/// Maximum number of names that an error lists.
const MOST_NAMES: usize = 8;
/// First bytes of ELF files, and of NVIDIA's archives.
const ELF: &[u8] = b"\x7fELF";
const ARCHIVE: &[u8] = b"\x50\xed\x55\xba";

/// Length in bytes of a binary according to its header. The driver reads that many bytes.
fn length(bytes: &[u8]) -> Option<usize> {
    let number = |at: usize, n: usize| {
        let mut word = [0; 8];
        word[..n].copy_from_slice(bytes.get(at..at.checked_add(n)?)?);
        usize::try_from(u64::from_le_bytes(word)).ok()
    };
    if bytes.starts_with(ARCHIVE) {
        return number(6, 2)?.checked_add(number(8, 8)?);
    }
    if !bytes.starts_with(ELF) {
        return None;
    }
    /// Sections of this kind have no bytes in the file.
    const EMPTY: usize = 8;
    let (table, entry, sections) = (number(0x28, 8)?, number(0x3a, 2)?, number(0x3c, 2)?);
    let mut end = table.checked_add(entry.checked_mul(sections)?)?.max(0x40);
    for i in 0..sections {
        let at = table + i * entry;
        if number(at + 4, 4)? != EMPTY {
            end = end.max(number(at + 0x18, 8)?.checked_add(number(at + 0x20, 8)?)?);
        }
    }
    Some(end)
}

impl Code {
    pub fn new(entry: String, bytes: &[u8], is_ptx: bool) -> Result<Code> {
        let mut image = bytes.to_vec();
        if is_ptx {
            // Compilers append a NUL.
            image.truncate(bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1));
            let is_text = core::str::from_utf8(&image).is_ok() && !image.contains(&0);
            if !is_text || image.is_empty() {
                let text = "it is no PTX, which is text, nor does it begin as a cubin";
                return Err(Failure::invalid(text));
            }
            image.push(0);
        } else if length(bytes).is_none_or(|n| n > bytes.len()) {
            return Err(Failure::invalid("it does not begin as a cubin, or ends too early"));
        }
        Ok(Code { entry, image, is_ptx })
    }

    /// The names of the kernels in the code, as far as they can be found in the PTX's text or the
    /// ELF sections.
    fn names(&self) -> Vec<String> {
        let (mark, ends): (&[u8], fn(u8) -> bool) = match self.is_ptx {
            true => (b".entry", |b| b == b'(' || b.is_ascii_whitespace()),
            false => (b".text.", |b| b == 0),
        };
        let mut names = Vec::new();
        let mut rest = &self.image[..];
        while let Some(at) = rest.windows(mark.len()).position(|w| w == mark) {
            rest = rest[at + mark.len()..].trim_ascii_start();
            let end = rest.iter().position(|b| ends(*b)).unwrap_or(rest.len());
            if let Ok(name) = core::str::from_utf8(&rest[..end])
                && !name.is_empty()
                && !names.iter().any(|known| known == name)
            {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// The error for code that does not contain the requested kernel.
    fn unknown(&self) -> Failure {
        let (names, entry) = (self.names(), &self.entry);
        let shown = names.iter().take(MOST_NAMES).map(|n| format!("`{n}`")).collect::<Vec<_>>();
        let more = if names.len() > shown.len() { " ..." } else { "" };
        Failure::invalid(match names.is_empty() {
            true => format!("it has no kernel `{entry}`"),
            false => format!("it has no kernel `{entry}`; there are {}{more}", shown.join(", ")),
        })
    }

    /// The architecture that the PTX is for, as stated in its text.
    fn target(&self) -> Option<&str> {
        let text = core::str::from_utf8(&self.image).ok().filter(|_| self.is_ptx)?;
        let line = text.lines().find_map(|line| line.trim().strip_prefix(".target"))?;
        line.split([',', '/']).next().map(str::trim).filter(|target| !target.is_empty())
    }

    /// Loads the code. The device's context is current.
    pub fn load(&self, device: &Device) -> Result<(ModuleHandle, FunctionHandle)> {
        let (driver, mut module) = (device.driver, std::ptr::null_mut());
        let mut log = vec![0u8; LOG];
        let mut options = [option::ERROR_LOG, option::ERROR_LOG_BYTES];
        let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), LOG as *mut c_void];
        // SAFETY: the image states its length or ends with a NUL; there are as many options as values, and the log
        // has the stated length.
        let result = unsafe {
            (driver.module_load_with)(
                &mut module,
                self.image.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if result != code::SUCCESS {
            let failure = failure::of(driver, "cuModuleLoadDataEx", result);
            return Err(self.explained(failure, result, &log, device));
        }
        match function_of(device, module, &self.entry) {
            Ok(Some(function)) => Ok((module, function)),
            other => {
                // SAFETY: loaded above, and nothing uses it.
                unsafe { (driver.module_unload)(module) };
                Err(other.err().unwrap_or_else(|| self.unknown()))
            }
        }
    }

    fn explained(&self, failure: Failure, result: c_int, log: &[u8], device: &Device) -> Failure {
        let (major, minor) = (device.properties.major, device.properties.minor);
        let mut text = failure.text.clone();
        if matches!(result, code::NO_BINARY | code::INVALID_PTX | code::UNSUPPORTED_PTX) {
            let built = self.target().map_or(String::new(), |t| format!("; the code is for {t}"));
            text = format!("{text} (the device is sm_{major}{minor}{built})");
        }
        let end = log.iter().position(|b| *b == 0).unwrap_or(log.len());
        let log = String::from_utf8_lossy(&log[..end]);
        if !log.trim().is_empty() {
            text = format!("{text}\n{}", log.trim());
        }
        Failure { text, ..failure }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(bytes: &[u8], is_ptx: bool) -> Result<Code> {
        Code::new("wanted".into(), bytes, is_ptx)
    }

    #[test]
    fn ptx_is_text_that_ends_with_a_nul() {
        let text = b".version 8.0\n.target sm_90a, debug\n.visible .entry first(\n.entry\tsecond (";
        let given = code(text, true).unwrap();
        assert_eq!(given.image.strip_suffix(b"\0"), Some(&text[..]));
        let twice = code(&[text, &b"\0\0"[..]].concat(), true).unwrap();
        assert_eq!(twice.image, given.image);
        assert_eq!(given.names(), ["first", "second"]);
        assert_eq!(given.target(), Some("sm_90a"));
        let text = given.unknown().text;
        assert_eq!(text, "it has no kernel `wanted`; there are `first`, `second`");
        for wrong in [&b""[..], b"\0", b"a\0b", b"\xff\xfe"] {
            assert!(code(wrong, true).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn cubins_are_known_by_their_beginning() {
        let mut image = b"\x7fELF".to_vec();
        assert!(code(&image, false).is_err());
        image.resize(64, 0);
        image.extend(b"\0.text._Z5thirdPf\0.text._Z5thirdPf\0.nv.info\0");
        assert_eq!(code(&image, false).unwrap().names(), ["_Z5thirdPf"]);
        assert!(code(&[1; 100], false).is_err());
        // A section table beyond the end of the file.
        image[0x28] = 200;
        image[0x3a] = 64;
        image[0x3c] = 1;
        assert!(code(&image, false).is_err());
        let mut archive = [ARCHIVE, &[1, 0, 16, 0, 8, 0, 0, 0, 0, 0, 0, 0]].concat();
        archive.resize(24, 0);
        assert_eq!(code(&archive, false).unwrap().names(), [""; 0]);
        assert!(code(&archive[..23], false).is_err());
    }
}
