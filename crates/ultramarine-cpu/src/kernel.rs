//! The interface of every family of kernels: a kernel is prepared once from dtypes, ranks and attributes, and then run
//! with tensors many times.

use crate::{dtype::DType, level::Level, par::Par};
use ultramarine_abi::{self as abi, TensorDesc, helper::Plain, layout, schema};

/// A tensor of a command: first element, shape and strides in elements.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Address of the first element (strides may lead to lower addresses).
    pub data: *mut u8,
    /// Element type.
    pub dtype: DType,
    /// Sizes; none is zero.
    pub shape: &'a [i64],
    /// Strides in elements: any sign, zero for broadcast.
    pub strides: &'a [i64],
}

// SAFETY: sharing the address is harmless; every access through it is an unsafe
// block of its own that says why it does not race.
unsafe impl Send for View<'_> {}
// SAFETY: as above.
unsafe impl Sync for View<'_> {}

impl<'a> View<'a> {
    /// # Safety
    /// `t` obeys the contract of [`abi::Tensor`] for `'a`.
    #[inline]
    pub unsafe fn new(t: &'a abi::dlpack::DLTensor, dtype: DType) -> Self {
        let ndim = t.ndim as usize;
        let (shape, strides): (&[i64], &[i64]) = if ndim == 0 {
            (&[], &[])
        } else {
            // SAFETY: shape and strides hold ndim values (the caller's promise).
            unsafe {
                (
                    std::slice::from_raw_parts(t.shape, ndim),
                    std::slice::from_raw_parts(t.strides, ndim),
                )
            }
        };
        let data = (t.data as *mut u8).wrapping_add(t.byte_offset as usize);
        View { data, dtype, shape, strides }
    }

    /// Number of elements.
    #[inline]
    pub fn size(&self) -> usize {
        self.shape.iter().product::<i64>() as usize
    }

    /// True if the view is row-major without gaps (strides of axes of size 1 do not matter).
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        for (&n, &s) in self.shape.iter().zip(self.strides).rev() {
            if n != 1 {
                if s != expected {
                    return false;
                }
                expected *= n;
            }
        }
        true
    }
}

/// The environment of a running kernel.
#[derive(Clone, Copy)]
pub struct Context {
    /// The thread pool.
    pub par: Par,
    /// The instruction set to use.
    pub level: Level,
}

/// Tensors and scalars of one command.
pub struct Args<'a> {
    /// Inputs.
    pub inputs: &'a [View<'a>],
    /// Outputs. They do not overlap inputs, unless an input is exactly the output (same address, shape and strides: a
    /// donated elementwise operand).
    pub outputs: &'a [View<'a>],
    /// Scalars: little-endian bits of their dtype.
    pub scalars: &'a [[u64; 2]],
}

/// A prepared kernel, which many threads may use at once.
pub trait Kernel: Send + Sync {
    /// Runs it to the end.
    ///
    /// # Safety
    /// The tensors are valid for their shapes and strides, have the dtypes and
    /// ranks that the kernel was prepared for, and obey [`Args`].
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String>;
}

/// The reason why there is no plan.
#[derive(Debug)]
pub enum Refusal {
    /// Unknown op, code, dtype or attribute.
    Unsupported,
    /// The inputs must be row-major contiguous.
    NeedsContiguous,
    /// Malformed request, with a description of the error.
    Invalid(String),
}

impl From<String> for Refusal {
    fn from(text: String) -> Refusal {
        Refusal::Invalid(text)
    }
}

/// Result of preparing.
pub type Prepared = Result<Box<dyn Kernel>, Refusal>;

/// Dtypes, ranks and layouts of a request, decoded.
pub struct Signature<'a> {
    /// Inputs.
    pub inputs: &'a [Desc],
    /// Outputs.
    pub outputs: &'a [Desc],
}

impl Signature<'_> {
    /// Checks the numbers of tensors.
    pub fn expect(&self, inputs: usize, outputs: usize) -> Result<(), Refusal> {
        let found = (self.inputs.len(), self.outputs.len());
        if found == (inputs, outputs) {
            return Ok(());
        }
        Err(Refusal::Invalid(format!("{} inputs and {} outputs", found.0, found.1)))
    }
}

/// One tensor of a [`Signature`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Desc {
    /// Element type.
    pub dtype: DType,
    /// Rank.
    pub ndim: usize,
    /// Set if the tensor is promised to be row-major without gaps.
    pub contiguous: bool,
}

impl Desc {
    /// Decodes a boundary description.
    pub fn new(d: &TensorDesc) -> Option<Self> {
        let ndim = usize::try_from(d.ndim).ok().filter(|n| *n <= abi::MAX_NDIM)?;
        Some(Desc {
            dtype: DType::from_dl(d.dtype)?,
            ndim,
            contiguous: d.layout == layout::CONTIGUOUS,
        })
    }
}

/// The operation of a request, with its attributes.
pub struct Op {
    /// A constant of [`schema::op`].
    pub id: schema::OpId,
    attributes: *const core::ffi::c_void,
}

impl Op {
    /// # Safety
    /// `attributes` is NULL or points to an attribute struct, which begins with its size and lives as long as this.
    pub unsafe fn new(id: schema::OpId, attributes: *const core::ffi::c_void) -> Self {
        Op { id, attributes }
    }

    /// The attributes, as struct `A`.
    pub fn attributes<A: Plain>(&self) -> Result<A, Refusal> {
        // SAFETY: NULL or an attribute struct, which begins with its size; a shorter one's rest is 0.
        let known = unsafe { abi::read_sized(self.attributes.cast::<A>()) };
        let known = known.ok_or_else(|| Refusal::Invalid("attributes are NULL".into()))?;
        // SAFETY: as above.
        if !unsafe { abi::tail_is_zero(self.attributes.cast::<A>()) } {
            return Err(Refusal::Unsupported);
        }
        Ok(known)
    }
}

/// Returns `code` if the family has it.
pub fn known(code: u32, names: &[&str]) -> Result<u32, Refusal> {
    if (code as usize) < names.len() { Ok(code) } else { Err(Refusal::Unsupported) }
}
