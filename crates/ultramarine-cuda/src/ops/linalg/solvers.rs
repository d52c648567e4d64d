//! Handles of cuSOLVER and cuBLAS on a device. There is a pair for each stream, because a handle's own memory is used by
//! one stream at a time.

use crate::context::{self, Context, lock};
use crate::launch::{Device, Dtype, Job};
use crate::sys::cublas::{self, Cublas};
use crate::sys::cusolver::{self, Cusolver};
use core::ffi::{c_int, c_void};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use ultramarine_abi::helper::{Failure, Level, Result};
use ultramarine_abi::status;

/// Maximum number of streams whose handles are kept: each pair takes tens of megabytes.
const MOST_KEPT: usize = 8;

/// cuSOLVER and cuBLAS on a device, with [`Handles`] for each stream.
pub struct Solvers {
    tables: Tables,
    context: Arc<Context>,
    /// By the addresses of streams. A new stream at the address of a destroyed one takes over its
    /// handles.
    kept: Mutex<HashMap<usize, Arc<Mutex<Handles>>>>,
}

#[derive(Clone, Copy)]
struct Tables {
    solver: &'static Cusolver,
    blas: &'static Cublas,
}

/// The libraries' handles for the calls of one stream.
pub struct Handles {
    tables: Tables,
    context: Arc<Context>,
    /// The handle of cuSOLVER.
    pub solver: cusolver::Handle,
    /// The handle of cuBLAS.
    pub blas: cublas::Handle,
    /// Parameters of the Jacobi method for singular values.
    pub svd: cusolver::Handle,
    /// Parameters of the Jacobi method for eigenvalues.
    pub eigh: cusolver::Handle,
}

// SAFETY: the libraries' handles may be used from any thread, but by only one at a time.
unsafe impl Send for Handles {}

/// Converts a library's code to a result.
pub fn check(call: &str, code: c_int) -> Result<()> {
    // The libraries' codes for a lack of memory: CUSOLVER_STATUS_ALLOC_FAILED and
    // CUBLAS_STATUS_ALLOC_FAILED.
    let lacks_memory = code == if call.starts_with("cublas") { 3 } else { 2 };
    let text = || format!("{call} failed with status {code}");
    match code {
        0 => Ok(()),
        _ if lacks_memory => Err(Failure { code: status::OUT_OF_MEMORY, text: text() }),
        _ => Err(Failure::new(text())),
    }
}

impl Solvers {
    /// The device's solvers. `None` if none work, which is logged once.
    pub fn of(device: &Device) -> Option<&Self> {
        let made = device.solvers.get_or_init(|| Box::new(Self::open(device)));
        made.downcast_ref::<Option<Self>>()?.as_ref()
    }

    fn open(device: &Device) -> Option<Self> {
        match Self::make(device) {
            Ok(solvers) => Some(solvers),
            Err(why) => {
                let text = format!(
                    "{}. Decompositions of matrices run on the CPU until it is installed",
                    why.text
                );
                device.host.log(Level::Info, &text);
                None
            }
        }
    }

    fn make(device: &Device) -> Result<Self> {
        let solver = cusolver::cusolver().map_err(Failure::new)?;
        let tables = Tables { solver, blas: cublas::cublas().map_err(Failure::new)? };
        let context = device.context.clone();
        let solvers = Self { tables, context, kept: Mutex::default() };
        // The handles without a stream show whether handles can be made at all. They also serve to
        // query sizes.
        let handles = Handles::make_or_spare(&solvers, device)?;
        lock(&solvers.kept).insert(0, Arc::new(Mutex::new(handles)));
        Ok(solvers)
    }

    /// The routines for a dtype: float32, float64 or complex64.
    pub fn routines(
        &self,
        dtype: Dtype,
    ) -> (&'static cusolver::Routines, &'static cublas::Routines) {
        let at = match dtype {
            Dtype::Float32 => 0,
            Dtype::Float64 => 1,
            _ => 2,
        };
        (&self.tables.solver.routines[at], &self.tables.blas.routines[at])
    }

    /// The routine for eigenvalues of general matrices, if the library has it.
    pub fn geev(&self) -> Option<&'static cusolver::Geev> {
        self.tables.solver.geev.as_ref()
    }

    /// The handles for a job's stream. The device's context is current.
    pub fn handles(&self, job: &Job<'_>) -> Result<Arc<Mutex<Handles>>> {
        let stream = job.stream.map_or(std::ptr::null_mut(), |stream| stream.handle());
        let mut kept = lock(&self.kept);
        let found = kept.get(&(stream as usize)).cloned();
        let handles = match found {
            Some(handles) => handles,
            None => {
                let made = Handles::make_or_spare(self, job.device)?;
                let made = Arc::new(Mutex::new(made));
                if kept.len() >= MOST_KEPT {
                    kept.clear();
                }
                kept.insert(stream as usize, made.clone());
                made
            }
        };
        lock(&handles).set_stream(stream)?;
        Ok(handles)
    }
}

/// Locks handles.
pub fn locked(handles: &Mutex<Handles>) -> MutexGuard<'_, Handles> {
    lock(handles)
}

impl Handles {
    /// Makes new handles. If there is not enough memory, frees cached memory and tries again.
    fn make_or_spare(solvers: &Solvers, device: &Device) -> Result<Self> {
        match Self::make(solvers) {
            Err(failure) if failure.code == status::OUT_OF_MEMORY && device.allocator.spare() => {
                Self::make(solvers)
            }
            made => made,
        }
    }

    fn make(solvers: &Solvers) -> Result<Self> {
        let (tables, null) = (solvers.tables, std::ptr::null_mut());
        let context = solvers.context.clone();
        let mut made = Self { tables, context, solver: null, blas: null, svd: null, eigh: null };
        let (solver, blas) = (&tables.solver.common, &tables.blas.common);
        // SAFETY: the output pointers are valid; the context is current.
        unsafe {
            check("cusolverDnCreate", (solver.create)(&mut made.solver))?;
            check("cublasCreate", (blas.create)(&mut made.blas))?;
            check("cusolverDnCreateGesvdjInfo", (solver.svd_create)(&mut made.svd))?;
            check("cusolverDnCreateSyevjInfo", (solver.eigh_create)(&mut made.eigh))?;
        }
        Ok(made)
    }

    fn set_stream(&mut self, stream: *mut c_void) -> Result<()> {
        let (solver, blas) = (&self.tables.solver.common, &self.tables.blas.common);
        // SAFETY: handles of this context, which only this thread uses; a stream of the context.
        unsafe {
            check("cusolverDnSetStream", (solver.set_stream)(self.solver, stream))?;
            check("cublasSetStream", (blas.set_stream)(self.blas, stream))
        }
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        if context::forked() {
            return;
        }
        let Ok(_entered) = self.context.enter() else { return };
        let (solver, blas) = (&self.tables.solver.common, &self.tables.blas.common);
        let destroy = |handle: *mut c_void,
                       function: unsafe extern "C" fn(*mut c_void) -> c_int| {
            if !handle.is_null() {
                // SAFETY: made once, destroyed once. The libraries wait for running calls.
                unsafe { function(handle) };
            }
        };
        destroy(self.eigh, solver.eigh_destroy);
        destroy(self.svd, solver.svd_destroy);
        destroy(self.blas, blas.destroy);
        destroy(self.solver, solver.destroy);
    }
}
