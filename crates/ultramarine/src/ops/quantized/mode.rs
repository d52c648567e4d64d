//! How numbers of few bits are encoded.

use crate::error::{Error, Result, ensure};
use crate::ops::attributes;
use ultramarine_abi::schema::quantization;

attributes! {
    /// Meaning of an element's bits and of its group's scale. Only [`QuantizationMode::Affine`]
    /// lets the caller choose group size and bits; in the other modes they are part of the format.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum QuantizationMode {
        /// Integers q from 0 to 2^bits - 1: `scale q + bias`.
        #[default]
        Affine,
        /// E2M1 floats times 2^(scale - 127): OCP's MXFP4.
        Mxfp4,
        /// E4M3 floats times 2^(scale - 127): OCP's MXFP8.
        Mxfp8,
        /// E2M1 floats times an E4M3 scale, and a global one: NVIDIA's NVFP4.
        Nvfp4,
    }
}

impl QuantizationMode {
    const ALL: [QuantizationMode; 4] = [
        QuantizationMode::Affine,
        QuantizationMode::Mxfp4,
        QuantizationMode::Mxfp8,
        QuantizationMode::Nvfp4,
    ];

    /// Returns its name, which is MLX's: `affine`, `mxfp4`, `mxfp8` or `nvfp4`.
    pub fn name(self) -> &'static str {
        match self {
            QuantizationMode::Affine => "affine",
            QuantizationMode::Mxfp4 => "mxfp4",
            QuantizationMode::Mxfp8 => "mxfp8",
            QuantizationMode::Nvfp4 => "nvfp4",
        }
    }

    /// Its code in the backend contract.
    pub(crate) fn code(self) -> u32 {
        match self {
            QuantizationMode::Affine => quantization::AFFINE,
            QuantizationMode::Mxfp4 => quantization::MXFP4,
            QuantizationMode::Mxfp8 => quantization::MXFP8,
            QuantizationMode::Nvfp4 => quantization::NVFP4,
        }
    }

    /// Default group size and bits. Modes other than affine have no others.
    fn sizes(self) -> (usize, usize) {
        match self {
            QuantizationMode::Affine => (64, 4),
            QuantizationMode::Mxfp4 => (32, 4),
            QuantizationMode::Mxfp8 => (32, 8),
            QuantizationMode::Nvfp4 => (16, 4),
        }
    }
}

attributes! {
    /// Mode, group size and bits of quantised numbers, as [`quantize`](crate::quantize) takes them.
    /// The default is affine, with 4 bits in groups of 64.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype, Quantization, QuantizationMode, quantize};
    /// let w = Array::ones(&[8, 64], Dtype::Float32)?;
    /// let q = quantize(&w, Quantization::affine(8, 32), None)?;
    /// assert_eq!((q.how.bits, q.scales.shape()), (8, &[8, 2][..]));
    /// assert_eq!(Quantization::new(QuantizationMode::Nvfp4).group_size, 16);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Quantization {
        /// The meaning of the bits.
        pub mode: QuantizationMode,
        /// Elements of a row that share a scale.
        pub group_size: usize,
        /// Bits of an element.
        pub bits: usize,
    }
}

impl Default for Quantization {
    fn default() -> Quantization {
        Quantization::new(QuantizationMode::Affine)
    }
}

impl Quantization {
    /// Makes a quantization of a mode with the mode's own group size and bits: 64 and 4 for affine,
    /// 32 and 4 for mxfp4, 32 and 8 for mxfp8, 16 and 4 for nvfp4.
    pub fn new(mode: QuantizationMode) -> Quantization {
        let (group_size, bits) = mode.sizes();
        Quantization { mode, group_size, bits }
    }

    /// Makes an affine quantization: integers of 1, 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or
    /// 128. Other sizes are an error of the functions that take it.
    pub fn affine(bits: usize, group_size: usize) -> Quantization {
        Quantization { mode: QuantizationMode::Affine, group_size, bits }
    }

    /// Makes a quantization from the name of a mode. Sizes that are not given are the mode's own.
    /// Errors name `op`.
    ///
    /// # Errors
    /// [`Error::Value`] for an unknown name, sizes below 1, and sizes that the mode does not have.
    pub fn from_options(
        op: &str,
        mode: &str,
        group_size: Option<isize>,
        bits: Option<isize>,
    ) -> Result<Quantization> {
        let known = QuantizationMode::ALL.into_iter().find(|m| m.name() == mode);
        let mode = known.ok_or_else(|| {
            Error::value(
                op,
                format!(
                    "Invalid quantization mode '{mode}'. Use 'affine', 'mxfp4', 'mxfp8' or 'nvfp4'."
                ),
            )
        })?;
        let (own_group, own_bits) = mode.sizes();
        let size = |name: &str, given: Option<isize>, own: usize| {
            let Some(given) = given else { return Ok(own) };
            ensure!(given > 0, op, "Invalid value for {name}: {given}. Pass a positive number.");
            Ok(given as usize)
        };
        let (group_size, bits) =
            (size("group_size", group_size, own_group)?, size("bits", bits, own_bits)?);
        let how = Quantization { mode, group_size, bits };
        how.check(op)?;
        Ok(how)
    }

    /// Checks that sizes are not 0, and that they are the mode's own unless it is affine. Errors
    /// name `op`.
    pub(crate) fn check(self, op: &str) -> Result<()> {
        let Quantization { mode, group_size, bits } = self;
        ensure!(
            group_size > 0,
            op,
            "Invalid value for group_size: {group_size}. Pass a positive number."
        );
        ensure!(bits > 0, op, "Invalid value for bits: {bits}. Pass a positive number.");
        if mode == QuantizationMode::Affine {
            return Ok(());
        }
        let ((own_group, own_bits), name) = (mode.sizes(), mode.name());
        ensure!(
            group_size == own_group,
            op,
            "{name} quantization requires group size {own_group} but got {group_size}. Pass that, or leave it out."
        );
        ensure!(
            bits == own_bits,
            op,
            "{name} quantization requires bits to be {own_bits} but got {bits}. Pass that, or leave it out."
        );
        Ok(())
    }

    /// True for the sizes that products support.
    pub(crate) fn is_known(self) -> bool {
        self.mode != QuantizationMode::Affine
            || (GROUPS.contains(&self.group_size) && BITS.contains(&self.bits))
    }
}

/// Group sizes of the affine mode.
pub(crate) const GROUPS: [usize; 3] = [32, 64, 128];
/// Numbers of bits of the affine mode.
pub(crate) const BITS: [usize; 7] = [1, 2, 3, 4, 5, 6, 8];
