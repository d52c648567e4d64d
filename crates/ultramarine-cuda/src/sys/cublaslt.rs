//! cuBLASLt: matrix products.

use super::{find, functions};
use core::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

/// `cublasStatus_t`; 0 is success.
pub type Code = c_int;
/// `cublasLtHandle_t`, and the descriptors of operations, matrices and preferences.
pub type Handle = *mut c_void;

/// `cublasStatus_t` values that are handled specifically.
#[allow(missing_docs)]
pub mod code {
    use super::Code;
    pub const SUCCESS: Code = 0;
    pub const ALLOC_FAILED: Code = 3;
    pub const INVALID_VALUE: Code = 7;
    pub const ARCH_MISMATCH: Code = 8;
    pub const NOT_SUPPORTED: Code = 15;
}

/// `cublasComputeType_t` values.
#[allow(missing_docs)]
pub mod compute {
    use core::ffi::c_int;
    pub const F32: c_int = 68;
    pub const F32_FAST_16BF: c_int = 75;
    pub const F32_FAST_TF32: c_int = 77;
    pub const F64: c_int = 70;
}

/// `cudaDataType` values.
#[allow(missing_docs)]
pub mod data {
    use core::ffi::c_int;
    pub const R_32F: c_int = 0;
    pub const R_64F: c_int = 1;
    pub const R_16F: c_int = 2;
    pub const C_32F: c_int = 4;
    pub const R_16BF: c_int = 14;
}

/// `CUBLAS_OP_T`; `CUBLAS_OP_N` is 0, and the default.
pub const OP_T: i32 = 1;

/// Attributes of operations, of matrices and of preferences, with the types of their values.
#[allow(missing_docs)]
pub mod attribute {
    use core::ffi::c_int;
    /// `i32`.
    pub const MATMUL_TRANSA: c_int = 3;
    /// `i32`.
    pub const MATMUL_TRANSB: c_int = 4;
    /// `i32`.
    pub const LAYOUT_BATCH_COUNT: c_int = 5;
    /// `i64`, in elements.
    pub const LAYOUT_BATCH_STEP: c_int = 6;
    /// `u64`.
    pub const PREFERENCE_WORKSPACE: c_int = 1;
    /// `u32`.
    pub const PREFERENCE_REDUCTIONS: c_int = 3;
    /// `u32`; alignment of A, followed by those of B, C and D.
    pub const PREFERENCE_ALIGNMENT: c_int = 5;
}

/// `CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE`: partial sums are kept in the compute type.
pub const REDUCTION_COMPUTE_TYPE: u32 = 2;

/// `cublasLtMatmulAlgo_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Algorithm([u64; 8]);

/// `cublasLtMatmulHeuristicResult_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Found {
    pub algorithm: Algorithm,
    pub workspace: usize,
    pub state: Code,
    pub waves: f32,
    pub reserved: [c_int; 4],
}

const _: () = assert!(size_of::<Algorithm>() == 64 && size_of::<Found>() == 96);

functions! {
    /// Functions of cuBLASLt. They are callable from any thread.
    CublasLt {
        version = "cublasLtGetVersion" fn() -> usize;
        create = "cublasLtCreate" fn(*mut Handle) -> Code;
        destroy = "cublasLtDestroy" fn(Handle) -> Code;
        multiply = "cublasLtMatmul" fn(
            Handle, Handle, *const c_void, *const c_void, Handle, *const c_void, Handle,
            *const c_void, *const c_void, Handle, *mut c_void, Handle, *const Algorithm,
            *mut c_void, usize, *mut c_void,
        ) -> Code;
        find = "cublasLtMatmulAlgoGetHeuristic" fn(
            Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut Found, *mut c_int,
        ) -> Code;
        operation_create = "cublasLtMatmulDescCreate" fn(*mut Handle, c_int, c_int) -> Code;
        operation_destroy = "cublasLtMatmulDescDestroy" fn(Handle) -> Code;
        operation_set = "cublasLtMatmulDescSetAttribute" fn(Handle, c_int, *const c_void, usize) -> Code;
        layout_create = "cublasLtMatrixLayoutCreate" fn(*mut Handle, c_int, u64, u64, i64) -> Code;
        layout_destroy = "cublasLtMatrixLayoutDestroy" fn(Handle) -> Code;
        layout_set = "cublasLtMatrixLayoutSetAttribute" fn(Handle, c_int, *const c_void, usize) -> Code;
        preference_create = "cublasLtMatmulPreferenceCreate" fn(*mut Handle) -> Code;
        preference_destroy = "cublasLtMatmulPreferenceDestroy" fn(Handle) -> Code;
        preference_set = "cublasLtMatmulPreferenceSetAttribute" fn(Handle, c_int, *const c_void, usize) -> Code;
        status_text = "cublasLtGetStatusString" fn(Code) -> *const c_char;
    }
}

/// cuBLASLt, opened once, at the first product that needs it.
pub fn cublaslt() -> Result<&'static CublasLt, &'static str> {
    static CUBLASLT: OnceLock<Result<CublasLt, String>> = OnceLock::new();
    let found = CUBLASLT.get_or_init(|| {
        let library = find::open(find::Kind::CublasLt)?;
        CublasLt::of(library).map_err(|why| format!("cuBLASLt cannot be used: {why}"))
    });
    found.as_ref().map_err(String::as_str)
}
