//! The driver, `libcuda.so.1` or `nvcuda.dll`.

use super::{find, functions};
use core::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// `CUresult`.
pub type Code = c_int;
/// `CUdevice`.
pub type Ordinal = c_int;
/// `CUcontext`.
pub type ContextHandle = *mut c_void;
/// `CUstream`.
pub type StreamHandle = *mut c_void;
/// `CUevent`.
pub type EventHandle = *mut c_void;
/// `CUmodule`.
pub type ModuleHandle = *mut c_void;
/// `CUfunction`.
pub type FunctionHandle = *mut c_void;
/// `CUgraph`.
pub type GraphHandle = *mut c_void;
/// `CUgraphNode`.
pub type NodeHandle = *mut c_void;
/// `CUgraphExec`.
pub type ExecHandle = *mut c_void;
/// `CUdeviceptr`.
pub type Address = u64;

/// `CUresult` values that are handled specifically.
#[allow(missing_docs)]
pub mod code {
    use super::Code;
    pub const SUCCESS: Code = 0;
    pub const INVALID_VALUE: Code = 1;
    pub const OUT_OF_MEMORY: Code = 2;
    pub const DEINITIALIZED: Code = 4;
    pub const NO_DEVICE: Code = 100;
    pub const PEER_ACCESS_ALREADY_ENABLED: Code = 704;
    pub const NO_BINARY: Code = 209;
    pub const INVALID_PTX: Code = 218;
    pub const UNSUPPORTED_PTX: Code = 222;
    pub const NOT_READY: Code = 600;
    pub const LAUNCH_OUT_OF_RESOURCES: Code = 701;
    pub const NOT_SUPPORTED: Code = 801;
    /// After these codes, the context is unusable: uncorrectable memory errors, a failed link or
    /// engine, and faults of kernels.
    pub const STICKY: &[Code] =
        &[214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 720, 721];
}

/// `CUdevice_attribute` values.
#[allow(missing_docs)]
pub mod attribute {
    use core::ffi::c_int;
    pub const MAX_THREADS_PER_BLOCK: c_int = 1;
    pub const MAX_SHARED_PER_BLOCK: c_int = 8;
    pub const WARP_SIZE: c_int = 10;
    pub const MULTIPROCESSORS: c_int = 16;
    pub const INTEGRATED: c_int = 18;
    pub const PCI_BUS: c_int = 33;
    pub const PCI_DEVICE: c_int = 34;
    pub const L2_BYTES: c_int = 38;
    pub const MAX_THREADS_PER_MULTIPROCESSOR: c_int = 39;
    pub const PCI_DOMAIN: c_int = 50;
    pub const CAPABILITY_MAJOR: c_int = 75;
    pub const CAPABILITY_MINOR: c_int = 76;
    pub const MANAGED_MEMORY: c_int = 83;
    pub const PAGEABLE_MEMORY_ACCESS: c_int = 88;
    pub const MAX_SHARED_OPTIN: c_int = 97;
}

/// `CUDA_KERNEL_NODE_PARAMS_v2`.
#[repr(C)]
pub struct KernelNode {
    /// The kernel.
    pub function: FunctionHandle,
    /// Blocks in x, y, z.
    pub blocks: [c_uint; 3],
    /// Threads of a block in x, y, z.
    pub threads: [c_uint; 3],
    /// Bytes of dynamic shared memory.
    pub shared: c_uint,
    /// Addresses of the parameters' values, which are copied.
    pub parameters: *mut *mut c_void,
    /// NULL.
    pub extra: *mut *mut c_void,
    /// NULL, because `function` is used.
    pub kernel: *mut c_void,
    /// NULL, because `function` is used.
    pub context: ContextHandle,
}

/// `CUlaunchAttribute`.
#[repr(C)]
pub struct LaunchAttribute {
    /// `CUlaunchAttributeID`.
    id: c_uint,
    gap: c_uint,
    /// The value: a C int, in a union of 64 bytes.
    value: [c_int; 16],
}

impl LaunchAttribute {
    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`: the kernel may start before the previous kernel in the stream
    /// has ended.
    pub const EARLY: Self =
        Self { id: 6, gap: 0, value: [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] };
}

/// `CUlaunchConfig`.
#[repr(C)]
pub struct LaunchConfig {
    /// Blocks in x, y, z.
    pub blocks: [c_uint; 3],
    /// Threads of a block in x, y, z.
    pub threads: [c_uint; 3],
    /// Bytes of dynamic shared memory.
    pub shared: c_uint,
    /// The stream.
    pub stream: StreamHandle,
    /// Attributes.
    pub attributes: *const LaunchAttribute,
    /// Number of attributes.
    pub n_attributes: c_uint,
}

/// `CUDA_MEMSET_NODE_PARAMS`.
#[repr(C)]
pub struct FillNode {
    /// Start address.
    pub to: Address,
    /// Unused, because there is one row.
    pub pitch: usize,
    /// The element's value.
    pub value: c_uint,
    /// Bytes of an element: 1, 2 or 4.
    pub element: c_uint,
    /// Number of elements.
    pub width: usize,
    /// Number of rows: 1.
    pub height: usize,
}

/// One side of a [`CopyNode`].
#[repr(C)]
pub struct CopySide {
    /// Zeros: x in bytes, y, z, level.
    pub place: [usize; 4],
    /// `CUmemorytype` of device memory.
    pub kind: c_uint,
    /// NULL.
    pub host: *mut c_void,
    /// Address on the device.
    pub device: Address,
    /// NULL: an array, and reserved fields.
    pub others: [*mut c_void; 2],
    /// 0: pitch and height.
    pub rows: [usize; 2],
}

impl CopySide {
    /// `CU_MEMORYTYPE_DEVICE`.
    const DEVICE: c_uint = 2;

    fn of(device: Address) -> Self {
        let (host, others) = (std::ptr::null_mut(), [std::ptr::null_mut(); 2]);
        Self { place: [0; 4], kind: Self::DEVICE, host, device, others, rows: [0; 2] }
    }
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
pub struct CopyNode {
    /// The source.
    pub from: CopySide,
    /// The target.
    pub to: CopySide,
    /// Bytes, rows, slices.
    pub extent: [usize; 3],
}

impl CopyNode {
    /// A copy of bytes on the device.
    pub fn of(to: Address, from: Address, bytes: usize) -> Self {
        Self { from: CopySide::of(from), to: CopySide::of(to), extent: [bytes, 1, 1] }
    }
}

/// `CUgraphEdgeData`: when the node at the end of an edge may start.
#[repr(C)]
pub struct Edge {
    /// The event of the source node that is waited for: 0 for its end, 1 for the permission of its
    /// blocks.
    from: u8,
    /// 0: the whole target node waits.
    to: u8,
    kind: u8,
    reserved: [u8; 5],
}

impl Edge {
    /// The source node has ended.
    pub const FULL: Self = Self { from: 0, to: 0, kind: 0, reserved: [0; 5] };
    /// All blocks of the source kernel allow it, or have ended. The target kernel itself waits for the source's end
    /// (`CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC`, `CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC`).
    pub const PROGRAMMATIC: Self = Self { from: 1, to: 0, kind: 1, reserved: [0; 5] };
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(
    size_of::<KernelNode>() == 72 && size_of::<FillNode>() == 40 && size_of::<CopyNode>() == 200
);

functions! {
    /// Functions of the driver. They are callable from any thread.
    Driver {
        init = "cuInit" fn(c_uint) -> Code;
        driver_version = "cuDriverGetVersion" fn(*mut c_int) -> Code;
        device_count = "cuDeviceGetCount" fn(*mut c_int) -> Code;
        device_get = "cuDeviceGet" fn(*mut Ordinal, c_int) -> Code;
        device_name = "cuDeviceGetName" fn(*mut c_char, c_int, Ordinal) -> Code;
        device_uuid = "cuDeviceGetUuid" fn(*mut [u8; 16], Ordinal) -> Code;
        device_memory = "cuDeviceTotalMem_v2" fn(*mut usize, Ordinal) -> Code;
        device_attribute = "cuDeviceGetAttribute" fn(*mut c_int, c_int, Ordinal) -> Code;
        context_retain = "cuDevicePrimaryCtxRetain" fn(*mut ContextHandle, Ordinal) -> Code;
        context_release = "cuDevicePrimaryCtxRelease_v2" fn(Ordinal) -> Code;
        context_current = "cuCtxGetCurrent" fn(*mut ContextHandle) -> Code;
        context_push = "cuCtxPushCurrent_v2" fn(ContextHandle) -> Code;
        context_pop = "cuCtxPopCurrent_v2" fn(*mut ContextHandle) -> Code;
        context_synchronize = "cuCtxSynchronize" fn() -> Code;
        memory_alloc = "cuMemAlloc_v2" fn(*mut Address, usize) -> Code;
        memory_free = "cuMemFree_v2" fn(Address) -> Code;
        memory_info = "cuMemGetInfo_v2" fn(*mut usize, *mut usize) -> Code;
        host_alloc = "cuMemHostAlloc" fn(*mut *mut c_void, usize, c_uint) -> Code;
        host_free = "cuMemFreeHost" fn(*mut c_void) -> Code;
        host_register = "cuMemHostRegister_v2" fn(*mut c_void, usize, c_uint) -> Code;
        host_unregister = "cuMemHostUnregister" fn(*mut c_void) -> Code;
        host_address = "cuMemHostGetDevicePointer_v2" fn(*mut Address, *mut c_void, c_uint) -> Code;
        copy_to_device = "cuMemcpyHtoDAsync_v2" fn(Address, *const c_void, usize, StreamHandle) -> Code;
        copy_to_host = "cuMemcpyDtoHAsync_v2" fn(*mut c_void, Address, usize, StreamHandle) -> Code;
        copy_within = "cuMemcpyDtoDAsync_v2" fn(Address, Address, usize, StreamHandle) -> Code;
        copy_peer = "cuMemcpyPeerAsync" fn(Address, ContextHandle, Address, ContextHandle, usize, StreamHandle) -> Code;
        set_8 = "cuMemsetD8Async" fn(Address, u8, usize, StreamHandle) -> Code;
        set_16 = "cuMemsetD16Async" fn(Address, u16, usize, StreamHandle) -> Code;
        set_32 = "cuMemsetD32Async" fn(Address, c_uint, usize, StreamHandle) -> Code;
        stream_create = "cuStreamCreate" fn(*mut StreamHandle, c_uint) -> Code;
        stream_destroy = "cuStreamDestroy_v2" fn(StreamHandle) -> Code;
        stream_synchronize = "cuStreamSynchronize" fn(StreamHandle) -> Code;
        stream_query = "cuStreamQuery" fn(StreamHandle) -> Code;
        stream_wait_event = "cuStreamWaitEvent" fn(StreamHandle, EventHandle, c_uint) -> Code;
        stream_wait_value = "cuStreamWaitValue32_v2" fn(StreamHandle, Address, u32, c_uint) -> Code;
        stream_write_value = "cuStreamWriteValue32_v2" fn(StreamHandle, Address, u32, c_uint) -> Code;
        stream_context = "cuStreamGetCtx" fn(StreamHandle, *mut ContextHandle) -> Code;
        stream_capturing = "cuStreamIsCapturing" fn(StreamHandle, *mut c_int) -> Code;
        capture_mode = "cuThreadExchangeStreamCaptureMode" fn(*mut c_int) -> Code;
        capture_begin = "cuStreamBeginCapture_v2" fn(StreamHandle, c_int) -> Code;
        capture_end = "cuStreamEndCapture" fn(StreamHandle, *mut GraphHandle) -> Code;
        graph_create = "cuGraphCreate" fn(*mut GraphHandle, c_uint) -> Code;
        graph_destroy = "cuGraphDestroy" fn(GraphHandle) -> Code;
        graph_add_kernel = "cuGraphAddKernelNode_v2" fn(*mut NodeHandle, GraphHandle, *const NodeHandle, usize, *const KernelNode) -> Code;
        graph_add_fill = "cuGraphAddMemsetNode" fn(*mut NodeHandle, GraphHandle, *const NodeHandle, usize, *const FillNode, ContextHandle) -> Code;
        graph_add_copy = "cuGraphAddMemcpyNode" fn(*mut NodeHandle, GraphHandle, *const NodeHandle, usize, *const CopyNode, ContextHandle) -> Code;
        graph_add_child = "cuGraphAddChildGraphNode" fn(*mut NodeHandle, GraphHandle, *const NodeHandle, usize, GraphHandle) -> Code;
        graph_instantiate = "cuGraphInstantiateWithFlags" fn(*mut ExecHandle, GraphHandle, u64) -> Code;
        graph_launch = "cuGraphLaunch" fn(ExecHandle, StreamHandle) -> Code;
        exec_set_kernel = "cuGraphExecKernelNodeSetParams_v2" fn(ExecHandle, NodeHandle, *const KernelNode) -> Code;
        exec_set_fill = "cuGraphExecMemsetNodeSetParams" fn(ExecHandle, NodeHandle, *const FillNode, ContextHandle) -> Code;
        exec_set_copy = "cuGraphExecMemcpyNodeSetParams" fn(ExecHandle, NodeHandle, *const CopyNode, ContextHandle) -> Code;
        exec_set_child = "cuGraphExecChildGraphNodeSetParams" fn(ExecHandle, NodeHandle, GraphHandle) -> Code;
        exec_destroy = "cuGraphExecDestroy" fn(ExecHandle) -> Code;
        event_create = "cuEventCreate" fn(*mut EventHandle, c_uint) -> Code;
        event_record = "cuEventRecord" fn(EventHandle, StreamHandle) -> Code;
        event_query = "cuEventQuery" fn(EventHandle) -> Code;
        event_synchronize = "cuEventSynchronize" fn(EventHandle) -> Code;
        event_destroy = "cuEventDestroy_v2" fn(EventHandle) -> Code;
        event_elapsed = "cuEventElapsedTime" fn(*mut f32, EventHandle, EventHandle) -> Code;
        module_load = "cuModuleLoadData" fn(*mut ModuleHandle, *const c_void) -> Code;
        module_load_with = "cuModuleLoadDataEx" fn(*mut ModuleHandle, *const c_void, c_uint, *mut c_int, *mut *mut c_void) -> Code;
        module_unload = "cuModuleUnload" fn(ModuleHandle) -> Code;
        module_function = "cuModuleGetFunction" fn(*mut FunctionHandle, ModuleHandle, *const c_char) -> Code;
        function_attribute = "cuFuncGetAttribute" fn(*mut c_int, c_int, FunctionHandle) -> Code;
        function_set_attribute = "cuFuncSetAttribute" fn(FunctionHandle, c_int, c_int) -> Code;
        launch_kernel = "cuLaunchKernel" fn(
            FunctionHandle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, StreamHandle,
            *mut *mut c_void, *mut *mut c_void,
        ) -> Code;
        pointer_attribute = "cuPointerGetAttribute" fn(*mut c_void, c_int, Address) -> Code;
        error_name = "cuGetErrorName" fn(Code, *mut *const c_char) -> Code;
        error_string = "cuGetErrorString" fn(Code, *mut *const c_char) -> Code;
        can_access_peer = "cuDeviceCanAccessPeer" fn(*mut c_int, Ordinal, Ordinal) -> Code;
        enable_peer = "cuCtxEnablePeerAccess" fn(ContextHandle, c_uint) -> Code;
        ? launch_kernel_by = "cuLaunchKernelEx" fn(*const LaunchConfig, FunctionHandle, *mut *mut c_void, *mut *mut c_void) -> Code;
        ? graph_add_edges = "cuGraphAddDependencies_v2" fn(GraphHandle, *const NodeHandle, *const NodeHandle, *const Edge, usize) -> Code;
        ? parameter_info = "cuFuncGetParamInfo" fn(FunctionHandle, usize, *mut usize, *mut usize) -> Code;
    }
}

/// The oldest driver that this backend supports: its functions are used, and it loads the NVRTC
/// output. Encoded as by `cuDriverGetVersion`: 1000 times the CUDA version's major, plus 10 times
/// its minor.
pub const OLDEST: c_int = 12000;

/// Text of a version number of the driver.
pub fn version_text(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// The driver, opened once. It is not initialised, because that takes a tenth of a second.
pub fn driver() -> Result<&'static Driver, &'static str> {
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    let found = DRIVER.get_or_init(|| {
        let library = find::open(find::Kind::Driver)?;
        Driver::of(library).map_err(|why| {
            format!("NVIDIA's driver cannot be used: {why}. Install driver 525 or later")
        })
    });
    found.as_ref().map_err(String::as_str)
}
