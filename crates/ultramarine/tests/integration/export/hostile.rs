//! Files that lie: an error that says what is wrong, or a function that does what the file says.

use super::every::groups;
use super::{exported, program, read};
use serde_json::{Value, json};
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use ultramarine::io::{Arrays, Metadata, safetensors};
use ultramarine::{Array, Dtype, Error, Function, Result, eval};
use ultramarine_test_support::Rng;

/// A file with this text in place of a program, and these arrays beside it.
pub fn file_of(text: &[u8], constants: &Arrays) -> Vec<u8> {
    let mut arrays = constants.clone();
    arrays.insert("program".into(), Array::from_slice(text, &[text.len()]).expect("bytes"));
    let metadata = Metadata::from([("format".into(), "ultramarine.function".into())]);
    let mut file = Vec::new();
    safetensors::write(&mut file, &arrays, &metadata, "a test").expect("a file");
    file
}

/// The program of one trace with arguments float32 (2, 3) and int32 (4), and these steps.
fn of_steps(steps: &Value, outputs: &Value) -> Value {
    let positional = json!([["float32", [2, 3]], ["int32", [4]]]);
    let trace = json!({
        "positional": positional, "keywords": {}, "shapeless": false, "steps": steps, "outputs": outputs,
    });
    json!({ "version": 1, "traces": [trace] })
}

fn loaded(program: &Value) -> Result<Function> {
    let constants = Arrays::from([("c".into(), Array::ones(&[3, 2], Dtype::Float32)?)]);
    read(&file_of(program.to_string().as_bytes(), &constants))
}

#[track_caller]
fn refused(what: Result<Function>, text: &str) {
    match what {
        Err(Error::Runtime(message)) if message.to_string().contains(text) => {}
        other => panic!("{other:?} does not say {text:?}"),
    }
}

fn op(name: &str, of: &[u32], gives: Value, attributes: Value) -> Value {
    json!({ "op": { "name": name, "of": of, "gives": [gives], "attributes": attributes } })
}

#[test]
fn a_program_by_hand() -> Result<()> {
    let steps = json!([
        { "constant": "c" },
        op("matmul", &[0, 2], json!(["float32", [2, 2]]), json!({ "precision": "Highest" })),
    ]);
    let function = loaded(&of_steps(&steps, &json!([3, 0])))?;
    let x = [Array::ones(&[2, 3], Dtype::Float32)?, Array::zeros(&[4], Dtype::Int32)?];
    let results = function.call(&x)?;
    assert_eq!(results[0].to_vec::<f32>()?, [3.0; 4]);
    assert_eq!(results[1].to_vec::<f32>()?, [1.0; 6]);
    Ok(())
}

#[test]
fn no_function() {
    refused(read(b"12345678"), "a test");
    refused(read(&file_of(b"", &Arrays::new())), "bad program");
    refused(read(&file_of(b"{}", &Arrays::new())), "missing field `version`");
    refused(loaded(&json!({ "version": 2, "other": [] })), "version 2 of the format");
    refused(loaded(&json!({ "version": 1, "traces": [], "code": "x" })), "unknown field `code`");
    let nested = "[".repeat(100_000);
    let text = format!("{{\"version\": 1, \"traces\": {nested}");
    refused(read(&file_of(text.as_bytes(), &Arrays::new())), "bad program");
    let text = file_of(b"{}", &Arrays::new());
    let mut other = Vec::new();
    safetensors::write(&mut other, &Arrays::new(), None, "a test").expect("a file");
    refused(read(&other), "holds no function");
    refused(read(&text[..text.len() - 1]), "but the file has 1");
}

#[test]
fn steps_that_cannot_be() {
    let f32s = |shape: &[usize]| json!(["float32", shape]);
    let no = |steps: Value, text: &str| refused(loaded(&of_steps(&steps, &json!([2]))), text);
    let one = |step: Value, text: &str| no(json!([step]), text);
    one(json!({ "constant": "d" }), "there is no array `d`");
    one(json!({ "constant": "../c" }), "there is no array `../c`");
    one(json!({ "import": "os" }), "unknown variant `import`");
    one(json!({ "result": { "of": 0, "index": 0 } }), "value 0 has no result 0");
    one(op("exec", &[0], f32s(&[2, 3]), json!({})), "there is no operation `exec`");
    one(
        op("unary", &[2], f32s(&[2, 3]), json!({ "code": 1 })),
        "value 2 is used before it is computed",
    );
    one(
        op("unary", &[9], f32s(&[2, 3]), json!({ "code": 1 })),
        "value 9 is used before it is computed",
    );
    // Attributes.
    one(op("unary", &[0], f32s(&[2, 3]), json!({})), "`code` is missing");
    one(op("unary", &[0], f32s(&[2, 3]), json!({ "code": "exp" })), "instead of u32");
    one(op("unary", &[0], f32s(&[2, 3]), json!({ "code": -1 })), "instead of u32");
    one(
        op("unary", &[0], f32s(&[2, 3]), json!({ "code": 1, "eval": 1 })),
        "2 attributes, expected code",
    );
    one(op("unary", &[0], f32s(&[2, 3]), json!({ "code": 40 })), "does not give");
    one(op("view", &[0], f32s(&[2, 3]), json!("Pointer")), "instead of a View");
    one(op("matmul", &[0, 0], f32s(&[2, 2]), json!({ "precision": 3 })), "instead of a variant");
    let mut newer = op("select", &[0], f32s(&[2]), json!({}));
    newer["op"]["version"] = json!(2);
    one(newer, "version 2 of select, this program 1");
    // Types.
    let exp = json!({ "code": 7 });
    one(op("unary", &[0], f32s(&[3, 2]), exp.clone()), "does not give (float32 (3, 2))");
    one(op("unary", &[1], json!(["int32", [4]]), exp.clone()), "does not give");
    one(op("unary", &[0, 1], f32s(&[2, 3]), exp.clone()), "does not give");
    one(op("unary", &[0], json!(["float128", [2, 3]]), exp.clone()), "no dtype `float128`");
    one(op("unary", &[0], f32s(&[1 << 62, 1 << 3]), exp.clone()), "too large");
    one(op("unary", &[0], json!(["float32", [-1, 3]]), exp.clone()), "bad program");
    one(
        op(
            "full",
            &[],
            f32s(&[1; 65]),
            json!({ "value": { "dtype": "float32", "bits": 0 }, "spread": false }),
        ),
        "dimensions are too many",
    );
    one(
        op(
            "full",
            &[],
            f32s(&[2]),
            json!({ "value": { "dtype": "bool", "bits": 7 }, "spread": false }),
        ),
        "more bits than bool has",
    );
    let none = json!({ "op": { "name": "select", "of": [], "gives": [] } });
    one(none, "select has no result");
    // Views that leave their operand.
    let slice = |start: Value, step: Value| json!({ "Slice": { "start": start, "step": step } });
    for (gives, view) in [
        (f32s(&[2, 3]), slice(json!([1, 0]), json!([1, 1]))),
        (f32s(&[2, 2]), slice(json!([0, 1]), json!([1, 2]))),
        (f32s(&[2, 2]), slice(json!([0, 0]), json!([1, -1]))),
        (f32s(&[2, 1]), slice(json!([0, 3]), json!([1, 1]))),
        (f32s(&[2, 3]), slice(json!([0]), json!([1]))),
        (f32s(&[2, 3]), slice(json!([0, u64::MAX]), json!([1, 1]))),
        (f32s(&[2, 3]), slice(json!([0, 0]), json!([i64::MIN, 1]))),
        (f32s(&[2]), json!({ "Diagonal": { "offset": 2, "a": 0, "b": 1 } })),
        (f32s(&[0]), json!({ "Diagonal": { "offset": i64::MIN, "a": 0, "b": 1 } })),
        (f32s(&[2]), json!({ "Diagonal": { "offset": 0, "a": 1, "b": 1 } })),
        (f32s(&[7]), json!({ "Strided": { "strides": [1], "offset": 0 } })),
        (f32s(&[2]), json!({ "Strided": { "strides": [i64::MIN], "offset": 0 } })),
        (f32s(&[2]), json!({ "Strided": { "strides": [-1], "offset": 0 } })),
        (f32s(&[2]), json!({ "Strided": { "strides": [1], "offset": u64::MAX } })),
        (f32s(&[3, 2]), json!({ "Transpose": { "order": [1, 1] } })),
        (f32s(&[3, 2]), json!({ "Transpose": { "order": [1, 2] } })),
        (f32s(&[4, 3]), json!("Broadcast")),
        (f32s(&[7]), json!("Reshape")),
        (json!(["bool", [2, 12]]), json!("Bitcast")),
        (json!(["float64", [2, 2]]), json!("Bitcast")),
    ] {
        one(op("view", &[0], gives, view), "does not give");
    }
    // Axes and counts.
    for (name, of, gives, attributes) in [
        ("reduce", &[0][..], f32s(&[2, 1]), json!({ "code": 0, "axes": 4 })),
        ("reduce", &[0], f32s(&[2, 1]), json!({ "code": 9, "axes": 2 })),
        ("reduce", &[0], f32s(&[2, 1]), json!({ "code": 0, "axes": u64::MAX })),
        ("arg_reduce", &[0], json!(["uint32", [2, 1]]), json!({ "code": 0, "axis": 64 })),
        ("sort", &[0], f32s(&[2, 3]), json!({ "arg": false, "axis": 1, "kth": [3] })),
        ("concatenate", &[0, 0], f32s(&[2, 3]), json!({ "axis": 0 })),
        ("concatenate", &[0, 0], f32s(&[4, 3]), json!({ "axis": 2 })),
        ("gather", &[0, 1], f32s(&[4, 1, 3]), json!({ "axes": [2] })),
        ("gather", &[0, 1, 1], f32s(&[4, 1, 3]), json!({ "axes": [0, 0] })),
        ("gather", &[0, 0], f32s(&[2, 3, 1, 3]), json!({ "axes": [0] })),
        ("gather", &[0], f32s(&[2, 3]), json!({ "axes": [] })),
        ("scatter", &[0], f32s(&[2, 3]), json!({ "kind": 0, "axes": [] })),
        ("dynamic_slice", &[0, 1], f32s(&[2, 4]), json!({ "axes": [0, 1, 2, 3] })),
        ("random_bits", &[1], json!(["uint32", [4]]), json!({})),
        (
            "fft",
            &[0],
            json!(["complex64", [2, 3]]),
            json!({ "code": 0, "axis": 1, "n": 3, "scale": 1.0 }),
        ),
        (
            "softmax",
            &[0],
            f32s(&[2, 3]),
            json!({ "logsumexp": false, "axes": 8, "precise": false }),
        ),
    ] {
        one(op(name, of, gives, attributes), "does not give");
    }
    // Operations of several results are no values, and have no other results.
    let svd = json!({ "op": { "name": "qr", "of": [0], "gives": [["float32", [2, 2]], ["float32", [2, 3]]] } });
    no(json!([svd, op("unary", &[2], f32s(&[2, 2]), exp)]), "value 2 is an operation with several");
    no(json!([svd, { "result": { "of": 2, "index": 2 } }]), "value 2 has no result 2");
    refused(loaded(&of_steps(&json!([svd]), &json!([2]))), "value 2 is an operation with several");
    refused(loaded(&of_steps(&json!([]), &json!([2]))), "value 2 is used before it is computed");
}

/// The largest size in a program, and how many elements its largest shape has.
fn largest(value: &Value) -> u128 {
    match value {
        Value::Array(all) if !all.is_empty() && all.iter().all(Value::is_u64) => {
            all.iter().filter_map(Value::as_u64).fold(1, |n, d| n.saturating_mul(u128::from(d)))
        }
        Value::Array(all) => all.iter().map(largest).max().unwrap_or(0),
        Value::Object(all) => all.values().map(largest).max().unwrap_or(0),
        Value::Number(n) => n.as_u64().unwrap_or(0).into(),
        _ => 0,
    }
}

/// All places in a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(i, v)| places(v, &format!("{at}/{i}"), found));
        }
        Value::Object(all) => {
            all.iter().for_each(|(k, v)| places(v, &format!("{at}/{k}"), found));
        }
        _ => {}
    }
}

/// The program with something in it changed.
fn changed(rng: &mut Rng, program: &Value) -> Value {
    let mut now = program.clone();
    let mut found = Vec::new();
    places(program, "", &mut found);
    let mut pick = || found[rng.below(found.len())].clone();
    let (place, other) = (pick(), pick());
    let other = program.pointer(&other).cloned().unwrap_or_default();
    let lies = [0, 1, 2, 3, 5, 31, 32, 33, 255, 256, 1 << 31, 1 << 32, i64::MAX, -1, i64::MIN];
    let lie = lies[rng.below(lies.len())];
    let (sort, step) = (rng.below(6), rng.below(3) as i64 - 1);
    let Some(at) = now.pointer_mut(&place) else { return now };
    match at {
        _ if sort == 0 => *at = other,
        Value::Number(n) => {
            let close = n.as_i64().unwrap_or(0).saturating_add(step);
            *at = if sort < 4 { json!(close) } else { json!(lie) };
        }
        Value::Array(all) if !all.is_empty() => {
            let i = rng.below(all.len());
            match sort {
                1 => drop(all.remove(i)),
                2 => all.insert(i, all[i].clone()),
                _ => all.swap(0, i),
            }
        }
        Value::Object(all) if sort == 1 => {
            let key = all.keys().next().cloned().unwrap_or_default();
            all.remove(&key);
        }
        Value::Bool(b) => *b = !*b,
        _ => {}
    }
    now
}

/// Files that are changed by the structure of their programs: most of what a reader has to find lies there.
#[test]
fn changed_programs() -> Result<()> {
    let full = std::env::var_os("ULTRAMARINE_TEST_FULL").is_some();
    let rng = &mut Rng::new(2611);
    let mut cases = Vec::new();
    for group in groups() {
        for (f, arguments) in group(rng)? {
            let file = exported(f, &arguments, false)?;
            let text: Value = serde_json::from_str(&program(&file)).expect("JSON");
            let (mut constants, _) = safetensors::read(&mut Cursor::new(&file), "a test")?;
            constants.remove("program");
            cases.push((text, constants, arguments));
        }
    }
    let (mut refused, mut called, mut failed) = (0, 0, 0);
    for _ in 0..if full { 5_000 } else { 400 } {
        let (text, constants, arguments) = &cases[rng.below(cases.len())];
        let text = changed(rng, text);
        let file = file_of(text.to_string().as_bytes(), constants);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let function = match read(&file) {
                Ok(function) => function,
                Err(e) => {
                    let text = e.to_string();
                    assert!(text.contains("a test: "), "{text} names no file");
                    return 0;
                }
            };
            // It does what it says, which may be much.
            if largest(&text) > 1 << 16 {
                return 0;
            }
            match function.call(arguments).and_then(|results| eval(&results)) {
                Ok(()) => 1,
                Err(_) => 2,
            }
        }));
        match outcome {
            Ok(0) => refused += 1,
            Ok(1) => called += 1,
            Ok(_) => failed += 1,
            Err(_) => panic!("a panic by {text}"),
        }
    }
    assert!(refused > called && called > 20, "{refused} refused, {called} called, {failed} failed");
    Ok(())
}
