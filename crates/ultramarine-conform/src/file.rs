//! Static checks of the file, before any of its code runs.

use crate::parent::Findings;
use crate::plugin::entry_remedy;
use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSection, ObjectSymbol};
use serde_json::json;
use std::path::Path;
use ultramarine_abi::{BackendAbiInfo, BackendTable, DLPACK, inline_str, note, symbol};

type Elf<'a> = ElfFile64<'a, Endianness>;

/// A check's result.
type Checked = Result<(), String>;

/// Runs the static checks. Returns false if the file cannot be loaded.
pub fn check(path: &Path, findings: &mut Findings) -> bool {
    if !cfg!(target_os = "linux") {
        findings.add("file", "file/static checks", "skip", "static checks know ELF files only");
        return true;
    }
    let mut add = |name: &str, result: &Checked| {
        let (verdict, text) = match result {
            Ok(()) => ("pass", ""),
            Err(text) => ("fail", text.as_str()),
        };
        findings.add("file", &format!("file/{name}"), verdict, text);
    };
    let data = match std::fs::read(path) {
        Ok(data) => data,
        Err(e) => {
            add("readable", &Err(format!("{}: {e}", path.display())));
            return false;
        }
    };
    let file = match Elf::parse(&*data) {
        Ok(file) => file,
        Err(e) => {
            add("readable", &Err(unreadable(&data, &e.to_string())));
            return false;
        }
    };
    add("readable", &Ok(()));
    let machine = machine(&file);
    add("machine type", &machine);
    if machine.is_err() {
        return false;
    }
    // Without the entry point there is no note either. Report the mistake only once, and do not
    // load the file.
    let forgotten = !exported(&file).iter().any(|name| *name == symbol::ABI_INFO.to_string_lossy());
    let info = abi_note(&data);
    if !forgotten {
        add("note", &info.as_ref().map(|_| ()).map_err(Clone::clone));
    }
    if let Ok(info) = &info {
        add("versions in the note", &versions(info));
        add("file name", &file_name(path, info));
    }
    add("exported symbols", &exports(&file));
    add("no text relocations", &text_relocations(&file));
    add("no executable stack", &stack(&file));
    let needed = needed(&file);
    add("does not link the core", &links(&needed));
    findings.properties.push(("needed libraries".into(), json!(needed)));
    if let Ok(info) = &info {
        findings.properties.push((
            "note".into(),
            json!({"name": inline_str(&info.name), "variant": inline_str(&info.variant),
                "target": inline_str(&info.target), "cpu_features": inline_str(&info.cpu_features)}),
        ));
    }
    !forgotten
}

/// Returns the message for a file that is not a library of this system.
fn unreadable(data: &[u8], why: &str) -> String {
    let text = !data.is_empty() && std::str::from_utf8(data).is_ok_and(|t| !t.contains('\0'));
    let kind = match (data.len(), text) {
        (0, _) => "an empty file".to_owned(),
        (n, true) => format!("a text file of {n} bytes"),
        (n, false) => format!("{n} bytes, not a 64-bit ELF file ({why})"),
    };
    format!("{kind}, not a shared library: give the output of cc -shared -fPIC")
}

fn machine(file: &Elf<'_>) -> Checked {
    let header = file.elf_header();
    let endian = file.endian();
    let expected = if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 };
    let machine = header.e_machine(endian);
    ensure!(
        header.e_type(endian) == elf::ET_DYN,
        "an ELF object or program, not a shared library: link with cc -shared"
    );
    if machine == expected {
        Ok(())
    } else {
        Err(format!("for machine {}, this one is {}", number(machine), number(expected)))
    }
}

fn number(machine: elf::Machine) -> String {
    match machine {
        elf::EM_X86_64 => "x86-64".into(),
        elf::EM_AARCH64 => "aarch64".into(),
        other => other.0.to_string(),
    }
}

/// Finds the ABI info in the note, as a loader does: through the note segments.
pub fn abi_note(data: &[u8]) -> Result<BackendAbiInfo, String> {
    let file = Elf::parse(data).map_err(|e| e.to_string())?;
    let endian = file.endian();
    for segment in file.elf_program_headers() {
        let notes = segment.notes(endian, data).map_err(|e| e.to_string())?;
        let Some(mut notes) = notes else { continue };
        while let Some(found) = notes.next().map_err(|e| e.to_string())? {
            let owner = &note::OWNER[..note::OWNER.len() - 1];
            if found.name() != owner || found.n_type(endian).0 != note::TYPE {
                continue;
            }
            let said = found.desc().get(..4).ok_or("the note is empty")?;
            let said = u32::from_ne_bytes([said[0], said[1], said[2], said[3]]) as usize;
            if said > found.desc().len() {
                return Err(format!("the note has {} bytes and says {said}", found.desc().len()));
            }
            // SAFETY: all-zero bytes are an ABI info, which is plain integers; no more
            // is copied than both have.
            return Ok(unsafe {
                let mut info: BackendAbiInfo = std::mem::zeroed();
                let n = said.min(size_of::<BackendAbiInfo>());
                std::ptr::copy_nonoverlapping(
                    found.desc().as_ptr(),
                    (&raw mut info).cast::<u8>(),
                    n,
                );
                info
            });
        }
    }
    let section = file.section_by_name(note::ELF_SECTION).map(|s| s.size());
    Err(match section {
        Some(_) => format!("section {} is in no note segment", note::ELF_SECTION),
        None => "no note with the ABI info, although ultramarine_backend_abi_info is exported: either the section \
                 .note.ultramarine was removed from the file (by objcopy or strip -R; a plain strip keeps it), or the function is \
                 not UM_DEFINE_BACKEND's (in Rust: export_backend!'s), which makes both"
            .into(),
    })
}

fn versions(info: &BackendAbiInfo) -> Checked {
    let ours = (ultramarine_abi::ABI_MAJOR, ultramarine_abi::ABI_MINOR);
    let theirs = (u32::from(info.abi_major), u32::from(info.abi_minor));
    if theirs != ours {
        return Err(format!(
            "contract {}.{}, the kit's is {}.{}",
            theirs.0, theirs.1, ours.0, ours.1
        ));
    }
    if info.dlpack_major != DLPACK.0 {
        return Err(format!("DLPack {}, the kit's is {}", info.dlpack_major, DLPACK.0));
    }
    if info.table_size as usize != size_of::<BackendTable>() {
        let ours = size_of::<BackendTable>();
        return Err(format!("a table of {} bytes, the kit's has {ours}", info.table_size));
    }
    Ok(())
}

fn file_name(path: &Path, info: &BackendAbiInfo) -> Checked {
    let (name, variant) = (inline_str(&info.name), inline_str(&info.variant));
    let separator = if variant.is_empty() { "" } else { "-" };
    let expected = format!("libultramarine-{name}{separator}{variant}.so");
    let found = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    if found == expected {
        Ok(())
    } else {
        Err(format!("the file is called {found}, its note asks for {expected}"))
    }
}

/// Returns the names of the exported symbols.
fn exported<'a>(file: &Elf<'a>) -> Vec<&'a str> {
    let defined = file.dynamic_symbols().filter(|s| s.is_definition());
    defined.filter_map(|symbol| symbol.name().ok()).collect()
}

/// Checks that only the entry points are exported, because any other symbol could replace that of
/// another library.
fn exports(file: &Elf<'_>) -> Checked {
    let entries = [symbol::ABI_INFO, symbol::SCORE, symbol::INIT].map(|s| s.to_string_lossy());
    let mut foreign = Vec::new();
    let mut own = Vec::new();
    for name in exported(file) {
        let known = entries.iter().any(|e| e == name);
        if known { own.push(name) } else { foreign.push(name) }
    }
    // Symbols that linkers add.
    foreign.retain(|name| !matches!(*name, "_init" | "_fini" | "_edata" | "_end" | "__bss_start"));
    for (at, symbol) in [(0, symbol::ABI_INFO), (2, symbol::INIT)] {
        let required = &entries[at];
        let remedy = entry_remedy(symbol);
        let is_there = own.iter().any(|name| *name == required.as_ref());
        ensure!(is_there, "{required} is not exported: {remedy}");
    }
    let n = foreign.len();
    foreign.truncate(6);
    match n {
        0 => Ok(()),
        n => Err(format!(
            "{n} more symbols are exported: {}: compile with -fvisibility=hidden",
            foreign.join(", ")
        )),
    }
}

/// Entries of the dynamic section, as tag and value.
fn dynamic(file: &Elf<'_>) -> Vec<(elf::DynamicTag, u64)> {
    let endian = file.endian();
    let data = file.data();
    let mut all = Vec::new();
    for segment in file.elf_program_headers() {
        if let Ok(Some(entries)) = segment.dynamic(endian, data) {
            all.extend(entries.iter().map(|d| (d.d_tag(endian), d.d_val(endian))));
        }
    }
    all
}

fn text_relocations(file: &Elf<'_>) -> Checked {
    let flagged = dynamic(file)
        .iter()
        .any(|(tag, value)| *tag == elf::DT_TEXTREL || *tag == elf::DT_FLAGS && value & 4 != 0);
    if flagged { Err("code is relocated at load: compile with -fPIC".into()) } else { Ok(()) }
}

fn stack(file: &Elf<'_>) -> Checked {
    let endian = file.endian();
    for segment in file.elf_program_headers() {
        if segment.p_type(endian) == elf::PT_GNU_STACK {
            return if segment.p_flags(endian).0 & 1 == 0 {
                Ok(())
            } else {
                Err("the library asks for an executable stack (-z noexecstack)".into())
            };
        }
    }
    Err("no PT_GNU_STACK: the system makes the stack executable (-z noexecstack)".into())
}

/// Names of the libraries that it needs.
fn needed(file: &Elf<'_>) -> Vec<String> {
    let libraries = file.elf_section_table();
    let endian = file.endian();
    let strings = libraries.dynamic(endian, file.data()).ok().flatten();
    let Some((_, index)) = strings else { return Vec::new() };
    let Ok(strings) = libraries.strings(endian, file.data(), index) else { return Vec::new() };
    dynamic(file)
        .into_iter()
        .filter(|(tag, _)| *tag == elf::DT_NEEDED)
        .filter_map(|(_, offset)| strings.get(u32::try_from(offset).ok()?).ok())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

fn links(needed: &[String]) -> Checked {
    let core = |name: &&String| {
        name.contains("_core.") || name.starts_with("libultramarine") || name.contains("libpython")
    };
    match needed.iter().find(core) {
        None => Ok(()),
        Some(name) => {
            Err(format!("it needs {name}: a backend calls the host through its table only"))
        }
    }
}
