//! Memory that is lent for uploads: each piece has only one holder, and is not lent again before
//! its copy is done.

use crate::device::{Buffer, Device, Handle};
use crate::plugin::call;
use crate::record::{PASSED, Recorder, Result, skip};
use crate::run::Buffers;
use ultramarine_abi::interface::upload::{self, MOST_BYTES, UploadInterface, UploadPiece};
use ultramarine_abi::status;

pub fn run(recorder: &mut Recorder, device: &Device<'_>) {
    recorder.check("interfaces/upload, copies", || with(device, copies));
    recorder.check("interfaces/upload, in flight", || with(device, in_flight));
    recorder.check("interfaces/upload, given back", || with(device, given_back));
}

/// The interface, with a stream.
struct Uploads<'a> {
    device: &'a Device<'a>,
    interface: UploadInterface,
    stream: Handle,
}

fn with(device: &Device<'_>, check: fn(&Uploads<'_>) -> Result<()>) -> Result {
    // SAFETY: the id's own struct.
    let found = unsafe { device.interface::<UploadInterface>(upload::INTERFACE) };
    let Some(interface) = found else { return skip("not offered") };
    if device.overlay {
        return skip("the buffers of a CPU overlay are the host's");
    }
    let stream = device.stream()?;
    check(&Uploads { device, interface, stream })?;
    device.synchronize(stream)?;
    device.destroy_stream(stream);
    PASSED
}

/// The bytes of a round.
fn pattern(round: u64) -> impl Iterator<Item = u8> {
    (0..).map(move |i: u64| (i.wrapping_mul(31).wrapping_add(round * 7) % 251) as u8)
}

impl Uploads<'_> {
    /// Lent memory; `None` if there is none now.
    fn lend(&self, bytes: u64) -> Result<Option<UploadPiece>> {
        let lend = self.interface.lend.ok_or("no function lend")?;
        let mut piece = UploadPiece {
            size: size_of::<UploadPiece>() as u32,
            flags: 0,
            handle: std::ptr::null_mut(),
            memory: std::ptr::null_mut(),
            bytes: 0,
        };
        // SAFETY: an open device and a stream of it; a place for the memory.
        let lent = call("lend", |e| unsafe {
            lend(self.device.handle, self.stream.0, bytes, &mut piece, e)
        });
        match lent {
            Err(failure) if failure.code == status::UNSUPPORTED => return Ok(None),
            lent => lent?,
        }
        ensure!(
            !piece.handle.is_null() && !piece.memory.is_null(),
            "lend returned OK and no memory"
        );
        ensure!(piece.bytes >= bytes, "lend gave {} bytes instead of {bytes}", piece.bytes);
        Ok(Some(piece))
    }

    fn copy(&self, piece: &UploadPiece, to: Buffer, offset: u64, bytes: u64) -> Result<()> {
        let copy = self.interface.copy.ok_or("no function copy")?;
        // SAFETY: the piece is lent, and the buffer has that many bytes behind the offset.
        call("copy", |e| unsafe {
            copy(self.device.handle, self.stream.0, piece.handle, to.handle.0, offset, bytes, e)
        })?;
        Ok(())
    }

    fn give_back(&self, piece: &UploadPiece) -> Result<()> {
        let give_back = self.interface.give_back.ok_or("no function give_back")?;
        // SAFETY: the piece is lent, and goes back once.
        unsafe { give_back(self.device.handle, piece.handle) };
        Ok(())
    }
}

/// Fills lent memory.
fn fill(piece: &UploadPiece, round: u64, bytes: u64) {
    // SAFETY: memory of that many bytes, which is lent.
    let target =
        unsafe { std::slice::from_raw_parts_mut(piece.memory.cast::<u8>(), bytes as usize) };
    target.iter_mut().zip(pattern(round)).for_each(|(to, from)| *to = from);
}

/// Pieces of all sizes, into the middle of a buffer.
fn copies(uploads: &Uploads<'_>) -> Result<()> {
    let device = uploads.device;
    for (round, bytes) in [1, 3, 4096, 100_001, MOST_BYTES].into_iter().enumerate() {
        let round = round as u64;
        let mut buffers = Buffers::new(device);
        let to = buffers.alloc(bytes + 512)?;
        device.write(uploads.stream, to, 0, &vec![0xa5; bytes as usize + 512])?;
        let piece = uploads.lend(bytes)?.ok_or("nothing is lent, and it is all there")?;
        fill(&piece, round, bytes);
        uploads.copy(&piece, to, 256, bytes)?;
        let mut back = vec![0; bytes as usize + 512];
        device.read(uploads.stream, to, 0, &mut back)?;
        let (before, rest) = back.split_at(256);
        let (copied, behind) = rest.split_at(bytes as usize);
        ensure!(
            copied.iter().copied().eq(pattern(round).take(bytes as usize)),
            "{bytes} bytes are not those of the lent memory"
        );
        ensure!(
            before.iter().chain(behind).all(|b| *b == 0xa5),
            "bytes beside the {bytes} were written to"
        );
    }
    Ok(())
}

/// Memory is not lent while a copy reads it, and not to two holders at the same time.
fn in_flight(uploads: &Uploads<'_>) -> Result<()> {
    const ROUNDS: u64 = 24;
    let device = uploads.device;
    let mut buffers = Buffers::new(device);
    let mut made: Vec<(u64, Buffer)> = Vec::new();
    for round in 0..ROUNDS {
        let to = buffers.alloc(MOST_BYTES)?;
        let (Some(first), second) = (uploads.lend(MOST_BYTES)?, uploads.lend(MOST_BYTES)?) else {
            return Err(format!(
                "nothing is lent after {round} rounds, although all memory was given back"
            ));
        };
        fill(&first, round, MOST_BYTES);
        if let Some(second) = &second {
            ensure!(second.handle != first.handle, "the same piece is lent twice");
            fill(second, round + 100, MOST_BYTES);
        }
        uploads.copy(&first, to, 0, MOST_BYTES)?;
        second.iter().try_for_each(|piece| uploads.give_back(piece))?;
        made.push((round, to));
    }
    let mut back = vec![0; MOST_BYTES as usize];
    for (round, buffer) in made {
        device.read(uploads.stream, buffer, 0, &mut back)?;
        ensure!(
            back.iter().copied().eq(pattern(round).take(back.len())),
            "memory was lent again while a copy read it"
        );
    }
    Ok(())
}

/// Memory that is given back without a copy can be lent again, any number of times.
fn given_back(uploads: &Uploads<'_>) -> Result<()> {
    for round in 0..200 {
        let piece = uploads.lend(MOST_BYTES)?;
        let piece =
            piece.ok_or_else(|| format!("nothing is lent after {round} pieces went back"))?;
        fill(&piece, round, 64);
        uploads.give_back(&piece)?;
    }
    Ok(())
}
