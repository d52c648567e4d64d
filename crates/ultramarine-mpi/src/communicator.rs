//! Communicators, and the translation of requests to calls of MPI.

use crate::call::{Call, GATHER, MESSAGE, Reduce};
use crate::dtype::Dtype;
use crate::engine::{Engine, Job, Kept, Place, lock};
use crate::error::Error;
use crate::operations::Reduction;
use crate::request::{Kind, Request};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use std::ffi::c_int;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};

/// 16-bit floats that are widened at a time. They take 16 MiB as `float32`.
const WIDENED: usize = 1 << 22;

/// Returns the most bytes of one call. MPI counts with `int`. Tests set a smaller number by
/// `ULTRAMARINE_MPI_PIECE`.
fn piece() -> usize {
    static PIECE: OnceLock<usize> = OnceLock::new();
    *PIECE.get_or_init(|| {
        let text = std::env::var("ULTRAMARINE_MPI_PIECE").ok();
        let bytes = text.and_then(|text| text.parse().ok()).unwrap_or(1 << 30);
        bytes.clamp(8, 1 << 30)
    })
}

/// A group of processes that communicate: collectives and messages over memory of the caller.
/// Clones refer to the same group. Calls may come from any thread; a single thread of this crate
/// talks to MPI.
#[derive(Clone)]
pub struct Communicator {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Arc<Engine>,
    place: Place,
    /// Makes the collectives of a communicator run one after another. The scratch memory is for
    /// 16-bit floats.
    order: Mutex<Scratch>,
}

#[derive(Default)]
struct Scratch {
    wide: Vec<f32>,
    sums: Vec<f32>,
}

impl std::fmt::Debug for Communicator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Communicator(rank {} of {})", self.rank(), self.size())
    }
}

impl Communicator {
    pub(crate) fn new(engine: Arc<Engine>, place: Place) -> Self {
        Communicator { shared: Arc::new(Shared { engine, place, order: Mutex::default() }) }
    }

    /// Returns the rank of this process, from 0 to `size() - 1`.
    pub fn rank(&self) -> usize {
        self.shared.place.rank
    }

    /// Returns the number of processes.
    pub fn size(&self) -> usize {
        self.shared.place.size
    }

    /// Divides the processes. All processes that pass the same `color` form a new communicator.
    /// Their order is that of their `key`s, and of their ranks where keys are equal. All processes
    /// of this communicator have to call this function. MPI keeps a communicator until the process
    /// ends.
    ///
    /// # Errors
    /// [`Error::Argument`] for a negative color; otherwise those of [`Communicator::run`].
    pub fn split(&self, color: i32, key: i32) -> Result<Communicator, Error> {
        if color < 0 {
            return Err(Error::Argument(format!(
                "[split] the color is {color}. Give a color of 0 or more"
            )));
        }
        let engine = &self.shared.engine;
        engine.usable()?;
        let _order = lock(&self.shared.order);
        let description = format!("split(color {color}, key {key}) of {} ranks", self.size());
        match engine.run(self.shared.place, Job::Split { color, key }, &description)? {
            Some(place) => Ok(Communicator::new(engine.clone(), place)),
            None => Err(Error::Unusable("MPI_Comm_split gave no communicator".to_owned())),
        }
    }

    /// Runs one collective or message over host memory, and returns when it is done. All processes
    /// have to make the same collectives in the same order, with the same kind, dtype and count;
    /// MPI does not detect all differences. A message is copied, and is done when MPI has accepted
    /// it, so a ring of ranks may send before it receives.
    ///
    /// # Errors
    /// - [`Error::Argument`]; [`Error::Length`] for a message of another length.
    /// - [`Error::Timeout`] if the request takes longer than `ULTRAMARINE_DISTRIBUTED_TIMEOUT`
    ///   seconds (300; 0: no limit).
    /// - [`Error::Mpi`] for MPI's own errors.
    /// - After one of the last two, [`Error::Abandoned`] for requests in progress and
    ///   [`Error::Broken`] for later ones.
    /// - [`Error::Forked`] in a forked child; [`Error::Finished`] after the end of MPI.
    ///
    /// # Safety
    /// `input` and `output` are valid for the elements that [`Kind`] gives, are aligned to the
    /// element's size (4 for `complex64`), and do not overlap. After an error for which
    /// [`Error::keeps_memory`] is true, they have to stay allocated until the process ends.
    pub unsafe fn run(&self, request: &Request<'_>) -> Result<(), Error> {
        request.validate(self.size())?;
        self.shared.engine.usable()?;
        // SAFETY: by this function's contract; the request is valid for this size.
        unsafe {
            match request.kind {
                Kind::Send { to } => return self.send(request, to),
                Kind::Receive { from } => return self.receive(request, from),
                _ if request.count == 0 => return Ok(()),
                _ => {}
            }
            if self.size() == 1 {
                let bytes = request.count * request.dtype.size();
                std::ptr::copy_nonoverlapping(request.input, request.output, bytes);
                return Ok(());
            }
            let scratch = &mut *lock(&self.shared.order);
            let half = matches!(request.dtype, Dtype::Float16 | Dtype::Bfloat16);
            match request.kind {
                Kind::AllSum if half => self.all_sum_of_halves(request, scratch),
                Kind::SumScatter if half => self.sum_scatter_of_halves(request, scratch),
                Kind::AllMax => self.all_reduce(request, Reduction::Max),
                Kind::AllMin => self.all_reduce(request, Reduction::Min),
                Kind::AllGather => self.all_gather(request),
                Kind::SumScatter => self.sum_scatter(request),
                Kind::AllSum | Kind::Send { .. } | Kind::Receive { .. } => {
                    self.all_reduce(request, Reduction::Sum)
                }
            }
        }
    }

    /// Returns true if MPI accepts addresses of GPU memory for a request of this kind. Only
    /// messages and gathers can use them. MPI reports its support by `MPIX_Query_cuda_support`;
    /// `ULTRAMARINE_MPI_DEVICE_MEMORY=1` or `0` overrides the report. Reductions use host memory,
    /// because MPI computes them there, and because Open MPI's non-blocking reductions accept no
    /// GPU memory.
    pub fn takes_device_memory(&self, kind: Kind) -> bool {
        let moves = matches!(kind, Kind::AllGather | Kind::Send { .. } | Kind::Receive { .. });
        moves && self.size() > 1 && self.shared.engine.device_memory.load(Ordering::Acquire)
    }

    /// Like [`Communicator::run`], but over memory of the GPU `device`, in CUDA's numbering. The
    /// addresses are passed to MPI unchanged. Work on the GPU that writes the input or uses the
    /// output must be complete. A message may be done before its receiver has it: `owner` is
    /// dropped when MPI no longer needs the input.
    ///
    /// # Errors
    /// Those of [`Communicator::run`]; [`Error::Argument`] if [`Communicator::takes_device_memory`]
    /// is false; [`Error::Unusable`] if the GPU cannot be used from MPI's thread.
    ///
    /// # Safety
    /// The requirements of [`Communicator::run`], with memory that MPI accepts. The input of a
    /// message stays valid until `owner` is dropped.
    pub unsafe fn run_on_device(
        &self,
        request: &Request<'_>,
        device: i32,
        owner: Box<dyn Send>,
    ) -> Result<(), Error> {
        request.validate(self.size())?;
        let engine = &self.shared.engine;
        engine.usable()?;
        if !self.takes_device_memory(request.kind) {
            return Err(Error::Argument(format!(
                "[{}] MPI does not take a GPU's memory here. Copy it to the host",
                request.kind.name()
            )));
        }
        if !engine.uses_device.load(Ordering::Acquire) {
            engine.run(self.shared.place, Job::UseDevice(device), "a GPU for MPI's thread")?;
            engine.uses_device.store(true, Ordering::Release);
        }
        let bytes = request.count * request.dtype.size();
        match request.kind {
            Kind::Send { to } => self.post_send(request, to, Kept { bytes, _owner: owner }),
            // SAFETY: by this function's contract.
            Kind::Receive { from } => unsafe { self.receive(request, from) },
            _ if bytes == 0 => Ok(()),
            _ => {
                let _order = lock(&self.shared.order);
                self.calls(request, self.gather_by_messages(request, bytes))
            }
        }
    }

    /// Makes a gather of messages, including one from this process to itself. In both
    /// implementations, messages can use GPU memory.
    fn gather_by_messages(&self, request: &Request<'_>, bytes: usize) -> Vec<Call> {
        let (input, output) = (request.input, request.output);
        let each = |(at, count)| {
            (0..self.size()).flat_map(move |rank| {
                let (output, input) =
                    (output.wrapping_add(rank * bytes + at), input.wrapping_add(at));
                let (bytes, rank) = (int(count), int(rank));
                [
                    Call::Receive { output, bytes, from: rank, tag: GATHER },
                    Call::Send { input, bytes, to: rank, tag: GATHER },
                ]
            })
        };
        pieces(bytes, piece()).flat_map(each).collect()
    }

    fn calls(&self, request: &Request<'_>, calls: Vec<Call>) -> Result<(), Error> {
        let engine = &self.shared.engine;
        engine.run(self.shared.place, Job::Calls(calls), request.description).map(|_| ())
    }

    /// # Safety
    /// That of [`Communicator::run`].
    unsafe fn send(&self, request: &Request<'_>, to: usize) -> Result<(), Error> {
        let bytes = request.count * request.dtype.size();
        let mut kept = vec![0u8; bytes];
        if bytes > 0 {
            // SAFETY: by this function's contract.
            unsafe { std::ptr::copy_nonoverlapping(request.input, kept.as_mut_ptr(), bytes) };
        }
        let own = Request { input: kept.as_ptr(), ..*request };
        self.post_send(&own, to, Kept { bytes, _owner: Box::new(kept) })
    }

    /// Sends a message from memory that stays alive until it is delivered.
    fn post_send(&self, request: &Request<'_>, to: usize, kept: Kept) -> Result<(), Error> {
        let from = request.input;
        let call = |(at, bytes)| Call::Send {
            input: from.wrapping_add(at),
            bytes,
            to: int(to),
            tag: MESSAGE,
        };
        let calls = message(kept.bytes).map(call).collect();
        let engine = &self.shared.engine;
        engine.run(self.shared.place, Job::Send { calls, kept }, request.description).map(|_| ())
    }

    /// # Safety
    /// That of [`Communicator::run`].
    unsafe fn receive(&self, request: &Request<'_>, from: usize) -> Result<(), Error> {
        let output = request.output;
        let from = int(from);
        let call = |(at, bytes)| Call::Receive {
            output: output.wrapping_add(at),
            bytes,
            from,
            tag: MESSAGE,
        };
        let calls = message(request.count * request.dtype.size()).map(call).collect();
        self.calls(request, calls)
    }

    /// # Safety
    /// That of [`Communicator::run`].
    unsafe fn all_reduce(&self, request: &Request<'_>, reduction: Reduction) -> Result<(), Error> {
        let (reduce, size) = (Reduce::new(request.dtype, reduction), request.dtype.size());
        let call = |(at, count)| Call::AllReduce {
            input: Some(request.input.wrapping_add(at * size)),
            output: request.output.wrapping_add(at * size),
            count: int(count * reduce.lanes),
            reduce,
        };
        self.calls(request, pieces(request.count, piece() / size).map(call).collect())
    }

    /// # Safety
    /// That of [`Communicator::run`].
    unsafe fn all_gather(&self, request: &Request<'_>) -> Result<(), Error> {
        let bytes = request.count * request.dtype.size();
        let (input, output) = (request.input, request.output);
        if bytes * self.size() <= piece() {
            return self.calls(request, vec![Call::AllGather { input, output, bytes: int(bytes) }]);
        }
        // The pieces of a gather are not contiguous in the output, so broadcast each rank's part
        // separately.
        let mine = self.rank() * bytes;
        // SAFETY: the output holds the parts of all ranks.
        unsafe { std::ptr::copy_nonoverlapping(input, output.add(mine), bytes) };
        let parts = (0..self.size()).flat_map(|root| {
            pieces(bytes, piece()).map(move |(at, count)| Call::Broadcast {
                buffer: output.wrapping_add(root * bytes + at),
                bytes: int(count),
                root: int(root),
            })
        });
        self.calls(request, parts.collect())
    }

    /// # Safety
    /// That of [`Communicator::run`].
    unsafe fn sum_scatter(&self, request: &Request<'_>) -> Result<(), Error> {
        let (reduce, size) = (Reduce::new(request.dtype, Reduction::Sum), request.dtype.size());
        let (input, output) = (request.input, request.output);
        let part = request.count / self.size();
        if request.count * size <= piece() {
            let part = int(part * reduce.lanes);
            return self.calls(request, vec![Call::ReduceScatter { input, output, part, reduce }]);
        }
        // The pieces of all parts are not contiguous in the input, so reduce each part to its rank
        // separately.
        let parts = (0..self.size()).flat_map(|root| {
            pieces(part, piece() / size).map(move |(at, count)| Call::Reduce {
                input: input.wrapping_add((root * part + at) * size),
                output: output.wrapping_add(at * size),
                count: int(count * reduce.lanes),
                reduce,
                root: int(root),
            })
        });
        self.calls(request, parts.collect())
    }

    /// Widens pieces to `float32`, sums them in `float32` and rounds once.
    ///
    /// # Safety
    /// That of [`Communicator::run`].
    unsafe fn all_sum_of_halves(
        &self,
        request: &Request<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let reduce = Reduce::new(Dtype::Float32, Reduction::Sum);
        for (at, count) in pieces(request.count, WIDENED.min(piece() / 4)) {
            // SAFETY: by this function's contract.
            unsafe { widen(request.dtype, request.input.add(2 * at), count, &mut scratch.wide) };
            let output = scratch.wide.as_mut_ptr().cast();
            let call = Call::AllReduce { input: None, output, count: int(count), reduce };
            scratch.keep(self.calls(request, vec![call]))?;
            // SAFETY: as above.
            unsafe { narrow(request.dtype, &scratch.wide, request.output.add(2 * at)) };
        }
        Ok(())
    }

    /// # Safety
    /// That of [`Communicator::run`].
    unsafe fn sum_scatter_of_halves(
        &self,
        request: &Request<'_>,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let reduce = Reduce::new(Dtype::Float32, Reduction::Sum);
        let part = request.count / self.size();
        let most = WIDENED.min(piece() / 4);
        if request.count <= most {
            // SAFETY: by this function's contract.
            unsafe { widen(request.dtype, request.input, request.count, &mut scratch.wide) };
            scratch.sums.resize(part, 0.0);
            let (input, output) = scratch.addresses();
            let call = Call::ReduceScatter { input, output, part: int(part), reduce };
            scratch.keep(self.calls(request, vec![call]))?;
            // SAFETY: as above.
            unsafe { narrow(request.dtype, &scratch.sums, request.output) };
            return Ok(());
        }
        for root in 0..self.size() {
            for (at, count) in pieces(part, most) {
                // SAFETY: by this function's contract.
                unsafe {
                    let input = request.input.add(2 * (root * part + at));
                    widen(request.dtype, input, count, &mut scratch.wide);
                }
                scratch.sums.resize(count, 0.0);
                let (input, output) = scratch.addresses();
                let (count, root_) = (int(count), int(root));
                let call = Call::Reduce { input, output, count, reduce, root: root_ };
                scratch.keep(self.calls(request, vec![call]))?;
                if root == self.rank() {
                    // SAFETY: as above.
                    unsafe { narrow(request.dtype, &scratch.sums, request.output.add(2 * at)) };
                }
            }
        }
        Ok(())
    }
}

impl Scratch {
    fn addresses(&mut self) -> (*const u8, *mut u8) {
        (self.wide.as_ptr().cast(), self.sums.as_mut_ptr().cast())
    }

    /// Leaks the memory if a failed call may still use it.
    fn keep(&mut self, outcome: Result<(), Error>) -> Result<(), Error> {
        if outcome.as_ref().is_err_and(Error::keeps_memory) {
            std::mem::forget(std::mem::take(self));
        }
        outcome
    }
}

/// Converts a number of elements or a rank. [`piece`] and MPI keep them in range.
fn int(n: usize) -> c_int {
    c_int::try_from(n).unwrap_or(c_int::MAX)
}

/// Returns the start and length of pieces of at most `most` elements.
fn pieces(count: usize, most: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
    let most = most.max(1);
    (0..count).step_by(most).map(move |at| (at, most.min(count - at)))
}

/// Returns the pieces of a message's bytes. A message without bytes has one empty piece, because it
/// is sent too.
fn message(bytes: usize) -> impl Iterator<Item = (usize, c_int)> {
    let empty = (bytes == 0).then_some((0, 0));
    empty.into_iter().chain(pieces(bytes, piece())).map(|(at, count)| (at, int(count)))
}

/// # Safety
/// `input` has `count` aligned 16-bit floats.
unsafe fn widen(dtype: Dtype, input: *const u8, count: usize, wide: &mut Vec<f32>) {
    wide.resize(count, 0.0);
    // SAFETY: by this function's contract.
    unsafe {
        if dtype == Dtype::Float16 {
            std::slice::from_raw_parts(input.cast::<f16>(), count).convert_to_f32_slice(wide);
        } else {
            std::slice::from_raw_parts(input.cast::<bf16>(), count).convert_to_f32_slice(wide);
        }
    }
}

/// # Safety
/// `output` has room for as many aligned 16-bit floats as `wide` has elements.
unsafe fn narrow(dtype: Dtype, wide: &[f32], output: *mut u8) {
    // SAFETY: by this function's contract.
    unsafe {
        if dtype == Dtype::Float16 {
            std::slice::from_raw_parts_mut(output.cast::<f16>(), wide.len())
                .convert_from_f32_slice(wide);
        } else {
            std::slice::from_raw_parts_mut(output.cast::<bf16>(), wide.len())
                .convert_from_f32_slice(wide);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{message, pieces};

    #[test]
    fn pieces_cover_all_elements_once() {
        assert_eq!(pieces(0, 4).count(), 0);
        assert_eq!(pieces(4, 4).collect::<Vec<_>>(), [(0, 4)]);
        assert_eq!(pieces(9, 4).collect::<Vec<_>>(), [(0, 4), (4, 4), (8, 1)]);
        assert_eq!(pieces(2, 0).collect::<Vec<_>>(), [(0, 1), (1, 1)]);
    }

    #[test]
    fn an_empty_message_is_sent() {
        assert_eq!(message(0).collect::<Vec<_>>(), [(0, 0)]);
        assert_eq!(message(3).collect::<Vec<_>>(), [(0, 3)]);
    }
}
