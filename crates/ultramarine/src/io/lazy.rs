//! Arrays whose data is read from a file when they are evaluated.
//!
//! Such an array is an operation without operands, whose work the threads of [`reads`] do, outside of all streams. They
//! read in the order in which an evaluation needs the values, large arrays in pieces, straight into the memory that is
//! wanted: of the host, or memory that a device's backend lends. Whatever needs the value waits for it as for another
//! evaluation's.

use super::At;
use super::decode::{Decode, Layout, PIECE};
use super::runs::Runs;
use crate::backend::{self, DeviceState, PART, buffer::Buffer, buffer::BufferRef};
use crate::error::{Error, Result};
use crate::graph::attribute::Attribute;
use crate::graph::operation_key::{Opaque, OperationKey};
use crate::graph::rules::Outside;
use crate::node::{Node, Value};
use crate::ops::{Draft, Rules};
use crate::{array::Array, device::Device, devices, stream, sync::lock};
use std::any::Any;
use std::cell::Cell;
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use ultramarine_runtime::reads::{self, Fault, SourceFile};

/// File or memory that an array's data is part of.
#[derive(Clone)]
pub(super) enum Contents {
    /// A file, at any position.
    File(Arc<SourceFile>),
    /// Data that comes in order only, such as a member of an archive.
    Member(Arc<SourceFile>, Arc<dyn Member>),
}

/// Data that comes in order only.
pub(super) trait Member: Send + Sync {
    /// Calls `read` with a reader of the data from its beginning. Reading to the end may show that it is damaged.
    fn open(&self, read: &mut dyn FnMut(&mut dyn io::Read) -> Result<()>)
    -> io::Result<Result<()>>;
}

/// Where an array's bytes begin.
pub(super) struct Place {
    pub contents: Contents,
    pub start: u64,
}

/// A lazy array. Shape and size were checked, and the bytes are there.
pub(super) fn array(
    at: At<'_>,
    place: Place,
    layout: Layout,
    decode: Decode,
    what: &str,
) -> Result<Array> {
    let (name, what) = (at.name.into(), what.into());
    lazily(Request { op: at.op, name, what, place, layout, decode, runs: None })
}

/// The part of an array that ranges of an axis are: its bytes alone are read. `None` for an array that is of no file or that was
/// read, and where a read of the whole takes less time.
pub(super) fn part(array: &Array, axis: usize, ranges: &[Range<usize>]) -> Option<Result<Array>> {
    let load = array.node().op.get::<Load>()?;
    let request = {
        let whole = lock(&load.0.request);
        let whole = whole.as_ref().filter(|whole| whole.runs.is_none())?;
        let Contents::File(_) = &whole.place.contents else { return None };
        let (runs, layout) = Runs::of(&whole.layout, &whole.decode, axis, ranges)?;
        let place = Place { contents: whole.place.contents.clone(), start: whole.place.start };
        let (op, name, what) = (whole.op, whole.name.clone(), whole.what.clone());
        Request { op, name, what, place, layout, decode: Decode::Same, runs: Some(runs) }
    };
    Some(lazily(request))
}

fn lazily(request: Request) -> Result<Array> {
    let (shape, dtype) = (request.layout.shape.clone(), request.layout.dtype);
    let request = Mutex::new(Some(request));
    let pending = Pending { request, wanted: AtomicBool::default(), ahead: AtomicUsize::default() };
    Array::try_of(Load(Arc::new(pending)), &[], shape, dtype)
}

/// The error of a read that failed.
pub(super) fn failed(at: At<'_>, fault: &Fault, what: &str) -> Error {
    at.runtime(match fault {
        Fault::System(error) => format!("Reading {what} failed: {error}. Check the disk, and load the file again."),
        Fault::Cut(bytes) => format!(
            "{what} cannot be read: the file was truncated to {bytes} bytes after its header was read. Load it again."
        ),
        Fault::Changed => format!(
            "{what} cannot be read: the file was changed after its header was read. Load it again."
        ),
        Fault::Replaced => format!(
            "{what} cannot be read: the file was replaced after its header was read. Load it again."
        ),
    })
}

/// All that a read needs.
struct Request {
    op: &'static str,
    name: Box<str>,
    what: Box<str>,
    place: Place,
    layout: Layout,
    decode: Decode,
    /// Pieces of the file; `None`: the bytes from the place on.
    runs: Option<Runs>,
}

/// Data of a node of a file, beside its value.
struct Pending {
    /// Until a read takes it: with it goes the file's descriptor.
    request: Mutex<Option<Request>>,
    /// A thread waits for the value.
    wanted: AtomicBool,
    /// Bytes that were read ahead of what needs them.
    ahead: AtomicUsize,
}

impl Opaque for Pending {}

impl Drop for Pending {
    fn drop(&mut self) {
        reads::consumed(*self.ahead.get_mut());
    }
}

/// The operation.
#[derive(Clone)]
struct Load(Arc<Pending>);

impl Debug for Load {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &*lock(&self.0.request) {
            Some(request) => write!(f, "Load({} of {})", request.what, request.name),
            None => f.write_str("Load"),
        }
    }
}

impl Attribute for Load {
    fn encode(&self, key: &mut OperationKey) {
        key.opaque(self.0.clone());
    }
}

impl Rules for Load {
    fn name(&self) -> &'static str {
        "load"
    }

    fn admits(&self, _: &Draft<'_>) -> bool {
        // Files of functions have constants in its place.
        true
    }

    fn outside(&self) -> Option<&dyn Outside> {
        Some(self)
    }
}

impl Outside for Load {
    fn begin(&self, node: &Arc<Node>, consumer: Option<Device>, sync: bool) {
        let request = lock(&self.0.request).take();
        let (node, target) = (node.clone(), Mutex::new(Target::None));
        reads::submit(Arc::new(Job {
            node,
            consumer,
            sync,
            request: Mutex::new(request.map(Arc::new)),
            target,
        }));
    }

    fn hurry(&self) {
        self.0.wanted.store(true, Ordering::Release);
        reads::hurry();
    }
}

/// The memory of a read.
enum Target {
    None,
    Memory(BufferRef, &'static DeviceState),
    Failed(Error),
}

/// Memory that may be uninitialised.
type New = [MaybeUninit<u8>];

/// Fills a part of an array's memory.
type Fill<'f> = dyn FnMut(&mut New) -> Result<()> + 'f;

fn cleared(target: &mut New) -> &mut [u8] {
    target.fill(MaybeUninit::new(0));
    // SAFETY: it was just cleared.
    unsafe { target.assume_init_mut() }
}

/// Memory in which only initialised bytes are written.
fn uncleared(target: &mut [u8]) -> &mut New {
    // SAFETY: of the same layout; those who fill it initialise all of it, and write nothing else.
    unsafe { std::slice::from_raw_parts_mut(target.as_mut_ptr().cast(), target.len()) }
}

/// The read of an array that was claimed.
struct Job {
    node: Arc<Node>,
    consumer: Option<Device>,
    sync: bool,
    request: Mutex<Option<Arc<Request>>>,
    target: Mutex<Target>,
}

thread_local! {
    /// A thread's memory for blocks that are to be decoded.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Request {
    fn at(&self) -> At<'_> {
        At { op: self.op, name: &self.name }
    }

    fn file(&self) -> &Arc<SourceFile> {
        match &self.place.contents {
            Contents::File(file) => file,
            Contents::Member(file, _) => file,
        }
    }

    fn check(&self) -> Result<()> {
        self.file().check().map_err(|fault| self.failed(&fault))
    }

    fn failed(&self, fault: &Fault) -> Error {
        failed(self.at(), fault, &self.what)
    }

    /// Bytes of the array that are read at a time. A member is read by one thread, from its beginning to its end.
    fn piece(&self, bytes: usize) -> usize {
        match self.place.contents {
            Contents::File(_) => self.decode.piece(PART),
            Contents::Member(..) => bytes,
        }
    }

    /// Reads bytes of the array from an offset on, whole blocks, from a file.
    fn read(&self, file: &Arc<SourceFile>, offset: usize, target: &mut New) -> Result<()> {
        if let Some(runs) = &self.runs {
            runs.each(offset, target.len(), |at, place| {
                let read = file.read_new(self.place.start + at, &mut target[place]);
                read.map(drop).map_err(|fault| self.failed(&fault))
            })?;
            // SAFETY: the pieces have filled all of it.
            self.layout.finish(unsafe { target.assume_init_mut() });
            return Ok(());
        }
        let from = self.place.start + self.decode.stored(offset).unwrap_or(0);
        let target = match self.decode {
            Decode::Same => file.read_new(from, target).map_err(|fault| self.failed(&fault))?,
            Decode::Blocks { .. } => {
                let (target, mut scratch) = (cleared(target), SCRATCH.take());
                let step = self.decode.piece(PIECE);
                let outcome = target.chunks_mut(step).enumerate().try_for_each(|(i, part)| {
                    let from = from + self.decode.stored(i * step).unwrap_or(0);
                    let read =
                        |bytes: &mut [u8]| file.read_at(from, bytes).map_err(|f| self.failed(&f));
                    self.decode.fill(part, &mut scratch, read)
                });
                SCRATCH.set(scratch);
                outcome.map(|()| target)?
            }
        };
        self.layout.finish(target);
        Ok(())
    }

    /// Reads a member of an archive to its end, part by part.
    fn read_member(
        &self,
        member: &dyn Member,
        bytes: usize,
        put: &mut dyn FnMut(usize, usize, &mut Fill<'_>) -> Result<()>,
    ) -> Result<()> {
        let failed = |e: io::Error| self.at().runtime(format!("reading {} failed: {e}", self.what));
        let mut scratch = Vec::new();
        let mut read = |reader: &mut dyn io::Read| {
            let mut header = io::Read::take(&mut *reader, self.place.start);
            io::copy(&mut header, &mut io::sink()).map_err(failed)?;
            let (mut offset, step) = (0, self.decode.piece(PART));
            while offset < bytes {
                let part = step.min(bytes - offset);
                put(offset, part, &mut |target| {
                    let target = cleared(target);
                    let read = |bytes: &mut [u8]| reader.read_exact(bytes).map_err(failed);
                    self.decode.fill(target, &mut scratch, read)?;
                    self.layout.finish(target);
                    Ok(())
                })?;
                offset += part;
            }
            // The checksum is compared at the end.
            match reader.read(&mut [0]) {
                Ok(0) => Ok(()),
                Ok(_) => Err(self.at().runtime("A member has more bytes than the archive's directory says. Save or copy the file again.")),
                Err(e) => Err(failed(e)),
            }
        };
        member.open(&mut read).map_err(failed)?
    }
}

impl Job {
    /// The device that the value is wanted on, if that can hold it; else the host.
    fn device(&self) -> Result<&'static DeviceState> {
        let place = self.node.place;
        let wanted = if place.firm { None } else { self.consumer };
        let device = devices::get(wanted.unwrap_or(place.stream.device))?;
        Ok(if device.stores(self.node.dtype) { device } else { backend::host() })
    }

    fn pending(&self) -> Option<&Pending> {
        self.node.op.get::<Load>().map(|load| &*load.0)
    }

    fn request(&self) -> Result<Arc<Request>> {
        let request = lock(&self.request).clone();
        request.ok_or_else(|| {
            Error::runtime("load", "The data of this array was read before. Load the file again.")
        })
    }

    fn begun(&self) -> Result<usize> {
        let request = self.request()?;
        request.check()?;
        let (device, bytes) = (self.device()?, self.node.bytes());
        let buffer = Buffer::new(bytes, device)?;
        *lock(&self.target) = Target::Memory(buffer, device);
        Ok(bytes.div_ceil(request.piece(bytes).max(1)))
    }

    /// Fills a part of the array's memory.
    fn put(&self, offset: usize, bytes: usize, fill: &mut Fill<'_>) -> Result<()> {
        let (buffer, device) = match &*lock(&self.target) {
            Target::Memory(buffer, device) => (buffer.clone(), *device),
            // Another piece failed.
            _ => return Ok(()),
        };
        if device.is_host() {
            // SAFETY: the buffer is new, pieces do not overlap, and each is inside of it.
            return fill(unsafe {
                std::slice::from_raw_parts_mut(buffer.as_ptr().add(offset).cast(), bytes)
            });
        }
        if bytes <= PART {
            return device.upload(&buffer, offset, bytes, |target| fill(uncleared(target)));
        }
        // A block that is larger than a part.
        let mut whole = vec![0; bytes];
        fill(uncleared(&mut whole))?;
        for (i, part) in whole.chunks(PART).enumerate() {
            device.upload(&buffer, offset + i * PART, part.len(), |target| {
                target.copy_from_slice(part);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn read(&self, index: usize) -> Result<()> {
        let (request, bytes) = (self.request()?, self.node.bytes());
        match &request.place.contents {
            Contents::File(file) => {
                let offset = index * request.piece(bytes);
                let piece = request.piece(bytes).min(bytes - offset);
                self.put(offset, piece, &mut |target| request.read(file, offset, target))
            }
            Contents::Member(_, member) => {
                request.read_member(&**member, bytes, &mut |offset, bytes, fill| {
                    self.put(offset, bytes, fill)
                })
            }
        }
    }

    fn fail(&self, error: Error) {
        let mut target = lock(&self.target);
        if !matches!(*target, Target::Failed(_)) {
            *target = Target::Failed(error);
        }
    }
}

impl reads::Read for Job {
    fn ahead(&self) -> usize {
        // An array that a user holds stays, however late it is needed.
        let Some(pending) = self.pending() else { return 0 };
        let held = self.node.handles.load(Ordering::Acquire) > 0;
        let bytes = if held { 0 } else { self.node.bytes() };
        pending.ahead.store(bytes, Ordering::Relaxed);
        bytes
    }

    fn is_wanted(&self) -> bool {
        self.pending().is_some_and(|pending| pending.wanted.load(Ordering::Acquire))
    }

    fn begin(&self) -> usize {
        if Arc::strong_count(&self.node) == 1 {
            // Everything that wanted the value is gone.
            return 0;
        }
        self.begun().unwrap_or_else(|error| {
            self.fail(error);
            0
        })
    }

    fn piece(&self, index: usize) {
        if let Err(error) = self.read(index) {
            self.fail(error);
        }
    }

    fn end(&self) {
        // With it goes the file's descriptor, before others see the value.
        let request = lock(&self.request).take();
        let strides = request.map(|request| {
            // Concurrent writes may have been read.
            let outcome = request.check();
            outcome.map(|()| request.layout.strides())
        });
        let target = std::mem::replace(&mut *lock(&self.target), Target::None);
        let outcome = match (target, strides) {
            // That says why a read failed.
            (_, Some(Err(error))) | (Target::Failed(error), _) => Err(Arc::new(error)),
            (Target::Memory(buffer, _), Some(Ok(strides))) => {
                Ok(Value { buffer, offset: 0, strides })
            }
            _ => {
                let error = Error::runtime(
                    "load",
                    "The data of this array was not read. Load the file again.",
                );
                return self.node.finish(Err(Arc::new(error)));
            }
        };
        if let (Err(error), false) = (&outcome, self.sync)
            && let Some(stream) = stream::state(self.node.place.stream)
        {
            // A thread that raises it takes it back.
            stream.keep_failure(error.clone());
        }
        self.node.finish(outcome);
    }

    fn panicked(&self, panic: &(dyn Any + Send)) {
        self.fail(Error::runtime("load", format!("panicked: {}", crate::eval::panic_text(panic))));
    }
}
