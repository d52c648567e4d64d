//! Devices chosen while the program runs: those that are there, or one named by the user.
//!
//! `devices` takes the best one, `devices cpu` and `devices gpu:1` the one that is named. Only devices that the features
//! `cuda` and `metal` have built in can be there: in this build none but the CPU is. There is no list of devices and
//! no description of one, so they are opened one after the other until there is an error.

use candle_core::{DType, Device, Result, Tensor};

fn gpu(index: usize) -> Result<Device> {
    Device::new_cuda(index).or_else(|_| Device::new_metal(index))
}

fn main() -> Result<()> {
    let mut all: Vec<Device> = (0..).map_while(|index| gpu(index).ok()).collect();
    all.push(Device::Cpu);
    for device in &all {
        println!("{:?}", device.location());
    }

    let device = match std::env::args().nth(1).as_deref() {
        None => all[0].clone(),
        Some("cpu") => Device::Cpu,
        Some(name) => match name.strip_prefix("gpu:").and_then(|index| index.parse().ok()) {
            Some(index) if gpu(index).is_ok() => gpu(index)?,
            _ => {
                println!("There is no {name}; the CPU does the work.");
                Device::Cpu
            }
        },
    };
    let x = Tensor::ones((64, 64), DType::F32, &device)?;
    let y = x.matmul(&x)?.sum_all()?;
    println!("on {:?}: {}", y.device().location(), y.to_scalar::<f32>()?);
    assert!(y.device().same_device(&device) && y.to_scalar::<f32>()? == 262144.0);

    let z = y.to_device(&Device::Cpu)?.sqrt()?;
    println!("and on {:?}: {}", z.device().location(), z.to_scalar::<f32>()?);
    assert_eq!(z.to_device(&device)?.to_scalar::<f32>()?, 512.0);
    Ok(())
}
