//! Sorting and partitioning.

mod decompose;
pub(crate) mod search;
pub(crate) mod unique;

use crate::error::{Result, bail, ensure};
use crate::ops::rules::builders::{flat, slice_axis};
use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap,
    attributes, rules::shapeless::zeros_like, scan::axis_of, shape::axes::Axis,
};
use crate::shape::{Shape, Show};
use crate::{array::Array, backend::Exec, dtype::Dtype, node::Value, scalar::Scalar};
use smallvec::smallvec;
use ultramarine_abi::schema::{AxisAttrs, op};

impl Array {
    fn sorted(
        &self,
        name: &str,
        axis: Option<isize>,
        arg: bool,
        kth: Option<isize>,
    ) -> Result<Array> {
        let of = |axis: usize, a: &Array| {
            // `check_kth` has already checked the range.
            let kth = kth.map(|k| k.rem_euclid(a.shape()[axis] as isize) as usize);
            Sort { arg, axis, kth }.of(a).placed()
        };
        match axis {
            None => of(0, &flat(self)?),
            Some(axis) => of(axis_of(name, axis, self)?, self),
        }
    }

    /// Returns the elements, sorted in ascending order along `axis` (`..`: of the flattened array).
    /// The sort is stable. NaN comes last; complex numbers are sorted by real part, then by
    /// imaginary part.
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[3, 1, 2, 0], &[2, 2])?;
    /// assert_eq!(x.sort(-1)?.to_vec::<i32>()?, [1, 3, 0, 2]);
    /// assert_eq!(x.sort(..)?.to_vec::<i32>()?, [0, 1, 2, 3]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Index`] for an axis out of range.
    pub fn sort(&self, axis: impl Into<Axis>) -> Result<Array> {
        self.sorted("sort", axis.into().number(), false, None)
    }

    /// Returns the indices that sort the elements along `axis`: uint32; see [`Array::sort`].
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[3, 1, 2], &[3])?;
    /// assert_eq!(x.argsort(0)?.to_vec::<u32>()?, [1, 2, 0]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Index`] for an axis out of range.
    pub fn argsort(&self, axis: impl Into<Axis>) -> Result<Array> {
        self.sorted("argsort", axis.into().number(), true, None)
    }

    fn check_kth(&self, name: &str, kth: isize, axis: Option<isize>) -> Result<()> {
        let (shape, at) = match axis {
            None => (Shape::from_elem(self.size(), 1), 0),
            Some(axis) => (Shape::from_slice(self.shape()), axis_of(name, axis, self)?),
        };
        let n = shape[at] as isize;
        if (-n..n).contains(&kth) {
            return Ok(());
        }
        bail!(
            name,
            "Received invalid kth {kth} along axis {} for array with shape: {}. Pass an index of that axis.",
            axis.unwrap_or(0),
            Show(&shape)
        )
    }

    /// Returns the elements along `axis` in a partitioned order: element `kth` is the one that [`Array::sort`] puts
    /// there, no element before it is larger, and no element after it is smaller. A negative `kth` counts from the end.
    ///
    /// # Errors
    /// [`crate::Error::Index`] for an axis out of range, [`crate::Error::Value`] for `kth` out of range.
    pub fn partition(&self, kth: isize, axis: impl Into<Axis>) -> Result<Array> {
        let axis = axis.into().number();
        self.check_kth("partition", kth, axis)?;
        self.sorted("partition", axis, false, Some(kth))
    }

    /// Returns the indices that partition the elements along `axis`: uint32; see
    /// [`Array::partition`].
    ///
    /// # Errors
    /// As [`Array::partition`].
    pub fn argpartition(&self, kth: isize, axis: impl Into<Axis>) -> Result<Array> {
        let axis = axis.into().number();
        self.check_kth("argpartition", kth, axis)?;
        self.sorted("argpartition", axis, true, Some(kth))
    }

    /// Returns the `k` largest elements along `axis` (`..`: of the flattened array), in ascending
    /// order.
    ///
    /// # Errors
    /// [`crate::Error::Index`] for an axis out of range, [`crate::Error::Value`] for a `k` that is
    /// negative or above the axis' size.
    pub fn topk(&self, k: isize, axis: impl Into<Axis>) -> Result<Array> {
        let axis = axis.into().number();
        self.computable("topk")?;
        let a = if axis.is_none() { flat(self)? } else { self.clone() };
        let at = axis_of("topk", axis.unwrap_or(0), &a)?;
        let n = a.shape()[at];
        ensure!(
            k >= 0 && (k as usize) <= n,
            "topk",
            "Received invalid k={k} along axis {} for array with shape: {}. Pass a number from 0 to the size of that axis.",
            axis.unwrap_or(0),
            Show(a.shape())
        );
        let (first, k) = (n - k as usize, k as usize);
        let sort = Sort { arg: false, axis: at, kth: None };
        // If the largest elements are few, partition them off and sort only them.
        if k > n / 2 || k == 0 {
            return slice_axis(&sort.of(&a), at, first, k);
        }
        let parted = Sort { kth: Some(first), ..sort.clone() }.of(&a);
        Ok(sort.of(&slice_axis(&parted, at, first, k)?))
    }
}

attributes! {
    /// Sorts along an axis, or returns the indices that sort it. With `kth`, it sorts only until the element of that
    /// rank is in its place.
    #[derive(Clone, Debug)]
    pub(crate) struct Sort {
        pub arg: bool,
        pub axis: usize,
        pub kth: Option<usize>,
    }
}

impl Sort {
    /// The sort of an array.
    pub fn of(self, a: &Array) -> Array {
        let dtype = if self.arg { Dtype::Uint32 } else { a.dtype() };
        Array::of(self, &[a], Shape::from_slice(a.shape()), dtype)
    }

    /// The indices that sort `x`.
    pub fn order(&self, x: &Array) -> Array {
        Sort { arg: true, axis: self.axis, kth: None }.of(x)
    }
}

/// Corresponding elements of a lane: those at the first indices of a result are those at the second indices of the
/// operand.
fn moves(sort: &Sort, x: &Array, output: &Array) -> (Option<Array>, Array) {
    // A partition leaves its elements in an unspecified order.
    let to = sort.kth.map(|_| sort.order(output));
    (to, sort.order(x))
}

impl Rules for Sort {
    fn name(&self) -> &'static str {
        match (self.kth, self.arg) {
            (None, false) => "sort",
            (None, true) => "argsort",
            (Some(_), false) => "partition",
            (Some(_), true) => "argpartition",
        }
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let id = if self.arg { op::ARG_SORT } else { op::SORT };
        let size = node.outputs.first().and_then(|(shape, _)| shape.get(self.axis));
        node.is_elementwise(id, None) && size.is_some_and(|n| self.kth.is_none_or(|k| k < *n))
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let attrs = AxisAttrs::new(self.axis as u32);
        let Some(kth) = self.kth else {
            let code = if self.arg { op::ARG_SORT } else { op::SORT };
            return call.run(exec, code, &attrs, &[]);
        };
        let code = if self.arg { op::ARG_PARTITION } else { op::PARTITION };
        call.run(exec, code, &attrs, &[Scalar::from_i64(Dtype::Int64, kth as i64)])
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.first()
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        if self.arg {
            return Ok(Cotangents::new());
        }
        let x = &v.primals[0];
        let (from, to) = moves(self, x, v.output);
        let cotangent = match from {
            Some(from) => v.cotangent.gather_axis(&from, self.axis),
            None => v.cotangent.clone(),
        };
        let zeros = zeros_like(x, cotangent.dtype());
        Ok(smallvec![Some(zeros.scatter_add_axis(&to, &cotangent, self.axis)?)])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let Some(t) = j.tangents[0].as_ref().filter(|_| !self.arg) else { return Ok(None) };
        let (to, from) = moves(self, &j.primals[0], j.output);
        let sorted = t.gather_axis(&from, self.axis);
        let Some(to) = to else { return Ok(Some(sorted)) };
        let zeros = zeros_like(&sorted, sorted.dtype());
        Ok(Some(zeros.scatter_add_axis(&to, &sorted, self.axis)?))
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        decompose::candidates(self, d, candidates);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let axis = v.axes[0].map_or(self.axis, |at| self.axis + (at <= self.axis) as usize);
        Ok((Sort { axis, ..self.clone() }.of(&v.inputs[0]), v.axes[0]))
    }
}
