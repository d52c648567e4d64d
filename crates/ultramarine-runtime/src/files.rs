//! Replacing files atomically: either the whole file is replaced, or nothing changes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A temporary file, which is deleted on drop unless it has been renamed.
struct Temporary {
    path: PathBuf,
    renamed: bool,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The step at which a replacement failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The file, or the temporary file beside it, cannot be opened.
    Open,
    /// The new content cannot be written, or cannot replace the old content.
    Write,
}

/// Calls `write` to write a new file, which then replaces the file at `path`. If anything fails,
/// the old file stays; if there was none, none appears.
///
/// # Errors
/// Those of `write`. Errors of the operating system are converted by `failed`.
pub fn replace<E>(
    path: &Path,
    failed: impl Fn(Step, io::Error) -> E,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    // A symbolic link stays a link: the file that it points to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let old = fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|m| !m.is_file()) {
        // A pipe or a device cannot be replaced, so it is written in place. Opening a directory
        // fails.
        let mut file =
            OpenOptions::new().write(true).open(&target).map_err(|e| failed(Step::Open, e))?;
        return write(&mut file);
    }
    let (mut temporary, mut file) = create_beside(&target).map_err(|e| failed(Step::Open, e))?;
    write(&mut file)?;
    if let Some(old) = old {
        // Ignore errors, because some file systems have no permissions to keep.
        let _ = file.set_permissions(old.permissions());
    }
    // Some systems report failed writes only when the file is closed.
    drop(file);
    fs::rename(&temporary.path, &target).map_err(|e| failed(Step::Write, e))?;
    temporary.renamed = true;
    Ok(())
}

fn create_beside(target: &Path) -> std::io::Result<(Temporary, File)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        // Use a short name, because the target's name may already have the maximal length.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = target.with_file_name(format!(".tmp-{}-{number}", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((Temporary { path, renamed: false }, file)),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}
