//! The edges of a square in an image, by Sobel's filter: writing to and reading from slices.

use candle_core::{DType, Device, IndexOp, Result, Tensor};

fn main() -> Result<()> {
    let device = Device::Cpu;
    let image = Tensor::zeros((8, 8), DType::F32, &device)?;
    let ones = Tensor::ones((4, 4), DType::F32, &device)?;
    let image = image.slice_assign(&[2..6, 2..6], &ones)?;

    let sobel = [-1.0f32, 0.0, 1.0, -2.0, 0.0, 2.0, -1.0, 0.0, 1.0];
    let sobel = Tensor::from_slice(&sobel, (1, 1, 3, 3), &device)?;
    let edges = image.reshape((1, 1, 8, 8))?.conv2d(&sobel, 1, 1, 1, 1)?.reshape((8, 8))?;
    println!("{edges}");

    // Slices have no steps and count from the start only.
    let rows = Tensor::new(&[1u32, 3, 5], &device)?;
    let middle = edges.index_select(&rows, 0)?.i((.., 1..7))?;
    println!("every second row of the middle, {:?}:\n{middle}", middle.dims());
    let row = edges.i(3)?.to_vec1::<f32>()?;
    assert_eq!(row, [0.0, 4.0, 4.0, 0.0, 0.0, -4.0, -4.0, 0.0]);

    let mirrored = edges.flip(&[1])?;
    let sum = (edges + mirrored)?.abs()?.sum_all()?.to_scalar::<f32>()?;
    println!("left and right edges differ by {sum}");
    assert_eq!(sum, 0.0);
    Ok(())
}
