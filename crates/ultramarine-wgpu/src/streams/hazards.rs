//! Memory that commands have read and written since the last barrier. With it, barriers are
//! recorded only where a command uses memory that an earlier command has not finished with.

/// A part of a buffer, and how a command uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub block: u64,
    pub start: u64,
    pub end: u64,
    pub written: bool,
}

impl Access {
    fn conflicts(&self, other: &Self) -> bool {
        self.block == other.block
            && (self.written || other.written)
            && self.start < other.end
            && other.start < self.end
    }
}

/// The accesses since the last barrier.
#[derive(Default)]
pub(super) struct Hazards {
    since: Vec<Access>,
}

/// Limit on the recorded accesses. With more of them, a barrier is cheaper than the search.
const MOST: usize = 64;

impl Hazards {
    /// Adds a command's accesses. Returns true if the command needs a barrier before it.
    pub fn add(&mut self, accesses: &[Access]) -> bool {
        let conflict = |new: &Access| self.since.iter().any(|old| old.conflicts(new));
        let barrier = self.since.len() + accesses.len() > MOST && !self.since.is_empty()
            || accesses.iter().any(conflict);
        if barrier {
            self.since.clear();
        }
        for access in accesses {
            // If several commands read the same memory, record it once.
            if !self.since.contains(access) {
                self.since.push(*access);
            }
        }
        barrier
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barriers_stand_where_a_write_meets_another_access() {
        let access = |block, start, end, written| Access { block, start, end, written };
        let mut hazards = Hazards::default();
        let (read, write) = (access(1, 0, 8, false), access(2, 0, 8, true));
        assert!(!hazards.add(&[read, write]));
        assert!(!hazards.add(&[read, access(3, 0, 8, true)]), "two reads");
        assert!(!hazards.add(&[access(2, 8, 16, true)]), "another part");
        assert!(hazards.add(&[access(2, 7, 9, false)]), "a read behind a write");
        assert!(!hazards.add(&[access(3, 0, 8, true)]), "before the barrier");
        assert!(hazards.add(&[access(2, 0, 8, true)]), "a write behind a read");
        assert!(hazards.add(&[access(2, 0, 8, true)]), "a write behind a write");
        let many: Vec<_> = (0..MOST as u64 + 9).map(|block| access(block, 0, 1, false)).collect();
        assert!(hazards.add(&many));
        // Memory that many commands read is stored once.
        let mut hazards = Hazards::default();
        let reads = [access(5, 0, 8, false); 3];
        for block in 10..70 {
            let all = [&reads[..], &[access(block, 0, 8, true)]].concat();
            assert!(!hazards.add(&all), "{block}");
        }
    }
}
