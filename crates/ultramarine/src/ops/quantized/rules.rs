//! The operations: dequantization, and products with quantised matrices.

use super::Quantized;
use super::mode::{Quantization, QuantizationMode};
use crate::backend::Exec;
use crate::error::{Error, Result};
use crate::ops::index::bounds;
use crate::ops::matmul::picks::{Indices, Picks, gradient_by_second, mapped, summed, taken};
use crate::ops::matmul::transposed;
use crate::ops::rules::batching::{all_batched, joined};
use crate::ops::rules::builders::{compute_dtype, plus, times, with_axis};
use crate::ops::rules::multi_output::{MultiOutputJvp, MultiOutputRules, MultiOutputVjp, Results};
use crate::ops::{Call, Cotangents, Draft, Refit, Vmap, attributes, draft};
use crate::{array::Array, dtype::Dtype, node::Value, shape::Shape};
use smallvec::{SmallVec, smallvec};
use ultramarine_abi::schema::{DequantizeAttrs, QuantizedMatmulAttrs, op};

attributes! {
    /// Converts quantised numbers to floats. The operands are words `(rows, columns bits / 32)`, scales `(rows, columns
    /// / group)`, biases in the affine mode, and a global scale `(1)` if there is one. The result is `(rows, columns)`;
    /// in the affine mode it has the dtype of the scales.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Dequantize {
        pub how: Quantization,
        pub dtype: Dtype,
        pub global_scale: bool,
    }
}

attributes! {
    /// Products with quantised matrices. The operands are x `(b, m, k)`, words `(e, rows, columns bits / 32)` and
    /// scales `(e, rows, columns / group)`, biases in the affine mode, global scales `(e)` if there are any, and
    /// indices. The result is `(items, m, n)` in the dtype of x; affine scales and biases have the same dtype. Without
    /// the axis e there is a single matrix for the single item, so that weights can be operands without a reshape.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct QuantizedMatmul {
        pub how: Quantization,
        /// Rows of words are the columns of the second factor.
        pub transpose: bool,
        pub global_scale: bool,
        pub picks: Picks,
    }
}

/// The parts of a quantised array at the beginning of `operands`.
fn parts(how: Quantization, global_scale: bool, operands: &[Array]) -> Quantized {
    let affine = how.mode == QuantizationMode::Affine;
    let mut rest = operands[2..].iter();
    let mut next = |there: bool| if there { rest.next().cloned() } else { None };
    Quantized {
        words: operands[0].clone(),
        scales: operands[1].clone(),
        biases: next(affine),
        global_scale: next(global_scale),
        how,
    }
}

/// Calls `run` with operands in the form that kernels take: a single matrix gets an axis of matrices.
fn stacked<R>(call: &Call<'_>, run: impl FnOnce(&Call<'_>) -> R) -> R {
    if call.descs[1].0.len() == 3 {
        return run(call);
    }
    let is_matrix = |i: usize| call.descs[i].0.len() == 2;
    let shapes: SmallVec<[Shape; 5]> = (call.descs.iter().enumerate())
        .map(|(i, (shape, _))| match is_matrix(i) {
            true => [&[1], *shape].concat().into(),
            false => Shape::from_slice(shape),
        })
        .collect();
    let mut inputs: SmallVec<[Value; 5]> = call.inputs.iter().cloned().collect();
    for (i, value) in inputs.iter_mut().enumerate().filter(|(i, _)| is_matrix(*i)) {
        let stride = value.strides[0] * call.descs[i].0[0] as isize;
        value.strides.insert(0, stride);
    }
    let descs: SmallVec<[(&[usize], Dtype); 5]> =
        shapes.iter().zip(call.descs).map(|(shape, (_, dtype))| (&shape[..], *dtype)).collect();
    run(&Call { inputs: &inputs, descs: &descs, ..*call })
}

impl Quantization {
    /// The optional operands that are present, named as in the contract's table, followed by `more`.
    fn names(self, global_scale: bool, more: &[&'static str]) -> SmallVec<[&'static str; 4]> {
        let affine = self.mode == QuantizationMode::Affine;
        let all = [(affine, "biases"), (global_scale, "global_scale")];
        let own = all.into_iter().filter(|(there, _)| *there).map(|(_, name)| name);
        own.chain(more.iter().copied()).collect()
    }

    /// The number of columns of a matrix whose words have this shape, if they form whole groups.
    fn columns(self, words: &[usize]) -> Option<usize> {
        let columns = words.last()?.checked_mul(32)?.checked_div(self.bits)?;
        let whole = columns.checked_mul(self.bits)?.is_multiple_of(32);
        (whole && columns.checked_rem(self.group_size)? == 0).then_some(columns)
    }

    /// The shapes of words and scales, if the operands can be the parts of a quantised array that is `dtype` when
    /// dequantized.
    fn parts_of<'a>(
        self,
        parts: &[draft::Type<'a>],
        dtype: Dtype,
        global_scale: bool,
    ) -> Option<(&'a [usize], &'a [usize])> {
        self.check("quantized").ok()?;
        let affine = self.mode == QuantizationMode::Affine;
        let [(words, Dtype::Uint32), scales, ref rest @ ..] = *parts else { return None };
        let groups = self.columns(words)? / self.group_size;
        let [batch @ .., _] = words else { return None };
        let sizes = scales.0.split_last() == Some((&groups, batch));
        let dtypes = if affine {
            scales.1 == dtype && rest.first() == Some(&scales)
        } else {
            scales.1 == Dtype::Uint8
        };
        let known = !affine || (1..=8).contains(&self.bits) && self.bits != 7;
        let count = rest.len() == usize::from(affine) + usize::from(global_scale);
        let global = !global_scale || self.mode == QuantizationMode::Nvfp4;
        (sizes && dtypes && known && count && global).then_some((words, scales.0))
    }
}

fn single(
    rules: impl MultiOutputRules + 'static,
    operands: &[&Array],
    results: Results,
) -> Result<Array> {
    Ok(Array::multi_output(rules, operands, results)?.swap_remove(0))
}

impl Dequantize {
    /// Makes the operation. No size may be 0.
    pub fn of(self, parts: &Quantized) -> Result<Array> {
        let operands: SmallVec<[&Array; 4]> = parts.parts().collect();
        single(self, &operands, smallvec![(self.shape(parts.words.shape()), self.dtype)])
    }

    fn shape(self, words: &[usize]) -> Shape {
        Shape::from_slice(&[words[0], words[1] * 32 / self.how.bits])
    }
}

impl MultiOutputRules for Dequantize {
    fn name(&self) -> &'static str {
        "dequantize"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some((words, scales)) = self.how.parts_of(node.inputs, self.dtype, self.global_scale)
        else {
            return false;
        };
        let ([rows, _], Some(columns)) = (words, self.how.columns(words)) else { return false };
        let one = node.inputs.last().is_some_and(|(shape, _)| !self.global_scale || **shape == [1]);
        let names = self.how.names(self.global_scale, &[]);
        one && scales.len() == 2
            && node.follows(op::DEQUANTIZE, None, &names)
            && node.gives(&[*rows, columns], self.dtype)
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        let Quantization { mode, group_size, bits } = self.how;
        let affine = mode == QuantizationMode::Affine;
        let attributes = DequantizeAttrs::new(
            mode.code(),
            bits as u32,
            group_size as u32,
            affine.into(),
            self.global_scale.into(),
        );
        call.run_multi_output(exec, op::DEQUANTIZE, &attributes, &[], results)
    }

    fn composition(&self, operands: &[Array]) -> Option<Result<Vec<Array>>> {
        let parts = parts(self.how, self.global_scale, operands);
        Some(parts.values(self.dtype).map(|a| vec![a]))
    }

    fn refit(&self, r: &Refit<'_>, before: &[(Shape, Dtype)]) -> Result<Results> {
        Ok(smallvec![(self.shape(r.inputs[0]), before[0].1)])
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        let of = |operands: &[Array]| {
            Ok(vec![self.of(&parts(self.how, self.global_scale, operands))?])
        };
        if !self.global_scale {
            return joined(v, of);
        }
        let last = v.inputs.len() - 1;
        if v.axes[last].is_none() {
            // One scale or matrix serves all rows.
            let rows = Vmap { inputs: &v.inputs[..last], axes: &v.axes[..last], ..*v };
            return joined(&rows, |operands| of(&[operands, &v.inputs[last..]].concat()));
        }
        let mut operands = all_batched(v)?;
        operands[last] = operands[last].reshape(&[v.size])?;
        Ok(vec![(parts(self.how, true, &operands).values(self.dtype)?, Some(0))])
    }
}

impl QuantizedMatmul {
    /// Makes the products. No size may be 0.
    pub fn of(self, x: &Array, w: &Quantized, indices: &Indices) -> Result<Array> {
        let op = QuantizedMatmul { picks: indices.picks(), ..self };
        let operands: SmallVec<[&Array; 7]> =
            [x].into_iter().chain(w.parts()).chain(indices.iter()).collect();
        let shapes: SmallVec<[&[usize]; 7]> = operands.iter().map(|a| a.shape()).collect();
        single(op, &operands, smallvec![(op.shape(&shapes), x.dtype())])
    }

    fn shape(&self, shapes: &[&[usize]]) -> Shape {
        let (x, words) = (shapes[0], shapes[1]);
        let [rows, words] = [words[words.len() - 2], words[words.len() - 1]];
        let n = if self.transpose { rows } else { words * 32 / self.how.bits };
        Shape::from_slice(&[self.picks.items(shapes), x[1], n])
    }

    /// Splits the operands into the second factors' parts and the indices.
    fn split(&self, operands: &[Array]) -> (Quantized, Indices) {
        (parts(self.how, self.global_scale, &operands[1..]), self.picks.of(operands))
    }

    /// The second factors `(e, k, n)`, dequantized.
    fn second(&self, w: &Quantized, dtype: Dtype) -> Result<Array> {
        let inner = compute_dtype(dtype);
        // Elements rounded to float16 or bfloat16 would not be exact.
        let wide = |a: &Option<Array>| a.as_ref().map(|a| a.astype(inner));
        let w = match w.is_affine() {
            true => {
                Quantized { scales: w.scales.astype(inner), biases: wide(&w.biases), ..w.clone() }
            }
            false => w.clone(),
        };
        let values = w.values(inner)?;
        if self.transpose { transposed(&values) } else { Ok(values) }
    }

    /// The gradients with respect to affine scales and biases: sums over groups of the gradient with respect to the
    /// dequantized elements.
    fn by_scales(
        &self,
        x: &Array,
        (w, indices): (&Quantized, &Indices),
        cotangent: &Array,
    ) -> Result<[Array; 2]> {
        let count = if w.words.ndim() == 2 { 1 } else { w.words.shape()[0] };
        let inner = compute_dtype(x.dtype());
        let slopes =
            gradient_by_second(&x.astype(inner), &cotangent.astype(inner), indices, count)?;
        let slopes = if self.transpose { transposed(&slopes)? } else { slopes };
        let mut groups = Shape::from_slice(w.scales.shape());
        groups.push(self.how.group_size);
        let slopes = slopes.reshape(&groups)?;
        let codes = super::pack::unpack(self.name(), &w.words, self.how.bits)?.reshape(&groups)?;
        let by_scale = times(&slopes, &codes.astype(inner))?.sum(-1)?;
        let by_bias = slopes.sum(-1)?;
        Ok([by_scale, by_bias].map(|a| a.astype(x.dtype())))
    }

    /// Rejects derivatives with respect to operands that have none: all from the second on.
    fn check_wanted(&self, rule: &str, wanted: impl Fn(usize) -> bool) -> Result<()> {
        let (affine, mode) = (self.how.mode == QuantizationMode::Affine, self.how.mode.name());
        if wanted(1) {
            return Err(Error::runtime(
                &format!("QuantizedMatmul::{rule}"),
                "no gradient wrt the quantized weights. Differentiate by the other operands, or dequantize the weights first.",
            ));
        }
        let others = if affine { 0 } else { 1 + usize::from(self.global_scale) };
        if (2..2 + others).any(&wanted) {
            return Err(Error::value(
                &format!("QuantizedMatmul::{rule}"),
                format!(
                    "no gradient wrt scales in {mode} quantization. Differentiate by the other operands, or dequantize the weights first."
                ),
            ));
        }
        Ok(())
    }
}

impl MultiOutputRules for QuantizedMatmul {
    fn name(&self) -> &'static str {
        "quantized_matmul"
    }

    fn admits(&self, node: &Draft<'_>) -> bool {
        let Some((&(&[b, m, k], dtype), rest)) = node.inputs.split_first() else { return false };
        let Some(parts) = rest.len().checked_sub(self.picks.count()) else { return false };
        let Some((words, _)) = self.how.parts_of(&rest[..parts], dtype, self.global_scale) else {
            return false;
        };
        let shapes: SmallVec<[&[usize]; 7]> = node.inputs.iter().map(|(s, _)| *s).collect();
        let (Some(columns), [.., rows, _]) = (self.how.columns(words), words) else { return false };
        let matrices = if words.len() == 2 { 1 } else { words[0] };
        let [inner, n] = if self.transpose { [columns, *rows] } else { [*rows, columns] };
        let scales = (!self.global_scale)
            .then_some(())
            .or_else(|| (*rest[parts - 1].0 == [matrices]).then_some(()));
        scales.is_some()
            && (2..=3).contains(&words.len())
            && inner == k
            && self.picks.admit(&shapes, [b, matrices])
            && node.follows(
                op::QUANTIZED_MATMUL,
                None,
                &self.how.names(self.global_scale, self.picks.names()),
            )
            && node.gives(&[self.picks.items(&shapes), m, n], dtype)
    }

    fn is_product(&self) -> bool {
        true
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        bounds::validate_picks(self.name(), exec, call, self.picks)?;
        let Quantization { mode, group_size, bits } = self.how;
        let attributes = QuantizedMatmulAttrs::new(
            mode.code(),
            bits as u32,
            group_size as u32,
            self.transpose.into(),
            (mode == QuantizationMode::Affine).into(),
            self.global_scale.into(),
            self.picks.lhs.into(),
            self.picks.rhs.into(),
        );
        stacked(call, |call| {
            call.run_multi_output(exec, op::QUANTIZED_MATMUL, &attributes, &[], results)
        })
    }

    fn composition(&self, operands: &[Array]) -> Option<Result<Vec<Array>>> {
        let product = || {
            let (x, (w, indices)) = (&operands[0], self.split(operands));
            let second = taken(&self.second(&w, x.dtype())?, indices.rhs.as_ref())?;
            let first = taken(&x.astype(second.dtype()), indices.lhs.as_ref())?;
            Ok(vec![first.matmul(&second)?.astype(x.dtype())])
        };
        Some(product())
    }

    fn refit(&self, r: &Refit<'_>, before: &[(Shape, Dtype)]) -> Result<Results> {
        Ok(smallvec![(self.shape(r.inputs), before[0].1)])
    }

    fn vjp(&self, v: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        self.check_wanted("vjp", |i| v.wanted[i])?;
        let (x, (w, indices)) = (&v.primals[0], self.split(v.primals));
        let cotangent = v.all_cotangents().swap_remove(0);
        let mut found: Cotangents = smallvec![None; v.primals.len()];
        if v.wanted[0] {
            let by_items = Indices { lhs: None, ..indices.clone() };
            let back = QuantizedMatmul { transpose: !self.transpose, ..*self };
            let items = back.of(&cotangent, &w, &by_items)?;
            found[0] = Some(summed(items, indices.lhs.as_ref(), x.shape()[0])?);
        }
        if w.is_affine() && (v.wanted[2] || v.wanted[3]) {
            for (at, slopes) in
                self.by_scales(x, (&w, &indices), &cotangent)?.into_iter().enumerate()
            {
                found[2 + at] = v.wanted[2 + at].then_some(slopes);
            }
        }
        Ok(found)
    }

    fn jvp(&self, j: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
        self.check_wanted("jvp", |i| j.tangents[i].is_some())?;
        let (x, (w, indices)) = (&j.primals[0], self.split(j.primals));
        let by_x = j.tangents[0].as_ref().map(|t| self.of(t, &w, &indices)).transpose()?;
        let tangent = |at: usize, own: &Array| {
            let zeros = || Array::zeros(own.shape(), own.dtype());
            j.tangents[at].clone().map_or_else(zeros, Ok)
        };
        let by_parts = match &w.biases {
            Some(biases) if j.tangents[2].is_some() || j.tangents[3].is_some() => {
                // The product is linear in scales and biases.
                let moved = Quantized {
                    scales: tangent(2, &w.scales)?,
                    biases: Some(tangent(3, biases)?),
                    ..w.clone()
                };
                Some(self.of(x, &moved, &indices)?)
            }
            _ => None,
        };
        Ok(vec![plus(by_x, by_parts)?])
    }

    fn vmap(&self, v: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        let second = 1..v.inputs.len() - self.picks.count();
        let x_alone = v.axes[second.clone()].iter().all(Option::is_none);
        let (w, _) = self.split(v.inputs);
        let alone = v.operands[1].ndim() == 2;
        if let (true, 0, Some(axis)) =
            (x_alone && (alone || w.words.shape()[0] == 1), self.picks.count(), v.axes[0])
        {
            // The mapped axis of x adds rows.
            let x = v.inputs[0].moveaxis(axis as isize, 1)?;
            let [_, size, m, k] = [0, 1, 2, 3].map(|i| x.shape()[i]);
            let out = self.of(&x.reshape(&[1, size * m, k])?, &w, &Indices::default())?;
            let n = out.shape()[2];
            return Ok(vec![(out.reshape(&[1, size, m, n])?, Some(1))]);
        }
        let of = |operands: &[Array], indices: &Indices| {
            let w = parts(self.how, self.global_scale, &operands[1..]);
            self.of(&operands[0], &w, indices)
        };
        // Adds the axis of matrices.
        let stacked = |i: usize| match (v.operands[i].ndim(), v.axes[i]) {
            (2, None) => Ok((with_axis(&v.inputs[i], 0)?, None)),
            (2, Some(axis)) => {
                Ok((with_axis(&v.inputs[i].moveaxis(axis as isize, 0)?, 1)?, Some(0)))
            }
            (_, axis) => Ok((v.inputs[i].clone(), axis)),
        };
        let each = (0..v.inputs.len()).map(stacked).collect::<Result<Vec<_>>>()?;
        let (inputs, axes): (Vec<Array>, Vec<Option<usize>>) = each.into_iter().unzip();
        let v = Vmap { inputs: &inputs, axes: &axes, ..*v };
        Ok(vec![mapped(&v, self.picks, second, of)?])
    }
}
