//! The CPU kernels as a real plugin, built by cargo and loaded from its file: it lies over
//! cpu:0, does the work, and gives the bits of the built-in kernels.

use crate::support::workshop::cargo_build;
use std::path::{Path, PathBuf};
use ultramarine::{
    Array, Device, Dtype, Result, backends, device_count, op_counts, random, reset_op_counts,
};
use ultramarine_test_support::own_process;

/// The variant that this machine can run.
fn variant() -> Option<&'static str> {
    if std::arch::is_x86_feature_detected!("avx512f") {
        Some("x86_64_v4")
    } else if std::arch::is_x86_feature_detected!("avx2") {
        Some("x86_64_v3")
    } else {
        None
    }
}

/// Builds the plugin beside this test, and gives it its name.
fn build(variant: &str) -> PathBuf {
    let arguments = ["--package", "ultramarine-cpu-plugin"];
    let profile =
        cargo_build(&arguments, &[("ULTRAMARINE_CPU_VARIANT", variant)]).expect("it builds");
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cpu_plugin");
    std::fs::create_dir_all(&directory).expect("a directory");
    let path = directory.join(format!("libultramarine-cpu-{variant}.so"));
    let _ = std::fs::remove_file(&path);
    std::fs::copy(profile.join("libultramarine_cpu_plugin.so"), &path).expect("it was built");
    path
}

/// Something of every family.
fn results() -> Result<Vec<Vec<f32>>> {
    let key = random::key(3)?;
    let x = random::normal(&[64, 96], None, None, Dtype::Float32, Some(&key))?;
    let all = [
        x.matmul(&x.transpose_axes([1, 0])?)?,
        x.multiply(&x)?.add(&x)?.exp()?.sum(1)?,
        x.sort(Some(0))?,
        x.cumsum(Some(1), false, true)?,
        x.take(&x.argmax(Some(1))?, Some(1))?,
        x.astype(Dtype::Bfloat16).tanh()?.astype(Dtype::Float32),
    ];
    all.iter().map(|a| a.to_vec::<f32>()).collect()
}

#[test]
fn over_the_built_in_kernels() -> Result<()> {
    own_process!();
    let Some(variant) = variant() else { return Ok(()) };
    let path = build(variant);
    let before = results()?;
    let kept = Array::arange(0.0, 1e6, 1.0, Dtype::Float32)?;
    kept.eval()?;

    let info = backends::load(&path)?;
    assert_eq!((info.name.as_str(), info.variant.as_str()), ("cpu", variant));
    assert_eq!(device_count(ultramarine::DeviceType::Cpu), 1, "no device is added");
    reset_op_counts();
    assert_eq!(results()?, before, "the same kernels give the same bits");
    assert_eq!(kept.sum(None)?.to_vec::<f32>()?.len(), 1, "arrays stay valid");
    let counts = op_counts();
    for op in ["matmul", "sum", "exp", "sort", "cumsum", "argmax", "tanh", "random_bits"] {
        let ran: Vec<_> = counts.iter().filter(|c| c.op == op && c.native > 0).collect();
        assert!(
            matches!(&ran[..], [c] if c.variant == variant && c.device == Device::CPU),
            "{op}: {ran:?}"
        );
    }
    assert!(counts.iter().all(|c| c.decomposed + c.cpu == 0), "{counts:?}");
    Ok(())
}
