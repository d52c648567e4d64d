//! The files that a user's source includes. The compiled code depends on them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use ultramarine_abi::helper::disk::digest;

/// Maximum number of files that are examined.
const MOST: usize = 4000;

/// Everything that a source includes with the compiler's options, directly or indirectly, as bytes:
/// the paths and contents of files that are found, and the names of those that are not. Because
/// conditions are not evaluated, it may contain more than the compiler reads. `None` if the
/// includes cannot be determined.
pub fn of(text: &str, options: &[String]) -> Option<Vec<u8>> {
    let mut all =
        Included { directories: directories(options)?, seen: HashSet::new(), key: Vec::new() };
    all.scan(text, Path::new("."))?;
    Some(all.key)
}

/// Returns the include paths among the options. `None` if an option includes a file.
fn directories(options: &[String]) -> Option<Vec<PathBuf>> {
    let (mut found, mut next) = (Vec::new(), false);
    for option in options {
        let option = option.trim();
        if std::mem::take(&mut next) {
            found.push(PathBuf::from(option));
        } else if matches!(option, "-I" | "--include-path") {
            next = true;
        } else if let Some(path) =
            option.strip_prefix("--include-path=").or_else(|| option.strip_prefix("-I"))
        {
            found.push(PathBuf::from(path.trim()));
        } else if option.contains("include") || option.contains("pch") {
            return None;
        }
    }
    Some(found)
}

struct Included {
    directories: Vec<PathBuf>,
    seen: HashSet<PathBuf>,
    key: Vec<u8>,
}

impl Included {
    /// Adds the includes in a text from a file of `directory`.
    fn scan(&mut self, text: &str, directory: &Path) -> Option<()> {
        const WORD: &str = "include";
        let mut rest = text;
        while let Some(at) = rest.find(WORD) {
            let before = rest[..at].trim_end_matches([' ', '\t']);
            rest = &rest[at + WORD.len()..];
            let after = rest.strip_prefix("_next").unwrap_or(rest);
            let after = after.trim_start_matches([' ', '\t', '(']);
            let quoted = after.starts_with('"');
            let end = match after.chars().next() {
                Some('"') => '"',
                Some('<') => '>',
                // The include is a macro, or contains joined lines or a comment before its name.
                _ if before.ends_with('#') => return None,
                _ => continue,
            };
            let Some((name, _)) = after[1..].split_once(end) else { continue };
            if !name.contains('\n') {
                self.file(name, quoted.then_some(directory))?;
            }
        }
        Some(())
    }

    fn file(&mut self, name: &str, own: Option<&Path>) -> Option<()> {
        let places = own.into_iter().chain(self.directories.iter().map(PathBuf::as_path));
        let found = places.map(|directory| directory.join(name)).find(|path| path.is_file());
        let Some(path) = found else {
            self.put(name.as_bytes(), &[0, 0]);
            return Some(());
        };
        if !self.seen.insert(path.clone()) {
            return Some(());
        }
        if self.seen.len() > MOST {
            return None;
        }
        let bytes = std::fs::read(&path).ok()?;
        self.put(path.as_os_str().as_encoded_bytes(), &digest(&[&bytes]));
        let directory = path.parent().unwrap_or(Path::new(".")).to_owned();
        self.scan(&String::from_utf8_lossy(&bytes), &directory)
    }

    fn put(&mut self, name: &[u8], words: &[u64; 2]) {
        self.key.extend((name.len() as u64).to_le_bytes());
        self.key.extend(name);
        words.iter().for_each(|w| self.key.extend(w.to_le_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_header_is_another_key() {
        let place =
            std::env::temp_dir().join(format!("ultramarine-headers-{}", std::process::id()));
        let inner = place.join("inner");
        std::fs::create_dir_all(&inner).unwrap();
        let write = |path: PathBuf, text: &str| std::fs::write(path, text).unwrap();
        write(place.join("a.cuh"), "#pragma once\n#include \"inner/b.cuh\"\n#include <a.cuh>\n");
        write(inner.join("b.cuh"), "#define B 1\n#  include \"c.cuh\"\n");
        write(inner.join("c.cuh"), "#define C 1\n");
        let options = [format!("-I{}", place.display()), "--std=c++17".to_owned()];
        let key = |text: &str| of(text, &options);
        let text = "// includes a\n#include <a.cuh>\n#include <cuda_fp16.h>\n";
        let first = key(text).unwrap();
        assert_eq!(key(text).unwrap(), first);
        write(inner.join("c.cuh"), "#define C 2\n");
        let second = key(text).unwrap();
        assert_ne!(second, first);
        // A file that was missing appears.
        write(place.join("cuda_fp16.h"), "");
        assert_ne!(key(text).unwrap(), second);
        assert_eq!(key("int x;").unwrap(), Vec::<u8>::new());
        assert_eq!(key("#include NAME\n"), None);
        assert_eq!(of("int x;", &["-include".to_owned(), "a.cuh".to_owned()]), None);
        let apart = ["-I".to_owned(), place.display().to_string()];
        assert_ne!(of(text, &apart).unwrap(), of(text, &[]).unwrap());
        std::fs::remove_dir_all(place).unwrap();
    }
}
