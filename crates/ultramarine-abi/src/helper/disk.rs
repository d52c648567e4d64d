//! A cache of compiled code on disk, so that a kernel is compiled only once for each user and kind
//! of device.
//!
//! A file contains its complete key, which is compared, because the file's name is only a hash.
//! Files that are truncated, changed or of another format are ignored and replaced. The files are
//! code, so they have to belong to the user, in a directory where no other user can write.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// A backend's kind of cache files. Files of another format are ignored and replaced.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// First bytes of a file. The last of them is the version of the format.
    pub magic: [u8; 8],
    /// Extension of the files' names.
    pub ending: &'static str,
}

/// Size of the header: magic, three lengths, two words of checksum.
const HEADER: usize = 48;
/// The most bytes of all files together.
const MOST: u64 = 512 << 20;
/// The most bytes of one file.
const LARGEST: u64 = 256 << 20;
/// After this many written bytes, the directory's size is checked again.
const OFTEN: u64 = 16 << 20;
/// How long a file may be unused before its next use updates its time.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);
/// After this time, a temporary file that was not renamed counts as abandoned.
const LEFT: Duration = Duration::from_secs(60 * 60);
const UNFINISHED: &str = "part";

/// A compiled kernel: its code, and names that belong to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The device's code, or code that the driver compiles.
    pub image: Vec<u8>,
    /// Names that belong to the code, without NULs.
    pub names: Vec<String>,
}

/// A directory of compiled code, of bounded size. Threads and processes may share it.
#[derive(Debug)]
pub struct Disk {
    format: Format,
    directory: PathBuf,
    most: u64,
    /// Bytes written since the directory's size was last checked.
    written: AtomicU64,
    looked: AtomicBool,
    next: AtomicU64,
}

/// Returns the directory of a backend's compiled code: the directory `backend` in
/// `ULTRAMARINE_CACHE_DIR`, or in `ultramarine` in the user's cache directory. `None` if the
/// environment variable `switch` is 0, or if there is no such directory.
pub fn place(backend: &str, switch: &str) -> Option<PathBuf> {
    if std::env::var_os(switch).is_some_and(|v| v == "0") {
        return None;
    }
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let root = absolute("ULTRAMARINE_CACHE_DIR").or_else(|| {
        let user = match cfg!(windows) {
            true => absolute("LOCALAPPDATA"),
            false => absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache"))),
        };
        Some(user?.join("ultramarine"))
    });
    Some(root?.join(backend))
}

impl Disk {
    /// Opens a directory, and makes it if it does not exist. It must belong to the user, and no
    /// other user may be able to write to it.
    ///
    /// # Errors
    /// A description of the problem with the directory.
    pub fn open(directory: PathBuf, format: Format) -> Result<Self, String> {
        Self::bounded(directory, format, MOST)
    }

    /// Like [`Disk::open`], with another limit for the bytes of all files.
    fn bounded(directory: PathBuf, format: Format, most: u64) -> Result<Self, String> {
        let said = |e: io::Error| format!("{}: {e}", directory.display());
        make_directory(&directory).map_err(said)?;
        let metadata = fs::metadata(&directory).map_err(said)?;
        if !metadata.is_dir() {
            return Err(format!("{} is not a directory", directory.display()));
        }
        owned(&metadata).map_err(|why| format!("{} {why}", directory.display()))?;
        Ok(Self {
            format,
            directory,
            most,
            written: AtomicU64::new(0),
            looked: AtomicBool::new(false),
            next: AtomicU64::new(0),
        })
    }

    fn path(&self, key: &[u8]) -> PathBuf {
        let [a, b] = digest(&[key]);
        self.directory.join(format!("{a:016x}{b:016x}.{}", self.format.ending))
    }

    /// Returns the entry of a key; `None` if there is none, or its file is damaged.
    pub fn get(&self, key: &[u8]) -> Option<Entry> {
        let file = File::open(self.path(key)).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > LARGEST || owned(&metadata).is_err() {
            return None;
        }
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        (&file).take(LARGEST).read_to_end(&mut bytes).ok()?;
        let entry = decode(self.format.magic, &bytes, key)?;
        let age = metadata.modified().ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age > STALE) {
            // The files with the oldest times are removed first. If the time cannot be updated, the
            // kernel may be compiled again later.
            let _ = file.set_modified(SystemTime::now());
        }
        Some(entry)
    }

    /// Stores an entry under a key. It replaces an earlier entry. Old entries are removed if the
    /// directory grows too large.
    ///
    /// # Errors
    /// A description with the directory and the failure.
    pub fn put(&self, key: &[u8], entry: &Entry) -> Result<(), String> {
        let bytes = encode(self.format.magic, key, entry);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}.{UNFINISHED}", std::process::id());
        let unfinished = self.directory.join(name);
        // The file is renamed when it is complete, so that other processes never see a part of it.
        let done =
            write_new(&unfinished, &bytes).and_then(|()| fs::rename(&unfinished, self.path(key)));
        if let Err(error) = done {
            let _ = fs::remove_file(&unfinished);
            return Err(format!("{}: {error}", self.directory.display()));
        }
        let written = self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if !self.looked.swap(true, Ordering::Relaxed) || written > OFTEN.min(self.most / 4) {
            self.written.store(0, Ordering::Relaxed);
            self.prune();
        }
        Ok(())
    }

    /// Removes the entry of a key.
    pub fn remove(&self, key: &[u8]) {
        let _ = fs::remove_file(self.path(key));
    }

    /// Removes the oldest files until the others take well less than the limit. Also removes files
    /// that other processes did not finish.
    fn prune(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        let (mut files, mut total) = (Vec::new(), 0);
        for entry in entries.flatten() {
            let (path, Ok(metadata)) = (entry.path(), entry.metadata()) else { continue };
            let at = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            match path.extension().and_then(|e| e.to_str()) {
                Some(ending) if ending == self.format.ending => {
                    total += metadata.len();
                    files.push((at, metadata.len(), path));
                }
                Some(UNFINISHED) if at.elapsed().is_ok_and(|age| age > LEFT) => {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        if total <= self.most {
            return;
        }
        files.sort();
        for (_, bytes, path) in files {
            if total <= self.most / 4 * 3 {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= bytes;
            }
        }
    }
}

#[cfg(unix)]
fn make_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(not(unix))]
fn make_directory(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Returns an error unless a file or directory belongs to the user and no other user can write to
/// it.
#[cfg(unix)]
fn owned(metadata: &fs::Metadata) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt;
    unsafe extern "C" {
        safe fn geteuid() -> u32;
    }
    if metadata.uid() != geteuid() {
        return Err(format!("belongs to user {}, not to the user of this process", metadata.uid()));
    }
    match metadata.mode() & 0o022 {
        0 => Ok(()),
        _ => Err(format!("can be written by other users (mode {:o})", metadata.mode() & 0o777)),
    }
}

/// On this system, inherited permissions make a user's directories private.
#[cfg(not(unix))]
fn owned(_metadata: &fs::Metadata) -> Result<(), String> {
    Ok(())
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(bytes)
}

fn encode(magic: [u8; 8], key: &[u8], entry: &Entry) -> Vec<u8> {
    let names = entry.names.join("\0");
    let parts = [key, names.as_bytes(), &entry.image];
    let mut bytes = Vec::with_capacity(HEADER + parts.iter().map(|p| p.len()).sum::<usize>());
    bytes.extend(magic);
    let lengths = parts.map(|part| part.len() as u64);
    let sum = digest(&parts);
    lengths.iter().chain(&sum).for_each(|word| bytes.extend(word.to_le_bytes()));
    parts.iter().for_each(|part| bytes.extend(*part));
    bytes
}

/// Returns the entry in a file, if the file is complete and has that key.
fn decode(expected: [u8; 8], bytes: &[u8], key: &[u8]) -> Option<Entry> {
    let (header, rest) = bytes.split_at_checked(HEADER)?;
    let (magic, words) = header.split_at(expected.len());
    let word = |i: usize| Some(u64::from_le_bytes(words.get(8 * i..8 * i + 8)?.try_into().ok()?));
    let length = |i: usize| usize::try_from(word(i)?).ok();
    let (found, rest) = rest.split_at_checked(length(0)?)?;
    let (names, image) = rest.split_at_checked(length(1)?)?;
    let whole = image.len() == length(2)? && !image.is_empty();
    if magic != expected || !whole || found != key {
        return None;
    }
    if digest(&[found, names, image]) != [word(3)?, word(4)?] {
        return None;
    }
    let names = std::str::from_utf8(names).ok()?;
    let names = match names {
        "" => Vec::new(),
        names => names.split('\0').map(str::to_owned).collect(),
    };
    Some(Entry { image: image.to_vec(), names })
}

/// Returns 128 bits that depend on the parts and their lengths, the same in every process. They
/// detect accidental changes, and are no protection against attacks.
pub fn digest(parts: &[&[u8]]) -> [u64; 2] {
    let mut state = [0x243f_6a88_85a3_08d3_u64, 0x1319_8a2e_0370_7344];
    let mut mix = |word: u64| {
        for (i, half) in state.iter_mut().enumerate() {
            let odd = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f][i];
            *half = (*half ^ word).wrapping_mul(odd).rotate_left(29 + 2 * i as u32);
            *half ^= *half >> 32;
        }
    };
    for part in parts {
        mix(part.len() as u64);
        for chunk in part.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            mix(u64::from_le_bytes(word));
        }
    }
    mix(0);
    mix(0);
    state
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
