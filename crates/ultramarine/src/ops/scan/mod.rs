//! Running reductions along an axis.

mod decompose;
mod diff;

use crate::ops::rules::builders::{bin, flat, like, un};
use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap,
    attributes, rules::shapeless::zeros_like, select::where_, shape::axes::Axis,
};
use crate::{array::Array, backend::Exec, dtype::Dtype, error::Result, node::Value, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::schema::{ScanAttrs, binary, op, reduce, unary};

macro_rules! scans {
    ($($(#[$m:meta])* $name:ident $code:ident $dtype:expr;)*) => {
        impl Array {
            $($(#[$m])*
            ///
            /// The scan runs along `axis`, or over the flattened array for `..`; with `reverse` it starts at the end.
            /// Without `inclusive`, a result does not include the element at its own position, so the first result is
            /// the neutral element. The shape is kept.
            ///
            /// # Errors
            /// [`crate::Error::Index`] for an axis out of range.
            pub fn $name(
                &self,
                axis: impl Into<Axis>,
                reverse: bool,
                inclusive: bool,
            ) -> Result<Array> {
                let dtype: fn(Dtype) -> Dtype = $dtype;
                let a = self.astype(dtype(self.dtype()));
                let scan = Scan { code: reduce::$code, axis: 0, reverse, inclusive };
                scan.along(stringify!($name), &a, axis.into().number())
            })*
        }
    };
}

scans! {
    /// Returns the running sum, in the same dtype; bool is summed as int32.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[1, 2, 3], &[3])?;
    /// assert_eq!(x.cumsum(0, false, true)?.to_vec::<i32>()?, [1, 3, 6]);
    /// assert_eq!(x.cumsum(0, false, false)?.to_vec::<i32>()?, [0, 1, 3]);
    /// assert_eq!(x.cumsum(0, true, true)?.to_vec::<i32>()?, [6, 5, 3]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    cumsum SUM |d| if d == Dtype::Bool { Dtype::Int32 } else { d };
    /// Returns the running product, in the same dtype.
    cumprod PROD |d| d;
    /// Returns the running maximum, in the same dtype. From the first NaN on, all results are NaN.
    cummax MAX |d| d;
    /// Returns the running minimum, in the same dtype. From the first NaN on, all results are NaN.
    cummin MIN |d| d;
    /// Returns the logarithm of the running sum of exponentials. Integers and bool give float32.
    logcumsumexp LOGADDEXP |d| d.to_inexact();
}

attributes! {
    /// A running reduction.
    #[derive(Clone, Debug)]
    pub(crate) struct Scan {
        /// A code of [`reduce`].
        pub code: u32,
        pub axis: usize,
        pub reverse: bool,
        pub inclusive: bool,
    }
}

impl Scan {
    fn along(self, name: &str, a: &Array, axis: Option<isize>) -> Result<Array> {
        let Some(axis) = axis else { return self.of(&flat(a)?).placed() };
        let axis = axis_of(name, axis, a)?;
        Scan { axis, ..self }.of(a).placed()
    }

    /// The scan of another array.
    pub fn of(&self, a: &Array) -> Array {
        Array::of(self.clone(), &[a], Shape::from_slice(a.shape()), a.dtype())
    }

    /// The scan with another code in the same direction.
    fn as_(&self, code: u32) -> Scan {
        Scan { code, ..self.clone() }
    }

    /// The scan with another code in the opposite direction.
    fn back(&self, code: u32) -> Scan {
        Scan { code, reverse: !self.reverse, ..self.clone() }
    }

    /// Position of the element from which each result of a running extreme comes; among equal elements the last one.
    /// Out of range if an exclusive scan has no element yet.
    fn positions(&self, x: &Array) -> Result<Array> {
        let n = x.shape()[self.axis];
        let mut shape = Shape::from_elem(1, x.ndim());
        shape[self.axis] = n;
        // Number the elements so that later ones in the scan's direction have larger numbers.
        let (first, step) = if self.reverse { (n as f64 - 1.0, -1.0) } else { (0.0, 1.0) };
        let stop = first + step * n as f64;
        let steps = Array::arange(first, stop, step, Dtype::Int32)?.reshape(&shape)?;
        let reached = Scan { inclusive: true, ..self.clone() }.of(x);
        let hit = bin(binary::EQUAL, x, &reached)?.astype(Dtype::Int32);
        let at = self.as_(reduce::MAX).of(&hit.multiply(&steps)?);
        if self.reverse { bin(binary::SUBTRACT, &Array::scalar(n as i32 - 1), &at) } else { Ok(at) }
    }

    /// The positions, clamped to the axis. For an exclusive scan, also whether there is an element: the first result
    /// has none.
    fn sources(&self, x: &Array) -> Result<(Array, Option<Array>)> {
        let at = self.positions(x)?;
        if self.inclusive {
            return Ok((at, None));
        }
        let last = Array::scalar(x.shape()[self.axis] as i32 - 1);
        let none = Array::scalar(0i32);
        let real = bin(
            binary::LOGICAL_AND,
            &bin(binary::GREATER_EQUAL, &at, &none)?,
            &bin(binary::LESS_EQUAL, &at, &last)?,
        )?;
        let inside = bin(binary::MINIMUM, &bin(binary::MAXIMUM, &at, &none)?, &last)?;
        Ok((inside, Some(real)))
    }

    /// For a running product: the position of the first zero, and the product without that zero.
    fn without_zero(&self, x: &Array) -> Result<Zeros> {
        let zero = bin(binary::EQUAL, x, &like(x, 0.0))?;
        let counts = Scan { code: reduce::SUM, inclusive: true, ..self.clone() }
            .of(&zero.astype(Dtype::Int32));
        let once = bin(binary::EQUAL, &counts, &Array::scalar(1i32))?;
        let first = bin(binary::LOGICAL_AND, &zero, &once)?.astype(x.dtype());
        let zero = zero.astype(x.dtype());
        // x is 0 where 1 is added.
        let product = self.of(&x.add(&first)?);
        Ok(Zeros { safe: x.add(&zero)?, zero, first, product })
    }

    /// `exp(scan(log t + shift)) * ..` for `t` of either sign: the scan of the positive part minus that of the negative
    /// part.
    fn signed(&self, t: &Array, f: impl Fn(Array) -> Result<Array>) -> Result<Array> {
        // A finite substitute for the logarithm of zero keeps the derivatives of this expression finite.
        let nothing = if t.dtype() == Dtype::Float16 { -3e4 } else { -1e30 };
        let part = |t: &Array| -> Result<Array> {
            let positive = bin(binary::GREATER, t, &like(t, 0.0))?;
            let log = un(unary::LOG, &where_(&positive, t, like(t, 1.0))?);
            Ok(un(unary::EXP, &f(where_(&positive, &log, like(t, nothing))?)?))
        };
        bin(binary::SUBTRACT, &part(t)?, &part(&un(unary::NEGATIVE, t))?)
    }
}

/// The positions of an operand's zeros, for the rules of a running product.
struct Zeros {
    /// 1 where the operand is zero.
    zero: Array,
    /// 1 where it is zero for the first time.
    first: Array,
    /// The operand with its zeros replaced by ones.
    safe: Array,
    /// The running product with the first zero replaced by one.
    product: Array,
}

pub(crate) fn axis_of(name: &str, axis: isize, a: &Array) -> Result<usize> {
    crate::ops::shape::reshape::out_of_bounds(name, axis, a.ndim())
}

impl Rules for Scan {
    fn name(&self) -> &'static str {
        match self.code {
            reduce::SUM => "cumsum",
            reduce::PROD => "cumprod",
            reduce::MAX => "cummax",
            reduce::MIN => "cummin",
            _ => "logcumsumexp",
        }
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        // A product of bools, which kernels may reject, is admitted too.
        let bools = self.code == reduce::PROD && matches!(node.inputs, [(_, Dtype::Bool)]);
        let same =
            if bools { node.is_same() } else { node.is_elementwise(op::SCAN, Some(self.code)) };
        same && self.axis < node.outputs[0].0.len()
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let attrs =
            ScanAttrs::new(self.code, self.axis as u32, self.reverse as u32, self.inclusive as u32);
        call.run(exec, op::SCAN, &attrs, &[])
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.first()
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let (x, y, ct) = (&v.primals[0], v.output, v.cotangent);
        Ok(smallvec![Some(match self.code {
            reduce::SUM => self.back(reduce::SUM).of(ct),
            reduce::PROD => {
                // Without zeros: sums of ct * y, divided by x. From the first zero on, only the derivative with respect
                // to that zero is nonzero. Quotients are inexact, so compute in an inexact dtype.
                let [x, y, ct] = &[x, y, ct].map(|a| a.astype(a.dtype().to_inexact()));
                let z = self.without_zero(x)?;
                let sums = self.back(reduce::SUM);
                let plain = bin(binary::DIVIDE, &sums.of(&ct.multiply(y)?), &z.safe)?;
                let plain = plain.multiply(&bin(binary::SUBTRACT, &like(x, 1.0), &z.zero)?)?;
                plain.add(&sums.of(&ct.multiply(&z.product)?).multiply(&z.first)?)?
            }
            reduce::MAX | reduce::MIN => {
                let zeros = zeros_like(x, ct.dtype());
                let (at, real) = self.sources(x)?;
                let ct = match real {
                    Some(real) => ct.multiply(real.astype(ct.dtype()))?,
                    None => ct.clone(),
                };
                zeros.scatter_add_axis(&at, &ct, self.axis)?
            }
            _ => {
                let sums = self.back(reduce::LOGADDEXP);
                self.signed(ct, |log| sums.of(&bin(binary::SUBTRACT, &log, y)?).add(x))?
            }
        })])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let Some(t) = &j.tangents[0] else { return Ok(None) };
        let (x, y) = (&j.primals[0], j.output);
        Ok(Some(match self.code {
            reduce::SUM => self.of(t),
            reduce::PROD => {
                let [x, y, t] = &[x, y, t].map(|a| a.astype(a.dtype().to_inexact()));
                let z = self.without_zero(x)?;
                let sums = self.as_(reduce::SUM);
                let plain = sums.of(&bin(binary::DIVIDE, t, &z.safe)?).multiply(y)?;
                let all = plain.add(&sums.of(&t.multiply(&z.first)?).multiply(&z.product)?)?;
                // For integers the tangent is an integer, too.
                match j.output.dtype().is_inexact() {
                    true => all,
                    false => un(unary::ROUND, &all).astype(j.output.dtype()),
                }
            }
            reduce::MAX | reduce::MIN => {
                let (at, real) = self.sources(x)?;
                let taken = t.gather_axis(&at, self.axis);
                match real {
                    Some(real) => taken.multiply(real.astype(t.dtype()))?,
                    None => taken,
                }
            }
            _ => self.signed(t, |log| bin(binary::SUBTRACT, &self.of(&log.add(x)?), y))?,
        }))
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        decompose::candidates(self, d, candidates);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let axis = v.axes[0].map_or(self.axis, |at| self.axis + (at <= self.axis) as usize);
        Ok((Scan { axis, ..self.clone() }.of(&v.inputs[0]), v.axes[0]))
    }
}
