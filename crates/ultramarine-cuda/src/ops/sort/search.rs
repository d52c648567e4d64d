//! SEARCHSORTED.

use super::HEADERS as SORT;
use crate::launch::{Axes, Dtype, Grid, Job, OpRequest, RankVariant, Work, launch};
use crate::program::{Kernels, Source};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::schema::SearchAttrs;

const HEADERS: &[&str] =
    &[SORT[0], SORT[1], SORT[2], include_str!("../../../kernels/sort/search.cuh")];

struct Search {
    dtype: Dtype,
    right: bool,
    kernels: Kernels<RankVariant>,
}

/// SEARCHSORTED, with any strides.
pub fn prepare(request: &OpRequest<'_>) -> Result<Box<dyn Work>> {
    let attributes: SearchAttrs = request.attributes()?;
    let (rows, values, out) = (request.input(0)?, request.input(1)?, request.output(0)?);
    if rows.dtype == Dtype::Complex64 {
        return Err(Failure::unsupported("searchsorted of complex numbers"));
    }
    if request.inputs.len() != 2
        || values.dtype != rows.dtype
        || out.dtype != Dtype::Uint32
        || out.ndim != values.ndim
        || !(1..=values.ndim + 1).contains(&rows.ndim)
    {
        return Err(Failure::invalid(format!(
            "searchsorted of {} values of rank {} in {} rows of rank {} into {} of rank {}: values \
             have the rows' dtype and their leading axes, the output is uint32 of the values' rank",
            values.dtype.name(),
            values.ndim,
            rows.dtype.name(),
            rows.ndim,
            out.dtype.name(),
            out.ndim
        )));
    }
    let (dtype, right) = (rows.dtype, attributes.right != 0);
    Ok(Box::new(Search { dtype, right, kernels: Kernels::default() }))
}

impl Work for Search {
    fn run(&self, job: &Job<'_>) -> Result<()> {
        let (rows, values, out) = (job.input(0)?, job.input(1)?, job.output(0)?);
        let batch = rows.shape.len() - 1;
        if values.shape != out.shape || rows.shape[..batch] != values.shape[..batch] {
            return Err(Failure::invalid(format!(
                "searchsorted of {:?} in rows {:?} into {:?}: the output has the values' shape, \
                 whose first axes are those of the rows",
                values.shape, rows.shape, out.shape
            )));
        }
        let mut across = rows.strides[..batch].to_vec();
        across.resize(values.shape.len(), 0);
        let axes = Axes::join(values.shape, [&across, values.strides, out.strides]);
        let (words, variant) = (axes.parameter(), axes.variant());
        let kernel = self.kernels.get(&job.device.programs, variant, || {
            let (d, rank) = (self.dtype.tag(), variant.rank);
            let parameters = format!(
                "const {d}::T *rows, const {d}::T *values, u32 *out, i64 length, i64 half, i64 along, i32 right, const Walk<3, {rank}> w"
            );
            let arguments = format!("{d}, {rank}, {}", variant.index());
            Source::instance(HEADERS, "searchsorted", arguments, parameters)
        })?;
        let (length, along) = (rows.shape[batch], rows.strides[batch]);
        let (half, right) = (1_i64 << length.ilog2(), i32::from(self.right));
        let grid = Grid::over(job.device, axes.len(), 1);
        launch!(job, &kernel, grid; rows.address, values.address, out.address, length, half, along, right, words[..])
    }
}
