//! Elementwise functions.

use super::{
    CpuCall,
    blocks::{BLOCK, Lanes, Part},
    store,
};
use crate::{
    dtype::Number,
    error::{Error, Result},
    tensor::{Show, Tensor},
};

/// Memory for a block of elements.
struct Scratch<T>([T; BLOCK]);

impl<T: Number> Scratch<T> {
    fn new() -> Self {
        Self([T::default(); BLOCK])
    }

    /// Returns an operand's elements: in place if they are adjacent, otherwise gathered into this
    /// memory.
    ///
    /// # Safety
    /// There are `length` elements of T, at most [`BLOCK`], at `data` with that stride in bytes.
    /// They do not change as long as the result is used.
    #[inline]
    unsafe fn gather(&mut self, data: *const u8, stride: isize, length: usize) -> &[T] {
        // SAFETY: by this function's contract.
        unsafe {
            if stride == size_of::<T>() as isize {
                return std::slice::from_raw_parts(data.cast(), length);
            }
            if stride == 0 {
                self.0[..length].fill(data.cast::<T>().read());
            } else {
                for (i, to) in self.0[..length].iter_mut().enumerate() {
                    *to = data.offset(i as isize * stride).cast::<T>().read();
                }
            }
        }
        &self.0[..length]
    }
}

/// Writes results to the output.
///
/// # Safety
/// The output has that many elements at `to`, with that stride in bytes, and does not overlap
/// `from`.
#[inline]
unsafe fn put<T: Number>(from: &[T], to: *mut u8, stride: isize, strategy: StoreStrategy) {
    // SAFETY: by this function's contract.
    unsafe {
        if stride != size_of::<T>() as isize {
            for (i, from) in from.iter().enumerate() {
                to.offset(i as isize * stride).cast::<T>().write(*from);
            }
        } else if strategy == StoreStrategy::Streamed {
            store::copy(from.as_ptr().cast(), to, size_of_val(from));
        } else {
            std::ptr::copy_nonoverlapping(from.as_ptr(), to.cast(), from.len());
        }
    }
}

/// How results are stored to the output.
#[derive(Clone, Copy, PartialEq)]
enum StoreStrategy {
    /// The function writes directly to the output.
    Direct,
    /// Through a block on the stack, because the output has gaps or shares memory with an operand.
    Copied,
    /// Through a block on the stack, with stores that bypass the caches.
    Streamed,
}

/// An output, and how results are stored to it.
struct Target {
    tensor: Tensor,
    strategy: StoreStrategy,
}

impl CpuCall<'_> {
    /// Returns the tensors of an elementwise evaluation. Operands are broadcast to the output,
    /// which may have the memory of one of them.
    fn tensors<const N: usize, R: Number>(&mut self) -> Result<([Tensor; N], Target)> {
        if self.n_inputs() != N || self.n_outputs() != 1 {
            return Err(Error::runtime(format!(
                "The function is for {N} operands and one result, and the call has {} and {}. Pass as many.",
                self.n_inputs(),
                self.n_outputs()
            )));
        }
        let all: [usize; N] = std::array::from_fn(|i| i);
        let taken = self.output_taking::<R>(0, &all)?;
        let tensor = taken.output.tensor().clone();
        let mut inputs = Vec::with_capacity(N);
        for i in 0..N {
            let from = &self.input_at(i)?.tensor;
            let Some(strides) = broadcast(from, &tensor.shape) else {
                return Err(Error::runtime(format!(
                    "Operand {i} has shape {} and does not broadcast to the result of shape {}. Pass a shape that does.",
                    Show(&from.shape),
                    Show(&tensor.shape)
                )));
            };
            inputs.push(Tensor { strides, shape: tensor.shape.clone(), ..from.clone() });
        }
        let bytes = tensor.elements() * size_of::<R>();
        let strategy = match taken.from {
            Some(_) => StoreStrategy::Copied,
            None if bytes >= store::FROM => StoreStrategy::Streamed,
            None => StoreStrategy::Direct,
        };
        let inputs = inputs
            .try_into()
            .map_err(|_| Error::runtime("There are no operands. Pass at least one."))?;
        Ok((inputs, Target { tensor, strategy }))
    }
}

/// Returns the strides of a tensor that is broadcast to a larger shape.
fn broadcast(from: &Tensor, shape: &[usize]) -> Option<Vec<isize>> {
    let new = shape.len().checked_sub(from.shape.len())?;
    let stride = |i: usize| match (from.shape[i], shape[i + new]) {
        (n, m) if n == m => Some(from.strides[i]),
        (1, _) => Some(0),
        _ => None,
    };
    let old = (0..from.shape.len()).map(stride);
    std::iter::repeat_n(Some(0), new).chain(old).collect()
}

/// Checks that a tensor's elements are `T`. Those of bool tensors are u8.
fn check<T: Number>(call: &CpuCall<'_>, i: usize) -> Result<()> {
    let got = call.input_dtype(i)?;
    if got == T::DTYPE || (got == crate::Dtype::Bool && T::DTYPE == crate::Dtype::Uint8) {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "The function takes {} and an operand is {got}. Convert it with astype.",
        T::DTYPE
    )))
}

macro_rules! arities {
    ($($map:ident $blocks:ident $n:literal: $($x:ident $t:ident $i:literal),*; $what:literal)*) => {$(
        /// Elementwise evaluations. Operands are broadcast to the output and may have any strides.
        /// If the primitive [`allocates`](crate::Primitive::allocates) and nothing else needs an
        /// operand, the output gets the operand's memory. Large outputs are written with stores
        /// that bypass the caches. All threads work on the loop.
        impl CpuCall<'_> {
            #[doc = concat!("Output 0 is a function of ", $what, ", one by one.")]
            ///
            /// # Errors
            /// Dtypes and numbers of operands and results are others; the function panicked.
            pub fn $map<$($t: Number,)* R: Number>(
                &mut self,
                function: impl Fn($($t),*) -> R + Sync,
            ) -> Result<()> {
                // The slices are arguments, so that the compiler knows that they do not overlap.
                // The function is also compiled for wider vectors. Products and sums are not
                // contracted, so that no result depends on the processor.
                #[inline(always)]
                fn each<$($t: Number,)* R: Number>(
                    function: &impl Fn($($t),*) -> R,
                    $($x: &[$t],)*
                    to: &mut [R],
                ) {
                    let n = to.len();
                    $(let $x = &$x[..n];)*
                    for i in 0..n {
                        to[i] = function($($x[i]),*);
                    }
                }
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx2")]
                fn wide<$($t: Number,)* R: Number>(
                    function: &impl Fn($($t),*) -> R,
                    $($x: &[$t],)*
                    to: &mut [R],
                ) {
                    each(function, $($x,)* to);
                }
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the feature is there.
                    return self.$blocks(|$($x: &[$t],)* to: &mut [R]| unsafe {
                        wide(&function, $($x,)* to);
                    });
                }
                self.$blocks(|$($x: &[$t],)* to: &mut [R]| each(&function, $($x,)* to))
            }

            #[doc = concat!("Output 0 is a function of ", $what, ", block by block: it gets slices of one length and writes the \
                results to the last one, all of it. Each thread calls it many times.")]
            ///
            /// # Errors
            /// Dtypes and numbers of operands and results are others; the function panicked.
            pub fn $blocks<$($t: Number,)* R: Number>(
                &mut self,
                function: impl Fn($(&[$t],)* &mut [R]) + Sync,
            ) -> Result<()> {
                $(check::<$t>(self, $i)?;)*
                let (inputs, target) = self.tensors::<$n, R>()?;
                let [$($x),*] = &inputs;
                let lanes = Lanes::new([$($x,)* &target.tensor]);
                let strategy = if lanes.is_dense($n) { target.strategy } else { StoreStrategy::Copied };
                let scratch = || ($(Scratch::<$t>::new(),)* Scratch::<R>::new());
                lanes.run(scratch, |($($x,)* result_scratch), Part { data, strides, length }| {
                    // SAFETY: the parts lie in the tensors, whose dtypes were checked. Operands do
                    // not change while they are read, because the output is elsewhere or (Copied)
                    // is written afterwards.
                    unsafe {
                        $(let $x = $x.gather(data[$i], strides[$i], length);)*
                        if strategy == StoreStrategy::Direct {
                            return function($($x,)* std::slice::from_raw_parts_mut(data[$n].cast(), length));
                        }
                        let results = &mut result_scratch.0[..length];
                        function($($x,)* results);
                        put(results, data[$n], strides[$n], strategy);
                    }
                })
            }
        }
    )*};
}

arities! {
    map1 blocks1 1: x A 0; "an operand's elements"
    map2 blocks2 2: x A 0, y B 1; "two operands' elements"
    map3 blocks3 3: x A 0, y B 1, z C 2; "three operands' elements"
}
