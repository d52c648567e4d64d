//! Validation of an ELF library's program headers before the system maps them. The system's loader
//! trusts the headers: a segment at a wrong address or without a needed permission would kill the
//! process.

use object::elf;
use object::read::ReadRef;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};

/// The end of a process's address space.
const LAST_ADDRESS: u64 = 1 << 47;

/// Executable segments need not be readable.
const READABLE: u32 = elf::PF_R.0 | elf::PF_X.0;

/// A range of memory and the part of the file that fills it.
struct Segment {
    kind: elf::ProgramType,
    flags: u32,
    offset: u64,
    address: u64,
    in_file: u64,
    in_memory: u64,
    align: u64,
}

impl Segment {
    fn of<P: ProgramHeader>(header: &P, endian: P::Endian) -> Segment {
        Segment {
            kind: header.p_type(endian),
            flags: header.p_flags(endian).0,
            offset: header.p_offset(endian).into(),
            address: header.p_vaddr(endian).into(),
            in_file: header.p_filesz(endian).into(),
            in_memory: header.p_memsz(endian).into(),
            align: header.p_align(endian).into(),
        }
    }

    fn end(&self) -> u64 {
        self.address.saturating_add(self.in_memory)
    }

    /// Returns true if a range of memory lies in this segment, at the same distance from its
    /// beginning as in the file.
    fn holds(&self, offset: u64, address: u64, in_file: u64, in_memory: u64) -> bool {
        let within = |begin: u64, size: u64, from: u64, length: u64| {
            begin >= from && begin.saturating_add(size) <= from.saturating_add(length)
        };
        // Zero-initialised memory has no place in the file.
        let filled = in_file == 0
            || within(offset, in_file, self.offset, self.in_file)
                && offset - self.offset == address.wrapping_sub(self.address);
        filled && within(address, in_memory, self.address, self.in_memory)
    }
}

/// Validates the program headers of a library: their consistency, and their agreement with the
/// sections, if there are any.
pub(super) fn validate<'a, H: FileHeader, R: ReadRef<'a>>(
    header: &H,
    endian: H::Endian,
    data: R,
) -> Result<(), String> {
    let segments = header.program_headers(endian, data).map_err(|e| e.to_string())?;
    let all: Vec<Segment> = segments.iter().map(|s| Segment::of(s, endian)).collect();
    let loaded: Vec<&Segment> = all.iter().filter(|s| s.kind == elf::PT_LOAD).collect();
    if loaded.is_empty() {
        return Err("it has no segment to load".to_owned());
    }
    for (i, segment) in loaded.iter().enumerate() {
        let at = format!("its segment at {:#x}", segment.address);
        let align = segment.align.max(1);
        if !align.is_power_of_two()
            || segment.address.wrapping_sub(segment.offset) & (align - 1) != 0
        {
            return Err(format!("{at} is not aligned to {:#x}", segment.align));
        }
        if segment.in_file > segment.in_memory || segment.end() > LAST_ADDRESS {
            return Err(format!(
                "{at} has {:#x} bytes in memory, {:#x} in the file",
                segment.in_memory, segment.in_file
            ));
        }
        if segment.flags & READABLE == 0 {
            return Err(format!("{at} is not readable"));
        }
        if loaded.get(i + 1).is_some_and(|next| next.address < segment.end()) {
            return Err(format!("{at} overlaps the next one"));
        }
    }
    let parts = [elf::PT_DYNAMIC, elf::PT_TLS, elf::PT_GNU_EH_FRAME, elf::PT_GNU_RELRO];
    for part in all.iter().filter(|s| parts.contains(&s.kind)) {
        // For memory that is made read-only after relocation, the system uses only the address
        // range.
        let constant = part.kind == elf::PT_GNU_RELRO;
        let of_file = if constant { 0 } else { part.in_file.min(part.in_memory) };
        // Zero-initialised thread-local memory lies elsewhere. Memory that becomes read-only ends
        // with a page. A segment may end where the zero-initialised part begins.
        let around = loaded.iter().any(|s| {
            let end = s.end().checked_next_multiple_of(s.align.max(1)).unwrap_or(u64::MAX);
            let fits = part.kind == elf::PT_TLS || part.end() <= end;
            fits && s.holds(part.offset, part.address, of_file, of_file)
        });
        let of_zeros = part.kind == elf::PT_TLS && of_file == 0;
        if !of_zeros && !around {
            return Err(format!("its part at {:#x} lies in no segment", part.address));
        }
    }
    sections(header, endian, data, &loaded)
}

/// Validates that all sections that belong into memory are mapped, with the permissions that they
/// need.
fn sections<'a, H: FileHeader, R: ReadRef<'a>>(
    header: &H,
    endian: H::Endian,
    data: R,
    loaded: &[&Segment],
) -> Result<(), String> {
    let table = header.section_headers(endian, data).map_err(|e| e.to_string())?;
    for section in table {
        let flags = section.sh_flags(endian).0;
        let has = |flag: elf::SectionFlags| flags & flag.0 != 0;
        let size: u64 = section.sh_size(endian).into();
        let zeros = section.sh_type(endian) == elf::SHT_NOBITS;
        if !has(elf::SHF_ALLOC) || size == 0 || (zeros && has(elf::SHF_TLS)) {
            continue;
        }
        let (offset, address) = (section.sh_offset(endian).into(), section.sh_addr(endian).into());
        let in_file = if zeros { 0 } else { size };
        let right = |flag, right: elf::ProgramFlags| if has(flag) { right.0 } else { 0 };
        let rights = right(elf::SHF_WRITE, elf::PF_W) | right(elf::SHF_EXECINSTR, elf::PF_X);
        let Some(segment) = loaded.iter().find(|s| s.holds(offset, address, in_file, size)) else {
            return Err(format!("its section at {address:#x} lies in no segment"));
        };
        if segment.flags & rights != rights {
            return Err(format!(
                "the segment of its section at {address:#x} lacks the rights that it needs"
            ));
        }
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
mod tests {
    use super::*;
    use object::Endianness;

    /// Returns this program, which has the same headers as a library, and the location of its
    /// program headers.
    fn program() -> (Vec<u8>, usize, usize) {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let number = |at: usize, n: usize| {
            bytes[at..at + n].iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte))
        };
        let (table, count) = (number(32, 8), number(56, 2));
        (bytes, table, count)
    }

    fn judged(bytes: &[u8]) -> Result<(), String> {
        let header = elf::FileHeader64::<Endianness>::parse(bytes).unwrap();
        validate(header, Endianness::Little, bytes)
    }

    /// Changes a field of eight bytes in each segment of a kind, one segment after the other.
    /// Returns true if all changed programs are refused.
    fn refused(kind: u32, field: usize, number: u64) -> bool {
        let (bytes, table, count) = program();
        let headers = (0..count).map(|i| table + 56 * i);
        let of_kind = |at: &usize| bytes[*at..at + 4] == kind.to_le_bytes();
        let mut found = 0;
        let all = headers.filter(of_kind).all(|at| {
            let mut changed = bytes.clone();
            changed[at + field..at + field + 8].copy_from_slice(&number.to_le_bytes());
            found += 1;
            judged(&changed).is_err()
        });
        all && found > 0
    }

    #[test]
    fn a_sound_program_is_taken() {
        assert_eq!(judged(&program().0), Ok(()));
    }

    #[test]
    fn a_segment_may_end_where_constant_memory_begins() {
        let (mut bytes, table, count) = program();
        let word = |bytes: &[u8], at: usize| {
            u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
        };
        let headers: Vec<usize> = (0..count).map(|i| table + 56 * i).collect();
        let of = |bytes: &[u8], kind: elf::ProgramType| -> Vec<usize> {
            let is = |at: &&usize| bytes[**at..**at + 4] == kind.0.to_le_bytes();
            headers.iter().filter(is).copied().collect()
        };
        let constant = word(&bytes, of(&bytes, elf::PT_GNU_RELRO)[0] + 16);
        let before = of(&bytes, elf::PT_LOAD);
        let before = before.into_iter().rfind(|at| word(&bytes, at + 16) < constant).unwrap();
        let size = constant - word(&bytes, before + 16);
        bytes[before + 40..before + 48].copy_from_slice(&size.to_le_bytes());
        assert_eq!(judged(&bytes), Ok(()));
    }

    #[test]
    fn headers_that_lie_are_refused() {
        let (load, dynamic, constant) = (elf::PT_LOAD.0, elf::PT_DYNAMIC.0, elf::PT_GNU_RELRO.0);
        // The fields with the address, the sizes in the file and in memory, and the alignment.
        for (field, number) in [(16, 1 << 46 | 1), (32, 0), (40, 0), (40, 1 << 47), (48, 3)] {
            assert!(refused(load, field, number), "{field} {number:#x}");
        }
        assert!(refused(dynamic, 16, 0) && refused(dynamic, 16, 1 << 40));
        assert!(refused(constant, 40, 1 << 30) && refused(constant, 16, 1 << 30));
        // A segment without permissions, and a segment of no kind.
        assert!(refused(load, 0, u64::from(load)) && refused(load, 0, 0));
    }
}
