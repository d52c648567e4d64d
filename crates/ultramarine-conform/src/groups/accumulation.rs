//! Dtypes in `dtypes_accumulate`: sums of long rows are as accurate as in a wider type.

use crate::device::{Device, words};
use crate::dtype::{DType, Num};
use crate::record::{PASSED, Recorder, Result, skip};
use crate::run::{Answer, Request, run as answer};
use crate::tensor::{Array, Layout, Placed};
use crate::values::Rng;
use ultramarine_abi::schema::{ReduceAttrs, op, reduce};

/// Number of terms of a sum. For 16-bit floats, the sum stays within the range of float16.
const TERMS: usize = 100_003;
const TERMS_OF_HALVES: usize = 4097;

/// Runs a check for each dtype that the device claims.
pub fn run(recorder: &mut Recorder, device: &Device<'_>) {
    for dtype in DType::all().filter(|d| d.in_mask(device.info.dtypes_accumulate)) {
        let name = format!("abi/accumulation of {}", dtype.name());
        recorder.check(&name, || sum(device, dtype));
    }
}

/// Sums terms of one sign. If the accumulator has the dtype itself, it loses the last bits of each
/// term.
fn sum(device: &Device<'_>, dtype: DType) -> Result {
    if !dtype.is_float() || dtype.bits() > 32 {
        return skip("the kit has no wider type to compare with");
    }
    let n = if dtype.is_half() { TERMS_OF_HALVES } else { TERMS };
    let rng = &mut Rng::new(41);
    let values: Vec<f64> = (0..n).map(|_| dtype.round(rng.between(0.5, 1.5))).collect();
    let exact: f64 = values.iter().sum();
    let terms: Vec<Num> = values.into_iter().map(Num::Real).collect();
    let mut input = Array::cycle(dtype, &[n as i64], &terms);
    let request = Request {
        op: op::REDUCE,
        attributes: words(&ReduceAttrs::new(reduce::SUM, 1)),
        inputs: vec![Placed::new(&mut input, Layout::Contiguous)],
        output: Placed::output(dtype, &[1], Layout::Contiguous),
        more: Vec::new(),
        scalars: Vec::new(),
        donated: None,
    };
    let stream = device.stream()?;
    let got = answer(device, stream, &request)?;
    device.destroy_stream(stream);
    let Answer::Values(got) = got else { return skip("no native sum") };
    let (got, ulp) = (got[0].real(), dtype.ulp(exact));
    if (got - exact).abs() <= ulp {
        return PASSED;
    }
    Err(format!(
        "dtypes_accumulate has {0}, and the sum of {n} terms is {got}, {1:.1} units in the last place from {exact}: add up in a \
         wider type, or take the bit out",
        dtype.name(),
        (got - exact).abs() / ulp
    ))
}
