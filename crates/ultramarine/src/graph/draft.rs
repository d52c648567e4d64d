//! A description of a node that is not made yet, for example in a file, with checks that the node
//! can be made.

use crate::dtype::Dtype;
use ultramarine_abi::schema::{self, CodeSchema, InputDtype, OpId, Output};

/// Shape and dtype of an operand or a result.
pub(crate) type Type<'a> = (&'a [usize], Dtype);

/// The types of an operation's operands and results.
///
/// An operation accepts exactly the drafts that its own functions make nodes of, because
/// evaluation, derivatives and batching rely on the checks of these functions.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub inputs: &'a [Type<'a>],
    /// At least one.
    pub outputs: &'a [Type<'a>],
}

/// The index of a dtype in the schema's table.
fn index(dtype: Dtype) -> Option<usize> {
    Dtype::ALL.iter().position(|d| *d == dtype)
}

fn is_empty((shape, _): &Type<'_>) -> bool {
    shape.contains(&0)
}

impl<'a> Draft<'a> {
    /// Returns the operands and the result, if there are `N` operands and one result.
    pub fn of<const N: usize>(&self) -> Option<([Type<'a>; N], Type<'a>)> {
        let [output] = *self.outputs else { return None };
        Some((self.inputs.try_into().ok()?, output))
    }

    /// Returns true if there is one result, of this type.
    pub fn gives(&self, shape: &[usize], dtype: Dtype) -> bool {
        self.outputs == [(shape, dtype)]
    }

    /// Returns true if the results have these types.
    pub fn gives_all<S: AsRef<[usize]>>(&self, types: &[(S, Dtype)]) -> bool {
        let same =
            |(given, wanted): (&Type<'_>, &(S, Dtype))| *given == (wanted.0.as_ref(), wanted.1);
        self.outputs.len() == types.len() && self.outputs.iter().zip(types).all(same)
    }

    /// Returns true if all dtypes support arithmetic, and results that are not empty have operands
    /// that are not empty.
    pub fn is_computable(&self) -> bool {
        let filled = self.outputs.iter().all(is_empty) || !self.inputs.iter().any(is_empty);
        filled && self.inputs.iter().chain(self.outputs).all(|(_, dtype)| !dtype.is_storage())
    }

    /// Checks the number and dtypes of operands and results against the schema's table. `present`
    /// names the optional operands that are given, by the table's names.
    pub fn follows(&self, id: OpId, code: Option<u32>, present: &[&str]) -> bool {
        self.dtypes_follow(id, code, present) == Some(true) && self.is_computable()
    }

    fn dtypes_follow(&self, id: OpId, code: Option<u32>, present: &[&str]) -> Option<bool> {
        let row = schema::find(id)?;
        let code: Option<&CodeSchema> = match code {
            Some(code) => Some(row.code(code)?),
            None => None,
        };
        let there = row.inputs.iter().filter(|i| !i.optional || present.contains(&i.name));
        let single = there.clone().filter(|i| !i.many).count();
        let many = self.inputs.len().checked_sub(single)?;
        let rules: Vec<InputDtype> = there
            .flat_map(|i| std::iter::repeat_n(i.dtype, if i.many { many } else { 1 }))
            .collect();
        let inputs = self.inputs.iter().map(|(_, d)| index(*d)).collect::<Option<Vec<_>>>()?;
        let outputs = self.outputs.iter().map(|(_, d)| index(*d)).collect::<Option<Vec<_>>>()?;
        let mut mains = rules.iter().zip(&inputs).filter(|(r, _)| **r == InputDtype::Main);
        let main = mains.next().map_or(outputs.first(), |(_, d)| Some(d)).copied()?;
        let fits = |(rule, dtype): (&InputDtype, &usize)| match rule {
            InputDtype::Main => *dtype == main,
            InputDtype::Of(mask) => mask >> dtype & 1 == 1,
        };
        let results = std::iter::once(row.output_of(code, main))
            .chain(row.more.iter().map(|rule: &Output| rule.of(main)));
        Some(
            rules.len() == inputs.len()
                && outputs.len() == 1 + row.more.len()
                && row.dtypes_of(code) >> main & 1 == 1
                && rules.iter().zip(&inputs).all(fits)
                && results.zip(&outputs).all(|(mask, dtype)| mask >> dtype & 1 == 1),
        )
    }

    /// Checks as [`Draft::follows`] does, and that all operands have the result's shape.
    pub fn is_elementwise(&self, id: OpId, code: Option<u32>) -> bool {
        self.follows(id, code, &[]) && self.inputs.iter().all(|(s, _)| *s == self.outputs[0].0)
    }

    /// Returns true if the result has the type of the only operand.
    pub fn is_same(&self) -> bool {
        self.of::<1>().is_some_and(|([input], output)| input == output)
    }
}

/// Returns true if the shapes have the same rank, and differ along `axis` at most.
pub(crate) fn agree_but(axis: usize, a: &[usize], b: &[usize]) -> bool {
    axis < a.len() && a.len() == b.len() && (0..a.len()).all(|i| i == axis || a[i] == b[i])
}

/// Returns true if all are axes of an array of `ndim` dimensions, without repetitions.
pub(crate) fn are_axes(axes: &[u8], ndim: usize) -> bool {
    let distinct = |(i, axis): (usize, &u8)| !axes[..i].contains(axis);
    axes.iter().all(|axis| usize::from(*axis) < ndim) && axes.iter().enumerate().all(distinct)
}

/// Returns true if the mask has at least one axis, and only axes of an array of `ndim` dimensions.
pub(crate) fn is_mask(axes: u64, ndim: usize) -> bool {
    axes != 0 && axes.checked_shr(ndim as u32).unwrap_or(0) == 0
}

/// Returns true if `to` is `from` with size 1 along the axes of the mask.
pub(crate) fn is_reduced(from: &[usize], axes: u64, to: &[usize]) -> bool {
    let size = |i: usize| if axes >> i & 1 == 1 { 1 } else { from[i] };
    is_mask(axes, from.len()) && from.len() == to.len() && (0..to.len()).all(|i| to[i] == size(i))
}
