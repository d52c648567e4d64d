//! Views: other strides over the same memory. They never reach a backend, but for
//! a reshape that no strides can express, which copies first.

use super::{Call, Cotangents, Jvp, Rules, Vjp, Vmap};
use crate::{
    array::Array,
    backend::{Exec, Operand},
    error::{Error, Result},
    node::Value,
    ops::{Op, fill},
    shape::{self, Shape, Show, Strides},
};
use smallvec::SmallVec;

impl Array {
    /// The array broadcast to `shape` by NumPy's rule.
    ///
    /// # Errors
    /// [`Error::Value`] when it cannot be.
    pub fn broadcast_to(&self, shape: &[usize]) -> Result<Array> {
        if self.shape() == shape {
            return Ok(self.clone());
        }
        let out = shape::broadcast_shapes(self.shape(), shape)?;
        if out[..] != *shape {
            return Err(Error::value(
                "broadcast_to",
                format!(
                    "Cannot broadcast array of shape {} to shape {}.",
                    Show(self.shape()),
                    Show(shape)
                ),
            ));
        }
        shape::check("broadcast_to", shape, self.itemsize())?;
        if let Op::Fill(f) = &self.node().op {
            return Ok(fill::filled(out, f.value));
        }
        Ok(Array::of(View::Broadcast, &[self], out, self.dtype()))
    }

    /// The elements in row-major order under another shape.
    ///
    /// # Errors
    /// [`Error::Value`] when the sizes differ.
    pub fn reshape(&self, shape: &[usize]) -> Result<Array> {
        if self.shape() == shape {
            return Ok(self.clone());
        }
        if shape::size(shape) != self.size() {
            return Err(Error::value(
                "reshape",
                format!("Cannot reshape array of size {} into shape {}.", self.size(), Show(shape)),
            ));
        }
        shape::check("reshape", shape, self.itemsize())?;
        if let Op::Fill(f) = &self.node().op {
            return Ok(fill::filled(Shape::from_slice(shape), f.value));
        }
        Ok(Array::of(View::Reshape, &[self], Shape::from_slice(shape), self.dtype()))
    }

    /// The axes in another order: axis `i` of the result is axis `axes[i]`.
    ///
    /// # Errors
    /// [`Error::Value`] when `axes` is not a permutation of the axes.
    pub fn transpose_axes(&self, axes: &[isize]) -> Result<Array> {
        if axes.len() != self.ndim() {
            return Err(Error::value(
                "transpose",
                format!("Received {} axes for array with {} dimensions.", axes.len(), self.ndim()),
            ));
        }
        let mut order = SmallVec::<[u8; 8]>::new();
        for a in axes {
            let a = shape::normalize_axis("transpose", *a, self.ndim())? as u8;
            if order.contains(&a) {
                return Err(Error::value("transpose", format!("Repeat axis {a} in {axes:?}.")));
            }
            order.push(a);
        }
        if order.iter().enumerate().all(|(i, a)| i == *a as usize) {
            return Ok(self.clone());
        }
        let shape = order.iter().map(|a| self.shape()[*a as usize]).collect();
        Ok(Array::of(View::Transpose(order), &[self], shape, self.dtype()))
    }
}

/// A view and how it comes from its operand.
#[derive(Clone, Debug)]
pub(crate) enum View {
    /// NumPy's broadcast to the node's shape.
    Broadcast,
    /// Row-major reinterpretation as the node's shape.
    Reshape,
    /// Axis `i` of the result is axis `order[i]` of the operand.
    Transpose(SmallVec<[u8; 8]>),
}

impl Rules for View {
    fn name(&self) -> &'static str {
        match self {
            View::Broadcast => "broadcast_to",
            View::Reshape => "reshape",
            View::Transpose(_) => "transpose",
        }
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let (input, from) = (&call.inputs[0], call.descs[0].0);
        let view = |strides: Strides| Value {
            buffer: input.buffer.clone(),
            offset: input.offset,
            strides,
        };
        Ok(match self {
            View::Broadcast => {
                let lead = call.shape.len() - from.len();
                let mut strides = Strides::from_elem(0, lead);
                for (i, &n) in from.iter().enumerate() {
                    strides.push(if n == call.shape[lead + i] { input.strides[i] } else { 0 });
                }
                view(strides)
            }
            View::Transpose(order) => {
                view(order.iter().map(|a| input.strides[*a as usize]).collect())
            }
            View::Reshape => match reshaped(from, &input.strides, call.shape) {
                Some(strides) => view(strides),
                None => {
                    let copy = exec.alloc(from, call.dtype)?;
                    let operand = |value| Operand { value, shape: from, dtype: call.dtype };
                    exec.copy(operand(input), operand(&copy))?;
                    Value { strides: shape::contiguous_strides(call.shape), ..copy }
                }
            },
        })
    }

    fn vjp(&self, _: &Vjp<'_>) -> Result<Cotangents> {
        Err(Error::value("vjp", "views are not done yet"))
    }

    fn jvp(&self, _: &Jvp<'_>) -> Result<Option<Array>> {
        Err(Error::value("jvp", "views are not done yet"))
    }

    fn vmap(&self, _: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        Err(Error::value("vmap", "views are not done yet"))
    }
}

/// Strides under which the elements of one shape are those of another in the same
/// order, if there are any.
fn reshaped(from: &[usize], strides: &[isize], to: &[usize]) -> Option<Strides> {
    if from.contains(&0) {
        return Some(shape::contiguous_strides(to));
    }
    // Merge runs of axes that lie without gaps, then cut each run anew.
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
    // What is left has size 1, where any stride does; a plain one is the kindest.
    let plain = shape::contiguous_strides(to);
    for i in 0..to.len() {
        if to[i] == 1 {
            out[i] = plain[i];
        }
    }
    Some(out)
}
