//! Everything that can be done with a tensor from outside, compared with the model.

use super::foreign::Foreign;
use super::header::{Header, Memory};
use super::model::{self, Reason};
use ultramarine_dlpack::{Checked, Description, ManagedTensor, check};

/// Takes the tensor of a header or gives it back, and says why it was refused, if it was.
///
/// # Panics
/// Where check and model do not agree, an element lies elsewhere, or a deleter runs
/// another number of times than once.
pub fn run(header: &Header) -> Option<Reason> {
    let foreign = Foreign::new(header);
    let expected = model::validate(header, foreign.data);
    let refused = match (foreign.take(), expected) {
        (Ok((tensor, found)), Ok(expected)) => {
            assert_eq!(found, expected, "{header:?}");
            assert_eq!(foreign.deleted(), 0);
            shows(header, &tensor);
            if header.memory == Memory::Real {
                walk(&tensor, found);
            }
            hand_on(tensor, found);
            None
        }
        (Err(error), Err(reasons)) => {
            let reason = model::reason(&error);
            assert!(reasons.contains(&reason), "{error} for {header:?}");
            assert_eq!(foreign.deleted(), 0, "refused, but not by its owner");
            foreign.discard();
            Some(reason)
        }
        (found, expected) => panic!("{found:?} instead of {expected:?} for {header:?}"),
    };
    assert_eq!(foreign.deleted(), usize::from(header.has_deleter), "{header:?}");
    refused
}

/// What the owner says is what the header said.
fn shows(header: &Header, tensor: &ManagedTensor) {
    assert_eq!(tensor.version().map(|v| (v.major, v.minor)), header.version);
    let flags = if header.version.is_some() { header.flags } else { 0 };
    assert_eq!(tensor.flags(), flags);
    assert_eq!((tensor.is_read_only(), tensor.is_copied()), (flags & 1 != 0, flags & 2 != 0));
    assert_eq!((tensor.device(), tensor.dtype()), (header.device, header.dtype));
    assert_eq!(tensor.ndim(), header.ndim as usize);
    for axis in 0..tensor.ndim() {
        assert_eq!(Some(tensor.size(axis) as i64), header.shape.as_ref().map(|s| s[axis]));
        let said = header.strides.as_ref().map(|s| s[axis] as isize);
        assert_eq!(tensor.stride(axis), said);
    }
}

/// Shape and strides as an array has them.
fn layout(tensor: &ManagedTensor) -> (Vec<usize>, Vec<isize>) {
    let shape: Vec<usize> = (0..tensor.ndim()).map(|i| tensor.size(i)).collect();
    let mut step = 1isize;
    let mut strides = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        strides[axis] = tensor.stride(axis).unwrap_or(step);
        step = step.wrapping_mul(shape[axis] as isize);
    }
    (shape, strides)
}

/// Reads every element of those that have memory and are not many.
fn walk(tensor: &ManagedTensor, found: Checked) {
    if found.bytes == 0 || found.bytes > model::MOST || found.elements > model::FEW as usize {
        return;
    }
    let header = tensor.tensor();
    let first = header.data.cast::<u8>().wrapping_add(header.byte_offset as usize);
    // SAFETY: memory that is really there, as the model found; a sanitizer judges, too.
    let read = |at: *const u8, bytes: usize| unsafe {
        (0..bytes).for_each(|i| assert_eq!(at.add(i).read(), 0x5a));
    };
    // From the lowest byte to the highest.
    read(first.wrapping_sub(found.below), 1);
    read(first.wrapping_sub(found.below).wrapping_add(found.bytes - 1), 1);
    if !found.bits.is_multiple_of(8) {
        return read(first, found.bytes);
    }
    let (shape, strides) = layout(tensor);
    let shape: Vec<i64> = shape.into_iter().map(|s| s as i64).collect();
    let mut index = vec![0i64; shape.len()];
    loop {
        let steps: isize = index
            .iter()
            .zip(&strides)
            .map(|(i, s)| (*i as isize).wrapping_mul(*s))
            .fold(0, isize::wrapping_add);
        read(first.wrapping_offset(steps * (found.bits / 8) as isize), found.bits / 8);
        if !model::advance(&mut index, &shape) {
            break;
        }
    }
}

/// Import to export to import: the same elements at the same places, and one owner at last.
fn hand_on(tensor: ManagedTensor, found: Checked) {
    let (shape, strides) = layout(&tensor);
    let header = tensor.tensor();
    let description = Description {
        data: header.data,
        device: header.device,
        dtype: header.dtype,
        shape: &shape,
        strides: &strides,
        byte_offset: header.byte_offset,
        flags: tensor.flags(),
    };
    let read_only = tensor.is_read_only();
    // SAFETY: described as it was; the tensor is the owner of its memory.
    let again = unsafe { ManagedTensor::new(tensor, &description) };
    assert_eq!(again.is_read_only(), read_only);
    let pointer = again.into_versioned().unwrap();
    // SAFETY: whole, and nobody else's.
    let (again, same) = unsafe { ManagedTensor::from_versioned(pointer.as_ptr()) }.unwrap();
    assert_eq!(same, found);
    // SAFETY: an owned tensor.
    assert_eq!(unsafe { check(again.tensor(), again.flags()) }, Ok(found));
}
