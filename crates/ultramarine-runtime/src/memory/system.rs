//! Memory of the operating system: its size, and blocks of memory.

use std::alloc::{Layout, alloc as heap_alloc, dealloc as heap_free};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Alignment of every block in bytes, as DLPack requires.
pub(super) const ALIGN: usize = 256;
/// Blocks from this size on are separate mappings, aligned to this size, which is the size of a
/// huge page.
pub(super) const HUGE: usize = 2 << 20;

/// Assumed if the system does not report its memory: everything that can be addressed.
const UNKNOWN: usize = (u64::MAX >> 17) as usize;

/// Returns the most memory that this process can have, in bytes: (physical, physical + swap). It is
/// the machine's memory or the control group's limit. The system is asked only once.
pub(super) fn capacity() -> (usize, usize) {
    static PHYSICAL: AtomicUsize = AtomicUsize::new(0);
    static TOTAL: AtomicUsize = AtomicUsize::new(0);
    // Asking twice is harmless. A lock is not used, because another thread could hold it at a fork.
    if TOTAL.load(Ordering::Acquire) == 0 {
        let (physical, swap) = ask_capacity();
        PHYSICAL.store(physical, Ordering::Release);
        TOTAL.store(physical.saturating_add(swap).max(1), Ordering::Release);
    }
    (PHYSICAL.load(Ordering::Acquire), TOTAL.load(Ordering::Acquire))
}

#[cfg(target_os = "linux")]
fn ask_capacity() -> (usize, usize) {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| -> Option<usize> {
        let line = info.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()? << 10)
    };
    let machine = field("MemTotal:").unwrap_or(UNKNOWN);
    let physical = machine.min(group_limit().unwrap_or(usize::MAX));
    (physical, field("SwapTotal:").unwrap_or(0))
}

/// Returns the smallest limit of the control groups of this process (version 2, or version 1 at its
/// usual path).
#[cfg(target_os = "linux")]
fn group_limit() -> Option<usize> {
    let read =
        |path: std::path::PathBuf| std::fs::read_to_string(path).ok()?.trim().parse::<usize>().ok();
    let mut least: Option<usize> = None;
    let mut take = |found: Option<usize>| least = [least, found].into_iter().flatten().min();
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(kind), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (root, file) = match kind {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        for folder in std::path::Path::new(path.trim_start_matches('/')).ancestors() {
            take(read(std::path::Path::new(root).join(folder).join(file)));
        }
    }
    least
}

#[cfg(all(unix, not(target_os = "linux")))]
fn ask_capacity() -> (usize, usize) {
    // SAFETY: sysconf has no preconditions.
    let (pages, size) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let bytes = usize::try_from(pages)
        .ok()
        .zip(usize::try_from(size).ok())
        .and_then(|(n, size)| n.checked_mul(size));
    (bytes.filter(|&bytes| bytes > 0).unwrap_or(UNKNOWN), 0)
}

#[cfg(not(unix))]
fn ask_capacity() -> (usize, usize) {
    (UNKNOWN, 0)
}

/// Takes a new block of `size` bytes from the system. `size` is a class size, so it is a multiple
/// of 256 and not 0. Returns `None` if the system refuses.
pub(super) fn take(size: usize) -> Option<NonNull<u8>> {
    #[cfg(target_os = "linux")]
    if size >= HUGE {
        return map(size);
    }
    let layout = Layout::from_size_align(size, ALIGN).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the layout's size is not 0.
    NonNull::new(unsafe { heap_alloc(layout) })
}

/// Returns a block to the system.
///
/// # Safety
/// `take(size)` returned `block`, and the block is no longer in use.
pub(super) unsafe fn give(block: NonNull<u8>, size: usize) {
    #[cfg(target_os = "linux")]
    if size >= HUGE {
        // SAFETY: the caller promises that `map` mapped exactly this range.
        unsafe { libc::munmap(block.as_ptr().cast(), size) };
        return;
    }
    // SAFETY: `take` made the block with this layout, which was valid then.
    unsafe { heap_free(block.as_ptr(), Layout::from_size_align_unchecked(size, ALIGN)) };
}

/// Makes a mapping that begins at the boundary of a huge page. Only whole huge pages inside of it
/// become huge, so its tail wastes nothing.
#[cfg(target_os = "linux")]
fn map(size: usize) -> Option<NonNull<u8>> {
    let reserved = size.checked_add(HUGE)?;
    // SAFETY: an anonymous private mapping at no particular address.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            reserved,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return None;
    }
    let head = start.addr().wrapping_neg() % HUGE;
    let tail = HUGE - head;
    // SAFETY: the range that was just mapped consists of head, `size` bytes and tail, and head <
    // HUGE. Head and tail are unused, and are multiples of the page size, because mappings begin at
    // pages and classes of this size are multiples of 256 KiB. The advice does not change contents.
    unsafe {
        if head > 0 {
            libc::munmap(start, head);
        }
        let block = start.byte_add(head);
        libc::munmap(block.byte_add(size), tail);
        libc::madvise(block, size, libc::MADV_HUGEPAGE);
        NonNull::new(block.cast())
    }
}
