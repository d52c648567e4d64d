//! The contract's functions of a device: [`Device`] implements the trait of
//! `ultramarine_abi::helper`, and calls the module that does the work.

use crate::launch::{Device, Plan};
use crate::memory::Buffer;
use crate::ops;
use crate::streams::{Batch, Event, Stream};
use std::mem::MaybeUninit;
use ultramarine_abi::helper::{self, CommandRef, Commands, Request, Result};

/// Maximum number of commands in a batch. Longer lists start to run while the rest is still being
/// encoded.
const BATCH: usize = 64;

impl helper::Device for Device {
    type Buffer = Buffer;
    type Stream = Stream;
    type Event = Event;
    type Plan = Plan;

    fn alloc(&self, bytes: u64) -> Result<Buffer> {
        self.alloc(bytes)
    }

    fn upload(
        &self,
        stream: Option<&Stream>,
        buffer: &Buffer,
        offset: u64,
        source: &[u8],
    ) -> Result<()> {
        let lane = self.lane(stream);
        self.scheduler.upload(lane, &buffer.0, offset, source)?;
        match stream {
            Some(_) => Ok(()),
            // The caller's streams do not wait for the device's own stream, so the upload has to be
            // complete on return.
            None => self.scheduler.synchronize(lane),
        }
    }

    fn download(
        &self,
        stream: Option<&Stream>,
        buffer: &Buffer,
        offset: u64,
        target: &mut [MaybeUninit<u8>],
    ) -> Result<()> {
        self.scheduler.download(self.lane(stream), &buffer.0, offset, target)
    }

    fn stream(&self) -> Result<Stream> {
        self.context.usable()?;
        Ok(Stream::new(&self.scheduler))
    }

    fn synchronize(&self, stream: &Stream) -> Result<()> {
        self.scheduler.synchronize(stream.lane())
    }

    fn event(&self) -> Result<Event> {
        Ok(Event::default())
    }

    fn record(&self, stream: &Stream, event: &Event, value: u64) -> Result<()> {
        self.scheduler.record(stream.lane(), event, value)
    }

    fn wait_stream(&self, stream: &Stream, event: &Event, value: u64) -> Result<()> {
        self.scheduler.wait_stream(stream.lane(), event, value)
    }

    fn wait_host(&self, event: &Event, value: u64) -> Result<()> {
        self.scheduler.wait_host(event, value)
    }

    fn query(&self, event: &Event) -> u64 {
        self.scheduler.query(event)
    }

    fn prepare(&self, request: &Request<'_>) -> Result<Plan> {
        ops::plan(self, request)
    }

    fn workspace(&self, plan: &Plan, command: &CommandRef<'_, Self>) -> u64 {
        plan.workspace(self, command)
    }

    fn submit(&self, stream: Option<&Stream>, commands: Commands<'_, Self>) -> Result<()> {
        let lane = self.lane(stream);
        let mut batch = Batch::default();
        for command in commands {
            let added = command.plan().and_then(|plan| plan.run(self, &command, &mut batch));
            if let Err(failure) = added {
                // The commands before the failed one run.
                self.scheduler.submit(lane, batch)?;
                return Err(failure);
            }
            if batch.actions.len() >= BATCH {
                self.scheduler.submit(lane, std::mem::take(&mut batch))?;
            }
        }
        self.scheduler.submit(lane, batch)
    }
}
