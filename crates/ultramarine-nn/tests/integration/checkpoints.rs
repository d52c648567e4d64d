//! Checkpoints of one process, and those that two Python processes wrote. Several processes: python/tests/distributed.

use crate::support::path;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use ultramarine::distributed::{self, Group};
use ultramarine::io::{Arrays, Loaded, Metadata, load};
use ultramarine::{Array, Dtype, Result};
use ultramarine_nn::checkpoints::{Checkpoints, Split};
use ultramarine_nn::optimizers::{AdamW, Optimizer};
use ultramarine_nn::*;

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        Folder(std::env::temp_dir().join(format!("nn-{}-{name}", std::process::id())))
    }

    fn files(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(&self.0).expect("a folder");
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn alone() -> Group {
    distributed::init(false, "mpi").expect("this process's group")
}

fn model() -> Result<Sequential> {
    Ok(sequential![Linear::new(3, 4)?, Tanh, Linear::new(4, 2)?])
}

/// As layers of tensor parallelism.
fn split(name: &str) -> Option<Split> {
    match name {
        "layers.0.weight" | "layers.0.bias" => Some(Split::along(0)),
        "layers.2.weight" => Some(Split::along(-1)),
        _ => None,
    }
}

fn close(found: &Array, wanted: &[f32]) -> Result<()> {
    let found = found.to_vec::<f32>()?;
    assert_eq!(found.len(), wanted.len());
    let near = found.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs().max(1.0));
    assert!(near, "{found:?} {wanted:?}");
    Ok(())
}

#[test]
fn a_checkpoint_of_two_python_processes() -> Result<()> {
    let (group, mut model, mut optimizer) = (alone(), model()?, AdamW::new(0.1));
    let files = Checkpoints::new(&group).split_by(|name, _| split(name));
    let metadata = files.load(path("checkpoint"), &mut model, Some(&mut optimizer))?;
    assert_eq!(metadata, Metadata::from([("step".into(), "7".into())]));
    // Numbers in eighths from 0 on, less a step of AdamW: decay of 0.005, and sqrt(10) times the rate.
    let step = 0.5 * 0.1 / 0.001f32.sqrt();
    let weight: Vec<f32> = (0..12).map(|i| i as f32 / 8.0 * 0.995 - step).collect();
    let parameters = model.parameters();
    close(&parameters["layers.0.weight"], &weight)?;
    let weight: Vec<f32> = (100..108).map(|i| i as f32 / 8.0 * 0.995 - step).collect();
    close(&parameters["layers.2.weight"], &weight)?;
    let state = optimizer.state();
    assert_eq!(state["step"].item::<u64>()?, 1);
    assert_eq!(state["learning_rate"].item::<f32>()?, 0.5);
    assert_eq!(state["layers.0.weight.m"].shape(), [4, 3]);
    close(&state["layers.2.bias.v"], &[0.004, 0.004])?;
    Ok(())
}

#[test]
fn what_is_saved_is_loaded() -> Result<()> {
    let (folder, group) = (Folder::new("saved"), alone());
    let files = Checkpoints::new(&group).split_by(|name, _| split(name)).max_file_bytes(64);
    let (mut model, mut optimizer) = (self::model()?, AdamW::new(0.1));
    let metadata = |step: &str| Metadata::from([("step".to_owned(), step.to_owned())]);
    optimizer.init(&model.parameters())?;
    files.save(&folder.0, &model, Some(&optimizer), &metadata("1"))?;
    let before = folder.files();
    assert!(before.contains("model.safetensors.index.json") && before.len() > 6, "{before:?}");
    // Another save takes its place.
    let gradients: Gradients =
        model.parameters().into_iter().map(|(name, p)| (name, p.ones_like())).collect();
    optimizer.step(&mut model, &gradients)?;
    files.save(&folder.0, &model, Some(&optimizer), &metadata("2"))?;
    let after = folder.files();
    assert_eq!((after.len(), after.intersection(&before).count()), (before.len(), 1));
    let (mut other, mut its) = (self::model()?, AdamW::new(0.7));
    assert_eq!(files.load(&folder.0, &mut other, Some(&mut its))?, metadata("2"));
    for (found, wanted) in
        [(other.parameters(), model.parameters()), (its.state(), optimizer.state())]
    {
        assert!(found.keys().eq(wanted.keys()));
        for (name, array) in &wanted {
            assert_eq!(array.dtype(), found[name].dtype(), "{name}");
            assert!(array.array_equal(&found[name], false)?.item::<bool>()?, "{name}");
        }
    }
    // Other programs read whole arrays.
    let Loaded::Safetensors(plain, _) = load(folder.0.join("model.safetensors.index.json"))? else {
        panic!("no arrays")
    };
    assert!(plain.keys().eq(model.parameters().keys()));
    Ok(())
}

#[test]
fn arrays_of_any_dtype_and_shape() -> Result<()> {
    let (folder, group) = (Folder::new("arrays"), alone());
    let index = folder.0.join("all.safetensors.index.json");
    let mut arrays = Arrays::new();
    for dtype in Dtype::ALL {
        for (shape, end) in [(&[2, 3, 4][..], 24), (&[0, 3], 0), (&[], 1)] {
            let x = Array::arange(0.0, f64::from(end), 1.0, Dtype::Int32)?
                .reshape(shape)?
                .astype(dtype);
            arrays.insert(format!("{dtype} {shape:?}"), x);
        }
    }
    let strided = Array::arange(0.0, 12.0, 1.0, Dtype::Float32)?.reshape(&[3, 4])?;
    arrays.insert("strided".into(), strided.transpose()?);
    let files = Checkpoints::new(&group)
        .split_by(|_, x| (x.ndim() > 0).then(|| Split::along(-1)))
        .max_file_bytes(200);
    files.save_arrays(&index, &arrays, &Metadata::from([("k".into(), "v".into())]))?;
    let (found, metadata) = files.load_arrays(&index)?;
    assert_eq!(metadata["k"], "v");
    assert!(found.keys().eq(arrays.keys()));
    for (name, array) in &arrays {
        assert_eq!((array.dtype(), array.shape()), (found[name].dtype(), found[name].shape()));
        assert!(array.array_equal(&found[name], false)?.item::<bool>()?, "{name}");
    }
    // Nothing is something to save, too.
    files.save_arrays(&index, &Arrays::new(), &Metadata::new())?;
    assert!(files.load_arrays(&index)?.0.is_empty());
    // An empty file, and the index.
    assert_eq!(folder.files().len(), 2, "{:?}", folder.files());
    Ok(())
}

#[test]
fn mistakes_change_nothing() -> Result<()> {
    let (folder, group) = (Folder::new("mistakes"), alone());
    let files = Checkpoints::new(&group);
    let fails = |outcome: Result<()>, text: &str| {
        let error = outcome.expect_err(text).to_string();
        assert!(error.contains(text), "{error}");
    };
    let none = Metadata::new();
    let mut model = model()?;
    fails(files.save_arrays("x.safetensors", &Arrays::new(), &none), "End it in NAME.safetensors");
    let packed = Array::zeros(&[2], Dtype::Uint8)?.view(Dtype::Float8E4m3fn)?;
    let arrays = Arrays::from([("w".to_owned(), packed)]);
    let index = folder.0.join("w.safetensors.index.json");
    fails(files.save_arrays(&index, &arrays, &none), "Save its view as uint8");
    let reserved = Metadata::from([("optimizer".into(), "x".into())]);
    fails(files.save(&folder.0, &model, None, &reserved), "reserved name \"optimizer\"");
    let wrong = Checkpoints::new(&group).split_by(|_, _| Some(Split::along(3)));
    fails(wrong.save(&folder.0, &model, None, &none), "has no axis 3");
    fails(files.load(&folder.0, &mut model, None).map(drop), "model.safetensors.index.json");

    files.save(&folder.0, &model, None, &none)?;
    let mut optimizer = AdamW::new(0.1);
    fails(
        files.load(&folder.0, &mut model, Some(&mut optimizer)).map(drop),
        "names no state of an optimizer",
    );
    let mut other = sequential![Linear::new(3, 4)?, Tanh, Linear::without_bias(4, 2)?];
    let before = other.parameters()["layers.0.weight"].to_vec::<f32>()?;
    fails(files.load(&folder.0, &mut other, None).map(drop), "layers.2.bias");
    assert_eq!(other.parameters()["layers.0.weight"].to_vec::<f32>()?, before);
    // A name that leads to another place is not followed.
    fs::write(folder.0.join("kept"), "").expect("a file");
    files.save(&folder.0, &model, None, &none)?;
    assert!(folder.files().contains("kept"));
    Ok(())
}
