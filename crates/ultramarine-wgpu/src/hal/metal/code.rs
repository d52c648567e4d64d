//! Kernels in the Metal Shading Language.

use crate::hal::Properties;
use crate::shader::compile::{Parsed, Zeros};
use crate::shader::text::Text;
use crate::shader::{msl as kernels, msl_kernel};
use wgpu_hal::ShaderInput;

/// A kernel in the form that the driver takes.
#[derive(Clone)]
pub struct Code(Text);

impl Code {
    /// Generates the kernel of an entry point. Buffers at the bindings `bytes` have one-byte elements, which the WGSL
    /// source declares with 16 bits.
    pub fn of(
        parsed: &Parsed,
        entry: &str,
        zeros: Zeros,
        bytes: &[u32],
        _properties: &Properties,
    ) -> Result<Self, String> {
        kernels::write(parsed, entry, zeros, bytes).map(Self)
    }

    /// The form that the hal takes.
    pub fn input(&self) -> ShaderInput<'_> {
        let [x, y, z] = self.0.group;
        let num_workgroups = [(self.0.entry.clone(), (x, y, z))].into_iter().collect();
        ShaderInput::Msl { shader: &self.0.source, num_workgroups }
    }

    /// Name of the entry point in the source.
    pub fn entry(&self) -> &str {
        &self.0.entry
    }

    /// A bit for each binding that the kernel may write.
    pub fn written(&self) -> u32 {
        self.0.written
    }

    /// The whole kernel as bytes, to be stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// The kernel of [`Code::to_bytes`].
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        Text::of_bytes(bytes).map(Self)
    }
}

/// Makes a user's kernel, and returns the number of its bindings.
pub fn msl(source: &str, entry: &str) -> Result<(Code, usize), String> {
    let msl_kernel::Numbered { source, buffers, written } = msl_kernel::numbered(source, entry)?;
    // If a binding is written, its number is that of the buffer in the user's source.
    Ok((Code(Text { source, entry: entry.to_owned(), group: [1; 3], written }), buffers))
}

/// The same kernel for a given workgroup size.
pub fn with_group(code: &Code, group: [u32; 3]) -> Code {
    Code(Text { group, ..code.0.clone() })
}
