//! Axes as arguments.

use smallvec::SmallVec;
use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};
use ultramarine_abi::MAX_NDIM;

/// Axes of an array as an argument (`impl Into<Axes>`): a number, an array, a tuple, a slice or a
/// `Vec` of numbers, a range, or `..` for all. Negative numbers count from the last axis, also in
/// ranges: `-2..` are the last two. `None` means `..`, for callers that have an `Option<&[isize]>`.
///
/// ```no_run
/// # fn main() -> ultramarine_extension::Result<()> {
/// let x = ultramarine_extension::Array::full(&[2, 3, 4], 1f32)?;
/// assert_eq!(x.sum(1)?.shape(), [2, 4]);
/// assert_eq!(x.sum([0, -1])?.shape(), [3]);
/// assert_eq!(x.sum(1..)?.shape(), [2]);
/// assert_eq!(x.sum(-2..)?.shape(), [2]);
/// assert_eq!(x.sum(..)?.item::<f32>()?, 24.0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axes(Named);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Named {
    All,
    List(SmallVec<[isize; 4]>),
    /// From the first number (`None`: 0) up to, but without, the second (`None`: the number of
    /// axes).
    Range(Option<isize>, Option<isize>),
}

impl Axes {
    /// Returns the axes as they were given, for an array of `ndim` axes; `None` means all axes. The
    /// called function refuses axes that are out of range.
    #[doc(hidden)]
    pub fn named(self, ndim: usize) -> Option<SmallVec<[isize; 4]>> {
        let n = ndim as isize;
        let (start, stop) = match self.0 {
            Named::All => return None,
            Named::List(axes) => return Some(axes),
            Named::Range(start, stop) => (start.unwrap_or(0), stop.unwrap_or(n)),
        };
        let from_start = |axis: isize| if axis < 0 { axis.saturating_add(n) } else { axis };
        // Limit the end of a range to one beyond the last axis: a single axis too many is enough
        // for an error.
        Some(
            (from_start(start)..from_start(stop))
                .take(MAX_NDIM + 1)
                .map(|axis| {
                    // An axis before the first stays out of range, and does not become the last
                    // axis.
                    if axis < 0 { axis.saturating_sub(n) } else { axis }
                })
                .collect(),
        )
    }

    /// Returns the axes as a list, also if they are all axes.
    #[doc(hidden)]
    pub fn listed(self, ndim: usize) -> SmallVec<[isize; 4]> {
        self.named(ndim).unwrap_or_else(|| (0..ndim as isize).collect())
    }
}

/// One axis as an argument (`impl Into<Axis>`): a number, which counts from the last axis if it is
/// negative, or `..` for the flattened array, if the function supports it. `None` means `..`, for
/// callers that have an `Option<isize>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis(Option<isize>);

impl Axis {
    /// Returns the number of the axis; `None` for the flattened array.
    pub fn number(self) -> Option<isize> {
        self.0
    }
}

/// Axes that a reduction keeps, with size 1, so that the result broadcasts against the operand:
/// `x.mean(KeepDims(-1))`. Without `KeepDims`, as in `x.mean(-1)`, the result lacks the axes.
///
/// ```no_run
/// use ultramarine_extension::{Array, KeepDims};
///
/// # fn main() -> ultramarine_extension::Result<()> {
/// let x = Array::full(&[2, 3, 4], 1f32)?;
/// assert_eq!(x.sum(KeepDims(1))?.shape(), [2, 1, 4]);
/// assert_eq!(x.sum(KeepDims(..))?.shape(), [1, 1, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepDims<A>(pub A);

/// The axes of a reduction as an argument (`impl Into<Reduced<Axes>>`, or of [`Axis`] for functions
/// of one axis): axes, or [`KeepDims`] of axes. Use [`Reduced::new`] if the program chooses at run
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduced<A> {
    /// The axes.
    pub axes: A,
    /// True if the result keeps the axes, with size 1.
    pub keepdims: bool,
}

impl<A> Reduced<A> {
    /// Makes the axes of a reduction. The result keeps them, with size 1, if `keepdims` is true.
    pub fn new(axes: impl Into<A>, keepdims: bool) -> Self {
        Reduced { axes: axes.into(), keepdims }
    }
}

macro_rules! reduced {
    ($($axes:ty)*) => {$(
        impl<T: Into<$axes>> From<T> for Reduced<$axes> {
            fn from(axes: T) -> Self {
                Reduced::new(axes, false)
            }
        }

        impl<T: Into<$axes>> From<KeepDims<T>> for Reduced<$axes> {
            fn from(KeepDims(axes): KeepDims<T>) -> Self {
                Reduced::new(axes, true)
            }
        }
    )*};
}
reduced! { Axes Axis }

impl From<RangeFull> for Axes {
    fn from(_: RangeFull) -> Axes {
        Axes(Named::All)
    }
}

impl From<RangeFull> for Axis {
    fn from(_: RangeFull) -> Axis {
        Axis(None)
    }
}

// Only one option type is accepted, so that `None` needs no type annotation.
#[diagnostic::do_not_recommend]
impl From<Option<&[isize]>> for Axes {
    fn from(axes: Option<&[isize]>) -> Axes {
        axes.map_or(Axes(Named::All), Axes::from)
    }
}

impl From<Option<isize>> for Axis {
    fn from(axis: Option<isize>) -> Axis {
        Axis(axis)
    }
}

#[diagnostic::do_not_recommend]
impl<const N: usize> From<&SmallVec<[isize; N]>> for Axes
where
    [isize; N]: smallvec::Array<Item = isize>,
{
    fn from(axes: &SmallVec<[isize; N]>) -> Axes {
        Axes::from(&axes[..])
    }
}

impl From<Axis> for Axes {
    fn from(axis: Axis) -> Axes {
        axis.0.map_or(Axes(Named::All), Axes::from)
    }
}

/// Converts a number to an axis. A number out of the range of `isize` stays out of range for every
/// array.
fn number(axis: impl TryInto<isize>) -> isize {
    axis.try_into().unwrap_or(isize::MAX)
}

macro_rules! from_integer {
    ($(#[$attribute:meta])* $t:ty) => {
        $(#[$attribute])*
        impl From<$t> for Axis {
            fn from(axis: $t) -> Axis {
                Axis(Some(number(axis)))
            }
        }

        $(#[$attribute])*
        impl From<$t> for Axes {
            fn from(axis: $t) -> Axes {
                Axes::from(&[axis][..])
            }
        }

        $(#[$attribute])*
        impl From<&[$t]> for Axes {
            fn from(axes: &[$t]) -> Axes {
                Axes(Named::List(axes.iter().map(|axis| number(*axis)).collect()))
            }
        }

        $(#[$attribute])*
        impl<const N: usize> From<[$t; N]> for Axes {
            fn from(axes: [$t; N]) -> Axes {
                Axes::from(&axes[..])
            }
        }

        #[diagnostic::do_not_recommend]
        impl<const N: usize> From<&[$t; N]> for Axes {
            fn from(axes: &[$t; N]) -> Axes {
                Axes::from(&axes[..])
            }
        }

        $(#[$attribute])*
        impl From<($t, $t)> for Axes {
            fn from((a, b): ($t, $t)) -> Axes {
                Axes::from([a, b])
            }
        }

        #[diagnostic::do_not_recommend]
        impl From<($t, $t, $t)> for Axes {
            fn from((a, b, c): ($t, $t, $t)) -> Axes {
                Axes::from([a, b, c])
            }
        }

        $(#[$attribute])*
        impl From<Vec<$t>> for Axes {
            fn from(axes: Vec<$t>) -> Axes {
                Axes::from(&axes[..])
            }
        }

        #[diagnostic::do_not_recommend]
        impl From<&Vec<$t>> for Axes {
            fn from(axes: &Vec<$t>) -> Axes {
                Axes::from(&axes[..])
            }
        }

        $(#[$attribute])*
        impl From<Range<$t>> for Axes {
            fn from(r: Range<$t>) -> Axes {
                Axes(Named::Range(Some(number(r.start)), Some(number(r.end))))
            }
        }

        #[diagnostic::do_not_recommend]
        impl From<RangeInclusive<$t>> for Axes {
            fn from(r: RangeInclusive<$t>) -> Axes {
                Axes(Named::Range(Some(number(*r.start())), after(number(*r.end()))))
            }
        }

        #[diagnostic::do_not_recommend]
        impl From<RangeFrom<$t>> for Axes {
            fn from(r: RangeFrom<$t>) -> Axes {
                Axes(Named::Range(Some(number(r.start)), None))
            }
        }

        #[diagnostic::do_not_recommend]
        impl From<RangeTo<$t>> for Axes {
            fn from(r: RangeTo<$t>) -> Axes {
                Axes(Named::Range(None, Some(number(r.end))))
            }
        }

        #[diagnostic::do_not_recommend]
        impl From<RangeToInclusive<$t>> for Axes {
            fn from(r: RangeToInclusive<$t>) -> Axes {
                Axes(Named::Range(None, after(number(r.end))))
            }
        }
    };
}
// Compilers' messages then list the main forms, with only one integer type.
from_integer! { isize }
from_integer! { #[diagnostic::do_not_recommend] usize }
from_integer! { #[diagnostic::do_not_recommend] i32 }
from_integer! { #[diagnostic::do_not_recommend] i64 }

/// The end of a range that includes `last`. `None` if it is the last axis (-1), because 0 would be
/// the first axis.
fn after(last: isize) -> Option<isize> {
    (last != -1).then(|| last.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(axes: impl Into<Axes>, want: &[isize]) {
        assert_eq!(axes.into().named(3).as_deref(), Some(want));
    }

    #[test]
    fn forms() {
        assert_eq!(Axes::from(..).named(3), None);
        assert_eq!(Axes::from(None).named(3), None);
        check(Some(&[1isize][..]), &[1]);
        check(1, &[1]);
        check(2usize, &[2]);
        check(-1isize, &[-1]);
        check([0, -1], &[0, -1]);
        check((0, -1), &[0, -1]);
        check((0, 1, 2usize), &[0, 1, 2]);
        check([0i64, 1], &[0, 1]);
        check(vec![2usize, 0], &[2, 0]);
        check(vec![1], &[1]);
        check(&[1isize, 2][..], &[1, 2]);
    }

    #[test]
    #[allow(clippy::reversed_empty_ranges)] // From the end, they are not.
    fn ranges() {
        check(0..2, &[0, 1]);
        check(0..=2, &[0, 1, 2]);
        check(1.., &[1, 2]);
        check(..2, &[0, 1]);
        check(..=1, &[0, 1]);
        check(-2.., &[1, 2]);
        check(..-1, &[0, 1]);
        check(1..-1, &[1]);
        check(-3..=-1, &[0, 1, 2]);
        check(..=-1, &[0, 1, 2]);
        check(2..2, &[]);
    }

    /// Numbers that are no axis of any array stay invalid.
    #[test]
    fn out_of_range() {
        check(2..5, &[2, 3, 4]);
        check(-4..-2, &[-4, 0]);
        assert!(Axes::from(0..usize::MAX).named(3).is_some_and(|axes| axes.len() == MAX_NDIM + 1));
        assert_eq!(Axis::from(u32::MAX as usize).0, Some(u32::MAX as isize));
    }
}
