//! The edges of a square in an image, by Sobel's filter: writing to and reading from slices.

use ultramarine::{Array, Convolution, Dtype, Result, Update, conv2d, index};

fn main() -> Result<()> {
    let image = Array::zeros(&[8, 8], Dtype::Float32)?;
    let image = image.index_update(index![2..6, 2..6], 1.0, Update::Set)?;

    let sobel = [-1.0f32, 0.0, 1.0, -2.0, 0.0, 2.0, -1.0, 0.0, 1.0];
    let sobel = Array::from_slice(&sobel, &[1, 3, 3, 1])?;
    let batch = image.reshape(&[1, 8, 8, 1]);
    let edges = conv2d(batch, sobel, Convolution::default().padding(1))?.reshape(&[8, 8])?;
    println!("{edges}");

    let middle = edges.index(index![1..-1; 2, 1..-1])?;
    println!("every second row of the middle, {:?}:\n{middle}", middle.shape());
    let row = edges.index(index![3])?.to_vec::<f32>()?;
    assert_eq!(row, [0.0, 4.0, 4.0, 0.0, 0.0, -4.0, -4.0, 0.0]);

    let mirrored = edges.index(index![.., ..; -1])?;
    let sum = (edges + mirrored)?.abs()?.sum(..)?.item::<f32>()?;
    println!("left and right edges differ by {sum}");
    assert_eq!(sum, 0.0);
    Ok(())
}
