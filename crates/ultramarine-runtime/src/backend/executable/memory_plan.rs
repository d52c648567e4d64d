//! A static memory plan: the offset of each temporary of an executable in one arena.
//!
//! Temporaries that live at different times may share bytes. Two greedy orders are tried, by size
//! and by time. Each puts a temporary into the smallest sufficient gap between the temporaries that
//! live at the same time (as in Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
//! Inference", 2020). The smaller arena is used.

/// Temporaries begin at multiples of this, like the library's own buffers.
const ALIGNMENT: usize = 256;

/// The size of a temporary, and the range of commands that use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lifetime {
    pub bytes: usize,
    /// The first command that uses it.
    pub first: usize,
    /// The last command that uses it.
    pub last: usize,
}

impl Lifetime {
    fn meets(&self, other: &Lifetime) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Returns the bytes including the padding to the next aligned offset.
    fn room(&self) -> usize {
        self.bytes.next_multiple_of(ALIGNMENT)
    }
}

/// Returns the offset of each temporary in bytes, and the arena's size.
pub(super) fn plan(lifetimes: &[Lifetime]) -> (Vec<usize>, usize) {
    let mut by_size: Vec<usize> = (0..lifetimes.len()).collect();
    let mut by_time = by_size.clone();
    by_size.sort_by_key(|i| std::cmp::Reverse(lifetimes[*i].bytes));
    by_time.sort_by_key(|i| (lifetimes[*i].first, std::cmp::Reverse(lifetimes[*i].bytes)));
    let [a, b] = [by_size, by_time].map(|order| placed(lifetimes, &order));
    if a.1 <= b.1 { a } else { b }
}

fn placed(lifetimes: &[Lifetime], order: &[usize]) -> (Vec<usize>, usize) {
    let mut offsets = vec![0usize; lifetimes.len()];
    let mut size = 0usize;
    // The temporaries that have an offset, in the order of offsets.
    let mut done: Vec<usize> = Vec::with_capacity(order.len());
    for i in order.iter().copied() {
        let own = &lifetimes[i];
        let (mut end, mut best) = (0usize, None);
        for other in done.iter().copied().filter(|j| lifetimes[*j].meets(own)) {
            let gap = offsets[other].saturating_sub(end);
            if gap >= own.room() && best.is_none_or(|(smallest, _)| gap < smallest) {
                best = Some((gap, end));
            }
            end = end.max(offsets[other] + lifetimes[other].room());
        }
        offsets[i] = best.map_or(end, |(_, start)| start);
        size = size.max(offsets[i] + own.room());
        let at = done.partition_point(|j| offsets[*j] <= offsets[i]);
        done.insert(at, i);
    }
    (offsets, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a deterministic sequence of pseudorandom numbers.
    fn numbers(seed: u64) -> impl FnMut(usize) -> usize {
        let mut state = seed;
        move |below| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        }
    }

    /// Returns the most bytes that are in use at one command.
    fn peak(lifetimes: &[Lifetime]) -> usize {
        let at = |command| {
            let live = lifetimes.iter().filter(|l| (l.first..=l.last).contains(&command));
            live.map(Lifetime::room).sum()
        };
        (0..100).map(at).max().unwrap_or(0)
    }

    #[test]
    fn what_lives_at_one_time_does_not_overlap() {
        for seed in 0..200 {
            let mut number = numbers(seed);
            let lifetimes: Vec<Lifetime> = (0..1 + number(60))
                .map(|_| {
                    let first = number(90);
                    Lifetime { bytes: number(5000), first, last: first + number(10) }
                })
                .collect();
            let (offsets, size) = plan(&lifetimes);
            for (i, a) in lifetimes.iter().enumerate() {
                assert!(offsets[i].is_multiple_of(ALIGNMENT) && offsets[i] + a.bytes <= size);
                for (j, b) in lifetimes.iter().enumerate().take(i).filter(|(_, b)| a.meets(b)) {
                    let apart =
                        offsets[i] + a.bytes <= offsets[j] || offsets[j] + b.bytes <= offsets[i];
                    assert!(apart, "{i} and {j} of {lifetimes:?}: {offsets:?}");
                }
            }
            assert!(peak(&lifetimes) <= size && size <= 2 * peak(&lifetimes), "{lifetimes:?}");
        }
    }

    #[test]
    fn a_chain_takes_two_places() {
        let chain: Vec<Lifetime> =
            (0..20).map(|i| Lifetime { bytes: 1000, first: i, last: i + 1 }).collect();
        assert_eq!(plan(&chain).1, 2 * 1024);
        assert_eq!(plan(&[]), (Vec::new(), 0));
    }
}
