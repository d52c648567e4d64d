//! The adapters that the system reports, in the order in which they become devices.

use super::{Exposed, Properties, platform, variable};
use wgpu_types::DeviceType;

/// Setting that selects and orders devices: a comma-separated list of parts of their names, or of their numbers in
/// the default order.
const CHOSEN: &str = "DEVICES";
/// Setting that, if it is 1, lists adapters that run on the CPU after GPUs.
const SOFTWARE: &str = "SOFTWARE";

/// An adapter that can be opened, with its [`Properties`].
pub struct Found {
    pub(super) exposed: Exposed,
    /// The adapter's properties.
    pub properties: Properties,
}

/// The adapters of this machine: those that become devices, and the reasons why others do not. The
/// hal's adapters keep its instance alive.
pub struct Adapters {
    /// In the order of devices: discrete GPUs before integrated ones, software last.
    pub list: Vec<Found>,
    /// Reasons why other adapters do not become devices.
    pub left_out: Vec<String>,
}

impl Adapters {
    /// Lists the system's adapters.
    ///
    /// # Errors
    /// A message that says what to install, if there is no loader or driver.
    pub fn enumerate() -> Result<Self, String> {
        let (mut list, mut left_out) = (Vec::new(), Vec::new());
        for exposed in platform::exposed()? {
            match platform::properties(&exposed) {
                Ok(properties) => list.push(Found { exposed, properties }),
                Err(why) => left_out.push(why),
            }
        }
        if list.is_empty() {
            return Err(left_out.join("; "));
        }
        list.sort_by_key(|found| rank(found.properties.kind));
        if let Ok(chosen) = std::env::var(variable(CHOSEN)) {
            let names: Vec<_> = list.iter().map(|found| found.properties.name.as_str()).collect();
            let places = choose(&chosen, &names)?;
            let mut all: Vec<_> = list.into_iter().map(Some).collect();
            list = places.into_iter().filter_map(|place| all[place].take()).collect();
            return Ok(Self { list, left_out });
        }
        let software = std::env::var(variable(SOFTWARE)).is_ok_and(|value| value.trim() == "1");
        if !software && list.iter().any(|found| !found.properties.is_software()) {
            list.retain(|found| !found.properties.is_software());
        }
        Ok(Self { list, left_out })
    }
}

/// The indices of the adapters that a text selects. A part of a name selects all adapters whose
/// names contain it.
fn choose(text: &str, names: &[&str]) -> Result<Vec<usize>, String> {
    let mut places = Vec::new();
    for part in text.split(',').map(|part| part.trim().to_lowercase()) {
        let fits = |place: &usize| match part.parse::<usize>() {
            Ok(number) => number == *place,
            Err(_) => !part.is_empty() && names[*place].to_lowercase().contains(&part),
        };
        let found: Vec<_> = (0..names.len()).filter(fits).collect();
        if found.is_empty() {
            let all = names.iter().enumerate().map(|(i, name)| format!("{i} {name}"));
            let all = all.collect::<Vec<_>>().join(", ");
            return Err(format!(
                "{}={text} names {part:?}, which is not a device. There are: {all}. Name them by numbers or parts of \
                 their names",
                variable(CHOSEN)
            ));
        }
        for place in found {
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    Ok(places)
}

/// The rank of an adapter's kind in the order of devices.
fn rank(kind: DeviceType) -> u32 {
    match kind {
        DeviceType::DiscreteGpu => 0,
        DeviceType::IntegratedGpu => 1,
        DeviceType::VirtualGpu => 2,
        DeviceType::Other => 3,
        DeviceType::Cpu => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::choose;

    #[test]
    fn devices_are_named_by_numbers_and_parts_of_names() {
        let names = ["NVIDIA H200", "NVIDIA H200", "AMD Radeon 780M", "llvmpipe (LLVM 15)"];
        assert_eq!(choose("2, 0", &names), Ok(vec![2, 0]));
        assert_eq!(choose("radeon,h200", &names), Ok(vec![2, 0, 1]));
        assert_eq!(choose("llvmpipe,3", &names), Ok(vec![3]));
        for wrong in ["4", "intel", "", "0,,1"] {
            let why = choose(wrong, &names).unwrap_err();
            assert!(why.contains("2 AMD Radeon 780M"), "{why}");
        }
    }
}
