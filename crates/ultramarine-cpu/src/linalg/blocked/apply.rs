//! Applies many reflections to a matrix by matrix products.

use super::{Blocked, Element, Plane};

/// Memory for the application of up to `width` reflections to matrices of `n` columns.
#[derive(Clone, Copy)]
pub struct Applied {
    /// `width` x `width`.
    pub small: Plane,
    /// Products of the reflections with all columns, `width` x `n`.
    pub products: [Plane; 2],
}

impl<T: Element> Blocked<'_, T> {
    /// `c -= V T V^H c`, or with T's adjoint.
    ///
    /// # Safety
    /// The planes are valid, of elements `T` and shapes that fit; c has rows of adjacent elements.
    pub unsafe fn reflect(&self, room: &Applied, v: Plane, t: Plane, adjoint: bool, c: Plane) {
        let width = v.n;
        let [first, second] = room.products.map(|p| p.part(0, 0, width, c.n));
        let small = room.small.part(0, 0, width, width);
        // SAFETY: by this function's contract.
        unsafe {
            for i in 0..width {
                for j in 0..width {
                    let at = if adjoint { t.place::<T>(j, i) } else { t.place(i, j) };
                    *small.place::<T>(i, j) = if adjoint { (*at).conjugate() } else { *at };
                }
            }
            let negated = self.negated(v.transposed(), true);
            self.product(first, negated.plane, c, false);
            drop(negated);
            self.product(second, small, first, false);
            self.add_product(c, v, second);
        }
    }
}
