//! cuBLAS: triangular systems, and LU factors of small matrices. Matrix products use cuBLASLt.

use super::{find, functions, routines};
use core::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// `cublasStatus_t`; 0 is success.
pub type Code = c_int;
/// `cublasHandle_t`.
pub type Handle = *mut c_void;

/// `CUBLAS_FILL_MODE_LOWER`.
pub const LOWER: c_int = 0;
/// `CUBLAS_FILL_MODE_UPPER`.
pub const UPPER: c_int = 1;
/// `CUBLAS_SIDE_RIGHT`.
pub const RIGHT: c_int = 1;

functions! {
    /// Functions for every dtype.
    Common {
        create = "cublasCreate_v2" fn(*mut Handle) -> Code;
        destroy = "cublasDestroy_v2" fn(Handle) -> Code;
        set_stream = "cublasSetStream_v2" fn(Handle, *mut c_void) -> Code;
    }
}

type P = *mut c_void;

routines! {
    /// Routines for one dtype.
    Routines {
        trsm = "cublas#trsm_v2" fn(Handle, c_int, c_int, c_int, c_int, c_int, c_int, P, P, c_int, P, c_int);
        trsm_batched = "cublas#trsmBatched" fn(
            Handle, c_int, c_int, c_int, c_int, c_int, c_int, P, P, c_int, P, c_int, c_int,
        );
        getrf_batched = "cublas#getrfBatched" fn(Handle, c_int, P, c_int, P, P, c_int);
    }
}

/// cuBLAS. A handle is used by one thread at a time.
pub struct Cublas {
    /// Functions for every dtype.
    pub common: Common,
    /// Routines for float32, float64 and complex64.
    pub routines: [Routines; 3],
}

/// cuBLAS, opened once, at first use.
pub fn cublas() -> Result<&'static Cublas, &'static str> {
    static CUBLAS: OnceLock<Result<Cublas, String>> = OnceLock::new();
    let open = || {
        let library = find::open(find::Kind::Cublas)?;
        let of = |letter| Routines::of(&library, letter);
        let routines = [of("S"), of("D"), of("C")];
        let make = || -> Result<Cublas, String> {
            let [single, double, complex] = routines;
            let routines = [single?, double?, complex?];
            Ok(Cublas { routines, common: Common::of(library)? })
        };
        make().map_err(|why| format!("cuBLAS cannot be used: {why}"))
    };
    CUBLAS.get_or_init(open).as_ref().map_err(String::as_str)
}
