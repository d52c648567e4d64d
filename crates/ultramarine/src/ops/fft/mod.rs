//! The operation of a one-dimensional Fourier transform along an axis. The public functions, which apply it, are in
//! [`crate::fft`].

mod decompose;

use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Jvp, Rules, Vjp, Vmap, attributes, draft,
};
use crate::{
    array::Array, backend::Exec, dtype::Dtype, error::Result, node::Value, scalar::Scalar,
    shape::Shape,
};
use smallvec::smallvec;
use ultramarine_abi::schema::{FftAttrs, fft, op};

attributes! {
    /// A transform of complex64, or from or to float32, scaled by a factor.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Transform {
        /// A code of [`fft`].
        pub code: u32,
        pub axis: usize,
        /// The transform's length: the size of its operand, or for a transform back to real numbers the size of its
        /// result.
        pub n: usize,
        pub scale: f64,
    }
}

/// Number of stored elements of a spectrum of length `n`. The remaining elements follow from its symmetry.
pub(crate) fn half(n: usize) -> usize {
    n / 2 + 1
}

impl Transform {
    /// Transforms `a`, which has the dtype and size that the code requires.
    pub fn of(self, a: &Array) -> Result<Array> {
        let mut shape = Shape::from_slice(a.shape());
        shape[self.axis] = if self.code == fft::REAL { half(self.n) } else { self.n };
        let real = self.code == fft::REAL_BACKWARD;
        let dtype = if real { Dtype::Float32 } else { Dtype::Complex64 };
        Array::try_of(self, &[a], shape, dtype)
    }

    /// The transform of the same kind and factor in the opposite direction.
    fn back(self) -> Transform {
        let code = match self.code {
            fft::FORWARD => fft::BACKWARD,
            fft::BACKWARD => fft::FORWARD,
            fft::REAL => fft::REAL_BACKWARD,
            _ => fft::REAL,
        };
        Transform { code, ..self }
    }

    /// Multiplies half of a spectrum by `factor`, except the elements that are their own mirror images.
    fn weighted(&self, a: &Array, factor: f32) -> Result<Array> {
        let mut weights = vec![factor; half(self.n)];
        weights[0] = 1.0;
        if self.n.is_multiple_of(2) {
            weights[self.n / 2] = 1.0;
        }
        let mut shape = Shape::from_elem(1, a.ndim());
        shape[self.axis] = weights.len();
        a.multiply(&Array::from_slice(&weights, &shape)?)
    }
}

impl Rules for Transform {
    fn name(&self) -> &'static str {
        "fft"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([(from, _)], (to, _))) = node.of() else { return false };
        let sizes = match self.code {
            fft::REAL => [self.n, half(self.n)],
            fft::REAL_BACKWARD => [half(self.n), self.n],
            _ => [self.n; 2],
        };
        self.n > 0
            && node.follows(op::FFT, Some(self.code), &[])
            && draft::agree_but(self.axis, from, to)
            && [from[self.axis], to[self.axis]] == sizes
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let attrs = FftAttrs::new(self.code, self.axis as u32);
        call.run(exec, op::FFT, &attrs, &[Scalar::from_f64(Dtype::Float64, self.scale)])
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        decompose::candidates(self, d, candidates);
    }

    /// The adjoint. Half of a spectrum stands for all of it. An element that has a mirror image therefore counts twice
    /// when it is read, and shares what is written to it between two elements.
    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let (ct, back) = (v.cotangent, self.back());
        Ok(smallvec![Some(match self.code {
            fft::REAL => back.of(&self.weighted(ct, 0.5)?)?,
            fft::REAL_BACKWARD => self.weighted(&back.of(ct)?, 2.0)?,
            _ => back.of(ct)?,
        })])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        j.tangents[0].as_ref().map(|t| self.of(t)).transpose()
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let axis = v.axes[0].map_or(self.axis, |at| self.axis + (at <= self.axis) as usize);
        Ok((Transform { axis, ..*self }.of(&v.inputs[0])?, v.axes[0]))
    }
}
