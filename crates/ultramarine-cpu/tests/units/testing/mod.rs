//! Arrays with awkward strides, and a host with threads, for the kernels' tests.

pub mod lanes;

use half::{bf16, f16};
use ultramarine_cpu::dtype::{Bool, DType, Element, c64};
use ultramarine_cpu::kernel::{Args, Context, Desc, Kernel, Prepared, Signature, View};
use ultramarine_cpu::{level::Level, par::Par};
use ultramarine_test_support::Rng;

/// Elements from numbers.
pub trait Sample: Element {
    /// `n` or something as different from other values as the type allows.
    fn sample(n: i64) -> Self;
    /// The bytes.
    fn bits(self) -> u64 {
        let mut bits = 0u64;
        // SAFETY: elements are plain data of at most 8 bytes.
        unsafe { (&raw mut bits as *mut Self).write_unaligned(self) };
        bits
    }
}
macro_rules! samples {
    ($($t:ty, $n:ident => $e:expr;)*) => {$(impl Sample for $t { fn sample($n: i64) -> Self { $e } })*};
}
samples! {
    Bool, n => Bool((n & 1) as u8);
    u8, n => n as u8; u16, n => n as u16; u32, n => n as u32; u64, n => n as u64;
    i8, n => n as i8; i16, n => n as i16; i32, n => n as i32; i64, n => n;
    f16, n => f16::from_f64(n as f64 / 4.0); bf16, n => bf16::from_f64(n as f64 / 4.0);
    f32, n => n as f32 / 4.0; f64, n => n as f64 / 4.0;
    c64, n => c64 { re: (n % 5) as f32, im: (n % 7) as f32 / 2.0 };
}

/// An array with any strides.
#[derive(Clone)]
pub struct Array<T> {
    memory: Vec<T>,
    start: isize,
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
}

impl<T: Element> Array<T> {
    /// With these values in row-major order; unless `plain`, axes are permuted,
    /// some run backwards, and there are gaps.
    pub fn new(shape: &[i64], values: &[T], plain: bool, rng: &mut Rng) -> Self {
        let ndim = shape.len();
        assert_eq!(values.len() as i64, shape.iter().product::<i64>());
        let mut order: Vec<usize> = (0..ndim).collect();
        let (mut gap, mut start) = (1, 0);
        let mut strides = vec![0; ndim];
        if !plain {
            rng.shuffle(&mut order);
            gap = 1 + rng.below(2) as i64;
        }
        let mut step = gap;
        for a in order.into_iter().rev() {
            strides[a] = step;
            step *= shape[a] + if plain { 0 } else { rng.below(2) as i64 };
            if !plain && rng.below(2) == 0 {
                start += (shape[a] - 1) * strides[a];
                strides[a] = -strides[a];
            }
        }
        let memory = vec![T::default(); step.max(1) as usize + 1];
        let mut array = Array { memory, start: start as isize, shape: shape.to_vec(), strides };
        for (i, value) in values.iter().enumerate() {
            let at = array.at(i);
            array.memory[at] = *value;
        }
        array
    }

    /// One value seen everywhere, by strides of zero.
    pub fn broadcast(shape: &[i64], value: T) -> Self {
        Array {
            memory: vec![value],
            start: 0,
            shape: shape.to_vec(),
            strides: vec![0; shape.len()],
        }
    }

    fn at(&self, mut i: usize) -> usize {
        let mut at = self.start as i64;
        for (n, s) in self.shape.iter().zip(&self.strides).rev() {
            at += (i as i64 % n) * s;
            i /= *n as usize;
        }
        at as usize
    }

    /// The values in row-major order.
    pub fn values(&self) -> Vec<T> {
        (0..self.shape.iter().product::<i64>() as usize).map(|i| self.memory[self.at(i)]).collect()
    }

    /// As a kernel sees it.
    pub fn view(&self) -> View<'_> {
        View {
            data: (self.memory.as_ptr() as *mut T).wrapping_offset(self.start) as *mut u8,
            dtype: T::DTYPE,
            shape: &self.shape,
            strides: &self.strides,
        }
    }
}

/// Description for preparing.
pub fn desc(view: &View<'_>) -> Desc {
    Desc { dtype: view.dtype, ndim: view.shape.len(), contiguous: view.is_contiguous() }
}

/// Prepares by `prepare` and runs at `level`, with or without threads.
pub fn run(
    prepare: impl Fn(&Signature<'_>, Level) -> Prepared,
    inputs: &[View<'_>],
    output: &View<'_>,
    level: Level,
    threads: bool,
) -> Result<(), String> {
    run_with(prepare, inputs, output, (level, threads), &[])
}

/// The same with scalars.
pub fn run_with(
    prepare: impl Fn(&Signature<'_>, Level) -> Prepared,
    inputs: &[View<'_>],
    output: &View<'_>,
    (level, threads): (Level, bool),
    scalars: &[[u64; 2]],
) -> Result<(), String> {
    let (ins, outs): (Vec<_>, _) = (inputs.iter().map(desc).collect(), [desc(output)]);
    let kernel: Box<dyn Kernel> = prepare(&Signature { inputs: &ins, outputs: &outs }, level)
        .map_err(|r| format!("{r:?}"))?;
    let par = if threads { Par::new(host()) } else { Par::default() };
    let outputs = [*output];
    // SAFETY: the arrays behind the views are valid, and outputs are arrays of their own.
    unsafe { kernel.run(&Context { par, level }, &Args { inputs, outputs: &outputs, scalars }) }
}

/// A host that runs loops backwards on two threads.
pub fn host() -> ultramarine_abi::HostTable {
    use core::ffi::c_void;
    unsafe extern "C" fn parallel_for(
        _host: *mut c_void,
        count: u64,
        body: ultramarine_abi::ParallelBody,
        context: *mut c_void,
    ) {
        let context = context as usize;
        std::thread::scope(|scope| {
            for thread in 0..2 {
                scope.spawn(move || {
                    for i in (0..count).rev().filter(|i| i % 2 == thread) {
                        // SAFETY: the caller's body, made for any thread.
                        unsafe { body(context as *mut c_void, i) };
                    }
                });
            }
        });
    }
    ultramarine_abi::HostTable {
        size: size_of::<ultramarine_abi::HostTable>() as u32,
        abi_major: 0,
        abi_minor: 0,
        host: core::ptr::null_mut(),
        log: None,
        error_new: None,
        alloc: None,
        free: None,
        parallel_for: Some(parallel_for),
        thread_count: None,
        error_command: None,
    }
}

/// A random shape of `ndim` axes of 1 to `most` elements.
pub fn shape(ndim: usize, most: usize, rng: &mut Rng) -> Vec<i64> {
    (0..ndim).map(|_| 1 + rng.below(most) as i64).collect()
}

/// Position along each axis of the `i`th element in row-major order.
pub fn unravel(mut i: usize, shape: &[i64]) -> Vec<i64> {
    let mut at = vec![0; shape.len()];
    for (at, n) in at.iter_mut().zip(shape).rev() {
        *at = i as i64 % n;
        i /= *n as usize;
    }
    at
}

/// The converse of [`unravel`].
pub fn ravel(at: &[i64], shape: &[i64]) -> usize {
    at.iter().zip(shape).fold(0, |i, (a, n)| i * *n as usize + *a as usize)
}

/// `DType::ALL` (so that `for_dtype!` in tests reads well).
pub fn dtypes() -> [DType; 14] {
    DType::ALL
}
