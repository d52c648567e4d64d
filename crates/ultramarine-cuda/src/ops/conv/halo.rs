//! Convolutions of stride 1 by `conv/halo.cuh`: the input ranges that tiles keep in shared memory, and the choice of the
//! tiles.

use super::geometry::{Convolution, pitch};
use super::product::MOST_SUMS;
use super::{Parts, headers};
use crate::context::DeviceProperties;
use crate::launch::Dtype;
use crate::program::{Source, index};

const HEADERS: &[&str] = &[
    headers::NUMBER,
    headers::MMA,
    include_str!("../../../kernels/conv/sizes.cuh"),
    include_str!("../../../kernels/conv/product.cuh"),
    include_str!("../../../kernels/conv/halo.cuh"),
];

/// `AXIS_TAPS` of the kernel, the bytes that it stores for each row, and the gap in bytes between rows
/// of channels.
const AXIS_TAPS: i64 = 10;
const ROW: i64 = 8;
const GAP: i64 = 16;
/// With fewer bytes of channels, most of a chunk would be empty.
const FEW_CHANNELS: i64 = 64;
/// Taps of a plane below which a range is hardly reused.
const FEW_TAPS: i64 = 3;
/// Bytes of a chunk of channels.
const CHUNK: i64 = 128;
/// Shared memory that a block takes in addition to its own.
const RESERVED: i64 = 1024;
/// Threads of a multiprocessor for which there are enough registers, and the number below which they
/// wait too often.
const THREADS: i64 = 384;
const FEW_THREADS: i64 = 256;
/// Clock cycles of a tile without its products, and of a launch that adds parts; and the bytes of sums that memory
/// transfers in a cycle.
const TILE_CLOCKS: f64 = 4000.0;
const JOIN_CLOCKS: f64 = 4000.0;
const CLOCK_BYTES: f64 = 1500.0;

/// The parameters of a compiled kernel: a tile of the output, and the number of blocks for which a
/// multiprocessor has registers and shared memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tile {
    /// Matrices of 16 rows, for each of 4 warps.
    matrices: i64,
    columns: i64,
    on_cores: bool,
    threads: i64,
    at_once: i64,
}

impl Tile {
    fn new(matrices: i64, columns: i64, on_cores: bool) -> Self {
        let threads = if on_cores { 128 } else { 2 * columns };
        Self { matrices, columns, on_cores, threads, at_once: 0 }
    }

    fn rows(&self) -> i64 {
        64 * self.matrices
    }

    pub fn threads(&self) -> u32 {
        self.threads as u32
    }

    /// Clock cycles that a multiprocessor takes for such tiles, each with `taps` taps of chunks, as measured on an
    /// H100.
    fn clocks(&self, tiles: i64, taps: i64) -> f64 {
        let of_row = if self.on_cores { 5.0 } else { 22.0 };
        let each = (taps * (self.rows() + 32) * self.columns / 64) as f64 * of_row;
        let rounds = (tiles + self.at_once - 1) / self.at_once;
        // If fewer tiles run at once, each of them waits more.
        let lonely = (rounds * self.at_once - tiles) as f64 * 0.3;
        (tiles as f64 + lonely) * each + rounds as f64 * TILE_CLOCKS
    }
}

/// The parameters of a launch (`Halo` in the kernel): the input ranges that tiles keep in shared
/// memory.
#[derive(Clone, Copy, Debug)]
pub struct Ranges {
    pub tile: Tile,
    pitch: i64,
    places: i64,
    before: i64,
    buffers: i64,
    /// Bytes of shared memory.
    pub shared: u32,
    /// Tiles times the parts of each tile's sums.
    pub blocks: i64,
    pub parts: Parts,
}

impl Ranges {
    /// The ranges for a convolution whose operands are already padded, with the fastest tiles. `None` if the general
    /// kernel has to do it. The sums of a part take `sums` bytes.
    pub fn of(
        conv: &Convolution,
        on_cores: bool,
        device: &DeviceProperties,
        sums: u64,
    ) -> Option<Self> {
        let fits = conv.axes.iter().all(|a| a.stride == 1 && a.taps <= AXIS_TAPS);
        let taps = conv.axes[1].taps * conv.axes[2].taps;
        if !fits || taps < FEW_TAPS || conv.channels * (conv.bytes as i64) < FEW_CHANNELS {
            return None;
        }
        let columns = if conv.outputs <= 32 { 32 } else { 64 };
        // Large tiles come first: among equally fast ones, they read less.
        let sizes: &[i64] = if on_cores { &[4, 3, 2] } else { &[2] };
        let of_size = |matrices: &i64| {
            Self::with_tile(conv, Tile::new(*matrices, columns, on_cores), device, sums)
        };
        let all = sizes.iter().filter_map(of_size);
        all.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, ranges)| ranges)
    }

    /// The ranges for a tile, and the clock cycles that they take.
    fn with_tile(
        conv: &Convolution,
        mut tile: Tile,
        device: &DeviceProperties,
        sums: u64,
    ) -> Option<(f64, Self)> {
        let [xs, ..] = conv.shapes();
        let pitch = pitch(&conv.x, xs)?;
        let (places, before) = span(conv, tile.rows())?;
        let bytes = |buffers: i64| -> Option<i64> {
            let lines = places.checked_mul(buffers)?.checked_add(2 * tile.columns + 1)?;
            lines.checked_mul(CHUNK + GAP)?.checked_add(tile.rows() * ROW)
        };
        let room = i64::from(device.shared_optin) + RESERVED;
        let most_threads = if conv.bytes > 4 { FEW_THREADS } else { THREADS };
        let at_once = |buffers: i64| {
            bytes(buffers).map_or(0, |b| room / (b + RESERVED)).min(most_threads / tile.threads)
        };
        let chunks_of_plane = (conv.channels * conv.bytes as i64 + CHUNK - 1) / CHUNK;
        let (chunks, taps) =
            (conv.axes[0].taps * chunks_of_plane, conv.axes[1].taps * conv.axes[2].taps);
        let is_worth_two = at_once(2) == at_once(1) || tile.on_cores && at_once(2) == 2;
        let buffers = if chunks > 1 && is_worth_two { 2 } else { 1 };
        let (shared, at_once) = (bytes(buffers)? as u32, at_once(buffers));
        if at_once * tile.threads < FEW_THREADS {
            return None;
        }
        tile.at_once = at_once;

        let down = (conv.rows() + tile.rows() - 1) / tile.rows();
        let across = (conv.outputs + tile.columns - 1) / tile.columns;
        let (blocks, processors) = (conv.groups * down * across, i64::from(device.multiprocessors));
        let wanted = (at_once * processors / blocks).min((MOST_SUMS / sums.max(1)) as i64);
        let in_parts = |wanted: i64| {
            let parts = Parts::of(chunks, wanted.max(1), 1);
            let join = match parts.count {
                1 => 0.0,
                n => JOIN_CLOCKS + 2.0 * n as f64 * sums as f64 / CLOCK_BYTES,
            };
            let tiles = (blocks * parts.count + processors - 1) / processors;
            let clocks = tile.clocks(tiles, parts.each * taps) + join;
            (clocks, Self { tile, pitch, places, before, buffers, shared, blocks, parts })
        };
        let (whole, split) = (in_parts(1), in_parts(wanted));
        Some(if split.0 < whole.0 { split } else { whole })
    }

    /// The fields of the kernel's `Halo`, in order.
    pub fn words(&self) -> [i64; 4] {
        [self.pitch, self.places, self.before, self.buffers]
    }
}

/// The number of positions in a tile's range for a plane of taps, and how many of them come before the first tap of the
/// first row.
///
/// From one row to the next, the position in the input advances by one. At the end of an output axis, it also advances by
/// the difference between the input's and the output's size along this axis.
fn span(conv: &Convolution, rows: i64) -> Option<(i64, i64)> {
    let (mut before, mut after, mut step, mut outputs) = (0_i64, 0_i64, 1_i64, 1_i64);
    for (d, axis) in conv.axes.iter().enumerate().rev() {
        outputs = outputs.checked_mul(axis.output)?;
        let ends = (rows - 1 + outputs - 1) / outputs.max(1);
        let more = (axis.input - axis.output).checked_mul(step)?.checked_mul(ends)?;
        let taps =
            if d == 0 { 0 } else { (axis.taps - 1).checked_mul(axis.spread)?.checked_mul(step)? };
        (before, after) =
            (before + (-more).max(0), after.checked_add(more.max(0))?.checked_add(taps)?);
        step = step.checked_mul(axis.input)?;
    }
    Some((rows.checked_add(before)?.checked_add(after)?, before))
}

/// Replaces the strides of positions by strides that count positions, as the kernel expects.
pub fn in_places(mut conv: Convolution) -> Convolution {
    let mut step = 1;
    for d in (0..4).rev() {
        conv.x.strides[d] = step;
        step *= if d > 0 { conv.axes[d - 1].input } else { 1 };
    }
    conv
}

/// The kernel of a tile.
pub fn source(tile: Tile, dtype: Dtype, is_wide: bool) -> Source {
    let (d, i) = (dtype.tag(), index(is_wide));
    let Tile { matrices, columns, on_cores, threads, at_once } = tile;
    // Three large tiles' sums leave no registers for unrolling.
    let unrolled = on_cores && at_once == 2;
    let arguments = format!("{d}, {i}, {matrices}, {columns}, {CHUNK}, {on_cores}, {unrolled}");
    let parameters = format!(
        "const {d}::T *x, const {d}::T *w, {d}::T *y, {d}::A *partial, i64 part, const Halo halo, const Convolution s"
    );
    Source::instance(HEADERS, "convolve_halo", arguments, parameters)
        .bounded(format!("{threads}, {at_once}"))
}

#[cfg(test)]
mod tests {
    use super::super::geometry::{Axis, Tensor};
    use super::*;

    #[test]
    fn ranges_hold_what_taps_meet() {
        let axis = |input, output, taps, low, spread| Axis {
            input,
            output,
            taps,
            stride: 1,
            low,
            spread,
            gaps: 1,
        };
        let tensor = Tensor { address: 0, strides: [1; 6] };
        for axes in [
            [axis(1, 1, 1, 0, 1), axis(9, 9, 3, 1, 1), axis(7, 7, 3, 1, 1)],
            [axis(1, 1, 1, 0, 1), axis(9, 5, 3, 0, 2), axis(7, 5, 3, 0, 1)],
            [axis(3, 5, 3, 2, 1), axis(4, 7, 4, 3, 1), axis(5, 6, 2, 1, 1)],
            [axis(4, 2, 2, -1, 1), axis(3, 9, 2, 5, 2), axis(8, 3, 3, 1, 2)],
        ] {
            let conv = Convolution {
                batch: 3,
                groups: 1,
                channels: 1,
                outputs: 1,
                axes,
                x: tensor,
                w: tensor,
                y: tensor,
                bytes: 4,
            };
            let flat = |row: i64, tap: i64| {
                let (mut row, mut tap, mut at, mut step, mut inside) = (row, tap, 0, 1, true);
                for a in axes.iter().rev() {
                    let place = row % a.output - a.low + tap % a.taps * a.spread;
                    inside = inside && (0..a.input).contains(&place);
                    at += place * step;
                    (row, tap, step) = (row / a.output, tap / a.taps, step * a.input);
                }
                (at + row * step, inside)
            };
            let plane = axes[1].taps * axes[2].taps;
            for rows in [4, 16, 30] {
                let (places, before) = span(&conv, rows).unwrap();
                for first in (0..conv.rows()).step_by(rows as usize) {
                    let from = flat(first, 0).0 - before;
                    for row in first..(first + rows).min(conv.rows()) {
                        for tap in 0..conv.taps() {
                            let (at, inside) = flat(row, tap);
                            let of_plane = at - flat(0, tap / plane * plane).0 + flat(0, 0).0;
                            assert!(
                                !inside || (from..from + places).contains(&of_plane),
                                "{axes:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}
