//! System packages that tests need and a machine may lack: OpenCL's loader and headers, and PoCL, which runs OpenCL on the
//! processor; Vulkan's loader, and Mesa's llvmpipe, which runs Vulkan there; both implementations of MPI.

use crate::sh;
use std::path::Path;

/// Debian's packages with a file that each brings.
const OPENCL: [(&str, &str); 2] = [
    ("ocl-icd-opencl-dev", "/usr/include/CL/cl.h"),
    ("pocl-opencl-icd", "/etc/OpenCL/vendors/pocl.icd"),
];

/// Installs what is missing for OpenCL.
pub fn opencl() {
    // Any driver will do; PoCL is the one that every machine can have.
    let driver = std::fs::read_dir("/etc/OpenCL/vendors").is_ok_and(|mut d| d.next().is_some());
    let wanted = OPENCL.iter().filter(|(package, _)| !(driver && package.starts_with("pocl")));
    install("OpenCL", &wanted.copied().collect::<Vec<_>>());
}

/// The same for Vulkan.
const VULKAN: [(&str, &str); 2] = [
    ("libvulkan1", "/usr/share/doc/libvulkan1"),
    ("mesa-vulkan-drivers", "/usr/share/doc/mesa-vulkan-drivers"),
];

/// The layer that says what is wrong in the use of Vulkan.
const VALIDATION: [(&str, &str); 1] = [(
    "vulkan-validationlayers",
    "/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json",
)];

/// The compiler of kernels that tests run as SPIR-V.
const GLSLANG: [(&str, &str); 1] = [("glslang-tools", "/usr/bin/glslangValidator")];

/// Installs what is missing for Vulkan.
pub fn vulkan() {
    if !has_vulkan() {
        install("Vulkan", &VULKAN);
    }
    install("Vulkan's validation layer", &VALIDATION);
    install("kernels in SPIR-V", &GLSLANG);
}

/// Launchers of both implementations; each depends on its library. Open MPI's does not start without ssh, also on one host.
const MPI: [(&str, &str); 3] = [
    ("openmpi-bin", "/usr/bin/mpirun.openmpi"),
    ("mpich", "/usr/bin/mpirun.mpich"),
    ("openssh-client", "/usr/bin/ssh"),
];

/// Installs what is missing for programs of several ranks.
pub fn mpi() {
    install("MPI", &MPI);
}

/// Returns true where there are a loader and a driver.
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

/// Installs those of Debian's packages whose file is missing, where that is possible: with apt-get, as root. Otherwise it says
/// so and returns false; the tests of `subject` skip themselves visibly.
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
    // The lists of packages may be old, or not there at all.
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
