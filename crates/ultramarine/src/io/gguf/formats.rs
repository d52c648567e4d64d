//! The types of tensors in a file.

use super::blocks::{codebook, each, flat, float4, super_blocks};
use super::packed::{self, PackedFormat};
use crate::dtype::Dtype;

/// Encoding of a tensor's elements in a file.
#[derive(Clone, Copy)]
pub(super) enum Encoding {
    /// The same bytes as in memory.
    Plain(Dtype),
    /// In blocks, each of consecutive elements of a row.
    Blocks(&'static BlockFormat),
}

/// A format of blocks of few-bit numbers.
pub(super) struct BlockFormat {
    code: u32,
    pub name: &'static str,
    /// Numbers of a block.
    pub elements: usize,
    /// Bytes of a block.
    pub bytes: usize,
    /// Decodes blocks to numbers of a floating dtype.
    pub decode: fn(&[u8], &mut [u8], Dtype),
    /// The quantised array that holds the same numbers, if there is one.
    pub packed: Option<&'static PackedFormat>,
}

/// Defines formats by code, name, numbers and bytes of a block, decoder, and packed form.
macro_rules! formats {
    ($($code:literal $name:ident $elements:literal $bytes:literal $decode:expr, $packed:expr;)*) => {
        &[$(BlockFormat {
            code: $code,
            name: stringify!($name),
            elements: $elements,
            bytes: $bytes,
            decode: |from, to, dtype| each::<$bytes, $elements>(from, to, dtype, $decode),
            packed: $packed,
        }),*]
    };
}

static FORMATS: &[BlockFormat] = formats! {
     2 Q4_0     32  18 flat::q4_0,          Some(&packed::Q4_0);
     3 Q4_1     32  20 flat::q4_1,          Some(&packed::Q4_1);
     6 Q5_0     32  22 flat::q5_0,          Some(&packed::Q5_0);
     7 Q5_1     32  24 flat::q5_1,          Some(&packed::Q5_1);
     8 Q8_0     32  34 flat::q8_0,          Some(&packed::Q8_0);
    10 Q2_K    256  84 super_blocks::q2_k,  None;
    11 Q3_K    256 110 super_blocks::q3_k,  None;
    12 Q4_K    256 144 super_blocks::q4_k,  Some(&packed::Q4_K);
    13 Q5_K    256 176 super_blocks::q5_k,  Some(&packed::Q5_K);
    14 Q6_K    256 210 super_blocks::q6_k,  None;
    15 Q8_K    256 292 super_blocks::q8_k,  None;
    16 IQ2_XXS 256  66 codebook::iq2_xxs,   None;
    17 IQ2_XS  256  74 codebook::iq2_xs,    None;
    18 IQ3_XXS 256  98 codebook::iq3_xxs,   None;
    19 IQ1_S   256  50 codebook::iq1_s,     None;
    20 IQ4_NL   32  18 codebook::iq4_nl,    None;
    21 IQ3_S   256 110 codebook::iq3_s,     None;
    22 IQ2_S   256  82 codebook::iq2_s,     None;
    23 IQ4_XS  256 136 codebook::iq4_xs,    None;
    29 IQ1_M   256  56 codebook::iq1_m,     None;
    34 TQ1_0   256  54 flat::tq1_0,         None;
    35 TQ2_0   256  66 flat::tq2_0,         None;
    39 MXFP4    32  17 float4::mxfp4,       Some(&packed::MXFP4);
    40 NVFP4    64  36 float4::nvfp4,       Some(&packed::NVFP4);
    41 Q1_0    128  18 flat::q1_0,          None;
};

/// Codes of types whose elements are stored as in memory.
static PLAIN: &[(u32, Dtype)] = &[
    (0, Dtype::Float32),
    (1, Dtype::Float16),
    (24, Dtype::Int8),
    (25, Dtype::Int16),
    (26, Dtype::Int32),
    (27, Dtype::Int64),
    (28, Dtype::Float64),
    (30, Dtype::Bfloat16),
];

impl Encoding {
    /// The encoding for a code; the error explains why the code is not supported.
    pub fn from_code(code: u32) -> Result<Encoding, &'static str> {
        if let Some((_, dtype)) = PLAIN.iter().find(|(own, _)| *own == code) {
            return Ok(Encoding::Plain(*dtype));
        }
        if let Some(format) = FORMATS.iter().find(|format| format.code == code) {
            return Ok(Encoding::Blocks(format));
        }
        Err(match code {
            4 | 5 | 31..=33 | 36..=38 => "which llama.cpp removed. Convert the model again",
            9 => "Q8_1, which files cannot have. Convert the model again",
            _ => "which is unknown. Update ultramarine, or convert the model to another type",
        })
    }

    /// The code for arrays of a dtype.
    pub fn code_of(dtype: Dtype) -> Option<u32> {
        PLAIN.iter().find(|(_, own)| *own == dtype).map(|(code, _)| *code)
    }

    /// Elements and bytes of a block.
    pub fn block(&self) -> (usize, usize) {
        match self {
            Encoding::Plain(dtype) => (1, dtype.size()),
            Encoding::Blocks(format) => (format.elements, format.bytes),
        }
    }
}
