//! cuFFT plans, which are kept for later calls with the same sizes.

use super::layout::Lines;
use crate::context::{self, Context, lock};
use crate::launch::{Device, Job};
use crate::sys::cufft::{self, Code, Cufft, FORWARD, Handle, INVERSE, code, kind};
use core::ffi::c_void;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Once};
use ultramarine_abi::helper::{Failure, Level, Result};
use ultramarine_abi::schema::fft;
use ultramarine_abi::status;

/// Maximum number of kept plans: each has tables on the device.
const MOST_KEPT: usize = 64;

/// The library. `None` if none works, which is logged once.
pub fn library(device: &Device) -> Option<&'static Cufft> {
    static LOGGED: Once = Once::new();
    let found = cufft::cufft();
    if let Err(why) = found {
        let text = format!(
            "{why}. Fourier transforms are computed by products or on the CPU until it is installed"
        );
        LOGGED.call_once(|| device.host.log(Level::Info, &text));
    }
    found.ok()
}

/// Converts the library's code to a result.
fn check(call: &str, result: Code) -> Result<()> {
    let text = || format!("{call} failed with cuFFT result {result}");
    match result {
        code::SUCCESS => Ok(()),
        code::ALLOC_FAILED => Err(Failure { code: status::OUT_OF_MEMORY, text: text() }),
        _ => Err(Failure::new(text())),
    }
}

/// A cuFFT plan for certain [`Lines`]. It is destroyed when it is dropped.
pub struct Plan {
    table: &'static Cufft,
    /// Used by one thread at a time. Its calls may run concurrently on the device, each with its
    /// own workspace.
    handle: Mutex<Handle>,
    workspace: usize,
    context: Arc<Context>,
}

impl Plan {
    /// Bytes of workspace of a call.
    pub fn workspace(&self) -> u64 {
        self.workspace as u64
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        if context::forked() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: made once, destroyed once. The library waits for running calls before it frees their tables.
            unsafe { (self.table.destroy)(*lock(&self.handle)) };
        }
    }
}

/// Transforms of one kind, such as real to complex, with the plans that were made so far.
pub struct Transforms {
    table: &'static Cufft,
    code: u32,
    kept: Mutex<HashMap<Lines, Arc<Plan>>>,
}

impl Transforms {
    /// Without any plans.
    pub fn new(table: &'static Cufft, code: u32) -> Self {
        Self { table, code, kept: Mutex::default() }
    }

    /// The plan for a call. The device's context is current.
    pub fn plan(&self, device: &Device, lines: Lines) -> Result<Arc<Plan>> {
        let mut kept = lock(&self.kept);
        if let Some(plan) = kept.get(&lines) {
            return Ok(plan.clone());
        }
        let plan = match self.make(device, lines) {
            Err(failure) if failure.code == status::OUT_OF_MEMORY && device.allocator.spare() => {
                self.make(device, lines)
            }
            made => made,
        };
        let plan = Arc::new(plan?);
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(lines, plan.clone());
        Ok(plan)
    }

    fn make(&self, device: &Device, lines: Lines) -> Result<Plan> {
        let (table, mut handle) = (self.table, 0);
        // SAFETY: the output pointer is valid; the context is current.
        check("cufftCreate", unsafe { (table.create)(&mut handle) })?;
        let context = device.context.clone();
        let mut plan = Plan { table, handle: Mutex::new(handle), workspace: 0, context };
        // SAFETY: a plan that is not made yet.
        check("cufftSetAutoAllocation", unsafe { (table.auto_allocation)(handle, 0) })?;
        let (mut n, mut rows) = (lines.n, [lines.n; 2]);
        let kind = match self.code {
            fft::REAL => kind::R2C,
            fft::REAL_BACKWARD => kind::C2R,
            _ => kind::C2C,
        };
        let [embedded_in, embedded_out] = &mut rows;
        // SAFETY: sizes of one axis; the output pointers are valid.
        let made = unsafe {
            (table.make)(
                handle,
                1,
                &mut n,
                embedded_in,
                lines.step[0],
                lines.distance[0],
                embedded_out,
                lines.step[1],
                lines.distance[1],
                kind,
                lines.count,
                &mut plan.workspace,
            )
        };
        check("cufftMakePlanMany64", made).map_err(|failure| Failure {
            text: format!("{} for {lines:?}", failure.text),
            ..failure
        })?;
        Ok(plan)
    }

    /// Enqueues a plan's call for each pair of source and target addresses; `own` is the address of
    /// the workspace.
    pub fn run(
        &self,
        job: &Job<'_>,
        plan: &Arc<Plan>,
        places: &[[u64; 2]],
        own: u64,
    ) -> Result<()> {
        job.keep(plan);
        let (table, pointer) = (self.table, |address: u64| address as usize as *mut c_void);
        let result = job.library(
            |queue| {
                let plan_of = lock(&plan.handle);
                let handle = *plan_of;
                // SAFETY: a plan of this library and of this context, which only this thread uses. It reads and
                // writes the lines that it was made for; the workspace is as large as it requires.
                unsafe {
                    check("cufftSetStream", (table.set_stream)(handle, queue))?;
                    if plan.workspace > 0 {
                        check("cufftSetWorkArea", (table.set_work_area)(handle, pointer(own)))?;
                    }
                    for [from, to] in places.iter().map(|pair| pair.map(pointer)) {
                        let result = match self.code {
                            fft::REAL => (table.r2c)(handle, from, to),
                            fft::REAL_BACKWARD => (table.c2r)(handle, from, to),
                            fft::FORWARD => (table.c2c)(handle, from, to, FORWARD),
                            _ => (table.c2c)(handle, from, to, INVERSE),
                        };
                        check("cufftExec", result)?;
                    }
                }
                Ok(())
            },
            Result::is_ok,
        )?;
        result.map_err(|own| job.fault().unwrap_or(own))
    }
}
