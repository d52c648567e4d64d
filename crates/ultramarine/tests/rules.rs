//! Forward and reverse rules of reductions, scans, sorting, products and indexing
//! against central differences in float64; and the rules of the rules.

use ultramarine::{
    Array, Dtype, Error, Result, Update, addmm, index,
    transforms::{grad, jvp, vjp},
};

type F = fn(&Array) -> Result<Array>;

fn ints(v: &[i32]) -> Result<Array> {
    Array::from_slice(v, &[v.len()])
}

/// Functions of a (3, 4) matrix without ties or zeros.
const TABLE: &[(&str, F)] = &[
    ("sum", |x| x.sum(Some(&[0]), false)),
    ("prod all", |x| x.prod(None, false)),
    ("prod", |x| x.prod(Some(&[0]), true)),
    ("max", |x| x.max(Some(&[1]), false)),
    ("min", |x| x.min(None, false)),
    ("mean", |x| x.mean(Some(&[0]), false)),
    ("var", |x| x.var(Some(&[1]), false, 1)),
    ("std", |x| x.std(None, false, 0)),
    ("median", |x| x.median(Some(&[1]), false)),
    ("logsumexp", |x| x.logsumexp(Some(&[1]), false)),
    ("softmax", |x| x.softmax(Some(&[0]), false)),
    ("cumsum", |x| x.cumsum(Some(0), true, false)),
    ("cumprod", |x| x.cumprod(Some(1), false, true)),
    ("cumprod reverse", |x| x.cumprod(Some(1), true, false)),
    ("cummax", |x| x.cummax(Some(1), false, true)),
    ("cummin", |x| x.cummin(None, true, true)),
    ("logcumsumexp", |x| x.logcumsumexp(Some(1), false, true)),
    ("logcumsumexp reverse", |x| x.logcumsumexp(Some(0), true, true)),
    ("sort", |x| x.sort(Some(1))),
    ("topk", |x| x.topk(2, Some(0))),
    ("matmul", |x| x.matmul(&x.transpose_axes(&[1, 0])?)),
    ("matmul vector", |x| x.matmul(&x.index(&index![1])?)),
    ("addmm", |x| addmm(x, &x.index(&index![.., ..3])?, x, 2.0, 3.0)),
    ("tensordot", |x| x.tensordot(x, 2)),
    ("outer", |x| x.outer(&x.index(&index![0])?)),
    ("vecdot", |x| x.vecdot(x, 0)),
    ("take", |x| x.take(&ints(&[1, 1, -1])?, Some(0))),
    ("take last", |x| x.take(&ints(&[1, 1, -1])?, Some(1))),
    ("gather", |x| x.index(&index![&ints(&[0, 2, 2])?, &ints(&[3, 1, 1])?])),
    ("along", |x| x.take_along_axis(&ints(&[2, 0])?.reshape(&[2, 1])?, Some(0))),
    ("put", |x| {
        let at = ints(&[2, 0])?.reshape(&[1, 2])?;
        x.put_along_axis(&at, &x.index(&index![.., 2..])?, Some(1))
    }),
    ("set", |x| x.index_update(&index![&ints(&[2, 0])?], &x.index(&index![1])?, Update::Set)),
    ("add", |x| x.index_update(&index![&ints(&[2, 2])?], &x.index(&index![..2])?, Update::Add)),
    ("multiply", |x| {
        x.index_update(&index![.., &ints(&[2, 2])?], &x.index(&index![.., ..2])?, Update::Multiply)
    }),
    ("maximum", |x| {
        let at = index![&ints(&[0, 0, 1])?, &ints(&[1, 1, 0])?];
        x.index_update(&at, &x.index(&index![2, 1..])?, Update::Maximum)
    }),
    ("slice", |x| x.index_update(&index![1, 1..3], &x.index(&index![0, ..2])?, Update::Multiply)),
    ("mask", |x| {
        let mask = Array::from_slice(&[true, false, true], &[3])?;
        x.index_update(&index![&mask], &x.index(&index![1..])?, Update::Set)
    }),
];

fn numbers(seed: u64) -> Vec<f64> {
    // Different, neither near zero nor near each other.
    (0..12u64).map(|i| 0.37 + 0.13 * ((i * 5 + seed) % 12) as f64).map(|v| v - 1.0).collect()
}

fn matrix(v: &[f64]) -> Result<Array> {
    Array::from_slice(v, &[3, 4])
}

fn check(name: &str, f: &dyn Fn(&Array) -> Result<Array>) -> Result<()> {
    let (v, t) = (numbers(1), numbers(8));
    let run = |a: &[Array]| Ok::<_, Error>(vec![f(&a[0])?]);
    let shifted = |h: f64| -> Result<Vec<f64>> {
        let moved: Vec<f64> = v.iter().zip(&t).map(|(a, b)| a + h * b).collect();
        f(&matrix(&moved)?)?.to_vec::<f64>()
    };
    let h = 1e-6;
    let (high, low) = (shifted(h)?, shifted(-h)?);
    let difference: Vec<f64> = high.iter().zip(&low).map(|(a, b)| (a - b) / (2.0 * h)).collect();
    let (out, forward) = jvp(run, &[matrix(&v)?], &[matrix(&t)?])?;
    assert_eq!(out[0].shape(), forward[0].shape(), "{name}");
    let forward = forward[0].to_vec::<f64>()?;
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6 * (1.0 + b.abs());
    for (a, b) in forward.iter().zip(&difference) {
        assert!(near(*a, *b), "{name} forward: {a} for {b}");
    }
    // Reverse: <c, J t> = <J' c, t>.
    let n = out[0].size();
    let c: Vec<f64> = (0..n).map(|i| 0.5 + (i * 7 % 5) as f64).collect();
    let (_, back) = vjp(run, &[matrix(&v)?], &[Array::from_slice(&c, out[0].shape())?])?;
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let (left, right) = (dot(&c, &forward), dot(&back[0].to_vec::<f64>()?, &t));
    assert!(near(right, left), "{name} reverse: {right} for {left}");
    Ok(())
}

#[test]
fn first_derivatives() -> Result<()> {
    TABLE.iter().try_for_each(|(name, f)| check(name, f))
}

#[test]
fn second_derivatives() -> Result<()> {
    TABLE.iter().try_for_each(|(name, f)| {
        let slope = |x: &Array| {
            let inner = |x: &Array| {
                let y = f(x)?;
                y.multiply(&y)?.sum(None, false)
            };
            grad(inner)(x)
        };
        check(&format!("slope of {name}"), &slope)
    })
}

#[test]
fn no_derivative_of_positions() -> Result<()> {
    let x = matrix(&numbers(0))?;
    let g = grad(|x: &Array| {
        let at = x.argmax(Some(1), false)?.astype(Dtype::Float64).sum(None, false)?;
        let order = x.argsort(Some(1))?.astype(Dtype::Float64).sum(None, false)?;
        at.add(&order)
    })(&x)?;
    assert_eq!(g.to_vec::<f64>()?, [0.0; 12]);
    Ok(())
}
