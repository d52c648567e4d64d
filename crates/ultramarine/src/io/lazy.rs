//! Arrays whose data is read from a file when they are evaluated.
//!
//! Such an array is an operation without operands, whose work runs on the threads of [`reads`], outside of all streams.
//! These threads read in the order in which an evaluation needs the values, large arrays in pieces. They read directly
//! into the final memory, which is the host's or lent by a device's backend. Users of the value wait for it as for the
//! result of another evaluation.

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
    /// Data that can only be read in order, such as a member of an archive.
    Member(Arc<SourceFile>, Arc<dyn Member>),
}

/// Data that can only be read in order.
pub(super) trait Member: Send + Sync {
    /// Calls `read` with a reader of the data from its beginning. Reading to the end can reveal damage.
    fn open(&self, read: &mut dyn FnMut(&mut dyn io::Read) -> Result<()>)
    -> io::Result<Result<()>>;
}

/// Where an array's bytes begin.
pub(super) struct Place {
    pub contents: Contents,
    pub start: u64,
}

/// A lazy array. The caller has checked its shape and size, and that the bytes exist.
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

/// The part of an array given by ranges of an axis. Only its bytes are read. `None` for an array that is not from a
/// file or has already been read, and if reading the whole array takes less time.
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

/// All inputs of a read.
struct Request {
    op: &'static str,
    name: Box<str>,
    what: Box<str>,
    place: Place,
    layout: Layout,
    decode: Decode,
    /// Pieces of the file; `None`: consecutive bytes from the place on.
    runs: Option<Runs>,
}

/// Data of a node that is read from a file, in addition to its value.
struct Pending {
    /// The request, until a read takes it. Dropping it closes the file's descriptor.
    request: Mutex<Option<Request>>,
    /// Set if a thread waits for the value.
    wanted: AtomicBool,
    /// Bytes that were read before they were needed.
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
        // In files of exported functions, a constant replaces this operation.
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

/// The memory that a read fills.
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

/// Memory to which only initialised bytes are written.
fn uncleared(target: &mut [u8]) -> &mut New {
    // SAFETY: the layout is the same; the functions that fill the memory initialise all of it, and write only
    // initialised bytes.
    unsafe { std::slice::from_raw_parts_mut(target.as_mut_ptr().cast(), target.len()) }
}

/// The read of an array that an evaluation has claimed.
struct Job {
    node: Arc<Node>,
    consumer: Option<Device>,
    sync: bool,
    request: Mutex<Option<Arc<Request>>>,
    target: Mutex<Target>,
}

thread_local! {
    /// Per-thread memory for blocks before they are decoded.
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

    /// Reads bytes of the array, which are whole blocks, from an offset on, from a file.
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
            // Reading at the end compares the checksum.
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
    /// The device on which the value is wanted, if it can hold the value; else the host.
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
            // Another piece has failed.
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
        // A single block can be larger than a part.
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
        // An array that the user holds is kept, no matter how late it is needed.
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
            // All users of the value are gone.
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
        // Dropping the request closes the file's descriptor before others see the value.
        let request = lock(&self.request).take();
        let strides = request.map(|request| {
            // Another process may have written to the file during the read.
            let outcome = request.check();
            outcome.map(|()| request.layout.strides())
        });
        let target = std::mem::replace(&mut *lock(&self.target), Target::None);
        let outcome = match (target, strides) {
            // A change of the file explains why a read failed, so report it first.
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
            // A thread that reports the failure takes it from the stream again.
            stream.keep_failure(error.clone());
        }
        self.node.finish(outcome);
    }

    fn panicked(&self, panic: &(dyn Any + Send)) {
        self.fail(Error::runtime("load", format!("panicked: {}", crate::eval::panic_text(panic))));
    }
}
