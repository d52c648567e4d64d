//! Decompositions of matrices on devices without them: by way of the CPU, with its own bits, counted; in strict
//! mode an error that says so.

use super::counts;
use crate::support::partial_backend::{Like, PLAIN, register};
use ultramarine::{
    Array, Device, Error, Result, default_stream,
    linalg::{
        cholesky, eig, eigh, eigvals, eigvalsh, lu_factor, qr, solve_triangular, svd, svdvals,
    },
    set_strict, with_stream,
};
use ultramarine_abi::{schema::op, status};
use ultramarine_test_support::own_process;

type All = fn(&Array) -> Result<Vec<Array>>;

const ALL: [(&str, All); 10] = [
    ("cholesky", |a| Ok(vec![cholesky(a, false)?])),
    ("qr", |a| qr(a).map(|(q, r)| vec![q, r])),
    ("svd", |a| svd(a).map(|(u, s, vt)| vec![vt, u, s])),
    ("singular_values", |a| Ok(vec![svdvals(a)?])),
    ("lu", |a| lu_factor(a).map(|(lu, p)| vec![p, lu])),
    ("eigh", |a| eigh(a, true).map(|(w, v)| vec![w, v])),
    ("eigvalsh", |a| Ok(vec![eigvalsh(a, false)?])),
    ("eig", |a| eig(a).map(|(w, v)| vec![w, v])),
    ("eigvals", |a| Ok(vec![eigvals(a)?])),
    ("solve_triangular", |a| Ok(vec![solve_triangular(a, a, true)?])),
];

/// Two positive definite matrices.
fn matrices() -> Result<Array> {
    Array::from_slice(&[4.0f32, 1.0, 1.0, 3.0, 9.0, 2.0, 2.0, 5.0], &[2, 2, 2])
}

/// Results of all operations, and what is made of them on the same device.
fn results(device: Device) -> Result<Vec<(&'static str, Vec<Array>)>> {
    let stream = default_stream(device)?;
    with_stream(stream, || {
        let a = matrices()?;
        let doubled = a.add(&a)?;
        ALL.into_iter()
            .map(|(name, f)| {
                let mut all = f(&doubled)?;
                let sum = all[0].add(&all[0])?;
                all.push(sum);
                Ok((name, all))
            })
            .collect()
    })
}

#[test]
fn a_device_without_decompositions() -> Result<()> {
    own_process!();
    let lacks = |id: u32| (op::CHOLESKY..=op::SOLVE_TRIANGULAR).contains(&id);
    for fused in [false, true] {
        let gpu = register(
            Like { fused, ..PLAIN },
            Box::new(move |r| if lacks(r.op) { status::UNSUPPORTED } else { status::OK }),
        );
        let (got, want) = (results(gpu.device)?, results(Device::CPU)?);
        for ((name, got), (_, want)) in got.iter().zip(&want) {
            for (got, want) in got.iter().zip(want) {
                assert_eq!(got.device(), gpu.device, "{name}");
                let same = got.array_equal(want, false)?.to_vec::<bool>()?;
                assert!(same[0], "{name}: {got} {want}");
            }
        }
        let counts = counts(gpu.device);
        for (name, _) in ALL {
            let c = &counts[name];
            // Once, however many results.
            assert_eq!((c.native, c.decomposed, c.cpu), (0, 0, 1), "{c:?}");
        }
        assert!(counts["add"].native > 0, "{:?}", counts["add"]);
    }
    Ok(())
}

#[test]
fn native_decompositions() -> Result<()> {
    own_process!();
    let gpu = register(PLAIN, Box::new(|_| status::OK));
    for (name, all) in results(gpu.device)? {
        all.iter().try_for_each(|a| a.eval())?;
        let counts = counts(gpu.device);
        assert_eq!((counts[name].native, counts[name].cpu), (1, 0), "{:?}", counts[name]);
    }
    Ok(())
}

#[test]
fn strict_mode_refuses_them() -> Result<()> {
    own_process!();
    let lacks = |id: u32| (op::CHOLESKY..=op::SOLVE_TRIANGULAR).contains(&id);
    let gpu = register(
        Like { name: c"matrixless", ..PLAIN },
        Box::new(move |r| if lacks(r.op) { status::UNSUPPORTED } else { status::OK }),
    );
    let stream = default_stream(gpu.device)?;
    set_strict(true, &[]);
    for (name, f) in ALL {
        let all = with_stream(stream, || f(&matrices()?))?;
        // Each result tells, the second one that the operation failed before.
        for a in all {
            let error = a.eval().expect_err("strict");
            assert!(matches!(error.root(), Error::Runtime(_)), "{error:?}");
            let (text, allow) = (error.to_string(), format!("allow=[\"{name}\"]"));
            for word in [name, "matrixless", &gpu.device.to_string(), "float32", &allow] {
                assert!(text.contains(word), "{word} is not in: {text}");
            }
        }
    }
    set_strict(true, &["svd"]);
    let (u, s, _) = with_stream(stream, || svd(&matrices()?))?;
    u.eval().and_then(|_| s.eval())?;
    set_strict(false, &[]);
    Ok(())
}
