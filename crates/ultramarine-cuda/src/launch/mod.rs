//! The steps from a request to a launch: devices (`device.rs`), plans (`plan.rs`), commands
//! (`job.rs`), tensors as kernels address them (`view.rs`, `walk.rs`), commands that run together
//! (`together.rs`), and grids.

mod device;
mod job;
mod plan;
mod together;
mod view;
mod walk;

pub use device::Device;
pub use job::{Job, Views};
pub use plan::{Kind, OpRequest, Plan, Work};
pub use together::{Together, as_one, joins};
pub use ultramarine_abi::helper::{Desc, Dtype, row_major};
pub use view::{View, span};
pub use walk::{Axes, MAX_AXES, RankVariant, rank_for};

use crate::context::failure::{self, cuda};
use crate::program::Kernel;
use crate::sys::driver::{Driver, FunctionHandle, KernelNode, LaunchAttribute, LaunchConfig};
use core::ffi::{c_int, c_void};
use ultramarine_abi::helper::{Failure, Result};

/// Threads of a block, for kernels that do not need another number.
pub const BLOCK: u32 = 256;

/// Blocks and threads of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// Blocks in x, y, z.
    pub blocks: [u32; 3],
    /// Threads of a block in x, y, z.
    pub threads: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// The kernel may start before the previous one has ended. It waits itself (`wait_for_last` in `number.cuh`) before it reads
    /// memory that others write, and before it writes.
    pub early: bool,
}

impl Grid {
    /// Makes a one-dimensional grid.
    pub fn line(blocks: u32, threads: u32) -> Self {
        Self { blocks: [blocks, 1, 1], threads: [threads, 1, 1], shared: 0, early: false }
    }

    /// A grid for a kernel with a grid-stride loop over `items`, `each` at a time: enough blocks to
    /// fill the device a few times over, but no more than there is work for.
    pub fn over(device: &Device, items: u64, each: u64) -> Self {
        let blocks = items.div_ceil(each.max(1)).div_ceil(u64::from(BLOCK)).max(1);
        let full = 16 * device.properties.parallelism() / u64::from(BLOCK);
        Self::line(blocks.min(full.max(1)) as u32, BLOCK)
    }

    /// A grid for a kernel whose blocks each do a fixed amount of work and use only `blockIdx.x`.
    /// `None` if a grid cannot have so many blocks.
    pub fn exactly(blocks: u64, threads: u32) -> Result<Self> {
        match i32::try_from(blocks) {
            Ok(blocks) => Ok(Self::line(blocks as u32, threads)),
            Err(_) => Err(Failure::new(format!("{blocks} blocks are more than a grid has"))),
        }
    }

    /// The same grid for several commands, each of which has its own index in y.
    pub fn of_several(self, commands: usize) -> Self {
        Self { blocks: [self.blocks[0], commands as u32, 1], ..self }
    }

    /// Sets the dynamic shared memory.
    pub fn with_shared(self, bytes: u32) -> Self {
        Self { shared: bytes, ..self }
    }

    /// With dynamic shared memory for the given kernel, which the driver has to allow above 48 KiB.
    pub fn with_room(self, job: &Job<'_>, kernel: &Kernel, bytes: u32) -> Result<Self> {
        // Static shared memory counts, too, so half of the default limit is reserved for it.
        if bytes > job.device.properties.shared_per_block / 2 {
            let _entered = job.device.enter()?;
            // SAFETY: a loaded function; the context was just entered.
            unsafe { allow_shared(job.device.driver, kernel.handle(), bytes) }?;
        }
        Ok(self.with_shared(bytes))
    }
}

/// Maximum number of elements of a command that runs together with others. Larger commands fill the
/// device alone.
pub const TOGETHER: u64 = 1 << 20;

/// Allows a loaded function that much dynamic shared memory; the driver requires this above 48 KiB.
///
/// # Safety
/// The function is loaded, and its context is current.
pub unsafe fn allow_shared(
    driver: &'static Driver,
    function: FunctionHandle,
    bytes: u32,
) -> Result<()> {
    const MAX_DYNAMIC_SHARED: c_int = 8;
    // SAFETY: by this function's contract.
    unsafe { cuda!(driver.function_set_attribute(function, MAX_DYNAMIC_SHARED, bytes as c_int)) }
}

/// Enqueues a kernel. `arguments` are the addresses of the parameters' values.
///
/// # Safety
/// The arguments match the kernel's parameters in number and size, and the kernel accesses only
/// memory that it was given.
pub unsafe fn enqueue(
    job: &Job<'_>,
    kernel: &Kernel,
    grid: Grid,
    arguments: &mut [*mut c_void],
) -> Result<()> {
    let driver = job.device.driver;
    let extra = std::ptr::null_mut();
    let starts_early = kernel.waits() && job.device.properties.starts_early();
    if let Some(graph) = job.graph {
        let node = KernelNode {
            function: kernel.handle(),
            blocks: grid.blocks,
            threads: grid.threads,
            shared: grid.shared,
            parameters: arguments.as_mut_ptr(),
            extra,
            kernel: std::ptr::null_mut(),
            context: std::ptr::null_mut(),
        };
        // SAFETY: by this function's contract.
        return unsafe { graph.kernel(&node, grid.early || starts_early) };
    }
    if let Some(launch) = driver.launch_kernel_by.filter(|_| starts_early) {
        let config = LaunchConfig {
            blocks: grid.blocks,
            threads: grid.threads,
            shared: grid.shared,
            stream: job.queue(),
            attributes: &LaunchAttribute::EARLY,
            n_attributes: 1,
        };
        // SAFETY: by this function's contract; the kernel waits for the previous one before
        // anything else.
        let result = unsafe { launch(&config, kernel.handle(), arguments.as_mut_ptr(), extra) };
        return failure::check(driver, "cuLaunchKernelEx", result);
    }
    let ([bx, by, bz], [tx, ty, tz]) = (grid.blocks, grid.threads);
    // SAFETY: by this function's contract.
    unsafe {
        cuda!(driver.launch_kernel(
            kernel.handle(),
            bx,
            by,
            bz,
            tx,
            ty,
            tz,
            grid.shared,
            job.queue(),
            arguments.as_mut_ptr(),
            extra,
        ))
    }
}

/// `launch!(job, kernel, grid; a, b, c)`: enqueues a kernel with the values of variables `a`, `b`
/// and `c` as its parameters. A `Vec` or slice of words is passed by value, as a struct: write
/// `words[..]` for it.
macro_rules! launch {
    ($job:expr, $kernel:expr, $grid:expr; $($argument:expr),* $(,)?) => {{
        let mut arguments = [$((&raw const $argument).cast_mut().cast::<core::ffi::c_void>()),*];
        // SAFETY: the kernels of this crate are called with the parameters that they declare; walks
        // stay inside the tensors that they were made from.
        unsafe { $crate::launch::enqueue($job, $kernel, $grid, &mut arguments) }
    }};
}
pub(crate) use launch;
