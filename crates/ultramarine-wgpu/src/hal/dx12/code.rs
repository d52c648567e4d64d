//! Kernels in the High-Level Shader Language.

use crate::hal::Properties;
use crate::shader::compile::{Parsed, Zeros};
use crate::shader::hlsl;
use crate::shader::text::Text;
use wgpu_hal::ShaderInput;

/// A kernel in the form that the driver takes.
#[derive(Clone)]
pub struct Code(Text);

impl Code {
    /// Generates the kernel of an entry point. No bindings have one-byte elements, because the source uses words for
    /// these.
    pub fn of(
        parsed: &Parsed,
        entry: &str,
        zeros: Zeros,
        _bytes: &[u32],
        _properties: &Properties,
    ) -> Result<Self, String> {
        hlsl::write(parsed, entry, zeros).map(Self)
    }

    /// The form that the hal takes.
    pub fn input(&self) -> ShaderInput<'_> {
        ShaderInput::Hlsl { shader: &self.0.source }
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
