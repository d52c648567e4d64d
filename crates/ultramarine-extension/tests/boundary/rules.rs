//! Rules through the table: what they give, what is missing, what panics, and that all is released once.

use crate::fake_host::{self, ALIVE, APPLIED, raw_type, take_error, with_call};
use std::ptr::null_mut;
use std::sync::Arc;
use ultramarine_extension::abi::{
    Error as RawError, Status,
    extension::{self as raw, ArrayHandle, ExtensionHost},
    status,
};
use ultramarine_extension::{
    Array, Attribute, Attributes, CpuCall, Dtype, Error, GpuCall, Jvp, Place, Primitive, Result,
    TensorType, Vjp, Vmap, apply, connect, operation,
};

/// Does the same in every rule: what it was made for.
#[derive(Debug)]
struct Stub {
    what: What,
    /// Counts this primitive's contexts.
    _alive: Arc<()>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Work,
    Panic,
    Refuse,
    /// Gives no results.
    TooFew,
}

impl What {
    fn results<T>(self, one: impl Fn() -> T) -> Result<Vec<T>> {
        match self {
            What::Work => Ok(vec![one()]),
            What::Panic => panic!("panics {}", "on purpose"),
            What::Refuse => Err(Error::value("[stub] refused.")),
            What::TooFew => Ok(Vec::new()),
        }
    }
}

impl Primitive for Stub {
    fn name(&self) -> &str {
        "stub"
    }
    fn attributes(&self) -> Attributes {
        Attributes::new().int(7)
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>> {
        self.what.results(|| inputs[0].clone())
    }
    fn eval_cpu(&self, _: &mut CpuCall<'_>) -> Result<()> {
        self.what.results(|| ()).map(drop)
    }
    fn eval_gpu(&self, _: &mut GpuCall<'_>) -> Result<()> {
        self.what.results(|| ()).map(drop)
    }
    fn compose(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        self.what.results(|| inputs[0].clone())
    }
    fn vjp(&self, of: &Vjp<'_>) -> Result<Vec<Option<Array>>> {
        assert_eq!((of.inputs.len(), of.outputs.len(), of.wanted), (1, 1, &[true][..]));
        self.what.results(|| of.cotangents[0].clone())
    }
    fn jvp(&self, of: &Jvp<'_>) -> Result<Vec<Option<Array>>> {
        self.what.results(|| of.tangents[0].clone())
    }
    fn vmap(&self, of: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        self.what.results(|| (of.inputs[0].clone(), of.axes[0]))
    }
    fn equivalent(&self, other: &Self) -> bool {
        match self.what {
            What::Panic => panic!("in equivalent"),
            what => what == other.what,
        }
    }
    fn print(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.what {
            What::Panic => panic!("in print"),
            _ => f.write_str("stub(ä)"),
        }
    }
}

/// Has neither a kernel nor `compose`.
#[derive(Debug)]
struct Bare;

impl Primitive for Bare {
    fn name(&self) -> &str {
        "bare"
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>> {
        Ok(vec![inputs[0].clone()])
    }
}

fn array() -> Array {
    fake_host::connect();
    Array::from_slice(&[1f32, 2.0], &[2]).unwrap()
}

/// Applies a primitive, and gives what reached the host.
fn applied<P: Primitive>(primitive: P, to: &Array) -> raw::Primitive {
    let made = apply(primitive, &[to], Place::Default).unwrap();
    assert_eq!(made.len(), 1);
    APPLIED.take().unwrap()
}

type Place1 = *mut *mut ArrayHandle;
type Said = (Status, Option<(Status, String)>);

/// What a rule gives: its status, its error, and how many arrays it handed out.
fn call(rule: impl FnOnce(Place1, *mut *mut RawError) -> Status) -> (Said, usize) {
    let (mut error, mut place) = (null_mut(), null_mut());
    let status = rule(&mut place, &mut error);
    let handed = usize::from(!place.is_null());
    if handed == 1 {
        // SAFETY: it was handed out.
        drop(unsafe { Array::from_raw(place) }.unwrap());
    }
    // SAFETY: the fake host's error.
    ((status, unsafe { take_error(error) }), handed)
}

/// All rules with one operand.
fn all_rules(p: &raw::Primitive, x: &Array) -> Vec<(&'static str, (Said, usize))> {
    let (context, handles) = (p.context, [x.as_raw()]);
    let (inputs, float) = (handles.as_ptr(), Dtype::Float32.to_dl());
    let mut fake = crate::cpu::call(vec![], vec![]);
    // SAFETY: the rules are called as the contract says.
    unsafe {
        let type_ = raw_type(&[2], float);
        let mut types = [raw_type(&[], float)];
        let infer = call(|_, e| p.infer.unwrap()(context, &type_, 1, types.as_mut_ptr(), e));
        if infer.0.0 == status::OK {
            assert_eq!((types[0].ndim, types[0].shape[0]), (1, 2));
        }
        let mut axis = -7;
        vec![
            ("infer", infer),
            ("eval_cpu", with_call(&mut fake, |c| call(|_, e| p.eval_cpu.unwrap()(context, c, e)))),
            ("eval_gpu", with_call(&mut fake, |c| call(|_, e| p.eval_gpu.unwrap()(context, c, e)))),
            ("compose", call(|to, e| p.compose.unwrap()(context, inputs, 1, to, e))),
            (
                "vjp",
                call(|to, e| {
                    p.vjp.unwrap()(context, inputs, 1, inputs, inputs, [1u8].as_ptr(), to, e)
                }),
            ),
            ("jvp", call(|to, e| p.jvp.unwrap()(context, inputs, 1, inputs, to, e))),
            (
                "vmap",
                call(|to, e| {
                    p.vmap.unwrap()(context, inputs, 1, [0].as_ptr(), 2, to, &mut axis, e)
                }),
            ),
        ]
    }
}

fn none_is_left() {
    ALIVE.with(|alive| assert_eq!((alive.arrays.get(), alive.errors.get()), (0, 0)));
}

#[test]
fn rules_give_their_results_and_release_what_they_took() {
    let (x, alive) = (array(), Arc::new(()));
    let p = applied(Stub { what: What::Work, _alive: alive.clone() }, &x);
    for (rule, ((code, error), handed)) in all_rules(&p, &x) {
        assert_eq!((code, error), (status::OK, None), "{rule}");
        let gives = matches!(rule, "compose" | "vjp" | "jvp" | "vmap");
        assert_eq!(handed, usize::from(gives), "{rule}");
    }
    assert_eq!((p.version, p.n_outputs, p.attribute_bytes), (1, 1, 8));
    assert_eq!(Arc::strong_count(&alive), 2);
    // SAFETY: once, at the end.
    unsafe { p.release.unwrap()(p.context) };
    assert_eq!(Arc::strong_count(&alive), 1);
    drop(x);
    none_is_left();
}

#[test]
fn a_panic_in_any_rule_is_an_error_with_its_text() {
    let x = array();
    for (what, code, text) in [
        (What::Panic, status::ERROR, "panicked: panics on purpose"),
        (What::Refuse, status::INVALID, "[stub] refused."),
    ] {
        let p = applied(Stub { what, _alive: Arc::new(()) }, &x);
        for (rule, (said, handed)) in all_rules(&p, &x) {
            assert_eq!(said, (code, Some((code, text.to_owned()))), "{rule}");
            assert_eq!(handed, 0, "{rule}");
        }
        // SAFETY: as the contract says.
        unsafe { p.release.unwrap()(p.context) };
    }
    drop(x);
    none_is_left();
}

#[test]
fn a_panic_in_what_is_no_rule_is_an_error_too() {
    #[derive(Debug)]
    struct Shy;
    impl Primitive for Shy {
        fn name(&self) -> &str {
            "shy"
        }
        fn attributes(&self) -> Attributes {
            panic!("has none")
        }
        fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>> {
            Ok(inputs.to_vec())
        }
    }
    let x = array();
    let failure = apply(Shy, &[&x], Place::Default).expect_err("it panics").to_string();
    assert!(failure.contains("Shy") && failure.contains("has none"), "{failure}");
    drop(x);
    none_is_left();
}

#[test]
fn too_few_results_are_an_error_and_nothing_is_handed_out() {
    let x = array();
    let p = applied(Stub { what: What::TooFew, _alive: Arc::new(()) }, &x);
    for (rule, ((code, error), handed)) in all_rules(&p, &x) {
        if rule.starts_with("eval") {
            continue;
        }
        assert_eq!((code, handed), (status::ERROR, 0), "{rule}");
        let text = error.unwrap().1;
        assert!(text.starts_with(&format!("{rule} returned 0 ")), "{text}");
    }
    // SAFETY: as the contract says.
    unsafe { p.release.unwrap()(p.context) };
    drop(x);
    none_is_left();
}

#[test]
fn a_missing_rule_says_so_without_an_error() {
    let x = array();
    let p = applied(Bare, &x);
    for (rule, ((code, error), handed)) in all_rules(&p, &x) {
        let want = if rule == "infer" { status::OK } else { status::UNSUPPORTED };
        assert_eq!((code, error, handed), (want, None, 0), "{rule}");
    }
    // SAFETY: as the contract says.
    unsafe { p.release.unwrap()(p.context) };
}

#[test]
fn equal_names_are_compared_within_a_type() {
    let x = array();
    let stub = |what| applied(Stub { what, _alive: Arc::new(()) }, &x);
    let (a, b, c) = (stub(What::Work), stub(What::Work), stub(What::Refuse));
    let (bare, panics) = (applied(Bare, &x), stub(What::Panic));
    // SAFETY: contexts of this library.
    unsafe {
        let equivalent = a.equivalent.unwrap();
        assert_eq!(equivalent(a.context, b.context), 1);
        assert_eq!(equivalent(a.context, c.context), 0);
        assert_eq!(equivalent(a.context, bare.context), 0);
        assert_eq!(equivalent(panics.context, a.context), 0);
        assert_eq!(equivalent(a.context, null_mut()), 0);
        for p in [a, b, c, bare, panics] {
            p.release.unwrap()(p.context);
        }
    }
}

#[test]
fn printed_text_fits_and_its_length_is_reported() {
    let x = array();
    let p = applied(Stub { what: What::Work, _alive: Arc::new(()) }, &x);
    let print = |p: &raw::Primitive, room: usize| {
        let mut text = vec![b'.'; 12];
        // SAFETY: as many bytes as said.
        let n = unsafe { p.print.unwrap()(p.context, text.as_mut_ptr().cast(), room as u64) };
        (n, String::from_utf8(text).unwrap())
    };
    assert_eq!(print(&p, 12), (8, "stub(ä)....".into()));
    assert_eq!(print(&p, 3), (8, "stu.........".into()));
    // A character is not cut in two.
    assert_eq!(print(&p, 6), (8, "stub(.......".into()));
    let panics = applied(Stub { what: What::Panic, _alive: Arc::new(()) }, &x);
    assert_eq!(print(&panics, 12).0, 0);
    // SAFETY: as the contract says.
    unsafe {
        assert_eq!(p.print.unwrap()(p.context, null_mut(), 0), 8);
        p.release.unwrap()(p.context);
        panics.release.unwrap()(panics.context);
    }
}

#[test]
fn an_operand_whose_dtype_only_stores_numbers_is_refused() {
    let x = array();
    let p = applied(Bare, &x);
    let mut float8 = Dtype::Int8.to_dl();
    float8.code = 10;
    let (of, mut to) = (raw_type(&[2], float8), raw_type(&[], float8));
    // SAFETY: as the contract says.
    let (said, _) = call(|_, e| unsafe { p.infer.unwrap()(p.context, &of, 1, &mut to, e) });
    assert_eq!(said.0, status::INVALID);
    assert!(said.1.unwrap().1.contains("no arithmetic with float8_e4m3fn"));
    // SAFETY: as above.
    unsafe { p.release.unwrap()(p.context) };
}

#[test]
fn operations_carry_attributes_and_their_errors_come_back() {
    let x = array();
    let attributes = [
        Attribute::Int("axis", -1),
        Attribute::Float("alpha", 0.5),
        Attribute::Ints("shape", vec![2, 3]),
        Attribute::Dtype("dtype", Dtype::Bfloat16),
        Attribute::Text("mode", "full"),
    ];
    let error = operation("refuse", &[&x, &x], &attributes, Place::Default, 1).unwrap_err();
    let text = "2 axis=-1 alpha=0.5 shape=[2, 3] dtype=4/16 mode=full true";
    assert_eq!(error, Error::value(text));
    let error = operation("refuse", &[], &[], Place::GPU, 1).unwrap_err();
    assert_eq!(error.text(), "0  false");
    // A status alone is an error too, and not a missing rule.
    let error = operation("nothing", &[&x], &[], Place::Default, 1).unwrap_err();
    assert!(!error.is_missing() && error.text().contains("[nothing]"), "{error}");
    let three = operation("split", &[&x], &[], Place::Default, 3).unwrap();
    assert_eq!(three[2].to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(operation("a\0b", &[], &[], Place::Default, 1).unwrap_err().code(), status::INVALID);
    drop((three, x));
    none_is_left();
}

#[test]
fn functions_that_the_host_lacks_are_named() {
    let x = array();
    let error = x.eval().unwrap_err();
    assert!(error.text().starts_with("[array_eval]"), "{error}");
    assert!(ultramarine_extension::promote_types(Dtype::Int8, Dtype::Int16).is_err());
}

#[test]
fn hosts_of_another_major_and_short_tables_are_refused() {
    let leak = |table: ExtensionHost| -> &'static ExtensionHost { Box::leak(Box::new(table)) };
    let mut other = fake_host::table();
    other.major += 1;
    let text = connect(leak(other)).unwrap_err().to_string();
    assert!(text.contains("version 1.2") && text.contains("has 2.2"), "{text}");
    // The table ends before the handles.
    let mut short = fake_host::table();
    short.size = std::mem::offset_of!(ExtensionHost, array_retain) as u32;
    assert!(connect(leak(short)).unwrap_err().text().contains("lacks"));
    // What comes behind the essential functions may be missing.
    let mut short = fake_host::table();
    short.size = std::mem::offset_of!(ExtensionHost, array_place) as u32;
    connect(leak(short)).unwrap();
}

#[test]
fn structs_of_a_later_minor_are_walked_by_their_size() {
    #[repr(C)]
    struct Longer(raw::TensorType, [u64; 3]);
    let x = array();
    let p = applied(Bare, &x);
    let float = Dtype::Float32.to_dl();
    let size = size_of::<Longer>() as u32;
    let longer = |n: i64| Longer(raw::TensorType { size, ..raw_type(&[n], float) }, [9; 3]);
    let (inputs, mut output) = ([longer(3), longer(4)], longer(0));
    // SAFETY: structs that say their size.
    let (said, _) = call(|_, e| unsafe {
        let first = (&raw const inputs).cast();
        p.infer.unwrap()(p.context, first, 2, (&raw mut output).cast(), e)
    });
    assert_eq!(said, (status::OK, None));
    assert_eq!((output.0.shape[0], output.1), (3, [9; 3]));
    // SAFETY: as the contract says.
    unsafe { p.release.unwrap()(p.context) };
}

#[test]
fn clones_and_borrows_release_once() {
    let x = array();
    let y = x.clone();
    let raw = y.into_raw();
    // SAFETY: the handle was given out above.
    let z = unsafe { Array::from_raw(raw) }.unwrap();
    // SAFETY: a handle that is alive.
    let again = unsafe { Array::retain_raw(z.as_raw()) }.unwrap();
    assert_eq!((again.shape(), again.dtype().unwrap()), (&[2][..], Dtype::Float32));
    // SAFETY: NULL is looked at.
    assert!(unsafe { Array::from_raw(null_mut()) }.is_err());
    assert!(Array::from_slice(&[1f32], &[2]).is_err());
    drop((x, z, again));
    none_is_left();
}
