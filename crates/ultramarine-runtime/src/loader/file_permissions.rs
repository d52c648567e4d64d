//! Validation of a plugin's file before it is opened as a library. It must be a regular file that
//! belongs to the user or to root. Users in general must not be able to write to it or to replace
//! it. Groups are trusted, because their members are chosen.

use super::reason::{Code, Reason};
use super::state::FileId;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// More links than the system follows.
#[cfg(unix)]
const MOST_LINKS: usize = 40;

/// A file that may be opened as a library.
#[derive(Debug)]
pub(super) struct ValidatedFile {
    /// Its path with all links resolved.
    pub real: PathBuf,
    pub file: File,
    pub id: FileId,
}

/// Validates a file and opens it for reading. If `explicit` is true, the caller named the file, and
/// any user may own it.
pub(super) fn validate(path: &Path, explicit: bool) -> Result<ValidatedFile, Reason> {
    let real = path.canonicalize().map_err(|e| unreadable(path, &e))?;
    let found = real.metadata().map_err(|e| unreadable(path, &e))?;
    if !found.is_file() {
        let text = format!("it is {}, not a regular file", kind(&found));
        return Err(Reason::new(Code::NotRegular, text));
    }
    let file = File::open(&real).map_err(|e| unreadable(path, &e))?;
    // Take the metadata from the opened file, because the path may have changed.
    let metadata = file.metadata().map_err(|e| unreadable(path, &e))?;
    let id = permissions(path, &real, &metadata, explicit)?;
    Ok(ValidatedFile { real, file, id })
}

fn unreadable(path: &Path, error: &io::Error) -> Reason {
    let is_link = path.symlink_metadata().is_ok_and(|m| m.is_symlink());
    let (code, text) = match error.kind() {
        io::ErrorKind::NotFound if is_link => {
            (Code::Missing, "the link points to a file that does not exist".to_owned())
        }
        io::ErrorKind::NotFound => (Code::Missing, "there is no such file".to_owned()),
        #[cfg(unix)]
        _ if error.raw_os_error() == Some(libc::ELOOP) => {
            (Code::LinkLoop, "its links form a circle".to_owned())
        }
        _ => (Code::Unreadable, format!("it cannot be read: {error}")),
    };
    Reason::new(code, text)
}

fn kind(metadata: &Metadata) -> &'static str {
    if metadata.is_dir() {
        return "a directory";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = metadata.file_type();
        if kind.is_fifo() {
            return "a pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
        if kind.is_char_device() || kind.is_block_device() {
            return "a device";
        }
    }
    "something else"
}

#[cfg(not(unix))]
fn permissions(_: &Path, real: &Path, _: &Metadata, _: bool) -> Result<FileId, Reason> {
    // On Windows, permissions are in access control lists, which std does not read. The path
    // identifies the file.
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    real.hash(&mut hasher);
    Ok((0, hasher.finish()))
}

#[cfg(unix)]
fn permissions(
    path: &Path,
    real: &Path,
    metadata: &Metadata,
    explicit: bool,
) -> Result<FileId, Reason> {
    use std::os::unix::fs::MetadataExt;
    if metadata.mode() & OTHERS_WRITE != 0 {
        let text = format!("all users can write to it (mode {:o})", metadata.mode() & 0o7777);
        return Err(Reason::new(Code::WritableFile, text));
    }
    // Check the directory of each link in the chain, because anyone who can replace a link can
    // change where it leads.
    let mut step = path.to_owned();
    for _ in 0..MOST_LINKS {
        if let Some(parent) = step.parent() {
            directory(parent)?;
        }
        match std::fs::read_link(&step) {
            Ok(target) => step = step.parent().map_or(target.clone(), |p| p.join(&target)),
            Err(_) => break,
        }
    }
    if let Some(parent) = real.parent() {
        directory(parent)?;
    }
    // SAFETY: no preconditions.
    let user = unsafe { libc::geteuid() };
    let owner = metadata.uid();
    if !explicit && owner != 0 && owner != user {
        let text = format!("its owner is user {owner}, neither root nor this user ({user})");
        return Err(Reason::new(Code::Owner, text));
    }
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(unix)]
const OTHERS_WRITE: u32 = 0o002;

/// The directory itself must not be writable by everybody, sticky or not, because a file could be
/// put there under a name that is not taken yet. For a directory further up, the sticky bit
/// suffices: it prevents the replacement of existing entries.
#[cfg(unix)]
fn directory(directory: &Path) -> Result<(), Reason> {
    use std::os::unix::fs::MetadataExt;
    const STICKY: u32 = 0o1000;
    let Ok(real) = directory.canonicalize() else { return Ok(()) };
    for (level, above) in real.ancestors().enumerate() {
        let Ok(metadata) = above.metadata() else { continue };
        let sticky_parent = level > 0 && metadata.mode() & STICKY != 0;
        if metadata.mode() & OTHERS_WRITE != 0 && !sticky_parent {
            let text = format!(
                "all users can write to the directory {} (mode {:o})",
                above.display(),
                metadata.mode() & 0o7777
            );
            return Err(Reason::new(Code::WritableDirectory, text));
        }
    }
    Ok(())
}
