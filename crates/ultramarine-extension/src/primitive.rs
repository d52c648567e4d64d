//! The trait of operations, and the arguments of its rules.

use crate::{
    array::{Array, broadcast_types, handles, owned},
    cpu::CpuCall,
    error::{Error, Result},
    gpu::GpuCall,
    host::{self, asked, lent},
    place::Place,
    table::Table,
    tensor::TensorType,
};
use std::fmt;
use std::ptr::null_mut;

/// An operation with its attributes.
///
/// Required are the name, and one of the evaluations or [`compose`](Primitive::compose). [`infer`](Primitive::infer) has to be
/// written where results are not of their operands' type; the other rules are overrides of what follows from `compose`. A rule that is not overridden gives [`Error::missing`];
/// where neither it nor `compose` is there, users get an error that names the primitive and the rule.
///
/// Rules are called from any thread, at once for different arrays. They may panic (which becomes an error), and all but
/// evaluations may use arrays' operations.
#[allow(unused_variables)]
pub trait Primitive: fmt::Debug + Send + Sync + 'static {
    /// Returns the name, for errors and printing. It is a part of the primitive's identity; see
    /// [`Primitive::attributes`].
    fn name(&self) -> &str;

    /// Returns the version, a part of the primitive's identity: raise it when the meaning of the
    /// attributes or the results change.
    fn version(&self) -> u32 {
        1
    }

    /// Returns the number of results, at least 1.
    fn outputs(&self) -> usize {
        1
    }

    /// Fields that the result depends on besides the operands. Two primitives of equal name, version and attributes count as the
    /// same operation: `compile` then computes it once. By default, all that `Debug` shows: with `derive(Debug)`, all fields.
    fn attributes(&self) -> Attributes {
        Attributes::new().text(&format!("{self:?}"))
    }

    /// Returns whether evaluations give the outputs memory themselves ([`CpuCall::output_taking`], [`CpuCall::allocate`],
    /// [`CpuCall::share`]) instead of getting new memory for them. Outputs that are asked for without any of these get
    /// new memory all the same, on devices by the first launch that names them.
    fn allocates(&self) -> bool {
        false
    }

    /// Shapes and dtypes of the results: the place for errors about operands. It is asked again for other shapes, and gives the
    /// same answer to the same question. By default, each result has the shape that the operands broadcast to, and the dtype
    /// that they promote to: with one operand, its type.
    ///
    /// # Errors
    /// Message of the error when operands do not fit.
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>> {
        let result = match inputs {
            [] => {
                let text = "The types of results cannot follow from operands, because there are none. Write `infer`.";
                return Err(Error::value(format!("[{}] {text}", self.name())));
            }
            [one] => one.clone(),
            several => broadcast_types(several)?,
        };
        Ok(vec![result; self.outputs()])
    }

    /// Computes the outputs on the CPU.
    ///
    /// # Errors
    /// Whatever fails.
    fn eval_cpu(&self, call: &mut CpuCall<'_>) -> Result<()> {
        Err(Error::missing())
    }

    /// Computes the outputs on a device that takes kernels in source form.
    ///
    /// # Errors
    /// Whatever fails; [`Error::unsupported`] where `compose` shall be tried.
    fn eval_gpu(&self, call: &mut GpuCall<'_>) -> Result<()> {
        Err(Error::missing())
    }

    /// The results, of the types that `infer` gave, by other operations.
    ///
    /// # Errors
    /// Whatever fails.
    fn compose(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        Err(Error::missing())
    }

    /// Cotangents of the operands, one for each, of its shape: `None` is zero.
    ///
    /// # Errors
    /// Whatever fails.
    fn vjp(&self, of: &Vjp<'_>) -> Derivatives {
        Err(Error::missing())
    }

    /// Tangents of the results, one for each, of its shape: `None` is zero.
    ///
    /// # Errors
    /// Whatever fails.
    fn jvp(&self, of: &Jvp<'_>) -> Derivatives {
        Err(Error::missing())
    }

    /// The results for a batch, and the axis that each has for it (`None`: it is the same for all).
    ///
    /// # Errors
    /// Whatever fails.
    fn vmap(&self, of: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        Err(Error::missing())
    }

    /// Returns true if another primitive of this type is the same operation. It is called for equal
    /// name, version and attributes only.
    fn equivalent(&self, other: &Self) -> bool
    where
        Self: Sized,
    {
        true
    }

    /// Name in errors and graphs.
    ///
    /// # Errors
    /// Those of the formatter.
    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The result of [`Primitive::vjp`], one array for each operand, or of [`Primitive::jvp`], one for
/// each result. `None` stands for zeros.
pub type Derivatives = Result<Vec<Option<Array>>>;

/// Arguments of the reverse rule, [`Primitive::vjp`].
#[derive(Debug)]
pub struct Vjp<'a> {
    /// Operands.
    pub inputs: &'a [Array],
    /// Results.
    pub outputs: &'a [Array],
    /// Cotangents of the results, of their shapes; `None` is zero.
    pub cotangents: &'a [Option<Array>],
    /// Operands whose cotangents are needed. Others may be left out (`None`).
    pub wanted: &'a [bool],
}

impl Vjp<'_> {
    /// The cotangent of the first result: zeros, if it is that.
    ///
    /// # Errors
    /// There is no memory.
    pub fn cotangent(&self) -> Result<Array> {
        match (self.cotangents, self.outputs) {
            ([Some(cotangent), ..], _) => Ok(cotangent.clone()),
            (_, [result, ..]) => Array::zeros(&result.tensor_type()?),
            _ => Err(Error::runtime("The primitive has no result. Give it at least one output.")),
        }
    }
}

/// Arguments of the forward rule, [`Primitive::jvp`].
#[derive(Debug)]
pub struct Jvp<'a> {
    /// Operands.
    pub inputs: &'a [Array],
    /// Tangents of the operands, of their shapes; `None` is zero.
    pub tangents: &'a [Option<Array>],
}

/// Arguments of the batching rule, [`Primitive::vmap`].
#[derive(Debug)]
pub struct Vmap<'a> {
    /// Operands; those with an axis in `axes` have it besides the ones that the operation is about.
    pub inputs: &'a [Array],
    /// The batch's axis of each; `None`: the same for all.
    pub axes: &'a [Option<usize>],
    /// Size of the batch.
    pub size: usize,
}

impl Vmap<'_> {
    /// The operands with the batch in front, of one rank and broadcast against each other there: all that an operation
    /// that works element by element needs. Those that are the same for all get a first axis of size 1.
    ///
    /// # Errors
    /// Those of `moveaxis` and `reshape`.
    pub fn batch_first(&self) -> Result<Vec<Array>> {
        let rank = self.inputs.iter().zip(self.axes);
        let rank = rank.map(|(x, axis)| x.ndim() - usize::from(axis.is_some())).max().unwrap_or(0);
        self.inputs
            .iter()
            .zip(self.axes)
            .map(|(x, axis)| {
                let moved = match axis {
                    Some(0) => x.clone(),
                    Some(axis) => x.moveaxis(*axis as isize, 0)?,
                    None => x.expand_dims(&[0])?,
                };
                let missing = rank + 1 - moved.ndim();
                if missing == 0 {
                    return Ok(moved);
                }
                let axes: Vec<isize> = (1..=missing as isize).collect();
                moved.expand_dims(&axes)
            })
            .collect()
    }
}

/// Bytes that tell operations of one name apart.
///
/// ```
/// use ultramarine_extension::Attributes;
///
/// let a = Attributes::new().float(2.0).int(3);
/// assert_eq!(a, Attributes::new().float(2.0).int(3));
/// assert_ne!(a, Attributes::new().float(2.5).int(3));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Attributes(Vec<u8>);

impl Attributes {
    /// Makes attributes without bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a number. Its bits count, so 0.0 differs from -0.0.
    pub fn float(mut self, value: f64) -> Self {
        self.0.extend(value.to_bits().to_le_bytes());
        self
    }

    /// Appends an integer.
    pub fn int(mut self, value: i64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Appends a flag.
    pub fn flag(mut self, value: bool) -> Self {
        self.0.push(u8::from(value));
        self
    }

    /// Appends integers, behind their number.
    pub fn ints(mut self, values: &[i64]) -> Self {
        self = self.int(values.len() as i64);
        values.iter().fold(self, |all, &v| all.int(v))
    }

    /// Appends a text, behind its length.
    pub fn text(self, value: &str) -> Self {
        self.bytes(value.as_bytes())
    }

    /// Appends bytes, behind their number.
    pub fn bytes(mut self, value: &[u8]) -> Self {
        self = self.int(value.len() as i64);
        self.0.extend(value);
        self
    }

    /// Returns all bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Applies a primitive to arrays and returns its results, which are lazy.
///
/// `place` says where it runs; [`Place::Default`] is where the operands are at home.
///
/// # Errors
/// An error of [`Primitive::infer`]; operands on devices of different hosts; no connection
/// ([`connect`](crate::connect)).
pub fn apply<P: Primitive>(primitive: P, inputs: &[&Array], place: Place) -> Result<Vec<Array>> {
    let (run, host) = (lent!(apply), host::here()?.host);
    let table = Table::new(primitive)?;
    let (inputs, mut outputs) = (handles(inputs), vec![null_mut(); table.n_outputs()]);
    let code = place.to_code();
    let code = if place == Place::Default { std::ptr::null() } else { &raw const code };
    table.with(|raw| {
        // SAFETY: the host's function with the host's pointer and handles; it copies the primitive and takes over its
        // context; there are as many places as the primitive has outputs.
        asked("apply", |error| unsafe {
            let (first, n) = (inputs.as_ptr(), inputs.len() as u32);
            run(host, raw, first, n, code, outputs.as_mut_ptr(), error)
        })
    })?;
    // SAFETY: what it gives is the caller's.
    unsafe { owned(outputs) }
}

/// Applies a primitive with one result, as [`apply`] does.
///
/// # Errors
/// As [`apply`]; and a primitive that has several results.
pub fn apply_one<P: Primitive>(primitive: P, inputs: &[&Array], place: Place) -> Result<Array> {
    let name = primitive.name().to_owned();
    let mut results = apply(primitive, inputs, place)?;
    match (results.pop(), results.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => Err(Error::runtime(format!(
            "[{name}] It does not have exactly one result. Use the call for several."
        ))),
    }
}
