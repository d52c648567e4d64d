//! The operation behind all convolutions: its window may begin anywhere, and its output has any length.
//!
//! That makes it closed: the derivative with respect to the input is a convolution of
//! the cotangent, which is dilated by the strides, with the reversed kernel; that with
//! respect to the weight is one of the input with the cotangent, strides and dilations
//! exchanged. See Dumoulin and Visin, A guide to convolution arithmetic for deep learning (2016).

use crate::ops::rules::{batching::to_front, builders::plus};
use crate::ops::{Call, Candidates, Cotangents, Decompose, Jvp, Rules, Vjp, Vmap, attributes};
use crate::shape::{self, Shape};
use crate::{
    array::Array, backend::Exec, dtype::Dtype, error::Result, node::Value, scalar::Scalar,
};
use smallvec::{SmallVec, smallvec};
use ultramarine_abi::schema::{ConvolveAttrs, op};

attributes! {
    /// The operation: input `(n, d, h, w, c)`, weight `(o, kd, kh, kw, c / groups)`, output `(n, od, oh,
    /// ow, o)`, all of one floating dtype. Output `p` meets tap `k` of the kernel at `p * stride - low +
    /// k * kernel_dilation` of the dilated input, beyond whose ends are zeros.
    #[derive(Clone, Debug)]
    pub(crate) struct Convolve {
        pub stride: [i64; 3],
        pub low: [i64; 3],
        pub kernel_dilation: [i64; 3],
        pub input_dilation: [i64; 3],
        pub groups: usize,
        pub flip: bool,
    }
}

/// The axes of an array of five, reordered.
fn order(a: &Array, axes: [isize; 5]) -> Result<Array> {
    a.transpose_axes(&axes)
}

/// The array with axis `axis` split into `parts` of equal size.
fn split(a: &Array, axis: usize, parts: usize) -> Result<Array> {
    let mut shape = Shape::from_slice(a.shape());
    shape[axis] /= parts.max(1);
    shape.insert(axis, parts);
    a.reshape(&shape)
}

/// The array with axis `axis` and the next one joined.
fn join(a: &Array, axis: usize) -> Result<Array> {
    let mut shape = Shape::from_slice(a.shape());
    let next = shape.remove(axis + 1);
    shape[axis] *= next;
    a.reshape(&shape)
}

/// The spatial sizes of an array of five axes.
fn sizes(shape: &[usize]) -> [usize; 3] {
    [shape[1], shape[2], shape[3]]
}

impl Convolve {
    /// The convolution of two arrays, with this many outputs along the spatial axes.
    pub fn of(&self, x: &Array, w: &Array, output: [usize; 3]) -> Result<Array> {
        let [d, h, k] = output;
        let shape: Shape = smallvec![x.shape()[0], d, h, k, w.shape()[0]];
        shape::check("conv", &shape)?;
        if shape.contains(&0) || x.size() == 0 || w.size() == 0 {
            return Array::zeros(&shape, x.dtype());
        }
        Array::try_of(self.clone(), &[x, w], shape, x.dtype())
    }

    /// The cotangent of an input of the shape of `x`.
    fn to_input(&self, x: &Array, w: &Array, ct: &Array) -> Result<Array> {
        let kernel = sizes(w.shape());
        let back = Convolve {
            stride: self.input_dilation,
            low: [0, 1, 2].map(|i| (kernel[i] as i64 - 1) * self.kernel_dilation[i] - self.low[i]),
            kernel_dilation: self.kernel_dilation,
            input_dilation: self.stride,
            groups: self.groups,
            flip: !self.flip,
        };
        // Filters and channels change places within each group.
        let w = split(w, 0, self.groups)?.swapaxes(1, 5)?;
        back.of(ct, &join(&w, 0)?, sizes(x.shape()))
    }

    /// The cotangent of a weight of the shape of `w`.
    fn to_weight(&self, x: &Array, w: &Array, ct: &Array) -> Result<Array> {
        let back = Convolve {
            stride: self.kernel_dilation,
            low: self.low,
            kernel_dilation: self.stride,
            input_dilation: self.input_dilation,
            groups: self.groups,
            flip: false,
        };
        // The batch is what is summed over, so it takes the channels' place.
        let x = join(&split(x, 4, self.groups)?.swapaxes(0, 5)?, 4)?;
        let ct = order(ct, [4, 1, 2, 3, 0])?;
        let out = order(&back.of(&x, &ct, sizes(w.shape()))?, [4, 1, 2, 3, 0])?;
        if self.flip { out.flip(Some(&[1, 2, 3])) } else { Ok(out) }
    }
}

impl Rules for Convolve {
    fn name(&self) -> &'static str {
        "convolve"
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let lists = [self.stride, self.low, self.kernel_dilation, self.input_dilation];
        let scalars: SmallVec<[Scalar; 12]> =
            lists.iter().flatten().map(|v| Scalar::from_i64(Dtype::Int64, *v)).collect();
        call.run(exec, op::CONVOLVE, &ConvolveAttrs::new(self.flip as u32), &scalars)
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        super::decompose::candidates(self, d, candidates);
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let (x, w, ct) = (&v.primals[0], &v.primals[1], v.cotangent);
        let input = v.wanted[0].then(|| self.to_input(x, w, ct)).transpose()?;
        let weight = v.wanted[1].then(|| self.to_weight(x, w, ct)).transpose()?;
        Ok(smallvec![input, weight])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let (x, w, output) = (&j.primals[0], &j.primals[1], sizes(j.output.shape()));
        let input = j.tangents[0].as_ref().map(|t| self.of(t, w, output)).transpose()?;
        let weight = j.tangents[1].as_ref().map(|t| self.of(x, t, output)).transpose()?;
        plus(input, weight)
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let (x, w, output) = (&v.inputs[0], &v.inputs[1], sizes(v.shape));
        Ok(match (v.axes[0], v.axes[1]) {
            (None, None) => (self.of(x, w, output)?, None),
            // More images of the batch.
            (Some(i), None) => {
                let out = self.of(&join(&to_front(x, i)?, 0)?, w, output)?;
                (split(&out, 0, v.size)?, Some(0))
            }
            // More filters of each group.
            (None, Some(j)) => {
                let w = split(&to_front(w, j)?, 1, self.groups)?.swapaxes(0, 1)?;
                let out = self.of(x, &join(&join(&w, 0)?, 0)?, output)?;
                let out = split(&split(&out, 4, self.groups)?, 5, v.size)?.swapaxes(4, 5)?;
                (join(&out, 5)?, Some(4))
            }
            // More groups.
            (Some(i), Some(j)) => {
                let x = join(&x.moveaxis(i as isize, 4)?, 4)?;
                let w = join(&to_front(w, j)?, 0)?;
                let many = Convolve { groups: self.groups * v.size, ..self.clone() };
                (split(&many.of(&x, &w, output)?, 4, v.size)?, Some(4))
            }
        })
    }
}
