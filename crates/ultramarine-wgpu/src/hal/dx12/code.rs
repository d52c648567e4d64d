//! Kernels in the High-Level Shader Language.

use crate::hal::Properties;
use crate::shader::compile::{Parsed, Zeros};
use crate::shader::hlsl;
use crate::shader::text::Text;
use wgpu_hal::ShaderInput;

/// A kernel as the driver takes it.
#[derive(Clone)]
pub struct Code(Text);

impl Code {
    /// Writes the kernel of an entry point. There are no bindings whose elements are bytes: the text has words for those.
    pub fn of(
        parsed: &Parsed,
        entry: &str,
        zeros: Zeros,
        _bytes: &[u32],
        _properties: &Properties,
    ) -> Result<Self, String> {
        hlsl::write(parsed, entry, zeros).map(Self)
    }

    /// For the hal.
    pub fn input(&self) -> ShaderInput<'_> {
        ShaderInput::Hlsl { shader: &self.0.source }
    }

    /// Name of the entry point in it.
    pub fn entry(&self) -> &str {
        &self.0.entry
    }

    /// A bit for each binding that it may write.
    pub fn written(&self) -> u32 {
        self.0.written
    }

    /// All of it, to be kept.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// The kernel of [`Code::to_bytes`].
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        Text::of_bytes(bytes).map(Self)
    }
}
