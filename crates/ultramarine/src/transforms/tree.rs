//! Nested arguments: tuples, vectors and arrays of arrays.

use crate::array::Array;

/// A structure whose leaves are arrays. Parameters of a model are one.
pub trait Tree: Sized {
    /// Appends the leaves, in order.
    fn leaves(&self, out: &mut Vec<Array>);

    /// The same structure with other leaves; `None` when there are too few.
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
