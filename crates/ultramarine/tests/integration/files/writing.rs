//! What is written where, and what failures leave behind.

use super::*;
use std::io::ErrorKind;

#[test]
fn wrong_files_and_names() -> Result<()> {
    let folder = Folder::new("names");
    let a = Array::scalar(1.5f32);
    let arrays = Arrays::from([("a".to_owned(), a.clone())]);
    npy::save(folder.file("noext"), &a)?;
    npy::save(folder.file("x.foo"), &a)?;
    npz::save(folder.file("x.NPZ"), &arrays)?;
    safetensors::save(folder.file("s"), &arrays, None)?;
    assert_eq!(folder.names(), ["noext.npy", "s.safetensors", "x.NPZ.npz", "x.foo.npy"]);

    let text = |result: Result<Loaded>| result.err().map(|e| e.to_string()).unwrap_or_default();
    assert_eq!(
        text(load("x.foo")),
        "[load] Unknown file format foo. Use npy, npz, safetensors or gguf."
    );
    assert_eq!(
        text(load("x")),
        "[load] Could not infer file format from extension. Pass `format`."
    );
    assert!(matches!(load("missing.foo"), Err(Error::Value(_))));
    let missing = |name: &str| load(folder.file(name));
    for name in ["missing.npy", "missing.npz", "missing.safetensors"] {
        let error = missing(name).err();
        assert_eq!(error.as_ref().and_then(Error::io_kind), Some(ErrorKind::NotFound));
        assert!(error.is_some_and(|e| e.to_string().contains(name)));
    }
    fs::copy(folder.file("noext.npy"), folder.file("wrong.npz")).expect("copies");
    fs::copy(folder.file("noext.npy"), folder.file("wrong.safetensors")).expect("copies");
    fs::copy(folder.file("s.safetensors"), folder.file("wrong.npy")).expect("copies");
    assert!(matches!(missing("wrong.npz"), Err(Error::Value(_))));
    assert!(matches!(missing("wrong.safetensors"), Err(Error::Runtime(_))));
    assert!(matches!(missing("wrong.npy"), Err(Error::Runtime(_))));
    fs::create_dir(folder.file("folder.npy")).expect("a directory");
    assert!(missing("folder.npy").is_err());
    assert!(npy::save(folder.file("folder.npy"), &a).is_err());
    let nowhere = folder.file("nowhere/x");
    assert!(matches!(npy::save(&nowhere, &a), Err(Error::Io { .. })));
    assert!(matches!(npz::save(&nowhere, &arrays), Err(Error::Io { .. })));
    Ok(())
}

/// A writer that has no more room than it is given, as a full disk.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let n = data.len().min(self.0);
        self.0 -= n;
        if n == 0 && !data.is_empty() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(n) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn failing_writers_and_readers() -> Result<()> {
    let a = Array::from_slice(&[1.0f32; 300], &[300])?;
    let arrays = Arrays::from([("a".to_owned(), a.clone())]);
    for room in [0, 5, 100, 1000] {
        assert!(npy::write(&mut Full(room), &a, "x").is_err());
        assert!(npz::write(&mut Full(room), &arrays, false, "x").is_err());
        assert!(safetensors::write(&mut Full(room), &arrays, None, "x").is_err());
    }

    /// Says that it is longer than it is.
    struct Boasting(Cursor<Vec<u8>>);
    impl Read for Boasting {
        fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
            self.0.read(target)
        }
    }
    impl Seek for Boasting {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            match to {
                SeekFrom::End(_) => Ok(1 << 20),
                to => self.0.seek(to),
            }
        }
    }
    let mut cut = npy_bytes(&a)?;
    cut.truncate(700);
    assert!(npy::read(&mut Boasting(Cursor::new(cut)), "x").is_err());
    Ok(())
}

#[test]
fn a_failure_leaves_the_old_file() -> Result<()> {
    let folder = Folder::new("replace");
    let path = folder.file("x.safetensors");
    let arrays = Arrays::from([("a".to_owned(), Array::from_slice(&[7i32; 4], &[4])?)]);
    safetensors::save(&path, &arrays, None)?;
    let before = fs::read(&path).expect("the file");
    // Refused only when the file is about to be written.
    let bad = Arrays::from([("__metadata__".to_owned(), Array::scalar(1.0f32))]);
    assert!(safetensors::save(&path, &bad, None).is_err());
    assert_eq!(fs::read(&path).expect("the file"), before);
    assert_eq!(folder.names(), ["x.safetensors"]);
    Ok(())
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() -> Result<()> {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new("links");
    let (target, link) = (folder.file("target.npy"), folder.file("link.npy"));
    npy::save(&target, &Array::scalar(1i32))?;
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).expect("chmod");
    symlink(&target, &link).expect("a link");
    npy::save(&link, &Array::scalar(2i32))?;
    assert!(link.is_symlink());
    assert_eq!(npy::load(&target)?.item::<i32>()?, 2);
    let mode = fs::metadata(&target).expect("metadata").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    Ok(())
}
