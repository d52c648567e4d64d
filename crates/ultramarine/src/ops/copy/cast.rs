//! Conversion between dtypes.

use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Elementwise, Jvp, Rules, Vjp, Vmap, attributes,
    create::fill,
};
use crate::{array::Array, backend::Exec, dtype::Dtype, error::Result, node::Value, shape::Shape};
use smallvec::smallvec;
use ultramarine_abi::{fused::family, schema::op};

impl Array {
    /// Returns the array converted to `dtype`, or the array itself if it has that dtype. Converting
    /// floats to integers truncates; converting complex to real drops the imaginary part;
    /// converting to bool gives true for every value but 0. Storage dtypes ([`Dtype::is_storage`])
    /// are converted through float32. An element of `float4_e2m1fn_x2` holds two numbers, so its
    /// last axis changes size (a 0-d array gets the shape (2)).
    ///
    /// The function returns an array instead of a `Result`, as [`Array::zeros_like`],
    /// [`Array::contiguous`] and [`Array::stop_gradient`] do, because every conversion between
    /// dtypes with arithmetic is possible. The remaining errors, those of [`Array::try_astype`],
    /// are reported at evaluation.
    ///
    /// ```
    /// use ultramarine::{Array, Dtype};
    /// let x = Array::from_slice(&[1.7f32, -1.7], &[2])?;
    /// assert_eq!(x.astype(Dtype::Int32).to_vec::<i32>()?, [1, -1]);
    /// # Ok::<(), ultramarine::Error>(())
    /// ```
    pub fn astype(&self, dtype: Dtype) -> Array {
        self.try_astype(dtype)
            .unwrap_or_else(|error| Array::failed(error, Shape::from_slice(self.shape()), dtype))
    }

    /// Converts as [`Array::astype`] does, but reports errors at once instead of at evaluation.
    ///
    /// # Errors
    /// [`Error::Value`](crate::Error::Value) if the last axis has an odd number of elements for
    /// `float4_e2m1fn_x2`, or if the array is on another accelerator than the scope's stream.
    pub fn try_astype(&self, dtype: Dtype) -> Result<Array> {
        if self.dtype() == dtype {
            return Ok(self.clone());
        }
        if self.dtype().is_storage() || dtype.is_storage() {
            return crate::ops::copy::storage::astype(self, dtype);
        }
        if let Some(value) = self.node().constant() {
            return Ok(fill::filled(Shape::from_slice(self.shape()), value.cast(dtype)));
        }
        Array::try_of(Cast, &[self], Shape::from_slice(self.shape()), dtype)
    }
}

attributes! {
    /// Conversion to the node's dtype.
    #[derive(Clone, Debug)]
    pub(crate) struct Cast;
}

impl Rules for Cast {
    fn name(&self) -> &'static str {
        "astype"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        node.is_elementwise(op::COPY, None)
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(Elementwise { family: family::CAST, code: 0 })
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let value = call.memory(exec)?;
        exec.copy(call.operand(0), call.output(&value))?;
        Ok(value)
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        Ok(smallvec![Some(v.cotangent.astype(v.primals[0].dtype()))])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        Ok(j.tangents[0].as_ref().map(|t| t.astype(j.output.dtype())))
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        super::decompose::candidates(d, candidates);
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        Ok((v.inputs[0].astype(v.dtype), v.axes[0]))
    }

    fn inherits_home(&self) -> bool {
        true
    }
}
