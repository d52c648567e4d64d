//! Arguments of a launch as bindings, which are parts of buffers. They begin at offsets that the device
//! allows for bindings.

use super::source::Parameter;
use crate::launch::Device;
use crate::memory::{Block, Buffer};
use crate::streams::{Batch, Binding};
use std::num::NonZero;
use std::sync::Arc;
use ultramarine_abi::Tensor;
use ultramarine_abi::dlpack::element_range;
use ultramarine_abi::helper::{Failure, Result, handle};
use ultramarine_abi::interface::kernel::{KernelArgument, KernelLaunch, argument};
use ultramarine_abi::read_sized;

/// Alignment of the widest elements in WGSL arrays of numbers.
const LEAST_ALIGNMENT: u64 = 16;
/// Bytes of a word. Arrays of smaller elements are declared as words, too.
const WORD: u64 = 4;

/// The arguments of a launch as bindings. Arguments that do not begin at an offset allowed for
/// bindings are copied.
#[derive(Default)]
pub struct Arguments {
    /// The bindings in order.
    pub bindings: Vec<Binding>,
    /// Copies back into tensors that do not begin at an allowed offset.
    back: Batch,
}

impl Arguments {
    /// Decodes a launch. Tensors that do not begin at an offset allowed for bindings are copied by
    /// `batch`.
    ///
    /// # Safety
    /// The launch's arguments are valid by the contract.
    pub unsafe fn of(
        device: &Device,
        parameters: &[Parameter],
        launch: &KernelLaunch,
        batch: &mut Batch,
    ) -> Result<Self> {
        let mut arguments = Self::default();
        for (i, parameter) in (0..launch.n_arguments).zip(parameters) {
            let at = (i as usize).wrapping_mul(launch.argument_stride as usize);
            let place = launch.arguments.cast::<u8>().wrapping_add(at).cast::<KernelArgument>();
            // SAFETY: by this function's contract: each step points to an argument that states its
            // size.
            unsafe {
                let one = read_sized(place)
                    .ok_or_else(|| Failure::invalid(format!("argument {i} is missing")))?;
                arguments.add(device, (i, *parameter), &one, batch)?;
            }
        }
        Ok(arguments)
    }

    /// Appends the copies of outputs back into their tensors.
    pub fn finish(self, batch: &mut Batch) {
        batch.actions.extend(self.back.actions);
    }

    /// # Safety
    /// The argument is valid by the contract.
    unsafe fn add(
        &mut self,
        device: &Device,
        (i, parameter): (u32, Parameter),
        given: &KernelArgument,
        batch: &mut Batch,
    ) -> Result<()> {
        match (given.kind, parameter) {
            (argument::TENSOR, Parameter::Tensor | Parameter::Any) => {}
            (argument::SCALAR, Parameter::Scalar | Parameter::Any) => {
                self.bindings.push(scalar(device, given, batch));
                return Ok(());
            }
            (argument::SCALAR, Parameter::Tensor) => return misplaced(i, "scalar", "var<storage>"),
            (argument::TENSOR, Parameter::Scalar) => return misplaced(i, "tensor", "var<uniform>"),
            (kind, _) => {
                let text =
                    format!("argument {i} has kind {kind}, which this backend does not know");
                return Err(Failure::invalid(text));
            }
        }
        // SAFETY: NULL, or a tensor that states its size.
        let tensor = unsafe { read_sized(given.tensor) }
            .ok_or_else(|| Failure::invalid(format!("argument {i} has no tensor")))?;
        // SAFETY: by this function's contract.
        let Some(bytes) = (unsafe { reach_of(i, &tensor) })? else {
            // The kernel does not read it, but something has to be bound.
            let place = temporary(device, LEAST_ALIGNMENT, batch)?;
            self.bindings.push(Binding { place: Some(place), offset: 0, bytes: None });
            return Ok(());
        };
        // SAFETY: NULL, or a live buffer of this backend.
        let buffer: &Buffer =
            unsafe { handle(tensor.buffer, &format!("the buffer of argument {i}")) }?;
        let (block, offset) = (&buffer.0, tensor.dl.byte_offset);
        block.check(offset, bytes.get())?;
        let alignment = device.context.properties.binding_alignment.max(LEAST_ALIGNMENT);
        if offset.is_multiple_of(alignment) {
            let place = Some(block.clone());
            self.bindings.push(Binding { place, offset, bytes: words(bytes) });
            return Ok(());
        }
        let copy = temporary(device, bytes.get(), batch)?;
        batch.copy((block.clone(), offset), (copy.clone(), 0), bytes.get());
        if given.written != 0 {
            self.back.copy((copy.clone(), 0), (block.clone(), offset), bytes.get());
        }
        self.bindings.push(Binding { place: Some(copy), offset: 0, bytes: words(bytes) });
        Ok(())
    }
}

fn misplaced(i: u32, one: &str, other: &str) -> Result<()> {
    Err(Failure::invalid(format!("argument {i} is a {one}, and the kernel has {other} there")))
}

/// Memory that lives until the batch has completed.
fn temporary(device: &Device, bytes: u64, batch: &mut Batch) -> Result<Arc<Block>> {
    let buffer = device.alloc(bytes)?;
    let block = buffer.0.clone();
    batch.temporaries.push(buffer);
    Ok(block)
}

/// Puts a scalar among the batch's words, at an offset allowed for bindings.
fn scalar(device: &Device, given: &KernelArgument, batch: &mut Batch) -> Binding {
    let alignment = device.context.properties.binding_alignment.max(LEAST_ALIGNMENT);
    let at = batch.words.len().next_multiple_of((alignment / WORD) as usize);
    batch.words.resize(at, 0);
    batch.words.extend(given.scalar.iter().flat_map(|bits| [*bits as u32, (*bits >> 32) as u32]));
    let bytes = NonZero::new(size_of_val(&given.scalar) as u64);
    Binding { place: None, offset: at as u64 * WORD, bytes }
}

/// Rounds up to whole words. Buffers end with a whole word, too.
fn words(bytes: NonZero<u64>) -> Option<NonZero<u64>> {
    bytes.get().checked_next_multiple_of(WORD).and_then(NonZero::new)
}

/// Returns the bytes from a tensor's first element to the end of its last element. `None` if it is
/// empty.
///
/// # Safety
/// The tensor is valid by the contract.
unsafe fn reach_of(i: u32, tensor: &Tensor) -> Result<Option<NonZero<u64>>> {
    let dl = &tensor.dl;
    let ndim = usize::try_from(dl.ndim).unwrap_or(0);
    let axes: Vec<(i64, i64)> = match ndim {
        0 => Vec::new(),
        // SAFETY: by this function's contract, there are as many sizes and strides as axes.
        _ => unsafe {
            let sizes = core::slice::from_raw_parts(dl.shape.cast_const(), ndim);
            let strides = core::slice::from_raw_parts(dl.strides.cast_const(), ndim);
            sizes.iter().copied().zip(strides.iter().copied()).collect()
        },
    };
    if axes.iter().any(|(size, _)| *size == 0) {
        return Ok(None);
    }
    let size = u64::from(dl.dtype.bits) * u64::from(dl.dtype.lanes) / 8;
    let (low, high) = element_range(axes)
        .ok_or_else(|| Failure::invalid(format!("the strides of argument {i} overflow")))?;
    if low < 0 {
        return Err(Failure::invalid(format!(
            "argument {i} has a negative stride, which WGSL cannot index. Pass a contiguous array"
        )));
    }
    let elements = (high as u64).checked_add(1);
    let bytes = elements.and_then(|n| n.checked_mul(size)).and_then(NonZero::new);
    bytes
        .map(Some)
        .ok_or_else(|| Failure::invalid(format!("the elements of argument {i} have size 0")))
}
