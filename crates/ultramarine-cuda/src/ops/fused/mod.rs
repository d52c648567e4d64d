//! `ultramarine.fused/1`: elementwise programs as one kernel each, whose text is written here.
//!
//! An instruction is a call of the very function that the op's own kernel calls, rounded to its
//! dtype, so the bits are the same. Kernels depend on dtypes and instructions alone; sizes,
//! strides and constants are their parameters.

mod closing;
mod layout;
mod program;
mod text;

pub use program::{INPUTS, INSTRUCTIONS, Program};

use crate::device::Device;
use crate::dtype::Dtype;
use crate::job::Job;
use crate::launch::{BLOCK, Grid, enqueue};
use crate::plan::{Desc, Plan, Work};
use crate::program::Kernel;
use crate::view::View;
use closing::Closing;
use core::ffi::c_void;
use layout::{FEW, Layout, Place};
use std::collections::HashMap;
use std::sync::{OnceLock, PoisonError, RwLock};
use text::Variant;
use ultramarine_abi::fused::{self, FusedInterface};
use ultramarine_abi::helper::{self, Failure, InterfaceRef, Result};
use ultramarine_abi::{Error, Status, TensorDesc, read_sized, status};

/// Whether and how programs are taken, by `ULTRAMARINE_CUDA_FUSE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// `0`: not at all.
    Off,
    /// `wait`: prepared when `prepare` returns.
    Wait,
    /// Compiled in the background, and not ready until that is done.
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

/// The interface, if programs are taken.
pub fn interface() -> Option<InterfaceRef> {
    static TABLE: FusedInterface = FusedInterface {
        size: size_of::<FusedInterface>() as u32,
        flags: 0,
        prepare: Some(prepare_entry),
    };
    (mode() != Mode::Off).then(|| InterfaceRef::fused(&TABLE))
}

unsafe extern "C" fn prepare_entry(
    device: *mut c_void,
    program: *const fused::Program,
    inputs: *const TensorDesc,
    outputs: *const TensorDesc,
    plan: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the contract's: a device of ours, a program with lists as long as it says, as many
    // descriptions as tensors, and places to write to.
    unsafe {
        helper::with_device::<Device>(device, error, |device| {
            let given = read_sized(program).ok_or_else(|| Failure::invalid("no program"))?;
            let inputs = descs(inputs, given.n_inputs)?;
            let outputs = descs(outputs, given.n_outputs)?;
            let dtypes: Vec<Dtype> = inputs.iter().map(|d| d.dtype).collect();
            let program = Program::of(&given, &dtypes)?;
            let _entered = device.enter()?;
            helper::give(plan, prepare(device, program, &inputs, &outputs)?)
        })
    }
}

/// Tensor descriptions.
///
/// # Safety
/// `first` is NULL or there are `n` of them, each as large as the first one says.
unsafe fn descs(first: *const TensorDesc, n: u32) -> Result<Vec<Desc>> {
    if first.is_null() {
        return Err(Failure::invalid("tensor descriptions are NULL"));
    }
    let most = program::INPUTS.max(program::OUTPUTS);
    if n as usize > most {
        return Err(Failure::unsupported(format!("{n} tensors, at most {most} are taken")));
    }
    // SAFETY: by this function's contract: each begins with its size.
    let stride = unsafe { first.cast::<u32>().read_unaligned() } as usize;
    let one = |i: usize| {
        let at = first.cast::<u8>().wrapping_add(i * stride).cast::<TensorDesc>();
        // SAFETY: as above.
        let desc = unsafe { read_sized(at) };
        desc.ok_or_else(|| Failure::invalid("a tensor description is NULL"))
            .and_then(|d| Desc::of(&d))
    };
    (0..n as usize).map(one).collect()
}

fn prepare(device: &Device, program: Program, inputs: &[Desc], outputs: &[Desc]) -> Result<Plan> {
    let rank = inputs[0].ndim;
    if let Some(odd) = inputs.iter().chain(outputs).find(|d| d.ndim != rank) {
        return Err(Failure::invalid(format!(
            "a program of tensors of ranks {rank} and {}",
            odd.ndim
        )));
    }
    let closing = match program.reduce {
        None => None,
        Some(how) => Some(Closing::new(&program, how, &outputs[0], mode() == Mode::Wait)?),
    };
    for (i, desc) in outputs.iter().enumerate().skip(usize::from(closing.is_some())) {
        if desc.dtype != program.output(i) {
            return Err(Failure::unsupported(format!(
                "output {i} of a program is {}, its value {}",
                desc.dtype.name(),
                program.output(i).name()
            )));
        }
    }
    // Output 0 of the kernel is the workspace where there is a closing reduction.
    let written = &outputs[usize::from(closing.is_some())..];
    let flat = inputs.iter().chain(written).all(|d| d.contiguous);
    let fused = Fused::new(program, flat, closing);
    fused.ready(device)?;
    let name = fused.program.name();
    Ok(Plan::new(name, Box::new(fused)))
}

/// A prepared program.
struct Fused {
    program: Program,
    /// All tensors are contiguous.
    flat: bool,
    pack: usize,
    kernels: RwLock<HashMap<Variant, Kernel>>,
    closing: Option<Closing>,
}

impl Fused {
    fn new(program: Program, flat: bool, closing: Option<Closing>) -> Self {
        let pack = text::pack(&program);
        Self { program, flat, pack, kernels: RwLock::default(), closing }
    }

    /// The kernels that commands need mostly.
    fn usual(&self) -> Vec<Variant> {
        if self.flat {
            return vec![Variant::Flat];
        }
        let room = FEW.min(layout::many(self.tensors(), self.program.constants));
        let walk = |packs| Variant::Walk { packs, room, wide: false };
        if self.pack > 1 { vec![walk(true), walk(false)] } else { vec![walk(false)] }
    }

    /// That the usual kernels are there. If they have to be compiled, that is begun and the
    /// failure says so.
    fn ready(&self, device: &Device) -> Result<()> {
        if mode() == Mode::Wait {
            if self.closing.is_some() {
                // Which kernel it is depends on sizes.
                return Ok(());
            }
            return self.usual().into_iter().try_for_each(|v| self.kernel(device, v).map(|_| ()));
        }
        let mut all = true;
        for variant in self.usual() {
            let name = text::name(&self.program, variant);
            let source = || text::source(&self.program, variant);
            match device.programs.ready(device, &name, source)? {
                Some(kernel) => self.keep(variant, kernel),
                None => all = false,
            }
        }
        match all {
            true => Ok(()),
            false => Err(Failure {
                code: status::NOT_YET,
                text: "the program is being compiled".to_owned(),
            }),
        }
    }

    fn keep(&self, variant: Variant, kernel: Kernel) {
        self.kernels.write().unwrap_or_else(PoisonError::into_inner).insert(variant, kernel);
    }

    fn kernel(&self, device: &Device, variant: Variant) -> Result<Kernel> {
        let known =
            self.kernels.read().unwrap_or_else(PoisonError::into_inner).get(&variant).copied();
        if let Some(kernel) = known {
            return Ok(kernel);
        }
        let kernel = device.programs.kernel(device, &text::source(&self.program, variant))?;
        self.keep(variant, kernel);
        Ok(kernel)
    }

    fn tensors(&self) -> usize {
        self.program.inputs + self.program.outputs.len()
    }

    /// Runs the program's kernel over tensors, inputs first.
    fn map(&self, job: &Job<'_>, views: &[View<'_>]) -> Result<()> {
        if views.len() != self.tensors() || job.scalars.len() != self.program.constants {
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

    fn map_flat(&self, job: &Job<'_>, views: &[View<'_>]) -> Result<()> {
        let n = views[0].len();
        let align = |v: &View<'_>| (self.pack as u64 * v.dtype.bytes()).min(16);
        let aligned = u64::from(views.iter().all(|v| v.is_aligned(align(v))));
        let each = self.pack * text::unrolled(&self.program, self.pack);
        let grid = Grid::exactly(n.div_ceil(u64::from(BLOCK) * each as u64), BLOCK)?;
        let kernel = self.kernel(job.device, Variant::Flat)?;
        let addresses: Vec<u64> = views.iter().map(|v| v.address).collect();
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
        let unrolled = text::unrolled(&self.program, pack) as u64;
        let grid = Grid::exactly(layout.tiles.div_ceil(unrolled), BLOCK)?;
        let kernel = self.kernel(job.device, layout.variant)?;
        layout.each(views.len(), |offsets| {
            let addresses: Vec<u64> = places
                .iter()
                .zip(offsets)
                .map(|(p, o)| p.address.wrapping_add_signed(o * p.bytes as i64))
                .collect();
            self.launch(job, &kernel, grid, &addresses, &[&layout.words])
        })
    }

    /// Enqueues a kernel with the tensors, some parameters of words, and the constants.
    fn launch(
        &self,
        job: &Job<'_>,
        kernel: &Kernel,
        grid: Grid,
        addresses: &[u64],
        parameters: &[&[u64]],
    ) -> Result<()> {
        let mut constants: Vec<u64> = job.scalars.iter().map(|s| s[0]).collect();
        constants.resize(constants.len().max(1), 0);
        let place = |value: *const u64| value.cast_mut().cast::<c_void>();
        let mut arguments: Vec<*mut c_void> = addresses.iter().map(|a| place(a)).collect();
        arguments.extend(parameters.iter().map(|p| place(p.as_ptr())));
        arguments.push(place(constants.as_ptr()));
        // SAFETY: these are the parameters of `text::source`; layouts stay inside of the tensors.
        unsafe { enqueue(job, kernel, grid, &mut arguments) }
    }
}

impl Work for Fused {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        self.closing.as_ref().map_or(Ok(0), |closing| closing.workspace(&self.program, job))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        if let Some(closing) = &self.closing {
            return closing.run(&self.program, job, |views| self.map(job, views));
        }
        let views: Vec<View<'_>> = job.inputs.iter().chain(&job.outputs).copied().collect();
        self.map(job, &views)
    }
}
