//! Random numbers: the ones that MLX 0.32 gives for the same keys.

use crate::support::arrays::f64s;
use ultramarine::{
    Array, Complex32, Dtype, Error, Result, Scalar,
    random::{self, Samples},
    transforms::vmap,
};
use ultramarine_test_support::{Tolerance, assert_close};

fn key() -> Result<Array> {
    random::key(11)
}

fn num(v: f64) -> Array {
    Array::scalar(v as f32)
}

/// `tolerance` in units of each number, 0 for equal bits.
fn near(name: &str, got: Array, wanted: &[f64], tolerance: f64) -> Result<()> {
    let got = f64s(&got);
    assert_eq!(got.len(), wanted.len(), "{name}");
    for (g, w) in got.iter().zip(wanted) {
        assert!(w.is_finite());
        let bound = Tolerance::absolute(tolerance * w.abs().max(0.1));
        assert_close(name, &[*g], &[*w], bound);
    }
    Ok(())
}

#[test]
fn keys() -> Result<()> {
    let k = random::key((1 << 40) + 5)?;
    assert_eq!(k.to_vec::<u32>()?, [256, 5]);
    let s = random::split(&k, 2)?;
    assert_eq!(s.to_vec::<u32>()?, [2588430962, 1672726310, 3246284531, 1850734787]);
    let s = random::split(&key()?, 3)?;
    assert_eq!(s.shape(), [3, 2]);
    let wanted = [3266265133, 3594724812, 1202082619, 2600008386, 717453636, 1361251745];
    assert_eq!(s.to_vec::<u32>()?, wanted);
    assert_eq!(random::split(&key()?, 0)?.shape(), [0, 2]);
    Ok(())
}

#[test]
fn uniform_is_exact() -> Result<()> {
    let k = key()?;
    let of = |n: usize| random::uniform(&[n], num(0.0), num(1.0), Dtype::Float32, Some(&k));
    near("1", of(1)?, &[0.45246776938438416], 0.0)?;
    near("2", of(2)?, &[0.919212281703949, 0.9360038042068481], 0.0)?;
    near("3", of(3)?, &[0.8074188232421875, 0.08221369981765747, 0.45523738861083984], 0.0)?;
    let seven = [
        0.9811148643493652,
        0.3550018072128296,
        0.6561736464500427,
        0.42621639370918274,
        0.40313899517059326,
        0.5024511218070984,
        0.2596449553966522,
    ];
    near("7", of(7)?, &seven, 0.0)?;
    for (d, wanted) in [
        (Dtype::Float16, [4.6015625, 5.3671875, -0.482421875, 3.0546875, -1.330078125]),
        (Dtype::Bfloat16, [4.625, 5.375, -0.484375, 3.0625, -1.328125]),
    ] {
        near(d.name(), random::uniform(&[5], num(-3.0), num(7.0), d, Some(&k))?, &wanted, 0.0)?;
        let many = random::uniform(&[20000], num(0.0), num(1.0), d, Some(&k))?;
        assert!(f64s(&many.max(None)?)[0] < 1.0);
    }
    Ok(())
}

#[test]
fn randint_is_exact() -> Result<()> {
    let k = key()?;
    let of =
        |low: f64, high: f64, n: usize, d| random::randint(&[n], num(low), num(high), d, Some(&k));
    near("i32", of(-5.0, 5.0, 8, Dtype::Int32)?, &[4., -2., 1., 4., -1., 0., -3., 0.], 0.0)?;
    let int = |v: i64| Array::scalar(Scalar::from_i64(Dtype::Int32, v));
    let wrapped = random::randint(&[8], int(0), int(300), Dtype::Uint8, Some(&k))?;
    near("u8", wrapped, &[38., 43., 43., 37., 43., 43., 43., 43.], 0.0)?;
    let i8s = [122., -38., 39., 121., -26., 0., -62., 14.];
    near("i8", of(-128.0, 127.0, 8, Dtype::Int8)?, &i8s, 0.0)?;
    let i64s = [887766384640., 61595394048., 500538802176., 42344013824.];
    near("i64", of(0.0, 2f64.powi(40), 4, Dtype::Int64)?, &i64s, 0.0)?;
    near("bool", of(0.0, 2.0, 8, Dtype::Bool)?, &[1., 0., 1., 1., 0., 1., 0., 1.], 0.0)?;
    near("crossed", of(5.0, 3.0, 3, Dtype::Int32)?, &[5.0; 3], 0.0)?;
    Ok(())
}

#[test]
fn distributions() -> Result<()> {
    let k = key()?;
    let k = Some(&k);
    let normal = |d| random::normal(&[5], None, None, d, k);
    let f32s = [
        0.707868754863739,
        0.9820488691329956,
        -0.668959379196167,
        0.26725003123283386,
        -0.9659074544906616,
    ];
    near("normal", normal(Dtype::Float32)?, &f32s, 1e-6)?;
    let f16s = [0.70751953125, 0.98193359375, -0.6689453125, 0.26708984375, -0.9658203125];
    near("normal", normal(Dtype::Float16)?, &f16s, 1e-3)?;
    let moved = random::normal(&[5], Some(&num(2.0)), Some(&num(3.0)), Dtype::Float32, k)?;
    let wanted: Vec<f64> = f32s.iter().map(|v| v * 3.0 + 2.0).collect();
    near("normal", moved, &wanted, 1e-5)?;
    let z = random::normal(&[3], None, None, Dtype::Complex64, k)?.to_vec::<Complex32>()?;
    for (z, (re, im)) in z.iter().zip([
        (0.500_538_8, 0.6944134),
        (-0.41237977, 0.18897432),
        (-0.68299973, -0.33677354f32),
    ]) {
        assert!((z.re - re).abs() < 1e-6 && (z.im - im).abs() < 1e-6, "{z}");
    }
    let g = random::gumbel(&[5], Dtype::Float32, k)?;
    let wanted = [
        1.295369029045105,
        1.7261037826538086,
        -0.32155901193618774,
        0.6892961859703064,
        -0.5819311738014221,
    ];
    near("gumbel", g, &wanted, 1e-5)?;
    let l = random::laplace(&[5], 0.0, 1.0, Dtype::Float32, k)?;
    let wanted = [
        -0.7359988689422607,
        -1.120625615119934,
        0.686129093170166,
        -0.2366383671760559,
        1.0963435173034668,
    ];
    near("laplace", l, &wanted, 1e-6)?;
    let l = random::laplace(&[5], 1.0, 2.0, Dtype::Float32, k)?;
    let wanted: Vec<f64> = wanted.iter().map(|v| v * 2.0 + 1.0).collect();
    near("laplace", l, &wanted, 1e-5)?;
    let t = random::truncated_normal(Some(&[5]), num(-1.0), num(2.0), Dtype::Float32, k)?;
    let wanted = [
        0.7762033939361572,
        1.010148525238037,
        -0.34580346941947937,
        0.39668765664100647,
        -0.5376840829849243,
    ];
    near("truncated", t, &wanted, 1e-6)?;
    let b = random::bernoulli(Some(&[10]), num(0.3), k)?;
    near("bernoulli", b, &[1., 0., 0., 0., 0., 0., 0., 1., 0., 0.], 0.0)?;
    near("permutation", random::permutation(9, k)?, &[0., 7., 5., 4., 1., 3., 6., 2., 8.], 0.0)?;
    Ok(())
}

#[test]
fn categorical_is_exact() -> Result<()> {
    let k = key()?;
    let v: Vec<f32> = (0..12).map(|i| i as f32 / 4.0).collect();
    let logits = Array::from_slice(&v, &[3, 4])?;
    let of = |axis, samples| random::categorical(&logits, axis, samples, Some(&k));
    near("plain", of(-1, Samples::One)?, &[1., 1., 3.], 0.0)?;
    near("first axis", of(0, Samples::One)?, &[2., 1., 2., 2.], 0.0)?;
    near("shape", of(1, Samples::Shape(&[2, 3]))?, &[3., 2., 1., 0., 2., 1.], 0.0)?;
    let counted = of(-1, Samples::Count(2))?;
    assert_eq!((counted.shape(), counted.dtype()), (&[3, 2][..], Dtype::Uint32));
    near("count", counted, &[3., 1., 2., 3., 2., 2.], 0.0)?;
    let deep =
        random::categorical(&logits.reshape(&[2, 3, 2])?, 1, Samples::Shape(&[3, 2, 2]), Some(&k))?;
    near("inner", deep, &[2., 0., 2., 2., 2., 2., 0., 1., 0., 1., 2., 1.], 0.0)?;
    Ok(())
}

#[test]
fn errors() -> Result<()> {
    let k = key()?;
    let value = |r: Result<Array>| matches!(r, Err(Error::Value(_)));
    let (zero, one) = (num(0.0), num(1.0));
    assert!(value(random::split(&Array::zeros(&[2], Dtype::Int32)?, 2)));
    assert!(value(random::split(&Array::zeros(&[3], Dtype::Uint32)?, 2)));
    assert!(value(random::bits(&[2], 3, Some(&k))));
    for (d, is_value) in [(Dtype::Int32, true), (Dtype::Complex64, true), (Dtype::Float64, false)] {
        let r = random::uniform(&[2], &zero, &one, d, Some(&k));
        assert_eq!(value(r), is_value);
    }
    let two = Array::zeros(&[2], Dtype::Float32)?;
    assert!(value(random::uniform(&[], &two, &one, Dtype::Float32, Some(&k))));
    assert!(value(random::uniform(&[3], &two, &one, Dtype::Float32, Some(&k))));
    assert!(value(random::randint(&[2], &zero, &one, Dtype::Float32, Some(&k))));
    assert!(value(random::normal(&[2], None, None, Dtype::Int32, Some(&k))));
    assert!(value(random::bernoulli(None, Array::scalar(1i32), Some(&k))));
    assert!(value(random::bernoulli(Some(&[3]), &two, Some(&k))));
    let none = random::categorical(&one, -1, Samples::One, Some(&k));
    assert!(matches!(none, Err(Error::Index(_))));
    // As in MLX: of one distribution no samples are none, of several there is nothing to choose from.
    let none = random::categorical(&two, -1, Samples::Count(0), Some(&k))?;
    assert_eq!(none.shape(), [0]);
    let rows = Array::zeros(&[3, 2], Dtype::Float32)?;
    assert!(value(random::categorical(&rows, -1, Samples::Count(0), Some(&k))));
    assert!(value(random::laplace(&[2], 0.0, 1.0, Dtype::Int32, Some(&k))));
    Ok(())
}

#[test]
fn state_of_a_thread() -> Result<()> {
    let draw = || random::uniform(&[2], num(0.0), num(1.0), Dtype::Float32, None);
    random::seed(7)?;
    let (first, second) = (draw()?, draw()?);
    near("second", second, &[0.8012937307357788, 0.18442964553833008], 0.0)?;
    near("first", first, &[0.514767050743103, 0.0784912109375], 0.0)?;
    let kept = random::state()?;
    let a = f64s(&draw()?);
    random::set_state(&kept)?;
    assert_eq!(f64s(&draw()?), a);
    assert!(random::set_state(&num(1.0)).is_err());
    Ok(())
}

#[test]
fn threads_leave_each_others_state_alone() -> Result<()> {
    let draw = || random::uniform(&[4], num(0.0), num(1.0), Dtype::Float32, None);
    let in_thread = |f: &(dyn Fn() -> Result<Vec<f64>> + Sync)| -> Result<Vec<f64>> {
        std::thread::scope(|scope| scope.spawn(f).join()).expect("no panic")
    };
    random::seed(7)?;
    let alone = [f64s(&draw()?), f64s(&draw()?)];

    random::seed(7)?;
    let first = f64s(&draw()?);
    let seeded = in_thread(&|| {
        random::seed(7)?;
        Ok(f64s(&draw()?))
    })?;
    let own = [in_thread(&|| Ok(f64s(&draw()?)))?, in_thread(&|| Ok(f64s(&draw()?)))?];
    assert_eq!(seeded, alone[0]);
    // Threads that do not seed have numbers of their own.
    assert!(own[0] != own[1] && own.iter().all(|o| *o != alone[0] && *o != alone[1]));
    assert_eq!([first, f64s(&draw()?)], alone);
    Ok(())
}

#[test]
fn a_thread_ends_with_a_deep_state() -> Result<()> {
    let ended = std::thread::Builder::new().stack_size(256 << 10).spawn(|| -> Result<()> {
        random::seed(7)?;
        for _ in 0..20_000 {
            drop(random::bits(&[2], 4, None)?);
        }
        Ok(())
    });
    ended.expect("a thread").join().expect("no panic")
}

#[test]
fn bits_mapped_over_keys() -> Result<()> {
    let keys = random::split(&key()?, 4)?;
    for (axis, keys_) in [(0, keys.clone()), (1, keys.transpose_axes([1, 0])?)] {
        for width in [1, 2, 4] {
            let all = vmap(
                |k: &[Array]| Ok::<_, Error>(vec![random::bits(&[5, 3], width, Some(&k[0]))?]),
                std::slice::from_ref(&keys_),
                [Some(axis)],
                0,
            )?;
            for i in 0..4 {
                let at = Array::scalar(i);
                let one = random::bits(&[5, 3], width, Some(&keys.take(&at, Some(0))?))?;
                assert_eq!(f64s(&all[0].take(&at, Some(0))?), f64s(&one));
            }
        }
    }
    Ok(())
}

#[test]
fn moments() -> Result<()> {
    let k = key()?;
    let z = random::normal(&[100_000], None, None, Dtype::Float32, Some(&k))?;
    let (mean, var) = (z.mean(None)?.item::<f32>()?, z.var(None, 0)?.item::<f32>()?);
    assert!(mean.abs() < 0.02 && (var - 1.0).abs() < 0.02, "{mean} {var}");
    let shuffled = random::permute(&z, 0, Some(&k))?.sort(None)?.to_vec::<f32>()?;
    assert_eq!(shuffled, z.sort(None)?.to_vec::<f32>()?);
    Ok(())
}

/// Numbers are parameters as arrays are, of whatever type they are.
#[test]
fn parameters_are_numbers_or_arrays() -> Result<()> {
    let k = &random::key(5)?;
    let same = |a: Result<Array>, b: Result<Array>| -> Result<()> {
        assert_eq!(a?.to_vec::<f32>()?, b?.to_vec::<f32>()?);
        Ok(())
    };
    let (d, two) = (Dtype::Float32, &num(2.0));
    same(
        random::uniform(&[4], 0, 2.0, d, Some(k)),
        random::uniform(&[4], num(0.0), two, d, Some(k)),
    )?;
    same(random::normal(&[4], 2, None, d, Some(k)), random::normal(&[4], two, None, d, Some(k)))?;
    same(
        random::normal(&[4], None, 2.0, d, Some(k)),
        random::normal(&[4], None, Some(two), d, Some(k)),
    )?;
    let cut = |lower: f32| random::truncated_normal(Some(&[4]), lower, 2, d, Some(k));
    same(cut(-1.0), random::truncated_normal(Some(&[4]), num(-1.0), two, d, Some(k)))?;
    let coins = random::bernoulli(Some(&[4]), 0.5, Some(k))?.to_vec::<bool>()?;
    assert_eq!(coins, random::bernoulli(Some(&[4]), num(0.5), Some(k))?.to_vec::<bool>()?);
    let dice = random::randint(&[4], 1, 7, Dtype::Int32, Some(k))?.to_vec::<i32>()?;
    assert!(dice.iter().all(|n| (1..7).contains(n)), "{dice:?}");
    Ok(())
}
