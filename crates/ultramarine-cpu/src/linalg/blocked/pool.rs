//! The host's threads and the matrix product, in the form that divide and conquer uses.

use crate::dtype::DType;
use crate::kernel::Context;
use crate::matmul::{self, ops::Ops};
use ultramarine_linalg::{Real, Threads};

/// Threads and products of real numbers.
pub struct Pool<'a> {
    cx: &'a Context,
    ops: Ops,
}

impl<'a> Pool<'a> {
    /// For numbers of a type.
    pub fn new<R: Real>(cx: &'a Context) -> Result<Self, String> {
        let dtype = if size_of::<R>() == 4 { DType::F32 } else { DType::F64 };
        let ops = matmul::ops::ops(dtype, cx.level).ok_or("no product of real matrices")?;
        Ok(Pool { cx, ops })
    }
}

impl<R: Real> Threads<R> for Pool<'_> {
    fn each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        self.cx.par.run(count, body);
    }

    fn product(
        &self,
        [m, n, k]: [usize; 3],
        (c, c_ld): (&mut [R], usize),
        (a, a_ld): (&[R], usize),
        (b, b_ld): (&[R], usize),
    ) {
        let holds = |len: usize, ld: usize, m: usize, n: usize| (n - 1) * ld + m <= len;
        assert!(
            holds(c.len(), c_ld, m, n) && holds(a.len(), a_ld, m, k) && holds(b.len(), b_ld, k, n)
        );
        let size = size_of::<R>() as isize;
        let rows = |ld: usize| [ld as isize * size, size];
        // Compute the transposed product, in which columns are rows of adjacent elements.
        let a = (a.as_ptr() as *mut u8, rows(a_ld));
        let b = (b.as_ptr() as *mut u8, rows(b_ld));
        let c = (c.as_mut_ptr().cast(), rows(c_ld));
        // SAFETY: the slices hold the matrices; c is borrowed for this call alone, so that nothing overlaps it.
        unsafe { matmul::product(self.cx, &self.ops, [n, m, k], [b, a, c], false) }
    }
}
