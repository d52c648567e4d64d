//! Every dtype that the device stores, through pointers, loads and stores.

use super::*;
use crate::opencl_process;
use ultramarine::fast::Template;

#[test]
fn every_dtype_goes_through() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let body = "size_t i = get_global_id(0); um_store(T, y, i, um_load(T, x, i));";
    let through = kernel("through", &["x"], &["y"], body)?;
    for dtype in Dtype::ALL {
        let x = Array::from_slice(&[0.0f32, 1.0, 3.0, 100.5, 0.099], &[5])?.astype(dtype);
        let launch = Launch::new([5, 1, 1], [5, 1, 1])
            .output(&[5], dtype)
            .template("T", Template::Dtype(dtype));
        let got = run(gpu, &through, &[&x], &launch)?;
        assert!(got.equal(&x)?.all(None)?.item::<bool>()?, "{dtype}: {got} for {x}");
    }
    Ok(())
}

#[test]
fn halves_round_to_the_nearest_even() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let body = "size_t i = get_global_id(0); um_store(T, y, i, x[i]);";
    let round = kernel("round", &["x"], &["y"], body)?;
    let mut values = vec![0.0f32, -0.0, f32::INFINITY, f32::NEG_INFINITY, 65504.0, 1e-8, 3.4e38];
    let mut bits = 0x3f80_0000u32;
    for _ in 0..2000 {
        bits = bits.wrapping_mul(1664525).wrapping_add(1013904223);
        let value = f32::from_bits(bits);
        values.push(if value.is_nan() { 1.0 } else { value });
        // Halfway between two bfloat16s.
        values.push(f32::from_bits(0x3f80_8000 + (bits >> 24 << 16)));
    }
    let x = Array::from_slice(&values, &[values.len()])?;
    for dtype in [Dtype::Float16, Dtype::Bfloat16] {
        let launch = Launch::new([values.len() as u32, 1, 1], [64, 1, 1])
            .output(&[values.len()], dtype)
            .template("T", Template::Dtype(dtype));
        let got = run(gpu, &round, &[&x], &launch)?.view(Dtype::Uint16)?.to_vec::<u16>()?;
        let want = x.astype(dtype).view(Dtype::Uint16)?.to_vec::<u16>()?;
        for (i, value) in values.iter().enumerate() {
            assert_eq!(got[i], want[i], "{value} as {dtype}");
        }
    }
    let launch = Launch::new([1, 1, 1], [1, 1, 1])
        .output(&[1], Dtype::Bfloat16)
        .template("T", Template::Dtype(Dtype::Bfloat16));
    let nan = run(gpu, &round, &[&Array::scalar(f32::NAN)], &launch)?;
    assert!(nan.astype(Dtype::Float32).item::<f32>()?.is_nan());
    Ok(())
}

#[test]
fn complex_arithmetic() -> Result<()> {
    opencl_process!();
    let Some(gpu) = gpu() else { return Ok(()) };
    let body = "uint i = thread_position_in_grid.x;\n\
        um_complex64 p = um_multiply(a[i], b[i]);\n\
        product[i] = p; quotient[i] = um_divide(p, b[i]);\n\
        rest[i] = um_conjugate(a[i]) + um_complex(um_imag(b[i]), um_real(b[i]));";
    let k = kernel("complex", &["a", "b"], &["product", "quotient", "rest"], body)?;
    use ultramarine::Complex32 as C;
    let (a, b) = ([C::new(1.0, 2.0), C::new(-3.0, 0.5)], [C::new(0.25, -1.0), C::new(2.0, 4.0)]);
    let (x, y) = (Array::from_slice(&a, &[2])?, Array::from_slice(&b, &[2])?);
    let launch =
        (0..3).fold(Launch::new([2, 1, 1], [2, 1, 1]), |l, _| l.output(&[2], Dtype::Complex64));
    let got = with_stream(gpu, || k.call(&[&x, &y], &launch))?;
    for i in 0..2 {
        let near = |got: C, want: C| assert!((got - want).norm() < 1e-5, "{got} for {want}");
        near(got[0].to_vec::<C>()?[i], a[i] * b[i]);
        near(got[1].to_vec::<C>()?[i], a[i]);
        near(got[2].to_vec::<C>()?[i], a[i].conj() + C::new(b[i].im, b[i].re));
    }
    Ok(())
}
