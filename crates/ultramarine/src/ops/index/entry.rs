//! The entries of an index, and the macro that lists them.

use crate::{array::Array, dtype::Dtype};
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

/// One entry of an index. It addresses one axis, unless its variant says otherwise. [`index!`](crate::index!) writes
/// entries as Python does, and converts integers, ranges and arrays to entries. [`Array::index`] reads the selected
/// elements, [`Array::index_update`] writes them.
#[derive(Clone)]
pub enum Index {
    /// One position of an axis, which is removed. Negative positions count from the end.
    Int(i64),
    /// Python's `start:stop:step`.
    Slice {
        /// First position.
        start: Option<i64>,
        /// The position before which it ends.
        stop: Option<i64>,
        /// The step, not zero.
        step: Option<i64>,
    },
    /// A whole axis: `:`.
    Full,
    /// A new axis of size 1.
    NewAxis,
    /// All remaining axes, whole: `...`.
    Ellipsis,
    /// Positions along an axis, in any integer dtype.
    Array(Array),
    /// A bool array over the first axes. It must be the only entry.
    Mask(Array),
}

impl From<Array> for Index {
    fn from(a: Array) -> Index {
        if a.dtype() == Dtype::Bool { Index::Mask(a) } else { Index::Array(a) }
    }
}

impl From<&Array> for Index {
    fn from(a: &Array) -> Index {
        a.clone().into()
    }
}

impl From<RangeFull> for Index {
    fn from(_: RangeFull) -> Index {
        Index::Full
    }
}

/// A position. One outside every array's range stays outside.
fn place(i: impl TryInto<i64>) -> i64 {
    i.try_into().unwrap_or(i64::MAX)
}

macro_rules! from_integers {
    ($($t:ty)*) => {$(
        impl From<$t> for Index {
            fn from(i: $t) -> Index {
                Index::Int(place(i))
            }
        }
        impl From<Range<$t>> for Index {
            fn from(r: Range<$t>) -> Index {
                Index::Slice { start: Some(place(r.start)), stop: Some(place(r.end)), step: None }
            }
        }
        impl From<RangeInclusive<$t>> for Index {
            fn from(r: RangeInclusive<$t>) -> Index {
                let stop = after(place(*r.end()));
                Index::Slice { start: Some(place(*r.start())), stop, step: None }
            }
        }
        impl From<RangeToInclusive<$t>> for Index {
            fn from(r: RangeToInclusive<$t>) -> Index {
                Index::Slice { start: None, stop: after(place(r.end)), step: None }
            }
        }
        impl From<RangeFrom<$t>> for Index {
            fn from(r: RangeFrom<$t>) -> Index {
                Index::Slice { start: Some(place(r.start)), stop: None, step: None }
            }
        }
        impl From<RangeTo<$t>> for Index {
            fn from(r: RangeTo<$t>) -> Index {
                Index::Slice { start: None, stop: Some(place(r.end)), step: None }
            }
        }
        impl Stepped for Range<$t> {}
        impl Stepped for RangeInclusive<$t> {}
        impl Stepped for RangeFrom<$t> {}
        impl Stepped for RangeTo<$t> {}
        impl Stepped for RangeToInclusive<$t> {}
    )*};
}
from_integers! { i32 i64 isize usize }

/// End of a slice that includes `last`. `None` is the end of the axis, because 0 would be the first position.
fn after(last: i64) -> Option<i64> {
    (last != -1).then(|| last.saturating_add(1))
}

/// The entries of an index, one for each axis from the first: an array, a slice or a `Vec` of [`Index`], by value or by
/// reference. [`index!`](crate::index!) makes them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of index entries",
    label = "write `index![...]`",
    note = "`index!` lists the entries, one for each axis: `x.index(index![0, 1..3, ..])`"
)]
pub trait Entries {
    /// The entries in their order.
    #[doc(hidden)]
    fn entries(&self) -> &[Index];
}

// The bound is `AsRef`, but error messages should mention the index, so this trait wraps it.
#[diagnostic::do_not_recommend]
impl<T: AsRef<[Index]>> Entries for T {
    fn entries(&self) -> &[Index] {
        self.as_ref()
    }
}

/// A range, which may have a step.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no step",
    label = "not a range",
    note = "`; step` stands behind a range: `index![0..8; 2, ..; -1]`"
)]
pub trait Stepped: Into<Index> {
    /// As Python's `start:stop:step`.
    fn stepped(self, step: i64) -> Index {
        match self.into() {
            Index::Slice { start, stop, .. } => Index::Slice { start, stop, step: Some(step) },
            _ => Index::Slice { start: None, stop: None, step: Some(step) },
        }
    }
}

impl Stepped for RangeFull {}

/// Lists the entries of an index: `x.index(index![0, 1..3, .., &positions])`.
///
/// | entry | Python | what it selects |
/// | --- | --- | --- |
/// | `2`, `-1`, `i` of an integer type | `2`, `-1` | one position; the axis goes away; negative from the end |
/// | `1..3`, `1..=2`, `..3`, `1..`, `-2..` | `1:3`, `1:3`, `:3`, `1:`, `-2:` | positions of a range; cut off at the axis' end |
/// | `0..8; 2`, `..; -1`, `7..3; -2` | `0:8:2`, `::-1`, `7:3:-2` | every so many of a range; backward if negative |
/// | `..` | `:` | the whole axis |
/// | [`Index::Ellipsis`] | `...` | as many whole axes as are left |
/// | [`Index::NewAxis`] | `None` | a new axis of size 1 |
/// | an integer [`Array`], owned or borrowed | the same | its positions, in its shape |
/// | a bool [`Array`], alone | the same | the positions where it is true |
///
/// Axes that are not named stay whole. The macro's value is an array of [`Index`], for [`Array::index`] and
/// [`Array::index_update`].
///
/// ```
/// use ultramarine::{Array, Dtype, Index, index};
/// let x = Array::arange(0.0, 24.0, 1.0, Dtype::Int32)?.reshape(&[2, 3, 4])?;
/// assert_eq!(x.index(index![1, 0..2, ..; 2])?.to_vec::<i32>()?, [12, 14, 16, 18]);
/// assert_eq!(x.index(index![0, -1, ..; -1])?.to_vec::<i32>()?, [11, 10, 9, 8]);
/// assert_eq!(x.index(index![Index::Ellipsis, Index::NewAxis, 0])?.shape(), [2, 3, 1]);
/// let rows = Array::from_slice(&[2, 0], &[2])?;
/// assert_eq!(x.index(index![0, &rows, 1..=1])?.to_vec::<i32>()?, [9, 1]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[macro_export]
macro_rules! index {
    ($($entry:expr $(; $step:expr)?),* $(,)?) => { [$($crate::index_entry!($entry $(; $step)?)),*] };
}

/// An entry of [`index!`](crate::index!).
#[doc(hidden)]
#[macro_export]
macro_rules! index_entry {
    ($entry:expr) => {
        $crate::Index::from($entry)
    };
    ($range:expr; $step:expr) => {
        $crate::Stepped::stepped($range, $step)
    };
}
