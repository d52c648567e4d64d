//! An open device: the [`Device`] owns its context, memory, kernels, streams and libraries. The
//! order of its fields is the order in which they are dropped.

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

/// An open device: its context, memory, kernels and libraries. The host has a handle to it. All
/// plans, streams and buffers belong to a device.
pub struct Device {
    /// The host's functions.
    pub host: Host,
    /// The driver's functions.
    pub driver: &'static Driver,
    /// The properties that the driver reports.
    pub properties: DeviceProperties,
    /// Kernels.
    pub programs: Programs,
    /// A library that an operation opens at its first use. The type is private to the operation.
    pub library: OnceLock<Box<dyn Any + Send + Sync>>,
    /// The libraries for matrix decompositions.
    pub solvers: OnceLock<Box<dyn Any + Send + Sync>>,
    /// The library for convolutions and attention.
    pub networks: OnceLock<Box<dyn Any + Send + Sync>>,
    /// The stream for work without a stream.
    pub default_stream: Stream,
    /// Pinned memory for copies.
    pub staging: Staging,
    /// The stream for capturing library calls in recordings.
    pub capture: Capture,
    /// Times of streams.
    pub clock: Clock,
    /// Memory.
    pub allocator: Arc<Allocator>,
    /// The last field, because all others need the context when they are dropped.
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

    /// Returns the given stream, or the device's default stream if none is given.
    pub fn stream_or_default<'a>(&'a self, stream: Option<&'a Stream>) -> &'a Stream {
        stream.unwrap_or(&self.default_stream)
    }
}
