//! Devices chosen while the program runs: those that are there, or one named by the user.
//!
//! `devices` takes the best one, `devices cpu` and `devices gpu:1` the one that is named.

use ultramarine::{
    Array, Device, DeviceType, Dtype, Result, default_stream, device_count, device_info,
    is_available, set_default_device, with_stream,
};

fn main() -> Result<()> {
    let gpus = (0..device_count(DeviceType::Gpu)).map(|i| Device::gpu(i as u16));
    let all: Vec<Device> = gpus.chain([Device::CPU]).collect();
    for device in &all {
        let info = device_info(*device)?;
        println!("{device}: {} by the backend {}", info.name, info.backend);
    }

    let device = match std::env::args().nth(1).as_deref() {
        None => all[0],
        Some("cpu") => Device::CPU,
        Some(name) => match name.strip_prefix("gpu:").and_then(|index| index.parse().ok()) {
            Some(index) if is_available(Device::gpu(index)) => Device::gpu(index),
            _ => {
                println!("There is no {name}; the CPU does the work.");
                Device::CPU
            }
        },
    };
    set_default_device(device)?;
    let x = Array::ones(&[64, 64], Dtype::Float32)?;
    let y = x.matmul(&x)?.sum(.., false)?;
    println!("on {}: {}", y.device(), y.item::<f32>()?);
    assert_eq!((y.device(), y.item::<f32>()?), (device, 262144.0));

    let here = default_stream(Device::CPU)?;
    let z = with_stream(here, || y.sqrt())?;
    println!("and on {}: {}", z.device(), z.item::<f32>()?);
    assert_eq!(z.copy_to(device)?.item::<f32>()?, 512.0);
    Ok(())
}
