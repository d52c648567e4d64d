//! Timestamps: the times at which the device reaches a point in its queue.

use super::{Batch, Event, Scheduler};
use crate::context::{Context, lock, of_hal};
use crate::hal::{self, Place};
use crate::memory::Block;
use core::mem::MaybeUninit;
use std::sync::{Arc, Mutex};
use ultramarine_abi::helper::{Failure, Result};
use wgpu_hal::{CommandEncoder as _, Device as _};
use wgpu_types::{BufferSize, QuerySetDescriptor, QueryType};

/// Number of queries in a set.
const QUERIES: u32 = 64;
/// Bytes of a timestamp.
const BYTES: u64 = 8;

/// Queries, and memory for their results.
struct Set {
    context: Arc<Context>,
    queries: Option<hal::QuerySet>,
    results: Arc<Block>,
    free: Mutex<Vec<u32>>,
}

/// A timestamp query. Running commands hold references to it. The query is free if there are none.
pub struct Stamp {
    set: Arc<Set>,
    index: u32,
}

/// A time that the device will record.
pub struct Mark {
    stamp: Arc<Stamp>,
    /// Reaches the value 1 when the time is known.
    done: Event,
}

/// The timestamps of a device.
pub struct Clock {
    context: Arc<Context>,
    sets: Mutex<Vec<Arc<Set>>>,
}

impl Set {
    fn new(context: &Arc<Context>) -> Result<Arc<Self>> {
        let results = Block::new(context, u64::from(QUERIES) * BYTES, Place::Download)?;
        let descriptor =
            QuerySetDescriptor { label: None, ty: QueryType::Timestamp, count: QUERIES };
        // SAFETY: the descriptor is complete.
        let queries = unsafe { context.device.create_query_set(&descriptor) };
        let queries = Some(queries.map_err(|why| of_hal("timestamps", why))?);
        let free = Mutex::new((0..QUERIES).collect());
        Ok(Arc::new(Self { context: context.clone(), queries, results, free }))
    }
}

impl Clock {
    /// The clock of a device.
    pub fn new(context: Arc<Context>) -> Self {
        Self { context, sets: Mutex::default() }
    }

    fn stamp(&self) -> Result<Arc<Stamp>> {
        let mut sets = lock(&self.sets);
        for set in sets.iter() {
            if let Some(index) = lock(&set.free).pop() {
                return Ok(Arc::new(Stamp { set: set.clone(), index }));
            }
        }
        let set = Set::new(&self.context)?;
        sets.push(set.clone());
        drop(sets);
        let index = lock(&set.free).pop().ok_or_else(|| Failure::new("no timestamp is free"))?;
        Ok(Arc::new(Stamp { set, index }))
    }

    /// Makes the device record the time after a stream's earlier work.
    pub fn mark(&self, scheduler: &Arc<Scheduler>, lane: u64) -> Result<Mark> {
        if !self.context.properties.timestamps {
            return Err(Failure::unsupported("the device has no timestamps"));
        }
        let mark = Mark { stamp: self.stamp()?, done: Event::default() };
        let mut batch = Batch::default();
        batch.timestamp(mark.stamp.clone());
        scheduler.submit(lane, batch)?;
        scheduler.record(lane, &mark.done, 1)?;
        Ok(mark)
    }

    /// Returns the nanoseconds on the device's clock, once they are known.
    pub fn resolve(&self, scheduler: &Scheduler, mark: &Mark) -> Result<Option<u64>> {
        self.context.usable()?;
        if scheduler.query(&mark.done) == 0 {
            return Ok(None);
        }
        let Stamp { set, index } = &*mark.stamp;
        let mut bytes = [MaybeUninit::new(0); BYTES as usize];
        // SAFETY: the device has written it, and writes it again only after the mark was dropped.
        unsafe { set.results.read(u64::from(*index) * BYTES, &mut bytes)? };
        // SAFETY: all bytes were initialised above, and have been read since.
        let ticks = u64::from_le_bytes(bytes.map(|byte| unsafe { byte.assume_init() }));
        Ok(Some((ticks as f64 * f64::from(scheduler.tick())) as u64))
    }
}

impl Stamp {
    /// Returns the memory to which it is written.
    pub(super) fn results(&self) -> &Block {
        &self.set.results
    }

    /// Records the query, outside of a pass.
    pub(super) fn record(&self, encoder: &mut hal::CommandEncoder) -> Result<()> {
        let (Some(queries), Some(stride)) = (&self.set.queries, BufferSize::new(BYTES)) else {
            return Err(Failure::new("timestamps that were destroyed"));
        };
        let (buffer, offset) = (self.set.results.raw()?, u64::from(self.index) * BYTES);
        // SAFETY: the encoder is recording; query and offset are the stamp's, which lives until the commands have
        // completed.
        unsafe {
            encoder.reset_queries(queries, self.index..self.index + 1);
            encoder.write_timestamp(queries, self.index);
            encoder.copy_query_results(queries, self.index..self.index + 1, buffer, offset, stride);
        }
        Ok(())
    }
}

impl Drop for Stamp {
    fn drop(&mut self) {
        if !self.set.context.forked() {
            lock(&self.set.free).push(self.index);
        }
    }
}

impl Drop for Set {
    fn drop(&mut self) {
        if let Some(queries) = self.queries.take().filter(|_| !self.context.forked()) {
            // SAFETY: stamps hold the set, and commands in flight hold their stamps.
            unsafe { self.context.device.destroy_query_set(queries) };
        }
    }
}
