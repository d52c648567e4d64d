//! The cache of probe results on disk, keyed by the file's content: files that loaded, and files that crashed or hung.

use super::reason::{Code, Reason};
use super::search::elevated;
use crate::files;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::io::Read;
use std::io::Write;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// Version of the probe. It is incremented when the probe changes, which invalidates older results.
const VERSION: u64 = 1;
/// The cache is cleared when it has this many files. No machine has as many.
const MOST: usize = 4096;

/// Returns the key of a file, made from its content, its name and this version of the contract.
/// Apart from the machine, a verdict depends on nothing else.
pub(super) fn key(path: &Path, real: &Path) -> Option<String> {
    let mut file = File::open(real).ok()?;
    let mut hasher = Xxh3::new();
    let mut block = vec![0; 1 << 16];
    let mut size = 0;
    loop {
        match file.read(&mut block) {
            Ok(0) => break,
            Ok(n) => {
                hasher.update(&block[..n]);
                size += n;
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    hasher.update(path.file_name()?.as_encoded_bytes());
    let abi = (ultramarine_abi::ABI_MAJOR, ultramarine_abi::ABI_MINOR);
    Some(format!("{:032x}-{size}-{}.{}", hasher.digest128(), abi.0, abi.1))
}

/// The cached verdicts.
#[derive(Default)]
pub(super) struct ProbeCache {
    place: Option<PathBuf>,
    files: Map<String, Value>,
    changed: bool,
}

impl ProbeCache {
    /// Reads the cache from the user's cache directory. If the cache cannot be read, it counts as
    /// empty.
    pub fn open() -> ProbeCache {
        let Some(place) = place() else { return ProbeCache::default() };
        let files = std::fs::read(&place).ok().and_then(|bytes| files(&bytes)).unwrap_or_default();
        ProbeCache { place: Some(place), files, changed: false }
    }

    /// Returns the verdict on a file, if it is cached.
    pub fn get(&self, key: &str) -> Option<Result<(), Reason>> {
        let known = self.files.get(key)?;
        if known == "good" {
            return Some(Ok(()));
        }
        let code = Code::named(known["code"].as_str()?)?;
        let place = self.place.as_deref().unwrap_or(Path::new("")).display();
        let text = format!("{} (remembered)", known["text"].as_str()?);
        let remedy =
            format!("report it to the authors of the backend; to probe it again, remove {place}");
        Some(Err(Reason::new(code, text).with_remedy(remedy)))
    }

    /// Stores the verdict on a file: `None` if it loaded, otherwise the reason.
    pub fn put(&mut self, key: String, verdict: Option<&Reason>) {
        if self.files.len() >= MOST {
            self.files.clear();
        }
        let value = match verdict {
            None => json!("good"),
            Some(reason) => json!({ "code": reason.code.name(), "text": reason.text }),
        };
        self.files.insert(key, value);
        self.changed = true;
    }

    /// Writes the cache to disk atomically. If that fails, the probes are repeated next time.
    pub fn save(self) {
        let Some(place) = self.place.filter(|_| self.changed) else { return };
        if let Some(directory) = place.parent() {
            let _ = std::fs::create_dir_all(directory);
        }
        let all = json!({ "version": VERSION, "files": self.files });
        let write = |file: &mut File| file.write_all(all.to_string().as_bytes());
        if let Err(error) = files::replace(&place, |_, error| error, write) {
            let text = format!("cannot write {}: {error}", place.display());
            crate::log::log(crate::log::Level::Debug, text);
        }
    }
}

fn files(bytes: &[u8]) -> Option<Map<String, Value>> {
    let Value::Object(mut all) = serde_json::from_slice(bytes).ok()? else { return None };
    if all.get("version")?.as_u64()? != VERSION {
        return None;
    }
    match all.remove("files")? {
        Value::Object(files) => Some(files),
        _ => None,
    }
}

fn place() -> Option<PathBuf> {
    if elevated() {
        return None;
    }
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let root = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(root.join("ultramarine").join("probes.json"))
}
