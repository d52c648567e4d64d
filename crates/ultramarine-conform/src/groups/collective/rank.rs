//! A rank: opens the group by an id that rank 0 writes to a file, runs all cases, and writes a line
//! for each.

use super::{PASS, SKIP, cases};
use crate::device::{Buffer, Device, Handle};
use crate::options::{Options, Rank};
use crate::plugin::{Backend, call};
use crate::record::{Outcome, Result};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use ultramarine_abi::interface::collective::{
    self, CollectiveCommand, CollectiveId, CollectiveInterface,
};
use ultramarine_abi::status;

/// Time in which ranks meet, and a group opens.
const PATIENCE: Duration = Duration::from_secs(60);

/// A group of this rank's.
#[derive(Clone, Copy)]
pub struct Group {
    pub handle: Handle,
    pub rank: u32,
    pub size: u32,
}

/// The rank's device, with a stream of it.
pub struct Side<'a> {
    pub device: &'a Device<'a>,
    pub interface: CollectiveInterface,
    pub stream: Handle,
    meeting: &'a Path,
}

/// The interface's function.
macro_rules! function {
    ($side:expr, $name:ident) => {
        $side.interface.$name.ok_or(concat!("no function ", stringify!($name)))?
    };
}

/// Returns the reason if the backend has the interface, but no communication library on this
/// machine.
pub fn lacks_library(
    device: &Device<'_>,
    interface: &CollectiveInterface,
) -> Result<Option<String>, String> {
    let make_id = interface.make_id.ok_or("no function make_id")?;
    // SAFETY: an open device; without a place nothing is made.
    match call("make_id", |e| unsafe { make_id(device.handle, std::ptr::null_mut(), e) }) {
        Ok(()) => Ok(None),
        Err(failure) if failure.code == status::UNSUPPORTED => Ok(Some(failure.into())),
        Err(failure) => Err(failure.into()),
    }
}

pub fn run(options: &Options, rank: &Rank) -> Result<(), String> {
    let backend = Backend::load(&options.source)?;
    let device = Device::open(&backend, options.device)?;
    // SAFETY: the id's own struct.
    let found = unsafe { device.interface::<CollectiveInterface>(collective::INTERFACE) };
    let interface = found.ok_or("not offered")?;
    let stream = device.stream()?;
    let side = Side { device: &device, interface, stream, meeting: &rank.meeting };
    let output = OpenOptions::new().create(true).append(true).open(&rank.output);
    let mut output = output.map_err(|e| format!("{}: {e}", rank.output.display()))?;
    let group = side.open("all", rank.rank, rank.size)?;
    for name in cases::NAMES {
        let text = match cases::run(&side, group, name) {
            Ok(Outcome::Passed) => PASS.to_owned(),
            Ok(Outcome::Skipped(why)) => format!("{SKIP}{why}"),
            Err(why) => why.replace('\n', " "),
        };
        // After a failure the ranks may no longer be in step.
        let failed = text != PASS && !text.starts_with(SKIP);
        writeln!(output, "{name}\t{text}").map_err(|e| e.to_string())?;
        if failed {
            return Err(text);
        }
    }
    side.close(group)?;
    device.synchronize(stream)?;
    device.destroy_stream(stream);
    Ok(())
}

impl Side<'_> {
    /// Opens a group of all ranks, by an id under a name.
    pub fn open(&self, name: &str, rank: u32, size: u32) -> Result<Group, String> {
        let make_id = function!(self, make_id);
        let mut id = CollectiveId::default();
        let path = self.meeting.join(name);
        if rank == 0 {
            // SAFETY: an open device and a place for the id.
            call("make_id", |e| unsafe { make_id(self.device.handle, &mut id, e) })?;
            let used = id.bytes.get(..id.length as usize).ok_or("an id longer than its struct")?;
            ensure!(!used.is_empty(), "an id of no bytes");
            let new = path.with_extension("new");
            let written = std::fs::write(&new, used).and_then(|()| std::fs::rename(&new, &path));
            written.map_err(|e| format!("{}: {e}", path.display()))?;
        } else {
            let until = Instant::now() + PATIENCE;
            let read = loop {
                match std::fs::read(&path) {
                    Ok(read) => break read,
                    Err(_) if Instant::now() < until => {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    Err(why) => return Err(format!("rank 0 left no id: {why}")),
                }
            };
            id.length = read.len() as u32;
            id.bytes[..read.len()].copy_from_slice(&read);
        }
        let open = function!(self, open);
        let mut handle = std::ptr::null_mut();
        let start = Instant::now();
        // SAFETY: an open device, an id, a place for the handle.
        call("open", |e| unsafe { open(self.device.handle, &id, rank, size, &mut handle, e) })?;
        ensure!(!handle.is_null(), "open returned OK and no group");
        ensure!(
            start.elapsed() < Duration::from_secs(30),
            "open waited {:.0} s",
            start.elapsed().as_secs_f64()
        );
        let group = self.ready(Handle(handle))?;
        ensure!(
            (group.rank, group.size) == (rank, size),
            "opened as rank {rank} of {size}, it says rank {} of {}",
            group.rank,
            group.size
        );
        Ok(group)
    }

    /// Waits until a group is open.
    pub fn ready(&self, handle: Handle) -> Result<Group, String> {
        let (status_of, place) = (function!(self, status), function!(self, place));
        let until = Instant::now() + PATIENCE;
        loop {
            // SAFETY: a group of an open device.
            match call("status", |e| unsafe { status_of(self.device.handle, handle.0, e) }) {
                Ok(()) => break,
                Err(failure) if failure.code != status::NOT_YET => return Err(failure.into()),
                Err(_) if Instant::now() > until => {
                    return Err(format!("a group is not open after {} s", PATIENCE.as_secs()));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
        let (mut rank, mut size) = (0, 0);
        // SAFETY: as above, and two places.
        call("place", |e| unsafe { place(self.device.handle, handle.0, &mut rank, &mut size, e) })?;
        Ok(Group { handle, rank, size })
    }

    pub fn split(&self, group: Group, color: u32, key: i32) -> Result<Group, String> {
        let split = function!(self, split);
        let mut handle = std::ptr::null_mut();
        // SAFETY: a group of an open device, and a place for the handle.
        call("split", |e| unsafe {
            split(self.device.handle, group.handle.0, color, key, &mut handle, e)
        })?;
        self.ready(Handle(handle))
    }

    pub fn run(&self, group: Group, commands: &[CollectiveCommand]) -> Result<(), String> {
        let run = function!(self, run);
        let n = commands.len() as u32;
        // SAFETY: handles of an open device; the commands' ranges lie in their buffers.
        call("run", |e| unsafe {
            run(self.device.handle, group.handle.0, self.stream.0, commands.as_ptr(), n, e)
        })?;
        Ok(())
    }

    pub fn abort(&self, group: Group) -> Result<(), String> {
        let abort = function!(self, abort);
        // SAFETY: a group of an open device.
        unsafe { abort(self.device.handle, group.handle.0) };
        Ok(())
    }

    pub fn close(&self, group: Group) -> Result<(), String> {
        let close = function!(self, close);
        // SAFETY: a group of an open device, closed once.
        unsafe { close(self.device.handle, group.handle.0) };
        Ok(())
    }

    pub fn read(&self, buffer: Buffer) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; buffer.bytes as usize];
        self.device.read(self.stream, buffer, 0, &mut bytes)?;
        Ok(bytes)
    }
}
