//! Printing, against strings that MLX prints.

use ultramarine::print::{PrintOptions, format};
use ultramarine::{Array, Complex32, Dtype, Result, bf16};

fn shown(a: &Array) -> String {
    a.to_string()
}

#[test]
fn numbers() -> Result<()> {
    assert_eq!(shown(&Array::scalar(1.5f32)), "array(1.5, dtype=float32)");
    assert_eq!(shown(&Array::scalar(true)), "array(True, dtype=bool)");
    let x = Array::from_slice(&[999999.5f32, 1e6, 123456.7, 1e-4, 1e-5], &[5])?;
    assert_eq!(shown(&x), "array([1e+06, 1e+06, 123457, 0.0001, 1e-05], dtype=float32)");
    let x = Array::from_slice(&[f32::NAN, f32::INFINITY, -f32::INFINITY, -0.0], &[4])?;
    assert_eq!(shown(&x), "array([nan, inf, -inf, -0], dtype=float32)");
    let c = Array::from_slice(
        &[Complex32::new(1.0, 2.0), Complex32::new(-1.5, -0.5), Complex32::new(0.0, -0.0)],
        &[3],
    )?;
    assert_eq!(shown(&c), "array([1+2j, -1.5-0.5j, 0+-0j], dtype=complex64)");
    let h = Array::from_slice(&[bf16::from_f32(1.5), bf16::from_f32(7.3)], &[2])?;
    assert_eq!(shown(&h), "array([1.5, 7.3125], dtype=bfloat16)");
    let u = Array::scalar(u64::MAX);
    assert_eq!(shown(&u), "array(18446744073709551615, dtype=uint64)");
    Ok(())
}

#[test]
fn shapes() -> Result<()> {
    let x = Array::arange(0.0, 10.0, 1.0, Dtype::Int32)?;
    assert_eq!(shown(&x), "array([0, 1, 2, ..., 7, 8, 9], dtype=int32)");
    assert_eq!(
        shown(&Array::zeros(&[2, 2, 2], Dtype::Float32)?),
        "array([[[0, 0],\n        [0, 0]],\n       [[0, 0],\n        [0, 0]]], dtype=float32)"
    );
    assert_eq!(shown(&Array::zeros(&[0, 3], Dtype::Float32)?), "array([], dtype=float32)");
    assert_eq!(
        shown(&Array::zeros(&[2, 0], Dtype::Float32)?),
        "array([[],\n       []], dtype=float32)"
    );
    let t = Array::from_slice(&[1, 2, 3, 4, 5, 6], &[2, 3])?.transpose_axes([1, 0])?;
    assert_eq!(shown(&t), "array([[1, 4],\n       [2, 5],\n       [3, 6]], dtype=int32)");
    let rows = shown(&Array::zeros(&[9, 1], Dtype::Int32)?);
    assert_eq!(rows.matches("[0]").count(), 6);
    assert!(rows.contains("       ...,\n"), "{rows}");
    Ok(())
}

#[test]
fn precision() -> Result<()> {
    let x = Array::from_slice(&[1.0f32 / 3.0, 2.0, 123456.79], &[3])?;
    assert_eq!(
        format(&x, PrintOptions { precision: 3 })?,
        "array([0.333, 2.000, 123456.789], dtype=float32)"
    );
    Ok(())
}
