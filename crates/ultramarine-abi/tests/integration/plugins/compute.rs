//! Loops over strided tensors, buffers, and events that threads wait for.

use super::build::{Plugin, compile};
use super::errors::adder;
use core::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use ultramarine_abi::{
    BackendTable, Command, DeviceInfo, Tensor, TensorDesc,
    dlpack::{DLDevice, DLTensor},
    inline_str, layout,
    schema::{BinaryAttrs, DTYPES, binary, op},
    status,
};

/// A float32 tensor over memory of the test.
struct View {
    data: *mut f32,
    offset: usize,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl View {
    fn tensor(&self) -> Tensor {
        let dtype = DTYPES.iter().find(|(name, _)| *name == "float32").unwrap().1;
        Tensor {
            size: size_of::<Tensor>() as u32,
            flags: 0,
            dl: DLTensor {
                data: self.data.cast(),
                device: DLDevice { device_type: 12, device_id: 0 },
                ndim: self.shape.len() as i32,
                dtype,
                shape: self.shape.as_ptr().cast_mut(),
                strides: self.strides.as_ptr().cast_mut(),
                byte_offset: self.offset as u64 * 4,
            },
            buffer: null_mut(),
            buffer_size: 0,
            wait: null_mut(),
            wait_value: 0,
        }
    }
}

/// Calls `f` with the command of `out = a + b` for a plugin's table.
fn with_command(
    table: &BackendTable,
    device: *mut c_void,
    [a, b, out]: [&View; 3],
    f: impl FnOnce(&Command),
) {
    let desc = |v: &View| TensorDesc {
        size: size_of::<TensorDesc>() as u32,
        ndim: v.shape.len() as i32,
        dtype: v.tensor().dl.dtype,
        layout: layout::STRIDED,
    };
    let attributes = BinaryAttrs::new(binary::ADD);
    let (ins, outs) = ([a.tensor(), b.tensor()], [out.tensor()]);
    let mut plan = null_mut();
    // SAFETY: the arguments are as the contract says, and all of it lives.
    unsafe {
        let made = table.prepare.unwrap()(
            device,
            op::BINARY,
            1,
            (&raw const attributes).cast(),
            [desc(a), desc(b)].as_ptr(),
            2,
            &desc(out),
            1,
            &mut plan,
            null_mut(),
        );
        assert_eq!(made, status::OK);
        let command = Command {
            size: size_of::<Command>() as u32,
            flags: 0,
            plan,
            inputs: ins.as_ptr(),
            outputs: outs.as_ptr(),
            scalars: std::ptr::null(),
            n_inputs: 2,
            n_outputs: 1,
            n_scalars: 0,
            tensor_stride: size_of::<Tensor>() as u32,
            workspace: null_mut(),
        };
        f(&command);
        table.plan_release.unwrap()(device, plan);
    }
}

/// `out = a + b` through a plugin's table.
fn add(table: &BackendTable, device: *mut c_void, a: &View, b: &View, out: &View) {
    with_command(table, device, [a, b, out], |command| {
        // SAFETY: a command with its tensors.
        let ran = unsafe { table.submit.unwrap()(device, null_mut(), command, 1, null_mut()) };
        assert_eq!(ran, status::OK);
    });
}

/// A list in which each command in turn has no inputs: it ends there, and the error says so.
fn failing_lists(plugin: &Plugin, device: *mut c_void) {
    let (table, mut data) = (&plugin.table, [1.0f32, 2.0, 0.0, 0.0, 0.0]);
    let base = data.as_mut_ptr();
    let view = |offset| View { data: base, offset, shape: vec![1], strides: vec![1] };
    let (a, b) = (view(0), view(1));
    let outs = [view(2), view(3), view(4)];
    for at in 0..3 {
        let tensors = outs.each_ref().map(View::tensor);
        with_command(table, device, [&a, &b, &outs[0]], |command| {
            let list: Vec<Command> = (0..3)
                .map(|i| Command {
                    outputs: &tensors[i],
                    n_inputs: if i == at { 0 } else { 2 },
                    ..*command
                })
                .collect();
            let mut error = null_mut();
            let submit = table.submit.unwrap();
            // SAFETY: commands with their tensors, three of them.
            let ran = unsafe { submit(device, null_mut(), list.as_ptr(), 3, &mut error) };
            assert_eq!(ran, status::INVALID);
            assert_eq!(plugin.host.failed_command(error), Some(at as u32));
        });
        // SAFETY: the test's own memory, through the pointer that the tensors have.
        let results = unsafe { std::slice::from_raw_parts_mut(base.add(2), 3) };
        for (i, result) in results.iter_mut().enumerate() {
            assert_eq!(std::mem::take(result), if i < at { 3.0 } else { 0.0 }, "{at}");
        }
    }
}

#[test]
fn lists_end_at_the_command_that_fails() {
    let plugin = Plugin::open(&compile("in_c.c", "in_c-lists", &[]));
    failing_lists(&plugin, null_mut());
    let (plugin, device) = adder();
    failing_lists(&plugin, device);
}

/// Sums in several layouts, each against the definition.
fn sums(table: &BackendTable, device: *mut c_void) {
    let mut a: Vec<f32> = (0..1000).map(|i| i as f32).collect();
    let mut b: Vec<f32> = (0..1000).map(|i| 1000.0 * i as f32).collect();
    type Case<'a> = (&'a [i64], (usize, &'a [i64]), (usize, &'a [i64]));
    let cases: &[Case] = &[
        (&[], (3, &[]), (4, &[])),
        (&[7], (0, &[1]), (0, &[1])),
        (&[4, 6], (0, &[6, 1]), (0, &[6, 1])),
        (&[4, 6], (0, &[1, 4]), (0, &[6, 1])),
        (&[4, 6], (0, &[0, 1]), (5, &[1, 0])),
        (&[3, 1, 5], (20, &[5, 77, -1]), (0, &[10, 0, 2])),
        (&[2, 3, 4, 5], (0, &[60, 20, 5, 1]), (119, &[-60, -20, -5, -1])),
        (&[2, 3, 4, 5], (0, &[1, 2, 6, 24]), (0, &[0, 0, 0, 0])),
    ];
    for (shape, (a_at, a_strides), (b_at, b_strides)) in cases {
        let n = shape.iter().product::<i64>() as usize;
        let mut out = vec![-1.0f32; n];
        let mut strides = vec![1; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i];
        }
        let view = |data: *mut f32, offset, strides: &[i64]| View {
            data,
            offset,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
        };
        let x = view(a.as_mut_ptr(), *a_at, a_strides);
        let y = view(b.as_mut_ptr(), *b_at, b_strides);
        let z = view(out.as_mut_ptr(), 0, &strides);
        add(table, device, &x, &y, &z);
        for (place, got) in out.iter().enumerate() {
            let at = |start: usize, steps: &[i64]| {
                let mut rest = place as i64;
                let mut at = start as i64;
                for (n, step) in shape.iter().zip(steps).rev() {
                    at += rest % n * step;
                    rest /= n;
                }
                at as usize
            };
            let want = a[at(*a_at, a_strides)] + b[at(*b_at, b_strides)];
            assert_eq!(*got, want, "{shape:?} {a_strides:?} {b_strides:?} at {place}");
        }
    }
}

#[test]
fn c_walks_strides() {
    let plugin = Plugin::open(&compile("in_c.c", "in_c-strides", &[]));
    sums(&plugin.table, null_mut());
}

#[test]
fn rust_walks_strides() {
    let (plugin, device) = adder();
    sums(&plugin.table, device);
}

/// A handle that may cross to another thread.
#[derive(Clone, Copy)]
struct Handle(*mut c_void);
// SAFETY: the functions that take it may be called from any thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// Streams and events of a synchronous backend, with threads that wait.
fn events(table: &BackendTable, device: *mut c_void) {
    let (mut stream, mut other, mut event) = (null_mut(), null_mut(), null_mut());
    // SAFETY: the handles are the table's own, each destroyed once.
    unsafe {
        assert_eq!(table.stream_create.unwrap()(device, &mut stream, null_mut()), status::OK);
        assert_eq!(table.stream_create.unwrap()(device, &mut other, null_mut()), status::OK);
        assert_ne!(stream, other);
        assert_eq!(table.event_create.unwrap()(device, &mut event, null_mut()), status::OK);
        let query = table.event_query.unwrap();
        assert_eq!(query(device, event), 0);
        let record = table.event_record.unwrap();
        assert_eq!(record(device, stream, event, 3, null_mut()), status::OK);
        assert_eq!(query(device, event), 3);
        assert_eq!(record(device, stream, event, 2, null_mut()), status::OK);
        assert_eq!(query(device, event), 3, "it only grows");
        assert_eq!(table.event_wait_host.unwrap()(device, event, 3, null_mut()), status::OK);

        let (handles, recorded) = ([device, stream, event].map(Handle), AtomicBool::new(false));
        std::thread::scope(|threads| {
            for on_stream in [false, true, false] {
                let recorded = &recorded;
                let (wait_host, wait_stream) =
                    (table.event_wait_host.unwrap(), table.event_wait_stream.unwrap());
                threads.spawn(move || {
                    let handles = &handles;
                    let [device, stream, event] = [handles[0].0, handles[1].0, handles[2].0];
                    let status = match on_stream {
                        true => wait_stream(device, stream, event, 10, null_mut()),
                        false => wait_host(device, event, 10, null_mut()),
                    };
                    assert_eq!(status, status::OK);
                    assert!(recorded.load(Ordering::SeqCst), "woken too early");
                });
            }
            std::thread::sleep(Duration::from_millis(20));
            assert_eq!(record(device, other, event, 9, null_mut()), status::OK);
            std::thread::sleep(Duration::from_millis(20));
            recorded.store(true, Ordering::SeqCst);
            assert_eq!(record(device, other, event, 10, null_mut()), status::OK);
        });
        assert_eq!(table.stream_synchronize.unwrap()(device, stream, null_mut()), status::OK);
        table.event_destroy.unwrap()(device, event);
        table.stream_destroy.unwrap()(device, stream);
        table.stream_destroy.unwrap()(device, other);
    }
}

#[test]
fn events_in_c_wake_those_who_wait() {
    let plugin = Plugin::open(&compile("in_c.c", "in_c-events", &[]));
    events(&plugin.table, null_mut());
}

#[test]
fn events_in_rust_wake_those_who_wait() {
    let (plugin, device) = adder();
    events(&plugin.table, device);
}

#[test]
fn buffers_in_rust_are_checked_and_freed() {
    let (plugin, device) = adder();
    let table = &plugin.table;
    let mut buffer = null_mut();
    let mut error = null_mut();
    // SAFETY: the handles are the table's own; the places are as long as is said.
    unsafe {
        let mut info: DeviceInfo = std::mem::zeroed();
        info.size = size_of::<DeviceInfo>() as u32;
        let ask = table.device_info.unwrap();
        assert_eq!(ask(table.backend, 0, &mut info, null_mut()), status::OK);
        assert_eq!(inline_str(&info.name), "an adder in Rust");
        assert_eq!((info.synchronous, info.host_memory), (1, 1));

        assert_eq!(table.buffer_alloc.unwrap()(device, 16, &mut buffer, &mut error), status::OK);
        assert_eq!(plugin.host.live(), 1);
        assert_eq!(table.buffer_host_pointer.unwrap()(device, buffer) as usize % 256, 0);
        let (source, mut target) = ([1u8, 2, 3, 4], [0u8; 4]);
        let up = table.copy_to_device.unwrap();
        let down = table.copy_to_host.unwrap();
        let (from, to) = (source.as_ptr().cast(), target.as_mut_ptr().cast());
        assert_eq!(up(device, null_mut(), buffer, 12, from, 4, &mut error), status::OK);
        assert_eq!(down(device, null_mut(), buffer, 12, to, 4, &mut error), status::OK);
        assert_eq!(target, source);
        assert_eq!(up(device, null_mut(), buffer, 13, from, 4, &mut error), status::INVALID);
        assert_eq!(
            plugin.host.error(error).1,
            "a copy of 4 bytes at 13 reaches outside the buffer of 16"
        );
        assert_eq!(down(device, null_mut(), buffer, u64::MAX, to, 4, &mut error), status::INVALID);
        let none = std::ptr::null();
        assert_eq!(up(device, null_mut(), buffer, 0, none, 4, &mut error), status::INVALID);
        assert_eq!(up(device, null_mut(), null_mut(), 0, from, 4, &mut error), status::INVALID);
        table.buffer_free.unwrap()(device, buffer);
        table.device_close.unwrap()(device);
    }
    assert_eq!(plugin.host.live(), 0);
}
