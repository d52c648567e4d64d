//! QR factors, computed by panels of columns. The reflections of a panel are applied together.

use super::apply::Applied;
use super::householder::Reflections;
use super::strip::LANES;
use super::{Blocked, Element, Plane, Room, rooms};
use crate::scratch::Slot;

/// Columns that are factored at a time.
const PANEL: usize = 64;

/// Memory for a factorisation.
struct Buffers {
    /// Columns of a panel, stored as rows.
    columns: Plane,
    /// V of a panel, with its columns stored as rows.
    v: Plane,
    /// T of all panels, one below the other, each transposed.
    t: Plane,
    applied: Applied,
    _room: Room,
}

impl Buffers {
    fn new<T: Element>(m: usize, n: usize) -> Buffers {
        // Begin columns at different cache sets.
        let (ld, k) = (m.next_multiple_of(LANES) + LANES, m.min(n).next_multiple_of(PANEL));
        let rows = [[PANEL, ld], [PANEL, ld], [k, PANEL], [PANEL, PANEL], [PANEL, n], [PANEL, n]];
        let ([columns, v, t, small, first, second], room) = rooms::<T, 6>(Slot::Operands, rows);
        let applied = Applied { small, products: [first, second] };
        Buffers { columns, v, t, applied, _room: room }
    }
}

impl<T: Element> Blocked<'_, T> {
    /// Writes the factors of the matrix `from`.
    ///
    /// # Safety
    /// The planes are valid, of elements `T` and shapes that fit, and disjoint.
    pub unsafe fn qr(&self, q: Plane, r: Plane, from: Plane) {
        let (m, n, k) = (from.m, from.n, r.m);
        // SAFETY: by this function's contract; rooms have the shapes of what is copied.
        unsafe {
            if k == m && r.has_rows() {
                self.copy(r, from);
                self.factors(r, q);
            } else {
                let room = Room::new::<T>(Slot::Operands, m, n);
                self.copy(room.plane, from);
                self.factors(room.plane, q);
                self.copy(r, room.plane.part(0, 0, k, n));
            }
            self.fill(r, T::default(), |i| 0..i);
        }
    }

    /// Replaces a by R, in and above the diagonal, and reflections; writes Q.
    ///
    /// # Safety
    /// As [`Blocked::qr`]; a has rows of adjacent elements.
    unsafe fn factors(&self, a: Plane, q: Plane) {
        let (m, n) = (a.m, a.n);
        let k = m.min(n);
        let buffers = Buffers::new::<T>(m, n);
        let panels = (0..k).step_by(PANEL);
        let triangle = |first: usize, width: usize| {
            buffers.t.part(first, 0, PANEL, PANEL).part(0, 0, width, width).transposed()
        };
        // SAFETY: parts of the matrices and of the buffers.
        unsafe {
            for first in panels.clone() {
                let (rows, width) = (m - first, PANEL.min(k - first));
                let panel = a.part(first, first, rows, width);
                let columns = buffers.columns.part(0, 0, width, rows).transposed();
                let v = buffers.v.part(0, 0, width, rows).transposed();
                let t = triangle(first, width);
                self.copy(columns.transposed(), panel.transposed());
                self.fill(t.transposed(), T::default(), |_| 0..width);
                let reflections = Reflections {
                    columns: columns.strip::<T>(),
                    v: v.strip(),
                    t: t.strip(),
                    work: buffers.applied.small.transposed().strip(),
                };
                reflections.run(self.cx.level);
                self.copy(panel, columns);
                let rest = a.part(first, first + width, rows, n - first - width);
                self.reflect(&buffers.applied, v, t, true, rest);
            }
            let room = (!q.has_rows()).then(|| Room::new::<T>(Slot::Operands, m, k));
            let own = room.as_ref().map_or(q, |room| room.plane);
            self.fill(own, T::default(), |_| 0..k);
            (0..k).for_each(|i| *own.place::<T>(i, i) = T::ONE);
            for first in panels.rev() {
                let (rows, width) = (m - first, PANEL.min(k - first));
                let v = buffers.v.part(0, 0, width, rows);
                self.copy(v, a.part(first, first, rows, width).transposed());
                self.fill(v, T::default(), |i| 0..i);
                (0..width).for_each(|i| *v.place::<T>(i, i) = T::ONE);
                let t = triangle(first, width);
                let rest = own.part(first, first, rows, k - first);
                self.reflect(&buffers.applied, v.transposed(), t, false, rest);
            }
            if room.is_some() {
                self.copy(q, own);
            }
        }
    }
}
