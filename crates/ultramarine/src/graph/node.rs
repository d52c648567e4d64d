//! Nodes of the lazy graph.
//!
//! The states of a value are lazy, claimed, and done (or poisoned). The evaluation that claimed a
//! node runs it, and all other threads wait. References between nodes and the handles that users
//! hold are counted separately. A node with handles is an output of its fused group, but a mere
//! intermediate need not be written to memory.

pub use crate::backend::value::Value;
use crate::{
    backend::buffer::BufferRef,
    device::Device,
    dtype::Dtype,
    error::Error,
    graph::host_copies,
    graph::op::Op,
    graph::rules::{Outside, Rules},
    graph::tracing::{TraceState, Tracing, trace_of},
    once::SetOnce,
    placement::Place,
    scalar::Scalar,
    shape::{self, Shape, Strides},
    sync::lock,
};
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use ultramarine_runtime::claim::Claim;

/// The operands of a node.
pub(crate) type Inputs = SmallVec<[Arc<Node>; 2]>;

pub(crate) struct Node {
    /// Handles (`Array`s) to this node; references from other nodes do not count.
    pub handles: AtomicU32,
    claim: Claim,
    pub dtype: Dtype,
    /// True if the node is part of `trace`.
    traced: AtomicBool,
    /// True if the node has a copy in [`host_copies`].
    copied: AtomicBool,
    /// For the evaluation that claimed the node: its place on the tape.
    pub slot: AtomicU32,
    /// For a node of a trace: the number of [`Inside`] calls that had begun when the node was made.
    made_behind: AtomicU32,
    /// For traversals: the mark of the last traversal that visited the node.
    pub mark: AtomicU64,
    pub place: Place,
    pub shape: Shape,
    pub op: Op,
    inputs: Mutex<Inputs>,
    value: SetOnce<Result<Value, Arc<Error>>>,
    /// The trace that the node was made in. The trace may be over.
    trace: Option<Arc<TraceState>>,
}

/// Returns a number that no node is marked with.
pub(crate) fn next_mark() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Number of [`Inside`] calls that have begun, on all threads. The count may wrap around.
static INSIDES: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Number of nested calls of this thread whose graph belongs to one operation.
    static DEPTH: Cell<u8> = const { Cell::new(0) };
}

/// While it lives, traced nodes belong to the graph of one operation, such as a custom function's,
/// if the operation's results depend on them. This holds for nodes of all threads, because the
/// function may use several.
pub(crate) struct Inside {
    /// The number of the call.
    number: u32,
}

impl Inside {
    /// `None` if such calls are nested more than 250 times.
    pub fn new() -> Option<Inside> {
        let depth = DEPTH.get();
        (depth < 250).then(|| {
            DEPTH.set(depth + 1);
            Inside { number: INSIDES.fetch_add(1, Ordering::AcqRel).wrapping_add(1) }
        })
    }

    /// Returns true if a node is part of a trace and was made before the call began.
    pub fn is_after(&self, node: &Node) -> bool {
        let made = node.made_behind.load(Ordering::Relaxed);
        (made.wrapping_sub(self.number) as i32) < 0 && node.is_traced()
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

impl Node {
    pub fn new(op: Op, inputs: Inputs, shape: Shape, dtype: Dtype, place: Place) -> Arc<Node> {
        let trace = trace_of(&inputs);
        Node::of_trace(trace, op, inputs, shape, dtype, place)
    }

    /// Makes a node that a transform starts from: an argument of the traced function.
    pub fn argument(
        tracing: &Tracing,
        op: Op,
        inputs: Inputs,
        shape: Shape,
        dtype: Dtype,
        place: Place,
    ) -> Arc<Node> {
        Node::of_trace(Some(tracing.joined(&inputs)), op, inputs, shape, dtype, place)
    }

    /// Makes a node in a trace. The trace may be held by another owner.
    #[inline]
    pub fn of_trace(
        trace: Option<Arc<TraceState>>,
        op: Op,
        inputs: Inputs,
        shape: Shape,
        dtype: Dtype,
        place: Place,
    ) -> Arc<Node> {
        Arc::new(Node {
            handles: AtomicU32::new(0),
            claim: Claim::new(),
            dtype,
            traced: AtomicBool::new(trace.is_some()),
            copied: AtomicBool::new(false),
            slot: AtomicU32::new(0),
            made_behind: AtomicU32::new(match &trace {
                Some(_) => INSIDES.load(Ordering::Acquire),
                None => 0,
            }),
            mark: AtomicU64::new(0),
            place,
            shape,
            op,
            inputs: Mutex::new(inputs),
            value: SetOnce::new(),
            trace,
        })
    }

    /// Makes a node that has its value or its error, and one handle.
    #[inline]
    pub fn with_outcome(
        outcome: Result<Value, Arc<Error>>,
        shape: Shape,
        dtype: Dtype,
        place: Place,
    ) -> Arc<Node> {
        Arc::new(Node {
            handles: AtomicU32::new(1),
            claim: Claim::new(),
            dtype,
            traced: AtomicBool::new(false),
            copied: AtomicBool::new(false),
            slot: AtomicU32::new(0),
            made_behind: AtomicU32::new(0),
            mark: AtomicU64::new(0),
            place,
            shape,
            op: Op::GIVEN,
            inputs: Mutex::new(Inputs::new()),
            value: SetOnce::full(outcome),
            trace: None,
        })
    }

    /// Makes a node with a value and one handle. `lay` fills in the sizes and strides, which are
    /// empty before, in place: moving them after they were written would cost more than all other
    /// steps.
    #[inline]
    pub fn laid_out(
        (buffer, offset): (BufferRef, usize),
        dtype: Dtype,
        place: Place,
        lay: impl FnOnce(&mut Shape, &mut Strides),
    ) -> Arc<Node> {
        // A new field has to be written below, too. Without that, this pattern does not compile.
        let _complete = |node: &Node| {
            let Node {
                handles: _,
                claim: _,
                dtype: _,
                traced: _,
                copied: _,
                slot: _,
                made_behind: _,
                mark: _,
                place: _,
                shape: _,
                op: _,
                inputs: _,
                value: _,
                trace: _,
            } = node;
        };
        let node = Arc::<Node>::new_uninit();
        let at = Arc::as_ptr(&node).cast_mut().cast::<Node>();
        let mut strides = Strides::new();
        // SAFETY: the new node is not shared yet. Each field is written, and a panic in between
        // would only leak the node.
        unsafe {
            (&raw mut (*at).handles).write(AtomicU32::new(1));
            (&raw mut (*at).claim).write(Claim::new());
            (&raw mut (*at).dtype).write(dtype);
            (&raw mut (*at).traced).write(AtomicBool::new(false));
            (&raw mut (*at).copied).write(AtomicBool::new(false));
            (&raw mut (*at).slot).write(AtomicU32::new(0));
            (&raw mut (*at).made_behind).write(AtomicU32::new(0));
            (&raw mut (*at).mark).write(AtomicU64::new(0));
            (&raw mut (*at).place).write(place);
            (&raw mut (*at).op).write(Op::GIVEN);
            (&raw mut (*at).inputs).write(Mutex::new(Inputs::new()));
            (&raw mut (*at).trace).write(None);
            (&raw mut (*at).shape).write(Shape::new());
            lay(&mut (*at).shape, &mut strides);
            (&raw mut (*at).value).write(SetOnce::full(Ok(Value { buffer, offset, strides })));
            node.assume_init()
        }
    }

    /// Returns the accelerator that the node is at home on; see [`super::placement`].
    #[inline]
    pub fn home(&self) -> Option<Device> {
        self.place.home()
    }

    pub fn size(&self) -> usize {
        shape::size(&self.shape)
    }

    pub fn bytes(&self) -> usize {
        self.dtype.bytes_of(self.size())
    }

    /// Returns the value or the error; `None` until the evaluation has ended.
    #[inline]
    pub fn outcome(&self) -> Option<&Result<Value, Arc<Error>>> {
        self.value.get()
    }

    #[inline]
    pub fn value(&self) -> Option<&Value> {
        self.value.get().and_then(|v| v.as_ref().ok())
    }

    /// Returns the value of each element, if the node is a constant. A node whose memory was
    /// exported is no constant any more, because foreign code may have written to the memory.
    pub fn constant(&self) -> Option<Scalar> {
        let value = self.op.constant()?;
        (!self.value().is_some_and(|v| v.buffer.was_exported())).then_some(value)
    }

    pub fn is_done(&self) -> bool {
        self.value.get().is_some()
    }

    /// Returns the node's trace, if it has not ended. Such a node keeps its operands when it is
    /// evaluated.
    #[inline]
    pub fn live_trace(&self) -> Option<&Arc<TraceState>> {
        if !self.traced.load(Ordering::Relaxed) {
            return None;
        }
        self.trace.as_ref().filter(|trace| trace.is_live())
    }

    /// Returns true if the node is part of a trace that has not ended.
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.live_trace().is_some()
    }

    /// Notes that the node has a copy in [`host_copies`].
    pub(super) fn note_host_copy(&self) {
        self.copied.store(true, Ordering::Relaxed);
    }

    /// Takes the node out of its trace, so that its evaluation drops the operands.
    pub fn leave_trace(&self) {
        self.traced.store(false, Ordering::Relaxed);
    }

    /// Returns the operands; none if they were released.
    pub fn inputs(&self) -> Inputs {
        lock(&self.inputs).clone()
    }

    /// Calls `f` with the operands, without cloning them. `f` must not lock other nodes' operands
    /// for long. Nested calls go down the graph only, so they cannot deadlock.
    pub fn with_inputs<T>(&self, f: impl FnOnce(&Inputs) -> T) -> T {
        f(&lock(&self.inputs))
    }

    /// Returns the operands. Releases them unless they are needed after the evaluation.
    pub fn take_inputs(&self) -> Inputs {
        if self.is_traced() { self.inputs() } else { self.release_inputs() }
    }

    /// Releases the operands and returns them. The node loses them for good, so call this only for
    /// nodes that are done, or about to be.
    pub fn release_inputs(&self) -> Inputs {
        std::mem::take(&mut *lock(&self.inputs))
    }

    /// Claims a lazy node for the calling thread. Returns false if the node is done, or another
    /// thread has claimed it.
    #[inline]
    pub fn claim(&self) -> bool {
        self.claim.take()
    }

    pub fn is_claimed(&self) -> bool {
        self.claim.is_taken()
    }

    /// Gives up a claim. The node was not needed, and is lazy again.
    pub fn release_claim(&self) {
        self.claim.release();
    }

    /// Ends a claimed evaluation with its outcome. A trace that has not ended keeps the operands
    /// until its end.
    pub fn finish(self: &Arc<Node>, outcome: Result<Value, Arc<Error>>) {
        if self.trace.is_some() && !self.live_trace().is_some_and(|trace| trace.keep(self)) {
            drop(self.release_inputs());
        }
        self.claim.finish(&self.value, outcome);
    }

    /// Gives the node its operands back, which an evaluation took before it was given up.
    pub fn restore(&self, operands: Inputs) {
        let mut inputs = lock(&self.inputs);
        if inputs.is_empty() {
            *inputs = operands;
        }
    }

    /// Returns true if the node is done, or lazy again. Otherwise the end of its evaluation wakes
    /// [`ultramarine_runtime::claim::sleep_until`].
    pub fn is_over(&self) -> bool {
        self.claim.is_over(&self.value)
    }

    /// Sleeps until a claimed node is done, or lazy again. Returns false if `interrupted` asked the
    /// thread to stop.
    pub fn wait(&self, interrupted: impl Fn() -> bool) -> bool {
        if self.op.is_outside() {
            self.op.rules().and_then(Rules::outside).into_iter().for_each(Outside::hurry);
        }
        self.claim.wait(&self.value, interrupted)
    }
}

thread_local! {
    /// Nodes to drop, while this thread is dropping a node.
    static DROPPING: Cell<Option<Vec<Inputs>>> = const { Cell::new(None) };
}

/// Makes this thread use the list above for dropping deep graphs. The list then outlives all
/// thread-locals that are initialised after this call, because thread-locals are destroyed in the
/// reverse order.
pub(crate) fn prepare_drops() {
    let _ = DROPPING.try_with(|d| d.set(d.take()));
}

/// Dropping a long chain must not recurse. Operands whose last reference is dropped go to a list,
/// which the outermost drop processes.
impl Drop for Node {
    #[inline]
    fn drop(&mut self) {
        if *self.copied.get_mut() {
            host_copies::forget(self);
        }
        let inputs = self.inputs.get_mut().unwrap_or_else(PoisonError::into_inner);
        if !inputs.is_empty() {
            drop_operands(std::mem::take(inputs));
        }
    }
}

fn drop_operands(inputs: Inputs) {
    let mut inputs = Some(inputs);
    let nested = DROPPING.try_with(|d| match d.take() {
        Some(mut list) => {
            list.extend(inputs.take());
            d.set(Some(list));
            true
        }
        None => {
            d.set(Some(Vec::new()));
            false
        }
    });
    if nested.unwrap_or(false) {
        return;
    }
    let mut next = inputs;
    while let Some(inputs) = next {
        drop(inputs);
        next = DROPPING
            .try_with(|d| {
                let mut list = d.take()?;
                let last = list.pop();
                d.set(last.as_ref().map(|_| list));
                last
            })
            .ok()
            .flatten();
    }
}
