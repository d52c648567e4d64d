//! A primitive of one's own, squareplus(x) = (x + sqrt(x^2 + b)) / 2, with a kernel and a gradient.

use candle_core::{CpuStorage, CustomOp1, Device, Layout, Result, Shape, Tensor, Var, bail};

struct Squareplus {
    b: f32,
}

impl CustomOp1 for Squareplus {
    fn name(&self) -> &'static str {
        "squareplus"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let Some((start, end)) = layout.contiguous_offsets() else {
            bail!("squareplus takes a contiguous tensor");
        };
        let xs = &storage.as_slice::<f32>()?[start..end];
        let results = xs.iter().map(|x| (x + (x * x + self.b).sqrt()) / 2.0).collect();
        Ok((CpuStorage::F32(results), layout.shape().clone()))
    }

    /// The slope is (1 + x / sqrt(x^2 + b)) / 2.
    fn bwd(&self, x: &Tensor, _result: &Tensor, cotangent: &Tensor) -> Result<Option<Tensor>> {
        let root = (x.sqr()? + f64::from(self.b))?.sqrt()?;
        let slope = (((x / root)? + 1.0)? * 0.5)?;
        Ok(Some((cotangent * slope)?))
    }
}

fn squareplus(x: &Tensor, b: f32) -> Result<Tensor> {
    x.apply_op1(Squareplus { b })
}

fn main() -> Result<()> {
    let x = Var::new(&[-3.0f32, 0.0, 1.5], &Device::Cpu)?;
    println!("squareplus: {}", squareplus(&x, 4.0)?);
    let sum = squareplus(&x, 4.0)?.sum_all()?;
    let gradients = sum.backward()?;
    let slope = gradients.get(&x).expect("the sum depends on it");
    println!("sum {:.4}, slopes {slope}", sum.to_scalar::<f32>()?);
    assert!((sum.to_scalar::<f32>()? - 3.3028).abs() < 1e-3);
    let expected = [0.08397f32, 0.5, 0.8];
    let found = slope.to_vec1::<f32>()?;
    assert!(found.iter().zip(expected).all(|(found, slope)| (found - slope).abs() < 1e-3));
    Ok(())
}
