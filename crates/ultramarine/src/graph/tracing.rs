//! Traces that have not ended, and the arrays that belong to them.
//!
//! A trace is one call of a function by a transform. The function's arguments belong to the trace.
//! Every array that is made from such an array before the trace ends belongs to it too, on all
//! threads. Arrays of a trace keep their operands when they are evaluated, and the end of the trace
//! releases these. Arrays outside all traces release their operands at once, even if other threads
//! are tracing.
//!
//! An array knows a single trace: the longest-lived trace that it depends on. Of two traces of one
//! thread, this is the outer one. If arrays from traces of two threads are combined, the older
//! trace is kept until the younger one is over, too.

use crate::graph::node::{Inputs, Node};
use crate::sync::lock;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// The state of a trace, which may be over. Nodes of the trace refer to it.
pub(crate) struct TraceState {
    /// Number of the trace. Traces that began earlier have lower numbers.
    serial: u64,
    /// The trace of the same thread that surrounds it.
    outer: Option<Arc<TraceState>>,
    /// Number of holders: its own [`Tracing`], and younger traces that it has to outlast. If 0, the
    /// trace is over.
    holders: AtomicU32,
    kept: Mutex<Kept>,
}

/// Nodes and traces that the end of a trace releases.
#[derive(Default)]
struct Kept {
    over: bool,
    /// Evaluated nodes whose operands the trace keeps.
    nodes: Vec<Weak<Node>>,
    /// Number of nodes at which the list is cleared of nodes that no longer exist.
    full: usize,
    /// Older traces of other threads, which have to last until this trace is over.
    older: Vec<Arc<TraceState>>,
}

/// Number of traces that have not ended, on all threads.
static TRACES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The innermost trace that this thread has begun.
    static CURRENT: RefCell<Option<Arc<TraceState>>> = const { RefCell::new(None) };
}

impl TraceState {
    #[inline]
    pub fn is_live(&self) -> bool {
        self.holders.load(Ordering::Acquire) > 0
    }

    /// Adds a holder. Returns false if the trace is over.
    fn hold(&self) -> bool {
        let more = |n: u32| if n == 0 { None } else { n.checked_add(1) };
        self.holders.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_ok()
    }

    /// Removes a holder. If it was the last one, the trace is over.
    fn let_go(self: &Arc<Self>) {
        let mut ended = vec![self.clone()];
        while let Some(trace) = ended.pop() {
            if trace.holders.fetch_sub(1, Ordering::AcqRel) != 1 {
                continue;
            }
            let Kept { nodes, older, .. } =
                std::mem::replace(&mut *lock(&trace.kept), Kept { over: true, ..Kept::default() });
            // Drop without the lock, because the operands may be foreign memory.
            nodes.iter().filter_map(Weak::upgrade).for_each(|node| drop(node.release_inputs()));
            ended.extend(older);
            ended.extend(trace.outer.clone());
        }
    }

    /// Makes the end of the trace release an evaluated node's operands. Returns false if the trace
    /// is over already.
    pub fn keep(&self, node: &Arc<Node>) -> bool {
        let mut kept = lock(&self.kept);
        if kept.over {
            return false;
        }
        if kept.nodes.len() >= kept.full {
            kept.nodes.retain(|n| n.strong_count() > 0);
            kept.full = 16.max(2 * kept.nodes.len());
        }
        kept.nodes.push(Arc::downgrade(node));
        true
    }

    /// Returns the longer-lived of two live traces. If necessary, the older trace is made to
    /// outlast the younger one.
    fn longest(a: &Arc<TraceState>, b: &Arc<TraceState>) -> Arc<TraceState> {
        let (old, young) = if a.serial <= b.serial { (a, b) } else { (b, a) };
        let mut at = Some(young);
        while let Some(trace) = at {
            if trace.serial == old.serial {
                return old.clone();
            }
            at = trace.outer.as_ref();
        }
        let mut kept = lock(&young.kept);
        // If one of them is over by now, only the other one matters.
        if kept.over {
            return old.clone();
        }
        if !kept.older.iter().any(|t| t.serial == old.serial) {
            if !old.hold() {
                return young.clone();
            }
            kept.older.push(old.clone());
        }
        old.clone()
    }
}

/// The trace that a node with these operands belongs to.
#[inline]
pub(super) fn trace_of(inputs: &Inputs) -> Option<Arc<TraceState>> {
    // Check the counter first, because making nodes is very frequent.
    if TRACES.load(Ordering::Relaxed) == 0 { None } else { longest_of(inputs) }
}

#[inline(never)]
fn longest_of(inputs: &Inputs) -> Option<Arc<TraceState>> {
    let mut found: Option<Arc<TraceState>> = None;
    for trace in inputs.iter().filter_map(|i| i.live_trace()) {
        found = match found {
            Some(before) if !Arc::ptr_eq(&before, trace) => {
                Some(TraceState::longest(&before, trace))
            }
            Some(before) => Some(before),
            None => Some(trace.clone()),
        };
    }
    found
}

/// A trace that has not ended: the function runs, and transforms walk its graph. Dropping it ends
/// the trace.
pub(crate) struct Tracing(Arc<TraceState>);

impl Tracing {
    /// Begins a trace inside the calling thread's current trace.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        TRACES.fetch_add(1, Ordering::Relaxed);
        // A thread that is exiting has no current trace.
        let current = CURRENT.try_with(|current| current.borrow().clone());
        let outer = current.ok().flatten().filter(|trace| trace.hold());
        let trace = Arc::new(TraceState {
            serial: NEXT.fetch_add(1, Ordering::Relaxed),
            outer,
            holders: AtomicU32::new(1),
            kept: Mutex::default(),
        });
        let _ = CURRENT.try_with(|current| current.replace(Some(trace.clone())));
        Tracing(trace)
    }

    /// Returns the trace, for nodes without operands that begin in it.
    pub fn state(&self) -> Arc<TraceState> {
        self.0.clone()
    }

    /// Returns true while any thread traces. Rarely useful, because it says nothing about a
    /// particular array.
    pub fn active() -> bool {
        TRACES.load(Ordering::Relaxed) > 0
    }

    /// The trace that an argument with these operands belongs to.
    pub(super) fn joined(&self, inputs: &Inputs) -> Arc<TraceState> {
        match trace_of(inputs) {
            Some(other) => TraceState::longest(&self.0, &other),
            None => self.0.clone(),
        }
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        // Coroutines may end traces in another order than they began them.
        let innermost = |now: &Option<Arc<TraceState>>| {
            now.as_ref().is_some_and(|trace| Arc::ptr_eq(trace, &self.0))
        };
        let _ = CURRENT.try_with(|current| {
            if innermost(&current.borrow()) {
                current.replace(self.0.outer.clone());
            }
        });
        self.0.let_go();
        TRACES.fetch_sub(1, Ordering::Relaxed);
    }
}
