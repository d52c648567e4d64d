//! Exports, and imports of them.

use super::{Foreign, Imported, KINDS, Owner, released};
use crate::device::{Buffer, Handle};
use crate::record::{PASSED, Result, skip};
use crate::run::Buffers;
use ultramarine_abi::{interface::memory::kind, status};

/// Runs a check for a buffer of bytes 5, for each kind that is exported.
fn each_export(foreign: &Foreign<'_>, f: impl Fn(Handle, Buffer, u32) -> Result<()>) -> Result {
    if foreign.table.exports == 0 {
        return skip("nothing is exported");
    }
    foreign.with_stream(|stream| {
        let mut buffers = Buffers::new(foreign.device);
        // An overlay has only imported buffers.
        let (mut data, owner) = (vec![0x0505_0505_0505_0505; 64], Owner::new());
        let imported = if foreign.device.overlay {
            Some(foreign.import(&Foreign::block(&mut data, owner))?)
        } else {
            None
        };
        let buffer = match &imported {
            Some(imported) => imported.buffer,
            None => buffers.alloc(512)?,
        };
        for (kind, name) in KINDS.iter().filter(|(kind, _)| foreign.exports(*kind)) {
            if imported.is_none() {
                foreign.device.write(stream, buffer, 0, &[5; 512])?;
            }
            f(stream, buffer, *kind).map_err(|e| format!("as {name}: {e}"))?;
        }
        imported.map_or(Ok(()), Imported::free)?;
        PASSED
    })
}

pub(super) fn export(foreign: &Foreign<'_>) -> Result {
    each_export(foreign, |_, buffer, kind| {
        let block = foreign.export(buffer, kind)?;
        if block.kind != kind || block.handle == 0 {
            return Err(format!("it reports kind {} and handle {:#x}", block.kind, block.handle));
        }
        if block.bytes < buffer.bytes {
            return Err(format!("it reports {} bytes of {}", block.bytes, buffer.bytes));
        }
        if kind == kind::HOST {
            let address = (block.handle + block.offset) as *const u8;
            // SAFETY: an export as host memory is an address of at least `buffer.bytes` bytes.
            let seen = unsafe { std::slice::from_raw_parts(address, buffer.bytes as usize) };
            ensure!(seen.iter().all(|b| *b == 5), "the exported memory shows other bytes");
        }
        if let Some(release) = block.release {
            // SAFETY: the export is no longer used.
            unsafe { release(block.context) };
        }
        Ok(())
    })
}

/// Imports an export: both buffers are the same memory.
pub(super) fn import_again(foreign: &Foreign<'_>) -> Result {
    if foreign.device.overlay {
        return skip("the buffers of a CPU overlay are the host's");
    }
    if foreign.table.exports & foreign.table.imports == 0 {
        return skip("no kind is both exported and imported");
    }
    each_export(foreign, |stream, buffer, kind| {
        if !foreign.imports(kind) {
            return Ok(());
        }
        let mut block = foreign.export(buffer, kind)?;
        let (given, context, owner) = (block.release, block.context, Owner::new());
        block.release = Some(released);
        block.context = (&raw const *owner).cast_mut().cast();
        block.bytes = buffer.bytes;
        let imported = foreign.import(&block)?;
        if imported.buffer.handle == buffer.handle && kind != kind::HOST {
            return Err("the import is the exported buffer itself, which would be freed twice; make another buffer".into());
        }
        imported.expect(stream, &[0x0505_0505_0505_0505; 64])?;
        foreign.device.write(stream, imported.buffer, 8, &[9; 8])?;
        let mut back = [0; 24];
        foreign.device.read(stream, buffer, 0, &mut back)?;
        if back[8..16] != [9; 8] || back[..8] != [5; 8] {
            return Err("writes to the import are not seen in the buffer".into());
        }
        owner.expect_never("while the buffer lived")?;
        imported.free()?;
        foreign.device.synchronize(stream)?;
        owner.expect_once()?;
        if let Some(release) = given {
            // SAFETY: the export is no longer used.
            unsafe { release(context) };
        }
        // The exported buffer must still be intact.
        foreign.device.read(stream, buffer, 0, &mut back)?;
        if back[8..16] == [9; 8] {
            Ok(())
        } else {
            Err("the buffer was freed with its import".into())
        }
    })
}

pub(super) fn refused(foreign: &Foreign<'_>) -> Result {
    if foreign.table.export.is_none() || foreign.device.overlay {
        return skip("nothing is exported");
    }
    let mut buffers = Buffers::new(foreign.device);
    let buffer = buffers.alloc(64)?;
    let others = KINDS.into_iter().filter(|(kind, _)| !foreign.exports(*kind));
    for (kind, name) in others.chain([(31, "a kind that does not exist")]) {
        match foreign.export(buffer, kind) {
            Ok(_) => return Err(format!("it exports {name}, which it does not declare")),
            Err(f) if f.code == status::UNSUPPORTED => {}
            Err(f) => return Err(format!("{name}: {f}, expected UNSUPPORTED")),
        }
    }
    PASSED
}
