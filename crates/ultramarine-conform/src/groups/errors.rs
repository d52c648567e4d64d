//! Error paths: requests that a host may make by mistake, or from another version, are refused with
//! a status and do not crash.

use super::with_device;
use crate::device::{Device, Handle, desc, words};
use crate::dtype::DType;
use crate::host;
use crate::options::Options;
use crate::plugin::{Failure, Source, call, status_name};
use crate::record::{PASSED, Recorder, Result, note, skip};
use ultramarine_abi::schema::{self, op};
use ultramarine_abi::{DeviceInfo, Status, TensorDesc, dlpack::DLDataType, layout, status};

pub fn run(recorder: &mut Recorder, options: &Options, _source: &Source) {
    with_device(recorder, options, "errors", |recorder, device| {
        recorder.check("errors/device_info of a wrong index", || bad_index(device, false));
        recorder.check("errors/device_open of a wrong index", || bad_index(device, true));
        recorder.check("errors/without a place for the error", || no_place(device));
        recorder.check("errors/unknown op", || refused(device, &PlanRequest::of(9999)));
        recorder.check("errors/unknown revision", || {
            for revision in [0, 2, u32::MAX] {
                refused(device, &PlanRequest { revision, ..PlanRequest::of(op::UNARY) })?;
            }
            PASSED
        });
        recorder.check("errors/unknown code", || {
            let code =
                |op| PlanRequest { attributes: Some(words(&[8u32, 9999])), ..PlanRequest::of(op) };
            refused(device, &code(op::UNARY))?;
            refused(device, &PlanRequest { n_inputs: 2, ..code(op::BINARY) })
        });
        recorder.check("errors/attributes with an unknown tail", || tail(device, 1));
        recorder.check("errors/attributes with a tail of zeros", || tail(device, 0));
        recorder.check("errors/attributes that are too short", || {
            // The request is refused, or read as if zeros followed: the contract allows both.
            PlanRequest { attributes: Some(vec![4]), ..PlanRequest::of(op::UNARY) }.code(device);
            PASSED
        });
        recorder.check("errors/no attributes", || {
            not_ok(device, &PlanRequest { attributes: None, ..PlanRequest::of(op::UNARY) })
        });
        recorder.check("errors/unknown dtypes", || unknown_dtypes(device));
        recorder.check("errors/impossible ranks", || {
            for ndim in [33, 1000, -1, i32::MIN] {
                not_ok(device, &PlanRequest { ndim, ..PlanRequest::of(op::UNARY) })?;
            }
            PASSED
        });
        recorder.check("errors/wrong number of tensors", || {
            for n_inputs in [0, 1, 3] {
                not_ok(device, &PlanRequest { n_inputs, ..PlanRequest::of(op::BINARY) })?;
            }
            PASSED
        });
        recorder.check("errors/a result of another dtype", || {
            not_ok(device, &PlanRequest { output: DType::I64.dl(), ..PlanRequest::of(op::UNARY) })
        });
        recorder.check("errors/an axis that is not there", || {
            let axis =
                |op| PlanRequest { attributes: Some(words(&[8u32, 7])), ..PlanRequest::of(op) };
            not_ok(device, &axis(op::SORT))
        });
        recorder.check("errors/the largest rank", || largest_rank(device));
        recorder.check("errors/unknown interface", || unknown_interface(device));
        recorder.check("errors/submit of nothing", || submit_nothing(device));
        recorder.check("errors/no error objects are lost", || match host::live_errors() {
            0 => PASSED,
            n => Err(format!("{n} error objects were made and not returned; return each")),
        });
    });
}

/// A request for a plan with one mistake. Apart from that, its tensors have float32, rank 1 and
/// contiguous layout.
struct PlanRequest {
    op: u32,
    revision: u32,
    attributes: Option<Vec<u64>>,
    ndim: i32,
    dtype: DLDataType,
    output: DLDataType,
    n_inputs: usize,
}

impl PlanRequest {
    fn of(op: u32) -> Self {
        let float = DType::F32.dl();
        PlanRequest {
            op,
            revision: 1,
            // Size 8, code or axis 0.
            attributes: Some(vec![8]),
            ndim: 1,
            dtype: float,
            output: float,
            n_inputs: 1,
        }
    }

    fn prepare(&self, device: &Device<'_>) -> Result<Handle, Failure> {
        let desc = |dtype| TensorDesc {
            size: size_of::<TensorDesc>() as u32,
            ndim: self.ndim,
            dtype,
            layout: layout::CONTIGUOUS,
        };
        let inputs = vec![desc(self.dtype); self.n_inputs];
        let attributes = self.attributes.as_deref();
        device.prepare_raw(self.op, self.revision, attributes, &inputs, &[desc(self.output)])
    }

    /// Describes the request and what is unusual in it.
    fn describe(&self) -> String {
        let op = schema::find(self.op).map_or("operation", |row| row.name);
        let id =
            if schema::find(self.op).is_none() { format!(" {}", self.op) } else { String::new() };
        let inputs = if self.n_inputs == 1 { "input" } else { "inputs" };
        let dtype = |t: DLDataType| match DType::all().find(|d| d.dl() == t) {
            Some(known) => known.name().to_owned(),
            None => format!("DLPack's type {} of {} bits and {} lanes", t.code, t.bits, t.lanes),
        };
        format!(
            "prepare of {op}{id} (revision {}) with {} {inputs} of rank {}, {} to {}",
            self.revision,
            self.n_inputs,
            self.ndim,
            dtype(self.dtype),
            dtype(self.output)
        )
    }

    fn code(&self, device: &Device<'_>) -> Status {
        note(|| self.describe());
        match self.prepare(device) {
            Ok(plan) => {
                device.release(plan);
                status::OK
            }
            Err(failure) => failure.code,
        }
    }
}

/// Expects UNSUPPORTED, for requests that a later version may make.
fn refused(device: &Device<'_>, request: &PlanRequest) -> Result {
    match request.code(device) {
        status::UNSUPPORTED => PASSED,
        other => Err(wrong(request, other, "UNSUPPORTED")),
    }
}

/// Returns the message for a wrong answer: the request, the status, and how such requests are to be
/// refused.
fn wrong(request: &PlanRequest, code: Status, expected: &str) -> String {
    let known = schema::find(request.op);
    let remedy = match known {
        None => ": refuse operations that the backend does not know",
        Some(_) if request.revision != 1 => ": compare `revision` with 1, the only one",
        Some(row) if request.n_inputs != row.inputs.len() => {
            ": compare the numbers of tensors with the operation's (um_check_arity of helper.h)"
        }
        Some(_) if !(0..=32).contains(&request.ndim) => {
            ": refuse ranks outside of 0 to UM_MAX_NDIM (um_check_arity of helper.h)"
        }
        Some(_) => "",
    };
    let (what, code) = (request.describe(), status_name(code));
    format!("{what} returned {code}, expected {expected}{remedy}")
}

/// Expects an error, for requests that no version may make.
fn not_ok(device: &Device<'_>, request: &PlanRequest) -> Result {
    match request.code(device) {
        status::UNSUPPORTED | status::INVALID | status::ERROR => PASSED,
        other => Err(wrong(request, other, "INVALID or UNSUPPORTED")),
    }
}

fn bad_index(device: &Device<'_>, open: bool) -> Result {
    let table = &device.backend.table;
    let count = table.device_count.ok_or("no device_count")?;
    // SAFETY: the backend's function with the backend's pointer.
    let n = unsafe { count(table.backend) };
    for index in [n, n + 1, u32::MAX] {
        let made = if open {
            let open = table.device_open.ok_or("no device_open")?;
            let mut handle = std::ptr::null_mut();
            // SAFETY: a place for the handle.
            call("device_open", |e| unsafe { open(table.backend, index, &mut handle, e) })
        } else {
            let describe = table.device_info.ok_or("no device_info")?;
            // SAFETY: all-zero bytes are a device info.
            let mut info: DeviceInfo = unsafe { std::mem::zeroed() };
            info.size = size_of::<DeviceInfo>() as u32;
            // SAFETY: the struct is writable and says its size.
            call("device_info", |e| unsafe { describe(table.backend, index, &mut info, e) })
        };
        match made {
            Ok(()) => return Err(format!("OK for device {index} of {n}")),
            Err(f) if f.text.is_none() => return Err(format!("{f} for device {index}")),
            Err(_) => {}
        }
    }
    PASSED
}

/// `error` may be NULL.
fn no_place(device: &Device<'_>) -> Result {
    let table = &device.backend.table;
    let open = table.device_open.ok_or("no device_open")?;
    let prepare = table.prepare.ok_or("no prepare")?;
    let (mut handle, mut plan) = (std::ptr::null_mut(), std::ptr::null_mut());
    let input = desc(DType::F32, 1, layout::CONTIGUOUS);
    let attributes = words(&schema::NoAttrs::new());
    // SAFETY: places for the handles; the arrays have the lengths that are said.
    let codes = unsafe {
        let none = std::ptr::null_mut();
        [
            open(table.backend, u32::MAX, &mut handle, none),
            prepare(
                device.handle,
                9999,
                1,
                attributes.as_ptr().cast(),
                &input,
                1,
                &input,
                1,
                &mut plan,
                none,
            ),
        ]
    };
    ensure!(!codes.contains(&status::OK), "OK where there was nothing to do: {codes:?}");
    PASSED
}

/// The attributes of a later version of UNARY: ABS, and more behind.
fn tail(device: &Device<'_>, value: u64) -> Result {
    let request = PlanRequest { attributes: Some(vec![16, value]), ..PlanRequest::of(op::UNARY) };
    let short = PlanRequest::of(op::UNARY).code(device);
    match (request.code(device), value) {
        (status::UNSUPPORTED, 1..) => PASSED,
        (other, 0) if other == short => PASSED,
        (other, _) => Err(format!(
            "{} returned {}; without the tail it returns {}",
            request.describe(),
            status_name(other),
            status_name(short)
        )),
    }
}

fn unknown_dtypes(device: &Device<'_>) -> Result {
    let mut all = Vec::new();
    for (code, bits, lanes) in
        [(2, 8, 1), (0, 4, 1), (7, 8, 1), (99, 32, 1), (2, 32, 4), (3, 64, 1)]
    {
        all.push(DLDataType { code, bits, lanes });
    }
    for dtype in all {
        let ask = PlanRequest { dtype, output: dtype, ..PlanRequest::of(op::UNARY) };
        refused(device, &ask).map_err(|e| format!("{e} for {dtype:?}"))?;
        let copy = PlanRequest { dtype, attributes: Some(vec![4]), ..PlanRequest::of(op::COPY) };
        refused(device, &copy).map_err(|e| format!("{e} for a copy from {dtype:?}"))?;
    }
    PASSED
}

/// The contract allows rank 32, but the backend decides if it supports this rank.
fn largest_rank(device: &Device<'_>) -> Result {
    let code = PlanRequest { ndim: 32, ..PlanRequest::of(op::UNARY) }.code(device);
    match code {
        status::OK | status::UNSUPPORTED => PASSED,
        other => Err(format!("prepare of unary with rank 32 returned {}", status_name(other))),
    }
}

fn unknown_interface(device: &Device<'_>) -> Result {
    let Some(ask) = device.backend.table.interface else { return skip("no interfaces") };
    for id in [c"ultramarine.nonsense/1", c"", c"ultramarine.fused/999", c"ultramarine.fused"] {
        // SAFETY: the backend's function with the backend's pointer and a C string.
        if !unsafe { ask(device.backend.table.backend, id.as_ptr()) }.is_null() {
            return Err(format!("there is an interface {id:?}"));
        }
    }
    PASSED
}

fn submit_nothing(device: &Device<'_>) -> Result {
    let stream = device.stream()?;
    let ended = device.submit(stream, &[]);
    device.synchronize(stream)?;
    device.destroy_stream(stream);
    ended
        .map_err(|failure| format!("{failure}; a list of 0 commands is right and does nothing"))?;
    PASSED
}
