//! Files whose data is read later, at any position and by any thread.

use crate::sync::lock;
use std::collections::VecDeque;
use std::fs::{self, File, Metadata};
use std::io;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::SystemTime;

/// The state of a file at one time. If two stamps are equal, the content is the same as far as the
/// system reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device and inode, if the system has them.
    identity: (u64, u64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Stamp {
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            (metadata.dev(), metadata.ino())
        };
        #[cfg(not(unix))]
        let identity = (0, 0);
        Stamp { bytes: metadata.len(), modified: metadata.modified().ok(), identity }
    }
}

/// The reason why data cannot be read.
#[derive(Debug)]
pub enum Fault {
    /// The system's error.
    System(io::Error),
    /// The file is shorter than when it was opened. The value is its present length in bytes.
    Cut(u64),
    /// The file was written to after it was opened.
    Changed,
    /// The path leads to another file now.
    Replaced,
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::System(error)
    }
}

/// A file that is read later. Its descriptor stays open, so that it can be read even if another
/// file replaces it at the path.
///
/// The number of descriptors of a process is limited. If there are too many, the one that was
/// opened first is closed. For the next read, the path is opened again if the same file is still
/// there.
pub struct SourceFile {
    path: PathBuf,
    stamp: Stamp,
    open: Mutex<Option<Arc<File>>>,
}

/// The files that have a descriptor, in the order in which they were opened.
static OPEN: Mutex<VecDeque<Weak<SourceFile>>> = Mutex::new(VecDeque::new());

/// Files whose descriptors were closed because there were too many.
static CLOSED: Mutex<Vec<Weak<SourceFile>>> = Mutex::new(Vec::new());

/// Returns the most descriptors for files: half of those that the process may have.
fn most() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| (limit() / 2).clamp(8, 4096))
}

#[cfg(unix)]
fn limit() -> usize {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is valid for writing.
    match unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) } {
        0 => usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX),
        _ => 0,
    }
}

#[cfg(not(unix))]
fn limit() -> usize {
    1024
}

impl SourceFile {
    /// Opens a file. Read the file's header after this call, so that later changes are noticed.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(path: &Path) -> io::Result<Arc<SourceFile>> {
        let file = File::open(path)?;
        let stamp = Stamp::of(&file.metadata()?);
        // Make the path absolute, because the working directory may change.
        let path = std::path::absolute(path)?;
        let open = Mutex::new(Some(Arc::new(file)));
        let source = Arc::new(SourceFile { path, stamp, open });
        note_open(&source);
        Ok(source)
    }

    /// Returns the length of the file in bytes when it was opened.
    pub fn bytes(&self) -> u64 {
        self.stamp.bytes
    }

    /// Returns true for a regular file, which can be read at any position.
    ///
    /// # Errors
    /// Those of the system.
    pub fn is_regular(self: &Arc<Self>) -> Result<bool, Fault> {
        Ok(self.file()?.metadata()?.is_file())
    }

    /// Returns an error if the path is known to lead to another file than the one that was opened,
    /// or if the file has changed.
    ///
    /// # Errors
    /// All of [`Fault`].
    pub fn check(self: &Arc<Self>) -> Result<(), Fault> {
        let now = Stamp::of(&self.file()?.metadata()?);
        match now == self.stamp {
            true => Ok(()),
            false if now.bytes < self.stamp.bytes => Err(Fault::Cut(now.bytes)),
            false => Err(Fault::Changed),
        }
    }

    /// Fills `target` with the file's bytes from `offset` on.
    ///
    /// # Errors
    /// All of [`Fault`].
    pub fn read_at(self: &Arc<Self>, offset: u64, target: &mut [u8]) -> Result<(), Fault> {
        // SAFETY: the memory is initialised and of the same type, and only initialised bytes are
        // written to it.
        let target = unsafe {
            std::slice::from_raw_parts_mut(
                target.as_mut_ptr().cast::<MaybeUninit<u8>>(),
                target.len(),
            )
        };
        self.read_new(offset, target).map(drop)
    }

    /// Like [`SourceFile::read_at`], but fills new memory, which is then initialised.
    ///
    /// # Errors
    /// All of [`Fault`].
    pub fn read_new<'t>(
        self: &Arc<Self>,
        offset: u64,
        target: &'t mut [MaybeUninit<u8>],
    ) -> Result<&'t mut [u8], Fault> {
        let (file, mut done) = (self.file()?, 0);
        while done < target.len() {
            match read_some(&file, offset + done as u64, &mut target[done..]) {
                Ok(0) => return Err(Fault::Cut(file.metadata()?.len())),
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        // SAFETY: all bytes were read.
        Ok(unsafe { target.assume_init_mut() })
    }

    /// Reads as many bytes as the system returns at once. 0 means the end of the file.
    ///
    /// # Errors
    /// All of [`Fault`].
    pub fn read_some_at(self: &Arc<Self>, offset: u64, target: &mut [u8]) -> Result<usize, Fault> {
        // SAFETY: as in `read_at`.
        let target = unsafe {
            std::slice::from_raw_parts_mut(
                target.as_mut_ptr().cast::<MaybeUninit<u8>>(),
                target.len(),
            )
        };
        Ok(read_some(&*self.file()?, offset, target)?)
    }

    /// Returns the descriptor. Opens the file again if the descriptor was closed.
    fn file(self: &Arc<Self>) -> Result<Arc<File>, Fault> {
        let mut open = lock(&self.open);
        if let Some(file) = &*open {
            return Ok(file.clone());
        }
        let file = Arc::new(File::open(&self.path)?);
        if Stamp::of(&file.metadata()?) != self.stamp {
            return Err(Fault::Replaced);
        }
        *open = Some(file.clone());
        drop(open);
        note_open(self);
        Ok(file)
    }
}

/// Reads some bytes into the beginning of new memory.
#[cfg(unix)]
fn read_some(file: &File, offset: u64, target: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    use std::os::fd::AsRawFd;
    let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
    // Some systems refuse larger reads.
    let bytes = target.len().min(1 << 30);
    // SAFETY: the target has that many bytes, and the descriptor stays open while `file` lives.
    let read = unsafe { libc::pread(file.as_raw_fd(), target.as_mut_ptr().cast(), bytes, offset) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

#[cfg(windows)]
fn read_some(file: &File, offset: u64, target: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    target.fill(MaybeUninit::new(0));
    // SAFETY: the memory was just zeroed.
    std::os::windows::fs::FileExt::seek_read(file, unsafe { target.assume_init_mut() }, offset)
}

/// Records that a file has a descriptor, and closes other descriptors if there are too many.
fn note_open(file: &Arc<SourceFile>) {
    let mut closed = Vec::new();
    let mut open = lock(&OPEN);
    open.push_back(Arc::downgrade(file));
    if open.len() > most() {
        open.retain(|file| file.strong_count() > 0);
    }
    while open.len() > most() {
        closed.extend(open.pop_front());
    }
    drop(open);
    for file in closed.iter().filter_map(Weak::upgrade) {
        // A read in progress keeps its descriptor until it is done.
        drop(lock(&file.open).take());
    }
    if !closed.is_empty() {
        let mut all = lock(&CLOSED);
        all.retain(|file| file.strong_count() > 0);
        all.extend(closed);
    }
}

/// Opens the files that will be read later and are at `path`, if their descriptors were closed.
/// Called before another file replaces the one at the path.
pub fn keep_open(path: &Path) {
    let Ok(metadata) = fs::metadata(path) else { return };
    let (identity, closed) = (Stamp::of(&metadata).identity, lock(&CLOSED).clone());
    let here = |file: &Arc<SourceFile>| file.stamp.identity == identity;
    for file in closed.iter().filter_map(Weak::upgrade).filter(here) {
        // Ignore the error, because the file's reads will find it.
        let _ = file.file();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write;

    fn made(name: &str, bytes: &[u8]) -> PathBuf {
        let path = std::env::temp_dir().join(format!("reads-{}-{name}", std::process::id()));
        assert!(fs::write(&path, bytes).is_ok());
        path
    }

    fn read(file: &Arc<SourceFile>) -> Result<[u8; 3], Fault> {
        let mut target = [0; 3];
        file.read_at(1, &mut target).map(|()| target)
    }

    #[test]
    fn a_file_that_is_replaced_is_read_as_it_was() {
        let path = made("replaced", b"abcd");
        let Ok(file) = SourceFile::open(&path) else { panic!("not opened") };
        let other = made("other", b"wxyz");
        assert!(fs::rename(other, &path).is_ok());
        assert!(file.check().is_ok());
        assert_eq!(read(&file).ok(), Some(*b"bcd"));
        // Without the descriptor, the file's data is lost.
        drop(lock(&file.open).take());
        assert!(matches!(read(&file), Err(Fault::Replaced)));
        let _ = fs::remove_file(path);
    }

    #[test]
    fn a_file_that_is_written_to_is_noticed() {
        let path = made("written", b"abcd");
        let Ok(file) = SourceFile::open(&path) else { panic!("not opened") };
        let append = OpenOptions::new().append(true).open(&path);
        assert!(append.is_ok_and(|mut f| f.write_all(b"e").is_ok()));
        assert!(matches!(file.check(), Err(Fault::Changed)));
        assert!(fs::write(&path, b"ab").is_ok());
        assert!(matches!(file.check(), Err(Fault::Cut(2))));
        assert!(matches!(read(&file), Err(Fault::Cut(2))));
        let _ = fs::remove_file(path);
    }

    #[test]
    fn a_closed_file_is_opened_before_another_takes_its_place() {
        let path = made("kept", b"abcd");
        let Ok(file) = SourceFile::open(&path) else { panic!("not opened") };
        drop(lock(&file.open).take());
        lock(&CLOSED).push(Arc::downgrade(&file));
        keep_open(&path);
        assert!(fs::remove_file(path).is_ok());
        assert_eq!(read(&file).ok(), Some(*b"bcd"));
    }
}
