//! Operations with several results. One node runs the operation, and a further node for each result takes its value
//! from the first.
//!
//! The node that runs (the *bundle*) keeps all values while it lives: as long as a trace, or a result that has not been
//! computed yet, needs it. Its own shape, dtype and value are those of the first result. If there is only one result,
//! the bundle is that result itself. Transforms pass its rules the data of all results at once.

use crate::backend::{Exec, Operand};
use crate::error::{Error, Result};
use crate::node::{Inputs, Node, Value};
use crate::ops::{
    Attribute, Call, Cotangents, Draft, Op, OperationKey, Refit, Rules, Vmap, attributes,
    rules::{shapeless, subgraph::Subgraph},
};
use crate::{array::Array, dtype::Dtype, placement::Place, scalar::Scalar, shape::Shape};
use smallvec::SmallVec;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, OnceLock};
use ultramarine_abi::schema::OpId;

/// Shape and dtype of each result.
pub(crate) type Results = SmallVec<[(Shape, Dtype); 3]>;

/// The arguments of a reverse rule: operands, results and the results' cotangents (`None` means zero).
pub(crate) struct MultiOutputVjp<'a> {
    /// Operands.
    pub primals: &'a [Array],
    /// Results.
    pub outputs: &'a [Array],
    /// Cotangents, in the results' shapes. At least one is present.
    pub cotangents: &'a [Option<Array>],
    /// True for each operand that needs a cotangent.
    pub wanted: &'a [bool],
    /// Computes the cotangents of a function made of ordinary operations, from its arguments and the cotangents of all
    /// its results.
    pub pull_back: PullBack,
}

impl MultiOutputVjp<'_> {
    /// Returns the cotangents of all results, with zeros for those that have none.
    pub fn all_cotangents(&self) -> Vec<Array> {
        let zeros =
            |a: &Array| shapeless::filled_like(a, Scalar::from_i64(a.dtype().derivative(), 0));
        let given = self.cotangents.iter().zip(self.outputs);
        given.map(|(c, o)| c.clone().unwrap_or_else(|| zeros(o))).collect()
    }
}

/// The arguments of a forward rule: operands, results and the operands' tangents (`None` means zero).
pub(crate) struct MultiOutputJvp<'a> {
    /// Operands.
    pub primals: &'a [Array],
    /// Results.
    pub outputs: &'a [Array],
    /// Tangents, in the operands' shapes. At least one is present.
    pub tangents: &'a [Option<Array>],
    /// Computes the tangents of a function made of ordinary operations, from its arguments and their tangents.
    pub push_forward: PushForward,
}

/// An evaluation by other operations. The operands are already evaluated.
pub(crate) struct Compose<'a> {
    /// The device, which rejected the operation.
    pub exec: &'a Exec,
    /// Operands.
    pub operands: &'a [Array],
    /// Shape and dtype of each result.
    pub results: &'a [(Shape, Dtype)],
    /// Evaluates arrays on the device; returns their values.
    pub evaluate: fn(&Exec, &[Array]) -> Result<Vec<Value>>,
}

/// A function of arrays, made of ordinary operations.
pub(crate) type Function<'a> = &'a dyn Fn(&[Array]) -> Result<Vec<Array>>;
type PullBack = fn(Function<'_>, &[Array], Vec<Array>) -> Result<Cotangents>;
type PushForward = fn(Function<'_>, &[Array], &[Option<Array>]) -> Result<Vec<Option<Array>>>;

/// The identity of a user's operation; it is the same in every process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForeignIdentity {
    pub name: String,
    pub version: u32,
    /// Number of results.
    pub outputs: u32,
    /// The operation's attributes. Only the operation itself interprets them.
    pub attributes: Arc<[u8]>,
}

/// The rules of an operation with several results; see [`Rules`] for what each is.
pub(crate) trait MultiOutputRules: Attribute + Debug + Send + Sync {
    /// MLX's name of the operation.
    fn name(&self) -> &'static str;

    /// Version of the attributes, as [`Rules::version`].
    fn version(&self) -> u32 {
        1
    }

    /// Returns true if such a node is valid, as [`Rules::admits`].
    fn admits(&self, node: &Draft<'_>) -> bool;

    /// Evaluates the operation; returns the value of each result. `call.shape` and `call.dtype` are those of the first
    /// result.
    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>>;

    /// Shapes and dtypes of the results for operands of other sizes, for graphs that were traced shapeless. `results`
    /// are those of the trace; only their shapes may change.
    fn refit(&self, _: &Refit<'_>, _results: &[(Shape, Dtype)]) -> Result<Results> {
        Err(shapeless::cannot(self.name()))
    }

    /// Builds the same results from ordinary operations. Devices without a kernel evaluate this composition, and
    /// transforms for which the operation has no rule go through it. `None` if there is no composition.
    fn composition(&self, _operands: &[Array]) -> Option<Result<Vec<Array>>> {
        None
    }

    /// Applies the reverse rule; see [`MultiOutputRules`].
    fn vjp(&self, v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        let missing = || {
            Err(Error::Value(format!("[vjp] {} has no vjp rule. Define a derivative by custom_function, or use stop_gradient.", self.name()).into()))
        };
        let f = |operands: &[Array]| self.composition(operands).unwrap_or_else(missing);
        (v.pull_back)(&f, v.primals, v.all_cotangents())
    }

    /// Applies the forward rule; see [`MultiOutputRules`].
    fn jvp(&self, j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
        let missing = || {
            Err(Error::Value(format!("[jvp] {} has no jvp rule. Define a derivative by custom_function, or use stop_gradient.", self.name()).into()))
        };
        let f = |operands: &[Array]| self.composition(operands).unwrap_or_else(missing);
        (j.push_forward)(&f, j.primals, j.tangents)
    }

    /// As [`Rules::is_product`].
    fn is_product(&self) -> bool {
        false
    }

    /// Returns true if the results are the last operands themselves, each on its operand's device. Results of other
    /// operations are on the bundle's device. As [`Rules::forwards_operands`].
    fn forwards_operands(&self) -> bool {
        false
    }

    /// Evaluates the composition.
    fn compose(&self, c: &Compose<'_>) -> Option<Result<Vec<Value>>> {
        Some(self.composition(c.operands)?.and_then(|arrays| (c.evaluate)(c.exec, &arrays)))
    }

    /// Returns the operation's identity, if it is a user's operation.
    fn foreign(&self) -> Option<ForeignIdentity> {
        None
    }

    /// Returns true if the operation communicates with other processes, which can take any amount of time.
    fn communicates(&self) -> bool {
        false
    }

    /// Returns true if the derivatives differ from those of the operations that compute the results.
    fn has_own_derivatives(&self) -> bool {
        false
    }

    /// The graph that the operation stands for, if it is such an operation. Such an operation has no evaluation of its
    /// own.
    fn subgraph(&self) -> Option<&dyn Subgraph> {
        None
    }

    /// Applies the batching rule; see [`MultiOutputRules`].
    fn vmap(&self, _: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        Err(Error::Value(format!("[vmap] {} has no vmap rule. Define a rule by custom_function, or stack the results of single calls.", self.name()).into()))
    }
}

struct Inner {
    rules: Arc<dyn MultiOutputRules>,
    results: Results,
    /// Device and stream of each result, if they are not the bundle's.
    places: SmallVec<[Place; 1]>,
    values: OnceLock<Vec<Value>>,
}

/// The operation of the node that runs, called a *multi-output* operation.
#[derive(Clone)]
pub(crate) struct MultiOutput(Arc<Inner>);

impl Debug for MultiOutput {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.rules.fmt(f)
    }
}

impl MultiOutput {
    pub fn new(
        rules: impl MultiOutputRules + 'static,
        results: Results,
        places: SmallVec<[Place; 1]>,
    ) -> MultiOutput {
        MultiOutput(Arc::new(Inner {
            rules: Arc::new(rules),
            results,
            places,
            values: OnceLock::new(),
        }))
    }

    /// Returns the rules of the operation.
    pub fn rules(&self) -> &dyn MultiOutputRules {
        &*self.0.rules
    }

    /// Returns the same operation for another node, which keeps values of its own.
    pub fn for_new_node(&self) -> MultiOutput {
        self.with_results(self.0.results.clone())
    }

    /// Returns the operation whose results are these operands themselves, on their devices.
    pub fn forwarding(&self, operands: &[Array]) -> MultiOutput {
        let Inner { rules, results, .. } = &*self.0;
        let (rules, results) = (rules.clone(), results.clone());
        let places = operands.iter().map(|a| a.node().place).collect();
        MultiOutput(Arc::new(Inner { rules, results, places, values: OnceLock::new() }))
    }

    /// The same operation, with results of these shapes.
    fn with_results(&self, results: Results) -> MultiOutput {
        let Inner { rules, places, .. } = &*self.0;
        let (rules, places) = (rules.clone(), places.clone());
        MultiOutput(Arc::new(Inner { rules, results, places, values: OnceLock::new() }))
    }

    /// The operation for operands of other sizes.
    ///
    /// # Errors
    /// [`Error::Value`] if the operation does not support other sizes, or if the sizes do not fit each other.
    pub fn refit(&self, r: &Refit<'_>) -> Result<MultiOutput> {
        if self.rules().forwards_operands() {
            // The forwarded operands are the last ones.
            let last = r.inputs.len().saturating_sub(self.len())..;
            let shapes = r.inputs[last].iter().map(|s| Shape::from_slice(s));
            let results = shapes.zip(self.results()).map(|(s, (_, dtype))| (s, *dtype)).collect();
            return Ok(self.with_results(results));
        }
        let results = self.rules().refit(r, self.results())?;
        self.one_each(results.len())?;
        Ok(self.with_results(results))
    }

    /// The node that runs, for an operation whose first result is `first` itself.
    pub fn bundle(&self, inputs: &[&Array], first: &Array) -> Array {
        let inputs = inputs.iter().map(|a| a.node().clone()).collect();
        let (shape, place) = (Shape::from_slice(first.shape()), first.node().place);
        Array::from_node(Node::new(self.clone().into(), inputs, shape, first.dtype(), place))
    }

    /// Returns the number of results.
    pub fn len(&self) -> usize {
        self.0.results.len()
    }

    /// Returns true if the node that runs is the only result.
    pub fn is_result(&self) -> bool {
        let rules = self.rules();
        self.len() == 1 && !rules.forwards_operands() && rules.subgraph().is_none()
    }

    /// Makes an array for each result of `node`, whose operation this is.
    pub fn outputs(&self, node: &Arc<Node>) -> Vec<Array> {
        if self.is_result() {
            return vec![Array::from_node(node.clone())];
        }
        let of = self.0.rules.name();
        let output = |(index, (shape, dtype)): (usize, &(Shape, Dtype))| {
            let inputs: Inputs = std::iter::once(node.clone()).collect();
            let place = self.0.places.get(index).copied().unwrap_or_else(|| node.place);
            let op = OutputOf { index, of }.into();
            Array::from_node(Node::new(op, inputs, shape.clone(), *dtype, place))
        };
        self.0.results.iter().enumerate().map(output).collect()
    }

    /// Returns shape and dtype of each result.
    pub fn results(&self) -> &[(Shape, Dtype)] {
        &self.0.results
    }

    /// Returns the values of the results once the node is evaluated; none if it is the only result.
    pub fn values(&self) -> &[Value] {
        self.0.values.get().map_or(&[], |values| values)
    }

    /// Checks that a rule returned one value for each result.
    fn one_each(&self, given: usize) -> Result<()> {
        if given == self.len() {
            return Ok(());
        }
        let text = format!("a rule gave {given} values for {} results", self.len());
        Err(Error::runtime(self.rules().name(), text))
    }

    /// The reverse rule.
    pub fn vjp(&self, v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        self.rules().vjp(v)
    }

    /// The forward rule.
    pub fn jvp(&self, j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
        let found = self.rules().jvp(j)?;
        self.one_each(found.len())?;
        Ok(found)
    }

    /// The batching rule.
    pub fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        let found = self.rules().vmap(v)?;
        self.one_each(found.len())?;
        Ok(found)
    }

    /// Evaluates on `exec`, and keeps the values on the device of `to`.
    pub fn run(&self, exec: &Exec, to: &Exec, call: &Call<'_>) -> Result<Value> {
        let values = self.0.rules.eval(exec, call, &self.0.results)?;
        self.keep(to, values)
    }

    /// Keeps the values of an evaluation on the device of `to`.
    pub fn keep(&self, to: &Exec, values: Vec<Value>) -> Result<Value> {
        self.one_each(values.len())?;
        let values = match self.rules().forwards_operands() {
            true => values,
            false => {
                let each = values.iter().zip(&self.0.results);
                each.map(|(value, (shape, dtype))| {
                    to.local(&Operand { value, shape, dtype: *dtype })
                })
                .collect::<Result<Vec<_>>>()?
            }
        };
        let first = values[0].clone();
        if !self.is_result() {
            let _ = self.0.values.set(values);
        }
        Ok(first)
    }

    /// Evaluates the composition, if there is one, after a device rejected the operation.
    pub fn compose(&self, c: &Compose<'_>) -> Option<Result<Value>> {
        let values = self.rules().compose(c)?;
        Some(values.and_then(|values| self.keep(c.exec, values)))
    }
}

impl Attribute for MultiOutput {
    fn encode(&self, key: &mut OperationKey) {
        let rules = self.rules();
        key.object(rules.name(), rules.version(), rules);
    }
}

impl Op {
    /// The operation for another node. Results' values belong to a single node, so the copy has none.
    pub fn for_new_node(&self) -> Op {
        self.get::<MultiOutput>().map_or_else(|| self.clone(), |multi| multi.for_new_node().into())
    }
}

impl Rules for MultiOutput {
    fn name(&self) -> &'static str {
        self.0.rules.name()
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        self.rules().admits(node)
    }

    fn version(&self) -> u32 {
        self.0.rules.version()
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        self.run(exec, exec, call)
    }

    fn is_product(&self) -> bool {
        self.rules().is_product()
    }

    fn forwards_operands(&self) -> bool {
        self.rules().forwards_operands()
    }
}

attributes! {
    /// One output of a multi-output operation: the node's only operand is the node that runs.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct OutputOf {
        /// The index of the result.
        pub index: usize,
        /// Name of the operation, for errors.
        pub of: &'static str,
    }
}

impl OutputOf {
    /// The value of this output, from the evaluated node that ran.
    pub fn value(&self, of: &Node) -> Result<Value> {
        let values = of.op.get::<MultiOutput>().and_then(|multi| multi.0.values.get());
        let value = values.and_then(|v| v.get(self.index)).cloned();
        value.ok_or_else(|| Error::runtime("eval", "a result without the operation that makes it"))
    }
}

/// These rules are empty, because the evaluator and the transforms handle outputs themselves.
impl Rules for OutputOf {
    fn name(&self) -> &'static str {
        self.of
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        node.inputs.len() == 1
    }

    fn eval(&self, _: &Exec, _: &Call<'_>) -> Result<Value> {
        Err(Error::runtime("eval", "a result without the operation that makes it"))
    }

    fn forwards_operands(&self) -> bool {
        true
    }
}

impl Array {
    /// The lazy results of an operation that has at least one result.
    ///
    /// # Errors
    /// [`Error::Value`] when operands are on accelerators that do not mix.
    pub(crate) fn multi_output(
        rules: impl MultiOutputRules + 'static,
        inputs: &[&Array],
        results: Results,
    ) -> Result<Vec<Array>> {
        let Some((shape, dtype)) = results.first().cloned() else {
            return Err(Error::runtime(rules.name(), "no results"));
        };
        let multi = MultiOutput::new(rules, results, SmallVec::new());
        let bundle = Array::try_of(multi.clone(), inputs, shape, dtype)?;
        Ok(multi.outputs(bundle.node()))
    }

    /// The lazy results of an operation that forwards its last operands. Each has its operand's device and dtype.
    pub(crate) fn forwarded(
        rules: impl MultiOutputRules + 'static,
        inputs: &[&Array],
        results: &[Array],
    ) -> Vec<Array> {
        let Some(first) = results.first() else { return Vec::new() };
        let kinds = results.iter().map(|r| (Shape::from_slice(r.shape()), r.dtype())).collect();
        let multi = MultiOutput::new(rules, kinds, SmallVec::new()).forwarding(results);
        let inputs: SmallVec<[&Array; 4]> = inputs.iter().copied().chain(results).collect();
        multi.outputs(multi.bundle(&inputs, first).node())
    }
}

impl Call<'_> {
    /// Runs a backend's operation with several outputs, which are written to new memory.
    pub fn run_multi_output<A: Copy>(
        &self,
        exec: &Exec,
        op: OpId,
        attrs: &A,
        scalars: &[Scalar],
        results: &[(Shape, Dtype)],
    ) -> Result<Vec<Value>> {
        let values = results.iter().map(|(s, d)| exec.alloc(s, *d)).collect::<Result<Vec<_>>>()?;
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
