//! System packages that tests need and a machine may lack: OpenCL's loader and headers, and PoCL,
//! which runs OpenCL on the processor.

use crate::sh;
use std::path::Path;

/// Debian's packages with a file that each brings.
const OPENCL: [(&str, &str); 2] = [
    ("ocl-icd-opencl-dev", "/usr/include/CL/cl.h"),
    ("pocl-opencl-icd", "/etc/OpenCL/vendors/pocl.icd"),
];

/// Installs what is missing for OpenCL where that is possible: with apt-get, as root. Otherwise
/// it says so, and the tests that need it skip themselves visibly.
pub fn opencl() {
    // Any driver will do; PoCL is the one that every machine can have.
    let driver = std::fs::read_dir("/etc/OpenCL/vendors").is_ok_and(|mut d| d.next().is_some());
    let missing: Vec<&str> = OPENCL
        .iter()
        .filter(|(package, file)| {
            !(Path::new(file).exists() || driver && package.starts_with("pocl"))
        })
        .map(|(package, _)| *package)
        .collect();
    if missing.is_empty() {
        return;
    }
    let wanted = missing.join(" ");
    if !is_root() || !Path::new("/usr/bin/apt-get").exists() {
        println!(
            "OpenCL is not installed; its tests are skipped. To run them: apt-get install {wanted}"
        );
        return;
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
    if let Err(error) = installed {
        println!("OpenCL cannot be installed, its tests are skipped: {error:#}");
    }
}

fn is_root() -> bool {
    sh::read(sh::cmd("id", &["-u"])).is_ok_and(|id| id.trim() == "0")
}
