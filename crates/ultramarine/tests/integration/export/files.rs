//! Files: what they hold, and what goes wrong with them.

use super::{content, exported, program, read};
use crate::support::arrays::assert_near;
use std::io::{Cursor, ErrorKind};
use ultramarine::export::Keywords;
use ultramarine::io::{npy, safetensors};
use ultramarine::transforms::{CustomFunction, grad};
use ultramarine::{Array, Dtype, Error, Exporter, Function, Result, export_function, fast};
use ultramarine_test_support::Tolerance;

fn numbers(values: &[f32]) -> Array {
    Array::from_slice(values, &[values.len()]).expect("a line")
}

#[test]
fn constants_lie_beside_the_program_once() -> Result<()> {
    let (w, x) = (numbers(&[1.0, f32::NAN, -0.0]), numbers(&[4.0, 5.0, 6.0]));
    let mut exporter = Exporter::new();
    exporter.trace(|x| Ok(vec![x[0].add(&w)?.multiply(&w)?]), [&x])?;
    exporter.trace(|x| Ok(vec![x[0].add(&w)?]), [&x.reshape(&[1, 3])?])?;
    let mut file = Vec::new();
    exporter.write(&mut file, "a test")?;
    let (arrays, metadata) = safetensors::read(&mut Cursor::new(&file), "a test")?;
    assert_eq!(arrays.keys().collect::<Vec<_>>(), ["constant.0", "program"]);
    assert_eq!(content(&arrays["constant.0"]), content(&w));
    assert_eq!(metadata["format"], "ultramarine.function");
    Ok(())
}

#[test]
fn views_of_constants_take_no_room() -> Result<()> {
    let w = Array::arange(0.0, 10_000.0, 1.0, Dtype::Float32)?.reshape(&[100, 100])?;
    let bias = numbers(&[1.0; 100]);
    ultramarine::eval([&w, &bias])?;
    let x = Array::ones(&[1000, 100], Dtype::Float32)?;
    let f = |x: &[Array]| {
        let y = x[0].matmul(&w.transpose()?)?.add(&bias)?;
        Ok(vec![y.matmul(&w)?, y.take(&Array::scalar(1), 0)?])
    };
    let file = exported(f, [&x], false)?;
    assert!(file.len() < 45_000, "{} bytes", file.len());
    let (got, wanted) = (read(&file)?.call([&x])?, f(&[x])?);
    got.iter().zip(&wanted).for_each(|(a, b)| assert_eq!(content(a), content(b)));
    // Of a few elements of a large array there are these alone.
    let few = w.index(ultramarine::index!(3, 4..8))?;
    ultramarine::eval([&few])?;
    let file = exported(|x| Ok(vec![x[0].add(&few)?]), &[Array::scalar(1.0f32)], false)?;
    assert!(file.len() < 1_500, "{} bytes", file.len());
    Ok(())
}

#[test]
fn constants_without_a_value_are_computed() -> Result<()> {
    let lazy = numbers(&[1.0, 2.0]).exp()?;
    let file = exported(|x| Ok(vec![x[0].add(&lazy)?]), &[numbers(&[0.0, 0.0])], false)?;
    let (arrays, _) = safetensors::read(&mut Cursor::new(&file), "a test")?;
    assert_eq!(content(&arrays["constant.0"]), content(&lazy));
    // An array that the function makes itself is an operation of it.
    let made = |x: &[Array]| Ok(vec![x[0].add(&Array::ones(&[1 << 20], Dtype::Float32)?)?]);
    let file = exported(made, &[Array::scalar(1.0f32)], false)?;
    assert!(file.len() < 2000, "{} bytes", file.len());
    Ok(())
}

#[test]
fn traces_are_chosen_by_their_arguments() -> Result<()> {
    let (x, y) = (numbers(&[1.0, 2.0]), numbers(&[10.0, 20.0]));
    let named = Keywords::from([("b".into(), x.clone()), ("a".into(), y.clone())]);
    let mut exporter = Exporter::new().metadata("notes");
    let difference = |p: &[Array], k: &Keywords| -> Result<Vec<Array>> {
        Ok(vec![k["a"].subtract(&k["b"])?.add(&p[0])?])
    };
    exporter.trace(|x| Ok(vec![x[0].add(1.0)?]), [&x])?;
    exporter.trace(|x| Ok(vec![x[0].add(&x[1])?, x[0].clone()]), [&x, &y])?;
    exporter.trace_keywords(difference, [&x], &named)?;
    exporter.trace(|x| Ok(vec![x[0].clone()]), [&x.astype(Dtype::Int32)])?;
    exporter.trace::<Error>(|_| Ok(vec![Array::scalar(3)]), [] as [&Array; 0])?;
    let twice = exporter.trace(|x| Ok(vec![x[0].clone()]), [&x]);
    assert!(matches!(twice, Err(Error::Runtime(_))), "{twice:?}");
    let f = exporter.into_function();
    assert_eq!((f.signatures().count(), f.metadata()), (5, Some("notes")));
    let one = |results: Vec<Array>| results[0].astype(Dtype::Float32).to_vec::<f32>();
    assert_eq!(one(f.call([&x])?)?, [2.0, 3.0]);
    assert_eq!(one(f.call([&x, &y])?)?, [11.0, 22.0]);
    assert_eq!(one(f.call_keywords([&x], &named)?)?, [10.0, 20.0]);
    assert_eq!(one(f.call([&x.astype(Dtype::Int32)])?)?, [1.0, 2.0]);
    assert_eq!(one(f.call([] as [&Array; 0])?)?, [3.0]);
    let other = Keywords::from([("b".into(), x.clone()), ("c".into(), y)]);
    for unknown in [
        f.call([numbers(&[1.0])]),
        f.call([x.astype(Dtype::Float16)]),
        f.call_keywords([&x], &other),
    ] {
        let Err(Error::Value(text)) = unknown else { panic!("{unknown:?}") };
        let text = text.to_string();
        assert!(
            text.contains("No imported function found") && text.contains("\"a\": (2,) float32"),
            "{text}"
        );
    }
    Ok(())
}

#[test]
fn files_by_path() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("ultramarine-export-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = folder.join("f.mlxfn");
    let x = numbers(&[1.0, 2.0]);
    export_function(&path, |x| Ok(vec![x[0].sum(..)?]), [&x])?;
    assert_eq!(Function::load(&path)?.call([&x])?[0].item::<f32>()?, 3.0);
    let missing = Function::load(folder.join("missing")).err().and_then(|e| e.io_kind());
    assert_eq!(missing, Some(ErrorKind::NotFound));
    let nowhere = export_function(folder.join("no/f"), |x| Ok(x.to_vec()), [&x]);
    assert_eq!(nowhere.err().and_then(|e| e.io_kind()), Some(ErrorKind::NotFound));
    // A failure leaves the older file as it was.
    let failed = export_function(&path, |_| Err(Error::value("f", "no")), [&x]);
    assert!(failed.is_err());
    assert_eq!(Function::load(&path)?.call([&x])?[0].item::<f32>()?, 3.0);
    std::fs::remove_dir_all(&folder).expect("it is there");
    Ok(())
}

#[test]
fn arrays_of_files_are_constants() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("ultramarine-loads-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (weights, path) = (folder.join("w.npy"), folder.join("f.mlxfn"));
    npy::save(&weights, &numbers(&[2.0, 3.0]))?;
    // One that the function closes over, and one that it loads itself.
    let (closed_over, x) = (npy::load(&weights)?, numbers(&[1.0, 10.0]));
    export_function(&path, |x| Ok(vec![((&x[0] * &closed_over)? + npy::load(&weights)?)?]), [&x])?;
    std::fs::remove_file(&weights).expect("it is there");
    assert_eq!(Function::load(&path)?.call([&x])?[0].to_vec::<f32>()?, [4.0, 33.0]);
    std::fs::remove_dir_all(&folder).expect("it is there");
    Ok(())
}

/// A file of version 1 of the format, exported in Python. It stays as it is, and readable.
#[test]
fn version_1() -> Result<()> {
    let f = read(include_bytes!("data/version-1.um"))?;
    assert_eq!(f.metadata(), Some("exported in Python"));
    let x = Array::from_slice(&[1.0f32, -2.0, 0.5, 0.0, 3.0, -1.0], &[2, 3])?;
    let results = f.call([&x])?;
    let tolerance = Tolerance::absolute(1e-6);
    let classes = [0.437_823_5, 0.562_176_5, 0.974_042_6, 0.025_957_4];
    assert_near("classes", &results[0], &classes, tolerance);
    assert_eq!(results[1].astype(Dtype::Int32).to_vec::<i32>()?, [1, 2, 0, 2, 0, 1]);
    let scale = Keywords::from([("scale".into(), Array::scalar(2.0f32))]);
    let gradient =
        [-0.163_381_1, 0.109_755_8, -0.086_053_8, -0.360_919_8, 0.092_327_2, -0.269_579_5];
    assert_near("gradient", &f.call_keywords([&x], &scale)?[0], &gradient, tolerance);
    Ok(())
}

#[test]
fn what_files_do_not_have() -> Result<()> {
    let x = numbers(&[1.0, 2.0]);
    let kernel = fast::ForeignKernel::new("mine", |_, _| Ok(()))?;
    let calls = |x: &[Array]| kernel.call(&[&x[0]], &[(&[2], Dtype::Float32)], None);
    let refused = exported(calls, [&x], false);
    assert!(
        matches!(&refused, Err(Error::Value(text)) if text.to_string().contains("mine cannot be exported")),
        "{refused:?}"
    );
    let evaluates = |x: &[Array]| Ok(vec![Array::scalar(x[0].sum(..)?.item::<f32>()?)]);
    assert!(matches!(exported(evaluates, [&x], false), Err(Error::Value(_))));
    Ok(())
}

#[test]
fn many_steps() -> Result<()> {
    let x = numbers(&[1.0, 2.0]);
    let long = |x: &[Array]| (0..20_000).try_fold(x[0].clone(), |y, _| y.sin()).map(|y| vec![y]);
    let file = exported(long, [&x], false)?;
    assert!(file.len() < 2_000_000, "{} bytes", file.len());
    let f = read(&file)?;
    assert_eq!(content(&f.call([&x])?[0]), content(&long(&[x])?[0]));
    Ok(())
}

#[test]
fn functions_of_files_go_to_files() -> Result<()> {
    let x = numbers(&[1.0, 2.0]);
    let inner = read(&exported(|x| Ok(vec![x[0].exp()?]), [&x], false)?)?;
    let outer = exported(|x| Ok(vec![inner.call(x)?[0].add(1.0)?]), [&x], false)?;
    assert_eq!(content(&read(&outer)?.call([&x])?[0]), content(&x.exp()?.add(1.0)?));
    assert!(program(&outer).contains("\"unary\""));
    Ok(())
}

#[test]
fn rules_of_the_users_own() -> Result<()> {
    let x = numbers(&[1.0, 2.0]);
    let f = CustomFunction::new(|x| Ok(vec![x[0].square()?]))
        .with_vjp(|_, cotangents, _| Ok(vec![Some(cotangents[0].multiply(100.0)?)]));
    let file = read(&exported(|x| f.call(x), [&x], false)?)?;
    assert_eq!(file.call([&x])?[0].to_vec::<f32>()?, [1.0, 4.0]);
    // No file has the rule, and the derivative of what it computes is another one.
    let of_file = grad(|x: &Array| file.call([x])?[0].sum(..))(&x);
    assert!(
        matches!(&of_file, Err(Error::Value(text)) if text.to_string().contains("it uses custom_function")),
        "{of_file:?}"
    );
    let gradient = |x: &[Array]| Ok(vec![grad(|x: &Array| f.call([x])?[0].sum(..))(&x[0])?]);
    let file = read(&exported(gradient, [&x], false)?)?;
    assert_eq!(file.call([&x])?[0].to_vec::<f32>()?, [100.0, 100.0]);
    // Of batching rules the function is one by itself.
    let f = CustomFunction::new(|x| Ok(vec![x[0].square()?]))
        .with_vmap(|x, axes| Ok(vec![(x[0].square()?, axes[0].map(|a| a as isize))]));
    let file = read(&exported(|x| f.call(x), [&x], false)?)?;
    let gradient = grad(|x: &Array| file.call([x])?[0].sum(..))(&x)?;
    assert_eq!(gradient.to_vec::<f32>()?, [2.0, 4.0]);
    Ok(())
}
