//! The contract's functions of a device: [`Device`] implements the trait of
//! `ultramarine_abi::helper`, and calls the module that does the work.

use crate::context;
use crate::events::Event;
use crate::launch::{Device, Plan, Together};
use crate::memory::{Allocator, Buffer};
use crate::ops;
use crate::streams::Stream;
use std::mem::MaybeUninit;
use ultramarine_abi::helper::{self, CommandRef, Commands, Request, Result};

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
        let uploaded = self.staging.upload(self.stream_or_default(stream), buffer, offset, source);
        match stream {
            Some(_) => uploaded,
            // The caller's other streams do not wait for the default stream, so the upload has to
            // be complete on return.
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
        self.staging.download(self.stream_or_default(stream), buffer, offset, target)
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
        ops::plan(self, request)
    }

    fn workspace(&self, plan: &Plan, command: &CommandRef<'_, Self>) -> u64 {
        plan.workspace(self, command)
    }

    fn submit(&self, stream: Option<&Stream>, commands: Commands<'_, Self>) -> Result<()> {
        let _entered = self.enter()?;
        let stream = self.stream_or_default(stream);
        let mut waiting = Together::default();
        for command in commands {
            waiting.run(self, stream, command.plan()?, &command)?;
            if context::blocking() {
                waiting.flush(self)?;
                stream.drain()?;
            }
        }
        waiting.flush(self)
    }
}
