//! Lazy work and memory that others write to.

use super::foreign::{Memory, Tensor};
use super::own_stream;
use ultramarine::interchange::dlpack::flag;
use ultramarine::{Array, Dtype, Result};

fn import(memory: &std::sync::Arc<Memory>, flags: u64) -> Result<Array> {
    Array::from_dlpack(Tensor::new(memory, Dtype::Float32, &[4]).flags(flags).make().0)
}

/// Evaluates `x + 1`, whose operand nobody holds, and gives the address of the result.
fn plus_one(x: Array) -> Result<Array> {
    let y = (&x + 1.0)?;
    drop(x);
    y.eval()?;
    Ok(y)
}

#[test]
fn unevaluated_results_see_later_writes() -> Result<()> {
    let _scope = own_stream()?;
    let memory = Memory::of(&[1.0f32, 2.0, 3.0, 4.0]);
    let x = import(&memory, 0)?;
    let (early, late) = ((&x * 2.0)?, (&x * 2.0)?);
    early.eval()?;
    memory.write(0, 100.0f32);
    assert_eq!(early.to_vec::<f32>()?, [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(late.to_vec::<f32>()?, [200.0, 4.0, 6.0, 8.0]);
    Ok(())
}

#[test]
fn only_an_unshared_import_is_written_over() -> Result<()> {
    let _scope = own_stream()?;
    for (flags, ours) in [
        (0, false),
        (flag::READ_ONLY, false),
        (flag::READ_ONLY | flag::IS_COPIED, false),
        (flag::IS_COPIED, true),
    ] {
        let memory = Memory::of(&[1.0f32, 2.0, 3.0, 4.0]);
        let (made, count) = Tensor::new(&memory, Dtype::Float32, &[4]).flags(flags).make();
        let y = plus_one(Array::from_dlpack(made)?)?;
        assert_eq!(y.to_vec::<f32>()?, [2.0, 3.0, 4.0, 5.0]);
        assert_eq!(y.value()?.data() == memory.at(0), ours, "flags {flags}");
        assert_eq!(memory.read::<f32>(0), if ours { 2.0 } else { 1.0 });
        // Its memory lives as long as the result.
        assert_eq!(count.get(), !ours as usize);
        drop(y);
        assert_eq!(count.get(), 1);
    }
    Ok(())
}

#[test]
fn updates_in_place_leave_imports_alone() -> Result<()> {
    let _scope = own_stream()?;
    for flags in [0, flag::READ_ONLY] {
        let memory = Memory::of(&[1.0f32, 2.0, 3.0, 4.0]);
        let x = import(&memory, flags)?;
        let y = x.slice_update(&Array::scalar(9.0f32), &[1], &[3], &[1])?;
        drop(x);
        assert_eq!(y.to_vec::<f32>()?, [1.0, 9.0, 9.0, 4.0]);
        assert_eq!(memory.read::<f32>(1), 2.0);
    }
    Ok(())
}

#[test]
fn exported_memory_is_not_written_over_while_the_tensor_lives() -> Result<()> {
    let _scope = own_stream()?;
    let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[4])?;
    let place = x.value()?.data();
    let tensors = [x.to_dlpack()?, x.to_dlpack()?];
    assert!(x.value()?.buffer.is_escaped());
    let y = plus_one(x)?;
    assert_ne!(y.value()?.data(), place);
    // SAFETY: the tensor keeps four numbers.
    assert_eq!(unsafe { place.cast::<f32>().read() }, 1.0);
    drop(tensors);

    // When the last one is gone, it is ours again.
    let place = y.value()?.data();
    let [one, two] = [y.to_dlpack()?, y.to_dlpack()?];
    drop(one);
    assert!(y.value()?.buffer.is_escaped());
    drop(two);
    assert!(!y.value()?.buffer.is_escaped());
    let z = plus_one(y)?;
    assert_eq!(z.value()?.data(), place);
    assert_eq!(z.to_vec::<f32>()?, [3.0, 4.0, 5.0, 6.0]);
    Ok(())
}

#[test]
fn an_imported_copy_is_not_written_over_while_it_is_exported() -> Result<()> {
    let _scope = own_stream()?;
    let memory = Memory::of(&[1.0f32, 2.0, 3.0, 4.0]);
    let x = import(&memory, flag::IS_COPIED)?;
    assert!(!x.value()?.buffer.is_escaped());
    let tensor = x.to_dlpack()?;
    assert!(!tensor.is_copied(), "it is not a copy for whoever gets it from us");
    let y = plus_one(x)?;
    assert_ne!(y.value()?.data(), memory.at(0));
    assert_eq!(memory.read::<f32>(0), 1.0);
    Ok(())
}

#[test]
fn a_foreign_kernel_fills_an_empty_array() -> Result<()> {
    let _scope = own_stream()?;
    let x = Array::empty(&[2, 3], Dtype::Float32)?;
    let sum = (&x + 1.0)?;
    let tensor = x.to_dlpack()?;
    for i in 0..6 {
        // SAFETY: six numbers, kept by the tensor.
        unsafe { tensor.tensor().data.cast::<f32>().add(i).write(i as f32) };
    }
    assert_eq!(sum.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    drop(tensor);
    assert_eq!(x.to_vec::<f32>()?, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let like = x.transpose()?.empty_like()?;
    assert_eq!((like.shape(), like.dtype()), (&[3, 2][..], Dtype::Float32));
    assert!(Array::empty(&[usize::MAX, 2], Dtype::Uint8).is_err());
    assert_eq!(Array::empty(&[0, 5], Dtype::Int8)?.size(), 0);
    Ok(())
}
