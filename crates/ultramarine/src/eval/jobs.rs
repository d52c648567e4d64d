//! Divides an evaluation on several streams into jobs.
//!
//! With one group of processes, consecutive tasks of a stream form a job, and the jobs of a stream
//! run in order. With several groups, this order could deadlock: a stream that waits for an
//! operation of one group may delay the operand of another group's operation, for which the other
//! processes wait. Therefore tasks form a job if they depend on the same operations of groups. The
//! *clock* of a job has, for each group, the number of the last operation that the job depends on.
//! A job runs when its operands have values, and later jobs may pass it until then.
//!
//! If a device carries out the operations, operands have values as soon as the work is submitted to
//! the device, whose stream then waits. In this case the waiting jobs of a stream stay in order.
//! They are ordered by the longest chain of operations that each job depends on. This order depends
//! on the graph alone, so it is equal in processes that evaluate equal graphs in different orders.

use super::beside;
use super::grouping::{Member, Task};
use crate::node::Node;
use crate::stream::{self, Stream};
use smallvec::{SmallVec, smallvec};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A job that is not queued yet.
pub(super) struct Part {
    pub stream: Stream,
    pub tasks: Vec<Task>,
    /// Values of other jobs that this job needs. Empty if the job itself waits for them.
    pub awaits: Vec<Arc<Node>>,
    /// If true, the job may not pass earlier jobs of the stream for which this is true too.
    pub ordered: bool,
}

/// The condition that the nodes have values or are lazy again.
pub(super) fn when_there(awaits: Vec<Arc<Node>>) -> Option<stream::Ready> {
    match awaits.is_empty() {
        true => None,
        false => Some(Box::new(move || awaits.iter().all(|node| node.is_over()))),
    }
}

/// Cuts tasks into jobs.
pub(super) fn cut(tasks: Vec<Task>) -> Vec<Part> {
    match beside::may_share() {
        true => consecutive(tasks),
        false => by_clocks(tasks),
    }
}

fn consecutive(tasks: Vec<Task>) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    for task in tasks {
        let stream = task.stream();
        match parts.last_mut() {
            Some(part) if part.stream == stream => part.tasks.push(task),
            _ => {
                let (tasks, awaits) = (vec![task], Vec::new());
                parts.push(Part { stream, tasks, awaits, ordered: false });
            }
        }
    }
    parts
}

/// The stream of a group, by its index, or a node of an earlier evaluation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Source {
    Group(u32),
    Node(*const Node),
}

/// The last operation of each source that a task depends on, in the order of sources.
type Clock = SmallVec<[(Source, u32); 4]>;

/// Index of a clock in [`Clocks`].
type Id = u32;

/// All clocks of an evaluation. Each has the length of the longest chain of groups' operations that
/// it depends on. The first clock is that of tasks that depend on no such operation.
struct Clocks {
    all: Vec<(Clock, u32)>,
    ids: HashMap<Clock, Id>,
    joined: HashMap<(Id, Id), Id>,
}

impl Clocks {
    fn new() -> Clocks {
        let all = vec![(Clock::new(), 0)];
        Clocks { all, ids: HashMap::from([(Clock::new(), 0)]), joined: HashMap::new() }
    }

    fn id(&mut self, clock: Clock, level: u32) -> Id {
        if let Some(id) = self.ids.get(&clock) {
            return *id;
        }
        let id = self.all.len() as Id;
        self.ids.insert(clock.clone(), id);
        self.all.push((clock, level));
        id
    }

    /// The clock of a task that depends on both.
    fn join(&mut self, a: Id, b: Id) -> Id {
        let (a, b) = (a.min(b), a.max(b));
        if a == b || a == 0 {
            return b;
        }
        if let Some(id) = self.joined.get(&(a, b)) {
            return *id;
        }
        let ((first, x), (second, y)) = (&self.all[a as usize], &self.all[b as usize]);
        let level = *x.max(y);
        let mut clock = first.clone();
        for (source, number) in second {
            match clock.binary_search_by_key(source, |entry| entry.0) {
                Ok(at) => clock[at].1 = clock[at].1.max(*number),
                Err(at) => clock.insert(at, (*source, *number)),
            }
        }
        let id = self.id(clock, level);
        self.joined.insert((a, b), id);
        id
    }

    /// The clock of a node of an earlier evaluation.
    fn outer(&mut self, node: *const Node) -> Id {
        self.id(smallvec![(Source::Node(node), 1)], 0)
    }

    /// The clock of a group's operation whose operands have the clock `operands`.
    fn tick(&mut self, operands: Id, group: Stream) -> Id {
        let (mut clock, level) = self.all[operands as usize].clone();
        match clock.binary_search_by_key(&Source::Group(group.index), |entry| entry.0) {
            Ok(at) => clock[at].1 += 1,
            Err(at) => clock.insert(at, (Source::Group(group.index), 1)),
        }
        self.id(clock, level + 1)
    }
}

fn by_clocks(tasks: Vec<Task>) -> Vec<Part> {
    let mut clocks = Clocks::new();
    let mut of_node: HashMap<*const Node, Id> = HashMap::new();
    let mut of_task: Vec<Id> = Vec::with_capacity(tasks.len());
    for task in &tasks {
        let mut clock = 0;
        each_operand(task, |operand| {
            let at = Arc::as_ptr(operand);
            let of = of_node.get(&at).copied().unwrap_or_else(|| clocks.outer(at));
            clock = clocks.join(clock, of);
        });
        if beside::communicates(task.root()) {
            clock = clocks.tick(clock, task.stream());
        }
        of_node.extend(task.members.iter().map(|m| (Arc::as_ptr(&m.entry.node), clock)));
        of_task.push(clock);
    }
    let mut first = vec![usize::MAX; clocks.all.len()];
    for (i, clock) in of_task.iter().enumerate() {
        first[*clock as usize] = first[*clock as usize].min(i);
    }
    // A job that depends on more operations comes later, independent of the rest of the graph.
    let keys: Vec<_> = clocks
        .all
        .iter()
        .zip(first)
        .map(|((clock, level), first)| {
            (*level, clock.iter().map(|entry| entry.1).sum::<u32>(), first)
        })
        .collect();
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    order.sort_by_key(|i| (keys[of_task[*i] as usize], *i));
    let mut tasks: Vec<Option<Task>> = tasks.into_iter().map(Some).collect();
    let mut parts: Vec<Part> = Vec::new();
    let mut last = None;
    for i in order {
        let Some(task) = tasks[i].take() else { continue };
        let key = (task.stream(), of_task[i]);
        let ordered = of_task[i] != 0 && beside::is_ordered(key.0);
        match parts.last_mut() {
            Some(part) if last == Some(key) => part.tasks.push(task),
            _ => parts.push(Part { stream: key.0, tasks: vec![task], awaits: Vec::new(), ordered }),
        }
        last = Some(key);
    }
    parts.iter_mut().for_each(|part| part.awaits = awaited(&part.tasks));
    parts
}

/// Calls `f` for each operand of a task that has no value and is not a member of the task. Values
/// that are made outside streams are not included, because they are waited for when they are
/// needed.
fn each_operand(task: &Task, mut f: impl FnMut(&Arc<Node>)) {
    let is_member = |node: &Arc<Node>| {
        let same = |m: &Member| Arc::ptr_eq(&m.entry.node, node);
        task.members.iter().any(same)
    };
    for member in &task.members {
        member.entry.each_reference(|operand| {
            let missing = !operand.is_done() && operand.is_claimed() && !operand.op.is_outside();
            if missing && !is_member(operand) {
                f(operand);
            }
        });
    }
}

/// Values that a job's tasks need from other jobs.
fn awaited(tasks: &[Task]) -> Vec<Arc<Node>> {
    let mut made: HashSet<*const Node> = HashSet::new();
    let mut awaited: HashMap<*const Node, Arc<Node>> = HashMap::new();
    for task in tasks {
        each_operand(task, |operand| {
            let at = Arc::as_ptr(operand);
            if !made.contains(&at) {
                awaited.entry(at).or_insert_with(|| operand.clone());
            }
        });
        made.extend(task.members.iter().map(|m| Arc::as_ptr(&m.entry.node)));
    }
    awaited.into_values().collect()
}
