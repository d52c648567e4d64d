//! `xlogy`, the operation of the guide docs/add-an-operation.md.

use ultramarine::{Array, Dtype, Error, Result, transforms::grad, transforms::vmap};

#[test]
fn values_where_the_product_has_none() -> Result<()> {
    let x = Array::from_slice(&[0.0f64, 0.0, 0.0, 2.0, -3.0, f64::NAN], &[6])?;
    let y = Array::from_slice(&[0.0, -1.0, f64::INFINITY, 5.0, 0.5, 1.0], &[6])?;
    let got = x.xlogy(&y)?.to_vec::<f64>()?;
    assert_eq!(got[..3], [0.0, 0.0, 0.0]);
    assert!((got[3] - 2.0 * 5.0f64.ln()).abs() < 1e-15);
    assert!((got[4] + 3.0 * 0.5f64.ln()).abs() < 1e-15);
    assert!(got[5].is_nan());
    let unknown = Array::scalar(0.0f32).xlogy(&Array::scalar(f32::NAN))?;
    assert!(unknown.item::<f32>()?.is_nan());
    Ok(())
}

#[test]
fn dtypes_and_shapes() -> Result<()> {
    let column = Array::ones(&[3, 1], Dtype::Int32)?;
    let row = Array::ones(&[4], Dtype::Float16)?;
    let out = column.xlogy(&row)?;
    assert_eq!((out.shape(), out.dtype()), (&[3, 4][..], Dtype::Float16));
    assert_eq!(column.xlogy(&column)?.dtype(), Dtype::Float32);
    let empty = row.xlogy(&Array::zeros(&[0, 4], Dtype::Float32)?)?;
    assert!(empty.to_vec::<f32>()?.is_empty());
    let complex = Array::zeros(&[2], Dtype::Complex64)?;
    assert!(matches!(complex.xlogy(&row), Err(Error::Value(_))));
    assert!(matches!(row.xlogy(&Array::zeros(&[3], Dtype::Float32)?), Err(Error::Value(_))));
    Ok(())
}

#[test]
fn the_gradient_of_an_entropy_is_finite_at_zero() -> Result<()> {
    let p = Array::from_slice(&[0.0f64, 0.25, 0.75], &[3])?;
    let entropy = |p: &Array| p.xlogy(p)?.sum(None)?.negative();
    let slopes = grad(entropy)(&p)?.to_vec::<f64>()?;
    assert_eq!(slopes[0], 0.0);
    assert!((slopes[1] + 0.25f64.ln() + 1.0).abs() < 1e-15);
    Ok(())
}

#[test]
fn mapped_over_one_operand() -> Result<()> {
    let x = Array::arange(0.0, 6.0, 1.0, Dtype::Float64)?.reshape(&[2, 3])?;
    let y = Array::from_slice(&[0.5f64, 1.5, 2.5], &[3])?;
    let f = |a: &[Array]| Ok::<_, Error>(vec![a[0].xlogy(&a[1])?]);
    let got = vmap(f, &[x.clone(), y.clone()], [Some(0), None], 0)?;
    assert_eq!(got[0].to_vec::<f64>()?, x.xlogy(&y)?.to_vec::<f64>()?);
    Ok(())
}
