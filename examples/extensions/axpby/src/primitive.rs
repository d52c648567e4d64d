//! The operation: its types, its derivatives, its batches.

use crate::{cpu, gpu};
use std::fmt;
use ultramarine_extension::{
    Array, AttributeReader, Attributes, CpuCall, Derivatives, Dtype, Error, GpuCall, Jvp, Place,
    Primitive, Restore, Result, TensorType, Vjp, Vmap, apply_one, broadcast_arrays,
};

/// What is computed with.
pub const DTYPES: [Dtype; 5] =
    [Dtype::Float16, Dtype::Bfloat16, Dtype::Float32, Dtype::Float64, Dtype::Complex64];

/// alpha * x + beta * y, of two arrays of one shape and dtype.
#[derive(Clone, Debug)]
pub struct Axpby {
    /// Factor of the first operand.
    pub alpha: f64,
    /// Factor of the second operand.
    pub beta: f64,
}

impl Axpby {
    fn of(&self, x: &Array, y: &Array) -> Result<Array> {
        apply_one(self.clone(), &[x, y], Place::Default)
    }
}

impl Primitive for Axpby {
    fn name(&self) -> &str {
        "axpby"
    }

    fn attributes(&self) -> Attributes {
        Attributes::new().float(self.alpha).float(self.beta)
    }

    /// The result may have the memory of an operand that nobody else needs.
    fn allocates(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>> {
        let [x, y] = inputs else {
            return Err(Error::value(format!("[axpby] takes 2 arrays, got {}.", inputs.len())));
        };
        if x != y {
            return Err(Error::value(format!("[axpby] takes arrays of one type, got {x}, {y}.")));
        }
        if !DTYPES.contains(&x.dtype) {
            return Err(Error::dtype("axpby", x.dtype, &DTYPES));
        }
        Ok(vec![x.clone()])
    }

    fn eval_cpu(&self, call: &mut CpuCall<'_>) -> Result<()> {
        cpu::eval(self, call)
    }

    fn eval_gpu(&self, call: &mut GpuCall<'_>) -> Result<()> {
        gpu::eval(self, call)
    }

    /// The same by ordinary operations, for devices without a kernel.
    fn compose(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        let (x, y) = ((&inputs[0] * self.alpha)?, (&inputs[1] * self.beta)?);
        Ok(vec![(&x + &y)?])
    }

    /// It is linear: a tangent of the result is the same combination of the operands' tangents.
    fn jvp(&self, of: &Jvp<'_>) -> Derivatives {
        Ok(vec![match [&of.tangents[0], &of.tangents[1]] {
            [Some(x), Some(y)] => Some(self.of(x, y)?),
            [Some(x), None] => Some((x * self.alpha)?),
            [None, Some(y)] => Some((y * self.beta)?),
            [None, None] => None,
        }])
    }

    /// The cotangent of each operand is the result's, times its factor.
    fn vjp(&self, of: &Vjp<'_>) -> Derivatives {
        let factors = [self.alpha, self.beta].into_iter().zip(of.wanted);
        factors
            .map(|(factor, wanted)| match &of.cotangents[0] {
                Some(cotangent) if *wanted => Ok(Some((cotangent * factor)?)),
                _ => Ok(None),
            })
            .collect()
    }

    /// It works element by element, so a batch is one axis more.
    fn vmap(&self, of: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        let inputs = of.batch_first()?;
        let both = broadcast_arrays(&[&inputs[0], &inputs[1]])?;
        Ok(vec![(self.of(&both[0], &both[1])?, Some(0))])
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "axpby(alpha={}, beta={})", self.alpha, self.beta)
    }
}

/// For functions in files.
impl Restore for Axpby {
    const NAME: &'static str = "axpby";

    fn restore(version: u32, attributes: &mut AttributeReader<'_>) -> Result<Axpby> {
        match version {
            1 => Ok(Axpby { alpha: attributes.float()?, beta: attributes.float()? }),
            _ => Err(Error::value(format!("there is no version {version} of it"))),
        }
    }
}
