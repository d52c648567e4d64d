//! cuSOLVER: decompositions of dense matrices.

use super::{find, functions, routines};
use core::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// `cusolverStatus_t`; 0 is success.
pub type Code = c_int;
/// `cusolverDnHandle_t`, and the parameters of the Jacobi methods.
pub type Handle = *mut c_void;

functions! {
    /// Functions for every dtype.
    Common {
        create = "cusolverDnCreate" fn(*mut Handle) -> Code;
        destroy = "cusolverDnDestroy" fn(Handle) -> Code;
        set_stream = "cusolverDnSetStream" fn(Handle, *mut c_void) -> Code;
        svd_create = "cusolverDnCreateGesvdjInfo" fn(*mut Handle) -> Code;
        svd_destroy = "cusolverDnDestroyGesvdjInfo" fn(Handle) -> Code;
        eigh_create = "cusolverDnCreateSyevjInfo" fn(*mut Handle) -> Code;
        eigh_destroy = "cusolverDnDestroySyevjInfo" fn(Handle) -> Code;
    }
}

functions! {
    /// Eigenvalues of general matrices, which cuSOLVER supports since CUDA 12.6.
    Geev {
        create = "cusolverDnCreateParams" fn(*mut Handle) -> Code;
        destroy = "cusolverDnDestroyParams" fn(Handle) -> Code;
        sizes = "cusolverDnXgeev_bufferSize"
            fn(Handle, Handle, I, I, i64, I, P, i64, I, P, I, P, i64, I, P, i64, I, *mut usize, *mut usize) -> Code;
        run = "cusolverDnXgeev"
            fn(Handle, Handle, I, I, i64, I, P, i64, I, P, I, P, i64, I, P, i64, I, P, usize, P, usize, *mut c_int) -> Code;
    }
}

type P = *mut c_void;
type I = c_int;
type Size = *mut c_int;

routines! {
    /// Routines for one dtype. Sizes of workspaces are in elements.
    Routines {
        potrf_size = "cusolverDn#potrf_bufferSize" fn(Handle, I, I, P, I, Size);
        potrf = "cusolverDn#potrf" fn(Handle, I, I, P, I, P, I, P);
        potrf_batched = "cusolverDn#potrfBatched" fn(Handle, I, I, P, I, P, I);
        getrf_size = "cusolverDn#getrf_bufferSize" fn(Handle, I, I, P, I, Size);
        getrf = "cusolverDn#getrf" fn(Handle, I, I, P, I, P, P, P);
        geqrf_size = "cusolverDn#geqrf_bufferSize" fn(Handle, I, I, P, I, Size);
        geqrf = "cusolverDn#geqrf" fn(Handle, I, I, P, I, P, P, I, P);
        orgqr_size = "cusolverDn#orgqr_bufferSize" or "cusolverDn#ungqr_bufferSize"
            fn(Handle, I, I, I, P, I, P, Size);
        orgqr = "cusolverDn#orgqr" or "cusolverDn#ungqr" fn(Handle, I, I, I, P, I, P, P, I, P);
        syevd_size = "cusolverDn#syevd_bufferSize" or "cusolverDn#heevd_bufferSize"
            fn(Handle, I, I, I, P, I, P, Size);
        syevd = "cusolverDn#syevd" or "cusolverDn#heevd" fn(Handle, I, I, I, P, I, P, P, I, P);
        syevj_batched_size = "cusolverDn#syevjBatched_bufferSize" or "cusolverDn#heevjBatched_bufferSize"
            fn(Handle, I, I, I, P, I, P, Size, Handle, I);
        syevj_batched = "cusolverDn#syevjBatched" or "cusolverDn#heevjBatched"
            fn(Handle, I, I, I, P, I, P, P, I, P, Handle, I);
        gesvdj_size = "cusolverDn#gesvdj_bufferSize" fn(Handle, I, I, I, I, P, I, P, P, I, P, I, Size, Handle);
        gesvdj = "cusolverDn#gesvdj" fn(Handle, I, I, I, I, P, I, P, P, I, P, I, P, I, P, Handle);
        gesvdj_batched_size = "cusolverDn#gesvdjBatched_bufferSize"
            fn(Handle, I, I, I, P, I, P, P, I, P, I, Size, Handle, I);
        gesvdj_batched = "cusolverDn#gesvdjBatched" fn(Handle, I, I, I, P, I, P, P, I, P, I, P, I, P, Handle, I);
    }
}

/// cuSOLVER. A handle is used by one thread at a time.
pub struct Cusolver {
    /// Functions for every dtype.
    pub common: Common,
    /// Routines for float32, float64 and complex64.
    pub routines: [Routines; 3],
    /// Eigenvalues of general matrices, if the library supports them.
    pub geev: Option<Geev>,
}

/// cuSOLVER, opened once, at first use.
pub fn cusolver() -> Result<&'static Cusolver, &'static str> {
    static CUSOLVER: OnceLock<Result<Cusolver, String>> = OnceLock::new();
    let open = || {
        let library = find::open(find::Kind::Cusolver)?;
        let of = |letter| Routines::of(&library, letter);
        let routines = [of("S"), of("D"), of("C")];
        let make = || -> Result<Cusolver, String> {
            let [single, double, complex] = routines;
            let routines = [single?, double?, complex?];
            // The library is open already, so this only adds a reference.
            let geev = find::open(find::Kind::Cusolver).and_then(Geev::of).ok();
            Ok(Cusolver { routines, common: Common::of(library)?, geev })
        };
        make().map_err(|why| format!("cuSOLVER cannot be used: {why}"))
    };
    CUSOLVER.get_or_init(open).as_ref().map_err(String::as_str)
}
