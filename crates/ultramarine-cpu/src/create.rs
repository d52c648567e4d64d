//! FILL, a program without inputs; ARANGE: `start + i * step`, computed in float64 or int64 and converted.

use crate::copy::strided::{self, Rect};
use crate::elementwise::{self, TileFn, TileOp};
use crate::fused::{self, Source};
use crate::kernel::{Args, Context, Kernel, Op, Prepared, Refusal, Signature};
use crate::{dtype::DType, level::Level, par::Shared};
use ultramarine_abi::schema::op;

/// Elements of a tile.
const TILE: usize = 512;
/// Tiles of a task.
const TASK: usize = 128;

struct Arange {
    float: bool,
    size: usize,
    cast: Option<TileFn>,
    level: Level,
}

/// Prepares FILL or ARANGE.
pub fn prepare(op: &Op, signature: &Signature<'_>, level: Level) -> Prepared {
    match op.id {
        op::FILL => prepare_fill(signature, level),
        op::ARANGE => prepare_arange(signature, level),
        _ => Err(Refusal::Unsupported),
    }
}

/// Prepares FILL.
pub fn prepare_fill(signature: &Signature<'_>, level: Level) -> Prepared {
    signature.expect(0, 1)?;
    let constants = vec![signature.outputs[0].dtype];
    fused::build(Source { constants, outputs: vec![0], ..Source::default() }, signature, level)
}

/// Prepares ARANGE.
pub fn prepare_arange(signature: &Signature<'_>, level: Level) -> Prepared {
    signature.expect(0, 1)?;
    let out = signature.outputs[0];
    ensure!(out.ndim == 1, "arange makes one dimension");
    let float = out.dtype.is_float() || out.dtype == DType::C64;
    let from = if float { DType::F64 } else { DType::I64 };
    let cast = if from == out.dtype {
        None
    } else {
        let cast = elementwise::lookup(level, TileOp::Cast(out.dtype), from);
        Some(cast.ok_or(Refusal::Unsupported)?)
    };
    Ok(Box::new(Arange { float, size: out.dtype.size(), cast, level }))
}

impl Kernel for Arange {
    unsafe fn run(&self, cx: &Context, args: &Args<'_>) -> Result<(), String> {
        let [start, step] = *args.scalars else { bail!("arange takes two scalars") };
        let (out, n) = (args.outputs[0], args.outputs[0].size());
        let stride = out.strides[0] as isize * self.size as isize;
        let (start, step, data) = (start[0], step[0], Shared(out.data));
        let tile = |index: usize| {
            let (at, mut wide, mut narrow) = (index * TILE, [0u64; TILE], [0u64; TILE]);
            let count = TILE.min(n - at);
            for (i, x) in wide[..count].iter_mut().enumerate() {
                let i = (at + i) as u64;
                *x = if self.float {
                    (f64::from_bits(start) + i as f64 * f64::from_bits(step)).to_bits()
                } else {
                    start.wrapping_add(i.wrapping_mul(step))
                };
            }
            let mut from = wide.as_mut_ptr() as *mut u8;
            // SAFETY: both arrays hold a tile of 8-byte elements, and none is wider;
            // the output has these elements, which no other tile writes.
            unsafe {
                if let Some(cast) = self.cast {
                    let to = narrow.as_mut_ptr() as *mut u8;
                    cast(to, from, from, from, count);
                    from = to;
                }
                let place = data.get().wrapping_offset(at as isize * stride);
                let to = Rect { data: place, rows: 0, columns: stride };
                strided::copy(
                    self.level,
                    to,
                    Rect::dense(from, count, self.size),
                    1,
                    count,
                    self.size,
                );
            }
        };
        let tiles = n.div_ceil(TILE);
        let body = |task: usize| (task * TASK..((task + 1) * TASK).min(tiles)).for_each(tile);
        cx.par.run(tiles.div_ceil(TASK), body);
        Ok(())
    }
}
