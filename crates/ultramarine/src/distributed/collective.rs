//! The operation: a node on the group's stream with two results. The last result is its token.

use super::chain::{TOKEN, append, token_shape};
use super::debug;
use super::device_memory;
use super::group::{Group, WeakGroup};
use super::operations::called;
use super::transport::{Engine, HostWork, Kind, Reduction, Transport};
use crate::backend::executable::Callable;
use crate::backend::{Exec, Operand};
use crate::device::Device;
use crate::error::{Error, Result, bail};
use crate::eval::may_share;
use crate::node::{Inputs, Node, Value};
use crate::ops::rules::builders::{move_axis, slice_axis, with_axis, without_axis};
use crate::ops::rules::multi_output::{
    MultiOutput, MultiOutputJvp, MultiOutputRules, MultiOutputVjp, Results,
};
use crate::ops::{Attribute, Cotangents, Draft, OperationKey, Refit, Vmap};
use crate::placement::Place;
use crate::shape::{Shape, Show};
use crate::stream::{self, Stream};
use crate::{array::Array, dtype::Dtype, ops::Call};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;
use ultramarine_runtime::pool;

/// A collective operation. Its operands are the array, unless a message is received, and the token
/// of the group's previous operation.
#[derive(Clone, Debug)]
pub(super) struct Collective {
    pub group: Group,
    pub kind: Kind,
}

/// Returns the shape of the result for an operand's shape. Fails if [`Kind::SumScatter`] cannot cut
/// the first axis.
pub(super) fn shape_of(kind: Kind, shape: &[usize], size: usize) -> Result<Shape> {
    let mut shape = Shape::from_slice(shape);
    match kind {
        Kind::AllGather => match shape.first_mut() {
            Some(first) => {
                *first = first.checked_mul(size).ok_or_else(|| {
                    Error::value(
                        kind.name(),
                        "The result has too many elements. Gather smaller arrays.",
                    )
                })?;
            }
            None => shape.push(size),
        },
        Kind::SumScatter => match shape.first_mut() {
            Some(first) if first.is_multiple_of(size) => *first /= size,
            _ => bail!(
                kind.name(),
                "Invalid shape {} for a group of size {size}: the first axis is split into {size} equal parts. Pad it, or \
                 use all_sum.",
                Show(&shape)
            ),
        },
        Kind::AllReduce(_) | Kind::Send { .. } | Kind::Receive { .. } => {}
    }
    Ok(shape)
}

/// Returns the lazy results of a new operation: the array, unless a message is sent, and the token.
pub(super) fn appended(
    group: &Group,
    kind: Kind,
    operand: Option<&Array>,
    result: Option<(Shape, Dtype)>,
) -> Result<(Option<Array>, Array)> {
    let home = operand.and_then(|x| x.node().home());
    appended_at(home, group, kind, operand, result)
}

/// Calls an operation like [`appended`], for an array of the device `home`.
pub(super) fn appended_at(
    home: Option<Device>,
    group: &Group,
    kind: Kind,
    operand: Option<&Array>,
    result: Option<(Shape, Dtype)>,
) -> Result<(Option<Array>, Array)> {
    append(group, |before| {
        let collective = Collective { group: group.clone(), kind };
        let results: Results = result.into_iter().chain([(token_shape(), TOKEN)]).collect();
        // The result is wanted on this device; see `at_home`.
        let scoped = stream::scoped().map(|stream| stream.device);
        let place = Place::new(group.stream_for(scoped.or(home), kind), true, true);
        let multi = MultiOutput::new(collective, results.clone(), SmallVec::new());
        let operands: Inputs =
            operand.into_iter().chain([before]).map(|a| a.node().clone()).collect();
        let (shape, dtype) = results[0].clone();
        let node = Node::new(multi.clone().into(), operands, shape, dtype, place);
        let mut made = multi.outputs(&node);
        let token = made.pop().ok_or_else(|| Error::runtime(kind.name(), "no token"))?;
        Ok(((made.pop(), token.clone()), token))
    })
}

impl Attribute for Collective {
    fn encode(&self, key: &mut OperationKey) {
        self.group.encode(key);
        key.text(self.kind.name());
        let peer = match self.kind {
            Kind::Send { to } => to,
            Kind::Receive { from } => from,
            _ => 0,
        };
        key.unsigned(peer as u64);
    }
}

impl Collective {
    /// Describes the operation for errors and reports.
    fn described(&self, number: u64, dtype: Dtype, shape: &[usize]) -> String {
        let peer = match self.kind {
            Kind::Send { to } => format!(" to rank {to}"),
            Kind::Receive { from } => format!(" from rank {from}"),
            _ => String::new(),
        };
        let (name, rank, size) = (self.kind.name(), self.group.rank(), self.group.size());
        format!(
            "{name}({dtype}, {}){peer}, operation {number} of rank {rank} in a group of {size}",
            Show(shape)
        )
    }

    fn run(
        &self,
        exec: &Exec,
        operand: Option<Operand<'_>>,
        output: Option<Operand<'_>>,
    ) -> Result<()> {
        let Some(transport) = self.group.transport() else {
            return Err(Error::runtime(self.kind.name(), "the group has no transport"));
        };
        let Some(of) = operand.as_ref().or(output.as_ref()) else {
            return Err(Error::runtime(self.kind.name(), "neither operand nor result"));
        };
        let description = self.described(self.group.begins(), of.dtype, of.shape);
        match transport.engine() {
            Engine::Device(engine) => {
                if let (true, Some(beside)) =
                    (debug::is_on() && self.kind.is_collective(), transport.beside())
                {
                    let sequence = self.group.begins_together();
                    let own = (self.kind, of.dtype, of.shape);
                    pool::waiting(|| debug::compare(beside, &self.group, sequence, own))
                        .map_err(|failure| failure.error)?;
                }
                engine.encode(exec, self.kind, operand.as_ref(), output.as_ref(), &description)
            }
            Engine::Host(engine) => {
                // The operation is not a command, so neither it nor operations that depend on it
                // are recorded.
                exec.ran_here();
                let lent = device_memory::lend(exec, operand.as_ref(), output.as_ref())?;
                let at = |t: &Option<Operand<'_>>| match t {
                    Some(t) if lent.is_none() && t.shape.iter().all(|n| *n > 0) => t.value.data(),
                    _ => std::ptr::dangling_mut(),
                };
                let work = HostWork {
                    kind: self.kind,
                    dtype: of.dtype,
                    input: at(&operand),
                    output: at(&output),
                    count: crate::shape::size(of.shape),
                    description: &description,
                };
                let outcome = pool::waiting(|| {
                    if debug::is_on() && self.kind.is_collective() {
                        let sequence = self.group.begins_together();
                        debug::compare(
                            engine,
                            &self.group,
                            sequence,
                            (self.kind, of.dtype, of.shape),
                        )?;
                    }
                    // SAFETY: the operands are row-major, have the sizes for this kind, and lie in
                    // host memory or on the device that lends them. The values live until the call
                    // returns, and the output's memory is new.
                    unsafe {
                        match lent {
                            None => engine.run(&work),
                            Some(lent) => engine.run_on_device(&work, lent),
                        }
                    }
                });
                outcome.map_err(|failure| {
                    if failure.keeps_memory {
                        let value = |t: Option<Operand<'_>>| t.map(|t| t.value.clone());
                        std::mem::forget([value(operand), value(output)]);
                    }
                    failure.error
                })
            }
        }
    }

    /// Calls the operation on another operand.
    fn on(&self, x: &Array) -> Result<Array> {
        called(&self.group, self.kind, x)
    }

    /// For a maximum or minimum: the share of this process's elements in it. The share is 1 if no
    /// other process has an equal element.
    fn share(&self, x: &Array, y: &Array, dtype: Dtype) -> Result<Array> {
        let here = x.equal(y)?.astype(dtype);
        let everywhere = called(&self.group, Kind::AllReduce(Reduction::Sum), &here)?;
        here.divide(&everywhere)
    }
}

/// A device collective that executables call again.
struct Again {
    /// A weak reference, so that an executable does not keep the group open. The nodes that run it
    /// hold the group.
    group: WeakGroup,
    kind: Kind,
    stream: Option<Stream>,
}

impl Callable for Again {
    fn stream(&self) -> Option<Stream> {
        let own = || Some(self.group.group()?.stream());
        self.stream.or_else(|| if may_share() { None } else { own() })
    }

    fn call(&self, exec: &Exec, inputs: &[Operand<'_>], outputs: &[Operand<'_>]) -> Result<()> {
        let Some(group) = self.group.group() else {
            return Err(Error::runtime(self.kind.name(), "the group is gone"));
        };
        let collective = Collective { group, kind: self.kind };
        collective.run(exec, inputs.first().copied(), outputs.first().copied())
    }
}

/// Returns the result for the user among a node's outputs. `None` if a message was sent.
fn result<T>(outputs: &[T]) -> Option<&T> {
    if outputs.len() > 1 { outputs.first() } else { None }
}

impl MultiOutputRules for Collective {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn admits(&self, _: &Draft<'_>) -> bool {
        // Files of functions cannot contain it, because a group belongs to its process.
        true
    }

    fn communicates(&self) -> bool {
        true
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        let given = (call.inputs.len() > 1).then(|| call.operand(0));
        let copied = given.map(|t| exec.contiguous(&t)).transpose()?.flatten();
        let operand = given.map(|t| Operand { value: copied.as_ref().unwrap_or(t.value), ..t });
        let mut values = Vec::with_capacity(results.len());
        for (shape, dtype) in results {
            values.push(exec.alloc(shape, *dtype)?);
        }
        let output = result(results).map(|(shape, dtype)| Operand {
            value: &values[0],
            shape,
            dtype: *dtype,
        });
        match self.group.transport().map(Transport::engine) {
            Some(Engine::Device(_)) => {
                // A small operation runs on the stream of the surrounding computations.
                let own = self.group.stream();
                let stream = exec.program_stream().is_some_and(|s| s == own).then_some(own);
                let again = Again { group: self.group.weak(), kind: self.kind, stream };
                exec.call(Arc::new(again), operand.as_slice(), output.as_slice())?;
            }
            _ => self.run(exec, operand, output)?,
        }
        Ok(values)
    }

    fn refit(&self, r: &Refit<'_>, results: &[(Shape, Dtype)]) -> Result<Results> {
        let mut results: Results = results.iter().cloned().collect();
        if let (true, [x, _]) = (results.len() > 1, r.inputs) {
            results[0].0 = shape_of(self.kind, x, self.group.size())?;
        }
        Ok(results)
    }

    fn vjp(&self, v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        let (Some(c), true) = (result(v.cotangents).and_then(Clone::clone), v.primals.len() > 1)
        else {
            return Ok(smallvec![None; v.primals.len()]);
        };
        let x = &v.primals[0];
        let found = match self.kind {
            // The result is the same in all processes, and so is its cotangent.
            Kind::AllReduce(Reduction::Sum) => c,
            Kind::AllReduce(_) => c.multiply(&self.share(x, &v.outputs[0], c.dtype())?)?,
            Kind::AllGather if x.ndim() == 0 => {
                without_axis(&slice_axis(&c, 0, self.group.rank(), 1)?, 0)?
            }
            Kind::AllGather => {
                let n = x.shape()[0];
                slice_axis(&c, 0, self.group.rank() * n, n)?
            }
            Kind::SumScatter => called(&self.group, Kind::AllGather, &c)?,
            Kind::Send { .. } | Kind::Receive { .. } => return Ok(smallvec![None, None]),
        };
        Ok(smallvec![Some(found), None])
    }

    fn jvp(&self, j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
        let mut found = vec![None; j.outputs.len()];
        if let (Some(Some(t)), true) =
            (j.tangents.first(), j.primals.len() > 1 && j.outputs.len() > 1)
        {
            found[0] = Some(match self.kind {
                Kind::AllReduce(Reduction::Max | Reduction::Min) => {
                    let share = self.share(&j.primals[0], &j.outputs[0], t.dtype())?;
                    called(&self.group, Kind::AllReduce(Reduction::Sum), &t.multiply(&share)?)?
                }
                _ => self.on(t)?,
            });
        }
        Ok(found)
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        // Call the batch's operations now, so that their tokens belong to the program.
        let Some(x) = v.inputs.first().filter(|_| v.inputs.len() > 1) else {
            let (result, token) = appended(
                &self.group,
                self.kind,
                None,
                Some((Shape::from_slice(v.shape), v.dtype)),
            )?;
            return Ok(result.into_iter().chain([token]).map(|a| (a, None)).collect());
        };
        let Some(axis) = v.axes[0] else {
            return self.batch_of(x, None);
        };
        match self.kind {
            Kind::AllGather | Kind::SumScatter => {
                // For these kinds, the first axis must stay the first.
                let x = match x.ndim() {
                    1 => with_axis(x, 0)?,
                    _ => move_axis(x, axis, 1)?,
                };
                self.batch_of(&x, Some(1))
            }
            _ => self.batch_of(x, Some(axis)),
        }
    }
}

impl Collective {
    /// Returns the results of the operation on a batch. They have the mapped axis, too.
    fn batch_of(&self, x: &Array, axis: Option<usize>) -> Result<Vec<(Array, Option<usize>)>> {
        let result = match self.kind {
            Kind::Send { .. } => None,
            kind => Some((shape_of(kind, x.shape(), self.group.size())?, x.dtype())),
        };
        let (result, token) = appended(&self.group, self.kind, Some(x), result)?;
        let result = result.map(|a| (a, axis));
        Ok(result.into_iter().chain([(token, None)]).collect())
    }
}
