//! Devices chosen while the program runs: those that are there, or one named by the user.
//!
//! `devices` takes the best one, `devices cpu` and `devices gpu:1` the one that is named. Only devices of backends that
//! features have built in can be there: in this build Flex, which is the CPU. Each GPU backend that a build has is a
//! filter more in `enumerate`.

use burn::prelude::*;
use burn::tensor::DeviceType;

fn main() {
    let all = Device::enumerate(DeviceType::Flex).into_vec();
    for (index, device) in all.iter().enumerate() {
        println!("{index}: {device:?}");
    }
    let cpu = Device::flex();

    let device = match std::env::args().nth(1).as_deref() {
        None => Device::default(),
        Some("cpu") => cpu.clone(),
        Some(name) => match name.strip_prefix("gpu:").and_then(|index| index.parse::<usize>().ok())
        {
            Some(index) if index < all.len() && all[index] != cpu => all[index].clone(),
            _ => {
                println!("There is no {name}; the CPU does the work.");
                cpu.clone()
            }
        },
    };
    let x = Tensor::<2>::ones([64, 64], &device);
    let y = x.clone().matmul(x).sum();
    println!("on {:?}: {}", y.device(), y.clone().into_scalar::<f32>());
    assert!(y.device() == device && y.clone().into_scalar::<f32>() == 262144.0);

    let z = y.to_device(&cpu).sqrt();
    println!("and on {:?}: {}", z.device(), z.clone().into_scalar::<f32>());
    assert_eq!(z.to_device(&device).into_scalar::<f32>(), 512.0);
}
