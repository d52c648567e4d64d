//! The caching allocator of host memory.
//!
//! A request is rounded up to a size class, and freed blocks are kept for the next request of the
//! class. There are three levels:
//!
//! - *Shards* have short lists of blocks up to 32 KiB. Threads are distributed over the shards, so
//!   a shard's lock is nearly never contended.
//! - The *centre* has a list for each class below 2 MiB, and an ordered map of the larger blocks,
//!   which are reused best-fit.
//! - The operating system.
//!
//! No lock is held while another is taken or the system is called.
//!
//! The counters are exact. `active` is the only word that every request changes. The number of
//! cached bytes follows from it and from the bytes held from the system (see [`cached`]).

use std::collections::BTreeMap;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::spin_lock::Lock;
use super::system::{self, HUGE};
use crate::fork::{self, ForkStage, Hook};

/// Number of classes below `HUGE`: multiples of 256 up to 4 KiB, then eight for each power of two.
const CLASSES: usize = 16 + 9 * 8;
/// Number of classes up to 32 KiB, which shards keep.
const SHARD_CLASSES: usize = 16 + 3 * 8;
const SHARDS: usize = 32;
/// The most bytes and blocks of one class that a shard keeps.
const SHARD_BYTES: usize = 64 << 10;
const SHARD_BLOCKS: usize = 64;
/// A larger block serves a request if the wasted bytes are at most this fraction of the request.
const WASTE_DIVISOR: usize = 8;
/// The value of a limit that has not been set.
const DEFAULT: usize = usize::MAX;

/// The error of a request for which there is not enough memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot allocate {bytes} bytes: {active} bytes are in use, the memory limit is {limit} bytes. Free arrays, or raise the limit by set_memory_limit"
)]
pub struct AllocError {
    /// Requested bytes.
    pub bytes: usize,
    /// Bytes in use at that time.
    pub active: usize,
    /// The memory limit at that time.
    pub limit: usize,
}

#[repr(align(128))]
struct Padded<T>(T);

/// Bytes of live blocks. Each block counts with the class of its request.
static ACTIVE: Padded<AtomicUsize> = Padded(AtomicUsize::new(0));
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// Bytes held from the system, both live and cached.
static HELD: Padded<AtomicUsize> = Padded(AtomicUsize::new(0));
/// Bytes by which live blocks are larger than the classes of their requests, because of best-fit
/// reuse.
static SLACK: AtomicUsize = AtomicUsize::new(0);
static MEMORY_LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT);
static CACHE_LIMIT: AtomicUsize = AtomicUsize::new(DEFAULT);

static POOLS: [Padded<Lock<Shard>>; SHARDS] = [const { Padded(Lock::new(Shard::new())) }; SHARDS];
static CENTRE: Padded<Lock<Centre>> = Padded(Lock::new(Centre::new()));

/// Free blocks of one class, linked through their first words.
#[derive(Clone, Copy)]
struct List {
    head: *mut u8,
    len: usize,
}

// SAFETY: a list owns its blocks, on whichever thread it is.
unsafe impl Send for List {}

impl List {
    const EMPTY: Self = Self { head: ptr::null_mut(), len: 0 };

    /// # Safety
    /// `block` is a free block (256 bytes or more, 256-aligned) that nothing else uses.
    #[inline]
    unsafe fn push(&mut self, block: NonNull<u8>) {
        // SAFETY: the block is free, large enough and aligned for a pointer.
        unsafe { block.cast::<*mut u8>().write(self.head) };
        self.head = block.as_ptr();
        self.len += 1;
    }

    #[inline]
    fn pop(&mut self) -> Option<NonNull<u8>> {
        let block = NonNull::new(self.head)?;
        // SAFETY: every block of a list begins with the link that `push` wrote.
        self.head = unsafe { block.cast::<*mut u8>().read() };
        self.len -= 1;
        Some(block)
    }

    /// Removes up to `count` blocks and returns them as a list.
    fn split(&mut self, count: usize) -> List {
        let mut taken = List::EMPTY;
        while taken.len < count {
            let Some(block) = self.pop() else { break };
            // SAFETY: the block was just popped, so it is free and owned by this function.
            unsafe { taken.push(block) };
        }
        taken
    }

    fn append(&mut self, mut other: List) {
        while let Some(block) = other.pop() {
            // SAFETY: the block was just popped, so it is free and owned by this function.
            unsafe { self.push(block) };
        }
    }
}

struct Shard {
    lists: [List; SHARD_CLASSES],
}

impl Shard {
    const fn new() -> Self {
        Self { lists: [List::EMPTY; SHARD_CLASSES] }
    }
}

struct Centre {
    lists: [List; CLASSES],
    /// Free large blocks by size and age.
    large: BTreeMap<(usize, u64), Block>,
    /// Sizes of the free large blocks by age, the oldest first.
    ages: BTreeMap<u64, usize>,
    clock: u64,
    /// True sizes of those live large blocks that are larger than the class of their request.
    oversize: BTreeMap<usize, usize>,
}

#[derive(Clone, Copy)]
struct Block(NonNull<u8>);

// SAFETY: a free block belongs to the `Block` that has its address.
unsafe impl Send for Block {}

impl Centre {
    const fn new() -> Self {
        Self {
            lists: [List::EMPTY; CLASSES],
            large: BTreeMap::new(),
            ages: BTreeMap::new(),
            clock: 0,
            oversize: BTreeMap::new(),
        }
    }

    /// Takes the smallest free large block that has at least `size` bytes and does not waste too
    /// much.
    fn take_large(&mut self, size: usize) -> Option<NonNull<u8>> {
        let most = size + size / WASTE_DIVISOR;
        let (&(least, _), _) = self.large.range((size, 0)..=(most, u64::MAX)).next()?;
        // Among blocks of this size, take the one that was freed last, because its bytes may still
        // be in the processor's caches.
        let (&key, &Block(block)) = self.large.range((least, 0)..=(least, u64::MAX)).next_back()?;
        self.large.remove(&key);
        self.ages.remove(&key.1);
        if key.0 > size {
            self.oversize.insert(block.addr().get(), key.0);
            SLACK.fetch_add(key.0 - size, Ordering::Relaxed);
        }
        Some(block)
    }

    /// Keeps a free large block. `size` is the class of the request that the block served.
    fn give_large(&mut self, block: NonNull<u8>, size: usize) {
        let mut size = size;
        if let Some(real) = self.oversize.remove(&block.addr().get()) {
            SLACK.fetch_sub(real - size, Ordering::Relaxed);
            size = real;
        }
        self.clock += 1;
        self.large.insert((size, self.clock), Block(block));
        self.ages.insert(self.clock, size);
    }

    /// Takes a block that is to be returned to the system: the oldest large block. If there is
    /// none, a block of the largest class.
    fn victim(&mut self) -> Option<(NonNull<u8>, usize)> {
        if let Some((age, size)) = self.ages.pop_first() {
            let Block(block) = self.large.remove(&(size, age))?;
            return Some((block, size));
        }
        victim_of(&mut self.lists)
    }
}

/// Takes a block from the largest class that has one.
fn victim_of(lists: &mut [List]) -> Option<(NonNull<u8>, usize)> {
    let (class, list) = lists.iter_mut().enumerate().rev().find(|(_, list)| list.len > 0)?;
    Some((list.pop()?, class_size(class)))
}

/// Returns the size in bytes of the block that serves a request of `bytes`. Up to 4 KiB it is a
/// multiple of 256. Up to 16 MiB it is a multiple of an eighth of the next lower power of two.
/// Above, it is a multiple of 2 MiB. So above 2 KiB at most an eighth is wasted. Returns
/// `usize::MAX` if there is no such size.
#[inline]
pub fn size_class(bytes: usize) -> usize {
    let step = match bytes.max(1) {
        0..=4096 => 256,
        n if n <= 16 << 20 => 1 << (usize::BITS - 1 - (n - 1).leading_zeros() - 3),
        n if n < isize::MAX as usize - HUGE => HUGE,
        _ => return usize::MAX,
    };
    (bytes.max(1) + (step - 1)) & !(step - 1)
}

/// Returns the index of a class below `HUGE`, given its size.
#[inline]
fn class_index(size: usize) -> usize {
    if size <= 4096 {
        return size / 256 - 1;
    }
    // `size` lies in (2^power, 2^(power+1)].
    let power = (usize::BITS - 1 - (size - 1).leading_zeros()) as usize;
    16 + (power - 12) * 8 + ((size - (1 << power)) >> (power - 3)) - 1
}

/// Returns the size in bytes of the class with this index.
fn class_size(index: usize) -> usize {
    match index.checked_sub(16) {
        None => (index + 1) * 256,
        Some(rest) => (8 + rest % 8 + 1) << (12 + rest / 8 - 3),
    }
}

/// Returns the most blocks of this size that a shard keeps, which is 2 or more.
#[inline]
fn shard_bound(size: usize) -> usize {
    (SHARD_BYTES / size).min(SHARD_BLOCKS)
}

/// Returns this thread's shard.
#[inline]
fn shard() -> &'static Lock<Shard> {
    use std::cell::Cell;
    thread_local!(static MINE: Cell<usize> = const { Cell::new(usize::MAX) });
    let mut index = MINE.get();
    if index == usize::MAX {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        index = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
        MINE.set(index);
    }
    &POOLS[index % SHARDS].0
}

/// Allocates a block of at least `bytes` bytes, aligned to 256, with arbitrary contents. Blocks of
/// 2 MiB and more are in huge pages if the system has them.
///
/// # Errors
/// [`AllocError`] if the system refuses, or if the request, alone or with the bytes in use, is more
/// than the memory and swap of the machine. The cache is emptied before the request fails. The
/// memory limit is a guideline: above it the cache is emptied, but no request fails.
#[inline]
pub fn alloc(bytes: usize) -> Result<NonNull<u8>, AllocError> {
    debug_assert!(bytes > 0, "empty arrays need no memory");
    let size = size_class(bytes);
    let block = match reuse(size) {
        Some(block) => block,
        None => fresh(bytes, size)?,
    };
    let now = ACTIVE.0.fetch_add(size, Ordering::Relaxed) + size;
    if now > PEAK.load(Ordering::Relaxed) {
        PEAK.fetch_max(now, Ordering::Relaxed);
    }
    #[cfg(debug_assertions)]
    poison(block, size);
    Ok(block)
}

/// Returns a cached block for a request of this class.
#[inline]
fn reuse(size: usize) -> Option<NonNull<u8>> {
    if size >= HUGE {
        return if size == usize::MAX { None } else { CENTRE.0.lock().take_large(size) };
    }
    let class = class_index(size);
    if class >= SHARD_CLASSES {
        return CENTRE.0.lock().lists[class].pop();
    }
    let found = shard().lock().lists[class].pop();
    found.or_else(|| refill(class, size))
}

/// Moves blocks from the centre to a shard, up to half of what a shard keeps. Returns one of them
/// to the caller.
#[cold]
fn refill(class: usize, size: usize) -> Option<NonNull<u8>> {
    let mut batch = CENTRE.0.lock().lists[class].split(shard_bound(size) / 2);
    let block = batch.pop()?;
    if batch.len > 0 {
        shard().lock().lists[class].append(batch);
    }
    Some(block)
}

/// Returns a block from the system.
#[cold]
fn fresh(bytes: usize, size: usize) -> Result<NonNull<u8>, AllocError> {
    fork::register(ForkStage::Allocator, &FORK_HOOK);
    // Set the default now, because `free` compares with it.
    cache_limit();
    let (limit, (_, capacity)) = (memory_limit(), system::capacity());
    let error = || AllocError { bytes, active: active(), limit };
    if size > capacity || active().saturating_add(size) > capacity {
        return Err(error());
    }
    while HELD.0.load(Ordering::Relaxed).saturating_add(size) > limit && evict() {}
    let mut block = system::take(size);
    while block.is_none() && evict() {
        block = system::take(size);
    }
    let block = block.ok_or_else(error)?;
    HELD.0.fetch_add(size, Ordering::Relaxed);
    Ok(block)
}

/// Frees a block.
///
/// # Safety
/// `block` came from [`alloc`] with the same `bytes`, has not been freed since, and is no longer in
/// use.
#[inline]
pub unsafe fn free(block: NonNull<u8>, bytes: usize) {
    let size = size_class(bytes);
    // Do this first: another thread may get the block at once, and the block must not count twice.
    let active = ACTIVE.0.fetch_sub(size, Ordering::Relaxed) - size;
    if size >= HUGE {
        CENTRE.0.lock().give_large(block, size);
    } else {
        let class = class_index(size);
        if class >= SHARD_CLASSES {
            // SAFETY: the caller promises that the block is free, and it has this class.
            unsafe { CENTRE.0.lock().lists[class].push(block) };
        } else {
            let mut shard = shard().lock();
            let list = &mut shard.lists[class];
            // SAFETY: as above.
            unsafe { list.push(block) };
            if list.len > shard_bound(size) {
                let half = list.split(shard_bound(size) / 2);
                drop(shard);
                CENTRE.0.lock().lists[class].append(half);
            }
        }
    }
    let limit = CACHE_LIMIT.load(Ordering::Relaxed);
    if HELD.0.load(Ordering::Relaxed).saturating_sub(active) > limit {
        trim(limit);
    }
}

/// Returns cached blocks to the system until at most `limit` bytes are cached.
#[cold]
fn trim(limit: usize) {
    while cached() > limit && evict() {}
}

/// Returns one cached block to the system. Returns false if there is none.
fn evict() -> bool {
    let mut victim = CENTRE.0.lock().victim();
    for Padded(shard) in &POOLS {
        if victim.is_some() {
            break;
        }
        victim = victim_of(&mut shard.lock().lists);
    }
    let Some((block, size)) = victim else { return false };
    HELD.0.fetch_sub(size, Ordering::Relaxed);
    // SAFETY: the block was taken from a free list, so it is not in use. Every block is kept under
    // the size with which it was taken from the system.
    unsafe { system::give(block, size) };
    true
}

/// Returns the bytes in use. Each live block counts with the size class of its request.
pub fn active() -> usize {
    ACTIVE.0.load(Ordering::Relaxed)
}

/// Returns the most bytes in use since the start or the last [`reset_peak`].
pub fn peak() -> usize {
    PEAK.load(Ordering::Relaxed)
}

/// Sets [`peak`] to 0. The next request raises it to the bytes then in use.
pub fn reset_peak() {
    PEAK.store(0, Ordering::Relaxed);
}

/// Returns the bytes of freed blocks that are kept for later requests. The number is exact while no
/// other thread allocates or frees.
pub fn cached() -> usize {
    let live = ACTIVE.0.load(Ordering::Relaxed).saturating_add(SLACK.load(Ordering::Relaxed));
    HELD.0.load(Ordering::Relaxed).saturating_sub(live)
}

/// Returns all kept blocks to the system.
pub fn clear_cache() {
    while evict() {}
}

/// Returns the memory limit in bytes; see [`set_memory_limit`]. The default is four fifths of the
/// memory of the machine or its control group.
pub fn memory_limit() -> usize {
    settled(&MEMORY_LIMIT, || {
        let (physical, _) = system::capacity();
        physical - physical.div_ceil(5)
    })
}

/// Sets the memory limit in bytes and returns the former limit. The limit is a guideline: above it,
/// freed blocks are no longer kept, but requests fail only when the system has no more memory.
pub fn set_memory_limit(bytes: usize) -> usize {
    let before = memory_limit();
    MEMORY_LIMIT.store(bytes.min(DEFAULT - 1), Ordering::Relaxed);
    before
}

/// Returns the cache limit in bytes; see [`set_cache_limit`]. The default is a quarter of the
/// memory of the machine or its control group.
pub fn cache_limit() -> usize {
    settled(&CACHE_LIMIT, || system::capacity().0 / 4)
}

/// Sets the most bytes of freed blocks that are kept, and returns the former limit. Blocks beyond
/// the limit are returned to the system. With a limit of 0 none are kept.
pub fn set_cache_limit(bytes: usize) -> usize {
    let before = cache_limit();
    let limit = bytes.min(DEFAULT - 1);
    CACHE_LIMIT.store(limit, Ordering::Relaxed);
    trim(limit);
    before
}

fn settled(limit: &AtomicUsize, default: impl FnOnce() -> usize) -> usize {
    match limit.load(Ordering::Relaxed) {
        DEFAULT => {
            match limit.compare_exchange(DEFAULT, default(), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => limit.load(Ordering::Relaxed),
                Err(set) => set,
            }
        }
        set => set,
    }
}

/// With `ULTRAMARINE_POISON=1`, fills new blocks with bytes 0xFF (NaN in each floating-point
/// format, -1 in signed integers), so that an output that was not written is noticed.
#[cfg(debug_assertions)]
fn poison(block: NonNull<u8>, size: usize) {
    use std::sync::atomic::AtomicU8;
    static MODE: AtomicU8 = AtomicU8::new(0);
    let mut mode = MODE.load(Ordering::Relaxed);
    if mode == 0 {
        mode = if std::env::var_os("ULTRAMARINE_POISON").is_some_and(|value| value == "1") {
            2
        } else {
            1
        };
        MODE.store(mode, Ordering::Relaxed);
    }
    if mode == 2 {
        // SAFETY: the block has at least the size of its class, and the caller does not have it
        // yet.
        unsafe { block.as_ptr().write_bytes(0xff, size) };
    }
}

/// All locks are held during a fork, so that the child finds every list consistent. The hook is
/// registered before the first block exists.
static FORK_HOOK: Hook = Hook {
    prepare: || {
        for Padded(shard) in &POOLS {
            shard.acquire();
        }
        CENTRE.0.acquire();
    },
    parent: release_all,
    child: release_all,
};

fn release_all() {
    // SAFETY: the hook's `prepare` acquired the locks on this thread, or, in the child, on the
    // thread of which this is the copy.
    unsafe {
        CENTRE.0.release();
        for Padded(shard) in &POOLS {
            shard.release();
        }
    }
}
