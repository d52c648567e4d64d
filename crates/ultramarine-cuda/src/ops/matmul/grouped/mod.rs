//! Products whose items select their matrices. One launch processes tiles of rows that use the same matrix; blocks find
//! these rows on the device (`grouped/rows.cuh`).

mod cores;
mod few;
mod kernels;
mod stream;

pub use kernels::Products;

use crate::launch::View;
use crate::ops::quantized::Format;
use ultramarine_abi::helper::{Failure, Result};

/// Maximum number of matrices for which a block counts the items of each.
const MOST_COUNTS: i64 = 4096;
/// Maximum number of items that every block searches itself. More items are first sorted into a
/// list.
const MOST_ITEMS: i64 = 8192;

/// The second factor of a product: dense or quantized matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// Dense matrices.
    Plain,
    /// Quantized matrices.
    Packed {
        /// The format of the words.
        format: Format,
        /// True if rows of words are columns of the factor.
        transpose: bool,
    },
}

/// The assignment of rows to tiles, as in `grouped/rows.cuh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// All rows use the same matrix.
    Together,
    /// Each item is divided into tiles.
    Apart,
    /// Tiles have the rows that use a matrix, from any items.
    Sorted,
    /// Likewise, by a list that another kernel makes before.
    Listed,
    /// Like [`Arrangement::Apart`], over parts of the depth.
    Segments,
}

impl Arrangement {
    /// The name in `grouped/rows.cuh`.
    pub fn tag(self) -> &'static str {
        match self {
            Arrangement::Together => "TOGETHER",
            Arrangement::Apart => "APART",
            Arrangement::Sorted => "SORTED",
            Arrangement::Listed => "LISTED",
            Arrangement::Segments => "SEGMENTS",
        }
    }
}

/// The operands of a command.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The first factor: matrices, rows, depth.
    pub x: &'a View<'a>,
    /// The second factor: matrices, depth, columns; or quantized words.
    pub factor: &'a View<'a>,
    /// Scales of quantized words.
    pub scales: Option<&'a View<'a>>,
    /// Biases of quantized words.
    pub biases: Option<&'a View<'a>>,
    /// Global scales of the quantized matrices.
    pub global: Option<&'a View<'a>>,
    /// The indices of the first factor's matrices.
    pub lhs: Option<&'a View<'a>>,
    /// The indices of the second factor's matrices.
    pub rhs: Option<&'a View<'a>>,
    /// Parts of the depth.
    pub segments: Option<&'a View<'a>>,
    /// Items, rows, columns.
    pub out: &'a View<'a>,
}

impl<'a> Call<'a> {
    /// Returns the call if the shapes of items and rows are consistent.
    pub fn checked(self) -> Result<Call<'a>> {
        let [items, rows, columns, depth] = self.sizes()?;
        let chosen = |indices: Option<&View<'_>>, matrices: i64| match indices {
            Some(indices) => indices.shape == [items],
            None => matrices == items,
        };
        let fits = self.x.shape[1] == rows
            && (self.segments.is_some()
                || chosen(self.lhs, self.x.shape[0]) && chosen(self.rhs, self.factor.shape[0]));
        if !fits {
            return Err(Failure::invalid(format!(
                "a product of {:?} and {:?} into {:?}",
                self.x.shape, self.factor.shape, self.out.shape
            )));
        }
        let counts = [items.saturating_mul(rows), columns, depth, self.factor.shape[0]];
        if counts.iter().any(|n| *n > i64::from(i32::MAX) / 2) {
            return Err(Failure::unsupported("a product of more rows than 31 bits count"));
        }
        Ok(self)
    }

    /// Items, rows of each, columns, depth.
    pub fn sizes(&self) -> Result<[i64; 4]> {
        let ([_, _, depth], [items, rows, columns]) = (three(self.x)?, three(self.out)?);
        Ok([items, rows, columns, depth])
    }

    /// How rows share tiles of `tile` rows, and the number of tiles.
    pub fn arrangement(&self, tile: i64) -> (Arrangement, i64) {
        let [items, rows, _] = [0, 1, 2].map(|i| self.out.shape[i]);
        let tiles = |rows: i64| (rows + tile - 1) / tile;
        let matrices = self.factor.shape[0];
        if self.segments.is_some() {
            return (Arrangement::Segments, items * tiles(rows));
        }
        if self.is_shared() {
            return (Arrangement::Together, tiles(items * rows));
        }
        if self.rhs.is_some() && rows < tile && matrices <= MOST_COUNTS {
            let how = if items > MOST_ITEMS { Arrangement::Listed } else { Arrangement::Sorted };
            return (how, items * rows / tile + matrices.min(items));
        }
        (Arrangement::Apart, items * tiles(rows))
    }

    /// How many of the tiles are likely to have rows.
    pub fn likely_tiles(&self, how: Arrangement, tiles: i64, tile: i64) -> i64 {
        if !matches!(how, Arrangement::Sorted | Arrangement::Listed) {
            return tiles;
        }
        let met = self.factor.shape[0].min(self.out.shape[0]);
        (self.out.shape[0] * self.out.shape[1] / tile + met / 2).max(met)
    }

    /// True if all items use the same matrix.
    pub fn is_shared(&self) -> bool {
        let of = |view: Option<&View<'_>>| view.is_none_or(|view| view.strides[0] == 0);
        let same = of(Some(self.factor)) && of(self.scales) && of(self.biases) && of(self.global);
        self.factor.shape[0] == 1 || self.segments.is_none() && same
    }

    /// Bytes of a list of the items, preceded by the start of each matrix's items in it.
    pub fn list_bytes(&self) -> u64 {
        let (items, matrices) = (self.out.shape[0], self.factor.shape[0]);
        // Tiles of all sizes have more than one row.
        match self.arrangement(self.out.shape[1] + 1).0 {
            Arrangement::Listed => 4 * (items + matrices + 1) as u64,
            _ => 0,
        }
    }

    /// `Grouped` of `grouped/rows.cuh`; `list` is the address of the list of items, or 0.
    pub fn words(&self, list: u64) -> Vec<i64> {
        let at = |view: Option<&View<'_>>| view.map_or(0, |view| view.address as i64);
        let indices = self.rhs.or(self.segments);
        let tensors = [Some(self.x), Some(self.factor), self.scales, self.biases];
        let mut words: Vec<i64> = tensors.into_iter().map(at).collect();
        words.extend([at(self.global), at(self.lhs), at(indices), at(Some(self.out))]);
        words.extend([list as i64, list as i64 + 4 * (self.factor.shape[0] + 1)]);
        words.extend_from_slice(self.out.shape);
        words.extend([self.x.shape[2], self.x.shape[0], self.factor.shape[0]]);
        for view in tensors.into_iter().chain([Some(self.out)]) {
            words.extend(view.map_or(&[0; 3][..], |view| view.strides));
        }
        let stride = |view: Option<&View<'_>>, i: usize| {
            view.and_then(|view| view.strides.get(i)).copied().unwrap_or(0)
        };
        words.extend([stride(self.global, 0), stride(self.lhs, 0)]);
        words.extend([stride(indices, 0), stride(indices, 1)]);
        words
    }
}

/// The sizes of a tensor of three axes.
pub fn three(view: &View<'_>) -> Result<[i64; 3]> {
    view.shape.try_into().map_err(|_| {
        Failure::invalid(format!("a product of chosen matrices of {} axes", view.shape.len()))
    })
}

/// Bytes of the counts of items that a block computes.
fn counts(call: &Call<'_>, how: Arrangement) -> u32 {
    if how == Arrangement::Sorted { 4 * call.factor.shape[0] as u32 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{Dtype, row_major};

    #[test]
    fn tiles_suffice_however_items_choose() {
        for (items, rows, matrices, tile) in
            [(150, 1, 6, 64), (9, 3, 4, 8), (5, 7, 40, 64), (64, 1, 2, 64)]
        {
            let shapes = [[items, rows, 8], [matrices, 8, 8], [items, rows, 8]];
            let strides = shapes.map(|shape| row_major(&shape));
            let view = |i: usize| View {
                address: 0,
                dtype: Dtype::Float32,
                shape: &shapes[i],
                strides: &strides[i],
            };
            let (x, factor, out) = (view(0), view(1), view(2));
            let rhs = View { address: 0, dtype: Dtype::Int32, shape: &[items], strides: &[1] };
            let (scales, biases, global, lhs, segments) = Default::default();
            let (x, factor, out, rhs) = (&x, &factor, &out, Some(&rhs));
            let call = Call { x, factor, scales, biases, global, lhs, rhs, segments, out };
            let (how, tiles) = call.checked().unwrap().arrangement(tile);
            assert_eq!(how, Arrangement::Sorted);
            for step in 1..7 {
                let mut counts = vec![0; matrices as usize];
                (0..items).for_each(|i| counts[(i * i * step % matrices) as usize] += rows);
                let used: i64 = counts.iter().map(|n| (n + tile - 1) / tile).sum();
                assert!(used <= tiles, "{used} tiles of {tiles}");
            }
        }
    }
}
