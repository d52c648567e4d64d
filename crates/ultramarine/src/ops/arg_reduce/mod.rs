//! Indices of the smallest and largest elements.

mod decompose;

use crate::error::{Result, ensure};
use crate::ops::reduce::{axes_of, dropped, kept};
use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap,
    attributes, draft, no_derivatives,
    rules::builders::flat,
    shape::axes::{Axis, Reduced},
};
use crate::{array::Array, backend::Exec, dtype::Dtype, node::Value, shape::Shape};
use ultramarine_abi::schema::{ArgReduceAttrs, arg_reduce, op};

impl Array {
    fn extreme_at(&self, code: u32, over: Reduced<Axis>) -> Result<Array> {
        let name = arg_reduce::NAMES[code as usize];
        self.computable(name)?;
        let axes = over.axes.number().map(|a| axes_of(name, self, Some(&[a]))).transpose()?;
        ensure!(
            self.size() != 0,
            name,
            "Cannot {name} reduce zero size array. Pass at least one element."
        );
        match axes {
            Some(axes) => {
                dropped(&ArgReduce { code, axis: axes[0] }.of(self), axes[0], over.keepdims)
            }
            None => {
                let out = ArgReduce { code, axis: 0 }.of(&flat(self)?).reshape(&[] as &[usize])?;
                kept(&out, self, &(0..self.ndim()).collect::<Vec<_>>(), over.keepdims)
            }
        }
    }

    /// Returns the index of the smallest element along `axis`, or in the flattened array for `..`, as uint32. Among
    /// equal elements the first one is returned; a NaN precedes all numbers. [`KeepDims`](crate::KeepDims) keeps the
    /// axis.
    ///
    /// # Errors
    /// [`crate::Error::Index`] for an axis out of range, [`crate::Error::Value`] for an empty array.
    pub fn argmin(&self, axis: impl Into<Reduced<Axis>>) -> Result<Array> {
        self.extreme_at(arg_reduce::ARGMIN, axis.into())
    }

    /// Returns the index of the largest element; see [`Array::argmin`].
    ///
    /// ```
    /// use ultramarine::Array;
    /// let x = Array::from_slice(&[3, 1, 2, 4], &[2, 2])?;
    /// assert_eq!(x.argmax(1)?.to_vec::<u32>()?, [0, 1]);
    /// assert_eq!(x.argmin(..)?.item::<u32>()?, 1);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Array::argmin`].
    pub fn argmax(&self, axis: impl Into<Reduced<Axis>>) -> Result<Array> {
        self.extreme_at(arg_reduce::ARGMAX, axis.into())
    }
}

attributes! {
    /// Index of an extreme along an axis, which is kept with size 1.
    #[derive(Clone, Debug)]
    pub(crate) struct ArgReduce {
        /// A code of [`arg_reduce`].
        pub code: u32,
        pub axis: usize,
    }
}

impl ArgReduce {
    /// Applies the operation to `a`.
    pub fn of(&self, a: &Array) -> Array {
        let mut shape = Shape::from_slice(a.shape());
        shape[self.axis] = 1;
        Array::of(self.clone(), &[a], shape, Dtype::Uint32)
    }
}

impl Rules for ArgReduce {
    fn name(&self) -> &'static str {
        arg_reduce::NAMES[self.code as usize]
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([(from, _)], (to, _))) = node.of() else { return false };
        node.follows(op::ARG_REDUCE, Some(self.code), &[])
            && self.axis < from.len()
            && draft::is_reduced(from, 1 << self.axis, to)
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let attrs = ArgReduceAttrs::new(self.code, self.axis as u32);
        call.run(exec, op::ARG_REDUCE, &attrs, &[])
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        let mut shape = Shape::from_slice(r.inputs[0]);
        ensure!(
            !shape.contains(&0),
            self.name(),
            "Cannot {} reduce zero size array. Pass at least one element.",
            self.name()
        );
        shape[self.axis] = 1;
        r.same(shape)
    }

    no_derivatives!();

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        decompose::candidates(self, d, candidates);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let axis = v.axes[0].map_or(self.axis, |at| self.axis + (at <= self.axis) as usize);
        Ok((ArgReduce { code: self.code, axis }.of(&v.inputs[0]), v.axes[0]))
    }
}
