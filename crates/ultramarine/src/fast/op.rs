//! A call of a kernel, as an operation.

use super::kernel::{Definition, Launch};
use super::source::{Generated, Language, Slot};
use crate::backend::{Argument, DeviceState, Exec, KernelSource, Operand};
use crate::error::{Error, Result};
use crate::ops::rules::multi_output::{MultiOutputJvp, MultiOutputRules, MultiOutputVjp};
use crate::ops::{Attribute, Call, Cotangents, Draft, OperationKey, Vmap, attributes};
use crate::{array::Array, dtype::Dtype, node::Value, scalar::Scalar, shape::Shape};
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, OnceLock};
use ultramarine_abi::schema::{NoAttrs, op};

attributes! {
    /// A kernel and the arguments of its call.
    #[derive(Debug)]
    struct KernelCall {
        definition: Arc<Definition>,
        launch: Launch,
        /// Number of axes and dtype of each input.
        inputs: Vec<(usize, Dtype)>,
    }
}

struct Inner {
    call: KernelCall,
    /// The source generated for the language of the device on which the call runs.
    generated: OnceLock<Arc<Generated>>,
}

/// The operation.
#[derive(Clone)]
pub(super) struct Launched(Arc<Inner>);

impl Debug for Launched {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.call.fmt(f)
    }
}

impl Attribute for Launched {
    fn encode(&self, key: &mut OperationKey) {
        self.0.call.encode(key);
    }
}

impl Launched {
    pub fn new(definition: Arc<Definition>, launch: Launch, inputs: &[&Array]) -> Launched {
        let inputs = inputs.iter().map(|a| (a.shape().len(), a.dtype())).collect();
        let call = KernelCall { definition, launch, inputs };
        Launched(Arc::new(Inner { call, generated: OnceLock::new() }))
    }

    /// The source around the body, in the device's language.
    pub fn generated(&self, device: &'static DeviceState) -> Result<Arc<Generated>> {
        let language = self.0.call.definition.language_on(device)?;
        let make = || Ok(Arc::new(self.generate(language)?));
        if let Some(known) = self.0.generated.get() {
            // An operation can run again on another device, so generate its language then.
            return if known.language == language { Ok(known.clone()) } else { make() };
        }
        let made = make()?;
        Ok(self.0.generated.get_or_init(|| made).clone())
    }

    fn generate(&self, language: Language) -> Result<Generated> {
        let KernelCall { definition, launch, inputs } = &self.0.call;
        definition.generate(language, inputs, launch)
    }

    /// The whole source in a language.
    pub fn whole(&self, language: Language) -> Result<String> {
        Ok(self.source(&self.generate(language)?).whole())
    }

    /// The whole source, on a device.
    pub fn whole_source(&self, device: &'static DeviceState) -> Result<String> {
        Ok(self.source(&*self.generated(device)?).whole())
    }

    fn source<'a>(&'a self, made: &'a Generated) -> KernelSource<'a> {
        let (d, language) = (&*self.0.call.definition, made.language);
        KernelSource {
            op: d.name,
            language: language.name(),
            head: &made.head,
            source: d.body(language.name()).unwrap_or(""),
            tail: &made.tail,
            entry: &made.entry,
            options: d.options_of(language),
            ..KernelSource::default()
        }
    }

    /// An input in the form that the kernel takes.
    fn input(&self, exec: &Exec, operand: &Operand<'_>) -> Result<Value> {
        let copy = match self.0.call.definition.ensure_row_contiguous {
            true => exec.contiguous(operand)?,
            false => exec.reachable(operand)?,
        };
        Ok(copy.unwrap_or_else(|| operand.value.clone()))
    }

    /// The numbers of a list, in the language's integer type.
    fn list(&self, language: Language, slot: Slot, operand: &Operand<'_>) -> Result<Vec<u8>> {
        let narrow = |v: isize| {
            i32::try_from(v).map_err(|_| {
                let text = format!(
                    "{v} elements along an axis are too many for a kernel in {}. Split the array.",
                    language.name()
                );
                Error::value(self.0.call.definition.name, text)
            })
        };
        let mut bytes = Vec::new();
        match slot {
            Slot::Shape(_) => {
                for size in operand.shape {
                    bytes.extend(narrow(*size as isize)?.to_le_bytes());
                }
            }
            _ if language == Language::Wgsl => {
                for stride in operand.value.strides.iter() {
                    bytes.extend(narrow(*stride)?.to_le_bytes());
                }
            }
            _ => {
                for stride in operand.value.strides.iter() {
                    bytes.extend((*stride as i64).to_le_bytes());
                }
            }
        }
        if bytes.is_empty() {
            // An array without axes has an empty list; the padding is not read.
            bytes.extend([0; 8]);
        }
        Ok(bytes)
    }

    fn refuse<T>(&self, rule: &str) -> Result<T> {
        super::no_rule(self.0.call.definition.name, rule)
    }
}

/// Memory for outputs, filled if there is an initial value.
pub(super) fn outputs(
    exec: &Exec,
    results: &[(Shape, Dtype)],
    init_value: Option<f64>,
) -> Result<Vec<Value>> {
    let outputs = results.iter().map(|(s, d)| exec.alloc(s, *d)).collect::<Result<Vec<_>>>()?;
    if let Some(number) = init_value {
        for (value, (shape, dtype)) in outputs.iter().zip(results) {
            let to = Operand { value, shape, dtype: *dtype };
            let fill = Scalar::from_f64(*dtype, number);
            exec.run(op::FILL, &NoAttrs::new(), &[], &[to], &[fill])?;
        }
    }
    Ok(outputs)
}

impl MultiOutputRules for Launched {
    fn name(&self) -> &'static str {
        self.0.call.definition.name
    }

    fn admits(&self, _: &Draft<'_>) -> bool {
        true
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        let launch = &self.0.call.launch;
        let made = &*self.generated(exec.device)?;
        let outputs = outputs(exec, results, launch.init_value)?;
        let output = |i: usize| {
            let (shape, dtype) = &results[i];
            Operand { value: &outputs[i], shape, dtype: *dtype }
        };
        if launch.grid.contains(&0) {
            return Ok(outputs);
        }
        let inputs = (0..call.inputs.len())
            .map(|i| self.input(exec, &call.operand(i)))
            .collect::<Result<Vec<_>>>()?;
        let input = |i: usize| Operand { value: &inputs[i], ..call.operand(i) };
        let lists = made.slots.iter().map(|slot| match slot {
            Slot::Shape(i) | Slot::Strides(i) => self.list(made.language, *slot, &input(*i)),
            Slot::Grids => Ok(launch.grid.iter().flat_map(|n| n.to_le_bytes()).collect()),
            _ => Ok(Vec::new()),
        });
        let lists = lists.collect::<Result<Vec<_>>>()?;
        let argument = |(slot, list): (&Slot, _)| match slot {
            Slot::Input(i) => Argument::Read(input(*i)),
            Slot::Output(i) => Argument::Write(output(*i)),
            Slot::Ndim(i) => {
                Argument::Scalar(Scalar::from_i64(Dtype::Int32, call.descs[*i].0.len() as i64))
            }
            Slot::Grid(axis) => {
                Argument::Scalar(Scalar::from_i64(Dtype::Uint32, launch.grid[*axis] as i64))
            }
            Slot::Shape(_) | Slot::Strides(_) | Slot::Grids => Argument::Constants(list),
        };
        let arguments: Vec<Argument<'_>> =
            made.slots.iter().zip(lists.iter().map(Vec::as_slice)).map(argument).collect();
        let kernel = exec.user_kernel(&self.source(made))?;
        let shared = self.0.call.definition.shared_memory;
        let group = launch.real_group();
        exec.launch(&kernel, &arguments, launch.groups(group), group, shared)?;
        drop(arguments);
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

#[cfg(test)]
mod tests {
    use super::KernelCall;
    use crate::graph::tests::check_samples;

    #[test]
    fn calls_are_one_operation_where_kernels_and_arguments_are_equal() {
        check_samples::<KernelCall>();
    }
}
