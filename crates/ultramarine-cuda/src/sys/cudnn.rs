//! cuDNN: convolutions and attention. It is used by its graph interface, in which everything is a descriptor
//! with attributes.

use super::{find, functions};
use core::ffi::{c_char, c_int, c_void};
use std::sync::OnceLock;

/// `cudnnStatus_t`; 0 is success.
pub type Code = c_int;
/// `cudnnHandle_t` and `cudnnBackendDescriptor_t`.
pub type Handle = *mut c_void;

/// The oldest version with everything that is needed here: since this version, infinities mask
/// scores.
const OLDEST: usize = 91_000;

/// `cudnnStatus_t` values that are handled specifically.
#[allow(missing_docs)]
pub mod code {
    use super::Code;
    pub const SUCCESS: Code = 0;
    pub const HOST_ALLOCATION_FAILED: Code = 4003;
    pub const DEVICE_ALLOCATION_FAILED: Code = 4004;
}

/// `cudnnDataType_t` values.
#[allow(missing_docs)]
pub mod data {
    use core::ffi::c_int;
    pub const FLOAT: c_int = 0;
    pub const HALF: c_int = 2;
    pub const INT32: c_int = 4;
    pub const BFLOAT16: c_int = 9;
    pub const BOOLEAN: c_int = 11;
}

/// `cudnnBackendDescriptorType_t` values.
#[allow(missing_docs)]
pub mod kind {
    use core::ffi::c_int;
    pub const POINTWISE: c_int = 0;
    pub const CONVOLUTION: c_int = 1;
    pub const ENGINE: c_int = 2;
    pub const ENGINE_CONFIG: c_int = 3;
    pub const HEURISTICS: c_int = 4;
    pub const PLAN: c_int = 5;
    pub const CONVOLVE: c_int = 10;
    pub const CONVOLVE_WEIGHT: c_int = 11;
    pub const CONVOLVE_INPUT: c_int = 12;
    pub const OPERATION_POINTWISE: c_int = 13;
    pub const GRAPH: c_int = 15;
    pub const PACK: c_int = 16;
    pub const TENSOR: c_int = 17;
    pub const MATMUL: c_int = 18;
    pub const OPERATION_MATMUL: c_int = 19;
    pub const REDUCTION: c_int = 21;
    pub const OPERATION_REDUCTION: c_int = 22;
    pub const OPERATION_RESHAPE: c_int = 31;
}

/// `cudnnBackendAttributeType_t` values.
#[allow(missing_docs)]
pub mod value {
    use core::ffi::c_int;
    pub const HANDLE: c_int = 0;
    pub const DATA_TYPE: c_int = 1;
    /// A type of one byte.
    pub const BOOLEAN: c_int = 2;
    pub const INT64: c_int = 3;
    pub const FLOAT: c_int = 4;
    pub const POINTER: c_int = 6;
    pub const CONVOLUTION_MODE: c_int = 7;
    pub const HEURISTICS_MODE: c_int = 8;
    pub const NUMERICAL_NOTE: c_int = 11;
    pub const POINTWISE_MODE: c_int = 14;
    pub const DESCRIPTOR: c_int = 15;
    pub const REDUCTION_OPERATOR: c_int = 18;
}

/// `cudnnBackendAttributeName_t` values.
#[allow(missing_docs)]
pub mod attribute {
    use core::ffi::c_int;
    pub const POINTWISE_MODE: c_int = 0;
    pub const POINTWISE_PRECISION: c_int = 1;
    pub const POINTWISE_AXIS: c_int = 9;
    pub const CONVOLUTION_PRECISION: c_int = 100;
    pub const CONVOLUTION_MODE: c_int = 101;
    pub const CONVOLUTION_DILATIONS: c_int = 102;
    pub const CONVOLUTION_STRIDES: c_int = 103;
    pub const CONVOLUTION_POST_PADDINGS: c_int = 104;
    pub const CONVOLUTION_PRE_PADDINGS: c_int = 105;
    pub const CONVOLUTION_RANK: c_int = 106;
    pub const HEURISTICS_MODE: c_int = 200;
    pub const HEURISTICS_GRAPH: c_int = 201;
    pub const HEURISTICS_RESULTS: c_int = 202;
    pub const ENGINE_CONFIG_ENGINE: c_int = 300;
    pub const PLAN_HANDLE: c_int = 400;
    pub const PLAN_ENGINE_CONFIG: c_int = 401;
    pub const PLAN_WORKSPACE: c_int = 402;
    pub const CONVOLVE_ALPHA: c_int = 700;
    pub const CONVOLVE_BETA: c_int = 701;
    pub const CONVOLVE_CONVOLUTION: c_int = 702;
    pub const CONVOLVE_W: c_int = 703;
    pub const CONVOLVE_X: c_int = 704;
    pub const CONVOLVE_Y: c_int = 705;
    pub const CONVOLVE_INPUT_ALPHA: c_int = 706;
    pub const CONVOLVE_INPUT_BETA: c_int = 707;
    pub const CONVOLVE_INPUT_CONVOLUTION: c_int = 708;
    pub const CONVOLVE_INPUT_W: c_int = 709;
    pub const CONVOLVE_INPUT_DX: c_int = 710;
    pub const CONVOLVE_INPUT_DY: c_int = 711;
    pub const CONVOLVE_WEIGHT_ALPHA: c_int = 712;
    pub const CONVOLVE_WEIGHT_BETA: c_int = 713;
    pub const CONVOLVE_WEIGHT_CONVOLUTION: c_int = 714;
    pub const CONVOLVE_WEIGHT_DW: c_int = 715;
    pub const CONVOLVE_WEIGHT_X: c_int = 716;
    pub const CONVOLVE_WEIGHT_DY: c_int = 717;
    pub const OPERATION_POINTWISE: c_int = 750;
    pub const OPERATION_POINTWISE_X: c_int = 751;
    pub const OPERATION_POINTWISE_B: c_int = 752;
    pub const OPERATION_POINTWISE_Y: c_int = 753;
    pub const OPERATION_POINTWISE_T: c_int = 758;
    pub const GRAPH_HANDLE: c_int = 800;
    pub const GRAPH_OPERATIONS: c_int = 801;
    pub const TENSOR_ALIGNMENT: c_int = 900;
    pub const TENSOR_DATA_TYPE: c_int = 901;
    pub const TENSOR_SIZES: c_int = 902;
    pub const TENSOR_STRIDES: c_int = 903;
    pub const TENSOR_ID: c_int = 906;
    pub const TENSOR_IS_VIRTUAL: c_int = 907;
    pub const TENSOR_IS_BY_VALUE: c_int = 908;
    pub const PACK_IDS: c_int = 1000;
    pub const PACK_POINTERS: c_int = 1001;
    pub const PACK_WORKSPACE: c_int = 1003;
    pub const ENGINE_NUMERICAL_NOTES: c_int = 1303;
    pub const MATMUL_PRECISION: c_int = 1500;
    pub const OPERATION_MATMUL_A: c_int = 1520;
    pub const OPERATION_MATMUL_B: c_int = 1521;
    pub const OPERATION_MATMUL_C: c_int = 1522;
    pub const OPERATION_MATMUL: c_int = 1523;
    pub const REDUCTION_OPERATOR: c_int = 1600;
    pub const REDUCTION_PRECISION: c_int = 1601;
    pub const OPERATION_REDUCTION_X: c_int = 1610;
    pub const OPERATION_REDUCTION_Y: c_int = 1611;
    pub const OPERATION_REDUCTION: c_int = 1612;
    pub const RESHAPE_X: c_int = 2200;
    pub const RESHAPE_Y: c_int = 2201;
}

/// `cudnnPointwiseMode_t` values.
#[allow(missing_docs)]
pub mod pointwise {
    use core::ffi::c_int;
    pub const ADD: c_int = 0;
    pub const MULTIPLY: c_int = 1;
    pub const DIVIDE: c_int = 6;
    pub const SUBTRACT: c_int = 9;
    pub const EXP: c_int = 13;
    pub const LOG: c_int = 15;
    pub const IDENTITY: c_int = 21;
    pub const GREATER_EQUAL: c_int = 303;
    pub const INDEX: c_int = 501;
    pub const SELECT: c_int = 601;
}

/// `cudnnReduceTensorOp_t` values.
#[allow(missing_docs)]
pub mod reduction {
    use core::ffi::c_int;
    pub const SUM: c_int = 0;
    pub const MAXIMUM: c_int = 3;
}

/// `cudnnBackendNumericalNote_t` values.
#[allow(missing_docs)]
pub mod note {
    use core::ffi::c_int;
    pub const REDUCED_PRECISION_REDUCTION: c_int = 2;
    pub const FFT: c_int = 3;
    pub const NONDETERMINISTIC: c_int = 4;
    pub const WINOGRAD: c_int = 5;
    pub const WINOGRAD_13: c_int = 8;
}

/// `CUDNN_CROSS_CORRELATION`.
pub const CROSS_CORRELATION: c_int = 1;
/// `CUDNN_HEUR_MODE_A`: a table and a model; no engine is timed.
pub const HEURISTICS_A: c_int = 3;

functions! {
    /// Functions of cuDNN. They are callable from any thread, but a handle by only one thread at a time.
    Cudnn {
        version = "cudnnGetVersion" fn() -> usize;
        create = "cudnnCreate" fn(*mut Handle) -> Code;
        destroy = "cudnnDestroy" fn(Handle) -> Code;
        set_stream = "cudnnSetStream" fn(Handle, *mut c_void) -> Code;
        last_error = "cudnnGetLastErrorString" fn(*mut c_char, usize);
        descriptor_create = "cudnnBackendCreateDescriptor" fn(c_int, *mut Handle) -> Code;
        descriptor_destroy = "cudnnBackendDestroyDescriptor" fn(Handle) -> Code;
        finalize = "cudnnBackendFinalize" fn(Handle) -> Code;
        set = "cudnnBackendSetAttribute" fn(Handle, c_int, c_int, i64, *const c_void) -> Code;
        get = "cudnnBackendGetAttribute" fn(Handle, c_int, c_int, i64, *mut i64, *mut c_void) -> Code;
        execute = "cudnnBackendExecute" fn(Handle, Handle, Handle) -> Code;
    }
}

/// cuDNN, opened once, at the first operation that needs it.
pub fn cudnn() -> Result<&'static Cudnn, &'static str> {
    static CUDNN: OnceLock<Result<Cudnn, String>> = OnceLock::new();
    let open = || {
        let library = find::open(find::Kind::Cudnn)?;
        let table = Cudnn::of(library).map_err(|why| format!("cuDNN cannot be used: {why}"))?;
        // SAFETY: the function has no preconditions.
        let version = unsafe { (table.version)() };
        match version >= OLDEST {
            true => Ok(table),
            false => Err(format!(
                "cuDNN cannot be used: its version is {}, and {} is the oldest that is",
                text_of(version),
                text_of(OLDEST)
            )),
        }
    };
    CUDNN.get_or_init(open).as_ref().map_err(String::as_str)
}

/// A version as text: 91900 is 9.19.0.
pub fn text_of(version: usize) -> String {
    format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
}

#[cfg(test)]
mod tests {
    use super::text_of;

    #[test]
    fn versions_have_three_parts() {
        assert_eq!([text_of(91_900), text_of(92_801)], ["9.19.0", "9.28.1"]);
    }
}
