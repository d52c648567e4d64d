//! `ultramarine.fused/1` and `/2`: each elementwise program becomes one kernel, whose source is
//! generated here.
//!
//! Each instruction calls the same function as the operation's own kernel and rounds to its dtype,
//! so results are bitwise identical. Kernels depend only on dtypes and instructions; sizes, strides
//! and constants are parameters.

mod epilogue;
mod layout;
mod norm;
mod program;
mod random;
mod source;

pub use program::{INPUTS, INSTRUCTIONS, OUTPUTS, Program};

use crate::launch::{
    BLOCK, Desc, Device, Grid, Job, Kind, Plan, TOGETHER, View, Views, Work, enqueue,
};
use crate::ops::random::Line;
use crate::program::{Kernel, Kernels};
use core::ffi::c_void;
use epilogue::Epilogue;
use layout::{FEW, Layout, Place};
use norm::NormEpilogue;
use smallvec::{SmallVec, smallvec};
use source::Variant;
use std::sync::OnceLock;
use ultramarine_abi::fused::Anchor;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::{schema, status};

/// The mode for programs, set by `ULTRAMARINE_CUDA_FUSE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// `0`: programs are disabled.
    Off,
    /// `wait`: `prepare` returns when kernels are compiled.
    Wait,
    /// Kernels are compiled in the background; until then, the program is not ready.
    Background,
}

fn mode() -> Mode {
    static MODE: OnceLock<Mode> = OnceLock::new();
    *MODE.get_or_init(|| match std::env::var("ULTRAMARINE_CUDA_FUSE").as_deref() {
        Ok("0") => Mode::Off,
        Ok("wait") => Mode::Wait,
        _ => Mode::Background,
    })
}

/// True unless `ULTRAMARINE_CUDA_FUSE=0`.
pub fn enabled() -> bool {
    mode() != Mode::Off
}

/// Makes the plan of a program, optionally with an anchor. The context is current.
pub fn prepare(
    device: &Device,
    program: Program,
    anchor: Option<&Anchor>,
    inputs: &[Desc],
    outputs: &[Desc],
) -> Result<Plan> {
    let rank = inputs[0].ndim;
    if let Some(odd) = inputs.iter().chain(outputs).find(|d| d.ndim != rank) {
        return Err(Failure::invalid(format!(
            "a program of tensors of ranks {rank} and {}",
            odd.ndim
        )));
    }
    let (inputs, operands) = inputs.split_at(program.inputs);
    let waits = mode() == Mode::Wait;
    let close = match (anchor, program.reduce) {
        (None, None) => None,
        (None, Some(how)) => {
            Some(Close::Reduction(Epilogue::new(&program, how, &outputs[0], waits)?))
        }
        (Some(anchor), _) => {
            let norm = NormEpilogue::new(&program, anchor, operands, outputs[0], waits)?;
            Some(Close::Norm(norm))
        }
    };
    for (i, desc) in outputs.iter().enumerate().skip(usize::from(close.is_some())) {
        if desc.dtype != program.output(i) {
            return Err(Failure::unsupported(format!(
                "output {i} of a program is {}, its value {}",
                desc.dtype.name(),
                program.output(i).name()
            )));
        }
    }
    // With an epilogue, output 0 of the kernel is the workspace.
    let written = &outputs[usize::from(close.is_some())..];
    let flat = inputs.iter().chain(written).all(|d| d.contiguous);
    let fused = Fused::new(program, flat, close);
    fused.ready(device)?;
    let mut name = fused.program.name();
    if let Some(row) = anchor.and_then(|anchor| schema::find(anchor.op)) {
        name = format!("{name} | {}", row.name);
    }
    Ok(Plan::new(name, Box::new(fused)))
}

/// The operation at the end of a program.
enum Close {
    Reduction(Epilogue),
    Norm(NormEpilogue),
}

/// A prepared program.
struct Fused {
    program: Program,
    /// True if all tensors are contiguous.
    flat: bool,
    pack: usize,
    kernels: Kernels<Variant>,
    of_random_bits: Kernels<random::Variant>,
    close: Option<Close>,
}

impl Fused {
    fn new(program: Program, flat: bool, close: Option<Close>) -> Self {
        let pack = source::pack(&program);
        let (kernels, of_random_bits) = Default::default();
        Self { program, flat, pack, kernels, of_random_bits, close }
    }

    /// The kernels that most commands need.
    fn usual(&self) -> Vec<Variant> {
        if self.flat {
            return vec![Variant::Flat];
        }
        let rank = FEW.min(layout::many(self.tensors(), self.program.constants));
        let walk = |packs| Variant::Walk { packs, rank, wide: false };
        if self.pack > 1 { vec![walk(true), walk(false)] } else { vec![walk(false)] }
    }

    /// Checks that the usual kernels are compiled. If they are not, this starts their compilation
    /// and fails with "not yet".
    fn ready(&self, device: &Device) -> Result<()> {
        if mode() == Mode::Wait {
            if self.close.is_some() {
                // The choice of the kernel depends on the sizes.
                return Ok(());
            }
            return self.usual().into_iter().try_for_each(|v| self.kernel(device, v).map(|_| ()));
        }
        let mut all = true;
        for variant in self.usual() {
            let source = || source::source(&self.program, variant);
            let name = || source::name(&self.program, variant);
            all &= self.kernels.ready(&device.programs, variant, name, source)?;
        }
        match all {
            true => Ok(()),
            false => Err(Failure {
                code: status::NOT_YET,
                text: "the program is being compiled".to_owned(),
            }),
        }
    }

    fn kernel(&self, device: &Device, variant: Variant) -> Result<Kernel> {
        let source = || source::source(&self.program, variant);
        self.kernels.get(&device.programs, variant, source)
    }

    fn tensors(&self) -> usize {
        self.program.inputs + self.program.outputs.len()
    }

    /// Runs the program's kernel over tensors, inputs first.
    fn map(&self, job: &Job<'_>, views: &[View<'_>]) -> Result<()> {
        if views.len() != self.tensors() || job.scalars.len() < self.program.constants {
            return Err(Failure::invalid(format!(
                "{} tensors and {} constants for a program of {} and {}",
                views.len(),
                job.scalars.len(),
                self.tensors(),
                self.program.constants
            )));
        }
        match self.flat {
            true => self.map_flat(job, views),
            false => self.map_walked(job, views),
        }
    }

    /// For a command whose tensors are each one contiguous row, a mask of the inputs that are a single
    /// element instead. `None` for other commands.
    fn rows(&self, job: &Job<'_>) -> Option<u64> {
        let tensors = job.inputs.len() + job.outputs.len();
        let shape = job.outputs.first()?.shape;
        let fits = tensors == self.tensors() && job.scalars.len() == self.program.constants;
        let mut ones = 0;
        for (k, view) in job.inputs.iter().chain(&job.outputs).enumerate() {
            match view.shape == shape {
                true if view.is_contiguous() => {}
                true if k < job.inputs.len() && view.is_scalar() => ones |= 1 << k,
                _ => return None,
            }
        }
        fits.then_some(ones)
    }

    /// Elements that a block processes.
    fn tile(&self) -> u64 {
        u64::from(BLOCK) * (self.pack * source::unrolled(&self.program, self.pack)) as u64
    }

    /// True if the packs of all tensors are aligned.
    fn is_aligned<'a>(&self, mut views: impl Iterator<Item = &'a View<'a>>) -> bool {
        views.all(|v| v.is_aligned((self.pack as u64 * v.dtype.bytes()).min(16)))
    }

    fn map_flat(&self, job: &Job<'_>, views: &[View<'_>]) -> Result<()> {
        let n = views[0].len();
        let aligned = u64::from(self.is_aligned(views.iter()));
        let grid = Grid::exactly(n.div_ceil(self.tile()), BLOCK)?;
        let kernel = self.kernel(job.device, Variant::Flat)?;
        let addresses: SmallVec<[u64; 8]> = views.iter().map(|v| v.address).collect();
        self.launch(job, &kernel, grid, &addresses, &[&[n], &[aligned]])
    }

    fn map_walked(&self, job: &Job<'_>, views: &[View<'_>]) -> Result<()> {
        let place = |v: &View<'_>| (v.address, v.dtype.bytes());
        let places: Vec<Place<'_>> = views
            .iter()
            .map(|v| Place { address: place(v).0, bytes: place(v).1, strides: v.strides })
            .collect();
        let (shape, lead) = (views[0].shape, self.program.inputs);
        let layout = Layout::of(shape, &places, lead, self.program.constants, self.pack);
        let pack = match layout.variant {
            Variant::Walk { packs: true, .. } => self.pack,
            _ => 1,
        };
        let unrolled = source::unrolled(&self.program, pack) as u64;
        let grid = Grid::exactly(layout.tiles.div_ceil(unrolled), BLOCK)?;
        let kernel = self.kernel(job.device, layout.variant)?;
        layout.each(views.len(), |offsets| {
            let addresses: SmallVec<[u64; 8]> = places
                .iter()
                .zip(offsets)
                .map(|(p, o)| p.address.wrapping_add_signed(o * p.bytes as i64))
                .collect();
            self.launch(job, &kernel, grid, &addresses, &[&layout.words])
        })
    }

    /// Enqueues a kernel with the tensors, parameters given as words, and the constants.
    fn launch(
        &self,
        job: &Job<'_>,
        kernel: &Kernel,
        grid: Grid,
        addresses: &[u64],
        parameters: &[&[u64]],
    ) -> Result<()> {
        let own = &job.scalars[..self.program.constants];
        let mut constants: SmallVec<[u64; 8]> = own.iter().map(|s| s[0]).collect();
        if constants.is_empty() {
            constants = smallvec![0];
        }
        let place = |value: *const u64| value.cast_mut().cast::<c_void>();
        let mut arguments: SmallVec<[*mut c_void; 12]> =
            addresses.iter().map(|a| place(a)).collect();
        arguments.extend(parameters.iter().map(|p| place(p.as_ptr())));
        arguments.push(place(constants.as_ptr()));
        // SAFETY: these are the parameters of `source::source`; layouts stay inside the tensors.
        unsafe { enqueue(job, kernel, grid, &mut arguments) }
    }
}

impl Work for Fused {
    fn has_workspace(&self) -> bool {
        self.close.is_some()
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        match &self.close {
            None => Ok(0),
            Some(Close::Reduction(epilogue)) => epilogue.workspace(&self.program, job),
            Some(Close::Norm(norm)) => norm.workspace(&self.program, job),
        }
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let map = |views: &[View<'_>]| self.map(job, views);
        match &self.close {
            None => map(&job.inputs.iter().chain(&job.outputs).copied().collect::<Views<'_>>()),
            Some(Close::Reduction(epilogue)) => epilogue.run(&self.program, job, map),
            Some(Close::Norm(norm)) => norm.run(&self.program, job, map),
        }
    }

    fn follows(&self, first: &Job<'_>, job: &Job<'_>) -> bool {
        self.flat && self.close.is_none() && random::bits_of(&self.program, first, job).is_some()
    }

    fn run_behind(&self, first: &Job<'_>, job: &Job<'_>) -> Result<bool> {
        let (Some(bits), Some(line)) =
            (random::bits_of(&self.program, first, job), Line::of(first))
        else {
            return Ok(false);
        };
        let variant = random::Variant { bits, wide: line.wide };
        let name = || random::name(&self.program, variant);
        let source = || random::source(&self.program, variant);
        let (programs, kernels) = (&job.device.programs, &self.of_random_bits);
        if mode() != Mode::Wait && !kernels.ready(programs, variant, name, source)? {
            return Ok(false);
        }
        let kernel = kernels.get(programs, variant, source)?;
        let tensors = job.inputs.iter().chain(&job.outputs);
        let addresses: SmallVec<[u64; 8]> = tensors.map(|v| v.address).collect();
        let Line { key: (key, step), words, fourths, grid, .. } = line;
        let more = [&[key][..], &[step as u64], &[words], &[u64::from(fourths)]];
        self.launch(job, &kernel, grid, &addresses, &more)?;
        Ok(true)
    }

    fn kind(&self, job: &Job<'_>) -> Option<Kind> {
        let small = job.outputs.first()?.len() <= TOGETHER;
        let most = source::many(&self.program);
        match self.close.is_none() && small && most > 1 {
            true => self.rows(job).map(|number| Kind { most, number }),
            false => None,
        }
    }

    fn run_together(&self, jobs: &[Job<'_>]) -> Result<bool> {
        let Some((first, ones)) = jobs.first().and_then(|job| Some((job, self.rows(job)?))) else {
            return Ok(false);
        };
        let variant = Variant::Many { ones };
        let name = || source::name(&self.program, variant);
        let source = || source::source(&self.program, variant);
        let programs = &first.device.programs;
        if mode() != Mode::Wait && !self.kernels.ready(programs, variant, name, source)? {
            return Ok(false);
        }
        let kernel = self.kernel(first.device, variant)?;
        let mut words = vec![0; source::many(&self.program) * (self.tensors() + 2) + 1];
        let mut blocks = 0;
        for (job, part) in jobs.iter().zip(words.chunks_exact_mut(self.tensors() + 2)) {
            let views = || job.inputs.iter().chain(&job.outputs);
            views().zip(&mut *part).for_each(|(view, word)| *word = view.address);
            let n = job.outputs[0].len();
            let rows = views().enumerate().filter(|(k, _)| ones >> k & 1 == 0);
            let aligned = u64::from(self.is_aligned(rows.map(|(_, view)| view)));
            part[self.tensors()..].copy_from_slice(&[n, blocks | aligned << 32]);
            blocks += n.div_ceil(self.tile());
        }
        if let Some(count) = words.last_mut() {
            *count = jobs.len() as u64;
        }
        self.launch(first, &kernel, Grid::exactly(blocks, BLOCK)?, &[], &[&words])?;
        Ok(true)
    }
}
