//! Lists of commands of one program. Some commands use the results of others. Backends may run
//! those commands at the same time that do not.

use super::{CONSTANT, asked, bits_differ};
use crate::device::{Buffer, Device, Handle, desc, empty_command};
use crate::dtype::{DType, Num};
use crate::record::{PASSED, Result, skip};
use crate::run::{Buffers, tensor};
use crate::tensor::{Array, Layout, Placed};
use crate::values::{Rng, ordinary};
use ultramarine_abi::fused::{FusedInterface, Instruction, NO_REDUCTION, Program, family};
use ultramarine_abi::schema::binary;
use ultramarine_abi::{Command, Tensor};

/// Tensors of each shape, and commands.
const TENSORS: usize = 6;
const COMMANDS: usize = 60;
const SHAPES: [[i64; 2]; 4] = [[37, 53], [1, 1], [64, 100], [3, 8]];

/// A command: the shape, and its tensors among those of the shape.
struct Use {
    shape: usize,
    inputs: [usize; 2],
    output: usize,
}

pub fn run(device: &Device<'_>, interface: &FusedInterface, seed: u64) -> Result {
    let float = DType::F32;
    let step = |op, a, b| Instruction {
        family: family::BINARY,
        op: op as u8,
        a,
        b,
        c: 0,
        dtype: float.dl(),
    };
    let steps = [step(binary::MULTIPLY, 0, 1), step(binary::ADD, 3, 2)];
    let (constants, outputs) = ([float.dl()], [4u16]);
    let program = Program {
        size: size_of::<Program>() as u32,
        reduce: NO_REDUCTION,
        axes: 0,
        instructions: steps.as_ptr(),
        constants: constants.as_ptr(),
        outputs: outputs.as_ptr(),
        n_instructions: 2,
        n_constants: 1,
        n_outputs: 1,
        n_inputs: 2,
    };
    let rng = &mut Rng::new(seed);
    let placed: Vec<Vec<Placed>> = SHAPES
        .iter()
        .map(|shape| {
            let one = |_| {
                let mut array = Array::cycle(float, shape, &ordinary(float, 500, rng));
                Placed::new(&mut array, Layout::Contiguous)
            };
            (0..TENSORS).map(one).collect()
        })
        .collect();
    let descs = [desc(float, 2, placed[0][0].class); 2];
    let plan = match asked(device, interface, &program, [&descs, &descs[..1]])? {
        Ok(plan) => plan,
        Err(why) => return skip(why),
    };
    let uses: Vec<Use> = (0..COMMANDS)
        .map(|_| {
            let mut pick = || rng.next() as usize % TENSORS;
            let inputs = [pick(), pick()];
            let mut output = pick();
            while inputs.contains(&output) {
                output = (output + 1) % TENSORS;
            }
            Use { shape: rng.next() as usize % SHAPES.len(), inputs, output }
        })
        .collect();
    let stream = device.stream()?;
    let results = [COMMANDS, 1].map(|each| values(device, stream, plan, &placed, &uses, each));
    device.release(plan);
    device.destroy_stream(stream);
    let [together, apart] = results;
    for (i, (a, b)) in together?.iter().zip(&apart?).enumerate() {
        if let Some(at) = bits_differ(float, a, b) {
            let (a, b) = (a[at], b[at]);
            return Err(format!(
                "element {at} of tensor {i} is {a} after one list of {COMMANDS} commands, {b} after as many lists"
            ));
        }
    }
    PASSED
}

/// Returns the values of all tensors after lists with this number of commands each.
fn values(
    device: &Device<'_>,
    stream: Handle,
    plan: Handle,
    placed: &[Vec<Placed>],
    uses: &[Use],
    each: usize,
) -> Result<Vec<Vec<Num>>, String> {
    let mut buffers = Buffers::new(device);
    let mut places: Vec<Vec<Buffer>> = Vec::new();
    for shape in placed {
        let all = shape.iter().map(|p| buffers.upload(stream, p));
        places.push(all.collect::<Result<_, _>>()?);
    }
    let of = |shape: usize, i: usize| tensor(device, &placed[shape][i], places[shape][i]);
    let tensors: Vec<[Tensor; 3]> =
        uses.iter().map(|u| [u.inputs[0], u.inputs[1], u.output].map(|i| of(u.shape, i))).collect();
    let scalars = [DType::F32.scalar(Num::Real(CONSTANT))];
    let commands: Vec<Command> = tensors
        .iter()
        .map(|tensors| Command {
            inputs: tensors.as_ptr(),
            n_inputs: 2,
            outputs: tensors[2..].as_ptr(),
            n_outputs: 1,
            scalars: scalars.as_ptr(),
            n_scalars: 1,
            ..empty_command(plan)
        })
        .collect();
    let submitted = commands.chunks(each).try_for_each(|list| device.submit(stream, list));
    // Wait even after a failure, because work may still be running.
    let finished = device.synchronize(stream);
    submitted.map_err(|f| format!("a plan was made, but {f}"))?;
    finished?;
    let mut values = Vec::new();
    for (placed, buffer) in placed.iter().flatten().zip(places.iter().flatten()) {
        let mut bytes = vec![0; placed.bytes.len()];
        device.read(stream, *buffer, 0, &mut bytes)?;
        values.push(placed.load(&bytes));
    }
    Ok(values)
}
