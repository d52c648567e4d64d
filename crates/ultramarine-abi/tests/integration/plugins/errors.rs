//! What is thrown, what panics, and what is asked wrongly becomes a status and a text.

use super::build::{Plugin, compile, in_rust};
use std::ptr::{null, null_mut};
use ultramarine_abi::{
    BackendTable, Command, Status, TensorDesc, layout,
    schema::{BinaryAttrs, DTYPES, binary, op},
    status,
};

fn float(ndim: i32) -> TensorDesc {
    let dtype = DTYPES.iter().find(|(name, _)| *name == "float32").unwrap().1;
    let size = size_of::<TensorDesc>() as u32;
    TensorDesc { size, ndim, dtype, layout: layout::STRIDED }
}

/// Asks for a plan: the status and the error's text.
fn prepare(
    plugin: &Plugin,
    device: *mut core::ffi::c_void,
    id: u32,
    code: u32,
) -> (Status, String) {
    let attributes = BinaryAttrs::new(code);
    let (ins, out) = ([float(1), float(1)], float(1));
    let (mut plan, mut error) = (null_mut(), null_mut());
    // SAFETY: the arguments are as the contract says.
    let status = unsafe {
        plugin.table.prepare.unwrap()(
            device,
            id,
            1,
            (&raw const attributes).cast(),
            ins.as_ptr(),
            2,
            &out,
            1,
            &mut plan,
            &mut error,
        )
    };
    if error.is_null() {
        return (status, String::new());
    }
    let (code, text) = plugin.host.error(error);
    assert_eq!(code, status);
    (status, text)
}

#[test]
fn exceptions_end_at_the_boundary() {
    let plugin = Plugin::open(&compile("in_cpp.cpp", "in_cpp-errors", &[]));
    let ask = |id| prepare(&plugin, null_mut(), id, 0);
    assert_eq!(ask(0), (status::UNSUPPORTED, "a failure".into()));
    assert_eq!(ask(1), (status::ERROR, "an exception".into()));
    assert_eq!(ask(2), (status::ERROR, "an exception of unknown type".into()));
    assert_eq!(ask(3), (status::OUT_OF_MEMORY, "out of memory".into()));
    assert_eq!(ask(4), (status::INVALID, "in a loop".into()));
    assert_eq!(ask(5), (status::OK, String::new()));
    assert_eq!(plugin.host.live(), 0, "host memory is freed");
    // SAFETY: the function takes whatever it gets.
    let otherwise = unsafe { plugin.table.plan_workspace.unwrap()(null_mut(), null_mut(), null()) };
    assert_eq!(otherwise, 42);
    let logs = plugin.host.logs();
    assert!(logs.contains(&(2, "a message".into())), "{logs:?}");
    assert!(logs.contains(&(0, "an exception of unknown type".into())), "{logs:?}");
}

#[test]
fn c_formats_its_errors() {
    let plugin = Plugin::open(&compile("in_c.c", "in_c-errors", &[]));
    let unknown = prepare(&plugin, null_mut(), op::MATMUL, 0);
    assert_eq!(unknown, (status::UNSUPPORTED, format!("op {} is unknown here", op::MATMUL)));
    let other = prepare(&plugin, null_mut(), op::BINARY, binary::POWER);
    assert_eq!(other, (status::UNSUPPORTED, "only sums of float32".into()));
    assert_eq!(prepare(&plugin, null_mut(), op::BINARY, binary::ADD).0, status::OK);
}

/// The plugin in Rust with its device open.
pub fn adder() -> (Plugin, *mut core::ffi::c_void) {
    let plugin = Plugin::open(in_rust());
    let mut device = null_mut();
    let table = &plugin.table;
    // SAFETY: the table's own handle.
    unsafe {
        assert_eq!(table.device_count.unwrap()(table.backend), 1);
        let open = table.device_open.unwrap();
        assert_eq!(open(table.backend, 0, &mut device, null_mut()), status::OK);
    }
    (plugin, device)
}

#[test]
fn panics_end_at_the_boundary() {
    let (plugin, device) = adder();
    let ask = |id, code| prepare(&plugin, device, id, code);
    assert_eq!(ask(1000, 0), (status::ERROR, "panicked: a panic in prepare".into()));
    assert_eq!(ask(op::MATMUL, 0).0, status::UNSUPPORTED);
    let (code, text) = ask(op::SORT, 0);
    assert_eq!(
        (code, text.as_str()),
        (status::INVALID, "sort has 2 inputs and 1 outputs, which is not its signature")
    );
    assert_eq!(ask(op::BINARY, 99).0, status::UNSUPPORTED);
    assert_eq!(ask(op::BINARY, binary::ADD), (status::OK, String::new()));
    let (code, text) = prepare(&plugin, null_mut(), op::BINARY, 0);
    assert_eq!((code, text.as_str()), (status::INVALID, ""), "no device, so no host to tell");

    // A plan whose loop on the host's threads panics.
    let (mut plan, mut error) = (null_mut(), null_mut());
    let attributes = BinaryAttrs::new(0);
    let (ins, out) = ([float(1), float(1)], float(1));
    // SAFETY: the arguments are as the contract says; zero is a command without tensors.
    unsafe {
        let table: &BackendTable = &plugin.table;
        let (ins, attributes) = (ins.as_ptr(), (&raw const attributes).cast());
        let made = table.prepare.unwrap()(
            device, 1001, 1, attributes, ins, 2, &out, 1, &mut plan, &mut error,
        );
        assert_eq!(made, status::OK);
        let mut command: Command = std::mem::zeroed();
        (command.size, command.plan) = (size_of::<Command>() as u32, plan);
        let ran = table.submit.unwrap()(device, null_mut(), &command, 1, &mut error);
        assert_eq!(ran, status::ERROR);
        assert!(plugin.host.error(error).1.contains("a panic in a loop"));
        // A plan that is not there, and tensors that are not.
        command.plan = null_mut();
        let submit = table.submit.unwrap();
        assert_eq!(submit(device, null_mut(), &command, 1, &mut error), status::INVALID);
        assert_eq!(submit(device, null_mut(), null(), 0, &mut error), status::OK);
        table.plan_release.unwrap()(device, plan);
        table.plan_release.unwrap()(device, null_mut());
        let mut other = null_mut();
        let open = table.device_open.unwrap();
        assert_eq!(open(table.backend, 7, &mut other, &mut error), status::INVALID);
        assert_eq!(plugin.host.error(error).1, "there is no device 7: the number of devices is 1");
        table.device_close.unwrap()(device);
    }
}
