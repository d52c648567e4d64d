//! Shapes and dtypes, and the layout of tensors in memory.

use crate::{
    dtype::Dtype,
    error::{Error, Result},
};
use std::ffi::c_void;
use std::fmt;
use ultramarine_abi::{MAX_NDIM, dlpack::DLDataType, extension as raw, read_sized};

/// The shape and dtype of an array.
///
/// ```
/// use ultramarine_extension::{Dtype, TensorType};
///
/// let matrix = TensorType::new(&[2, 3], Dtype::Float32);
/// assert_eq!((matrix.ndim(), matrix.size()), (2, 6));
/// assert_eq!(matrix.to_string(), "float32 (2, 3)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Sizes of the axes.
    pub shape: Vec<usize>,
    /// Element type.
    pub dtype: Dtype,
}

impl TensorType {
    /// Makes the type of arrays with this shape and dtype.
    pub fn new(shape: &[usize], dtype: Dtype) -> Self {
        Self { shape: shape.to_vec(), dtype }
    }

    /// Returns the number of axes.
    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// Returns the number of elements.
    pub fn size(&self) -> usize {
        self.shape.iter().product()
    }

    /// Reads a type in the contract's form.
    pub(crate) fn from_raw(of: &raw::TensorType) -> Result<Self> {
        let (shape, dl) = Self::parts(of);
        let dtype = Dtype::from_dl(dl).ok_or_else(|| refused(dl))?;
        Ok(Self { shape, dtype })
    }

    pub(crate) fn parts(of: &raw::TensorType) -> (Vec<usize>, DLDataType) {
        let ndim = of.ndim.clamp(0, MAX_NDIM as i32) as usize;
        (of.shape[..ndim].iter().map(|&n| n.max(0) as usize).collect(), of.dtype)
    }

    /// Returns the type in the contract's form.
    pub(crate) fn to_raw(&self) -> Result<raw::TensorType> {
        if self.shape.len() > MAX_NDIM {
            return Err(Error::value(format!(
                "The array has {} axes. Use at most {MAX_NDIM}.",
                self.shape.len()
            )));
        }
        let mut of = empty_type();
        of.ndim = self.shape.len() as i32;
        of.dtype = self.dtype.to_dl();
        for (to, &from) in of.shape.iter_mut().zip(&self.shape) {
            *to = i64::try_from(from).map_err(|_| {
                Error::value(format!("An axis cannot have {from} elements. Use 0 or more."))
            })?;
        }
        Ok(of)
    }
}

/// Makes a struct that the host can fill.
pub(crate) fn empty_type() -> raw::TensorType {
    raw::TensorType {
        size: size_of::<raw::TensorType>() as u32,
        ndim: 0,
        dtype: Dtype::Bool.to_dl(),
        reserved: 0,
        shape: [0; MAX_NDIM],
    }
}

/// Names of DLPack's type codes from 7 on, which are floats of less than 16 bits.
const SHORT_FLOATS: [&str; 11] = [
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float4_e2m1fn",
];

/// Returns the name of a DLPack type.
pub(crate) fn name_of(dl: DLDataType) -> String {
    let short = || SHORT_FLOATS.get(usize::from(dl.code).checked_sub(7)?).map(|n| (*n).to_owned());
    let known = Dtype::from_dl(dl).map(|dtype| dtype.name().to_owned());
    known
        .or_else(short)
        .unwrap_or_else(|| format!("a dtype of DLPack's code {}, {} bits", dl.code, dl.bits))
}

/// Makes the error for a dtype that has no arithmetic.
pub(crate) fn refused(dl: DLDataType) -> Error {
    Error::value(format!(
        "There is no arithmetic with {}. Convert it with astype first.",
        name_of(dl)
    ))
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dtype, Show(&self.shape))
    }
}

/// Shows a shape as Python does: `(2, 3)`, `(4,)`, `()`.
pub(crate) struct Show<'a>(pub &'a [usize]);

impl fmt::Display for Show<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<_> = self.0.iter().map(usize::to_string).collect();
        write!(f, "({}{})", sizes.join(", "), if sizes.len() == 1 { "," } else { "" })
    }
}

/// A tensor of an evaluation, without a type.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub data: *mut c_void,
    pub shape: Vec<usize>,
    pub strides: Vec<isize>,
    pub dl: DLDataType,
    pub flags: u32,
}

impl Tensor {
    /// # Safety
    /// The view obeys the contract.
    pub unsafe fn of(view: &raw::View) -> Self {
        let ndim = view.ndim.max(0) as usize;
        let list = |at: *const i64| -> &[i64] {
            if ndim == 0 || at.is_null() {
                return &[];
            }
            // SAFETY: `ndim` of them, by contract.
            unsafe { std::slice::from_raw_parts(at, ndim) }
        };
        let shape: Vec<usize> = list(view.shape).iter().map(|&n| n.max(0) as usize).collect();
        let strides = match view.strides.is_null() {
            true => row_major(&shape),
            false => list(view.strides).iter().map(|&s| s as isize).collect(),
        };
        Self { data: view.data, shape, strides, dl: view.dtype, flags: view.flags }
    }

    pub fn dtype(&self) -> Result<Dtype> {
        Dtype::from_dl(self.dl).ok_or_else(|| refused(self.dl))
    }

    pub fn elements(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn is_row_contiguous(&self) -> bool {
        is_row_major(&self.shape, &self.strides)
    }
}

/// Returns the strides of row-major elements.
pub(crate) fn row_major(shape: &[usize]) -> Vec<isize> {
    let mut strides = vec![0; shape.len()];
    let mut next = 1isize;
    for (stride, &n) in strides.iter_mut().zip(shape).rev() {
        *stride = next;
        next = next.saturating_mul(n.max(1) as isize);
    }
    strides
}

/// Returns true if elements are row-major without gaps. Strides of axes of size 1 do not matter.
pub(crate) fn is_row_major(shape: &[usize], strides: &[isize]) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let mut next = 1;
    for (&n, &stride) in shape.iter().zip(strides).rev() {
        if n != 1 && stride != next {
            return false;
        }
        next *= n as isize;
    }
    true
}

/// Returns the elements of an array of structs, and copies `min(size)` bytes of each. Their
/// distance is `stride`, or else the size of the first one.
///
/// # Safety
/// By the contract, `first` points at `n` structs.
pub(crate) unsafe fn structs<T: Copy>(
    first: *const T,
    n: u32,
    stride: Option<u32>,
) -> Result<Vec<T>> {
    if n == 0 {
        return Ok(Vec::new());
    }
    if first.is_null() {
        return Err(Error::value("The pointer to an array of structs is NULL."));
    }
    // SAFETY: there is at least one, and it begins with its size.
    let stride = stride.unwrap_or_else(|| unsafe { first.cast::<u32>().read_unaligned() });
    if stride < 4 {
        return Err(Error::value("The field `size` of a struct is 0."));
    }
    let at = |i: u32| first.cast::<u8>().wrapping_add(stride as usize * i as usize).cast::<T>();
    // SAFETY: `n` structs, by this function's contract. All-zero bytes are valid for those of the
    // contract.
    Ok((0..n).filter_map(|i| unsafe { read_sized(at(i)) }).collect())
}

/// Adds methods for shape and strides to a type with a field `tensor`. The argument is the head of
/// the `impl`.
macro_rules! layout {
    ($($head:tt)*) => {
        $($head)* {
            /// Sizes of the axes.
            pub fn shape(&self) -> &[usize] {
                &self.tensor.shape
            }

            /// Strides of the axes, in elements.
            pub fn strides(&self) -> &[isize] {
                &self.tensor.strides
            }

            /// Number of elements.
            pub fn len(&self) -> usize {
                self.tensor.elements()
            }

            /// Returns true if there are none.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }
        }
    };
}

pub(crate) use layout;
