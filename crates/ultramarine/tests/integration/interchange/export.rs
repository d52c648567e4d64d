//! What an export is.

use super::foreign::{Memory, Tensor};
use super::own_stream;
use ultramarine::interchange::dlpack::{DLDevice, ManagedTensor, device_type, flag};
use ultramarine::interchange::{ExportOptions, Kind};
use ultramarine::{Array, Dtype, Error, Result};

const LEGACY: ExportOptions = ExportOptions {
    kind: Kind::Legacy,
    device: None,
    stream: None,
    stream_keeper: None,
    copy: None,
};
const COPY: ExportOptions = ExportOptions {
    kind: Kind::Versioned,
    device: None,
    stream: None,
    stream_keeper: None,
    copy: Some(true),
};

fn data(tensor: &ManagedTensor) -> *mut u8 {
    tensor.tensor().data.cast::<u8>().wrapping_add(tensor.tensor().byte_offset as usize)
}

fn sizes(tensor: &ManagedTensor) -> Vec<(usize, Option<isize>)> {
    (0..tensor.ndim()).map(|i| (tensor.size(i), tensor.stride(i))).collect()
}

fn base() -> Result<Array> {
    Array::from_slice(&(0..24).collect::<Vec<i32>>(), &[4, 6])
}

#[test]
fn views_keep_their_strides_and_an_aligned_base() -> Result<()> {
    let _scope = own_stream()?;
    let x = base()?;
    let start = x.value()?.buffer.as_ptr();
    type Case = (Array, usize, Vec<(usize, Option<isize>)>);
    let cases: Vec<Case> = vec![
        (x.clone(), 0, vec![(4, Some(6)), (6, Some(1))]),
        (x.transpose()?, 0, vec![(6, Some(1)), (4, Some(6))]),
        (x.slice(&[1, 2], &[4, 6], &[2, 3])?, 8, vec![(2, Some(12)), (2, Some(3))]),
        (x.flip(None)?, 23, vec![(4, Some(-6)), (6, Some(-1))]),
        (
            x.slice(&[2, 0], &[3, 6], &[1, 1])?.broadcast_to(&[3, 6])?,
            12,
            vec![(3, Some(0)), (6, Some(1))],
        ),
    ];
    for (view, first, wanted) in cases {
        for options in [ExportOptions::default(), LEGACY] {
            let tensor = view.to_dlpack_with(options.clone())?;
            assert_eq!(sizes(&tensor), wanted);
            assert_eq!(tensor.tensor().data, start.cast());
            assert_eq!(tensor.tensor().byte_offset, 4 * first as u64);
            assert!((tensor.tensor().data as usize).is_multiple_of(256));
            assert_eq!(tensor.version().is_none(), options.kind == Kind::Legacy);
            assert_eq!(tensor.flags(), 0);
            let again = Array::from_dlpack(tensor)?;
            assert_eq!(again.to_vec::<i32>()?, view.to_vec::<i32>()?);
        }
    }
    let scalar = Array::scalar(3i64).to_dlpack()?;
    assert_eq!((scalar.ndim(), Array::from_dlpack(scalar)?.item::<i64>()?), (0, 3));
    Ok(())
}

#[test]
fn lazy_arrays_are_computed_first() -> Result<()> {
    let _scope = own_stream()?;
    let x = (&base()? * 2)?;
    assert!(!x.is_evaluated());
    assert_eq!(x.dlpack_device()?, DLDevice { device_type: device_type::CPU, device_id: 0 });
    assert!(!x.is_evaluated(), "the device is told without the values");
    let tensor = x.to_dlpack()?;
    // SAFETY: row-major numbers, which nobody writes to.
    let values = unsafe { std::slice::from_raw_parts(data(&tensor).cast::<i32>(), 24) };
    assert_eq!(values, (0..24).map(|n| 2 * n).collect::<Vec<i32>>());
    // What cannot be computed is no tensor.
    let failed = Array::from_slice(&[0i32], &[1])?.to_dlpack_with(ExportOptions {
        device: Some(DLDevice { device_type: device_type::VULKAN, device_id: 0 }),
        ..COPY
    });
    assert!(matches!(failed, Err(Error::BufferDevice(_))));
    Ok(())
}

#[test]
fn a_copy_is_flagged_and_alone() -> Result<()> {
    let _scope = own_stream()?;
    let x = base()?;
    for view in [x.clone(), x.transpose()?, x.flip(None)?] {
        for kind in [Kind::Versioned, Kind::Legacy] {
            let tensor = view.to_dlpack_with(ExportOptions { kind, ..COPY })?;
            assert_ne!(data(&tensor), view.value()?.data());
            let flags = if kind == Kind::Legacy { 0 } else { flag::IS_COPIED };
            assert_eq!(tensor.flags(), flags);
            assert!(!view.value()?.buffer.is_escaped(), "the array's own memory stayed");
            // SAFETY: the copy has 24 numbers, and nobody else has it.
            unsafe { data(&tensor).cast::<i32>().write(-1) };
            let copy = Array::from_dlpack(tensor)?;
            let mut wanted = view.to_vec::<i32>()?;
            wanted[0] = -1;
            assert_eq!(copy.to_vec::<i32>()?, wanted);
            assert_eq!(copy.value()?.buffer.is_escaped(), kind == Kind::Legacy);
        }
    }
    for copy in [None, Some(false)] {
        let tensor = x.to_dlpack_with(ExportOptions { copy, ..ExportOptions::default() })?;
        assert_eq!((data(&tensor), tensor.is_copied()), (x.value()?.data(), false));
    }
    Ok(())
}

#[test]
fn read_only_memory_is_never_given_without_saying_so() -> Result<()> {
    let _scope = own_stream()?;
    let memory = Memory::of(&[1i32, 2, 3]);
    let (made, _) = Tensor::new(&memory, Dtype::Int32, &[3]).flags(flag::READ_ONLY).make();
    let x = Array::from_dlpack(made)?;
    match x.to_dlpack_with(LEGACY) {
        Err(Error::Buffer(text)) => assert!(text.contains("read-only"), "{text}"),
        other => panic!("{other:?}"),
    }
    // A copy may be written to.
    for kind in [Kind::Versioned, Kind::Legacy] {
        let tensor = x.to_dlpack_with(ExportOptions { kind, ..COPY })?;
        assert!(!tensor.is_read_only());
        assert_eq!(Array::from_dlpack(tensor)?.to_vec::<i32>()?, [1, 2, 3]);
    }
    // What is computed from it is ours.
    assert!(!(&x + 1)?.to_dlpack()?.is_read_only());
    Ok(())
}

#[test]
fn the_host_has_no_streams() -> Result<()> {
    let _scope = own_stream()?;
    let x = base()?;
    for stream in [-1, 0, 1, 2, 77] {
        let options = ExportOptions { stream: Some(stream), ..ExportOptions::default() };
        assert!(matches!(x.to_dlpack_with(options), Err(Error::Value(_))), "{stream}");
    }
    let here = DLDevice { device_type: device_type::CPU, device_id: 0 };
    let tensor = x.to_dlpack_with(ExportOptions { device: Some(here), ..ExportOptions::default() });
    assert_eq!(data(&tensor?), x.value()?.data());
    let there = DLDevice { device_type: device_type::CPU, device_id: 1 };
    let tensor =
        x.to_dlpack_with(ExportOptions { device: Some(there), ..ExportOptions::default() });
    assert!(matches!(tensor, Err(Error::BufferDevice(_))));
    Ok(())
}

#[test]
fn an_import_goes_on_with_its_memory() -> Result<()> {
    let _scope = own_stream()?;
    let memory = Memory::of(&(0..24).collect::<Vec<i32>>());
    let (made, count) =
        Tensor::new(&memory, Dtype::Int32, &[2, 3]).offset(20).strides(&[6, -1]).make();
    let mut tensor = Array::from_dlpack(made)?.to_dlpack()?;
    for _ in 0..5 {
        tensor = Array::from_dlpack(tensor)?.to_dlpack()?;
        assert_eq!(data(&tensor), memory.at(20));
        assert_eq!(sizes(&tensor), [(2, Some(6)), (3, Some(-1))]);
        assert_eq!(count.get(), 0);
    }
    let view = Array::from_dlpack(tensor)?.slice(&[1, 0], &[2, 3], &[1, 1])?;
    assert_eq!(view.to_vec::<i32>()?, [11, 10, 9]);
    assert_eq!(count.get(), 0);
    drop(view);
    assert_eq!(count.get(), 1);
    Ok(())
}

#[cfg(target_pointer_width = "64")]
#[test]
fn lent_tensors_cannot_be_padded() -> Result<()> {
    let _scope = own_stream()?;
    for dtype in Dtype::STORAGE {
        let x = Array::ones(&[4], dtype)?;
        match (x.to_dlpack()?.flags() & flag::IS_SUBBYTE_TYPE_PADDED, x.lend()) {
            (0, lent) => assert_eq!(lent?.dtype, dtype.to_dl()),
            (_, Err(Error::Buffer(text))) => assert!(text.contains(dtype.name()), "{text}"),
            (_, lent) => panic!("{dtype}: {lent:?}"),
        }
    }
    Ok(())
}
