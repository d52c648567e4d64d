//! No example to follow: this breaks a rule of owning tensors, so that `cargo xtask sanitize` can see
//! that its sanitizers are awake. `leak`, `use-after-free` and `race` are what it can do wrong.

use std::process::ExitCode;
use ultramarine_dlpack::{DLDataType, DLDevice, Description, ManagedTensor};

/// A tensor of two numbers, which are its owner.
fn tensor() -> ManagedTensor {
    let mut numbers = vec![1u64, 2];
    let description = Description {
        data: numbers.as_mut_ptr().cast(),
        device: DLDevice { device_type: 1, device_id: 0 },
        dtype: DLDataType { code: 1, bits: 64, lanes: 1 },
        shape: &[2],
        strides: &[1],
        byte_offset: 0,
        flags: 0,
    };
    // SAFETY: the vector keeps its memory where it is, and it is nobody else's.
    unsafe { ManagedTensor::new(numbers, &description) }
}

/// An address that may be looked at from anywhere.
#[derive(Clone, Copy)]
struct Address(*mut u64);

// SAFETY: none: this is the wrong of it.
unsafe impl Send for Address {}

impl Address {
    fn add_one(self) {
        // SAFETY: none, where the tensor is gone or others write, too.
        unsafe { self.0.write_volatile(self.0.read_volatile() + 1) }
    }
}

fn main() -> ExitCode {
    let tensor = tensor();
    let address = Address(tensor.tensor().data.cast());
    match std::env::args().nth(1).as_deref() {
        // Given away to nobody.
        Some("leak") => assert!(tensor.into_versioned().is_ok()),
        Some("use-after-free") => {
            drop(tensor);
            address.add_one();
        }
        // Two threads write, and nothing orders them.
        Some("race") => {
            let other = std::thread::spawn(move || (0..1000).for_each(|_| address.add_one()));
            (0..1000).for_each(|_| address.add_one());
            return ExitCode::from(u8::from(other.join().is_err()));
        }
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}
