//! `ultramarine.kernel/1`: kernels that users give, in WGSL or compiled. Tensors are storage buffers of group 0, scalars
//! uniforms.

mod arguments;
mod source;

use crate::launch::Device;
use crate::program::Kernel;
use crate::streams::{Action, Batch, Stream};
use arguments::Arguments;
use core::ffi::c_void;
use source::{Parameter, Source};
use std::sync::Arc;
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
    group: [u32; 3],
    parameters: Vec<Parameter>,
    /// `None` for groups that the device does not take: its driver must not see them, and launches are errors.
    kernel: Option<Arc<Kernel>>,
}

impl UserKernel {
    fn new(device: &Device, source: &Source) -> Result<Self> {
        let kernel = source.fits.then(|| {
            let bindings = source.parameters.len();
            Kernel::new(&device.context, &source.code, bindings).map(Arc::new)
        });
        Ok(Self {
            name: format!("kernel {}", source.entry).into(),
            group: source.group,
            parameters: source.parameters.clone(),
            kernel: kernel.transpose()?,
        })
    }
}

fn show([x, y, z]: [u32; 3]) -> String {
    format!("({x}, {y}, {z})")
}

/// The kernel, if it can be launched so.
fn checked<'a>(
    device: &Device,
    kernel: &'a UserKernel,
    launch: &KernelLaunch,
) -> Result<&'a Arc<Kernel>> {
    let properties = &device.context.properties;
    let invalid = |text: String| Err(Failure::invalid(text));
    let Some(compiled) = &kernel.kernel else {
        return invalid(format!(
            "a group of {} threads: at most {} are possible, {} in all",
            show(kernel.group),
            show(properties.group_sizes),
            properties.group_size
        ));
    };
    let (grid, most) = (launch.grid, properties.max_groups);
    if launch.block != kernel.group {
        return invalid(format!(
            "a group of {} threads, and the source says {}",
            show(launch.block),
            show(kernel.group)
        ));
    }
    if grid.contains(&0) || grid.iter().zip(most).any(|(n, most)| *n > most) {
        return invalid(format!(
            "{} groups: at least 1 along each axis, and at most {} are possible",
            show(grid),
            show(most)
        ));
    }
    if launch.shared_bytes > 0 {
        return invalid("there is no shared memory here of a size given at the launch".to_owned());
    }
    if launch.n_arguments as usize != kernel.parameters.len() {
        return invalid(format!(
            "the kernel has {} bindings, the launch {} arguments",
            kernel.parameters.len(),
            launch.n_arguments
        ));
    }
    Ok(compiled)
}

// The functions below are the interface's; their safety is the contract's: handles are those that the backend gave, places
// are NULL or writable, structs say their sizes.

unsafe extern "C" fn compile(
    device: *mut c_void,
    source: *const KernelSource,
    kernel: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the contract's.
    unsafe {
        with_device::<Device>(device, error, |device| {
            device.context.usable()?;
            let source =
                read_sized(source).ok_or_else(|| Failure::invalid("there is no kernel"))?;
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
    // SAFETY: the contract's.
    unsafe {
        with_device::<Device>(device, error, |device| {
            device.context.usable()?;
            let kernel: &UserKernel = handle(kernel, "the kernel")?;
            let launch =
                read_sized(launch).ok_or_else(|| Failure::invalid("there is no launch"))?;
            let compiled = checked(device, kernel, &launch)?.clone();
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
    // SAFETY: the contract's.
    unsafe { take::<UserKernel>(host_of::<Device>(device), kernel) }
}

unsafe extern "C" fn info(
    device: *mut c_void,
    kernel: *mut c_void,
    info: *mut KernelInfo,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the contract's.
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
                false => Err(Failure::invalid("no place for what is known of the kernel")),
            }
        })
    }
}
