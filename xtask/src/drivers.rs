//! System packages that tests need and that a machine may lack:
//!
//! - OpenCL's loader and headers, and PoCL, which runs OpenCL on the processor;
//! - Vulkan's loader, and Mesa's llvmpipe, which runs Vulkan on the processor;
//! - both implementations of MPI.

use crate::sh;
use std::path::Path;

/// Debian's packages, each with a file that it installs.
const OPENCL: [(&str, &str); 2] = [
    ("ocl-icd-opencl-dev", "/usr/include/CL/cl.h"),
    ("pocl-opencl-icd", "/etc/OpenCL/vendors/pocl.icd"),
];

/// Installs the missing packages for OpenCL.
pub fn opencl() {
    // Any driver suffices. PoCL works on every machine.
    let driver = std::fs::read_dir("/etc/OpenCL/vendors").is_ok_and(|mut d| d.next().is_some());
    let wanted = OPENCL.iter().filter(|(package, _)| !(driver && package.starts_with("pocl")));
    install("OpenCL", &wanted.copied().collect::<Vec<_>>());
}

/// Debian's packages for Vulkan.
const VULKAN: [(&str, &str); 2] = [
    ("libvulkan1", "/usr/share/doc/libvulkan1"),
    ("mesa-vulkan-drivers", "/usr/share/doc/mesa-vulkan-drivers"),
];

/// The layer that reports errors in the use of Vulkan.
const VALIDATION: [(&str, &str); 1] = [(
    "vulkan-validationlayers",
    "/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json",
)];

/// The compiler for the tests' kernels in SPIR-V.
const GLSLANG: [(&str, &str); 1] = [("glslang-tools", "/usr/bin/glslangValidator")];

/// Installs the missing packages for Vulkan.
pub fn vulkan() {
    if !has_vulkan() {
        install("Vulkan", &VULKAN);
    }
    install("Vulkan's validation layer", &VALIDATION);
    install("kernels in SPIR-V", &GLSLANG);
}

/// Launchers of both implementations. Each depends on its library. Open MPI's launcher does not
/// start without ssh, even on a single host.
const MPI: [(&str, &str); 3] = [
    ("openmpi-bin", "/usr/bin/mpirun.openmpi"),
    ("mpich", "/usr/bin/mpirun.mpich"),
    ("openssh-client", "/usr/bin/ssh"),
];

/// Installs the missing packages for programs with several ranks.
pub fn mpi() {
    install("MPI", &MPI);
}

/// Returns true if there are a loader and a driver.
pub fn has_vulkan() -> bool {
    let loader =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"]
            .iter()
            .any(|folder| Path::new(folder).join("libvulkan.so.1").exists());
    let driver = ["/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d"]
        .iter()
        .any(|folder| std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some()));
    loader && driver
}

/// Installs those of Debian's packages whose file is missing. This needs apt-get, and root. If it
/// is not possible, prints this and returns false; the tests of `subject` then skip themselves
/// visibly.
pub fn install(subject: &str, packages: &[(&str, &str)]) -> bool {
    let missing = packages.iter().filter(|(_, file)| !Path::new(file).exists());
    let missing: Vec<&str> = missing.map(|(package, _)| *package).collect();
    if missing.is_empty() {
        return true;
    }
    let wanted = missing.join(" ");
    if !is_root() || !Path::new("/usr/bin/apt-get").exists() {
        sh::print(&format!(
            "{subject} is not installed; its tests are skipped. To run them: apt-get install {wanted}"
        ));
        return false;
    }
    sh::say(&format!("installing {wanted}"));
    let quiet = ["-qq", "-y", "--no-install-recommends"];
    let install = || {
        let arguments = [&["install"][..], &quiet, &missing].concat();
        let mut apt = sh::cmd("apt-get", &arguments);
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        sh::run(apt)
    };
    // The package lists may be old or missing, so update them and try again.
    let installed = install().or_else(|_| {
        sh::run(sh::cmd("apt-get", &["update", "-qq"]))?;
        install()
    });
    if let Err(error) = &installed {
        sh::print(&format!("{subject} cannot be installed, its tests are skipped: {error:#}"));
    }
    installed.is_ok()
}

fn is_root() -> bool {
    sh::read(sh::cmd("id", &["-u"])).is_ok_and(|id| id.trim() == "0")
}
