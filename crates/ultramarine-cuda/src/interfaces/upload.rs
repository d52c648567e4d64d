//! `ultramarine.upload/1`: pinned memory that the host writes to.

use crate::context;
use crate::launch::Device;
use crate::memory::Buffer;
use crate::streams::{Piece, Stream};
use ultramarine_abi::helper::{Failure, Lender, Result, upload_table};
use ultramarine_abi::interface::upload::UploadInterface;

/// The interface.
pub static TABLE: UploadInterface = upload_table::<Device>();

impl Lender for Device {
    type Piece = Piece;

    fn lend(&self, stream: Option<&Stream>, bytes: u64) -> Result<(Piece, *mut u8, u64)> {
        let lent = self.staging.lend(self.stream_or_default(stream), bytes as usize)?;
        let piece = lent.ok_or_else(|| Failure::unsupported("all pinned memory is in use"))?;
        let (memory, bytes) = (piece.memory().cast(), piece.bytes() as u64);
        Ok((piece, memory, bytes))
    }

    fn copy_lent(
        &self,
        stream: Option<&Stream>,
        piece: Piece,
        to: (&Buffer, u64),
        bytes: u64,
    ) -> Result<()> {
        self.staging.copy_lent(self.stream_or_default(stream), piece, to, bytes as usize)
    }

    fn take_back(&self, piece: Piece) {
        // In a forked process the driver belongs to the parent.
        if !context::forked() {
            self.staging.take_back(piece);
        }
    }
}
