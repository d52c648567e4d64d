//! Cuts blocks of device memory into pieces, without calling the driver.
//!
//! Small pieces come from small blocks, and all others from larger blocks. A request takes the
//! smallest free piece that is large enough, and the rest of the piece stays free. A piece that
//! becomes free is joined with the free neighbours in its block.
//!
//! A piece may be free *in the order of a stream*: work that is enqueued to that stream later may
//! use it at once, and other work when the stream has completed its earlier work. Such a piece has
//! the stream as its owner, and a stamp that increases with each such piece. [`Pool::completed`]
//! frees the pieces up to a stamp for all streams. If a neighbour is free for all, it is joined and
//! belongs to the stream from then on.

use std::collections::{BTreeMap, BTreeSet};

/// All requests are multiples of this many bytes.
pub const GRAIN: u64 = 512;
/// Requests up to this size are small.
pub const SMALL: u64 = 1 << 20;
/// Bytes of a block for small requests.
pub const SMALL_BLOCK: u64 = 2 << 20;
/// Requests up to this size share blocks of `MEDIUM_BLOCK` bytes.
pub const MEDIUM: u64 = 10 << 20;
/// Bytes of a block for medium requests.
pub const MEDIUM_BLOCK: u64 = 32 << 20;
/// Blocks for larger requests are multiples of this.
pub const LARGE_GRAIN: u64 = 2 << 20;

/// A stream; 0 means none.
pub type StreamId = u32;
/// The pool's id of a piece in use.
pub type PieceId = u32;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// In use. Contains the requested bytes, rounded.
    Used(u64),
    Free(Free),
    /// The entry of the list is unused.
    Vacant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Free {
    owner: StreamId,
    stamp: u64,
    /// Bytes that were part of a buffer before. Only these count as kept for reuse.
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

/// The key of a free piece in search order: owner, size, address and id.
type Key = (StreamId, u64, u64, PieceId);

/// The pieces of all blocks, both used and free. It never calls the driver, so it can be tested
/// without a GPU.
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

/// Bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes in used pieces, as requested.
    pub active: u64,
    /// The peak of `active`.
    pub peak: u64,
    /// Bytes in free pieces that were part of buffers before.
    pub kept: u64,
    /// In blocks.
    pub held: u64,
}

/// Returns a request's size in the pool.
pub fn rounded(bytes: u64) -> Option<u64> {
    bytes.max(1).checked_next_multiple_of(GRAIN)
}

/// Returns the size of the block to allocate for a request of `bytes` (rounded), and the smallest
/// sufficient size.
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

    /// Adds a block that is free for all streams, for requests like one of `wanted` bytes.
    pub fn grow(&mut self, address: u64, bytes: u64, wanted: u64) {
        let state = State::Free(Free { owner: 0, stamp: 0, kept: 0 });
        let small = wanted <= SMALL;
        let id = self.place(Piece { address, bytes, small, before: NONE, after: NONE, state });
        self.insert(id);
        self.counts.held += bytes;
    }

    /// Takes a piece of `bytes` (rounded) for work of `stream`. Returns its id and address.
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
        // The rest of a large piece must be large enough for another large request.
        let rest = found - bytes;
        let worth = if small { GRAIN } else { SMALL + GRAIN };
        let mut kept = free.kept;
        if rest >= worth {
            let after = self.pieces[id as usize].after;
            // Use memory last that was not part of a buffer before.
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

    /// Frees a piece for all streams or, if `owner` is not 0, in the order of a stream.
    pub fn give(&mut self, id: PieceId, owner: StreamId, stamp: u64) {
        let piece = &mut self.pieces[id as usize];
        let State::Used(bytes) = piece.state else { return };
        let kept = piece.bytes;
        piece.state = State::Free(Free { owner, stamp, kept });
        self.counts.active -= bytes;
        self.counts.kept += kept;
        self.join_and_insert(id);
    }

    /// Joins a free piece, which is in no set, with its neighbours, and inserts it into the sets.
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

    /// Joins two neighbours under the first one's id.
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

    /// Frees the pieces that were freed in the stream's order up to `stamp` for all streams,
    /// because the stream has completed its work.
    pub fn completed(&mut self, owner: StreamId, stamp: u64) {
        let Some(own) = self.stamped.get_mut(&owner) else { return };
        let later = own.split_off(&(stamp.saturating_add(1), 0));
        let done: Vec<PieceId> = std::mem::replace(own, later).iter().map(|(_, id)| *id).collect();
        for id in done {
            // The piece may have been joined with another one since.
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

    /// Returns true if there are pieces that are free only in the order of a stream.
    pub fn has_stamped(&self) -> bool {
        self.stamped.values().any(|own| !own.is_empty())
    }

    /// Removes blocks that are free for all streams, the largest first, until they have `want`
    /// bytes. Returns their addresses.
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

    /// Sets the count of kept bytes to 0 after the kept memory was cleared. Free pieces of partly
    /// used blocks cannot be returned to the driver, and do not count as kept.
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
