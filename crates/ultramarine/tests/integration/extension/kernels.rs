//! Primitives with kernels, on the OpenCL backend. Skipped, and said so, where there is no OpenCL.

use super::raw::{Answer, Call, Outcome, Table, poisoned};
use crate::opencl_process;
use crate::support::{mock_device, opencl::register_stream as gpu};
use std::ffi::CString;
use ultramarine::extension::host_table;
use ultramarine::transforms::vmap;
use ultramarine::{
    Array, Device, Dtype, Error, default_stream, memory, register, reset_stats, stats, with_stream,
};
use ultramarine_abi::extension::{self as ext, bind};
use ultramarine_test_support::own_process;

/// y[i] = a x[loc(i)] + table[0], by way of a temporary.
const SCALE: &str = "
__kernel void scale(__global const float *x, __global float *y, __global float *t, float a,
                    __global const long *layout, uint limit) {
    uint i = get_global_id(0);
    int ndim = layout[0];
    if (i >= limit) return;
    t[i] = a * x[um_elem_to_loc_long(i, layout + 1, layout + 1 + ndim, ndim)];
    y[i] = t[i];
}
";

fn kernel(call: &Call, language: &str, source: &str) -> Outcome<*mut ext::KernelHandle> {
    let (language, source) = (CString::new(language).unwrap(), CString::new(source).unwrap());
    let text = ext::KernelText {
        size: size_of::<ext::KernelText>() as u32,
        n_template_arguments: 0,
        language: language.as_ptr(),
        source: source.as_ptr(),
        entry: c"scale".as_ptr(),
        template_arguments: std::ptr::null(),
        options: std::ptr::null(),
        source_bytes: 0,
    };
    let mut kernel = std::ptr::null_mut();
    call.ask(|c, e| unsafe { (host_table().kernel.unwrap())(c, &text, &mut kernel, e) })?;
    Ok(kernel)
}

fn blank() -> ext::Binding {
    let mut b: ext::Binding = unsafe { std::mem::zeroed() };
    b.size = size_of::<ext::Binding>() as u32;
    b
}

/// Writes the first `n` elements.
fn scale(call: &Call, n: u32) -> Outcome {
    let table = host_table();
    let (x, y) = (call.input(0), call.output(0));
    assert!(x.data.is_null() && y.data.is_null());
    let handle = kernel(call, "opencl-c", SCALE)?;
    let mut properties = ext::KernelProperties {
        size: size_of::<ext::KernelProperties>() as u32,
        ..ext::KernelProperties::default()
    };
    call.ask(|c, e| unsafe { (table.kernel_properties.unwrap())(c, handle, &mut properties, e) })?;
    assert!(properties.max_group == 0 || properties.max_group >= 4, "{properties:?}");
    let mut temporary = 99;
    let bytes = 4 * y.elements as u64;
    call.ask(|c, e| unsafe { (table.temporary.unwrap())(c, bytes, &mut temporary, e) })?;
    let d = x.ndim as usize;
    let mut constants = vec![d as i64];
    unsafe {
        constants.extend(std::slice::from_raw_parts(x.shape, d));
        constants.extend(std::slice::from_raw_parts(x.strides, d));
    }
    let scalar = |dtype: Dtype, bits: u64| ext::Binding {
        kind: bind::SCALAR,
        dtype: dtype.to_dl(),
        scalar: [bits, 0],
        ..blank()
    };
    let bindings = [
        ext::Binding { kind: bind::INPUT, ..blank() },
        ext::Binding { kind: bind::OUTPUT, ..blank() },
        ext::Binding { kind: bind::TEMPORARY, index: temporary, ..blank() },
        scalar(Dtype::Float32, 2.0f32.to_bits() as u64),
        ext::Binding {
            kind: bind::CONSTANTS,
            constants: constants.as_ptr().cast(),
            bytes: 8 * constants.len() as u64,
            ..blank()
        },
        scalar(Dtype::Uint32, n as u64),
    ];
    launch(call, handle, &bindings, [(y.elements as u32).div_ceil(4), 1, 1], [4, 1, 1])
}

fn launch(
    call: &Call,
    handle: *mut ext::KernelHandle,
    bindings: &[ext::Binding],
    grid: [u32; 3],
    group: [u32; 3],
) -> Outcome {
    let dispatch = ext::Dispatch {
        size: size_of::<ext::Dispatch>() as u32,
        n_bindings: bindings.len() as u32,
        bindings: bindings.as_ptr(),
        binding_stride: size_of::<ext::Binding>() as u32,
        shared_bytes: 0,
        grid,
        group,
    };
    call.ask(|c, e| unsafe { (host_table().launch.unwrap())(c, handle, &dispatch, e) })
}

fn x() -> Array {
    Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap()
}

fn values(a: &Array) -> Vec<f32> {
    a.to_vec::<f32>().unwrap()
}

fn text(outcome: ultramarine::Result<Vec<Array>>) -> String {
    outcome.and_then(|y| y[0].eval()).unwrap_err().to_string()
}

#[test]
fn kernels_run_where_the_operands_are() {
    opencl_process!();
    let Some(gpu) = gpu() else { return };
    let on =
        |x: &Array, table: Table| with_stream(gpu, || table.one(std::slice::from_ref(x)).unwrap());
    let table = || Table::new("scaled").gpu(|c| scale(c, u32::MAX));
    let base = with_stream(gpu, || (&x() * 1.0).unwrap());
    base.eval().unwrap();
    for input in [
        base.clone(),
        base.transpose().unwrap(),
        base.flip(None).unwrap(),
        base.slice(&[0, 1], &[2, 3], &[1, 1]).unwrap(),
        Array::scalar(4.0f32).broadcast_to(&[3, 2]).unwrap(),
        Array::zeros(&[0], Dtype::Float32).unwrap(),
    ] {
        let y = on(&input, table());
        assert_eq!(y.device(), gpu.device);
        assert_eq!(values(&y), values(&(&input * 2.0).unwrap()), "{:?}", input.shape());
    }
    // Also where it would allocate on the CPU.
    assert_eq!(values(&on(&base, table().allocates())), [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]);
    let f = |x: &[Array]| Ok::<_, Error>(vec![table().one(&x[..1])?]);
    let error = with_stream(gpu, || vmap(f, std::slice::from_ref(&base), [Some(0)], 0));
    assert!(error.unwrap_err().to_string().contains("scaled has no vmap rule"));
}

#[test]
fn elements_unwritten_by_kernels_are_found() {
    opencl_process!();
    let Some(gpu) = gpu() else { return };
    let table = |n| Table::new("scaled").gpu(move |c| scale(c, n));
    with_stream(gpu, || {
        assert_eq!(values(&poisoned(table(6), &[x()]).unwrap()[0])[5], 12.0);
        let error = poisoned(table(4), &[x()]).unwrap_err().to_string();
        assert_eq!(
            error,
            "[scaled] left 2 of 6 elements of output 0 unwritten. Write every element."
        );
    });
}

#[test]
fn languages_of_both_sides_are_in_the_error() {
    opencl_process!();
    let Some(gpu) = gpu() else { return };
    let error = text(with_stream(gpu, || {
        let table = Table::new("foreign").gpu(|c| {
            let languages = unsafe { std::ffi::CStr::from_ptr(c.0.languages) };
            assert_eq!(languages, c"opencl-c");
            let first = kernel(c, "cuda-c", SCALE);
            assert!(matches!(first, Err(Answer::Unsupported)));
            kernel(c, "msl", SCALE).map(drop)
        });
        table.apply(&[x()])
    }));
    assert!(error.contains("[foreign]") && error.contains("takes kernels in opencl-c"), "{error}");
    assert!(error.contains("it has kernels in cuda-c, msl, and there is no compose"), "{error}");
    // With compose it runs by that.
    let y = with_stream(gpu, || {
        let table = Table::new("foreign").gpu(|c| kernel(c, "cuda-c", SCALE).map(drop));
        table.compose(|x| Ok(vec![Some((&x[0] * 3.0)?)])).one(&[x()]).unwrap()
    });
    assert_eq!(values(&y)[5], 18.0);
}

#[test]
fn mistakes_of_launches_are_errors() {
    opencl_process!();
    let Some(gpu) = gpu() else { return };
    let error =
        |f: fn(&Call) -> Outcome| text(with_stream(gpu, || Table::new("bad").gpu(f).apply(&[x()])));
    let broken = error(|c| kernel(c, "opencl-c", "\n__kernel void scale() { nothing; }").map(drop));
    assert!(
        broken.contains("[bad]") && broken.contains("nothing") && broken.contains("2"),
        "{broken}"
    );
    fn with(c: &Call, b: ext::Binding, group: [u32; 3]) -> Outcome {
        let handle = kernel(c, "opencl-c", SCALE)?;
        launch(c, handle, &[b], [1, 1, 1], group)
    }
    let no_input = error(|c| with(c, ext::Binding { index: 7, ..blank() }, [1; 3]));
    assert!(no_input.contains("[bad] launch: binding 0 names input 7"), "{no_input}");
    let kind = error(|c| with(c, ext::Binding { kind: 9, ..blank() }, [1; 3]));
    assert!(kind.contains("has kind 9"), "{kind}");
    let empty = error(|c| with(c, blank(), [0, 1, 1]));
    assert!(empty.contains("group"), "{empty}");
    let short = error(|c| with(c, ext::Binding { size: 8, ..blank() }, [1; 3]));
    assert!(short.contains("um_binding has size 8"), "{short}");
    let stranger = error(|c| launch(c, 64 as *mut _, &[], [1; 3], [1; 3]));
    assert!(stranger.contains("the kernel was not made in this call"), "{stranger}");
    let enqueue = error(|c| {
        unsafe extern "C" fn task(
            _: *mut std::ffi::c_void,
            _: *mut *mut ultramarine_abi::Error,
        ) -> ultramarine_abi::Status {
            0
        }
        let none = std::ptr::null_mut();
        c.ask(|c, e| unsafe { (host_table().enqueue.unwrap())(c, task, None, none, e) })
    });
    assert!(enqueue.contains("[bad] enqueue"), "{enqueue}");
    // And on the CPU there are no kernels.
    let cpu =
        text(Table::new("bad").eval(|c| kernel(c, "opencl-c", SCALE).map(drop)).apply(&[x()]));
    assert!(cpu.contains("[bad] kernel: the CPU has no kernels"), "{cpu}");
}

#[test]
fn arrays_of_devices_are_seen_by_a_copy() {
    opencl_process!();
    let Some(gpu) = gpu() else { return };
    let y = with_stream(gpu, || (&x().transpose().unwrap() * 2.0).unwrap());
    let look = || {
        let mut view: ext::View = unsafe { std::mem::zeroed() };
        view.size = size_of::<ext::View>() as u32;
        let mut error = std::ptr::null_mut();
        let handle = ultramarine::extension::borrow_handle(&y);
        let ask = host_table().array_view.unwrap();
        let code = unsafe { ask(std::ptr::null_mut(), handle, &mut view, &mut error) };
        assert!(super::raw::outcome(code, error).is_ok());
        view
    };
    let (first, second) = (look(), look());
    assert_eq!(super::raw::elements::<f32>(&first), [2.0, 8.0, 4.0, 10.0, 6.0, 12.0]);
    // One copy, which lives as long as the array.
    assert_eq!(first.data, second.data);
}

#[test]
fn copies_of_arrays_of_devices_go_with_them() {
    own_process!();
    unsafe { register(mock_device::init) }.unwrap();
    let gpu = default_stream(Device::gpu(0)).unwrap();
    let look = |y: &Array| {
        let mut view: ext::View = unsafe { std::mem::zeroed() };
        view.size = size_of::<ext::View>() as u32;
        let mut error = std::ptr::null_mut();
        let handle = ultramarine::extension::borrow_handle(y);
        let ask = host_table().array_view.unwrap();
        let code = unsafe { ask(std::ptr::null_mut(), handle, &mut view, &mut error) };
        assert!(super::raw::outcome(code, error).is_ok());
        view
    };
    let one = Array::ones(&[1024], Dtype::Float32).unwrap();
    let make = || {
        let y = with_stream(gpu, || one.add(&one)).unwrap();
        y.eval().unwrap();
        y
    };
    let kept = make();
    let (before, view) = (memory::active(), look(&kept));
    // Without the mirror that it is made from, and beside copies of others that come and go.
    memory::clear_cache();
    for _ in 0..100 {
        let y = make();
        look(&y);
        assert_eq!(look(&y.clone()).data, look(&y).data);
    }
    assert_eq!(memory::active(), before + 4096);
    assert_eq!(super::raw::elements::<f32>(&view), [2.0; 1024]);
    assert_eq!(look(&kept).data, view.data);
    drop(kept);
    assert_eq!(memory::active(), before);
}

#[test]
fn an_evaluation_on_the_cpu_counts_as_a_command() {
    opencl_process!();
    let column = Array::from_slice(&[1.0f32, 2.0], &[2, 1]).unwrap();
    let table = Table::new("counted").giving(&[(&[2, 3], Dtype::Float32)]).eval(|call| {
        super::raw::write(&call.output(0), super::raw::elements::<f32>(&call.input(1)));
        Ok(())
    });
    let y = table.one(&[x(), column.broadcast_to(&[2, 3]).unwrap()]).unwrap();
    reset_stats();
    y.eval().unwrap();
    let stats = stats();
    assert_eq!((stats.commands, stats.bytes_written), (1, 24));
    // What is broadcast counts once.
    assert_eq!(stats.bytes_read, 24 + 8);
}
