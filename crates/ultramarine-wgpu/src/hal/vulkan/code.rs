//! Kernels as SPIR-V.

use crate::hal::Properties;
use crate::shader::compile::{Parsed, Zeros};
use crate::shader::{halves, narrow, patch, shared};
use wgpu_hal::ShaderInput;

/// Bytes of a word.
const WORD: usize = 4;

/// A kernel in the form that the driver takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    module: Vec<u32>,
    entry: String,
    written: u32,
}

impl Code {
    /// Generates the kernel of an entry point. Buffers at the bindings `bytes` have one-byte elements, which the WGSL
    /// source declares with 16 bits.
    pub fn of(
        parsed: &Parsed,
        entry: &str,
        zeros: Zeros,
        bytes: &[u32],
        properties: &Properties,
    ) -> Result<Self, String> {
        let module = narrow::narrow(&parsed.spirv(entry, zeros)?, bytes)?;
        let module = halves::made(&shared::marked(&module)?)?;
        let module = patch::patch(&module, &properties.floats)?;
        Ok(Self { module, entry: entry.to_owned(), written: parsed.written(entry) })
    }

    /// A module from another compiler, unchanged.
    pub fn of_module(module: Vec<u32>, entry: &str, written: u32) -> Self {
        Self { module, entry: entry.to_owned(), written }
    }

    /// The form that the hal takes.
    pub fn input(&self) -> ShaderInput<'_> {
        ShaderInput::SpirV(&self.module)
    }

    /// Name of the entry point in the module.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// A bit for each binding that the kernel may write.
    pub fn written(&self) -> u32 {
        self.written
    }

    /// The whole kernel as bytes, to be stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        let head = [self.written, self.entry.len() as u32];
        let words = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
        [&words(&head), self.entry.as_bytes(), &words(&self.module)].concat()
    }

    /// The kernel of [`Code::to_bytes`].
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let (written, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (entry, words) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        let words = words.chunks_exact(WORD).filter_map(|word| word.try_into().ok());
        Some(Self {
            module: words.map(u32::from_le_bytes).collect(),
            entry: String::from_utf8(entry.to_vec()).ok()?,
            written: u32::from_le_bytes(*written),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Code;

    #[test]
    fn bytes_have_all_of_a_kernel() {
        let code = Code { module: vec![1, 2 << 24, 3], entry: "main".to_owned(), written: 5 };
        let bytes = code.to_bytes();
        assert_eq!(Code::of_bytes(&bytes), Some(code));
        assert_eq!(Code::of_bytes(&bytes[..9]), None);
    }
}
