//! Copies between tensors that lie along different axes, by `copy_tile.wgsl`.

use crate::dtype::{Dtype, Wgsl};
use crate::launch::Axes;
use crate::shader::source::Source;
use crate::shader::{Program, Tensor};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::status;

const TILE: &str = include_str!("../../../kernels/copy_tile.wgsl");
/// Elements of a side of a tile.
const SIDE: i64 = 32;
/// Sizes of axes for which tiles are worth it.
const LEAST: i64 = 8;
/// Invocations of a workgroup.
const GROUP: u32 = 256;

/// The kernel of a dtype.
pub fn source(dtype: Dtype) -> Source {
    let tensors = ["a", "out"].map(|name| Tensor { name, dtype });
    let item = format!("alias A = {};\n{TILE}", dtype.register());
    Program::new(&tensors).item(&item).group_body(GROUP, "copy_tile(g, local);").build()
}

/// The workgroups and the words behind the first for a copy in tiles, if that is the way for it.
pub fn words(axes: &Axes<2>) -> Result<Option<(u32, Vec<u32>)>> {
    let along = |k: usize| axes.list.iter().position(|(_, steps)| steps[k] == 1);
    let (Some(a), Some(b)) = (along(0), along(1)) else { return Ok(None) };
    let [(size_a, [_, step_a]), (size_b, [step_b, _])] = [axes.list[a], axes.list[b]];
    if a == b || size_a < LEAST || size_b < LEAST {
        return Ok(None);
    }
    let list = axes.list.iter().enumerate().filter(|(i, _)| *i != a && *i != b);
    let outer = Axes { list: list.map(|(_, axis)| *axis).collect(), ..axes.clone() };
    let tiles = [size_a, size_b].map(|size| u64::try_from(size).unwrap_or(0).div_ceil(SIDE as u64));
    let each = tiles[0] * tiles[1];
    let groups = u32::try_from(each * u64::from(outer.elements()?)).map_err(|_| Failure {
        code: status::OUT_OF_MEMORY,
        text: "a copy of more than 4294967295 tiles".to_owned(),
    })?;
    let mut words = vec![size_a as u32, size_b as u32, tiles[0] as u32, each as u32];
    words.extend([step_b as u32, step_a as u32]);
    outer.words(&mut words);
    Ok(Some((groups, words)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::{compile, narrow, patch};

    #[test]
    fn tiles_of_every_dtype_compile() {
        for dtype in crate::dtype::ALL {
            let source = source(dtype);
            let module = compile::compile(&source.text).unwrap();
            let module = narrow::narrow(&module, &source.bytes).unwrap();
            patch::patch(&module, &Default::default()).unwrap();
        }
    }

    #[test]
    fn transposed_axes_are_cut_in_tiles() {
        let of = |axes: &[_]| words(&Axes::join([5, 7], axes.iter().copied())).unwrap();
        // (2, 40, 70) from (2, 70, 40).
        let (groups, words) = of(&[(2, [2800, 2800]), (40, [1, 70]), (70, [40, 1])]).unwrap();
        assert_eq!(groups, 2 * 2 * 3);
        assert_eq!(words, [40, 70, 2, 6, 40, 70, 1, 5, 7, 2, 2800, 2800]);
        assert_eq!(of(&[(4, [1, 70]), (70, [4, 1])]), None, "a narrow axis");
        assert_eq!(of(&[(40, [140, 70]), (70, [2, 1])]), None, "nothing that lies together");
    }
}
