//! Validation of a plugin's headers before it is opened as a library: its machine, its length, and
//! the note with its ABI info. Only headers and notes are read.

use super::reason::{Code, Reason};
use super::segments;
use object::elf::{self, Machine};
use object::read::elf::{FileHeader, ProgramHeader};
use object::read::{Object, ObjectSection, ReadCache, ReadCacheOps, ReadRef};
use object::{BinaryFormat, Endianness, FileKind};
use std::fs::File;
use ultramarine_abi::{BackendAbiInfo, note};

/// The machine of this process.
const MACHINE: Option<Machine> = if cfg!(target_arch = "x86_64") {
    Some(elf::EM_X86_64)
} else if cfg!(target_arch = "aarch64") {
    Some(elf::EM_AARCH64)
} else if cfg!(target_arch = "riscv64") {
    Some(elf::EM_RISCV)
} else if cfg!(target_arch = "powerpc64") {
    Some(elf::EM_PPC64)
} else if cfg!(target_arch = "s390x") {
    Some(elf::EM_S390)
} else {
    None
};

/// Names of machines, for messages.
const MACHINES: &[(Machine, &str)] = &[
    (elf::EM_X86_64, "x86_64"),
    (elf::EM_AARCH64, "aarch64"),
    (elf::EM_386, "x86"),
    (elf::EM_ARM, "arm"),
    (elf::EM_RISCV, "riscv"),
    (elf::EM_PPC64, "powerpc64"),
    (elf::EM_S390, "s390x"),
];

/// The format of this system's libraries.
const FORMAT: BinaryFormat = if cfg!(windows) {
    BinaryFormat::Pe
} else if cfg!(target_vendor = "apple") {
    BinaryFormat::MachO
} else {
    BinaryFormat::Elf
};

/// Returns the ABI info in a library's note, if there is one.
pub(super) fn read(file: &File) -> Result<Option<BackendAbiInfo>, Reason> {
    read_from(&ReadCache::new(file))
}

fn read_from<R: ReadCacheOps>(cache: &ReadCache<R>) -> Result<Option<BackendAbiInfo>, Reason> {
    let kind = match FileKind::parse(cache) {
        Ok(kind) => kind,
        Err(_) => return Err(Reason::new(Code::NotALibrary, unknown_kind(cache))),
    };
    let foreign = || {
        let text = format!("it is a {kind:?} file, and libraries of this system are {FORMAT:?}");
        Err(Reason::new(Code::NotALibrary, text))
    };
    match (kind, FORMAT) {
        (FileKind::Elf64, BinaryFormat::Elf) => of_elf::<elf::FileHeader64<Endianness>, _>(cache),
        (FileKind::Elf32, BinaryFormat::Elf) => of_elf::<elf::FileHeader32<Endianness>, _>(cache),
        (FileKind::MachO64, BinaryFormat::MachO) => of_section(cache, "__ultramarine"),
        (FileKind::Pe64, BinaryFormat::Pe) => of_section(cache, note::PE_SECTION),
        // A file for several processors. The system picks the part for this processor, and no note
        // is read.
        (FileKind::MachOFat32 | FileKind::MachOFat64, BinaryFormat::MachO) => Ok(None),
        _ => foreign(),
    }
}

fn unknown_kind<R: ReadCacheOps>(cache: &ReadCache<R>) -> String {
    match cache.len() {
        Ok(0) => "it is empty".to_owned(),
        Ok(n) if is_text(cache, n) => {
            format!("it is not a shared library, but a text file of {n} bytes")
        }
        Ok(n) => format!("it is not a shared library ({n} bytes, unrecognised header)"),
        Err(()) => "it cannot be read".to_owned(),
    }
}

/// Returns true if a file begins with text, like source code or a script.
fn is_text<R: ReadCacheOps>(cache: &ReadCache<R>, length: u64) -> bool {
    let start = cache.read_bytes_at(0, length.min(256)).unwrap_or_default();
    let plain = |b: &u8| matches!(b, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..);
    !start.is_empty() && start.iter().all(plain)
}

fn cut(what: &str) -> Reason {
    Reason::new(Code::CutShort, format!("it is truncated or damaged: {what}"))
}

fn of_elf<H, R>(cache: &ReadCache<R>) -> Result<Option<BackendAbiInfo>, Reason>
where
    H: FileHeader<Endian = Endianness>,
    R: ReadCacheOps,
{
    let length = cache.len().unwrap_or(0);
    let header = H::parse(cache).map_err(|e| cut(&format!("{e}, in {length} bytes")))?;
    let endian = header.endian().map_err(|e| cut(&e.to_string()))?;
    machine(header.e_machine(endian), header.is_class_64(), header.is_big_endian())?;
    if header.e_type(endian) != elf::ET_DYN {
        let text = "it is an ELF object or program, not a shared library";
        return Err(Reason::new(Code::NotALibrary, text).with_remedy("link it with cc -shared"));
    }
    let segments = header.program_headers(endian, cache).map_err(|e| cut(&e.to_string()))?;
    for segment in segments.iter().filter(|s| s.p_type(endian) == elf::PT_LOAD) {
        // The system maps the ranges in the headers. Access to a mapped page after the end of the
        // file would kill the process.
        let (start, size): (u64, u64) =
            (segment.p_offset(endian).into(), segment.p_filesz(endian).into());
        let end = start.saturating_add(size);
        if end > length {
            return Err(cut(&format!(
                "its headers refer to byte {end}, and it has {length} bytes"
            )));
        }
    }
    segments::validate(header, endian, cache).map_err(|e| cut(&e))?;
    let damaged = |e: object::read::Error| Reason::new(Code::NoteDamaged, format!("a note: {e}"));
    let mut found = None;
    for segment in segments {
        let Some(mut notes) = segment.notes(endian, cache).map_err(damaged)? else { continue };
        while let Some(note) = notes.next().map_err(damaged)? {
            if note.name() != owner() || note.n_type(endian).0 != note::TYPE {
                continue;
            }
            // Linkers may put one note into two overlapping segments, so accept equal notes.
            let info = decode(note.desc())?;
            if found.is_some_and(|f| f != info) {
                return Err(Reason::new(Code::NoteDamaged, "it has two notes that differ"));
            }
            found = Some(info);
        }
    }
    Ok(found)
}

fn owner() -> &'static [u8] {
    note::OWNER.strip_suffix(b"\0").unwrap_or(&note::OWNER)
}

fn machine(theirs: Machine, is_64: bool, big: bool) -> Result<(), Reason> {
    let bits = |is_64| if is_64 { "64" } else { "32" };
    let order = |big| if big { "big" } else { "little" };
    let ours_64 = cfg!(target_pointer_width = "64");
    let ours_big = cfg!(target_endian = "big");
    if MACHINE.is_none_or(|m| m == theirs) && is_64 == ours_64 && big == ours_big {
        return Ok(());
    }
    let name = MACHINES
        .iter()
        .find(|(m, _)| *m == theirs)
        .map_or_else(|| format!("machine type {}", theirs.0), |(_, name)| (*name).to_owned());
    let text = format!(
        "it is built for {name}, {}-bit, {}-endian, and this process is {}, {}-bit, {}-endian",
        bits(is_64),
        order(big),
        std::env::consts::ARCH,
        bits(ours_64),
        order(ours_big)
    );
    Err(Reason::new(Code::Machine, text))
}

/// On the other systems, a section holds the bare struct.
fn of_section<R: ReadCacheOps>(
    cache: &ReadCache<R>,
    name: &str,
) -> Result<Option<BackendAbiInfo>, Reason> {
    let file = object::File::parse(cache).map_err(|e| cut(&e.to_string()))?;
    let architecture = match file.architecture() {
        object::Architecture::X86_64 => "x86_64",
        object::Architecture::Aarch64 => "aarch64",
        _ => "another processor",
    };
    if architecture != std::env::consts::ARCH {
        let text = format!(
            "it is built for {architecture}, and this process is {}",
            std::env::consts::ARCH
        );
        return Err(Reason::new(Code::Machine, text));
    }
    match file.section_by_name(name) {
        Some(section) => decode(section.data().map_err(|e| cut(&e.to_string()))?).map(Some),
        None => Ok(None),
    }
}

/// Decodes the struct in a note: copies as many bytes as the struct says it has, and leaves the
/// rest zero.
fn decode(bytes: &[u8]) -> Result<BackendAbiInfo, Reason> {
    let damaged = |text: String| Reason::new(Code::NoteDamaged, text);
    let size = match bytes.first_chunk::<4>() {
        Some(size) => u32::from_ne_bytes(*size) as usize,
        None => return Err(damaged(format!("its note holds {} bytes", bytes.len()))),
    };
    if size > bytes.len() || size < 4 {
        let text = format!("its note claims {size} bytes and holds {}", bytes.len());
        return Err(damaged(text));
    }
    // SAFETY: all-zero is a valid BackendAbiInfo. So is any other pattern, because it has integers
    // only.
    let mut info: BackendAbiInfo = unsafe { std::mem::zeroed() };
    let n = size.min(size_of::<BackendAbiInfo>());
    // SAFETY: both are valid for n bytes, and any bytes are a valid struct.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut info).cast::<u8>(), n) };
    Ok(info)
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
mod tests {
    use super::*;
    use std::io::Cursor;
    use ultramarine_abi::ElfNote;

    /// A minimal library with a note: header, two segments, note.
    fn library() -> (Vec<u8>, BackendAbiInfo) {
        let info = BackendAbiInfo::here("tiny", 2);
        let note = ElfNote::new(info);
        // SAFETY: a struct of integers, read as bytes.
        let note = unsafe {
            std::slice::from_raw_parts((&raw const note).cast::<u8>(), size_of::<ElfNote>())
        };
        let start = 64 + 2 * 56u64;
        let length = start + note.len() as u64;
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(16, 0);
        bytes.extend(3u16.to_le_bytes());
        bytes.extend(MACHINE.map_or(0, |m| m.0).to_le_bytes());
        bytes.extend(1u32.to_le_bytes());
        for wide in [0u64, 64, 0] {
            bytes.extend(wide.to_le_bytes());
        }
        bytes.extend(0u32.to_le_bytes());
        for half in [64u16, 56, 2, 64, 0, 0] {
            bytes.extend(half.to_le_bytes());
        }
        for (kind, from, size) in [(1u32, 0, length), (4, start, note.len() as u64)] {
            bytes.extend(kind.to_le_bytes());
            bytes.extend(4u32.to_le_bytes());
            for wide in [from, from, from, size, size, 4] {
                bytes.extend(wide.to_le_bytes());
            }
        }
        bytes.extend(note);
        (bytes, info)
    }

    fn read_bytes(bytes: &[u8]) -> Result<Option<BackendAbiInfo>, Reason> {
        read_from(&ReadCache::new(Cursor::new(bytes)))
    }

    #[test]
    fn a_note_is_read_as_it_was_written() {
        let (bytes, info) = library();
        assert_eq!(read_bytes(&bytes), Ok(Some(info)));
    }

    #[test]
    fn every_cut_is_seen() {
        let (bytes, _) = library();
        for length in 0..bytes.len() {
            let code = read_bytes(&bytes[..length]).map_err(|r| r.code);
            let expected = if length < 16 { Code::NotALibrary } else { Code::CutShort };
            assert_eq!(code, Err(expected), "{length} bytes of {}", bytes.len());
        }
    }

    #[test]
    fn no_byte_makes_it_panic() {
        let (bytes, info) = library();
        let mut survived = 0;
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff, bytes[at] ^ 4] {
                let mut changed = bytes.clone();
                changed[at] = value;
                survived += usize::from(read_bytes(&changed) == Ok(Some(info)));
            }
        }
        // Changes of many bytes have no effect here, but there must be bytes whose changes are
        // detected.
        assert!(survived > 0 && survived < 5 * bytes.len());
    }
}
