//! Halves and integers: results keep their dtype, and are those of float32, rounded.

use crate::support::values;
use ultramarine::{Array, Dtype, Result};
use ultramarine_nn::optimizers::{Adafactor, Adam, AdamW, Lion, Muon, Optimizer, clip_grad_norm};
use ultramarine_nn::*;

/// Numbers around a mean that float16 would sum badly.
fn input(shape: &[usize]) -> Result<Array> {
    let size: usize = shape.iter().product();
    let numbers: Vec<f32> = (0..size).map(|i| 4.0 + (i as f32 * 0.9).sin()).collect();
    Array::from_slice(&numbers, shape)
}

fn check(name: &str, mut layer: impl Module + Layer, shape: &[usize]) -> Result<()> {
    let x = input(shape)?.astype(Dtype::Float16);
    let expected = layer.forward(&x.astype(Dtype::Float32))?;
    layer.set_dtype(Dtype::Float16);
    let got = layer.forward(&x)?;
    assert_eq!(got.dtype(), Dtype::Float16, "{name}");
    for (g, e) in values(&got).iter().zip(values(&expected)) {
        assert!((g - e).abs() <= 2e-3 * (1.0 + e.abs()), "{name}: {g} for {e}");
    }
    Ok(())
}

#[test]
fn norms_and_pools_of_halves_are_computed_in_float32() -> Result<()> {
    check("LayerNorm", LayerNorm::new(6)?, &[3, 6])?;
    check("RMSNorm", RMSNorm::new(6)?, &[3, 6])?;
    check("InstanceNorm", InstanceNorm::with_affine(3)?, &[2, 40, 3])?;
    check("GroupNorm", GroupNorm::new(2, 4)?, &[2, 40, 4])?;
    check("BatchNorm", BatchNorm::new(3)?, &[40, 3])?;
    check("AvgPool1d", AvgPool1d::new(40), &[1, 40, 3])?;
    check("MaxPool1d", MaxPool1d::new(3).padding(1), &[1, 7, 3])
}

#[test]
fn running_statistics_keep_the_wider_dtype() -> Result<()> {
    let layer = BatchNorm::new(3)?;
    let y = layer.forward(&input(&[8, 3])?.astype(Dtype::Float16))?;
    // Weight and bias are float32.
    assert_eq!(y.dtype(), Dtype::Float32);
    let running = layer.running_mean.as_ref().map(State::get);
    assert_eq!(running.map(|mean| mean.dtype()), Some(Dtype::Float32));
    Ok(())
}

#[test]
fn padding_of_integers_is_no_maximum() -> Result<()> {
    let x = Array::from_slice(&[-5i32, -7, -6, -9], &[1, 4, 1])?;
    let pool = MaxPool1d::new(2).padding(1);
    assert_eq!(pool.forward(&x)?.to_vec::<i32>()?, [-5, -6, -9]);
    let x = Array::from_slice(&[false, false, true, false], &[1, 4, 1])?;
    assert_eq!(pool.forward(&x)?.to_vec::<bool>()?, [false, true, false]);
    let x = Array::from_slice(&[1u8, 2, 4, 4], &[1, 4, 1])?;
    assert_eq!(AvgPool1d::new(2).forward(&x)?.to_vec::<f32>()?, [1.5, 4.0]);
    Ok(())
}

#[test]
fn optimizers_keep_the_dtype_of_halves() -> Result<()> {
    let of = |x: f32| -> Result<Parameters> {
        let array = (&input(&[4, 3])? * f64::from(x))?.astype(Dtype::Bfloat16);
        Ok([("w".to_owned(), array)].into())
    };
    let optimizers: [(&str, Box<dyn Optimizer>); 5] = [
        ("Adam", Box::new(Adam::new(0.1).bias_correction(true))),
        ("AdamW", Box::new(AdamW::new(0.1))),
        ("Lion", Box::new(Lion::new(0.1).weight_decay(0.1))),
        ("Adafactor", Box::new(Adafactor::new())),
        ("Muon", Box::new(Muon::new(0.1))),
    ];
    for (name, mut optimizer) in optimizers {
        let updated = optimizer.apply_gradients(&of(0.5)?, &of(1.0)?)?;
        assert_eq!(updated["w"].dtype(), Dtype::Bfloat16, "{name}");
        for (path, array) in optimizer.state() {
            assert!(!path.starts_with("w.") || array.dtype() == Dtype::Bfloat16, "{name}: {path}");
        }
    }
    // Squares of float16 would overflow.
    let large = Array::full(&[4], 300.0f32)?.astype(Dtype::Float16);
    let (clipped, norm) = clip_grad_norm(&[("w".to_owned(), large)].into(), 1.0)?;
    assert_eq!((norm.dtype(), norm.item::<f32>()?), (Dtype::Float32, 600.0));
    assert_eq!(clipped["w"].dtype(), Dtype::Float16);
    Ok(())
}

#[test]
fn dropout_drops_whole_channels_and_keeps_the_mean() -> Result<()> {
    ultramarine::random::seed(1)?;
    let x = Array::ones(&[4, 3, 3, 64], Dtype::Float32)?;
    let y = Dropout2d::new(0.25)?.forward(&x)?;
    // All pixels of a channel of an image are alike.
    let (largest, smallest) = (y.max([1, 2])?, y.min([1, 2])?);
    assert_eq!(largest.to_vec::<f32>()?, smallest.to_vec::<f32>()?);
    let kept: Vec<f32> = largest.to_vec::<f32>()?;
    assert!(kept.iter().all(|v| *v == 0.0 || (*v - 4.0 / 3.0).abs() < 1e-6), "{kept:?}");
    let mean = kept.iter().sum::<f32>() / kept.len() as f32;
    assert!((mean - 1.0).abs() < 0.15, "{mean}");
    let one = Dropout3d::new(0.5)?.forward(&Array::ones(&[2, 2, 2, 8], Dtype::Float16)?)?;
    assert_eq!((one.shape(), one.dtype()), (&[2, 2, 2, 8][..], Dtype::Float16));
    Ok(())
}
