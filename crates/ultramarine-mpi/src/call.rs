//! The calls of MPI that make up a request. `communicator.rs` makes them, `worker.rs` posts them.

use crate::dtype::Dtype;
use crate::operations::{self, Reduction};
use crate::table::{Handle, Table};
use std::ffi::{c_int, c_void};

/// The MPI datatype that a call moves. This crate's own reductions only use the datatype's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    Byte,
    Uint16,
    Uint32,
    Uint64,
    Float,
    Double,
}

/// A reduction in the form in which a [`Call`] passes it to MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduce {
    pub element: Element,
    /// Index among this crate's own reductions; `None` for `MPI_SUM`.
    pub own: Option<usize>,
    /// The number of MPI elements in an element of the dtype: 2 for sums of complex numbers.
    pub lanes: usize,
}

impl Reduce {
    /// Returns the reduction for a dtype. Sums of 16-bit floats are not among them, because they
    /// are computed in `float32`.
    pub fn new(dtype: Dtype, reduction: Reduction) -> Self {
        let own = operations::index(dtype, reduction);
        let (element, lanes) = match (dtype, own) {
            (Dtype::Float32, None) => (Element::Float, 1),
            (Dtype::Complex64, None) => (Element::Float, 2),
            (Dtype::Float64, None) => (Element::Double, 1),
            _ => match dtype.size() {
                1 => (Element::Byte, 1),
                2 => (Element::Uint16, 1),
                4 => (Element::Uint32, 1),
                _ => (Element::Uint64, 1),
            },
        };
        Reduce { element, own, lanes }
    }
}

/// A non-blocking call of MPI. A request consists of one or several. Counts are in the reduction's
/// elements, or in bytes.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    AllReduce { input: Option<*const u8>, output: *mut u8, count: c_int, reduce: Reduce },
    ReduceScatter { input: *const u8, output: *mut u8, part: c_int, reduce: Reduce },
    Reduce { input: *const u8, output: *mut u8, count: c_int, reduce: Reduce, root: c_int },
    AllGather { input: *const u8, output: *mut u8, bytes: c_int },
    Broadcast { buffer: *mut u8, bytes: c_int, root: c_int },
    Send { input: *const u8, bytes: c_int, to: c_int, tag: c_int },
    Receive { output: *mut u8, bytes: c_int, from: c_int, tag: c_int },
}

// SAFETY: only the thread of MPI uses the addresses, and the submitting thread keeps the memory
// alive.
unsafe impl Send for Call {}

/// Tag of messages. Each pair of ranks has its own order of messages.
pub const MESSAGE: c_int = 0;

/// Tag of the messages that make up a gather. The caller's messages must not match them.
pub const GATHER: c_int = 1;

impl Call {
    /// Returns the name of the MPI function, for errors.
    pub fn name(&self) -> &'static str {
        match self {
            Call::AllReduce { .. } => "MPI_Iallreduce",
            Call::ReduceScatter { .. } => "MPI_Ireduce_scatter_block",
            Call::Reduce { .. } => "MPI_Ireduce",
            Call::AllGather { .. } => "MPI_Iallgather",
            Call::Broadcast { .. } => "MPI_Ibcast",
            Call::Send { .. } => "MPI_Isend",
            Call::Receive { .. } => "MPI_Irecv",
        }
    }

    /// Returns the approximate number of bytes that the call moves.
    pub fn bytes(&self) -> usize {
        let count = match *self {
            Call::AllReduce { count, .. } | Call::Reduce { count, .. } => count,
            Call::ReduceScatter { part, .. } => part,
            Call::AllGather { bytes, .. }
            | Call::Broadcast { bytes, .. }
            | Call::Send { bytes, .. }
            | Call::Receive { bytes, .. } => bytes,
        };
        let elements = usize::try_from(count).unwrap_or(0);
        if matches!(self, Call::AllReduce { .. } | Call::Reduce { .. } | Call::ReduceScatter { .. })
        {
            elements * 8
        } else {
            elements
        }
    }

    /// Starts the call. Returns MPI's error code.
    ///
    /// # Safety
    /// The memory is valid for the counts until the request is complete, and the calling thread may
    /// call MPI.
    pub unsafe fn post<H: Handle>(&self, table: &Table<H>, comm: H, request: &mut H) -> c_int {
        let (f, c) = (&table.functions, &table.constants);
        let element = |element| match element {
            Element::Byte => c.byte,
            Element::Uint16 => c.uint16,
            Element::Uint32 => c.uint32,
            Element::Uint64 => c.uint64,
            Element::Float => c.float,
            Element::Double => c.double,
        };
        let operation = |reduce: Reduce| reduce.own.map_or(c.sum, |own| table.operations[own]);
        let request: *mut H = request;
        // SAFETY: by this function's contract; handles are those of the table.
        unsafe {
            match *self {
                Call::AllReduce { input, output, count, reduce } => {
                    let input =
                        input.map_or(c.in_place.cast_const(), |input| input.cast::<c_void>());
                    let element = element(reduce.element);
                    (f.iallreduce)(
                        input,
                        output.cast(),
                        count,
                        element,
                        operation(reduce),
                        comm,
                        request,
                    )
                }
                Call::ReduceScatter { input, output, part, reduce } => {
                    let (element, operation) = (element(reduce.element), operation(reduce));
                    (f.ireduce_scatter_block)(
                        input.cast(),
                        output.cast(),
                        part,
                        element,
                        operation,
                        comm,
                        request,
                    )
                }
                Call::Reduce { input, output, count, reduce, root } => {
                    let (element, operation) = (element(reduce.element), operation(reduce));
                    (f.ireduce)(
                        input.cast(),
                        output.cast(),
                        count,
                        element,
                        operation,
                        root,
                        comm,
                        request,
                    )
                }
                Call::AllGather { input, output, bytes } => (f.iallgather)(
                    input.cast(),
                    bytes,
                    c.byte,
                    output.cast(),
                    bytes,
                    c.byte,
                    comm,
                    request,
                ),
                Call::Broadcast { buffer, bytes, root } => {
                    (f.ibcast)(buffer.cast(), bytes, c.byte, root, comm, request)
                }
                Call::Send { input, bytes, to, tag } => {
                    (f.isend)(input.cast(), bytes, c.byte, to, tag, comm, request)
                }
                Call::Receive { output, bytes, from, tag } => {
                    (f.irecv)(output.cast(), bytes, c.byte, from, tag, comm, request)
                }
            }
        }
    }
}
