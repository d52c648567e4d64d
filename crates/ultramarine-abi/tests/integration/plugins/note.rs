//! The note: in a PT_NOTE segment, through `--gc-sections` and stripping, equal to what the
//! entry point says.

use super::build::{Plugin, compile, in_rust, run};
use object::{
    Endianness, elf,
    read::elf::{FileHeader, ProgramHeader},
};
use std::path::Path;
use std::process::Command;
use ultramarine_abi::{ABI_MAJOR, BackendAbiInfo, ElfNote, inline_str, negotiate, note, sanitizer};

/// The infos of all notes of ours in the segments of a file.
fn notes(path: &Path) -> Vec<BackendAbiInfo> {
    let data = std::fs::read(path).unwrap();
    let data = data.as_slice();
    let header = elf::FileHeader64::<Endianness>::parse(data).unwrap();
    let endian = header.endian().unwrap();
    let mut found = Vec::new();
    for segment in header.program_headers(endian, data).unwrap() {
        let Some(mut all) = segment.notes(endian, data).unwrap() else { continue };
        while let Some(one) = all.next().unwrap() {
            if one.name() == &note::OWNER[..11] && one.n_type(endian).0 == note::TYPE {
                assert_eq!(one.desc().len(), size_of::<BackendAbiInfo>());
                // SAFETY: as long as the struct, which is made of integers.
                found
                    .push(unsafe { one.desc().as_ptr().cast::<BackendAbiInfo>().read_unaligned() });
            }
        }
    }
    found
}

/// The note of a plugin, also once it has been stripped, and what the entry point says.
fn check(path: &Path) -> BackendAbiInfo {
    let found = notes(path);
    assert_eq!(found.len(), 1, "{}", path.display());
    let stripped = path.with_extension("stripped.so");
    run(Command::new("strip").arg("-s").arg(path).arg("-o").arg(&stripped));
    assert_eq!(notes(&stripped), found, "after strip: {}", path.display());
    let plugin = Plugin::open(&stripped);
    assert_eq!(plugin.info, found[0], "{}", path.display());
    assert_eq!(negotiate::check(&found[0]), Ok(()));
    // SAFETY: the table's name is a static text.
    let agrees = unsafe { negotiate::check_table(&found[0], &plugin.table) };
    // The plugins in C and C++ lack most functions.
    if let Err(mismatch) = agrees {
        let lacks = matches!(mismatch, negotiate::Mismatch::TableFunction { .. });
        assert!(lacks && path.to_string_lossy().contains("in_c"), "{mismatch}");
    }
    found[0]
}

const GC: &[&str] = &["-ffunction-sections", "-fdata-sections", "-Wl,--gc-sections"];

#[test]
fn of_a_plugin_in_c() {
    let plain = check(&compile("in_c.c", "in_c", &[]));
    assert_eq!(inline_str(&plain.name), "in_c");
    assert_eq!(inline_str(&plain.variant), "test-1.0");
    assert_eq!(inline_str(&plain.version), "0.1");
    assert_eq!((plain.abi_major as u32, plain.sanitizers), (ABI_MAJOR, 0));
    assert_eq!(inline_str(&plain.target), inline_str(&BackendAbiInfo::here("", 0).target));
    assert!(!inline_str(&plain.compiler).is_empty());
    assert_eq!(check(&compile("in_c.c", "in_c-gc", GC)), plain);
    assert_eq!(check(&compile("in_c.c", "in_c-lto", &["-flto", "-O2", GC[2]])), plain);
}

#[test]
fn of_a_plugin_in_cpp() {
    let plain = check(&compile("in_cpp.cpp", "in_cpp", &[]));
    assert_eq!(inline_str(&plain.name), "in_cpp");
    assert_eq!(check(&compile("in_cpp.cpp", "in_cpp-gc", GC)), plain);
}

#[test]
fn of_a_plugin_in_rust() {
    let info = check(in_rust());
    assert_eq!(inline_str(&info.name), "in_rust");
    assert!(inline_str(&info.compiler).starts_with("rustc 1."), "{}", inline_str(&info.compiler));
    assert_eq!(size_of::<ElfNote>(), 24 + size_of::<BackendAbiInfo>());
}

#[test]
#[cfg(target_arch = "x86_64")]
fn features_and_sanitizers_follow_the_flags() {
    // These may need features or runtimes that are not here, so they are read, not opened.
    let features = |flags: &[&str], name: &str| {
        let found = notes(&compile("in_c.c", name, flags));
        assert_eq!(found.len(), 1);
        (inline_str(&found[0].cpu_features), found[0].sanitizers)
    };
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(features(&["-march=x86-64"], "in_c-baseline"), (String::new(), 0));
    let (avx512, none) = features(&["-mavx512f"], "in_c-avx512");
    let avx512 = words(&avx512);
    for wanted in ["sse4.2", "avx", "avx2", "avx512f"] {
        assert!(avx512.contains(&wanted.to_owned()), "{avx512:?}");
    }
    assert!(!avx512.contains(&"avx512bw".to_owned()) && none == 0, "{avx512:?}");
    let (v3, _) = features(&["-mavx2", "-mfma", "-mf16c", "-mbmi", "-mbmi2", "-mlzcnt"], "in_c-v3");
    for wanted in ["fma", "f16c", "bmi1", "bmi2", "lzcnt"] {
        assert!(words(&v3).contains(&wanted.to_owned()), "{v3}");
    }
    let (_, address) = features(&["-fsanitize=address"], "in_c-address");
    assert_eq!(address, sanitizer::ADDRESS);
}
