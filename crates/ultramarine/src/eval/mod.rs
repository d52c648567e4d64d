//! Evaluation: claim what is needed, plan it, run it on its streams.
//!
//! ```text
//! eval(output)  -> one task whose operands have values, on the host: run by itself (single.rs), or
//! eval(outputs) -> tape (claimed lazy nodes, operands first)
//!               -> the executable of an earlier evaluation with this structure (repeated.rs), in segments if parts
//!                  of it differ each time (segments.rs), or
//!               -> entries (compositions of what devices lack) lower.rs
//!               -> tasks (single ops and fused groups)         grouping.rs
//!               -> jobs (runs of tasks of one stream)
//!               -> run: inline on an idle stream, else queued  run.rs
//! ```
//!
//! Claiming and queueing happen under one lock, so that evaluations are totally
//! ordered: one may wait for an earlier one's nodes, never the reverse.

mod adjacent;
mod beside;
mod binding;
mod called;
mod described;
mod fallback;
mod fused_program;
mod grouping;
mod jobs;
mod lower;
mod numbers;
mod oversized;
mod repeated;
mod run;
mod segments;
mod single;
mod structure;
mod submission;
mod values;

use crate::{
    array::Array,
    arrays::Arrays,
    backend,
    device::Device,
    devices,
    error::{Error, Result},
    graph::op::Transform,
    memory::deferred_deleters,
    node::{Node, next_mark},
    ops::Rules,
    profile::{self, Recorder},
    stream::{self, Stranded, Stream},
    sync::lock,
};
pub(crate) use beside::{may_share, note_group_ahead};
use described::Notes;
use grouping::{Task, group_into_tasks};
use lower::Tape;
pub(crate) use run::panic_text;
pub use single::SmallEvaluation;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use ultramarine_runtime::claim::hold_sleepers;
use ultramarine_runtime::fork::{self, ForkStage, Hook};
use ultramarine_runtime::{interrupt, pool};

static SCHEDULER: Mutex<()> = Mutex::new(());

/// True while a thread is about to fork.
static FORKING: AtomicBool = AtomicBool::new(false);

/// Settings from the environment. 0: not read yet, 1: off, 2: on.
static FUSION: AtomicU8 = AtomicU8::new(0);
static EXECUTABLES: AtomicU8 = AtomicU8::new(0);

fn is_on(switch: &AtomicU8, variable: &str) -> bool {
    match switch.load(Ordering::Relaxed) {
        0 => {
            let on = std::env::var_os(variable).is_none_or(|v| v != "0");
            switch.store(1 + on as u8, Ordering::Relaxed);
            on
        }
        state => state == 2,
    }
}

/// Returns true if elementwise operations are fused. On, unless the environment variable
/// `ULTRAMARINE_FUSION` is `0` or [`set_fusion`] said otherwise.
pub fn fusion() -> bool {
    is_on(&FUSION, "ULTRAMARINE_FUSION")
}

/// Switches fusion of elementwise operations on or off for the process. Fused and unfused results
/// are bitwise identical, so the switch is for measurements and debugging only.
pub fn set_fusion(on: bool) {
    FUSION.store(1 + on as u8, Ordering::Relaxed);
}

/// Returns true if evaluations that repeat, and calls of compiled functions, run the commands of earlier ones again
/// (`docs/compile.md`). On, unless the environment variable `ULTRAMARINE_EXECUTABLES` is `0` or [`set_executables`] said
/// otherwise.
pub fn executables() -> bool {
    is_on(&EXECUTABLES, "ULTRAMARINE_EXECUTABLES")
}

/// Switches executables on or off for the process. The results are bitwise identical. The call also
/// makes the calling thread examine all its evaluations again, even if earlier ones never repeated.
pub fn set_executables(on: bool) {
    EXECUTABLES.store(1 + on as u8, Ordering::Relaxed);
    repeated::forget_misses();
}

/// Computes arrays and waits until they are done.
///
/// # Errors
/// The first array's error, if any failed: [`Error::Memory`], [`Error::Runtime`]
/// ...; [`Error::Value`] inside a transform that has no values, such as `vmap`.
///
/// ```
/// use ultramarine::{Array, eval};
/// let x = Array::scalar(2.0f32);
/// let (y, z) = ((&x * 3)?, (&x + 3)?);
/// eval(&[&y, &z])?;
/// assert!(y.is_evaluated() && z.is_evaluated());
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub fn eval(arrays: impl Arrays) -> Result<()> {
    let arrays = arrays.borrowed();
    start(&arrays, true)?;
    arrays.into_iter().try_for_each(wait)
}

/// Starts computing arrays and returns. A thread that needs the values waits for them.
///
/// # Errors
/// As [`eval`], if the error is known at once. Later failures are raised where the values are
/// needed, and by [`crate::synchronize`] of the stream.
pub fn async_eval(arrays: impl Arrays) -> Result<()> {
    start(&arrays.borrowed(), false)
}

/// Waits until an array has its values.
fn wait(array: &Array) -> Result<()> {
    submit(array)?;
    array.node().value().map_or(Ok(()), |v| v.buffer.ready())
}

/// Computes an array, but does not wait for a device that runs asynchronously. Further work can be
/// submitted to the same device without waiting.
pub(crate) fn submit(array: &Array) -> Result<()> {
    loop {
        if let Some(outcome) = array.node().outcome() {
            return outcome.as_ref().map(drop).map_err(raise);
        }
        if !array.node().is_claimed() {
            // Another evaluation gave the node up, or the node was not requested yet.
            start(&[array], true)?;
        } else if deferred_deleters::in_job() {
            run::await_node(array.node())?;
        } else if !pool::waiting(|| array.node().wait(interrupt::is_requested)) {
            interrupt::handle()?;
        }
    }
}

/// The error of an array. Marks it as raised, so that `synchronize` does not raise it again.
#[cold]
fn raise(error: &Arc<Error>) -> Error {
    if !deferred_deleters::in_job() {
        stream::raised(error);
    }
    Error::clone(error)
}

/// Computes arrays together, but does not wait for devices that run asynchronously.
pub(crate) fn compute(arrays: &[Array]) -> Result<()> {
    start(&arrays.borrowed(), true)?;
    arrays.iter().try_for_each(submit)
}

fn start(arrays: &[&Array], sync: bool) -> Result<()> {
    if arrays.iter().all(|a| a.node().is_done()) {
        return Ok(());
    }
    register_fork_hook();
    let mut alone =
        if let ([array], true) = (arrays, sync) { single::run(array.node().clone()) } else { None };
    // If an interrupt ended the evaluation but is not an error for the handler, start again.
    while !alone.take().map_or_else(|| start_once(arrays, sync), Ok)? {
        interrupt::handle()?;
    }
    Ok(())
}

/// Returns false if the evaluation was given up, and its nodes are lazy again.
fn start_once(arrays: &[&Array], sync: bool) -> Result<bool> {
    // During a fork, running work continues, but new work waits until the fork is over.
    while FORKING.load(Ordering::Relaxed) && !deferred_deleters::in_job() {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
    let profile = profile::recorder();
    let guard = lock(&SCHEDULER);
    let Claimed { tape, single, communicates, outside, awaits } = claim(arrays)?;
    for (node, consumer) in outside {
        // Start these in the order in which their values are needed. Tasks wait for them like for
        // the nodes of another evaluation. Hold no reference here, so that their memory is freed as
        // soon as the tasks have used it.
        if let Some(work) = node.op.rules().and_then(Rules::outside) {
            work.begin(&node, consumer, sync);
        }
    }
    if tape.entries.is_empty() {
        return Ok(true);
    }
    if deferred_deleters::in_job() {
        // A stream's thread needs nodes that were given up, so it runs them itself.
        drop(guard);
        run_tasks(plan(tape, profile), profile, single.is_some());
        return if interrupt::is_cut() { Err(run::interrupted()) } else { Ok(true) };
    }
    match single {
        Some(stream) => submit_single(guard, (stream, communicates, awaits), tape, sync, profile),
        None => submit_split(guard, plan(tape, profile), sync, profile).map(|()| true),
    }
}

/// Cuts a tape into tasks.
fn plan(tape: Tape, profile: Option<Recorder>) -> Vec<Task> {
    match profile {
        None => group_into_tasks(tape),
        Some(profile) => {
            let operations = tape.entries.len();
            profile.planning(operations, || group_into_tasks(tape), Vec::len)
        }
    }
}

/// Submits work that is all on one stream, which is the common case. `communicates`: some of the
/// work is on a group's stream. `awaits`: values of earlier evaluations that the work needs.
fn submit_single(
    guard: MutexGuard<'_, ()>,
    (stream, communicates, awaits): (Stream, bool, Vec<Arc<Node>>),
    tape: Tape,
    sync: bool,
    profile: Option<Recorder>,
) -> Result<bool> {
    let Some(state) = stream::state(stream) else {
        tape.entries.iter().for_each(|e| e.node.release_claim());
        return Err(Error::Value(
            format!(
                "[eval] There is no {stream:?}. Use a stream that exists, as new_stream returns it."
            )
            .into(),
        ));
    };
    // Work that communicates may take any time, so another thread runs it, and the waiting thread
    // can be interrupted.
    let here = !communicates && awaits.is_empty() && (sync || submission::is_cheap(&tape, stream));
    if here && let Some(owner) = state.try_own() {
        drop(guard);
        let cut = interrupt::run(|| {
            deferred_deleters::job(|| match sync {
                true => repeated::run(tape, profile),
                false => run::keeping_failure(|| repeated::run(tape, profile)),
            });
        });
        drop(owner);
        deferred_deleters::release();
        return Ok(!cut);
    }
    let ordered = !awaits.is_empty() && beside::is_ordered(stream);
    let pushed = state.push_when(job(tape, sync, profile), jobs::when_there(awaits), ordered);
    drop(guard);
    match pushed {
        Ok(()) => state.throttle(),
        Err(stranded) => stranded.fail(),
    }
    deferred_deleters::release();
    Ok(true)
}

/// Runs tasks whose results fit in memory, and fails the others. `alone`: these are all tasks of
/// the evaluation, on one stream.
fn run_tasks(mut tasks: Vec<Task>, profile: Option<Recorder>, alone: bool) {
    oversized::refuse(&mut tasks);
    run::run(tasks, Notes::of(profile), alone);
}

/// Computes the nodes that an evaluation claimed on one stream.
fn run_tape(tape: Tape, profile: Option<Recorder>) {
    let composite = tape.composite;
    let tasks = plan(tape, profile);
    if composite && tasks.iter().any(Task::is_final) {
        interrupt::hold();
    }
    run_tasks(tasks, profile, true);
}

/// The work of a job: an evaluation on one stream, or a part of an evaluation.
trait Work: Send + 'static {
    fn run(self, profile: Option<Recorder>);
    /// The tasks of the work, in order to fail them.
    fn tasks(self) -> Vec<Task>;
}

impl Work for Vec<Task> {
    fn run(self, profile: Option<Recorder>) {
        run_tasks(self, profile, false);
    }

    fn tasks(self) -> Vec<Task> {
        self
    }
}

impl Work for Tape {
    fn run(self, profile: Option<Recorder>) {
        repeated::run(self, profile);
    }

    fn tasks(self) -> Vec<Task> {
        group_into_tasks(self)
    }
}

/// The job that computes a part of an evaluation, or fails it. If no thread waits for the work, the
/// stream keeps its first failure.
fn job(work: impl Work, sync: bool, profile: Option<Recorder>) -> stream::Job {
    // A submitting thread that does not wait continues to run, so leave its processor to it.
    let submitter = if sync { None } else { pool::submitter() };
    Box::new(move |ready| {
        let run = || match ready {
            Ok(()) => work.run(profile),
            Err(error) => run::fail(work.tasks(), error),
        };
        let run = || {
            deferred_deleters::job(|| match sync {
                true => run(),
                false => run::keeping_failure(run),
            });
        };
        pool::for_submitter(submitter, run);
    })
}

/// Submits work of several streams.
fn submit_split(
    guard: MutexGuard<'_, ()>,
    tasks: Vec<Task>,
    sync: bool,
    profile: Option<Recorder>,
) -> Result<()> {
    let (mut states, mut homeless, mut stranded) = (Vec::new(), Vec::new(), Vec::new());
    for jobs::Part { stream, tasks, awaits, ordered } in jobs::cut(tasks) {
        match stream::state(stream) {
            Some(state) => {
                let ready = jobs::when_there(awaits);
                stranded.extend(state.push_when(job(tasks, sync, profile), ready, ordered).err());
                states.push(state);
            }
            None => homeless.push((tasks, stream)),
        }
    }
    drop(guard);
    // Failing releases operands, so do it without the scheduler lock.
    stranded.into_iter().for_each(Stranded::fail);
    homeless.into_iter().for_each(|(job, stream)| {
        run::fail(job, Error::Value(format!("[eval] There is no {stream:?}. Use a stream that exists, as new_stream returns it.").into()));
    });
    states.iter().for_each(|s| s.throttle());
    deferred_deleters::release();
    Ok(())
}

/// The error for a placeholder of a transform, which has no value.
#[cold]
fn without_value(node: &Node) -> Error {
    if node.is_traced() {
        return Error::value(
            "eval",
            "Attempting to eval an array during function transformations like compile or vmap \
             is not allowed. Return it from the function, and evaluate it there.",
        );
    }
    let text = match node.op.stands_in() {
        Some(Transform::Vmap) => {
            "This array was made by a function that vmap called once for the whole batch, and has no value of its own. \
             Return it from the function."
        }
        _ => {
            "This array was made while a compiled function was traced, and has no value. Return it from the function in \
             lists, tuples or dictionaries: any other object, such as a dataclass, is no tree of arrays. Name containers \
             that the function changes as its inputs and outputs."
        }
    };
    Error::runtime("eval", text)
}

struct Claimed {
    tape: Tape,
    /// The stream, if all nodes are on one stream. Nodes on a group's stream are not considered.
    single: Option<Stream>,
    /// True if some nodes are on a group's stream.
    communicates: bool,
    /// Nodes whose values are made outside all streams, each with the device of its consumer.
    outside: Vec<(Arc<Node>, Option<Device>)>,
    /// With several groups: nodes of earlier evaluations that have no values yet. The work waits
    /// for them in its queue.
    awaits: Vec<Arc<Node>>,
}

/// Claims every lazy node that the arrays need. The caller must hold the scheduler lock.
fn claim(arrays: &[&Array]) -> Result<Claimed> {
    let mark = next_mark();
    let mut tape = Tape::new(mark, 0);
    let mut stack: SmallVec<[(Arc<Node>, bool); 8]> = SmallVec::new();
    let mut single: Option<Stream> = None;
    let (mut mixed, mut communicates) = (false, false);
    let mut outside = Vec::new();
    let mut awaits = Vec::new();
    let several = !may_share();
    for array in arrays.iter().rev() {
        stack.push((array.node().clone(), false));
    }
    while let Some((node, expanded)) = stack.pop() {
        if expanded {
            match single {
                None => single = Some(node.place.stream),
                Some(s) if s == node.place.stream => {}
                Some(s) => match beside::joint(s, node.place.stream) {
                    Some(joint) => (single, communicates) = (Some(joint), true),
                    None => mixed = true,
                },
            }
            tape.push(node);
            continue;
        }
        if node.is_done() {
            continue;
        }
        if node.op.is_given() {
            tape.entries.iter().for_each(|e| e.node.release_claim());
            stack.iter().filter(|(_, e)| *e).for_each(|(n, _)| n.release_claim());
            outside.iter().for_each(|(n, _): &(Arc<Node>, _)| n.release_claim());
            return Err(without_value(&node));
        }
        if !node.claim() {
            // This evaluation has claimed the node already, or an earlier evaluation has, and will
            // finish it.
            if several && node.mark.load(Ordering::Relaxed) != mark && !node.op.is_outside() {
                awaits.push(node);
            }
            continue;
        }
        if node.op.is_outside() {
            // A view does not move its operand, so it does not count as a consumer.
            let consumes =
                |(n, expanded): &&(Arc<Node>, bool)| *expanded && !n.op.forwards_operands();
            let consumer = stack.iter().rev().find(consumes).map(|(n, _)| n.place.stream.device);
            outside.push((node, consumer));
            continue;
        }
        node.mark.store(mark, Ordering::Relaxed);
        let base = stack.len();
        stack.push((node.clone(), true));
        node.with_inputs(|inputs| {
            let mut push = |input: &Arc<Node>| {
                if !input.is_done() {
                    stack.push((input.clone(), false));
                }
            };
            match inputs.len() > 1 && beside::communicates(&node) {
                // Visit the operand that is the group's previous operation first, so that this
                // operation starts early.
                true => inputs.iter().for_each(&mut push),
                false => inputs.iter().rev().for_each(&mut push),
            }
        });
        debug_assert!(stack.len() > base);
    }
    let single = single.filter(|_| !mixed);
    tape.set_stream(single);
    Ok(Claimed { tape, single, communicates, outside, awaits })
}

/// The locks of the scheduler and of the threads that wait for nodes, held during a fork.
type Held = (MutexGuard<'static, ()>, MutexGuard<'static, ()>);

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// Makes a fork safe: waits until no work runs, and prevents new work until the fork is over.
static FORK_HOOK: Hook = Hook {
    prepare: || {
        // No new evaluation starts. Running evaluations finish, and may need the scheduler once
        // more for that.
        FORKING.store(true, Ordering::SeqCst);
        let scheduler = loop {
            stream::synchronize_all();
            let guard = lock(&SCHEDULER);
            if stream::all_idle() {
                break guard;
            }
        };
        fork::keep(&HELD, (scheduler, hold_sleepers()));
    },
    parent: after_fork,
    child: after_fork,
};

fn after_fork() {
    drop(fork::take(&HELD));
    FORKING.store(false, Ordering::SeqCst);
}

/// Registers the fork hook when the first work is scheduled. The fork hook of devices and streams
/// is registered too.
#[inline]
fn register_fork_hook() {
    backend::registration::register_fork_hook();
    fork::register(ForkStage::Evaluator, &FORK_HOOK);
}

/// The device of the stream, for running work on it.
fn device_of(stream: Stream) -> Result<&'static backend::DeviceState> {
    devices::get(stream.device)
}
