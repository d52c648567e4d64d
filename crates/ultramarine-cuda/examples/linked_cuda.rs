//! A program with the CUDA backend linked into it: it is one file, and opens no plugin. NVIDIA's driver and libraries are found
//! when it runs, so it starts on a machine without a GPU, too.
//!
//! ```sh
//! cargo run --release -p ultramarine-cuda --example linked_cuda
//! ```
#![allow(clippy::print_stdout)] // It tells its results.

use ultramarine::{Array, Device, Dtype, Result, device_info, register, with_device};

/// The first GPU, else the CPU.
fn device() -> Device {
    // SAFETY: the backend keeps to the contract.
    match unsafe { register(ultramarine_cuda::ultramarine_backend_init) } {
        Ok(devices) if !devices.is_empty() => devices[0],
        Ok(_) => Device::CPU,
        Err(why) => {
            println!("no GPU: {why}");
            Device::CPU
        }
    }
}

fn main() -> Result<()> {
    let device = device();
    println!("{device}: {}", device_info(device)?.name);
    let x = Array::arange(0.0, 65536.0, 1.0, Dtype::Float32)?.sin()?.reshape(&[256, 256])?;
    let on = |device| -> Result<f32> {
        with_device(device, || x.matmul(x.transpose())?.abs()?.max(..))?.item()
    };
    let (here, on_cpu) = (on(device)?, on(Device::CPU)?);
    println!("largest number of the product: {here} here, {on_cpu} on the CPU");
    assert!((here - on_cpu).abs() <= 1e-4 * on_cpu);
    Ok(())
}
