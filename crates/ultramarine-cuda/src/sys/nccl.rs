//! NCCL: collectives among GPUs of one host or several.

use super::{find, functions};
use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

/// `ncclResult_t`; 0 is success.
pub type Code = c_int;
/// `ncclComm_t`, a communicator.
pub type Handle = *mut c_void;

/// `ncclResult_t` values that are handled specifically.
#[allow(missing_docs)]
pub mod code {
    use super::Code;
    pub const SUCCESS: Code = 0;
    pub const IN_PROGRESS: Code = 7;
}

/// `ncclDataType_t` values.
#[allow(missing_docs)]
pub mod data {
    use core::ffi::c_int;
    pub const I8: c_int = 0;
    pub const U8: c_int = 1;
    pub const I32: c_int = 2;
    pub const U32: c_int = 3;
    pub const I64: c_int = 4;
    pub const U64: c_int = 5;
    pub const F16: c_int = 6;
    pub const F32: c_int = 7;
    pub const F64: c_int = 8;
    pub const BF16: c_int = 9;
}

/// `ncclRedOp_t` values.
#[allow(missing_docs)]
pub mod reduction {
    use core::ffi::c_int;
    pub const SUM: c_int = 0;
    pub const MAX: c_int = 2;
    pub const MIN: c_int = 3;
}

/// `ncclUniqueId`, which is passed by value.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct UniqueId(pub [u8; 128]);

/// `ncclConfig_t` as in version 2.18, and the field that was later added in its padding. A later library uses its defaults
/// for fields that are missing here.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Config {
    pub size: usize,
    pub magic: c_uint,
    pub version: c_uint,
    pub blocking: c_int,
    pub cga_cluster_size: c_int,
    pub min_blocks: c_int,
    pub max_blocks: c_int,
    pub net_name: *const c_char,
    pub split_share: c_int,
    pub traffic_class: c_int,
}

const _: () = assert!(size_of::<Config>() == 48);

impl Config {
    /// `NCCL_CONFIG_UNDEF_INT`.
    const UNDEFINED: c_int = c_int::MIN;

    /// The defaults of NCCL and its environment, except for blocking. If `blocking`, a call returns
    /// when its work is done or enqueued. Otherwise it may return while it is still in progress.
    pub fn new(blocking: bool) -> Self {
        Self {
            size: size_of::<Self>(),
            magic: 0xcafe_beef,
            version: 21_800,
            blocking: c_int::from(blocking),
            cga_cluster_size: Self::UNDEFINED,
            min_blocks: Self::UNDEFINED,
            max_blocks: Self::UNDEFINED,
            net_name: std::ptr::null(),
            split_share: Self::UNDEFINED,
            traffic_class: Self::UNDEFINED,
        }
    }
}

type P = *mut c_void;

functions! {
    /// Functions of NCCL. Only one call at a time may use a communicator.
    Nccl {
        version = "ncclGetVersion" fn(*mut c_int) -> Code;
        error_text = "ncclGetErrorString" fn(Code) -> *const c_char;
        unique_id = "ncclGetUniqueId" fn(*mut UniqueId) -> Code;
        open = "ncclCommInitRankConfig" fn(*mut Handle, c_int, UniqueId, c_int, *mut Config) -> Code;
        split = "ncclCommSplit" fn(Handle, c_int, c_int, *mut Handle, *mut Config) -> Code;
        finalize = "ncclCommFinalize" fn(Handle) -> Code;
        destroy = "ncclCommDestroy" fn(Handle) -> Code;
        abort = "ncclCommAbort" fn(Handle) -> Code;
        state = "ncclCommGetAsyncError" fn(Handle, *mut Code) -> Code;
        size = "ncclCommCount" fn(Handle, *mut c_int) -> Code;
        rank = "ncclCommUserRank" fn(Handle, *mut c_int) -> Code;
        begin = "ncclGroupStart" fn() -> Code;
        end = "ncclGroupEnd" fn() -> Code;
        all_reduce = "ncclAllReduce" fn(P, P, usize, c_int, c_int, Handle, P) -> Code;
        all_gather = "ncclAllGather" fn(P, P, usize, c_int, Handle, P) -> Code;
        reduce_scatter = "ncclReduceScatter" fn(P, P, usize, c_int, c_int, Handle, P) -> Code;
        send = "ncclSend" fn(P, usize, c_int, c_int, Handle, P) -> Code;
        receive = "ncclRecv" fn(P, usize, c_int, c_int, Handle, P) -> Code;
        ? last_error = "ncclGetLastError" fn(Handle) -> *const c_char;
    }
}

impl Nccl {
    /// NCCL's text for a code, and the text of its last failure.
    pub fn describe(&self, code: Code) -> String {
        let text = |text: *const c_char| match text.is_null() {
            true => String::new(),
            // SAFETY: NCCL's texts are NUL-terminated, and live as long as the thread.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned(),
        };
        // SAFETY: any code is valid.
        let words = text(unsafe { (self.error_text)(code) });
        // SAFETY: the communicator is not used.
        let last =
            self.last_error.map_or(String::new(), |f| text(unsafe { f(std::ptr::null_mut()) }));
        match last.is_empty() {
            true => format!("NCCL error {code}: {words}"),
            false => format!("NCCL error {code}: {words} ({last})"),
        }
    }
}

/// "2.28.9" of 22809.
pub fn text_of(version: c_int) -> String {
    format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100)
}

/// NCCL, opened once, at the first group.
pub fn nccl() -> Result<&'static Nccl, &'static str> {
    static NCCL: OnceLock<Result<Nccl, String>> = OnceLock::new();
    let open = || {
        let library = find::open(find::Kind::Nccl)?;
        Nccl::of(library).map_err(|why| {
            format!("NCCL cannot be used: {why}. Install NCCL 2.18 or later: `pip install -U nvidia-nccl-cu13`")
        })
    };
    NCCL.get_or_init(open).as_ref().map_err(String::as_str)
}
