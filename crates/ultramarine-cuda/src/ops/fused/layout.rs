//! How a program's kernel walks tensors of any strides: in tiles of rows and columns.

use super::source::Variant;
use crate::launch::{BLOCK, MAX_AXES, span};

/// Size of kernel parameters, in bytes, that every device and driver supports.
pub const PARAMETERS: usize = 4096;
/// Number of outer axes that is enough for most commands.
pub const FEW: usize = 4;
/// Columns of a tile if a tensor is transposed.
const TRANSPOSED: u64 = 32;
/// Limit of 32-bit indices, with room for a tile.
const MOST: i64 = 1 << 30;

/// Number of outer axes that fit in the parameters, given the number of tensors and constants.
pub fn many(tensors: usize, constants: usize) -> usize {
    let rest = PARAMETERS - 64 - 16 * tensors - 8 * constants.max(1);
    (rest / (8 * (tensors + 1))).min(MAX_AXES)
}

/// A tensor of a program: its address, element size and strides.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Address of the first element.
    pub address: u64,
    /// Bytes of an element.
    pub bytes: u64,
    /// Strides in elements.
    pub strides: &'a [i64],
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Axis {
    size: i64,
    strides: Vec<i64>,
}

/// The launches of a command: the [`Variant`] of the program's kernel, and its parameters.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The kernel.
    pub variant: Variant,
    /// Its parameter: `FusedWalk` of fused.cuh.
    pub words: Vec<u64>,
    /// Number of tiles.
    pub tiles: u64,
    /// Axes that do not fit in the parameter. Each index along them needs a separate launch.
    beyond: Vec<Axis>,
}

/// Sizes and strides, sorted by the strides of tensor `lead` so that its contiguous axis is last,
/// and joined where the axes are adjacent in all tensors.
fn joined(shape: &[i64], places: &[Place<'_>], lead: usize) -> Vec<Axis> {
    let mut order: Vec<usize> = (0..shape.len()).filter(|d| shape[*d] != 1).collect();
    let far = |d: &usize| places[lead].strides[*d].unsigned_abs();
    if !order.is_sorted_by(|a, b| far(a) >= far(b)) {
        order.sort_by_key(|d| std::cmp::Reverse(far(d)));
    }
    let mut axes: Vec<Axis> = Vec::with_capacity(order.len());
    for d in order {
        let size = shape[d];
        let strides = places.iter().map(|p| p.strides[d]);
        match axes.last_mut() {
            Some(last)
                if strides.clone().zip(&last.strides).all(|(s, l)| *l == s.wrapping_mul(size)) =>
            {
                last.size *= size;
                last.strides.clear();
                last.strides.extend(strides);
            }
            _ => axes.push(Axis { size, strides: strides.collect() }),
        }
    }
    axes
}

/// If a tensor strides along `inner`, moves the outer axis along which it is contiguous to the end.
/// Returns whether there is such an axis.
fn transpose(outer: &mut Vec<Axis>, inner: &Axis) -> bool {
    let strided = |k: &usize| inner.strides[*k].unsigned_abs() > 1;
    let mut found = (0..inner.strides.len()).filter(strided).filter_map(|k| {
        outer.iter().position(|axis| axis.strides[k].unsigned_abs() == 1 && axis.size > 1)
    });
    let Some(at) = found.next() else { return false };
    let axis = outer.remove(at);
    outer.push(axis);
    true
}

/// A mask of the tensors whose packs along `inner` are all aligned.
fn aligned(places: &[Place<'_>], outer: &[Axis], inner: &Axis, pack: u64) -> u64 {
    let is = |(k, place): &(usize, &Place<'_>)| {
        let align = (pack * place.bytes).min(16);
        let fits = |bytes: u64| bytes.is_multiple_of(align);
        inner.strides[*k] == 1
            && fits(place.address)
            && outer.iter().all(|a| fits(a.strides[*k].unsigned_abs().wrapping_mul(place.bytes)))
    };
    places.iter().enumerate().filter(is).fold(0, |mask, (k, _)| mask | 1 << k)
}

/// log2 of the packs in a tile's row. Tiles are as wide as possible while few of their threads are
/// idle.
fn shift(rows: u64, packs: u64, most: u64) -> u32 {
    let full = BLOCK.trailing_zeros();
    let least = full - rows.next_power_of_two().min(u64::from(BLOCK)).trailing_zeros();
    let most = most.next_power_of_two().min(u64::from(BLOCK)).trailing_zeros().max(least);
    let waste = |s: u32| (packs.next_multiple_of(1 << s) - packs) * 8 > packs;
    let usual = |s: &u32| *s >= 3 || 1 << *s >= packs;
    let all = (least..=most).rev();
    let good = all.clone().find(|s| usual(s) && !waste(*s));
    let best = || all.clone().filter(usual).min_by_key(|s| packs.next_multiple_of(1 << s));
    good.or_else(best).unwrap_or(most)
}

impl Layout {
    /// The layout for tensors of a shape, inputs first. `lead` is the index of the first output,
    /// `pack` the number of elements in a pack.
    pub fn of(
        shape: &[i64],
        places: &[Place<'_>],
        lead: usize,
        constants: usize,
        pack: usize,
    ) -> Self {
        let mut outer = joined(shape, places, lead);
        let nothing = || Axis { size: 1, strides: vec![0; places.len()] };
        let inner = outer.pop().unwrap_or_else(nothing);
        let transposed = transpose(&mut outer, &inner);
        let whole = aligned(places, &outer, &inner, pack as u64);
        let columns = inner.size;
        let written = (lead..places.len()).all(|k| whole >> k & 1 == 1);
        let short = columns % pack as i64 != 0 && columns < 4 * pack as i64;
        let packs = pack > 1 && written && !short;
        let (pack, whole) = if packs { (pack as u64, whole) } else { (1, 0) };

        let rank = many(places.len(), constants);
        let beyond: Vec<_> = outer.drain(..outer.len().saturating_sub(rank)).collect();
        let rank = if outer.len() <= FEW { FEW.min(rank) } else { rank };
        let rows: i64 = outer.iter().map(|a| a.size).product();
        let in_row = (columns as u64).div_ceil(pack);
        let most = if transposed { TRANSPOSED.div_ceil(pack) } else { u64::from(BLOCK) };
        let shift = shift(rows as u64, in_row, most);
        let across = in_row.div_ceil(1 << shift);
        let tiles = across * (rows as u64).div_ceil(u64::from(BLOCK) >> shift);
        let axes = |k: usize| outer.iter().chain([&inner]).map(move |a| (a.size, a.strides[k]));
        let wide = rows.saturating_mul(columns) > MOST
            || tiles > MOST as u64 >> 8
            || (0..places.len()).any(|k| span(axes(k)) > MOST as u64);
        let axes = outer.len() as u64;
        let (height, shift) = (rows as u64, u64::from(shift));
        let mut words = vec![height, columns as u64, in_row, across, tiles, shift, axes, whole];
        let put = |words: &mut Vec<u64>, f: &dyn Fn(&Axis) -> i64| {
            words.extend((0..rank).map(|i| outer.get(i).map_or(0, |a| f(a) as u64)));
        };
        put(&mut words, &|a| a.size);
        words.extend(inner.strides.iter().map(|s| *s as u64));
        (0..places.len()).for_each(|k| put(&mut words, &|a| a.strides[k]));
        Self { variant: Variant::Walk { packs, rank, wide }, words, tiles, beyond }
    }

    /// Calls `launch` once for each launch, with the offsets of the tensors' first elements.
    pub fn each<E>(
        &self,
        tensors: usize,
        mut launch: impl FnMut(&[i64]) -> Result<(), E>,
    ) -> Result<(), E> {
        let count: i64 = self.beyond.iter().map(|a| a.size).product();
        for mut i in 0..count {
            let mut offsets = vec![0; tensors];
            for axis in self.beyond.iter().rev() {
                let index = i % axis.size;
                i /= axis.size;
                offsets.iter_mut().zip(&axis.strides).for_each(|(o, s)| *o += index * s);
            }
            launch(&offsets)?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
