//! Reads through index arrays, and the public functions for them.

use crate::error::{Error, Result, ensure};
use crate::ops::rules::builders::{flat, move_axis, without_axis};
use crate::ops::rules::shapeless::{
    self, SymbolicSize, broadcast_by, broadcast_with, shapeless, zeros_like,
};
use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap,
    attributes, draft,
    elementwise::operand::{Operand, alone},
    index::{bounds, scatter::scatter},
    rules::batching::{all_batched, batched},
    scan::axis_of,
    shape::axes::Axis,
};
use crate::shape::{self, Shape};
use crate::{array::Array, backend::Exec, dtype::Dtype, node::Value, placement::follow};
use smallvec::{SmallVec, smallvec};
use ultramarine_abi::schema::{AxisAttrs, GatherAttrs, op, scatter as kind};

/// The axes that index arrays address, one axis per array.
pub(crate) type IndexAxes = SmallVec<[u8; 4]>;

/// Checks index arrays, and converts them to one shape and dtype.
pub(crate) fn common(op: &str, indices: &[Array]) -> Result<Vec<Array>> {
    for i in indices {
        ensure!(
            i.dtype().is_integer(),
            op,
            "Got indices with invalid dtype. Indices must be integral but have type {}. Convert them with astype(int32).",
            i.dtype()
        );
    }
    if indices.len() <= 1 {
        return Ok(indices.to_vec());
    }
    let mut shape = Shape::new();
    let mut dtype = None;
    for i in indices {
        shape = shape::broadcast(op, &shape, i.shape())?;
        dtype = Some(dtype.map_or(i.dtype(), |d: Dtype| d.promote(i.dtype())));
    }
    // The indices are uint64 and a signed type: all valid indices fit int64.
    let dtype = dtype.filter(|d| d.is_integer()).unwrap_or(Dtype::Int64);
    let indices: Vec<Array> = indices.iter().map(|i| i.astype(dtype)).collect();
    let partners: Vec<&Array> = indices.iter().collect();
    indices.iter().map(|i| Ok(broadcast_with(i, &shape, &partners)?.into_owned())).collect()
}

/// Shape of the elements that `indices` (of one shape) select along `axes` of a source.
pub(crate) fn gathered(source: &[usize], index: &[usize], axes: &[u8]) -> Shape {
    let mut shape = Shape::from_slice(index);
    shape.extend(
        source.iter().enumerate().map(|(i, n)| if axes.contains(&(i as u8)) { 1 } else { *n }),
    );
    shape
}

/// Returns true if the shape is that of a gather by indices of one type, one for each of `axes`.
pub(super) fn is_gather(
    source: &[usize],
    indices: &[draft::Type<'_>],
    axes: &[u8],
    to: &[usize],
) -> bool {
    draft::are_axes(axes, source.len())
        && indices.len() == axes.len()
        && indices.first().is_some_and(|(shape, dtype)| {
            indices.iter().all(|(s, d)| s == shape && d == dtype)
                && gathered(source, shape, axes)[..] == *to
        })
}

/// The axes as the array of the operation's attributes.
pub(crate) fn axes_attr(axes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    for (to, from) in out.iter_mut().zip(axes) {
        *to = *from;
    }
    out
}

/// Rejects taking elements from an array that has none.
fn check_take(is_empty: bool, takes_some: bool) -> Result<()> {
    let possible = !is_empty || !takes_some;
    ensure!(
        possible,
        "take",
        "Cannot do a non-empty take from an empty axis. Pass no indices, or another axis."
    );
    Ok(())
}

/// Returns slices of `source` at the positions that `indices` (at least one array, all of one shape
/// and integer dtype) give along `axes`. The result has the index shape, then the source's shape
/// with 1 along indexed axes. Negative indices count from the end. Indices out of bounds are
/// clamped.
///
/// # Errors
/// [`Error::Value`] when the result is too large or the source has nothing to take.
pub(crate) fn gather(source: &Array, indices: &[Array], axes: &[u8]) -> Result<Array> {
    let index = indices.first().map_or(&[][..], |i| i.shape());
    let shape = gathered(source.shape(), index, axes);
    shape::check("gather", &shape)?;
    check_take(source.size() == 0, shape::size(&shape) > 0)?;
    let mut inputs: SmallVec<[&Array; 4]> = smallvec![source];
    inputs.extend(indices);
    Array::try_of(Gather { axes: axes.into() }, &inputs, shape, source.dtype())
}

/// Indices for GATHER_AXIS: flat, and broadcast along the other axes. They are used along an axis
/// whose elements are neighbours in memory, or nearly, because slices across such an axis would be
/// strided. `None` if slices are better.
pub(crate) fn spread(source: &[usize], indices: &Array, axis: usize) -> Result<Option<Array>> {
    const RUN: usize = 16;
    let (before, after) = (shape::size(&source[..axis]), shape::size(&source[axis + 1..]));
    if shapeless() || before <= 1 || after >= RUN || indices.size() == 0 || shape::size(source) == 0
    {
        return Ok(None);
    }
    let mut line = Shape::from_elem(1, source.len());
    line[axis] = indices.size();
    let mut wide = Shape::from_slice(source);
    wide[axis] = indices.size();
    shape::check("gather", &wide)?;
    Ok(Some(indices.reshape(&line)?.broadcast_to(&wide)?))
}

impl Array {
    /// Returns the elements at `indices` along `axis` (`..`: in the flattened array). The shape of
    /// the indices replaces the axis. Negative indices count from the end. An index out of bounds
    /// gives the first or the last element, whichever is nearer.
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range; [`Error::Value`] for indices that are not
    /// integers, or for taking elements from an empty axis. Under `ULTRAMARINE_VALIDATE=1`
    /// evaluation fails with [`Error::Index`] for an index out of bounds.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[1, 2, 3, 4], &[2, 2])?;
    /// assert_eq!(x.take(-1, 0)?.to_vec::<i32>()?, [3, 4]);
    /// assert_eq!(x.take(&Array::from_slice(&[1, 1], &[2])?, 1)?.to_vec::<i32>()?, [2, 2, 4, 4]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    pub fn take(&self, indices: impl Operand, axis: impl Into<Axis>) -> Result<Array> {
        self.taken(&*alone(&indices)?, axis.into().number())
    }

    fn taken(&self, indices: &Array, axis: Option<isize>) -> Result<Array> {
        self.computable("take")?;
        let _home = follow(&[self, indices]);
        let Some(axis) = axis else { return flat(self)?.taken(indices, Some(0)) };
        let n = self.ndim();
        let at = shape::from_start(axis, n).ok_or_else(|| {
            let text = format!("Received invalid axis {axis} for array with {n} dimensions.");
            Error::index("take", format!("{text} {}", shape::AxisRange(n)))
        })?;
        check_take(self.shape()[at] == 0, indices.size() > 0)?;
        let indices = common("gather", std::slice::from_ref(indices))?;
        if let Some(spread) = spread(self.shape(), &indices[0], at)? {
            let mut shape = Shape::from_slice(&self.shape()[..at]);
            shape.extend_from_slice(indices[0].shape());
            shape.extend_from_slice(&self.shape()[at + 1..]);
            return self.gather_axis(&spread, at).reshape(&shape);
        }
        let out = gather(self, &indices, &[at as u8])?;
        let k = indices[0].ndim();
        let out = without_axis(&out, k + at)?;
        if at == 0 {
            return Ok(out);
        }
        // The gather puts index axes first; move them to the place of the axis.
        let order: Vec<usize> = (k..k + at).chain(0..k).chain(k + at..out.ndim()).collect();
        out.transpose_axes(order.iter().map(|i| *i as isize).collect::<Vec<_>>())
    }

    /// Returns elements along `axis`, by an index for each: `out[.., i, ..] = self[.., indices[..,
    /// i, ..], ..]`. The indices have this array's rank; other axes are broadcast. `..` takes 1-d
    /// indices of the flattened array. Indices out of bounds are as in [`Array::take`].
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[3, 1, 2, 6, 4, 5], &[2, 3])?;
    /// let sorted = x.take_along_axis(&x.argsort(1)?, 1)?;
    /// assert_eq!(sorted.to_vec::<i32>()?, [1, 2, 3, 4, 5, 6]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range, [`Error::Value`] for indices that have another
    /// rank or are not integers.
    pub fn take_along_axis(&self, indices: &Array, axis: impl Into<Axis>) -> Result<Array> {
        let Some(axis) = axis.into().number() else {
            return flat(self)?.take_along_axis(indices, Some(0));
        };
        let (source, indices, axis) = self.along_axis("take_along_axis", indices, axis)?;
        check_take(source.shape()[axis] == 0, indices.size() > 0)?;
        Ok(source.gather_axis(&indices, axis))
    }

    /// Both operands of a function `.._along_axis`, broadcast against each other except along the
    /// axis.
    pub(crate) fn along_axis(
        &self,
        name: &str,
        indices: &Array,
        axis: isize,
    ) -> Result<(Array, Array, usize)> {
        self.computable(name)?;
        let at = axis_of(name, axis, self)?;
        ensure!(
            indices.ndim() == self.ndim(),
            name,
            "Indices of dimension {} does not match array of dimension {}. Reshape or expand the indices.",
            indices.ndim(),
            self.ndim()
        );
        if !indices.dtype().is_integer() {
            let dtype = indices.dtype();
            let text = format!(
                "Indices must be integral but have type {dtype}. Convert them with astype(int32)."
            );
            return Err(Error::runtime(name, text));
        }
        let without = |a: &Array| {
            let mut s = Shape::from_slice(a.shape());
            s.remove(at);
            s
        };
        let rest = shape::broadcast(name, &without(self), &without(indices))?;
        let with = |n: usize| {
            let mut s = rest.clone();
            s.insert(at, n);
            s
        };
        let common = |a: &Array, b: &Array| {
            let shape = with(a.shape()[at]);
            let size = |i: usize| match i != at && a.shape()[i] != shape[i] {
                true => SymbolicSize::partner(i),
                false => SymbolicSize::own(i),
            };
            if shape[..] == *a.shape() {
                return Ok(a.clone());
            }
            broadcast_by(a, (0..shape.len()).map(size).collect(), &[b])
        };
        Ok((common(self, indices)?, common(indices, self)?, at))
    }

    /// GATHER_AXIS for operands that agree in all axes but `axis`.
    pub(crate) fn gather_axis(&self, indices: &Array, axis: usize) -> Array {
        let shape = Shape::from_slice(indices.shape());
        Array::of(GatherAxis { axis }, &[self, indices], shape, self.dtype())
    }
}

attributes! {
    /// GATHER. The operands are the source and an index array for each axis.
    #[derive(Clone, Debug)]
    pub(crate) struct Gather {
        pub axes: IndexAxes,
    }
}

/// For index arrays with a mapped axis in front: the index along the mapped axis.
pub(crate) fn batch_index(shape: &[usize]) -> Result<Array> {
    let mut column = Shape::from_elem(1, shape.len());
    column[0] = shape[0];
    Array::arange(0.0, shape[0] as f64, 1.0, Dtype::Int64)?.reshape(&column)?.broadcast_to(shape)
}

impl Rules for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let ([(source, _), indices @ ..], [(to, _)]) = (node.inputs, node.outputs) else {
            return false;
        };
        node.follows(op::GATHER, None, &[]) && is_gather(source, indices, &self.axes, to)
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let index_ndim = call.shape.len() - call.descs[0].0.len();
        let n = self.axes.len() as u32;
        let attrs = GatherAttrs::new(n, index_ndim as u32, axes_attr(&self.axes));
        bounds::validate(self.name(), exec, call, &self.axes)?;
        call.run(exec, op::GATHER, &attrs, &[])
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        let shape = gathered(r.inputs[0], r.inputs[1], &self.axes);
        if r.inputs[2..].iter().any(|s| *s != r.inputs[1]) {
            return Err(shapeless::cannot(self.name()));
        }
        check_take(r.inputs[0].contains(&0), !shape.contains(&0))?;
        r.same(shape)
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let mut out = Cotangents::new();
        if v.wanted[0] {
            let zeros = zeros_like(&v.primals[0], v.cotangent.dtype());
            let sum = scatter(&zeros, &v.primals[1..], v.cotangent, &self.axes, kind::SUM)?;
            out.push(Some(sum));
        }
        Ok(out)
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        j.tangents[0].as_ref().map(|t| gather(t, &j.primals[1..], &self.axes)).transpose()
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        super::decompose::gather_candidates(self, d, candidates);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let (source, indices) = (&v.inputs[0], &v.inputs[1..]);
        let indexed = v.axes[1..].iter().any(Option::is_some);
        let ndim = v.shape.len() - (source.ndim() - v.axes[0].is_some() as usize);
        let shifted: IndexAxes = self.axes.iter().map(|a| a + 1).collect();
        if !indexed {
            let source = match v.axes[0] {
                Some(at) => move_axis(source, at, 0)?,
                None => return Ok((gather(source, indices, &self.axes)?, None)),
            };
            return Ok((gather(&source, indices, &shifted)?, Some(ndim)));
        }
        let mut all = indices
            .iter()
            .zip(&v.axes[1..])
            .map(|(i, at)| batched(i, *at, v.size))
            .collect::<Result<Vec<_>>>()?;
        let Some(at) = v.axes[0] else { return Ok((gather(source, &all, &self.axes)?, Some(0))) };
        all.push(batch_index(all[0].shape())?);
        let mut axes = shifted;
        axes.push(0);
        let out = gather(&move_axis(source, at, 0)?, &common("gather", &all)?, &axes)?;
        Ok((without_axis(&out, 1 + ndim)?, Some(0)))
    }
}

attributes! {
    /// GATHER_AXIS. The operands are the source and the indices.
    #[derive(Clone, Debug)]
    pub(crate) struct GatherAxis {
        axis: usize,
    }
}

impl Rules for GatherAxis {
    fn name(&self) -> &'static str {
        "take_along_axis"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([(source, _), (indices, _)], (to, _))) = node.of() else { return false };
        node.follows(op::GATHER_AXIS, None, &[])
            && draft::agree_but(self.axis, source, indices)
            && indices == to
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        bounds::validate(self.name(), exec, call, &[self.axis as u8])?;
        call.run(exec, op::GATHER_AXIS, &AxisAttrs::new(self.axis as u32), &[])
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.agree_but(self.axis)?;
        check_take(r.inputs[0].contains(&0), !r.inputs[1].contains(&0))?;
        r.same(Shape::from_slice(r.inputs[1]))
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let zeros = zeros_like(&v.primals[0], v.cotangent.dtype());
        Ok(smallvec![Some(zeros.scatter_add_axis(&v.primals[1], v.cotangent, self.axis)?)])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        Ok(j.tangents[0].as_ref().map(|t| t.gather_axis(&j.primals[1], self.axis)))
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        super::decompose::gather_axis_candidates(self.axis, d, candidates);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let operands = all_batched(v)?;
        Ok((operands[0].gather_axis(&operands[1], self.axis + 1), Some(0)))
    }
}
