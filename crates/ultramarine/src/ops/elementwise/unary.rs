//! Elementwise functions of one array.

use crate::dtype::{Dtype, finfo};
use crate::error::{Result, bail};
use crate::ops::rules::{batching, shapeless::filled_like};
use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Elementwise, Jvp, Rules, Vjp, Vmap, attributes,
};
use crate::{array::Array, backend::Exec, node::Value, scalar::Scalar, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::fused::family;
use ultramarine_abi::schema::{UnaryAttrs, op, unary};

/// The dtype in which a function computes, given the operand's dtype.
#[derive(Clone, Copy, PartialEq)]
enum Types {
    /// Integers and bool become float32.
    Inexact,
    /// As `Inexact`; rejects complex64.
    Real,
    /// Keeps the dtype.
    Keep,
    /// Keeps the dtype and leaves integers unchanged; rejects complex64.
    Integral,
}

macro_rules! functions {
    ($($(#[$m:meta])* $name:ident $code:ident $types:ident;)*) => {
        impl Array {
            $(
                $(#[$m])*
                ///
                /// # Errors
                /// [`crate::Error::Value`] for a dtype that the function is not defined for.
                pub fn $name(&self) -> Result<Array> {
                    apply(unary::$code, Types::$types, self)
                }
            )*
        }
    };
}

functions! {
    /// Returns the absolute value of each element, in the same dtype. For complex64 it is the
    /// modulus, as float32. The absolute value of the lowest integer is that integer.
    abs ABS Keep;
    /// Returns -1, 0 or 1 for each element, by its sign; 0 for NaN. complex64 gives `x / |x|`, and
    /// 0 for 0.
    sign SIGN Keep;
    /// Returns `x * x` for each element, in the same dtype. Integers wrap.
    square SQUARE Keep;
    /// Returns the square root of each element; NaN below 0. Integers and bool give float32.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let y = Array::from_slice(&[4, 9], &[2])?.sqrt()?;
    /// assert_eq!((y.dtype(), y.to_vec::<f32>()?), (Dtype::Float32, vec![2.0, 3.0]));
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    sqrt SQRT Inexact;
    /// Returns `1 / sqrt(x)` for each element; infinity for 0, NaN below. Integers and bool give
    /// float32.
    rsqrt RSQRT Inexact;
    /// Returns `1 / x` for each element; infinity for 0. Integers and bool give float32.
    reciprocal RECIPROCAL Inexact;
    /// Returns `e^x` for each element. Integers and bool give float32.
    exp EXP Inexact;
    /// Returns `e^x - 1` for each element, accurate near 0. Integers and bool give float32. Not for
    /// complex64.
    expm1 EXPM1 Real;
    /// Returns the natural logarithm of each element; -infinity for 0, NaN below. Integers and bool
    /// give float32.
    log LOG Inexact;
    /// Returns the logarithm to base 2 of each element. Integers and bool give float32.
    log2 LOG2 Inexact;
    /// Returns the logarithm to base 10 of each element. Integers and bool give float32.
    log10 LOG10 Inexact;
    /// Returns `ln(1 + x)` for each element, accurate near 0. Integers and bool give float32.
    log1p LOG1P Inexact;
    /// Returns the sine of each element, in radians. Integers and bool give float32.
    sin SIN Inexact;
    /// Returns the cosine of each element, in radians. Integers and bool give float32.
    cos COS Inexact;
    /// Returns the tangent of each element, in radians. Integers and bool give float32.
    tan TAN Inexact;
    /// Returns the inverse sine of each element, in radians from -pi/2 to pi/2; NaN outside of -1
    /// to 1. Integers and bool give float32.
    arcsin ARCSIN Inexact;
    /// Returns the inverse cosine of each element, in radians from 0 to pi; NaN outside of -1 to 1.
    /// Integers and bool give float32.
    arccos ARCCOS Inexact;
    /// Returns the inverse tangent of each element, in radians from -pi/2 to pi/2. Integers and
    /// bool give float32.
    arctan ARCTAN Inexact;
    /// Returns the hyperbolic sine of each element. Integers and bool give float32.
    sinh SINH Inexact;
    /// Returns the hyperbolic cosine of each element. Integers and bool give float32.
    cosh COSH Inexact;
    /// Returns the hyperbolic tangent of each element. Integers and bool give float32.
    tanh TANH Inexact;
    /// Returns the inverse hyperbolic sine of each element. Integers and bool give float32.
    arcsinh ARCSINH Inexact;
    /// Returns the inverse hyperbolic cosine of each element; NaN below 1. Integers and bool give
    /// float32.
    arccosh ARCCOSH Inexact;
    /// Returns the inverse hyperbolic tangent of each element; infinity for 1 and -1, NaN outside.
    /// Integers and bool give float32.
    arctanh ARCTANH Inexact;
    /// Returns the error function of each element. Integers and bool give float32. Not for
    /// complex64.
    erf ERF Real;
    /// Returns the inverse of the error function of each element; infinity for 1 and -1, NaN
    /// outside. Integers and bool give float32. Not for complex64.
    erfinv ERFINV Real;
    /// Returns `1 / (1 + e^-x)` for each element. Integers and bool give float32. Not for
    /// complex64.
    sigmoid SIGMOID Real;
    /// Returns the largest integer not above each element, in the same dtype. Integers and bool
    /// stay as they are. Not for complex64.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[-1.5f32, 1.5], &[2])?;
    /// assert_eq!(x.floor()?.to_vec::<f32>()?, [-2.0, 1.0]);
    /// assert_eq!(x.trunc()?.to_vec::<f32>()?, [-1.0, 1.0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    floor FLOOR Integral;
    /// Returns the smallest integer not below each element, in the same dtype. Integers and bool
    /// stay as they are. Not for complex64.
    ceil CEIL Integral;
    /// Rounds each element towards zero, in the same dtype. Integers and bool stay as they are. Not
    /// for complex64.
    trunc TRUNC Integral;
}

/// True if the function leaves an integer or bool array unchanged.
fn is_identity(code: u32, dtype: Dtype) -> bool {
    match code {
        unary::FLOOR | unary::CEIL | unary::ROUND | unary::TRUNC => !dtype.is_inexact(),
        unary::SIGN | unary::SQUARE => dtype == Dtype::Bool,
        unary::ABS => dtype == Dtype::Bool || dtype.is_subtype(crate::Category::UnsignedInteger),
        _ => false,
    }
}

/// True if the function is piecewise constant.
fn is_step(code: u32) -> bool {
    matches!(code, unary::FLOOR | unary::CEIL | unary::ROUND | unary::TRUNC | unary::SIGN)
}

fn apply(code: u32, types: Types, a: &Array) -> Result<Array> {
    let name = unary::NAMES[code as usize];
    a.computable(name)?;
    if a.dtype().is_complex() && matches!(types, Types::Real | Types::Integral) {
        bail!(name, "Not supported for complex64. Take real(x), imag(x) or abs(x) first.");
    }
    if is_identity(code, a.dtype()) {
        // A step function's derivative is zero wherever it exists; treat it as zero at integers
        // too.
        let flat = is_step(code) && a.node().is_traced();
        return Ok(if flat { a.stop_gradient() } else { a.clone() });
    }
    let a = match types {
        Types::Inexact | Types::Real => a.astype(a.dtype().to_inexact()),
        Types::Keep | Types::Integral => a.clone(),
    };
    node(code, &a).placed()
}

/// Makes the operation's node. The operand already has the dtype in which the operation computes.
pub(crate) fn node(code: u32, a: &Array) -> Array {
    let dtype = match code {
        unary::ISNAN | unary::ISINF | unary::ISFINITE => Dtype::Bool,
        unary::REAL | unary::IMAG | unary::ABS if a.dtype().is_complex() => Dtype::Float32,
        _ => a.dtype(),
    };
    Array::of(Unary { code }, &[a], Shape::from_slice(a.shape()), dtype)
}

impl Array {
    /// Returns `-x` for each element, in the same dtype. Integers wrap.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for bool.
    pub fn negative(&self) -> Result<Array> {
        if self.dtype() == Dtype::Bool {
            bail!("negative", "Not supported for bool. Use logical_not instead.");
        }
        node(unary::NEGATIVE, self).placed()
    }

    /// Returns the elements above 0, and 0 in place of the others, in the same dtype.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[-1.0f32, 2.0], &[2])?;
    /// assert_eq!(x.relu()?.to_vec::<f32>()?, [0.0, 2.0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a dtype that is only stored.
    pub fn relu(&self) -> Result<Array> {
        self.maximum(0)
    }

    /// Returns `ln(1 + e^x)` for each element, without overflow. Integers and bool give float32.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let y = Array::from_slice(&[-200.0f32, 0.0, 200.0], &[3])?.softplus()?;
    /// assert_eq!(y.to_vec::<f32>()?, [0.0, 2.0f32.ln(), 200.0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a dtype that is only stored.
    pub fn softplus(&self) -> Result<Array> {
        self.computable("softplus")?;
        let x = self.astype(self.dtype().to_inexact());
        x.logaddexp(x.constant_beside(Scalar::from_f64(x.dtype(), 0.0)))
    }

    /// Returns true where an element is 0, as an array of bool. NaN is not 0.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a dtype that is only stored.
    pub fn logical_not(&self) -> Result<Array> {
        self.computable("logical_not")?;
        node(unary::LOGICAL_NOT, &self.astype(Dtype::Bool)).placed()
    }

    /// Returns the complement of all bits of each element, in the same dtype; for bool, the logical
    /// not.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for anything but integers and bool.
    pub fn bitwise_invert(&self) -> Result<Array> {
        if self.dtype().is_inexact() {
            bail!(
                "bitwise_invert",
                "Bitwise inverse only allowed on integer types but got {}. Convert with astype(int32).",
                self.dtype()
            );
        }
        node(unary::BITWISE_INVERT, self).placed()
    }

    /// The bool result of a predicate for integers, which are always finite.
    fn predicate(&self, code: u32) -> Result<Array> {
        self.computable(unary::NAMES[code as usize])?;
        if self.dtype().is_inexact() {
            return node(code, self).placed();
        }
        Ok(filled_like(self, (code == unary::ISFINITE).into()))
    }

    /// Returns true where an element, or a part of a complex one, is NaN, as an array of bool. For
    /// integers and bool every result is false.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY], &[4])?;
    /// assert_eq!(x.isnan()?.to_vec::<bool>()?, [false, true, false, false]);
    /// assert_eq!(x.isinf()?.to_vec::<bool>()?, [false, false, true, true]);
    /// assert_eq!(x.isfinite()?.to_vec::<bool>()?, [true, false, false, false]);
    /// assert_eq!(x.isneginf()?.to_vec::<bool>()?, [false, false, false, true]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a dtype that is only stored.
    pub fn isnan(&self) -> Result<Array> {
        self.predicate(unary::ISNAN)
    }

    /// Returns true where an element, or a part of a complex one, is infinite, as an array of bool.
    /// See [`Array::isnan`] for an example.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a dtype that is only stored.
    pub fn isinf(&self) -> Result<Array> {
        self.predicate(unary::ISINF)
    }

    /// Returns true where an element, with both parts of a complex one, is neither infinite nor
    /// NaN, as an array of bool. See [`Array::isnan`] for an example.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a dtype that is only stored.
    pub fn isfinite(&self) -> Result<Array> {
        self.predicate(unary::ISFINITE)
    }

    /// Returns true where an element is positive infinity, as an array of bool. See
    /// [`Array::isnan`] for an example.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a dtype that is only stored.
    pub fn isposinf(&self) -> Result<Array> {
        self.is_exactly(f64::INFINITY)
    }

    /// Returns true where an element is negative infinity, as an array of bool. See
    /// [`Array::isnan`] for an example.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a dtype that is only stored.
    pub fn isneginf(&self) -> Result<Array> {
        self.is_exactly(f64::NEG_INFINITY)
    }

    fn is_exactly(&self, value: f64) -> Result<Array> {
        self.computable("isinf")?;
        if !self.dtype().is_inexact() {
            return Ok(filled_like(self, false.into()));
        }
        self.equal(self.like(value))
    }

    /// Returns the complex conjugate of each element, in the same dtype. An array of real numbers
    /// is returned as it is.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a dtype that is only stored.
    pub fn conjugate(&self) -> Result<Array> {
        self.computable("conjugate")?;
        if self.dtype().is_complex() {
            node(unary::CONJUGATE, self).placed()
        } else {
            Ok(self.clone())
        }
    }

    /// Returns the real part of each element: float32 of complex64. An array of real numbers is
    /// returned as it is.
    ///
    /// ```
    /// use ultramarine::{Array, Complex32};
    /// let z = Array::from_slice(&[Complex32::new(1.0, 2.0)], &[1])?;
    /// assert_eq!((z.real()?.item::<f32>()?, z.imag()?.item::<f32>()?), (1.0, 2.0));
    /// assert_eq!(z.conjugate()?.imag()?.item::<f32>()?, -2.0);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a dtype that is only stored.
    pub fn real(&self) -> Result<Array> {
        self.computable("real")?;
        if self.dtype().is_complex() { node(unary::REAL, self).placed() } else { Ok(self.clone()) }
    }

    /// Returns the imaginary part of each element: float32 of complex64, and zeros in the same
    /// dtype of real numbers. See [`Array::real`] for an example.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a dtype that is only stored.
    pub fn imag(&self) -> Result<Array> {
        self.computable("imag")?;
        if self.dtype().is_complex() {
            node(unary::IMAG, self).placed()
        } else {
            Ok(self.zeros_like())
        }
    }

    /// Returns the array itself, as `+x` does in Python.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a dtype that is only stored.
    pub fn positive(&self) -> Result<Array> {
        self.computable("positive")?;
        Ok(self.clone())
    }

    /// Converts radians to degrees. Integers and bool give float32. [`Array::radians`] is the
    /// inverse.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let right = Array::scalar(std::f32::consts::FRAC_PI_2);
    /// assert!((right.degrees()?.item::<f32>()? - 90.0).abs() < 1e-4);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a dtype that is only stored.
    pub fn degrees(&self) -> Result<Array> {
        self.scaled(180.0 / std::f64::consts::PI)
    }

    /// Converts degrees to radians. Integers and bool give float32. [`Array::degrees`] is the
    /// inverse.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a dtype that is only stored.
    pub fn radians(&self) -> Result<Array> {
        self.scaled(std::f64::consts::PI / 180.0)
    }

    fn scaled(&self, factor: f64) -> Result<Array> {
        self.computable("multiply")?;
        let a = self.astype(self.dtype().to_inexact());
        a.multiply(a.like(factor))
    }

    /// Rounds each element to `decimals` places after the point, with ties to even. The dtype
    /// stays. Negative `decimals` round before the point. Integers stay as they are unless
    /// `decimals` is negative.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[0.5f32, 1.5, 2.26, 1234.0], &[4])?;
    /// assert_eq!(x.round(0)?.to_vec::<f32>()?, [0.0, 2.0, 2.0, 1234.0]);
    /// assert_eq!(x.round(-2)?.to_vec::<f32>()?, [0.0, 0.0, 0.0, 1200.0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a dtype that is only stored.
    pub fn round(&self, decimals: i32) -> Result<Array> {
        if decimals == 0 || (decimals > 0 && !self.dtype().is_inexact()) {
            return apply(unary::ROUND, Types::Keep, self);
        }
        let a = self.astype(self.dtype().to_inexact());
        let scaled = a.multiply(a.like(10f64.powi(decimals)))?;
        let rounded = apply(unary::ROUND, Types::Keep, &scaled)?;
        Ok(rounded.multiply(a.like(10f64.powi(decimals.saturating_neg())))?.astype(self.dtype()))
    }

    /// Replaces NaN by `nan`, infinity by `posinf` and -infinity by `neginf`. `None` stands for the
    /// largest and for the lowest number of the dtype. Integers stay as they are.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for complex64.
    pub fn nan_to_num(&self, nan: f64, posinf: Option<f64>, neginf: Option<f64>) -> Result<Array> {
        if self.dtype().is_complex() {
            bail!(
                "nan_to_num",
                "Does not yet support given type: complex64. Apply it to real(x) and imag(x)."
            );
        }
        self.computable("nan_to_num")?;
        let Some(limits) = finfo(self.dtype()) else { return Ok(self.clone()) };
        let a = crate::ops::select::where_(&self.isnan()?, self.like(nan), self)?;
        let high = self.like(posinf.unwrap_or(limits.max));
        let a = crate::ops::select::where_(&self.isposinf()?, &high, &a)?;
        let low = self.like(neginf.unwrap_or(limits.min));
        crate::ops::select::where_(&self.isneginf()?, &low, &a)
    }

    /// A 0-d constant in this array's dtype. The dtype must be able to hold the number.
    pub(crate) fn like(&self, value: f64) -> Array {
        Array::scalar(Scalar::from_f64(self.dtype(), value))
    }
}

attributes! {
    /// A function with a code of [`unary`].
    #[derive(Clone, Debug)]
    pub(crate) struct Unary {
        pub code: u32,
    }
}

impl Unary {
    /// dy/dx, computed from operand and result; `None` if it is zero everywhere. For complex64 only
    /// holomorphic functions have a derivative.
    fn derivative(&self, x: &Array, y: &Array) -> Result<Option<Array>> {
        use unary::*;
        let one = || x.like(1.0);
        let times = |a: Array, c: f64| a.multiply(a.like(c));
        // 1 - x², 1 + x² and similar expressions, ordered so that they are exact near |x| = 1.
        let one_minus_square = || one().subtract(x)?.multiply(&one().add(x)?);
        let one_plus_square = || x.square()?.add(one());
        Ok(Some(match self.code {
            ABS => x.sign()?,
            SQUARE => times(x.clone(), 2.0)?,
            SQRT => x.like(0.5).divide(y)?,
            RSQRT => times(y.divide(x)?, -0.5)?,
            RECIPROCAL => y.square()?.negative()?,
            EXP => y.clone(),
            EXPM1 => y.add(one())?,
            LOG => x.reciprocal()?,
            LOG2 => x.like(std::f64::consts::LOG2_E).divide(x)?,
            LOG10 => x.like(std::f64::consts::LOG10_E).divide(x)?,
            LOG1P => x.add(one())?.reciprocal()?,
            SIN => x.cos()?,
            COS => x.sin()?.negative()?,
            TAN => y.square()?.add(one())?,
            ARCSIN => one_minus_square()?.rsqrt()?,
            ARCCOS => one_minus_square()?.rsqrt()?.negative()?,
            ARCTAN => one_plus_square()?.reciprocal()?,
            SINH => x.cosh()?,
            COSH => x.sinh()?,
            TANH => one().subtract(&y.square()?)?,
            ARCSINH => one_plus_square()?.rsqrt()?,
            // sqrt(x - 1) sqrt(x + 1) has the same branch cuts as arccosh.
            ARCCOSH => x.subtract(one())?.rsqrt()?.multiply(&x.add(one())?.rsqrt()?)?,
            ARCTANH => one_minus_square()?.reciprocal()?,
            ERF => times(x.square()?.negative()?.exp()?, std::f64::consts::FRAC_2_SQRT_PI)?,
            ERFINV => times(y.square()?.exp()?, 1.0 / std::f64::consts::FRAC_2_SQRT_PI)?,
            SIGMOID => y.multiply(&one().subtract(y)?)?,
            _ => return Ok(None),
        }))
    }
}

impl Rules for Unary {
    fn name(&self) -> &'static str {
        unary::NAMES[self.code as usize]
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        node.inputs.len() == 1 && node.is_elementwise(op::UNARY, Some(self.code))
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(Elementwise { family: family::UNARY, code: self.code as u8 })
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        call.elementwise(exec, op::UNARY, &UnaryAttrs::new(self.code))
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let (x, c) = (&v.primals[0], v.cotangent);
        let grad = match self.code {
            // Unsigned integers wrap and have no factor of -1, so negate instead.
            unary::NEGATIVE => Some(c.negative()?),
            unary::CONJUGATE => Some(c.conjugate()?),
            unary::REAL => Some(c.astype(x.dtype())),
            unary::IMAG => {
                let i = Scalar::from_complex(x.dtype(), crate::Complex32::new(0.0, 1.0));
                Some(c.astype(x.dtype()).multiply(Array::scalar(i))?)
            }
            // `abs` is real-valued: its gradient is the direction of steepest growth.
            unary::ABS => Some(c.astype(x.dtype()).multiply(&x.sign()?)?),
            _ => match self.derivative(x, v.output)? {
                Some(d) => Some(c.multiply(&d.conjugate()?)?),
                None => None,
            },
        };
        Ok(smallvec![grad])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let (x, Some(t)) = (&j.primals[0], &j.tangents[0]) else { return Ok(None) };
        Ok(match self.code {
            unary::NEGATIVE => Some(t.negative()?),
            unary::CONJUGATE => Some(t.conjugate()?),
            unary::REAL => Some(t.real()?),
            unary::IMAG => Some(t.imag()?),
            unary::ABS => Some(x.sign()?.conjugate()?.multiply(t)?.real()?),
            _ => match self.derivative(x, j.output)? {
                Some(d) => Some(t.multiply(&d)?),
                None => None,
            },
        })
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        super::decompose::unary::candidates(self.code, d, candidates);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        batching::elementwise(self.clone(), v)
    }
}
