//! Runs tasks one after the other on the calling thread. Never unwinds: errors and panics become
//! the outcome of the nodes.

use super::{
    beside, called,
    described::{self, Note, Notes},
    fallback,
    fused_program::{Anchored, FusedProgram},
    grouping::{Epilogue, Task, single},
    lower::Entry,
    numbers,
};
use crate::{
    array::Array,
    backend::{Dispatch, Exec, Operand},
    dtype::Dtype,
    error::{Error, Result},
    node::{Inputs, Node, Value},
    ops::{
        Call,
        create::fill::broadcast_constant,
        rules::multi_output::{MultiOutput, OutputOf},
        shape::view::View,
    },
    profile::Recorder,
    scalar::Scalar,
    shape::{self, Shape, Show},
    stream::{self, Stream},
};
use smallvec::SmallVec;
use std::any::Any;
use std::borrow::Cow;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use ultramarine_runtime::{backend::executable, interrupt};

/// Runs tasks in order, with notes if requested. `alone`: these are all tasks of the evaluation,
/// and all are on one stream, except for those that communicate.
pub(super) fn run(mut tasks: Vec<Task>, notes: Notes, alone: bool) {
    let mut current: Option<(Stream, Exec)> = None;
    let computations = beside::computations(&tasks);
    let mut first = true;
    // By reference, because moving a task takes as long as planning the smallest one.
    for task in &mut tasks {
        // Not before the first task, because reading the clock would slow down the smallest
        // evaluations.
        if interrupt::is_cut() || (!first && interrupt::is_due()) {
            give_up(task);
            task.members.clear();
            continue;
        }
        first = false;
        let stream = computations.map_or(task.stream(), |all| beside::stream_of(task, all));
        if current.as_ref().is_none_or(|(s, _)| *s != stream) {
            match super::device_of(stream).and_then(|d| Exec::new(d, stream)) {
                Ok(exec) => {
                    if notes.profile.is_some() {
                        exec.set_profiled();
                    }
                    if alone && computations.is_none_or(|all| all == stream) {
                        exec.set_alone();
                    }
                    current = Some((stream, exec));
                }
                Err(error) => {
                    fail(vec![task.take()], error);
                    continue;
                }
            }
        }
        if let Some((_, exec)) = &current {
            run_task(exec, task, notes);
        }
        // Free memory that no other task needs before the next task runs.
        task.members.clear();
    }
}

/// Runs constants, then a task that reads them, then views of its result. The last view comes first
/// in the list. All nodes are claimed.
pub(super) fn run_alone(mut task: Task, constants: Inputs, views: &[Arc<Node>]) {
    let stream = task.stream();
    let alone = |node: &Arc<Node>| single(Entry::new(node.clone()));
    let exec = match super::device_of(stream).and_then(|device| Exec::new(device, stream)) {
        Ok(exec) => exec,
        Err(error) => {
            let tasks = constants.iter().map(alone).chain([task]);
            return fail(tasks.chain(views.iter().rev().map(alone)).collect(), error);
        }
    };
    constants.iter().for_each(|node| run_task(&exec, &mut alone(node), Notes::of(None)));
    // Drop these references, because the task may overwrite the constants' memory.
    drop(constants);
    run_task(&exec, &mut task, Notes::of(None));
    task.members.clear();
    for view in views.iter().rev() {
        if interrupt::is_cut() {
            view.release_claim();
        } else {
            run_view(&exec, view);
        }
    }
}

/// Runs a view of an operand that has a value.
fn run_view(exec: &Exec, node: &Arc<Node>) {
    let value = node.with_inputs(|inputs| {
        let operand = inputs.first()?;
        node.op.get::<View>()?.of_operand(operand, node)
    });
    match value {
        Some(value) => {
            drop(node.take_inputs());
            node.finish(Ok(value));
        }
        None => run_task(exec, &mut single(Entry::new(node.clone())), Notes::of(None)),
    }
}

thread_local! {
    /// True while this thread runs work that no other thread waits for.
    static KEEPS: Cell<bool> = const { Cell::new(false) };
}

/// Runs a job whose first failure is kept by its stream.
pub(super) fn keeping_failure(job: impl FnOnce()) {
    KEEPS.set(true);
    job();
    KEEPS.set(false);
}

/// Fails the nodes of all tasks with the error.
pub(super) fn fail(tasks: Vec<Task>, error: Error) {
    let error = Arc::new(error);
    for task in tasks {
        keep(task.stream(), &error);
        for member in &task.members {
            member.entry.release_inputs();
            member.entry.node.finish(Err(error.clone()));
        }
    }
}

/// Makes the stream keep the failure if no thread waits for the work. Call it before the nodes are
/// done, because a waiting thread that raises the failure removes it from the stream. Failed parts
/// of a decomposition are not kept: the decomposition waits for its parts, and if one fails, it
/// tries another candidate, or fails itself.
pub(super) fn keep(stream: Stream, error: &Arc<Error>) {
    if KEEPS.get()
        && !fallback::is_nested()
        && let Some(state) = stream::state(stream)
    {
        state.keep_failure(error.clone());
    }
}

/// Makes the nodes of a task that was not finished lazy again.
fn give_up(task: &Task) {
    for member in task.members.iter().filter(|m| !m.entry.node.is_done()) {
        member.entry.node.release_claim();
    }
}

/// The error of a task that was not finished. No user sees it, because the evaluation is given up.
pub(super) fn interrupted() -> Error {
    Error::Runtime("The evaluation was interrupted. Evaluate the arrays again.".into())
}

fn run_task(exec: &Exec, task: &mut Task, notes: Notes) {
    exec.op.set(task.root().op.name());
    exec.deterministic.set(task.root().place.deterministic);
    let outcome = interrupt::task(|| run_members(exec, task, notes));
    if interrupt::is_cut() {
        return give_up(task);
    }
    let error = match outcome {
        Ok(Ok(())) => return,
        Ok(Err(error)) => named(error, task.root()),
        Err(panic) => panicked(task.root(), &*panic),
    };
    fail(vec![task.take()], error);
}

/// Adds the operation to an out-of-memory error, because allocators and backends know only the
/// size.
#[cold]
fn named(error: Error, node: &Node) -> Error {
    match error {
        Error::Memory(text) if !text.starts_with('[') => Error::Memory(text.map(|text| {
            format!(
                "[{}] for a result of shape {} and {}: {text}",
                node.op.name(),
                Show(&node.shape),
                node.dtype
            )
        })),
        error => error,
    }
}

fn run_members(exec: &Exec, task: &mut Task, notes: Notes) -> std::thread::Result<Result<()>> {
    let anchored = matches!(task.epilogue, Some(Epilogue::Anchor));
    match run_whole(exec, task, notes) {
        Ok(Ok(false)) if anchored => {}
        outcome => return outcome.map(|outcome| outcome.map(drop)),
    }
    // Run the program first, then its anchor.
    let Some(anchor) = task.detach_anchor() else { return Ok(Ok(())) };
    let mut outcome = run_members(exec, task, notes);
    task.members.push(anchor);
    if let (Ok(Ok(())), false, Some(anchor)) = (&outcome, interrupt::is_cut(), task.members.last())
    {
        outcome = catch_unwind(AssertUnwindSafe(|| run_noted(exec, &anchor.entry, notes)));
    }
    outcome
}

/// Runs one op by itself, with a note if requested.
fn run_noted(exec: &Exec, entry: &Entry, notes: Notes) -> Result<()> {
    let noted = notes.any() && !entry.work().op.is::<OutputOf>();
    let note = noted.then(|| notes.begin(exec, described::single(exec, entry)));
    run_single(exec, entry, notes.profile).inspect(|()| note.into_iter().for_each(Note::end))
}

/// Runs a task. `Ok(false)` if the task has an anchor and the backend does not run both together.
fn run_whole(exec: &Exec, task: &Task, notes: Notes) -> std::thread::Result<Result<bool>> {
    let single = |entry: &Entry| run_noted(exec, entry, notes);
    let fused = || {
        let note = notes.any().then(|| notes.begin(exec, described::program(task)));
        run_fused(exec, task).inspect(|taken| {
            note.into_iter().filter(|_| *taken).for_each(Note::end);
        })
    };
    catch_unwind(AssertUnwindSafe(|| {
        check_dtypes(exec, task)?;
        if !task.program {
            return single(&task.members[0].entry).map(|()| true);
        }
        match fused() {
            Ok(true) => return Ok(true),
            Ok(false) => {}
            // The backend refused a kernel that the program needs for its operands.
            Err(_) if exec.take_refusal() => {}
            Err(error) => return Err(error),
        }
        if matches!(task.epilogue, Some(Epilogue::Anchor)) {
            return Ok(false);
        }
        // The backend does not take the program, so run one op at a time.
        task.members.iter().try_for_each(|m| single(&m.entry)).map(|()| true)
    }))
}

/// The message of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> &str {
    ultramarine_abi::helper::panic_message(panic).unwrap_or("unknown panic")
}

/// The error of a node whose evaluation panicked.
pub(super) fn panicked(node: &Node, panic: &(dyn Any + Send)) -> Error {
    Error::runtime(node.op.name(), format!("panicked: {}", panic_text(panic)))
}

/// Checks that the device's memory can hold all dtypes of a task.
fn check_dtypes(exec: &Exec, task: &Task) -> Result<()> {
    let device = exec.device;
    if device.is_host() {
        return Ok(());
    }
    let check = |node: &Node, dtype: Dtype| match device.stores(dtype) {
        true => Ok(()),
        false => Err(Error::value(
            node.op.name(),
            format!(
                "{dtype} is not supported on {} (backend {}). Use another dtype or a stream of \
                 the CPU.",
                device.device, device.backend
            ),
        )),
    };
    task.members.iter().try_for_each(|member| {
        let (node, work) = (&member.entry.node, member.entry.work());
        if work.op.forwards_operands() {
            return check(node, node.dtype);
        }
        match work.op.get::<MultiOutput>() {
            Some(multi) => multi.results().iter().try_for_each(|r| check(node, r.1))?,
            None => check(node, node.dtype)?,
        }
        work.with_inputs(|inputs| inputs.iter().try_for_each(|i| check(node, i.dtype)))
    })
}

/// Waits for an operand and copies it to the device if necessary.
pub(super) fn operand(exec: &Exec, node: &Arc<Node>) -> Result<Value> {
    exec.local(&Operand { value: value_of(node)?, shape: &node.shape, dtype: node.dtype })
}

/// Waits for an operand, on whatever device it is.
pub(super) fn value_of(node: &Arc<Node>) -> Result<&Value> {
    outcome(node)?.as_ref().map_err(|error| match &**error {
        poisoned @ Error::Poisoned { .. } => poisoned.clone(),
        _ => Error::Poisoned { op: node.op.name(), cause: error.clone() },
    })
}

/// Waits inside of a job for a node that another evaluation has claimed.
pub(super) fn await_node(node: &Node) -> Result<()> {
    match node.wait(interrupt::is_due) {
        true => Ok(()),
        false => Err(interrupted()),
    }
}

/// Waits for the outcome of a node.
fn outcome(node: &Arc<Node>) -> Result<&Result<Value, Arc<Error>>> {
    loop {
        match node.outcome() {
            Some(outcome) => return Ok(outcome),
            None if node.is_claimed() => await_node(node)?,
            // Another evaluation gave the node up after all.
            None => super::submit(&Array::from_node(node.clone()))?,
        }
    }
}

/// Returns true if an evaluated operand's memory may be overwritten, because the only holders are
/// `edges` known references and one known clone of its value. A `clone` in other memory is a
/// mirror, which is never overwritten: its holders do not tell how many holders the operand's own
/// memory has.
fn is_unshared(node: &Arc<Node>, edges: usize, clone: &Value) -> bool {
    let sole = Arc::strong_count(node) == edges && node.handles.load(Ordering::Acquire) == 0;
    let alone = |v: &Value| std::ptr::eq(&*v.buffer, &*clone.buffer) && v.buffer.is_unshared(2);
    sole && !node.is_traced() && node.value().is_some_and(alone)
}

/// Runs one op by itself.
fn run_single(exec: &Exec, entry: &Entry, profile: Option<Recorder>) -> Result<()> {
    let (node, work) = (&entry.node, entry.work());
    if let Some(multi) = work.op.get::<MultiOutput>()
        && let Some(graph) = multi.rules().subgraph()
    {
        return called::run(exec, entry, (multi, graph), profile);
    }
    let output = work.op.get::<OutputOf>();
    // Take the operands that only this operation needs, so that its nodes do not count as
    // references.
    let inputs = entry.take_inputs();
    let here = |i| match output {
        // The error belongs to this operation, and not to an operation that needed the operand.
        Some(_) => outcome(i)?.clone().map_err(|e| Error::clone(&e)),
        None if work.op.forwards_operands() => value_of(i).cloned(),
        None => operand(exec, i),
    };
    let mut values: SmallVec<[Value; 3]> = SmallVec::new();
    let there = inputs.iter().try_for_each(|input| {
        values.push(here(input)?);
        Ok(())
    });
    if let Err(error) = there {
        // The wait was interrupted, so leave the node as it was.
        node.restore(inputs);
        return Err(error);
    }
    let kept = node.is_traced();
    let mut donatable = 0u32;
    let mut descs: SmallVec<[(&[usize], _); 3]> = SmallVec::new();
    for (i, input) in inputs.iter().enumerate() {
        descs.push((&input.shape[..], input.dtype));
        let edges = inputs.iter().filter(|n| Arc::ptr_eq(n, input)).count();
        if !kept && i < 32 && edges == 1 && is_unshared(input, edges, &values[i]) {
            donatable |= 1 << i;
        }
    }
    let call =
        Call { inputs: &values, descs: &descs, shape: &node.shape, dtype: node.dtype, donatable };
    let evaluate = || match work.op.rules() {
        _ if let Some(output) = output => placed(exec, node, output.value(&inputs[0])?),
        Some(rules) => match constant(node, || rules.eval(exec, &call)) {
            Err(_) if exec.take_refusal() => fallback::run(exec, work, &inputs, &values),
            // A view stays on its operand's device, unless a user who chose the device holds the
            // view.
            Ok(value) if node.place.firm && node.handles.load(Ordering::Acquire) > 0 => {
                placed(exec, node, value)
            }
            outcome => outcome,
        },
        None => Err(Error::runtime("eval", "a stand-in has no value")),
    };
    let outcome = evaluate();
    if interrupt::is_cut() {
        drop(descs);
        node.restore(inputs);
        return Err(interrupted());
    }
    let value = outcome?;
    exec.settle()?;
    count(exec, entry);
    // Let go of the operands before the result is published, because a thread that sees the result
    // may rely on that.
    drop(descs);
    drop((values, inputs));
    node.finish(Ok(value));
    Ok(())
}

/// Evaluates a node. If it is a constant, notes the command that writes its number.
fn constant(node: &Arc<Node>, evaluate: impl FnOnce() -> Result<Value>) -> Result<Value> {
    let before = if node.op.is_constant() { executable::recorded() } else { None };
    let value = evaluate()?;
    if let Some(before) = before {
        numbers::note_written(node, before);
    }
    Ok(value)
}

/// Copies a node's value to its device, if it is on another one.
fn placed(exec: &Exec, node: &Node, value: Value) -> Result<Value> {
    match value.buffer.device() == exec.device.device {
        true => Ok(value),
        false => exec.local(&Operand { value: &value, shape: &node.shape, dtype: node.dtype }),
    }
}

/// Counts an operation that ran by itself, under its name in the graph.
fn count(exec: &Exec, entry: &Entry) {
    if fallback::is_nested() || entry.work().op.is::<OutputOf>() {
        return;
    }
    match entry.dispatch() {
        Some(Dispatch::Native) => exec.count_native(entry.node.op.name()),
        Some(other) => exec.count(entry.node.op.name(), other),
        None => {}
    }
}

/// Runs a task as one program. `Ok(false)` if the backend does not take the program.
fn run_fused(exec: &Exec, task: &Task) -> Result<bool> {
    let Some(mut program) = FusedProgram::new(task) else { return Ok(false) };
    let root = task.root();
    // Here and below, push to the lists: `extend` would cost a small program more than the lists'
    // entries do.
    let space: Shape = match task.epilogue {
        Some(_) => task.reduced().map(|x| Shape::from_slice(&x.shape)).unwrap_or_default(),
        None => Shape::from_slice(&root.shape),
    };
    let (mut values, mut dtypes): (SmallVec<[Value; 4]>, SmallVec<[Dtype; 4]>) = Default::default();
    for (node, _) in &program.inputs {
        values.push(operand(exec, node)?);
        dtypes.push(node.dtype);
    }
    if task.epilogue.is_some() && values.is_empty() {
        // No operand has the iteration shape, so add a dummy operand that has it.
        values.push(broadcast_constant(exec, Scalar::from_i64(Dtype::Uint8, 0), &space)?);
        dtypes.push(Dtype::Uint8);
        program.shift_constants();
    }
    let anchored = match task.epilogue {
        Some(Epilogue::Anchor) => match Anchored::new(exec, task, &space)? {
            Some(anchored) => Some(anchored),
            None => return Ok(false),
        },
        _ => None,
    };
    // Outputs: the epilogue's first, then those of the written instructions.
    let mut nodes: SmallVec<[&Arc<Node>; 2]> = SmallVec::new();
    if task.epilogue.is_some() {
        nodes.push(root);
    }
    task.written().for_each(|i| nodes.push(&task.members[i].entry.node));
    let mut outputs: SmallVec<[Value; 2]> = SmallVec::new();
    for (k, node) in nodes.iter().enumerate() {
        // True for the output of the last instruction. It may also be a reduction's operand that is
        // written while it is read.
        let last = k + 1 == nodes.len()
            && (task.epilogue.is_none()
                || task.written().last().is_some_and(|i| i + 1 == task.bodies()));
        let taken = if last { donated(exec, &program, &values, node, task) } else { None };
        match taken {
            Some(value) => outputs.push(exec.donate(&value)),
            None => outputs.push(exec.alloc(&node.shape, node.dtype)?),
        }
    }
    let mut ins: SmallVec<[Operand<'_>; 4]> = SmallVec::new();
    for (value, dtype) in values.iter().zip(&dtypes) {
        ins.push(Operand { value, shape: &space, dtype: *dtype });
    }
    let (mut key, mut numbers) = (program.key(), Cow::Borrowed(&program.constants[..]));
    if let Some(anchored) = &anchored {
        ins.extend(anchored.operands(&space));
        anchored.extend_key(&mut key);
        numbers.to_mut().extend_from_slice(anchored.scalars());
    }
    let anchor = anchored.as_ref().map(Anchored::to_abi);
    let mut outs: SmallVec<[Operand<'_>; 2]> = SmallVec::new();
    for (value, n) in outputs.iter().zip(&nodes) {
        outs.push(Operand { value, shape: &n.shape, dtype: n.dtype });
    }
    let taken = exec.run_fused(&program.to_abi(), anchor.as_ref(), key, &ins, &outs, &numbers)?;
    drop((ins, outs, numbers));
    drop(anchored);
    if !taken {
        return Ok(false);
    }
    if interrupt::is_cut() {
        return Err(interrupted());
    }
    exec.settle()?;
    numbers::note(task, &program);
    let counted = if fallback::is_nested() { 0 } else { task.members.len() };
    let entries = || task.members[..counted].iter().map(|m| &m.entry);
    let named = |dispatch| {
        let those = entries().filter(move |e| e.dispatch() == Some(dispatch));
        those.map(|e| e.node.op.name())
    };
    exec.count_fused(task.members.len(), named(Dispatch::Native));
    named(Dispatch::Decomposed).for_each(|name| exec.count(name, Dispatch::Decomposed));
    for member in &task.members {
        member.entry.release_inputs();
        if !member.materialised {
            member.entry.node.release_claim();
        }
    }
    drop((values, program));
    for (node, value) in nodes.iter().zip(outputs) {
        node.finish(Ok(value));
    }
    Ok(true)
}

/// An operand's memory for the output of the last instruction, if nothing else needs it. Only the
/// last instruction may overwrite an operand, because nothing is read after it.
fn donated(
    exec: &Exec,
    program: &FusedProgram,
    values: &[Value],
    node: &Arc<Node>,
    task: &Task,
) -> Option<Value> {
    if task.members.iter().any(|m| m.entry.node.is_traced()) {
        return None;
    }
    let found = program.inputs.iter().zip(values).find(|((input, edges), value)| {
        input.dtype.size() == node.dtype.size()
            && input.shape == node.shape
            && value.offset == 0
            && value.buffer.bytes() == node.bytes()
            && shape::is_contiguous(&input.shape, &value.strides)
            // The members' edges, and the program's own reference.
            && is_unshared(input, edges + 1, value)
    });
    if let Some((_, value)) = found {
        return Some(value.clone());
    }
    // The program carries the number of a constant, and does not read the constant's memory.
    program.spare().find_map(|(constant, edges)| {
        let value = constant.value()?.clone();
        let fits = value.buffer.bytes() == node.bytes()
            && value.buffer.device() == exec.device.device
            && is_unshared(constant, edges + 1, &value);
        let strides = shape::contiguous_strides(&node.shape);
        fits.then(|| Value { offset: 0, strides, ..value })
    })
}

impl Call<'_> {
    /// Runs an elementwise op. Its result takes over the memory of an operand if possible.
    pub(crate) fn elementwise<A: Copy>(&self, exec: &Exec, op: u32, attrs: &A) -> Result<Value> {
        self.run_into(exec, self.memory(exec)?, op, attrs, &[])
    }

    /// Memory for the result of an op that reads each element no later than it writes it: an
    /// operand's memory if it may be overwritten, otherwise new memory.
    pub(crate) fn memory(&self, exec: &Exec) -> Result<Value> {
        let reusable = (0..self.inputs.len().min(32)).find(|i| {
            let (value, (from, dtype)) = (&self.inputs[*i], self.descs[*i]);
            self.donatable >> i & 1 == 1
                && from == self.shape
                && dtype.size() == self.dtype.size()
                && value.offset == 0
                && value.buffer.bytes() == shape::size(from) * dtype.size()
                && shape::is_contiguous(from, &value.strides)
        });
        match reusable {
            Some(i) => Ok(exec.donate(&self.inputs[i])),
            None => exec.alloc(self.shape, self.dtype),
        }
    }
}
