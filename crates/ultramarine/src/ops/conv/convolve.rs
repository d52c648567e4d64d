//! The operations behind all convolutions. The window may begin anywhere, and the output has any length.
//!
//! A convolution is linear in its input and in its weight, so the sum of its output times a cotangent is a trilinear form
//! of input, weight and cotangent. Its three derivatives are the operations: each computes the tensor of one [`Role`] from
//! those of the two others, and the derivatives of each are the other two.

use crate::graph::precision::MatmulPrecision;
use crate::ops::matmul::taken;
use crate::ops::rules::{batching::to_front, builders::plus};
use crate::ops::{
    Call, Candidates, Cotangents, Decompose, Draft, Jvp, Rules, Vjp, Vmap, attributes,
};
use crate::shape::{self, Shape};
use crate::{
    array::Array, backend::Exec, dtype::Dtype, error::Result, node::Value, scalar::Scalar,
};
use smallvec::SmallVec;
use ultramarine_abi::schema::{ConvolveAttrs, op};

attributes! {
    /// A tensor of a convolution.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum Role {
        /// `(n, d, h, w, c)`
        Input,
        /// `(o, kd, kh, kw, c / groups)`
        Weight,
        /// `(n, od, oh, ow, o)`
        Output,
    }
}

use Role::{Input, Output, Weight};

attributes! {
    /// The operation: computes the tensor of a role from those of the two others, which are given in the order of the
    /// roles. All have one floating dtype. Output `p` meets tap `k` of the kernel at `p * stride - low + k *
    /// kernel_dilation` of the dilated input, which is zero beyond its ends.
    #[derive(Clone, Debug)]
    pub(crate) struct Convolve {
        pub result: Role,
        pub stride: [i64; 3],
        pub low: [i64; 3],
        pub kernel_dilation: [i64; 3],
        pub input_dilation: [i64; 3],
        pub groups: usize,
        pub flip: bool,
        pub precision: MatmulPrecision,
    }
}

/// The array with axis `axis` split into `parts` of equal size.
pub(super) fn split(a: &Array, axis: usize, parts: usize) -> Result<Array> {
    let mut shape = Shape::from_slice(a.shape());
    shape[axis] /= parts.max(1);
    shape.insert(axis, parts);
    a.reshape(&shape)
}

/// The array with axis `axis` and the next one joined.
pub(super) fn join(a: &Array, axis: usize) -> Result<Array> {
    let mut shape = Shape::from_slice(a.shape());
    let next = shape.remove(axis + 1);
    shape[axis] *= next;
    a.reshape(&shape)
}

/// Joins axis `from` with axis `axis` of the other axes, within each of the `groups` equal parts of `axis`.
fn join_within(a: &Array, from: usize, axis: usize, groups: usize) -> Result<Array> {
    let a = split(&a.moveaxis(from as isize, axis as isize)?, axis + 1, groups)?;
    join(&join(&a.swapaxes(axis as isize, axis as isize + 1)?, axis)?, axis)
}

/// Undoes [`join_within`]. The axis of `parts` becomes axis `axis`.
fn split_within(a: &Array, axis: usize, parts: usize, groups: usize) -> Result<Array> {
    let a = split(&split(a, axis, groups)?, axis + 1, parts)?;
    join(&a.swapaxes(axis as isize, axis as isize + 1)?, axis + 1)
}

/// The sizes that a mapped axis multiplies, named by the roles that have it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mapped {
    /// More images in the batch: input and output have the axis.
    Images,
    /// More filters in each group: weight and output have the axis.
    Filters,
    /// More channels in each group: input and weight have the axis.
    Channels,
    /// More groups: all three tensors have the axis.
    Groups,
}

impl Mapped {
    /// The axis of a role's tensor that the mapped axis is merged into.
    fn axis(self, role: Role) -> usize {
        match (self, role) {
            (Mapped::Images, _) | (Mapped::Filters | Mapped::Groups, Weight) => 0,
            _ => 4,
        }
    }

    /// True if the axis lists the elements of one group after those of another.
    fn is_grouped(self, role: Role) -> bool {
        match self {
            Mapped::Images | Mapped::Groups => false,
            Mapped::Filters => true,
            Mapped::Channels => role == Input,
        }
    }

    /// A role's tensor after the mapped axis `from` was merged into the axis [`Mapped::axis`].
    fn merged(self, role: Role, a: &Array, from: usize, groups: usize) -> Result<Array> {
        let axis = self.axis(role);
        match self.is_grouped(role) {
            true => join_within(a, from, axis, groups),
            false if axis == 0 => join(&to_front(a, from)?, 0),
            false => join(&a.moveaxis(from as isize, axis as isize)?, axis),
        }
    }

    /// Undoes [`Mapped::merged`]; the mapped axis is [`Mapped::axis`].
    fn separated(self, role: Role, a: &Array, size: usize, groups: usize) -> Result<Array> {
        match self.is_grouped(role) {
            true => split_within(a, self.axis(role), size, groups),
            false => split(a, self.axis(role), size),
        }
    }
}

impl Convolve {
    /// The same convolution, for the tensor of another role.
    fn for_role(&self, result: Role) -> Convolve {
        Convolve { result, ..self.clone() }
    }

    /// The roles of the operands.
    fn operands(&self) -> [Role; 2] {
        match self.result {
            Input => [Weight, Output],
            Weight => [Input, Output],
            Output => [Input, Weight],
        }
    }

    /// The tensor of the result's role, of this shape.
    pub fn of(&self, a: &Array, b: &Array, shape: &[usize]) -> Result<Array> {
        let shape = Shape::from_slice(shape);
        shape::check("conv", &shape)?;
        if shape.contains(&0) || a.size() == 0 || b.size() == 0 {
            return Array::zeros(&shape, a.dtype());
        }
        Array::try_of(self.clone(), &[a, b], shape, a.dtype())
    }
}

impl Rules for Convolve {
    fn name(&self) -> &'static str {
        match self.result {
            Input => "convolve_input",
            Weight => "convolve_weight",
            Output => "convolve",
        }
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some(([a, b], out)) = node.of() else { return false };
        let [input, weight, output] = match self.result {
            Input => [out.0, a.0, b.0],
            Weight => [a.0, out.0, b.0],
            Output => [a.0, b.0, out.0],
        };
        let id = match self.result {
            Input => op::CONVOLVE_INPUT,
            Weight => op::CONVOLVE_WEIGHT,
            Output => op::CONVOLVE,
        };
        let ([n, .., c], [o, .., of_group], [m, .., p]) = (input, weight, output) else {
            return false;
        };
        // The positions below are sums of these extents.
        let extent = |size: usize, step: i64| (step as i128 * (size as i128 - 1)).unsigned_abs();
        let near = |i: usize| {
            let steps = [self.input_dilation[i], self.kernel_dilation[i], self.stride[i]];
            let sizes = [input[i + 1], weight[i + 1], output[i + 1]];
            steps.iter().all(|step| (1..=i64::MAX / 4).contains(step))
                && self.low[i].unsigned_abs() < 1 << 62
                && sizes.into_iter().zip(steps).all(|(n, step)| extent(n, step) < 1 << 60)
        };
        node.follows(id, None, &[])
            && [input.len(), weight.len(), output.len()] == [5; 3]
            && (n, o) == (m, p)
            && o.checked_rem(self.groups) == Some(0)
            && of_group.checked_mul(self.groups) == Some(*c)
            && (0..3).all(near)
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>) -> Result<Value> {
        let lists = [self.stride, self.low, self.kernel_dilation, self.input_dilation];
        let scalars: SmallVec<[Scalar; 12]> =
            lists.iter().flatten().map(|v| Scalar::from_i64(Dtype::Int64, *v)).collect();
        let id = match self.result {
            Input => op::CONVOLVE_INPUT,
            Weight => op::CONVOLVE_WEIGHT,
            Output => op::CONVOLVE,
        };
        let attributes = |precision| ConvolveAttrs::new(self.flip.into(), precision);
        let attributes = taken(exec, call, id, self.precision, attributes)?;
        call.run(exec, id, &attributes, &scalars)
    }

    fn decompose(&self, d: &Decompose<'_>, candidates: &mut Candidates) {
        super::decompose::candidates(self, d, candidates);
    }

    fn vjp(&self, v: &Vjp<'_>) -> Result<Cotangents> {
        let roles = self.operands();
        // The cotangent takes the place of the result. The operations take their operands in the order of the roles.
        let cotangent = |i: usize| {
            let other = (roles[1 - i], &v.primals[1 - i]);
            let mut pair = [other, (self.result, v.cotangent)];
            pair.sort_by_key(|(role, _)| *role as usize);
            self.for_role(roles[i]).of(pair[0].1, pair[1].1, v.primals[i].shape())
        };
        (0..2).map(|i| v.wanted[i].then(|| cotangent(i)).transpose()).collect()
    }

    fn jvp(&self, j: &Jvp<'_>) -> Result<Option<Array>> {
        let (a, b, shape) = (&j.primals[0], &j.primals[1], j.output.shape());
        let first = j.tangents[0].as_ref().map(|t| self.of(t, b, shape)).transpose()?;
        let second = j.tangents[1].as_ref().map(|t| self.of(a, t, shape)).transpose()?;
        plus(first, second)
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<(Array, Option<usize>)> {
        let roles = self.operands();
        let has =
            |role| role == self.result || (0..2).any(|i| roles[i] == role && v.axes[i].is_some());
        if v.axes.iter().all(Option::is_none) {
            return Ok((self.of(&v.inputs[0], &v.inputs[1], v.shape)?, None));
        }
        let mapped = match [has(Input), has(Weight), has(Output)] {
            [true, true, true] => Mapped::Groups,
            [true, false, true] => Mapped::Images,
            [true, true, false] => Mapped::Channels,
            _ => Mapped::Filters,
        };
        let merge = |i: usize| match v.axes[i] {
            Some(axis) => mapped.merged(roles[i], &v.inputs[i], axis, self.groups),
            None => Ok(v.inputs[i].clone()),
        };
        let mut shape = Shape::from_slice(v.shape);
        shape[mapped.axis(self.result)] *= v.size;
        let more = if mapped == Mapped::Groups { v.size } else { 1 };
        let many = Convolve { groups: self.groups * more, ..self.clone() };
        let out = many.of(&merge(0)?, &merge(1)?, &shape)?;
        let out = mapped.separated(self.result, &out, v.size, self.groups)?;
        Ok((out, Some(mapped.axis(self.result))))
    }
}
