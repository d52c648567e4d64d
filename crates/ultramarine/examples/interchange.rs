//! Tensors in and out without copies, and what each way costs:
//! `cargo run --release -p ultramarine --example interchange` shows both and prints nanoseconds per
//! operation as JSON, the least of many rounds. `producer` is what a tensor that does nothing costs by
//! itself (to make it, to run its deleter), which the imports contain.
#![allow(clippy::print_stdout)] // its purpose

use std::hint::black_box;
use std::ptr::{NonNull, null_mut};
use std::time::Instant;
use ultramarine::interchange::dlpack::{
    DLDataType, DLDevice, DLManagedTensorVersioned, DLPackVersion, DLTensor, ManagedTensor,
    device_type, type_code,
};
use ultramarine::interchange::{ExportOptions, Kind};
use ultramarine::{Array, Result};

/// What another library keeps: here four floats, with the header in the same place.
struct Theirs {
    managed: DLManagedTensorVersioned,
    shape: [i64; 1],
    strides: [i64; 1],
    elements: [f32; 4],
}

unsafe extern "C" fn done(_: *mut DLManagedTensorVersioned) {}

impl Theirs {
    fn new() -> Box<Theirs> {
        let header = DLTensor {
            data: null_mut(),
            device: DLDevice { device_type: device_type::CPU, device_id: 0 },
            ndim: 1,
            dtype: DLDataType { code: type_code::FLOAT, bits: 32, lanes: 1 },
            shape: null_mut(),
            strides: null_mut(),
            byte_offset: 0,
        };
        let managed = DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 3 },
            manager_ctx: null_mut(),
            deleter: Some(done),
            flags: 0,
            dl_tensor: header,
        };
        let mut theirs =
            Box::new(Theirs { managed, shape: [4], strides: [1], elements: [1.0, 2.0, 3.0, 4.0] });
        theirs.managed.dl_tensor.data = theirs.elements.as_mut_ptr().cast();
        theirs.managed.dl_tensor.shape = theirs.shape.as_mut_ptr();
        theirs.managed.dl_tensor.strides = theirs.strides.as_mut_ptr();
        theirs
    }

    /// The tensor, for whoever drops it before this is dropped.
    fn lend(&mut self) -> Result<ManagedTensor> {
        let raw: *mut DLManagedTensorVersioned = &raw mut self.managed;
        // SAFETY: a whole tensor, which lives longer than all who get it here.
        let (tensor, _) = unsafe { ManagedTensor::from_versioned(raw) }
            .map_err(ultramarine::interchange::refusal)?;
        Ok(tensor)
    }
}

/// Nanoseconds of one call of `f`: the least of many rounds.
fn time(mut f: impl FnMut()) -> f64 {
    const CALLS: u32 = 2_000;
    let mut least = f64::INFINITY;
    for _ in 0..200 {
        let start = Instant::now();
        for _ in 0..CALLS {
            f();
        }
        least = least.min(start.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    least
}

fn main() -> Result<()> {
    // In: their memory is an array. What they write later is seen by what is not computed yet.
    let mut theirs = Theirs::new();
    let x = Array::from_dlpack(theirs.lend()?)?;
    let sum = (&x + 1.0)?;
    theirs.elements[0] = 10.0;
    assert_eq!(sum.to_vec::<f32>()?, [11.0, 3.0, 4.0, 5.0]);
    // Out: a view of an array, with its strides. They may write to it.
    let y = Array::from_slice(&[1i32, 2, 3, 4], &[2, 2])?.transpose()?;
    let tensor = y.to_dlpack()?;
    assert_eq!((tensor.stride(0), tensor.stride(1)), (Some(1), Some(2)));
    // SAFETY: four numbers, kept by the tensor; nobody else looks at them now.
    unsafe { *tensor.tensor().data.cast::<i32>() = 9 };
    assert_eq!(y.to_vec::<i32>()?, [9, 3, 2, 4]);
    drop((tensor, x, sum));

    let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[4])?;
    x.eval()?;
    let mut failed = false;
    let mut lend = Theirs::new();
    let producer = time(|| drop(black_box(lend.lend())));
    let import = time(|| match lend.lend().and_then(Array::from_dlpack) {
        Ok(array) => drop(black_box(array)),
        Err(_) => failed = true,
    });
    let export = time(|| match x.to_dlpack() {
        Ok(tensor) => drop(black_box(tensor)),
        Err(_) => failed = true,
    });
    let raw = time(|| match x.to_dlpack().map(ManagedTensor::into_versioned) {
        // SAFETY: a tensor that was just made, and nobody else has.
        Ok(Ok(raw)) => unsafe { give_back(black_box(raw)) },
        _ => failed = true,
    });
    let legacy = ExportOptions { kind: Kind::Legacy, ..ExportOptions::default() };
    let legacy = time(|| match x.to_dlpack_with(legacy.clone()) {
        Ok(tensor) => drop(black_box(tensor)),
        Err(_) => failed = true,
    });
    let both = time(|| match x.to_dlpack().and_then(Array::from_dlpack) {
        Ok(array) => drop(black_box(array)),
        Err(_) => failed = true,
    });
    assert!(!failed);
    println!(
        "{{\"producer\": {producer:.1}, \"import\": {import:.1}, \"export\": {export:.1}, \
         \"export_and_deleter\": {raw:.1}, \"export_legacy\": {legacy:.1}, \
         \"export_and_import\": {both:.1}}}"
    );
    Ok(())
}

/// As a consumer in C does it.
///
/// # Safety
/// The caller owns the tensor.
unsafe fn give_back(raw: NonNull<DLManagedTensorVersioned>) {
    // SAFETY: alive until its deleter runs.
    unsafe {
        if let Some(deleter) = (*raw.as_ptr()).deleter {
            deleter(raw.as_ptr());
        }
    }
}
