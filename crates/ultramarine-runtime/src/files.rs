//! Replaces files completely or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A file that is removed when this is dropped, unless it has been renamed.
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
    /// Opening the file, or the temporary file beside it.
    Open,
    /// Writing the new content, or replacing the old file.
    Write,
}

/// Makes `write` write a new file, which then replaces the file at `path`. If anything fails, the
/// old file (or its absence) is unchanged.
///
/// # Errors
/// Those of `write`, and the system's errors as converted by `failed`.
pub fn replace<E>(
    path: &Path,
    failed: impl Fn(Step, io::Error) -> E,
    write: impl FnOnce(&mut File) -> Result<(), E>,
) -> Result<(), E> {
    // A link must remain a link, so replace its target.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let old = fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|m| !m.is_file()) {
        // A pipe or a device cannot be replaced, and a directory cannot be opened.
        let mut file =
            OpenOptions::new().write(true).open(&target).map_err(|e| failed(Step::Open, e))?;
        return write(&mut file);
    }
    let (mut temporary, mut file) = create_beside(&target).map_err(|e| failed(Step::Open, e))?;
    write(&mut file)?;
    if let Some(old) = old {
        // Ignore failures: not all file systems have permissions.
        let _ = file.set_permissions(old.permissions());
    }
    // Close the file first, because some systems report write errors only then.
    drop(file);
    fs::rename(&temporary.path, &target).map_err(|e| failed(Step::Write, e))?;
    temporary.renamed = true;
    Ok(())
}

fn create_beside(target: &Path) -> std::io::Result<(Temporary, File)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        // The name is short, because the target's name may already have the maximum length.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = target.with_file_name(format!(".tmp-{}-{number}", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((Temporary { path, renamed: false }, file)),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
}
