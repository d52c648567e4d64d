//! Imports of host memory.

use super::{Foreign, KINDS, Owner, numbers};
use crate::groups::streams::Mover;
use crate::plugin::status_name;
use crate::record::{PASSED, Result, skip};
use crate::run::Buffers;
use ultramarine_abi::interface::memory::{ForeignMemory, flag, kind};
use ultramarine_abi::status;

/// Ends a check where host memory cannot be imported.
macro_rules! needs_host {
    ($foreign:expr) => {
        if !$foreign.imports(kind::HOST) {
            return skip("host memory cannot be imported");
        }
    };
}

pub(super) fn whole(foreign: &Foreign<'_>) -> Result {
    needs_host!(foreign);
    foreign.with_stream(|stream| {
        let (mut data, owner) = (numbers(1 << 12), Owner::new());
        let block = Foreign::block(&mut data, owner);
        let imported = foreign.import(&block)?;
        imported.expect(stream, &numbers(1 << 12))?;
        // Its owner may write to it later.
        // SAFETY: the kit's own memory, which nothing uses now.
        unsafe { data.as_mut_ptr().add(7).write_volatile(99) };
        let mut expected = numbers(1 << 12);
        expected[7] = 99;
        imported.expect(stream, &expected).map_err(|e| format!("after its owner wrote: {e}"))?;
        owner.expect_never("while the buffer lived")?;
        imported.free()?;
        foreign.device.synchronize(stream)?;
        owner.expect_once()?;
        PASSED
    })
}

pub(super) fn part(foreign: &Foreign<'_>) -> Result {
    needs_host!(foreign);
    foreign.with_stream(|stream| {
        let (mut data, owner) = (numbers(1 << 12), Owner::new());
        let mut block = Foreign::block(&mut data, owner);
        (block.offset, block.bytes) = (8 * 1024, 8 * 100);
        // Without a release function.
        block.release = None;
        let imported = foreign.import(&block)?;
        imported.expect(stream, &data[1024..1124])?;
        imported.free()?;
        owner.expect_never("although there was none")?;
        PASSED
    })
}

pub(super) fn read_only(foreign: &Foreign<'_>) -> Result {
    needs_host!(foreign);
    foreign.with_stream(|stream| {
        let (mut data, owner) = (numbers(1 << 10), Owner::new());
        let mut block = Foreign::block(&mut data, owner);
        block.flags = flag::READ_ONLY;
        let imported = foreign.import(&block)?;
        imported.expect(stream, &numbers(1 << 10))?;
        imported.free()?;
        foreign.device.synchronize(stream)?;
        owner.expect_once()?;
        if data == numbers(1 << 10) { PASSED } else { Err("the memory was written to".into()) }
    })
}

pub(super) fn several(foreign: &Foreign<'_>) -> Result {
    needs_host!(foreign);
    foreign.with_stream(|stream| {
        let mut data = vec![numbers(64); 16];
        let owners: Vec<&'static Owner> = (0..16).map(|_| Owner::new()).collect();
        let mut alive = Vec::new();
        for (data, owner) in data.iter_mut().zip(&owners) {
            alive.push(foreign.import(&Foreign::block(data, owner))?);
        }
        // Each owner is released once.
        for n in (0..16).rev() {
            alive.remove(n / 2 * (n % 2)).free()?;
        }
        foreign.device.synchronize(stream)?;
        owners.iter().try_for_each(|o| o.expect_once())?;
        PASSED
    })
}

/// A refused import is an error, and the owner keeps the memory.
pub(super) fn refused(foreign: &Foreign<'_>) -> Result {
    let mut data = numbers(64);
    let owner = Owner::new();
    let good = Foreign::block(&mut data, owner);
    let mut wrong = vec![
        ("a kind that does not exist", ForeignMemory { kind: 31, ..good }),
        ("no memory", ForeignMemory { handle: 0, ..good }),
        ("no bytes", ForeignMemory { bytes: 0, ..good }),
        ("a struct without a size", ForeignMemory { size: 0, ..good }),
    ];
    for (kind, name) in KINDS {
        if !foreign.imports(kind) {
            wrong.push((name, ForeignMemory { kind, ..good }));
        }
    }
    for (what, block) in wrong {
        match foreign.import(&block) {
            Ok(_) => return Err(format!("{what} was imported")),
            Err(f) if block.kind != kind::HOST && f.code != status::UNSUPPORTED => {
                return Err(format!("{what}: {}, expected UNSUPPORTED", status_name(f.code)));
            }
            Err(_) => owner.expect_never(&format!("although {what} was refused"))?,
        }
    }
    PASSED
}

/// Commands read and write imported memory where it is.
pub(super) fn commands(foreign: &Foreign<'_>) -> Result {
    needs_host!(foreign);
    let device = foreign.device;
    if device.overlay {
        return skip("commands of a CPU overlay use the host's memory");
    }
    const N: i64 = 1 << 12;
    let Some(mover) = Mover::new(device, N)? else {
        return skip("no native fill and copy of float32");
    };
    foreign.with_stream(|stream| {
        let mut buffers = Buffers::new(device);
        let ours = mover.buffer(&mut buffers)?;
        // Zeros, as many bytes as a buffer of the kit has.
        let (mut data, owner) = (vec![0u64; ours.bytes as usize / 8 + 1], Owner::new());
        let imported = foreign.import(&Foreign::block(&mut data, owner))?;
        mover.fill(stream, imported.buffer, 3.0)?;
        mover.copy(stream, imported.buffer, ours, 1)?;
        mover.expect(stream, ours, 3.0)?;
        device.synchronize(stream)?;
        owner.expect_never("while the buffer lived")?;
        imported.free()?;
        owner.expect_once()?;
        let three = u64::from(3f32.to_bits()) << 32 | u64::from(3f32.to_bits());
        match data[..N as usize / 2].iter().position(|d| *d != three) {
            Some(i) => Err(format!("the owner's memory is not written to, from word {i} on")),
            None => PASSED,
        }
    })
}
