//! Random requests, after which the pool's invariants are checked.

use super::*;
use ultramarine_test_support::Rng;

/// A pool over blocks that are only addresses, without memory.
#[derive(Default)]
struct Fake {
    pool: Pool,
    blocks: BTreeMap<u64, u64>,
    next: u64,
}

impl Fake {
    fn take(&mut self, bytes: u64, stream: StreamId) -> (PieceId, u64) {
        let bytes = rounded(bytes).unwrap();
        if let Some(found) = self.pool.take(bytes, stream) {
            return found;
        }
        let (block, _) = block_for(bytes).unwrap();
        // A gap, so that blocks are never adjacent.
        self.next += block + (1 << 30);
        self.blocks.insert(self.next, block);
        self.pool.grow(self.next, block, bytes);
        self.pool.take(bytes, stream).unwrap()
    }

    fn release(&mut self, want: u64) -> u64 {
        let gone = self.pool.release(want);
        gone.iter().map(|address| self.blocks.remove(address).unwrap()).sum()
    }

    /// Checks that the pieces of every block cover it, that neighbours refer to each other, that no two
    /// pieces could be joined, that the sets hold the free pieces, and that the counts are right.
    fn check(&self) {
        let pool = &self.pool;
        let (mut held, mut active, mut kept, mut free, mut stamped) = (0, 0, 0, 0, 0);
        for (&base, &bytes) in &self.blocks {
            let live =
                |p: &&Piece| p.state != State::Vacant && p.before == NONE && p.address == base;
            let mut at = pool.pieces.iter().position(|p| live(&p)).unwrap() as u32;
            let (mut end, mut before) = (base, NONE);
            while at != NONE {
                let piece = &pool.pieces[at as usize];
                assert_eq!((piece.address, piece.before), (end, before));
                assert!(piece.bytes > 0 && piece.bytes.is_multiple_of(GRAIN));
                assert!(!pool.joins(before, at), "free neighbours are apart");
                match piece.state {
                    State::Used(asked) => {
                        assert!(asked <= piece.bytes && piece.bytes - asked <= SMALL);
                        active += asked;
                    }
                    State::Free(f) => {
                        assert!(f.kept <= piece.bytes);
                        let key = (f.owner, piece.bytes, piece.address, at);
                        assert!(pool.free[usize::from(piece.small)].contains(&key));
                        kept += f.kept;
                        free += 1;
                        if f.owner != 0 {
                            assert!(pool.stamped[&f.owner].contains(&(f.stamp, at)));
                            stamped += 1;
                        }
                    }
                    State::Vacant => panic!("a vacant piece in a block"),
                }
                (end, before) = (end + piece.bytes, at);
                at = piece.after;
            }
            assert_eq!(end, base + bytes);
            held += bytes;
        }
        let counts = pool.counts();
        assert_eq!((counts.held, counts.active, counts.kept), (held, active, kept));
        assert!(counts.peak >= counts.active);
        assert_eq!(pool.free[0].len() + pool.free[1].len(), free);
        assert_eq!(pool.stamped.values().map(BTreeSet::len).sum::<usize>(), stamped);
    }
}

fn below(rng: &mut Rng, n: u64) -> u64 {
    rng.below(n as usize) as u64
}

fn size(rng: &mut Rng) -> u64 {
    match rng.below(10) {
        0..=5 => below(rng, 4000),
        6 | 7 => below(rng, 2 << 20),
        8 => below(rng, 12 << 20),
        _ => below(rng, 90 << 20),
    }
}

#[test]
fn random_requests_never_overlap_and_leave_nothing() {
    for seed in 0..8 {
        let (mut rng, mut fake) = (Rng::new(seed), Fake::default());
        // By address: end, id, and the stream that the piece was taken for.
        let mut live: BTreeMap<u64, (u64, PieceId)> = BTreeMap::new();
        // Pieces that are free in the order of a stream: address, end, stream, stamp.
        let mut pending: Vec<(u64, u64, StreamId, u64)> = Vec::new();
        let mut stamp = 0;
        for step in 0..3000 {
            match rng.below(20) {
                0..=10 => {
                    let (bytes, stream) = (size(&mut rng), rng.below(4) as StreamId);
                    let (id, at) = fake.take(bytes, stream);
                    let end = at + fake.pool.pieces[id as usize].bytes;
                    assert!(at.is_multiple_of(256) && end >= at + bytes.max(1));
                    let before = live.range(..end).next_back();
                    assert!(before.is_none_or(|(_, (e, _))| *e <= at), "an overlap");
                    for (low, high, owner, _) in &pending {
                        let apart = *high <= at || end <= *low;
                        assert!(apart || *owner == stream, "memory that another stream uses");
                    }
                    // A piece that is taken by its own stream is no longer pending.
                    let used = std::mem::take(&mut pending);
                    for (low, high, owner, stamp) in used {
                        let parts = [(low, high.min(at)), (low.max(end), high)];
                        let parts = parts.into_iter().filter(|(a, b)| a < b);
                        pending.extend(parts.map(|(a, b)| (a, b, owner, stamp)));
                    }
                    live.insert(at, (end, id));
                }
                11..=17 if !live.is_empty() => {
                    let n = rng.below(live.len());
                    let at = *live.keys().nth(n).unwrap();
                    let (end, id) = live.remove(&at).unwrap();
                    let owner = rng.below(4) as StreamId;
                    stamp += 1;
                    fake.pool.give(id, owner, stamp);
                    if owner != 0 {
                        pending.push((at, end, owner, stamp));
                    }
                }
                18 => {
                    let (owner, up_to) = (1 + rng.below(3) as StreamId, below(&mut rng, stamp + 2));
                    fake.pool.completed(owner, up_to);
                    pending.retain(|(_, _, o, s)| *o != owner || *s > up_to);
                }
                _ if step % 7 == 0 => {
                    let want = below(&mut rng, 64 << 20);
                    fake.release(want);
                }
                _ => {}
            }
            if step % 50 == 0 {
                fake.check();
            }
        }
        for (_, (_, id)) in std::mem::take(&mut live) {
            fake.pool.give(id, 0, 0);
        }
        (1..4).for_each(|owner| fake.pool.completed(owner, u64::MAX));
        fake.check();
        let held = fake.pool.counts().held;
        assert_eq!(fake.release(u64::MAX), held, "a block is not whole again");
        fake.check();
        let peak = fake.pool.counts().peak;
        assert_eq!(fake.pool.counts(), Counts { peak, ..Counts::default() });
        assert!(peak > 0 && !fake.pool.has_stamped());
    }
}

#[test]
fn freed_memory_is_its_streams_at_once_and_any_others_once_completed() {
    let mut fake = Fake::default();
    let (id, first) = fake.take(20 << 20, 1);
    fake.pool.give(id, 1, 7);
    let (other, second) = fake.take(20 << 20, 2);
    assert_ne!(first, second);
    let (id, again) = fake.take(20 << 20, 1);
    assert_eq!(first, again);
    fake.pool.give(id, 1, 8);
    fake.pool.completed(1, 7);
    assert_ne!(fake.take(20 << 20, 2).1, first, "it was freed again after that point");
    fake.pool.completed(1, 8);
    assert_eq!(fake.take(20 << 20, 2).1, first);
    fake.pool.give(other, 0, 0);
    assert_eq!(fake.take(20 << 20, 3).1, second);
    fake.check();
}

#[test]
fn the_smallest_piece_that_holds_it_is_taken() {
    let mut fake = Fake::default();
    let all: Vec<_> = [8, 1, 4, 1, 6, 1].iter().map(|n| fake.take(n * 4096, 0)).collect();
    for i in [0, 2, 4] {
        fake.pool.give(all[i].0, 0, 0);
    }
    assert_eq!(fake.take(5 * 4096, 0).1, all[4].1);
    assert_eq!(fake.take(4 * 4096, 0).1, all[2].1);
    assert_eq!(fake.take(7 * 4096, 0).1, all[0].1);
    fake.check();
}

#[test]
fn clearing_leaves_nothing_that_counts_as_kept() {
    let mut fake = Fake::default();
    let (a, b, c) = (fake.take(4096, 0), fake.take(4096, 0), fake.take(30 << 20, 0));
    assert_eq!(fake.pool.counts().kept, 0);
    fake.pool.give(b.0, 0, 0);
    fake.pool.give(c.0, 0, 0);
    assert_eq!(fake.pool.counts().kept, 4096 + (30 << 20));
    assert_eq!(fake.release(u64::MAX), 30 << 20);
    fake.pool.forget_kept();
    assert_eq!(fake.pool.counts().kept, 0);
    assert_eq!(fake.pool.counts().active, 4096);
    fake.check();
    fake.pool.give(a.0, 0, 0);
    assert_eq!(fake.pool.counts().kept, 4096);
    assert_eq!(fake.release(u64::MAX), SMALL_BLOCK);
    fake.check();
}

#[test]
fn impossible_sizes_are_refused() {
    assert_eq!(rounded(u64::MAX), None);
    assert_eq!(rounded(u64::MAX - 7), None);
    assert_eq!(block_for(u64::MAX - 511), None);
    assert_eq!(rounded(0), Some(GRAIN));
}
