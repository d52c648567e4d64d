//! Copies from and to the host, through memory that both sides can access.

use super::{Batch, Scheduler};
use crate::memory::{Block, Pool};
use core::mem::MaybeUninit;
use std::sync::Arc;
use ultramarine_abi::helper::Result;
use ultramarine_abi::status;

/// Limit on the bytes of a piece of a copy.
const PIECE: usize = 32 << 20;
/// Limit on the bytes of a copy through the arena.
const SMALL: usize = 64 << 10;
/// Minimum bytes of a staging block.
const LEAST: u64 = 256 << 10;

/// A batch with a single copy.
fn copy(from: (Arc<Block>, u64), to: (Arc<Block>, u64), bytes: u64) -> Batch {
    let mut batch = Batch::default();
    batch.copy(from, to, bytes);
    batch
}

impl Scheduler {
    /// Enqueues a copy to a buffer. When it returns, the source has been read. It waits only if
    /// uploads in flight have reached the limit on staging memory.
    pub fn upload(
        self: &Arc<Self>,
        lane: u64,
        to: &Arc<Block>,
        offset: u64,
        source: &[u8],
    ) -> Result<()> {
        self.context.usable()?;
        to.check(offset, source.len() as u64)?;
        let copy = |from, at, bytes: usize| copy(from, (to.clone(), at), bytes as u64);
        if source.len() <= SMALL {
            return self.submit_with(lane, |submissions| {
                Ok(copy(submissions.write(source)?, offset, source.len()))
            });
        }
        let mut at = offset;
        for piece in source.chunks(PIECE) {
            let bytes = piece.len() as u64;
            let staging = self.lend(bytes)?;
            // SAFETY: the pool returned it to this call only.
            unsafe { staging.write(0, piece)? };
            self.submit(lane, copy((staging, 0), at, piece.len()))?;
            at += bytes;
        }
        Ok(())
    }

    /// Copies the same few bytes to the start of each block, in one batch.
    pub fn upload_to_all(
        self: &Arc<Self>,
        lane: u64,
        to: &[Arc<Block>],
        source: &[u8],
    ) -> Result<()> {
        to.iter().try_for_each(|block| block.check(0, source.len() as u64))?;
        self.submit_with(lane, |submissions| {
            let from = submissions.write(source)?;
            let mut batch = Batch::default();
            for block in to {
                batch.copy(from.clone(), (block.clone(), 0), source.len() as u64);
            }
            Ok(batch)
        })
    }

    /// Lends memory for an upload, for exclusive use while it is held.
    pub fn lend(self: &Arc<Self>, bytes: u64) -> Result<Arc<Block>> {
        self.context.usable()?;
        while self.uploads.in_use() + bytes > self.staging_limit() && self.wait_oldest()? {}
        self.staging(&self.uploads, bytes)
    }

    /// Enqueues a copy of the beginning of lent memory to a buffer.
    pub fn copy_lent(
        self: &Arc<Self>,
        lane: u64,
        lent: Arc<Block>,
        (to, offset): (&Arc<Block>, u64),
        bytes: u64,
    ) -> Result<()> {
        self.context.usable()?;
        to.check(offset, bytes)?;
        lent.check(0, bytes)?;
        self.submit(lane, copy((lent, 0), (to.clone(), offset), bytes))
    }

    /// Returns memory for a copy. If memory is short, waits for running work and releases its
    /// memory.
    fn staging(&self, pool: &Pool, bytes: u64) -> Result<Arc<Block>> {
        match pool.take(&self.context, bytes, LEAST) {
            Err(failure) if failure.code == status::OUT_OF_MEMORY => {
                self.reclaim()?;
                pool.take(&self.context, bytes, LEAST)
            }
            taken => taken,
        }
    }

    /// Copies from a buffer, after the stream's earlier work. When it returns, the copy is
    /// complete.
    pub fn download(
        self: &Arc<Self>,
        lane: u64,
        from: &Arc<Block>,
        offset: u64,
        target: &mut [MaybeUninit<u8>],
    ) -> Result<()> {
        self.context.usable()?;
        from.check(offset, target.len() as u64)?;
        let mut at = offset;
        for piece in target.chunks_mut(PIECE) {
            let staging = self.staging(&self.downloads, piece.len() as u64)?;
            let mut batch = Batch::default();
            batch.copy((from.clone(), at), (staging.clone(), 0), piece.len() as u64);
            self.submit(lane, batch)?;
            self.synchronize(lane)?;
            // SAFETY: the copy into it has completed, and the pool returned it to this call only.
            unsafe { staging.read(0, piece)? };
            at += piece.len() as u64;
        }
        Ok(())
    }
}
