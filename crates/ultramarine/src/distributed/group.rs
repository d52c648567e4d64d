//! Groups of processes.

use super::chain::Chain;
use super::transport::{Engine, Kind, Transport};
use crate::device::{Device, DeviceType};
use crate::error::{Result, bail};
use crate::eval::note_group_ahead;
use crate::graph::attribute::Attribute;
use crate::graph::operation_key::{Opaque, OperationKey};
use crate::stream::{self, Stream};
use crate::sync::lock;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// Processes that communicate with each other.
///
/// Clones are the same group. All processes of a group must call the same operations on it, in the
/// same order. Each process may evaluate the results in any order. Operations of a group run on a
/// separate stream, concurrently with computations.
#[derive(Clone)]
pub struct Group(Arc<Inner>);

/// A weak reference to a group.
#[derive(Clone)]
pub(super) struct WeakGroup(Weak<Inner>);

impl WeakGroup {
    pub fn group(&self) -> Option<Group> {
        self.0.upgrade().map(Group)
    }
}

pub(super) struct Inner {
    /// Groups that were made earlier have lower numbers.
    number: u64,
    /// `None` for a group of the calling process only.
    transport: Option<Arc<dyn Transport>>,
    stream: Stream,
    /// Streams of GPUs whose memory the transport accepts.
    device_streams: Mutex<Vec<Stream>>,
    chain: Chain,
    /// Number of operations that have begun to run.
    ran: AtomicU64,
    /// Number of operations in which all processes take part. Debug mode compares these.
    compared: AtomicU64,
}

/// All groups, until they are dropped.
static GROUPS: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

impl Opaque for Inner {
    fn number(&self) -> Option<u64> {
        Some(self.number)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(transport) = &self.transport {
            if runs_ahead(&**transport) {
                note_group_ahead(false);
            }
            let others = std::mem::take(&mut *lock(&self.device_streams));
            for own in others.into_iter().chain([self.stream]) {
                stream::set_off_callers(own, false);
                stream::release_stream(own);
            }
        }
    }
}

/// Returns true if the device, and not the host, waits for the other processes.
fn runs_ahead(transport: &dyn Transport) -> bool {
    matches!(transport.engine(), Engine::Device(_))
}

impl PartialEq for Group {
    fn eq(&self, other: &Group) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Group {}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let backend = self.backend().unwrap_or("none");
        write!(f, "Group(rank {} of {}, {backend})", self.rank(), self.size())
    }
}

/// Takes a stream that is used for communication only.
fn own_stream(device: Device) -> Stream {
    // Not one of the thread's streams, because they end with the thread.
    let stream = stream::take(device);
    // Keep the work off the calling thread, because a thread that waits can be interrupted, but a
    // thread that communicates cannot.
    stream::set_off_callers(stream, true);
    stream
}

/// Each group is distinct, and is valid in this process only.
impl Attribute for Group {
    fn encode(&self, key: &mut OperationKey) {
        key.opaque(self.0.clone());
    }
}

impl Group {
    /// Evaluates all operations of the group that were called, and waits for them, even if their
    /// results were not evaluated. If a process ends without evaluating an operation that others
    /// evaluate, the others wait for it.
    ///
    /// # Errors
    /// Those of evaluating the results.
    pub fn finish(&self) -> Result<()> {
        self.chain().last().map_or(Ok(()), |token| token.eval())
    }

    fn make(transport: Option<Arc<dyn Transport>>, stream: Stream) -> Group {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let group = Group(Arc::new(Inner {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            transport,
            stream,
            device_streams: Mutex::default(),
            chain: Chain::default(),
            ran: AtomicU64::new(0),
            compared: AtomicU64::new(0),
        }));
        let mut all = lock(&GROUPS);
        all.retain(|group| group.strong_count() > 0);
        all.push(Arc::downgrade(&group.0));
        group
    }

    /// Returns all existing groups, in the order in which they were made.
    pub(super) fn all() -> Vec<Group> {
        lock(&GROUPS).iter().filter_map(Weak::upgrade).map(Group).collect()
    }

    /// The group of the calling process only.
    pub(super) fn alone() -> Group {
        Group::make(None, stream::default_of(crate::Device::CPU))
    }

    /// Makes a group on a stream of its own.
    ///
    /// # Errors
    /// [`crate::Error::Value`] if the transport's device does not exist.
    pub(crate) fn of(transport: Arc<dyn Transport>) -> Result<Group> {
        let device = transport.device();
        crate::devices::get(device)?;
        if runs_ahead(&*transport) {
            note_group_ahead(true);
        }
        Ok(Group::make(Some(transport), own_stream(device)))
    }

    /// Returns the rank of the calling process in the group, from 0 to [`Group::size`] - 1.
    pub fn rank(&self) -> usize {
        self.0.transport.as_ref().map_or(0, |t| t.rank())
    }

    /// Returns the number of processes in the group.
    pub fn size(&self) -> usize {
        self.0.transport.as_ref().map_or(1, |t| t.size())
    }

    /// Returns the name of the library that communicates: `mpi` or `nccl`. `None` for a group of
    /// the calling process only, which needs no library.
    pub fn backend(&self) -> Option<&'static str> {
        self.0.transport.as_ref().map(|t| t.name())
    }

    /// Splits the group: the processes that pass the same `color` form a new group. Ranks in the
    /// new group are ordered by `key`, then by the ranks in this group. A negative key means the
    /// rank in this group. All processes of the group have to call it. It first evaluates all
    /// operations of the group that were called before.
    ///
    /// # Errors
    /// [`crate::Error::Value`] for a negative color; [`crate::Error::Runtime`] for a group of one process, or if the
    /// library fails.
    pub fn split(&self, color: i32, key: i32) -> Result<Group> {
        let Some(transport) = &self.0.transport else {
            return Err(crate::Error::runtime(
                "split",
                "A group of 1 process cannot be split. Use the group itself.",
            ));
        };
        if color < 0 {
            bail!("split", "`color` is {color}. Number the new groups from 0 on.");
        }
        self.finish()?;
        let key = if key < 0 { self.rank() as i32 } else { key };
        Group::of(transport.split(color, key)?)
    }

    /// A weak reference to the group.
    pub(super) fn weak(&self) -> WeakGroup {
        WeakGroup(Arc::downgrade(&self.0))
    }

    /// The stream of its operations.
    pub(super) fn stream(&self) -> Stream {
        self.0.stream
    }

    /// Returns the stream for an operation on an array of this device: a stream of the device if
    /// the transport accepts its memory, otherwise the group's stream.
    pub(super) fn stream_for(&self, device: Option<Device>, kind: Kind) -> Stream {
        let Some(device) = device.filter(|device| {
            let transport = self.transport();
            device.kind == DeviceType::Gpu
                && transport.is_some_and(|t| t.takes_device_memory(*device, kind))
        }) else {
            return self.stream();
        };
        let mut known = lock(&self.0.device_streams);
        if let Some(stream) = known.iter().find(|stream| stream.device == device) {
            return *stream;
        }
        let made = own_stream(device);
        known.push(made);
        made
    }

    pub(super) fn transport(&self) -> Option<&dyn Transport> {
        self.0.transport.as_deref()
    }

    pub(super) fn chain(&self) -> &Chain {
        &self.0.chain
    }

    pub(super) fn number(&self) -> u64 {
        self.0.number
    }

    /// Counts an operation that begins to run, and returns its number, from 1 on.
    pub(super) fn begins(&self) -> u64 {
        self.0.ran.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts like [`Group::begins`], but only the operations in which all processes take part.
    pub(super) fn begins_together(&self) -> u64 {
        self.0.compared.fetch_add(1, Ordering::Relaxed) + 1
    }
}
