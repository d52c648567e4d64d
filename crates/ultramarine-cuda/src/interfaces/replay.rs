//! `ultramarine.replay/2`: recordings are graphs of the driver, made at the first replay, when their memory is
//! known. A replay gives new parameters to the nodes of the commands that changed, and makes the graph anew
//! where they do not fit.

use crate::context::{self, Context};
use crate::graph::{Graph, Node};
use crate::launch::{Device, View};
use crate::memory::Buffer;
use crate::streams::Stream;
use crate::sys::driver::{EventHandle, code};
use std::sync::Arc;
use ultramarine_abi::helper::{RecordedCommands, Recorder, Result, replay_table};
use ultramarine_abi::interface::replay::ReplayInterface;

/// The interface.
pub static TABLE: ReplayInterface = replay_table::<Device>();

/// Operations that the name of a recording has at most.
const NAMED: usize = 4;

/// A recording: its graph, once it was replayed.
pub struct Recording {
    /// Its name in errors.
    name: Arc<str>,
    graph: Option<Drawn>,
    /// Graphs that may still run, each until an event.
    retired: Vec<Retired>,
}

/// A graph with the nodes of each command.
struct Drawn {
    graph: Graph,
    nodes: Vec<Vec<Node>>,
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
        // SAFETY: an event of this context, which was recorded behind the graph's last launch.
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

/// Makes the graph of commands. The context is current.
fn draw(device: &Device, commands: &RecordedCommands<Device>) -> Result<Drawn> {
    let mut written = Vec::with_capacity(commands.len());
    for i in 0..commands.len() {
        let command = commands.command(i)?;
        for output in 0..command.n_outputs() {
            written.push(View::of(&command.output(output)?)?.range());
        }
    }
    let (context, capture) = (&device.context, &device.capture);
    let (graph, nodes) = Graph::new(context, capture, commands.len(), &written, |i, writer| {
        let command = commands.command(i)?;
        let workspace = commands.workspace_offset(i);
        command.plan()?.record(device, writer, &command, workspace)
    })?;
    Ok(Drawn { graph, nodes })
}

impl Drawn {
    /// Changes the nodes of commands that changed; whether they fit.
    fn change(&self, device: &Device, commands: &RecordedCommands<Device>) -> Result<bool> {
        for i in commands.changed() {
            let at = *i as usize;
            let command = commands.command(at)?;
            let (plan, workspace) = (command.plan()?, commands.workspace_offset(at));
            let nodes = self.nodes.get(at).map_or(&[][..], Vec::as_slice);
            let fits = self.graph.change(&device.capture, nodes, |writer| {
                plan.record(device, writer, &command, workspace)
            })?;
            if !fits {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Recording {
    /// Keeps a graph until the stream has passed what it was given, which its last launch is before.
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
