//! Machines where the backend cannot run, or not all of it: each is told why, with what would do,
//! and nothing is started for it.

use crate::host::{Device, apart, emulator};
use crate::{GOOD, plan};
use std::path::{Path, PathBuf};
use std::process::Command;
use ultramarine_abi::helper::Backend;
use ultramarine_cuda::backend::Cuda;
use ultramarine_cuda::sys::{driver, find};

/// A folder of libraries for the test of that name: links to those of the emulator, and others
/// made of a text in C++.
fn libraries(test: &str, linked: &[&str], made: &[(&str, &str)]) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    // Once for both processes: the second has the folder in its environment.
    if std::env::var_os("ULTRAMARINE_CUDA_LIBRARIES").is_none_or(|there| folder != there)
        && let Some(emulator) = emulator()
    {
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        for name in linked {
            let from = emulator.canonicalize().expect("the emulator").join(name);
            #[cfg(unix)]
            std::os::unix::fs::symlink(from, folder.join(name)).expect("a link");
            #[cfg(not(unix))]
            std::fs::copy(from, folder.join(name)).expect("a copy");
        }
        for (name, text) in made {
            let source = folder.join(format!("{name}.cpp"));
            std::fs::write(&source, text).expect("a source");
            let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
            let status = Command::new(compiler)
                .args(["-shared", "-fPIC", "-o"])
                .args([folder.join(name), source])
                .status();
            assert!(status.expect("a compiler").success(), "{name} was not compiled");
        }
    }
    folder.to_string_lossy().into_owned()
}

/// The score is 0, and so says the reason. Who starts the backend nevertheless is told the same.
fn refused(parts: &[&str]) {
    let score = Cuda::score();
    assert_eq!((score.score, score.devices.len()), (0, 0));
    let reported = Device::init().err().expect("the backend starts").text;
    for text in [&score.reason, &reported] {
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
}

/// Returns true if the machine has a driver of its own, or could have one.
fn has_driver() -> bool {
    !cfg!(target_os = "linux") || Path::new("/proc/driver/nvidia").exists()
}

#[test]
fn a_machine_without_a_driver_is_reported() {
    let none = std::env::temp_dir().join("ultramarine-no-driver");
    let variables = [("ULTRAMARINE_CUDA_LIBRARIES", &*none.to_string_lossy())];
    if !has_driver() {
        apart(&variables, || {
            refused(&["NVIDIA's driver", "was not found", "Install NVIDIA's driver"]);
        });
    }
}

#[test]
fn a_file_that_is_no_library_is_reported() {
    let folder = libraries("no-library", &[], &[]);
    if !has_driver() && Path::new(&folder).exists() {
        std::fs::write(Path::new(&folder).join("libcuda.so.1"), "not a library").expect("a file");
        let variables = [("ULTRAMARINE_CUDA_LIBRARIES", &*folder)];
        apart(&variables, || {
            refused(&["was not found (", "no-library/libcuda.so.1", "Install NVIDIA's driver"]);
        });
    }
}

/// The library's `cuInit` ends the process: nobody calls it.
#[test]
fn a_driver_without_a_function_is_reported() {
    let text = "#include <cstdlib>\n\
        extern \"C\" int cuInit(unsigned) { abort(); }\n\
        extern \"C\" int cuDriverGetVersion(int *version) { *version = 13000; return 0; }\n";
    let folder = libraries("no-function", &[], &[("libcuda.so.1", text)]);
    let variables = [("ULTRAMARINE_CUDA_LIBRARIES", &*folder)];
    apart(&variables, || {
        refused(&[
            "NVIDIA's driver cannot be used: it has no cu",
            "too old",
            "Install driver 525 or later",
        ]);
    });
}

#[test]
fn an_old_driver_is_reported() {
    let variables = [("EMULATED_CUDA_VERSION", "11080")];
    apart(&variables, || {
        refused(&["is for CUDA 11.8, and at least 12.0 is needed", "Install driver 525 or later"]);
        let (driver, mut count) = (driver::driver().expect("it is there"), 0);
        // SAFETY: the place is valid.
        let code = unsafe { (driver.device_count)(&mut count) };
        assert_eq!(code, 3, "the driver was initialised: it is not CUDA_ERROR_NOT_INITIALIZED");
    });
}

#[test]
fn the_oldest_driver_that_will_do_does() {
    let variables = [("EMULATED_CUDA_VERSION", "12000")];
    apart(&variables, || {
        let score = Cuda::score();
        assert!(score.score > 0 && score.devices.len() == 1, "{}", score.reason);
        Device::open().close();
    });
}

#[test]
fn missing_gpus_are_reported() {
    let variables = [("ULTRAMARINE_CUDA_DEVICES", "0")];
    apart(&variables, || {
        let score = Cuda::score();
        assert_eq!(score.score, 0);
        assert!(score.reason.contains("there is no GPU"), "{}", score.reason);
    });
}

/// The system shows a GPU, and the driver has none for this process.
#[test]
fn gpus_that_the_driver_does_not_find_are_reported() {
    let variables = [("EMULATED_CUDA_DEVICES", "0")];
    apart(&variables, || {
        assert!(Cuda::score().score > 0);
        let reported = Device::init().err().expect("the backend starts").text;
        assert!(reported.contains("finds no GPU for this process"), "{reported}");
    });
}

#[test]
fn hidden_gpus_are_reported() {
    let variables = [("CUDA_VISIBLE_DEVICES", "")];
    apart(&variables, || {
        let score = Cuda::score();
        assert_eq!(score.score, 0);
        assert!(score.reason.contains("CUDA_VISIBLE_DEVICES hides every GPU"), "{}", score.reason);
    });
}

/// A device whose kernels cannot be compiled: what needs none works, and the first kernel says
/// why it is not there.
fn without_kernels(parts: &[&str]) {
    assert!(Cuda::score().score > 0);
    let device = Device::open();
    let (stream, buffer) = (device.stream().expect("a stream"), device.alloc(4).expect("memory"));
    device.write(buffer, &[1, 2, 3, 4]).expect("a write");
    for _ in 0..2 {
        let reported =
            device.submit(stream, &[plan("a kernel", GOOD)]).expect_err("a compiler").text;
        assert!(parts.iter().all(|part| reported.contains(part)), "{reported}");
    }
    assert_eq!(device.read(stream, buffer, 4).expect("a read"), [1, 2, 3, 4]);
    device.free(buffer);
    device.destroy_stream(stream);
    device.close();
}

#[test]
fn a_machine_without_nvrtc_is_reported() {
    let folder = libraries("no-nvrtc", &["libcuda.so.1"], &[]);
    let variables = [("ULTRAMARINE_CUDA_LIBRARIES", &*folder)];
    apart(&variables, || {
        if find::open(find::Kind::Nvrtc).is_ok() {
            eprintln!("skipped: this machine has NVRTC");
            return;
        }
        without_kernels(&["NVRTC", "was not found", "`pip install nvidia-cuda-nvrtc`"]);
    });
}

#[test]
fn an_nvrtc_without_a_function_is_reported() {
    let text = "extern \"C\" int nvrtcVersion(int *major, int *minor) {\n\
        *major = 11; *minor = 0; return 0; }\n";
    let made = [("libnvrtc.so.13", text)];
    let folder = libraries("old-nvrtc", &["libcuda.so.1"], &made);
    let variables = [("ULTRAMARINE_CUDA_LIBRARIES", &*folder)];
    apart(&variables, || {
        without_kernels(&[
            "NVRTC cannot be used: it has no nvrtc",
            "too old",
            "`pip install nvidia-cuda-nvrtc`",
        ]);
    });
}

/// NVRTC leaves old devices out.
#[test]
fn an_nvrtc_that_does_not_know_the_device_is_reported() {
    let variables = [("EMULATED_CUDA_CAPABILITY", "70")];
    apart(&variables, || {
        without_kernels(&["compiles for compute capability [75", "has 70", "install an NVRTC"]);
    });
}

/// For devices that it does not know yet there is what the driver compiles.
#[test]
fn an_nvrtc_older_than_the_device_will_do() {
    let variables = [("EMULATED_CUDA_CAPABILITY", "121")];
    apart(&variables, || {
        let device = Device::open();
        let stream = device.stream().expect("a stream");
        device.submit(stream, &[plan("a kernel of another device", GOOD)]).expect("a kernel");
        device.synchronize(stream).expect("its end");
        device.destroy_stream(stream);
        device.close();
    });
}
