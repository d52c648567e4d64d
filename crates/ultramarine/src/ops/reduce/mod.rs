//! Reductions over axes.

mod decompose;
mod statistics;

pub(crate) use decompose::combining;

use crate::dtype::{Dtype, Kind};
use crate::error::{Error, Result, bail};
use crate::ops::rules::builders::{bin, compute_dtype, flat, move_axis, without_axis};
use crate::ops::rules::shapeless::{SymbolicSize, broadcast_by, reshaped};
use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Epilogue, Fitted, Jvp, Refit, Rules, Vjp, Vmap,
    attributes, draft,
    shape::axes::{Axes, Reduced},
};
use crate::shape::{self, Shape};
use crate::{array::Array, backend::Exec, node::Value, scalar::Scalar};
use smallvec::{SmallVec, smallvec};
use ultramarine_abi::schema::{NoAttrs, ReduceAttrs, binary, op, reduce};

/// The axes that `op` reduces, counted from the start, sorted, without repetition. `None` means all axes.
pub(crate) fn axes_of(op: &str, a: &Array, axes: Option<&[isize]>) -> Result<SmallVec<[usize; 4]>> {
    let Some(axes) = axes else { return Ok((0..a.ndim()).collect()) };
    let n = a.ndim();
    let invalid = |axis| {
        let text = format!("Invalid axis {axis} for array with {n} dimensions.");
        Error::index(op, format!("{text} {}", shape::AxisRange(n)))
    };
    let twice = || Error::value(op, "Duplicate axes detected in reduction. Name each axis once.");
    shape::distinct_axes(axes, n, invalid, twice)
}

/// The axes in the type that reductions take as arguments.
pub(crate) fn signed(axes: &[usize]) -> SmallVec<[isize; 4]> {
    axes.iter().map(|axis| *axis as isize).collect()
}

/// The array without the axes, each of which has size 1.
pub(crate) fn squeezed(a: &Array, axes: &[usize]) -> Result<Array> {
    if let [axis] = axes {
        return without_axis(a, *axis);
    }
    let left = (0..a.ndim()).filter(|i| !axes.contains(i)).map(SymbolicSize::own).collect();
    reshaped(a, left, &[])
}

fn reduced(a: &Array, code: u32, axes: &[usize], keepdims: bool, dtype: Dtype) -> Result<Array> {
    let mask = axes.iter().fold(0u64, |m, a| m | 1 << a);
    let mut kept: Shape = Shape::from_slice(a.shape());
    axes.iter().for_each(|a| kept[*a] = 1);
    let out = Array::try_of(Reduce { code, axes: mask }, &[a], kept, dtype)?;
    if keepdims { Ok(out) } else { squeezed(&out, axes) }
}

/// The dtype of sums and products.
fn accumulated(dtype: Dtype) -> Dtype {
    match dtype.kind() {
        Kind::Unsigned if dtype.size() < 4 => Dtype::Uint32,
        Kind::Bool | Kind::Signed if dtype.size() < 4 => Dtype::Int32,
        _ => dtype,
    }
}

impl Array {
    fn total(&self, code: u32, over: Reduced<Axes>) -> Result<Array> {
        self.computable(reduce::NAMES[code as usize])?;
        let named =
            axes_of(reduce::NAMES[code as usize], self, over.axes.named(self.ndim()).as_deref())?;
        if named.is_empty() {
            return Ok(self.clone());
        }
        let dtype = accumulated(self.dtype());
        reduced(&self.astype(dtype), code, &named, over.keepdims, dtype)
    }

    fn extreme(&self, code: u32, over: Reduced<Axes>) -> Result<Array> {
        self.computable(reduce::NAMES[code as usize])?;
        let named =
            axes_of(reduce::NAMES[code as usize], self, over.axes.named(self.ndim()).as_deref())?;
        if let Some(axis) = named.iter().find(|a| self.shape()[**a] == 0) {
            let name = reduce::NAMES[code as usize];
            bail!(
                name,
                "Cannot {name} reduce over axis {axis} with size 0. Pass at least one element."
            );
        }
        if named.is_empty() {
            return Ok(self.clone());
        }
        reduced(self, code, &named, over.keepdims, self.dtype())
    }

    fn truth(&self, code: u32, over: Reduced<Axes>) -> Result<Array> {
        self.computable(reduce::NAMES[code as usize])?;
        let named =
            axes_of(reduce::NAMES[code as usize], self, over.axes.named(self.ndim()).as_deref())?;
        if named.is_empty() {
            return Ok(self.astype(Dtype::Bool));
        }
        reduced(self, code, &named, over.keepdims, Dtype::Bool)
    }

    /// Returns the sum over `axes` ([`Axes`]; `..`: all). The result lacks these axes;
    /// [`KeepDims`](crate::KeepDims) keeps them, with size 1. bool and integers of 8 and 16 bits
    /// are summed in 32 bits. The sum of no elements is 0; over no axes the array stays as it is.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype, KeepDims};
    /// let x = Array::ones(&[2, 3, 4], Dtype::Float32)?;
    /// assert_eq!(x.sum(1)?.shape(), [2, 4]);
    /// assert_eq!(x.sum([0, -1])?.shape(), [3]);
    /// assert_eq!(x.sum(..)?.item::<f32>()?, 24.0);
    /// assert_eq!(x.sum(KeepDims(1..))?.shape(), [2, 1, 1]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range, [`Error::Value`] for one named twice.
    pub fn sum(&self, axes: impl Into<Reduced<Axes>>) -> Result<Array> {
        self.total(reduce::SUM, axes.into())
    }

    /// Returns the product over `axes`, as [`Array::sum`] does the sum. The product of no elements
    /// is 1.
    ///
    /// # Errors
    /// As [`Array::sum`].
    pub fn prod(&self, axes: impl Into<Reduced<Axes>>) -> Result<Array> {
        self.total(reduce::PROD, axes.into())
    }

    /// Returns the smallest element over `axes`, in the same dtype; NaN if there is one. Axes are
    /// as for [`Array::sum`].
    ///
    /// # Errors
    /// As [`Array::sum`]; [`Error::Value`] when an axis to reduce has size 0.
    pub fn min(&self, axes: impl Into<Reduced<Axes>>) -> Result<Array> {
        self.extreme(reduce::MIN, axes.into())
    }

    /// Returns the largest element over `axes`, in the same dtype; NaN if there is one. Axes are as
    /// for [`Array::sum`].
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let x = Array::from_slice(&[3, 1, 2, 4], &[2, 2])?;
    /// assert_eq!(x.max(0)?.to_vec::<i32>()?, [3, 4]);
    /// assert_eq!(x.max(..)?.item::<i32>()?, 4);
    /// assert!(Array::zeros(&[0], Dtype::Float32)?.max(..).is_err());
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Array::min`].
    pub fn max(&self, axes: impl Into<Reduced<Axes>>) -> Result<Array> {
        self.extreme(reduce::MAX, axes.into())
    }

    /// Returns true if no element over `axes` is 0, as bool; also true if there are no elements. Axes are as for
    /// [`Array::sum`].
    ///
    /// # Errors
    /// As [`Array::sum`].
    pub fn all(&self, axes: impl Into<Reduced<Axes>>) -> Result<Array> {
        self.truth(reduce::ALL, axes.into())
    }

    /// Returns true if an element over `axes` is not 0, as bool; false if there are no elements. Axes are as for
    /// [`Array::sum`].
    ///
    /// # Errors
    /// As [`Array::sum`].
    pub fn any(&self, axes: impl Into<Reduced<Axes>>) -> Result<Array> {
        self.truth(reduce::ANY, axes.into())
    }
}

attributes! {
    /// A reduction. The node's shape keeps the reduced axes with size 1.
    #[derive(Clone, Debug)]
    pub(crate) struct Reduce {
        /// A code of [`reduce`].
        pub code: u32,
        /// Bit `i`: axis `i` is reduced.
        pub axes: u64,
    }
}

impl Reduce {
    /// The result of reducing no elements.
    fn identity(&self, dtype: Dtype) -> Result<Scalar> {
        match self.code {
            reduce::SUM | reduce::ANY => Ok(Scalar::from_i64(dtype, 0)),
            reduce::PROD | reduce::ALL => Ok(Scalar::from_i64(dtype, 1)),
            _ => Err(Error::value(
                self.name(),
                "Cannot reduce over zero size array. Pass at least one element.",
            )),
        }
    }

    /// The same reduction of another array; it keeps the reduced axes.
    pub fn of(&self, a: &Array) -> Array {
        let mut kept = Shape::from_slice(a.shape());
        for (i, n) in kept.iter_mut().enumerate() {
            if self.axes >> i & 1 == 1 {
                *n = 1;
            }
        }
        let dtype =
            if matches!(self.code, reduce::ALL | reduce::ANY) { Dtype::Bool } else { a.dtype() };
        Array::of(self.clone(), &[a], kept, dtype)
    }

    /// Marks the elements that equal the extreme (bool), and counts them, because equal extremes share the derivative.
    /// The count has a dtype that can hold it, which float16 may not, and that can hold its quotients, which integers
    /// cannot.
    fn extremes(&self, x: &Array, output: &Array) -> Result<(Array, Array)> {
        let hit = bin(binary::EQUAL, x, output)?;
        let inner = compute_dtype(x.dtype().to_inexact());
        let count = Reduce { code: reduce::SUM, axes: self.axes }.of(&hit.astype(inner));
        Ok((hit, count))
    }

    /// For each element the product of the others: the product of the elements before it times that of the elements
    /// after it. This avoids division, so zeros are allowed.
    fn others(&self, x: &Array) -> Result<Array> {
        let (reduced, left): (Vec<isize>, Vec<isize>) =
            (0..x.ndim() as isize).partition(|i| self.axes >> i & 1 == 1);
        let order: Vec<isize> = left.iter().chain(&reduced).copied().collect();
        let t = x.transpose_axes(&order)?;
        let mut rows = Shape::from_slice(&t.shape()[..left.len()]);
        rows.push(shape::size(&t.shape()[left.len()..]));
        let r = t.reshape(&rows)?;
        let axis = Some(left.len() as isize);
        let product = r.cumprod(axis, false, false)?.multiply(&r.cumprod(axis, true, false)?)?;
        let mut back = vec![0; order.len()];
        order.iter().enumerate().for_each(|(i, o)| back[*o as usize] = i as isize);
        product.reshape(t.shape())?.transpose_axes(&back)
    }
}

impl Rules for Reduce {
    fn name(&self) -> &'static str {
        reduce::NAMES[self.code as usize]
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([(from, _)], (to, _))) = node.of() else { return false };
        let held =
            Draft { inputs: &[(&[], node.inputs[0].1)], outputs: &[(&[], node.outputs[0].1)] };
        // Reductions of no elements are admitted too.
        held.follows(op::REDUCE, Some(self.code), &[]) && draft::is_reduced(from, self.axes, to)
    }

    fn epilogue(&self) -> Option<Epilogue> {
        Some(Epilogue { code: self.code, axes: self.axes })
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        if call.shape.contains(&0) {
            return exec.alloc(call.shape, call.dtype);
        }
        if call.descs[0].0.contains(&0) {
            let identity = [self.identity(call.dtype)?];
            return Call { inputs: &[], descs: &[], ..*call }.run(
                exec,
                op::FILL,
                &NoAttrs::new(),
                &identity,
            );
        }
        call.run(exec, op::REDUCE, &ReduceAttrs::new(self.code, self.axes), &[])
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        let mut shape = Shape::from_slice(r.inputs[0]);
        let empty = shape.contains(&0);
        for (i, n) in shape.iter_mut().enumerate() {
            if self.axes >> i & 1 == 1 {
                *n = 1;
            }
        }
        if empty && !shape.contains(&0) {
            self.identity(Dtype::Bool)?;
        }
        r.same(shape)
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let x = &v.primals[0];
        Ok(match self.code {
            reduce::ALL | reduce::ANY => Cotangents::new(),
            reduce::SUM => {
                let sizes = (0..x.ndim()).map(SymbolicSize::partner).collect();
                smallvec![Some(broadcast_by(v.cotangent, sizes, &[x])?)]
            }
            reduce::PROD => smallvec![Some(self.others(x)?.conjugate()?.multiply(v.cotangent)?)],
            _ => {
                let (hit, count) = self.extremes(x, v.output)?;
                let shares = bin(binary::DIVIDE, &hit.astype(count.dtype()), &count)?;
                let all = shares.multiply(v.cotangent.astype(shares.dtype()))?;
                smallvec![Some(all.astype(x.dtype().to_inexact()))]
            }
        })
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let Some(t) = &j.tangents[0] else { return Ok(None) };
        let sum = Reduce { code: reduce::SUM, axes: self.axes };
        Ok(match self.code {
            reduce::ALL | reduce::ANY => None,
            reduce::SUM => Some(sum.of(t)),
            reduce::PROD => Some(sum.of(&self.others(&j.primals[0])?.multiply(t)?)),
            _ => {
                let (hit, count) = self.extremes(&j.primals[0], j.output)?;
                let inner = count.dtype();
                let total = sum.of(&hit.astype(inner).multiply(t.astype(inner))?);
                Some(bin(binary::DIVIDE, &total, &count)?.astype(j.output.dtype()))
            }
        })
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        decompose::candidates(self, d, candidates);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let Some(at) = v.axes[0] else { return Ok((self.of(&v.inputs[0]), None)) };
        let low = self.axes & ((1u64 << at) - 1);
        let axes = low | (self.axes - low) << 1;
        Ok((Reduce { code: self.code, axes }.of(&v.inputs[0]), Some(at)))
    }
}

/// The array with the reduced axes flattened into one last axis, and the shape that keeps these axes with size 1.
pub(crate) fn joined(a: &Array, axes: &[usize]) -> Result<Array> {
    if axes.len() == a.ndim() {
        return flat(a);
    }
    if let [axis] = axes {
        return move_axis(a, *axis, a.ndim() - 1);
    }
    let left = (0..a.ndim()).filter(|i| !axes.contains(i));
    let order: Vec<isize> = left.chain(axes.iter().copied()).map(|i| i as isize).collect();
    let t = a.transpose_axes(&order)?;
    let n = a.ndim() - axes.len();
    let mut shape = Shape::from_slice(&t.shape()[..n]);
    shape.push(shape::size(&t.shape()[n..]));
    t.reshape(&shape)
}

/// A result without the reduced axes, or with them as size 1 if `keepdims`.
pub(crate) fn kept(out: &Array, of: &Array, axes: &[usize], keepdims: bool) -> Result<Array> {
    if !keepdims {
        return Ok(out.clone());
    }
    let size =
        |i| if axes.contains(&i) { SymbolicSize::Fixed(1) } else { SymbolicSize::partner(i) };
    reshaped(out, (0..of.ndim()).map(size).collect(), &[of])
}

/// A result whose only reduced axis has size 1. The axis is removed unless `keepdims`.
pub(crate) fn dropped(out: &Array, axis: usize, keepdims: bool) -> Result<Array> {
    if keepdims { Ok(out.clone()) } else { without_axis(out, axis) }
}
