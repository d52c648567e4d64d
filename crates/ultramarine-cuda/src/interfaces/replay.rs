//! `ultramarine.replay/2`: recordings are CUDA graphs. A graph is made at the first replay, when the memory is
//! known. A later replay updates the nodes of the commands that changed. If the nodes do not fit, the graph is
//! made anew.

use crate::context::{self, Context};
use crate::graph::{Graph, Node, Writer};
use crate::launch::{Device, Job, View, joins};
use crate::memory::Buffer;
use crate::streams::Stream;
use crate::sys::driver::{EventHandle, code};
use core::ops::Range;
use std::sync::Arc;
use ultramarine_abi::helper::{CommandRef, RecordedCommands, Recorder, Result, replay_table};
use ultramarine_abi::interface::replay::ReplayInterface;

/// The interface.
pub static TABLE: ReplayInterface = replay_table::<Device>();

/// Maximum number of operations in a recording's name.
const NAMED: usize = 4;

/// A recording of commands. The first replay makes its [`Graph`]; later replays update and launch
/// it.
pub struct Recording {
    /// Its name in errors.
    name: Arc<str>,
    graph: Option<Drawn>,
    /// Graphs that may still run. Each is kept until its event completes.
    retired: Vec<Retired>,
}

/// A graph, and the nodes of each command.
struct Drawn {
    graph: Graph,
    /// For commands that run together, the first command has all the nodes.
    nodes: Vec<Vec<Node>>,
    /// For each command, the range of commands that it runs together with.
    together: Vec<Range<usize>>,
}

struct Retired {
    _drawn: Drawn,
    context: Arc<Context>,
    over: EventHandle,
}

// SAFETY: handles of the driver's, used by one thread at a time.
unsafe impl Send for Retired {}

impl Retired {
    fn is_over(&self) -> bool {
        // SAFETY: an event of this context, which was recorded after the graph's last launch.
        let result = unsafe { (self.context.driver().event_query)(self.over) };
        result != code::NOT_READY
    }
}

impl Drop for Retired {
    fn drop(&mut self) {
        if !context::forked() {
            self.context.give_event(self.over);
        }
    }
}

/// "3 recorded operations (copy, exp of float32)".
fn name_of(commands: &RecordedCommands<Device>) -> Result<Arc<str>> {
    let mut names: Vec<Arc<str>> = Vec::new();
    for i in 0..commands.len() {
        let name = commands.command(i)?.plan()?.name();
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let more = if names.len() > NAMED { ", ..." } else { "" };
    names.truncate(NAMED);
    let listed = names.join(", ");
    Ok(format!("one of {} recorded operations ({listed}{more})", commands.len()).into())
}

/// The commands of a range.
fn listed<'a>(
    commands: &'a RecordedCommands<Device>,
    range: &Range<usize>,
) -> Result<Vec<CommandRef<'a, Device>>> {
    range.clone().map(|i| commands.command(i)).collect()
}

/// For each command, the range of consecutive commands that run as one launch.
fn together(device: &Device, commands: &RecordedCommands<Device>) -> Result<Vec<Range<usize>>> {
    let mut all: Vec<Range<usize>> = Vec::with_capacity(commands.len());
    let mut start = 0;
    while start < commands.len() {
        let first = commands.command(start)?;
        let (plan, job) = (first.plan()?, Job::of(device, None, &first)?);
        let kind = plan.kind(&job);
        let mut jobs = vec![job];
        while let Some(kind) = kind
            && start + jobs.len() < commands.len()
        {
            let next = commands.command(start + jobs.len())?;
            let job = Job::of(device, None, &next)?;
            if !joins(&jobs, (plan, kind), (next.plan()?, &job)) {
                break;
            }
            jobs.push(job);
        }
        if jobs.len() == 1 && start + 1 < commands.len() && plan.leads(&jobs[0]) {
            let next = commands.command(start + 1)?;
            let job = Job::of(device, None, &next)?;
            if next.plan()?.follows(&job, (plan, &jobs[0])) {
                jobs.push(job);
            }
        }
        let end = start + jobs.len();
        all.extend((start..end).map(|_| start..end));
        start = end;
    }
    Ok(all)
}

/// Enqueues one command, or several that run together.
fn record(
    device: &Device,
    commands: &RecordedCommands<Device>,
    range: &Range<usize>,
    writer: &Writer<'_>,
) -> Result<()> {
    let first = commands.command(range.start)?;
    let plan = first.plan()?;
    let last = commands.command(range.end - 1)?;
    match range.len() {
        1 => plan.record(device, writer, &first, commands.workspace_offset(range.start)),
        2 if plan.leads(&Job::of(device, None, &first)?) => {
            last.plan()?.record_behind(device, writer, (plan, &first), &last)
        }
        _ => plan.record_together(device, writer, &listed(commands, range)?),
    }
}

/// Makes the graph of commands. The context is current.
fn draw(device: &Device, commands: &RecordedCommands<Device>) -> Result<Drawn> {
    let mut written = Vec::with_capacity(commands.len());
    for i in 0..commands.len() {
        let command = commands.command(i)?;
        for output in 0..command.n_outputs() {
            written.push(View::of(&command.output(output)?)?.range());
        }
    }
    let together = together(device, commands)?;
    let (context, capture) = (&device.context, &device.capture);
    let (graph, nodes) = Graph::new(context, capture, commands.len(), &written, |i, writer| {
        match together[i].start == i {
            true => record(device, commands, &together[i], writer),
            false => Ok(()),
        }
    })?;
    Ok(Drawn { graph, nodes, together })
}

impl Drawn {
    /// Updates the nodes of commands that changed; returns whether they fit.
    fn change(&self, device: &Device, commands: &RecordedCommands<Device>) -> Result<bool> {
        let mut last = None;
        for i in commands.changed() {
            let Some(range) = self.together.get(*i as usize) else { return Ok(false) };
            if last.replace(range.start) == Some(range.start) {
                continue;
            }
            let nodes = self.nodes.get(range.start).map_or(&[][..], Vec::as_slice);
            let fits = self.are_apart(device, commands, range)?
                && self.graph.change(&device.capture, nodes, |writer| {
                    record(device, commands, range, writer)
                })?;
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns true if commands may still run together with their current memory.
    fn are_apart(
        &self,
        device: &Device,
        commands: &RecordedCommands<Device>,
        range: &Range<usize>,
    ) -> Result<bool> {
        if range.len() == 1 {
            return Ok(true);
        }
        let listed = listed(commands, range)?;
        let jobs = listed
            .iter()
            .map(|command| Job::of(device, None, command))
            .collect::<Result<Vec<_>>>()?;
        let (first, last) = (listed[0].plan()?, listed[listed.len() - 1].plan()?);
        if first.leads(&jobs[0]) {
            return Ok(last.follows(&jobs[1], (first, &jobs[0])));
        }
        let each = jobs.iter().enumerate();
        Ok(each.clone().all(|(i, job)| jobs[..i].iter().all(|other| other.is_apart(job))))
    }
}

impl Recording {
    /// Keeps a graph until the stream has completed the work enqueued so far, which includes the
    /// graph's last launch.
    fn retire(&mut self, device: &Device, stream: &Stream, drawn: Drawn) -> Result<()> {
        self.retired.retain(|retired| !retired.is_over());
        let (driver, over) = (device.driver, device.context.take_event()?);
        let context = device.context.clone();
        self.retired.push(Retired { _drawn: drawn, context, over });
        // SAFETY: both are of this context.
        unsafe { context::failure::cuda!(driver.event_record(over, stream.handle())) }
    }
}

impl Recorder for Device {
    type Recording = Recording;

    fn place(&self, buffer: &Buffer) -> u64 {
        buffer.address()
    }

    fn record_commands(&self, commands: &RecordedCommands<Self>) -> Result<Recording> {
        self.context.usable()?;
        Ok(Recording { name: name_of(commands)?, graph: None, retired: Vec::new() })
    }

    fn replay(
        &self,
        stream: Option<&Stream>,
        commands: &RecordedCommands<Self>,
        recording: &mut Recording,
    ) -> Result<()> {
        let _entered = self.enter()?;
        let stream = self.stream_or_default(stream);
        let fits = match &recording.graph {
            Some(drawn) => drawn.change(self, commands)?,
            None => false,
        };
        if !fits {
            let drawn = draw(self, commands)?;
            if let Some(former) = recording.graph.replace(drawn) {
                recording.retire(self, stream, former)?;
            }
        }
        let Some(drawn) = &recording.graph else { return Ok(()) };
        if drawn.nodes.iter().all(Vec::is_empty) {
            return Ok(());
        }
        stream.log().push(&recording.name);
        drawn.graph.launch(stream)?;
        if context::blocking() {
            stream.drain()?;
        }
        Ok(())
    }
}
