//! Reductions of a program's input, in all layouts. A program has no layout. So a reduction can
//! only be bitwise identical alone and as an epilogue if its order does not depend on the operand's
//! strides.

use super::{asked, bits_differ};
use crate::cases::none;
use crate::device::{Device, Handle, desc, words};
use crate::dtype::DType;
use crate::record::{PASSED, Result, skip};
use crate::run::{self, Answer, Request};
use crate::tensor::{Array, Layout, Placed};
use crate::values::{Rng, ordinary};
use ultramarine_abi::fused::{FusedInterface, Program};
use ultramarine_abi::schema::{OpId, ReduceAttrs, op, reduce};

const SHAPES: [&[i64]; 4] = [&[37, 53], &[5, 64, 7], &[3001], &[14, 36]];
const DTYPES: [DType; 5] = [DType::F32, DType::F16, DType::BF16, DType::F64, DType::C64];

/// Compares sums and products of operands in a layout, by REDUCE and by a program, with those of contiguous operands.
/// `full`: of all dtypes.
pub fn run(device: &Device<'_>, interface: &FusedInterface, layout: Layout, full: bool) -> Result {
    let stream = device.stream()?;
    let dtypes = if full { &DTYPES[..] } else { &DTYPES[..2] };
    let result = compared(device, interface, stream, layout, dtypes);
    device.destroy_stream(stream);
    result
}

fn compared(
    device: &Device<'_>,
    interface: &FusedInterface,
    stream: Handle,
    layout: Layout,
    dtypes: &[DType],
) -> Result {
    let mut rng = Rng::new(77);
    let mut compared = 0;
    for dtype in dtypes.iter().copied().filter(|d| d.in_mask(device.info.dtypes_arithmetic)) {
        for shape in SHAPES {
            for axes in 1..1u64 << shape.len() {
                let code = if axes == 1 { reduce::PROD } else { reduce::SUM };
                let values = ordinary(dtype, 900, &mut rng);
                let mut array = Array::cycle(dtype, shape, &values);
                // First: a broadcast layout changes the array's values.
                let placed = Placed::new(&mut array, layout);
                let contiguous = Placed::new(&mut array, Layout::Contiguous);
                let alone = |input: &Placed| reduced(device, stream, (code, axes), input);
                let Some(expected) = alone(&contiguous)? else { continue };
                let title = format!(
                    "{} of {} {shape:?} over the axes of mask {axes:#b}",
                    reduce::NAMES[code as usize],
                    dtype.name()
                );
                let same = |found: &Array, how: &str| match bits_differ(
                    dtype,
                    &found.values,
                    &expected.values,
                ) {
                    None => Ok(()),
                    Some(i) => Err(format!(
                        "{title}: element {i} is {} {how}, {} by REDUCE of a contiguous operand",
                        found.values[i], expected.values[i]
                    )),
                };
                if let Some(found) = alone(&placed)? {
                    same(&found, "by REDUCE")?;
                    compared += 1;
                }
                if let Some(found) = epilogue(device, interface, stream, (code, axes), &placed)? {
                    same(&found, "as an epilogue")?;
                    compared += 1;
                }
            }
        }
    }
    if compared == 0 { skip("no reduction is native in this layout") } else { PASSED }
}

/// The shape of a reduction.
fn shape_over(axes: u64, shape: &[i64]) -> Vec<i64> {
    let size = |(i, n): (usize, &i64)| if axes >> i & 1 == 1 { 1 } else { *n };
    shape.iter().enumerate().map(size).collect()
}

fn request(id: OpId, attributes: Vec<u64>, input: &Placed, axes: u64) -> Request {
    let shape = shape_over(axes, &input.shape);
    Request {
        op: id,
        attributes,
        inputs: vec![input.clone()],
        output: Placed::output(input.dtype, &shape, Layout::Contiguous),
        more: Vec::new(),
        scalars: Vec::new(),
        donated: None,
    }
}

/// The reduction by its op; `None` if it is not native.
fn reduced(
    device: &Device<'_>,
    stream: Handle,
    (code, axes): (u32, u64),
    input: &Placed,
) -> Result<Option<Array>> {
    let request = request(op::REDUCE, words(&ReduceAttrs::new(code, axes)), input, axes);
    let (dtype, shape) = (input.dtype, request.output.shape.clone());
    Ok(match run::run(device, stream, &request)? {
        Answer::Values(values) => Some(Array { dtype, shape, values }),
        _ => None,
    })
}

/// The reduction as a program without instructions; `None` if the backend does not take it.
fn epilogue(
    device: &Device<'_>,
    interface: &FusedInterface,
    stream: Handle,
    (code, axes): (u32, u64),
    input: &Placed,
) -> Result<Option<Array>> {
    let request = request(op::COPY, none(), input, axes);
    let output = &request.output;
    let value = [0u16];
    let program = Program {
        size: size_of::<Program>() as u32,
        reduce: code,
        axes,
        instructions: std::ptr::null(),
        constants: std::ptr::null(),
        outputs: value.as_ptr(),
        n_instructions: 0,
        n_constants: 0,
        n_outputs: 1,
        n_inputs: 1,
    };
    let described = |p: &Placed| [desc(p.dtype, p.shape.len(), p.class)];
    let (from, to) = (described(input), described(output));
    let Ok(plan) = asked(device, interface, &program, [&from, &to])? else { return Ok(None) };
    let values = run::submit(device, stream, plan, &request);
    device.release(plan);
    Ok(Some(Array { dtype: output.dtype, shape: output.shape.clone(), values: values? }))
}
