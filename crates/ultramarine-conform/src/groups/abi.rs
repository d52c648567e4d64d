//! Layout and versions: calls of the entry points with structs of other sizes than this contract's.

use crate::device::Device;
use crate::host;
use crate::options::Options;
use crate::plugin::{Backend, Entry, Source, call, status_name};
use crate::record::{PASSED, Recorder, Result, skip};
use serde_json::json;
use ultramarine_abi::{
    self as abi, BackendAbiInfo, BackendScore, BackendTable, DeviceIdentity, DeviceInfo, HostTable,
    device_flag, dlpack::device_type, schema, status,
};

/// Memory for a struct of the contract with another size, followed by a pattern.
#[repr(C, align(16))]
struct Room<const N: usize>([u8; N]);

const PATTERN: u8 = 0x5C;

impl<const N: usize> Room<N> {
    /// Makes memory that is zero up to `size`, with `size` in the first word, followed by the
    /// pattern.
    fn new(size: usize) -> Self {
        let mut bytes = [PATTERN; N];
        bytes[..size].fill(0);
        bytes[..4].copy_from_slice(&(size as u32).to_ne_bytes());
        Room(bytes)
    }

    fn said(&self) -> u32 {
        u32::from_ne_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }

    /// Checks that only bytes within `size` were written, and that the struct says so.
    fn validate(&self, size: usize, what: &str) -> Result<()> {
        if self.0[size..].iter().any(|b| *b != PATTERN) {
            return Err(format!("{what} given {size} bytes wrote behind them"));
        }
        if self.said() as usize > size {
            return Err(format!("{what} given {size} bytes says it wrote {}", self.said()));
        }
        Ok(())
    }
}

pub fn run(recorder: &mut Recorder, options: &Options, source: &Source) {
    let entry = match source.entry() {
        Ok(entry) => entry,
        Err(text) => {
            recorder.check("abi/load", || Err(text));
            return;
        }
    };
    recorder.check("abi/info", || info(&entry));
    recorder.check("abi/info with other sizes", || info_sizes(&entry));
    recorder.check("abi/score starts no threads", || score_threads(&entry));
    recorder.check("abi/score", || score(&entry, None));
    recorder.check("abi/score with room for no device", || score(&entry, Some((0, 0))));
    recorder.check("abi/score with room for one", || score(&entry, Some((1, 0))));
    recorder.check("abi/score with room for many", || score(&entry, Some((8, 0))));
    recorder.check("abi/score with long elements", || score(&entry, Some((8, 40))));
    recorder.check("abi/init with a short table", || init_short(&entry));
    recorder.check("abi/init with a long table", || init_long(&entry));
    recorder.check("abi/init twice", || init_twice(&entry));
    recorder.check("abi/init with a longer host table", || init_long_host(&entry));
    let backend = match Backend::load(source) {
        Ok(backend) => backend,
        Err(text) => {
            recorder.check("abi/init", || Err(text));
            return;
        }
    };
    recorder.check("abi/table", || table(&backend));
    recorder.check("abi/functions", || functions(&backend));
    recorder.check("abi/device info with other sizes", || device_sizes(&backend, options.device));
    recorder.check("abi/devices", || devices(&backend));
    recorder.check("abi/longer structs in a command", || {
        let device = Device::open(&backend, options.device)?;
        let result = super::forward_compatibility::structs(&device);
        device.close();
        result
    });
    if let Ok(device) = Device::open(&backend, options.device) {
        super::accumulation::run(recorder, &device);
        device.close();
    }
    properties(recorder, &entry, &backend, options.device);
}

fn info(entry: &Entry) -> Result {
    let Some(info) = entry.info()? else { return skip("linked in: no entry points") };
    let same = |what: &str, said: u64, ours: u64| {
        if said == ours { Ok(()) } else { Err(format!("{what} is {said}, the kit's is {ours}")) }
    };
    same("size", info.size.into(), size_of::<BackendAbiInfo>() as u64)?;
    same("abi_major", info.abi_major.into(), abi::ABI_MAJOR.into())?;
    same("abi_minor", info.abi_minor.into(), abi::ABI_MINOR.into())?;
    same("dlpack_major", info.dlpack_major.into(), abi::DLPACK.0.into())?;
    same("table_size", info.table_size.into(), size_of::<BackendTable>() as u64)?;
    same("pointer_bits", info.pointer_bits.into(), usize::BITS.into())?;
    same("endianness", info.endianness.into(), abi::endianness::LITTLE.into())?;
    same("reserved", info.reserved.into(), 0)?;
    same("flags", info.flags.into(), 0)?;
    let name = abi::inline_str(&info.name);
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return Err(format!("the name {name:?} is not of lower-case letters, digits and _"));
    }
    let variant = abi::inline_str(&info.variant);
    if !variant.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)) {
        return Err(format!("the variant {variant:?} has characters that none may have"));
    }
    PASSED
}

fn info_sizes(entry: &Entry) -> Result {
    let Some(ask) = entry.abi_info else { return skip("linked in: no entry points") };
    let whole = size_of::<BackendAbiInfo>();
    for size in [8, 16, whole - 256, whole, whole + 64] {
        let mut room = Room::<2048>::new(size);
        // SAFETY: the place says how many bytes of it may be written.
        let code = unsafe { ask(room.0.as_mut_ptr().cast()) };
        ensure!(code == status::OK, "abi_info given {size} bytes returned {}", status_name(code));
        room.validate(size, "abi_info")?;
    }
    PASSED
}

/// The score function must be cheap, because it may be called for a backend that is then not used.
/// It must create no context and no threads, not even the threads of a driver that it asks for
/// devices. Such a driver should be asked in init.
fn score_threads(entry: &Entry) -> Result {
    let before = threads();
    let result = score(entry, None);
    match threads().saturating_sub(before) {
        0 => result,
        n => Err(format!("score started {n} threads; start them in device_open")),
    }
}

/// `room` is the capacity for devices, and the number of bytes by which each element is longer than
/// this contract's.
fn score(entry: &Entry, room: Option<(u32, usize)>) -> Result {
    let Some(ask) = entry.score else { return skip("no score function") };
    let (capacity, longer) = room.unwrap_or((0, 0));
    let stride = size_of::<DeviceIdentity>() + longer;
    let mut devices = vec![PATTERN; stride * capacity as usize + 64];
    for i in 0..capacity as usize {
        devices[i * stride..][..stride - longer].fill(0);
        let size = (stride - longer) as u32;
        devices[i * stride..][..4].copy_from_slice(&size.to_ne_bytes());
    }
    // SAFETY: all-zero bytes are a score.
    let mut score: BackendScore = unsafe { std::mem::zeroed() };
    score.size = size_of::<BackendScore>() as u32;
    score.device_capacity = capacity;
    score.device_stride = stride as u32;
    score.devices = if capacity == 0 { std::ptr::null_mut() } else { devices.as_mut_ptr().cast() };
    // SAFETY: the struct is writable, says its size and the room for devices.
    let code = unsafe { ask(&mut score) };
    ensure!(code == status::OK, "score returned {}", status_name(code));
    let reason = abi::inline_str(&score.reason);
    ensure!(score.score <= abi::MAX_SCORE, "score {} is above {}", score.score, abi::MAX_SCORE);
    ensure!(score.score != 0, "the backend cannot run here, so it cannot be tested: {reason}");
    let written = capacity.min(score.device_count) as usize;
    if devices[stride * capacity as usize..].iter().any(|b| *b != PATTERN) {
        return Err("score wrote behind the devices".into());
    }
    for i in 0..capacity as usize {
        let gap = &devices[i * stride + stride - longer..][..longer];
        if gap.iter().any(|b| *b != PATTERN) {
            return Err(format!("score wrote between the elements {i} and {}", i + 1));
        }
        let size = &devices[i * stride..][..4];
        let size = u32::from_ne_bytes([size[0], size[1], size[2], size[3]]) as usize;
        if i < written && (size == 0 || size > stride - longer) {
            return Err(format!("device {i} of the score says it has {size} bytes"));
        }
    }
    PASSED
}

/// Returns the number of threads of this process, if the system reports it.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

fn init_in<const N: usize>(entry: &Entry, size: usize) -> Result<Box<Room<N>>> {
    let mut room = Box::new(Room::<N>::new(size));
    let table = room.0.as_mut_ptr().cast();
    // SAFETY: the place says how many bytes of it may be written.
    call("init", |e| unsafe { (entry.init)(host::table(), table, e) })
        .map_err(|f| format!("init given a table of {size} bytes: {f}"))?;
    room.validate(size, "init")?;
    Ok(room)
}

fn init_short(entry: &Entry) -> Result {
    for size in [std::mem::offset_of!(BackendTable, interface), 64] {
        init_in::<1024>(entry, size)?;
    }
    PASSED
}

fn init_long(entry: &Entry) -> Result {
    let whole = size_of::<BackendTable>();
    let room = init_in::<1024>(entry, whole + 128)?;
    if (room.said() as usize) < whole {
        return Err(format!("the table has {} bytes, this contract's {whole}", room.said()));
    }
    PASSED
}

fn init_twice(entry: &Entry) -> Result {
    let tables = [entry.init()?, entry.init()?];
    let [first, second] = tables.map(|t| {
        (t.prepare.map(|f| f as usize), t.submit.map(|f| f as usize), t.device_type, t.size)
    });
    ensure!(first == second, "two calls of init return different tables");
    PASSED
}

fn init_long_host(entry: &Entry) -> Result {
    /// A host table of a later version.
    #[repr(C)]
    struct Longer {
        table: HostTable,
        more: [u64; 8],
    }
    let mut longer = Longer { table: *host::table(), more: [u64::MAX; 8] };
    longer.table.size = size_of::<Longer>() as u32;
    let longer = Box::leak(Box::new(longer));
    // SAFETY: all-zero bytes are a table without functions.
    let mut table: BackendTable = unsafe { std::mem::zeroed() };
    table.size = size_of::<BackendTable>() as u32;
    let host = (&raw const *longer).cast::<HostTable>();
    // SAFETY: both tables are valid; the host's is never freed.
    call("init", |e| unsafe { (entry.init)(host, &mut table, e) })?;
    PASSED
}

fn table(backend: &Backend) -> Result {
    let table = &backend.table;
    if u32::from(table.abi_major) != abi::ABI_MAJOR || u32::from(table.abi_minor) != abi::ABI_MINOR
    {
        return Err(format!("the table is of version {}.{}", table.abi_major, table.abi_minor));
    }
    if (table.size as usize) < size_of::<BackendTable>() {
        return Err(format!("the table has {} bytes", table.size));
    }
    ensure!(!table.name.is_null(), "the table has no name");
    // SAFETY: the name is static and ends with NUL, by contract.
    let name = unsafe { std::ffi::CStr::from_ptr(table.name) }.to_string_lossy().into_owned();
    if let Some(info) = &backend.info {
        let declared = abi::inline_str(&info.name);
        ensure!(declared == name, "the table's name is {name:?}, the ABI info's {declared:?}");
        if info.device_type != table.device_type {
            return Err(format!(
                "the table's device type is {}, the ABI info's {}",
                table.device_type, info.device_type
            ));
        }
    }
    PASSED
}

/// Checks the functions that the contract requires.
pub fn functions(backend: &Backend) -> Result {
    let t = &backend.table;
    let mut missing = Vec::new();
    macro_rules! require {
        ($($name:ident)*) => {$(if t.$name.is_none() { missing.push(stringify!($name)); })*};
    }
    require!(device_count device_info device_open prepare plan_release submit);
    let core = missing.len();
    require!(buffer_alloc buffer_free copy_to_device copy_to_host
        stream_create stream_destroy stream_synchronize event_create event_record event_wait_stream
        event_wait_host event_query event_destroy);
    let overlay = t.device_type == device_type::CPU && t.buffer_alloc.is_none();
    let is_whole = core == 0 && (overlay || missing.is_empty());
    let (missing, first) = (missing.join(", "), missing.first().unwrap_or(&""));
    ensure!(
        is_whole,
        "the table lacks {missing}: set them in ultramarine_backend_init (t.{first} = {first})"
    );
    PASSED
}

fn device_sizes(backend: &Backend, index: u32) -> Result {
    let Some(describe) = backend.table.device_info else { return skip("no device_info") };
    let whole = size_of::<DeviceInfo>();
    for size in [16, 48, whole, whole + 32] {
        let mut room = Room::<1024>::new(size);
        let place = room.0.as_mut_ptr().cast();
        // SAFETY: the place says how many bytes of it may be written.
        call("device_info", |e| unsafe { describe(backend.table.backend, index, place, e) })?;
        room.validate(size, "device_info")?;
    }
    PASSED
}

fn devices(backend: &Backend) -> Result {
    let Some(count) = backend.table.device_count else { return skip("no device_count") };
    // SAFETY: the backend's function with the backend's pointer.
    let n = unsafe { count(backend.table.backend) };
    ensure!(n != 0, "init succeeded, but there are no devices");
    for index in 0..n {
        let device = Device::open(backend, index)?;
        let known = (1u32 << schema::DTYPES.len()) - 1;
        let masks = [device.info.dtypes_storage, device.info.dtypes_arithmetic];
        if masks.iter().any(|m| m & !known != 0) {
            return Err(format!("device {index} names dtypes that the contract does not have"));
        }
        if device.info.dtypes_arithmetic & !device.info.dtypes_storage != 0 {
            return Err(format!("device {index} computes with dtypes that it does not store"));
        }
        ensure!(!abi::inline_str(&device.info.name).is_empty(), "device {index} has no name");
        device.close();
    }
    PASSED
}

/// Bits of a device's flags, by name.
const FLAGS: [(u32, &str); 5] = [
    (device_flag::DETERMINISTIC, "deterministic"),
    (device_flag::FLUSHES_SUBNORMALS, "flushes subnormals"),
    (device_flag::REDUCED_PRECISION, "reduced precision"),
    (device_flag::WAITS_IN_COMMANDS, "waits in commands"),
    (device_flag::UPLOADS_IN_ORDER, "uploads in order"),
];

fn properties(recorder: &mut Recorder, entry: &Entry, backend: &Backend, index: u32) {
    let text = |field: &[core::ffi::c_char]| abi::inline_str(field);
    if let Some(ask) = entry.score {
        // SAFETY: all-zero bytes are a score.
        let mut score: BackendScore = unsafe { std::mem::zeroed() };
        score.size = size_of::<BackendScore>() as u32;
        // SAFETY: the struct is writable and says its size; there is room for no device.
        if unsafe { ask(&mut score) } == status::OK {
            recorder
                .property("score", json!({ "score": score.score, "devices": score.device_count }));
        }
    }
    if let Some(info) = &backend.info {
        recorder.property("abi info bytes", json!(super::info_bytes(info)));
        recorder.property(
            "backend",
            json!({
                "name": text(&info.name), "variant": text(&info.variant),
                "version": text(&info.version), "target": text(&info.target),
                "compiler": text(&info.compiler), "cpu_features": text(&info.cpu_features),
                "device_type": info.device_type,
            }),
        );
    }
    let Ok(device) = Device::open(backend, index) else { return };
    let info = &device.info;
    let flags: Vec<&str> = FLAGS.iter().filter(|f| info.flags & f.0 != 0).map(|f| f.1).collect();
    let names = |mask: u32| schema::dtype_names(mask).collect::<Vec<_>>();
    recorder.property(
        "device",
        json!({
            "index": index, "name": text(&info.name), "overlay": device.overlay,
            "synchronous": info.synchronous != 0, "host_memory": info.host_memory != 0,
            "storage": names(info.dtypes_storage), "arithmetic": names(info.dtypes_arithmetic),
            "accumulate": names(info.dtypes_accumulate), "memory": info.memory,
            "flags": flags, "alignment": info.alignment, "max_buffer": info.max_buffer,
            "max_inputs": info.max_inputs, "kernel_languages": text(&info.kernel_languages),
            "fused_max_instructions": info.fused_max_instructions,
            "fused_max_inputs": info.fused_max_inputs,
        }),
    );
    device.close();
}
