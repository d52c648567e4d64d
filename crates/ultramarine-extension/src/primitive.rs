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
/// Required are the name, and one of the evaluations or [`compose`](Primitive::compose).
/// [`infer`](Primitive::infer) is required if the results do not have the type of the operands. All
/// other rules are optional: by default they are derived from `compose`. The default of a rule
/// returns [`Error::missing`]. If neither the rule nor `compose` is there, users get an error that
/// names the primitive and the rule.
///
/// Rules are called from any thread, and at the same time for different arrays. They may panic; the
/// panic becomes an error. All rules except evaluations may use operations on arrays.
#[allow(unused_variables)]
pub trait Primitive: fmt::Debug + Send + Sync + 'static {
    /// Returns the name, for errors and printing. It is a part of the primitive's identity; see
    /// [`Primitive::attributes`].
    fn name(&self) -> &str;

    /// Returns the version, a part of the primitive's identity. Raise it when the results or the
    /// meaning of the attributes change.
    fn version(&self) -> u32 {
        1
    }

    /// Returns the number of results, at least 1.
    fn outputs(&self) -> usize {
        1
    }

    /// Returns the fields that the result depends on, in addition to the operands. Two primitives
    /// with equal name, version and attributes count as the same operation, which `compile`
    /// computes only once. By default, the attributes are the text that `Debug` shows: with
    /// `derive(Debug)`, all fields.
    fn attributes(&self) -> Attributes {
        Attributes::new().text(&format!("{self:?}"))
    }

    /// Returns true if evaluations themselves allocate the outputs' memory
    /// ([`CpuCall::output_taking`], [`CpuCall::allocate`], [`CpuCall::share`]) instead of getting
    /// new memory for them. An output that is requested without any of these functions still gets
    /// new memory; on devices, the first launch that names it allocates the memory.
    fn allocates(&self) -> bool {
        false
    }

    /// Returns shapes and dtypes of the results, and checks the operands. It is called again for
    /// other shapes, and must always return the same answer for the same operands. By default, each
    /// result has the shape to which the operands broadcast, and the dtype to which they promote.
    /// With one operand, this is its type.
    ///
    /// # Errors
    /// The error that users get for operands that do not fit.
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
    /// Those of the computation.
    fn eval_cpu(&self, call: &mut CpuCall<'_>) -> Result<()> {
        Err(Error::missing())
    }

    /// Computes the outputs on a device that takes kernels in source form.
    ///
    /// # Errors
    /// Those of the computation; [`Error::unsupported`] if `compose` should be tried.
    fn eval_gpu(&self, call: &mut GpuCall<'_>) -> Result<()> {
        Err(Error::missing())
    }

    /// Computes the results by other operations. They have the types that `infer` returned.
    ///
    /// # Errors
    /// Those of the computation.
    fn compose(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        Err(Error::missing())
    }

    /// Returns the cotangents of the operands, one for each operand and with its shape. `None`
    /// means zero.
    ///
    /// # Errors
    /// Those of the computation.
    fn vjp(&self, of: &Vjp<'_>) -> Derivatives {
        Err(Error::missing())
    }

    /// Returns the tangents of the results, one for each result and with its shape. `None` means
    /// zero.
    ///
    /// # Errors
    /// Those of the computation.
    fn jvp(&self, of: &Jvp<'_>) -> Derivatives {
        Err(Error::missing())
    }

    /// Returns the results for a batch, each with the axis of the batch (`None`: the result is the
    /// same for the whole batch).
    ///
    /// # Errors
    /// Those of the computation.
    fn vmap(&self, of: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        Err(Error::missing())
    }

    /// Returns true if another primitive of this type is the same operation. It is called only if
    /// name, version and attributes are equal.
    fn equivalent(&self, other: &Self) -> bool
    where
        Self: Sized,
    {
        true
    }

    /// Writes the name for errors and graphs.
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
    /// Cotangents of the results, with the results' shapes; `None` means zero.
    pub cotangents: &'a [Option<Array>],
    /// Operands whose cotangents are needed. Others may be left out (`None`).
    pub wanted: &'a [bool],
}

impl Vjp<'_> {
    /// Returns the cotangent of the first result. If it is zero, returns an array of zeros.
    ///
    /// # Errors
    /// An [`Error`] if there is no memory.
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
    /// Tangents of the operands, with the operands' shapes; `None` means zero.
    pub tangents: &'a [Option<Array>],
}

/// Arguments of the batching rule, [`Primitive::vmap`].
#[derive(Debug)]
pub struct Vmap<'a> {
    /// Operands. Those with an axis in `axes` have this axis in addition to the operation's own
    /// axes.
    pub inputs: &'a [Array],
    /// The batch's axis of each operand; `None` if the operand is the same for the whole batch.
    pub axes: &'a [Option<usize>],
    /// Size of the batch.
    pub size: usize,
}

impl Vmap<'_> {
    /// Returns the operands with the batch as the first axis. They have the same rank, so that they
    /// broadcast against each other. An elementwise operation needs nothing else. Operands that are
    /// the same for the whole batch get a first axis of size 1.
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

/// Bytes that distinguish operations with the same name.
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

    /// Appends integers, preceded by their number.
    pub fn ints(mut self, values: &[i64]) -> Self {
        self = self.int(values.len() as i64);
        values.iter().fold(self, |all, &v| all.int(v))
    }

    /// Appends a text, preceded by its length.
    pub fn text(self, value: &str) -> Self {
        self.bytes(value.as_bytes())
    }

    /// Appends bytes, preceded by their number.
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
/// `place` is the device or stream on which it runs. [`Place::Default`] is the operands' home
/// device.
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
        // SAFETY: the host's function with the host's pointer and handles. It copies the primitive
        // and takes over its context. There is room for all outputs of the primitive.
        asked("apply", |error| unsafe {
            let (first, n) = (inputs.as_ptr(), inputs.len() as u32);
            run(host, raw, first, n, code, outputs.as_mut_ptr(), error)
        })
    })?;
    // SAFETY: the caller owns the results.
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
