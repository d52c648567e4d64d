//! The loops around the operations, with one compiled function per operation and level.
//!
//! The compiler vectorises a loop only if the output cannot overlap an input. If an operand is also
//! the output (in place), it is therefore copied to the stack, one block at a time, so that the
//! same loop serves both cases.

use super::TileFn;
use crate::level::{Body, Isa, IsaBaseline, Level};
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// A function of one element.
pub(super) trait Unary: 'static {
    type A: Copy;
    type D: Copy;
    fn f<I: Isa>(a: Self::A) -> Self::D;
    /// Set if some elements are left to [`Unary::rare`], which runs after the loop.
    const RARE: bool = false;
    /// True if this element is left to [`Unary::rare`].
    #[inline(always)]
    fn is_rare(_: Self::A) -> bool {
        false
    }
    /// The result for such an element. It is slow, and not part of the vectorised loop.
    fn rare(a: Self::A) -> Self::D {
        Self::f::<IsaBaseline>(a)
    }
}

/// A function of two elements.
pub(super) trait Binary: 'static {
    type A: Copy;
    type D: Copy;
    fn f<I: Isa>(a: Self::A, b: Self::A) -> Self::D;
    /// Set if some elements are left to [`Binary::rare`], which runs after the loop.
    const RARE: bool = false;
    /// True for a result that marks such an element.
    #[inline(always)]
    fn is_rare(_: Self::D) -> bool {
        false
    }
    /// As [`Unary::rare`].
    fn rare(a: Self::A, b: Self::A) -> Self::D {
        Self::f::<IsaBaseline>(a, b)
    }
}

/// A function of a condition byte and two elements.
pub(super) trait Ternary: 'static {
    type A: Copy;
    fn f<I: Isa>(a: u8, b: Self::A, c: Self::A) -> Self::A;
}

/// Bytes of a block that is copied to the stack.
const BLOCK: usize = 1024;

#[repr(align(64))]
struct Stage(MaybeUninit<[u8; BLOCK]>);

impl Stage {
    const NEW: Stage = Stage(MaybeUninit::uninit());

    /// `from`, or a copy of its first `n` elements.
    ///
    /// # Safety
    /// If `copy`: `from` is valid for `n` elements, which fit a block.
    #[inline(always)]
    unsafe fn take<T>(&mut self, copy: bool, from: *const T, n: usize) -> *const T {
        if !copy {
            return from;
        }
        let to = self.0.as_mut_ptr() as *mut T;
        // SAFETY: by this function's contract; the stage is aligned for every element.
        unsafe { std::ptr::copy_nonoverlapping(from, to, n) };
        to
    }
}

/// The arguments of a tile function and the op.
struct Loop<O> {
    dst: *mut u8,
    a: *const u8,
    b: *const u8,
    c: *const u8,
    n: usize,
    op: PhantomData<O>,
}

/// Calls `$body(i, m)` for blocks of `m` elements from `i`: one block, unless an
/// operand is staged.
macro_rules! blocks {
    ($n:expr, $in_place:expr, $d:ty, |$i:ident, $m:ident| $body:block) => {{
        let step = if $in_place { BLOCK / size_of::<$d>() } else { $n };
        let mut $i = 0;
        while $i < $n {
            let $m = step.min($n - $i);
            $body
            $i += $m;
        }
    }};
}

/// # Safety
/// Valid for `n` elements, not overlapping.
#[inline(always)]
unsafe fn map1<I: Isa, O: Unary>(dst: *mut O::D, a: *const O::A, n: usize) {
    // SAFETY: by this function's contract.
    let (dst, a) = unsafe {
        (
            std::slice::from_raw_parts_mut(dst as *mut MaybeUninit<O::D>, n),
            std::slice::from_raw_parts(a, n),
        )
    };
    for (d, &x) in dst.iter_mut().zip(a) {
        d.write(O::f::<I>(x));
    }
    if O::RARE && a.iter().fold(false, |any, &x| any | O::is_rare(x)) {
        for (d, &x) in dst.iter_mut().zip(a) {
            if O::is_rare(x) {
                d.write(O::rare(x));
            }
        }
    }
}

/// # Safety
/// As for [`map1`]; `a` and `b` may overlap.
#[inline(always)]
unsafe fn map2<I: Isa, O: Binary>(dst: *mut O::D, a: *const O::A, b: *const O::A, n: usize) {
    // SAFETY: by this function's contract.
    let (dst, a, b) = unsafe {
        (
            std::slice::from_raw_parts_mut(dst as *mut MaybeUninit<O::D>, n),
            std::slice::from_raw_parts(a, n),
            std::slice::from_raw_parts(b, n),
        )
    };
    let mut any = false;
    for ((d, &x), &y) in dst.iter_mut().zip(a).zip(b) {
        any |= O::is_rare(*d.write(O::f::<I>(x, y)));
    }
    if O::RARE && any {
        for ((d, &x), &y) in dst.iter_mut().zip(a).zip(b) {
            // SAFETY: written above.
            if O::is_rare(unsafe { d.assume_init() }) {
                d.write(O::rare(x, y));
            }
        }
    }
}

/// # Safety
/// As for [`map2`].
#[inline(always)]
unsafe fn map3<I: Isa, O: Ternary>(
    dst: *mut O::A,
    a: *const u8,
    b: *const O::A,
    c: *const O::A,
    n: usize,
) {
    // SAFETY: by this function's contract.
    let (dst, a, b, c) = unsafe {
        (
            std::slice::from_raw_parts_mut(dst as *mut MaybeUninit<O::A>, n),
            std::slice::from_raw_parts(a, n),
            std::slice::from_raw_parts(b, n),
            std::slice::from_raw_parts(c, n),
        )
    };
    for (((d, &x), &y), &z) in dst.iter_mut().zip(a).zip(b).zip(c) {
        d.write(O::f::<I>(x, y, z));
    }
}

struct Unary1<O>(Loop<O>);
struct Binary2<O>(Loop<O>);
struct Ternary3<O>(Loop<O>);

impl<O: Unary> Body for Unary1<O> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let l = self.0;
        let same = std::ptr::eq(l.dst, l.a);
        let (dst, a) = (l.dst as *mut O::D, l.a as *const O::A);
        let mut stage = Stage::NEW;
        blocks!(l.n, same, O::A, |i, m| {
            // SAFETY: within the n elements that the contract of TileFn promises; a
            // staged operand does not overlap the output.
            unsafe { map1::<I, O>(dst.add(i), stage.take(same, a.add(i), m), m) }
        });
    }
}

impl<O: Binary> Body for Binary2<O> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let l = self.0;
        let (same_a, same_b) = (std::ptr::eq(l.dst, l.a), std::ptr::eq(l.dst, l.b));
        let (dst, a, b) = (l.dst as *mut O::D, l.a as *const O::A, l.b as *const O::A);
        let (mut stage_a, mut stage_b) = (Stage::NEW, Stage::NEW);
        blocks!(l.n, same_a | same_b, O::A, |i, m| {
            // SAFETY: as in Unary1.
            unsafe {
                let a = stage_a.take(same_a, a.add(i), m);
                let b = stage_b.take(same_b, b.add(i), m);
                map2::<I, O>(dst.add(i), a, b, m);
            }
        });
    }
}

impl<O: Ternary> Body for Ternary3<O> {
    type Output = ();
    #[inline(always)]
    fn call<I: Isa>(self, _: I) {
        let l = self.0;
        let dst = l.dst as *const u8;
        let (same_a, same_b, same_c) = (dst == l.a, dst == l.b, dst == l.c);
        let (dst, b, c) = (l.dst as *mut O::A, l.b as *const O::A, l.c as *const O::A);
        let (mut stage_a, mut stage_b, mut stage_c) = (Stage::NEW, Stage::NEW, Stage::NEW);
        blocks!(l.n, same_a | same_b | same_c, O::A, |i, m| {
            // SAFETY: as in Unary1.
            unsafe {
                let a = stage_a.take(same_a, l.a.add(i), m);
                let b = stage_b.take(same_b, b.add(i), m);
                let c = stage_c.take(same_c, c.add(i), m);
                map3::<I, O>(dst.add(i), a, b, c, m);
            }
        });
    }
}

/// Makes the entries of a kind of op, one per level, and a function that picks one.
macro_rules! entries {
    ($module:ident, $trait:ident, $body:ident) => {
        pub(super) mod $module {
            use super::*;

            macro_rules! entry {
                ($name:ident, |$l:ident| $run:expr) => {
                    /// # Safety
                    /// As for [`TileFn`].
                    pub(in crate::elementwise) unsafe fn $name<O: $trait>(
                        dst: *mut u8,
                        a: *const u8,
                        b: *const u8,
                        c: *const u8,
                        n: usize,
                    ) {
                        let $l = $body::<O>(Loop { dst, a, b, c, n, op: PhantomData });
                        $run
                    }
                };
            }
            entry!(baseline, |l| l.call(IsaBaseline));
            // SAFETY: looked up for a level that the machine has.
            #[cfg(target_arch = "x86_64")]
            entry!(v3, |l| unsafe { crate::level::v3(l) });
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            entry!(v4, |l| unsafe { crate::level::v4(l) });
            #[cfg(not(target_arch = "x86_64"))]
            pub(in crate::elementwise) use {baseline as v3, baseline as v4};

            /// The entry for `level`.
            pub(in crate::elementwise) fn levels<O: $trait>(level: Level) -> TileFn {
                match level {
                    Level::Baseline => baseline::<O>,
                    Level::V3 => v3::<O>,
                    Level::V4 | Level::Amx => v4::<O>,
                }
            }

            /// As `levels`, for operations that are limited by memory bandwidth: no function is
            /// compiled above V3.
            #[allow(dead_code, reason = "not every arity has such ops")]
            pub(in crate::elementwise) fn narrow<O: $trait>(level: Level) -> TileFn {
                match level {
                    Level::Baseline => baseline::<O>,
                    _ => v3::<O>,
                }
            }
        }
    };
}
entries!(unary_fn, Unary, Unary1);
entries!(binary_fn, Binary, Binary2);
entries!(ternary_fn, Ternary, Ternary3);

/// `unary!(level, f32 => f32, |I, x| expression)`: a tile function, compiled for
/// every level; `narrow level`: none above V3; `once`: the baseline only, for
/// ops that library calls dominate.
macro_rules! unary {
    (once, $($op:tt)*) => {{
        $crate::elementwise::loops::op1!($($op)*);
        $crate::elementwise::loops::unary_fn::baseline::<Op> as $crate::elementwise::TileFn
    }};
    (narrow $level:expr, $($op:tt)*) => {{
        $crate::elementwise::loops::op1!($($op)*);
        $crate::elementwise::loops::unary_fn::narrow::<Op>($level)
    }};
    ($level:expr, $($op:tt)*) => {{
        $crate::elementwise::loops::op1!($($op)*);
        $crate::elementwise::loops::unary_fn::levels::<Op>($level)
    }};
}

macro_rules! op1 {
    ($a:ty => $d:ty, |$x:ident| $e:expr) => {
        $crate::elementwise::loops::op1!($a => $d, |_I, $x| $e);
    };
    ($a:ty => $d:ty, |$i:ident, $x:ident| $e:expr) => {
        struct Op;
        impl $crate::elementwise::loops::Unary for Op {
            type A = $a;
            type D = $d;
            #[inline(always)]
            fn f<$i: $crate::level::Isa>($x: $a) -> $d {
                $e
            }
        }
    };
}

/// As [`unary`], of two operands of one dtype.
macro_rules! binary {
    (once, $($op:tt)*) => {{
        $crate::elementwise::loops::op2!($($op)*);
        $crate::elementwise::loops::binary_fn::baseline::<Op> as $crate::elementwise::TileFn
    }};
    (narrow $level:expr, $($op:tt)*) => {{
        $crate::elementwise::loops::op2!($($op)*);
        $crate::elementwise::loops::binary_fn::narrow::<Op>($level)
    }};
    ($level:expr, $($op:tt)*) => {{
        $crate::elementwise::loops::op2!($($op)*);
        $crate::elementwise::loops::binary_fn::levels::<Op>($level)
    }};
}

macro_rules! op2 {
    ($a:ty => $d:ty, |$x:ident, $y:ident| $e:expr) => {
        $crate::elementwise::loops::op2!($a => $d, |_I, $x, $y| $e);
    };
    ($a:ty => $d:ty, |$i:ident, $x:ident, $y:ident| $e:expr) => {
        struct Op;
        impl $crate::elementwise::loops::Binary for Op {
            type A = $a;
            type D = $d;
            #[inline(always)]
            fn f<$i: $crate::level::Isa>($x: $a, $y: $a) -> $d {
                $e
            }
        }
    };
}

/// A function that leaves the elements of which `$is_rare` holds to a
/// scalar float64 function.
macro_rules! rare {
    ($level:expr, $t:ident, $($f:ident)::+, $is_rare:expr, $slow:expr) => {{
        struct Op;
        impl $crate::elementwise::loops::Unary for Op {
            type A = $t;
            type D = $t;
            const RARE: bool = true;
            #[inline(always)]
            fn f<I: $crate::level::Isa>(x: $t) -> $t {
                $($f)::+::<I>(x)
            }
            #[inline(always)]
            fn is_rare(x: $t) -> bool {
                $is_rare(x)
            }
            #[inline(never)]
            fn rare(x: $t) -> $t {
                $slow(x as f64) as $t
            }
        }
        $crate::elementwise::loops::unary_fn::levels::<Op>($level)
    }};
}

/// A function of two floats that leaves the elements where it is NaN to a scalar function.
macro_rules! marked {
    ($level:expr, $t:ident, $($f:ident)::+, $($slow:ident)::+) => {{
        struct Op;
        impl $crate::elementwise::loops::Binary for Op {
            type A = $t;
            type D = $t;
            const RARE: bool = true;
            #[inline(always)]
            fn f<I: $crate::level::Isa>(x: $t, y: $t) -> $t {
                $($f)::+::<I>(x, y)
            }
            #[inline(always)]
            fn is_rare(result: $t) -> bool {
                result.is_nan()
            }
            #[inline(never)]
            fn rare(x: $t, y: $t) -> $t {
                $($slow)::+(x, y)
            }
        }
        $crate::elementwise::loops::binary_fn::levels::<Op>($level)
    }};
}
pub(super) use {binary, marked, op1, op2, rare, unary};
