//! Random tensors against an independent walk over their memory.

use super::foreign::{Memory, Tensor};
use super::own_stream;
use ultramarine::interchange::{ExportOptions, ImportOptions};
use ultramarine::{Array, Dtype, Result};
use ultramarine_test_support::Rng;

/// The bytes of the elements in row-major order: one index after the other.
fn walk(memory: &Memory, first: usize, size: usize, shape: &[i64], strides: &[i64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let count: i64 = shape.iter().product();
    for mut n in 0..count {
        let mut place = first as i64;
        for (extent, stride) in shape.iter().zip(strides).rev() {
            place += n % extent * stride * size as i64;
            n /= extent;
        }
        for byte in 0..size {
            bytes.push(memory.read::<u8>(place as usize + byte));
        }
    }
    bytes
}

#[test]
fn any_strides_of_any_dtype() -> Result<()> {
    let _scope = own_stream()?;
    let mut random = Rng::new(1);
    for case in 0..600 {
        let dtype = Dtype::ALL[random.below(Dtype::ALL.len())];
        let size = dtype.size();
        let ndim = random.below(6);
        let shape: Vec<i64> = (0..ndim).map(|_| random.below(5) as i64).collect();
        let strides: Vec<i64> = (0..ndim).map(|_| random.below(13) as i64 - 6).collect();
        // All of it, from the lowest to the highest element, in the memory, and some more around.
        let reach = |negative: bool| -> i64 {
            shape
                .iter()
                .zip(&strides)
                .filter(|(n, s)| **n > 0 && (**s < 0) == negative)
                .map(|(n, s)| (n - 1) * s)
                .sum()
        };
        let odd = if random.below(4) == 0 { random.below(size) } else { 0 };
        let first = odd + size * (random.below(3) + reach(true).unsigned_abs() as usize);
        let bytes = first + size * (reach(false) as usize + 1);
        let fill: Vec<u8> = (0..bytes)
            .map(|_| if dtype == Dtype::Bool { random.below(2) } else { random.below(256) } as u8)
            .collect();
        let memory = Memory::new(&fill);
        let start = random.below(first + 1);
        let tensor = Tensor::new(&memory, dtype, &shape)
            .data(memory.at(start))
            .offset(first - start)
            .strides(&strides);
        let wanted = walk(&memory, first, size, &shape, &strides);
        for copy in [None, Some(true)] {
            let (made, count) = tensor.make();
            let x = Array::from_dlpack_with(made, ImportOptions { device: None, copy })?;
            let same = |array: &Array| -> Result<()> {
                array.with_bytes(|b| assert_eq!(b, wanted, "case {case}: {shape:?} {strides:?}"))
            };
            same(&x)?;
            same(&Array::from_dlpack(x.to_dlpack()?)?)?;
            let options = ExportOptions { copy: Some(true), ..ExportOptions::default() };
            same(&Array::from_dlpack(x.to_dlpack_with(options)?)?)?;
            same(&x.flip(None)?.transpose()?.contiguous().transpose()?.flip(None)?)?;
            drop(x);
            assert_eq!(count.get(), 1, "case {case}");
        }
    }
    Ok(())
}
