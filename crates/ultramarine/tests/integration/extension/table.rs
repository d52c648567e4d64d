//! The host's table, function by function: handles, dtypes, operations by name.

use super::raw::{Answer, Outcome, outcome, tensor_type};
use std::ffi::{CStr, CString, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use ultramarine::extension::{
    borrow_handle, host_table, operations, own_handle, place_of, stream_of, take_handle,
};
use ultramarine::{Array, Device, Dtype, Error, KeepDims, default_stream, new_stream, with_stream};
use ultramarine_abi::{Error as Raw, dlpack::DLDataType, extension as ext, status};

const NONE: *mut c_void = std::ptr::null_mut();

fn x() -> Array {
    Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap()
}

/// An attribute of an operation.
#[derive(Clone)]
enum Value {
    Int(i64),
    Float(f64),
    Ints(Vec<i64>),
    Dtype(Dtype),
    Text(CString),
}

use Value::*;

fn text(t: &str) -> Value {
    Text(CString::new(t).unwrap())
}

/// Calls an operation.
fn call_at(
    name: &str,
    inputs: &[&Array],
    attributes: &[(&str, Value)],
    n: usize,
    place: *const ext::PlaceCode,
) -> Outcome<Vec<Array>> {
    let name = CString::new(name).unwrap();
    let names: Vec<CString> = attributes.iter().map(|(n, _)| CString::new(*n).unwrap()).collect();
    let list: Vec<ext::Attribute> = attributes
        .iter()
        .zip(&names)
        .map(|((_, value), name)| {
            let mut a: ext::Attribute = unsafe { std::mem::zeroed() };
            a.size = size_of::<ext::Attribute>() as u32;
            a.name = name.as_ptr();
            match value {
                Int(n) => (a.kind, a.integer) = (ext::attribute::INT, *n),
                Float(n) => (a.kind, a.real) = (ext::attribute::FLOAT, *n),
                Ints(all) => {
                    (a.kind, a.integers, a.count) =
                        (ext::attribute::INTS, all.as_ptr(), all.len() as u64);
                }
                Dtype(d) => (a.kind, a.dtype) = (ext::attribute::DTYPE, d.to_dl()),
                Text(t) => (a.kind, a.text) = (ext::attribute::TEXT, t.as_ptr()),
            }
            a
        })
        .collect();
    let handles: Vec<_> = inputs.iter().map(|a| borrow_handle(a)).collect();
    let mut results = vec![std::ptr::null_mut(); n];
    let mut error: *mut Raw = std::ptr::null_mut();
    let code = unsafe {
        (host_table().operation.unwrap())(
            NONE,
            name.as_ptr(),
            handles.as_ptr(),
            handles.len() as u32,
            list.as_ptr(),
            list.len() as u32,
            place,
            results.as_mut_ptr(),
            n as u32,
            &mut error,
        )
    };
    outcome(code, error)?;
    Ok(results.into_iter().map(|h| unsafe { take_handle(h) }).collect())
}

fn call(name: &str, inputs: &[&Array], attributes: &[(&str, Value)]) -> Array {
    match call_at(name, inputs, attributes, 1, std::ptr::null()) {
        Ok(mut all) => all.remove(0),
        Err(Answer::Error(error)) => panic!("{error}"),
        Err(_) => panic!("{name} has no error"),
    }
}

fn fails(name: &str, inputs: &[&Array], attributes: &[(&str, Value)]) -> String {
    match call_at(name, inputs, attributes, 1, std::ptr::null()) {
        Err(Answer::Error(error)) => error.to_string(),
        _ => panic!("{name} has no error"),
    }
}

fn values(a: &Array) -> Vec<f32> {
    a.to_vec::<f32>().unwrap()
}

#[test]
fn operations_do_what_they_do() {
    let x = x();
    let same = |name: &str, attributes: &[(&str, Value)], want: ultramarine::Result<Array>| {
        let (got, want) = (call(name, &[&x], attributes), want.unwrap());
        assert_eq!((got.shape(), got.dtype()), (want.shape(), want.dtype()), "{name}");
        assert_eq!(
            got.astype(Dtype::Float32).to_vec::<f32>().unwrap(),
            values(&want.astype(Dtype::Float32)),
            "{name}"
        );
    };
    same("exp", &[], x.exp());
    same("astype", &[("dtype", Dtype(self::Dtype::Int32))], Ok(x.astype(self::Dtype::Int32)));
    same("sum", &[], x.sum(None));
    same("sum", &[("axis", Int(1)), ("keepdims", Int(1))], x.sum(KeepDims(1)));
    same("mean", &[("axis", Ints(vec![0, 1]))], x.mean(None));
    same("max", &[("axis", Int(-1))], x.max(-1));
    same("all", &[("axis", Int(0))], x.all(0));
    same("argmax", &[("axis", Int(1))], x.argmax(Some(1)));
    same(
        "cumsum",
        &[("axis", Int(1)), ("reverse", Int(1)), ("inclusive", Int(0))],
        x.cumsum(Some(1), true, false),
    );
    same("softmax", &[("axis", Int(1)), ("precise", Int(1))], x.softmax(1, true));
    same("logsumexp", &[("axis", Int(0))], x.logsumexp(0));
    same("reshape", &[("shape", Ints(vec![3, -1]))], x.reshape(&[3isize, -1]));
    same("transpose", &[], x.transpose());
    same("transpose", &[("axes", Ints(vec![1, 0]))], x.transpose());
    same("moveaxis", &[("source", Int(0)), ("destination", Int(1))], x.moveaxis(0, 1));
    same("expand_dims", &[("axis", Int(0))], x.expand_dims([0]));
    same("broadcast_to", &[("shape", Ints(vec![4, 2, 3]))], x.broadcast_to(&[4, 2, 3]));
    same("sort", &[("axis", Int(0))], x.sort(Some(0)));
    same("argsort", &[], x.argsort(Some(-1)));
    same(
        "slice",
        &[("start", Ints(vec![0, 1])), ("stop", Ints(vec![2, 3]))],
        x.slice(&[0, 1], &[2, 3], &[1, 1]),
    );
    same(
        "pad",
        &[("pad_width", Int(1)), ("mode", text("edge"))],
        x.pad(&[(1, 1), (1, 1)], ultramarine::PadMode::Edge, Array::scalar(0.0f32)),
    );
    same("einsum", &[("subscripts", text("ij->ji"))], x.transpose());
    same("round", &[("decimals", Int(1))], x.round(1));
    same("full", &[("shape", Ints(vec![2, 3]))], Ok(x.clone()));
    same("nan_to_num", &[("nan", Float(1.0)), ("posinf", Int(2))], Ok(x.clone()));
    same("stop_gradient", &[], Ok(x.clone()));
    same("zeros_like", &[], Array::zeros(&[2, 3], self::Dtype::Float32));
    let y = x.transpose().unwrap();
    assert_eq!(values(&call("matmul", &[&x, &y], &[])), values(&x.matmul(&y).unwrap()));
    let two = Array::scalar(2.0f32);
    let yes = call("greater", &[&x, &two], &[]);
    assert_eq!(values(&call("where", &[&yes, &x, &two], &[])), [2.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(call("concatenate", &[&x, &x, &x], &[("axis", Int(1))]).shape(), [2, 9]);
    assert_eq!(call("stack", &[&x, &x], &[("axis", Int(2))]).shape(), [2, 3, 2]);
    let at = Array::from_slice(&[1i32, 0], &[2]).unwrap();
    assert_eq!(values(&call("take", &[&x, &at], &[("axis", Int(0))]))[..2], [4.0, 5.0]);
    let three = [("start", Int(3)), ("dtype", Dtype(self::Dtype::Int32))];
    assert_eq!(call("arange", &[], &three).to_vec::<i32>().unwrap(), [0, 1, 2]);
    let of = [("start", Int(1)), ("stop", Float(2.0)), ("step", Float(0.5))];
    assert_eq!(values(&call("arange", &[], &of)), [1.0, 1.5]);
    assert_eq!(values(&call("ones", &[], &[("shape", Ints(vec![2]))])), [1.0, 1.0]);
    assert_eq!(call("zeros", &[], &[("shape", Ints(vec![]))]).ndim(), 0);
    assert_eq!(values(&call("eye", &[], &[("n", Int(2))])), [1.0, 0.0, 0.0, 1.0]);
}

#[test]
fn operations_have_several_results() {
    let x = x();
    let all = call_at(
        "split",
        &[&x],
        &[("indices_or_sections", Int(3)), ("axis", Int(1))],
        3,
        std::ptr::null(),
    );
    assert_eq!(all.ok().unwrap()[2].to_vec::<f32>().unwrap(), [3.0, 6.0]);
    let error = fails("split", &[&x], &[("indices_or_sections", Int(3)), ("axis", Int(1))]);
    assert_eq!(error, "[split] The operation has 3 results, not 1. Pass room for each.");
    let all = call_at("divmod", &[&x, &x], &[], 2, std::ptr::null()).ok().unwrap();
    assert_eq!(all[1].to_vec::<f32>().unwrap(), [0.0; 6]);
}

#[test]
fn wrong_attributes_are_errors_that_say_what_there_are() {
    let x = x();
    let error = fails("sum", &[&x], &[("axes", Int(0))]);
    assert_eq!(
        error,
        "[sum] There is no attribute `axes`; it takes axis (integers; all), keepdims (flag; 0)."
    );
    let error = fails("sum", &[&x], &[("axis", Float(1.0))]);
    assert!(
        error.starts_with("[sum] Attribute `axis` is not of kind number; it takes axis"),
        "{error}"
    );
    let error = fails("sum", &[&x], &[("keepdims", Int(2))]);
    assert!(error.contains("Attribute `keepdims`"), "{error}");
    let error = fails("astype", &[&x], &[]);
    assert_eq!(error, "[astype] Attribute `dtype` is missing; it takes dtype (dtype).");
    let error = fails("exp", &[&x], &[("axis", Int(0))]);
    assert_eq!(error, "[exp] There is no attribute `axis`; it takes none.");
    let error = fails("sum", &[&x], &[("axis", Int(0)), ("axis", Int(1))]);
    assert!(error.contains("given twice"), "{error}");
    let error = fails("sum", &[&x, &x], &[]);
    assert_eq!(error, "[sum] Expected 1 operands, got 2. Pass as many as the operation has.");
    assert!(
        fails("summ", &[&x], &[]).contains("There is no operation of this name; there are sum")
    );
    // The operation's own.
    assert!(fails("sum", &[&x], &[("axis", Int(7))]).contains("axis 7"));
    assert!(fails("reshape", &[&x], &[("shape", Ints(vec![4]))]).contains("[reshape]"));
    assert!(fails("zeros", &[], &[("shape", Ints(vec![-1]))]).contains("negative"));
}

#[test]
fn the_page_has_every_operation() {
    let page = operations();
    assert!(
        page.contains("| `sum` | 1 | `axis` (integers; all), `keepdims` (flag; 0) |"),
        "{page}"
    );
    assert!(page.contains("| `concatenate` | 1 or more | `axis` (integer; 0) |"), "{page}");
    assert!(page.lines().count() > 120);
}

#[test]
fn places() {
    let stream = new_stream(Device::CPU).unwrap();
    let code = place_of(stream);
    assert_eq!(stream_of(&code).unwrap(), Some(stream));
    let all = call_at("exp", &[&x()], &[], 1, &code).ok().unwrap();
    assert_eq!(all[0].stream(), stream);
    let device = ext::PlaceCode { kind: ext::place::DEVICE, ..code };
    let all = call_at("exp", &[&x()], &[], 1, &device).ok().unwrap();
    assert_eq!(all[0].stream(), default_stream(Device::CPU).unwrap());
    for wrong in [
        ext::PlaceCode { stream_index: 99999, ..code },
        ext::PlaceCode { device_type: 9, ..code },
        ext::PlaceCode { kind: 9, ..code },
        ext::PlaceCode { device_type: ext::place::GPU, device_index: 77, ..device },
        ext::PlaceCode { device_index: 1 << 20, ..device },
        ext::PlaceCode { size: 4, ..code },
    ] {
        let outcome = call_at("exp", &[&x()], &[], 1, &wrong);
        assert!(matches!(outcome, Err(Answer::Error(Error::Value(_)))), "{wrong:?}");
    }
    let mut answer = ext::PlaceCode { kind: 9, ..code };
    let y = with_stream(stream, || x().exp().unwrap());
    let array_place = host_table().array_place.unwrap();
    assert_eq!(unsafe { array_place(NONE, borrow_handle(&y), &mut answer) }, status::OK);
    assert_eq!(answer, code);
}

#[test]
fn handles_live_as_long_as_they_are_held() {
    let table = host_table();
    let (retain, release) = (table.array_retain.unwrap(), table.array_release.unwrap());
    let x = x();
    let own = unsafe { retain(NONE, borrow_handle(&x)) };
    drop(x);
    let mut of = tensor_type(&[], Dtype::Bool);
    assert_eq!(unsafe { (table.array_type.unwrap())(NONE, own, &mut of) }, status::OK);
    assert_eq!((of.ndim, &of.shape[..2], of.dtype), (2, &[2, 3][..], Dtype::Float32.to_dl()));
    let mut view: ext::View = unsafe { std::mem::zeroed() };
    view.size = size_of::<ext::View>() as u32;
    let mut error = std::ptr::null_mut();
    let code = unsafe { (table.array_view.unwrap())(NONE, own, &mut view, &mut error) };
    assert!(outcome(code, error).is_ok());
    assert_eq!((view.elements, view.ndim), (6, 2));
    assert_eq!(super::raw::elements::<f32>(&view), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    unsafe { release(NONE, own) };
}

#[test]
fn arrays_are_made_of_bytes_and_values() {
    let table = host_table();
    let (bytes, full) = (table.array_from_bytes.unwrap(), table.array_full.unwrap());
    let data = [1.5f32, -2.0];
    let made = |of: &ext::TensorType, n: u64| {
        let (mut to, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
        let at = data.as_ptr() as *const c_void;
        let code = unsafe { bytes(NONE, of, at, n, &mut to, &mut error) };
        outcome(code, error).map(|()| unsafe { take_handle(to) })
    };
    let two = tensor_type(&[2], Dtype::Float32);
    assert_eq!(values(&made(&two, 8).ok().unwrap()), data);
    assert!(matches!(made(&two, 4), Err(Answer::Error(Error::Value(_)))));
    assert!(matches!(made(&tensor_type(&[3], Dtype::Float32), 8), Err(Answer::Error(_))));
    let filled = |of: &ext::TensorType, bits: [u64; 2]| {
        let (mut to, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
        let code = unsafe { full(NONE, of, bits.as_ptr(), &mut to, &mut error) };
        outcome(code, error).map(|()| unsafe { take_handle(to) })
    };
    let y = filled(&two, [2.5f32.to_bits() as u64, 0]).ok().unwrap();
    assert_eq!(values(&y), [2.5, 2.5]);
    let z = filled(&tensor_type(&[], Dtype::Int64), [-3i64 as u64, 0]).ok().unwrap();
    assert_eq!(z.item::<i64>().unwrap(), -3);
    assert!(filled(&tensor_type(&[1 << 40, 1 << 40], Dtype::Int8), [0; 2]).is_err());
}

#[test]
fn dtypes() {
    let table = host_table();
    let promote = |a: DLDataType, b: DLDataType| {
        let (mut to, mut error) = (a, std::ptr::null_mut());
        let code = unsafe { (table.promote_types.unwrap())(NONE, a, b, &mut to, &mut error) };
        outcome(code, error).map(|()| Dtype::from_dl(to).unwrap())
    };
    let (half, brain) = (Dtype::Float16.to_dl(), Dtype::Bfloat16.to_dl());
    assert_eq!(promote(half, brain).ok(), Some(Dtype::Float32));
    assert!(promote(half, DLDataType { lanes: 2, ..half }).is_err());
    let is =
        |d: Dtype, c: &CStr| unsafe { (table.issubdtype.unwrap())(NONE, d.to_dl(), c.as_ptr()) };
    assert_eq!(is(Dtype::Float16, c"floating"), 1);
    assert_eq!(is(Dtype::Complex64, c"floating"), 0);
    assert_eq!(is(Dtype::Complex64, c"inexact"), 1);
    assert_eq!(is(Dtype::Int8, c"int8"), 1);
    assert_eq!(is(Dtype::Int8, c"uint8"), 0);
    assert_eq!(is(Dtype::Int8, c"integral"), -1);
    let types = [tensor_type(&[2, 1], Dtype::Float16), tensor_type(&[3], Dtype::Int32)];
    let broadcast = |types: &[ext::TensorType]| {
        let (mut to, mut error) = (tensor_type(&[], Dtype::Bool), std::ptr::null_mut());
        let n = types.len() as u32;
        let ask = table.broadcast_types.unwrap();
        let code = unsafe { ask(NONE, types.as_ptr(), n, &mut to, &mut error) };
        outcome(code, error).map(|()| to)
    };
    let to = broadcast(&types).ok().unwrap();
    assert_eq!((to.ndim, &to.shape[..2], to.dtype), (2, &[2, 3][..], half));
    assert!(broadcast(&[types[1], tensor_type(&[2], Dtype::Int32)]).is_err());
    assert!(broadcast(&[]).is_err());
}

#[test]
fn arrays_are_broadcast() {
    let (a, b) = (x(), Array::scalar(1i32));
    let handles = [borrow_handle(&a), borrow_handle(&b)];
    let mut to = [std::ptr::null_mut(); 2];
    let mut error = std::ptr::null_mut();
    let broadcast = host_table().broadcast_arrays.unwrap();
    let code = unsafe { broadcast(NONE, handles.as_ptr(), 2, to.as_mut_ptr(), &mut error) };
    assert!(outcome(code, error).is_ok());
    let all = to.map(|h| unsafe { take_handle(h) });
    assert_eq!((all[0].shape(), all[1].shape()), (&[2, 3][..], &[2, 3][..]));
    assert_eq!(all[1].to_vec::<i32>().unwrap(), [1; 6]);
    unsafe { host_table().array_release.unwrap()(NONE, own_handle(b)) };
}

#[test]
fn loops_run_every_index_once() {
    static SUM: AtomicU64 = AtomicU64::new(0);
    unsafe extern "C" fn body(context: *mut c_void, i: u64) {
        assert_eq!(context as usize, 42);
        SUM.fetch_add(i, Ordering::Relaxed);
    }
    unsafe { (host_table().parallel_for.unwrap())(NONE, 1001, body, 42 as *mut c_void) };
    assert_eq!(SUM.load(Ordering::Relaxed), 1000 * 1001 / 2);
    assert!(unsafe { (host_table().thread_count.unwrap())(NONE) } >= 1);
}

#[test]
fn errors_carry_status_and_text() {
    let table = host_table();
    let make = |code, text: &str| unsafe {
        (table.error_new.unwrap())(NONE, code, text.as_ptr().cast(), text.len() as u64)
    };
    for (code, kind) in [(status::INVALID, 0), (status::OUT_OF_MEMORY, 1), (status::ERROR, 2)] {
        let error = make(code, "what");
        let mut n = 0;
        assert_eq!(unsafe { (table.error_code.unwrap())(NONE, error) }, code);
        let text = unsafe { (table.error_text.unwrap())(NONE, error, &mut n) };
        let text = unsafe { std::slice::from_raw_parts(text as *const u8, n as usize) };
        assert_eq!(text, b"what");
        let error = unsafe { ultramarine::extension::take_error(error) };
        assert!(match kind {
            0 => matches!(error, Error::Value(_)),
            1 => matches!(error, Error::Memory(_)),
            _ => matches!(error, Error::Runtime(_)),
        });
    }
    unsafe { (table.error_free.unwrap())(NONE, make(status::ERROR, "")) };
}
