//! Sorting and partitioning.

use super::{
    Call, Cotangents, Decompose, Jvp, Rules, Vjp, Vmap, Ways,
    lean::{flat, slice_axis},
    resort,
    scan::axis_of,
};
use crate::{
    array::Array,
    backend::Exec,
    dtype::Dtype,
    error::{Error, Result},
    node::Value,
    shape::{Shape, Show},
};
use smallvec::smallvec;
use ultramarine_abi::schema::{AxisAttrs, op};

impl Array {
    fn sorted(&self, name: &str, axis: Option<isize>, arg: bool) -> Result<Array> {
        match axis {
            None => Sort { arg, axis: 0 }.of(&flat(self)?).placed(),
            Some(axis) => Sort { arg, axis: axis_of(name, axis, self)? }.of(self).placed(),
        }
    }

    /// Sorted along `axis` (`None`: flattened first): ascending, stable, NaN last;
    /// complex numbers by real, then imaginary part.
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range.
    pub fn sort(&self, axis: Option<isize>) -> Result<Array> {
        self.sorted("sort", axis, false)
    }

    /// Indices (uint32) that sort; see [`Array::sort`].
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range.
    pub fn argsort(&self, axis: Option<isize>) -> Result<Array> {
        self.sorted("argsort", axis, true)
    }

    fn check_kth(&self, name: &str, space: &str, kth: isize, axis: Option<isize>) -> Result<()> {
        let (shape, at) = match axis {
            None => (Shape::from_elem(self.size(), 1), 0),
            Some(axis) => (Shape::from_slice(self.shape()), axis_of(name, axis, self)?),
        };
        let n = shape[at] as isize;
        if (-n..n).contains(&kth) {
            return Ok(());
        }
        let text = format!(
            "Received invalid kth {kth}{space}along axis {} for array with shape: {}",
            axis.unwrap_or(0),
            Show(&shape)
        );
        Err(Error::value(name, text))
    }

    /// The element at `kth` as sorting would put it, none before it larger and none
    /// behind it smaller.
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range, [`Error::Value`] for `kth` out of range.
    pub fn partition(&self, kth: isize, axis: Option<isize>) -> Result<Array> {
        self.check_kth("partition", "", kth, axis)?;
        self.sorted("partition", axis, false)
    }

    /// Indices (uint32) that partition; see [`Array::partition`].
    ///
    /// # Errors
    /// As [`Array::partition`].
    pub fn argpartition(&self, kth: isize, axis: Option<isize>) -> Result<Array> {
        self.check_kth("argpartition", " ", kth, axis)?;
        self.sorted("argpartition", axis, true)
    }

    /// The `k` largest elements along `axis` (`None`: of the flattened array), in
    /// ascending order.
    ///
    /// # Errors
    /// [`Error::Index`] for an axis out of range, [`Error::Value`] for a `k` that is
    /// negative or above the axis' size.
    pub fn topk(&self, k: isize, axis: Option<isize>) -> Result<Array> {
        self.computable("topk")?;
        let a = if axis.is_none() { flat(self)? } else { self.clone() };
        let at = axis_of("topk", axis.unwrap_or(0), &a)?;
        let n = a.shape()[at];
        if k < 0 || k as usize > n {
            let text = format!(
                "Received invalid k={k} along axis {} for array with shape: {}",
                axis.unwrap_or(0),
                Show(a.shape())
            );
            return Err(Error::value("topk", text));
        }
        slice_axis(&Sort { arg: false, axis: at }.of(&a), at, n - k as usize, k as usize)
    }
}

/// Sorts along an axis, or gives the indices that do.
#[derive(Clone, Debug)]
pub(crate) struct Sort {
    pub arg: bool,
    pub axis: usize,
}

impl Sort {
    /// The sort of an array.
    pub fn of(self, a: &Array) -> Array {
        let dtype = if self.arg { Dtype::Uint32 } else { a.dtype() };
        Array::of(self, &[a], Shape::from_slice(a.shape()), dtype)
    }

    /// The indices that sort.
    pub fn order(&self, x: &Array) -> Array {
        Sort { arg: true, axis: self.axis }.of(x)
    }
}

impl Rules for Sort {
    fn name(&self) -> &'static str {
        if self.arg { "argsort" } else { "sort" }
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let code = if self.arg { op::ARG_SORT } else { op::SORT };
        call.run(exec, code, &AxisAttrs::new(self.axis as u32), &[])
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        if self.arg {
            return Ok(Cotangents::new());
        }
        let x = &v.primals[0];
        let zeros = Array::zeros(x.shape(), v.cotangent.dtype())?;
        Ok(smallvec![Some(zeros.scatter_add_axis(&self.order(x), v.cotangent, self.axis)?)])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        if self.arg {
            return Ok(None);
        }
        let order = self.order(&j.primals[0]);
        Ok(j.tangents[0].as_ref().map(|t| t.gather_axis(&order, self.axis)))
    }

    fn decompose(&self, d: &Decompose<'_>, ways: &mut Ways) {
        resort::sort::ways(self, d, ways);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let axis = v.axes[0].map_or(self.axis, |at| self.axis + (at <= self.axis) as usize);
        Ok((Sort { arg: self.arg, axis }.of(&v.inputs[0]), v.axes[0]))
    }
}
