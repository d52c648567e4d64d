//! Primitives that misbehave: each mistake is an error that names the primitive and, where one is to blame, the rule;
//! the context is released once, whatever happens.

use super::raw::{
    Answer, Call, Outcome, Table, elements, outcome, released_once, tensor_type, write, wrong,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine::extension::{borrow_handle, host_table};
use ultramarine::transforms::{grad, jvp, vjp, vmap};
use ultramarine::{Array, Dtype, Error, Result};
use ultramarine_abi::{MAX_NDIM, dlpack::DLDataType, extension as ext, status};

fn x() -> Array {
    Array::from_slice(&[1.0f32, 2.0, 3.0], &[3]).unwrap()
}

fn negate(call: &Call) -> Outcome {
    write(&call.output(0), elements::<f32>(&call.input(0)).iter().map(|x| -x));
    Ok(())
}

fn bad() -> Table {
    Table::new("bad").eval(negate)
}

/// The text of a failure; that it is a value error, and names the primitive.
fn text<T>(outcome: Result<T>) -> String {
    let Err(error) = outcome else { panic!("it succeeded") };
    assert!(matches!(error.root(), Error::Value(_)), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("bad"), "{text}");
    text
}

#[track_caller]
fn says<T>(outcome: Result<T>, part: &str) {
    let text = text(outcome);
    assert!(text.contains(part), "{text}");
}

/// Applies a table and checks that its context is released once.
fn refused(table: Table, spoil: impl FnOnce(&mut ext::Primitive)) -> Result<Vec<Array>> {
    let released = table.released.clone();
    let outcome = table.apply_with(&[x()], spoil);
    released_once(&released);
    outcome
}

#[test]
fn results_of_infer_are_validated() {
    let with = |f: fn(&mut ext::TensorType)| {
        let mut table = bad();
        table.infer = Some(Box::new(move |inputs, outputs| {
            outputs[0] = inputs[0];
            f(&mut outputs[0]);
            Ok(())
        }));
        refused(table, |_| {})
    };
    says(with(|o| o.ndim = -1), "infer's output 0 has -1 dimensions");
    says(with(|o| o.ndim = MAX_NDIM as i32 + 1), "has 33 dimensions. Use 0 to 32.");
    says(with(|o| o.shape[0] = -3), "negative size: [-3]");
    says(with(|o| o.shape[0] = i64::MAX), "too large");
    let huge = |o: &mut ext::TensorType| {
        o.ndim = 3;
        o.shape[..3].copy_from_slice(&[1 << 31, 1 << 31, 1 << 31]);
    };
    says(with(huge), "too large");
    says(with(|o| o.dtype = DLDataType { code: 77, bits: 32, lanes: 1 }), "no dtype of code 77");
    says(with(|o| o.dtype.lanes = 4), "4 lanes");
    let mut unset = bad();
    unset.infer = Some(Box::new(|_, _| Ok(())));
    says(refused(unset, |_| {}), "infer left output 0 unset");
    let mut own = bad();
    own.infer = Some(Box::new(|_, _| wrong("alpha must be finite.")));
    assert_eq!(text(refused(own, |_| {})), "[bad] alpha must be finite.");
    let mut mute = bad();
    mute.infer = Some(Box::new(|_, _| Err(Answer::Mute(status::ERROR))));
    let error = refused(mute, |_| {}).unwrap_err().to_string();
    assert_eq!(
        error,
        "[bad] infer failed with status 1 and no message. Report it to the author of the extension."
    );
}

#[test]
fn tables_are_validated() {
    let none = || Table::new("bad");
    says(refused(none(), |_| {}), "neither eval_cpu, eval_gpu nor compose");
    says(refused(bad(), |p| p.infer = None), "has no infer");
    says(refused(bad(), |p| p.n_outputs = 0), "has 0 outputs. Give it 1 to 4096.");
    says(refused(bad(), |p| p.n_outputs = u32::MAX), "outputs");
    let error = refused(bad(), |p| p.name = std::ptr::null()).unwrap_err().to_string();
    assert_eq!(error, "[apply] The pointer to the primitive's name is NULL. Pass a string.");
    let error = refused(bad(), |p| p.name = c"".as_ptr()).unwrap_err().to_string();
    assert_eq!(error, "[apply] The primitive has no name. Set `name`.");
    let error = refused(bad(), |p| p.name = c"\xff".as_ptr()).unwrap_err().to_string();
    assert_eq!(error, "[apply] the primitive's name is not UTF-8. Pass UTF-8.");
    let error = refused(bad(), |p| {
        p.attributes = std::ptr::null();
        p.attribute_bytes = 8;
    });
    assert!(error.unwrap_err().to_string().contains("attributes"));
}

#[test]
fn a_short_table_is_not_read() {
    let table = bad();
    let released = table.released.clone();
    let mut context = std::ptr::null_mut();
    let error = table.apply_with(&[x()], |p| {
        p.size = 24;
        context = p.context;
    });
    let error = error.unwrap_err().to_string();
    assert_eq!(
        error,
        "[apply] um_primitive has size 24, which must be at least 128. Set its field `size` to sizeof the struct."
    );
    // Where the context would be is not believed either.
    assert_eq!(released.load(Ordering::SeqCst), 0);
    drop(unsafe { Box::from_raw(context as *mut Table) });
}

#[test]
fn operands_that_are_none_are_errors() {
    let apply = host_table().apply.unwrap();
    let lone = x();
    for (handles, n) in [(vec![borrow_handle(&lone), std::ptr::null_mut()], 2), (vec![], 3)] {
        let table = bad();
        let released = table.released.clone();
        let mut code = status::OK;
        let mut error = std::ptr::null_mut();
        let outcome_ = table.apply_with(&[x()], |p| {
            let mut out = [std::ptr::null_mut()];
            let at = if handles.is_empty() { std::ptr::null() } else { handles.as_ptr() };
            let (none, place) = (std::ptr::null_mut(), std::ptr::null());
            code = unsafe { apply(none, p, at, n, place, out.as_mut_ptr(), &mut error) };
            // It is released already, and not to be used again.
            (p.release, p.name) = (None, std::ptr::null());
        });
        drop(outcome_);
        released_once(&released);
        let Err(Answer::Error(error)) = outcome(code, error) else { panic!("no error") };
        let text = error.to_string();
        assert!(text.starts_with("[bad] ") && text.contains(" NULL"), "{text}");
    }
}

#[test]
fn an_error_of_an_evaluation_reaches_all_waiters() {
    let table = Table::new("bad").eval(|_| wrong("it is too late."));
    let released = table.released.clone();
    let y = table.one(&[x()]).unwrap();
    assert_eq!(text(y.eval()), "[bad] it is too late.");
    // And whoever needs it.
    let z = (&y + 1.0).unwrap();
    says(z.eval(), "it is too late");
    drop((y, z));
    released_once(&released);
    let mute = Table::new("bad").eval(|_| Err(Answer::Mute(77))).one(&[x()]).unwrap();
    let error = mute.eval().unwrap_err().to_string();
    assert_eq!(
        error,
        "[bad] eval_cpu failed with status 77 and no message. Report it to the author of the extension."
    );
}

#[test]
fn an_operation_without_kernel_and_compose_is_an_error() {
    let y = Table::new("bad").gpu(negate).one(&[x()]).unwrap();
    let error = y.eval().unwrap_err().to_string();
    assert_eq!(
        error,
        "[bad] It cannot run on the CPU: it has no eval_cpu, and there is no compose. Convert the operands, or run it on a device that it supports."
    );
    let y = Table::new("bad").eval(|_| Err(Answer::Unsupported)).one(&[x()]).unwrap();
    let error = y.eval().unwrap_err().to_string();
    assert!(
        error.contains("eval_cpu does not support (float32), and there is no compose"),
        "{error}"
    );
}

#[test]
fn missing_rules_are_errors_that_name_both() {
    let f = |x: &[Array]| Ok::<_, Error>(vec![bad().one(&[x[0].clone()])?]);
    says(vjp(f, &[x()], &[x()]), "[vjp] bad has no vjp rule, and no compose");
    says(jvp(f, &[x()], &[x()]), "[jvp] bad has no jvp rule, and no compose");
    says(vmap(f, &[x()], [Some(0)], 0), "[vmap] bad has no vmap rule, and no");
}

#[test]
fn results_of_rules_are_validated() {
    let four = || Array::zeros(&[4], Dtype::Float32).unwrap();
    let g = |make: fn(Table) -> Table| {
        move |x: &[Array]| Ok::<_, Error>(vec![make(bad()).one(&[x[0].clone()])?])
    };
    let shape = |outcome: Result<(Vec<Array>, Vec<Array>)>, part| says(outcome, part);
    let ones = || Array::ones(&[4], Dtype::Float32);
    shape(
        vjp(
            g(|t| t.vjp(|_, _, _, _| Ok(vec![Some(Array::ones(&[4], Dtype::Float32)?)]))),
            &[x()],
            &[x()],
        ),
        "[bad] vjp returned an array of shape (4,) for input 0, whose shape is (3,)",
    );
    shape(
        jvp(
            g(|t| t.jvp(|_, _| Ok(vec![Some(Array::ones(&[4], Dtype::Float32)?)]))),
            &[x()],
            &[x()],
        ),
        "[bad] jvp returned an array of shape (4,) for output 0, whose shape is (3,)",
    );
    drop((four(), ones()));
    let mapped = |make: fn(Table) -> Table| {
        vmap(g(make), &[Array::ones(&[2, 3], Dtype::Float32).unwrap()], [Some(0)], 0)
    };
    says(mapped(|t| t.vmap(|x, _, _| Ok((vec![Some(x[0].clone())], vec![5])))), "no axis 5");
    says(mapped(|t| t.vmap(|x, _, _| Ok((vec![Some(x[0].clone())], vec![-7])))), "no axis -7");
    says(mapped(|t| t.vmap(|x, _, _| Ok((vec![Some(x[0].clone())], vec![1])))), "mapped axis 1");
    says(mapped(|t| t.vmap(|x, _, _| Ok((vec![Some(x[0].clone())], vec![])))), "no axis");
    says(
        mapped(|t| t.vmap(|x, _, _| Ok((vec![Some(x[0].astype(Dtype::Int32))], vec![0])))),
        "vmap returned int32",
    );
    says(
        mapped(|t| t.vmap(|_, _, _| Ok((vec![None], vec![0])))),
        "vmap returned NULL for output 0",
    );
    // Zero, where nothing is returned.
    let zero = vjp(g(|t| t.vjp(|_, _, _, _| Ok(vec![None]))), &[x()], &[x()]).unwrap().1;
    assert_eq!(zero[0].to_vec::<f32>().unwrap(), [0.0; 3]);
    let zero = jvp(g(|t| t.jvp(|_, _| Ok(vec![None]))), &[x()], &[x()]).unwrap().1;
    assert_eq!(zero[0].to_vec::<f32>().unwrap(), [0.0; 3]);
    // Another dtype is converted.
    let half = g(|t| t.vjp(|_, _, c, _| Ok(vec![c[0].as_ref().map(|c| c.astype(Dtype::Float16))])));
    assert_eq!(vjp(half, &[x()], &[x()]).unwrap().1[0].dtype(), Dtype::Float32);
    // Errors of rules.
    let failing = g(|t| t.vjp(|_, _, _, _| wrong("no derivative here.")));
    says(vjp(failing, &[x()], &[x()]), "[bad] no derivative here.");
}

#[test]
fn results_of_compose_are_validated() {
    let composing = |f: fn(&[Array]) -> Outcome<Vec<Option<Array>>>| {
        Table::new("bad").compose(f).one(&[x()]).unwrap().eval()
    };
    says(
        composing(|_| Ok(vec![Some(Array::ones(&[4], Dtype::Float32)?)])),
        "[bad] compose returned float32 of shape (4,) for output 0, which infer says is float32 of shape (3,)",
    );
    says(composing(|x| Ok(vec![Some(x[0].astype(Dtype::Int32))])), "compose returned int32");
    says(composing(|_| Ok(vec![None])), "compose returned NULL for output 0");
    says(composing(|_| wrong("no.")), "[bad] no.");
    says(composing(|x| Ok(vec![Some(x[0].reshape(&[7])?)])), "[bad] compose: [reshape]");
    // One that leads to itself.
    fn circle(x: &[Array]) -> Outcome<Vec<Option<Array>>> {
        Ok(vec![Some(Table::new("bad").compose(circle).one(x)?)])
    }
    let y = Table::new("bad").compose(circle).one(&[x()]).unwrap();
    let error = y.eval().unwrap_err().to_string();
    assert!(error.contains("[bad] compose calls itself"), "{error}");
    let f = |x: &Array| Table::new("bad").compose(circle).one(std::slice::from_ref(x))?.sum(None);
    let error = grad(f)(&x()).unwrap_err().to_string();
    assert!(error.contains("compose calls itself"), "{error}");
}

#[test]
fn a_handle_is_given_once_and_only_by_its_owner() {
    unsafe extern "C" fn borrowed(
        _: *mut std::ffi::c_void,
        inputs: *const *mut ext::ArrayHandle,
        _: u32,
        outputs: *mut *mut ext::ArrayHandle,
        _: *mut *mut ultramarine_abi::Error,
    ) -> ultramarine_abi::Status {
        unsafe { *outputs = *inputs };
        status::OK
    }
    let x = x();
    let y = Table::new("bad").compose(|_| wrong("unused"));
    let y = y.apply_with(std::slice::from_ref(&x), |p| p.compose = Some(borrowed)).unwrap();
    says(y[0].eval(), "compose returned a handle as result 0 that it does not own");
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
    unsafe extern "C" fn twice(
        _: *mut std::ffi::c_void,
        inputs: *const *mut ext::ArrayHandle,
        _: u32,
        outputs: *mut *mut ext::ArrayHandle,
        _: *mut *mut ultramarine_abi::Error,
    ) -> ultramarine_abi::Status {
        unsafe {
            *outputs = (host_table().array_retain.unwrap())(std::ptr::null_mut(), *inputs);
            *outputs.add(1) = *outputs;
        }
        status::OK
    }
    let three: (&[usize], Dtype) = (&[3], Dtype::Float32);
    let y = Table::new("bad").giving(&[three, three]).compose(|_| wrong("unused"));
    let y = y.apply_with(std::slice::from_ref(&x), |p| p.compose = Some(twice)).unwrap();
    says(y[0].eval(), "compose returned a handle as result 1");
}

#[test]
fn calls_are_the_threads_own() {
    let seen = Arc::new(AtomicUsize::new(0));
    let kept = seen.clone();
    let y = Table::new("bad").allocates().eval(move |call| {
        kept.store(call.0.host_call as usize, Ordering::SeqCst);
        call.ask(|c, e| unsafe {
            (host_table().allocate.unwrap())(c, 0, std::ptr::null(), std::ptr::null_mut(), e)
        })?;
        write(&call.output(0), [0.0f32; 3]);
        // From another thread.
        let here = call.0.host_call as usize;
        let code = std::thread::scope(|s| {
            s.spawn(|| unsafe {
                let (none, error) = (std::ptr::null_mut(), std::ptr::null_mut());
                (host_table().allocate.unwrap())(here as *mut _, 0, std::ptr::null(), none, error)
            })
            .join()
            .unwrap()
        });
        assert_eq!(code, status::INVALID);
        Ok(())
    });
    y.one(&[x()]).unwrap().eval().unwrap();
    // When it is over.
    let mut error = std::ptr::null_mut();
    let late = seen.load(Ordering::SeqCst) as *mut _;
    let code = unsafe {
        (host_table().allocate.unwrap())(
            late,
            0,
            std::ptr::null(),
            std::ptr::null_mut(),
            &mut error,
        )
    };
    let Err(Answer::Error(error)) = outcome(code, error) else { panic!("no error") };
    assert!(error.to_string().contains("host_call"), "{error}");
}

#[test]
fn arrays_are_not_computed_inside_of_an_evaluation() {
    let other = (&x() + 1.0).unwrap();
    let y = Table::new("bad").eval(move |_| {
        let handle = borrow_handle(&other);
        let mut error = std::ptr::null_mut();
        let code = unsafe {
            (host_table().array_eval.unwrap())(std::ptr::null_mut(), &handle, 1, &mut error)
        };
        outcome(code, error)
    });
    let error = y.one(&[x()]).unwrap().eval().unwrap_err().to_string();
    assert!(error.contains("during an evaluation"), "{error}");
}

#[test]
fn short_structs_are_not_filled() {
    let x = x();
    let mut of = tensor_type(&[7], Dtype::Int8);
    of.size = 16;
    let code = unsafe {
        (host_table().array_type.unwrap())(std::ptr::null_mut(), borrow_handle(&x), &mut of)
    };
    assert_eq!((code, of.shape[0]), (status::INVALID, 7));
    let none = std::ptr::null_mut();
    assert_eq!(
        unsafe { (host_table().array_type.unwrap())(none, std::ptr::null(), &mut of) },
        status::INVALID
    );
    assert!(unsafe { (host_table().array_retain.unwrap())(none, std::ptr::null()) }.is_null());
    unsafe { (host_table().array_release.unwrap())(none, std::ptr::null_mut()) };
    unsafe { (host_table().error_free.unwrap())(none, std::ptr::null_mut()) };
}
