//! Memory that is lent for uploads: a few pieces, each of which its copy reads when the stream gets there.

use super::*;
use ultramarine_abi::helper::{Lender, upload_table};
use ultramarine_abi::interface::upload::UploadInterface;

/// True makes the mock offer the interface; set before the devices are registered.
pub static OFFERED: AtomicBool = AtomicBool::new(false);
/// Pieces that are lent or read by a copy; most of them at one time; and how many were lent, copied and given back.
pub static OUT: AtomicUsize = AtomicUsize::new(0);
pub static MOST_OUT: AtomicUsize = AtomicUsize::new(0);
pub static LENT: AtomicUsize = AtomicUsize::new(0);
pub static COPIED: AtomicUsize = AtomicUsize::new(0);
pub static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);
/// Pieces that may be out.
pub const PIECES: usize = 3;

pub static TABLE: UploadInterface = upload_table::<Mock>();

impl Lender for Mock {
    type Piece = Box<Vec<u8>>;

    fn lend(&self, _: Option<&Stream>, bytes: u64) -> Result<(Self::Piece, *mut u8, u64)> {
        let out = OUT.fetch_add(1, Ordering::SeqCst) + 1;
        if out > PIECES {
            OUT.fetch_sub(1, Ordering::SeqCst);
            return Err(Failure::unsupported("all pieces are out"));
        }
        MOST_OUT.fetch_max(out, Ordering::SeqCst);
        LENT.fetch_add(1, Ordering::SeqCst);
        let mut memory = Box::new(vec![0xa5u8; bytes as usize]);
        let address = memory.as_mut_ptr();
        Ok((memory, address, bytes))
    }

    fn copy_lent(
        &self,
        stream: Option<&Stream>,
        memory: Self::Piece,
        (buffer, offset): (&Buffer, u64),
        bytes: u64,
    ) -> Result<()> {
        COPIED.fetch_add(1, Ordering::SeqCst);
        let to = buffer.at(offset);
        let stream = stream.ok_or_else(|| Failure::invalid("no stream"))?;
        stream.run(move || {
            let to = to;
            if to.is_live() {
                // SAFETY: a place of a live buffer, with room for them.
                unsafe { to.0.cast::<u8>().copy_from(memory.as_ptr(), bytes as usize) };
            }
            OUT.fetch_sub(1, Ordering::SeqCst);
            true
        })
    }

    fn take_back(&self, _: Self::Piece) {
        GIVEN_BACK.fetch_add(1, Ordering::SeqCst);
        OUT.fetch_sub(1, Ordering::SeqCst);
    }
}
