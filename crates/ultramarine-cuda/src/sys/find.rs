//! The locations where NVIDIA's libraries are looked for.
//!
//! The locations are tried in this order: the directories of `ULTRAMARINE_CUDA_LIBRARIES`; the
//! system's own search by the bare name, which also finds libraries that the process has already
//! loaded (torch brings its own); the `nvidia` packages beside this plugin in `site-packages`;
//! `CUDA_HOME`, `CUDA_PATH` and `/usr/local/cuda`. For cuDNN and NCCL, these packages come before
//! the system's search: torch refuses versions older than its own, and would get the one that was
//! loaded here.

use libloading::Library;
use std::path::{Path, PathBuf};

/// One of NVIDIA's libraries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The driver.
    Driver,
    /// The compiler.
    Nvrtc,
    /// Matrix products.
    CublasLt,
    /// Fourier transforms.
    Cufft,
    /// Matrix decompositions.
    Cusolver,
    /// Triangular systems, and small decompositions.
    Cublas,
    /// Convolutions and attention.
    Cudnn,
    /// Collectives among GPUs.
    Nccl,
    /// Ranges in a profiler.
    Nvtx,
}

/// A library to find: its file names, the newest first; the directories below `site-packages` that contain it; the
/// package to install if it is missing.
struct Row {
    kind: Kind,
    what: &'static str,
    #[cfg_attr(windows, allow(dead_code))]
    unix: &'static [&'static str],
    #[cfg_attr(not(windows), allow(dead_code))]
    windows: &'static [&'static str],
    packages: &'static [&'static str],
    remedy: &'static str,
}

const ROWS: &[Row] = &[
    Row {
        kind: Kind::Driver,
        what: "NVIDIA's driver",
        unix: &["libcuda.so.1", "libcuda.so"],
        windows: &["nvcuda.dll"],
        packages: &[],
        remedy: "Install NVIDIA's driver, 525 or later; in a container, start it with access to the GPU",
    },
    Row {
        kind: Kind::Nvrtc,
        what: "NVRTC, CUDA's run-time compiler,",
        unix: &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"],
        windows: &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll"],
        packages: &["cu13/lib", "cuda_nvrtc/lib", "cu13/bin/x86_64", "cuda_nvrtc/bin"],
        remedy: "Install it by `pip install nvidia-cuda-nvrtc`, or a CUDA toolkit, and name its directory in ULTRAMARINE_CUDA_LIBRARIES or CUDA_HOME",
    },
    Row {
        kind: Kind::CublasLt,
        what: "cuBLASLt, CUDA's matrix products,",
        unix: &["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"],
        windows: &["cublasLt64_13.dll", "cublasLt64_12.dll"],
        packages: &["cu13/lib", "cublas/lib", "cu13/bin/x86_64", "cublas/bin"],
        remedy: "Install it by `pip install nvidia-cublas`, or a CUDA toolkit, and name its directory in ULTRAMARINE_CUDA_LIBRARIES or CUDA_HOME",
    },
    Row {
        kind: Kind::Cufft,
        what: "cuFFT, CUDA's Fourier transforms,",
        // cuFFT's version numbers are one less than CUDA's.
        unix: &["libcufft.so.12", "libcufft.so.11", "libcufft.so"],
        windows: &["cufft64_12.dll", "cufft64_11.dll"],
        packages: &["cu13/lib", "cufft/lib", "cu13/bin/x86_64", "cufft/bin"],
        remedy: "Install it by `pip install nvidia-cufft`, or a CUDA toolkit, and name its directory in ULTRAMARINE_CUDA_LIBRARIES or CUDA_HOME",
    },
    Row {
        kind: Kind::Cusolver,
        what: "cuSOLVER, CUDA's decompositions of matrices,",
        unix: &["libcusolver.so.12", "libcusolver.so.11", "libcusolver.so"],
        windows: &["cusolver64_12.dll", "cusolver64_11.dll"],
        packages: &["cu13/lib", "cusolver/lib", "cu13/bin/x86_64", "cusolver/bin"],
        remedy: "Install it by `pip install nvidia-cusolver`, or a CUDA toolkit, and name its directory in ULTRAMARINE_CUDA_LIBRARIES or CUDA_HOME",
    },
    Row {
        kind: Kind::Cublas,
        what: "cuBLAS, CUDA's linear algebra,",
        unix: &["libcublas.so.13", "libcublas.so.12", "libcublas.so"],
        windows: &["cublas64_13.dll", "cublas64_12.dll"],
        packages: &["cu13/lib", "cublas/lib", "cu13/bin/x86_64", "cublas/bin"],
        remedy: "Install it by `pip install nvidia-cublas`, or a CUDA toolkit, and name its directory in ULTRAMARINE_CUDA_LIBRARIES or CUDA_HOME",
    },
    Row {
        kind: Kind::Cudnn,
        what: "cuDNN, CUDA's convolutions and attention,",
        unix: &["libcudnn.so.9"],
        windows: &["cudnn64_9.dll"],
        packages: &["cudnn/lib", "cudnn/bin"],
        remedy: "Install it by `pip install nvidia-cudnn-cu13`, and name its directory in ULTRAMARINE_CUDA_LIBRARIES or CUDA_HOME",
    },
    Row {
        kind: Kind::Nccl,
        what: "NCCL, collectives among GPUs,",
        unix: &["libnccl.so.2"],
        windows: &[],
        packages: &["nccl/lib"],
        remedy: "Install it by `pip install nvidia-nccl-cu13` (or `-cu12`, as the driver), and name its directory in ULTRAMARINE_CUDA_LIBRARIES. There is none for Windows",
    },
    Row {
        kind: Kind::Nvtx,
        what: "NVTX, ranges for CUDA's profilers,",
        unix: &["libnvToolsExt.so.1", "libnvtx3interop.so.1", "libnvtx3interop.so"],
        windows: &["nvToolsExt64_1.dll", "nvtx3interop.dll"],
        packages: &["cu13/lib", "nvtx/lib", "nvtx/bin"],
        remedy: "Install it by `pip install nvidia-nvtx`",
    },
];

fn names(row: &Row) -> &'static [&'static str] {
    #[cfg(windows)]
    return row.windows;
    #[cfg(not(windows))]
    row.unix
}

/// The directories to search, in order, and how many of them come before the system's own search.
fn directories(row: &Row) -> (Vec<PathBuf>, usize) {
    let mut all: Vec<PathBuf> = std::env::var_os("ULTRAMARINE_CUDA_LIBRARIES")
        .map(|list| std::env::split_paths(&list).filter(|p| p.is_absolute()).collect())
        .unwrap_or_default();
    let mut explicit = all.len();
    if row.packages.is_empty() {
        return (all, explicit);
    }
    for nvidia in packages() {
        all.extend(row.packages.iter().map(|p| nvidia.join(p)));
    }
    if matches!(row.kind, Kind::Cudnn | Kind::Nccl) {
        explicit = all.len();
    }
    let homes = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    for home in homes.chain([PathBuf::from("/usr/local/cuda")]) {
        all.extend(["lib64", "lib", "bin"].iter().map(|d| home.join(d)));
    }
    (all, explicit)
}

/// Directories of the `nvidia` packages that this plugin is installed beside. This file is
/// `site-packages/<package>/backends/<file>`, so `site-packages` is three levels up.
fn packages() -> Vec<PathBuf> {
    let own = own_path();
    let above = own.iter().flat_map(|file| file.ancestors().skip(1).take(5));
    above.map(|p| p.join("nvidia")).filter(|p| p.is_dir()).collect()
}

/// Directories of CUDA's own headers, such as `cuda_fp16.h`, for users' kernels; empty if they are
/// not installed. `major` is the version of the compiler; its headers are preferred.
pub fn headers(major: i32) -> Vec<PathBuf> {
    let named = std::env::var_os("ULTRAMARINE_CUDA_LIBRARIES");
    let named = named.iter().flat_map(std::env::split_paths).filter(|p| p.is_absolute());
    let mut all: Vec<PathBuf> = named.map(|p| p.join("../include")).collect();
    let home = ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(std::env::var_os).map(PathBuf::from);
    all.extend(home.map(|p| p.join("include")));
    let packages = packages();
    let mut below = [format!("cu{major}/include"), "cuda_runtime/include".to_owned()];
    if major < 13 {
        below.reverse();
    }
    all.extend(packages.iter().flat_map(|p| below.iter().map(move |b| p.join(b))));
    all.push(PathBuf::from("/usr/local/cuda/include"));
    // Headers of one version: the first that are found, with the headers that they include.
    let set = |found: PathBuf| {
        let more = [found.join("cccl"), found.join("../../cuda_cccl/include")];
        let set: Vec<_> = [found].into_iter().chain(more).filter(|p| p.is_dir()).collect();
        let has = |name: &str| set.iter().any(|p| p.join(name).is_file());
        (has("cuda_fp16.h") && has("nv/target")).then_some(set)
    };
    all.into_iter().find_map(set).unwrap_or_default()
}

/// The file that contains this code.
fn own_path() -> Option<PathBuf> {
    file_at(own_path as fn() -> Option<PathBuf> as usize)
}

/// The file of a library, found by one of its functions.
pub fn file_of(library: &Library, function: &str) -> Option<PathBuf> {
    // SAFETY: the function is not called; only its address is used.
    let found = unsafe { library.get::<unsafe extern "C" fn()>(function) }.ok()?;
    file_at(*found as usize)
}

/// The file whose code is at that address.
fn file_at(address: usize) -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    {
        // The line of the process's memory map that contains the address names the file.
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        maps.lines().find_map(|line| {
            let (low, high) = line.split_whitespace().next()?.split_once('-')?;
            let inside = usize::from_str_radix(low, 16).ok()? <= address
                && address < usize::from_str_radix(high, 16).ok()?;
            inside.then(|| line.find('/').map(|at| PathBuf::from(&line[at..])))?
        })
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = address;
        None
    }
}

/// The system's message for a file that cannot be opened. The message names the file.
fn words(why: &libloading::Error) -> String {
    match std::error::Error::source(why) {
        Some(source) => source.to_string(),
        None => why.to_string(),
    }
}

/// Opens a library, or fails with a message that lists the searched locations and a remedy.
pub fn open(kind: Kind) -> Result<Library, String> {
    let Some(row) = ROWS.iter().find(|row| row.kind == kind) else {
        return Err(format!("{kind:?} is unknown"));
    };
    let (directories, explicit) = directories(row);
    let mut said = Vec::new();
    let mut attempt = |path: &Path| {
        // SAFETY: NVIDIA's libraries, whose initialisers have no preconditions.
        match unsafe { Library::new(path) } {
            Ok(library) => Some(library),
            Err(why) => {
                // A file that exists but cannot be opened is worth reporting.
                if path.is_absolute() {
                    said.push(words(&why));
                }
                None
            }
        }
    };
    for (i, directory) in directories.iter().enumerate() {
        if i == explicit
            && let Some(library) = names(row).iter().find_map(|name| attempt(Path::new(name)))
        {
            return Ok(library);
        }
        let files = names(row).iter().map(|name| directory.join(name)).filter(|p| p.is_file());
        if let Some(library) = files.into_iter().find_map(|path| attempt(&path)) {
            return Ok(library);
        }
    }
    if directories.len() == explicit
        && let Some(library) = names(row).iter().find_map(|name| attempt(Path::new(name)))
    {
        return Ok(library);
    }
    let said = said.first().map(|s| format!(" ({s})")).unwrap_or_default();
    let file = names(row).first().map(|name| format!(" ({name})")).unwrap_or_default();
    Err(format!("{}{file} was not found{said}. {}", row.what, row.remedy))
}
