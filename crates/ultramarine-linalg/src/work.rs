//! Scratch memory, and the code around every decomposition.

use crate::Number;
use faer::{
    MatMut, MatRef,
    dyn_stack::{MemStack, StackReq},
};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Scratch memory for decompositions. It grows as needed and is reused by later calls, so that a loop over a batch
/// allocates once.
#[derive(Default)]
pub struct Work {
    bytes: Vec<u8>,
}

impl Work {
    /// Provides the required scratch memory.
    pub(crate) fn stack(&mut self, required: StackReq) -> Result<&mut MemStack, String> {
        let n = required.unaligned_bytes_required();
        self.bytes.try_reserve(n).map_err(|_| {
            format!("no memory for {n} bytes of scratch. Free arrays, or use smaller matrices")
        })?;
        Ok(MemStack::new(self.bytes.spare_capacity_mut()))
    }
}

/// `n` zeros.
pub(crate) fn zeros<T: Copy + Default>(n: usize) -> Result<Vec<T>, String> {
    let mut zeros = Vec::new();
    let failed = |_| {
        format!(
            "no memory for {} bytes of scratch. Free arrays, or use smaller matrices",
            n * size_of::<T>()
        )
    };
    zeros.try_reserve_exact(n).map_err(failed)?;
    zeros.resize(n, T::default());
    Ok(zeros)
}

/// The slice as a matrix.
pub(crate) fn matrix<T>(a: &[T], m: usize, n: usize) -> MatRef<'_, T> {
    MatRef::from_column_major_slice(&a[..m * n], m, n)
}

/// The slice as a matrix.
pub(crate) fn matrix_mut<T>(a: &mut [T], m: usize, n: usize) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_mut(&mut a[..m * n], m, n)
}

/// Calls `f`; a panic becomes an error.
pub(crate) fn guarded<R>(f: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|panic| Err(panic_message(&*panic)))
}

#[cold]
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("the decomposition failed: {}", text.unwrap_or("a panic"))
}

/// [`power_of_two`] for the largest of some elements. An element that is not finite is an error.
pub(crate) fn scale<T: Number>(a: &[T], large: f64) -> Result<f64, String> {
    let mut most = 0.0f64;
    for v in a {
        let [re, im] = v.parts();
        // A maximum would ignore NaN, so check each element.
        if !v.finite() {
            return Err(
                "the matrix has elements that are infinite or NaN. Replace them with nan_to_num"
                    .into(),
            );
        }
        most = most.max(re.abs()).max(im.abs());
    }
    Ok(power_of_two(most, large))
}

/// The power of two by which elements up to `most` have to be multiplied, so that squares beyond `large` or below its
/// inverse neither overflow nor underflow.
pub fn power_of_two(most: f64, large: f64) -> f64 {
    let fine = most == 0.0 || (1.0 / large..=large).contains(&most);
    if fine { 1.0 } else { 0.5f64.powi((most.log2() as i32).clamp(-1000, 1000)) }
}
