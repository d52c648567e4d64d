//! The packages that have backends for types of devices. Only messages use this list; the loader
//! does not.

use ultramarine_abi::dlpack::device_type;

/// A package with a backend, which error messages recommend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// DLPack's type of the devices.
    pub device_type: i32,
    /// Name of the backend.
    pub backend: &'static str,
    /// Name of the package.
    pub name: &'static str,
    /// The devices, as messages name them.
    devices: &'static str,
    /// True if the package has a wheel for this system.
    here: bool,
}

const APPLE: bool = cfg!(target_vendor = "apple");
const WINDOWS: bool = cfg!(windows);

/// All packages. For each type of device, the best package comes first.
const PACKAGES: [Package; 4] = [
    Package {
        device_type: device_type::CUDA,
        backend: "cuda",
        name: "ultramarine-cuda",
        devices: "NVIDIA's",
        here: !APPLE,
    },
    Package {
        device_type: device_type::METAL,
        backend: "metal",
        name: "ultramarine-wgpu",
        devices: "Apple's, by Metal",
        here: APPLE,
    },
    Package {
        device_type: device_type::VULKAN,
        backend: "vulkan",
        name: "ultramarine-wgpu",
        devices: "any, by Vulkan",
        here: !(APPLE || WINDOWS),
    },
    Package {
        device_type: device_type::EXT_DEV,
        backend: "dx12",
        name: "ultramarine-wgpu",
        devices: "any, by DirectX 12",
        here: WINDOWS,
    },
];

/// Returns the package with a backend of that name for devices of that type.
pub fn find(device_type: i32, backend: &str) -> Option<&'static Package> {
    PACKAGES.iter().find(|row| row.device_type == device_type && row.backend == backend)
}

/// Advice for messages: how to get a GPU backend on this system.
pub fn remedy() -> String {
    let here = PACKAGES.iter().filter(|row| row.here);
    let all: Vec<_> = here.map(|row| format!("{} ({})", row.name, row.devices)).collect();
    format!(
        " For GPUs: pip install {}. For a library of your own: ULTRAMARINE_BACKEND_PATH=DIRECTORY.",
        all.join(", or ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_has_a_package_for_any_gpu() {
        assert_eq!(find(device_type::CUDA, "cuda").map(|row| row.name), Some("ultramarine-cuda"));
        assert_eq!(find(device_type::METAL, "metal").map(|row| row.name), Some("ultramarine-wgpu"));
        assert_eq!(find(device_type::CUDA, "rocm"), None);
        let here = PACKAGES.iter().filter(|row| row.here && row.name == "ultramarine-wgpu");
        assert_eq!(here.count(), 1, "its wheel has one backend");
    }
}
