//! Operations with several results: one node that runs, and one for each result, which
//! takes its value from it.
//!
//! The node that runs (the *bundle*) keeps all values while it lives: as long as a result that has not been
//! computed yet, or a trace, needs it. Its own shape, dtype and value are the first result's. Transforms hand
//! its rules what belongs to all results at once.

use super::{Call, Cotangents, Op, Rules, Vmap};
use crate::{
    array::Array,
    backend::{Exec, Operand},
    dtype::Dtype,
    error::{Error, Result},
    node::{Inputs, Node, Value},
    scalar::Scalar,
    shape::Shape,
};
use smallvec::SmallVec;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, OnceLock};
use ultramarine_abi::schema::OpId;

/// Shape and dtype of each result.
pub(crate) type Results = SmallVec<[(Shape, Dtype); 3]>;

/// Operands, results and the results' cotangents (`None`: zero), for a reverse rule.
pub(crate) struct ManyVjp<'a> {
    /// Operands.
    pub primals: &'a [Array],
    /// Results.
    pub outputs: &'a [Array],
    /// Cotangents, of the results' shapes; one at least is there.
    pub cotangents: &'a [Option<Array>],
    /// Which operands need a cotangent.
    pub wanted: &'a [bool],
}

/// Operands, results and the operands' tangents (`None`: zero), for a forward rule.
pub(crate) struct ManyJvp<'a> {
    /// Operands.
    pub primals: &'a [Array],
    /// Results.
    pub outputs: &'a [Array],
    /// Tangents, of the operands' shapes; one at least is there.
    pub tangents: &'a [Option<Array>],
}

/// What stands with the definition of an operation of several results; as [`Rules`].
pub(crate) trait ManyRules: Debug + Send + Sync {
    /// MLX's name of the operation.
    fn name(&self) -> &'static str;

    /// Evaluates it: the value of each result. `call.shape` and `call.dtype` are the first one's.
    fn eval(
        &self,
        exec: &Exec,
        call: &Call<'_>,
        results: &[(Shape, Dtype)],
    ) -> Result<Vec<Value>>;

    /// Reverse rule: one cotangent for each operand.
    fn vjp(&self, _: &ManyVjp<'_>) -> Result<Cotangents> {
        Err(Error::Value(format!("[vjp] {} has no vjp rule.", self.name())))
    }

    /// Forward rule: one tangent for each result.
    fn jvp(&self, _: &ManyJvp<'_>) -> Result<Vec<Option<Array>>> {
        Err(Error::Value(format!("[jvp] {} has no jvp rule.", self.name())))
    }

    /// Batching rule: each mapped result with its mapped axis. `shape` and `dtype` of the
    /// argument are the first result's.
    fn vmap(&self, _: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        Err(Error::Value(format!("[vmap] {} has no vmap rule.", self.name())))
    }
}

struct Inner {
    rules: Box<dyn ManyRules>,
    results: Results,
    values: OnceLock<Vec<Value>>,
}

/// The operation of the node that runs.
#[derive(Clone)]
pub(crate) struct Many(Arc<Inner>);

/// What evaluation told apart by this text must not depend on sizes or values.
impl Debug for Many {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.rules.fmt(f)
    }
}

impl Many {
    /// The rules.
    pub fn rules(&self) -> &dyn ManyRules {
        &*self.0.rules
    }

    /// Number of results.
    pub fn len(&self) -> usize {
        self.0.results.len()
    }

    /// An array for each result of `node`, whose operation this is.
    pub fn parts(&self, node: &Arc<Node>) -> Vec<Array> {
        let part = |(i, (shape, dtype)): (usize, &(Shape, Dtype))| {
            let inputs: Inputs = std::iter::once(node.clone()).collect();
            let op = Op::Part(Part(i));
            Array::from_node(Node::new(op, inputs, shape.clone(), *dtype, node.place()))
        };
        self.0.results.iter().enumerate().map(part).collect()
    }

    /// Evaluates on `exec`, and keeps the values as they are on the device of `to`.
    pub fn run(&self, exec: &Exec, to: &Exec, call: &Call<'_>) -> Result<Value> {
        let values = self.0.rules.eval(exec, call, &self.0.results)?;
        if values.len() != self.len() {
            return Err(Error::runtime(
                self.rules().name(),
                format!("{} values for {} results", values.len(), self.len()),
            ));
        }
        let values = values.iter().map(|v| to.local(v)).collect::<Result<Vec<_>>>()?;
        let first = values[0].clone();
        let _ = self.0.values.set(values);
        Ok(first)
    }
}

impl Rules for Many {
    fn name(&self) -> &'static str {
        self.0.rules.name()
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        self.run(exec, exec, call)
    }
}

/// One result: the node's only operand is the node that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part(pub usize);

impl Part {
    /// The value, of the evaluated node that ran.
    pub fn value(&self, of: &Node) -> Result<Value> {
        let values = match &of.op {
            Op::Many(many) => many.0.values.get(),
            _ => None,
        };
        let value = values.and_then(|v| v.get(self.0)).cloned();
        value.ok_or_else(|| Error::runtime("eval", "a result without the operation that makes it"))
    }
}

/// The evaluator and the transforms know parts themselves; see [`Op::Part`].
impl Rules for Part {
    fn name(&self) -> &'static str {
        "result"
    }

    fn eval(&self, _: &Exec, _: &Call<'_>) -> Result<Value> {
        Err(Error::runtime("eval", "a result without the operation that makes it"))
    }
}

impl Array {
    /// The lazy results of an operation that has several (one at least).
    ///
    /// # Errors
    /// [`Error::Value`] when operands are on accelerators that do not mix.
    pub(crate) fn many(
        rules: impl ManyRules + 'static,
        inputs: &[&Array],
        results: Results,
    ) -> Result<Vec<Array>> {
        let Some((shape, dtype)) = results.first().cloned() else {
            return Err(Error::runtime(rules.name(), "no results"));
        };
        let many = Many(Arc::new(Inner { rules: Box::new(rules), results, values: OnceLock::new() }));
        let bundle = Array::lazy(many.clone().into(), inputs, shape, dtype)?;
        Ok(many.parts(bundle.node()))
    }
}

impl Call<'_> {
    /// Runs a backend's op of several outputs with all operands, into new memory.
    pub fn run_many<A: Copy>(
        &self,
        exec: &Exec,
        op: OpId,
        attrs: &A,
        scalars: &[Scalar],
        results: &[(Shape, Dtype)],
    ) -> Result<Vec<Value>> {
        let values =
            results.iter().map(|(s, d)| exec.alloc(s, *d)).collect::<Result<Vec<_>>>()?;
        let inputs: SmallVec<[Operand<'_>; 4]> =
            (0..self.inputs.len()).map(|i| self.operand(i)).collect();
        let outputs: SmallVec<[Operand<'_>; 3]> = values
            .iter()
            .zip(results)
            .map(|(value, (shape, dtype))| Operand { value, shape, dtype: *dtype })
            .collect();
        exec.run(op, attrs, &inputs, &outputs, scalars)?;
        drop(outputs);
        Ok(values)
    }
}
