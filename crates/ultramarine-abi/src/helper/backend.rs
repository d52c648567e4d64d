//! Traits that a backend implements.

use super::{CommandRef, Commands, Failure, Host, Request, Result, SyncEvent, SyncStream};
use crate::{DeviceIdentity, DeviceInfo, interface};
use core::ffi::{CStr, c_void};
use core::mem::MaybeUninit;

/// The suitability of a backend for this machine. If two backends serve the same device, the host
/// prefers the one with the higher score.
#[derive(Clone, Debug)]
pub struct Score {
    /// The score: 0 if the backend cannot run on this machine, and at most [`crate::MAX_SCORE`].
    pub score: u32,
    /// The reason for a score of 0.
    pub reason: String,
    /// Identities of the devices, as far as they are known.
    pub devices: Vec<DeviceIdentity>,
    /// Number of devices, which is at least the length of `devices`.
    pub device_count: u32,
}

impl Score {
    /// Makes the score of a backend that can run on `device_count` devices. `score` is from 1 to
    /// [`crate::MAX_SCORE`].
    pub fn new(score: u32, device_count: u32) -> Self {
        Self { score, reason: String::new(), devices: Vec::new(), device_count }
    }

    /// Makes the score of a backend that cannot run here. The load report shows `reason`.
    pub fn cannot(reason: impl Into<String>) -> Self {
        Self { score: 0, reason: reason.into(), devices: Vec::new(), device_count: 0 }
    }
}

/// The table of an optional interface, as [`Backend::interface`] returns it. Each of the functions
/// makes one from the table of its interface.
#[derive(Clone, Copy)]
pub struct InterfaceRef(pub(super) *const c_void);

impl InterfaceRef {
    /// Offers fused programs: [`interface::fused::FusedInterface`].
    pub fn fused(table: &'static interface::fused::FusedInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Offers fused programs with an anchor: [`interface::fused::AnchoredInterface`].
    pub fn anchored(table: &'static interface::fused::AnchoredInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Offers kernels in source form: [`interface::kernel::KernelInterface`].
    pub fn kernel(table: &'static interface::kernel::KernelInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Offers imports of foreign memory: [`interface::memory::MemoryInterface`].
    pub fn memory(table: &'static interface::memory::MemoryInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Offers copies between the backend's own devices: [`interface::peer::PeerInterface`].
    pub fn peer(table: &'static interface::peer::PeerInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Offers recorded commands: [`interface::replay::ReplayInterface`]. [`super::replay_table`]
    /// makes the table.
    pub fn replay(table: &'static interface::replay::ReplayInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Offers a description of the libraries and drivers in use:
    /// [`interface::about::AboutInterface`].
    pub fn about(table: &'static interface::about::AboutInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Offers memory in the order of streams: [`interface::stream_memory::StreamMemoryInterface`].
    pub fn stream_memory(table: &'static interface::stream_memory::StreamMemoryInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Offers timestamps: [`interface::timing::TimingInterface`]. For a device whose work is done
    /// when `submit` returns, [`super::HOST_TIMING`] is a ready-made table.
    pub fn timing(table: &'static interface::timing::TimingInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Offers memory that is lent for uploads: [`interface::upload::UploadInterface`].
    /// [`super::upload_table`] makes the table.
    pub fn upload(table: &'static interface::upload::UploadInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Offers collectives among processes: [`interface::collective::CollectiveInterface`].
    /// [`super::collective_table`] makes the table.
    pub fn collective(table: &'static interface::collective::CollectiveInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Offers counts of memory: [`interface::statistics::StatisticsInterface`].
    pub fn statistics(table: &'static interface::statistics::StatisticsInterface) -> Self {
        Self((&raw const *table).cast())
    }
}

/// A backend: the type that [`export_backend!`](crate::export_backend) makes into a plugin. Each
/// call of init makes one value.
///
/// A function that fails returns a [`Failure`], from which the macro makes the host's error object.
/// Its code is one of [`crate::status`].
pub trait Backend: Sized + Send + Sync + 'static {
    /// The type of its devices.
    type Device: Device;

    /// Returns the backend's suitability for this machine. It is called before [`Backend::new`],
    /// and perhaps [`Backend::new`] is never called, so it creates no context and no threads.
    fn score() -> Score {
        Score::new(crate::DEFAULT_SCORE, 0)
    }

    /// Starts the backend. It may keep `host` and use it from any thread.
    ///
    /// # Errors
    /// A [`Failure`] if the backend cannot run here. The load report shows its text.
    fn new(host: Host) -> Result<Self>;

    /// Returns the number of devices, at least 1.
    fn device_count(&self) -> u32 {
        1
    }

    /// Describes device `index`. `size` and the size of the identity are filled in; every other
    /// field is zero.
    ///
    /// # Errors
    /// A [`Failure`] if the device cannot be queried.
    fn device_info(&self, index: u32, info: &mut DeviceInfo) -> Result<()>;

    /// Opens device `index`. The host opens a device once, at its first use.
    ///
    /// # Errors
    /// A [`Failure`] if the device cannot be used.
    fn open(&self, index: u32) -> Result<Self::Device>;

    /// Returns the table of an optional interface, or `None` if the backend does not have it. The
    /// table's functions get the addresses of the backend's own values, as [`super::init`]
    /// describes.
    fn interface(&self, id: &CStr) -> Option<InterfaceRef> {
        let _ = id;
        None
    }
}

/// A device with its own streams and events. A device whose work is done when a function returns
/// implements [`SyncDevice`] instead.
///
/// Each function says which threads call it. *any*: any threads at the same time. *stream*: one
/// thread at a time for each stream. Every function that fails returns a [`Failure`].
pub trait Device: Send + Sync + Sized + 'static {
    /// Memory.
    type Buffer: Send + Sync + 'static;
    /// An ordered queue.
    type Stream: Send + Sync + 'static;
    /// A timeline event: a value that begins at 0 and only increases.
    type Event: Send + Sync + 'static;
    /// A prepared op.
    type Plan: Send + Sync + 'static;

    /// (any) Allocates at least `bytes` bytes.
    ///
    /// # Errors
    /// [`Failure::out_of_memory`] if there is no memory.
    fn alloc(&self, bytes: u64) -> Result<Self::Buffer>;
    /// (any) Returns the buffer's address for the host, or NULL if the host cannot access it.
    fn host_pointer(&self, buffer: &Self::Buffer) -> *mut u8 {
        let _ = buffer;
        core::ptr::null_mut()
    }
    /// (stream) Copies `source` into a buffer, from byte `offset` on. The copy is done on return,
    /// unless [`crate::device_flag::UPLOADS_IN_ORDER`] is set.
    ///
    /// # Errors
    /// A [`Failure`] if the copy cannot be made.
    fn upload(
        &self,
        stream: Option<&Self::Stream>,
        buffer: &Self::Buffer,
        offset: u64,
        source: &[u8],
    ) -> Result<()>;
    /// (stream) Copies from a buffer, from byte `offset` on, and fills all of `target`. The copy is
    /// done on return.
    ///
    /// # Errors
    /// A [`Failure`] if the copy cannot be made, or earlier work of the stream failed.
    fn download(
        &self,
        stream: Option<&Self::Stream>,
        buffer: &Self::Buffer,
        offset: u64,
        target: &mut [MaybeUninit<u8>],
    ) -> Result<()>;

    /// (any) Makes a stream.
    ///
    /// # Errors
    /// A [`Failure`] if the device cannot make one.
    fn stream(&self) -> Result<Self::Stream>;
    /// (any) Blocks until all work of the stream is done.
    ///
    /// # Errors
    /// A [`Failure`] if work of the stream failed.
    fn synchronize(&self, stream: &Self::Stream) -> Result<()>;
    /// (any) Makes an event with value 0.
    ///
    /// # Errors
    /// A [`Failure`] if the device cannot make one.
    fn event(&self) -> Result<Self::Event>;
    /// (stream) Sets the event to `value` once the stream's earlier work is done.
    ///
    /// # Errors
    /// A [`Failure`] if it cannot be enqueued.
    fn record(&self, stream: &Self::Stream, event: &Self::Event, value: u64) -> Result<()>;
    /// (stream) Makes later work of the stream wait until the event has reached `value`.
    ///
    /// # Errors
    /// A [`Failure`] if it cannot be enqueued.
    fn wait_stream(&self, stream: &Self::Stream, event: &Self::Event, value: u64) -> Result<()>;
    /// (any) Blocks the caller until the event has reached `value`.
    ///
    /// # Errors
    /// A [`Failure`] if work that was submitted before the record of that value has failed.
    fn wait_host(&self, event: &Self::Event, value: u64) -> Result<()>;
    /// (any) Returns the event's present value.
    fn query(&self, event: &Self::Event) -> u64;

    /// (any) Makes a plan for an operation, dtypes, ranks and layouts. The host keeps it and uses
    /// it for many commands.
    ///
    /// # Errors
    /// [`Failure::unsupported`] for operations that the backend does not have: the host composes
    /// the operation from others or uses the CPU. [`Failure::needs_contiguous`] makes the host copy
    /// the inputs.
    fn prepare(&self, request: &Request<'_>) -> Result<Self::Plan> {
        Err(Failure::unsupported(format!("this backend does not know op {}", request.op)))
    }
    /// (any) Returns the bytes of workspace that a command of this plan needs; 0 by default.
    fn workspace(&self, plan: &Self::Plan, command: &CommandRef<'_, Self>) -> u64 {
        let _ = (plan, command);
        0
    }
    /// (stream) Enqueues or runs commands in their order, and stops at the first one that fails.
    /// The failed command is the one that was taken last.
    ///
    /// # Errors
    /// The [`Failure`] of that command. Commands before it stay enqueued or done.
    fn submit(&self, stream: Option<&Self::Stream>, commands: Commands<'_, Self>) -> Result<()>;
}

/// A device whose copies and commands are done on return. Streams and events are ready-made;
/// [`DeviceInfo::synchronous`](crate::DeviceInfo) should be 1. All functions may be called from any
/// thread.
pub trait SyncDevice: Send + Sync + Sized + 'static {
    /// Memory.
    type Buffer: Send + Sync + 'static;
    /// A prepared op.
    type Plan: Send + Sync + 'static;

    /// Allocates memory, as [`Device::alloc`] does.
    ///
    /// # Errors
    /// As [`Device::alloc`].
    fn alloc(&self, bytes: u64) -> Result<Self::Buffer>;
    /// Returns the buffer's address for the host, or NULL, as [`Device::host_pointer`] does.
    fn host_pointer(&self, buffer: &Self::Buffer) -> *mut u8 {
        let _ = buffer;
        core::ptr::null_mut()
    }
    /// Copies into a buffer, as [`Device::upload`] does.
    ///
    /// # Errors
    /// As [`Device::upload`].
    fn upload(&self, buffer: &Self::Buffer, offset: u64, source: &[u8]) -> Result<()>;
    /// Copies from a buffer, as [`Device::download`] does.
    ///
    /// # Errors
    /// As [`Device::download`].
    fn download(
        &self,
        buffer: &Self::Buffer,
        offset: u64,
        target: &mut [MaybeUninit<u8>],
    ) -> Result<()>;
    /// Makes a plan, as [`Device::prepare`] does.
    ///
    /// # Errors
    /// As [`Device::prepare`].
    fn prepare(&self, request: &Request<'_>) -> Result<Self::Plan> {
        Err(Failure::unsupported(format!("this backend does not know op {}", request.op)))
    }
    /// Returns the bytes of workspace, as [`Device::workspace`] does.
    fn workspace(&self, plan: &Self::Plan, command: &CommandRef<'_, Self>) -> u64 {
        let _ = (plan, command);
        0
    }
    /// Runs one command to its end.
    ///
    /// # Errors
    /// A [`Failure`], which poisons the results of the command.
    fn run(&self, plan: &Self::Plan, command: &CommandRef<'_, Self>) -> Result<()>;
}

impl<D: SyncDevice> Device for D {
    type Buffer = <D as SyncDevice>::Buffer;
    type Stream = SyncStream;
    type Event = SyncEvent;
    type Plan = <D as SyncDevice>::Plan;

    fn alloc(&self, bytes: u64) -> Result<Self::Buffer> {
        SyncDevice::alloc(self, bytes)
    }
    fn host_pointer(&self, buffer: &Self::Buffer) -> *mut u8 {
        SyncDevice::host_pointer(self, buffer)
    }
    fn upload(
        &self,
        _stream: Option<&SyncStream>,
        buffer: &Self::Buffer,
        offset: u64,
        source: &[u8],
    ) -> Result<()> {
        SyncDevice::upload(self, buffer, offset, source)
    }
    fn download(
        &self,
        _stream: Option<&SyncStream>,
        buffer: &Self::Buffer,
        offset: u64,
        target: &mut [MaybeUninit<u8>],
    ) -> Result<()> {
        SyncDevice::download(self, buffer, offset, target)
    }
    fn stream(&self) -> Result<SyncStream> {
        Ok(SyncStream::default())
    }
    fn synchronize(&self, _stream: &SyncStream) -> Result<()> {
        Ok(())
    }
    fn event(&self) -> Result<SyncEvent> {
        Ok(SyncEvent::new())
    }
    fn record(&self, _stream: &SyncStream, event: &SyncEvent, value: u64) -> Result<()> {
        event.reach(value);
        Ok(())
    }
    fn wait_stream(&self, _stream: &SyncStream, event: &SyncEvent, value: u64) -> Result<()> {
        event.wait(value);
        Ok(())
    }
    fn wait_host(&self, event: &SyncEvent, value: u64) -> Result<()> {
        event.wait(value);
        Ok(())
    }
    fn query(&self, event: &SyncEvent) -> u64 {
        event.value()
    }
    fn prepare(&self, request: &Request<'_>) -> Result<Self::Plan> {
        SyncDevice::prepare(self, request)
    }
    fn workspace(&self, plan: &Self::Plan, command: &CommandRef<'_, Self>) -> u64 {
        SyncDevice::workspace(self, plan, command)
    }
    fn submit(&self, _stream: Option<&SyncStream>, commands: Commands<'_, Self>) -> Result<()> {
        for command in commands {
            self.run(command.plan()?, &command)?;
        }
        Ok(())
    }
}
