//! Data of files that is wanted on a device goes there, by way of memory that its backend lends where it does. The device is a
//! mock, which stores float32.

use super::*;
use crate::support::mock_device::{UPLOADS_IN_ORDER, init, upload};
use std::sync::atomic::Ordering::SeqCst;
use ultramarine::io::gguf::{Options, Packing, load_with};
use ultramarine::{Device, Stream, memory, new_stream, register, with_stream};
use ultramarine_test_support::own_process;

const N: usize = 5 << 20;

/// A mock with these properties, and a file of three arrays of 20 MiB.
fn made(in_order: bool, lends: bool, folder: &Folder) -> Result<(Stream, PathBuf, Array)> {
    UPLOADS_IN_ORDER.store(in_order, SeqCst);
    upload::OFFERED.store(lends, SeqCst);
    // SAFETY: the mock keeps to the contract.
    assert_eq!(unsafe { register(init) }.expect("registers").len(), 2);
    let stream = new_stream(Device::gpu(0))?;
    // None of them is the number that the mock fails at.
    let x = Array::arange(0.5, N as f64, 1.0, Dtype::Float32)?;
    let names = ["a", "b", "c"].map(|name| (name.to_owned(), x.clone()));
    let path = folder.file("w.safetensors");
    safetensors::save(&path, &names.into(), None)?;
    Ok((stream, path, x))
}

/// Arrays that go to the device have no copy on the host, whoever says that they are wanted there.
fn goes_to_the_device(in_order: bool, lends: bool) -> Result<()> {
    let folder = Folder::new(&format!("device-{in_order}-{lends}"));
    let (stream, path, x) = made(in_order, lends, &folder)?;
    memory::reset_peak_on(Some(Device::CPU))?;
    let before = memory::active_on(Some(Device::CPU))?;
    // The stream of the load; then that of what needs the arrays.
    let named = with_stream(stream, || safetensors::load(&path))?.0;
    ultramarine::eval(&named.values().collect::<Vec<_>>())?;
    let (plain, _) = safetensors::load(&path)?;
    let sum = with_stream(stream, || &(&plain["a"] + &plain["b"])? + &plain["c"])?;
    sum.eval()?;
    let host = memory::peak_on(Some(Device::CPU))?.saturating_sub(before);
    assert!(host < N, "{host} bytes on the host");
    let all = (&x + &x)?;
    assert_same(&sum, &(&all + &x)?, "the sum");
    for array in named.values().chain(plain.values()) {
        assert_same(array, &x, "an array");
    }
    Ok(())
}

#[test]
fn by_memory_that_is_lent() -> Result<()> {
    own_process!();
    goes_to_the_device(true, true)?;
    let counts = [&upload::LENT, &upload::COPIED, &upload::GIVEN_BACK].map(|n| n.load(SeqCst));
    assert!(counts[0] > 0 && counts[1] == counts[0] && counts[2] == 0, "{counts:?}");
    assert!(upload::MOST_OUT.load(SeqCst) <= upload::PIECES);
    Ok(())
}

#[test]
fn by_memory_of_the_host() -> Result<()> {
    own_process!();
    goes_to_the_device(true, false)
}

#[test]
fn by_copies_that_are_waited_for() -> Result<()> {
    own_process!();
    goes_to_the_device(false, true)?;
    assert_eq!(upload::LENT.load(SeqCst), 0);
    Ok(())
}

/// Blocks are decoded into the memory that is lent, in several pieces.
#[test]
fn blocks_are_decoded_on_the_way() -> Result<()> {
    own_process!();
    let folder = Folder::new("device-blocks");
    let (stream, ..) = made(true, true, &folder)?;
    let path = folder.file("q.gguf");
    let block = |row: usize| (0..32).map(move |i| (row * 7 + i) as u8);
    let rows = 0..(1usize << 16) + 5;
    let scale = half::f16::from_f32(1.0 / 1024.0).to_le_bytes();
    let data: Vec<u8> = rows.clone().flat_map(|row| scale.into_iter().chain(block(row))).collect();
    let file = gguf::crafted(&[32, rows.len() as u64], 8, 0, &data);
    fs::write(&path, file).expect("writes");
    let options = Options { packing: Packing::Never, dtype: Dtype::Float32 };
    let (loaded, _) = with_stream(stream, || load_with(&path, options))?;
    let lent = upload::LENT.load(SeqCst);
    loaded["x"].eval()?;
    assert!(upload::LENT.load(SeqCst) > lent + 1);
    let wanted: Vec<f32> = rows.flat_map(block).map(|code| code as i8 as f32 / 1024.0).collect();
    assert_eq!(loaded["x"].to_vec::<f32>()?, wanted);
    Ok(())
}

/// Lent memory goes back when the read fails, and the array of another device's dtype stays on the host.
#[test]
fn failures_and_dtypes() -> Result<()> {
    own_process!();
    let folder = Folder::new("device-failures");
    let (stream, path, _) = made(true, true, &folder)?;
    let (loaded, _) = with_stream(stream, || safetensors::load(&path))?;
    let file = fs::OpenOptions::new().write(true).open(&path).expect("the file");
    loaded["a"].eval()?;
    let lent = upload::LENT.load(SeqCst);
    file.set_len(1 << 20).expect("cuts");
    for name in ["b", "c"] {
        let error = loaded[name].eval().err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error.contains("the file was truncated to"), "{error}");
    }
    assert_eq!(upload::LENT.load(SeqCst), lent, "the file is looked at first");
    let integers = Array::arange(0.0, 7.0, 1.0, Dtype::Int32)?;
    npy::save(folder.file("i.npy"), &integers)?;
    let loaded = with_stream(stream, || npy::load(folder.file("i.npy")))?;
    assert_same(&loaded, &integers, "integers");
    Ok(())
}
