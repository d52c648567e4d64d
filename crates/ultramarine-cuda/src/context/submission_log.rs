//! The submission log: the operations that streams were given most recently. A fault is reported by a
//! later call, and the log attributes it to operations.

use crate::context::lock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Limit on the names in a stream's log.
const KEPT: usize = 512;
/// Maximum number of names in an error, after the first.
const NAMED: usize = 4;

/// The names of the operations that were submitted to one stream last. Faults of kernels are
/// reported by later calls, so errors list the operations that had not completed.
#[derive(Default)]
pub struct SubmissionLog {
    /// The last [`KEPT`] names, of which number `n` is at index `n % KEPT`; and the number of all
    /// names so far.
    names: Mutex<(Vec<Arc<str>>, u64)>,
    /// The number of operations known to have completed.
    done: AtomicU64,
}

impl SubmissionLog {
    /// Records an operation.
    #[inline]
    pub fn push(&self, name: &Arc<str>) {
        let mut names = lock(&self.names);
        let (ring, count) = &mut *names;
        let place = *count as usize % KEPT;
        *count += 1;
        match ring.get_mut(place) {
            Some(slot) if Arc::ptr_eq(slot, name) => {}
            Some(slot) => *slot = name.clone(),
            None => ring.push(name.clone()),
        }
    }

    /// The number of operations that were submitted.
    pub fn count(&self) -> u64 {
        lock(&self.names).1
    }

    /// Records that the first `count` operations have completed.
    pub fn finished(&self, count: u64) {
        self.done.fetch_max(count, Ordering::Relaxed);
    }

    /// The operations that are not known to have completed, the oldest first, and how many of the
    /// oldest are no longer in the log.
    fn unfinished(&self) -> (Vec<Arc<str>>, u64) {
        let names = lock(&self.names);
        let (ring, count) = &*names;
        let done = self.done.load(Ordering::Relaxed).min(*count);
        let first = done.max(count.saturating_sub(KEPT as u64));
        let named = (first..*count).filter_map(|n| ring.get(n as usize % KEPT).cloned());
        (named.collect(), first - done)
    }
}

/// The operations that may have failed, as text: ", in softmax of float32 or one of the 3
/// operations after it (...)".
pub fn describe(logs: &[Arc<SubmissionLog>]) -> String {
    let mut said = Vec::new();
    for (names, forgotten) in logs.iter().map(|log| log.unfinished()) {
        let Some((first, rest)) = names.split_first() else { continue };
        if forgotten > 0 {
            said.push(format!("one of the last {} operations", forgotten + names.len() as u64));
            continue;
        }
        let mut others: Vec<&str> = Vec::new();
        for name in rest {
            if name != first && !others.contains(&&**name) {
                others.push(name);
            }
        }
        let more = if others.len() > NAMED { ", ..." } else { "" };
        others.truncate(NAMED);
        let listed = match others.is_empty() {
            true => String::new(),
            false => format!(" ({}{more})", others.join(", ")),
        };
        said.push(match rest.len() {
            0 => first.to_string(),
            1 => format!("{first} or the operation after it{listed}"),
            n => format!("{first} or one of the {n} operations after it{listed}"),
        });
    }
    match said.is_empty() {
        true => String::new(),
        false => format!(", in {}", said.join("; or, on another stream, in ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Arc<str> {
        text.into()
    }

    #[test]
    fn the_first_that_is_not_done_is_named() {
        let log = Arc::new(SubmissionLog::default());
        assert_eq!(describe(std::slice::from_ref(&log)), "");
        for text in ["copy", "exp of float32", "add of float32", "add of float32"] {
            log.push(&name(text));
        }
        log.finished(1);
        assert_eq!(
            describe(std::slice::from_ref(&log)),
            ", in exp of float32 or one of the 2 operations after it (add of float32)"
        );
        log.finished(3);
        assert_eq!(describe(std::slice::from_ref(&log)), ", in add of float32");
        log.finished(4);
        assert_eq!(describe(std::slice::from_ref(&log)), "");
        log.finished(2);
        assert_eq!(describe(&[log]), "");
    }

    #[test]
    fn what_was_forgotten_is_counted() {
        let (log, other) = (Arc::new(SubmissionLog::default()), Arc::new(SubmissionLog::default()));
        (0..KEPT + 3).for_each(|i| log.push(&name(&i.to_string())));
        other.push(&name("sort"));
        let text = format!(", in one of the last {} operations", KEPT + 3);
        assert_eq!(describe(std::slice::from_ref(&log)), text);
        assert_eq!(
            describe(&[log.clone(), other]),
            format!("{text}; or, on another stream, in sort")
        );
        log.finished(3);
        assert!(describe(&[log]).starts_with(", in 3 or one of the 511 operations"));
    }
}
