//! Which primitives are the same: for compiled functions, and in what they show of themselves.

use super::raw::{Call, Outcome, Table, elements, write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine::transforms::compile;
use ultramarine::{Array, Error};
use ultramarine_abi::extension as ext;

fn x() -> Array {
    Array::from_slice(&[1.0f32, 2.0, 3.0], &[3]).unwrap()
}

/// The number of evaluations of a compiled function that applies two primitives to the same operand and adds them.
fn runs(make: impl Fn(usize) -> (Table, fn(&mut ext::Primitive)) + Send + Sync + 'static) -> usize {
    let count = Arc::new(AtomicUsize::new(0));
    let own = count.clone();
    let f = compile(move |inputs| {
        let one = |i: usize| {
            let (table, spoil) = make(i);
            let own = own.clone();
            let eval = move |call: &Call| -> Outcome {
                own.fetch_add(1, Ordering::SeqCst);
                write(&call.output(0), elements::<f32>(&call.input(0)).iter().map(|x| 2.0 * x));
                Ok(())
            };
            Ok::<_, Error>(table.eval(eval).apply_with(&inputs[..1], spoil)?.remove(0))
        };
        Ok(vec![one(0)?.add(&one(1)?)?])
    });
    let y = f.call(&[x()]).unwrap().remove(0);
    assert_eq!(y.to_vec::<f32>().unwrap(), [4.0, 8.0, 12.0]);
    count.load(Ordering::SeqCst)
}

fn like(i: usize, different: impl Fn(&mut Table, u8)) -> Table {
    let mut table = Table::new("same");
    different(&mut table, i as u8);
    table
}

#[test]
fn the_same_operation_runs_once() {
    assert_eq!(runs(|_| (Table::new("same"), |_| ())), 1);
    assert_eq!(runs(|i| (like(i, |t, _| t.attributes = vec![1, 2]), |_| ())), 1);
    assert_eq!(runs(|i| (like(i, |t, i| t.attributes = vec![i]), |_| ())), 2);
    assert_eq!(runs(|i| (like(i, |t, i| t.version = i as u32), |_| ())), 2);
    assert_eq!(runs(|i| (like(i, |t, i| t.name = ["a", "b"][i as usize]), |_| ())), 2);
    assert_eq!(runs(|i| (like(i, |t, i| t.print = Some(i.to_string())), |_| ())), 2);
    // Long ones differ in their last byte.
    let long = |i: usize| like(i, |t, i| t.attributes = [vec![7; 5000], vec![i]].concat());
    assert_eq!(runs(move |i| (long(i), |_| ())), 2);
}

#[test]
fn primitives_say_themselves_whether_they_are_the_same() {
    unsafe extern "C" fn never(_: *mut std::ffi::c_void, _: *mut std::ffi::c_void) -> i32 {
        0
    }
    unsafe extern "C" fn always(_: *mut std::ffi::c_void, _: *mut std::ffi::c_void) -> i32 {
        1
    }
    assert_eq!(runs(|_| (Table::new("same"), |p| p.equivalent = Some(never))), 2);
    assert_eq!(runs(|_| (Table::new("same"), |p| p.equivalent = Some(always))), 1);
}

#[test]
fn rules_may_be_printed_at_length() {
    let long = "p".repeat(1000);
    let mut table = Table::new("printed").compose(|x| Ok(vec![Some(x[0].clone())]));
    table.print = Some(long);
    let y = table.one(&[x()]).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
}

#[test]
fn shapeless_traces_infer_types_again() {
    let traced = Arc::new(AtomicUsize::new(0));
    let own = traced.clone();
    let f = compile(move |inputs| {
        own.fetch_add(1, Ordering::SeqCst);
        let table = Table::new("twice").eval(|call| {
            write(&call.output(0), elements::<f32>(&call.input(0)).iter().map(|x| 2.0 * x));
            Ok(())
        });
        Ok(vec![table.one(&[inputs[0].square()?])?.sum(None)?])
    })
    .shapeless();
    for n in [1usize, 2, 5, 2] {
        let x = Array::full(&[n, n], 3.0f32).unwrap();
        let y = f.call(&[x]).unwrap().remove(0);
        assert_eq!(y.item::<f32>().unwrap(), 18.0 * (n * n) as f32);
    }
    assert_eq!(traced.load(Ordering::SeqCst), 1);
}
