//! Nodes of the lazy graph.
//!
//! A value goes lazy -> claimed -> done (or poisoned). Only the evaluation that
//! claimed a node runs it; everybody else waits. References between nodes and the
//! handles that users hold are counted apart, because what a user still holds is
//! an output of its fused group while a mere intermediate need never be written.

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
    /// Part of `trace`.
    traced: AtomicBool,
    /// It has a copy in [`host_copies`].
    copied: AtomicBool,
    /// Scratch of the evaluation that claimed the node: its place on the tape.
    pub slot: AtomicU32,
    /// Of a node of a trace: the number of [`Inside`] calls that had begun when it was made.
    made_behind: AtomicU32,
    /// Scratch of traversals: the last one that saw the node.
    pub mark: AtomicU64,
    pub place: Place,
    pub shape: Shape,
    pub op: Op,
    inputs: Mutex<Inputs>,
    value: SetOnce<Result<Value, Arc<Error>>>,
    /// The trace that it was made in, which is over some time.
    trace: Option<Arc<TraceState>>,
}

/// A fresh number for marking nodes.
pub(crate) fn next_mark() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Number of [`Inside`] calls that have begun, on all threads. It may wrap.
static INSIDES: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// How many calls this thread is in whose graph belongs to one operation.
    static DEPTH: Cell<u8> = const { Cell::new(0) };
}

/// While it lives, what is traced belongs to the graph of one operation (a custom function's), if the operation's results depend on
/// it: on whatever thread, since the function may use some.
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

    /// A node in a trace, whose scope may be held elsewhere.
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

    /// Makes a node that has its value, or its error, and one handle.
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

    /// A node with a value that somebody else laid out, and one handle. `lay` fills in sizes and
    /// strides, of which there are none before, where they stay: to move what was just written
    /// would cost more than all the rest.
    #[inline]
    pub fn laid_out(
        (buffer, offset): (BufferRef, usize),
        dtype: Dtype,
        place: Place,
        lay: impl FnOnce(&mut Shape, &mut Strides),
    ) -> Arc<Node> {
        // A field that is added has to be written below, too: this does not compile without it.
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
        // would only leak it.
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

    /// The value of each element of a constant. One whose memory was exported is none any more:
    /// others may have written to it.
    pub fn constant(&self) -> Option<Scalar> {
        let value = self.op.constant()?;
        (!self.value().is_some_and(|v| v.buffer.was_exported())).then_some(value)
    }

    pub fn is_done(&self) -> bool {
        self.value.get().is_some()
    }

    /// Returns the trace under way that the node is part of. Such a node keeps its operands when it
    /// is evaluated.
    #[inline]
    pub fn live_trace(&self) -> Option<&Arc<TraceState>> {
        if !self.traced.load(Ordering::Relaxed) {
            return None;
        }
        self.trace.as_ref().filter(|trace| trace.is_live())
    }

    /// Returns true if it is part of a trace that is under way.
    #[inline]
    pub fn is_traced(&self) -> bool {
        self.live_trace().is_some()
    }

    /// Notes that it has a copy in [`host_copies`].
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

    /// Looks at the operands without cloning them. `f` must not lock other nodes'
    /// operands for long; nested calls go down the graph only, so they cannot cycle.
    pub fn with_inputs<T>(&self, f: impl FnOnce(&Inputs) -> T) -> T {
        f(&lock(&self.inputs))
    }

    /// Returns the operands, and releases them unless something needs them after the evaluation.
    pub fn take_inputs(&self) -> Inputs {
        if self.is_traced() { self.inputs() } else { self.release_inputs() }
    }

    /// Releases the operands and returns them. They are gone for good: only nodes that are done, or
    /// about to be, may lose them.
    pub fn release_inputs(&self) -> Inputs {
        std::mem::take(&mut *lock(&self.inputs))
    }

    /// Claims a lazy node for the calling thread. False if another thread has it, or it is done.
    #[inline]
    pub fn claim(&self) -> bool {
        self.claim.take()
    }

    pub fn is_claimed(&self) -> bool {
        self.claim.is_taken()
    }

    /// Gives up a claim: the node was not needed and is lazy again.
    pub fn release_claim(&self) {
        self.claim.release();
    }

    /// Ends a claimed evaluation with its outcome. A trace that is under way keeps the operands
    /// until it is over.
    pub fn finish(self: &Arc<Node>, outcome: Result<Value, Arc<Error>>) {
        if self.trace.is_some() && !self.live_trace().is_some_and(|trace| trace.keep(self)) {
            drop(self.release_inputs());
        }
        self.claim.finish(&self.value, outcome);
    }

    /// Returns operands to the node that an evaluation took before it was given up.
    pub fn restore(&self, operands: Inputs) {
        let mut inputs = lock(&self.inputs);
        if inputs.is_empty() {
            *inputs = operands;
        }
    }

    /// Returns true if it is done, or lazy again. Otherwise its end wakes [`ultramarine_runtime::claim::sleep_until`].
    pub fn is_over(&self) -> bool {
        self.claim.is_over(&self.value)
    }

    /// Sleeps until a claimed node is done, or lazy again. False if `interrupted` asked the thread
    /// to stop.
    pub fn wait(&self, interrupted: impl Fn() -> bool) -> bool {
        if self.op.is_outside() {
            self.op.rules().and_then(Rules::outside).into_iter().for_each(Outside::hurry);
        }
        self.claim.wait(&self.value, interrupted)
    }
}

thread_local! {
    /// Nodes to drop, while a drop is under way on this thread.
    static DROPPING: Cell<Option<Vec<Inputs>>> = const { Cell::new(None) };
}

/// Has this thread drop deep graphs by the list below for as long as thread-locals live that begin
/// after this call: they end in the reverse order.
pub(crate) fn prepare_drops() {
    let _ = DROPPING.try_with(|d| d.set(d.take()));
}

/// Dropping a long chain must not recurse: operands whose last reference goes are
/// put on a list that the outermost drop works off.
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
