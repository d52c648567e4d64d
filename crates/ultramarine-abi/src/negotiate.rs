//! Rules by which a host accepts backend binaries. Each refusal has the values of both sides.
//!
//! * The contract's major version is equal. While it is 0, nothing is frozen, so the minor version
//!   must be equal too. From 1 on any minor version is accepted: structs have their sizes in them,
//!   and fields that one side lacks are NULL or zero.
//! * DLPack's major version, the width of a pointer and the byte order are equal.
//! * The backend's info and table are at least as long as those of version 1.0.
//! * The backend has no sanitizer that the process lacks, because the sanitizer's runtime would end
//!   the process.
//! * Name and variant have only characters that a backend's file name may have.
//!
//! The rules use only the info, from the note or from the entry point, so they run no code of the
//! plugin. [`check_table`] compares the table that init returned with the info.

use crate::{
    ABI_MAJOR, ABI_MINOR, BackendAbiInfo, BackendTable, DLPACK, TABLE_SIZE_MIN, endianness,
    inline_str, is_text_of, sanitizer,
};
use core::ffi::c_char;
use core::fmt;

/// The smallest valid size of a [`BackendAbiInfo`], that of version 1.0: a shorter one is refused.
/// Until the contract is frozen, it is the size of the current struct.
pub const INFO_SIZE_MIN: u32 = size_of::<BackendAbiInfo>() as u32;

/// The properties of a host process that a backend must agree with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Contract version.
    pub abi: (u16, u16),
    /// DLPack version.
    pub dlpack: (u16, u16),
    /// Bits of a pointer.
    pub pointer_bits: u8,
    /// One of [`endianness`].
    pub endianness: u8,
    /// Bits of [`sanitizer`] whose runtimes are in the process.
    pub sanitizers: u32,
}

impl Host {
    /// Returns the properties of this build, with the sanitizers that it is compiled with. A
    /// program in another language may use more sanitizers. A caller that can detect them (by
    /// looking for the runtime's symbols) adds them.
    pub const fn here() -> Self {
        Self {
            abi: (ABI_MAJOR as u16, ABI_MINOR as u16),
            dlpack: DLPACK,
            pointer_bits: usize::BITS as u8,
            endianness: if cfg!(target_endian = "little") {
                endianness::LITTLE
            } else {
                endianness::BIG
            },
            sanitizers: crate::info::SANITIZERS,
        }
    }
}

/// The reason why a backend is refused. `Display` says what the backend has and what the host
/// needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mismatch {
    /// The info is shorter than any version's.
    InfoSize {
        /// Bytes that the info claims to have.
        theirs: u32,
        /// Bytes it must have.
        least: u32,
    },
    /// The contract versions are incompatible.
    Abi {
        /// The backend's.
        theirs: (u16, u16),
        /// The host's.
        ours: (u16, u16),
    },
    /// DLPack's major versions differ.
    Dlpack {
        /// The backend's.
        theirs: (u16, u16),
        /// The host's.
        ours: (u16, u16),
    },
    /// Pointers of different widths.
    PointerBits {
        /// The backend's.
        theirs: u8,
        /// The host's.
        ours: u8,
    },
    /// Different orders of bytes.
    Endianness {
        /// The backend's.
        theirs: u8,
        /// The host's.
        ours: u8,
    },
    /// The table is shorter than any version's.
    TableSize {
        /// Bytes it has.
        theirs: u32,
        /// Bytes it must have.
        least: u32,
    },
    /// The backend was built with a sanitizer that the process does not use.
    Sanitizer {
        /// The backend's bits.
        theirs: u32,
        /// The host's bits.
        ours: u32,
    },
    /// The device type is not one of DLPack's.
    DeviceType {
        /// The number.
        theirs: i32,
    },
    /// The name is empty or has characters that are not allowed.
    Name {
        /// As it stands in the info.
        theirs: String,
    },
    /// The variant has characters that are not allowed.
    Variant {
        /// As it stands in the info.
        theirs: String,
    },
    /// After init: the table has another version than the info.
    TableAbi {
        /// Given in the table.
        table: (u16, u16),
        /// Given in the info.
        info: (u16, u16),
    },
    /// After init: the table has another name than the info.
    TableName {
        /// Given in the table.
        table: String,
        /// Given in the info.
        info: String,
    },
    /// After init: the table has another device type than the info.
    TableDeviceType {
        /// Given in the table.
        table: i32,
        /// Given in the info.
        info: i32,
    },
    /// After init: a required function is missing.
    TableFunction {
        /// Its name.
        name: &'static str,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InfoSize { theirs, least } => {
                write!(f, "its ABI info has {theirs} bytes, fewer than the required {least}")
            }
            Self::Abi { theirs: (a, b), ours: (c, d) } => {
                let rule = if *c == 0 {
                    "; while the major version is 0, both numbers must be equal"
                } else {
                    ""
                };
                write!(f, "it is built for contract {a}.{b}, and this program has {c}.{d}{rule}")
            }
            Self::Dlpack { theirs: (a, b), ours: (c, d) } => {
                write!(f, "it is built with DLPack {a}.{b}, and this program with {c}.{d}")
            }
            Self::PointerBits { theirs, ours } => {
                write!(f, "its pointers have {theirs} bits, and this program's {ours}")
            }
            Self::Endianness { theirs, ours } => {
                write!(f, "it is {}, and this machine {}", order(*theirs), order(*ours))
            }
            Self::TableSize { theirs, least } => {
                write!(f, "its table has {theirs} bytes, fewer than the required {least}")
            }
            Self::Sanitizer { theirs, ours } => write!(
                f,
                "it is built with {}, and the process runs {}",
                sanitizers(*theirs),
                sanitizers(*ours)
            ),
            Self::DeviceType { theirs } => {
                write!(f, "its device type {theirs} is not one of DLPack")
            }
            Self::Name { theirs } => write!(
                f,
                "its name {theirs:?} has characters other than lower-case letters, digits and _"
            ),
            Self::Variant { theirs } => {
                write!(
                    f,
                    "its variant {theirs:?} has characters other than letters, digits, _, . and -"
                )
            }
            Self::TableAbi { table: (a, b), info: (c, d) } => {
                write!(f, "its table says contract {a}.{b}, its ABI info {c}.{d}")
            }
            Self::TableName { table, info } => {
                write!(f, "its table says it is {table:?}, its ABI info {info:?}")
            }
            Self::TableDeviceType { table, info } => {
                write!(f, "its table says device type {table}, its ABI info {info}")
            }
            Self::TableFunction { name } => {
                write!(f, "its table lacks the required function {name}")
            }
        }
    }
}

impl std::error::Error for Mismatch {}

fn order(code: u8) -> String {
    match code {
        endianness::LITTLE => "little-endian".into(),
        endianness::BIG => "big-endian".into(),
        other => format!("of byte order {other}"),
    }
}

/// Returns the names of the bits of [`BackendAbiInfo::sanitizers`].
pub fn sanitizers(bits: u32) -> String {
    let names = [
        (sanitizer::ADDRESS, "AddressSanitizer"),
        (sanitizer::THREAD, "ThreadSanitizer"),
        (sanitizer::MEMORY, "MemorySanitizer"),
        (sanitizer::OTHER, "another sanitizer"),
    ];
    let has: Vec<_> = names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, n)| *n).collect();
    match (has.is_empty(), bits) {
        (true, 0) => "no sanitizer".into(),
        (true, _) => format!("an unknown sanitizer (bits {bits:#x})"),
        (false, _) => has.join(" and "),
    }
}

/// Returns true for a valid name of a backend: not empty, of lower-case letters, digits and `_`.
pub fn valid_name(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// Returns true for a valid variant of a backend: of letters, digits, `_`, `.` and `-`. It may be
/// empty.
pub fn valid_variant(variant: &str) -> bool {
    variant.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

/// Returns true if two versions of the contract are compatible.
pub const fn abi_agrees(theirs: (u16, u16), ours: (u16, u16)) -> bool {
    theirs.0 == ours.0 && (ours.0 != 0 || theirs.1 == ours.1)
}

/// Checks the ABI info of a backend against this process.
///
/// # Errors
/// The first rule that is broken; see [`check_for`].
pub fn check(info: &BackendAbiInfo) -> Result<(), Mismatch> {
    check_for(&Host::here(), info)
}

/// Checks the ABI info of a backend against `host`. If a rule finds fields to be unreadable, no
/// later rule reads them.
///
/// # Errors
/// The first rule that is broken.
pub fn check_for(host: &Host, info: &BackendAbiInfo) -> Result<(), Mismatch> {
    // Check the versions before the length: another major version may have another layout, and the
    // version is what tells the user what to do.
    let theirs = (info.abi_major, info.abi_minor);
    if info.size < 8 {
        return Err(Mismatch::InfoSize { theirs: info.size, least: INFO_SIZE_MIN });
    }
    if !abi_agrees(theirs, host.abi) {
        return Err(Mismatch::Abi { theirs, ours: host.abi });
    }
    if info.size < INFO_SIZE_MIN {
        return Err(Mismatch::InfoSize { theirs: info.size, least: INFO_SIZE_MIN });
    }
    if info.dlpack_major != host.dlpack.0 {
        let theirs = (info.dlpack_major, info.dlpack_minor);
        return Err(Mismatch::Dlpack { theirs, ours: host.dlpack });
    }
    if info.pointer_bits != host.pointer_bits {
        return Err(Mismatch::PointerBits { theirs: info.pointer_bits, ours: host.pointer_bits });
    }
    if info.endianness != host.endianness {
        return Err(Mismatch::Endianness { theirs: info.endianness, ours: host.endianness });
    }
    if info.table_size < TABLE_SIZE_MIN {
        return Err(Mismatch::TableSize { theirs: info.table_size, least: TABLE_SIZE_MIN });
    }
    if info.sanitizers & !host.sanitizers != 0 {
        return Err(Mismatch::Sanitizer { theirs: info.sanitizers, ours: host.sanitizers });
    }
    if info.device_type <= 0 {
        return Err(Mismatch::DeviceType { theirs: info.device_type });
    }
    let name = inline_str(&info.name);
    if !valid_name(&name) {
        return Err(Mismatch::Name { theirs: name });
    }
    let variant = inline_str(&info.variant);
    if !valid_variant(&variant) {
        return Err(Mismatch::Variant { theirs: variant });
    }
    Ok(())
}

/// Checks that the table agrees with the info, and has the functions that every backend needs.
/// `table.size` must have the value that the backend set.
///
/// # Safety
/// `table.name` is NULL or NUL-terminated.
///
/// # Errors
/// The first rule that is broken.
pub unsafe fn check_table(info: &BackendAbiInfo, table: &BackendTable) -> Result<(), Mismatch> {
    if table.size < TABLE_SIZE_MIN {
        return Err(Mismatch::TableSize { theirs: table.size, least: TABLE_SIZE_MIN });
    }
    let (filled, promised) = ((table.abi_major, table.abi_minor), (info.abi_major, info.abi_minor));
    if filled != promised {
        return Err(Mismatch::TableAbi { table: filled, info: promised });
    }
    // SAFETY: by this function's contract.
    if !unsafe { is_text_of(table.name, &info.name) } {
        // SAFETY: by this function's contract.
        let table = unsafe { lossy(table.name) };
        return Err(Mismatch::TableName { table, info: inline_str(&info.name) });
    }
    if table.device_type != info.device_type {
        return Err(Mismatch::TableDeviceType { table: table.device_type, info: info.device_type });
    }
    // A backend of device type CPU may leave memory, streams and events to the host.
    let overlay = info.device_type == ultramarine_dlpack::device_type::CPU;
    for (name, there, needed) in required(table) {
        if !there && (needed == Needed::Always || !overlay) {
            return Err(Mismatch::TableFunction { name });
        }
    }
    Ok(())
}

/// The condition under which a function is required.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    Always,
    UnlessOverlay,
}

/// Lists the functions that a backend may be required to have: the name of each, if it is there,
/// and when it is required.
fn required(t: &BackendTable) -> [(&'static str, bool, Needed); 19] {
    macro_rules! rows {
        ($($when:ident: $($name:ident)*;)*) => {
            [$($((stringify!($name), t.$name.is_some(), Needed::$when),)*)*]
        };
    }
    rows! {
        Always: device_count device_info device_open prepare plan_release submit;
        UnlessOverlay: buffer_alloc buffer_free copy_to_device copy_to_host
            stream_create stream_destroy stream_synchronize
            event_create event_record event_wait_stream event_wait_host event_query event_destroy;
    }
}

/// # Safety
/// `c` is NULL or NUL-terminated.
unsafe fn lossy(c: *const c_char) -> String {
    if c.is_null() {
        return String::new();
    }
    // SAFETY: by this function's contract.
    unsafe { core::ffi::CStr::from_ptr(c) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inline_text;

    fn good() -> BackendAbiInfo {
        let mut info = BackendAbiInfo::here("some_name2", 4);
        info.variant = inline_text("v1.2-beta_3");
        info
    }

    /// Breaks one field of a valid info. Returns the reason for the refusal.
    fn broken(change: impl FnOnce(&mut BackendAbiInfo)) -> Option<Mismatch> {
        let mut info = good();
        change(&mut info);
        check(&info).err()
    }

    #[test]
    fn what_this_build_says_of_itself_is_taken() {
        assert_eq!(check(&good()), Ok(()));
        assert_eq!(broken(|i| i.variant = [0; 32]), None);
        assert_eq!(broken(|i| i.size += 64), None, "a longer info of a later version");
        assert_eq!(broken(|i| i.table_size += 64), None, "a longer table");
        assert_eq!(broken(|i| i.dlpack_minor += 1), None);
    }

    #[test]
    fn each_rule_names_both_sides() {
        let ours = Host::here();
        let (major, minor) = ours.abi;
        assert_eq!(
            broken(|i| i.abi_major = 7),
            Some(Mismatch::Abi { theirs: (7, minor), ours: ours.abi })
        );
        assert_eq!(
            broken(|i| i.abi_minor += 1),
            Some(Mismatch::Abi { theirs: (major, minor + 1), ours: ours.abi })
        );
        assert_eq!(
            broken(|i| i.dlpack_major = 0),
            Some(Mismatch::Dlpack { theirs: (0, DLPACK.1), ours: DLPACK })
        );
        assert_eq!(
            broken(|i| i.pointer_bits = 16),
            Some(Mismatch::PointerBits { theirs: 16, ours: usize::BITS as u8 })
        );
        assert_eq!(
            broken(|i| i.endianness = 3),
            Some(Mismatch::Endianness { theirs: 3, ours: ours.endianness })
        );
        assert_eq!(
            broken(|i| i.table_size = TABLE_SIZE_MIN - 8),
            Some(Mismatch::TableSize { theirs: TABLE_SIZE_MIN - 8, least: TABLE_SIZE_MIN })
        );
        assert_eq!(
            broken(|i| i.size = 100),
            Some(Mismatch::InfoSize { theirs: 100, least: INFO_SIZE_MIN })
        );
        assert_eq!(
            broken(|i| i.size = 0),
            Some(Mismatch::InfoSize { theirs: 0, least: INFO_SIZE_MIN })
        );
        assert_eq!(
            broken(|i| i.sanitizers = sanitizer::THREAD),
            Some(Mismatch::Sanitizer { theirs: 2, ours: 0 })
        );
        assert_eq!(broken(|i| i.device_type = 0), Some(Mismatch::DeviceType { theirs: 0 }));
        let text = broken(|i| i.abi_major = 7).map(|m| m.to_string()).unwrap_or_default();
        assert!(text.contains(&format!("7.{minor}")) && text.contains(&format!("{major}.{minor}")));
    }

    #[test]
    fn names_have_only_their_characters() {
        for bad in ["", "Upper", "a-b", "a.b", "ü", "a b", "../x"] {
            let found = broken(|i| i.name = inline_text(bad));
            assert_eq!(found, Some(Mismatch::Name { theirs: bad.into() }));
        }
        for bad in ["a/b", "x y", "ß", "a\\b"] {
            let found = broken(|i| i.variant = inline_text(bad));
            assert_eq!(found, Some(Mismatch::Variant { theirs: bad.into() }));
        }
        assert_eq!(broken(|i| i.name = inline_text(&"n".repeat(32))), None, "fills its field");
    }

    #[test]
    fn a_sanitizer_of_the_process_may_be_in_the_plugin() {
        let mut info = good();
        info.sanitizers = sanitizer::ADDRESS;
        let mut host = Host::here();
        assert!(check_for(&host, &info).is_err());
        host.sanitizers = sanitizer::ADDRESS;
        assert_eq!(check_for(&host, &info), Ok(()));
    }

    #[test]
    fn minors_go_together_once_the_major_is_not_zero() {
        assert!(abi_agrees((1, 0), (1, 5)) && abi_agrees((1, 9), (1, 5)));
        assert!(!abi_agrees((2, 5), (1, 5)) && !abi_agrees((0, 1), (0, 2)));
    }
}
