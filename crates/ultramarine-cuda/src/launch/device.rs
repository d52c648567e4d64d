//! An open device. [`Device`] owns its context, memory, kernels, streams and libraries, declared in
//! the order in which they have to be dropped.

use crate::context::{Context, DeviceProperties, Entered};
use crate::graph::Capture;
use crate::memory::Allocator;
use crate::program::Programs;
use crate::streams::{Staging, Stream};
use crate::sys::driver::{self, Driver};
use crate::timestamps::Clock;
use std::any::Any;
use std::sync::{Arc, OnceLock};
use ultramarine_abi::helper::{Host, Result};

/// An open device: its context, memory, kernels and libraries. The host holds it by a handle; all
/// plans, streams and buffers belong to it.
pub struct Device {
    /// The host's functions.
    pub host: Host,
    /// The driver's functions.
    pub driver: &'static Driver,
    /// The properties that the driver reports.
    pub properties: DeviceProperties,
    /// Kernels.
    pub programs: Programs,
    /// A library that an operation opens at its first use. Its type is known to the operation only.
    pub library: OnceLock<Box<dyn Any + Send + Sync>>,
    /// Likewise, the library for matrix decompositions.
    pub solvers: OnceLock<Box<dyn Any + Send + Sync>>,
    /// Likewise, the library for convolutions and attention.
    pub networks: OnceLock<Box<dyn Any + Send + Sync>>,
    /// Stream for calls that name no stream.
    pub default_stream: Stream,
    /// Pinned memory for copies.
    pub staging: Staging,
    /// Stream for capturing library calls in recordings.
    pub capture: Capture,
    /// Clock for the streams' times.
    pub clock: Clock,
    /// Memory.
    pub allocator: Arc<Allocator>,
    /// Declared last, because all fields above need it when they are dropped.
    pub context: Arc<Context>,
}

impl Device {
    /// Opens a device: its primary context is retained.
    pub fn open(host: Host, properties: DeviceProperties) -> Result<Self> {
        let driver = driver::driver()?;
        let context = Arc::new(Context::retain(driver, properties.ordinal)?);
        let allocator = Arc::new(Allocator::new(context.clone(), &properties));
        let default_stream = Stream::new(context.clone(), allocator.clone())?;
        Ok(Self {
            host,
            driver,
            programs: Programs::new(host, context.clone(), allocator.clone(), &properties),
            library: OnceLock::new(),
            solvers: OnceLock::new(),
            networks: OnceLock::new(),
            default_stream,
            staging: Staging::new(host, context.clone()),
            capture: Capture::new(context.clone()),
            clock: Clock::new(context.clone()),
            allocator,
            properties,
            context,
        })
    }

    /// Makes the device's context current in this thread while the result lives.
    #[inline]
    pub fn enter(&self) -> Result<Entered> {
        self.context.enter()
    }

    /// The given stream, or the device's own if none is given.
    pub fn stream_or_default<'a>(&'a self, stream: Option<&'a Stream>) -> &'a Stream {
        stream.unwrap_or(&self.default_stream)
    }
}
