//! Every operation of the format goes to a file and comes back.

use super::{check, content, exported, program, read};
use crate::support::arrays::{uniform, uniform_complex, uniform_f32};
use std::collections::BTreeSet;
use std::path::Path;
use ultramarine::fast::{AttentionMask, Rope};
use ultramarine::transforms::vjp;
use ultramarine::{
    Array, ConvolveMode, Dtype, KeepDims, Quantization, QuantizationMode, Quantized, Result,
    SecondFactor, Side, Update, concatenate, conv2d, convolve, fast, fft, gather_mm, gather_qmm,
    index, linalg, qqmm, quantize, quantized_matmul, random, segmented_mm, where_,
};
use ultramarine_test_support::Rng;

pub type Function = Box<dyn Fn(&[Array]) -> Result<Vec<Array>>>;

/// A function with its arguments.
struct Case(&'static str, Function, Vec<Array>);

fn case(
    name: &'static str,
    arguments: Vec<Array>,
    f: impl Fn(&[Array]) -> Result<Array> + 'static,
) -> Case {
    Case(name, Box::new(move |x| Ok(vec![f(x)?])), arguments)
}

/// A function and its gradients by all arguments.
fn gradients(
    name: &'static str,
    arguments: Vec<Array>,
    f: impl Fn(&[Array]) -> Result<Array> + Copy + 'static,
) -> Case {
    let both = move |x: &[Array]| {
        let y = f(x)?;
        let (_, found) = vjp(|x: &[Array]| Ok(vec![f(x)?]), x, [y.ones_like()])?;
        Ok(std::iter::once(y).chain(found).collect())
    };
    Case(name, Box::new(both), arguments)
}

fn several(
    name: &'static str,
    arguments: Vec<Array>,
    f: impl Fn(&[Array]) -> Result<Vec<Array>> + 'static,
) -> Case {
    Case(name, Box::new(f), arguments)
}

fn ints(values: &[i32]) -> Result<Array> {
    Array::from_slice(values, &[values.len()])
}

fn elementwise(rng: &mut Rng) -> Result<Vec<Case>> {
    let mut x = || uniform_f32(rng, &[3, 4], 0.1, 0.9);
    let (a, b) = (x(), x());
    Ok(vec![
        case("unary", vec![a.clone()], |x| x[0].exp()?.sin()?.isnan()),
        case("binary", vec![a.clone(), b.clone()], |x| x[0].add(&x[1])?.less(&x[0])),
        gradients("xlogy", vec![a.clone(), b.clone()], |x| x[0].xlogy(&x[1])),
        case("select", vec![a.clone(), b.clone()], |x| where_(&x[0].less(&x[1])?, &x[0], 2.5)),
        case("astype", vec![a.clone()], |x| Ok(x[0].astype(Dtype::Complex64).astype(Dtype::Int8))),
        case("recode", vec![a.clone()], |x| {
            Ok(x[0].astype(Dtype::Float8E4m3fn).astype(Dtype::Float32))
        }),
        case("copies", vec![a.clone()], |x| x[0].transpose()?.contiguous().duplicate()),
        case("identity", vec![a.clone(), b], |x| {
            let later = ultramarine::depends([&x[0].stop_gradient()], [&x[1].exp()?]);
            Ok(later[0].clone())
        }),
        case("constants", vec![a], |x| {
            let numbers =
                x[0].multiply(f32::NAN)?.add(f32::INFINITY)?.add(Array::scalar(-0.0f32))?;
            concatenate(
                [numbers, Array::arange(0.0, 4.0, 1.0, Dtype::Float32)?.reshape(&[1, 4])?],
                0,
            )
        }),
    ])
}

fn shapes(rng: &mut Rng) -> Result<Vec<Case>> {
    let x = uniform_f32(rng, &[4, 6, 3], -1.0, 1.0);
    let at = ints(&[1, 2])?;
    Ok(vec![
        gradients("views", vec![x.clone()], |x| {
            let y = x[0].transpose_axes([2, 0, 1])?.slice(&[0, 1, 5], &[3, 4, -10], &[1, 1, -2])?;
            y.reshape(&[3, 9])?.broadcast_to(&[2, 3, 9])
        }),
        gradients("diagonal", vec![x.clone()], |x| x[0].diagonal(-1, 0, 1)),
        gradients("as_strided", vec![x.clone()], |x| x[0].as_strided(&[3, 3], &[4, -1], 5)),
        case("bitcast", vec![x.clone()], |x| x[0].view(Dtype::Uint16)),
        gradients("update", vec![x.clone()], |x| {
            x[0].index_update(index!(1..3, 0), 2.0, Update::Set)
        }),
        gradients("dynamic_slice", vec![x.clone(), at.clone()], |x| {
            x[0].slice_at(&x[1].stop_gradient(), [0, 1], &[2, 2, 3])
        }),
        gradients("dynamic_slice_update", vec![x.clone(), at.clone()], |x| {
            x[0].slice_update_at(&x[0].index(index!(..2, ..2))?, &x[1].stop_gradient(), [0, 1])
        }),
        gradients("take", vec![x.clone(), at.clone()], |x| x[0].take(&x[1].stop_gradient(), 1)),
        gradients("gather", vec![x.clone(), at], |x| {
            x[0].index(index!(&x[1].stop_gradient(), .., &x[1].stop_gradient()))
        }),
        case("put_along_axis", vec![x.clone()], |x| {
            let order = x[0].argsort(1)?;
            x[0].put_along_axis(&order, &x[0].sort(1)?.partition(2, 1)?, Some(1))
        }),
        gradients("take_along_axis", vec![x], |x| {
            x[0].take_along_axis(&x[0].stop_gradient().argmax(KeepDims(1))?, 1)
        }),
    ])
}

fn reductions(rng: &mut Rng) -> Result<Vec<Case>> {
    let x = uniform_f32(rng, &[4, 5], -1.0, 1.0);
    let keys = random::key(3)?;
    Ok(vec![
        gradients("reduce", vec![x.clone()], |x| x[0].max(1)?.add(&x[0].sum(KeepDims(..))?)),
        gradients("scan", vec![x.clone()], |x| {
            x[0].cumsum(1, true, false)?.cumprod(0, false, true)
        }),
        gradients("softmax", vec![x.clone()], |x| x[0].softmax(-1, true)?.logsumexp(0)),
        case("searchsorted", vec![x.clone()], |x| {
            x[0].index(index!(0))?.sort(0)?.searchsorted(&x[0], Side::Right)
        }),
        case("random", vec![keys], |x| random::normal(&[5], 0.0, 1.0, Dtype::Float32, Some(&x[0]))),
    ])
}

fn products(rng: &mut Rng) -> Result<Vec<Case>> {
    let mut of = |shape: &[usize]| uniform_f32(rng, shape, -1.0, 1.0);
    let (a, b, picks) = (of(&[3, 4, 5]), of(&[3, 5, 2]), ints(&[2, 0, 1, 1])?);
    let images = vec![of(&[2, 6, 6, 4]), of(&[6, 3, 3, 2])];
    let segments = Array::from_slice(&[0u32, 3, 2, 5], &[2, 2])?;
    let signal = vec![of(&[9]), of(&[3])];
    Ok(vec![
        gradients("matmul", vec![a.clone(), b.clone()], |x| x[0].matmul(&x[1])),
        gradients("gather_mm", vec![a.clone(), b, picks], |x| {
            gather_mm(&x[0], &x[1], None, Some(&x[2].stop_gradient().index(index!(..3))?))
        }),
        case("segmented_mm", vec![a.clone(), segments], |x| {
            let (left, right) = (x[0].index(index!(0))?, x[0].index(index!(1))?.transpose()?);
            segmented_mm(&left, &right, &x[1])
        }),
        gradients("conv2d", images, |x| {
            conv2d(&x[0], &x[1], ultramarine::Convolution::default().padding(1).groups(2))
        }),
        gradients("convolve", signal, |x| convolve(&x[0], &x[1], ConvolveMode::Full)),
    ])
}

fn layers(rng: &mut Rng) -> Result<Vec<Case>> {
    let mut of = |shape: &[usize]| uniform_f32(rng, shape, -1.0, 1.0);
    let (x, w, b) = (of(&[2, 3, 8]), of(&[8]), of(&[8]));
    let (q, k, v) = (of(&[1, 4, 5, 8]), of(&[1, 2, 6, 8]), of(&[1, 2, 6, 4]));
    let (mask, sinks) = (of(&[5, 6]), of(&[4]));
    let lengths = ints(&[4])?;
    let targets = ints(&[1, 7, 0])?;
    Ok(vec![
        gradients("layer_norm", vec![x.clone(), w.clone(), b], |x| {
            fast::layer_norm(&x[0], Some(&x[1]), Some(&x[2]), 1e-5)
        }),
        gradients("rms_norm", vec![x.clone(), w], |x| fast::rms_norm(&x[0], Some(&x[1]), 1e-5)),
        gradients("rope", vec![x.clone()], |x| {
            let how = Rope { dims: 6, traditional: true, base: Some(1e4), scale: 1.0 };
            fast::rope(&x[0], how, &Array::scalar(3), None)
        }),
        gradients("attention", vec![q.clone(), k.clone(), v.clone(), mask, sinks], |x| {
            let mask = AttentionMask::Array(&x[3]);
            fast::scaled_dot_product_attention(&x[0], &x[1], &x[2], 0.3, mask, Some(&x[4]), None)
        }),
        case("attention with lengths", vec![q, k, v, lengths], |x| {
            let mask = AttentionMask::Causal;
            fast::scaled_dot_product_attention(&x[0], &x[1], &x[2], 0.3, mask, None, Some(&x[3]))
        }),
        gradients("cross_entropy", vec![x.index(index!(0))?, targets], |x| {
            fast::cross_entropy(&x[0], &x[1].stop_gradient())
        }),
    ])
}

fn few_bits(rng: &mut Rng) -> Result<Vec<Case>> {
    let mut of = |shape: &[usize]| uniform_f32(rng, shape, -1.0, 1.0);
    let (x, w, picks) = (of(&[3, 64]), of(&[2, 8, 64]), ints(&[1, 0, 1])?);
    let mut all = Vec::new();
    for how in [Quantization::affine(4, 32), Quantization::new(QuantizationMode::Mxfp4)] {
        all.push(case("quantize", vec![w.clone()], move |x| {
            quantize(&x[0], how, None)?.dequantize(None)
        }));
        let small = w.index(index!(0))?;
        all.push(case("quantized_matmul", vec![x.clone(), small], move |x| {
            quantized_matmul(&x[0], &quantize(&x[1], how, None)?, true)
        }));
        all.push(case("gather_qmm", vec![x.clone(), w.clone(), picks.clone()], move |x| {
            let rows = x[0].reshape(&[3, 1, 64])?;
            gather_qmm(&rows, &quantize(&x[1], how, None)?, None, Some(&x[2]), true)
        }));
    }
    all.push(gradients("qqmm", vec![x, w.index(index!(0))?], |x| {
        let how = Quantization::new(QuantizationMode::Mxfp8);
        qqmm(&x[0], SecondFactor::Floats { w: &x[1], how, global_scale: None }, None)
    }));
    Ok(all)
}

fn matrices(rng: &mut Rng) -> Result<Vec<Case>> {
    let a = uniform(rng, &[2, 3, 3], -1.0, 1.0).astype(Dtype::Float32);
    let z = uniform_complex(rng, &[2, 8], -1.0, 1.0);
    let symmetric = |x: &[Array]| {
        x[0].matmul(&x[0].transpose_axes([0, 2, 1])?)?.add(&Array::identity(3, Dtype::Float32)?)
    };
    Ok(vec![
        case("cholesky", vec![a.clone()], move |x| linalg::cholesky(&symmetric(x)?, false)),
        several("eig", vec![a.clone()], |x| {
            let (w, v) = linalg::eig(&x[0])?;
            Ok(vec![w, v, linalg::eigvals(&x[0])?])
        }),
        several("eigh", vec![a.clone()], move |x| {
            let (w, v) = linalg::eigh(&symmetric(x)?, true)?;
            Ok(vec![w, v, linalg::eigvalsh(&symmetric(x)?, false)?])
        }),
        several("lu", vec![a.clone()], |x| {
            let (p, l, u) = linalg::lu(&x[0])?;
            Ok(vec![p, l, u])
        }),
        several("qr", vec![a.clone()], |x| {
            let (q, r) = linalg::qr(&x[0])?;
            Ok(vec![q, r])
        }),
        several("svd", vec![a.clone()], |x| {
            let (u, s, vt) = linalg::svd(&x[0])?;
            Ok(vec![u, s, vt, linalg::svdvals(&x[0])?])
        }),
        gradients("solve_triangular", vec![a.clone()], |x| {
            linalg::solve_triangular(&x[0].add(&Array::identity(3, Dtype::Float32)?)?, &x[0], true)
        }),
        gradients("pinv", vec![a.clone()], |x| linalg::pinv(&x[0])),
        case("fft", vec![z], |x| fft::fft(&x[0], None, -1, fft::Norm::Ortho)),
        gradients("rfft", vec![a], |x| {
            let y = fft::rfft(&x[0], Some(6), 1, fft::Norm::Backward)?;
            fft::irfft(&y, Some(5), 1, fft::Norm::Backward)
        }),
    ])
}

type Group = fn(&mut Rng) -> Result<Vec<Case>>;
const GROUPS: [Group; 7] = [elementwise, shapes, reductions, products, layers, few_bits, matrices];

/// Functions with arguments, in groups.
pub fn groups() -> impl Iterator<Item = impl Fn(&mut Rng) -> Result<Vec<(Function, Vec<Array>)>>> {
    GROUPS.into_iter().map(|group| {
        move |rng: &mut Rng| {
            Ok(group(rng)?.into_iter().map(|Case(_, f, arguments)| (f, arguments)).collect())
        }
    })
}

/// The names of operations in a program.
fn names(program: &str) -> BTreeSet<String> {
    program
        .split("\"op\":{\"name\":\"")
        .skip(1)
        .map(|s| s.split('"').next().unwrap_or("").into())
        .collect()
}

/// The names in the source of the format's table.
fn known() -> BTreeSet<String> {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/export/operations.rs");
    let table = std::fs::read_to_string(table).expect("the table");
    let row = |line: &str| {
        let (name, path) = line.trim().strip_prefix('"')?.split_once("\" ")?;
        path.ends_with(';').then(|| name.to_owned())
    };
    table.lines().filter_map(row).collect()
}

#[test]
fn every_operation_gives_the_same_bits() -> Result<()> {
    let rng = &mut Rng::new(26);
    let mut seen = BTreeSet::new();
    for group in GROUPS {
        for Case(name, f, arguments) in group(rng)? {
            seen.extend(names(&check(name, f, &arguments)));
        }
    }
    seen.extend(shapeless()?);
    let known = known();
    assert!(known.len() > 50, "{known:?}");
    let missing: Vec<_> = known.difference(&seen).collect();
    assert!(missing.is_empty(), "without a case in export/every.rs: {missing:?}");
    Ok(())
}

/// Checks shapeless traces, and returns the names of their operations.
fn shapeless() -> Result<BTreeSet<String>> {
    let f = |x: &[Array]| {
        let centered = x[0].subtract(&x[0].mean(KeepDims(-1))?)?;
        Ok(vec![centered.matmul(&x[1])?.softmax(-1, false)?.flatten(0, 1)?])
    };
    let rng = &mut Rng::new(7);
    let mut of = |n: usize, k: usize| {
        vec![uniform_f32(rng, &[2, n, k], -1.0, 1.0), uniform_f32(rng, &[k, 3], -1.0, 1.0)]
    };
    let file = exported(f, &of(4, 5), true)?;
    let function = read(&file)?;
    for arguments in [of(4, 5), of(7, 2), of(1, 9)] {
        let (got, wanted) = (function.call(&arguments)?, f(&arguments)?);
        assert_eq!(content(&got[0]), content(&wanted[0]));
    }
    let vector = [Array::scalar(1.0f32), Array::scalar(1.0f32)];
    assert!(function.call(vector).is_err(), "another number of dimensions");
    Ok(names(&program(&file)))
}

#[test]
fn quantised_weights_are_constants() -> Result<()> {
    let rng = &mut Rng::new(5);
    let (x, w) = (uniform_f32(rng, &[3, 64], -1.0, 1.0), uniform_f32(rng, &[16, 64], -1.0, 1.0));
    let w: Quantized = quantize(&w, Quantization::affine(4, 32), None)?;
    let text = check("weights", |x| Ok(vec![quantized_matmul(&x[0], &w, true)?]), [&x]);
    assert_eq!(text.matches("\"constant\"").count(), 3, "{text}");
    Ok(())
}
