//! The contract's side of the backend: decodes requests, catches panics.

use crate::{
    dtype::DType,
    fused as fused_kernels,
    index::{gather, gather_axis, scatter, scatter_axis},
    kernel::{Args, Context, Desc, Kernel, Prepared, Refusal, Signature, View, read_attrs},
    level::Level,
    order::{arg_reduce, scan, sort},
    par::Par,
    random,
};
use core::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use ultramarine_abi::{self as abi, Status, dlpack, fused, schema::op, status};

/// Most tensors of one command that are viewed without an allocation.
const INLINE_TENSORS: usize = 24;

/// A plan as the host holds it: the kernel, and the dtypes it was made for.
struct Plan {
    kernel: Box<dyn Kernel>,
    inputs: Vec<DType>,
    outputs: Vec<DType>,
}

struct State {
    host: abi::HostTable,
    context: Context,
}

static STATE: OnceLock<State> = OnceLock::new();

/// Sets the error object, if the caller wants one.
///
/// # Safety
/// `error` is NULL or writable.
unsafe fn fail(error: *mut *mut abi::Error, code: Status, text: &str) -> Status {
    let host = STATE.get().map(|s| s.host);
    if let Some(abi::HostTable { error_new: Some(new), host, .. }) = host
        && !error.is_null()
    {
        // SAFETY: the host's function with the host's pointer; `error` is writable.
        unsafe { *error = new(host, code, text.as_ptr() as *const c_char, text.len() as u64) };
    }
    code
}

/// Runs `f`; a panic becomes an error.
///
/// # Safety
/// `error` is NULL or writable.
unsafe fn guard(
    error: *mut *mut abi::Error,
    f: impl FnOnce() -> Result<(), (Status, String)>,
) -> Status {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => status::OK,
        // SAFETY: passed on from the caller.
        Ok(Err((code, text))) => unsafe { fail(error, code, &text) },
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| panic.downcast_ref::<&str>().copied())
                .unwrap_or("unknown panic");
            // SAFETY: passed on from the caller.
            unsafe { fail(error, status::ERROR, &format!("CPU kernel panicked: {text}")) }
        }
    }
}

fn prepare_op(
    id: u32,
    attributes: *const c_void,
    signature: &Signature<'_>,
    level: Level,
) -> Prepared {
    macro_rules! attrs {
        () => {
            // SAFETY: the host passes the op's attribute struct.
            unsafe { read_attrs(attributes) }?
        };
    }
    match id {
        op::COPY..=op::REDUCE => {
            // SAFETY: the host's attributes are the op's struct.
            unsafe { fused_kernels::prepare_op(id, attributes, signature, level) }
        }
        op::MATMUL => crate::gemm::prepare(signature, level),
        op::GATHER => gather::prepare(attrs!(), signature, level),
        op::SCATTER => scatter::prepare(attrs!(), signature, level),
        op::GATHER_AXIS => gather_axis::prepare(attrs!(), signature, level),
        op::SCATTER_AXIS => scatter_axis::prepare(attrs!(), signature, level),
        op::SORT => sort::prepare(attrs!(), signature, false, level),
        op::ARG_SORT => sort::prepare(attrs!(), signature, true, level),
        op::SCAN => scan::prepare(attrs!(), signature, level),
        op::ARG_REDUCE => arg_reduce::prepare(attrs!(), signature, level),
        op::RANDOM_BITS => random::prepare(signature, level),
        _ => Err(Refusal::Unsupported),
    }
}

/// # Safety
/// The descriptions are readable (`n` of them).
unsafe fn decode(descs: *const abi::TensorDesc, n: u32) -> Option<Vec<Desc>> {
    if n == 0 {
        return Some(Vec::new());
    }
    // SAFETY: by this function's contract.
    unsafe { std::slice::from_raw_parts(descs, n as usize) }.iter().map(Desc::new).collect()
}

/// Hands a prepared kernel to the host.
///
/// # Safety
/// `plan` is writable.
unsafe fn finish(
    prepared: Prepared,
    inputs: &[Desc],
    outputs: &[Desc],
    plan: *mut *mut c_void,
) -> Result<(), (Status, String)> {
    let kernel = prepared.map_err(|refusal| match refusal {
        Refusal::Unsupported => (status::UNSUPPORTED, "not supported by the CPU backend".into()),
        Refusal::NeedsContiguous => (status::NEEDS_CONTIGUOUS, "needs contiguous inputs".into()),
        Refusal::Invalid(text) => (status::ERROR, text),
    })?;
    let dtypes = |d: &[Desc]| d.iter().map(|d| d.dtype).collect();
    let made = Plan { kernel, inputs: dtypes(inputs), outputs: dtypes(outputs) };
    // SAFETY: by this function's contract.
    unsafe { *plan = Box::into_raw(Box::new(made)) as *mut c_void };
    Ok(())
}

#[allow(clippy::too_many_arguments, reason = "the contract has it so")]
unsafe extern "C" fn prepare(
    _device: *mut c_void,
    id: u32,
    revision: u32,
    attributes: *const c_void,
    inputs: *const abi::TensorDesc,
    n_inputs: u32,
    outputs: *const abi::TensorDesc,
    n_outputs: u32,
    plan: *mut *mut c_void,
    error: *mut *mut abi::Error,
) -> Status {
    let work = || {
        if revision != 1 {
            return Err((status::UNSUPPORTED, format!("revision {revision} is unknown")));
        }
        // SAFETY: the host's arrays have the lengths it says.
        let (ins, outs) = unsafe { (decode(inputs, n_inputs), decode(outputs, n_outputs)) };
        let (Some(ins), Some(outs)) = (ins, outs) else {
            return Err((status::UNSUPPORTED, "a dtype or rank is unknown".into()));
        };
        let signature = Signature { inputs: &ins, outputs: &outs };
        let prepared = prepare_op(id, attributes, &signature, Level::current());
        // SAFETY: the host gives a place for the plan.
        unsafe { finish(prepared, &ins, &outs, plan) }
    };
    // SAFETY: the host's error place.
    unsafe { guard(error, work) }
}

unsafe extern "C" fn prepare_fused(
    _device: *mut c_void,
    program: *const fused::Program,
    inputs: *const abi::TensorDesc,
    outputs: *const abi::TensorDesc,
    plan: *mut *mut c_void,
    error: *mut *mut abi::Error,
) -> Status {
    let work = || {
        // SAFETY: the host passes a program; it was linked with this very struct.
        let program = unsafe { program.as_ref() }
            .filter(|p| p.size as usize >= size_of::<fused::Program>())
            .ok_or((status::UNSUPPORTED, "a program of another version".to_string()))?;
        // SAFETY: the host's arrays have the lengths that the program says.
        let (ins, outs) =
            unsafe { (decode(inputs, program.n_inputs), decode(outputs, program.n_outputs)) };
        let (Some(ins), Some(outs)) = (ins, outs) else {
            return Err((status::UNSUPPORTED, "a dtype or rank is unknown".into()));
        };
        let signature = Signature { inputs: &ins, outputs: &outs };
        // SAFETY: the program's arrays have the lengths that it says.
        let prepared =
            unsafe { fused_kernels::prepare_program(program, &signature, Level::current()) };
        // SAFETY: the host gives a place for the plan.
        unsafe { finish(prepared, &ins, &outs, plan) }
    };
    // SAFETY: the host's error place.
    unsafe { guard(error, work) }
}

unsafe extern "C" fn plan_release(_device: *mut c_void, plan: *mut c_void) {
    if !plan.is_null() {
        // SAFETY: the host gives back, once, what `finish` made.
        let plan = unsafe { Box::from_raw(plan as *mut Plan) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(plan)));
    }
}

/// # Safety
/// `tensors` points at `dtypes.len()` tensors, `stride` bytes apart, valid for `'a`.
unsafe fn views<'a>(
    tensors: *const abi::Tensor,
    stride: u32,
    dtypes: &[DType],
    room: &mut [core::mem::MaybeUninit<View<'a>>],
) {
    for (i, dtype) in dtypes.iter().enumerate() {
        // SAFETY: by this function's contract.
        let tensor =
            unsafe { &*((tensors as *const u8).add(i * stride as usize) as *const abi::Tensor) };
        // SAFETY: a tensor of the host's obeys the contract.
        room[i].write(unsafe { View::new(tensor, *dtype) });
    }
}

unsafe extern "C" fn submit(
    _device: *mut c_void,
    _stream: *mut c_void,
    commands: *const abi::Command,
    n_commands: u32,
    error: *mut *mut abi::Error,
) -> Status {
    let work = || {
        let state = STATE.get().ok_or((status::ERROR, "not initialised".to_string()))?;
        for i in 0..n_commands as usize {
            // SAFETY: the host gives n_commands commands, each valid for the call.
            let command = unsafe { &*commands.add(i) };
            // SAFETY: the plan is one of ours, not yet released.
            let plan = unsafe { &*(command.plan as *const Plan) };
            if command.n_inputs as usize != plan.inputs.len()
                || command.n_outputs as usize != plan.outputs.len()
            {
                return Err((
                    status::ERROR,
                    format!(
                        "a command with {} inputs and {} outputs for a plan with {} and {}",
                        command.n_inputs,
                        command.n_outputs,
                        plan.inputs.len(),
                        plan.outputs.len()
                    ),
                ));
            }
            // SAFETY: counts were checked; the rest is the contract of `submit`.
            unsafe { run(&state.context, plan, command) }.map_err(|e| (status::ERROR, e))?;
        }
        Ok(())
    };
    // SAFETY: the host's error place.
    unsafe { guard(error, work) }
}

/// # Safety
/// `command` is valid and fits `plan`.
unsafe fn run(cx: &Context, plan: &Plan, command: &abi::Command) -> Result<(), String> {
    use core::mem::MaybeUninit;
    let (n_in, n_out) = (plan.inputs.len(), plan.outputs.len());
    let mut inline = [const { MaybeUninit::<View<'_>>::uninit() }; INLINE_TENSORS];
    let mut spilled = Vec::new();
    let room: &mut [MaybeUninit<View<'_>>] = if n_in + n_out <= INLINE_TENSORS {
        &mut inline[..n_in + n_out]
    } else {
        spilled.resize_with(n_in + n_out, MaybeUninit::uninit);
        &mut spilled
    };
    let (ins, outs) = room.split_at_mut(n_in);
    // SAFETY: the command holds that many tensors; every view is written before
    // the slices are read as initialised; View is plain data.
    let args = unsafe {
        views(command.inputs, command.tensor_stride, &plan.inputs, ins);
        views(command.outputs, command.tensor_stride, &plan.outputs, outs);
        Args {
            inputs: &*(ins as *const [MaybeUninit<View<'_>>] as *const [View<'_>]),
            outputs: &*(outs as *const [MaybeUninit<View<'_>>] as *const [View<'_>]),
            scalars: if command.n_scalars == 0 {
                &[]
            } else {
                std::slice::from_raw_parts(command.scalars, command.n_scalars as usize)
            },
        }
    };
    // SAFETY: the host's tensors obey the contract.
    unsafe { plan.kernel.run(cx, &args) }
}

unsafe extern "C" fn interface(_backend: *mut c_void, id: *const c_char) -> *const c_void {
    if id.is_null() {
        return core::ptr::null();
    }
    // SAFETY: the host passes a NUL-terminated id.
    if unsafe { core::ffi::CStr::from_ptr(id) } == fused::INTERFACE {
        return (&raw const FUSED) as *const c_void;
    }
    core::ptr::null()
}

static FUSED: fused::FusedInterface = fused::FusedInterface {
    size: size_of::<fused::FusedInterface>() as u32,
    flags: 0,
    prepare: Some(prepare_fused),
};

unsafe extern "C" fn device_count(_backend: *mut c_void) -> u32 {
    1
}

unsafe extern "C" fn device_info(
    _backend: *mut c_void,
    index: u32,
    info: *mut abi::DeviceInfo,
    error: *mut *mut abi::Error,
) -> Status {
    if index != 0 || info.is_null() {
        // SAFETY: the host's error place.
        return unsafe { fail(error, status::ERROR, &format!("no CPU device {index}")) };
    }
    let all = (1 << abi::schema::DTYPES.len()) - 1;
    let half = 1 << 9 | 1 << 12;
    let text = format!("CPU ({})", Level::current().name());
    // SAFETY: all-zero is a valid DeviceInfo.
    let mut told: abi::DeviceInfo = unsafe { core::mem::zeroed() };
    told.size = size_of::<abi::DeviceInfo>() as u32;
    told.synchronous = 1;
    told.host_memory = 1;
    told.dtypes_storage = all;
    told.dtypes_arithmetic = all;
    told.dtypes_accumulate = half;
    told.fused_max_instructions = 64;
    told.fused_max_inputs = 16;
    told.name = abi::inline_text(&text);
    told.flags = abi::device_flag::DETERMINISTIC;
    told.alignment = 256;
    told.identity.size = size_of::<abi::DeviceIdentity>() as u32;
    told.identity.name = told.name;
    // SAFETY: the host's struct says its size.
    unsafe { abi::write_sized(info, &told) };
    status::OK
}

unsafe extern "C" fn device_open(
    _backend: *mut c_void,
    _index: u32,
    device: *mut *mut c_void,
    _error: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the host gives a place for the handle.
    unsafe { *device = core::ptr::null_mut() };
    status::OK
}

/// The table. Buffers, streams and events of the CPU are the host's own, so those
/// functions stay NULL.
pub fn table() -> abi::BackendTable {
    abi::BackendTable {
        size: size_of::<abi::BackendTable>() as u32,
        abi_major: abi::ABI_MAJOR as u16,
        abi_minor: abi::ABI_MINOR as u16,
        backend: core::ptr::null_mut(),
        name: c"cpu".as_ptr(),
        device_type: dlpack::device_type::CPU,
        reserved: 0,
        device_count: Some(device_count),
        device_info: Some(device_info),
        device_open: Some(device_open),
        device_close: None,
        buffer_alloc: None,
        buffer_free: None,
        buffer_host_pointer: None,
        copy_to_device: None,
        copy_to_host: None,
        stream_create: None,
        stream_destroy: None,
        stream_synchronize: None,
        event_create: None,
        event_record: None,
        event_wait_stream: None,
        event_wait_host: None,
        event_query: None,
        event_destroy: None,
        prepare: Some(prepare),
        plan_release: Some(plan_release),
        plan_workspace: None,
        submit: Some(submit),
        interface: Some(interface),
    }
}

/// The backend's entry point: keeps the host's table and fills the backend's.
///
/// # Safety
/// `host` and `out` point at valid tables; the host outlives the process's use of
/// the backend.
pub unsafe extern "C" fn backend_init(
    host: *const abi::HostTable,
    out: *mut abi::BackendTable,
    _error: *mut *mut abi::Error,
) -> Status {
    // SAFETY: by this function's contract.
    let host = unsafe { *host };
    STATE.get_or_init(|| State {
        host,
        context: Context { par: Par::new(host), level: Level::current() },
    });
    // SAFETY: by this function's contract.
    unsafe { *out = table() };
    status::OK
}
