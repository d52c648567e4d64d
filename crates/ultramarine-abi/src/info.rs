//! Properties of a backend before it is initialised: its ABI info, also as a note in the file, and
//! its score.

use crate::{ABI_MAJOR, ABI_MINOR, BackendTable, Status};
use core::ffi::{CStr, c_char};

/// Names of a backend's entry points.
pub mod symbol {
    use core::ffi::CStr;
    /// [`super::BackendAbiInfoFn`]; required.
    pub const ABI_INFO: &CStr = c"ultramarine_backend_abi_info";
    /// [`super::BackendScoreFn`]; optional.
    pub const SCORE: &CStr = c"ultramarine_backend_score";
    /// [`crate::BackendInit`]; required.
    pub const INIT: &CStr = c"ultramarine_backend_init";
}

/// The note in a file that holds a [`BackendAbiInfo`]. The host reads it without running any code
/// of the backend.
pub mod note {
    /// Section of the note in an ELF file. Its type is `SHT_NOTE`, so it is in a
    /// `PT_NOTE` segment, is kept by `--gc-sections` and survives stripping.
    pub const ELF_SECTION: &str = ".note.ultramarine";
    /// Owner name of the note, NUL included.
    pub const OWNER: [u8; 12] = *b"Ultramarine\0";
    /// Type of the note.
    pub const TYPE: u32 = 1;
    /// Segment and section in a Mach-O file; it holds the bare struct.
    pub const MACHO_SECTION: &str = "__TEXT,__ultramarine";
    /// Section in a PE file (eight characters at most); it holds the bare struct.
    pub const PE_SECTION: &str = ".umnote";
}

/// Bits of [`BackendAbiInfo::sanitizers`]. A sanitizer must be in all of the process or in none of
/// it.
pub mod sanitizer {
    /// AddressSanitizer.
    pub const ADDRESS: u32 = 1;
    /// ThreadSanitizer.
    pub const THREAD: u32 = 2;
    /// MemorySanitizer.
    pub const MEMORY: u32 = 4;
    /// Another instrumentation that must be the same in the whole process.
    pub const OTHER: u32 = 8;
}

/// Values of [`BackendAbiInfo::endianness`].
pub mod endianness {
    /// Least significant byte first.
    pub const LITTLE: u8 = 1;
    /// Most significant byte first.
    pub const BIG: u8 = 2;
}

/// Score of a backend without a score function.
pub const DEFAULT_SCORE: u32 = 1;
/// Largest valid score.
pub const MAX_SCORE: u32 = 10_000;
/// The smallest valid size of a function table: a shorter one is refused. From version 1.0 on, it
/// is the size of version 1.0's table; until then, it is the size of the current table.
pub const TABLE_SIZE_MIN: u32 = size_of::<BackendTable>() as u32;

/// Properties of a backend's binary, known before any of its code runs. Texts are inline, UTF-8,
/// padded with NULs; a text that fills its field has no NUL.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendAbiInfo {
    /// `size_of::<BackendAbiInfo>()` of the writer.
    pub size: u32,
    /// [`ABI_MAJOR`] that the backend was built for.
    pub abi_major: u16,
    /// [`ABI_MINOR`] that the backend was built for.
    pub abi_minor: u16,
    /// Major version of DLPack whose structs it uses.
    pub dlpack_major: u16,
    /// Minor version of DLPack whose structs it uses.
    pub dlpack_minor: u16,
    /// Size of the [`BackendTable`] that the backend fills.
    pub table_size: u32,
    /// Width of a pointer in bits.
    pub pointer_bits: u8,
    /// One of [`endianness`].
    pub endianness: u8,
    /// Reserved, zero.
    pub reserved: u16,
    /// DLPack device type of all its devices. A backend of the CPU type overlays kernels on cpu:0.
    pub device_type: i32,
    /// Bits of [`sanitizer`] that the binary was built with.
    pub sanitizers: u32,
    /// Reserved, zero.
    pub flags: u32,
    /// The name in the file's name: lower-case letters, digits and `_`.
    pub name: [c_char; 32],
    /// The variant in the file's name, or empty: letters, digits, `_`, `.` and `-`.
    pub variant: [c_char; 32],
    /// The backend's own version.
    pub version: [c_char; 32],
    /// Target triple.
    pub target: [c_char; 64],
    /// Compiler and its version.
    pub compiler: [c_char; 64],
    /// CPU features that its code needs, separated by spaces: names as compilers
    /// spell them (`avx2`, `avx512f`, `fma` ...) or a level (`x86-64-v3`).
    pub cpu_features: [c_char; 256],
}

/// Returns a text as an inline field: NUL-padded, and cut where the field ends.
pub const fn inline_text<const N: usize>(text: &str) -> [c_char; N] {
    let mut out = [0; N];
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < N && i < bytes.len() {
        out[i] = bytes[i] as c_char;
        i += 1;
    }
    out
}

/// Returns an inline field as text, up to its first NUL. Invalid UTF-8 is replaced.
pub fn inline_str(field: &[c_char]) -> String {
    let bytes: Vec<u8> = field.iter().map(|c| *c as u8).take_while(|b| *b != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sanitizers that this crate is compiled with. They apply to all crates that are compiled with it.
pub(crate) const SANITIZERS: u32 = match u32::from_str_radix(env!("ULTRAMARINE_ABI_SANITIZERS"), 10)
{
    Ok(bits) => bits,
    Err(_) => 0,
};

/// Version of DLPack whose structs this contract uses: major and minor.
pub const DLPACK: (u16, u16) =
    (ultramarine_dlpack::DLPACK_MAJOR as u16, ultramarine_dlpack::DLPACK_MINOR as u16);

impl BackendAbiInfo {
    /// Returns the properties of this build: of everything that is compiled together with this
    /// crate for this target. The caller gives the name (see [`BackendAbiInfo::name`]) and the
    /// DLPack device type. Variant, version and CPU features are empty.
    pub const fn here(name: &str, device_type: i32) -> Self {
        Self {
            size: size_of::<Self>() as u32,
            abi_major: ABI_MAJOR as u16,
            abi_minor: ABI_MINOR as u16,
            dlpack_major: DLPACK.0,
            dlpack_minor: DLPACK.1,
            table_size: size_of::<BackendTable>() as u32,
            pointer_bits: usize::BITS as u8,
            endianness: if cfg!(target_endian = "little") {
                endianness::LITTLE
            } else {
                endianness::BIG
            },
            reserved: 0,
            device_type,
            sanitizers: SANITIZERS,
            flags: 0,
            name: inline_text(name),
            variant: [0; 32],
            version: [0; 32],
            target: inline_text(env!("ULTRAMARINE_ABI_TARGET")),
            compiler: inline_text(env!("ULTRAMARINE_ABI_COMPILER")),
            cpu_features: [0; 256],
        }
    }
}

/// The ABI info as a note of an ELF file, in section [`note::ELF_SECTION`]. The loader reads it
/// before it opens the library.
#[repr(C, align(4))]
#[derive(Clone, Copy, Debug)]
pub struct ElfNote {
    /// Bytes of `owner`.
    pub name_size: u32,
    /// Bytes of `info`.
    pub description_size: u32,
    /// [`note::TYPE`].
    pub kind: u32,
    /// [`note::OWNER`].
    pub owner: [u8; 12],
    /// The description.
    pub info: BackendAbiInfo,
}

impl ElfNote {
    /// Makes the note of an ABI info.
    pub const fn new(info: BackendAbiInfo) -> Self {
        Self {
            name_size: note::OWNER.len() as u32,
            description_size: size_of::<BackendAbiInfo>() as u32,
            kind: note::TYPE,
            owner: note::OWNER,
            info,
        }
    }
}

/// Bits of [`DeviceIdentity::known`].
pub mod identity {
    /// [`DeviceIdentity::uuid`](super::DeviceIdentity::uuid) is filled in.
    pub const UUID: u32 = 1;
    /// The fields of the PCI address are filled in.
    pub const PCI: u32 = 2;
}

/// Identity of a physical device. If devices of two backends have the same UUID or PCI address,
/// they are the same device. The device then counts once, for the backend with the higher score.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceIdentity {
    /// `size_of::<DeviceIdentity>()` of the writer.
    pub size: u32,
    /// Bits of [`identity`].
    pub known: u32,
    /// UUID as the driver gives it.
    pub uuid: [u8; 16],
    /// PCI domain.
    pub pci_domain: u32,
    /// PCI bus.
    pub pci_bus: u32,
    /// PCI device.
    pub pci_device: u32,
    /// PCI function.
    pub pci_function: u32,
    /// Memory of the device in bytes; 0: unknown.
    pub memory: u64,
    /// Name for people, NUL-padded UTF-8.
    pub name: [c_char; 128],
}

/// Answer of [`symbol::SCORE`]: if the backend can run on this machine, and how well. The host sets
/// `size`, `device_capacity`, `device_stride` and `devices`; all other fields are zero.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BackendScore {
    /// `size_of::<BackendScore>()` of the host.
    pub size: u32,
    /// 0: the backend cannot run on this machine. 1 to [`MAX_SCORE`]: the variant with the highest
    /// score of a name is used, and devices are numbered in the order of falling scores.
    pub score: u32,
    /// Number of devices, which may exceed `device_capacity`. 0 with a score above 0 means that the
    /// devices were not counted; the host then learns their number after init.
    pub device_count: u32,
    /// Capacity of `devices`, in elements.
    pub device_capacity: u32,
    /// Bytes from one element of `devices` to the next.
    pub device_stride: u32,
    /// Reserved, zero.
    pub reserved: u32,
    /// The host's array for the devices' identities, each with its `size` set by the host.
    pub devices: *mut DeviceIdentity,
    /// Reason for a score of 0, as text for the user: NUL-padded UTF-8.
    pub reason: [c_char; 256],
}

/// Entry point [`symbol::ABI_INFO`]: fills the struct. The host has set `size`, and the backend
/// writes no more bytes than that.
pub type BackendAbiInfoFn = unsafe extern "C" fn(info: *mut BackendAbiInfo) -> Status;

/// Entry point [`symbol::SCORE`]: reports if the backend can run on this machine, and how well. It
/// must be cheap: it creates no driver context and no threads. A status other than OK counts as
/// score 0.
pub type BackendScoreFn = unsafe extern "C" fn(score: *mut BackendScore) -> Status;

/// Returns a copy of a struct that crossed the boundary: `min(size)` bytes of it, the rest zero.
/// None for NULL.
///
/// # Safety `source` is NULL or points at a struct that begins with its size in a `u32` and is
/// readable for that many bytes; all-zero bytes are a valid `T`.
pub unsafe fn read_sized<T: Copy>(source: *const T) -> Option<T> {
    if source.is_null() {
        return None;
    }
    // SAFETY: by this function's contract.
    unsafe {
        let said = source.cast::<u32>().read_unaligned() as usize;
        let mut out: T = core::mem::zeroed();
        let bytes = said.min(size_of::<T>());
        core::ptr::copy_nonoverlapping(source.cast::<u8>(), (&raw mut out).cast::<u8>(), bytes);
        Some(out)
    }
}

/// Returns true if all bytes of a struct beyond `T` are zero. Fields of a later version are then
/// unset, so an earlier reader may act on the rest.
///
/// # Safety
/// `source` is NULL or points at a struct that begins with its size in a `u32` and is
/// readable for that many bytes.
pub unsafe fn tail_is_zero<T>(source: *const T) -> bool {
    if source.is_null() {
        return true;
    }
    // SAFETY: by this function's contract.
    let said = unsafe { source.cast::<u32>().read_unaligned() } as usize;
    // SAFETY: `said` bytes are readable.
    (size_of::<T>()..said).all(|i| unsafe { *source.cast::<u8>().add(i) } == 0)
}

/// Writes a struct to the caller's memory. The first field there has the size of the memory, and no
/// more bytes than that are written. Afterwards the field has the number of written bytes. Returns
/// false for NULL.
///
/// # Safety `target` is NULL or points at a writable struct that begins with its size in a `u32`.
pub unsafe fn write_sized<T: Copy>(target: *mut T, value: &T) -> bool {
    if target.is_null() {
        return false;
    }
    // SAFETY: by this function's contract.
    unsafe {
        let room = target.cast::<u32>().read_unaligned() as usize;
        let bytes = room.min(size_of::<T>());
        core::ptr::copy_nonoverlapping((value as *const T).cast::<u8>(), target.cast(), bytes);
        if bytes >= size_of::<u32>() {
            target.cast::<u32>().write_unaligned(bytes as u32);
        }
    }
    true
}

/// Returns true if a C string equals `text`.
///
/// # Safety
/// `c` is NULL or NUL-terminated.
pub unsafe fn is_text(c: *const c_char, text: &CStr) -> bool {
    // SAFETY: by this function's contract.
    !c.is_null() && unsafe { CStr::from_ptr(c) } == text
}

/// Returns true if a C string equals the text of an inline field.
///
/// # Safety
/// `c` is NULL or NUL-terminated.
pub unsafe fn is_text_of(c: *const c_char, field: &[c_char]) -> bool {
    if c.is_null() {
        return false;
    }
    // SAFETY: by this function's contract.
    let text = unsafe { CStr::from_ptr(c) }.to_bytes();
    text.iter().copied().eq(field.iter().map(|c| *c as u8).take_while(|b| *b != 0))
}
