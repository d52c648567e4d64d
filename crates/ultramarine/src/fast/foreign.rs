//! Kernels launched by another library: a function that writes into arrays becomes an operation.

use crate::backend::{Exec, Operand};
use crate::error::{Error, Result, ensure};
use crate::graph::operation_key::Opaque;
use crate::ops::rules::multi_output::{MultiOutputJvp, MultiOutputRules, MultiOutputVjp};
use crate::ops::{Attribute, Call, Cotangents, Draft, OperationKey, Vmap, attributes};
use crate::{
    array::Array, dtype::Dtype, graph::names::interned, node::Value, shape::Shape, stream,
};
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

type Write = dyn Fn(&[Array], &[Array]) -> Result<()> + Send + Sync;

struct Function(Box<Write>);

impl Debug for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Function")
    }
}

impl Opaque for Function {}

impl Attribute for Arc<Function> {
    fn encode(&self, key: &mut OperationKey) {
        key.opaque(self.clone());
    }
}

attributes! {
    #[derive(Clone, Debug)]
    struct Definition {
        name: &'static str,
        function: Arc<Function>,
        ensure_row_contiguous: bool,
    }
}

attributes! {
    /// A call, as an operation.
    #[derive(Clone, Debug)]
    struct ForeignCall {
        definition: Definition,
        init_value: Option<f64>,
    }
}

/// A function of another library that writes the outputs of an operation. It is called when an output is computed, with
/// the inputs and the outputs. All of them have memory; the outputs' elements are uninitialised.
///
/// On a device, the function launches its work on the stream of [`current_work_stream`] and returns without waiting.
/// Everything before the operation has been submitted to this stream, and everything after it will be, so nothing waits
/// and nothing is copied. On the CPU, the function must have written the outputs when it returns. It runs on whatever
/// thread evaluates, and must not evaluate arrays itself. It has no derivatives and no batching rule.
///
/// [`current_work_stream`]: crate::interchange::current_work_stream
///
/// # Example
/// ```
/// use ultramarine::{Array, Dtype, fast::ForeignKernel};
///
/// let twice = ForeignKernel::new("twice", |inputs, outputs| {
///     let (from, to) = (inputs[0].value()?.data(), outputs[0].value()?.data());
///     for i in 0..inputs[0].size() {
///         // SAFETY: rows without gaps of so many elements, and nobody else has the output.
///         unsafe { to.cast::<f32>().add(i).write(2.0 * from.cast::<f32>().add(i).read()) };
///     }
///     Ok(())
/// })?;
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
/// let outputs = twice.call(&[&x], &[(&[3], Dtype::Float32)], None)?;
/// assert_eq!(outputs[0].to_vec::<f32>()?, [2.0, 4.0, 6.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ForeignKernel(Definition);

impl ForeignKernel {
    /// Makes a kernel from a function. `write` gets the inputs and the outputs of a call, and writes the outputs.
    ///
    /// # Errors
    /// [`Error::Value`] for an empty name.
    pub fn new(
        name: &str,
        write: impl Fn(&[Array], &[Array]) -> Result<()> + Send + Sync + 'static,
    ) -> Result<ForeignKernel> {
        ensure!(!name.is_empty(), "foreign_kernel", "The kernel's name is empty. Pass a name.");
        Ok(ForeignKernel(Definition {
            name: interned(name),
            function: Arc::new(Function(Box::new(write))),
            ensure_row_contiguous: true,
        }))
    }

    /// Sets whether inputs that are not row-major without gaps are copied; by default they are. Without the copies, the
    /// function gets inputs with their own strides.
    pub fn ensure_row_contiguous(mut self, ensure: bool) -> ForeignKernel {
        self.0.ensure_row_contiguous = ensure;
        self
    }

    /// Returns the kernel's name, which errors and profiles show.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Calls the kernel and returns the outputs, of these shapes and dtypes, as lazy arrays. With `init_value`, they
    /// are filled with this value before the function runs.
    ///
    /// # Errors
    /// [`Error::Value`] without outputs. Errors of the function are returned when an output is evaluated.
    pub fn call(
        &self,
        inputs: &[&Array],
        outputs: &[(&[usize], Dtype)],
        init_value: Option<f64>,
    ) -> Result<Vec<Array>> {
        ensure!(
            !outputs.is_empty(),
            self.0.name,
            "Must specify at least one output. Pass its shape and dtype."
        );
        let results = outputs.iter().map(|(shape, dtype)| (Shape::from_slice(shape), *dtype));
        let call = ForeignCall { definition: self.0.clone(), init_value };
        Array::multi_output(call, inputs, results.collect())
    }
}

impl ForeignCall {
    fn refuse<T>(&self, rule: &str) -> Result<T> {
        super::no_rule(self.definition.name, rule)
    }
}

impl MultiOutputRules for ForeignCall {
    fn name(&self) -> &'static str {
        self.definition.name
    }

    fn admits(&self, _: &Draft<'_>) -> bool {
        true
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        let d = &self.definition;
        let outputs = super::op::outputs(exec, results, self.init_value)?;
        let inputs = (0..call.inputs.len()).map(|i| {
            let operand = call.operand(i);
            let copy = if d.ensure_row_contiguous { exec.contiguous(&operand)? } else { None };
            Ok(copy.unwrap_or_else(|| operand.value.clone()))
        });
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let reads = inputs.iter().map(|value| &*value.buffer);
        let writes = outputs.iter().map(|value| &*value.buffer);
        // The first submission orders the function after its operands. The second one, after the call, lets users of
        // the outputs depend on the function's own work.
        exec.enqueue(reads.clone(), writes.clone(), |_| Ok(()))?;
        let given = (0..inputs.len()).map(|i| {
            let operand = call.operand(i);
            Array::given(inputs[i].clone(), Shape::from_slice(operand.shape), operand.dtype)
        });
        let given: Vec<Array> = given.collect();
        let made = outputs.iter().zip(results);
        let made: Vec<Array> = made
            .map(|(v, (shape, dtype))| Array::given(v.clone(), shape.clone(), *dtype))
            .collect();
        let write = || (d.function.0)(&given, &made);
        match exec.program_stream() {
            Some(place) => stream::with_stream(place, write)?,
            None => {
                return Err(Error::runtime(
                    d.name,
                    "It needs a stream of a device. Run it on a stream of a GPU.",
                ));
            }
        }
        exec.enqueue(reads, writes, |_| Ok(()))?;
        let of = |i: usize| call.operand(i);
        let read: Vec<Operand<'_>> =
            (0..inputs.len()).map(|i| Operand { value: &inputs[i], ..of(i) }).collect();
        let written = outputs.iter().zip(results);
        let written: Vec<Operand<'_>> = written
            .map(|(value, (shape, dtype))| Operand { value, shape, dtype: *dtype })
            .collect();
        exec.launched(&read.iter().collect::<Vec<_>>(), &written.iter().collect::<Vec<_>>());
        drop((read, written));
        Ok(outputs)
    }

    fn vjp(&self, _: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        self.refuse("vjp")
    }

    fn jvp(&self, _: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
        self.refuse("jvp")
    }

    fn vmap(&self, _: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        self.refuse("vmap")
    }
}
