//! Blocks of device memory, split into pieces. This module makes no driver calls.
//!
//! Small pieces come from small blocks, all others from larger ones. A request takes the smallest
//! free piece that is large enough, and the rest of the piece stays free. A piece that becomes free
//! is joined with its free neighbours in the block.
//!
//! A piece may be free *in the order of a stream*: later work of that stream may use it at once, other
//! streams only when this stream has completed its earlier work. Such a piece has the stream as its owner
//! and a stamp, which grows with each piece freed this way. [`Pool::completed`] makes pieces up to a stamp
//! free for all. A neighbour that is free for all is joined with such a piece, and then belongs to the
//! stream, too.

use std::collections::{BTreeMap, BTreeSet};

/// All requests are rounded up to multiples of this number of bytes.
pub const GRAIN: u64 = 512;
/// Requests up to this size are small.
pub const SMALL: u64 = 1 << 20;
/// Bytes of a block for small requests.
pub const SMALL_BLOCK: u64 = 2 << 20;
/// Requests up to this size share blocks of `MEDIUM_BLOCK` bytes.
pub const MEDIUM: u64 = 10 << 20;
/// Bytes of a block for medium requests.
pub const MEDIUM_BLOCK: u64 = 32 << 20;
/// Blocks for larger requests are multiples of this number of bytes.
pub const LARGE_GRAIN: u64 = 2 << 20;

/// A stream; 0 means none.
pub type StreamId = u32;
/// The pool's id of a piece in use.
pub type PieceId = u32;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In use; the number of bytes requested, rounded.
    Used(u64),
    Free(Free),
    /// The index can be used for another piece.
    Vacant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Free {
    owner: StreamId,
    stamp: u64,
    /// How many of its bytes buffers have used before. These bytes count as kept for reuse.
    kept: u64,
}

#[derive(Clone, Debug)]
struct Piece {
    address: u64,
    bytes: u64,
    small: bool,
    /// Neighbours in the block.
    before: u32,
    after: u32,
    state: State,
}

/// A free piece, in the order of the search: owner, size, address, id.
type Key = (StreamId, u64, u64, PieceId);

/// The pieces of all blocks, in use and free. The pool only does the bookkeeping and never calls
/// the driver, so it can be tested without a GPU.
#[derive(Default)]
pub struct Pool {
    pieces: Vec<Piece>,
    vacant: Vec<u32>,
    /// Free pieces of large and of small blocks.
    free: [BTreeSet<Key>; 2],
    /// Pieces that are free in the order of a stream, by stamp.
    stamped: BTreeMap<StreamId, BTreeSet<(u64, PieceId)>>,
    counts: Counts,
}

/// Counts of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes of pieces in use, as requested.
    pub active: u64,
    /// The maximum of `active` so far.
    pub peak: u64,
    /// Bytes of free pieces that buffers have used before.
    pub kept: u64,
    /// Bytes of all blocks.
    pub held: u64,
}

/// Returns a request's size in the pool.
pub fn rounded(bytes: u64) -> Option<u64> {
    bytes.max(1).checked_next_multiple_of(GRAIN)
}

/// The size of the block to allocate for a request of `bytes`, rounded, and the smallest size that
/// is enough.
pub fn block_for(bytes: u64) -> Option<(u64, u64)> {
    let least = bytes.checked_next_multiple_of(LARGE_GRAIN)?;
    Some(match bytes {
        0..=SMALL => (SMALL_BLOCK, SMALL_BLOCK),
        n if n <= MEDIUM => (MEDIUM_BLOCK, least),
        _ => (least, least),
    })
}

impl Pool {
    /// Bytes in use and kept.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn insert(&mut self, id: PieceId) {
        let piece = &self.pieces[id as usize];
        let State::Free(free) = piece.state else { return };
        let key = (free.owner, piece.bytes, piece.address, id);
        self.free[usize::from(piece.small)].insert(key);
        if free.owner != 0 {
            self.stamped.entry(free.owner).or_default().insert((free.stamp, id));
        }
    }

    fn remove(&mut self, id: PieceId) {
        let piece = &self.pieces[id as usize];
        let State::Free(free) = piece.state else { return };
        let key = (free.owner, piece.bytes, piece.address, id);
        self.free[usize::from(piece.small)].remove(&key);
        if free.owner != 0
            && let Some(own) = self.stamped.get_mut(&free.owner)
        {
            own.remove(&(free.stamp, id));
        }
    }

    fn place(&mut self, piece: Piece) -> PieceId {
        match self.vacant.pop() {
            Some(id) => {
                self.pieces[id as usize] = piece;
                id
            }
            None => {
                self.pieces.push(piece);
                (self.pieces.len() - 1) as PieceId
            }
        }
    }

    /// Adds a block that is free for all, for requests of the size class of `wanted` bytes.
    pub fn grow(&mut self, address: u64, bytes: u64, wanted: u64) {
        let state = State::Free(Free { owner: 0, stamp: 0, kept: 0 });
        let small = wanted <= SMALL;
        let id = self.place(Piece { address, bytes, small, before: NONE, after: NONE, state });
        self.insert(id);
        self.counts.held += bytes;
    }

    /// Takes a piece of `bytes`, rounded, for work of `stream`; returns it with its address.
    pub fn take(&mut self, bytes: u64, stream: StreamId) -> Option<(PieceId, u64)> {
        let small = bytes <= SMALL;
        let set = &self.free[usize::from(small)];
        let best = |owner: StreamId| {
            set.range((owner, bytes, 0, 0)..=(owner, u64::MAX, u64::MAX, NONE)).next().copied()
        };
        let own = if stream == 0 { None } else { best(stream) };
        // Memory that only this stream may reuse comes first.
        let key = match (own, best(0)) {
            (Some(own), Some(any)) => Some(if any.1 < own.1 { any } else { own }),
            (own, any) => own.or(any),
        };
        let (_, found, address, id) = key?;
        self.remove(id);
        let State::Free(free) = self.pieces[id as usize].state else { return None };
        // A large piece is only split if the rest can hold another large request.
        let rest = found - bytes;
        let worth = if small { GRAIN } else { SMALL + GRAIN };
        let mut kept = free.kept;
        if rest >= worth {
            let after = self.pieces[id as usize].after;
            // Bytes that no buffer has used before are taken last.
            kept = kept.min(bytes);
            let left = Free { kept: free.kept - kept, ..free };
            let (before, state, address) = (id, State::Free(left), address + bytes);
            let new = self.place(Piece { address, bytes: rest, small, before, after, state });
            if after != NONE {
                self.pieces[after as usize].before = new;
            }
            let piece = &mut self.pieces[id as usize];
            (piece.bytes, piece.after) = (bytes, new);
            self.insert(new);
        }
        self.pieces[id as usize].state = State::Used(bytes);
        self.counts.kept -= kept;
        self.counts.active += bytes;
        self.counts.peak = self.counts.peak.max(self.counts.active);
        Some((id, address))
    }

    /// True if [`Pool::take`] would find a piece.
    pub fn has_room(&self, bytes: u64, stream: StreamId) -> bool {
        let set = &self.free[usize::from(bytes <= SMALL)];
        let any = |owner| {
            set.range((owner, bytes, 0, 0)..=(owner, u64::MAX, u64::MAX, NONE)).next().is_some()
        };
        any(0) || any(stream)
    }

    /// Frees a piece for all, or (if `owner` is not 0) in the order of a stream.
    pub fn give(&mut self, id: PieceId, owner: StreamId, stamp: u64) {
        let piece = &mut self.pieces[id as usize];
        let State::Used(bytes) = piece.state else { return };
        let kept = piece.bytes;
        piece.state = State::Free(Free { owner, stamp, kept });
        self.counts.active -= bytes;
        self.counts.kept += kept;
        self.join_and_insert(id);
    }

    /// Joins a free piece, which is in no set yet, with its free neighbours, and inserts it into
    /// the sets.
    fn join_and_insert(&mut self, mut id: PieceId) {
        let before = self.pieces[id as usize].before;
        if self.joins(before, id) {
            self.remove(before);
            self.absorb(before, id);
            id = before;
        }
        let after = self.pieces[id as usize].after;
        if self.joins(id, after) {
            self.remove(after);
            self.absorb(id, after);
        }
        self.insert(id);
    }

    fn joins(&self, a: u32, b: u32) -> bool {
        if a == NONE || b == NONE {
            return false;
        }
        match (self.pieces[a as usize].state, self.pieces[b as usize].state) {
            (State::Free(a), State::Free(b)) => a.owner == b.owner || a.owner == 0 || b.owner == 0,
            _ => false,
        }
    }

    /// Merges two neighbours into one piece with the id of the first.
    fn absorb(&mut self, first: u32, second: u32) {
        let gone = self.pieces[second as usize].clone();
        self.pieces[second as usize].state = State::Vacant;
        self.vacant.push(second);
        if gone.after != NONE {
            self.pieces[gone.after as usize].before = first;
        }
        let piece = &mut self.pieces[first as usize];
        piece.bytes += gone.bytes;
        piece.after = gone.after;
        if let (State::Free(a), State::Free(b)) = (piece.state, gone.state) {
            piece.state = State::Free(Free {
                owner: a.owner.max(b.owner),
                stamp: a.stamp.max(b.stamp),
                kept: a.kept + b.kept,
            });
        }
    }

    /// Makes pieces free for all that were freed in the stream's order up to `stamp`.
    pub fn completed(&mut self, owner: StreamId, stamp: u64) {
        let Some(own) = self.stamped.get_mut(&owner) else { return };
        let later = own.split_off(&(stamp.saturating_add(1), 0));
        let done: Vec<PieceId> = std::mem::replace(own, later).iter().map(|(_, id)| *id).collect();
        for id in done {
            // The piece may have been joined with another of these pieces meanwhile.
            let piece = &self.pieces[id as usize];
            let State::Free(free) = piece.state else { continue };
            if free.owner != owner || free.stamp > stamp {
                continue;
            }
            let key = (owner, piece.bytes, piece.address, id);
            self.free[usize::from(piece.small)].remove(&key);
            self.pieces[id as usize].state = State::Free(Free { owner: 0, stamp: 0, ..free });
            self.join_and_insert(id);
        }
    }

    /// True if some pieces are free only in the order of a stream.
    pub fn has_stamped(&self) -> bool {
        self.stamped.values().any(|own| !own.is_empty())
    }

    /// Gives up blocks that are free for all, the largest first, until they add up to `want` bytes;
    /// returns their addresses.
    pub fn release(&mut self, want: u64) -> Vec<u64> {
        let mut found: Vec<(u64, PieceId)> = Vec::new();
        for set in &self.free {
            for &(_, bytes, _, id) in set.range(..=(0, u64::MAX, u64::MAX, NONE)) {
                let piece = &self.pieces[id as usize];
                if piece.before == NONE && piece.after == NONE {
                    found.push((bytes, id));
                }
            }
        }
        found.sort_unstable_by(|a, b| b.cmp(a));
        let (mut sum, mut addresses) = (0, Vec::new());
        for (bytes, id) in found {
            if sum >= want {
                break;
            }
            sum += bytes;
            self.remove(id);
            let piece = &mut self.pieces[id as usize];
            if let State::Free(free) = piece.state {
                self.counts.kept -= free.kept;
            }
            self.counts.held -= bytes;
            piece.state = State::Vacant;
            addresses.push(piece.address);
            self.vacant.push(id);
        }
        addresses
    }

    /// Stops counting free pieces of partly used blocks as kept. They cannot be returned to the driver,
    /// but the count must be 0 after the kept memory was cleared.
    pub fn forget_kept(&mut self) {
        for piece in &mut self.pieces {
            if let State::Free(free) = &mut piece.state
                && free.owner == 0
            {
                self.counts.kept -= std::mem::take(&mut free.kept);
            }
        }
    }
}

#[cfg(test)]
mod tests;
