//! EIG and EIGVALS by cuSOLVER's `Xgeev`, which exists since CUDA 12.6. Matrices are processed one by one, partly on the
//! host.

use super::calls::pointer;
use super::kernels::{Around, Flaw, Keep};
use super::load;
use super::solvers::{Solvers, check, locked};
use crate::launch::{Desc, Dtype, Grid, Job, OpRequest, Work, launch};
use crate::ops::headers;
use crate::program::{Kernels, Source};
use crate::sys::cusolver::Handle;
use core::ffi::{c_int, c_void};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::{self, op};

const HEADERS: &[&str] =
    &[headers::NUMBER, headers::WALK, include_str!("../../../kernels/linalg/eig.cuh")];

struct Eig {
    dtype: Dtype,
    with_vectors: bool,
    copy: Box<dyn Work>,
    around: Around,
    /// Kernels that store vectors (true) or values (false).
    store: Kernels<bool>,
}

/// EIG and EIGVALS.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let (dtype, with_vectors) = (request.input(0)?.dtype, request.op == op::EIG);
    let outputs = 1 + usize::from(with_vectors);
    let fits = request.inputs.len() == 1
        && request.outputs.len() == outputs
        && request.outputs.iter().all(|d| d.dtype == Dtype::Complex64 && d.contiguous);
    if !fits || request.input(0)?.ndim < 2 {
        let name = schema::find(request.op).map_or("eig", |row| row.name);
        return Err(Failure::unsupported(format!(
            "{name} with operands or results of other kinds"
        )));
    }
    let solvers = Solvers::of(request.device);
    if solvers.is_none_or(|solvers| solvers.geev().is_none()) {
        return Err(Failure::unsupported(
            "eigenvalues of matrices that are not Hermitian need cuSOLVER of CUDA 12.6 or later",
        ));
    }
    let any = Desc { contiguous: false, ..request.input(0)? };
    let copy = crate::ops::prepare(&request.part(op::COPY, vec![any], vec![any]))?;
    let (around, store) = Default::default();
    Ok(Box::new(Eig { dtype, with_vectors, copy, around, store }))
}

/// `cudaDataType` of a dtype (float32, float64 or complex64), or of the corresponding complex
/// dtype.
fn geev_type(dtype: Dtype, complex: bool) -> c_int {
    const OF_COMPLEX: c_int = 4;
    match dtype {
        Dtype::Float64 => c_int::from(complex) * OF_COMPLEX + 1,
        Dtype::Float32 if !complex => 0,
        _ => OF_COMPLEX,
    }
}

/// Offsets in the workspace, and its size in bytes.
struct Parts {
    matrices: u64,
    values: u64,
    vectors: u64,
    info: u64,
    own: u64,
    total: u64,
}

/// A call of the library for one matrix.
struct Geev {
    n: i64,
    dtype: Dtype,
    with_vectors: bool,
    /// Bytes of the library's workspace on the device and in host memory.
    own: [usize; 2],
}

impl Geev {
    /// Queries the sizes of the library's workspaces. The device's context is current.
    fn new(
        solvers: &Solvers,
        job: &Job<'_>,
        dtype: Dtype,
        (n, with_vectors): (i64, bool),
    ) -> Result<Self> {
        let mut made = Self { n, dtype, with_vectors, own: [0, 0] };
        let null = std::ptr::null_mut();
        made.call(solvers, job, [null; 4], None)?;
        Ok(made)
    }

    /// Computes values and vectors. The addresses are those of the matrix, the values, the vectors and the library's status
    /// word. Without workspaces (on the device and the host), only their sizes are queried.
    fn call(
        &mut self,
        solvers: &Solvers,
        job: &Job<'_>,
        [a, w, v, info]: [*mut c_void; 4],
        own: Option<[*mut c_void; 2]>,
    ) -> Result<()> {
        let Some(table) = solvers.geev() else {
            return Err(Failure::new("cuSOLVER is not there any more"));
        };
        let handles = solvers.handles(job)?;
        let handles = locked(&handles);
        let (n, with, null) = (self.n, i32::from(self.with_vectors), std::ptr::null_mut());
        let [of_a, of_w] = [geev_type(self.dtype, false), geev_type(self.dtype, true)];
        let mut parameters: Handle = null;
        // SAFETY: the output pointers are valid; matrices and workspaces have the lengths that the
        // library requires.
        let code = unsafe {
            check("cusolverDnCreateParams", (table.create)(&mut parameters))?;
            let (solver, p) = (handles.solver, parameters);
            let [device, host] = &mut self.own;
            let code = match own {
                None => (table.sizes)(
                    solver, p, 0, with, n, of_a, a, n, of_w, w, of_a, null, n, of_a, v, n, of_a,
                    device, host,
                ),
                Some([on_device, on_host]) => (table.run)(
                    solver,
                    p,
                    0,
                    with,
                    n,
                    of_a,
                    a,
                    n,
                    of_w,
                    w,
                    of_a,
                    null,
                    n,
                    of_a,
                    v,
                    n,
                    of_a,
                    on_device,
                    *device,
                    on_host,
                    *host,
                    info.cast(),
                ),
            };
            (table.destroy)(parameters);
            code
        };
        check("cusolverDnXgeev", code)
    }
}

impl Eig {
    /// The number of matrices, and their side.
    fn sizes(&self, job: &Job<'_>) -> Result<[i64; 2]> {
        let shape = job.input(0)?.shape;
        let wrong = || Failure::invalid(format!("eigenvalues of {shape:?}"));
        let Some((batch, &[m, n])) = shape.split_last_chunk::<2>() else { return Err(wrong()) };
        let values = [batch, &[n]].concat();
        let vectors = job.outputs.get(1).is_none_or(|v| v.shape == shape);
        match m == n && job.output(0)?.shape == values && vectors {
            true => Ok([batch.iter().product(), n]),
            false => Err(wrong()),
        }
    }

    fn parts(&self, [count, n]: [i64; 2], own: usize) -> Parts {
        let mut total = 0;
        let mut take = |bytes: u64| {
            let at = total;
            total += bytes.next_multiple_of(256);
            at
        };
        let (bytes, matrix) = (self.dtype.bytes(), (n * n) as u64);
        let matrices = take(count as u64 * matrix * bytes);
        let values = take(n as u64 * self.value_bytes());
        let vectors = take(if self.with_vectors { matrix * bytes } else { 0 });
        let (info, own) = (take(4), take(own as u64));
        Parts { matrices, values, vectors, info, own, total }
    }

    /// Bytes of a complex number with the dtype's precision.
    fn value_bytes(&self) -> u64 {
        if self.dtype == Dtype::Float64 { 16 } else { 8 }
    }

    fn solvers<'a>(&self, job: &Job<'a>) -> Result<&'a Solvers> {
        Solvers::of(job.device).ok_or_else(|| Failure::new("cuSOLVER is not there any more"))
    }

    /// Stores values, or vectors.
    fn store(
        &self,
        job: &Job<'_>,
        vectors: bool,
        parts: &Parts,
        (to, n): (u64, i64),
    ) -> Result<()> {
        let kernel = self.store.get(&job.device.programs, vectors, || {
            let r = if self.dtype == Dtype::Float64 { "double" } else { "float" };
            let values = format!("const Two<{r}> *values, complex64 *out, const int *info, i64 n");
            if !vectors {
                return Source::instance(HEADERS, "linalg_eigenvalues", r, values);
            }
            let arguments = format!("{r}, {}", !self.dtype.is_complex());
            Source::instance(
                HEADERS,
                "linalg_eigenvectors",
                arguments,
                format!("const {r} *in, {values}"),
            )
        })?;
        let at = |part: u64| job.workspace + part;
        let (values, info) = (at(parts.values), at(parts.info));
        if !vectors {
            let grid = Grid::over(job.device, n as u64, 1);
            return launch!(job, &kernel, grid; values, to, info, n);
        }
        let (from, grid) = (at(parts.vectors), Grid::over(job.device, (n * n) as u64, 1));
        launch!(job, &kernel, grid; from, values, to, info, n)
    }
}

impl Work for Eig {
    fn has_workspace(&self) -> bool {
        true
    }

    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        let _entered = job.device.enter()?;
        let [count, n] = self.sizes(job)?;
        if n == 0 {
            return Ok(0);
        }
        let geev = Geev::new(self.solvers(job)?, job, self.dtype, (n, self.with_vectors))?;
        Ok(self.parts([count, n], geev.own[0]).total)
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        if job.graph.is_some() {
            return Err(Failure::unsupported("decompositions are not recorded"));
        }
        let [count, n] = self.sizes(job)?;
        if count * n == 0 {
            return Ok(());
        }
        let solvers = self.solvers(job)?;
        let mut geev = Geev::new(solvers, job, self.dtype, (n, self.with_vectors))?;
        let parts = self.parts([count, n], geev.own[0]);
        let at = |part: u64| job.workspace + part;
        job.scratch()?;
        load(&*self.copy, job, job.input(0)?, (at(parts.matrices), false))?;
        let flaw = (self.dtype, Flaw::NotFinite(Keep::Whole));
        self.around.refuse(job, flaw, (at(parts.matrices), at(parts.info)), [count, n, n])?;
        let mut host = vec![0_u64; geev.own[1].div_ceil(8)];
        let own = [pointer(at(parts.own)), host.as_mut_ptr().cast()];
        let [w, v, info] = [parts.values, parts.vectors, parts.info].map(|part| pointer(at(part)));
        let v = if self.with_vectors { v } else { std::ptr::null_mut() };
        let each = (n * n) as u64;
        let mut one = |b: u64| {
            let a = pointer(at(parts.matrices) + b * each * self.dtype.bytes());
            geev.call(solvers, job, [a, w, v, info], Some(own))
                .map_err(|own| job.fault().unwrap_or(own))?;
            self.store(job, false, &parts, (job.output(0)?.address + 8 * b * n as u64, n))?;
            match self.with_vectors {
                true => self.store(job, true, &parts, (job.output(1)?.address + 8 * b * each, n)),
                false => Ok(()),
            }
        };
        let done = (0..count as u64).try_for_each(&mut one);
        // The library may read the host's workspace until the stream has drained, even if a later
        // matrix failed.
        let drained = job.stream.map_or(Ok(()), |stream| stream.drain());
        done.and(drained)
    }
}
