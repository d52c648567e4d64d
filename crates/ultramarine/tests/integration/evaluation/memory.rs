//! The caching allocator: what it promises about blocks, counters and limits.

use std::ptr::NonNull;
use std::sync::mpsc;

use ultramarine::memory::*;
use ultramarine_test_support::{Rng, own_process};

/// Checks that nothing is allocated, and empties the cache.
fn begin_empty() {
    clear_cache();
    assert_eq!((active(), cached()), (0, 0));
}

struct Block(NonNull<u8>, usize);

// SAFETY: a live block has one owner.
unsafe impl Send for Block {}

impl Block {
    fn new(bytes: usize) -> Self {
        Self(alloc(bytes).unwrap(), bytes)
    }
    fn fill(&self, byte: u8) {
        // SAFETY: the block is ours and has this many bytes.
        unsafe { self.0.as_ptr().write_bytes(byte, self.1) };
    }
    fn is_full_of(&self, byte: u8) -> bool {
        // SAFETY: as above; `fill` wrote them all.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr(), self.1) }.iter().all(|&b| b == byte)
    }
    fn addr(&self) -> usize {
        self.0.addr().get()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated with these bytes, freed once.
        unsafe { free(self.0, self.1) };
    }
}

const SIZES: [usize; 22] = [
    1,
    255,
    256,
    257,
    4095,
    4096,
    4097,
    32 << 10,
    (32 << 10) + 1,
    65535,
    1 << 20,
    (1 << 20) + 1,
    (2 << 20) - 1,
    2 << 20,
    (2 << 20) + 1,
    3_333_333,
    5_000_000,
    16 << 20,
    (16 << 20) + 1,
    33_000_000,
    1921 << 10,
    (1792 << 10) + 1,
];

#[test]
fn classes_cover_waste_little_and_are_fixed_points() {
    let mut last = 0;
    let mut bytes = 1usize;
    while bytes < 1 << 36 {
        let size = size_class(bytes);
        assert!(size >= bytes && size >= last && size.is_multiple_of(256), "{bytes}");
        assert!(
            size - bytes < 256 || (size - bytes) * 8 <= bytes,
            "{bytes} wastes {}",
            size - bytes
        );
        assert_eq!(size_class(size), size);
        last = size;
        bytes += 1 + bytes / 97;
    }
    for bytes in [usize::MAX, usize::MAX - 1, isize::MAX as usize, isize::MAX as usize - 100] {
        assert_eq!(size_class(bytes), usize::MAX);
    }
}

#[test]
fn blocks_are_aligned_separate_and_reused() {
    own_process!();
    begin_empty();
    for round in 0..3 {
        let blocks: Vec<Block> =
            SIZES.iter().chain(&SIZES).map(|&bytes| Block::new(bytes)).collect();
        for (i, block) in blocks.iter().enumerate() {
            assert_eq!(block.addr() % 256, 0);
            if cfg!(target_os = "linux") && block.1 >= 2 << 20 {
                assert_eq!(block.addr() % (2 << 20), 0);
            }
            block.fill(i as u8);
        }
        assert!(blocks.iter().enumerate().all(|(i, block)| block.is_full_of(i as u8)));
        let size: usize = blocks.iter().map(|block| size_class(block.1)).sum();
        assert_eq!(active(), size);
        drop(blocks);
        assert_eq!(active(), 0);
        assert_eq!(cached(), size, "round {round}: nothing new is taken from the system");
    }
    for bytes in SIZES {
        let first = Block::new(bytes).addr();
        assert_eq!(Block::new(bytes).addr(), first, "{bytes}");
    }
}

#[test]
fn large_blocks_are_reused_best_fit_with_little_waste() {
    own_process!();
    begin_empty();
    const M: usize = 1 << 20;
    let (a, b, c) = (Block::new(100 * M), Block::new(104 * M), Block::new(160 * M));
    let (at_a, at_b, at_c) = (a.addr(), b.addr(), c.addr());
    drop((a, b, c));
    assert_eq!(cached(), 364 * M);
    // The least that fits; what it wastes counts neither as used nor as cached.
    let first = Block::new(98 * M);
    assert_eq!((first.addr(), active(), cached()), (at_a, 98 * M, 264 * M));
    let second = Block::new(98 * M);
    assert_eq!(second.addr(), at_b);
    // 160 for 98 would waste too much.
    let third = Block::new(98 * M);
    assert_ne!(third.addr(), at_c);
    assert_eq!((active(), cached()), (294 * M, 160 * M));
    drop((first, second, third));
    assert_eq!((active(), cached()), (0, 462 * M));
    assert_eq!(Block::new(104 * M).addr(), at_b, "the true size is remembered");
}

#[test]
fn counters_are_exact_after_mixed_use_from_threads() {
    own_process!();
    begin_empty();
    reset_peak();
    let kept: Vec<Block> = std::thread::scope(|scope| {
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..8).map(|_| mpsc::channel::<Block>()).unzip();
        let handles: Vec<_> = receivers
            .into_iter()
            .enumerate()
            .map(|(me, inbox)| {
                let senders = senders.clone();
                scope.spawn(move || {
                    let mut rng = Rng::new(me as u64);
                    let mut mine: Vec<Block> = Vec::new();
                    for step in 0..20_000 {
                        let bytes = match rng.below(100) {
                            0 => 1 + rng.below(8 << 20),
                            1..10 => 1 + rng.below(1 << 18),
                            _ => 1 + rng.below(5000),
                        };
                        let block = Block::new(bytes);
                        // SAFETY: the block has at least one byte.
                        unsafe { block.0.as_ptr().write(me as u8) };
                        match step % 3 {
                            0 => senders[rng.below(8)].send(block).unwrap(),
                            1 => mine.push(block),
                            _ => {}
                        }
                        if mine.len() > 40 {
                            mine.swap_remove(rng.below(40));
                        }
                        drop(inbox.try_recv());
                    }
                    drop(senders);
                    inbox.into_iter().for_each(drop);
                    mine.truncate(3);
                    mine
                })
            })
            .collect();
        drop(senders);
        handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect()
    });
    let live: usize = kept.iter().map(|block| size_class(block.1)).sum();
    assert_eq!(active(), live);
    assert!(peak() >= live);
    drop(kept);
    assert_eq!(active(), 0);
    clear_cache();
    assert_eq!(cached(), 0);
}

#[test]
fn peak_follows_active() {
    own_process!();
    begin_empty();
    reset_peak();
    assert_eq!(peak(), 0);
    drop((Block::new(1 << 20), Block::new(4096)));
    assert_eq!(peak(), (1 << 20) + 4096);
    drop(Block::new(256));
    assert_eq!(peak(), (1 << 20) + 4096);
    reset_peak();
    drop(Block::new(256));
    assert_eq!(peak(), 256);
}

#[test]
fn absurd_sizes_are_refused_at_once() {
    own_process!();
    begin_empty();
    let held = Block::new(1 << 20);
    for bytes in [usize::MAX, usize::MAX - 4096, isize::MAX as usize, 1 << 60, 1 << 50] {
        let error = alloc(bytes).unwrap_err();
        assert_eq!((error.bytes, error.active, error.limit), (bytes, 1 << 20, memory_limit()));
        assert!(error.to_string().contains(&bytes.to_string()));
    }
    drop(held);
    assert_eq!(active(), 0);
}

#[test]
fn the_cache_limit_evicts() {
    own_process!();
    begin_empty();
    const M: usize = 1 << 20;
    let before = set_cache_limit(64 * M);
    let old = Block::new(30 * M).addr();
    let blocks: Vec<Block> = (0..8).map(|i| Block::new((4 + i) * M)).collect();
    let size: usize = blocks.iter().map(|block| size_class(block.1)).sum();
    assert_eq!(size, 60 * M);
    assert_eq!(cached(), 30 * M);
    drop(blocks);
    assert!(cached() <= 64 * M && cached() >= 48 * M, "{}", cached());
    let fresh = Block::new(30 * M);
    assert!(cached() > 0 || fresh.addr() != old, "the oldest block went first");
    drop(fresh);
    assert_eq!(set_cache_limit(10 * M), 64 * M);
    assert!(cached() <= 10 * M);
    assert_eq!(set_cache_limit(0), 10 * M);
    assert_eq!(cached(), 0);
    for bytes in SIZES {
        drop(Block::new(bytes));
        assert_eq!(cached(), 0, "{bytes}");
    }
    assert_eq!(set_cache_limit(before), 0);
    let small: Vec<Block> = (0..1000).map(|i| Block::new(1 + i * 100)).collect();
    drop(small);
    assert!(cached() > 0);
    clear_cache();
    assert_eq!(cached(), 0);
}

#[test]
fn the_memory_limit_drops_the_cache_but_refuses_nothing() {
    own_process!();
    begin_empty();
    const M: usize = 1 << 20;
    drop((Block::new(40 * M), Block::new(20 * M), Block::new(M)));
    let before = set_memory_limit(50 * M);
    let block = Block::new(30 * M);
    assert!(active() + cached() <= 50 * M);
    let over = Block::new(60 * M);
    assert_eq!((active(), cached()), (90 * M, 0));
    drop((block, over));
    assert_eq!(set_memory_limit(before), 50 * M);
    assert_eq!(memory_limit(), before);
}

#[cfg(target_os = "linux")]
#[test]
fn memory_stays_flat() {
    own_process!();
    begin_empty();
    let resident = || {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let mut rng = Rng::new(1);
    let mut ring: Vec<Option<Block>> = (0..64).map(|_| None).collect();
    let mut round = |times: usize| {
        for _ in 0..times {
            let most = if rng.below(64) == 0 { 1 << 20 } else { 20_000 };
            let bytes = 1 + rng.below(most);
            ring[rng.below(64)] = Some(Block::new(bytes));
        }
    };
    round(100_000);
    let (held, before) = (active() + cached(), resident());
    round(1_000_000);
    assert!(active() + cached() <= held + (16 << 20), "{} after {held}", active() + cached());
    assert!(resident() <= before + (32 << 20), "{} after {before}", resident());
    ring.clear();
    assert_eq!(active(), 0);
}

/// In builds with assertions `ULTRAMARINE_POISON=1` makes fresh and reused blocks begin as NaN.
#[cfg(debug_assertions)]
#[test]
fn poisoned_blocks() {
    own_process!("ULTRAMARINE_POISON" = "1");
    begin_empty();
    for bytes in SIZES {
        for _ in 0..2 {
            let block = Block::new(bytes);
            assert!(block.is_full_of(0xff), "{bytes}");
            block.fill(0);
        }
    }
}
