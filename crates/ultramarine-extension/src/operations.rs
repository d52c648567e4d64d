//! Ultramarine's operations on arrays.

use crate::{
    array::{Array, handles, owned},
    axes::{Axes, Reduced},
    dtype::Dtype,
    error::{Error, Result},
    host::{self, asked, lent},
    operators::Operand,
    place::Place,
};
use std::ffi::CString;
use std::ptr::{null, null_mut};
use ultramarine_abi::extension::{self as raw, attribute};

/// A named argument of an operation, other than an array. The names are those of `mlx.core`'s keyword arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute<'a> {
    /// An integer, or a flag (0 or 1).
    Int(&'a str, i64),
    /// A number.
    Float(&'a str, f64),
    /// Integers: axes, shapes.
    Ints(&'a str, Vec<i64>),
    /// A dtype.
    Dtype(&'a str, Dtype),
    /// A text.
    Text(&'a str, &'a str),
}

impl<'a> Attribute<'a> {
    /// Sizes.
    pub fn shape(name: &'a str, shape: &[usize]) -> Self {
        Self::Ints(name, shape.iter().map(|&n| i64::try_from(n).unwrap_or(i64::MAX)).collect())
    }

    /// Axes; negative ones count from the end.
    pub fn axes(name: &'a str, axes: &[isize]) -> Self {
        Self::Ints(name, axes.iter().map(|&n| n as i64).collect())
    }

    fn name(&self) -> &'a str {
        match self {
            Self::Int(name, _)
            | Self::Float(name, _)
            | Self::Ints(name, _)
            | Self::Dtype(name, _)
            | Self::Text(name, _) => name,
        }
    }
}

/// Runs an operation of Ultramarine by its name in `mlx.core`, with `results` results.
///
/// ```no_run
/// use ultramarine_extension::{Array, Attribute, Place, operation};
///
/// # fn main() -> ultramarine_extension::Result<()> {
/// let x = Array::from_slice(&[3f32, 1.0, 2.0], &[3])?;
/// let sorted = &operation("sort", &[&x], &[Attribute::Int("axis", 0)], Place::Default, 1)?[0];
/// assert_eq!(sorted.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// There is no such operation; it has another number of results; it refuses its operands or attributes.
pub fn operation(
    name: &str,
    inputs: &[&Array],
    attributes: &[Attribute<'_>],
    place: Place,
    results: usize,
) -> Result<Vec<Array>> {
    let (run, host, inputs) = (lent!(operation), host::here()?.host, handles(inputs));
    let text = |text: &str| {
        CString::new(text).map_err(|_| Error::value(format!("[{name}] A text has a NUL in it.")))
    };
    let operation = text(name)?;
    // Memory that the structs point at.
    let names = attributes.iter().map(|a| text(a.name())).collect::<Result<Vec<_>>>()?;
    let texts = attributes.iter().map(|a| match a {
        Attribute::Text(_, value) => text(value),
        _ => Ok(CString::default()),
    });
    let texts = texts.collect::<Result<Vec<_>>>()?;
    let attributes: Vec<_> = attributes
        .iter()
        .zip(&names)
        .zip(&texts)
        .map(|((attribute, name), text)| {
            let mut one = raw::Attribute {
                size: size_of::<raw::Attribute>() as u32,
                kind: attribute::INT,
                name: name.as_ptr(),
                integer: 0,
                real: 0.0,
                integers: null(),
                count: 0,
                text: null(),
                dtype: Dtype::Bool.to_dl(),
                reserved: 0,
            };
            match attribute {
                Attribute::Int(_, value) => one.integer = *value,
                Attribute::Float(_, value) => {
                    (one.kind, one.real) = (attribute::FLOAT, *value);
                }
                Attribute::Ints(_, values) => {
                    one.kind = attribute::INTS;
                    (one.integers, one.count) = (values.as_ptr(), values.len() as u64);
                }
                Attribute::Dtype(_, value) => {
                    (one.kind, one.dtype) = (attribute::DTYPE, value.to_dl());
                }
                Attribute::Text(..) => (one.kind, one.text) = (attribute::TEXT, text.as_ptr()),
            }
            one
        })
        .collect();
    let mut made = vec![null_mut(); results];
    let code = place.to_code();
    let code = if place == Place::Default { null() } else { &raw const code };
    // SAFETY: the host's function with the host's pointer and handles; texts, structs and places are there, as many as said.
    asked(name, |error| unsafe {
        run(
            host,
            operation.as_ptr(),
            inputs.as_ptr(),
            inputs.len() as u32,
            attributes.as_ptr(),
            attributes.len() as u32,
            code,
            made.as_mut_ptr(),
            results as u32,
            error,
        )
    })?;
    // SAFETY: what it gives is the caller's.
    unsafe { owned(made) }
}

/// An operation of one result, where its operands are.
fn one(name: &str, inputs: &[&Array], attributes: &[Attribute<'_>]) -> Result<Array> {
    let mut made = operation(name, inputs, attributes, Place::Default, 1)?;
    made.pop().ok_or_else(|| Error::runtime(format!("[{name}] gave no array.")))
}

macro_rules! methods {
    (
        unary { $($(#[$um:meta])* $unary:ident;)* }
        binary { $($(#[$bm:meta])* $binary:ident;)* }
        reduction { $($(#[$rm:meta])* $reduction:ident;)* }
        along { $($(#[$am:meta])* $along:ident;)* }
    ) => {
        /// Operations, where their operands are ([`operation`] runs others, and elsewhere). Each refuses shapes and
        /// dtypes that do not fit with an error.
        #[allow(clippy::missing_errors_doc)]
        impl Array {
            $($(#[$um])* pub fn $unary(&self) -> Result<Array> {
                one(stringify!($unary), &[self], &[])
            })*
            $($(#[$bm])* pub fn $binary(&self, other: impl Operand) -> Result<Array> {
                one(stringify!($binary), &[self, &*other.beside(self)?], &[])
            })*
            $($(#[$rm])* ///
            /// Over `axes` (`..`: all), which the result has not; [`KeepDims`](crate::KeepDims) keeps them, with size 1.
            pub fn $reduction(&self, axes: impl Into<Reduced<Axes>>) -> Result<Array> {
                let Reduced { axes, keepdims } = axes.into();
                let keep = Attribute::Int("keepdims", i64::from(keepdims));
                match axes.named(self.ndim()) {
                    None => one(stringify!($reduction), &[self], &[keep]),
                    Some(axes) => one(stringify!($reduction), &[self], &[Attribute::axes("axis", &axes), keep]),
                }
            })*
            $($(#[$am])* pub fn $along(&self, axis: isize) -> Result<Array> {
                one(stringify!($along), &[self], &[Attribute::Int("axis", axis as i64)])
            })*
        }
    };
}

methods! {
    unary {
        /// |x|
        abs;
        /// -x
        negative;
        /// -1, 0 or 1.
        sign;
        /// x * x
        square;
        /// Square root.
        sqrt;
        /// 1 / sqrt(x)
        rsqrt;
        /// 1 / x
        reciprocal;
        /// e^x
        exp;
        /// e^x - 1
        expm1;
        /// Natural logarithm.
        log;
        /// Logarithm to base 2.
        log2;
        /// Logarithm to base 10.
        log10;
        /// ln(1 + x)
        log1p;
        /// Sine of radians.
        sin;
        /// Cosine.
        cos;
        /// Tangent.
        tan;
        /// Inverse sine.
        arcsin;
        /// Inverse cosine.
        arccos;
        /// Inverse tangent.
        arctan;
        /// Hyperbolic sine.
        sinh;
        /// Hyperbolic cosine.
        cosh;
        /// Hyperbolic tangent.
        tanh;
        /// Inverse hyperbolic sine.
        arcsinh;
        /// Inverse hyperbolic cosine.
        arccosh;
        /// Inverse hyperbolic tangent.
        arctanh;
        /// Error function.
        erf;
        /// Inverse error function.
        erfinv;
        /// 1 / (1 + e^-x)
        sigmoid;
        /// Largest integer not above.
        floor;
        /// Smallest integer not below.
        ceil;
        /// Logical not.
        logical_not;
        /// Complement of integers.
        bitwise_invert;
        /// Tests elements for NaN.
        isnan;
        /// Tests elements for infinity.
        isinf;
        /// Tests whether elements are finite.
        isfinite;
        /// Complex conjugate.
        conjugate;
        /// Real part.
        real;
        /// Imaginary part.
        imag;
        /// The same elements, through which no derivative flows.
        stop_gradient;
    }
    binary {
        /// x + y
        add;
        /// x - y
        subtract;
        /// x * y
        multiply;
        /// x / y
        divide;
        /// The quotient, rounded down.
        floor_divide;
        /// Remainder with the divisor's sign.
        remainder;
        /// x to the power of y.
        power;
        /// Larger of both.
        maximum;
        /// Smaller of both.
        minimum;
        /// ln(e^x + e^y)
        logaddexp;
        /// Angle of (y, x): this is the ordinate.
        arctan2;
        /// x == y
        equal;
        /// x != y
        not_equal;
        /// x < y
        less;
        /// x <= y
        less_equal;
        /// x > y
        greater;
        /// x >= y
        greater_equal;
        /// Logical and.
        logical_and;
        /// Logical or.
        logical_or;
        /// Bitwise and.
        bitwise_and;
        /// Bitwise or.
        bitwise_or;
        /// Bitwise exclusive or.
        bitwise_xor;
        /// x << y
        left_shift;
        /// x >> y
        right_shift;
        /// Product of matrices, or of vectors and matrices.
        matmul;
    }
    reduction {
        /// Sum.
        sum;
        /// Product.
        prod;
        /// Mean.
        mean;
        /// Smallest element.
        min;
        /// Largest element.
        max;
        /// Tests whether all elements are non-zero.
        all;
        /// Tests whether any element is non-zero.
        any;
        /// Natural logarithm of the sum of e^x.
        logsumexp;
    }
    along {
        /// Sorts along an axis.
        sort;
        /// Indices that sort along an axis.
        argsort;
        /// e^x over the sum of e^x along an axis.
        softmax;
        /// Sums of the elements up to each along an axis.
        cumsum;
        /// Products of the elements up to each along an axis.
        cumprod;
        /// Index of the largest element along an axis.
        argmax;
        /// Index of the smallest element along an axis.
        argmin;
    }
}

/// Operations with attributes of their own.
#[allow(clippy::missing_errors_doc)]
impl Array {
    /// The elements in another dtype.
    pub fn astype(&self, dtype: Dtype) -> Result<Array> {
        one("astype", &[self], &[Attribute::Dtype("dtype", dtype)])
    }

    /// The elements in another shape; one size may be -1 and follows from the others.
    pub fn reshape(&self, shape: &[isize]) -> Result<Array> {
        one("reshape", &[self], &[Attribute::axes("shape", shape)])
    }

    /// The axes in another order; none given: reversed.
    pub fn transpose(&self, axes: &[isize]) -> Result<Array> {
        match axes {
            [] => one("transpose", &[self], &[]),
            _ => one("transpose", &[self], &[Attribute::axes("axes", axes)]),
        }
    }

    /// The elements repeated to a shape.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Array> {
        one("broadcast_to", &[self], &[Attribute::shape("shape", shape)])
    }

    /// With new axes of size 1, which are at these places of the result.
    pub fn expand_dims(&self, axes: &[isize]) -> Result<Array> {
        one("expand_dims", &[self], &[Attribute::axes("axis", axes)])
    }

    /// Without axes of size 1: these, or all if none are given.
    pub fn squeeze(&self, axes: &[isize]) -> Result<Array> {
        match axes {
            [] => one("squeeze", &[self], &[]),
            _ => one("squeeze", &[self], &[Attribute::axes("axis", axes)]),
        }
    }

    /// With one axis moved elsewhere.
    pub fn moveaxis(&self, source: isize, destination: isize) -> Result<Array> {
        let attributes = [
            Attribute::Int("source", source as i64),
            Attribute::Int("destination", destination as i64),
        ];
        one("moveaxis", &[self], &attributes)
    }

    /// With two axes swapped.
    pub fn swapaxes(&self, axis1: isize, axis2: isize) -> Result<Array> {
        let attributes =
            [Attribute::Int("axis1", axis1 as i64), Attribute::Int("axis2", axis2 as i64)];
        one("swapaxes", &[self], &attributes)
    }

    /// Elements at indices along an axis.
    pub fn take(&self, indices: &Array, axis: isize) -> Result<Array> {
        one("take", &[self, indices], &[Attribute::Int("axis", axis as i64)])
    }

    /// [`operation`] with one result, where the operands are, of this array alone.
    pub fn operation(&self, name: &str, attributes: &[Attribute<'_>]) -> Result<Array> {
        one(name, &[self], attributes)
    }
}

/// Elements of `x` where `condition` is true, else of `y`.
///
/// # Errors
/// The shapes cannot be broadcast.
pub fn where_(condition: &Array, x: &Array, y: &Array) -> Result<Array> {
    one("where", &[condition, x, y], &[])
}

/// Arrays one behind the other along an axis.
///
/// # Errors
/// The shapes differ off the axis.
pub fn concatenate(arrays: &[&Array], axis: isize) -> Result<Array> {
    one("concatenate", arrays, &[Attribute::Int("axis", axis as i64)])
}

/// Arrays side by side along a new axis.
///
/// # Errors
/// The shapes differ.
pub fn stack(arrays: &[&Array], axis: isize) -> Result<Array> {
    one("stack", arrays, &[Attribute::Int("axis", axis as i64)])
}
