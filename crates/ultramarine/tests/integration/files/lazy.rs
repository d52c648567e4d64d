//! Data is read when it is evaluated: by whom, once, and what happens when the file is no longer what it was.

use super::*;
use std::fs::OpenOptions;
use std::path::Path;
use ultramarine::transforms::{compile, grad};
use ultramarine::{async_eval, eval, synchronize};

/// Arrays of several parts each, and of few bytes.
fn weights() -> Result<Arrays> {
    let large = Array::arange(0.0, 3_000_001.0, 1.0, Dtype::Float32)?;
    let odd = Array::arange(0.0, 9_000_003.0, 1.0, Dtype::Int32)?.astype(Dtype::Uint8);
    let small = Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
    Ok([("large", large), ("odd", odd), ("small", small)].map(|(n, a)| (n.to_owned(), a)).into())
}

fn arrays(path: &Path) -> Result<Arrays> {
    match load(path)? {
        Loaded::Arrays(arrays) | Loaded::Safetensors(arrays, _) | Loaded::Gguf(arrays, _) => {
            Ok(arrays)
        }
        Loaded::Array(array) => Ok(Arrays::from([("array".to_owned(), array)])),
    }
}

/// A file of each format with these arrays.
fn files(folder: &Folder, all: &Arrays) -> Result<Vec<PathBuf>> {
    npy::save(folder.file("a.npy"), &all["large"])?;
    npz::save(folder.file("b.npz"), all)?;
    npz::save_compressed(folder.file("c.npz"), all)?;
    safetensors::save(folder.file("d.safetensors"), all, None)?;
    Ok(["a.npy", "b.npz", "c.npz", "d.safetensors"].map(|name| folder.file(name)).into())
}

/// Descriptors of the process that are open on a file.
#[cfg(target_os = "linux")]
fn descriptors(path: &Path) -> usize {
    let path = fs::canonicalize(path).expect("the file");
    let all = fs::read_dir("/proc/self/fd").expect("the descriptors");
    all.filter(|e| e.as_ref().is_ok_and(|e| fs::read_link(e.path()).is_ok_and(|l| l == path)))
        .count()
}

#[test]
fn all_data_is_read() -> Result<()> {
    let folder = Folder::new("lazy");
    let all = weights()?;
    for path in files(&folder, &all)? {
        let loaded = arrays(&path)?;
        assert!(loaded.values().all(|a| !a.is_evaluated()), "{path:?}");
        // Together, and each by itself.
        eval(&loaded.values().collect::<Vec<_>>())?;
        for (name, array) in arrays(&path)?.iter().chain(&loaded) {
            let wanted = all.get(name).unwrap_or(&all["large"]);
            assert_same(array, wanted, &format!("{path:?} {name}"));
        }
    }
    Ok(())
}

#[test]
fn views_of_arrays_that_are_not_read() -> Result<()> {
    let folder = Folder::new("views");
    let all = weights()?;
    for path in files(&folder, &all)? {
        for (name, array) in arrays(&path)? {
            let wanted = all.get(&name).unwrap_or(&all["large"]);
            let parts = |a: &Array| -> Result<[Array; 3]> {
                let part = a.slice(&[1], &[3], &[1])?;
                Ok([part.reshape(&[2, 1])?, a.flip(None)?, part.astype(Dtype::Float16)])
            };
            for (part, wanted) in parts(&array)?.iter().zip(&parts(wanted)?) {
                part.eval()?;
                assert_same(part, wanted, &name);
            }
        }
    }
    Ok(())
}

#[test]
#[cfg(target_os = "linux")]
fn a_descriptor_lives_as_long_as_its_last_pending_array() -> Result<()> {
    let folder = Folder::new("descriptors");
    for path in files(&folder, &weights()?)? {
        let loaded = arrays(&path)?;
        assert_eq!(descriptors(&path), 1, "{path:?}");
        let mut rest = loaded.values();
        let first = rest.next().expect("an array");
        drop(rest);
        for array in loaded.values().filter(|a| !a.is_same(first)) {
            array.eval()?;
            assert_eq!(descriptors(&path), 1, "{path:?}");
        }
        first.eval()?;
        assert_eq!(descriptors(&path), 0, "{path:?}, read");
        let loaded = arrays(&path)?;
        drop(loaded);
        assert_eq!(descriptors(&path), 0, "{path:?}, dropped");
    }
    Ok(())
}

#[test]
fn a_file_that_is_written_to_is_an_error() -> Result<()> {
    let folder = Folder::new("written");
    for path in files(&folder, &weights()?)? {
        let loaded = arrays(&path)?;
        let content = fs::read(&path).expect("the file");
        // In place, with the same length.
        let changed = content.iter().map(|b| !b).collect::<Vec<_>>();
        fs::write(&path, changed).expect("writes");
        for (name, array) in &loaded {
            let error = array.eval().err().map(|e| e.to_string()).unwrap_or_default();
            assert!(error.contains("changed after its header was read"), "{name}: {error}");
            assert!(error.contains(&path.display().to_string()), "{name}: {error}");
            // It stays one, and goes to what depends on it.
            assert!(array.eval().is_err() && (array + 1).and_then(|a| a.eval()).is_err());
        }
    }
    Ok(())
}

#[test]
fn a_file_that_is_cut_is_an_error() -> Result<()> {
    let folder = Folder::new("cut");
    for path in files(&folder, &weights()?)? {
        let loaded = arrays(&path)?;
        let file = OpenOptions::new().write(true).open(&path).expect("the file");
        file.set_len(1000).expect("cuts");
        let sum =
            loaded.values().try_fold(Array::scalar(0.0f32), |sum, a| &sum + &a.sum(None)?)?;
        let error = sum.eval().err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("the file was truncated to 1000 bytes"), "{error}");
        assert!(error.contains(&path.display().to_string()), "{error}");
    }
    let path = folder.file("d.safetensors");
    safetensors::save(&path, &weights()?, None)?;
    let loaded = arrays(&path)?;
    fs::write(&path, "").expect("writes");
    let error = loaded["odd"].eval().err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("tensor 'odd'") && error.contains("Load it again"), "{error}");
    Ok(())
}

#[test]
fn a_file_that_another_takes_the_place_of_is_read_as_it_was() -> Result<()> {
    let folder = Folder::new("replaced");
    let all = weights()?;
    for path in files(&folder, &all)? {
        let loaded = arrays(&path)?;
        fs::write(folder.file("other"), "other").expect("writes");
        fs::rename(folder.file("other"), &path).expect("renames");
        for (name, array) in &loaded {
            assert_same(array, all.get(name).unwrap_or(&all["large"]), name);
        }
    }
    Ok(())
}

#[test]
fn a_file_is_saved_from_itself() -> Result<()> {
    let folder = Folder::new("itself");
    let all = weights()?;
    for path in files(&folder, &all)? {
        let (loaded, elsewhere) = (arrays(&path)?, arrays(&path)?);
        match Format::from_path(&path)? {
            Format::Npy => npy::save(&path, &(&loaded["array"] + 1)?)?,
            Format::Npz => npz::save(&path, &loaded)?,
            _ => {
                let doubled: Result<Arrays> =
                    loaded.iter().map(|(n, a)| Ok((n.clone(), (a + a)?))).collect();
                safetensors::save(&path, &doubled?, None)?;
            }
        }
        let again = arrays(&path)?;
        for (name, array) in &elsewhere {
            let wanted = all.get(name).unwrap_or(&all["large"]);
            assert_same(array, wanted, &format!("{path:?} {name}"));
            let wanted = match Format::from_path(&path)? {
                Format::Npy => (wanted + 1)?,
                Format::Npz => wanted.clone(),
                _ => (wanted + wanted)?,
            };
            assert_same(&again[name], &wanted, &format!("{path:?} {name}, saved"));
        }
    }
    Ok(())
}

#[test]
fn transforms_see_a_constant() -> Result<()> {
    let folder = Folder::new("constants");
    let path = folder.file("w.npy");
    npy::save(&path, &Array::from_slice(&[2.0f32, 3.0], &[2])?)?;
    let x = Array::from_slice(&[1.0f32, 10.0], &[2])?;
    let w = npy::load(&path)?;
    let slope = grad(|x: &Array| (x * &w)?.sum(None))(&x)?;
    assert_eq!(slope.to_vec::<f32>()?, [2.0, 3.0]);
    // Read once, although each call depends on it; also where the function alone knows it.
    let inside = npy::load(&path)?;
    let closed = compile(move |x| Ok(vec![(&x[0] * &inside)?]));
    let loads = compile({
        let path = path.clone();
        move |x| Ok(vec![(&x[0] + &npy::load(&path)?)?])
    });
    let x = [x];
    assert_eq!(closed.call(&x)?[0].to_vec::<f32>()?, [2.0, 30.0]);
    assert_eq!(loads.call(&x)?[0].to_vec::<f32>()?, [3.0, 13.0]);
    fs::remove_file(&path).expect("removes");
    for _ in 0..5 {
        assert_eq!(closed.call(&x)?[0].to_vec::<f32>()?, [2.0, 30.0]);
        assert_eq!(loads.call(&x)?[0].to_vec::<f32>()?, [3.0, 13.0]);
    }
    Ok(())
}

#[test]
fn threads_that_want_the_same_arrays_read_them_once() -> Result<()> {
    let folder = Folder::new("threads");
    let all = weights()?;
    for path in files(&folder, &all)? {
        let loaded = arrays(&path)?;
        std::thread::scope(|scope| {
            for i in 0..8 {
                let (loaded, all) = (&loaded, &all);
                scope.spawn(move || -> Result<()> {
                    for (name, array) in loaded {
                        let wanted = all.get(name).unwrap_or(&all["large"]);
                        let (sum, wanted) = (array.sum(None)?, wanted.sum(None)?);
                        if i % 2 == 0 {
                            async_eval(&[&sum])?;
                        }
                        assert_same(&sum, &wanted, name);
                    }
                    Ok(())
                });
            }
        });
    }
    Ok(())
}

#[test]
fn a_failure_that_nobody_waits_for_is_raised_by_synchronize() -> Result<()> {
    ultramarine_test_support::own_process!();
    let folder = Folder::new("async");
    let path = folder.file("a.npy");
    npy::save(&path, &weights()?["large"])?;
    let array = npy::load(&path)?;
    fs::write(&path, "short").expect("writes");
    async_eval(&[&array])?;
    while !array.is_evaluated() {
        std::thread::yield_now();
    }
    let error = synchronize(array.stream()).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("the file was truncated to 5 bytes"), "{error}");
    assert!(synchronize(array.stream()).is_ok());
    Ok(())
}
