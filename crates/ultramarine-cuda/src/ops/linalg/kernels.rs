//! Kernels that run before and after the library calls.

use crate::launch::{Dtype, Grid, Job, launch};
use crate::ops::headers;
use crate::program::{Kernels, Source};
use ultramarine_abi::helper::{Failure, Result};

const HEADERS: &[&str] =
    &[headers::NUMBER, headers::WALK, include_str!("../../../kernels/linalg/around.cuh")];

/// Default limit of shared memory, less what a kernel uses otherwise.
const ROOM: i64 = 40 << 10;
/// Threads of a block that processes one matrix.
const THREADS: u32 = 256;

/// The elements that are stored; all others become zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    Whole,
    Lower,
    Upper,
}

/// Matrices computed by a library, to be stored in an output.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    /// Their address.
    pub at: u64,
    /// Rows and columns that are stored.
    pub shape: [i64; 2],
    /// Distances in elements: between matrices, rows and columns.
    pub strides: [i64; 3],
    /// True if the conjugates are stored.
    pub conjugate: bool,
    pub keep: Keep,
}

impl Made {
    /// Column-major matrices with `rows` rows each, `step` elements apart.
    pub fn columns(at: u64, shape: [i64; 2], rows: i64, step: i64) -> Self {
        Self { at, shape, strides: [step, 1, rows], conjugate: false, keep: Keep::Whole }
    }

    /// Row-major matrices with `columns` columns each, `step` elements apart.
    pub fn rows(at: u64, shape: [i64; 2], columns: i64, step: i64) -> Self {
        Self { at, shape, strides: [step, columns, 1], conjugate: false, keep: Keep::Whole }
    }
}

impl Keep {
    /// Its name in kernels.
    fn name(self) -> &'static str {
        match self {
            Keep::Whole => "WHOLE",
            Keep::Lower => "LOWER",
            Keep::Upper => "UPPER",
        }
    }
}

/// A property of matrices that makes a computation fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// A 0 on the diagonal.
    Singular,
    /// An infinite or NaN element in the part that is used.
    NotFinite(Keep),
}

/// The kernels of a plan that run before and after the library's calls: searches for a [`Flaw`],
/// and copies into and out of the library's layout.
#[derive(Default)]
pub struct Around {
    find: Kernels<(Dtype, Flaw)>,
    note: Kernels<Dtype>,
    store: Kernels<(Dtype, bool, Keep)>,
    rows: Kernels,
    addresses: Kernels,
}

impl Around {
    /// Stores `count` matrices row by row; `info` has the library's status word for each.
    pub fn store(
        &self,
        job: &Job<'_>,
        dtype: Dtype,
        made: Made,
        (to, info, count): (u64, u64, i64),
    ) -> Result<()> {
        let conjugate = made.conjugate && dtype.is_complex();
        let key = (dtype, conjugate, made.keep);
        let kernel = self.store.get(&job.device.programs, key, || {
            let t = format!("{}::T", dtype.tag());
            let keep = made.keep.name();
            let parameters =
                format!("const {t} *in, {t} *out, const int *info, i64 n, const Made made");
            Source::instance(
                HEADERS,
                "linalg_store",
                format!("{t}, {conjugate}, {keep}"),
                parameters,
            )
        })?;
        let [rows, cols] = made.shape;
        let n = count * rows * cols;
        let [batch, row, col] = made.strides;
        let words = [rows, cols, batch, row, col];
        let grid = Grid::over(job.device, n as u64, 1);
        launch!(job, &kernel, grid; made.at, to, info, n, words[..])
    }

    /// Writes pivots and row permutations of `count` matrices, from the library's `k` pivots each.
    pub fn rows(
        &self,
        job: &Job<'_>,
        from: u64,
        [pivots, rows]: [u64; 2],
        [count, k, m]: [i64; 3],
    ) -> Result<()> {
        let kernel = self.rows.get(&job.device.programs, (), || {
            let parameters = "const int *in, u32 *pivots, u32 *rows, i64 k, i64 m, int has_room";
            Source::instance(HEADERS, "linalg_rows", "", parameters)
        })?;
        let bytes = 4 * (m + k);
        let has_room = i32::from(bytes <= ROOM);
        let shared = if has_room == 1 { bytes as u32 } else { 0 };
        let grid = Grid::exactly(count as u64, THREADS)?.with_shared(shared);
        launch!(job, &kernel, grid; from, pivots, rows, k, m, has_room)
    }

    /// Fails if one of `count` row-major matrices has a flaw. It waits until the matrices have been computed. `word` is in
    /// the workspace.
    pub fn refuse(
        &self,
        job: &Job<'_>,
        (dtype, flaw): (Dtype, Flaw),
        (from, word): (u64, u64),
        [count, rows, cols]: [i64; 3],
    ) -> Result<()> {
        let kernel = self.find.get(&job.device.programs, (dtype, flaw), || {
            let (on_diagonal, keep) = match flaw {
                Flaw::Singular => (true, Keep::Whole),
                Flaw::NotFinite(keep) => (false, keep),
            };
            let t = format!("{}::T", dtype.tag());
            let parameters = format!("const {t} *in, u32 *found, i64 n, i64 each, i64 cols");
            let arguments = format!("{t}, {on_diagonal}, {}", keep.name());
            Source::instance(HEADERS, "linalg_find", arguments, parameters)
        })?;
        let each = rows * cols;
        let n = if flaw == Flaw::Singular { count * cols } else { count * each };
        if n == 0 {
            return Ok(());
        }
        // SAFETY: the word is in the workspace.
        unsafe { job.fill(word, u32::MAX, 4, 1) }?;
        launch!(job, &kernel, Grid::over(job.device, n as u64, 1); from, word, n, each, cols)?;
        // SAFETY: as above.
        let found = unsafe { job.read_word(word) }?;
        if found == u32::MAX {
            return Ok(());
        }
        let found = i64::from(found);
        let (matrix, text) = match flaw {
            Flaw::Singular => {
                let (b, i) = (found / cols, found % cols);
                (
                    b,
                    format!(
                        "the matrix is singular: element ({i}, {i}) is 0. Use pinv, or add a small multiple of the identity"
                    ),
                )
            }
            Flaw::NotFinite(_) => (
                found,
                "the matrix has elements that are infinite or NaN. Replace them with nan_to_num"
                    .to_owned(),
            ),
        };
        Err(Failure::new(match count {
            1 => text,
            _ => format!("matrix {matrix} of {count}: {text}"),
        }))
    }

    /// Sets a flag in `info` for each of `count` matrices that has a NaN.
    pub fn note_nan(
        &self,
        job: &Job<'_>,
        dtype: Dtype,
        (from, info): (u64, u64),
        [count, each]: [i64; 2],
    ) -> Result<()> {
        let kernel = self.note.get(&job.device.programs, dtype, || {
            let t = format!("{}::T", dtype.tag());
            let parameters = format!("const {t} *in, int *info, i64 n, i64 each");
            Source::instance(HEADERS, "linalg_note_nan", t, parameters)
        })?;
        let n = count * each;
        launch!(job, &kernel, Grid::over(job.device, n as u64, 1); from, info, n, each)
    }

    /// Writes the addresses of `count` matrices that lie `step` bytes apart.
    pub fn addresses(
        &self,
        job: &Job<'_>,
        to: u64,
        first: u64,
        step: u64,
        count: i64,
    ) -> Result<()> {
        let kernel = self.addresses.get(&job.device.programs, (), || {
            Source::instance(
                HEADERS,
                "linalg_addresses",
                "",
                "u64 *out, u64 first, u64 step, i64 n",
            )
        })?;
        let grid = Grid::over(job.device, count as u64, 1);
        launch!(job, &kernel, grid; to, first, step, count)
    }
}
