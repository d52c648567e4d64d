//! The reciprocal of a number of elements, as means need it.

use crate::ops::{
    Call, Cotangents, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap, attributes, draft,
    no_derivatives, rules::shapeless::shapeless,
};
use crate::{
    array::Array, backend::Exec, dtype::Dtype, error::Result, node::Value, scalar::Scalar,
    shape::Shape,
};
use ultramarine_abi::schema::{NoAttrs, op};

attributes! {
    /// The reciprocal of the number of the operand's elements over some axes, minus `ddof`. In fitted graphs it is a
    /// 0-d constant.
    #[derive(Clone, Debug)]
    pub(crate) struct Share {
        /// Bit `i` is set if axis `i` counts.
        axes: u64,
        ddof: usize,
        dtype: Dtype,
    }
}

impl Share {
    fn value(&self, of: &[usize]) -> Scalar {
        let counted = |i: &usize| self.axes >> i & 1 == 1;
        let n: usize = (0..of.len()).filter(counted).map(|i| of[i]).product();
        Scalar::from_f64(self.dtype, 1.0 / n.saturating_sub(self.ddof) as f64)
    }
}

/// The reciprocal of the number of elements of `a` over `axes`, minus `ddof`, as a 0-d array.
pub(crate) fn share(a: &Array, axes: &[usize], ddof: usize, dtype: Dtype) -> Array {
    let axes = axes.iter().fold(0u64, |m, a| m | 1 << a);
    let share = Share { axes, ddof, dtype };
    if !shapeless() {
        return Array::scalar(share.value(a.shape()));
    }
    Array::of(share, &[a], Shape::new(), dtype)
}

impl Rules for Share {
    fn name(&self) -> &'static str {
        "number_of_elements"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([(from, _)], _)) = node.of() else { return false };
        let axes = self.axes == 0 || draft::is_mask(self.axes, from.len());
        axes && !self.dtype.is_storage() && node.gives(&[], self.dtype)
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let value = [self.value(call.descs[0].0)];
        Call { inputs: &[], descs: &[], ..*call }.run(exec, op::FILL, &NoAttrs::new(), &value)
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        r.constant(self.value(r.inputs[0]), Shape::new())
    }

    no_derivatives!();

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let Some(at) = v.axes[0] else {
            return Ok((Array::of(self.clone(), &[&v.inputs[0]], Shape::new(), v.dtype), None));
        };
        let low = self.axes & ((1u64 << at) - 1);
        let axes = low | (self.axes - low) << 1;
        let share = Share { axes, ..self.clone() };
        Ok((Array::of(share, &[&v.inputs[0]], Shape::new(), v.dtype), None))
    }
}
