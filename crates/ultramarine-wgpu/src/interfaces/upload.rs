//! `ultramarine.upload/1`: memory that host and device can access, and that the host fills.

use crate::launch::Device;
use crate::memory::{Block, Buffer};
use crate::streams::Stream;
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Lender, Result, upload_table};
use ultramarine_abi::interface::upload::UploadInterface;

/// The interface.
pub static TABLE: UploadInterface = upload_table::<Device>();

impl Lender for Device {
    /// A block that the pool lends to no other user while this reference exists.
    type Piece = Arc<Block>;

    fn lend(&self, _: Option<&Stream>, bytes: u64) -> Result<(Arc<Block>, *mut u8, u64)> {
        let block = self.scheduler.lend(bytes)?;
        let memory = block
            .address()
            .ok_or_else(|| Failure::new("the memory has no address for the host"))?;
        let bytes = block.bytes();
        Ok((block, memory.cast(), bytes))
    }

    fn copy_lent(
        &self,
        stream: Option<&Stream>,
        piece: Arc<Block>,
        (buffer, offset): (&Buffer, u64),
        bytes: u64,
    ) -> Result<()> {
        self.scheduler.copy_lent(self.lane(stream), piece, (&buffer.0, offset), bytes)
    }

    fn take_back(&self, piece: Arc<Block>) {
        drop(piece);
    }
}
