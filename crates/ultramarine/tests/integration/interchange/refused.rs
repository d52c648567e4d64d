//! Valid tensors that no array can be.

use super::foreign::{Memory, Tensor};
use super::own_stream;
use std::mem::discriminant;
use ultramarine::interchange::dlpack::{DLDataType, check, device_type, type_code};
use ultramarine::interchange::{Import, ImportOptions};
use ultramarine::{Array, Device, Dtype, Error, Result, shape};
use ultramarine_test_support::own_process;

/// The error's words; whatever became of it, the deleter has run once.
fn refused(tensor: &Tensor, options: ImportOptions) -> String {
    let (made, count) = tensor.make();
    // Judging takes nothing.
    // SAFETY: an owned tensor is a valid one.
    let checked = unsafe { check(made.tensor(), made.flags()) }.expect("a valid tensor");
    let validated = Import::validate(&made, checked, options).map(|_| ());
    assert_eq!(count.get(), 0);
    let outcome = Array::from_dlpack_with(made, options).map(|_| ());
    assert_eq!(count.get(), 1);
    if let (Err(validated), Err(outcome)) = (&validated, &outcome) {
        assert_eq!(validated.to_string(), outcome.to_string());
        assert_eq!(discriminant(validated), discriminant(outcome));
    } else {
        assert!(validated.is_ok(), "{validated:?}");
    }
    match outcome {
        Err(Error::Buffer(text) | Error::BufferDevice(text)) => text.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn dtypes_without_a_dtype_are_named() {
    let memory = Memory::new(&[0; 64]);
    let of = |code, bits| {
        let dtype = DLDataType { code, bits, lanes: 1 };
        refused(&Tensor::typed(&memory, dtype, &[2]), ImportOptions::default())
    };
    let text = of(type_code::COMPLEX, 128);
    assert!(text.contains("complex128 (code 5, 128 bits)"), "{text}");
    assert!(text.contains("complex64"), "{text}");
    let text = of(type_code::COMPLEX, 32);
    assert!(text.contains("complex32 (code 5, 32 bits)"), "{text}");
}

#[test]
fn too_many_dimensions() -> Result<()> {
    let _scope = own_stream()?;
    let memory = Memory::of(&[5i32]);
    let of = |ndim| Tensor::new(&memory, Dtype::Int32, &vec![1; ndim]);
    let text = refused(&of(shape::MAX_NDIM + 1), ImportOptions::default());
    assert!(text.contains(&format!("{} dimensions", shape::MAX_NDIM + 1)), "{text}");
    assert!(text.contains(&shape::MAX_NDIM.to_string()), "{text}");
    refused(&of(64), ImportOptions { copy: Some(true), device: None });
    let most = Array::from_dlpack(of(shape::MAX_NDIM).make().0)?;
    assert_eq!((most.ndim(), most.item::<i32>()?), (shape::MAX_NDIM, 5));
    Ok(())
}

#[test]
fn devices_that_are_not_there() {
    own_process!();
    let memory = Memory::of(&[5i32]);
    let of = |kind, id| {
        let tensor = Tensor::new(&memory, Dtype::Int32, &[1]).device(kind, id);
        let text = refused(&tensor, ImportOptions::default());
        refused(&tensor, ImportOptions { device: Some(Device::CPU), copy: Some(true) });
        text
    };
    assert!(of(device_type::CPU, 1).contains("CPU 1"));
    for kind in [device_type::VULKAN, device_type::METAL, device_type::HEXAGON] {
        of(kind, 0);
    }
    // Nor where the array shall be.
    let (made, count) = Tensor::new(&memory, Dtype::Int32, &[1]).make();
    let there = ImportOptions { device: Some(Device::gpu(77)), copy: None };
    assert!(Array::from_dlpack_with(made, there).is_err());
    assert_eq!(count.get(), 1);
}
