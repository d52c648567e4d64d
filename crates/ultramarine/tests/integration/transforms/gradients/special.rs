//! Functions that stop derivatives, trees of arguments, values that are read while tracing, errors.

use ultramarine::transforms::{grad, jvp, value_and_grad, vmap};
use ultramarine::{Array, Dtype, Error, Result};

#[test]
fn stop_gradient_stops() -> Result<()> {
    let x = Array::scalar(3.0f32);
    let d = grad(|x: &Array| x.stop_gradient().multiply(x))(&x)?;
    assert_eq!(d.item::<f32>()?, 3.0);
    let f = |x: &[Array]| Ok::<_, Error>(vec![x[0].stop_gradient().multiply(&x[0])?]);
    let (_, t) = jvp(f, std::slice::from_ref(&x), &[Array::scalar(1.0f32)])?;
    assert_eq!(t[0].item::<f32>()?, 3.0);
    Ok(())
}

#[test]
fn trees_and_errors() -> Result<()> {
    let f = |(a, (b, c)): &(Array, (Array, Vec<Array>))| a.multiply(b)?.multiply(&c[0])?.sum(None);
    let x = |v: f32| Array::from_slice(&[v, v], &[2]);
    let at = (x(2.0)?, (x(3.0)?, vec![x(4.0)?, x(5.0)?]));
    let (value, (da, (db, dc))) = value_and_grad(f)(&at)?;
    assert_eq!(value.item::<f32>()?, 48.0);
    assert_eq!(da.to_vec::<f32>()?, [12.0; 2]);
    assert_eq!(db.to_vec::<f32>()?, [8.0; 2]);
    assert_eq!((dc[0].to_vec::<f32>()?, dc[1].to_vec::<f32>()?), (vec![6.0; 2], vec![0.0; 2]));

    let not_scalar = grad(|a: &Array| a.exp())(&x(1.0)?);
    assert!(matches!(not_scalar, Err(Error::Value(_))), "{not_scalar:?}");
    let integer = grad(|a: &Array| a.sum(None))(&Array::scalar(1i32));
    assert!(matches!(integer, Err(Error::Value(_))), "{integer:?}");
    let nothing = grad(|_: &Vec<Array>| panic!("it is called"))(&Vec::new());
    assert!(matches!(nothing, Err(Error::Value(_))), "{nothing:?}");
    let inside = vmap(
        |x: &[Array]| Ok::<_, Error>(vec![Array::scalar(x[0].item::<f32>()?)]),
        &[x(1.0)?],
        [Some(0)],
        0,
    );
    assert!(matches!(inside, Err(Error::Value(_))), "{inside:?}");
    Ok(())
}

#[test]
fn values_can_be_read_while_tracing() -> Result<()> {
    let d = grad(|x: &Array| {
        let y = x.multiply(x)?;
        // A decision on a value, as programs make; what was evaluated stays traced.
        if y.item::<f32>()? > 1.0 { y.multiply(x) } else { Ok(y) }
    });
    assert_eq!(d(&Array::scalar(2.0f32))?.item::<f32>()?, 12.0);
    assert_eq!(d(&Array::scalar(0.5f32))?.item::<f32>()?, 1.0);
    Ok(())
}

#[test]
fn no_derivative_of_positions() -> Result<()> {
    let numbers: Vec<f64> = (0..12).map(|i| 0.13 * f64::from(i * 5 % 12) - 0.63).collect();
    let x = Array::from_slice(&numbers, &[3, 4])?;
    let g = grad(|x: &Array| {
        let at = x.argmax(Some(1))?.astype(Dtype::Float64).sum(None)?;
        let order = x.argsort(Some(1))?.astype(Dtype::Float64).sum(None)?;
        at.add(&order)
    })(&x)?;
    assert_eq!(g.to_vec::<f64>()?, [0.0; 12]);
    Ok(())
}
