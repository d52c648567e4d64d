//! Tile functions against references, at every level of the machine.

mod accuracy;
mod casts;
mod complex;
mod float64;
mod floats;
mod ints;
mod pair;
mod remainders;
mod tables;

use ultramarine_cpu::dtype::{DType, Element};
use ultramarine_cpu::elementwise::{TileOp, lookup, result_dtype};
use ultramarine_cpu::level::Level;
use ultramarine_test_support::Rng;

/// `op` of `a` and, if it is binary, `b`.
pub(super) fn run<A: Element, D: Element>(level: Level, op: TileOp, a: &[A], b: &[A]) -> Vec<D> {
    assert_eq!(result_dtype(op, A::DTYPE).size(), size_of::<D>());
    let f = lookup(level, op, A::DTYPE)
        .unwrap_or_else(|| panic!("{op:?} of {:?} is missing", A::DTYPE));
    let mut out = vec![D::default(); a.len()];
    let (pa, pb) = (a.as_ptr() as *const u8, b.as_ptr() as *const u8);
    // SAFETY: slices of equal length and of the function's types.
    unsafe { f(out.as_mut_ptr() as *mut u8, pa, pb, std::ptr::null(), a.len()) };
    out
}

/// Bytes of a slice.
fn bytes<T: Element>(x: &[T]) -> &[u8] {
    // SAFETY: elements are plain values without padding.
    unsafe { std::slice::from_raw_parts(x.as_ptr() as *const u8, size_of_val(x)) }
}

/// Every op with the number of its operands.
fn ops() -> Vec<(TileOp, usize)> {
    use ultramarine_abi::schema::{binary, unary};
    let unary = (0..unary::NAMES.len()).map(|c| (TileOp::Unary(c as u32), 1));
    let binary = (0..binary::NAMES.len()).map(|c| (TileOp::Binary(c as u32), 2));
    unary.chain(binary).chain(DType::ALL.map(|d| (TileOp::Cast(d), 1))).collect()
}

/// Operands as bytes: random values of all magnitudes, with specials for floats.
fn operand<T: Element>(random: &mut Rng, n: usize) -> Vec<T> {
    let size = size_of::<T>();
    (0..n)
        .map(|i| {
            let mut bits = random.bits();
            if T::DTYPE == DType::Bool {
                bits &= 1;
            } else if i % 3 == 0 && T::DTYPE == DType::F32 {
                bits = (random.uniform(-4.0, 4.0) as f32).to_bits() as u64;
            }
            let mut value = T::default();
            // SAFETY: `size` bytes of a plain element, at most eight.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    &raw const bits as *const u8,
                    &raw mut value as *mut u8,
                    size,
                )
            };
            value
        })
        .collect()
}

/// An element's bits must not depend on its place, on the tile's length, nor on
/// whether the output is an operand.
fn position<T: Element>() {
    const N: usize = 777;
    let mut random = Rng::new(1);
    let (a, b) = (operand::<T>(&mut random, N), operand::<T>(&mut random, N));
    for &level in Level::available() {
        for (op, operands) in ops() {
            let Some(f) = lookup(level, op, T::DTYPE) else { continue };
            let (from, to) = (size_of::<T>(), result_dtype(op, T::DTYPE).size());
            let (pa, pb) = (bytes(&a).as_ptr(), bytes(&b).as_ptr());
            let call = |dst: *mut u8, a: *const u8, b: *const u8, n: usize| {
                // SAFETY: the buffers below hold N elements.
                unsafe { f(dst, a, b, std::ptr::null(), n) }
            };
            // u64 elements, for the alignment.
            let mut whole = vec![0u64; N];
            let whole = whole.as_mut_ptr() as *mut u8;
            call(whole, pa, pb, N);
            // SAFETY: N elements of `to` bytes were written.
            let whole = unsafe { std::slice::from_raw_parts(whole, N * to) };
            for (start, n) in [(0, 1), (1, 7), (3, 15), (5, 16), (9, 33), (64, 300), (700, 77)] {
                let mut part = vec![0u64; n];
                // SAFETY: within the operands.
                call(
                    part.as_mut_ptr() as *mut u8,
                    unsafe { pa.add(start * from) },
                    unsafe { pb.add(start * from) },
                    n,
                );
                // SAFETY: n elements were written.
                let part =
                    unsafe { std::slice::from_raw_parts(part.as_ptr() as *const u8, n * to) };
                assert_eq!(part, &whole[start * to..][..n * to], "{op:?} {level:?} {start} {n}");
            }
            if from == to {
                let mut x = a.clone();
                let p = x.as_mut_ptr() as *mut u8;
                call(p, p, pb, N);
                assert_eq!(bytes(&x), whole, "{op:?} {level:?} in place of a");
                if operands == 2 {
                    let mut x = b.clone();
                    let p = x.as_mut_ptr() as *mut u8;
                    call(p, pa, p, N);
                    assert_eq!(bytes(&x), whole, "{op:?} {level:?} in place of b");
                }
            }
        }
    }
}

#[test]
fn elements_do_not_depend_on_their_position() {
    for dtype in DType::ALL {
        for_dtype!(dtype, T => position::<T>());
    }
}

#[test]
fn select_takes_either_side_and_works_in_place() {
    for &level in Level::available() {
        for dtype in DType::ALL {
            let size = dtype.size();
            let n = 1200;
            let f = lookup(level, TileOp::Select, dtype).unwrap();
            let mut random = Rng::new(1);
            let a: Vec<u8> = (0..n).map(|_| (random.bits() & 1) as u8).collect();
            let b: Vec<u64> = (0..n).map(|_| random.bits()).collect();
            let c: Vec<u64> = (0..n).map(|_| random.bits()).collect();
            let (pb, pc) = (b.as_ptr() as *const u8, c.as_ptr() as *const u8);
            // SAFETY: all hold at least n elements of `size` bytes.
            let view = |p: *const u8| unsafe { std::slice::from_raw_parts(p, n * size) };
            let mut expected = vec![0; n * size];
            for i in 0..n {
                let from = view(if a[i] != 0 { pb } else { pc });
                expected[i * size..][..size].copy_from_slice(&from[i * size..][..size]);
            }
            let mut out = c.clone();
            let mut p = out.as_mut_ptr() as *mut u8;
            // SAFETY: as above; in place of c.
            unsafe { f(p, a.as_ptr(), pb, p, n) };
            assert_eq!(view(p), expected, "{dtype:?} {level:?}");
            out = b.clone();
            p = out.as_mut_ptr() as *mut u8;
            // SAFETY: as above; in place of b.
            unsafe { f(p, a.as_ptr(), p, pc, n) };
            assert_eq!(view(p), expected, "{dtype:?} {level:?}");
        }
    }
}
