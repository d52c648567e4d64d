//! Traces that are under way, and which arrays belong to one.
//!
//! A trace is one call of a function by a transform. The function's arguments belong to it, and so does every array that is
//! made of one of these before the trace is over, on whatever thread. Arrays of a trace keep their operands when they are
//! evaluated; the trace's end lets these go. Arrays of nobody's trace let go at once, whatever other threads trace.
//!
//! An array knows one trace, the longest-lived of those it depends on. Of two traces of one thread that is the outer one. Where arrays
//! of two threads' traces meet, the older trace is made to last until the younger is over, too.

use crate::graph::node::{Inputs, Node};
use crate::sync::lock;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// A trace, under way or over. Nodes of the trace refer to it.
pub(crate) struct TraceState {
    /// Traces that began earlier have lower ones.
    serial: u64,
    /// The trace inside of which it began, on the same thread.
    outer: Option<Arc<TraceState>>,
    /// Its own [`Tracing`], and younger traces that it has to outlast. None: it is over.
    holders: AtomicU32,
    kept: Mutex<Kept>,
}

/// Nodes and traces that the end of a trace releases.
#[derive(Default)]
struct Kept {
    over: bool,
    /// Evaluated nodes with their operands.
    nodes: Vec<Weak<Node>>,
    /// Number of nodes at which those that are gone are looked for.
    full: usize,
    /// Older traces of other threads, which last until this one is over.
    older: Vec<Arc<TraceState>>,
}

/// Traces under way, in any thread.
static TRACES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// The innermost trace that this thread began.
    static CURRENT: RefCell<Option<Arc<TraceState>>> = const { RefCell::new(None) };
}

impl TraceState {
    #[inline]
    pub fn is_live(&self) -> bool {
        self.holders.load(Ordering::Acquire) > 0
    }

    /// Counts a holder in, unless the trace is over.
    fn hold(&self) -> bool {
        let more = |n: u32| if n == 0 { None } else { n.checked_add(1) };
        self.holders.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).is_ok()
    }

    /// Counts a holder out. After the last one the trace is over.
    fn let_go(self: &Arc<Self>) {
        let mut ended = vec![self.clone()];
        while let Some(trace) = ended.pop() {
            if trace.holders.fetch_sub(1, Ordering::AcqRel) != 1 {
                continue;
            }
            let Kept { nodes, older, .. } =
                std::mem::replace(&mut *lock(&trace.kept), Kept { over: true, ..Kept::default() });
            // Without the lock: what is dropped may be foreign memory.
            nodes.iter().filter_map(Weak::upgrade).for_each(|node| drop(node.release_inputs()));
            ended.extend(older);
            ended.extend(trace.outer.clone());
        }
    }

    /// Has the end of the trace let go of an evaluated node's operands. False if it is over already.
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

    /// The longer-lived of two live traces, which is made so if need be.
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
        // Where one of them is over by now, the other one is all there is.
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

/// The trace of a node with these operands.
#[inline]
pub(super) fn trace_of(inputs: &Inputs) -> Option<Arc<TraceState>> {
    // Nodes are made more often than anything else.
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

/// A trace while it is under way: the function runs, and transforms walk its graph. Dropping it
/// ends the trace.
pub(crate) struct Tracing(Arc<TraceState>);

impl Tracing {
    /// Begins a trace, inside of those that the calling thread is in.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        TRACES.fetch_add(1, Ordering::Relaxed);
        // A thread that is ending has no current trace.
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

    /// Returns the trace, for nodes that begin in it without operands.
    pub fn state(&self) -> Arc<TraceState> {
        self.0.clone()
    }

    /// Returns true while any thread traces. It says nothing of an array, so few things may ask it.
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
        // Coroutines may end traces in another order than they began.
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
