//! Primitives on devices that take no kernels: by compose, on the device, or not at all.

use super::raw::{Call, Outcome, Table, elements, write};
use crate::support::partial_backend::{Like, PLAIN, register};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine::transforms::grad;
use ultramarine::{
    Array, Device, Dtype, Stream, default_stream, op_counts, set_strict, with_stream,
};
use ultramarine_abi::{schema::op, status};
use ultramarine_test_support::own_process;

/// A GPU that has everything but matrix products and sorts.
fn gpu() -> Stream {
    let like = Like { name: c"without-kernels", ..PLAIN };
    let gpu = register(
        like,
        Box::new(|r| match r.op {
            op::SORT => status::UNSUPPORTED,
            _ => status::OK,
        }),
    );
    default_stream(gpu.device).unwrap()
}

fn x() -> Array {
    Array::from_slice(&[3.0f32, 1.0, 2.0], &[3]).unwrap()
}

fn never(_: &Call) -> Outcome {
    panic!("there are no kernels for it")
}

fn values(a: &Array) -> Vec<f32> {
    a.to_vec::<f32>().unwrap()
}

fn count(device: Device, name: &str) -> (u64, u64) {
    let all = op_counts();
    let found = all.iter().find(|c| c.device == device && c.op == name);
    found.map_or((0, 0), |c| (c.decomposed, c.cpu))
}

#[test]
fn without_kernels_compose_runs_on_the_device() {
    own_process!();
    let stream = gpu();
    let runs = Arc::new(AtomicUsize::new(0));
    let own = runs.clone();
    let y = with_stream(stream, || {
        Table::new("on_device")
            .giving(&[(&[3], Dtype::Float32), (&[], Dtype::Float32)])
            .eval(|_| panic!("not on the CPU"))
            .gpu(never)
            .compose(move |x| {
                own.fetch_add(1, Ordering::SeqCst);
                assert!(x[0].device().kind == ultramarine::DeviceType::Gpu);
                Ok(vec![Some((&x[0] * 2.0)?), Some(x[0].sum(None)?)])
            })
            .apply(&[x()])
            .unwrap()
    });
    let z = (&y[0] + &y[1]).unwrap();
    assert_eq!(z.device(), stream.device);
    assert_eq!(values(&z), [12.0, 8.0, 10.0]);
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    assert_eq!(count(stream.device, "on_device"), (1, 0));
}

#[test]
fn without_kernels_and_compose_there_is_an_error() {
    own_process!();
    let stream = gpu();
    let on = |table: Table| with_stream(stream, || table.one(&[x()]).unwrap());
    let error = on(Table::new("nowhere").eval(never).gpu(never)).eval().unwrap_err().to_string();
    assert!(error.starts_with("[nowhere] It cannot run on gpu:"), "{error}");
    for part in
        ["backend without-kernels", "takes no kernels", "it has kernels", "no compose", "CPU"]
    {
        assert!(error.contains(part), "{part}: {error}");
    }
    let error = on(Table::new("nowhere").eval(never)).eval().unwrap_err().to_string();
    assert!(error.contains("it has no eval_gpu, and there is no compose"), "{error}");
    // What the device computed before is there for a primitive of the CPU.
    let half = with_stream(stream, || (&x() * 0.5).unwrap());
    let cpu = default_stream(Device::CPU).unwrap();
    let y = with_stream(cpu, || {
        let eval = |call: &Call| {
            write(&call.output(0), elements::<f32>(&call.input(0)).iter().map(|x| -x));
            Ok(())
        };
        Table::new("here").eval(eval).one(&[half]).unwrap()
    });
    assert_eq!(values(&y), [-1.5, -0.5, -1.0]);
}

#[test]
fn parts_of_compose_fall_back_like_operations() {
    own_process!();
    let stream = gpu();
    let sorting = || {
        with_stream(stream, || {
            let table = Table::new("sorting").compose(|x| Ok(vec![Some(x[0].sort(None)?)]));
            table.one(&[x()]).unwrap()
        })
    };
    assert_eq!(values(&sorting()), [1.0, 2.0, 3.0]);
    // In strict mode they stay away from the CPU, and the error says which.
    set_strict(true, &[]);
    let outcome = sorting().eval();
    set_strict(false, &[]);
    if let Err(error) = outcome {
        let error = error.to_string();
        assert!(error.contains("[sorting]") && error.contains("strict"), "{error}");
    }
}

#[test]
fn derivatives_stay_on_the_device() {
    own_process!();
    let stream = gpu();
    let d = with_stream(stream, || {
        let f = |x: &Array| {
            let table =
                Table::new("cube").compose(|x| Ok(vec![Some(x[0].square()?.multiply(&x[0])?)]));
            table.one(std::slice::from_ref(x))?.sum(None)
        };
        grad(f)(&x()).unwrap()
    });
    assert_eq!(d.device(), stream.device);
    assert_eq!(values(&d), [27.0, 3.0, 12.0]);
}
