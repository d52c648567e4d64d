//! The operation of all views: strides for the evaluator, linear maps for the transforms. Views do not reach a backend,
//! except those that strides cannot express; they copy first.

use crate::backend::Exec;
use crate::error::{Error, Result, bail, ensure};
use crate::node::{Node, Value};
use crate::ops::rules::shapeless::{self, filled_like, reshaped_like};
use crate::ops::shape::axes::KeepDims;
use crate::ops::{
    Call, Cotangents, Draft, Fitted, Jvp, Refit, Rules, Vjp, Vmap, attributes, draft,
    index::update::Update, rules::batching, shape::reshape::view, shape::slice::diagonal_len,
};
use crate::placement::{self, Place, follow};
use crate::shape::{self, Shape, Strides};
use crate::{array::Array, device::Device, dtype::Dtype, scalar::Scalar};
use smallvec::{SmallVec, smallvec};

attributes! {
    /// A view: its relation to its operand.
    #[derive(Clone, Debug)]
    pub(crate) enum View {
        /// NumPy's broadcast to the node's shape.
        Broadcast,
        /// Row-major reinterpretation as the node's shape.
        Reshape,
        /// Axis `i` of the result is axis `order[i]` of the operand.
        Transpose(order: SmallVec<[u8; 8]>),
        /// Every `step[i]`-th element from `start[i]` on, of each axis.
        Slice { start: SmallVec<[usize; 4]>, step: Strides },
        /// The diagonal of axes `a` and `b`, as the last axis.
        Diagonal { offset: isize, a: usize, b: usize },
        /// Any strides over the row-major elements.
        Strided { strides: Strides, offset: usize },
        /// The same bytes under the node's dtype.
        Bitcast,
    }
}

impl View {
    /// The view of an evaluated operand of shape `from`, if strides can express it.
    fn of(&self, input: &Value, from: &[usize], to: &[usize], dtypes: [Dtype; 2]) -> Option<Value> {
        let item = dtypes[0].size() as isize;
        let at = |elements: isize, strides: Strides| Value {
            buffer: input.buffer.clone(),
            offset: input.offset.wrapping_add_signed(elements * item),
            strides,
        };
        Some(match self {
            View::Broadcast => at(0, spread(&input.strides, from, to)),
            View::Transpose(order) => {
                at(0, order.iter().map(|a| input.strides[*a as usize]).collect())
            }
            View::Reshape => at(0, reshaped(from, &input.strides, to)?),
            View::Slice { .. } | View::Diagonal { .. } => {
                let (elements, strides) = self.region(&input.strides, to);
                at(elements, strides)
            }
            View::Strided { strides, offset } => {
                if !shape::is_contiguous(from, &input.strides) {
                    return None;
                }
                let inside = !to.contains(&0);
                at(if inside { *offset as isize } else { 0 }, strides.clone())
            }
            View::Bitcast => at(0, retyped(input, from, dtypes)?),
        })
    }

    /// The view that a node makes of an evaluated operand, if strides can express it.
    pub fn of_operand(&self, operand: &Node, node: &Node) -> Option<Value> {
        self.of(operand.value()?, &operand.shape, &node.shape, [operand.dtype, node.dtype])
    }

    /// Makes the view of an evaluated array without a node for the evaluator, because graphs of models have a view of
    /// each weight. `None` if the array is lazy, a constant or part of a trace, or if strides cannot express the view.
    /// The view is on the array's device, so the operation that uses it must be placed separately.
    pub fn of_value(&self, a: &Array, shape: &[usize]) -> Option<Array> {
        let node = a.node();
        if !node.is_done() || node.is_traced() || node.op.is_constant() || shapeless::shapeless() {
            return None;
        }
        let value = self.of(node.value()?, &node.shape, shape, [node.dtype; 2])?;
        Some(Array::given_at(node.place, value, Shape::from_slice(shape), node.dtype))
    }

    /// The view of an array whose views are made at once ([`on_hand`]), unless strides cannot express it.
    pub fn at_once(&self, a: &Array, shape: &[usize]) -> Option<Array> {
        let (value, place) = on_hand(a)?;
        let value = self.of(value, a.shape(), shape, [a.dtype(); 2])?;
        Some(Array::given_at(place, value, Shape::from_slice(shape), a.dtype()))
    }

    /// An evaluated array, broadcast to a shape, for kernels whose operands need equal shapes.
    pub fn broadcast_value(of: &Value, from: &[usize], to: &[usize]) -> Value {
        Value {
            buffer: of.buffer.clone(),
            offset: of.offset,
            strides: spread(&of.strides, from, to),
        }
    }

    /// For a slice or diagonal: the offset of its first element, and its strides.
    fn region(&self, strides: &[isize], to: &[usize]) -> (isize, Strides) {
        let (elements, out): (isize, Strides) = match self {
            View::Slice { start, step } => (
                start.iter().zip(strides).map(|(a, s)| *a as isize * s).sum(),
                step.iter().zip(strides).map(|(k, s)| k.wrapping_mul(*s)).collect(),
            ),
            View::Diagonal { offset, a, b } => {
                let along = if *offset >= 0 { strides[*b] } else { strides[*a] };
                let mut out: Strides =
                    (0..strides.len()).filter(|i| i != a && i != b).map(|i| strides[i]).collect();
                out.push(strides[*a].wrapping_add(strides[*b]));
                (offset.abs() * along, out)
            }
            _ => (0, Strides::from_slice(strides)),
        };
        // The offset must not point outside the buffer, even for an empty view.
        (if to.contains(&0) { 0 } else { elements }, out)
    }

    /// The part of an evaluated array that a slice or diagonal addresses.
    pub fn part(&self, of: &Value, to: &[usize], dtype: Dtype) -> Value {
        let (elements, strides) = self.region(&of.strides, to);
        let offset = of.offset.wrapping_add_signed(elements * dtype.size() as isize);
        Value { buffer: of.buffer.clone(), offset, strides }
    }

    /// The same view for an operand with an additional axis in front. The result has that axis in front too.
    pub fn batched(&self, unmapped: &[usize], size: usize) -> View {
        match self {
            View::Broadcast | View::Reshape | View::Bitcast => self.clone(),
            View::Transpose(order) => {
                View::Transpose(std::iter::once(0).chain(order.iter().map(|a| a + 1)).collect())
            }
            View::Slice { start, step } => View::Slice {
                start: std::iter::once(0).chain(start.iter().copied()).collect(),
                step: std::iter::once(1).chain(step.iter().copied()).collect(),
            },
            View::Diagonal { offset, a, b } => {
                View::Diagonal { offset: *offset, a: a + 1, b: b + 1 }
            }
            View::Strided { strides, offset } => {
                let n = if size > 1 { shape::size(unmapped) as isize } else { 0 };
                let strides = std::iter::once(n).chain(strides.iter().copied()).collect();
                View::Strided { strides, offset: *offset }
            }
        }
    }
}

/// The value and the place of an array whose views are made at once. Such an array is in host memory, where a view
/// costs less than its node. It is in no trace, because a trace would have to find the view's operand again. Devices
/// keep nodes, because their evaluations repeat according to the operand of a view ([`crate::ops::nn::attention`]).
pub(crate) fn on_hand(a: &Array) -> Option<(&Value, Place)> {
    let node = a.node();
    let value = node.value()?;
    let here = value.buffer.device() == Device::CPU && !node.is_traced() && !shapeless::shapeless();
    if !here || node.dtype.is_storage() {
        return None;
    }
    Some((value, placement::place_view(node)?))
}

impl Rules for View {
    fn name(&self) -> &'static str {
        match self {
            View::Broadcast => "broadcast_to",
            View::Reshape => "reshape",
            View::Transpose(_) => "transpose",
            View::Slice { .. } => "slice",
            View::Diagonal { .. } => "diagonal",
            View::Strided { .. } => "as_strided",
            View::Bitcast => "view",
        }
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([(from, before)], (to, after))) = node.of() else { return false };
        if let View::Bitcast = self {
            return is_retyped(from, before, to, after);
        }
        before == after
            && match self {
                View::Broadcast => {
                    shape::broadcast_shapes(from, to).is_ok_and(|all| all[..] == *to)
                }
                View::Reshape => shape::size(from) == shape::size(to),
                View::Transpose(order) => {
                    order.len() == from.len()
                        && draft::are_axes(order, from.len())
                        && order.iter().map(|a| from[*a as usize]).eq(to.iter().copied())
                }
                View::Slice { start, step } => is_slice(from, to, start, step),
                View::Diagonal { offset, a, b } => is_diagonal(from, to, *offset, [*a, *b]),
                View::Strided { strides, offset } => {
                    is_inside(shape::size(from), to, strides, *offset)
                }
                View::Bitcast => false,
            }
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let (input, (from, dtype)) = (&call.inputs[0], call.descs[0]);
        let dtypes = [dtype, call.dtype];
        if let Some(value) = self.of(input, from, call.shape, dtypes) {
            return Ok(value);
        }
        let copy = exec.packed(&call.operand(0))?;
        self.of(&copy, from, call.shape, dtypes)
            .ok_or_else(|| Error::runtime(self.name(), "no strides for a contiguous array"))
    }

    fn refit(&self, r: &Refit<'_>) -> Result<Fitted> {
        let (before, now) = (r.traced[0], r.inputs[0]);
        let shape = match self {
            View::Broadcast | View::Reshape => {
                let shape = Shape::from_slice(r.shape);
                let fits = match self {
                    View::Reshape => shape::size(now) == shape::size(&shape),
                    _ => shape::broadcast_shapes(now, &shape)? == shape,
                };
                if !fits {
                    let (from, to) = (shape::Show(now), shape::Show(r.shape));
                    bail!(
                        self.name(),
                        "An array of shape {from} cannot be viewed in shape {to}. Compile without `shapeless`."
                    );
                }
                shape
            }
            View::Transpose(order) => order.iter().map(|a| now[*a as usize]).collect(),
            View::Slice { start, step } => return refit_slice(r, start, step),
            View::Diagonal { offset, a, b } => {
                let mut shape: Shape =
                    (0..now.len()).filter(|i| i != a && i != b).map(|i| now[i]).collect();
                let (down, along) = (offset.min(&0).unsigned_abs(), offset.max(&0).unsigned_abs());
                shape.push(now[*a].saturating_sub(down).min(now[*b].saturating_sub(along)));
                shape
            }
            View::Bitcast if before.len() == r.shape.len() => {
                let mut shape = Shape::from_slice(now);
                if let (Some(n), Some(m)) = (before.last(), r.shape.last())
                    && let Some(last) = shape.last_mut()
                    && n != m
                {
                    if *n == 0 || *last * m % n != 0 {
                        return Err(shapeless::cannot(self.name()));
                    }
                    *last = *last * m / n;
                }
                shape
            }
            View::Bitcast | View::Strided { .. } => return Err(shapeless::cannot(self.name())),
        };
        r.same(shape)
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let (x, c) = (&v.primals[0], v.cotangent);
        let from = x.shape();
        Ok(smallvec![Some(match self {
            View::Broadcast => {
                let lead = c.ndim() - from.len();
                let summed: SmallVec<[isize; 8]> = (0..c.ndim())
                    .filter(|i| *i < lead || from[i - lead] != c.shape()[*i])
                    .map(|i| i as isize)
                    .collect();
                reshaped_like(&c.sum(KeepDims(&summed))?, x)?
            }
            View::Reshape => reshaped_like(c, x)?,
            View::Transpose(order) => {
                let mut inverse: SmallVec<[isize; 8]> = smallvec![0; order.len()];
                order.iter().enumerate().for_each(|(i, a)| inverse[*a as usize] = i as isize);
                c.transpose_axes(&inverse)?
            }
            View::Slice { .. } | View::Diagonal { .. } => {
                // Zeros in the dtype of derivatives.
                let _home = follow(&[x]);
                let zeros = filled_like(x, Scalar::from_i64(c.dtype(), 0));
                Update(self.clone()).apply(&zeros, c)
            }
            View::Strided { strides, offset } => {
                // A view may show an element several times; its cotangents add up.
                let n = x.size();
                let wide = if i32::try_from(n).is_ok() { Dtype::Int32 } else { Dtype::Int64 };
                let positions = Array::arange(0.0, n as f64, 1.0, wide)?;
                let positions =
                    positions.as_strided(c.shape(), strides, *offset)?.reshape(&[c.size()])?;
                let zeros = Array::zeros(&[n], c.dtype())?;
                zeros.scatter_add_axis(&positions, &c.reshape(&[c.size()])?, 0)?.reshape(from)?
            }
            View::Bitcast =>
                return Err(Error::value(
                    "vjp",
                    "view has no vjp rule. Convert with astype, or use stop_gradient."
                )),
        })])
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        ensure!(
            !matches!(self, View::Bitcast),
            "jvp",
            "view has no jvp rule. Convert with astype, or use stop_gradient."
        );
        let shape = || Shape::from_slice(j.output.shape());
        j.tangents[0].as_ref().map(|t| view(self.clone(), t, shape())).transpose()
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let a = batching::batched(&v.inputs[0], v.axes[0], v.size)?;
        let shape = batching::batched_shape(v);
        let a = match self {
            View::Broadcast => {
                // The new axes come between the mapped axis and the operand's own.
                let mut aligned = Shape::from_elem(1, shape.len());
                aligned[0] = v.size;
                let own = &a.shape()[1..];
                aligned[shape.len() - own.len()..].copy_from_slice(own);
                a.reshape(&aligned)?
            }
            _ => a,
        };
        let mapped = self.batched(&a.shape()[1..], v.size);
        let out = match mapped {
            View::Bitcast => Array::try_of(mapped, &[&a], shape, v.dtype)?,
            _ => view(mapped, &a, shape)?,
        };
        Ok((out, Some(0)))
    }

    fn inherits_home(&self) -> bool {
        true
    }

    fn forwards_operands(&self) -> bool {
        true
    }
}

/// A slice of an operand of other sizes. Whole axes follow (in either direction), and one element is that element
/// still; where another slice ends when the axis is longer, nobody can tell.
/// Strides of an array of shape `from` in the shape `to` that it broadcasts to.
fn spread(strides: &[isize], from: &[usize], to: &[usize]) -> Strides {
    let lead = to.len() - from.len();
    let mut spread = Strides::from_elem(0, lead);
    for (i, &n) in from.iter().enumerate() {
        spread.push(if n == to[lead + i] { strides[i] } else { 0 });
    }
    spread
}

fn refit_slice(r: &Refit<'_>, start: &[usize], step: &[isize]) -> Result<Fitted> {
    let (before, now) = (r.traced[0], r.inputs[0]);
    let (mut shape, mut start) = (Shape::from_slice(r.shape), SmallVec::from_slice(start));
    for i in 0..shape.len() {
        let whole = shape[i] == before[i] && step[i].abs() == 1;
        if whole && (before[i] != 1 || now[i] != 1) {
            shape[i] = now[i];
            start[i] = if step[i] < 0 { now[i].saturating_sub(1) } else { 0 };
        } else if shape[i] != 1 {
            return Err(shapeless::cannot("slice"));
        } else if start[i] >= now[i] {
            let text = format!(
                "Index {} is out of bounds for axis {i} with size {}. {}",
                start[i],
                now[i],
                shape::IndexRange(now[i])
            );
            return Err(Error::Index(text.into()));
        }
    }
    let view = View::Slice { start, step: Strides::from_slice(step) };
    Ok(Fitted { op: view.into(), ..r.same(shape)? })
}

/// Strides of the same memory under another dtype. `None` if the layout of the last axis does not allow it.
fn retyped(input: &Value, from: &[usize], [before, after]: [Dtype; 2]) -> Option<Strides> {
    let (b, a) = (before.size() as isize, after.size() as isize);
    let mut strides = input.strides.clone();
    if b == a {
        return Some(strides);
    }
    // Elements of the last axis must be contiguous. The strides of other axes must be multiples of the new element
    // size.
    let last = from.len().checked_sub(1)?;
    if from[last] != 1 && strides[last] != 1 && !from.contains(&0) {
        return None;
    }
    strides[last] = 1;
    for i in 0..last {
        let bytes = strides[i].wrapping_mul(b);
        if bytes % a != 0 && from[i] > 1 {
            return None;
        }
        strides[i] = bytes / a;
    }
    // Imported memory may begin at any address.
    input.buffer.is_aligned(input.offset, a as usize).then_some(strides)
}

/// Returns true if `to` is the shape of the same bytes under another dtype. bool is excluded for bytes other than 0 and
/// 1.
fn is_retyped(from: &[usize], before: Dtype, to: &[usize], after: Dtype) -> bool {
    let packed = before.is_packed() || after.is_packed();
    let (b, a) = (before.size(), after.size());
    let bytes = |last: &usize, item: usize| last.checked_mul(item);
    let fits = match (from.split_last(), to.split_last()) {
        _ if b == a => from == to,
        (Some((n, before)), Some((m, after))) => before == after && bytes(n, b) == bytes(m, a),
        _ => false,
    };
    !packed && after != Dtype::Bool && fits
}

/// Returns true if `to` is the shape of a slice whose numbers are in the form that
/// [`slice_view`](crate::ops::shape::slice::slice_view) returns.
fn is_slice(from: &[usize], to: &[usize], start: &[usize], step: &[isize]) -> bool {
    let inside = |i: usize| match to[i] {
        0 => start[i] == 0 && step[i] == 1,
        1 => start[i] < from[i] && step[i] == 1,
        n => {
            let steps = step[i].unsigned_abs().checked_mul(n - 1);
            step[i] != 0
                && start[i] < from[i]
                && steps.is_some_and(|all| match step[i] > 0 {
                    true => all < from[i] - start[i],
                    false => all <= start[i],
                })
        }
    };
    [from.len(), start.len(), step.len()] == [to.len(); 3] && (0..to.len()).all(inside)
}

/// Returns true for the shape of a diagonal.
fn is_diagonal(from: &[usize], to: &[usize], offset: isize, [a, b]: [usize; 2]) -> bool {
    let (Some(rows), Some(columns)) = (from.get(a), from.get(b)) else { return false };
    let near = if offset >= 0 { columns } else { rows };
    let rest = (0..from.len()).filter(|i| *i != a && *i != b).map(|i| from[i]);
    a != b
        && offset.unsigned_abs() <= *near
        && rest.chain([diagonal_len(*rows, *columns, offset)]).eq(to.iter().copied())
}

/// Returns true if strides over `size` elements stay inside. Strides that are never applied must be 0.
fn is_inside(size: usize, to: &[usize], strides: &[isize], offset: usize) -> bool {
    let idle = to.contains(&0);
    let fits = || {
        let offset = i64::try_from(offset).ok()?;
        let (low, high) = shape::element_range(shape::axes(to, strides))?;
        let highest = usize::try_from(offset.checked_add(high)?).ok()?;
        Some(offset.checked_add(low)? >= 0 && highest < size)
    };
    to.len() == strides.len()
        && to.iter().zip(strides).all(|(n, stride)| *stride == 0 || !idle && *n != 1)
        && (idle || fits() == Some(true))
}

/// Strides with which the elements of one shape, in the same order, have another shape, if such strides exist.
fn reshaped(from: &[usize], strides: &[isize], to: &[usize]) -> Option<Strides> {
    if from.contains(&0) {
        return Some(shape::contiguous_strides(to));
    }
    // Merge runs of axes that lie without gaps, then split each run into the new axes.
    let mut runs: SmallVec<[(usize, isize); 4]> = SmallVec::new();
    for (&n, &s) in from.iter().zip(strides) {
        if n == 1 {
            continue;
        }
        match runs.last_mut() {
            Some((m, t)) if *t == s * n as isize => (*m, *t) = (*m * n, s),
            _ => runs.push((n, s)),
        }
    }
    let mut out = Strides::from_elem(0, to.len());
    let mut axis = 0;
    for (n, s) in runs {
        let start = axis;
        let mut filled = 1;
        while filled < n {
            filled *= to.get(axis)?;
            axis += 1;
        }
        if filled != n {
            return None;
        }
        let mut step = s;
        for i in (start..axis).rev() {
            out[i] = step;
            step *= to[i] as isize;
        }
    }
    // The remaining axes have size 1, so their strides are free. Contiguous ones enable fast paths.
    let plain = shape::contiguous_strides(to);
    for i in 0..to.len() {
        if to[i] == 1 {
            out[i] = plain[i];
        }
    }
    Some(out)
}
