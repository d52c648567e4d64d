//! QUANTIZED_MATMUL: the second factor consists of quantized matrices.

use super::Format;
use super::source::{Kind, Product, ROOM, SIZE, TILE};
use crate::dtype::Dtype;
use crate::launch::{Job, OpRequest, View, Work, count};
use crate::ops::native::variants::Variants;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::QuantizedMatmulAttrs;
use ultramarine_abi::status;

/// Members of a team that computes a sum together.
const MEMBERS: u32 = 32;
/// Number of rows from which tiles are used.
const MANY: u32 = 9;

struct QuantizedMatmul {
    product: Product,
    kernels: Variants<Kind>,
}

/// The plan of a request.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let attributes: QuantizedMatmulAttrs = request.attributes()?;
    let QuantizedMatmulAttrs { mode, bits, group, transpose, .. } = attributes;
    let (x, out) = (request.input(0)?, request.output(0)?);
    let format = Format::of(mode, bits, group, attributes.biases == 1, x.dtype)?;
    let [global, lhs, rhs] =
        [attributes.global_scale, attributes.lhs_indices, attributes.rhs_indices].map(|n| n == 1);
    let mut expected = vec![x.dtype, Dtype::Uint32, format.scales(x.dtype)];
    expected.extend(format.is_affine().then_some(x.dtype));
    expected.extend(global.then_some(Dtype::Float32));
    expected.extend([lhs, rhs].into_iter().filter(|there| *there).map(|_| Dtype::Int32));
    let dtypes: Vec<Dtype> = request.inputs.iter().map(|desc| desc.dtype).collect();
    let ranks = request.inputs[..3].iter().chain([&out]).all(|desc| desc.ndim == 3);
    if dtypes != expected || x.dtype != out.dtype || !ranks {
        return Err(Failure::invalid("factors, scales, indices and output do not fit"));
    }
    // The words and the output need bindings, too.
    if dtypes.len() + 2 > request.device.context.properties.buffers as usize {
        return Err(Failure::unsupported(
            "a product of more tensors than a kernel of the device has",
        ));
    }
    let product = Product { format, dtype: x.dtype, transpose: transpose == 1, global, lhs, rhs };
    Ok(Box::new(QuantizedMatmul { product, kernels: Variants::default() }))
}

/// The operands of a command.
struct Call<'a> {
    x: &'a View<'a>,
    packed: &'a View<'a>,
    scales: &'a View<'a>,
    biases: Option<&'a View<'a>>,
    global: Option<&'a View<'a>>,
    lhs: Option<&'a View<'a>>,
    rhs: Option<&'a View<'a>>,
    out: &'a View<'a>,
}

impl QuantizedMatmul {
    fn call<'a>(&self, job: &'a Job<'_>) -> Result<Call<'a>> {
        let Product { format, transpose, global, lhs, rhs, .. } = self.product;
        let mut next = 2;
        let mut optional = |there: bool| {
            next += usize::from(there);
            if there { job.input(next).map(Some) } else { Ok(None) }
        };
        let call = Call {
            x: job.input(0)?,
            packed: job.input(1)?,
            scales: job.input(2)?,
            biases: optional(format.is_affine())?,
            global: optional(global)?,
            lhs: optional(lhs)?,
            rhs: optional(rhs)?,
            out: job.output(0)?,
        };
        let (x, packed, out) = (call.x.shape, call.packed.shape, call.out.shape);
        let (depth, columns) = (x[2], out[2]);
        let (rows, long) = if transpose { (columns, depth) } else { (depth, columns) };
        format.check(long, packed[2], call.scales.shape[2])?;
        let of_items = |indices: Option<&View<'_>>, matrices: i64| match indices {
            Some(indices) => indices.shape == [out[0]],
            None => matrices == out[0],
        };
        let fits = packed[1] == rows
            && call.scales.shape[..2] == packed[..2]
            && call.biases.is_none_or(|biases| biases.shape == call.scales.shape)
            && call.global.is_none_or(|global| global.shape == [packed[0]])
            && x[1] == out[1]
            && of_items(call.lhs, x[0])
            && of_items(call.rhs, packed[0]);
        match fits {
            true => Ok(call),
            false => Err(Failure::invalid(format!(
                "a product of {x:?} and words {packed:?} into {out:?}"
            ))),
        }
    }

    /// The kernel for `m` rows, and the rows of one of its blocks.
    fn kind(&self, job: &Job<'_>, m: u32) -> (Kind, u32) {
        let Product { format, transpose, .. } = self.product;
        let properties = &job.device.context.properties;
        let together = properties.gpu_kernels && properties.group_size >= SIZE;
        let room = properties.group_memory >= ROOM;
        let rows = if m >= 3 { 4 } else { m };
        match (transpose, together) {
            (_, true) if room && m >= MANY => (Kind::Tiles, TILE),
            (true, together) => {
                let members = if together { MEMBERS } else { 1 };
                (Kind::Dots { rows, members }, rows)
            }
            // Registers hold the sums of a chunk for each row.
            (false, _) => {
                let rows = rows.min(32 / format.chunk());
                (Kind::Sums { rows }, rows)
            }
        }
    }
}

impl Work for QuantizedMatmul {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let call = self.call(job)?;
        let format = self.product.format;
        let [items, m, n] = [0, 1, 2].map(|i| call.out.shape[i]);
        let k = call.x.shape[2];
        let (kind, rows) = self.kind(job, count([m])?);
        let blocks = (m + i64::from(rows) - 1) / i64::from(rows);
        let columns = match kind {
            Kind::Dots { .. } => n,
            Kind::Sums { .. } => n / i64::from(format.chunk()),
            Kind::Tiles => (n + i64::from(TILE) - 1) / i64::from(TILE),
        };
        let turns = match kind {
            Kind::Dots { .. } => k / i64::from(format.chunk()),
            // The loops of a tile run once per element, and so do those that load the tile.
            Kind::Tiles => 2 * k,
            Kind::Sums { .. } => k,
        };
        let most = job.device.context.properties.iterations;
        if turns > most.into() {
            let text = format!("products of rows of {k} elements, of which the driver adds {most}");
            return Err(Failure { code: status::OUT_OF_MEMORY, text });
        }
        let all = count([items, blocks, columns])?;
        let mut words: Vec<u32> = [m, n, k, blocks, i64::from(all)].map(|n| n as u32).into();
        let views =
            [Some(call.x), Some(call.packed), Some(call.scales), call.biases, Some(call.out)];
        for view in views {
            words.extend(view.map_or([0; 4], |view| {
                let [matrix, row, column] = [0, 1, 2].map(|i| view.strides[i]);
                [view.offset, matrix, row, column].map(|n| n as u32)
            }));
        }
        let line = |view: Option<&View<'_>>| {
            view.map_or([0; 2], |view| [view.offset, view.strides[0]].map(|n| n as u32))
        };
        words.extend(line(call.global));
        for (indices, matrices) in [(call.lhs, call.x.shape[0]), (call.rhs, call.packed.shape[0])] {
            words.extend(line(indices));
            words.push(matrices as u32);
        }
        let kernel = self.kernels.get(job.device, kind, |kind| self.product.source(*kind))?;
        let blocks: Vec<_> = job.inputs.iter().chain([call.out]).map(|view| &view.block).collect();
        match kind {
            Kind::Dots { members: 1, .. } | Kind::Sums { .. } => {
                job.launch(&kernel, &blocks, all, &words)
            }
            Kind::Dots { members, .. } => {
                job.launch_groups(&kernel, &blocks, all.div_ceil(SIZE / members), &words)
            }
            Kind::Tiles => job.launch_groups(&kernel, &blocks, all, &words),
        }
    }
}
