//! Requests of `prepare`, with decoded tensors.

use super::{Dtype, Failure, Plain, Request, Result};
use crate::{MAX_NDIM, TensorDesc, layout, read_sized, schema};

/// A tensor in a request of `prepare`: dtype, rank and layout, without sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Desc {
    /// Element type.
    pub dtype: Dtype,
    /// Rank.
    pub ndim: usize,
    /// True if the tensor is row-major without gaps. Otherwise it may have any strides.
    pub contiguous: bool,
}

impl Desc {
    /// Decodes a description.
    ///
    /// # Errors
    /// [`Failure::unsupported`] for a dtype that the contract does not have, [`Failure::invalid`]
    /// for a rank that it does not have.
    pub fn of(desc: &TensorDesc) -> Result<Self> {
        let dtype = Dtype::of(desc.dtype).ok_or_else(|| {
            Failure::unsupported(format!("this backend does not know dtype {:?}", desc.dtype))
        })?;
        let ndim = usize::try_from(desc.ndim).ok().filter(|n| *n <= MAX_NDIM);
        let ndim = ndim.ok_or_else(|| {
            Failure::invalid(format!("a tensor has rank {}, above the maximum", desc.ndim))
        })?;
        Ok(Self { dtype, ndim, contiguous: desc.layout == layout::CONTIGUOUS })
    }

    /// Decodes at most `most` descriptions of an optional interface.
    ///
    /// # Safety
    /// `first` is NULL or points at `n` descriptions, each as large as the first one says.
    pub unsafe fn list(first: *const TensorDesc, n: u32, most: usize) -> Result<Vec<Self>> {
        if first.is_null() {
            return Err(Failure::invalid("tensor descriptions are NULL"));
        }
        if n as usize > most {
            return Err(Failure::unsupported(format!(
                "there are {n} tensors, above the maximum of {most}"
            )));
        }
        // SAFETY: by this function's contract: each begins with its size.
        let stride = unsafe { first.cast::<u32>().read_unaligned() } as usize;
        let one = |i: usize| {
            let at = first.cast::<u8>().wrapping_add(i * stride).cast::<TensorDesc>();
            // SAFETY: as above.
            let desc = unsafe { read_sized(at) };
            desc.ok_or_else(|| Failure::invalid("a tensor description is NULL"))
                .and_then(|d| Self::of(&d))
        };
        (0..n as usize).map(one).collect()
    }
}

/// A request of `prepare` with decoded tensors, and the device that it is for.
pub struct OpRequest<'a, D> {
    /// The device.
    pub device: &'a D,
    /// A constant of [`schema::op`].
    pub op: schema::OpId,
    /// Inputs.
    pub inputs: Vec<Desc>,
    /// Outputs.
    pub outputs: Vec<Desc>,
    request: &'a Request<'a>,
}

impl<'a, D> OpRequest<'a, D> {
    /// Decodes a request.
    ///
    /// # Errors
    /// As [`Desc::of`], for the first tensor that is wrong.
    pub fn of(device: &'a D, request: &'a Request<'a>) -> Result<Self> {
        let decode = |list: &[TensorDesc]| list.iter().map(Desc::of).collect::<Result<Vec<_>>>();
        let (inputs, outputs) = (decode(&request.inputs)?, decode(&request.outputs)?);
        Ok(Self { device, op: request.op, inputs, outputs, request })
    }

    /// Returns a request for an operation without attributes that is a part of this one.
    pub fn part(&self, op: schema::OpId, inputs: Vec<Desc>, outputs: Vec<Desc>) -> Self {
        Self { op, inputs, outputs, ..*self }
    }

    /// Returns the operation's attributes.
    ///
    /// # Errors
    /// As [`Request::attributes`].
    pub fn attributes<A: Plain>(&self) -> Result<A> {
        self.request.attributes()
    }

    /// Returns the description of input `i`.
    ///
    /// # Errors
    /// [`Failure::invalid`] if there is no such input.
    pub fn input(&self, i: usize) -> Result<Desc> {
        let found = self.inputs.get(i).copied();
        found.ok_or_else(|| Failure::invalid(format!("the request has no input {i}")))
    }

    /// Returns the description of output `i`.
    ///
    /// # Errors
    /// [`Failure::invalid`] if there is no such output.
    pub fn output(&self, i: usize) -> Result<Desc> {
        let found = self.outputs.get(i).copied();
        found.ok_or_else(|| Failure::invalid(format!("the request has no output {i}")))
    }

    /// Checks that there are `inputs` inputs, and that each has output 0's rank.
    ///
    /// # Errors
    /// [`Failure::invalid`] otherwise.
    pub fn elementwise(&self, inputs: usize) -> Result<()> {
        let rank = self.output(0)?.ndim;
        match self.inputs.len() == inputs && self.inputs.iter().all(|d| d.ndim == rank) {
            true => Ok(()),
            false => Err(Failure::invalid(format!(
                "there are {} inputs of ranks {:?}, expected {inputs} of the output's rank {rank}",
                self.inputs.len(),
                self.inputs.iter().map(|d| d.ndim).collect::<Vec<_>>()
            ))),
        }
    }

    /// Makes the refusal of an operation's code, or with `None` of the whole operation.
    pub fn unknown(&self, code: Option<u32>) -> Failure {
        let row = schema::find(self.op);
        let name = row.map_or("", |row| row.name);
        let code = row.zip(code).and_then(|(row, code)| row.code(code));
        let code = code.map_or(String::new(), |code| format!(" {}", code.name));
        Failure::unsupported(format!("this backend does not know op {} {name}{code}", self.op))
    }
}

/// Returns the strides of a row-major tensor, in elements.
pub fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = strides[i] * shape[i];
    }
    strides
}

/// Returns true for the strides of a row-major tensor. Strides of axes of size 1 do not matter.
pub fn is_row_major(shape: &[i64], strides: &[i64]) -> bool {
    let mut step = 1;
    for (n, stride) in shape.iter().zip(strides).rev() {
        if *n != 1 && *stride != step {
            return false;
        }
        step *= n;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_major_strides_are_told_from_others() {
        assert_eq!(row_major(&[2, 3, 4]), [12, 4, 1]);
        assert!(is_row_major(&[2, 3, 4], &[12, 4, 1]) && is_row_major(&[], &[]));
        // The first axis has size 1, so its stride does not matter.
        assert!(is_row_major(&[1, 3], &[7, 1]));
        assert!(!is_row_major(&[2, 3], &[1, 2]) && !is_row_major(&[2, 3], &[4, 1]));
    }
}
