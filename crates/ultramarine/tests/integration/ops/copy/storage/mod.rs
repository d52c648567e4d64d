//! Dtypes that only store numbers: their properties, and the operations that take them.

mod conversion;

use crate::support::partial_backend::{PLAIN, register};
use std::slice::from_ref;
use ultramarine::{
    Array, Category, Device, Dtype, Error, Kind, Result, concatenate, default_stream,
    interchange::{ExportOptions, ImportOptions, dlpack, dlpack::flag},
    io::{npy, safetensors},
    op_counts, set_strict, transforms, with_stream,
};
use ultramarine_abi::{schema::op, status};
use ultramarine_test_support::own_process;

const PACKED: [(Dtype, Dtype); 3] = [
    (Dtype::Float6E2m3fn, Dtype::Float6E2m3fnPacked),
    (Dtype::Float6E3m2fn, Dtype::Float6E3m2fnPacked),
    (Dtype::Float4E2m1fn, Dtype::Float4E2m1fnPacked),
];

/// Those of which each number has a byte.
fn in_bytes() -> impl Iterator<Item = Dtype> {
    Dtype::STORAGE.into_iter().filter(|d| !d.is_packed() && *d != Dtype::Float4E2m1fnX2)
}

/// The numbers of some codes of a dtype.
fn decoded(codes: &[u8], dtype: Dtype) -> Vec<f32> {
    let array = Array::from_slice(codes, &[codes.len()]).and_then(|a| a.view(dtype));
    array.and_then(|a| a.astype(Dtype::Float32).to_vec()).expect("bytes are any dtype's")
}

/// The codes of some numbers.
fn encoded(numbers: &[f32], dtype: Dtype) -> Vec<u8> {
    let array = Array::from_slice(numbers, &[numbers.len()]).expect("it fits");
    bytes(&array.astype(dtype))
}

fn bytes(a: &Array) -> Vec<u8> {
    a.with_bytes(<[u8]>::to_vec).expect("it has a value")
}

fn text_of<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Err(Error::Type(text)) => text.to_string(),
        other => panic!("no TypeError: {other:?}"),
    }
}

/// Elements of one axis.
fn along(a: &Array, axis: usize, start: isize, stop: isize, step: isize) -> Result<Array> {
    let mut all =
        [vec![0; a.ndim()], a.shape().iter().map(|n| *n as isize).collect(), vec![1; a.ndim()]];
    (all[0][axis], all[1][axis], all[2][axis]) = (start, stop, step);
    a.slice(&all[0], &all[1], &all[2])
}

#[test]
fn dtypes() -> Result<()> {
    assert_eq!(Dtype::ALL.len() + Dtype::STORAGE.len(), 29);
    assert!(Dtype::ALL.iter().all(|d| !d.is_storage()));
    for dtype in Dtype::STORAGE {
        assert!(dtype.is_storage() && dtype.kind() == Kind::Storage && dtype.size() == 1);
        assert_eq!(Dtype::from_name(dtype.name()), Some(dtype));
        assert!(dtype.is_subtype(Category::Generic) && !dtype.is_subtype(Category::Number));
        assert!(!dtype.is_inexact() && !dtype.is_floating() && !dtype.is_integer());
        for other in Dtype::ALL {
            assert_eq!((dtype.promote(other), other.promote(dtype)), (dtype, dtype));
        }
        // DLPack: the type and the flag name the dtype, and no two have the same.
        let (dl, flags) = (dtype.to_dl(), dtype.dl_flags());
        assert_eq!(Dtype::from_dl_with(dl, flags | flag::READ_ONLY), Some(dtype));
        assert_eq!(Dtype::from_dl(dl), None);
        assert_eq!(flags != 0, dl.bits < 8 && dl.lanes == 1 && !dtype.is_packed());
    }
    for (padded, packed) in PACKED {
        assert_eq!(padded.to_dl(), packed.to_dl());
        assert_eq!((padded.bits(), packed.bits()), (8, padded.to_dl().bits as usize));
        for n in [0, 1, 2, 3, 4, 5, 7, 8, 9, 1000] {
            assert_eq!(packed.bytes_of(n), (n * packed.bits()).div_ceil(8));
            let array = Array::zeros(&[n], packed)?;
            assert_eq!((array.nbytes(), bytes(&array).len()), (packed.bytes_of(n), array.nbytes()));
            assert_eq!(padded.bytes_of(n), n);
        }
        assert_eq!(
            packed.bytes_of(usize::MAX / 2),
            usize::MAX / 2 / 8 * packed.bits() + 7 * packed.bits() / 8 + 1
        );
    }
    Ok(())
}

/// What moves bytes is allowed, whatever the strides.
#[test]
fn views_and_copies() -> Result<()> {
    for dtype in Dtype::STORAGE.into_iter().filter(|d| !d.is_packed()) {
        let codes: Vec<u8> = (0..24).map(|c| c % 16).collect();
        let raw = Array::from_slice(&codes, &[2, 3, 4])?;
        let x = raw.view(dtype)?;
        let views: [fn(&Array) -> Result<Array>; 8] = [
            |a| a.transpose(),
            |a| a.reshape(&[4, 6]),
            |a| a.transpose()?.reshape(&[24]),
            |a| along(a, 2, 1, 4, 2),
            |a| a.expand_dims([1])?.broadcast_to(&[2, 5, 3, 4]),
            |a| a.diagonal(0, 0, 1),
            |a| a.as_strided(&[3, 2], &[-1, 4], 5),
            |a| a.stop_gradient().contiguous().copy_to(Device::CPU),
        ];
        for view in views {
            let (got, want) = (view(&x)?, view(&raw)?);
            assert_eq!((got.dtype(), got.shape()), (dtype, want.shape()));
            assert_eq!(bytes(&got.contiguous()), bytes(&want));
            // Conversion of any strides.
            let floats = got.astype(Dtype::Float32);
            let of_copy = got.to_contiguous()?.astype(Dtype::Float32);
            assert_eq!(bytes(&floats), bytes(&of_copy));
        }
        let wide = Array::arange(0.0, 24.0, 1.0, Dtype::Float32)?.reshape(&[4, 6])?;
        let turned = wide.transpose()?;
        assert_eq!(
            bytes(&turned.astype(dtype)),
            bytes(&turned.to_contiguous()?.astype(dtype)),
            "{dtype}"
        );
        assert_eq!(x.zeros_like().shape(), x.shape());
        assert_eq!(Array::full(&[0, 2], 1.0f32)?.astype(dtype).astype(Dtype::Float16).size(), 0);
    }
    Ok(())
}

/// Everything else is a type error, at the call.
#[test]
fn no_arithmetic() -> Result<()> {
    for dtype in Dtype::STORAGE {
        let x = Array::ones(&[4], dtype)?;
        let one = Array::scalar(1.0f32);
        let index = Array::from_slice(&[0i32, 1], &[2])?;
        let all: Vec<(&str, Result<Array>)> = vec![
            ("add", x.add(&x)),
            ("multiply", x.multiply(&one)),
            ("subtract", one.subtract(&x)),
            ("equal", x.equal(&x)),
            ("exp", x.exp()),
            ("negative", x.negative()),
            ("abs", x.abs()),
            ("sum", x.sum(None)),
            ("max", x.max(None)),
            ("argmax", x.argmax(None)),
            ("cumsum", x.cumsum(Some(0), false, true)),
            ("sort", x.sort(Some(0))),
            ("matmul", x.matmul(&x)),
            ("take", x.take(&index, None)),
            ("concatenate", concatenate(&[x.clone(), x.clone()], 0)),
            ("where", ultramarine::where_(&Array::scalar(true), &x, &x)),
            ("isnan", x.isnan()),
            ("floor", x.floor()),
            ("real", x.real()),
            ("all", Array::ones(&[], dtype)?.all(None)),
            ("logical_not", x.logical_not()),
            ("where", ultramarine::where_(&x, &one, &one)),
            (
                "slice_update",
                Array::zeros(&[4], Dtype::Float32)?.slice_update(&x, &[0], &[4], &[1]),
            ),
            ("pad", x.pad(&[(1, 1)], ultramarine::PadMode::Constant, &one)),
            ("uniform", ultramarine::random::uniform(&[4], &x, &one, Dtype::Float32, None)),
            ("eye", Array::eye(3, 3, 0, Dtype::Float32)?.matmul(&Array::ones(&[3, 3], dtype)?)),
            ("arange", Array::arange(0.0, 4.0, 1.0, dtype)),
        ];
        for (name, result) in all {
            let text = text_of(result);
            assert!(text.contains("storage type") && text.contains(dtype.name()), "{name}: {text}");
        }
    }
    Ok(())
}

/// The device decodes by itself, encodes by way of the host, and copies bytes.
#[test]
fn on_a_device() -> Result<()> {
    own_process!();
    let storage: Vec<_> = Dtype::STORAGE.iter().map(|d| d.name()).collect();
    for dtype in Dtype::STORAGE {
        let names = storage.clone();
        let gpu = register(
            PLAIN,
            Box::new(move |r| {
                assert!(r.dtypes.iter().all(|d| !names.contains(d)), "{:?}", r.dtypes);
                status::OK
            }),
        );
        let (there, here) = (default_stream(gpu.device)?, default_stream(Device::CPU)?);
        let wide = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 0.5, -6.0, 1.5, 0.0], &[2, 4])?;
        let run = || -> Result<(Vec<u8>, Vec<u8>, Vec<u8>)> {
            let stored = wide.transpose()?.astype(dtype);
            let moved =
                if dtype.is_packed() { stored.reshape(&[8])? } else { stored.transpose()? };
            let back = moved.astype(Dtype::Float32);
            Ok((bytes(&stored), bytes(&moved.contiguous()), bytes(&back)))
        };
        assert_eq!(with_stream(there, run)?, with_stream(here, run)?, "{dtype}");
        let count = op_counts().into_iter().find(|c| c.device == gpu.device && c.op == "astype");
        let count = count.expect("it was converted there");
        let decoded = !dtype.is_packed() as u64;
        assert_eq!(
            (count.native, count.decomposed, count.cpu),
            (0, decoded, 2 - decoded),
            "{dtype}"
        );
    }
    // Strict mode keeps what the device cannot do from the CPU.
    let gpu = register(
        PLAIN,
        Box::new(|r| if r.op == op::COPY { status::OK } else { status::UNSUPPORTED }),
    );
    set_strict(true, &[]);
    let x = Array::from_slice(&[1.0f32, 2.0], &[2])?;
    let refused = with_stream(default_stream(gpu.device)?, || x.astype(Dtype::Float8E5m2).eval());
    set_strict(false, &[]);
    assert!(refused.is_err_and(|e| e.to_string().contains("strict")));
    Ok(())
}

#[test]
fn derivatives_flow_through() -> Result<()> {
    let x = Array::from_slice(&[0.3f32, 1.2, -2.7, 5.0], &[2, 2])?;
    let w = Array::from_slice(&[1.0f32, 10.0, 0.001, 7.7], &[2, 2])?;
    for dtype in Dtype::STORAGE {
        let pair = dtype == Dtype::Float4E2m1fnX2;
        // Used twice, so that derivatives of the stored array add up.
        let f = |v: &[Array]| -> Result<Vec<Array>> {
            let q = v[0].astype(dtype);
            let q = if dtype.is_packed() || pair { q } else { q.transpose()?.transpose()? };
            let q = q.astype(Dtype::Float32).multiply(&w)?.add(q.astype(Dtype::Float32))?;
            Ok(vec![q])
        };
        let ones = Array::ones(&[2, 2], Dtype::Float32)?;
        let (back, ahead) = (
            transforms::vjp(f, from_ref(&x), from_ref(&ones)),
            transforms::jvp(f, from_ref(&x), from_ref(&ones)),
        );
        if pair {
            assert!(back.is_err_and(|e: Error| e.to_string().contains("two numbers")));
            assert!(ahead.is_err());
            continue;
        }
        let want = w.add(&ones)?.to_vec::<f32>()?;
        assert_eq!(back?.1[0].to_vec::<f32>()?, want, "{dtype}");
        assert_eq!(ahead?.1[0].to_vec::<f32>()?, want, "{dtype}");
        // Of a stored argument the derivative is float32.
        let stored = x.astype(dtype);
        let g = |v: &[Array]| Ok::<_, Error>(vec![v[0].astype(Dtype::Float32).multiply(&w)?]);
        let (_, back) = transforms::vjp(g, from_ref(&stored), from_ref(&ones))?;
        assert_eq!((back[0].dtype(), back[0].to_vec::<f32>()?), (Dtype::Float32, w.to_vec()?));
        let (_, ahead) = transforms::jvp(g, &[stored], &[ones])?;
        assert_eq!(ahead[0].to_vec::<f32>()?, w.to_vec::<f32>()?);
    }
    // Slices of stored arrays, too.
    let f = |v: &[Array]| {
        let part = along(&v[0].astype(Dtype::Float8E4m3fn), 1, 1, 2, 1)?;
        Ok::<_, Error>(vec![part.astype(Dtype::Float32)])
    };
    let (_, back) = transforms::vjp(f, &[x], &[Array::full(&[2, 1], 3.0f32)?])?;
    assert_eq!(back[0].to_vec::<f32>()?, [0.0, 3.0, 0.0, 3.0]);
    Ok(())
}

#[test]
fn mapped() -> Result<()> {
    let x = Array::arange(0.0, 24.0, 1.0, Dtype::Float32)?.multiply(Array::scalar(0.25f32))?;
    let x = x.reshape(&[2, 3, 4])?;
    for dtype in Dtype::STORAGE {
        let f = |v: &[Array]| Ok::<_, Error>(vec![v[0].astype(dtype).astype(Dtype::Float32)]);
        for axis in 0..3usize {
            let pair = dtype == Dtype::Float4E2m1fnX2;
            // The last axis of each example has to be even.
            let cut = if pair && axis == 2 { along(&x, 1, 0, 2, 1)? } else { x.clone() };
            let got = transforms::vmap(f, &[&cut], axis, axis)?;
            let moved = cut.moveaxis(axis as isize, 0)?.contiguous();
            let want = moved.astype(dtype).astype(Dtype::Float32).moveaxis(0, axis as isize)?;
            assert_eq!(got[0].shape(), cut.shape());
            assert_eq!(bytes(&got[0]), bytes(&want), "{dtype} {axis}");
        }
        // Stored arguments, also of no dimensions.
        let stored = x.reshape(&[24])?.astype(dtype);
        let got = transforms::vmap(
            |v| Ok::<_, Error>(vec![v[0].astype(Dtype::Float16)]),
            from_ref(&stored),
            [Some(0)],
            0,
        )?;
        let n = stored.size();
        let shape: &[usize] = if dtype == Dtype::Float4E2m1fnX2 { &[n, 2] } else { &[n] };
        assert_eq!(got[0].shape(), shape);
        assert_eq!(bytes(&got[0]), bytes(&stored.astype(Dtype::Float16)));
    }
    Ok(())
}

/// Out and in again, unchanged and without a copy.
#[test]
fn dlpack_round_trips() -> Result<()> {
    for dtype in Dtype::STORAGE {
        let x = Array::from_slice(&[1.0f32, 2.0, 0.5, 4.0, 1.0, 1.5], &[1, 6])?.astype(dtype);
        x.eval()?;
        let tensor = x.to_dlpack()?;
        assert_eq!(tensor.tensor().dtype, dtype.to_dl());
        assert_eq!(tensor.flags(), dtype.dl_flags());
        let y = Array::from_dlpack(tensor)?;
        assert_eq!((y.dtype(), y.shape(), bytes(&y)), (dtype, x.shape(), bytes(&x)));
        assert_eq!(y.value()?.data(), x.value()?.data());
        let copy = ImportOptions { copy: Some(true), ..ImportOptions::default() };
        let z = Array::from_dlpack_with(x.to_dlpack()?, copy)?;
        assert_eq!((z.dtype(), bytes(&z)), (dtype, bytes(&x)));
        assert_ne!(z.value()?.data(), x.value()?.data());
        let legacy = x.to_dlpack_with(ExportOptions {
            kind: ultramarine::interchange::Kind::Legacy,
            ..ExportOptions::default()
        });
        assert_eq!(legacy.is_err(), dtype.dl_flags() != 0, "{dtype}");
        if !dtype.is_packed() {
            let turned = Array::from_dlpack(x.transpose()?.to_dlpack()?)?;
            assert_eq!((turned.shape(), bytes(&turned)), (&[x.shape()[1], 1][..], bytes(&x)));
        }
    }
    assert_eq!(dlpack::type_code::FLOAT4_E2M1FN, Dtype::Float4E2m1fnX2.to_dl().code);
    Ok(())
}

#[test]
fn files() -> Result<()> {
    let known = [
        Dtype::Float8E4m3fn,
        Dtype::Float8E4m3fnuz,
        Dtype::Float8E5m2,
        Dtype::Float8E5m2fnuz,
        Dtype::Float8E8m0fnu,
        Dtype::Float6E2m3fnPacked,
        Dtype::Float6E3m2fnPacked,
        Dtype::Float4E2m1fnPacked,
    ];
    let x = Array::from_slice(&[1.0f32, 2.0, 0.5, 4.0, 1.0, 1.5, 3.0, 0.25], &[2, 4])?;
    for dtype in Dtype::STORAGE {
        let stored = x.astype(dtype);
        let mut file = Vec::new();
        assert!(text_of(npy::write(&mut file, &stored, "NAME")).contains("no float"));
        let arrays = [("w".to_owned(), stored.clone()), ("x".to_owned(), x.clone())].into();
        let written = safetensors::write(&mut file, &arrays, None, "NAME");
        if !known.contains(&dtype) {
            assert!(text_of(written).contains(dtype.name()));
            continue;
        }
        written?;
        let (read, _) = safetensors::read(&mut std::io::Cursor::new(file), "NAME")?;
        let got = &read["w"];
        assert_eq!((got.dtype(), got.shape(), bytes(got)), (dtype, stored.shape(), bytes(&stored)));
        assert_eq!(bytes(&read["x"]), bytes(&x));
    }
    let odd = Array::ones(&[3], Dtype::Float4E2m1fnPacked)?;
    let arrays = [("w".to_owned(), odd)].into();
    let error = safetensors::write(&mut Vec::new(), &arrays, None, "NAME");
    assert!(matches!(error, Err(Error::Value(_))));
    Ok(())
}
