//! Conversion from and to dtypes that only store numbers, and packing.

use super::{PACKED, along, bytes, decoded, encoded, in_bytes, text_of};
use ultramarine::{Array, Dtype, Error, Result, finfo};

/// What is known of the formats by their definition.
#[test]
fn codes() {
    let cases: &[(Dtype, &[(u8, f32)])] = &[
        (
            Dtype::Float8E3m4,
            &[(1, 2f32.powi(-6)), (0x30, 1.0), (0x6f, 15.5), (0x70, f32::INFINITY)],
        ),
        (
            Dtype::Float8E4m3,
            &[(1, 2f32.powi(-9)), (0x38, 1.0), (0x77, 240.0), (0xf8, f32::NEG_INFINITY)],
        ),
        (Dtype::Float8E4m3b11fnuz, &[(1, 2f32.powi(-13)), (0x58, 1.0), (0x7f, 30.0)]),
        (Dtype::Float8E4m3fn, &[(1, 2f32.powi(-9)), (0x38, 1.0), (0x7e, 448.0), (0xfe, -448.0)]),
        (Dtype::Float8E4m3fnuz, &[(1, 2f32.powi(-10)), (0x40, 1.0), (0x7f, 240.0)]),
        (
            Dtype::Float8E5m2,
            &[(1, 2f32.powi(-16)), (0x3c, 1.0), (0x7b, 57344.0), (0x7c, f32::INFINITY)],
        ),
        (Dtype::Float8E5m2fnuz, &[(1, 2f32.powi(-17)), (0x40, 1.0), (0x7f, 57344.0)]),
        (Dtype::Float8E8m0fnu, &[(0, 2f32.powi(-127)), (127, 1.0), (254, 2f32.powi(127))]),
        (Dtype::Float6E2m3fn, &[(1, 0.125), (8, 1.0), (31, 7.5), (63, -7.5)]),
        (Dtype::Float6E3m2fn, &[(1, 0.0625), (12, 1.0), (31, 28.0), (63, -28.0)]),
        (
            Dtype::Float4E2m1fn,
            &[
                (0, 0.0),
                (1, 0.5),
                (2, 1.0),
                (3, 1.5),
                (4, 2.0),
                (5, 3.0),
                (6, 4.0),
                (7, 6.0),
                (15, -6.0),
            ],
        ),
    ];
    for (dtype, pairs) in cases {
        for (code, number) in *pairs {
            assert_eq!(decoded(&[*code], *dtype), [*number], "{dtype} {code:#x}");
            assert_eq!(encoded(&[*number], *dtype), [*code], "{dtype} {number}");
        }
    }
}

/// Of each dtype, the codes in the order of their numbers.
fn ordered(dtype: Dtype) -> Vec<(u8, f32)> {
    let n = 1u32 << dtype.to_dl().bits;
    let codes: Vec<u8> = (0..n).map(|c| c as u8).collect();
    let mut all: Vec<(u8, f32)> =
        codes.iter().copied().zip(decoded(&codes, dtype)).filter(|(_, v)| v.is_finite()).collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    all
}

/// Every number is its own code; between two, the nearer one, and of equally near ones the even
/// code.
#[test]
fn rounding() {
    for dtype in in_bytes() {
        let all = ordered(dtype);
        let codes: Vec<u8> = all.iter().map(|p| p.0).collect();
        let numbers: Vec<f32> = all.iter().map(|p| p.1).collect();
        assert_eq!(encoded(&numbers, dtype), codes, "{dtype}");
        if dtype == Dtype::Float8E8m0fnu {
            // Without a mantissa, the middle is the next power of two's. (The lowest are
            // subnormal in float32, and not looked at.)
            for pair in all[2..].windows(2) {
                let middle = (pair[0].1 + pair[1].1) / 2.0;
                assert_eq!(encoded(&[middle], dtype), [pair[1].0]);
                assert_eq!(encoded(&[middle.next_down()], dtype), [pair[0].0]);
            }
            continue;
        }
        for pair in all.windows(2) {
            let [(a, low), (b, high)] = [pair[0], pair[1]];
            let middle = low + (high - low) / 2.0;
            if low == high || middle == 0.0 {
                continue;
            }
            let even = if a & 1 == 0 { a } else { b };
            let got = encoded(&[middle, middle.next_down(), middle.next_up()], dtype);
            // The number nearest to a negative one that vanishes may have no negative zero.
            let zero = |c: u8| if decoded(&[c], dtype) == [0.0] { 0 } else { c };
            let want = [even, a, b].map(zero);
            assert_eq!(got.into_iter().map(zero).collect::<Vec<_>>(), want, "{dtype} {low} {high}");
        }
    }
}

#[test]
fn specials() {
    let far = [1e30, -1e30, f32::INFINITY, f32::NEG_INFINITY];
    for dtype in in_bytes() {
        let got = decoded(&encoded(&far, dtype), dtype);
        let nan = decoded(&encoded(&[f32::NAN], dtype), dtype)[0];
        match dtype {
            Dtype::Float8E3m4 | Dtype::Float8E4m3 | Dtype::Float8E5m2 => {
                assert_eq!(
                    got,
                    [f32::INFINITY, f32::NEG_INFINITY, f32::INFINITY, f32::NEG_INFINITY]
                );
                assert!(nan.is_nan());
            }
            Dtype::Float6E2m3fn | Dtype::Float6E3m2fn | Dtype::Float4E2m1fn => {
                let most = finfo(dtype).expect("a float").max as f32;
                assert_eq!(got, [most, -most, most, -most]);
                assert_eq!(nan, 0.0);
            }
            Dtype::Float8E8m0fnu => {
                assert!(got[0] > 0.9e30 && got[1..].iter().all(|v| v.is_nan()) && nan.is_nan());
                assert!(
                    decoded(&encoded(&[0.0, -0.0, -1.0], dtype), dtype).iter().all(|v| v.is_nan())
                );
            }
            _ => assert!(got.iter().all(|v| v.is_nan()) && nan.is_nan(), "{dtype}"),
        }
    }
}

/// Any source: ints and other floats go by way of float32, and back.
#[test]
fn other_dtypes() -> Result<()> {
    for dtype in in_bytes().filter(|d| *d != Dtype::Float8E8m0fnu) {
        for from in Dtype::ALL {
            let x = Array::from_slice(&[1.0f32, 0.0, 2.0, 1.0], &[4])?.astype(from);
            let stored = x.astype(dtype);
            assert_eq!(stored.dtype(), dtype);
            let back = stored.astype(from);
            assert!(back.equal(&x)?.all(None)?.item::<bool>()?, "{from} {dtype}");
        }
        let wide = Array::from_slice(&[1.0f64 + 2f64.powi(-40)], &[1])?;
        assert_eq!(bytes(&wide.astype(dtype)), encoded(&[1.0], dtype));
    }
    let e5 = Array::from_slice(&[300.0f32, 0.1], &[2])?.astype(Dtype::Float8E5m2);
    let e4 = e5.astype(Dtype::Float8E4m3fn).astype(Dtype::Float32);
    assert_eq!(e4.to_vec::<f32>()?, [320.0, 0.09375]);
    Ok(())
}

#[test]
fn packed() -> Result<()> {
    for (padded, packed) in PACKED {
        let codes = 1u32 << packed.bits();
        for n in [0, 1, 2, 3, 4, 5, 8, 9, 1000, 40_000] {
            let plain: Vec<u8> = (0..n).map(|i| (i * 7 % codes) as u8).collect();
            let x = Array::from_slice(&plain, &[n as usize])?.view(padded)?;
            let y = x.astype(packed);
            // Bit for bit, the first in the lowest.
            let raw = bytes(&y);
            assert_eq!(raw.len(), packed.bytes_of(n as usize));
            for (i, code) in plain.iter().enumerate() {
                for bit in 0..packed.bits() {
                    let at = i * packed.bits() + bit;
                    assert_eq!(raw[at / 8] >> (at % 8) & 1, code >> bit & 1, "{packed} {n} {i}");
                }
            }
            assert_eq!(bytes(&y.astype(padded)), plain);
            assert_eq!(
                y.astype(Dtype::Float32).to_vec::<f32>()?,
                x.astype(Dtype::Float32).to_vec::<f32>()?
            );
        }
        // Shapes as they like, but no views of elements.
        let x = Array::arange(0.0, 6.0, 1.0, Dtype::Float32)?.astype(packed);
        let y = x.reshape(&[2, 3])?;
        assert_eq!((y.shape(), y.size(), y.nbytes()), (&[2, 3][..], 6, packed.bytes_of(6)));
        assert_eq!(
            y.astype(Dtype::Float32).to_vec::<f32>()?,
            [0.0, 1.0, 2.0, 3.0, 4.0, 5.0].map(|v| decoded(&encoded(&[v], padded), padded)[0])
        );
        for text in [
            text_of(y.transpose()),
            text_of(y.view(Dtype::Uint8)),
            text_of(y.broadcast_to(&[4, 2, 3])),
            text_of(along(&y, 0, 0, 1, 1)),
        ] {
            assert!(text.contains("share bytes") && text.contains(padded.name()), "{text}");
        }
        assert_eq!(
            y.to_string(),
            y.astype(padded).to_string().replace(padded.name(), packed.name())
        );
        assert_eq!(
            Array::from_bytes(&bytes(&y), &[6], packed)?.contiguous().to_contiguous()?.nbytes(),
            y.nbytes()
        );
        assert!(Array::from_bytes(&bytes(&y), &[7], Dtype::Float4E2m1fn).is_err());
    }
    Ok(())
}

#[test]
fn pairs() -> Result<()> {
    let dtype = Dtype::Float4E2m1fnX2;
    let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 0.5, -6.0], &[1, 6])?.astype(dtype);
    assert_eq!((x.shape(), x.nbytes(), bytes(&x)), (&[1, 3][..], 3, vec![0x42, 0x65, 0xf1]));
    let y = x.transpose()?.astype(Dtype::Float32);
    assert_eq!((y.shape(), y.to_vec::<f32>()?), (&[3, 2][..], vec![1.0, 2.0, 3.0, 4.0, 0.5, -6.0]));
    let bare = along(&x, 1, 1, 2, 1)?.reshape::<usize>(&[])?;
    assert_eq!(bare.astype(Dtype::Float32).to_vec::<f32>()?, [3.0, 4.0]);
    assert!(bare.item_scalar().is_err());
    assert_eq!(x.astype(Dtype::Float4E2m1fnPacked).shape(), [1, 6]);
    let odd = Array::zeros(&[3], Dtype::Float32)?;
    assert!(matches!(odd.try_astype(dtype), Err(Error::Value(t)) if t.contains("even")));
    assert!(odd.astype(dtype).eval().is_err());
    assert!(Array::scalar(1.0f32).try_astype(dtype).is_err());
    let ones = Array::ones(&[2, 3], dtype)?;
    assert_eq!(bytes(&ones), [0x22; 6]);
    assert_eq!(bytes(&Array::ones(&[2, 6], Dtype::Float32)?.astype(dtype)), [0x22; 6]);
    assert_eq!(x.to_string(), "array([[1, 2, 3, 4, 0.5, -6]], dtype=float4_e2m1fn_x2)");
    Ok(())
}
