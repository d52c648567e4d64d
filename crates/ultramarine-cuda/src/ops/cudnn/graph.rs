//! Operation graphs: tensors and the operations on them, as cuDNN descriptors.

use super::plan::Plan;
use super::{Library, MAKES, check};
use crate::context::lock;
use crate::sys::cudnn::{
    CROSS_CORRELATION, Cudnn, HEURISTICS_A, Handle, attribute, data, kind, note, pointwise, value,
};
use core::ffi::{c_int, c_void};
use std::sync::Arc;
use ultramarine_abi::helper::{Failure, Result};

/// Number of engine configurations that are tried, the best first.
const TRIED: usize = 16;
/// Maximum number of an engine's notes that are read.
const NOTES: usize = 32;
/// Alignment of tensors' addresses, in bytes.
pub const ALIGNMENT: i64 = 16;
/// First identity of the tensors inside a graph.
const INNER: i64 = 1 << 20;

/// A descriptor, destroyed when it is dropped.
pub(super) struct Descriptor {
    table: &'static Cudnn,
    pub(super) handle: Handle,
}

// SAFETY: a descriptor is changed by a single thread, and never after it is finalized.
unsafe impl Send for Descriptor {}
// SAFETY: as above.
unsafe impl Sync for Descriptor {}

impl Descriptor {
    pub(super) fn new(table: &'static Cudnn, kind: c_int) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the output pointer is valid.
        let made = unsafe { (table.descriptor_create)(kind, &mut handle) };
        check(table, "cudnnBackendCreateDescriptor", made)?;
        Ok(Self { table, handle })
    }

    /// Sets an attribute to values of the given type, which has to match `T`.
    pub(super) fn set<T>(&self, name: c_int, of: c_int, values: &[T]) -> Result<&Self> {
        let (count, first) = (values.len() as i64, values.as_ptr().cast());
        // SAFETY: the values have the attribute's type and number, by `cudnn::value`.
        let set = unsafe { (self.table.set)(self.handle, name, of, count, first) };
        check(self.table, "cudnnBackendSetAttribute", set)
            .map_err(|why| Failure { text: format!("attribute {name}: {}", why.text), ..why })?;
        Ok(self)
    }

    /// Sets an attribute to one descriptor.
    pub(super) fn link(&self, name: c_int, to: &Descriptor) -> Result<&Self> {
        self.set(name, value::DESCRIPTOR, &[to.handle])
    }

    pub(super) fn finalized(self) -> Result<Self> {
        // SAFETY: a descriptor whose attributes are set.
        let done = unsafe { (self.table.finalize)(self.handle) };
        check(self.table, "cudnnBackendFinalize", done)?;
        Ok(self)
    }

    /// Reads the values of an attribute: as many as exist and fit.
    pub(super) fn get<T>(&self, name: c_int, of: c_int, places: &mut [T]) -> Result<usize> {
        let mut count = 0;
        let first: *mut c_void = places.as_mut_ptr().cast();
        let room = places.len() as i64;
        // SAFETY: there is room for that many values of the attribute's type.
        let got = unsafe { (self.table.get)(self.handle, name, of, room, &mut count, first) };
        check(self.table, "cudnnBackendGetAttribute", got)?;
        Ok((count.max(0) as usize).min(places.len()))
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: made once, destroyed once.
        unsafe { (self.table.descriptor_destroy)(self.handle) };
    }
}

/// A tensor of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor(usize);

/// The result that a convolution computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convolved {
    /// The result.
    Output,
    /// The gradient with respect to the input.
    Input,
    /// The gradient with respect to the weight.
    Weight,
}

/// The window of a convolution, along each of its axes.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    /// Strides of the window.
    pub strides: &'a [i64],
    /// Dilations of the window.
    pub dilations: &'a [i64],
    /// Zeros before the first element.
    pub before: &'a [i64],
    /// Zeros after the last element.
    pub after: &'a [i64],
}

/// An operation graph under construction. A [`Plan`] is made from it.
pub struct Graph<'a> {
    library: &'a Arc<Library>,
    tensors: Vec<Descriptor>,
    sizes: Vec<Vec<i64>>,
    operations: Vec<Descriptor>,
    /// Descriptors that operations refer to.
    parts: Vec<Descriptor>,
}

impl<'a> Graph<'a> {
    /// Makes an empty graph.
    pub fn new(library: &'a Arc<Library>) -> Self {
        let (tensors, sizes, operations, parts) = Default::default();
        Self { library, tensors, sizes, operations, parts }
    }

    fn descriptor(&self, kind: c_int) -> Result<Descriptor> {
        Descriptor::new(self.library.table, kind)
    }

    fn add(
        &mut self,
        (id, data): (i64, c_int),
        (sizes, strides): (&[i64], &[i64]),
        (is_virtual, is_by_value): (bool, bool),
    ) -> Result<Tensor> {
        let tensor = self.descriptor(kind::TENSOR)?;
        let alignment = if is_by_value { 4 } else { ALIGNMENT };
        tensor
            .set(attribute::TENSOR_ID, value::INT64, &[id])?
            .set(attribute::TENSOR_DATA_TYPE, value::DATA_TYPE, &[data])?
            .set(attribute::TENSOR_SIZES, value::INT64, sizes)?
            .set(attribute::TENSOR_STRIDES, value::INT64, strides)?
            .set(attribute::TENSOR_ALIGNMENT, value::INT64, &[alignment])?
            .set(attribute::TENSOR_IS_VIRTUAL, value::BOOLEAN, &[u8::from(is_virtual)])?
            .set(attribute::TENSOR_IS_BY_VALUE, value::BOOLEAN, &[u8::from(is_by_value)])?;
        self.tensors.push(tensor.finalized()?);
        self.sizes.push(sizes.to_vec());
        Ok(Tensor(self.tensors.len() - 1))
    }

    /// A tensor in memory, which a call refers to by its identity.
    pub fn tensor(
        &mut self,
        id: i64,
        data: c_int,
        sizes: &[i64],
        strides: &[i64],
    ) -> Result<Tensor> {
        self.add((id, data), (sizes, strides), (false, false))
    }

    /// A scalar that each call provides.
    pub fn number(&mut self, id: i64, data: c_int) -> Result<Tensor> {
        self.add((id, data), (&[1; 4], &[1; 4]), (false, true))
    }

    /// An intermediate tensor, which is never in memory.
    pub fn inner(&mut self, data: c_int, sizes: &[i64]) -> Result<Tensor> {
        let strides = crate::launch::row_major(sizes);
        self.inner_with(data, sizes, &strides)
    }

    fn inner_with(&mut self, data: c_int, sizes: &[i64], strides: &[i64]) -> Result<Tensor> {
        let id = INNER + self.tensors.len() as i64;
        self.add((id, data), (sizes, strides), (true, false))
    }

    fn of(&self, tensor: Tensor) -> &Descriptor {
        &self.tensors[tensor.0]
    }

    fn pointwise_to(
        &mut self,
        (mode, precision, axis): (c_int, c_int, Option<i64>),
        operands: &[(c_int, Tensor)],
        to: Tensor,
    ) -> Result<Tensor> {
        let part = self.descriptor(kind::POINTWISE)?;
        part.set(attribute::POINTWISE_MODE, value::POINTWISE_MODE, &[mode])?.set(
            attribute::POINTWISE_PRECISION,
            value::DATA_TYPE,
            &[precision],
        )?;
        if let Some(axis) = axis {
            part.set(attribute::POINTWISE_AXIS, value::INT64, &[axis])?;
        }
        let part = part.finalized()?;
        let operation = self.descriptor(kind::OPERATION_POINTWISE)?;
        operation.link(attribute::OPERATION_POINTWISE, &part)?;
        for (name, tensor) in operands {
            operation.link(*name, self.of(*tensor))?;
        }
        operation.link(attribute::OPERATION_POINTWISE_Y, self.of(to))?;
        self.operations.push(operation.finalized()?);
        self.parts.push(part);
        Ok(to)
    }

    /// Applies a function to one or two tensors, and stores the result in another.
    pub fn pointwise_into(
        &mut self,
        mode: c_int,
        x: Tensor,
        b: Option<Tensor>,
        to: Tensor,
    ) -> Result<Tensor> {
        let mut operands = vec![(attribute::OPERATION_POINTWISE_X, x)];
        operands.extend(b.map(|b| (attribute::OPERATION_POINTWISE_B, b)));
        self.pointwise_to((mode, data::FLOAT, None), &operands, to)
    }

    /// A function of one or two float tensors, computed in float32.
    pub fn pointwise(&mut self, mode: c_int, x: Tensor, b: Option<Tensor>) -> Result<Tensor> {
        let to = self.inner(data::FLOAT, &self.sizes[x.0].clone())?;
        self.pointwise_into(mode, x, b, to)
    }

    /// Like [`Self::pointwise`], for integers or with bool results.
    fn whole(
        &mut self,
        mode: c_int,
        x: Tensor,
        b: Option<Tensor>,
        axis: Option<i64>,
    ) -> Result<Tensor> {
        let is_comparison = mode == pointwise::GREATER_EQUAL;
        let data = if is_comparison { data::BOOLEAN } else { data::INT32 };
        let to = self.inner(data, &self.sizes[x.0].clone())?;
        let mut operands = vec![(attribute::OPERATION_POINTWISE_X, x)];
        operands.extend(b.map(|b| (attribute::OPERATION_POINTWISE_B, b)));
        self.pointwise_to((mode, data, axis), &operands, to)
    }

    /// Applies a causal mask to scores `(b, h, m, n)`; masked scores are replaced by `low`. `shift` is the difference of the
    /// numbers of keys and queries: if there are more keys, the last query sees all of them.
    pub fn causal(
        &mut self,
        scores: Tensor,
        low: Tensor,
        shift: Option<[Tensor; 2]>,
    ) -> Result<Tensor> {
        let mut rows = self.whole(pointwise::INDEX, scores, None, Some(2))?;
        let columns = self.whole(pointwise::INDEX, scores, None, Some(3))?;
        if let Some([keys, queries]) = shift {
            rows = self.whole(pointwise::ADD, rows, Some(keys), None)?;
            rows = self.whole(pointwise::SUBTRACT, rows, Some(queries), None)?;
        }
        let seen = self.whole(pointwise::GREATER_EQUAL, rows, Some(columns), None)?;
        let to = self.inner(data::FLOAT, &self.sizes[scores.0].clone())?;
        let operands = [
            (attribute::OPERATION_POINTWISE_X, scores),
            (attribute::OPERATION_POINTWISE_B, low),
            (attribute::OPERATION_POINTWISE_T, seen),
        ];
        self.pointwise_to((pointwise::SELECT, data::FLOAT, None), &operands, to)
    }

    /// Adds a reduction to the sizes of `to`.
    pub fn reduce(&mut self, operator: c_int, x: Tensor, to: Tensor) -> Result<Tensor> {
        let part = self.descriptor(kind::REDUCTION)?;
        part.set(attribute::REDUCTION_PRECISION, value::DATA_TYPE, &[data::FLOAT])?.set(
            attribute::REDUCTION_OPERATOR,
            value::REDUCTION_OPERATOR,
            &[operator],
        )?;
        let part = part.finalized()?;
        let operation = self.descriptor(kind::OPERATION_REDUCTION)?;
        operation
            .link(attribute::OPERATION_REDUCTION, &part)?
            .link(attribute::OPERATION_REDUCTION_X, self.of(x))?
            .link(attribute::OPERATION_REDUCTION_Y, self.of(to))?;
        self.operations.push(operation.finalized()?);
        self.parts.push(part);
        Ok(to)
    }

    /// Matrix products, with sums in float32.
    pub fn matmul(&mut self, a: Tensor, b: Tensor, to: Tensor) -> Result<Tensor> {
        let part = self.descriptor(kind::MATMUL)?;
        part.set(attribute::MATMUL_PRECISION, value::DATA_TYPE, &[data::FLOAT])?;
        let part = part.finalized()?;
        let operation = self.descriptor(kind::OPERATION_MATMUL)?;
        operation
            .link(attribute::OPERATION_MATMUL, &part)?
            .link(attribute::OPERATION_MATMUL_A, self.of(a))?
            .link(attribute::OPERATION_MATMUL_B, self.of(b))?
            .link(attribute::OPERATION_MATMUL_C, self.of(to))?;
        self.operations.push(operation.finalized()?);
        self.parts.push(part);
        Ok(to)
    }

    /// A tensor of four axes with the last two swapped, in the given dtype; `strides` are those of the
    /// original tensor.
    pub fn transposed(&mut self, x: Tensor, data: c_int, strides: &[i64; 4]) -> Result<Tensor> {
        let swapped = |list: &[i64]| [list[0], list[1], list[3], list[2]];
        let sizes = swapped(&self.sizes[x.0]);
        let to = self.inner_with(data, &sizes, &swapped(strides))?;
        let operation = self.descriptor(kind::OPERATION_RESHAPE)?;
        operation
            .link(attribute::RESHAPE_X, self.of(x))?
            .link(attribute::RESHAPE_Y, self.of(to))?;
        self.operations.push(operation.finalized()?);
        Ok(to)
    }

    /// A convolution of `x` and `w` into `y`, or a gradient in place of one of these tensors.
    pub fn convolve(
        &mut self,
        what: Convolved,
        window: &Window<'_>,
        [x, w, y]: [Tensor; 3],
    ) -> Result<()> {
        let part = self.descriptor(kind::CONVOLUTION)?;
        let rank = window.strides.len() as i64;
        part.set(attribute::CONVOLUTION_PRECISION, value::DATA_TYPE, &[data::FLOAT])?
            .set(attribute::CONVOLUTION_MODE, value::CONVOLUTION_MODE, &[CROSS_CORRELATION])?
            .set(attribute::CONVOLUTION_RANK, value::INT64, &[rank])?
            .set(attribute::CONVOLUTION_DILATIONS, value::INT64, window.dilations)?
            .set(attribute::CONVOLUTION_STRIDES, value::INT64, window.strides)?
            .set(attribute::CONVOLUTION_PRE_PADDINGS, value::INT64, window.before)?
            .set(attribute::CONVOLUTION_POST_PADDINGS, value::INT64, window.after)?;
        let part = part.finalized()?;
        let (kind, [alpha, beta, of], names) = match what {
            Convolved::Output => (
                kind::CONVOLVE,
                [
                    attribute::CONVOLVE_ALPHA,
                    attribute::CONVOLVE_BETA,
                    attribute::CONVOLVE_CONVOLUTION,
                ],
                [attribute::CONVOLVE_X, attribute::CONVOLVE_W, attribute::CONVOLVE_Y],
            ),
            Convolved::Input => (
                kind::CONVOLVE_INPUT,
                [
                    attribute::CONVOLVE_INPUT_ALPHA,
                    attribute::CONVOLVE_INPUT_BETA,
                    attribute::CONVOLVE_INPUT_CONVOLUTION,
                ],
                [
                    attribute::CONVOLVE_INPUT_DX,
                    attribute::CONVOLVE_INPUT_W,
                    attribute::CONVOLVE_INPUT_DY,
                ],
            ),
            Convolved::Weight => (
                kind::CONVOLVE_WEIGHT,
                [
                    attribute::CONVOLVE_WEIGHT_ALPHA,
                    attribute::CONVOLVE_WEIGHT_BETA,
                    attribute::CONVOLVE_WEIGHT_CONVOLUTION,
                ],
                [
                    attribute::CONVOLVE_WEIGHT_X,
                    attribute::CONVOLVE_WEIGHT_DW,
                    attribute::CONVOLVE_WEIGHT_DY,
                ],
            ),
        };
        let operation = self.descriptor(kind)?;
        operation
            .set(alpha, value::FLOAT, &[1f32])?
            .set(beta, value::FLOAT, &[0f32])?
            .link(of, &part)?;
        for (name, tensor) in names.into_iter().zip([x, w, y]) {
            operation.link(name, self.of(tensor))?;
        }
        self.operations.push(operation.finalized()?);
        self.parts.push(part);
        Ok(())
    }

    /// The plan of the best engine that is deterministic and needs at most `room` bytes of workspace. The context is
    /// current.
    pub fn plan(mut self, room: u64) -> Result<Plan> {
        let library = self.library;
        let handle = lock(&library.handles[MAKES]);
        let graph = self.descriptor(kind::GRAPH)?;
        let operations: Vec<Handle> = self.operations.iter().map(|o| o.handle).collect();
        graph.set(attribute::GRAPH_OPERATIONS, value::DESCRIPTOR, &operations)?.set(
            attribute::GRAPH_HANDLE,
            value::HANDLE,
            &[handle.0],
        )?;
        let graph = graph.finalized()?;
        let heuristics = self.descriptor(kind::HEURISTICS)?;
        heuristics.link(attribute::HEURISTICS_GRAPH, &graph)?.set(
            attribute::HEURISTICS_MODE,
            value::HEURISTICS_MODE,
            &[HEURISTICS_A],
        )?;
        let heuristics = heuristics.finalized()?;
        let mut configs = Vec::new();
        for _ in 0..TRIED {
            configs.push(self.descriptor(kind::ENGINE_CONFIG)?);
        }
        let mut places: Vec<Handle> = configs.iter().map(|c| c.handle).collect();
        let of = value::DESCRIPTOR;
        let found = heuristics.get(attribute::HEURISTICS_RESULTS, of, &mut places)?;
        let mut said = None;
        for config in configs.into_iter().take(found) {
            match self.made(handle.0, &config) {
                Ok(Some((plan, workspace))) if workspace <= room => {
                    let mut parts = std::mem::take(&mut self.parts);
                    parts.append(&mut self.tensors);
                    parts.append(&mut self.operations);
                    parts.extend([graph, heuristics, config]);
                    return Ok(Plan::new(library.clone(), plan, parts, workspace));
                }
                Ok(_) => {}
                Err(why) => said = said.or(Some(why)),
            }
        }
        Err(said.unwrap_or_else(|| Failure::unsupported("cuDNN has no engine for it")))
    }

    /// The plan of an engine, and its workspace in bytes. `None` if the engine is excluded.
    fn made(&self, handle: Handle, config: &Descriptor) -> Result<Option<(Descriptor, u64)>> {
        let engine = self.descriptor(kind::ENGINE)?;
        config.get(attribute::ENGINE_CONFIG_ENGINE, value::DESCRIPTOR, &mut [engine.handle])?;
        let mut notes = [0; NOTES];
        let of = value::NUMERICAL_NOTE;
        let count = engine.get(attribute::ENGINE_NUMERICAL_NOTES, of, &mut notes)?;
        if notes[..count].iter().any(|note| is_excluded(*note)) {
            return Ok(None);
        }
        let plan = self.descriptor(kind::PLAN)?;
        plan.set(attribute::PLAN_HANDLE, value::HANDLE, &[handle])?
            .link(attribute::PLAN_ENGINE_CONFIG, config)?;
        let plan = plan.finalized()?;
        let mut workspace = [0i64];
        plan.get(attribute::PLAN_WORKSPACE, value::INT64, &mut workspace)?;
        Ok(Some((plan, workspace[0].max(0) as u64)))
    }
}

/// Excludes engines whose sums differ from call to call or are kept in a half dtype, and engines that use
/// transforms which lose precision.
fn is_excluded(found: c_int) -> bool {
    match found {
        note::REDUCED_PRECISION_REDUCTION | note::FFT | note::NONDETERMINISTIC => true,
        _ => (note::WINOGRAD..=note::WINOGRAD_13).contains(&found),
    }
}

#[cfg(test)]
mod tests {
    use super::is_excluded;

    #[test]
    fn engines_that_lose_bits_are_excluded() {
        let excluded: Vec<_> = (0..10).filter(|note| is_excluded(*note)).collect();
        assert_eq!(excluded, [2, 3, 4, 5, 6, 7, 8]);
    }
}
