//! Skinny products: a few rows times a large matrix whose rows are contiguous. Reading that matrix limits the time, so
//! it is read once, in place, in long stretches.
//!
//! A task has a block of columns. Its sums stay in the L1 cache while it reads the rows of B, [`STEP`] at a time.

use core::marker::PhantomData;

use super::Product;
use super::gemv::fold;
use super::pack::{Block, Panel};
use super::simd::{Num, Storage, prefetch};
use crate::level::{Body, Isa, Level, at};
use crate::par::{Par, Shared};
use crate::scratch::{Scratch, Slot};

/// Largest number of sums of a task: half of a small L1 cache of float32.
const SUMS: usize = 8192;
/// Columns of a task are a multiple of this.
const UNIT: usize = 64;
/// Most columns of a task.
const COLS: usize = 1024;
/// Tasks that are wanted.
const TASKS: usize = 8;
/// Shortest stretch of k that is a separate task.
const STRETCH: usize = 1024;
/// See [`STRETCH`].
const STRETCHES: usize = 4;
/// Rows of B, and of the sums, that are in registers together.
const STEP: usize = 4;
/// Columns that are in registers together.
const LANES: usize = 16;

/// A part of a product: `m` rows, `n` columns.
#[derive(Clone, Copy)]
pub struct Part {
    m: usize,
    n: usize,
    k: usize,
    /// A as numbers, `m` for each k.
    a: *const u8,
    /// First element of B, whose columns lie next to each other.
    b: *const u8,
    /// Bytes from row to row of B.
    b_row: isize,
    /// Receives `m` rows of `n` numbers.
    sums: *mut u8,
}

/// Multiplies a part.
///
/// # Safety
/// The part's pointers are valid; the level is available.
pub type SkinnyFn = unsafe fn(Level, Part);

/// The function for `S`.
pub fn function<S: Storage>() -> SkinnyFn {
    |level, part| at(level, Skinny::<S>(part, PhantomData))
}

struct Skinny<S>(Part, PhantomData<S>);

impl<S: Storage> Body for Skinny<S> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _isa: I) {
        let p = self.0;
        // SAFETY: m x n sums; rows and steps of k are the part's, by the contract of
        // `SkinnyFn`.
        unsafe {
            let sums = p.sums as *mut S::Acc;
            for i in 0..p.m * p.n {
                sums.add(i).write(S::Acc::default());
            }
            let mut q = 0;
            while q + STEP <= p.k {
                rows::<S, I, STEP>(&p, q);
                q += STEP;
            }
            while q < p.k {
                rows::<S, I, 1>(&p, q);
                q += 1;
            }
        }
    }
}

/// `Q` steps of k from `q`.
///
/// # Safety
/// `q + Q <= k`; the part is valid.
#[inline(always)]
unsafe fn rows<S: Storage, I: Isa, const Q: usize>(p: &Part, q: usize) {
    let mut r = 0;
    // SAFETY: rows below m.
    unsafe {
        while r + STEP <= p.m {
            add::<S, I, Q, STEP>(p, q, r);
            r += STEP;
        }
        while r < p.m {
            add::<S, I, Q, 1>(p, q, r);
            r += 1;
        }
    }
}

/// Adds `Q` steps of k from `q` to `R` rows of sums from `r`.
///
/// # Safety
/// `q + Q <= k`, `r + R <= m`; the part is valid.
#[inline(always)]
unsafe fn add<S: Storage, I: Isa, const Q: usize, const R: usize>(p: &Part, q: usize, r: usize) {
    let mut a = [[S::Acc::default(); Q]; R];
    let mut b = [p.b as *const S; Q];
    let ahead = if r == 0 { Q as isize * p.b_row } else { 0 };
    // SAFETY: Q rows of B, R rows of sums, all of them n long.
    unsafe {
        for s in 0..Q {
            b[s] = p.b.wrapping_offset((q + s) as isize * p.b_row) as *const S;
            for i in 0..R {
                a[i][s] = *(p.a as *const S::Acc).add((q + s) * p.m + r + i);
            }
        }
        let sums = (p.sums as *mut S::Acc).add(r * p.n);
        let mut j = 0;
        while j + LANES <= p.n {
            let mut row = [[S::Acc::default(); LANES]; Q];
            for s in 0..Q {
                let at = b[s].add(j);
                if ahead != 0 {
                    prefetch((at as *const u8).wrapping_offset(ahead));
                }
                let from = at.cast::<[S; LANES]>().read_unaligned();
                for l in 0..LANES {
                    row[s][l] = from[l].widen();
                }
            }
            for i in 0..R {
                let to = sums.add(i * p.n + j).cast::<[S::Acc; LANES]>();
                let mut sum = to.read_unaligned();
                for s in 0..Q {
                    for l in 0..LANES {
                        sum[l] = mul_acc::<S::Acc, I>(sum[l], row[s][l], a[i][s]);
                    }
                }
                to.write_unaligned(sum);
            }
            j += LANES;
        }
        while j < p.n {
            for i in 0..R {
                let to = sums.add(i * p.n + j);
                for s in 0..Q {
                    *to = mul_acc::<S::Acc, I>(*to, (*b[s].add(j)).widen(), a[i][s]);
                }
            }
            j += 1;
        }
    }
}

#[inline(always)]
pub(crate) fn mul_acc<A: Num, I: Isa>(sum: A, a: A, b: A) -> A {
    if I::FMA { sum.mul_acc::<true>(a, b) } else { sum.mul_acc::<false>(a, b) }
}

/// Multiplies, on all threads.
///
/// # Safety
/// The product is valid, of few rows, with B's columns next to each other; `f` is for
/// its dtype.
pub unsafe fn multiply(par: &Par, pr: &Product<'_>, f: SkinnyFn, level: Level) {
    let (ops, m, n, k) = (pr.ops, pr.m, pr.n, pr.k);
    let most = (SUMS / m).min(n.div_ceil(TASKS)).next_multiple_of(UNIT).min(COLS);
    // Narrower blocks of columns would read B in short pieces.
    let (blocks, parts) = (n.div_ceil(most), (k / STRETCH).clamp(1, STRETCHES));
    let length = k.div_ceil(parts).next_multiple_of(STEP);
    let a_bytes = (m * k * ops.acc).next_multiple_of(64);
    let scratch = Scratch::new(Slot::Call, a_bytes + parts * m * n * ops.acc);
    let panel = Panel {
        src: pr.a.data,
        across: pr.a.row,
        along: pr.a.col,
        width: m,
        ld: m,
        unit: 1,
        k,
        dst: scratch.get(),
    };
    // SAFETY: all of A, and as many numbers of scratch.
    unsafe { (ops.pack_a)(&panel) }
    let (a, all) = (Shared(scratch.get()), Shared(scratch.get().wrapping_add(a_bytes)));
    let width = |block: usize| most.min(n - block * most);
    // The sums for a block of columns and a stretch of k. The stretches of one block are adjacent.
    let sums = |block: usize, part: usize| {
        all.get().wrapping_add((block * most * parts + part * width(block)) * m * ops.acc)
    };
    par.run(blocks * parts, |t| {
        let (block, part) = (t % blocks, t / blocks);
        let (j, q) = (block * most, (part * length).min(k));
        let b = pr.b.data.wrapping_offset(j as isize * pr.b.col + q as isize * pr.b.row);
        let part = Part {
            m,
            n: width(block),
            k: length.min(k - q),
            a: a.get().wrapping_add(q * m * ops.acc),
            b,
            b_row: pr.b.row,
            sums: sums(block, part),
        };
        // SAFETY: columns of B and steps of k; each task has its own sums.
        unsafe { f(level, part) }
    });
    let store = |block: usize| {
        let (j, cols) = (block * most, width(block));
        let added = Block {
            src: sums(block, 0),
            ld: cols,
            rows: m,
            cols,
            dst: pr.c.data.wrapping_offset(j as isize * pr.c.col),
            row: pr.c.row,
            col: pr.c.col,
        };
        // SAFETY: m x cols sums of each stretch of k; columns of C, each task its own.
        unsafe {
            fold(level, ops.acc, sums(block, 0), m * cols, parts);
            (ops.store)(&added)
        }
    };
    if n * m * parts < 1 << 16 {
        (0..blocks).for_each(store);
    } else {
        par.run(blocks, store);
    }
}
