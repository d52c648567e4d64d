//! Evaluations on the CPU: views, elementwise functions, memory, tasks.

use crate::fake_host::{self, APPLIED, FakeArray, FakeCall, take_error, with_call};
use std::ptr::null_mut;
use std::sync::Mutex;
use ultramarine_extension::abi::{Status, extension as raw, status};
use ultramarine_extension::{
    Array, CpuCall, Dtype, Element, Half, Number, Place, Primitive, Result, TensorType, apply,
    bf16, f16, parallel,
};

type Body = Box<dyn Fn(&mut CpuCall<'_>) -> Result<()> + Send>;

/// Evaluates by a function.
struct Eval {
    body: Mutex<Body>,
    allocates: bool,
}

impl std::fmt::Debug for Eval {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Eval")
    }
}

impl Primitive for Eval {
    fn name(&self) -> &str {
        "eval"
    }
    fn allocates(&self) -> bool {
        self.allocates
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>> {
        Ok(inputs.to_vec())
    }
    fn eval_cpu(&self, call: &mut CpuCall<'_>) -> Result<()> {
        self.body.lock().unwrap_or_else(std::sync::PoisonError::into_inner)(call)
    }
}

/// A tensor with elements, seen with a shape and strides.
pub fn tensor<T: Number>(elements: &[T], shape: &[i64], strides: &[i64]) -> FakeArray {
    let mut data = vec![0u64; size_of_val(elements).div_ceil(8).max(1)];
    // SAFETY: there is room for them.
    unsafe {
        std::ptr::copy_nonoverlapping(
            elements.as_ptr().cast::<u8>(),
            data.as_mut_ptr().cast(),
            size_of_val(elements),
        );
    }
    FakeArray {
        shape: shape.to_vec(),
        strides: strides.to_vec(),
        dtype: T::DTYPE.to_dl(),
        data,
        first: 0,
    }
}

fn elements<T: Number>(of: &FakeArray, n: usize) -> Vec<T> {
    assert!(n * size_of::<T>() <= of.data.len() * 8);
    // SAFETY: as many are there.
    unsafe { std::slice::from_raw_parts(of.data.as_ptr().cast::<T>(), n) }.to_vec()
}

type Said = (Status, Option<String>);

/// Evaluates, runs the tasks, and gives what it says.
fn eval(
    call: &mut FakeCall,
    allocates: bool,
    body: impl Fn(&mut CpuCall<'_>) -> Result<()> + Send + 'static,
) -> Said {
    fake_host::connect();
    let x = Array::from_slice(&[0f32], &[1]).unwrap();
    let body: Mutex<Body> = Mutex::new(Box::new(body));
    drop(apply(Eval { body, allocates }, &[&x], Place::Default).unwrap());
    let p: raw::Primitive = APPLIED.take().unwrap();
    assert_eq!(p.flags, u32::from(allocates));
    let mut error = null_mut();
    // SAFETY: as the contract says.
    let mut code = with_call(call, |c| unsafe { p.eval_cpu.unwrap()(p.context, c, &mut error) });
    for (task, drop, context) in std::mem::take(&mut call.tasks) {
        // SAFETY: as the contract says.
        unsafe {
            if code == status::OK {
                code = task(context, &mut error);
            }
            drop.unwrap()(context);
        }
    }
    // SAFETY: as the contract says; the error is the fake host's.
    unsafe {
        p.release.unwrap()(p.context);
        (code, take_error(error).map(|e| e.1))
    }
}

pub fn call(inputs: Vec<FakeArray>, outputs: Vec<FakeArray>) -> FakeCall {
    FakeCall {
        takes: vec![false; inputs.len()],
        inputs,
        outputs,
        tasks: Vec::new(),
        languages: c"",
    }
}

const DONE: Said = (status::OK, None);

#[test]
fn any_strides_are_read_and_written() {
    // Transposed, and reversed and broadcast; the output is transposed too.
    let x: Vec<f32> = (0..6).map(|i| i as f32).collect();
    let first = tensor(&x, &[2, 3], &[1, 2]);
    let backwards = FakeArray { first: 16, ..tensor(&[10.0f64, 20.0, 30.0], &[2, 3], &[0, -1]) };
    let to = tensor(&[0f64; 6], &[2, 3], &[1, 2]);
    let mut fake = call(vec![first, backwards], vec![to]);
    assert_eq!(eval(&mut fake, false, |c| c.map2(|a: f32, b: f64| f64::from(a) + b)), DONE);
    // Element (i, j) lies at i + 2j.
    assert_eq!(elements::<f64>(&fake.outputs[0], 6), [30.0, 31.0, 22.0, 23.0, 14.0, 15.0]);
}

#[test]
fn operands_are_broadcast_to_the_result() {
    let row = tensor(&[1i32, 2, 3], &[3], &[1]);
    let column = tensor(&[10i32, 20], &[2, 1], &[1, 1]);
    let mut fake = call(vec![row, column], vec![tensor(&[0i32; 6], &[2, 3], &[3, 1])]);
    assert_eq!(eval(&mut fake, false, |c| c.map2(|a: i32, b: i32| a + b)), DONE);
    assert_eq!(elements::<i32>(&fake.outputs[0], 6), [11, 12, 13, 21, 22, 23]);
    // Those that do not fit are refused.
    let odd = tensor(&[1i32, 2], &[2], &[1]);
    let mut fake = call(vec![odd], vec![tensor(&[0i32; 6], &[2, 3], &[3, 1])]);
    let (code, text) = eval(&mut fake, false, |c| c.map1(|a: i32| a));
    assert_eq!(code, status::ERROR);
    assert!(text.unwrap().contains("(2,) and does not broadcast to the result of shape (2, 3)"));
}

#[test]
fn empty_and_scalar_tensors_work() {
    let mut fake = call(
        vec![tensor::<f32>(&[], &[0, 3], &[3, 1])],
        vec![tensor::<f32>(&[], &[0, 3], &[3, 1])],
    );
    assert_eq!(eval(&mut fake, false, |c| c.map1(|a: f32| a + 1.0)), DONE);
    let mut fake = call(vec![tensor(&[4f32], &[], &[])], vec![tensor(&[0f32], &[], &[])]);
    assert_eq!(eval(&mut fake, false, |c| c.map1(|a: f32| a + 1.0)), DONE);
    assert_eq!(elements::<f32>(&fake.outputs[0], 1), [5.0]);
}

#[test]
fn large_tensors_are_split_and_written_past_the_caches() {
    // More than the size from which stores go past the caches, and no multiple of a block.
    let n = (4 << 20) + 4321usize;
    let x: Vec<f32> = (0..n).map(|i| (i % 1000) as f32).collect();
    let mut fake =
        call(vec![tensor(&x, &[n as i64], &[1])], vec![tensor(&vec![0f32; n], &[n as i64], &[1])]);
    assert_eq!(eval(&mut fake, false, |c| c.map1(|a: f32| 2.0 * a)), DONE);
    let got = elements::<f32>(&fake.outputs[0], n);
    assert!(got.iter().zip(&x).all(|(got, x)| *got == 2.0 * x));
    assert!(fake_host::LOOPS.get() > 0);
}

#[test]
fn an_unused_operand_becomes_the_output() {
    let (a, b) = (tensor(&[1f32, 2.0], &[2], &[1]), tensor(&[10f32, 20.0], &[2], &[1]));
    let empty = FakeArray { data: Vec::new(), ..tensor(&[0f32; 2], &[2], &[1]) };
    let mut fake = call(vec![a, b], vec![empty.clone()]);
    fake.takes = vec![false, true];
    assert_eq!(eval(&mut fake, true, |c| c.map2(|a: f32, b: f32| a - b)), DONE);
    assert_eq!(elements::<f32>(&fake.inputs[1], 2), [-9.0, -18.0]);
    assert!(fake.outputs[0].data.is_empty());

    // Memory that somebody reads, or of other strides, is not taken.
    let mut fake = call(vec![tensor(&[1f32, 2.0], &[2], &[1])], vec![empty.clone()]);
    fake.takes = vec![true];
    let body = |c: &mut CpuCall<'_>| {
        let x = c.input::<f32>(0)?;
        let mut taken = c.output_taking::<f32>(0, &[0])?;
        assert_eq!(taken.from, None);
        taken.output.as_mut_slice().unwrap().copy_from_slice(x.as_slice().unwrap());
        Ok(())
    };
    assert_eq!(eval(&mut fake, true, body), DONE);
    assert_eq!(elements::<f32>(&fake.outputs[0], 2), [1.0, 2.0]);

    // What was taken is not read by itself any more.
    let mut fake = call(vec![tensor(&[1f32, 2.0], &[2], &[1])], vec![empty]);
    fake.takes = vec![true];
    let body = |c: &mut CpuCall<'_>| {
        assert_eq!(c.output_taking::<f32>(0, &[0])?.from, Some(0));
        c.input::<f32>(0).map(drop)
    };
    let (code, text) = eval(&mut fake, true, body);
    assert_eq!(
        (code, text.as_deref()),
        (status::ERROR, Some("Input 0 was shared with an output. Read it before."))
    );
}

#[test]
fn outputs_are_handed_out_once_and_types_are_looked_at() {
    let fake = || call(vec![tensor(&[1f32], &[1], &[1])], vec![tensor(&[0f32], &[1], &[1])]);
    type Failing = (&'static str, fn(&mut CpuCall<'_>) -> Result<()>);
    let failing: [Failing; 5] = [
        ("borrowed before", |c| {
            let _first = c.output::<f32>(0)?;
            c.output::<f32>(0).map(drop)
        }),
        ("A view of float64 of a tensor of float32", |c| c.input::<f64>(0).map(drop)),
        ("A view of int8 of a tensor of float32", |c| c.output::<i8>(0).map(drop)),
        ("There is no input 1: the call has 1", |c| c.input::<f32>(1).map(drop)),
        ("The function is for 2 operands", |c| c.map2(|a: f32, b: f32| a + b)),
    ];
    for (want, body) in failing {
        let (code, text) = eval(&mut fake(), false, body);
        assert_eq!(code, status::ERROR, "{want}");
        let text = text.unwrap();
        assert!(text.contains(want) || want.contains("2 operands"), "{want}: {text}");
    }
}

#[test]
fn tasks_run_behind_the_evaluation_and_may_fail() {
    let fake = || call(vec![tensor(&[3f32], &[1], &[1])], vec![tensor(&[0f32], &[1], &[1])]);
    let mut good = fake();
    let body = |c: &mut CpuCall<'_>| {
        let (x, mut y) = (c.input::<f32>(0)?, c.output::<f32>(0)?);
        c.enqueue(move || {
            y.as_mut_slice().unwrap()[0] = x.get(&[0]).unwrap() + 1.0;
            Ok(())
        })
    };
    assert_eq!(eval(&mut good, false, body), DONE);
    assert_eq!(elements::<f32>(&good.outputs[0], 1), [4.0]);
    let panics = |c: &mut CpuCall<'_>| c.enqueue(|| panic!("in the task"));
    let want = (status::ERROR, Some("panicked: in the task".to_owned()));
    assert_eq!(eval(&mut fake(), false, panics), want);
}

#[test]
fn a_panic_in_a_loop_ends_that_call_only() {
    fake_host::connect();
    let done = Mutex::new(0);
    let error = parallel(1 << 20, 1 << 10, |range| {
        *done.lock().unwrap() += range.len();
        if range.contains(&0) {
            panic!("in the first range");
        }
    });
    assert_eq!(error.unwrap_err().text(), "panicked: in the first range");
    assert_eq!(done.into_inner().unwrap(), 1 << 20);
}

#[test]
fn views_go_over_rows_of_any_strides() {
    let x: Vec<i16> = (0..24).collect();
    // (2, 3, 2) of a (2, 4, 3) tensor: every other column from the third row backwards.
    let view = tensor(&x, &[2, 3, 2], &[12, 3, 2]);
    let mut fake = call(vec![view], vec![tensor(&[0i16; 12], &[2, 3, 2], &[6, 2, 1])]);
    let body = |c: &mut CpuCall<'_>| {
        let x = c.input::<i16>(0)?;
        assert!(x.as_slice().is_none());
        assert_eq!((x.get(&[1, 2, 1]), x.get(&[1, 3, 0])), (Some(20), None));
        assert_eq!(x.rows().count(), 6);
        assert_eq!(x.iter().collect::<Vec<_>>(), [0, 2, 3, 5, 6, 8, 12, 14, 15, 17, 18, 20]);
        let wide = x.broadcast_to(&[2, 2, 3, 2])?;
        assert_eq!(wide.iter().skip(12).collect::<Vec<_>>(), x.iter().collect::<Vec<_>>());
        assert!(x.broadcast_to(&[3, 2]).is_err());
        let mut y = c.output::<i16>(0)?;
        for (from, to) in x.rows().zip(y.rows_mut()) {
            let to = to.into_slice().map_err(|_| "gaps").unwrap();
            to.iter_mut().zip(from).for_each(|(to, from)| *to = -from);
        }
        assert!(y.set(&[0, 0, 0], 7) && !y.set(&[2, 0, 0], 7));
        Ok(())
    };
    assert_eq!(eval(&mut fake, false, body), DONE);
    let want = [7, -2, -3, -5, -6, -8, -12, -14, -15, -17, -18, -20];
    assert_eq!(elements::<i16>(&fake.outputs[0], 12), want);
}

#[test]
fn half_types_round_as_the_crate_half_does() {
    let hard = [0.0, -0.0, 1.0, 1.0 + 2f32.powi(-9), 65519.9, 65520.0, 1e-8, 3e38, f32::INFINITY];
    let hard = hard.iter().copied().chain([f32::NAN, f32::from_bits(0x7f80_0001), -1.5e-5]);
    // Ties, and their neighbours.
    let ties = (0..2000u32).map(|i| f32::from_bits(0x3f80_0000 + i * 0x37f));
    let all: Vec<f32> = hard.chain(ties).collect();
    fn same<H: Half + Into<f32>>(all: &[f32], of: impl Fn(f32) -> H, bits: impl Fn(H) -> u16) {
        let (mut narrow, mut rounded) = (vec![H::default(); all.len()], all.to_vec());
        H::narrow(all, &mut narrow);
        H::round(&mut rounded);
        let mut wide = vec![0f32; all.len()];
        H::widen(&narrow, &mut wide);
        for (i, &x) in all.iter().enumerate() {
            let (want, got) = (of(x), narrow[i]);
            assert!(bits(got) == bits(want) || x.is_nan(), "{x}");
            assert!(wide[i].to_bits() == rounded[i].to_bits() || x.is_nan(), "{x}");
            assert_eq!(wide[i].is_nan(), x.is_nan());
        }
    }
    same(&all, f16::from_f32, f16::to_bits);
    same(&all, bf16::from_f32, bf16::to_bits);
}

#[test]
fn bools_are_seen_as_bytes() {
    let mut x = tensor(&[1u8, 0, 2], &[3], &[1]);
    x.dtype = Dtype::Bool.to_dl();
    let mut y = tensor(&[9u8; 3], &[3], &[1]);
    y.dtype = Dtype::Bool.to_dl();
    let mut fake = call(vec![x], vec![y]);
    assert_eq!(eval(&mut fake, false, |c| c.map1(|a: u8| u8::from(a == 0))), DONE);
    assert_eq!(elements::<u8>(&fake.outputs[0], 3), [0, 1, 0]);
    assert_eq!(bool::DTYPE, Dtype::Bool);
}
