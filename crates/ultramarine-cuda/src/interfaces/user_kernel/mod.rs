//! `ultramarine.kernel/1`: users' kernels, in CUDA C++ or compiled (`precompiled.rs`).
//!
//! A kernel with template arguments is named by an expression (`scale<float, 3>`), which NVRTC
//! instantiates. Other kernels are named by their plain name, with or without `extern "C"`. CUDA's
//! headers are used from where they are installed.

mod precompiled;
mod source;

use crate::context::failure::cuda;
use crate::context::{self, Context, DeviceProperties, lock};
use crate::launch::{Device, allow_shared};
use crate::memory::Buffer;
use crate::streams::Stream;
use crate::sys::driver::{FunctionHandle, ModuleHandle, code};
use core::ffi::{c_int, c_void};
use source::{Given, Source};
use std::ffi::CString;
use std::sync::{Arc, Mutex};
use ultramarine_abi::helper::{Failure, Result, give, handle, host_of, take, with_device};
use ultramarine_abi::interface::kernel::{
    KernelArgument, KernelInfo, KernelInterface, KernelLaunch, KernelSource, argument,
};
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

/// Maximum number of arguments of a launch.
const MOST_ARGUMENTS: u32 = 1024;
/// Maximum number of blocks of a grid in x, y, z, and of threads of a block.
const MOST_BLOCKS: [u32; 3] = [0x7fff_ffff, 0xffff, 0xffff];
const MOST_THREADS: [u32; 3] = [1024, 1024, 64];

/// `CUfunction_attribute` values.
mod attribute {
    use core::ffi::c_int;
    pub const MAX_THREADS: c_int = 0;
    pub const SHARED_BYTES: c_int = 1;
}

/// A user's kernel. Dropping it unloads its code.
struct UserKernel {
    context: Arc<Context>,
    name: Arc<str>,
    module: ModuleHandle,
    function: FunctionHandle,
    max_threads: u32,
    /// Bytes of static shared memory.
    shared: u32,
    /// Bytes of dynamic shared memory that the driver currently allows.
    allowed: Mutex<u32>,
    /// Bytes of each parameter, if the driver reports them.
    parameters: Option<Vec<usize>>,
}

// SAFETY: the driver's modules and functions may be used from any thread.
unsafe impl Send for UserKernel {}
// SAFETY: as above.
unsafe impl Sync for UserKernel {}

impl Drop for UserKernel {
    fn drop(&mut self) {
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: loaded once, unloaded once; no stream runs it at this point.
            unsafe { (self.context.driver().module_unload)(self.module) };
        }
    }
}

// ---- compiling --------------------------------------------------------------------------------

/// The function with the given name in a module.
fn function_of(
    device: &Device,
    module: ModuleHandle,
    name: &str,
) -> Result<Option<FunctionHandle>> {
    let name = CString::new(name).map_err(|_| Failure::invalid("the kernel's name has a NUL"))?;
    let mut function = std::ptr::null_mut();
    // SAFETY: a loaded module; the output pointer is valid.
    let found = unsafe { (device.driver.module_function)(&mut function, module, name.as_ptr()) };
    Ok((found == code::SUCCESS).then_some(function))
}

/// Compiles and loads a kernel; `None` if the source has no function with this name. The context is
/// current.
fn load(
    device: &Device,
    given: &Source,
    expression: Option<&str>,
) -> Result<Option<(ModuleHandle, FunctionHandle)>> {
    let expressions: Vec<String> = expression.iter().map(|e| (*e).to_owned()).collect();
    let (programs, driver) = (&device.programs, device.driver);
    let (name, text) = (&given.entry, &given.text);
    let made = programs.compile(name, text, &given.options, &expressions)?;
    let module = programs.load_module(&made.image)?;
    let name = made.names.first().unwrap_or(&given.entry);
    match function_of(device, module, name) {
        Ok(Some(function)) => Ok(Some((module, function))),
        other => {
            // SAFETY: loaded above, and nothing uses it.
            unsafe { (driver.module_unload)(module) };
            other.map(|_| None)
        }
    }
}

/// Compiles and loads. The context is current.
fn compiled(device: &Device, given: &Source) -> Result<(ModuleHandle, FunctionHandle)> {
    let loaded = match (&given.expression, load(device, given, given.expression.as_deref())?) {
        (_, Some(loaded)) => Some(loaded),
        (Some(_), None) => None,
        // A function that is not `extern "C"` has a mangled name in the compiled code.
        (None, None) => load(device, given, Some(&given.entry)).map_err(|failure| Failure {
            text: format!("the source has no kernel {}: {}", given.entry, failure.text),
            ..failure
        })?,
    };
    loaded.ok_or_else(|| {
        let wanted = given.expression.as_ref().unwrap_or(&given.entry);
        Failure::new(format!("the source has no kernel {wanted}"))
    })
}

impl UserKernel {
    /// Compiles or loads a kernel. The context is current.
    fn new(device: &Device, given: &Given) -> Result<Self> {
        let (entry, (module, function)) = match given {
            Given::Source(source) => (&source.entry, compiled(device, source)?),
            Given::Code(code) => (&code.entry, code.load(device)?),
        };
        let driver = device.driver;
        let ask = |which: c_int| {
            let mut value = 0;
            // SAFETY: the output pointer is valid, and so is the function.
            unsafe { cuda!(driver.function_attribute(&mut value, which, function)) }?;
            Ok::<u32, Failure>(u32::try_from(value).unwrap_or(0))
        };
        let limits = (ask(attribute::MAX_THREADS), ask(attribute::SHARED_BYTES));
        let parameters = driver.parameter_info.map(|tell| {
            let mut sizes = Vec::new();
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the output pointers are valid; after the last parameter the call returns an error.
            while unsafe { tell(function, sizes.len(), &mut offset, &mut size) } == code::SUCCESS {
                sizes.push(size);
            }
            sizes
        });
        Ok(Self {
            context: device.context.clone(),
            name: format!("kernel {entry}").into(),
            module,
            function,
            max_threads: limits.0.unwrap_or(device.properties.threads_per_block),
            shared: limits.1.unwrap_or(0),
            allowed: Mutex::new(0),
            parameters,
        })
    }
}

// ---- launching ----------------------------------------------------------------------------------

/// Checks limits for which the driver would only report an invalid value.
fn check(kernel: &UserKernel, properties: &DeviceProperties, launch: &KernelLaunch) -> Result<()> {
    let show = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
    let (grid, block) = (launch.grid, launch.block);
    let invalid = |text: String| Err(Failure::invalid(text));
    for (what, of, most) in [("grid", grid, MOST_BLOCKS), ("block", block, MOST_THREADS)] {
        let unit = if what == "grid" { "blocks" } else { "threads" };
        if of.contains(&0) {
            return invalid(format!(
                "a {what} of {} {unit} is empty. Pass sizes of at least 1",
                show(of)
            ));
        }
        if of.iter().zip(most).any(|(n, most)| *n > most) {
            return invalid(format!(
                "a {what} of {} {unit} is too large. Use at most {}",
                show(of),
                show(most)
            ));
        }
    }
    let threads: u64 = block.iter().map(|n| u64::from(*n)).product();
    let most = kernel.max_threads.min(properties.threads_per_block);
    if threads > u64::from(most) {
        return invalid(format!(
            "a block of {} threads has {threads}, and this kernel takes at most {most} because of its registers. Use smaller blocks",
            show(block)
        ));
    }
    let most = properties.shared_optin.max(properties.shared_per_block);
    let shared = u64::from(launch.shared_bytes) + u64::from(kernel.shared);
    if shared > u64::from(most) {
        return invalid(format!(
            "{} bytes of dynamic shared memory, and {} that the kernel declares, are more than a block has, {most}. Use less",
            launch.shared_bytes, kernel.shared
        ));
    }
    Ok(())
}

/// Allows the kernel that much dynamic shared memory; the driver requires this above 48 KiB.
fn allow(kernel: &UserKernel, properties: &DeviceProperties, bytes: u32) -> Result<()> {
    let mut allowed = lock(&kernel.allowed);
    if bytes <= *allowed || bytes + kernel.shared <= properties.shared_per_block {
        return Ok(());
    }
    // SAFETY: a loaded function; the context is current.
    unsafe { allow_shared(kernel.context.driver(), kernel.function, bytes) }?;
    *allowed = bytes;
    Ok(())
}

/// The value of an argument, and its size in bytes.
///
/// # Safety
/// The argument is valid by the contract.
unsafe fn value_of(number: u32, argument: &KernelArgument) -> Result<([u64; 2], usize)> {
    match argument.kind {
        argument::SCALAR => Ok((argument.scalar, argument.dtype.bits.div_ceil(8).into())),
        argument::TENSOR => {
            // SAFETY: NULL, or a tensor that states its size.
            let tensor = unsafe { read_sized(argument.tensor) }
                .ok_or_else(|| Failure::invalid(format!("argument {number} has no tensor")))?;
            let dl = tensor.dl;
            let sizes = match usize::try_from(dl.ndim).unwrap_or(0) {
                0 => &[][..],
                // SAFETY: there are as many sizes as dimensions.
                n => unsafe { core::slice::from_raw_parts(dl.shape.cast_const(), n) },
            };
            if sizes.contains(&0) {
                return Ok(([0; 2], 8));
            }
            // SAFETY: NULL, or a live buffer of this backend.
            let buffer: &Buffer =
                unsafe { handle(tensor.buffer, &format!("the buffer of argument {number}")) }?;
            Ok(([buffer.address() + dl.byte_offset, 0], 8))
        }
        other => {
            Err(Failure::unsupported(format!("argument {number} has the unknown kind {other}")))
        }
    }
}

/// # Safety
/// The launch's arguments are valid by the contract.
unsafe fn values_of(kernel: &UserKernel, launch: &KernelLaunch) -> Result<Vec<[u64; 2]>> {
    if launch.n_arguments > MOST_ARGUMENTS {
        return Err(Failure::invalid(format!(
            "{} arguments are too many. Use at most {MOST_ARGUMENTS}",
            launch.n_arguments
        )));
    }
    if let Some(sizes) = &kernel.parameters
        && sizes.len() != launch.n_arguments as usize
    {
        return Err(Failure::invalid(format!(
            "the kernel has {} parameters, the launch {} arguments. Pass one for each",
            sizes.len(),
            launch.n_arguments
        )));
    }
    let mut values = Vec::with_capacity(launch.n_arguments as usize);
    for i in 0..launch.n_arguments {
        let at = (i as usize).wrapping_mul(launch.argument_stride as usize);
        let place = launch.arguments.cast::<u8>().wrapping_add(at).cast::<KernelArgument>();
        // SAFETY: guaranteed by the contract: each step points to an argument that states its size.
        let (value, bytes) = unsafe {
            let argument = read_sized(place)
                .ok_or_else(|| Failure::invalid(format!("there is no argument {i}")))?;
            value_of(i, &argument)?
        };
        if let Some(wanted) = kernel.parameters.as_ref().and_then(|sizes| sizes.get(i as usize))
            && *wanted != bytes
        {
            return Err(Failure::invalid(format!(
                "argument {i} has {bytes} bytes, and the kernel's parameter {wanted}"
            )));
        }
        values.push(value);
    }
    Ok(values)
}

// The functions below implement the interface. Their safety follows from the contract: handles are
// those that the backend returned, output pointers are NULL or writable, and structs state their
// sizes.

unsafe extern "C" fn compile(
    device: *mut c_void,
    source: *const KernelSource,
    kernel: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: guaranteed by the contract.
    unsafe {
        with_device::<Device>(device, error, |device| {
            let source =
                read_sized(source).ok_or_else(|| Failure::invalid("there is no kernel"))?;
            let given = Given::of(&source)?;
            let _entered = device.enter()?;
            give(kernel, UserKernel::new(device, &given)?)
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
            let kernel: &UserKernel = handle(kernel, "the kernel")?;
            let launch =
                read_sized(launch).ok_or_else(|| Failure::invalid("there is no launch"))?;
            let stream = stream.cast::<Stream>().as_ref().unwrap_or(&device.default_stream);
            check(kernel, &device.properties, &launch)?;
            let mut values = values_of(kernel, &launch)?;
            let mut places: Vec<*mut c_void> =
                values.iter_mut().map(|v| (&raw mut *v).cast()).collect();
            let _entered = device.enter()?;
            allow(kernel, &device.properties, launch.shared_bytes)?;
            stream.log().push(&kernel.name);
            let (driver, [bx, by, bz], [tx, ty, tz]) = (device.driver, launch.grid, launch.block);
            cuda!(driver.launch_kernel(
                kernel.function,
                bx,
                by,
                bz,
                tx,
                ty,
                tz,
                launch.shared_bytes,
                stream.handle(),
                places.as_mut_ptr(),
                std::ptr::null_mut(),
            ))?;
            if context::blocking() { stream.drain() } else { Ok(()) }
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
            context::not_forked()?;
            let (kernel, properties): (&UserKernel, _) =
                (handle(kernel, "the kernel")?, &device.properties);
            let described = KernelInfo {
                size: size_of::<KernelInfo>() as u32,
                max_threads: kernel.max_threads.min(properties.threads_per_block),
                thread_multiple: 32,
                max_shared: properties.shared_optin.max(properties.shared_per_block),
            };
            match write_sized(info, &described) {
                true => Ok(()),
                false => Err(Failure::invalid("no place for what is known of the kernel")),
            }
        })
    }
}
