//! How products of few rows with 4-bit matrices are divided among multiprocessors: `quantized/stream.cuh`.

use super::Arrangement;
use crate::launch::Device;
use crate::ops::quantized::Format;

/// Threads of a block.
pub const THREADS: u32 = 512;
/// Tiles of a warp that are in flight at once.
pub const AHEAD: i64 = 2;

/// Warps of a block, and the bytes of a warp's tile of words.
const WARPS: i64 = 16;
const TILE_BYTES: i64 = 2048;
/// Columns of a tile.
const TILE: i64 = 16;
/// Numbers along the depth that a warp processes at a time, and the numbers of all warps together.
const SLICE: i64 = 256;
const PASS: i64 = WARPS * SLICE;
/// Maximum number of rows, and the distance between the rows of sums of a warp's tile.
const ROWS: i64 = 8;
const PITCH: i64 = 20;
/// Maximum number of blocks that a multiprocessor runs one after the other.
const MOST_TURNS: i64 = 12;

/// Properties of a device that bound an arrangement.
#[derive(Clone, Copy)]
pub struct Limits {
    /// Multiprocessors.
    pub processors: i64,
    /// Maximum shared memory of a block, in bytes.
    pub room: i64,
}

impl Limits {
    pub fn of(device: &Device) -> Self {
        Self {
            processors: i64::from(device.properties.multiprocessors),
            room: i64::from(device.properties.shared_optin),
        }
    }
}

/// The division of a product among the device's multiprocessors, as `quantized/stream.cuh` takes
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Parts of the depth that are used as columns of one tensor core product.
    pub slots: i64,
    /// Columns per block.
    pub each: i64,
    /// Bytes of shared memory of a block.
    pub bytes: i64,
}

impl Stream {
    /// The arrangement for the sizes: items, rows, columns and depth. `None` if `quantized/rows.cuh` is as fast.
    pub fn of(limits: Limits, format: Format, how: Arrangement, sizes: [i64; 4]) -> Option<Self> {
        let [items, rows, columns, depth] = sizes;
        if format.bits != 4 || rows > ROWS || depth % SLICE != 0 || !pays(format, how, rows, depth)
        {
            return None;
        }
        // For NVFP4, numbers are scaled, not sums.
        let slots = match rows {
            _ if format.group < 32 => 1,
            0..=2 => 4,
            3..=4 => 2,
            _ => 1,
        };
        // As few blocks as possible for which a block's shared memory is large enough.
        let blocks = (limits.processors / items.max(1)).max(1);
        let tiles = (columns + TILE - 1) / TILE;
        (1..=MOST_TURNS).find_map(|turns| {
            let tiles = (tiles + blocks * turns - 1) / (blocks * turns);
            let bytes = bytes(format, rows, tiles, depth);
            (bytes <= limits.room).then_some(Self { slots, each: tiles * TILE, bytes })
        })
    }
}

/// Returns true if this kernel is faster. It is if enough warps have a slice in each pass over the depth, and if there are few
/// sums to scale when there are several passes.
fn pays(format: Format, how: Arrangement, rows: i64, depth: i64) -> bool {
    let whole = (depth + PASS - 1) / PASS * PASS;
    let (once, few) = (whole == PASS, rows <= 2);
    let enough = match how {
        _ if depth == whole => true,
        Arrangement::Together if few && !once => 8 * depth >= 7 * whole,
        Arrangement::Together => 2 * depth >= PASS,
        _ => false,
    };
    enough && (once || few || format.group != 32)
}

fn bytes(format: Format, rows: i64, tiles: i64, depth: i64) -> i64 {
    let (size, tensors) = if format.is_affine() { (2, 2) } else { (1, 1) };
    let scales = (depth / i64::from(format.group) * size + 31) / 16 * 16 * tensors;
    let sums = WARPS * rows * PITCH * 4;
    WARPS * AHEAD * TILE_BYTES + tiles * (sums + TILE * scales)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Dtype;
    use Arrangement::{Apart, Together};
    use ultramarine_abi::schema::quantization::{AFFINE, NVFP4};

    const LIMITS: Limits = Limits { processors: 132, room: 232_448 };

    fn of(bits: u32, how: Arrangement, sizes: [i64; 4]) -> Option<Stream> {
        with_group(bits, 64, how, sizes)
    }

    fn with_group(bits: u32, group: u32, how: Arrangement, sizes: [i64; 4]) -> Option<Stream> {
        let format = Format::of(AFFINE, bits, group, true, Dtype::Bfloat16).unwrap();
        Stream::of(LIMITS, format, how, sizes)
    }

    #[test]
    fn each_processor_has_one_block_if_there_is_room() {
        for (rows, slots) in [(1, 4), (2, 4), (3, 2), (4, 2), (5, 1), (8, 1)] {
            let stream = of(4, Together, [1, rows, 11008, 4096]).unwrap();
            assert_eq!((stream.slots, stream.each), (slots, 96));
        }
        let bytes = 65536 + 6 * (16 * 8 * 20 * 4 + 16 * 2 * 144);
        assert_eq!(of(4, Together, [1, 8, 11008, 4096]).unwrap().bytes, bytes);
        assert_eq!(of(4, Apart, [8, 1, 1408, 4096]).unwrap().each, 96);
        assert_eq!(of(4, Together, [1, 8, 28672, 4096]).unwrap().each, 112);
        assert_eq!(of(4, Together, [1, 1, 28672, 4096]).unwrap().each, 224);
        // The scales of even a single tile do not fit.
        assert_eq!(of(4, Together, [1, 1, 16, 4096 * 100]), None);
    }

    #[test]
    fn numbers_of_nvfp4_are_scaled() {
        let format = Format::of(NVFP4, 4, 16, false, Dtype::Float16).unwrap();
        let stream = Stream::of(LIMITS, format, Together, [1, 1, 11008, 4096]).unwrap();
        assert_eq!(stream.slots, 1);
    }

    #[test]
    fn warps_have_work() {
        let depths = |how, rows| {
            [512, 1024, 2048, 4096, 5120, 8192, 8200, 11008]
                .into_iter()
                .filter(|depth| of(4, how, [1, rows, 4096, *depth]).is_some())
                .collect::<Vec<_>>()
        };
        assert_eq!(depths(Together, 1), [2048, 4096, 8192, 11008]);
        assert_eq!(depths(Together, 3), [2048, 4096, 5120, 8192, 11008]);
        assert_eq!(depths(Apart, 3), [4096, 8192]);
        let small_groups = |rows, depth| with_group(4, 32, Together, [1, rows, 4096, depth]);
        assert!(small_groups(3, 4096).is_some() && small_groups(2, 8192).is_some());
        assert_eq!(small_groups(3, 8192), None);
        assert_eq!(of(4, Together, [1, 9, 4096, 4096]), None);
        assert_eq!(of(3, Together, [1, 1, 4096, 4096]), None);
    }
}
