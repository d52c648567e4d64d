//! Devices chosen while the program runs: those that are there, or one named by the user.
//!
//! `devices` takes the last one, `devices cpu` and `devices gpu:1` the one that is named.

use ultramarine::{
    Array, Device, Dtype, device_info, devices, is_available, set_default_device, with_device,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let all = devices();
    for device in &all {
        let info = device_info(*device)?;
        println!("{device}: {} by the backend {}", info.name, info.backend);
    }

    let mut device = match std::env::args().nth(1) {
        Some(name) => name.parse()?,
        None => all[all.len() - 1],
    };
    if !is_available(device) {
        println!("There is no {device}; the CPU does the work.");
        device = Device::CPU;
    }
    set_default_device(device)?;
    let x = Array::ones(&[64, 64], Dtype::Float32)?;
    let y = x.matmul(&x)?.sum(..)?;
    println!("on {}: {}", y.device(), y.item::<f32>()?);
    assert_eq!((y.device(), y.item::<f32>()?), (device, 262144.0));

    let z = with_device(Device::CPU, || y.sqrt())?;
    println!("and on {}: {}", z.device(), z.item::<f32>()?);
    assert_eq!(z.copy_to(device)?.item::<f32>()?, 512.0);
    Ok(())
}
