//! RMS_NORM and LAYER_NORM.

use super::row_kernels::{self, Form, Rows, Sums, Team, Way};
use crate::launch::ByRoom;
use crate::launch::{Ask, Dtype, Job, View, Work, launch};
use crate::ops::reduce::fold;
use crate::ops::reduce::kernels_of;
use crate::ops::text;
use ultramarine_abi::helper::{Failure, Result};

const TEXTS: &[&str] = &[
    text::NUMBER,
    text::WALK,
    fold::TEXT,
    row_kernels::TEXT,
    include_str!("../../../kernels/nn/norm.cuh"),
];

/// The tensors as kernels have them: input, output, weight and bias.
type Tensors<'j> = Vec<&'j View<'j>>;

/// A layer's norm if there is a bias.
struct Norm {
    bias: bool,
    rows: Rows,
}

/// RMS_NORM: any strides.
pub fn prepare_rms_norm(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    prepare(ask, false)
}

/// LAYER_NORM: any strides.
pub fn prepare_layer_norm(ask: &Ask<'_>) -> Result<Box<dyn Work>> {
    prepare(ask, true)
}

fn prepare(ask: &Ask<'_>, bias: bool) -> Result<Box<dyn Work>> {
    ask.elementwise(2 + usize::from(bias))?;
    let dtype = ask.output(0)?.dtype;
    if !dtype.is_real() || ask.inputs.iter().any(|d| d.dtype != dtype) {
        return Err(Failure::unsupported(format!(
            "norms of {} into {}: all have one floating dtype",
            ask.input(0)?.dtype.name(),
            dtype.name()
        )));
    }
    let Some(last) = ask.output(0)?.ndim.checked_sub(1) else {
        return Err(Failure::invalid("norms are of the last axis, a scalar has none"));
    };
    let d = dtype.tag();
    let op = if bias { "Moments" } else { "Squares" };
    let (k, moments) =
        if bias { (5, format!("Distances<{d}::A>")) } else { (4, format!("{d}::A")) };
    let apply = ByRoom::new(&format!("norm {bias} {d}"), TEXTS, |room, index| {
        (
            format!(
                "const {d}::T *in, {d}::T *out, const {d}::T *weight, const {d}::T *bias, const {moments} *moments, double eps, i64 count, const Walk<{k}, {room}> w"
            ),
            format!(
                "norm_apply<{d}, {bias}, {moments}, {k}, {room}, {index}>(in, out, weight, bias, moments, eps, count, w);"
            ),
        )
    });
    let words = if bias { 3 } else { 1 };
    let rows = Rows {
        dtype,
        axes: 1 << last,
        accumulator: words * if dtype == Dtype::Float64 { 8 } else { 4 },
        texts: TEXTS,
        sums: kernels_of(format!("{op}<{d}>"), dtype, TEXTS),
        apply,
    };
    Ok(Box::new(Norm { bias, rows }))
}

impl Norm {
    fn tensors<'j>(&self, job: &'j Job<'_>) -> Result<Tensors<'j>> {
        let mut all = vec![job.input(0)?, job.output(0)?, job.input(1)?];
        if self.bias {
            all.push(job.input(2)?);
        }
        Ok(all)
    }

    fn run_rows(
        &self,
        job: &Job<'_>,
        all: &[&View<'_>],
        fold: &fold::Fold,
        team: Team,
    ) -> Result<()> {
        let d = self.rows.dtype.tag();
        let along = fold.along.as_deref().unwrap_or_default();
        let one = along.iter().enumerate().fold(0, |mask, (k, s)| mask | i32::from(*s == 0) << k);
        let form = Form {
            name: "norm",
            template: [format!("{}, ", all.len()), format!(", {one}")],
            parameters: [
                format!("const {d}::T *weight, const {d}::T *bias, double eps, "),
                "weight, bias, eps, ".to_owned(),
            ],
        };
        let (kernel, grid) = self.rows.one_pass(job, fold, team, &form)?;
        let (input, output, weight) = (all[0].address, all[1].address, all[2].address);
        let bias = all.get(3).map_or(0, |v| v.address);
        let eps = f64::from_bits(job.scalar(0)?);
        launch!(job, &kernel, grid; input, output, weight, bias, eps, fold.words[..])
    }

    fn run_sums(&self, job: &Job<'_>, all: &[&View<'_>], sums: &Sums) -> Result<()> {
        let (input, output, weight) = (all[0].address, all[1].address, all[2].address);
        let at = self.rows.first_pass(job, sums, input)?;
        let shape = all[0].shape;
        let (x, y, w, m) = (all[0].strides, all[1].strides, all[2].strides, &sums.strides[..]);
        let (bias, (kernel, grid, words)) = match all.get(3) {
            Some(bias) => {
                (bias.address, self.rows.second_pass(job, shape, [x, y, w, bias.strides, m])?)
            }
            None => (0, self.rows.second_pass(job, shape, [x, y, w, m])?),
        };
        let eps = f64::from_bits(job.scalar(0)?);
        let count = shape.last().copied().unwrap_or(1);
        launch!(job, &kernel, grid; input, output, weight, bias, at, eps, count, words[..])
    }
}

impl Work for Norm {
    fn workspace(&self, job: &Job<'_>) -> Result<u64> {
        Ok(self.rows.workspace(job, &self.tensors(job)?))
    }

    fn run(&self, job: &Job<'_>) -> Result<()> {
        let all = self.tensors(job)?;
        if let Some(other) = all.iter().find(|v| v.shape != all[1].shape) {
            return Err(Failure::invalid(format!(
                "a norm of {:?} into {:?}: all have one shape",
                other.shape, all[1].shape
            )));
        }
        match self.rows.way(job, &all) {
            Way::Team(fold, team) => self.run_rows(job, &all, &fold, team),
            Way::Sums(sums) => self.run_sums(job, &all, &sums),
        }
    }
}
