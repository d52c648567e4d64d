//! One device: its context and what belongs to it.

use crate::allocator::{Allocator, Buffer};
use crate::context::{self, Context, Entered};
use crate::event::Event;
use crate::failure::cuda;
use crate::ops::matmul::library::Library;
use crate::plan::{self, Plan};
use crate::program::Programs;
use crate::staging::Staging;
use crate::stream::Stream;
use crate::sys::driver::{self, Driver, Ordinal, attribute, version_text};
use core::ffi::{CStr, c_char, c_int};
use std::mem::MaybeUninit;
use std::sync::{Arc, OnceLock};
use ultramarine_abi::helper::{self, CommandRef, Commands, Host, Request, Result};

/// What the driver says of a device, without a context.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // they are what they are called
pub struct Facts {
    pub ordinal: Ordinal,
    pub name: String,
    pub uuid: [u8; 16],
    /// Domain, bus, device.
    pub pci: [u32; 3],
    pub memory: u64,
    /// Compute capability.
    pub major: u32,
    pub minor: u32,
    pub multiprocessors: u32,
    pub threads_per_multiprocessor: u32,
    pub threads_per_block: u32,
    pub shared_per_block: u32,
    pub shared_optin: u32,
    pub l2_bytes: u64,
    /// CUDA version of the driver, as it counts.
    pub driver_version: c_int,
}

impl Facts {
    /// Asks the driver, which is initialised.
    pub fn of(driver: &'static Driver, index: c_int) -> Result<Self> {
        let (mut ordinal, mut memory, mut driver_version) = (0, 0usize, 0);
        let (mut name, mut uuid) = ([0 as c_char; 128], [0u8; 16]);
        // SAFETY: the places are valid, and the index is below the count.
        unsafe {
            cuda!(driver.device_get(&mut ordinal, index))?;
            cuda!(driver.device_name(name.as_mut_ptr(), 127, ordinal))?;
            cuda!(driver.device_uuid(&mut uuid, ordinal))?;
            cuda!(driver.device_memory(&mut memory, ordinal))?;
            cuda!(driver.driver_version(&mut driver_version))?;
        }
        let ask = |which: c_int| -> Result<u32> {
            let mut value = 0;
            // SAFETY: the place is valid.
            unsafe { cuda!(driver.device_attribute(&mut value, which, ordinal)) }?;
            Ok(u32::try_from(value).unwrap_or(0))
        };
        // SAFETY: the last byte is 0.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        Ok(Self {
            ordinal,
            name,
            uuid,
            pci: [
                ask(attribute::PCI_DOMAIN)?,
                ask(attribute::PCI_BUS)?,
                ask(attribute::PCI_DEVICE)?,
            ],
            memory: memory as u64,
            major: ask(attribute::CAPABILITY_MAJOR)?,
            minor: ask(attribute::CAPABILITY_MINOR)?,
            multiprocessors: ask(attribute::MULTIPROCESSORS)?.max(1),
            threads_per_multiprocessor: ask(attribute::MAX_THREADS_PER_MULTIPROCESSOR)?.max(1024),
            threads_per_block: ask(attribute::MAX_THREADS_PER_BLOCK)?.max(1),
            shared_per_block: ask(attribute::MAX_SHARED_PER_BLOCK)?,
            shared_optin: ask(attribute::MAX_SHARED_OPTIN)?,
            l2_bytes: u64::from(ask(attribute::L2_BYTES)?),
            driver_version,
        })
    }

    /// What the report shows.
    pub fn describe(&self) -> String {
        format!(
            "{} (compute capability {}.{}, {:.0} GiB, driver for CUDA {})",
            self.name,
            self.major,
            self.minor,
            self.memory as f64 / (1u64 << 30) as f64,
            version_text(self.driver_version)
        )
    }

    /// Threads that the device runs at once.
    pub fn parallelism(&self) -> u64 {
        u64::from(self.multiprocessors) * u64::from(self.threads_per_multiprocessor)
    }
}

/// An open device.
pub struct Device {
    /// The host's functions.
    pub host: Host,
    /// The driver's functions.
    pub driver: &'static Driver,
    /// What the driver says of it.
    pub facts: Facts,
    /// Kernels.
    pub programs: Programs,
    /// Products of matrices, once they are asked for; `None` inside: there is no library for them.
    pub cublaslt: OnceLock<Option<Library>>,
    /// For what comes without a stream.
    pub default_stream: Stream,
    /// Pinned memory for copies.
    pub staging: Staging,
    /// Memory.
    pub allocator: Arc<Allocator>,
    /// Last, because all above need it to be dropped.
    pub context: Arc<Context>,
}

impl Device {
    /// Opens a device: its primary context is retained.
    pub fn open(host: Host, facts: Facts) -> Result<Self> {
        let driver = driver::driver()?;
        let context = Arc::new(Context::retain(driver, facts.ordinal)?);
        let allocator = Arc::new(Allocator::new(context.clone(), &facts));
        let default_stream = Stream::new(context.clone(), allocator.clone())?;
        Ok(Self {
            host,
            driver,
            programs: Programs::new(&facts),
            cublaslt: OnceLock::new(),
            default_stream,
            staging: Staging::new(context.clone()),
            allocator,
            facts,
            context,
        })
    }

    /// Makes the device's context the thread's for as long as the result lives.
    #[inline]
    pub fn enter(&self) -> Result<Entered> {
        self.context.enter()
    }

    fn stream_or_default<'a>(&'a self, stream: Option<&'a Stream>) -> &'a Stream {
        stream.unwrap_or(&self.default_stream)
    }
}

impl helper::Device for Device {
    type Buffer = Buffer;
    type Stream = Stream;
    type Event = Event;
    type Plan = Plan;

    fn alloc(&self, bytes: u64) -> Result<Buffer> {
        Allocator::alloc(&self.allocator, bytes)
    }

    fn upload(
        &self,
        stream: Option<&Stream>,
        buffer: &Buffer,
        offset: u64,
        source: &[u8],
    ) -> Result<()> {
        let uploaded = self.stream_or_default(stream).upload(self, buffer, offset, source);
        match stream {
            Some(_) => uploaded,
            // Others do not know that stream: they find the bytes there.
            None => self.default_stream.synchronize().and(uploaded),
        }
    }

    fn download(
        &self,
        stream: Option<&Stream>,
        buffer: &Buffer,
        offset: u64,
        target: &mut [MaybeUninit<u8>],
    ) -> Result<()> {
        self.stream_or_default(stream).download(self, buffer, offset, target)
    }

    fn stream(&self) -> Result<Stream> {
        Stream::new(self.context.clone(), self.allocator.clone())
    }

    fn synchronize(&self, stream: &Stream) -> Result<()> {
        stream.synchronize()
    }

    fn event(&self) -> Result<Event> {
        Ok(Event::new(self.context.clone()))
    }

    fn record(&self, stream: &Stream, event: &Event, value: u64) -> Result<()> {
        event.record(stream, value)
    }

    fn wait_stream(&self, stream: &Stream, event: &Event, value: u64) -> Result<()> {
        event.wait_stream(stream, value)
    }

    fn wait_host(&self, event: &Event, value: u64) -> Result<()> {
        event.wait_host(value)
    }

    fn query(&self, event: &Event) -> u64 {
        event.query()
    }

    fn prepare(&self, request: &Request<'_>) -> Result<Plan> {
        let _entered = self.enter()?;
        plan::prepare(self, request)
    }

    fn workspace(&self, plan: &Plan, command: &CommandRef<'_, Self>) -> u64 {
        plan.workspace(self, command)
    }

    fn submit(&self, stream: Option<&Stream>, commands: Commands<'_, Self>) -> Result<()> {
        let _entered = self.enter()?;
        let stream = self.stream_or_default(stream);
        for command in commands {
            command.plan()?.run(self, stream, &command)?;
            if context::blocking() {
                stream.drain()?;
            }
        }
        Ok(())
    }
}
