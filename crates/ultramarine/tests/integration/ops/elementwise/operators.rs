//! Rust's operators, over every mix of arrays, results and numbers.

use half::{bf16, f16};
use ultramarine::{Array, Complex32, Dtype, Error, Result, where_};

fn six() -> Array {
    Array::scalar(6.0f32)
}

/// Checks an expression of the six and the two.
macro_rules! each {
    ($value:literal: $($result:expr;)*) => {$(
        let got: Array = $result?;
        assert_eq!((got.item::<f32>()?, got.shape()), ($value as f32, &[][..]), stringify!($result));
    )*};
}

/// One operator with an array, borrowed or owned, or a result on the left, and each operand that there is on the right.
macro_rules! table {
    ($($op:tt $value:literal;)*) => {
        #[test]
        fn arrays_and_operands() -> Result<()> {
            let (x, y) = (six(), Array::scalar(2.0f32));
            let result = || y.positive();
            $(each! { $value:
                &x $op &y; x.clone() $op &y; &x $op y.clone(); x.clone() $op y.clone(); &x $op &&y;
                &x $op result(); x.clone() $op result(); &x $op &result();
                x.positive() $op &y; x.positive() $op y.clone();
                &x $op 2.0; &x $op 2; x.clone() $op 2.0; x.clone() $op 2;
                &x $op 2.0f32; &x $op 2.0f64; &x $op f16::from_f32(2.0); &x $op bf16::from_f32(2.0);
                &x $op 2i8; &x $op 2i16; &x $op 2i32; &x $op 2i64; &x $op 2isize;
                &x $op 2u8; &x $op 2u16; &x $op 2u32; &x $op 2u64; &x $op 2usize;
                6.0 $op &y; 6 $op &y; 6.0 $op y.clone(); 6 $op y.clone();
                f16::from_f32(6.0) $op &y; bf16::from_f32(6.0) $op y.clone();
            })*
            Ok(())
        }
    };
}
table! { + 8; - 4; * 12; / 3; % 0; }

#[test]
fn expressions() -> Result<()> {
    let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
    let (w, b) = (Array::from_slice(&[1.0f32, 0.0, 0.0, 2.0], &[2, 2])?, Array::scalar(1.0f32));
    assert_eq!((x.matmul(&w)? + &b)?.to_vec::<f32>()?, [2.0, 5.0, 4.0, 9.0]);
    assert_eq!((x.matmul(&w) + &b)?.to_vec::<f32>()?, [2.0, 5.0, 4.0, 9.0]);
    assert_eq!(((&x * &w)? + &b)?.to_vec::<f32>()?, [2.0, 1.0, 1.0, 9.0]);
    assert_eq!((&x * &w + &b)?.to_vec::<f32>()?, [2.0, 1.0, 1.0, 9.0]);
    assert_eq!((&x - &x * 0.5f32)?.sum(None)?.item::<f32>()?, 5.0);
    assert_eq!((1.0 - &x)?.sum(None)?.item::<f32>()?, -6.0);
    assert_eq!((-&x)?.to_vec::<f32>()?, (-x.clone())?.to_vec::<f32>()?);
    assert_eq!((&x * Complex32::new(0.0, 1.0))?.dtype(), Dtype::Complex64);
    assert_eq!((Complex32::new(0.0, 1.0) / &x)?.dtype(), Dtype::Complex64);
    Ok(())
}

#[test]
fn bits() -> Result<()> {
    let x = Array::scalar(6i32);
    let bool = Array::scalar(true);
    for (got, want) in [
        (&x & 3, 2),
        (3 & &x, 2),
        (&x | &x, 6),
        (x.clone() ^ 3u8, 5),
        (&x << 1, 12),
        (x.clone() >> &Array::scalar(1i32), 3),
        (1 << &x, 64),
        (!&x, -7),
        (!x.clone(), -7),
        (&x & 3 | &Array::scalar(1i32), 3),
    ] {
        assert_eq!(got?.item::<i32>()?, want);
    }
    for (got, want) in [(&bool & false, false), (true ^ &bool, false), (!&bool, false)] {
        assert_eq!(got?.item::<bool>()?, want);
    }
    Ok(())
}

/// A number takes the array's dtype where that holds its kind, whatever its own type is.
#[test]
fn dtypes_of_numbers() -> Result<()> {
    use Dtype::*;
    for (dtype, float, int, bool) in [
        (Float32, Float32, Float32, Float32),
        (Float16, Float16, Float16, Float16),
        (Bfloat16, Bfloat16, Bfloat16, Bfloat16),
        (Complex64, Complex64, Complex64, Complex64),
        (Int32, Float32, Int32, Int32),
        (Uint8, Float32, Uint8, Uint8),
        (Bool, Float32, Int32, Bool),
    ] {
        let x = Array::ones(&[2], dtype)?;
        let got = [
            (&x * 0.5f64)?,
            (&x * 0.5f32)?,
            (&x * f16::ONE)?,
            (0.5 * &x)?,
            x.maximum(0.5)?,
            (&x * 2i64)?,
            (&x * 2u8)?,
            (2 * &x)?,
            x.minimum(2usize)?,
            (&x * true)?,
        ]
        .map(|y| y.dtype());
        assert_eq!(got, [[float; 5].as_slice(), &[int; 4], &[bool]].concat()[..], "{dtype}");
    }
    Ok(())
}

#[test]
fn numbers_that_do_not_fit() -> Result<()> {
    let bytes = Array::ones(&[2], Dtype::Uint8)?;
    for error in [
        (&bytes + 300).err(),
        (300 + &bytes).err(),
        bytes.less(-1).err(),
        (&bytes * u64::MAX).err(),
    ] {
        assert!(matches!(error, Some(Error::Value(text)) if text.contains("uint8")));
    }
    let wide = Array::scalar(1u64);
    assert_eq!((&wide * u64::MAX)?.item::<u64>()?, u64::MAX);
    assert_eq!((&Array::scalar(1.0f32) * u64::MAX)?.item::<f32>()?, u64::MAX as f32);
    assert!((&Array::scalar(1i64) * u64::MAX).is_err());
    Ok(())
}

/// The error of an operand is that of the operator.
#[test]
fn errors_of_operands() {
    let failed = || Array::from_slice(&[1.0f32], &[2]);
    let text = failed().map(drop).map_err(|e| e.to_string());
    for result in
        [&six() + failed(), failed() * &six(), six().maximum(failed()), where_(&six(), 1, failed())]
    {
        assert_eq!(result.map(drop).map_err(|e| e.to_string()), text);
    }
}

#[test]
fn methods_take_numbers() -> Result<()> {
    let x = Array::from_slice(&[-1.0f32, 0.5, 3.0], &[3])?;
    assert_eq!(x.power(2)?.to_vec::<f32>()?, [1.0, 0.25, 9.0]);
    assert_eq!(x.floor_divide(0.5)?.to_vec::<f32>()?, [-2.0, 1.0, 6.0]);
    assert_eq!(x.less_equal(0.5)?.to_vec::<bool>()?, [true, true, false]);
    assert_eq!(x.logical_and(true)?.to_vec::<bool>()?, [true; 3]);
    assert_eq!(x.clip(0, 1)?.to_vec::<f32>()?, [0.0, 0.5, 1.0]);
    assert_eq!(x.clip(Array::scalar(0.0f32), None)?.to_vec::<f32>()?, [0.0, 0.5, 3.0]);
    assert_eq!(x.clip(None, Some(&six()))?.to_vec::<f32>()?, x.to_vec::<f32>()?);
    assert!(x.clip(None, None).is_err());
    assert!(x.allclose(&x + 1e-9, 1e-5, 1e-8, false)?.item::<bool>()?);
    let (quotient, rest) = x.divmod(2)?;
    assert_eq!((&quotient * 2 + &rest)?.to_vec::<f32>()?, x.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn where_takes_numbers() -> Result<()> {
    let x = Array::from_slice(&[true, false], &[2])?;
    let half = Array::ones(&[2], Dtype::Float16)?;
    assert_eq!(where_(&x, 2.0, &half)?.dtype(), Dtype::Float16);
    assert_eq!(where_(&x, half, 2)?.dtype(), Dtype::Float16);
    assert_eq!(where_(&x, 1.0, 0.0)?.to_vec::<f32>()?, [1.0, 0.0]);
    assert_eq!(where_(&x, 1, 0)?.to_vec::<i32>()?, [1, 0]);
    assert_eq!(where_(&x, 1i64 << 40, 0)?.to_vec::<i64>()?, [1 << 40, 0]);
    assert_eq!(where_(&x, true, false)?.to_vec::<bool>()?, [true, false]);
    Ok(())
}
