//! What compiling saves beyond what the evaluator fuses by itself: commands and bytes, counted, and the same bits.
//! The figures are those of the table in docs/compile.md.

use crate::support::arrays::uniform_f32;
use std::path::Path;
use ultramarine::transforms::{compile, grad};
use ultramarine::{
    Array, Dtype, KeepDims, Result, Stats, concatenate, eval, index, set_fusion, stats,
};
use ultramarine_test_support::{Rng, own_process};

const N: usize = 256;
/// Bytes of the arrays that are counted.
const BYTES: f64 = (N * N * 4) as f64;

fn data(shape: &[usize], seed: u64) -> Array {
    uniform_f32(&mut Rng::new(seed), shape, -2.0, 2.0)
}

type Function = fn(&[Array]) -> Result<Vec<Array>>;

/// A bias for each column, split into heads, and the tanh form of GELU.
fn gelu(x: &[Array]) -> Result<Vec<Array>> {
    let y = x[0].add(&x[1])?.reshape(&[N, 4, N / 4])?;
    let inner = y.add(&(&y.multiply(&y)?.multiply(&y)? * 0.044715)?)?;
    let curve = (&(&inner * 0.797_884_6)?.tanh()? + 1.0)?;
    Ok(vec![(&y * 0.5)?.multiply(&curve)?])
}

fn layer_norm(x: &[Array]) -> Result<Vec<Array>> {
    let centred = x[0].subtract(&x[0].mean(KeepDims(-1))?)?;
    let var = centred.square()?.mean(KeepDims(-1))?;
    Ok(vec![centred.multiply(&(&var + 1e-5)?.rsqrt()?)?.multiply(&x[1])?.add(&x[2])?])
}

/// The mean of the labels' negative logarithms of softmax, with its gradient.
fn cross_entropy(x: &[Array]) -> Result<Vec<Array>> {
    let labels = x[1].astype(Dtype::Int32);
    let loss = move |logits: &Array| {
        let scaled = (logits * 0.5)?;
        let picked = scaled.take_along_axis(&labels.expand_dims([1])?, Some(1))?.squeeze(1)?;
        scaled.logsumexp(1)?.subtract(&picked)?.mean(None)
    };
    Ok(vec![loss(&x[0])?, grad(loss)(&x[0])?])
}

/// Rotated halves of each head, with the heads moved in front: x is scaled before it is transposed and sliced.
fn rope(x: &[Array]) -> Result<Vec<Array>> {
    let heads = (&x[0] * 0.125)?.reshape(&[N, 4, N / 4])?.transpose_axes([1, 0, 2])?;
    let half = (N / 8) as i64;
    let (a, b) = (heads.index(&index![.., .., ..half])?, heads.index(&index![.., .., half..])?);
    let (cos, sin) = (&x[1], &x[2]);
    let first = a.multiply(cos)?.subtract(&b.multiply(sin)?)?;
    let second = a.multiply(sin)?.add(&b.multiply(cos)?)?;
    Ok(vec![concatenate(&[first, second], -1)?])
}

/// Parameter, moments and gradient; all three are new.
fn adam(x: &[Array]) -> Result<Vec<Array>> {
    let (p, m, v, g) = (&x[0], &x[1], &x[2], &x[3]);
    let g = (g * 0.01)?;
    let m = (&(m * 0.9)? + &(&g * 0.1)?)?;
    let v = (&(v * 0.999)? + &(&g.square()? * 0.001)?)?;
    let step = m.divide(&(&v.sqrt()? + 1e-8)?)?;
    Ok(vec![p.subtract(&(&step * 0.001)?)?, m, v])
}

/// Normalised rows: the centred values are used by three programs.
fn standardised(x: &[Array]) -> Result<Vec<Array>> {
    let centred = (&x[0] - &x[1])?;
    let spread = centred.abs()?.max(KeepDims(1))?;
    let total = centred.square()?.sum(KeepDims(1))?;
    Ok(vec![centred.divide(&spread)?, total])
}

struct Row {
    name: &'static str,
    f: Function,
    inputs: fn() -> Vec<Array>,
}

const ROWS: &[Row] = &[
    Row {
        name: "bias and GELU, split into heads",
        f: gelu,
        inputs: || vec![data(&[N, N], 1), data(&[N], 2)],
    },
    Row {
        name: "layer norm",
        f: layer_norm,
        inputs: || vec![data(&[N, N], 1), data(&[N], 2), data(&[N], 3)],
    },
    Row {
        name: "cross entropy and its gradient",
        f: cross_entropy,
        inputs: || {
            vec![
                data(&[N, N], 1),
                Array::from_slice(
                    &(0..N as u32).map(|i| i * 7 % N as u32).collect::<Vec<_>>(),
                    &[N],
                )
                .unwrap(),
            ]
        },
    },
    Row {
        name: "rotary embedding, heads in front",
        f: rope,
        inputs: || vec![data(&[N, N], 1), data(&[N, N / 8], 2), data(&[N, N / 8], 3)],
    },
    Row {
        name: "Adam",
        f: adam,
        inputs: || (1..5).map(|i| data(&[N, N], i).abs().unwrap()).collect(),
    },
    Row {
        name: "scaled by spread",
        f: standardised,
        inputs: || vec![data(&[N, N], 1), data(&[N], 2)],
    },
];

fn bits(arrays: &[Array]) -> Vec<Vec<u32>> {
    let one = |a: &Array| a.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect();
    arrays.iter().map(one).collect()
}

/// Commands, and arrays moved, of evaluating what `f` returns.
fn counted(f: impl Fn() -> Vec<Array>) -> (u64, f64, Vec<Vec<u32>>) {
    // Once before: constants that are kept are computed by the first call.
    eval(&f()).unwrap();
    let before = stats();
    let outputs = f();
    eval(&outputs).unwrap();
    let after: Stats = stats();
    let moved = after.bytes_read + after.bytes_written - before.bytes_read - before.bytes_written;
    (after.commands - before.commands, moved as f64 / BYTES, bits(&outputs))
}

#[test]
fn compiled_moves_no_more_and_is_bitwise_identical() {
    own_process!();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/compile.md");
    let page = std::fs::read_to_string(page).unwrap_or_default();
    let mut wrong = Vec::new();
    for row in ROWS {
        let inputs = (row.inputs)();
        eval(&inputs).unwrap();
        set_fusion(false);
        let (_, _, unfused) = counted(|| (row.f)(&inputs).unwrap());
        set_fusion(true);
        let (commands, moved, evaluated) = counted(|| (row.f)(&inputs).unwrap());
        let compiled = compile(row.f);
        let (fewer, less, replayed) = counted(|| compiled.call(&inputs).unwrap());
        assert!(evaluated == unfused, "{}: fused bits", row.name);
        assert!(replayed == unfused, "{}: compiled bits", row.name);
        assert!(
            fewer <= commands && less <= moved,
            "{}: {fewer} {less} of {commands} {moved}",
            row.name
        );
        let line = format!("| {} | {commands} | {fewer} | {moved:.2} | {less:.2} |", row.name);
        if !page.is_empty() && !page.contains(&line) {
            wrong.push(line);
        }
    }
    assert!(wrong.is_empty(), "docs/compile.md should say:\n{}", wrong.join("\n"));
}

#[test]
fn exact_operations_are_merged_and_others_are_not() {
    own_process!();
    let special =
        [0.0f32, -0.0, 1.5, -7.25, f32::INFINITY, f32::NAN, f32::from_bits(0x7f80_0001), 1e-42];
    let x = Array::from_slice(&special, &[8]).unwrap();
    let i = Array::from_slice(&[0i32, -1, 7, i32::MIN, i32::MAX, 300, -300, 65536], &[8]).unwrap();
    let check = |name: &str, x: &Array, f: fn(&Array) -> Result<Array>, merged: bool| {
        let before = stats();
        // As part of something: what is a result keeps memory of its own.
        let f = move |x: &Array| -> Result<Array> {
            let y = f(x)?;
            concatenate(&[y.clone(), y], 0)
        };
        let want = f(x).unwrap();
        want.eval().unwrap();
        let middle = stats();
        let compiled = compile(move |x: &[Array]| Ok(vec![f(&x[0])?]));
        let got = compiled.call(std::slice::from_ref(x)).unwrap().remove(0);
        got.eval().unwrap();
        let operations = |a: &Stats, b: &Stats| {
            b.commands + b.fused_operations - a.commands - a.fused_operations
        };
        let (plain, now) = (operations(&before, &middle), operations(&middle, &stats()));
        assert_eq!(now < plain, merged, "{name}: {plain} to {now}");
        let bytes = |a: &Array| a.view(Dtype::Uint8).unwrap().to_vec::<u8>().unwrap();
        assert_eq!(bytes(&got), bytes(&want), "{name}");
    };
    check("wider, and wider", &i, |x| Ok(x.astype(Dtype::Int64).astype(Dtype::Float64)), true);
    check("there and back", &i, |x| Ok(x.astype(Dtype::Int64).astype(Dtype::Int32)), true);
    check("narrower, and back", &i, |x| Ok(x.astype(Dtype::Int8).astype(Dtype::Int32)), false);
    check(
        "by way of a float",
        &i,
        |x| Ok(x.astype(Dtype::Int16).astype(Dtype::Float32).astype(Dtype::Uint8)),
        false,
    );
    check("of a float to integers", &x, |x| Ok(x.astype(Dtype::Float64).astype(Dtype::Bool)), true);
    check("i + 0", &i, |x| x.add(Array::scalar(0i32)), true);
    check("i * 1", &i, |x| x.multiply(Array::scalar(1i32)), true);
    check("x + 0", &x, |x| x + 0.0, false);
    check("x * 1", &x, |x| x * 1.0, false);
}

#[test]
fn views_move_only_where_results_stay_the_same() {
    own_process!();
    let all: &[(&str, Function)] = &[
        ("transposed", |x| Ok(vec![(&x[0] * &x[1])?.transpose()?.exp()?.add(&x[1])?])),
        ("both ways", |x| {
            let y = (&x[0] * 2.0)?;
            Ok(vec![y.transpose()?.exp()?, y])
        }),
        ("parts", |x| {
            let y = x[0].add(&x[1])?;
            let (a, b) = (y.index(&index![..8])?, y.index(&index![8..])?);
            Ok(vec![a.sin()?, b.multiply(&b)?])
        }),
        ("overlapping parts", |x| {
            let y = x[0].add(&x[1])?;
            Ok(vec![y.index(&index![1..])?.sin()?, y.index(&index![..-1])?.cos()?])
        }),
        ("broadcast", |x| {
            let row = (&x[0].index(&index![0])? * 3.0)?;
            Ok(vec![row.broadcast_to(x[1].shape())?.add(&x[1])?])
        }),
        ("reshaped columns", |x| {
            let column = x[1].index(&index![.., ..1])?;
            let y = x[0].multiply(&column)?.reshape(&[2, 8, 16])?;
            Ok(vec![y.negative()?.sum(2)?])
        }),
        ("flat", |x| Ok(vec![x[0].transpose()?.add(&x[1])?.reshape(&[256])?.square()?])),
        ("several readers", |x| {
            let y = x[0].subtract(&x[1])?;
            Ok(vec![y.sum(0)?, y.max(1)?, y.abs()?])
        }),
    ];
    let inputs = [data(&[16, 16], 5), data(&[16, 16], 6)];
    for (name, f) in all {
        let f = *f;
        let want = bits(&f(&inputs).unwrap());
        let compiled = compile(f);
        for fusion in [true, false] {
            set_fusion(fusion);
            assert!(bits(&compiled.call(&inputs).unwrap()) == want, "{name}, fusion {fusion}");
        }
        set_fusion(true);
        let strided = [inputs[0].transpose().unwrap(), inputs[1].transpose().unwrap()];
        assert!(
            bits(&compiled.call(&strided).unwrap()) == bits(&f(&strided).unwrap()),
            "{name}, strided"
        );
    }
}
