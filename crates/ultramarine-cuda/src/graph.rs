//! CUDA graphs: commands become nodes, which are made once and updated when a command changes.
//!
//! A command is enqueued into a [`Writer`] in the same way as into a stream: the first time, and again whenever
//! it changes. The first time, its launches become nodes. Later, the nodes get the new launches' parameters,
//! including kernel and grid. If the launches no longer fit the nodes (the number of launches or the size of a
//! fill differs), the writer reports this, and the graph is made anew. So this module does not need to know how
//! a command's launches follow from its tensors.
//!
//! A kernel may start before the previous one has ended, if it declares that it waits itself. Until it waits, it may
//! only read memory that nothing in the graph writes; the graph as a whole waits for the work before it.
//!
//! Library calls are captured in thread-local mode, so other threads can allocate and wait meanwhile. Device objects that such
//! calls need beside the command's memory, such as cuFFT's tables or cuDNN's kernels, live as long as the graph
//! ([`Writer::keep`]).

use crate::context::failure::{self, cuda};
use crate::context::{self, Context, lock};
use crate::streams::Stream;
use crate::sys::driver::{
    Code, CopyNode, Driver, Edge, ExecHandle, FillNode, GraphHandle, KernelNode, NodeHandle,
    StreamHandle, code,
};
use core::any::Any;
use core::ffi::c_int;
use core::ops::Range;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use ultramarine_abi::helper::{Failure, Result};

/// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`.
const THREAD_LOCAL: c_int = 1;

/// Counts of graph operations in this process.
#[derive(Default)]
pub struct Counters {
    /// Graphs that were made.
    pub made: AtomicU64,
    /// Nodes that were made.
    pub nodes: AtomicU64,
    /// Nodes that got new parameters.
    pub changed: AtomicU64,
}

/// The counts.
pub static COUNTERS: Counters =
    Counters { made: AtomicU64::new(0), nodes: AtomicU64::new(0), changed: AtomicU64::new(0) };

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// `CU_STREAM_NON_BLOCKING`.
const NON_BLOCKING: u32 = 1;

/// A stream that never runs anything. Library calls are enqueued to it while they are captured as
/// nodes; see [`Writer`].
pub struct Capture {
    context: Arc<Context>,
    stream: Mutex<Captured>,
}

/// The stream, or NULL.
struct Captured(StreamHandle);

// SAFETY: the driver's streams may be used from any thread.
unsafe impl Send for Captured {}

impl Captured {
    fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

impl Capture {
    /// The stream is created at its first use.
    pub fn new(context: Arc<Context>) -> Self {
        Self { context, stream: Mutex::new(Captured(std::ptr::null_mut())) }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let stream = lock(&self.stream).0;
        if stream.is_null() || context::forked() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: made once, destroyed once; nothing was ever enqueued to it.
            unsafe { (self.context.driver().stream_destroy)(stream) };
        }
    }
}

/// A graph under construction, destroyed when it is dropped. The context is current.
struct Draft {
    driver: &'static Driver,
    handle: GraphHandle,
}

impl Drop for Draft {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once; what was instantiated of it stays.
        unsafe { (self.driver.graph_destroy)(self.handle) };
    }
}

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Kernel,
    Fill,
    Copy,
    Library,
}

/// A node of a [`Graph`]: a launch, a fill, a copy or a captured call.
#[derive(Clone, Copy)]
pub struct Node {
    kind: Kind,
    handle: NodeHandle,
}

// SAFETY: a handle of the driver's, used by one thread at a time.
unsafe impl Send for Node {}

/// Objects that the graph's calls use.
type Kept = Mutex<Vec<Arc<dyn Any + Send + Sync>>>;

/// A graph that can be launched, and the graph that it was instantiated from. Its nodes are needed
/// to change it; see [`Writer`].
pub struct Graph {
    context: Arc<Context>,
    graph: GraphHandle,
    exec: ExecHandle,
    kept: Kept,
}

// SAFETY: handles of the driver's, used by one thread at a time.
unsafe impl Send for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        if context::forked() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            let driver = self.context.driver();
            // SAFETY: made once, destroyed once; nothing runs it any more.
            unsafe {
                (driver.exec_destroy)(self.exec);
                (driver.graph_destroy)(self.graph);
            }
        }
    }
}

impl Graph {
    /// Makes a graph of commands. `write` enqueues each of them into a writer, and together they write to the
    /// addresses `written`. Returns the nodes of each command. The context is current.
    pub fn new(
        context: &Arc<Context>,
        capture: &Capture,
        commands: usize,
        written: &[Range<u64>],
        mut write: impl FnMut(usize, &Writer<'_>) -> Result<()>,
    ) -> Result<(Self, Vec<Vec<Node>>)> {
        let (driver, mut handle) = (context.driver(), std::ptr::null_mut());
        // SAFETY: the output pointer is valid; flags have to be 0.
        unsafe { cuda!(driver.graph_create(&mut handle, 0)) }?;
        let draft = Draft { driver, handle };
        let (mut nodes, mut last, kept) = (Vec::with_capacity(commands), None, Kept::default());
        for i in 0..commands {
            let drawn = Drawn { graph: handle, last: Cell::new(last), nodes: RefCell::default() };
            let way = Way::Draw(drawn);
            let writer = Writer { context, capture, written, kept: &kept, way };
            write(i, &writer)?;
            let Way::Draw(drawn) = writer.way else { break };
            last = drawn.last.get();
            nodes.push(drawn.nodes.into_inner());
        }
        let mut exec = std::ptr::null_mut();
        // SAFETY: a graph of this context; the output pointer is valid.
        unsafe { cuda!(driver.graph_instantiate(&mut exec, handle, 0)) }?;
        count(&COUNTERS.made);
        std::mem::forget(draft);
        Ok((Self { context: context.clone(), graph: handle, exec, kept }, nodes))
    }

    /// Gives a command's nodes its current parameters; `write` enqueues the command. Returns `false` if the
    /// nodes no longer fit the command; the graph must then be discarded. The context is current.
    pub fn change(
        &self,
        capture: &Capture,
        nodes: &[Node],
        write: impl FnOnce(&Writer<'_>) -> Result<()>,
    ) -> Result<bool> {
        let (next, fits) = (Cell::new(0), Cell::new(true));
        let writer = Writer {
            context: &self.context,
            capture,
            // Changing a node keeps its edges.
            written: &[],
            kept: &self.kept,
            way: Way::Change { exec: self.exec, nodes, next, fits },
        };
        let written = write(&writer);
        let Way::Change { next, fits, .. } = writer.way else { return Ok(false) };
        match written {
            Err(_) if !fits.get() => Ok(false),
            Err(failure) => Err(failure),
            Ok(()) => Ok(fits.get() && next.get() == nodes.len()),
        }
    }

    /// Enqueues the graph. The context is current.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        let driver = self.context.driver();
        // SAFETY: both are of this context.
        unsafe { cuda!(driver.graph_launch(self.exec, stream.handle())) }
    }
}

/// The nodes of a command, under construction.
struct Drawn {
    graph: GraphHandle,
    /// The node that the next node depends on.
    last: Cell<Option<Node>>,
    nodes: RefCell<Vec<Node>>,
}

/// The action of a [`Writer`] on each launch.
enum Way<'a> {
    /// Adds another node.
    Draw(Drawn),
    /// Sets the parameters of the next of these nodes.
    Change { exec: ExecHandle, nodes: &'a [Node], next: Cell<usize>, fits: Cell<bool> },
}

/// The receiver of a command's launches, in place of a stream. It first makes nodes of them, and
/// later updates these nodes.
pub struct Writer<'a> {
    context: &'a Arc<Context>,
    capture: &'a Capture,
    written: &'a [Range<u64>],
    kept: &'a Kept,
    way: Way<'a>,
}

impl Writer<'_> {
    /// Returns true if nothing in the graph writes to these addresses.
    pub fn leaves(&self, addresses: &Range<u64>) -> bool {
        self.written.iter().all(|w| w.end <= addresses.start || addresses.end <= w.start)
    }

    /// Keeps an object alive as long as the graph.
    pub fn keep(&self, object: Arc<dyn Any + Send + Sync>) {
        let mut kept = lock(self.kept);
        if !kept.iter().any(|k| Arc::ptr_eq(k, &object)) {
            kept.push(object);
        }
    }

    /// Makes a node, or updates the next one. `add` gets the pointer for the new node, the graph,
    /// and the nodes that it depends on with their number. `set` gets the instantiated graph and the
    /// node. `early` says that the node is a kernel that itself waits for the previous kernel.
    fn node(
        &self,
        (kind, early): (Kind, bool),
        add: impl FnOnce(*mut NodeHandle, GraphHandle, *const NodeHandle, usize) -> Code,
        set: impl FnOnce(ExecHandle, NodeHandle) -> Code,
    ) -> Result<()> {
        let driver = self.context.driver();
        match &self.way {
            Way::Draw(drawn) => {
                let (mut handle, last) = (std::ptr::null_mut(), drawn.last.get());
                let before = last.map_or(std::ptr::null_mut(), |node| node.handle);
                let is_early = early && last.is_some_and(|node| node.kind == Kind::Kernel);
                let add_edges = driver.graph_add_edges.filter(|_| is_early);
                let n = usize::from(last.is_some() && add_edges.is_none());
                failure::check(
                    driver,
                    "cuGraphAddNode",
                    add(&mut handle, drawn.graph, &before, n),
                )?;
                if let Some(add_edges) = add_edges {
                    // SAFETY: both are nodes of this graph.
                    let edge =
                        |edge: Edge| unsafe { add_edges(drawn.graph, &before, &handle, &edge, 1) };
                    if edge(Edge::PROGRAMMATIC) != code::SUCCESS {
                        failure::check(driver, "cuGraphAddDependencies", edge(Edge::FULL))?;
                    }
                }
                count(&COUNTERS.nodes);
                let node = Node { kind, handle };
                drawn.last.set(Some(node));
                drawn.nodes.borrow_mut().push(node);
                Ok(())
            }
            Way::Change { exec, nodes, next, fits } => {
                let node = nodes.get(next.get()).filter(|node| node.kind == kind);
                next.set(next.get() + 1);
                let result = node.map(|node| set(*exec, node.handle));
                match result {
                    Some(code::SUCCESS) => {
                        count(&COUNTERS.changed);
                        Ok(())
                    }
                    Some(fault) if failure::is_sticky(fault) => {
                        failure::check(driver, "cuGraphExecNodeSetParams", fault)
                    }
                    // The driver does not support this change, or there is no such node.
                    _ => {
                        fits.set(false);
                        Err(Failure::new("a launch that fits no node of its graph"))
                    }
                }
            }
        }
    }

    /// Enqueues a kernel; if `early`, it may start before the previous one has ended.
    ///
    /// # Safety
    /// The parameters match the kernel, and the kernel accesses only memory that it was given. An early
    /// kernel waits before it reads memory that the graph writes, and before it writes.
    pub unsafe fn kernel(&self, node: &KernelNode, early: bool) -> Result<()> {
        let driver = self.context.driver();
        // SAFETY: handles are this graph's; the kernel is valid by this function's contract.
        unsafe {
            self.node(
                (Kind::Kernel, early),
                |place, graph, before, n| (driver.graph_add_kernel)(place, graph, before, n, node),
                |exec, handle| (driver.exec_set_kernel)(exec, handle, node),
            )
        }
    }

    /// Enqueues a fill.
    ///
    /// # Safety
    /// The memory is of this device, and long enough.
    pub unsafe fn fill(&self, node: &FillNode) -> Result<()> {
        let (driver, context) = (self.context.driver(), self.context.handle());
        // SAFETY: handles are this graph's; the memory is valid by this function's contract.
        unsafe {
            self.node(
                (Kind::Fill, false),
                |place, graph, before, n| {
                    (driver.graph_add_fill)(place, graph, before, n, node, context)
                },
                |exec, handle| (driver.exec_set_fill)(exec, handle, node, context),
            )
        }
    }

    /// Enqueues a copy.
    ///
    /// # Safety
    /// Both memories are of this device, and long enough.
    pub unsafe fn copy(&self, node: &CopyNode) -> Result<()> {
        let (driver, context) = (self.context.driver(), self.context.handle());
        // SAFETY: handles are this graph's; the memory is valid by this function's contract.
        unsafe {
            self.node(
                (Kind::Copy, false),
                |place, graph, before, n| {
                    (driver.graph_add_copy)(place, graph, before, n, node, context)
                },
                |exec, handle| (driver.exec_set_copy)(exec, handle, node, context),
            )
        }
    }

    /// Adds the work that a library's call enqueues to the stream that it is given. If the library
    /// refuses the call (`false`), nothing is added.
    pub fn library<T>(
        &self,
        enqueue: impl FnOnce(StreamHandle) -> T,
        taken: impl FnOnce(&T) -> bool,
    ) -> Result<T> {
        let driver = self.context.driver();
        let mut kept = lock(&self.capture.stream);
        if kept.is_null() {
            // SAFETY: the output pointer is valid; the context is current.
            unsafe { cuda!(driver.stream_create(&mut kept.0, NON_BLOCKING)) }?;
        }
        let stream = kept.0;
        // SAFETY: a stream that nothing else uses while the lock is held; the output pointer is
        // valid.
        let (answer, ended, graph) = unsafe {
            cuda!(driver.capture_begin(stream, THREAD_LOCAL))?;
            let answer = enqueue(stream);
            let mut graph = std::ptr::null_mut();
            let ended = (driver.capture_end)(stream, &mut graph);
            (answer, ended, graph)
        };
        let draft = (!graph.is_null()).then_some(Draft { driver, handle: graph });
        if failure::is_sticky(ended) {
            failure::check(driver, "cuStreamEndCapture", ended)?;
        }
        let Some(draft) = draft.filter(|_| ended == code::SUCCESS) else {
            // The library did something that a captured stream does not allow, so the host submits
            // the command without a graph.
            return Err(Failure::unsupported("a call of a library that cannot be captured"));
        };
        if !taken(&answer) {
            return Ok(answer);
        }
        // SAFETY: handles are this graph's; the child is copied.
        unsafe {
            self.node(
                (Kind::Library, false),
                |place, graph, before, n| {
                    (driver.graph_add_child)(place, graph, before, n, draft.handle)
                },
                |exec, handle| (driver.exec_set_child)(exec, handle, draft.handle),
            )
        }?;
        Ok(answer)
    }
}
