//! Factorisations of matrices and triangular solves, over batches. Each task copies matrices with any strides into
//! columns, calls `ultramarine_linalg` to factor them, and copies the results out. For some operations, large matrices
//! are factored by matrix products ([`blocked`]).

mod blocked;
mod factorize;
mod matrix;

use crate::dtype::DType;
use crate::kernel::{Args, Context, Kernel, Op, Prepared, Refusal, Signature, View};
use crate::par::{Par, Shared};
use crate::strided::{Nest, TASK, ranges};
use factorize::Factorization;
use matrix::{Plane, Scratch};
use std::marker::PhantomData;
use std::sync::Mutex;
use ultramarine_abi::schema::{TriangleAttrs, op};
use ultramarine_linalg::c32;

/// Most tensors that a factorisation has.
const TENSORS: usize = 4;

/// Number of matrices from which on a batch of large matrices is distributed over the threads.
const FEW: usize = 8;

/// The operations of the family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
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

/// An output: its dtype as a function of the operand's, and the number of its axes after the batch.
type Output = (fn(DType) -> DType, usize);

impl Operation {
    fn of(id: u32) -> Option<Operation> {
        Some(match id {
            op::CHOLESKY => Operation::Cholesky,
            op::LU => Operation::Lu,
            op::QR => Operation::Qr,
            op::SVD => Operation::Svd,
            op::SINGULAR_VALUES => Operation::SingularValues,
            op::EIGH => Operation::Eigh,
            op::EIGVALSH => Operation::EigvalsH,
            op::EIG => Operation::Eig,
            op::EIGVALS => Operation::Eigvals,
            op::SOLVE_TRIANGULAR => Operation::Solve,
            _ => return None,
        })
    }

    fn inputs(self) -> usize {
        if self == Operation::Solve { 2 } else { 1 }
    }

    fn outputs(self) -> &'static [Output] {
        const SAME: fn(DType) -> DType = |d| d;
        const REAL: fn(DType) -> DType = |d| if d == DType::C64 { DType::F32 } else { d };
        const COMPLEX: fn(DType) -> DType = |_| DType::C64;
        const INDEX: fn(DType) -> DType = |_| DType::U32;
        match self {
            Operation::Cholesky | Operation::Solve => &[(SAME, 2)],
            Operation::Lu => &[(SAME, 2), (INDEX, 1), (INDEX, 1)],
            Operation::Qr => &[(SAME, 2), (SAME, 2)],
            Operation::Svd => &[(SAME, 2), (REAL, 1), (SAME, 2)],
            Operation::SingularValues | Operation::EigvalsH => &[(REAL, 1)],
            Operation::Eigh => &[(REAL, 1), (SAME, 2)],
            Operation::Eig => &[(COMPLEX, 1), (COMPLEX, 2)],
            Operation::Eigvals => &[(COMPLEX, 1)],
        }
    }

    /// Checks the shapes after the batch axes: the operands are `(m, n)` and `(_, right)`. An SVD can be full.
    fn fits(self, [m, n]: [i64; 2], right: [i64; 2], outputs: &[&[i64]]) -> bool {
        let k = m.min(n);
        let square = m == n;
        match self {
            Operation::Cholesky => square && outputs == [[n, n]],
            Operation::Solve => square && right[0] == n && outputs == [right],
            Operation::Lu => outputs == [&[m, n][..], &[k], &[m]],
            Operation::Qr => outputs == [[m, k], [k, n]],
            Operation::Svd => {
                outputs == [&[m, m][..], &[k], &[n, n]] || outputs == [&[m, k][..], &[k], &[k, n]]
            }
            Operation::SingularValues => outputs == [[k]],
            Operation::Eigh | Operation::Eig => square && outputs == [&[n][..], &[n, n]],
            Operation::EigvalsH | Operation::Eigvals => square && outputs == [[n]],
        }
    }
}

/// Prepares an operation of the family.
pub fn prepare_op(op: &Op, signature: &Signature<'_>) -> Prepared {
    let upper = match op.id {
        op::CHOLESKY | op::EIGH | op::EIGVALSH | op::SOLVE_TRIANGULAR => {
            op.attributes::<TriangleAttrs>()?.upper != 0
        }
        _ => false,
    };
    prepare(op.id, upper, signature)
}

/// Prepares a factorisation; `upper` is its attribute, if it has one.
pub fn prepare(id: u32, upper: bool, signature: &Signature<'_>) -> Prepared {
    let operation = Operation::of(id).ok_or(Refusal::Unsupported)?;
    let (inputs, outputs) = (signature.inputs, signature.outputs);
    let expected = operation.outputs();
    if inputs.len() != operation.inputs() || outputs.len() != expected.len() {
        return Err(Refusal::Invalid("a decomposition with other operands or results".into()));
    }
    let (dtype, ndim) = (inputs[0].dtype, inputs[0].ndim);
    let fits = ndim >= 2
        && inputs.iter().all(|i| (i.dtype, i.ndim) == (dtype, ndim))
        && outputs
            .iter()
            .zip(expected)
            .all(|(o, (of, axes))| (o.dtype, o.ndim) == (of(dtype), ndim - 2 + axes));
    ensure!(fits, "a decomposition's ranks or dtypes do not fit");
    Ok(match dtype {
        DType::F32 => Box::new(Factorize::<f32>(operation, upper, PhantomData)),
        DType::F64 => Box::new(Factorize::<f64>(operation, upper, PhantomData)),
        DType::C64 => Box::new(Factorize::<c32>(operation, upper, PhantomData)),
        _ => return Err(Refusal::Unsupported),
    })
}

struct Factorize<T>(Operation, bool, PhantomData<T>);

/// The last axes of a tensor, behind the batch.
fn last<'a>(view: &View<'a>, batch: usize) -> &'a [i64] {
    &view.shape[batch..]
}

impl<T: blocked::Element> Kernel for Factorize<T> {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let Factorize(operation, upper, _) = *self;
        let views: Vec<View<'_>> = args.inputs.iter().chain(args.outputs).copied().collect();
        let a = &views[0];
        let batch = a.shape.len() - 2;
        let pair = |v: &View<'_>| [v.shape[batch], v.shape[batch + 1]];
        let outputs: Vec<&[i64]> = args.outputs.iter().map(|o| last(o, batch)).collect();
        let right = if operation == Operation::Solve { pair(&views[1]) } else { [0, 0] };
        if !operation.fits(pair(a), right, &outputs)
            || views.iter().any(|v| v.shape[..batch] != a.shape[..batch])
        {
            return Err("a decomposition's shapes do not fit".into());
        }
        let full = operation == Operation::Svd
            && outputs[0][1] == outputs[0][0]
            && outputs[2][0] == outputs[2][1];
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
        // If there are only a few large matrices, they are factored one after the other, each on all threads.
        let large = blocked::serves::<T>(operation, m, n, right[1] as usize);
        let par = if large && nest.size() < FEW { Par::default() } else { cx.par };
        ranges(par, nest.size(), TASK / work.max(1), |range| {
            // SAFETY: the planes live until all tasks are done, and are only read.
            let planes = unsafe { &*planes.get() };
            let mut scratch = Scratch::<T>::default();
            nest.rows(range, |position, at, count| {
                for i in 0..count {
                    let place = |k: usize| planes[k].moved(at[k] + i as isize * steps[k]);
                    let planes = std::array::from_fn(place);
                    let factorization = Factorization { operation, upper, full, planes: &planes };
                    // SAFETY: the matrices are the tensors', whose shapes were compared;
                    // tasks have matrices of their own.
                    if let Err(text) = unsafe { factorization.run(cx, &mut scratch) } {
                        let at = position + i;
                        let mut failed =
                            failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                        // Report the first matrix that fails, whatever the number of threads.
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
