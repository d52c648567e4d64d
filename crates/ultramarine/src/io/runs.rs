//! Parts of an array in a file: ranges of one axis. Only their bytes are read.

use super::decode::{Decode, Layout};
use crate::shape::Shape;
use std::ops::Range;

/// Shortest piece of a file, in bytes, that is worth its own read.
const SHORTEST: usize = 4 << 10;

/// The pieces of a file that make up a part. The same pieces repeat at equal distances.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    /// Bytes between the starts of consecutive repetitions.
    step: u64,
    /// Each piece by its position within a repetition, in the order of the part.
    pieces: Box<[Range<u64>]>,
    /// Bytes of the part that a repetition provides.
    bytes: usize,
}

impl Runs {
    /// The runs for ranges of an axis, and the layout of the part. `None` if the ranges are not plain bytes of the
    /// file, or if the pieces are so short that reading the whole array takes less time.
    pub fn of(
        layout: &Layout,
        decode: &Decode,
        axis: usize,
        ranges: &[Range<usize>],
    ) -> Option<(Runs, Layout)> {
        let plain = matches!(decode, Decode::Same) && !layout.fortran;
        let length = *layout.shape.get(axis).filter(|_| plain)?;
        let row = layout.dtype.bytes_of(layout.shape[axis + 1..].iter().product());
        // Elements smaller than a byte may share one.
        let whole = row as u128 * length as u128
            == layout.dtype.bytes_of(layout.shape[axis..].iter().product()) as u128;
        let inside = ranges.iter().all(|range| range.start <= range.end && range.end <= length);
        let wanted = || ranges.iter().filter(|range| !range.is_empty());
        let once = layout.shape[..axis].iter().all(|n| *n == 1);
        let long = wanted().all(|range| once || range.len() * row >= SHORTEST);
        if !(whole && inside && long) || wanted().next().is_none() || row == 0 {
            return None;
        }
        let place = |n: usize| n as u64 * row as u64;
        let pieces = wanted().map(|range| place(range.start)..place(range.end)).collect();
        let count: usize = wanted().map(Range::len).sum();
        let runs = Runs { step: place(length), pieces, bytes: count * row };
        let mut shape = Shape::from_slice(&layout.shape);
        shape[axis] = count;
        Some((runs, Layout { shape, ..layout.clone() }))
    }

    /// Calls `read`, in order, for each piece of the file that fills bytes of the part from an offset on. `read` gets
    /// the piece's position in the file and the range of the target.
    pub fn each<E>(
        &self,
        offset: usize,
        bytes: usize,
        mut read: impl FnMut(u64, Range<usize>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut done = 0;
        while done < bytes {
            let (turn, mut within) = ((offset + done) / self.bytes, (offset + done) % self.bytes);
            for piece in &self.pieces {
                let length = (piece.end - piece.start) as usize;
                if within >= length {
                    within -= length;
                    continue;
                }
                let count = (length - within).min(bytes - done);
                if count == 0 {
                    break;
                }
                let place = turn as u64 * self.step + piece.start + within as u64;
                read(place, done..done + count)?;
                (done, within) = (done + count, 0);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "parts that are one range")]
mod tests {
    use super::Runs;
    use crate::dtype::Dtype;
    use crate::io::decode::{Decode, Layout};
    use crate::shape::Shape;

    fn layout(dtype: Dtype, shape: &[usize]) -> Layout {
        Layout::rows(dtype, Shape::from_slice(shape))
    }

    #[test]
    fn pieces_are_those_of_the_ranges() {
        let whole = layout(Dtype::Uint8, &[3, 8, 1024]);
        let (runs, part) = Runs::of(&whole, &Decode::Same, 1, &[0..4, 4..8]).unwrap();
        assert_eq!(part.shape[..], [3, 8, 1024]);
        assert_eq!(runs.bytes, 8192);
        let (runs, part) = Runs::of(&whole, &Decode::Same, 1, &[4..8]).unwrap();
        assert_eq!(part.shape[..], [3, 4, 1024]);
        let mut found = Vec::new();
        runs.each::<()>(4000, 4200, |at, target| {
            found.push((at, target));
            Ok(())
        })
        .unwrap();
        // Expects the end of the first repetition, all of the second, and the beginning of the third.
        assert_eq!(found, [(8096, 0..96), (12288, 96..4192), (20480, 4192..4200)]);
    }

    #[test]
    fn short_pieces_and_other_layouts_are_not_cut() {
        let narrow = layout(Dtype::Float32, &[64, 8]);
        assert!(Runs::of(&narrow, &Decode::Same, 1, &[0..4]).is_none());
        // A single piece may be short.
        assert!(Runs::of(&narrow, &Decode::Same, 0, &[3..5]).is_some());
        assert!(Runs::of(&narrow, &Decode::Same, 0, &[3..65]).is_none());
        assert!(Runs::of(&narrow, &Decode::Same, 0, &[3..3]).is_none());
        assert!(Runs::of(&narrow, &Decode::Same, 2, &[0..1]).is_none());
        let fortran = Layout { fortran: true, ..narrow };
        assert!(Runs::of(&fortran, &Decode::Same, 0, &[3..5]).is_none());
    }
}
