//! Indexing, taking and putting: positions and shapes against NumPy's and MLX's, which
//! agree on the cases of the table.

mod dynamic_slice;
mod update;

use ultramarine::{
    Array, Dtype, Error, Index, Result, Update, index,
    transforms::{grad, jvp, vmap},
};

/// Index, result's shape, and digests of: what is read; the array after writing
/// 1000, 1001 ... there; the array after adding those.
type Case = (&'static str, &'static [usize], u64, u64, u64);

#[rustfmt::skip]
const CASES: &[Case] = &[
    ("+,e,0,-1:0:-2,-2", &[1, 2, 1, 2], 334004, 204167, 698843),
    ("d", &[2, 3, 4, 3], 380355, 93087, 301561),
    ("e,1", &[1, 2, 4, 3], 354217, 817775, 926496),
    ("2,::-1", &[3, 4, 3], 61788, 235293, 565393),
    ("2:1:,b,-2", &[0, 2, 1, 3], 0, 229154, 229154),
    ("+,b", &[1, 2, 1, 3, 4, 3], 412504, 60521, 673408),
    ("1::,::-1,+,-1,b", &[2, 3, 1, 2, 1], 253700, 184473, 593263),
    ("+,-1", &[1, 3, 4, 3], 865457, 38959, 369059),
    ("1,a,+", &[2, 1, 4, 3], 261607, 82505, 182062),
    ("+,...,b", &[1, 3, 3, 4, 2, 1], 514220, 990088, 257458),
    ("...,::,+,2", &[3, 3, 4, 1], 959601, 210228, 978904),
    ("a,c,e", &[1, 2, 3], 641384, 685498, 431786),
    ("...", &[3, 3, 4, 3], 229154, 122940, 614201),
    ("0:2:", &[2, 3, 4, 3], 626271, 767548, 928709),
    ("-2,...", &[3, 4, 3], 592662, 977924, 260708),
    ("e,+,...", &[1, 2, 1, 3, 4, 3], 626271, 767548, 928709),
    ("c", &[3, 4, 3], 592662, 977924, 260708),
    ("a", &[2, 3, 4, 3], 899066, 587940, 796414),
    ("e,b", &[2, 2, 4, 3], 223759, 639129, 513519),
    ("+,-1,c", &[1, 4, 3], 988891, 441188, 404001),
    ("2,-1:0:-2", &[1, 4, 3], 903826, 820945, 481856),
    ("...,-1:0:-2,-3", &[3, 3, 2], 411981, 492622, 445712),
    ("0", &[3, 4, 3], 319867, 505340, 383714),
    ("1::,-1:0:-2,a", &[2, 1, 2, 3], 197117, 40941, 19516),
    ("c,::", &[3, 4, 3], 592662, 977924, 260708),
    ("+,::-1,0:2:,...", &[1, 3, 2, 4, 3], 434671, 372312, 436990),
    ("d,+,+,...", &[2, 1, 1, 3, 4, 3], 380355, 93087, 301561),
    ("::,e,-1:0:-2,...", &[3, 1, 2, 2, 3], 331069, 30630, 646277),
    ("::,...,+", &[3, 3, 4, 3, 1], 229154, 122940, 614201),
    ("a,e,-1,e,+", &[1, 2, 1], 405, 474485, 641659),
    ("+,+,b,0", &[1, 1, 2, 1, 4, 3], 176542, 196215, 248600),
    ("+,c,...,+,c", &[1, 3, 4, 1], 254919, 664068, 103478),
    ("d,b,...", &[2, 2, 4, 3], 721329, 632648, 193987),
    ("e,0:2:,1::", &[1, 2, 2, 3, 3], 278066, 19023, 336223),
    ("...,+,2", &[3, 3, 4, 1], 959601, 210228, 978904),
    ("0:2:,c,+,-2", &[2, 1, 3], 102859, 232161, 348217),
    ("...,1::", &[3, 3, 4, 2], 514220, 990088, 257458),
    ("0,1::", &[2, 4, 3], 524347, 669362, 606977),
    ("::", &[3, 3, 4, 3], 229154, 122940, 614201),
    ("::-1,0:2:,0", &[3, 2, 3], 250656, 141764, 747597),
    ("d,1,1::,a", &[2, 3], 216208, 705018, 608043),
    ("c,a,a", &[2, 3], 597513, 112026, 684568),
    ("+,-1,e,+,b", &[2, 2, 1, 1, 3], 663831, 133619, 672632),
    ("e,d,1::,e", &[1, 2, 3], 296592, 763018, 488699),
    ("1::,-1,0,-1", &[2], 2052, 185303, 706204),
    ("::2,d,b,...,+", &[2, 2, 2, 3, 1], 96178, 80720, 91971),
    ("d,0:2:,+,+", &[2, 2, 1, 1, 4, 3], 197798, 49432, 584871),
    ("+,a,c,...", &[1, 2, 4, 3], 99022, 348004, 236308),
    ("::-1,-3,...", &[3, 4, 3], 561064, 686247, 679391),
    ("+,-2", &[1, 3, 4, 3], 592662, 977924, 260708),
    ("0,+,::-1,-2", &[1, 3, 3], 441198, 772405, 506824),
    ("+,-1:0:-2,+,+", &[1, 1, 1, 1, 3, 4, 3], 865457, 38959, 369059),
    ("...,-3,::2,+", &[3, 3, 2, 1], 728124, 708378, 77319),
    ("e,+,0,c,::", &[1, 2, 1, 3], 352351, 504768, 702580),
    ("+", &[1, 3, 3, 4, 3], 229154, 122940, 614201),
    ("...,2,::,d", &[2, 3, 4], 72148, 353195, 568604),
    ("...,b,+", &[3, 3, 4, 2, 1, 1], 514220, 990088, 257458),
    ("e", &[1, 2, 3, 4, 3], 626271, 767548, 928709),
    ("...,+,1::", &[3, 3, 4, 1, 2], 514220, 990088, 257458),
    ("...,e,::-1,-3", &[1, 2, 3, 4], 380759, 743795, 897980),
];

fn digest(a: &Array) -> Result<u64> {
    let v = a.astype(Dtype::Int64).to_vec::<i64>()?;
    Ok(v.iter().fold(0u64, |h, x| (h * 31 + *x as u64 + 1) % 1_000_003))
}

/// `+` new axis, letters index arrays, `:` slices.
fn parse(text: &str) -> Result<Vec<Index>> {
    text.split(',')
        .map(|e| {
            Ok(match e {
                "..." => Index::Ellipsis,
                "+" => Index::NewAxis,
                "a" => Array::from_slice(&[0i32, 2], &[2])?.into(),
                "b" => Array::from_slice(&[1i64, 2], &[2, 1])?.into(),
                "c" => Array::from_slice(&[1u8], &[])?.into(),
                "d" => Array::from_slice(&[2i8, -3], &[2])?.into(),
                "e" => Array::from_slice(&[0u32, 1], &[1, 2])?.into(),
                "::" => Index::Full,
                s if s.contains(':') => {
                    let mut p = s.split(':').map(|n| n.parse::<i64>().ok());
                    let mut next = || p.next().flatten();
                    Index::Slice { start: next(), stop: next(), step: next() }
                }
                n => Index::Int(n.parse().map_err(|_| Error::Value(n.into()))?),
            })
        })
        .collect()
}

fn counted(shape: &[usize], from: i32, dtype: Dtype) -> Result<Array> {
    let n: usize = shape.iter().product();
    let v: Vec<i32> = (0..n as i32).map(|i| i + from).collect();
    Ok(Array::from_slice(&v, shape)?.astype(dtype))
}

#[test]
fn reads_and_writes_of_the_table() -> Result<()> {
    for dtype in [Dtype::Int32, Dtype::Float32] {
        let x = counted(&[3, 3, 4, 3], 0, dtype)?;
        // The same array in another memory order.
        let turned = x.transpose_axes([2, 0, 3, 1])?.contiguous();
        let turned = turned.transpose_axes([1, 3, 0, 2])?;
        for (text, shape, read, set, added) in CASES {
            let at = parse(text)?;
            for x in [&x, &turned] {
                let got = x.index(&at)?;
                assert_eq!(got.shape(), *shape, "{text}");
                assert_eq!(digest(&got)?, *read, "{text}");
                let updates = counted(shape, 1000, dtype)?;
                assert_eq!(digest(&x.index_update(&at, &updates, Update::Set)?)?, *set, "{text}");
                let sum = x.index_update(&at, &updates, Update::Add)?;
                assert_eq!(digest(&sum)?, *added, "{text}");
            }
        }
    }
    Ok(())
}

#[test]
fn errors() -> Result<()> {
    let x = counted(&[2, 3], 0, Dtype::Float32)?;
    let s = Array::scalar(1.0f32);
    let value = |r: Result<Array>| matches!(r, Err(Error::Value(_)));
    assert!(value(x.index(&index![0, 0, 0])));
    assert!(value(s.index(&index![0])));
    assert!(value(x.index(&[Index::Ellipsis, Index::Ellipsis])));
    assert!(matches!(x.index(&index![2]), Err(Error::Index(_))));
    assert!(matches!(x.index(&index![.., -4]), Err(Error::Index(_))));
    assert!(value(x.index(&[Index::Slice { start: None, stop: None, step: Some(0) }])));
    let mask = Array::from_slice(&[true, false], &[2])?;
    assert!(value(x.index(&index![0, &mask])), "a mask stands by itself");
    assert_eq!(x.index(&index![&mask])?.shape(), [1, 3]);
    let longer = Array::from_slice(&[true, false, true], &[3])?;
    assert!(x.index(&index![&longer]).is_err());
    assert!(value(x.index_update(&index![0, &mask], &s, Update::Set)));
    assert!(value(x.index(&index![&x])), "float indices");
    let (two, three) = (counted(&[2], 0, Dtype::Int32)?, counted(&[3], 0, Dtype::Int32)?);
    assert!(value(x.index(&index![&two, &three])));
    assert!(value(x.index_update(&index![0], &two, Update::Set)));
    assert!(value(x.index_update(&[Index::Mask(three.astype(Dtype::Bool))], &s, Update::Set)));
    assert!(matches!(x.take(&two, Some(2)), Err(Error::Index(_))));
    assert!(value(x.take(&x, Some(0))));
    assert!(value(Array::zeros(&[0], Dtype::Float32)?.take(&two, None)));
    assert!(value(x.take_along_axis(&two, Some(0))));
    assert!(matches!(x.take_along_axis(&x, Some(0)), Err(Error::Runtime(_))));
    assert!(matches!(x.take_along_axis(&x, Some(2)), Err(Error::Index(_))));
    Ok(())
}

#[test]
fn kinds_of_updates() -> Result<()> {
    let y = counted(&[2, 3], 0, Dtype::Float32)?;
    let twice = Array::from_slice(&[1i32, 1], &[2])?;
    let of = |v: f32| Array::scalar(v);
    let run = |at: &[Index], v: f32, kind| -> Result<Vec<f32>> {
        y.index_update(at, of(v), kind)?.to_vec::<f32>()
    };
    let at = index![&twice];
    assert_eq!(run(&at, 1.0, Update::Add)?, [0.0, 1.0, 2.0, 5.0, 6.0, 7.0]);
    assert_eq!(run(&at, 1.0, Update::Subtract)?, [0.0, 1.0, 2.0, 1.0, 2.0, 3.0]);
    assert_eq!(run(&at, 3.0, Update::Multiply)?, [0.0, 1.0, 2.0, 27.0, 36.0, 45.0]);
    assert_eq!(run(&at, 2.0, Update::Divide)?, [0.0, 1.0, 2.0, 0.75, 1.0, 1.25]);
    assert_eq!(run(&at, 4.5, Update::Maximum)?, [0.0, 1.0, 2.0, 4.5, 4.5, 5.0]);
    assert_eq!(run(&at, 3.5, Update::Minimum)?, [0.0, 1.0, 2.0, 3.0, 3.5, 3.5]);
    let part = index![.., 1..];
    assert_eq!(run(&part, 3.0, Update::Maximum)?, [0.0, 3.0, 3.0, 3.0, 4.0, 5.0]);
    assert_eq!(run(&part, 10.0, Update::Add)?, [0.0, 11.0, 12.0, 3.0, 14.0, 15.0]);
    // Updates take the array's dtype first; leading axes of size 1 are dropped.
    let whole = counted(&[4], 0, Dtype::Int32)?;
    let sum = whole.index_update(&index![1..3], of(1.7), Update::Add)?;
    assert_eq!(sum.to_vec::<i32>()?, [0, 2, 3, 3]);
    let wide = counted(&[1, 1, 3], 7, Dtype::Int32)?;
    let set = y.index_update(&index![0], &wide, Update::Set)?;
    assert_eq!(set.to_vec::<f32>()?, [7.0, 8.0, 9.0, 3.0, 4.0, 5.0]);
    Ok(())
}

#[test]
fn masks() -> Result<()> {
    let a = Array::zeros(&[2, 3, 2], Dtype::Float32)?;
    let mask = Array::from_slice(&[true, false, true, false, true, false], &[2, 3])?;
    let rows = counted(&[3, 2], 1, Dtype::Int32)?;
    let set = a.index_update(&index![&mask], &rows, Update::Set)?;
    let wanted = [1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0, 0.0, 5.0, 6.0, 0.0, 0.0f32];
    assert_eq!(set.to_vec::<f32>()?, wanted);
    let row = counted(&[2], 1, Dtype::Int32)?;
    let set = a.index_update(&index![&mask], &row, Update::Set)?;
    let wanted = [1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0f32];
    assert_eq!(set.to_vec::<f32>()?, wanted);
    let all = Array::scalar(true);
    let set = a.index_update(&index![&all], Array::scalar(4.0f32), Update::Add)?;
    assert_eq!(set.to_vec::<f32>()?, [4.0; 12]);
    let flat = counted(&[5], 1, Dtype::Int32)?;
    let odd = Array::from_slice(&[false, true, false, true, true], &[5])?;
    let set = flat.index_update(&index![&odd], &counted(&[3], 70, Dtype::Int32)?, Update::Set)?;
    assert_eq!(set.to_vec::<i32>()?, [1, 70, 3, 71, 72]);
    let set = flat.index_update(&index![&odd], Array::scalar(10i32), Update::Multiply)?;
    assert_eq!(set.to_vec::<i32>()?, [1, 20, 3, 40, 50]);
    let few = flat.index_update(&index![&odd], &counted(&[2], 1, Dtype::Int32)?, Update::Set)?;
    for late in [few.eval(), few.add(&few)?.eval()] {
        assert!(matches!(late.as_ref().map_err(Error::root), Err(Error::Runtime(_))), "{late:?}");
    }
    let wide = flat.index_update(&index![&odd], &counted(&[3, 1], 1, Dtype::Int32)?, Update::Set);
    assert!(matches!(wide, Err(Error::Value(_))));
    Ok(())
}

#[test]
fn out_of_range_is_never_read() -> Result<()> {
    let x = counted(&[4], 0, Dtype::Int32)?;
    let at = Array::from_slice(&[100i32, -100, -1, 3], &[4])?;
    assert_eq!(x.take(&at, Some(0))?.to_vec::<i32>()?, [3, 0, 3, 3]);
    assert_eq!(x.take_along_axis(&at, Some(0))?.to_vec::<i32>()?, [3, 0, 3, 3]);
    let set = x.index_update(&index![&at], &counted(&[4], 50, Dtype::Int32)?, Update::Set)?;
    assert_eq!(set.to_vec::<i32>()?, [0, 1, 2, 53]);
    Ok(())
}

#[test]
fn taking_and_putting() -> Result<()> {
    let x = counted(&[2, 3, 4], 0, Dtype::Int32)?;
    let j = Array::from_slice(&[0i32, 2], &[2, 1])?;
    let t = x.take(&j, Some(1))?;
    assert_eq!(t.shape(), [2, 2, 1, 4]);
    assert_eq!(t.to_vec::<i32>()?[4..8], [8, 9, 10, 11]);
    assert_eq!(x.take(Array::scalar(2i32), Some(-2))?.shape(), [2, 4]);
    assert_eq!(x.take(Array::scalar(-1i32), None)?.item::<i32>()?, 23);
    let pairs = Array::from_slice(&[0i32, 1], &[1, 1, 2])?;
    let t = x.take_along_axis(&pairs, Some(2))?;
    assert_eq!(t.shape(), [2, 3, 2]);
    assert_eq!(t.to_vec::<i32>()?[..4], [0, 1, 4, 5]);
    let y = counted(&[2, 3], 0, Dtype::Float32)?;
    let put = y.put_along_axis(
        &Array::from_slice(&[0i32, 4], &[2])?,
        &Array::from_slice(&[9i32, 8], &[2])?,
        None,
    )?;
    assert_eq!(put.to_vec::<f32>()?, [9.0, 1.0, 2.0, 3.0, 8.0, 5.0]);
    let same = Array::from_slice(&[0i32, 0], &[1, 2])?;
    let put = y.put_along_axis(&same, &Array::from_slice(&[1i32, 2], &[1, 2])?, Some(1))?;
    assert_eq!(put.to_vec::<f32>()?, [2.0, 1.0, 2.0, 2.0, 4.0, 5.0]);
    Ok(())
}

fn row(v: &[f32]) -> Result<Array> {
    Array::from_slice(v, &[v.len()])
}

#[test]
fn derivatives() -> Result<()> {
    let x = row(&[1.0, 3.0, 3.0, 2.0])?;
    let at = index![&Array::from_slice(&[0i32, 0], &[2])?];
    let u = row(&[5.0, 7.0])?;
    // d/dx and d/du of the sum of x.at[0, 0].kind(u).
    let wanted: [(Update, [f32; 4], [f32; 2]); 6] = [
        (Update::Set, [0.0, 1.0, 1.0, 1.0], [1.0, 1.0]),
        (Update::Add, [1.0; 4], [1.0, 1.0]),
        (Update::Subtract, [1.0; 4], [-1.0, -1.0]),
        (Update::Multiply, [35.0, 1.0, 1.0, 1.0], [7.0, 5.0]),
        (Update::Maximum, [0.0, 1.0, 1.0, 1.0], [0.0, 1.0]),
        (Update::Minimum, [1.0; 4], [0.0, 0.0]),
    ];
    for (kind, dx, du) in wanted {
        let f = |(x, u): &(Array, Array)| x.index_update(&at, u, kind)?.sum(None);
        let (gx, gu) = grad(f)(&(x.clone(), u.clone()))?;
        assert_eq!(gx.to_vec::<f32>()?, dx, "{kind:?}");
        assert_eq!(gu.to_vec::<f32>()?, du, "{kind:?}");
        if kind == Update::Set {
            // Repeated positions: what was overwritten has no share, going forward.
            continue;
        }
        let run = |a: &[Array]| Ok::<_, Error>(vec![a[0].index_update(&at, &a[1], kind)?]);
        let primals = [x.clone(), u.clone()];
        let tangents = [row(&[1.0, 0.5, 2.0, 3.0])?, row(&[0.25, 4.0])?];
        let (_, t) = jvp(run, &primals, &tangents)?;
        let forward: f32 = t[0].to_vec::<f32>()?.iter().sum();
        let dot = |g: &[f32], t: &Array| -> Result<f32> {
            Ok(g.iter().zip(t.to_vec::<f32>()?).map(|(a, b)| a * b).sum())
        };
        let backward = dot(&dx, &tangents[0])? + dot(&du, &tangents[1])?;
        assert!((forward - backward).abs() < 1e-4, "{kind:?}: {forward} {backward}");
    }
    let g = grad(|x: &Array| x.index(&at)?.sum(None))(&x)?;
    assert_eq!(g.to_vec::<f32>()?, [2.0, 0.0, 0.0, 0.0]);
    let zero = Array::from_slice(&[0i32, 0], &[2])?;
    let g = grad(|x: &Array| x.take_along_axis(&zero, Some(0))?.sum(None))(&x)?;
    assert_eq!(g.to_vec::<f32>()?, [2.0, 0.0, 0.0, 0.0]);
    let g = grad(|x: &Array| x.put_along_axis(&zero, &u, Some(0))?.sum(None))(&x)?;
    assert_eq!(g.to_vec::<f32>()?, [0.0, 1.0, 1.0, 1.0]);
    Ok(())
}

#[test]
fn mapped_like_one_by_one() -> Result<()> {
    let b = 3;
    let x = counted(&[b, 4, 5], 0, Dtype::Float32)?;
    let i = Array::from_slice(&[0i32, 3, 1, 1, -1, 2], &[b, 2])?;
    let j = Array::from_slice(&[4i32, 0, 1, 2, 2, 2], &[b, 2])?;
    let u = counted(&[b, 2], 100, Dtype::Float32)?;
    type F = fn(&[Array]) -> Result<Array>;
    let table: [(&str, F); 8] = [
        ("take", |a| a[0].take(&a[1], Some(1))),
        ("pairs", |a| a[0].index(&index![&a[1], &a[2]])),
        ("apart", |a| a[0].index(&[Index::from(&a[1]), Index::NewAxis, Index::from(&a[2])])),
        ("set", |a| a[0].index_update(&index![&a[1], &a[2]], &a[3], Update::Set)),
        ("add", |a| a[0].index_update(&index![1.., &a[2]], &a[3], Update::Add)),
        ("max", |a| a[0].index_update(&index![&a[1]], &a[3].reshape(&[2, 1])?, Update::Maximum)),
        ("along", |a| a[0].take_along_axis(&a[1].reshape(&[2, 1])?, Some(0))),
        ("put", |a| a[0].put_along_axis(&a[1].reshape(&[1, 2])?, &a[3].reshape(&[1, 2])?, Some(1))),
    ];
    let all = [x, i, j, u];
    for (name, f) in table {
        for mask in 1..16usize {
            let pick = |k: usize| Array::scalar(k as i32);
            let axes: Vec<Option<isize>> =
                (0..4).map(|k| (mask >> k & 1 == 1).then_some(0)).collect();
            let inputs: Vec<Array> = (0..4)
                .map(|k| {
                    if mask >> k & 1 == 1 {
                        Ok(all[k].clone())
                    } else {
                        all[k].take(pick(0), Some(0))
                    }
                })
                .collect::<Result<_>>()?;
            let got = vmap(|a: &[Array]| Ok::<_, Error>(vec![f(a)?]), &inputs, &axes, 0)?;
            for n in 0..b {
                let one: Vec<Array> = (0..4)
                    .map(|k| all[k].take(pick(if mask >> k & 1 == 1 { n } else { 0 }), Some(0)))
                    .collect::<Result<_>>()?;
                let wanted = f(&one)?.to_vec::<f32>()?;
                let row = got[0].take(pick(n), Some(0))?.to_vec::<f32>()?;
                assert_eq!(row, wanted, "{name} {mask} {n}");
            }
        }
    }
    Ok(())
}
