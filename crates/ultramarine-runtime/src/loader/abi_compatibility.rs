//! A plugin's ABI info: validation against this process and the plugin's file, and its text for
//! reports.

use super::cpu_features;
use super::reason::{Code, Reason};
use super::search::{FileName, full_name};
use ultramarine_abi::negotiate::{self, Host, Mismatch};
use ultramarine_abi::{BackendAbiInfo, DeviceIdentity, identity, inline_str};

/// The properties of a plugin, from its ABI info: name, versions, target and features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendProperties {
    /// True if the info comes from the file's note. False if the plugin's code had to be called for
    /// it.
    pub from_note: bool,
    /// Name.
    pub name: String,
    /// Variant, or empty.
    pub variant: String,
    /// The plugin's own version.
    pub version: String,
    /// Version of the ABI: major, minor.
    pub abi: (u16, u16),
    /// Version of DLPack.
    pub dlpack: (u16, u16),
    /// Size in bytes of the plugin's function table.
    pub table_size: u32,
    /// DLPack's number of the plugin's device type.
    pub device_type: i32,
    /// Target triple.
    pub target: String,
    /// Compiler.
    pub compiler: String,
    /// Processor features that the plugin needs.
    pub cpu_features: String,
    /// Sanitizers that the plugin was built with, in words.
    pub sanitizers: String,
}

impl BackendProperties {
    pub(super) fn of(info: &BackendAbiInfo, from_note: bool) -> BackendProperties {
        BackendProperties {
            from_note,
            name: inline_str(&info.name),
            variant: inline_str(&info.variant),
            version: inline_str(&info.version),
            abi: (info.abi_major, info.abi_minor),
            dlpack: (info.dlpack_major, info.dlpack_minor),
            table_size: info.table_size,
            device_type: info.device_type,
            target: inline_str(&info.target),
            compiler: inline_str(&info.compiler),
            cpu_features: inline_str(&info.cpu_features),
            sanitizers: negotiate::sanitizers(info.sanitizers),
        }
    }
}

/// The properties of a physical device, as a plugin's score function reports them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceProperties {
    /// The device's name; may be empty.
    pub name: String,
    /// Bytes of memory; 0 if unknown.
    pub memory: u64,
    /// UUID in hexadecimal, if known.
    pub uuid: Option<String>,
    /// PCI address, if known.
    pub pci: Option<String>,
}

impl DeviceProperties {
    pub(super) fn of(device: &DeviceIdentity) -> DeviceProperties {
        let knows = |bit| device.known & bit != 0;
        DeviceProperties {
            name: inline_str(&device.name),
            memory: device.memory,
            uuid: knows(identity::UUID)
                .then(|| device.uuid.iter().map(|b| format!("{b:02x}")).collect()),
            pci: knows(identity::PCI).then(|| {
                format!(
                    "{:04x}:{:02x}:{:02x}.{:x}",
                    device.pci_domain, device.pci_bus, device.pci_device, device.pci_function
                )
            }),
        }
    }
}

/// Validates that this process can use a plugin with this ABI info from a file with this name.
pub(super) fn validate(info: &BackendAbiInfo, file: &FileName, host: &Host) -> Result<(), Reason> {
    negotiate::check_for(host, info).map_err(|m| match (info.abi_major, info.abi_minor) {
        // No contract has this version. UM_DEFINE_BACKEND keeps the ABI info in the note, whose bytes are 0 once it is removed.
        (0, 0) => {
            let text =
                "its ABI info is empty: the section .note.ultramarine was removed from the file";
            Reason::new(Code::NoteDamaged, text)
                .with_remedy("build it again, without `strip -R` or `objcopy -R` of that section")
        }
        _ => Reason::new(code_of(&m), m.to_string()),
    })?;
    let (name, variant) = (inline_str(&info.name), inline_str(&info.variant));
    if name != file.name || variant != file.variant {
        let text = format!(
            "its name is {:?} by its ABI info, and {:?} by its file name",
            full_name(&name, &variant),
            file.full()
        );
        return Err(Reason::new(Code::NameDiffers, text));
    }
    cpu_features::validate(&inline_str(&info.cpu_features))
}

fn code_of(mismatch: &Mismatch) -> Code {
    match mismatch {
        Mismatch::InfoSize { .. } => Code::InfoShort,
        Mismatch::Abi { .. } => Code::AbiVersion,
        Mismatch::Dlpack { .. } => Code::DlpackVersion,
        Mismatch::PointerBits { .. } => Code::PointerWidth,
        Mismatch::Endianness { .. } => Code::Endianness,
        Mismatch::TableSize { .. } => Code::TableShort,
        Mismatch::Sanitizer { .. } => Code::Sanitizer,
        Mismatch::DeviceType { .. } => Code::DeviceType,
        Mismatch::Name { .. } | Mismatch::Variant { .. } => Code::BadName,
        // All other mismatches concern tables.
        _ => Code::TableDiffers,
    }
}

/// Validates that the note and the entry point report the same ABI info.
pub(super) fn validate_note(
    note: &BackendAbiInfo,
    reported: &BackendAbiInfo,
) -> Result<(), Reason> {
    macro_rules! both {
        ($show:path: $($field:ident)*) => {
            [$((stringify!($field), $show(&note.$field), $show(&reported.$field)),)*]
        };
    }
    fn number(n: &impl ToString) -> String {
        n.to_string()
    }
    fn text(field: &[core::ffi::c_char]) -> String {
        format!("{:?}", inline_str(field))
    }
    let numbers = both!(number: abi_major abi_minor dlpack_major dlpack_minor table_size
        pointer_bits endianness device_type sanitizers flags);
    let texts = both!(text: name variant version target compiler cpu_features);
    let differ: Vec<String> = numbers
        .into_iter()
        .chain(texts)
        .filter(|(_, a, b)| a != b)
        .map(|(name, a, b)| format!("{name} ({a}, {b})"))
        .collect();
    if differ.is_empty() {
        return Ok(());
    }
    let text = format!("its note and its ABI info differ in {}", differ.join(", "));
    Err(Reason::new(Code::NoteDiffers, text))
}
