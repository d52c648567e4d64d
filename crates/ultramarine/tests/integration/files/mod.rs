//! Arrays in files: round trips; and, in the other files, what goes wrong.

mod damaged;
mod gguf;
mod lazy;
mod on_devices;
mod shards;
mod writing;

use std::fs;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use ultramarine::io::{Arrays, Format, Loaded, Metadata, load, npy, npz, read, safetensors};
use ultramarine::{Array, Dtype, Error, Result};

/// A directory that goes away.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ultramarine-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).expect("a temporary directory");
        Folder(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the directory");
        let mut names: Vec<_> =
            entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn bytes(a: &Array) -> Vec<u8> {
    a.with_bytes(|b| b.to_vec()).expect("evaluates")
}

fn assert_same(a: &Array, b: &Array, what: &str) {
    assert_eq!(a.shape(), b.shape(), "{what}");
    assert_eq!(a.dtype(), b.dtype(), "{what}");
    assert_eq!(bytes(a), bytes(b), "{what}");
}

/// Arrays of all dtypes in many layouts, by name.
fn samples() -> Result<Arrays> {
    let mut out = Arrays::new();
    for dtype in Dtype::ALL {
        let raw: Vec<u8> = (0..24 * dtype.size()).map(|i| (i * 37 % 251) as u8).collect();
        let a = Array::from_bytes(&raw, &[2, 3, 4], dtype)?;
        let row = Array::from_bytes(&raw[..4 * dtype.size()], &[4], dtype)?;
        let layouts = [
            ("rows", a.clone()),
            ("columns", a.transpose()?),
            ("permuted", a.transpose_axes([1, 0, 2])?),
            ("part", a.slice(&[0, 1, 1], &[2, 3, 4], &[1, 1, 2])?),
            ("reversed", row.flip(None)?),
            ("broadcast", row.broadcast_to(&[3, 4])?),
            ("scalar", a.slice(&[1, 1, 1], &[2, 2, 2], &[1, 1, 1])?.reshape::<isize>(&[])?),
            ("empty", Array::zeros(&[3, 0, 2], dtype)?.transpose()?),
            ("one", row.slice(&[1], &[2], &[1])?),
        ];
        out.extend(layouts.map(|(layout, a)| (format!("{dtype}/{layout}"), a)));
    }
    Ok(out)
}

fn npy_bytes(a: &Array) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    npy::write(&mut out, a, "memory")?;
    Ok(out)
}

fn npz_bytes(arrays: &Arrays, compressed: bool) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    npz::write(&mut out, arrays, compressed, "memory")?;
    Ok(out)
}

fn safetensors_bytes(arrays: &Arrays, metadata: &Metadata) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    safetensors::write(&mut out, arrays, metadata, "memory")?;
    Ok(out)
}

fn assert_all_same(a: &Arrays, b: &Arrays) {
    assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>());
    for (name, a) in a {
        assert_same(a, &b[name], name);
    }
}

#[test]
fn npy_round_trips() -> Result<()> {
    let folder = Folder::new("npy");
    for (name, a) in samples()? {
        let path = folder.file("array.npy");
        npy::save(&path, &a)?;
        let Loaded::Array(b) = load(&path)? else { panic!("npy holds one array") };
        assert_same(&a, &b, &name);
        let data = npy_bytes(&a)?;
        assert_eq!(data, fs::read(&path).expect("the file"), "{name}");
        assert_eq!((data.len() - a.nbytes()) % 64, 0, "{name}");
        let fortran = String::from_utf8_lossy(&data).contains("'fortran_order': True");
        assert_eq!(fortran, name.ends_with("columns"), "{name}");
    }
    assert_eq!(folder.names(), ["array.npy"]);
    Ok(())
}

#[test]
fn npy_arrays_follow_one_another() -> Result<()> {
    let a = Array::from_slice(&[1i32, 2, 3], &[3])?;
    let b = Array::from_slice(&[1.5f32], &[1, 1])?;
    let mut file = Cursor::new([npy_bytes(&a)?, npy_bytes(&b)?].concat());
    assert_same(&npy::read(&mut file, "memory")?, &a, "first");
    assert_same(&npy::read(&mut file, "memory")?, &b, "second");
    assert!(npy::read(&mut file, "memory").is_err());
    Ok(())
}

#[test]
fn npz_round_trips() -> Result<()> {
    let folder = Folder::new("npz");
    let arrays = samples()?;
    for compressed in [false, true] {
        let path = folder.file("arrays");
        if compressed { npz::save_compressed(&path, &arrays) } else { npz::save(&path, &arrays) }?;
        assert_eq!(folder.names(), ["arrays.npz"]);
        let Loaded::Arrays(read) = load(folder.file("arrays.npz"))? else { panic!("a map") };
        assert_all_same(&arrays, &read);
        let stream = npz_bytes(&arrays, compressed)?;
        assert_all_same(&arrays, &npz::read(&mut Cursor::new(stream), "memory")?);
    }
    assert!(npz::read(&mut Cursor::new(npz_bytes(&Arrays::new(), false)?), "empty")?.is_empty());
    // Much more can be packed into little than its size lets expect.
    let zeros = Arrays::from([("z".to_owned(), Array::zeros(&[1 << 20], Dtype::Float32)?)]);
    let packed = npz_bytes(&zeros, true)?;
    assert!(packed.len() < 8192, "{}", packed.len());
    assert_all_same(&zeros, &npz::read(&mut Cursor::new(packed), "memory")?);
    Ok(())
}

#[test]
fn safetensors_round_trip() -> Result<()> {
    let folder = Folder::new("safetensors");
    let arrays = samples()?;
    let text = Metadata::from([("format".into(), "\"é\\\n".into()), ("".into(), "x".into())]);
    for metadata in [Metadata::new(), text] {
        let path = folder.file("model.safetensors");
        safetensors::save(&path, &arrays, &metadata)?;
        let Loaded::Safetensors(read, found) = load(&path)? else { panic!("with metadata") };
        assert_all_same(&arrays, &read);
        assert_eq!(found, metadata);
        let data = fs::read(&path).expect("the file");
        assert!(data == safetensors_bytes(&arrays, &metadata)?, "equal arrays, equal files");
        assert_eq!(u64::from_le_bytes(data[..8].try_into().expect("8 bytes")) % 8, 0);
    }
    let (none, _) = safetensors::read(
        &mut Cursor::new(safetensors_bytes(&Arrays::new(), &Metadata::new())?),
        "empty",
    )?;
    assert!(none.is_empty());
    let bad = Arrays::from([("__metadata__".to_owned(), Array::scalar(1.0f32))]);
    assert!(matches!(safetensors_bytes(&bad, &Metadata::new()), Err(Error::Value(_))));
    Ok(())
}
