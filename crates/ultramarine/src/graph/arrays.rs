//! Lists of arrays as arguments.

use crate::array::Array;
use smallvec::SmallVec;

/// Several arrays as one argument: `[&x, &y]`, `[x, y]`, a slice or a `Vec`, by value or by
/// reference. The elements are arrays, references to arrays, or any type that is [`AsRef<Array>`],
/// such as the parameters of a model.
///
/// ```
/// use ultramarine::{Array, concatenate};
/// let (x, y) = (Array::scalar(1).reshape(&[1])?, Array::scalar(2).reshape(&[1])?);
/// assert_eq!(concatenate([&x, &y], 0)?.to_vec::<i32>()?, [1, 2]);
/// let list = vec![x, y];
/// assert_eq!(concatenate(&list[1..], 0)?.to_vec::<i32>()?, [2]);
/// assert_eq!(concatenate(list, 0)?.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of arrays",
    label = "not a list of arrays",
    note = "lists are `[&x, &y]`, a slice or a `Vec` of arrays; of one array `[&x]`"
)]
pub trait Arrays {
    /// The arrays in their order.
    #[doc(hidden)]
    fn borrowed(&self) -> SmallVec<[&Array; 8]>;

    /// Handles of the arrays.
    #[doc(hidden)]
    fn owned(&self) -> Vec<Array> {
        self.borrowed().into_iter().cloned().collect()
    }
}

// The compiler's messages are about the list, and not about its elements.
macro_rules! lists {
    ($([$($generic:tt)*] $list:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($generic)*> Arrays for $list {
            fn borrowed(&self) -> SmallVec<[&Array; 8]> {
                self.iter().map(AsRef::as_ref).collect()
            }
        }
    )*};
}

lists! {
    [T: AsRef<Array>] [T];
    [T: AsRef<Array>, const N: usize] [T; N];
    [T: AsRef<Array>] Vec<T>;
}

#[diagnostic::do_not_recommend]
impl<T: Arrays + ?Sized> Arrays for &T {
    fn borrowed(&self) -> SmallVec<[&Array; 8]> {
        (**self).borrowed()
    }
}
