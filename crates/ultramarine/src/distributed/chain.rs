//! Chains: the order of a group's operations.
//!
//! Evaluation is lazy, and may reach operations in a different order on each process. Therefore
//! each operation of a group has an additional operand, the *token* of the operation that was
//! called before it, and an additional result, its own token. A token is an array without elements.
//! So an operation runs after all earlier ones of its group, and causes them to run, whatever is
//! evaluated first.
//!
//! While a function is traced, its operations must not be added to the program's chain, because
//! they are called on placeholders. A [`Links`] keeps the tokens of such a call separate. At the
//! beginning of the trace, a placeholder replaces each group's token. In a recorded graph, the
//! placeholder becomes an argument, and the last token a result.

use super::group::Group;
use crate::graph::{op::Op, op::Transform, tracing::TraceState, tracing::Tracing};
use crate::node::{self, Inputs, Node};
use crate::placement::Place;
use crate::{array::Array, dtype::Dtype, error::Result, shape::Shape, sync::lock};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard};

/// The token of a group's last operation.
#[derive(Default)]
pub(super) struct Chain(Mutex<Option<Array>>);

impl Chain {
    /// Returns the token of the group's last operation, if there was one.
    pub fn last(&self) -> Option<Array> {
        lock(&self.0).clone()
    }
}

/// Dtype of tokens.
pub(super) const TOKEN: Dtype = Dtype::Uint8;

/// Shape of tokens.
pub(super) fn token_shape() -> Shape {
    Shape::from_elem(0, 1)
}

/// The token before the first operation.
fn first() -> Result<Array> {
    Array::from_slice::<u8>(&[], &[0])
}

/// A group in which the traced function communicates.
struct Link {
    group: Group,
    /// The token before the call, as the trace sees it.
    from: Array,
    /// The token of the last operation.
    to: Array,
}

/// A trace whose function is running.
struct Frame {
    transform: Transform,
    trace: Arc<TraceState>,
    links: Vec<Link>,
}

thread_local! {
    /// Traces whose functions are running on this thread, the innermost last.
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
}

/// Calls `f` with this thread's traces. `f` must not drop arrays, because that may run foreign
/// code.
fn with_frames<T>(f: impl FnOnce(&mut Vec<Frame>) -> T) -> T {
    node::prepare_drops();
    FRAMES.with_borrow_mut(f)
}

/// The operations that a traced function calls, separate from those of the program.
pub(crate) struct Links {
    ended: bool,
    // It belongs to the thread that made it.
    _thread: PhantomData<*const ()>,
}

/// The groups in which a traced function communicated, with their tokens before and after the call.
#[derive(Default)]
pub(crate) struct Linked {
    pub groups: Vec<Group>,
    /// Placeholders of the trace.
    pub from: Vec<Array>,
    pub to: Vec<Array>,
}

impl Links {
    /// Begins the call of a function that `tracing` traces. Calls can be nested.
    pub fn begin(tracing: &Tracing, transform: Transform) -> Links {
        let frame = Frame { transform, trace: tracing.state(), links: Vec::new() };
        with_frames(|frames| frames.push(frame));
        Links { ended: false, _thread: PhantomData }
    }

    /// Ends the call that [`Links::begin`] began, and returns the tokens before and after it.
    pub fn end(mut self) -> Linked {
        self.ended = true;
        let frame = with_frames(Vec::pop);
        let mut linked = Linked::default();
        for Link { group, from, to } in frame.into_iter().flat_map(|frame| frame.links) {
            linked.groups.push(group);
            linked.from.push(from);
            linked.to.push(to);
        }
        linked
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        if !self.ended {
            // Drop the arrays outside the borrow.
            let frame = with_frames(Vec::pop);
            drop(frame);
        }
    }
}

/// The group's token in the innermost trace of this thread. `None` outside traces.
fn traced_token(group: &Group) -> Option<Array> {
    with_frames(|frames| {
        let Frame { transform, trace, links } = frames.last_mut()?;
        if let Some(link) = links.iter().find(|link| link.group == *group) {
            return Some(link.to.clone());
        }
        let op = Op::stand_in(*transform);
        let place = Place::new(group.stream(), true, true);
        let node =
            Node::of_trace(Some(trace.clone()), op, Inputs::new(), token_shape(), TOKEN, place);
        let from = Array::from_node(node);
        links.push(Link { group: group.clone(), from: from.clone(), to: from.clone() });
        Some(from)
    })
}

fn set_traced_token(group: &Group, token: Array) -> Option<Array> {
    with_frames(|frames| {
        let links = &mut frames.last_mut()?.links;
        let link = links.iter_mut().find(|link| link.group == *group)?;
        Some(std::mem::replace(&mut link.to, token))
    })
}

/// Calls an operation of a group. `make` gets the previous operation's token, and returns the
/// result and its own token.
pub(super) fn append<T>(
    group: &Group,
    make: impl FnOnce(&Array) -> Result<(T, Array)>,
) -> Result<T> {
    if let Some(token) = traced_token(group) {
        let (made, next) = make(&token)?;
        drop(set_traced_token(group, next));
        return Ok(made);
    }
    node::prepare_drops();
    let mut last = lock(&group.chain().0);
    let token = match &*last {
        Some(token) => token.clone(),
        None => first()?,
    };
    let (made, next) = make(&token)?;
    let before = last.replace(next);
    drop(last);
    drop((before, token));
    Ok(made)
}

/// Calls a recorded function that communicates in these groups. `call` gets the groups' tokens, and
/// returns the results and the tokens of the function's last operations.
pub(crate) fn through<T>(
    groups: &[Group],
    call: impl FnOnce(&[Array]) -> Result<(T, Vec<Array>)>,
) -> Result<T> {
    let traced: Vec<Array> = groups.iter().map_while(traced_token).collect();
    if traced.len() == groups.len() {
        let (made, next) = call(&traced)?;
        let set = groups.iter().zip(next).map(|(group, token)| set_traced_token(group, token));
        drop(set.collect::<Vec<_>>());
        return Ok(made);
    }
    node::prepare_drops();
    // Lock the chains in the same order in all threads.
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|i| groups[*i].number());
    let mut held: Vec<(usize, MutexGuard<'_, Option<Array>>)> = Vec::new();
    for i in order {
        held.push((i, lock(&groups[i].chain().0)));
    }
    held.sort_by_key(|(i, _)| *i);
    let tokens = held.iter().map(|(_, last)| match &**last {
        Some(token) => Ok(token.clone()),
        None => first(),
    });
    let tokens: Vec<Array> = tokens.collect::<Result<_>>()?;
    let (made, next) = call(&tokens)?;
    let before: Vec<_> =
        held.iter_mut().zip(next).map(|((_, last), token)| last.replace(token)).collect();
    drop(held);
    drop((before, tokens));
    Ok(made)
}
