//! `ultramarine.kernel/1`: users' kernels in WGSL, in the Metal Shading Language, or compiled. Tensors are storage buffers
//! of group 0, and scalars are uniforms. In the Metal Shading Language, both are buffers.

mod arguments;
mod source;

use crate::context::lock;
use crate::hal::{self, Code};
use crate::launch::Device;
use crate::program::Kernel;
use crate::streams::{Action, Batch, Stream};
use arguments::Arguments;
use core::ffi::c_void;
use source::{Parameter, Source, fits};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use ultramarine_abi::helper::{Failure, Result, give, handle, host_of, take, with_device};
use ultramarine_abi::interface::kernel::{KernelInfo, KernelInterface, KernelLaunch, KernelSource};
use ultramarine_abi::{Error, Status, read_sized, write_sized};

/// The interface.
pub static TABLE: KernelInterface = KernelInterface {
    size: size_of::<KernelInterface>() as u32,
    flags: 0,
    compile: Some(compile),
    launch: Some(launch),
    release: Some(release),
    info: Some(info),
};

/// A user's kernel.
struct UserKernel {
    name: Arc<str>,
    parameters: Vec<Parameter>,
    kernel: Compiled,
}

/// A kernel's code on the device.
enum Compiled {
    /// For the workgroup size that the source specifies.
    Fixed([u32; 3], Arc<Kernel>),
    /// For a workgroup size that the device does not support. Launches fail, and the driver must
    /// not see the kernel.
    Unfit([u32; 3]),
    /// For any workgroup size; each size is compiled at its first launch.
    Any(Code, Mutex<HashMap<[u32; 3], Arc<Kernel>>>),
}

impl UserKernel {
    fn new(device: &Device, source: &Source) -> Result<Self> {
        let bindings = source.parameters.len();
        let compile = || Kernel::new(&device.context, &source.code, bindings).map(Arc::new);
        let kernel = match source.group {
            Some(group) if source.fits => Compiled::Fixed(group, compile()?),
            Some(group) => Compiled::Unfit(group),
            // Compiling now reports errors early.
            None => Compiled::Any(source.code.clone(), Mutex::new([([1; 3], compile()?)].into())),
        };
        let name = format!("kernel {}", source.entry).into();
        Ok(Self { name, parameters: source.parameters.clone(), kernel })
    }

    /// The code for a workgroup size.
    fn of_group(&self, device: &Device, block: [u32; 3]) -> Result<Arc<Kernel>> {
        let properties = &device.context.properties;
        let unfit = |group: [u32; 3]| {
            Failure::invalid(format!(
                "a group of {} threads is too large. Use at most {}, {} in all",
                show(group),
                show(properties.group_sizes),
                properties.group_size
            ))
        };
        match &self.kernel {
            Compiled::Unfit(group) => Err(unfit(*group)),
            Compiled::Fixed(group, _) if block != *group => Err(Failure::invalid(format!(
                "a group of {} threads, and the source says {}. Pass that size",
                show(block),
                show(*group)
            ))),
            Compiled::Fixed(_, kernel) => Ok(kernel.clone()),
            Compiled::Any(..) if block.contains(&0) || !fits(block, properties) => {
                Err(unfit(block))
            }
            Compiled::Any(code, made) => {
                if let Some(kernel) = lock(made).get(&block) {
                    return Ok(kernel.clone());
                }
                let code = hal::with_group(code, block);
                let kernel = Kernel::new(&device.context, &code, self.parameters.len())?;
                Ok(lock(made).entry(block).or_insert(Arc::new(kernel)).clone())
            }
        }
    }
}

fn show([x, y, z]: [u32; 3]) -> String {
    format!("({x}, {y}, {z})")
}

/// The kernel, if this launch is valid.
fn checked(device: &Device, kernel: &UserKernel, launch: &KernelLaunch) -> Result<Arc<Kernel>> {
    let properties = &device.context.properties;
    let invalid = |text: String| Err(Failure::invalid(text));
    let compiled = kernel.of_group(device, launch.block)?;
    let (grid, most) = (launch.grid, properties.max_groups);
    if grid.contains(&0) || grid.iter().zip(most).any(|(n, most)| *n > most) {
        return invalid(format!(
            "{} groups: at least 1 along each axis, and at most {} are possible. Change the grid",
            show(grid),
            show(most)
        ));
    }
    if launch.shared_bytes > 0 {
        return invalid(
            "the size of shared memory cannot be given at the launch. Declare a var<workgroup>"
                .to_owned(),
        );
    }
    if launch.n_arguments as usize != kernel.parameters.len() {
        return invalid(format!(
            "the kernel has {} bindings, the launch {} arguments. Pass one for each",
            kernel.parameters.len(),
            launch.n_arguments
        ));
    }
    Ok(compiled)
}

// The functions below implement the interface. Their safety follows from the contract: handles are those that the backend
// returned, output pointers are NULL or writable, and structs state their sizes.

unsafe extern "C" fn compile(
    device: *mut c_void,
    source: *const KernelSource,
    kernel: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract.
    unsafe {
        with_device::<Device>(device, error, |device| {
            device.context.usable()?;
            let source = read_sized(source)
                .ok_or_else(|| Failure::invalid("the pointer to the kernel is NULL"))?;
            let source = Source::of(&source, &device.context.properties)?;
            give(kernel, UserKernel::new(device, &source)?)
        })
    }
}

unsafe extern "C" fn launch(
    device: *mut c_void,
    stream: *mut c_void,
    kernel: *mut c_void,
    launch: *const KernelLaunch,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract.
    unsafe {
        with_device::<Device>(device, error, |device| {
            device.context.usable()?;
            let kernel: &UserKernel = handle(kernel, "the kernel")?;
            let launch = read_sized(launch)
                .ok_or_else(|| Failure::invalid("the pointer to the launch is NULL"))?;
            let compiled = checked(device, kernel, &launch)?;
            let mut batch = Batch::default();
            let mut arguments = Arguments::of(device, &kernel.parameters, &launch, &mut batch)?;
            let bindings = std::mem::take(&mut arguments.bindings);
            let groups = launch.grid;
            batch.actions.push(Action::Dispatch {
                kernel: compiled,
                bindings,
                words: None,
                groups,
            });
            arguments.finish(&mut batch);
            batch.names.push(kernel.name.clone());
            let lane = device.lane(stream.cast::<Stream>().as_ref());
            device.scheduler.submit(lane, batch)
        })
    }
}

unsafe extern "C" fn release(device: *mut c_void, kernel: *mut c_void) {
    // SAFETY: guaranteed by the contract.
    unsafe { take::<UserKernel>(host_of::<Device>(device), kernel) }
}

unsafe extern "C" fn info(
    device: *mut c_void,
    kernel: *mut c_void,
    info: *mut KernelInfo,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract.
    unsafe {
        with_device::<Device>(device, error, |device| {
            device.context.usable()?;
            let _: &UserKernel = handle(kernel, "the kernel")?;
            let properties = &device.context.properties;
            let described = KernelInfo {
                size: size_of::<KernelInfo>() as u32,
                max_threads: properties.group_size,
                thread_multiple: properties.subgroup,
                max_shared: properties.group_memory,
            };
            match write_sized(info, &described) {
                true => Ok(()),
                false => Err(Failure::invalid("the pointer to the description is NULL")),
            }
        })
    }
}
