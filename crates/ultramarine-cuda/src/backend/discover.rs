//! Discovery of GPUs without starting the driver. `cuInit` takes a tenth of a second, and creating
//! a context takes as long again; a process that only lists devices should not pay for either.

use crate::sys::driver::{self, Driver, version_text};
use std::path::Path;
use ultramarine_abi::helper::Score;
use ultramarine_abi::{DeviceIdentity, identity, inline_text};

/// The score of a machine with a GPU.
const SCORE: u32 = 100;

/// One GPU, as the operating system reports it.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    name: String,
    uuid: Option<[u8; 16]>,
    /// Domain, bus, device, function.
    pci: Option<[u32; 4]>,
}

/// The driver, if it is recent enough; it is not initialised.
pub fn driver() -> Result<&'static Driver, String> {
    let (driver, mut version) = (driver::driver()?, 0);
    // SAFETY: the output pointer is valid; this function needs no cuInit.
    if unsafe { (driver.driver_version)(&mut version) } != 0 {
        return Err("NVIDIA's driver does not report its version. Reinstall it".to_owned());
    }
    match version < driver::OLDEST {
        false => Ok(driver),
        true => Err(format!(
            "NVIDIA's driver is for CUDA {}, and at least {} is needed. Install driver 525 or later",
            version_text(version),
            version_text(driver::OLDEST)
        )),
    }
}

/// The backend's score on this machine.
pub fn score() -> Score {
    if let Err(why) = driver() {
        return Score::cannot(why);
    }
    let seen = match seen() {
        Ok(seen) => seen,
        Err(why) => return Score::cannot(why),
    };
    if seen.is_empty() {
        return Score::cannot(
            "NVIDIA's driver is installed, but there is no GPU. In a container, start it with access to the GPU; \
             where GPUs cannot be seen in /proc and /dev, set ULTRAMARINE_CUDA_DEVICES to their number",
        );
    }
    let visible = visible(&seen, std::env::var("CUDA_VISIBLE_DEVICES").ok().as_deref());
    if visible.is_empty() {
        return Score::cannot(
            "CUDA_VISIBLE_DEVICES hides every GPU. Unset it, or name a GPU by number or UUID",
        );
    }
    let mut score = Score::new(SCORE, visible.len() as u32);
    score.devices = visible.into_iter().map(|i| identity_of(&seen[i])).collect();
    score
}

fn identity_of(seen: &Seen) -> DeviceIdentity {
    let mut device = DeviceIdentity {
        size: size_of::<DeviceIdentity>() as u32,
        known: 0,
        uuid: seen.uuid.unwrap_or_default(),
        pci_domain: 0,
        pci_bus: 0,
        pci_device: 0,
        pci_function: 0,
        memory: 0,
        name: inline_text(&seen.name),
    };
    if seen.uuid.is_some() {
        device.known |= identity::UUID;
    }
    if let Some(pci) = seen.pci {
        [device.pci_domain, device.pci_bus, device.pci_device, device.pci_function] = pci;
        device.known |= identity::PCI;
    }
    device
}

/// The GPUs of the machine, as listed by the driver's kernel module.
fn seen() -> Result<Vec<Seen>, String> {
    if let Ok(text) = std::env::var("ULTRAMARINE_CUDA_DEVICES") {
        let count: usize = text.trim().parse().map_err(|_| {
            format!("ULTRAMARINE_CUDA_DEVICES is {text:?}. Set it to a number of GPUs, or unset it")
        })?;
        return Ok((0..count.min(64)).map(|_| Seen::default()).collect());
    }
    if cfg!(windows) {
        // On Windows a driver is only installed on machines with a GPU. The number of GPUs is known
        // after init.
        return Ok(vec![Seen::default()]);
    }
    let listed = of_proc(Path::new("/proc/driver/nvidia/gpus"));
    if !listed.is_empty() {
        return Ok(listed);
    }
    // Sandboxes and WSL do not list the GPUs in `/proc`, only as device nodes.
    let nodes = (0..64).filter(|i| Path::new(&format!("/dev/nvidia{i}")).exists()).count();
    let nodes = nodes.max(usize::from(Path::new("/dev/dxg").exists()));
    Ok((0..nodes).map(|_| Seen::default()).collect())
}

/// The GPUs in `/proc/driver/nvidia/gpus`, which has a directory for each GPU, named by its PCI
/// address.
fn of_proc(directory: &Path) -> Vec<Seen> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    names.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path.join("information")).unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name))?;
            line.split_once(':').map(|(_, value)| value.trim().to_owned())
        };
        Seen {
            name: field("Model").unwrap_or_default(),
            uuid: field("GPU UUID").and_then(|text| uuid(&text)),
            pci: path.file_name().and_then(|name| pci(&name.to_string_lossy())),
        }
    };
    names.iter().map(read).collect()
}

/// Parses `GPU-01234567-89ab-...` to bytes.
fn uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.strip_prefix("GPU-")?.chars().filter(|c| *c != '-').collect();
    let mut bytes = [0; 16];
    if digits.len() != 32 || !digits.is_ascii() {
        return None;
    }
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(bytes)
}

/// Parses `0000:1b:00.0` to numbers.
fn pci(text: &str) -> Option<[u32; 4]> {
    let mut numbers = [0; 4];
    let mut parts = text.split([':', '.']);
    for number in &mut numbers {
        *number = u32::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

/// The devices of `seen` that `CUDA_VISIBLE_DEVICES` leaves visible. Entries of the list are numbers, UUIDs or
/// prefixes of UUIDs; the list ends at the first invalid entry.
fn visible(seen: &[Seen], list: Option<&str>) -> Vec<usize> {
    let Some(list) = list else { return (0..seen.len()).collect() };
    let place = |item: &str| {
        if let Ok(index) = item.parse::<usize>() {
            return (index < seen.len()).then_some(index);
        }
        let wanted = item.strip_prefix("GPU-")?.replace('-', "").to_lowercase();
        let hex = |uuid: [u8; 16]| uuid.iter().map(|b| format!("{b:02x}")).collect::<String>();
        if seen.iter().all(|s| s.uuid.is_none()) {
            return (!seen.is_empty()).then_some(0);
        }
        seen.iter().position(|s| s.uuid.is_some_and(|u| hex(u).starts_with(&wanted)))
    };
    list.split(',').map(|item| item.trim()).map_while(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_uuids_are_read() {
        assert_eq!(pci("0000:1b:00.0"), Some([0, 0x1b, 0, 0]));
        assert_eq!(pci("0000:1b:00"), None);
        let text = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f";
        assert_eq!(uuid(text), Some(core::array::from_fn(|i| i as u8)));
        assert_eq!(uuid("GPU-0001"), None);
    }

    #[test]
    fn the_visible_devices_follow_the_variable() {
        let gpu = |last: u8| Seen { uuid: Some([last; 16]), ..Seen::default() };
        let all = [gpu(1), gpu(2), gpu(3)];
        assert_eq!(visible(&all, None), [0, 1, 2]);
        assert_eq!(visible(&all, Some("")), [0usize; 0]);
        assert_eq!(visible(&all, Some("2, 0")), [2, 0]);
        assert_eq!(visible(&all, Some("1,9,0")), [1]);
        assert_eq!(visible(&all, Some("GPU-0202")), [1]);
        assert_eq!(visible(&all, Some("-1")), [0usize; 0]);
    }
}
