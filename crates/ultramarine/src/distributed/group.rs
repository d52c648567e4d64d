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
/// Clones are the same group. All processes of a group call the same operations of it, in the same order; in which order
/// the results are evaluated is up to each. Operations of a group run on a stream of its own, beside computations.
#[derive(Clone)]
pub struct Group(Arc<Inner>);

/// A group that others keep.
#[derive(Clone)]
pub(super) struct WeakGroup(Weak<Inner>);

impl WeakGroup {
    pub fn group(&self) -> Option<Group> {
        self.0.upgrade().map(Group)
    }
}

pub(super) struct Inner {
    /// Groups that were made earlier have lower ones.
    number: u64,
    /// `None`: the calling process alone.
    transport: Option<Arc<dyn Transport>>,
    stream: Stream,
    /// Streams of GPUs whose memory the transport takes.
    device_streams: Mutex<Vec<Stream>>,
    chain: Chain,
    /// Operations that have begun to run.
    ran: AtomicU64,
    /// Those in which all processes take part, which debug mode compares.
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

/// Returns true if a device waits for the other processes.
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

/// A stream for communication alone.
fn own_stream(device: Device) -> Stream {
    // Not one of the thread's, which end with it.
    let stream = stream::take(device);
    // A thread that waits for another process can be interrupted, and one that communicates cannot.
    stream::set_off_callers(stream, true);
    stream
}

/// Each group is one of its own, in this process.
impl Attribute for Group {
    fn encode(&self, key: &mut OperationKey) {
        key.opaque(self.0.clone());
    }
}

impl Group {
    /// Evaluates all operations of the group that were called, also those whose results nobody has evaluated, and waits for
    /// them. A process that ends without evaluating what others do has them wait for it.
    ///
    /// # Errors
    /// As an evaluation of the results.
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

    /// All groups that there are, in the order in which they were made.
    pub(super) fn all() -> Vec<Group> {
        lock(&GROUPS).iter().filter_map(Weak::upgrade).map(Group).collect()
    }

    /// The group of the calling process alone.
    pub(super) fn alone() -> Group {
        Group::make(None, stream::default_of(crate::Device::CPU))
    }

    /// A group on a stream of its own.
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

    /// Returns the number of the calling process in the group, from 0 to [`Group::size`] - 1.
    pub fn rank(&self) -> usize {
        self.0.transport.as_ref().map_or(0, |t| t.rank())
    }

    /// Returns the number of processes in the group.
    pub fn size(&self) -> usize {
        self.0.transport.as_ref().map_or(1, |t| t.size())
    }

    /// Returns the name of the library that communicates: `mpi` or `nccl`. It is `None` for a group
    /// of the calling process alone, which needs no library.
    pub fn backend(&self) -> Option<&'static str> {
        self.0.transport.as_ref().map(|t| t.name())
    }

    /// Splits the group into groups of the processes that give the same `color`. Ranks in a new group follow `key`, then
    /// the ranks in this one; a negative key stands for the rank. All processes of the group call it. Operations of the
    /// group that were called before are evaluated first.
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

    /// The group, as long as there is one.
    pub(super) fn weak(&self) -> WeakGroup {
        WeakGroup(Arc::downgrade(&self.0))
    }

    /// The stream of its operations.
    pub(super) fn stream(&self) -> Stream {
        self.0.stream
    }

    /// The stream of an operation on an array of this device: one of the device's own, if the transport takes its memory.
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

    /// Counts an operation that begins to run. Its number from 1 on.
    pub(super) fn begins(&self) -> u64 {
        self.0.ran.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// As [`Group::begins`], among those in which all processes take part.
    pub(super) fn begins_together(&self) -> u64 {
        self.0.compared.fetch_add(1, Ordering::Relaxed) + 1
    }
}
