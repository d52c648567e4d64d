//! Requests to backends when tensors cross: kinds of memory and numbers of streams, by DLPack's type of the device.
//! The backends are mocks of CUDA and Metal, which record the requests. Their devices' memory is really the
//! host's. (Real memory and queues: `backends::opencl::dlpack`.)

use crate::support::mock_device::{self, Buffer};
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use ultramarine::interchange::dlpack::{self, DLDataType, Description, check};
use ultramarine::interchange::{
    DLDevice, ExportOptions, Import, ImportOptions, ManagedTensor, StreamKeeper, consumer_stream,
};
use ultramarine::memory::reset_peak_on;
use ultramarine::{Array, Device, Error, Result, default_stream, register, synchronize};
use ultramarine_abi::helper::give;
use ultramarine_abi::interface::memory::{ForeignMemory, INTERFACE, MemoryInterface, kind};
use ultramarine_abi::{BackendTable, Error as AbiError, HostTable, Status, status};
use ultramarine_test_support::own_process;

/// The requests that the mocks got.
#[derive(Default)]
struct Requests {
    /// Kind, offset and bytes of imports.
    imports: Vec<(u32, u64, u64)>,
    /// Streams that ours waited for.
    waits: Vec<u64>,
    /// Streams that waited for ours, and for which value.
    signals: Vec<(u64, u64)>,
}

static REQUESTS: Mutex<Requests> =
    Mutex::new(Requests { imports: Vec::new(), waits: Vec::new(), signals: Vec::new() });

/// The memory behind an imported buffer.
struct Lent(ForeignMemory);
// SAFETY: owners may release on any thread.
unsafe impl Send for Lent {}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(release) = self.0.release {
            // SAFETY: the owner's own, once.
            unsafe { release(self.0.context) };
        }
    }
}

fn requests() -> MutexGuard<'static, Requests> {
    REQUESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// More bytes than this are refused.
const MOST: u64 = 1 << 16;

unsafe extern "C" fn import(
    _: *mut c_void,
    memory: *const ForeignMemory,
    buffer: *mut *mut c_void,
    _: *mut *mut AbiError,
) -> Status {
    // SAFETY: the host's struct.
    let block = unsafe { *memory };
    requests().imports.push((block.kind, block.offset, block.bytes));
    if block.bytes > MOST {
        return status::OUT_OF_MEMORY;
    }
    let len = block.bytes.div_ceil(4) as usize;
    let made = Buffer::new(block.handle as *mut f32, len, Lent(block));
    // SAFETY: the host's place.
    unsafe { give(buffer, made) }.map_or_else(|failure| failure.code, |()| status::OK)
}

unsafe extern "C" fn export(
    _: *mut c_void,
    buffer: *mut c_void,
    kind: u32,
    memory: *mut ForeignMemory,
    _: *mut *mut AbiError,
) -> Status {
    // SAFETY: a buffer of the mock's, and the host's struct.
    unsafe {
        let view = &*buffer.cast::<Buffer>();
        (*memory).kind = kind;
        (*memory).handle = view.data as u64;
        (*memory).bytes = 4 * view.len as u64;
    }
    status::OK
}

/// True while the other library's streams are at work: waits for them block.
static AT_WORK: AtomicBool = AtomicBool::new(false);

unsafe extern "C" fn wait_foreign(
    _: *mut c_void,
    stream: *mut c_void,
    foreign: u64,
    _: *mut *mut AbiError,
) -> Status {
    requests().waits.push(foreign);
    mock_device::enqueue(stream, || {
        while AT_WORK.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
    })
}

unsafe extern "C" fn signal_foreign(
    _: *mut c_void,
    foreign: u64,
    event: *mut c_void,
    value: u64,
    _: *mut *mut AbiError,
) -> Status {
    let recorded = mock_device::RECORDED.lock().unwrap().get(&(event as usize)).copied();
    if recorded.unwrap_or(0) < value {
        return status::INVALID;
    }
    requests().signals.push((foreign, value));
    status::OK
}

unsafe extern "C" fn native_stream(_: *mut c_void, stream: *mut c_void) -> u64 {
    stream as u64
}

macro_rules! mock {
    ($init:ident, $name:expr, $device_type:expr, $kind:expr, $streams:expr) => {
        unsafe extern "C" fn $init(
            host: *const HostTable,
            out: *mut BackendTable,
            error: *mut *mut AbiError,
        ) -> Status {
            unsafe extern "C" fn interface(_: *mut c_void, id: *const c_char) -> *const c_void {
                static TABLE: MemoryInterface = MemoryInterface {
                    size: size_of::<MemoryInterface>() as u32,
                    imports: 1 << $kind,
                    exports: 1 << $kind,
                    flags: 0,
                    import: Some(import),
                    export: Some(export),
                    wait_foreign: if $streams { Some(wait_foreign) } else { None },
                    native_stream: if $streams { Some(native_stream) } else { None },
                    signal_foreign: if $streams { Some(signal_foreign) } else { None },
                    retain_foreign: None,
                    release_foreign: None,
                };
                // SAFETY: an id of the host.
                match unsafe { CStr::from_ptr(id) } == INTERFACE {
                    true => (&raw const TABLE).cast(),
                    false => std::ptr::null(),
                }
            }
            // SAFETY: the host's tables.
            let code = unsafe { mock_device::init(host, out, error) };
            // SAFETY: the host's table.
            let t = unsafe { &mut *out };
            t.name = $name.as_ptr();
            t.device_type = $device_type;
            t.interface = Some(interface);
            code
        }
    };
}

mock!(cuda, c"cuda", dlpack::device_type::CUDA, kind::DEVICE_POINTER, true);
mock!(metal, c"metal", dlpack::device_type::METAL, kind::MTL_BUFFER, false);

static GIVEN_BACK: AtomicUsize = AtomicUsize::new(0);

struct Owner(#[allow(dead_code)] Box<[f32]>);

impl Drop for Owner {
    fn drop(&mut self) {
        GIVEN_BACK.fetch_add(1, Ordering::SeqCst);
    }
}

/// A tensor of `n` floats, counted up, of which every second is taken from the last on down.
fn tensor(device_type: i32, device_id: i32, n: usize) -> (ManagedTensor, usize) {
    let mut data: Box<[f32]> = (0..n as u16).map(f32::from).collect();
    let address = data.as_mut_ptr();
    let description = Description {
        data: address.cast(),
        device: DLDevice { device_type, device_id },
        dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
        shape: &[n / 2],
        strides: &[-2],
        byte_offset: 4 * (n as u64 - 1),
        flags: 0,
    };
    // SAFETY: the owner keeps the memory.
    (unsafe { ManagedTensor::new(Owner(data), &description) }, address as usize)
}

fn take(tensor: ManagedTensor, after: Option<u64>) -> Result<Array> {
    // SAFETY: an owned tensor is a valid one.
    let checked = unsafe { check(tensor.tensor(), tensor.flags()) }.expect("valid");
    let mut import = Import::validate(&tensor, checked, ImportOptions::default())?;
    if let Some(stream) = after {
        import = import.after(stream);
    }
    // SAFETY: validated from this tensor.
    unsafe { import.take(tensor) }
}

fn given(array: &Array, stream: Option<isize>) -> Result<ManagedTensor> {
    array.to_dlpack_with(ExportOptions { stream, ..ExportOptions::default() })
}

/// A consumer lets go of a tensor with work under way that reads it.
fn memory_is_reused_after_the_consumers_work(x: &Array) -> Result<()> {
    let ours = consumer_stream(DLDevice { device_type: dlpack::device_type::CUDA, device_id: 0 })?;
    // On our own stream, whose later work comes after it; a stream of theirs may be gone by then, unless it is kept.
    let keeper = Arc::new(());
    for (stream, kept, waits) in [
        (ours, false, &[][..]),
        (Some(1), false, &[1]),
        (Some(4444), false, &[1]),
        (Some(4444), true, &[4444, 1]),
    ] {
        let y = x.add(x)?;
        y.eval()?;
        AT_WORK.store(!waits.is_empty(), Ordering::SeqCst);
        let stream_keeper = kept.then(|| keeper.clone() as StreamKeeper);
        let out =
            y.to_dlpack_with(ExportOptions { stream, stream_keeper, ..Default::default() })?;
        assert_eq!(Arc::strong_count(&keeper), 1 + usize::from(kept));
        let alive = mock_device::BUFFERS.load(Ordering::SeqCst);
        drop(y);
        drop(out);
        assert_eq!(std::mem::take(&mut requests().waits), waits, "{stream:?}");
        let z = x.add(x)?;
        assert_eq!(z.to_vec::<f32>()?, [14.0, 10.0, 6.0, 2.0], "others' work delays ours");
        if !waits.is_empty() {
            assert_eq!(mock_device::BUFFERS.load(Ordering::SeqCst), alive + 1, "it was given away");
        }
        drop(z);
        AT_WORK.store(false, Ordering::SeqCst);
        while mock_device::BUFFERS.load(Ordering::SeqCst) >= alive {
            reset_peak_on(Some(x.device()))?;
            std::thread::yield_now();
        }
        requests().signals.clear();
        assert_eq!(Arc::strong_count(&keeper), 1, "the stream is kept for ever");
    }
    Ok(())
}

/// One thread gives a tensor while another has the device read it.
fn consumers_wait_for_recorded_uses(x: &Array) -> Result<()> {
    mock_device::RECORD_DELAY.store(20_000, Ordering::SeqCst);
    let reads = std::thread::scope(|scope| {
        let reads = scope.spawn(|| (0..3).try_for_each(|_| x.add(x)?.eval()));
        while !reads.is_finished() {
            given(x, Some(1))?;
        }
        reads.join().expect("no panic")
    });
    mock_device::RECORD_DELAY.store(0, Ordering::SeqCst);
    reads?;
    let mut requests = requests();
    requests.signals.clear();
    requests.waits.clear();
    Ok(())
}

// One test: devices are registered once, in this order.
#[test]
fn tensors_cross() -> Result<()> {
    own_process!();
    use dlpack::device_type::{CUDA, CUDA_HOST, CUDA_MANAGED, METAL};
    // Where nobody serves CUDA, the host reads what it can.
    for device_type in [CUDA_HOST, CUDA_MANAGED] {
        let x = take(tensor(device_type, 0, 4).0, None)?;
        assert_eq!((x.device(), x.to_vec::<f32>()?), (Device::CPU, vec![3.0, 1.0]));
    }
    assert!(matches!(take(tensor(CUDA, 0, 4).0, None), Err(Error::BufferDevice(_))));
    assert_eq!(GIVEN_BACK.swap(0, Ordering::SeqCst), 3);

    // SAFETY: the mocks keep to the contract.
    let gpus = unsafe { register(cuda) }?;
    let dl = |device_type| DLDevice { device_type, device_id: 1 };
    let ours = consumer_stream(dl(CUDA))?.expect("a stream");
    assert_eq!(consumer_stream(dl(CUDA_MANAGED))?, Some(ours));
    assert_eq!(consumer_stream(dl(CUDA_HOST))?, None);

    // An address: the block begins at the lowest element.
    for (device_type, after) in [(CUDA, None), (CUDA, Some(1)), (CUDA_MANAGED, Some(7777))] {
        let (tensor, address) = tensor(device_type, 1, 8);
        let x = take(tensor, after)?;
        assert_eq!((x.device(), x.to_vec::<f32>()?), (gpus[1], vec![7.0, 5.0, 3.0, 1.0]));
        assert_eq!(requests().imports.pop(), Some((kind::DEVICE_POINTER, 0, 28)));
        assert_eq!(requests().waits.pop(), after);
        let y = x.add(&x)?;
        assert_eq!((y.device(), y.to_vec::<f32>()?), (gpus[1], vec![14.0, 10.0, 6.0, 2.0]));
        let out = given(&x, Some(-1))?;
        let header = out.tensor();
        assert_eq!(out.device(), dl(CUDA));
        assert_eq!((header.data as usize, header.byte_offset), (address + 4, 24));
    }
    let host = take(tensor(CUDA_HOST, 1, 4).0, None)?;
    assert_eq!(host.device(), Device::CPU);
    drop(host);
    synchronize(default_stream(gpus[1])?)?;
    assert_eq!(GIVEN_BACK.swap(0, Ordering::SeqCst), 4);

    // Streams as CUDA numbers them.
    let (tensor_, _) = tensor(CUDA, 0, 8);
    let x = take(tensor_, None)?;
    for (stream, signalled) in
        [(None, Some(1)), (Some(1), Some(1)), (Some(2), Some(2)), (Some(-1), None)]
    {
        mock_device::DELAY.store(20_000, Ordering::SeqCst);
        let y = x.add(&x)?;
        ultramarine::async_eval(std::slice::from_ref(&y))?;
        let out = given(&y, stream)?;
        assert_eq!(requests().signals.pop().map(|(stream, _)| stream), signalled, "{stream:?}");
        mock_device::DELAY.store(0, Ordering::SeqCst);
        drop(out);
        // What they have submitted by then comes before whoever uses the memory next.
        assert_eq!(requests().waits.pop(), signalled.map(|_| 1), "{stream:?}");
        assert_eq!(y.to_vec::<f32>()?, [14.0, 10.0, 6.0, 2.0]);
        requests().signals.clear();
    }
    memory_is_reused_after_the_consumers_work(&x)?;
    consumers_wait_for_recorded_uses(&x)?;
    for wrong in [0, -2] {
        assert!(matches!(given(&x, Some(wrong)), Err(Error::Value(_))));
    }

    // What cannot be: the tensor goes back once.
    drop(x);
    synchronize(default_stream(gpus[0])?)?;
    GIVEN_BACK.store(0, Ordering::SeqCst);
    let error = take(tensor(CUDA, 0, MOST as usize).0, None).map(drop).unwrap_err();
    assert!(matches!(error, Error::Memory(_)), "{error:?}");
    let error = take(tensor(CUDA, 2, 8).0, None).map(drop).unwrap_err();
    assert!(error.to_string().contains("serves 2 devices of that type"), "{error}");
    let error = take(tensor(METAL, 0, 8).0, Some(5)).map(drop).unwrap_err();
    assert!(error.to_string().contains("\"metal\""), "{error}");
    assert_eq!(GIVEN_BACK.load(Ordering::SeqCst), 3);
    requests().imports.clear();

    // A handle: the block begins with the object. There are no streams that libraries share.
    // SAFETY: as above.
    let gpus = unsafe { register(metal) }?;
    let (tensor_, address) = tensor(METAL, 0, 8);
    let x = take(tensor_, None)?;
    assert_eq!((x.device(), x.to_vec::<f32>()?), (gpus[0], vec![7.0, 5.0, 3.0, 1.0]));
    assert_eq!(requests().imports.pop(), Some((kind::MTL_BUFFER, 0, 32)));
    let out = given(&x, None)?;
    assert_eq!((out.tensor().data as usize, out.tensor().byte_offset), (address, 28));
    assert_eq!(consumer_stream(DLDevice { device_type: METAL, device_id: 0 })?, None);
    let error = take(tensor(METAL, 0, 8).0, Some(5)).map(drop).unwrap_err();
    assert!(error.to_string().contains("cannot wait for streams of other libraries"), "{error}");
    assert!(requests().signals.is_empty() && requests().waits.is_empty());
    assert_eq!(mock_device::VIOLATIONS.load(Ordering::SeqCst), 0);
    Ok(())
}
