//! Programs that end with a norm. Results are bitwise identical to those of the program's
//! operations followed by the norm. This is checked for rows of many lengths, with and without the
//! norm's input among the outputs, and also with an output in an input's memory.

use super::{bits_differ, patiently, single};
use crate::device::{Device, Handle, desc, words};
use crate::dtype::{DType, Num};
use crate::record::{PASSED, Result, skip};
use crate::run::{self, Answer, Request};
use crate::tensor::{Array, Layout, Placed};
use crate::values::{Rng, ordinary};
use ultramarine_abi::fused::{
    Anchor, AnchoredInterface, Instruction, NO_REDUCTION, Program, family, position,
};
use ultramarine_abi::schema::{BinaryAttrs, NoAttrs, OpId, binary, op};
use ultramarine_abi::{TensorDesc, layout};

const SHAPES: [&[i64]; 6] =
    [&[37, 53], &[5, 6, 64], &[2048], &[3, 1, 1000], &[2, 40_000], &[70, 1]];
const DTYPES: [DType; 4] = [DType::F32, DType::BF16, DType::F16, DType::F64];
const EPSILON: f64 = 1e-5;
const CONSTANT: f64 = 0.625;

/// The outputs behind the norm's.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Written {
    /// None.
    Nothing,
    /// The value that the norm reads.
    Value,
    /// The same, in the memory of the first input.
    InPlace,
    /// An earlier value.
    Earlier,
}

/// Compares norms of `x * constant + y` in a layout of x and y. `full`: of all dtypes.
pub fn run(
    device: &Device<'_>,
    interface: &AnchoredInterface,
    layout: Layout,
    full: bool,
) -> Result {
    let stream = device.stream()?;
    let result = compared(device, interface, stream, layout, full);
    device.destroy_stream(stream);
    result
}

fn compared(
    device: &Device<'_>,
    interface: &AnchoredInterface,
    stream: Handle,
    layout: Layout,
    full: bool,
) -> Result {
    let mut rng = Rng::new(60);
    let mut done = 0;
    let dtypes = if full { &DTYPES[..] } else { &DTYPES[..2] };
    for dtype in dtypes.iter().copied().filter(|d| d.in_mask(device.info.dtypes_arithmetic)) {
        for shape in SHAPES {
            for norm in [op::RMS_NORM, op::LAYER_NORM] {
                let case = Case::new(dtype, shape, norm, layout, &mut rng);
                let Some(expected) = case.apart(device, stream)? else { continue };
                for written in
                    [Written::Nothing, Written::Value, Written::InPlace, Written::Earlier]
                {
                    if written == Written::InPlace && layout != Layout::Contiguous {
                        continue;
                    }
                    done += case.together(device, interface, stream, written, &expected)?;
                }
            }
        }
    }
    if done == 0 { skip("the backend takes none") } else { PASSED }
}

struct Case {
    dtype: DType,
    shape: &'static [i64],
    norm: OpId,
    /// x and y.
    operands: Vec<(Placed, Array)>,
    /// The weight and the bias: one row for all.
    parameters: Vec<(Placed, Array)>,
}

impl Case {
    fn new(dtype: DType, shape: &'static [i64], norm: OpId, layout: Layout, rng: &mut Rng) -> Self {
        let mut operand = || {
            let mut array = Array::cycle(dtype, shape, &ordinary(dtype, 700, rng));
            (Placed::new(&mut array, layout), array)
        };
        let operands = vec![operand(), operand()];
        let n = shape[shape.len() - 1];
        let mut parameter = || {
            let mut row = Array::cycle(dtype, &[n], &ordinary(dtype, 700, rng));
            let placed = Placed::new(&mut row, Layout::Contiguous);
            let mut strides = vec![0; shape.len()];
            strides[shape.len() - 1] = 1;
            let class = if shape.len() > 1 { layout::STRIDED } else { layout::CONTIGUOUS };
            let placed = Placed { shape: shape.to_vec(), strides, class, ..placed };
            (placed, Array::cycle(dtype, shape, &row.values))
        };
        let parameters =
            (0..if norm == op::LAYER_NORM { 2 } else { 1 }).map(|_| parameter()).collect();
        Self { dtype, shape, norm, operands, parameters }
    }

    /// `x * constant`, the sum and its norm, one by one; `None` if an op is not native.
    fn apart(&self, device: &Device<'_>, stream: Handle) -> Result<Option<[Array; 3]>> {
        let target = || (self.dtype, self.shape.to_vec());
        let constant = Array::cycle(self.dtype, self.shape, &[Num::Real(CONSTANT)]);
        let (x, y) = (self.operands[0].1.clone(), self.operands[1].1.clone());
        let coded = |code| (op::BINARY, words(&BinaryAttrs::new(code)));
        let product = single(device, stream, coded(binary::MULTIPLY), vec![x, constant], target())?;
        let Some(product) = product else { return Ok(None) };
        let operands = vec![product.clone(), y];
        let sum = single(device, stream, coded(binary::ADD), operands, target())?;
        let Some(sum) = sum else { return Ok(None) };
        let mut inputs = vec![Placed::new(&mut sum.clone(), Layout::Contiguous)];
        inputs.extend(self.parameters.iter().map(|p| p.0.clone()));
        let request = Request {
            op: self.norm,
            attributes: words(&NoAttrs::new()),
            inputs,
            output: Placed::output(self.dtype, self.shape, Layout::Contiguous),
            more: Vec::new(),
            scalars: vec![DType::F64.scalar(Num::Real(EPSILON))],
            donated: None,
        };
        Ok(match run::run(device, stream, &request)? {
            Answer::Values(values) => {
                let norm = Array { dtype: self.dtype, shape: self.shape.to_vec(), values };
                Some([product, sum, norm])
            }
            _ => None,
        })
    }

    /// All in one command; the number of commands that ran.
    fn together(
        &self,
        device: &Device<'_>,
        interface: &AnchoredInterface,
        stream: Handle,
        written: Written,
        [product, sum, norm]: &[Array; 3],
    ) -> Result<usize> {
        let binary = |code, a, b| Instruction {
            family: family::BINARY,
            op: code as u8,
            a,
            b,
            c: 0,
            dtype: self.dtype.dl(),
        };
        let instructions = [binary(binary::MULTIPLY, 0, 2), binary(binary::ADD, 3, 1)];
        let (outputs, expected): (&[u16], Vec<&Array>) = match written {
            Written::Nothing => (&[4], vec![norm]),
            Written::Value | Written::InPlace => (&[4, 4], vec![norm, sum]),
            Written::Earlier => (&[4, 3], vec![norm, product]),
        };
        let constants = [self.dtype.dl()];
        let program = Program {
            size: size_of::<Program>() as u32,
            reduce: NO_REDUCTION,
            axes: 0,
            instructions: instructions.as_ptr(),
            constants: constants.as_ptr(),
            outputs: outputs.as_ptr(),
            n_instructions: 2,
            n_constants: 1,
            n_outputs: outputs.len() as u32,
            n_inputs: 2,
        };
        let attributes = words(&NoAttrs::new());
        let anchor = Anchor {
            size: size_of::<Anchor>() as u32,
            op: self.norm,
            revision: 1,
            position: position::LAST,
            attributes: attributes.as_ptr().cast(),
            n_inputs: self.parameters.len() as u32,
            n_scalars: 1,
        };
        let inputs: Vec<Placed> =
            self.operands.iter().chain(&self.parameters).map(|p| p.0.clone()).collect();
        let placed = Placed::output(self.dtype, self.shape, Layout::Contiguous);
        let describe = |p: &Placed| -> TensorDesc { desc(p.dtype, self.shape.len(), p.class) };
        let ins: Vec<TensorDesc> = inputs.iter().map(describe).collect();
        let outs = vec![describe(&placed); outputs.len()];
        let prepare = interface.prepare.ok_or("the interface has no prepare")?;
        // SAFETY: the lists have the lengths that program and anchor say, and outlive the call.
        let plan = patiently(|plan, e| unsafe {
            prepare(device.handle, &program, &anchor, ins.as_ptr(), outs.as_ptr(), plan, e)
        })?;
        let Ok(plan) = plan else { return Ok(0) };
        let request = Request {
            op: self.norm,
            attributes,
            inputs,
            output: placed.clone(),
            more: vec![placed; outputs.len() - 1],
            scalars: vec![
                self.dtype.scalar(Num::Real(CONSTANT)),
                DType::F64.scalar(Num::Real(EPSILON)),
            ],
            donated: None,
        };
        let found = match written {
            Written::InPlace => run::submit_in_place(device, stream, plan, &request),
            _ => run::submit_all(device, stream, plan, &request),
        };
        device.release(plan);
        for (k, (found, expected)) in found?.iter().zip(expected).enumerate() {
            if let Some(i) = bits_differ(self.dtype, found, &expected.values) {
                let (a, b) = (found[i], expected.values[i]);
                return Err(format!(
                    "{} of {} {:?}, {written:?}: element {i} of output {k} is {a} in the program, {b} op by op",
                    op::NAMES[self.norm as usize],
                    self.dtype.name(),
                    self.shape,
                ));
            }
        }
        Ok(1)
    }
}
