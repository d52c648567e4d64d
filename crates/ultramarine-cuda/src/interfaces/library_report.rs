//! `ultramarine.about/1`: a readable list of the libraries that were found on this machine.

use crate::sys::find::{self, Kind};
use crate::sys::{cudnn, driver, nccl};
use core::ffi::{c_char, c_int, c_void};
use libloading::Library;
use ultramarine_abi::helper::guard_value;
use ultramarine_abi::interface::about::AboutInterface;

/// The interface.
pub static TABLE: AboutInterface =
    AboutInterface { size: size_of::<AboutInterface>() as u32, flags: 0, describe: Some(describe) };

unsafe extern "C" fn describe(_backend: *mut c_void, text: *mut c_char, room: u64) -> u64 {
    guard_value(None, 0, || {
        let report = lines().join("\n");
        let bytes = report.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        if !text.is_null() {
            // SAFETY: the caller provides room for `bytes` bytes.
            unsafe { text.cast::<u8>().copy_from_nonoverlapping(report.as_ptr(), bytes) };
        }
        report.len() as u64
    })
}

/// A function that reads the version of a library.
type Version = fn(&Library) -> Option<String>;

/// The libraries: the name for display, a function that the library exports, and its version.
const LIBRARIES: [(Kind, &str, &str, Version); 9] = [
    (Kind::Driver, "driver", "cuInit", driver_version),
    (Kind::Nvrtc, "NVRTC", "nvrtcVersion", nvrtc_version),
    (Kind::CublasLt, "cuBLASLt", "cublasLtGetVersion", cublas_version),
    (Kind::Cufft, "cuFFT", "cufftGetVersion", cufft_version),
    (Kind::Cusolver, "cuSOLVER", "cusolverDnCreate", |_| None),
    (Kind::Cublas, "cuBLAS", "cublasCreate_v2", |_| None),
    (Kind::Cudnn, "cuDNN", "cudnnGetVersion", cudnn_version),
    (Kind::Nccl, "NCCL", "ncclGetVersion", nccl_version),
    (Kind::Nvtx, "NVTX", "nvtxRangePushA", |_| None),
];

fn driver_version(_: &Library) -> Option<String> {
    let (driver, mut version) = (driver::driver().ok()?, 0);
    // SAFETY: the output pointer is valid; this function needs no cuInit.
    let code = unsafe { (driver.driver_version)(&mut version) };
    (code == 0).then(|| format!("for CUDA {}", driver::version_text(version)))
}

fn nvrtc_version(library: &Library) -> Option<String> {
    type Function = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
    let (mut major, mut minor) = (0, 0);
    // SAFETY: NVRTC's function of that name has this type; the output pointers are valid.
    let code = unsafe { library.get::<Function>("nvrtcVersion").ok()?(&mut major, &mut minor) };
    (code == 0).then(|| format!("{major}.{minor}"))
}

fn cublas_version(library: &Library) -> Option<String> {
    type Function = unsafe extern "C" fn() -> usize;
    // SAFETY: cuBLASLt's function of that name has this type and no preconditions.
    let version = unsafe { library.get::<Function>("cublasLtGetVersion").ok()?() };
    // 120304 is 12.3.4. CUDA 11 and older had another encoding, and are not supported.
    Some(format!("{}.{}", version / 10_000, version / 100 % 100))
}

fn cufft_version(library: &Library) -> Option<String> {
    type Function = unsafe extern "C" fn(*mut c_int) -> c_int;
    let mut version = 0;
    // SAFETY: cuFFT's function of that name has this type; the output pointer is valid.
    let code = unsafe { library.get::<Function>("cufftGetVersion").ok()?(&mut version) };
    // 11304 means 11.3.4.
    (code == 0).then(|| format!("{}.{}", version / 1000, version / 100 % 10))
}

fn cudnn_version(library: &Library) -> Option<String> {
    type Function = unsafe extern "C" fn() -> usize;
    // SAFETY: cuDNN's function of that name has this type and no preconditions.
    Some(cudnn::text_of(unsafe { library.get::<Function>("cudnnGetVersion").ok()?() }))
}

fn nccl_version(library: &Library) -> Option<String> {
    type Function = unsafe extern "C" fn(*mut c_int) -> c_int;
    let mut version = 0;
    // SAFETY: NCCL's function of that name has this type; the output pointer is valid.
    let code = unsafe { library.get::<Function>("ncclGetVersion").ok()?(&mut version) };
    (code == 0).then(|| nccl::text_of(version))
}

/// A line for each library.
fn lines() -> Vec<String> {
    let line =
        |&(kind, what, function, version): &(Kind, &str, &str, Version)| match find::open(kind) {
            Err(why) => format!("{what}: {why}"),
            Ok(library) => {
                let version = version(&library).map(|v| format!(" {v}")).unwrap_or_default();
                let file = find::file_of(&library, function);
                let file = file.map(|f| format!(" ({})", f.display())).unwrap_or_default();
                format!("{what}{version}{file}")
            }
        };
    LIBRARIES.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_line_for_each_library_and_as_much_as_there_is_room_for() {
        // SAFETY: the room is 0 bytes.
        let all = unsafe { describe(std::ptr::null_mut(), std::ptr::null_mut(), 0) } as usize;
        let mut text = vec![0u8; all];
        let place = text.as_mut_ptr().cast();
        // SAFETY: room for `bytes` bytes.
        assert_eq!(unsafe { describe(std::ptr::null_mut(), place, all as u64 - 5) }, all as u64);
        assert_eq!(text[all - 5..], [0; 5]);
        let text = String::from_utf8_lossy(&text[..all - 5]).into_owned();
        let named = |line: &str, name: &str| line.starts_with(name);
        for (line, (_, name, ..)) in text.lines().zip(&LIBRARIES) {
            assert!(named(line, name), "{text}");
        }
        assert_eq!(text.lines().count(), LIBRARIES.len());
    }
}
