//! Copies between tensors that are contiguous along different axes, by `copy_blocks.wgsl` or
//! `copy_tile.wgsl`.

use crate::dtype::{Dtype, Wgsl};
use crate::launch::Axes;
use crate::shader::source::Source;
use crate::shader::vector::{FOUR, vector_of};
use crate::shader::{Program, Tensor};
use std::fmt::Write as _;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;

const TILE: &str = include_str!("../../../kernels/copy_tile.wgsl");
const BLOCKS: &str = include_str!("../../../kernels/copy_blocks.wgsl");
/// Elements of a tile's side, or vectors of a side if the tile consists of blocks.
const SIDE: i64 = 32;
const BLOCK_SIDE: i64 = 16;
/// Minimum sizes of axes for which tiles are worth it.
const LEAST: i64 = 8;
/// Invocations of a workgroup.
const GROUP: u32 = 256;

/// The kernel for a dtype.
pub fn source(dtype: Dtype) -> Source {
    let tensors = ["a", "out"].map(|name| Tensor { name, dtype });
    let item = format!("alias A = {};\n{TILE}", dtype.register());
    Program::new(&tensors).item(&item).group_body(GROUP, "copy_tile(g, local);").build()
}

/// The kernel in blocks, for the dtypes that support it: a vector is 4 consecutive elements.
pub fn blocks(dtype: Dtype) -> Option<Source> {
    let mut item = String::new();
    for (row, part) in ["x", "y", "z", "w"].into_iter().enumerate() {
        let column = match dtype {
            Dtype::Uint32 => format!("V(v0.{part}, v1.{part}, v2.{part}, v3.{part})"),
            Dtype::Uint16 => {
                let word = ["x", "y"][row / 2];
                let pair = |low: &str, high: &str| match row % 2 {
                    0 => format!("({low}.{word} & 0xffffu) | ({high}.{word} << 16u)"),
                    _ => format!("({low}.{word} >> 16u) | ({high}.{word} & 0xffff0000u)"),
                };
                format!("V({}, {})", pair("v0", "v1"), pair("v2", "v3"))
            }
            _ => return None,
        };
        _ = writeln!(
            item,
            "fn across{row}(v0: V, v1: V, v2: V, v3: V) -> V {{ return {column}; }}"
        );
    }
    let vector = match dtype {
        Dtype::Uint16 => "vec2<u32>",
        _ => vector_of(dtype, FOUR as usize),
    };
    let program = Program::new(&[]).array("a", vector).array("out", vector);
    let item = format!("alias V = {vector};\n{item}{BLOCKS}");
    Some(program.item(&item).group_body(GROUP, "copy_blocks(g, local);").build())
}

/// A copy between tensors that are contiguous along different axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiled {
    /// Sizes of the axis along which the input is contiguous, and of the one along which the output
    /// is.
    sizes: [i64; 2],
    /// The input's stride along the second axis, and the output's along the first.
    steps: [i64; 2],
    outer: Axes<2>,
}

impl Tiled {
    /// Returns the copy, if tiles are worthwhile.
    pub fn of(axes: &Axes<2>) -> Option<Self> {
        let along = |k: usize| axes.list.iter().position(|(_, steps)| steps[k] == 1);
        let (a, b) = (along(0)?, along(1)?);
        let [(size_a, [_, step_a]), (size_b, [step_b, _])] = [axes.list[a], axes.list[b]];
        if a == b || size_a < LEAST || size_b < LEAST {
            return None;
        }
        let list = axes.list.iter().enumerate().filter(|(i, _)| *i != a && *i != b);
        let outer = Axes { list: list.map(|(_, axis)| *axis).collect(), ..axes.clone() };
        Some(Self { sizes: [size_a, size_b], steps: [step_b, step_a], outer })
    }

    /// The copy counted in vectors, if vectors can cover all of it.
    pub fn in_vectors(&self) -> Option<Self> {
        let Self { sizes, steps, outer } = self;
        let strides = outer.list.iter().flat_map(|(_, strides)| strides);
        let mut all = sizes.iter().chain(steps).chain(&outer.offsets).chain(strides);
        if !all.all(|n| n % FOUR == 0) {
            return None;
        }
        let fourth = |all: &[i64; 2]| all.map(|n| n / FOUR);
        let list = outer.list.iter().map(|(size, strides)| (*size, fourth(strides))).collect();
        let outer = Axes { list, offsets: fourth(&outer.offsets), ..outer.clone() };
        Some(Self { sizes: fourth(sizes), steps: fourth(steps), outer })
    }

    /// The workgroups of a copy in tiles, and the words after the first.
    pub fn words(&self) -> Result<(u32, Vec<u32>)> {
        self.words_of(SIDE)
    }

    /// Likewise, for a copy in blocks.
    pub fn block_words(&self) -> Result<(u32, Vec<u32>)> {
        self.words_of(BLOCK_SIDE)
    }

    fn words_of(&self, side: i64) -> Result<(u32, Vec<u32>)> {
        let tiles = self.sizes.map(|size| u64::try_from(size).unwrap_or(0).div_ceil(side as u64));
        let each = tiles[0] * tiles[1];
        let groups = each * u64::from(self.outer.elements()?);
        let groups = u32::try_from(groups).map_err(|_| Failure {
            code: status::OUT_OF_MEMORY,
            text: "a copy of more than 4294967295 tiles".to_owned(),
        })?;
        let sizes = self.sizes.map(|size| size as u32);
        let steps = self.steps.map(|step| step as u32);
        let mut words = vec![sizes[0], sizes[1], tiles[0] as u32, each as u32];
        words.extend(steps);
        self.outer.words(&mut words);
        Ok((groups, words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::{compile, narrow, patch};

    #[test]
    fn tiles_of_every_dtype_compile() {
        let blocks = [Dtype::Uint32, Dtype::Uint16].map(|dtype| blocks(dtype).unwrap());
        for source in crate::dtype::ALL.map(source).into_iter().chain(blocks) {
            let module = compile::compile(&source.text).unwrap();
            let module = narrow::narrow(&module, &source.bytes).unwrap();
            patch::patch(&module, &Default::default()).unwrap();
        }
    }

    #[test]
    fn transposed_axes_are_cut_in_tiles() {
        let of = |axes: &[_]| Tiled::of(&Axes::join([5, 7], axes.iter().copied()));
        // Shape (2, 40, 70) from (2, 70, 40).
        let copy = of(&[(2, [2800, 2800]), (40, [1, 70]), (70, [40, 1])]).unwrap();
        let (groups, words) = copy.words().unwrap();
        assert_eq!(groups, 2 * 2 * 3);
        assert_eq!(words, [40, 70, 2, 6, 40, 70, 1, 5, 7, 2, 2800, 2800]);
        assert_eq!(copy.in_vectors(), None, "offsets");
        assert_eq!(of(&[(4, [1, 70]), (70, [4, 1])]), None, "a narrow axis");
        assert_eq!(of(&[(40, [140, 70]), (70, [2, 1])]), None, "nothing that lies together");
    }

    #[test]
    fn blocks_are_counted_in_vectors() {
        let of = |offsets, axes: &[_]| Tiled::of(&Axes::join(offsets, axes.iter().copied()));
        let axes = [(3, [-2880, 2880]), (40, [1, 72]), (72, [40, 1])];
        let copy = of([8, 4], &axes).unwrap().in_vectors().unwrap();
        let (groups, words) = copy.block_words().unwrap();
        // One axis has 10 blocks, less than a tile; the other has 18 more.
        assert_eq!(groups, 3 * 2);
        let back = -720_i32 as u32;
        assert_eq!(words, [10, 18, 1, 2, 10, 18, 1, 2, 1, 3, back, 720]);
        assert_eq!(of([8, 2], &axes).unwrap().in_vectors(), None, "an offset");
        let odd = of([0, 0], &[(40, [1, 70]), (70, [40, 1])]).unwrap();
        assert_eq!(odd.in_vectors(), None, "a size");
    }
}
