//! Tensors of others as our arrays.

use super::*;
use crate::opencl_process;
use ultramarine::interchange::dlpack::{check, flag};
use ultramarine::interchange::{Import, ImportOptions};
use ultramarine::memory::active_on;
use ultramarine::{Error, async_eval, synchronize};

fn to(device: Device) -> ImportOptions {
    ImportOptions { device: Some(device), copy: None }
}

#[test]
fn foreign_memory_is_readable() -> Result<()> {
    opencl_process!("ULTRAMARINE_VALIDATE" = "1");
    let Some(bench) = Bench::new() else { return Ok(()) };
    let active = active_on(Some(bench.device))?;
    let memory = bench.memory(&[1.0, 2.0, 3.0, 4.0]);
    let x = Array::from_dlpack(foreign::tensor(memory, bench.dl(), &[2, 2], &[1, 2], 0, 0))?;
    assert_eq!((x.device(), x.shape()), (bench.device, &[2, 2][..]));
    assert_eq!(active_on(Some(bench.device))?, active, "it is not ours");
    assert!(x.value()?.buffer.is_escaped());
    assert_eq!(x.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    // What its owner writes later is seen.
    assert_eq!(foreign::write(bench.queue, memory, 4, 4, [9.0f32].as_ptr().cast()), 0);
    let y = x.matmul(&x)?;
    assert_eq!(y.to_vec::<f32>()?, [28.0, 15.0, 45.0, 43.0]);
    assert_eq!(y.device(), bench.device);
    // And it goes on to others, as a part of that same memory.
    let tensor = x.to_dlpack()?;
    assert_eq!(bench.floats(&tensor, 4), [1.0, 9.0, 3.0, 4.0]);
    assert_eq!(foreign::write(bench.queue, memory, 0, 4, [5.0f32].as_ptr().cast()), 0);
    assert_eq!(bench.floats(&tensor, 1), [5.0]);
    // Even back to us.
    let z = Array::from_dlpack(tensor)?;
    assert_eq!(z.to_vec::<f32>()?, [5.0, 3.0, 9.0, 4.0]);
    drop((x, y));
    assert_eq!(bench.given_back(), 0);
    drop(z);
    bench.expect_back(1);
    Ok(())
}

#[test]
fn offsets_and_extents() -> Result<()> {
    opencl_process!("ULTRAMARINE_VALIDATE" = "1");
    let Some(bench) = Bench::new() else { return Ok(()) };
    let values: Vec<f32> = (0..16u8).map(f32::from).collect();
    let take = |shape: &[usize], strides: &[isize], offset: u64| {
        let memory = bench.memory(&values);
        Array::from_dlpack(foreign::tensor(memory, bench.dl(), shape, strides, offset, 0))
    };
    assert_eq!(take(&[3], &[1], 20)?.to_vec::<f32>()?, [5.0, 6.0, 7.0]);
    assert_eq!(take(&[4], &[-2], 28)?.to_vec::<f32>()?, [7.0, 5.0, 3.0, 1.0]);
    assert_eq!(take(&[2, 2], &[0, 4], 4)?.to_vec::<f32>()?, [1.0, 5.0, 1.0, 5.0]);
    assert_eq!(take(&[], &[], 8)?.to_vec::<f32>()?, [2.0]);
    assert_eq!(take(&[0, 3], &[3, 1], 8)?.to_vec::<f32>()?, [0f32; 0]);
    bench.expect_back(5);
    for (why, outcome) in [
        ("before the start of the memory", take(&[4], &[-2], 20)),
        ("not aligned", take(&[3], &[1], 2)),
        ("refuses the memory", take(&[17], &[1], 0)),
        ("refuses the memory", take(&[2], &[1], 60)),
    ] {
        let error = outcome.map(drop).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    bench.expect_back(9);
    Ok(())
}

#[test]
fn refusals_name_what_would_do() -> Result<()> {
    opencl_process!("ULTRAMARINE_VALIDATE" = "1");
    let Some(bench) = Bench::new() else { return Ok(()) };
    let other = foreign::other_context(bench.context);
    let at = |device_type, device_id| DLDevice { device_type, device_id };
    let mine = || bench.memory(&[1.0]);
    for (memory, device, words) in [
        (foreign::memory(other, 4), bench.dl(), "not of the device's OpenCL context"),
        (mine(), at(OPENCL, 77), "no OpenCL device 77: backend \"opencl\" serves 1 device"),
        (mine(), at(2, 0), "a CUDA tensor needs the backend \"cuda\" (package ultramarine-cuda)"),
        (
            mine(),
            at(7, 0),
            "a Vulkan tensor needs the backend \"vulkan\" (package ultramarine-wgpu)",
        ),
        (mine(), at(8, 0), "a Metal tensor needs the backend \"metal\" (package ultramarine-wgpu)"),
        (mine(), at(2, 0), "loaded: cpu (CPU), opencl (OpenCL)"),
        (mine(), at(12, 3), "an extension device tensor needs"),
        (mine(), at(1, 1), "no CPU 1"),
    ] {
        let tensor = foreign::tensor(memory, device, &[1], &[1], 0, 0);
        let error = Array::from_dlpack(tensor).map(drop).unwrap_err();
        assert!(matches!(&error, Error::BufferDevice(e) if e.contains(words)), "{error:?}");
    }
    bench.expect_back(8);
    Ok(())
}

#[test]
fn flags_travel() -> Result<()> {
    opencl_process!("ULTRAMARINE_VALIDATE" = "1");
    let Some(bench) = Bench::new() else { return Ok(()) };
    let take = |flags| {
        let memory = bench.memory(&[1.0, 2.0]);
        Array::from_dlpack(foreign::tensor(memory, bench.dl(), &[2], &[1], 0, flags))
    };
    let x = take(flag::READ_ONLY)?;
    assert!(x.value()?.buffer.is_read_only());
    assert_eq!((&x + 1.0)?.to_vec::<f32>()?, [2.0, 3.0]);
    assert!(x.to_dlpack()?.is_read_only());
    let y = take(flag::IS_COPIED)?;
    assert!(!y.value()?.buffer.is_escaped());
    assert!(!y.to_dlpack()?.is_copied());
    let copy = ImportOptions { copy: Some(true), device: None };
    let z = Array::from_dlpack_with(bench.tensor(&[3.0]), copy)?;
    assert_eq!(z.device(), bench.device);
    assert!(!z.value()?.buffer.is_escaped());
    bench.expect_back(1);
    assert_eq!(z.to_vec::<f32>()?, [3.0]);
    Ok(())
}

#[test]
fn nothing_is_released_while_work_uses_it() -> Result<()> {
    opencl_process!("ULTRAMARINE_VALIDATE" = "1");
    let Some(bench) = Bench::new() else { return Ok(()) };
    let memory = foreign::memory(bench.context, 1 << 16);
    let gate = foreign::gate(bench.context, bench.queue);
    assert_eq!(foreign::fill_later(bench.queue, memory, 1 << 16, 2.5), 0);
    let tensor = foreign::tensor(memory, bench.dl(), &[1 << 14], &[1], 0, 0);
    // SAFETY: an owned tensor is a valid one.
    let checked = unsafe { check(tensor.tensor(), tensor.flags()) }.expect("valid");
    let import = Import::validate(&tensor, checked, ImportOptions::default())?;
    // SAFETY: validated from this tensor.
    let x = unsafe { import.after(bench.queue as u64).take(tensor) }?;
    assert!(!x.is_available(), "its producer has not begun");
    let side = ultramarine::new_stream(bench.device)?;
    let y = (&x + 1.0)?;
    let z = with_stream(side, || x.square())?;
    async_eval(&[y.clone(), z.clone()])?;
    ultramarine::eval(&[] as &[Array])?;
    while !(y.is_evaluated() && z.is_evaluated()) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    drop(x);
    std::thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(bench.given_back(), 0, "our work reads it still");
    assert!(!y.is_available() && !z.is_available());
    foreign::open(gate);
    assert_eq!(y.sum(None)?.to_vec::<f32>()?, [3.5 * 16384.0]);
    assert_eq!(z.sum(None)?.to_vec::<f32>()?, [6.25 * 16384.0]);
    synchronize(default_stream(bench.device)?)?;
    synchronize(side)?;
    active_on(Some(bench.device))?;
    bench.expect_back(1);
    Ok(())
}

#[test]
fn host_memory_is_seen_where_it_is() -> Result<()> {
    opencl_process!("ULTRAMARINE_VALIDATE" = "1");
    let Some(bench) = Bench::new() else { return Ok(()) };
    let (tensor, address) = foreign::host_tensor(&[1.0, 2.0, 3.0], 0);
    let x = Array::from_dlpack_with(tensor, to(bench.device))?;
    assert_eq!(x.device(), bench.device);
    if bench.given_back() == 1 {
        eprintln!("SKIPPED: the device does not compute in the host's memory; it was copied");
        assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0]);
        return Ok(());
    }
    let tensor = x.to_dlpack()?;
    assert_eq!(foreign::host_pointer(tensor.tensor().data), address.cast());
    drop(tensor);
    // SAFETY: the tensor's owner lives, and nothing reads it now.
    unsafe { *address = 10.0 };
    assert_eq!((&x + 1.0)?.to_vec::<f32>()?, [11.0, 3.0, 4.0]);
    drop(x);
    bench.expect_back(1);
    // A copy if that is wanted.
    let (tensor, _) = foreign::host_tensor(&[1.0, 2.0], flag::READ_ONLY);
    let copy = ImportOptions { copy: Some(true), ..to(bench.device) };
    let y = Array::from_dlpack_with(tensor, copy)?;
    bench.expect_back(2);
    assert!(!y.value()?.buffer.is_read_only());
    assert_eq!((y.device(), y.to_vec::<f32>()?), (bench.device, vec![1.0, 2.0]));
    Ok(())
}

#[test]
fn another_device_is_a_copy() -> Result<()> {
    opencl_process!("ULTRAMARINE_VALIDATE" = "1");
    let Some(bench) = Bench::new() else { return Ok(()) };
    let x = Array::from_dlpack_with(bench.tensor(&[1.0, 2.0]), to(Device::CPU))?;
    assert_eq!((x.device(), x.to_vec::<f32>()?), (Device::CPU, vec![1.0, 2.0]));
    bench.expect_back(1);
    assert!(!x.value()?.buffer.is_escaped());
    let never = ImportOptions { copy: Some(false), ..to(Device::CPU) };
    let error = Array::from_dlpack_with(bench.tensor(&[1.0]), never).map(drop).unwrap_err();
    assert!(matches!(&error, Error::Buffer(e) if e.contains("gpu:0")), "{error:?}");
    bench.expect_back(2);
    let same = ImportOptions { copy: Some(false), ..to(bench.device) };
    let y = Array::from_dlpack_with(bench.tensor(&[1.0]), same)?;
    bench.expect_back(2);
    // What our stream waited for is done, so nothing of it is in the way.
    synchronize(default_stream(bench.device)?)?;
    drop(y);
    bench.expect_back(3);
    Ok(())
}
