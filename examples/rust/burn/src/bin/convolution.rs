//! The edges of a square in an image, by Sobel's filter: writing to and reading from slices.

use burn::prelude::*;
use burn::tensor::{module::conv2d, ops::ConvOptions};

fn main() {
    let device = Device::flex();
    let image = Tensor::<2>::zeros([8, 8], &device);
    let image = image.slice_fill(s![2..6, 2..6], 1.0);

    let sobel = [[[[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]]];
    let sobel = Tensor::<4>::from_floats(sobel, &device);
    let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
    let edges = conv2d(image.reshape([1, 1, 8, 8]), sobel, None, options).reshape([8, 8]);
    println!("{edges}");

    let middle = edges.clone().slice(s![1..-1;2, 1..-1]);
    println!("every second row of the middle, {:?}:\n{middle}", middle.dims());
    let row = edges.clone().slice(s![3, ..]).into_data().try_to_vec::<f32>().unwrap();
    assert_eq!(row, [0.0, 4.0, 4.0, 0.0, 0.0, -4.0, -4.0, 0.0]);

    let mirrored = edges.clone().slice(s![.., ..;-1]);
    let sum = (edges + mirrored).abs().sum().into_scalar::<f32>();
    println!("left and right edges differ by {sum}");
    assert_eq!(sum, 0.0);
}
