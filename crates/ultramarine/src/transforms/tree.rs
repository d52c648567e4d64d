//! Trees of arrays as arguments: tuples, vectors, options and maps.

use crate::array::Array;
use std::collections::BTreeMap;

/// A structure whose leaves are arrays, such as the parameters of a model: an array, or a tuple,
/// `Vec`, `Option` or `BTreeMap` of trees. Arguments of [`grad`](super::grad) are trees.
///
/// ```
/// use std::collections::BTreeMap;
/// use ultramarine::{Array, transforms::grad};
/// let named = BTreeMap::from([("w".to_owned(), Array::scalar(3.0f32))]);
/// let loss = |(named, bias): &(BTreeMap<String, Array>, Option<Array>)| match bias {
///     Some(bias) => named["w"].square()? + bias,
///     None => named["w"].square(),
/// };
/// let (slopes, bias) = grad(loss)(&(named, None))?;
/// assert_eq!((slopes["w"].item::<f32>()?, bias.is_none()), (6.0, true));
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub trait Tree: Sized {
    /// Appends the leaves to `out`, in the order of the fields or items. The items of a map are
    /// ordered by their keys.
    fn leaves(&self, out: &mut Vec<Array>);

    /// Returns the same structure with other leaves, in the order of [`Tree::leaves`]. `None` if
    /// there are too few leaves.
    fn rebuild(&self, leaves: &mut dyn Iterator<Item = Array>) -> Option<Self>;
}

impl Tree for Array {
    fn leaves(&self, out: &mut Vec<Array>) {
        out.push(self.clone());
    }

    fn rebuild(&self, leaves: &mut dyn Iterator<Item = Array>) -> Option<Self> {
        leaves.next()
    }
}

impl Tree for () {
    fn leaves(&self, _: &mut Vec<Array>) {}

    fn rebuild(&self, _: &mut dyn Iterator<Item = Array>) -> Option<Self> {
        Some(())
    }
}

impl<T: Tree> Tree for Vec<T> {
    fn leaves(&self, out: &mut Vec<Array>) {
        self.iter().for_each(|t| t.leaves(out));
    }

    fn rebuild(&self, leaves: &mut dyn Iterator<Item = Array>) -> Option<Self> {
        self.iter().map(|t| t.rebuild(leaves)).collect()
    }
}

/// `None` has no leaves.
impl<T: Tree> Tree for Option<T> {
    fn leaves(&self, out: &mut Vec<Array>) {
        self.iter().for_each(|t| t.leaves(out));
    }

    fn rebuild(&self, leaves: &mut dyn Iterator<Item = Array>) -> Option<Self> {
        match self {
            Some(t) => t.rebuild(leaves).map(Some),
            None => Some(None),
        }
    }
}

/// Leaves are in the order of the keys.
impl<K: Clone + Ord, T: Tree> Tree for BTreeMap<K, T> {
    fn leaves(&self, out: &mut Vec<Array>) {
        self.values().for_each(|t| t.leaves(out));
    }

    fn rebuild(&self, leaves: &mut dyn Iterator<Item = Array>) -> Option<Self> {
        self.iter().map(|(key, t)| Some((key.clone(), t.rebuild(leaves)?))).collect()
    }
}

impl<T: Tree, const N: usize> Tree for [T; N] {
    fn leaves(&self, out: &mut Vec<Array>) {
        self.iter().for_each(|t| t.leaves(out));
    }

    fn rebuild(&self, leaves: &mut dyn Iterator<Item = Array>) -> Option<Self> {
        let rebuilt: Vec<T> = self.iter().map(|t| t.rebuild(leaves)).collect::<Option<_>>()?;
        rebuilt.try_into().ok()
    }
}

macro_rules! tuples {
    ($(($($t:ident $i:tt),+))*) => {$(
        impl<$($t: Tree),+> Tree for ($($t,)+) {
            fn leaves(&self, out: &mut Vec<Array>) {
                $(self.$i.leaves(out);)+
            }

            fn rebuild(&self, leaves: &mut dyn Iterator<Item = Array>) -> Option<Self> {
                Some(($(self.$i.rebuild(leaves)?,)+))
            }
        }
    )*};
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6)
    (A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7)
}
