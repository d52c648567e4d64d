//! A test backend: the CPU crate's own table, in host memory and synchronous, from which
//! some kernels are taken away. Each registration is a backend of its own: another GPU, or
//! an overlay of cpu:0.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use ultramarine_abi::fused::{
    ANCHORED_INTERFACE, Anchor, AnchoredInterface, FusedInterface, Program, family,
};
use ultramarine_abi::helper::{
    Backend, CommandRef, Failure, Host, InterfaceRef, Result, SyncDevice, device_of, init as fill,
};
use ultramarine_abi::schema::{self, op};
use ultramarine_abi::*;

/// An operation that the host asked to prepare.
pub struct Request {
    /// The op's id.
    pub op: u32,
    /// First attribute: the code of a unary, binary ... function; 0 if there is none.
    pub code: u32,
    /// Names of the dtypes of inputs and outputs.
    pub dtypes: Vec<&'static str>,
    /// A tensor is not contiguous.
    pub strided: bool,
}

/// Decides on the status of a request.
pub type Filter = Box<dyn Fn(&Request) -> Status + Send + Sync>;

struct Config {
    filter: Filter,
    fused: bool,
    anchored: Option<Status>,
    overlay: bool,
    /// How often a program is answered NOT_YET before it is taken, from now on.
    not_yet: AtomicU64,
    name: &'static std::ffi::CStr,
    /// Status that `submit` gives instead of working, or OK.
    submit: Status,
    commands: AtomicU64,
    /// Number of commands of each submit.
    lists: Mutex<Vec<u32>>,
    fails: Mutex<Option<Fails>>,
}

/// A failure to come.
#[derive(Clone, Copy)]
pub struct Fails {
    /// So many commands run first.
    pub after: u64,
    /// The error says which command of its list it is.
    pub says: bool,
}

/// A registered partial backend.
pub struct Partial {
    /// Its device, or cpu:0.
    pub device: ultramarine::Device,
    config: &'static Config,
}

impl Partial {
    /// Commands that it ran.
    pub fn commands(&self) -> u64 {
        self.config.commands.load(Ordering::Relaxed)
    }

    /// Number of commands of each submit since the last call.
    pub fn lists(&self) -> Vec<u32> {
        std::mem::take(&mut self.config.lists.lock().unwrap())
    }

    /// Has one command fail.
    pub fn fail(&self, fails: Fails) {
        *self.config.fails.lock().unwrap() = Some(fails);
    }
}

/// Properties of a partial backend, besides its filter.
#[derive(Clone, Copy)]
pub struct Like {
    /// It takes fused programs.
    pub fused: bool,
    /// Its answer for programs with an anchor, if it has the interface; OK takes what the CPU takes.
    pub anchored: Option<Status>,
    /// It overlays cpu:0.
    pub overlay: bool,
    /// So many questions for programs are answered NOT_YET first.
    pub not_yet: u64,
    /// The status that `submit` returns without running commands; OK runs them.
    pub submit: Status,
    /// Its name.
    pub name: &'static std::ffi::CStr,
}

/// A GPU without fused programs.
pub const PLAIN: Like = Like {
    fused: false,
    anchored: None,
    overlay: false,
    not_yet: 0,
    submit: status::OK,
    name: c"partial",
};

thread_local! {
    static NEXT: Cell<Option<&'static Config>> = const { Cell::new(None) };
}

/// Registers a backend that prepares what `filter` answers OK to.
pub fn register(like: Like, filter: Filter) -> Partial {
    let config: &'static Config = Box::leak(Box::new(Config {
        filter,
        fused: like.fused,
        anchored: like.anchored,
        overlay: like.overlay,
        not_yet: AtomicU64::new(like.not_yet),
        name: like.name,
        submit: like.submit,
        commands: AtomicU64::new(0),
        lists: Mutex::default(),
        fails: Mutex::default(),
    }));
    NEXT.set(Some(config));
    // SAFETY: the table below keeps to the contract.
    let devices = unsafe { ultramarine::register(init) }.expect("the partial backend registers");
    Partial { device: devices[0], config }
}

/// The CPU's table and its device.
struct Cpu(BackendTable, *mut c_void);
// SAFETY: the handle is only passed to the table's functions, which any thread may call.
unsafe impl Send for Cpu {}
// SAFETY: as above.
unsafe impl Sync for Cpu {}

static CPU: OnceLock<Cpu> = OnceLock::new();

fn cpu() -> &'static BackendTable {
    &CPU.get().expect("registered").0
}

fn cpu_device() -> *mut c_void {
    CPU.get().expect("registered").1
}

/// A backend or its device: the properties that it was registered with, and the host that lends memory.
#[derive(Clone, Copy)]
struct Configured {
    config: &'static Config,
    host: Host,
}

impl Backend for Configured {
    type Device = Configured;

    fn new(host: Host) -> Result<Self> {
        Ok(Self { config: NEXT.take().ok_or("one registration at a time")?, host })
    }

    fn device_info(&self, index: u32, info: &mut DeviceInfo) -> Result<()> {
        let ask = cpu().device_info.expect("the CPU describes itself");
        // SAFETY: the CPU's own handle; the struct says its size.
        match unsafe { ask(cpu().backend, index, info, std::ptr::null_mut()) } {
            status::OK => {}
            _ => return Err(Failure::new("the CPU has no such device")),
        }
        info.name[0] = b'P' as c_char;
        if !self.config.fused {
            info.fused_max_instructions = 0;
        }
        Ok(())
    }

    fn open(&self, _: u32) -> Result<Self> {
        Ok(*self)
    }

    fn interface(&self, id: &CStr) -> Option<InterfaceRef> {
        let fused = self.config.fused && id == ultramarine_abi::fused::INTERFACE;
        if self.config.anchored.is_some() && id == ANCHORED_INTERFACE {
            return Some(InterfaceRef::anchored(&ANCHORED));
        }
        fused.then(|| InterfaceRef::fused(&FUSED))
    }
}

/// Its buffers; kernels are the CPU's.
impl SyncDevice for Configured {
    ultramarine_abi::host_memory_buffers!(host);

    type Plan = ();

    fn run(&self, _: &(), _: &CommandRef<'_, Self>) -> Result<()> {
        Err("commands go to the CPU's table".into())
    }
}

unsafe fn config(device: *mut c_void) -> &'static Config {
    // SAFETY: a handle that `Configured::open` is behind.
    unsafe { device_of::<Configured>(device) }.expect("a device").config
}

fn name(d: &TensorDesc) -> &'static str {
    schema::DTYPES.iter().find(|(_, dl)| *dl == d.dtype).map_or("?", |(name, _)| name)
}

unsafe fn descs<'a>(d: *const TensorDesc, n: u32) -> &'a [TensorDesc] {
    // SAFETY: the host's descriptions.
    if n == 0 { &[] } else { unsafe { std::slice::from_raw_parts(d, n as usize) } }
}

#[allow(clippy::too_many_arguments, reason = "the contract has it so")]
unsafe extern "C" fn prepare(
    device: *mut c_void,
    id: u32,
    revision: u32,
    attributes: *const c_void,
    inputs: *const TensorDesc,
    n_inputs: u32,
    outputs: *const TensorDesc,
    n_outputs: u32,
    plan: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the host's arguments; attribute structs begin with their size, and those of
    // these ops have an op code behind it.
    let (all, code) = unsafe {
        let coded = matches!(id, op::UNARY | op::BINARY | op::REDUCE | op::ARG_REDUCE | op::SCAN)
            || matches!(id, op::SCATTER_AXIS | op::SCATTER);
        let code = if coded { *(attributes as *const u32).add(1) } else { 0 };
        let all: Vec<_> =
            descs(inputs, n_inputs).iter().chain(descs(outputs, n_outputs)).copied().collect();
        (all, code)
    };
    let request = Request {
        op: id,
        code,
        dtypes: all.iter().map(name).collect(),
        strided: all.iter().any(|d| d.layout != layout::CONTIGUOUS),
    };
    // SAFETY: a device's handle.
    match (unsafe { config(device) }.filter)(&request) {
        // SAFETY: passed on from the host.
        status::OK => unsafe {
            cpu().prepare.expect("there")(
                cpu_device(),
                id,
                revision,
                attributes,
                inputs,
                n_inputs,
                outputs,
                n_outputs,
                plan,
                error,
            )
        },
        refusal => refusal,
    }
}

unsafe extern "C" fn release(_: *mut c_void, plan: *mut c_void) {
    // SAFETY: passed on from the host.
    unsafe { cpu().plan_release.expect("there")(cpu_device(), plan) }
}

unsafe extern "C" fn submit(
    device: *mut c_void,
    stream: *mut c_void,
    commands: *const Command,
    n: u32,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: a device's handle.
    let Configured { config, host } =
        *unsafe { device_of::<Configured>(device) }.expect("a device");
    if config.submit != status::OK {
        return config.submit;
    }
    config.lists.lock().unwrap().push(n);
    let mut fails = config.fails.lock().unwrap();
    let failed = fails.filter(|f| f.after < n.into());
    *fails = match failed {
        Some(_) => None,
        None => fails.map(|f| Fails { after: f.after - u64::from(n), ..f }),
    };
    drop(fails);
    let runs = failed.map_or(n, |f| f.after as u32);
    config.commands.fetch_add(runs.into(), Ordering::Relaxed);
    // SAFETY: passed on from the host, or fewer of its commands.
    let code = unsafe { cpu().submit.expect("there")(cpu_device(), stream, commands, runs, error) };
    let Some(fails) = failed else { return code };
    // SAFETY: the host's place, and an error that is made here.
    unsafe {
        *error = host.error(status::ERROR, "on purpose");
        if fails.says {
            host.error_command(*error, runs);
        }
    }
    status::ERROR
}

/// A program is taken if each of its instructions would be, as an op.
unsafe extern "C" fn prepare_fused(
    device: *mut c_void,
    program: *const Program,
    inputs: *const TensorDesc,
    outputs: *const TensorDesc,
    plan: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: the host's program and descriptions; the handle is a device's.
    unsafe {
        let p = &*program;
        let instructions = match p.n_instructions {
            0 => &[],
            n => std::slice::from_raw_parts(p.instructions, n as usize),
        };
        let takes = |op: u32, code: u32, dtypes: Vec<&'static str>| {
            let request = Request { op, code, dtypes, strided: false };
            (config(device).filter)(&request) == status::OK
        };
        for i in instructions {
            let op = match i.family {
                family::UNARY => op::UNARY,
                family::BINARY => op::BINARY,
                family::SELECT => op::SELECT,
                _ => op::COPY,
            };
            let found = schema::DTYPES.iter().find(|(_, dl)| *dl == i.dtype);
            if !takes(op, i.op as u32, vec![found.map_or("?", |(name, _)| name)]) {
                return status::UNSUPPORTED;
            }
        }
        let reduces = p.reduce != ultramarine_abi::fused::NO_REDUCTION;
        if reduces && !takes(op::REDUCE, p.reduce, vec![name(&*outputs)]) {
            return status::UNSUPPORTED;
        }
        let fewer = |n: u64| n.checked_sub(1);
        let order = Ordering::Relaxed;
        if config(device).not_yet.fetch_update(order, order, fewer).is_ok() {
            return status::NOT_YET;
        }
        let id = ultramarine_abi::fused::INTERFACE.as_ptr();
        let ask = cpu().interface.expect("there")(cpu().backend, id) as *const FusedInterface;
        (*ask).prepare.expect("there")(cpu_device(), program, inputs, outputs, plan, error)
    }
}

unsafe extern "C" fn prepare_anchored(
    device: *mut c_void,
    program: *const Program,
    anchor: *const Anchor,
    inputs: *const TensorDesc,
    outputs: *const TensorDesc,
    plan: *mut *mut c_void,
    error: *mut *mut Error,
) -> Status {
    // SAFETY: a device's handle; passed on from the host.
    unsafe {
        match config(device).anchored {
            Some(status::OK) => {}
            answer => return answer.unwrap_or(status::UNSUPPORTED),
        }
        let ask = cpu().interface.expect("there")(cpu().backend, ANCHORED_INTERFACE.as_ptr());
        let prepare = (*ask.cast::<AnchoredInterface>()).prepare.expect("there");
        prepare(cpu_device(), program, anchor, inputs, outputs, plan, error)
    }
}

static ANCHORED: AnchoredInterface = AnchoredInterface {
    size: size_of::<AnchoredInterface>() as u32,
    flags: 0,
    prepare: Some(prepare_anchored),
};

static FUSED: FusedInterface = FusedInterface {
    size: size_of::<FusedInterface>() as u32,
    flags: 0,
    prepare: Some(prepare_fused),
};

unsafe extern "C" fn init(
    host: *const HostTable,
    out: *mut BackendTable,
    error: *mut *mut Error,
) -> Status {
    let config = NEXT.get().expect("one registration at a time");
    CPU.get_or_init(|| {
        // SAFETY: all-zero is a valid table; the host's table is passed on.
        unsafe {
            let mut table: BackendTable = std::mem::zeroed();
            table.size = size_of::<BackendTable>() as u32;
            assert_eq!(ultramarine_cpu::backend_init(host, &mut table, error), status::OK);
            let mut device = std::ptr::null_mut();
            let open = table.device_open.expect("there");
            assert_eq!(open(table.backend, 0, &mut device, error), status::OK);
            Cpu(table, device)
        }
    });
    let device_type = match config.overlay {
        true => cpu().device_type,
        false => dlpack::device_type::EXT_DEV,
    };
    let mut own = *cpu();
    // SAFETY: the host's arguments, and a table that says its size.
    let code = unsafe { fill::<Configured>(config.name, device_type, host, &mut own, error) };
    if code != status::OK {
        return code;
    }
    // Streams, events and all else are as in the CPU's table.
    let mut t = BackendTable {
        backend: own.backend,
        name: own.name,
        device_type,
        device_count: own.device_count,
        device_info: own.device_info,
        device_open: own.device_open,
        device_close: own.device_close,
        prepare: Some(prepare),
        plan_release: Some(release),
        submit: Some(submit),
        interface: own.interface,
        ..*cpu()
    };
    if !config.overlay {
        t.buffer_alloc = own.buffer_alloc;
        t.buffer_free = own.buffer_free;
        t.buffer_host_pointer = own.buffer_host_pointer;
        t.copy_to_device = own.copy_to_device;
        t.copy_to_host = own.copy_to_host;
    }
    // SAFETY: the host's place for the table.
    unsafe { *out = t };
    status::OK
}
