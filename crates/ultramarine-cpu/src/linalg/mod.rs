//! Decompositions of matrices, over batches: each task copies matrices of any strides into columns, has
//! `ultramarine_linalg` decompose them, and copies the results out.

mod matrix;
mod ops;
#[cfg(test)]
mod tests;

use crate::{
    dtype::DType,
    kernel::{Args, Context, Kernel, Prepared, Refusal, Signature, View},
    par::Shared,
    strided::{Nest, TASK, ranges},
};
use matrix::{Plane, Scratch};
use std::marker::PhantomData;
use std::sync::Mutex;
use ultramarine_abi::schema::op;
use ultramarine_linalg::{Scalar, c32};

/// Most tensors that a decomposition has.
const TENSORS: usize = 4;

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Cholesky,
    Lu,
    Qr,
    Svd,
    SingularValues,
    Eigh,
    EigvalsH,
    Eig,
    Eigvals,
    Solve,
}

/// How an output's dtype comes from the operand's, and how many axes it has behind the batch.
type Output = (fn(DType) -> DType, usize);

impl What {
    fn of(id: u32) -> Option<What> {
        Some(match id {
            op::CHOLESKY => What::Cholesky,
            op::LU => What::Lu,
            op::QR => What::Qr,
            op::SVD => What::Svd,
            op::SINGULAR_VALUES => What::SingularValues,
            op::EIGH => What::Eigh,
            op::EIGVALSH => What::EigvalsH,
            op::EIG => What::Eig,
            op::EIGVALS => What::Eigvals,
            op::SOLVE_TRIANGULAR => What::Solve,
            _ => return None,
        })
    }

    fn inputs(self) -> usize {
        if self == What::Solve { 2 } else { 1 }
    }

    fn outputs(self) -> &'static [Output] {
        const SAME: fn(DType) -> DType = |d| d;
        const REAL: fn(DType) -> DType = |d| if d == DType::C64 { DType::F32 } else { d };
        const COMPLEX: fn(DType) -> DType = |_| DType::C64;
        const INDEX: fn(DType) -> DType = |_| DType::U32;
        match self {
            What::Cholesky | What::Solve => &[(SAME, 2)],
            What::Lu => &[(SAME, 2), (INDEX, 1), (INDEX, 1)],
            What::Qr => &[(SAME, 2), (SAME, 2)],
            What::Svd => &[(SAME, 2), (REAL, 1), (SAME, 2)],
            What::SingularValues | What::EigvalsH => &[(REAL, 1)],
            What::Eigh => &[(REAL, 1), (SAME, 2)],
            What::Eig => &[(COMPLEX, 1), (COMPLEX, 2)],
            What::Eigvals => &[(COMPLEX, 1)],
        }
    }

    /// Shapes behind the batch: of the operands `(m, n)` and `(_, right)`. An SVD is `full` or not.
    fn fits(self, [m, n]: [i64; 2], right: [i64; 2], outputs: &[&[i64]]) -> bool {
        let k = m.min(n);
        let square = m == n;
        match self {
            What::Cholesky => square && outputs == [[n, n]],
            What::Solve => square && right[0] == n && outputs == [right],
            What::Lu => outputs == [&[m, n][..], &[k], &[m]],
            What::Qr => outputs == [[m, k], [k, n]],
            What::Svd => {
                outputs == [&[m, m][..], &[k], &[n, n]] || outputs == [&[m, k][..], &[k], &[k, n]]
            }
            What::SingularValues => outputs == [[k]],
            What::Eigh | What::Eig => square && outputs == [&[n][..], &[n, n]],
            What::EigvalsH | What::Eigvals => square && outputs == [[n]],
        }
    }
}

/// Prepares a decomposition; `upper` is its attribute, if it has one.
pub fn prepare(id: u32, upper: bool, signature: &Signature<'_>) -> Prepared {
    let what = What::of(id).ok_or(Refusal::Unsupported)?;
    let (inputs, outputs) = (signature.inputs, signature.outputs);
    let expected = what.outputs();
    if inputs.len() != what.inputs() || outputs.len() != expected.len() {
        return Err(Refusal::Invalid("a decomposition with other operands or results".into()));
    }
    let (dtype, ndim) = (inputs[0].dtype, inputs[0].ndim);
    let fits = ndim >= 2
        && inputs.iter().all(|i| (i.dtype, i.ndim) == (dtype, ndim))
        && outputs
            .iter()
            .zip(expected)
            .all(|(o, (of, axes))| (o.dtype, o.ndim) == (of(dtype), ndim - 2 + axes));
    if !fits {
        return Err(Refusal::Invalid("a decomposition's ranks or dtypes do not fit".into()));
    }
    Ok(match dtype {
        DType::F32 => Box::new(Decomposition::<f32>(what, upper, PhantomData)),
        DType::F64 => Box::new(Decomposition::<f64>(what, upper, PhantomData)),
        DType::C64 => Box::new(Decomposition::<c32>(what, upper, PhantomData)),
        _ => return Err(Refusal::Unsupported),
    })
}

struct Decomposition<T>(What, bool, PhantomData<T>);

/// The last axes of a tensor, behind the batch.
fn last<'a>(view: &View<'a>, batch: usize) -> &'a [i64] {
    &view.shape[batch..]
}

impl<T: Scalar> Kernel for Decomposition<T> {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let Decomposition(what, upper, _) = *self;
        let views: Vec<View<'_>> = args.inputs.iter().chain(args.outputs).copied().collect();
        let a = &views[0];
        let batch = a.shape.len() - 2;
        let pair = |v: &View<'_>| [v.shape[batch], v.shape[batch + 1]];
        let outputs: Vec<&[i64]> = args.outputs.iter().map(|o| last(o, batch)).collect();
        let right = if what == What::Solve { pair(&views[1]) } else { [0, 0] };
        if !what.fits(pair(a), right, &outputs)
            || views.iter().any(|v| v.shape[..batch] != a.shape[..batch])
        {
            return Err("a decomposition's shapes do not fit".into());
        }
        let full =
            what == What::Svd && outputs[0][1] == outputs[0][0] && outputs[2][0] == outputs[2][1];
        let nest = Nest::<TENSORS>::new((0..batch).map(|axis| {
            let stride = |i: usize| views.get(i).map_or(0, |v: &View<'_>| v.strides[axis]);
            (a.shape[axis], std::array::from_fn(stride))
        }));
        let planes: [Plane; TENSORS] =
            std::array::from_fn(|i| views.get(i).map_or(Plane::NONE, |v| Plane::new(v, batch)));
        let planes = Shared(&raw const planes as *mut [Plane; TENSORS]);
        let steps = nest.inner().1;
        let [m, n] = pair(a).map(|n| n as usize);
        let work = m * n * m.min(n).max(right[1] as usize);
        let failed: Mutex<Option<(usize, String)>> = Mutex::new(None);
        ranges(cx.par, nest.size(), TASK / work.max(1), |range| {
            // SAFETY: the planes live until all tasks are done, and are only read.
            let planes = unsafe { &*planes.get() };
            let mut scratch = Scratch::<T>::default();
            nest.rows(range, |position, at, count| {
                for i in 0..count {
                    let place = |k: usize| planes[k].moved(at[k] + i as isize * steps[k]);
                    let planes = std::array::from_fn(place);
                    let job = ops::Job { what, upper, full, planes: &planes };
                    // SAFETY: the matrices are the tensors', whose shapes were compared;
                    // tasks have matrices of their own.
                    if let Err(text) = unsafe { job.run(&mut scratch) } {
                        let at = position + i;
                        let mut failed =
                            failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        // The first matrix that fails, however many threads there are.
                        if failed.as_ref().is_none_or(|(other, _)| at < *other) {
                            *failed = Some((at, text));
                        }
                    }
                }
            });
        });
        let failed = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        match failed {
            None => Ok(()),
            Some((_, text)) if nest.size() == 1 => Err(text),
            Some((at, text)) => Err(format!("matrix {at} of {}: {text}", nest.size())),
        }
    }
}
