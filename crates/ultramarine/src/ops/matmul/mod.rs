//! Matrix products.

mod decompose;
pub(crate) mod einsum;
mod einsum_path;
pub(crate) mod gather;
pub(crate) mod grouped;
mod hadamard;
pub(crate) mod linear;
pub(crate) mod picks;
pub(crate) mod segmented;

use crate::backend::{Exec, Operand};
use crate::error::{Error, Result, bail, ensure};
use crate::graph::precision::{self, MatmulPrecision};
use crate::ops::rules::builders::{compute_dtype, flat, like, plus, un, with_axis, without_axis};
use crate::ops::rules::shapeless::{SymbolicShape, SymbolicSize, broadcast_by, reshaped};
use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap,
    attributes,
    reduce::axes_of,
    rules::batching::{all_batched, batched},
    shape::{
        axes::{Axes, Axis, one},
        view::View,
    },
};
use crate::shape::{self, Shape, Show};
use crate::{array::Array, dtype::Dtype, node::Value, scalar::Scalar};
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;
use ultramarine_abi::schema::{OpId, PrecisionAttrs, op, unary};
use ultramarine_abi::status;

/// The product of two stacks of matrices, which have one dtype and at least two dimensions.
fn product(a: &Array, b: &Array, precision: MatmulPrecision) -> Result<Array> {
    let (ra, rb) = (a.ndim(), b.ndim());
    let (m, k, n) = (a.shape()[ra - 2], a.shape()[ra - 1], b.shape()[rb - 1]);
    if (ra, rb) == (2, 2) && k > 0 {
        // Without leading dimensions there is nothing to broadcast.
        let shape = smallvec![m, n];
        shape::check("matmul", &shape)?;
        return Array::try_of(Matmul { precision }, &[a, b], shape, a.dtype());
    }
    if rb == 2
        && ra == 3
        && a.shape()[0] == 1
        && k > 0
        && let Some(b) = View::Broadcast.of_value(b, &[1, k, n])
    {
        // The rows already belong to one matrix.
        let shape = smallvec![1, m, n];
        shape::check("matmul", &shape)?;
        return Array::try_of(Matmul { precision }, &[a, &b], shape, a.dtype());
    }
    if rb == 2 && ra > 2 {
        // Compute one product of all rows, instead of a small product for each matrix.
        let rows = smallvec![SymbolicSize::Product(0, ra as u8 - 1), SymbolicSize::own(ra - 1)];
        let rows = product(&reshaped(a, rows, &[])?, b, precision)?;
        let sizes = (0..ra - 1).map(SymbolicSize::partner).chain([SymbolicSize::own(1)]).collect();
        return reshaped(&rows, sizes, &[a]);
    }
    let mut shape = shape::broadcast_shapes(&a.shape()[..ra - 2], &b.shape()[..rb - 2])?;
    let batch = shape.len();
    shape.extend([m, k]);
    let (left, right) = (a, b);
    let a = broadcast_by(left, leading(&shape, left, right), &[right])?;
    (shape[batch], shape[batch + 1]) = (k, n);
    let b = broadcast_by(right, leading(&shape, right, left), &[left])?;
    shape[batch] = m;
    shape::check("matmul", &shape)?;
    if k == 0 {
        return Array::full(&shape, Scalar::from_i64(a.dtype(), 0));
    }
    Array::try_of(Matmul { precision }, &[&a, &b], shape, a.dtype())
}

/// The sizes of `a`'s matrices, broadcast to leading dimensions of `shape`, which may be those of `b`.
fn leading(shape: &[usize], a: &Array, b: &Array) -> SymbolicShape {
    let of = |x: &Array, i: usize| (i + x.ndim()).checked_sub(shape.len());
    let size = |i: usize| match (of(a, i), of(b, i)) {
        (Some(own), _) if i + 2 >= shape.len() || a.shape()[own] == shape[i] => {
            SymbolicSize::own(own)
        }
        (_, Some(other)) => SymbolicSize::partner(other),
        _ => SymbolicSize::Fixed(shape[i]),
    };
    (0..shape.len()).map(size).collect()
}

/// Matrix product with MLX's rules for the operands' ranks. Errors name `op`.
fn multiply_matrices<'a>(op: &str, a: &'a Array, b: &'a Array, dtype: Dtype) -> Result<Array> {
    ensure!(
        a.ndim() != 0 && b.ndim() != 0,
        op,
        "Got 0 dimension input. Inputs must have at least one dimension. Reshape them, or use multiply."
    );
    let with = |x: &'a Array, at| -> Result<Cow<'a, Array>> {
        Ok(if x.ndim() == 1 { Cow::Owned(with_axis(x, at)?) } else { Cow::Borrowed(x) })
    };
    let (left, right) = (with(a, 0)?, with(b, 1)?);
    ensure!(
        left.shape()[left.ndim() - 1] == right.shape()[right.ndim() - 2],
        op,
        "Last dimension of first input with shape {} must match {} dimension of second input with shape {}. Transpose or reshape one of them.",
        Show(a.shape()),
        if b.ndim() == 1 { "the" } else { "second to last" },
        Show(b.shape())
    );
    let batch = |x: &Array| Shape::from_slice(&x.shape()[..x.ndim() - 2]);
    if shape::broadcast_shapes(&batch(&left), &batch(&right)).is_err() {
        let (a, b) = (Show(a.shape()), Show(b.shape()));
        bail!(
            op,
            "Leading dimensions of shapes {a} and {b} cannot be broadcast. {}",
            shape::BROADCAST
        );
    }
    let (left, right) = (left.promoted(dtype), right.promoted(dtype));
    let precision = precision::of_product(&[&left, &right]);
    without_vectors(product(&left, &right, precision)?, a, b)
}

/// A product without the axes that were added to operands that are vectors.
fn without_vectors(mut out: Array, a: &Array, b: &Array) -> Result<Array> {
    if a.ndim() == 1 {
        out = without_axis(&out, out.ndim() - 2)?;
    }
    if b.ndim() == 1 {
        out = without_axis(&out, out.ndim() - 1)?;
    }
    Ok(out)
}

/// Returns `alpha * (a @ b) + beta * c`: `a` is `(..., m, k)`, `b` `(..., k, n)`, and `c` is
/// broadcast to the product `(..., m, n)`. See [`Array::matmul`].
///
/// # Errors
/// As [`Array::matmul`]; [`Error::Value`] when `c` cannot be broadcast to the product.
pub fn addmm(c: &Array, a: &Array, b: &Array, alpha: f64, beta: f64) -> Result<Array> {
    let dtype = c.dtype().promote(a.dtype()).promote(b.dtype());
    [c, a, b].into_iter().try_for_each(|x| x.computable("addmm"))?;
    ensure!(
        dtype.is_inexact() || a.ndim() == 0 || b.ndim() == 0,
        "addmm",
        "Only real floating point types are supported but {}, {} and {} were provided which results in {dtype}, which is not a real floating point type. Convert them with astype(float32).",
        c.dtype(),
        a.dtype(),
        b.dtype()
    );
    let product = multiply_matrices("addmm", a, b, dtype)?;
    let shape = shape::broadcast("addmm", c.shape(), product.shape())?;
    ensure!(
        shape[..] == *product.shape(),
        "addmm",
        "input c must broadcast to the output shape {}, but has shape {}. Reshape c.",
        Show(product.shape()),
        Show(c.shape())
    );
    let c = c.promoted(dtype);
    if alpha == 1.0 && beta == 1.0 {
        return product.add(&*c);
    }
    // Round the factors and the scaled terms only once, together with the sum.
    let inner = compute_dtype(dtype);
    let scaled = |x: &Array, by: f64| -> Result<Array> {
        let x = x.astype(inner);
        if by == 1.0 { Ok(x) } else { x.multiply(like(&x, by)) }
    };
    Ok(scaled(&product, alpha)?.add(&scaled(&c, beta)?)?.astype(dtype))
}

impl Array {
    /// Returns the matrix product of `self`, `(..., m, k)`, and `other`, `(..., k, n)`: `(..., m,
    /// n)`, in the promoted dtype. Leading dimensions are broadcast. A 1-d first operand counts as
    /// a row, a 1-d second one as a column, and the result lacks that axis.
    ///
    /// float16 and bfloat16 accumulate in float32.
    /// [`set_matmul_precision`](crate::set_matmul_precision) lets devices round factors of float32.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    /// let v = Array::from_slice(&[1.0f32, -1.0], &[2])?;
    /// assert_eq!(x.matmul(&v)?.to_vec::<f32>()?, [-1.0, -1.0]);
    /// let batch = Array::ones(&[5, 2, 3], Dtype::Float32)?;
    /// assert_eq!(x.matmul(&batch)?.shape(), [5, 2, 3]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Value`] for 0-d operands, inner sizes that differ, or integers.
    pub fn matmul(&self, other: impl crate::ops::elementwise::operand::Operand) -> Result<Array> {
        self.product(&*other.beside(self)?)
    }

    fn product(&self, other: &Array) -> Result<Array> {
        let dtype = self.dtype().promote(other.dtype());
        [self, other].into_iter().try_for_each(|x| x.computable("matmul"))?;
        ensure!(
            dtype.is_inexact() || self.ndim() == 0 || other.ndim() == 0,
            "matmul",
            "Only inexact types are supported but {} and {} were provided which results in {dtype}, which is not a floating point type. Convert them with astype(float32).",
            self.dtype(),
            other.dtype()
        );
        multiply_matrices("matmul", self, other, dtype)
    }

    /// Returns the sums of products over the last axes: `(a..., k)` and `(b..., k)` give `(a...,
    /// b...)`. With a 0-d operand it is the plain product.
    ///
    /// # Errors
    /// [`Error::Value`] when the last axes differ in size; else as [`Array::matmul`].
    pub fn inner(&self, other: &Array) -> Result<Array> {
        if self.ndim() == 0 || other.ndim() == 0 {
            return self.multiply(other);
        }
        if self.shape().last() != other.shape().last() {
            bail!(
                "inner",
                "a and b must have the same last dimension, but their shapes are {} and {}. Transpose or reshape one of them.",
                Show(self.shape()),
                Show(other.shape())
            );
        }
        self.tensordot_axes(other, [-1], [-1])
    }

    /// Returns the products of all pairs of elements of the flattened operands: a matrix with a row
    /// for each element of `self`.
    ///
    /// # Errors
    /// [`Error::Value`] when the result is too large.
    pub fn outer(&self, other: &Array) -> Result<Array> {
        self.reshape(&[self.size(), 1])?.multiply(&flat(other)?)
    }

    /// Returns the Kronecker product: each element of `self`, times all of `other`, as blocks.
    ///
    /// # Errors
    /// [`Error::Value`] when the result is too large or has too many dimensions.
    pub fn kron(&self, other: &Array) -> Result<Array> {
        let ndim = self.ndim().max(other.ndim());
        let padded = |a: &Array| -> Shape {
            let mut shape = Shape::from_elem(1, ndim - a.ndim());
            shape.extend_from_slice(a.shape());
            shape
        };
        let (a, b) = (padded(self), padded(other));
        let pairs = |even: &dyn Fn(usize) -> usize, odd: &dyn Fn(usize) -> usize| -> Shape {
            (0..ndim).flat_map(|i| [even(i), odd(i)]).collect()
        };
        let left = self.reshape(&pairs(&|i| a[i], &|_| 1))?;
        let right = other.reshape(&pairs(&|_| 1, &|i| b[i]))?;
        let flat: Shape = (0..ndim).map(|i| a[i].saturating_mul(b[i])).collect();
        shape::check("kron", &flat)?;
        left.multiply(&right)?.reshape(&flat)
    }

    /// Returns the sums of products over the last `axes` axes of `self` and the first `axes` of
    /// `other`. 0 gives all products, 1 is the matrix product of matrices.
    ///
    /// # Errors
    /// [`Error::Value`] when there are not that many axes, or their sizes differ.
    pub fn tensordot(&self, other: &Array, axes: isize) -> Result<Array> {
        ensure!(
            axes >= 0,
            "tensordot",
            "axis must be greater or equal to 0 but is {axes}. Pass a number of axes, or two lists."
        );
        ensure!(
            (axes as usize) <= self.ndim().min(other.ndim()),
            "tensordot",
            "axis must be at most the number of dimensions of a and b, {} and {}, but is {axes}. Pass a smaller number.",
            self.ndim(),
            other.ndim()
        );
        let left: Vec<isize> = (self.ndim() as isize - axes..self.ndim() as isize).collect();
        let right: Vec<isize> = (0..axes).collect();
        self.tensordot_axes(other, &left, &right)
    }

    /// Returns the sums of products over pairs of axes: axis `left[i]` of `self` with axis
    /// `right[i]` of `other`. The result has the other axes of `self`, then those of `other`.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let (x, y) = (Array::ones(&[2, 3, 4], Dtype::Float32)?, Array::ones(&[4, 3, 5], Dtype::Float32)?);
    /// assert_eq!(x.tensordot_axes(&y, [1, 2], [1, 0])?.shape(), [2, 5]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range, [`Error::Value`] when sizes or the
    /// numbers of axes differ, or an axis is named twice.
    pub fn tensordot_axes(
        &self,
        other: &Array,
        left: impl Into<Axes>,
        right: impl Into<Axes>,
    ) -> Result<Array> {
        let left = &left.into().listed(self.ndim())[..];
        let right = &right.into().listed(other.ndim())[..];
        ensure!(
            left.len() == right.len(),
            "tensordot",
            "axes must have the same size, but name {} and {} axes. Pair each axis of a with one of b.",
            left.len(),
            right.len()
        );
        let normal = |a: &Array, axes: &[isize]| -> Result<Vec<usize>> {
            axes_of("tensordot", a, Some(axes))?;
            axes.iter().map(|x| shape::normalize_axis("tensordot", *x, a.ndim())).collect()
        };
        let (l, r) = (normal(self, left)?, normal(other, right)?);
        ensure!(
            !l.iter().zip(&r).any(|(i, j)| self.shape()[*i] != other.shape()[*j]),
            "tensordot",
            "a and b must have the same shape on the contracted axes, but their shapes are {} and {}. Name other axes, or transpose one of them.",
            Show(self.shape()),
            Show(other.shape())
        );
        let free = |a: &Array, axes: &[usize]| -> Vec<usize> {
            (0..a.ndim()).filter(|i| !axes.contains(i)).collect()
        };
        let (fl, fr) = (free(self, &l), free(other, &r));
        let order = |x: &[usize], y: &[usize]| -> Vec<isize> {
            x.iter().chain(y).map(|i| *i as isize).collect()
        };
        let k: usize = l.iter().map(|i| self.shape()[*i]).product();
        let m: usize = fl.iter().map(|i| self.shape()[*i]).product();
        let n: usize = fr.iter().map(|i| other.shape()[*i]).product();
        let a = self.transpose_axes(order(&fl, &l))?.reshape(&[m, k])?;
        let b = other.transpose_axes(order(&r, &fr))?.reshape(&[k, n])?;
        let shape: Shape = (fl.iter().map(|i| self.shape()[*i]))
            .chain(fr.iter().map(|i| other.shape()[*i]))
            .collect();
        a.matmul(&b)?.reshape(&shape)
    }

    /// Returns the sums of products of `self`'s complex conjugate and `other` along `axis`. Other axes are broadcast.
    ///
    /// # Errors
    /// [`Error::Value`] for 0-d operands or for sizes that differ along `axis`, [`Error::Index`] for an axis out of
    /// range.
    pub fn vecdot(&self, other: &Array, axis: impl Into<Axis>) -> Result<Array> {
        let axis = one("vecdot", axis)?;
        let (n, least) = (self.ndim().max(other.ndim()), self.ndim().min(other.ndim()));
        ensure!(least != 0, "vecdot", "inputs must be at least 1D. Reshape them.");
        let Some(at) = shape::from_start(axis, n) else {
            return Err(Error::index(
                "vecdot",
                format!("axis {axis} is out of bounds. {}", shape::AxisRange(least)),
            ));
        };
        ensure!(at < least, "vecdot", "axis {axis} is out of bounds. {}", shape::AxisRange(least));
        // Count from the end, where the shapes are aligned. An axis that an array does not have counts as size 1.
        let along =
            |x: &Array| x.shape().get((x.ndim() + at).wrapping_sub(n)).map_or(1, |size| *size);
        if along(self) != along(other) {
            let (a, b) = (Show(self.shape()), Show(other.shape()));
            bail!(
                "vecdot",
                "axis {axis} must have one size in both, got shapes {a} and {b}. Reshape or transpose one of them."
            );
        }
        let a = if self.dtype().is_complex() { un(unary::CONJUGATE, self) } else { self.clone() };
        a.multiply(other)?.sum([at as isize])
    }
}

attributes! {
    /// Matrix products over the last two axes. The batch dimensions have to be equal.
    #[derive(Clone, Debug)]
    pub(crate) struct Matmul {
        pub precision: MatmulPrecision,
    }
}

/// The transposed matrices, conjugated if complex.
pub(crate) fn adjoint(a: &Array) -> Result<Array> {
    let t = transposed(a)?;
    Ok(if t.dtype().is_complex() { un(unary::CONJUGATE, &t) } else { t })
}

/// The array with its last two axes swapped.
pub(crate) fn transposed(a: &Array) -> Result<Array> {
    let n = a.ndim() as isize;
    let mut order: Vec<isize> = (0..n).collect();
    order.swap(n as usize - 1, n as usize - 2);
    a.transpose_axes(&order)
}

/// Computes a product with one row or one column as the product of the transposed operands, if the device would
/// otherwise copy a transposed matrix. After the exchange the operands are contiguous.
fn flipped(exec: &Exec, call: &Call<'_>, attributes: &PrecisionAttrs) -> Result<Option<Value>> {
    let n = call.shape.len();
    let contiguous = |i: usize| shape::is_contiguous(call.descs[i].0, &call.inputs[i].strides);
    if exec.device.is_host()
        || (call.shape[n - 2] != 1 && call.shape[n - 1] != 1)
        || (contiguous(0) && contiguous(1))
    {
        return Ok(None);
    }
    let flip = |shape: &[usize]| {
        let mut shape = Shape::from_slice(shape);
        shape.swap(n - 2, n - 1);
        shape
    };
    let shapes = [1, 0].map(|i| flip(call.descs[i].0));
    let values = [1, 0].map(|i| {
        let mut value = call.inputs[i].clone();
        value.strides.swap(n - 2, n - 1);
        value
    });
    if !(0..2).all(|i| shape::is_contiguous(&shapes[i], &values[i].strides)) {
        return Ok(None);
    }
    let dtype = call.dtype;
    let given = [call.operand(0), call.operand(1)];
    // Plans have no memory to look at.
    let result = Value { strides: shape::contiguous_strides(call.shape), ..values[0].clone() };
    let plan = exec.plan(op::MATMUL, attributes, &given, &[call.output(&result)])?;
    if plan.status != status::NEEDS_CONTIGUOUS {
        return Ok(None);
    }
    let mut value = exec.alloc(call.shape, dtype)?;
    let inputs = [0, 1].map(|i| Operand { value: &values[i], shape: &shapes[i], dtype });
    let shape = flip(call.shape);
    value.strides = shape::contiguous_strides(&shape);
    exec.run(
        op::MATMUL,
        attributes,
        &inputs,
        &[Operand { value: &value, shape: &shape, dtype }],
        &[],
    )?;
    value.strides = shape::contiguous_strides(call.shape);
    Ok(Some(value))
}

impl Matmul {
    /// Another product, of the same precision.
    fn product(&self, a: &Array, b: &Array) -> Result<Array> {
        product(a, b, self.precision)
    }
}

/// The precision that a device accepts for an operation. If it rejects the allowed precision, it is the highest.
pub(crate) fn taken<A: Copy>(
    exec: &Exec,
    call: &Call<'_>,
    id: OpId,
    precision: MatmulPrecision,
    attributes: impl Fn(u32) -> A,
) -> Result<A> {
    let (asked, plain) = (attributes(precision.code()), attributes(0));
    if precision == MatmulPrecision::Highest {
        return Ok(plain);
    }
    // Plans have no memory to look at.
    let strides = shape::contiguous_strides(call.shape);
    let result = Value { strides, ..call.inputs[0].clone() };
    let inputs: SmallVec<[Operand<'_>; 2]> =
        (0..call.inputs.len()).map(|i| call.operand(i)).collect();
    let plan = exec.plan(id, &asked, &inputs, &[call.output(&result)])?;
    Ok(if plan.status == status::UNSUPPORTED { plain } else { asked })
}

impl Rules for Matmul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([(a, _), (b, _)], (out, _))) = node.of() else { return false };
        let ([batch @ .., m, k], [other @ .., l, n]) = (a, b) else { return false };
        node.follows(op::MATMUL, None, &[])
            && batch == other
            && k == l
            && out.strip_prefix(batch) == Some(&[*m, *n])
    }

    fn is_product(&self) -> bool {
        true
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let attributes = taken(exec, call, op::MATMUL, self.precision, PrecisionAttrs::new)?;
        match flipped(exec, call, &attributes)? {
            Some(value) => Ok(value),
            None => call.run(exec, op::MATMUL, &attributes, &[]),
        }
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        let (a, b, n) = (r.inputs[0], r.inputs[1], r.shape.len());
        ensure!(
            a[n - 1] == b[n - 2] && a[..n - 2] == b[..n - 2],
            "matmul",
            "Last dimension of first input with shape {} must match second to last dimension of second input with shape {}. Transpose or reshape one of them.",
            Show(a),
            Show(b)
        );
        let mut shape = Shape::from_slice(a);
        shape[n - 1] = b[n - 1];
        r.same(shape)
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let (a, b, ct) = (&v.primals[0], &v.primals[1], v.cotangent);
        let left = v.wanted[0].then(|| self.product(ct, &adjoint(b)?)).transpose()?;
        let right = v.wanted[1].then(|| self.product(&adjoint(a)?, ct)).transpose()?;
        Ok(smallvec![left, right])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let (a, b) = (&j.primals[0], &j.primals[1]);
        let left = j.tangents[0].as_ref().map(|t| self.product(t, b)).transpose()?;
        let right = j.tangents[1].as_ref().map(|t| self.product(a, t)).transpose()?;
        plus(left, right)
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        decompose::candidates(self, d, candidates);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let (a, b) = (&v.inputs[0], &v.inputs[1]);
        let out = match (v.axes[0], v.axes[1]) {
            (None, None) => return Ok((self.product(a, b)?, None)),
            // The matrices are shared: the mapped axis joins the rows, or the columns.
            (Some(i), None) if b.ndim() == 2 => self.product(&batched(a, Some(i), v.size)?, b)?,
            (None, Some(i)) if a.ndim() == 2 => {
                let rows =
                    self.product(&transposed(&batched(b, Some(i), v.size)?)?, &transposed(a)?)?;
                transposed(&rows)?
            }
            _ => {
                let operands = all_batched(v)?;
                self.product(&operands[0], &operands[1])?
            }
        };
        Ok((out, Some(0)))
    }
}
