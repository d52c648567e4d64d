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

/// A named argument of an operation, other than an array, for [`operation`]. The names are those of
/// `mlx.core`'s keyword arguments; docs/extension-operations.md lists them.
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
    /// Makes an attribute of sizes.
    pub fn shape(name: &'a str, shape: &[usize]) -> Self {
        Self::Ints(name, shape.iter().map(|&n| i64::try_from(n).unwrap_or(i64::MAX)).collect())
    }

    /// Makes an attribute of axes; negative ones count from the last.
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

/// Runs an operation of Ultramarine by its name in `mlx.core`. `results` is its number of results.
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
/// An [`Error`] if there is no such operation, if it has another number of results, or if it
/// refuses its operands or attributes.
pub fn operation(
    name: &str,
    inputs: &[&Array],
    attributes: &[Attribute<'_>],
    place: Place,
    results: usize,
) -> Result<Vec<Array>> {
    let (run, host, inputs) = (lent!(operation), host::here()?.host, handles(inputs));
    let text = |text: &str| {
        CString::new(text)
            .map_err(|_| Error::value(format!("[{name}] A string has a NUL in it. Remove it.")))
    };
    let operation = text(name)?;
    // Keep the memory that the structs point at.
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
    // SAFETY: the caller owns the results.
    unsafe { owned(made) }
}

/// Runs an operation with one result, on the device of its operands.
fn one(name: &str, inputs: &[&Array], attributes: &[Attribute<'_>]) -> Result<Array> {
    let mut made = operation(name, inputs, attributes, Place::Default, 1)?;
    made.pop().ok_or_else(|| {
        Error::runtime(format!(
            "[{name}] It returned no array. Report it to the authors of Ultramarine."
        ))
    })
}

macro_rules! methods {
    (
        unary { $($(#[$um:meta])* $unary:ident;)* }
        binary { $($(#[$bm:meta])* $binary:ident;)* }
        reduction { $($(#[$rm:meta])* $reduction:ident;)* }
        along { $($(#[$am:meta])* $along:ident;)* }
    ) => {
        /// Operations as methods. They run on the device of their operands. [`operation`] runs all
        /// other operations, and can run them on another device.
        impl Array {
            $($(#[$um])*
            ///
            /// # Errors
            /// An [`Error`] for a dtype that the function is not defined for.
            pub fn $unary(&self) -> Result<Array> {
                one(stringify!($unary), &[self], &[])
            })*
            $($(#[$bm])*
            /// Shapes are broadcast and dtypes promoted. `other` is an array or a number
            /// ([`Operand`]).
            ///
            /// # Errors
            /// An [`Error`] for shapes that do not fit, and for a dtype that the function is not
            /// defined for.
            pub fn $binary(&self, other: impl Operand) -> Result<Array> {
                one(stringify!($binary), &[self, &*other.beside(self)?], &[])
            })*
            $($(#[$rm])*
            /// It is computed over `axes` ([`Axes`]; `..` means all). The result lacks these axes,
            /// unless [`KeepDims`](crate::KeepDims) keeps them, with size 1.
            ///
            /// # Errors
            /// An [`Error`] for an axis out of range or named twice, and for a dtype that the
            /// function is not defined for.
            pub fn $reduction(&self, axes: impl Into<Reduced<Axes>>) -> Result<Array> {
                let Reduced { axes, keepdims } = axes.into();
                let keep = Attribute::Int("keepdims", i64::from(keepdims));
                match axes.named(self.ndim()) {
                    None => one(stringify!($reduction), &[self], &[keep]),
                    Some(axes) => one(stringify!($reduction), &[self], &[Attribute::axes("axis", &axes), keep]),
                }
            })*
            $($(#[$am])*
            ///
            /// `axis` counts from the last one if it is negative.
            ///
            /// # Errors
            /// An [`Error`] for an axis out of range, and for a dtype that the function is not defined for.
            pub fn $along(&self, axis: isize) -> Result<Array> {
                one(stringify!($along), &[self], &[Attribute::Int("axis", axis as i64)])
            })*
        }
    };
}

methods! {
    unary {
        /// Returns the absolute value of each element; of complex64 the modulus, as float32.
        abs;
        /// Returns `-x` for each element. Not for bool.
        negative;
        /// Returns -1, 0 or 1 for each element, by its sign.
        sign;
        /// Returns `x * x` for each element.
        square;
        /// Returns the square root of each element.
        sqrt;
        /// Returns `1 / sqrt(x)` for each element.
        rsqrt;
        /// Returns `1 / x` for each element.
        reciprocal;
        /// Returns `e^x` for each element.
        exp;
        /// Returns `e^x - 1` for each element, accurate near 0.
        expm1;
        /// Returns the natural logarithm of each element.
        log;
        /// Returns the logarithm to base 2 of each element.
        log2;
        /// Returns the logarithm to base 10 of each element.
        log10;
        /// Returns `ln(1 + x)` for each element, accurate near 0.
        log1p;
        /// Returns the sine of each element, in radians.
        sin;
        /// Returns the cosine of each element, in radians.
        cos;
        /// Returns the tangent of each element, in radians.
        tan;
        /// Returns the inverse sine of each element, in radians.
        arcsin;
        /// Returns the inverse cosine of each element, in radians.
        arccos;
        /// Returns the inverse tangent of each element, in radians.
        arctan;
        /// Returns the hyperbolic sine of each element.
        sinh;
        /// Returns the hyperbolic cosine of each element.
        cosh;
        /// Returns the hyperbolic tangent of each element.
        tanh;
        /// Returns the inverse hyperbolic sine of each element.
        arcsinh;
        /// Returns the inverse hyperbolic cosine of each element.
        arccosh;
        /// Returns the inverse hyperbolic tangent of each element.
        arctanh;
        /// Returns the error function of each element. Not for complex64.
        erf;
        /// Returns the inverse of the error function of each element. Not for complex64.
        erfinv;
        /// Returns `1 / (1 + e^-x)` for each element. Not for complex64.
        sigmoid;
        /// Returns the largest integer not above each element, in the same dtype.
        floor;
        /// Returns the smallest integer not below each element, in the same dtype.
        ceil;
        /// Returns true where an element is 0: bool.
        logical_not;
        /// Returns the complement of all bits of each element. For integers and bool.
        bitwise_invert;
        /// Returns true where an element is NaN: bool.
        isnan;
        /// Returns true where an element is infinite: bool.
        isinf;
        /// Returns true where an element is finite: bool.
        isfinite;
        /// Returns the complex conjugate of each element.
        conjugate;
        /// Returns the real part of each element: float32 of complex64.
        real;
        /// Returns the imaginary part of each element: float32 of complex64.
        imag;
        /// Returns the same elements. No derivative flows through the result.
        stop_gradient;
    }
    binary {
        /// Returns `x + y`.
        add;
        /// Returns `x - y`.
        subtract;
        /// Returns `x * y`.
        multiply;
        /// Returns `x / y`, in floats.
        divide;
        /// Returns the quotient, rounded down.
        floor_divide;
        /// Returns the remainder of the quotient that is rounded down: it has the divisor's sign.
        remainder;
        /// Returns x to the power of y.
        power;
        /// Returns the larger of both; NaN if either is.
        maximum;
        /// Returns the smaller of both; NaN if either is.
        minimum;
        /// Returns `ln(e^x + e^y)`, without overflow.
        logaddexp;
        /// Returns the angle of the point (other, self), in radians: this array has the ordinates.
        arctan2;
        /// Returns true where x equals y: bool.
        equal;
        /// Returns true where x differs from y: bool.
        not_equal;
        /// Returns true where x is less than y: bool.
        less;
        /// Returns true where x is at most y: bool.
        less_equal;
        /// Returns true where x is greater than y: bool.
        greater;
        /// Returns true where x is at least y: bool.
        greater_equal;
        /// Returns true where both are other than 0: bool.
        logical_and;
        /// Returns true where one is other than 0: bool.
        logical_or;
        /// Returns the bitwise and. For integers and bool.
        bitwise_and;
        /// Returns the bitwise or. For integers and bool.
        bitwise_or;
        /// Returns the bitwise exclusive or. For integers and bool.
        bitwise_xor;
        /// Returns `x << y`. For integers.
        left_shift;
        /// Returns `x >> y`. For integers.
        right_shift;
        /// Returns the product of matrices, or of vectors and matrices. Leading axes are broadcast.
        matmul;
    }
    reduction {
        /// Returns the sum.
        sum;
        /// Returns the product.
        prod;
        /// Returns the mean, in floats.
        mean;
        /// Returns the smallest element.
        min;
        /// Returns the largest element.
        max;
        /// Returns true if all elements are other than 0: bool.
        all;
        /// Returns true if any element is other than 0: bool.
        any;
        /// Returns the natural logarithm of the sum of `e^x`, without overflow.
        logsumexp;
    }
    along {
        /// Returns the elements in ascending order along an axis.
        sort;
        /// Returns the indices that sort the array along an axis: uint32.
        argsort;
        /// Returns `e^x` divided by the sum of `e^x` along an axis.
        softmax;
        /// Returns the sums of the elements up to each along an axis.
        cumsum;
        /// Returns the products of the elements up to each along an axis.
        cumprod;
        /// Returns the index of the largest element along an axis, which is removed: uint32.
        argmax;
        /// Returns the index of the smallest element along an axis, which is removed: uint32.
        argmin;
    }
}

/// Operations that have attributes.
impl Array {
    /// Returns the elements in another dtype. Floats become integers by truncation.
    ///
    /// # Errors
    /// An [`Error`] if the host has no memory.
    pub fn astype(&self, dtype: Dtype) -> Result<Array> {
        one("astype", &[self], &[Attribute::Dtype("dtype", dtype)])
    }

    /// Returns the elements in another shape, in row-major order. One size may be -1; it follows
    /// from the others.
    ///
    /// # Errors
    /// An [`Error`] for a shape with another number of elements.
    pub fn reshape(&self, shape: &[isize]) -> Result<Array> {
        one("reshape", &[self], &[Attribute::axes("shape", shape)])
    }

    /// Returns the axes in another order; an empty list reverses them.
    ///
    /// # Errors
    /// An [`Error`] if `axes` is not a permutation of all axes.
    pub fn transpose(&self, axes: &[isize]) -> Result<Array> {
        match axes {
            [] => one("transpose", &[self], &[]),
            _ => one("transpose", &[self], &[Attribute::axes("axes", axes)]),
        }
    }

    /// Returns the elements repeated to a shape.
    ///
    /// # Errors
    /// An [`Error`] for a shape that this array's does not broadcast to.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Array> {
        one("broadcast_to", &[self], &[Attribute::shape("shape", shape)])
    }

    /// Returns the elements with new axes of size 1. `axes` are their places in the result.
    ///
    /// # Errors
    /// An [`Error`] for an axis out of range or named twice.
    pub fn expand_dims(&self, axes: &[isize]) -> Result<Array> {
        one("expand_dims", &[self], &[Attribute::axes("axis", axes)])
    }

    /// Returns the elements without the axes of size 1 in `axes`, or without all of them if it is
    /// empty.
    ///
    /// # Errors
    /// An [`Error`] for an axis out of range or of another size.
    pub fn squeeze(&self, axes: &[isize]) -> Result<Array> {
        match axes {
            [] => one("squeeze", &[self], &[]),
            _ => one("squeeze", &[self], &[Attribute::axes("axis", axes)]),
        }
    }

    /// Returns the elements with axis `source` moved to place `destination`.
    ///
    /// # Errors
    /// An [`Error`] for an axis out of range.
    pub fn moveaxis(&self, source: isize, destination: isize) -> Result<Array> {
        let attributes = [
            Attribute::Int("source", source as i64),
            Attribute::Int("destination", destination as i64),
        ];
        one("moveaxis", &[self], &attributes)
    }

    /// Returns the elements with two axes swapped.
    ///
    /// # Errors
    /// An [`Error`] for an axis out of range.
    pub fn swapaxes(&self, axis1: isize, axis2: isize) -> Result<Array> {
        let attributes =
            [Attribute::Int("axis1", axis1 as i64), Attribute::Int("axis2", axis2 as i64)];
        one("swapaxes", &[self], &attributes)
    }

    /// Returns the elements at integer `indices` along an axis. The axes of `indices` replace it.
    ///
    /// # Errors
    /// An [`Error`] for an axis out of range, and indices that are not integers.
    pub fn take(&self, indices: &Array, axis: isize) -> Result<Array> {
        one("take", &[self, indices], &[Attribute::Int("axis", axis as i64)])
    }

    /// Runs an operation by its name on this array only, with one result. It is short for
    /// [`operation`].
    ///
    /// # Errors
    /// As [`operation`].
    pub fn operation(&self, name: &str, attributes: &[Attribute<'_>]) -> Result<Array> {
        one(name, &[self], attributes)
    }
}

/// Returns the elements of `x` where `condition` is true, else those of `y`. Shapes are broadcast,
/// and the dtypes of `x` and `y` promoted.
///
/// # Errors
/// An [`Error`] for shapes that cannot be broadcast.
pub fn where_(condition: &Array, x: &Array, y: &Array) -> Result<Array> {
    one("where", &[condition, x, y], &[])
}

/// Joins arrays along an axis that they have.
///
/// # Errors
/// An [`Error`] for shapes that differ in another axis, and an axis out of range.
pub fn concatenate(arrays: &[&Array], axis: isize) -> Result<Array> {
    one("concatenate", arrays, &[Attribute::Int("axis", axis as i64)])
}

/// Joins arrays of one shape along a new axis.
///
/// # Errors
/// An [`Error`] for shapes that differ, and an axis out of range.
pub fn stack(arrays: &[&Array], axis: isize) -> Result<Array> {
    one("stack", arrays, &[Attribute::Int("axis", axis as i64)])
}
