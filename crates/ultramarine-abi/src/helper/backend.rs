//! Traits that a backend implements.

use super::{CommandRef, Commands, Failure, Host, Request, Result, SyncEvent, SyncStream};
use crate::{DeviceIdentity, DeviceInfo, interface};
use core::ffi::{CStr, c_void};
use core::mem::MaybeUninit;

/// Score of a backend on this machine.
#[derive(Clone, Debug)]
pub struct Score {
    /// 0: cannot run here. Up to [`crate::MAX_SCORE`].
    pub score: u32,
    /// Why the score is 0.
    pub reason: String,
    /// Identities of the devices, as far as they are known.
    pub devices: Vec<DeviceIdentity>,
    /// Number of devices; at least as many as there are in `devices`.
    pub device_count: u32,
}

impl Score {
    /// It can run, with that score, on that many devices.
    pub fn new(score: u32, device_count: u32) -> Self {
        Self { score, reason: String::new(), devices: Vec::new(), device_count }
    }

    /// It cannot run here.
    pub fn cannot(reason: impl Into<String>) -> Self {
        Self { score: 0, reason: reason.into(), devices: Vec::new(), device_count: 0 }
    }
}

/// The table of an optional interface, as [`Backend::interface`] returns it.
#[derive(Clone, Copy)]
pub struct InterfaceRef(pub(super) *const c_void);

impl InterfaceRef {
    /// The fused programs of a backend.
    pub fn fused(table: &'static interface::fused::FusedInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Fused programs with an anchor.
    pub fn anchored(table: &'static interface::fused::AnchoredInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Kernels in source form.
    pub fn kernel(table: &'static interface::kernel::KernelInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Foreign memory.
    pub fn memory(table: &'static interface::memory::MemoryInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Copies within the backend.
    pub fn peer(table: &'static interface::peer::PeerInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Recorded commands.
    pub fn replay(table: &'static interface::replay::ReplayInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// A description of the libraries and drivers in use.
    pub fn about(table: &'static interface::about::AboutInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Memory in the order of streams.
    pub fn stream_memory(table: &'static interface::stream_memory::StreamMemoryInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Timestamps. A device whose work is done when `submit` returns has them ready-made:
    /// [`super::HOST_TIMING`].
    pub fn timing(table: &'static interface::timing::TimingInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Memory that is lent for uploads.
    pub fn upload(table: &'static interface::upload::UploadInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Collectives among processes.
    pub fn collective(table: &'static interface::collective::CollectiveInterface) -> Self {
        Self((&raw const *table).cast())
    }

    /// Counts of memory.
    pub fn statistics(table: &'static interface::statistics::StatisticsInterface) -> Self {
        Self((&raw const *table).cast())
    }
}

/// A backend. One value is made for every call of init.
pub trait Backend: Sized + Send + Sync + 'static {
    /// Its devices.
    type Device: Device;

    /// Returns how well it can run here. Called before [`Backend::new`], perhaps instead of it, so
    /// it creates no context and no threads.
    fn score() -> Score {
        Score::new(crate::DEFAULT_SCORE, 0)
    }

    /// Starts it.
    fn new(host: Host) -> Result<Self>;

    /// Number of devices.
    fn device_count(&self) -> u32 {
        1
    }

    /// Describes a device; `size` and the size of the identity are filled in.
    fn device_info(&self, index: u32, info: &mut DeviceInfo) -> Result<()>;

    /// Opens a device.
    fn open(&self, index: u32) -> Result<Self::Device>;

    /// An optional interface. Its functions get what the functions of the table get: the
    /// addresses of the backend's own values, as [`super::init`] says.
    fn interface(&self, id: &CStr) -> Option<InterfaceRef> {
        let _ = id;
        None
    }
}

/// A device with streams and events of its own. One whose work is done when it returns
/// implements [`SyncDevice`] instead. What is said of threads: *any* may be called from any
/// thread at once, *stream* from one at a time per stream.
pub trait Device: Send + Sync + Sized + 'static {
    /// Memory.
    type Buffer: Send + Sync + 'static;
    /// An ordered queue.
    type Stream: Send + Sync + 'static;
    /// A timeline event: a value that only grows, 0 at first.
    type Event: Send + Sync + 'static;
    /// A prepared op.
    type Plan: Send + Sync + 'static;

    /// (any) Allocates at least that many bytes.
    fn alloc(&self, bytes: u64) -> Result<Self::Buffer>;
    /// (any) The buffer's address for the host, or NULL.
    fn host_pointer(&self, buffer: &Self::Buffer) -> *mut u8 {
        let _ = buffer;
        core::ptr::null_mut()
    }
    /// (stream) Copies into a buffer; done on return, or as
    /// [`crate::device_flag::UPLOADS_IN_ORDER`] says.
    fn upload(
        &self,
        stream: Option<&Self::Stream>,
        buffer: &Self::Buffer,
        offset: u64,
        source: &[u8],
    ) -> Result<()>;
    /// (stream) Copies from a buffer, and fills all of `target`; done on return.
    fn download(
        &self,
        stream: Option<&Self::Stream>,
        buffer: &Self::Buffer,
        offset: u64,
        target: &mut [MaybeUninit<u8>],
    ) -> Result<()>;

    /// (any) Makes a stream.
    fn stream(&self) -> Result<Self::Stream>;
    /// (any) Blocks until all its work is done.
    fn synchronize(&self, stream: &Self::Stream) -> Result<()>;
    /// (any) Makes an event with value 0.
    fn event(&self) -> Result<Self::Event>;
    /// (stream) The event takes `value` once the stream's earlier work is done.
    fn record(&self, stream: &Self::Stream, event: &Self::Event, value: u64) -> Result<()>;
    /// (stream) Later work of the stream waits until the event has reached `value`.
    fn wait_stream(&self, stream: &Self::Stream, event: &Self::Event, value: u64) -> Result<()>;
    /// (any) Blocks the caller until the event has reached `value`.
    fn wait_host(&self, event: &Self::Event, value: u64) -> Result<()>;
    /// (any) The event's present value.
    fn query(&self, event: &Self::Event) -> u64;

    /// (any) Makes a plan, or says why not.
    fn prepare(&self, request: &Request<'_>) -> Result<Self::Plan> {
        Err(Failure::unsupported(format!("this backend does not know op {}", request.op)))
    }
    /// (any) Bytes of workspace for a plan with these tensors.
    fn workspace(&self, plan: &Self::Plan, command: &CommandRef<'_, Self>) -> u64 {
        let _ = (plan, command);
        0
    }
    /// (stream) Runs commands in order, up to one that fails: the one that was taken last.
    fn submit(&self, stream: Option<&Self::Stream>, commands: Commands<'_, Self>) -> Result<()>;
}

/// A device whose copies and commands are done on return. Streams and events are ready-made;
/// [`DeviceInfo::synchronous`](crate::DeviceInfo) should be 1.
pub trait SyncDevice: Send + Sync + Sized + 'static {
    /// Memory.
    type Buffer: Send + Sync + 'static;
    /// A prepared op.
    type Plan: Send + Sync + 'static;

    /// As [`Device::alloc`].
    fn alloc(&self, bytes: u64) -> Result<Self::Buffer>;
    /// As [`Device::host_pointer`].
    fn host_pointer(&self, buffer: &Self::Buffer) -> *mut u8 {
        let _ = buffer;
        core::ptr::null_mut()
    }
    /// As [`Device::upload`].
    fn upload(&self, buffer: &Self::Buffer, offset: u64, source: &[u8]) -> Result<()>;
    /// As [`Device::download`].
    fn download(
        &self,
        buffer: &Self::Buffer,
        offset: u64,
        target: &mut [MaybeUninit<u8>],
    ) -> Result<()>;
    /// As [`Device::prepare`].
    fn prepare(&self, request: &Request<'_>) -> Result<Self::Plan> {
        Err(Failure::unsupported(format!("this backend does not know op {}", request.op)))
    }
    /// As [`Device::workspace`].
    fn workspace(&self, plan: &Self::Plan, command: &CommandRef<'_, Self>) -> u64 {
        let _ = (plan, command);
        0
    }
    /// Runs one command to its end.
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
