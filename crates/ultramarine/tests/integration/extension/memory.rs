//! Memory of outputs: allocated, taken, shared; tasks behind the call; outputs that are left unwritten.

use super::raw::{Answer, Call, Outcome, Table, elements, outcome, poisoned, write, wrong};
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use ultramarine::extension::{host_table, set_poison};
use ultramarine::{Array, Dtype, Result};
use ultramarine_abi::{self as abi, Status, extension as ext, status};
use ultramarine_test_support::own_process;

fn x() -> Array {
    Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).unwrap()
}

fn blank() -> ext::View {
    let mut view: ext::View = unsafe { std::mem::zeroed() };
    view.size = size_of::<ext::View>() as u32;
    view
}

fn allocate(call: &Call, output: u32, strides: Option<&[i64]>) -> Outcome<ext::View> {
    let mut view = blank();
    let at = strides.map_or(std::ptr::null(), <[i64]>::as_ptr);
    call.ask(|c, e| unsafe { (host_table().allocate.unwrap())(c, output, at, &mut view, e) })?;
    Ok(view)
}

fn take(call: &Call, output: u32, input: u32) -> Outcome<ext::View> {
    let mut view = blank();
    call.ask(|c, e| unsafe { (host_table().take.unwrap())(c, output, input, &mut view, e) })?;
    Ok(view)
}

fn share(call: &Call, output: u32, input: u32, offset: i64, strides: &[i64]) -> Outcome {
    call.ask(|c, e| unsafe {
        (host_table().share.unwrap())(c, output, input, offset, strides.as_ptr(), e)
    })
}

fn text(outcome: Result<()>) -> String {
    outcome.unwrap_err().to_string()
}

#[test]
fn an_output_may_lie_in_any_order_of_its_axes() {
    own_process!();
    let y = Table::new("column").allocates().eval(|call| {
        assert!(call.output(0).data.is_null());
        let view = allocate(call, 0, Some(&[1, 2]))?;
        assert_eq!((view.data, view.elements), (call.output(0).data, 6));
        assert_eq!(view.flags & ext::view::ROW_CONTIGUOUS, 0);
        (0..6).for_each(|i| unsafe { (view.data as *mut f32).add(i).write(i as f32) });
        Ok(())
    });
    let y = y.one(&[x()]).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
    assert_eq!(&y.value().unwrap().strides[..], &[1, 2]);
}

#[test]
fn strides_with_gaps_and_memory_twice_are_errors() {
    own_process!();
    let failing = |f: fn(&Call) -> Outcome| {
        text(Table::new("bad").allocates().eval(f).one(&[x()]).unwrap().eval())
    };
    for strides in [&[4i64, 1][..], &[3, 2], &[-3, 1], &[0, 1], &[3, 3]] {
        let strides = strides.to_vec();
        let y =
            Table::new("bad").allocates().eval(move |c| allocate(c, 0, Some(&strides)).map(drop));
        let error = text(y.one(&[x()]).unwrap().eval());
        assert!(error.contains("[bad] allocate: strides") && error.contains("(2, 3)"), "{error}");
    }
    let twice = failing(|c| {
        allocate(c, 0, None)?;
        allocate(c, 0, None).map(drop)
    });
    assert!(twice.contains("[bad] allocate: output 0 has memory already"), "{twice}");
    let no_such = failing(|c| allocate(c, 3, None).map(drop));
    assert!(no_such.contains("there is no output 3"), "{no_such}");
    let never = failing(|_| Ok(()));
    assert_eq!(never, "[bad] eval_cpu gave output 0 no memory. Call allocate or share for it.");
    let y = Table::new("bad").eval(|c| allocate(c, 0, None).map(drop)).one(&[x()]).unwrap();
    let error = text(y.eval());
    assert!(error.contains("UM_PRIMITIVE_ALLOCATES"), "{error}");
}

/// Takes input 0, and adds one.
fn taking(took: Arc<AtomicUsize>) -> Table {
    Table::new("taking").allocates().eval(move |call| {
        let may = call.input(0).flags & ext::view::MAY_TAKE != 0;
        let view = match take(call, 0, 0) {
            Ok(view) => {
                assert!(may);
                assert_eq!(view.data, call.input(0).data);
                took.fetch_add(1, Ordering::SeqCst);
                view
            }
            Err(Answer::Unsupported) => {
                assert!(!may);
                allocate(call, 0, None)?
            }
            Err(other) => return Err(other),
        };
        let values: Vec<f32> = elements(&call.input(0));
        write(&view, values.iter().map(|x| x + 1.0));
        Ok(())
    })
}

#[test]
fn only_unshared_memory_is_taken() {
    own_process!();
    // The environment may ask for poison.
    set_poison(false);
    let took = Arc::new(AtomicUsize::new(0));
    // An intermediate of the graph.
    let y = taking(took.clone()).one(&[x().exp().unwrap().log().unwrap()]).unwrap();
    assert!((y.to_vec::<f32>().unwrap()[5] - 7.0).abs() < 1e-4);
    assert_eq!(took.load(Ordering::SeqCst), 1);
    // An array that somebody holds.
    let held = (&x() * 2.0).unwrap();
    let y = taking(took.clone()).one(std::slice::from_ref(&held)).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap()[0], 3.0);
    assert_eq!(held.to_vec::<f32>().unwrap()[0], 2.0);
    // A view, the same operand twice, another size.
    let part = x().exp().unwrap().slice(&[0, 0], &[2, 2], &[1, 1]).unwrap();
    taking(took.clone()).one(&[part]).unwrap().eval().unwrap();
    let both = x().exp().unwrap();
    let twice = [both.clone(), both];
    let y = taking(took.clone()).one(&twice).unwrap();
    drop(twice);
    y.eval().unwrap();
    assert_eq!(took.load(Ordering::SeqCst), 1);
    // Not under poison, which has to be able to run again.
    set_poison(true);
    let outcome = taking(took.clone()).one(&[x().exp().unwrap()]).unwrap().eval();
    set_poison(false);
    outcome.unwrap();
    assert_eq!(took.load(Ordering::SeqCst), 1);
}

#[test]
fn unsupported_after_a_take_is_an_error() {
    own_process!();
    let y = Table::new("bad")
        .allocates()
        .eval(|call| take(call, 0, 0).and(Err(Answer::Unsupported)))
        .compose(|x| Ok(vec![Some(x[0].clone())]));
    // In a statement of its own: nobody holds the operand any more.
    let y = y.one(&[x().exp().unwrap()]).unwrap();
    let error = text(y.eval());
    assert!(error.contains("[bad] eval_cpu took an input's memory"), "{error}");
}

#[test]
fn an_output_may_be_a_view() {
    own_process!();
    let y = Table::new("turned")
        .giving(&[(&[3, 2], Dtype::Float32), (&[2, 2], Dtype::Float32)])
        .allocates()
        .eval(|call| {
            let view = call.input(0);
            let s = unsafe { std::slice::from_raw_parts(view.strides, 2) };
            // The transpose, backwards; and a column twice.
            share(call, 0, 0, s[0] + 2 * s[1], &[-s[1], -s[0]])?;
            share(call, 1, 0, s[1], &[s[0], 0])
        });
    let y = y.apply(&[x()]).unwrap();
    assert_eq!(y[0].to_vec::<f32>().unwrap(), [6.0, 3.0, 5.0, 2.0, 4.0, 1.0]);
    assert_eq!(y[1].to_vec::<f32>().unwrap(), [2.0, 2.0, 5.0, 5.0]);
    for (offset, strides) in [
        (1, [3i64, 1]),
        (-1, [3, 1]),
        (0, [4, 1]),
        (0, [3, -1]),
        (i64::MAX, [3, 1]),
        (0, [i64::MAX, 1]),
    ] {
        let y = Table::new("bad").allocates().eval(move |c| share(c, 0, 0, offset, &strides));
        let error = text(y.one(&[x()]).unwrap().eval());
        assert!(
            error.contains("[bad] share: ") && error.contains("reaches outside input 0"),
            "{error}"
        );
    }
    let of = Table::new("bad").giving(&[(&[2, 3], Dtype::Int32)]).allocates();
    let error = text(of.eval(|c| share(c, 0, 0, 0, &[3, 1])).one(&[x()]).unwrap().eval());
    assert!(error.contains("output 0 is int32, input 0 is float32"), "{error}");
}

/// What tasks write down.
struct Note {
    log: Arc<Mutex<Vec<String>>>,
    name: &'static str,
    fails: bool,
    output: usize,
}

unsafe extern "C" fn run(context: *mut c_void, error: *mut *mut abi::Error) -> Status {
    let note = unsafe { &*(context as *const Note) };
    note.log.lock().unwrap().push(format!("run {}", note.name));
    if note.fails {
        let text = "the task failed";
        unsafe {
            let make = host_table().error_new.unwrap();
            *error = make(
                std::ptr::null_mut(),
                status::INVALID,
                text.as_ptr().cast(),
                text.len() as u64,
            );
        }
        return status::INVALID;
    }
    if note.output != 0 {
        unsafe { *(note.output as *mut f32) += 1.0 };
    }
    status::OK
}

unsafe extern "C" fn end(context: *mut c_void) {
    let note = unsafe { Box::from_raw(context as *mut Note) };
    note.log.lock().unwrap().push(format!("drop {}", note.name));
}

fn enqueue(call: &Call, note: Note) -> Outcome {
    let context = Box::into_raw(Box::new(note)) as *mut c_void;
    call.ask(|c, e| unsafe { (host_table().enqueue.unwrap())(c, run, Some(end), context, e) })
}

fn tasks(fails: Option<&'static str>, end: fn() -> Outcome) -> (Arc<Mutex<Vec<String>>>, Array) {
    let log = Arc::<Mutex<Vec<String>>>::default();
    let own = log.clone();
    let y = Table::new("bad").giving(&[(&[], Dtype::Float32)]).eval(move |call| {
        write(&call.output(0), [0.0f32]);
        let output = call.output(0).data as usize;
        for name in ["a", "b", "c"] {
            enqueue(call, Note { log: own.clone(), name, fails: fails == Some(name), output })?;
        }
        own.lock().unwrap().push("called".into());
        end()
    });
    (log, y.one(&[x()]).unwrap())
}

#[test]
fn tasks_run_in_order_behind_the_call() {
    own_process!();
    let (log, y) = tasks(None, || Ok(()));
    // Whoever needs the output comes after them.
    assert_eq!((&y * 2.0).unwrap().item::<f32>().unwrap(), 6.0);
    let want = ["called", "run a", "drop a", "run b", "drop b", "run c", "drop c"];
    assert_eq!(*log.lock().unwrap(), want);
}

#[test]
fn contexts_of_tasks_are_dropped_whatever_happens() {
    own_process!();
    let (log, y) = tasks(Some("b"), || Ok(()));
    assert_eq!(text(y.eval()), "[bad] the task failed");
    assert_eq!(*log.lock().unwrap(), ["called", "run a", "drop a", "run b", "drop b", "drop c"]);
    let (log, y) = tasks(None, || wrong("no."));
    assert_eq!(text(y.eval()), "[bad] no.");
    assert_eq!(*log.lock().unwrap(), ["called", "drop a", "drop b", "drop c"]);
    let (log, y) = tasks(None, || Err(Answer::Unsupported));
    y.eval().unwrap_err();
    assert_eq!(*log.lock().unwrap(), ["called", "drop a", "drop b", "drop c"]);
    // Where there is no call.
    let log = Arc::<Mutex<Vec<String>>>::default();
    let note = Note { log: log.clone(), name: "d", fails: false, output: 0 };
    let context = Box::into_raw(Box::new(note)) as *mut c_void;
    let mut error = std::ptr::null_mut();
    let none = std::ptr::null_mut();
    let code =
        unsafe { (host_table().enqueue.unwrap())(none, run, Some(end), context, &mut error) };
    assert!(matches!(outcome(code, error), Err(Answer::Error(_))));
    assert_eq!(*log.lock().unwrap(), ["drop d"]);
}

#[test]
fn unwritten_elements_are_found() {
    own_process!();
    let lazy = |n: usize| {
        Table::new("lazy").eval(move |c| {
            write(&c.output(0), elements::<f32>(&c.input(0)).into_iter().take(n));
            Ok(())
        })
    };
    let error = poisoned(lazy(4), &[x()]).unwrap_err().to_string();
    assert_eq!(error, "[lazy] left 2 of 6 elements of output 0 unwritten. Write every element.");
    poisoned(lazy(6), &[x()]).unwrap();
    let second = Table::new("lazy")
        .giving(&[(&[2], Dtype::Uint8), (&[], Dtype::Bool), (&[0], Dtype::Int8)])
        .eval(|c| {
            write(&c.output(0), [1u8, 2]);
            Ok(())
        });
    let error = poisoned(second, &[x()]).unwrap_err().to_string();
    assert_eq!(error, "[lazy] left 1 of 1 elements of output 1 unwritten. Write every element.");
    // Nobody is accused for what happens to look like the pattern, whatever that is.
    let all = Table::new("all").giving(&[(&[256], Dtype::Uint8)]).eval(|c| {
        write(&c.output(0), 0..=255u8);
        Ok(())
    });
    let y = poisoned(all, &[x()]).unwrap();
    assert_eq!(y[0].to_vec::<u8>().unwrap(), (0..=255).collect::<Vec<u8>>());
    // Also of what it allocates itself; a view of an input is nobody's to write.
    let own = Table::new("own").allocates().eval(|c| allocate(c, 0, Some(&[1, 2])).map(drop));
    let error = poisoned(own, &[x()]).unwrap_err().to_string();
    assert_eq!(error, "[own] left 6 of 6 elements of output 0 unwritten. Write every element.");
    let view = Table::new("view").allocates().eval(|c| share(c, 0, 0, 0, &[3, 1]));
    assert_eq!(poisoned(view, &[x()]).unwrap()[0].to_vec::<f32>().unwrap()[5], 6.0);
}

#[test]
fn tasks_write_before_poison_looks() {
    own_process!();
    let table = Table::new("late").giving(&[(&[], Dtype::Float32)]).eval(|call| {
        unsafe extern "C" fn set(context: *mut c_void, _: *mut *mut abi::Error) -> Status {
            unsafe { *(context as *mut f32) = 7.0 };
            status::OK
        }
        let data = call.output(0).data;
        call.ask(|c, e| unsafe { (host_table().enqueue.unwrap())(c, set, None, data, e) })
    });
    assert_eq!(poisoned(table, &[x()]).unwrap()[0].item::<f32>().unwrap(), 7.0);
}

#[test]
fn empty_outputs_are_not_evaluated() {
    own_process!();
    let never = |c: &Call| -> Outcome { panic!("called with {} inputs", c.0.n_inputs) };
    let y = Table::new("empty").giving(&[(&[0, 4], Dtype::Float32), (&[3, 0], Dtype::Int8)]);
    let y = y.eval(never).apply(&[x()]).unwrap();
    assert!(y[0].to_vec::<f32>().unwrap().is_empty());
    assert!(y[1].to_vec::<i8>().unwrap().is_empty());
    // Beside one that is not empty they need no memory of the primitive's.
    let y = Table::new("half").giving(&[(&[0], Dtype::Float32), (&[], Dtype::Int8)]).allocates();
    let y = y.eval(|c| allocate(c, 1, None).map(|v| write(&v, [3i8]))).apply(&[]).unwrap();
    assert_eq!((y[1].item::<i8>().unwrap(), y[0].to_vec::<f32>().unwrap()), (3, vec![]));
}
