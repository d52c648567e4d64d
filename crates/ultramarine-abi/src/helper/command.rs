//! Requests and commands as safe views.

use super::{Device, Failure, Result};
use crate::{Command, Tensor, TensorDesc, layout, schema};
use core::cell::Cell;
use core::ffi::c_void;
use core::marker::PhantomData;
use ultramarine_dlpack::DLDataType;

/// A struct of the contract that begins with its size, and for which all-zero bytes are a valid
/// value.
///
/// # Safety
/// Both properties hold.
pub unsafe trait Plain: Copy {}

// SAFETY: the struct has only integers and pointers, and its size comes first.
unsafe impl Plain for Command {}
// SAFETY: as above.
unsafe impl Plain for Tensor {}
// SAFETY: as above.
unsafe impl Plain for TensorDesc {}

/// Returns element `index` of an array of structs that are `stride` bytes apart. Copies `min(size)`
/// bytes of it.
///
/// # Safety
/// The array has that element, which is readable for the size that it says.
unsafe fn element<T: Plain>(first: *const T, stride: u32, index: u32) -> Option<T> {
    let at = first.cast::<u8>().wrapping_add(stride as usize * index as usize).cast::<T>();
    // SAFETY: by this function's contract.
    unsafe { crate::read_sized(at) }
}

/// The arguments of `prepare`: an operation, its attributes, and its tensors without sizes.
/// [`OpRequest`](super::OpRequest) decodes the tensors.
pub struct Request<'a> {
    /// A constant of [`schema::op`].
    pub op: schema::OpId,
    /// Revision of the op's attributes.
    pub revision: u32,
    /// Inputs.
    pub inputs: Vec<TensorDesc>,
    /// Outputs.
    pub outputs: Vec<TensorDesc>,
    attributes: *const c_void,
    life: PhantomData<&'a ()>,
}

impl<'a> Request<'a> {
    /// # Safety
    /// The arguments are those of a call of `prepare`, and are valid for `'a`.
    pub(super) unsafe fn new(
        op: schema::OpId,
        revision: u32,
        attributes: *const c_void,
        inputs: (*const TensorDesc, u32),
        outputs: (*const TensorDesc, u32),
    ) -> Result<Self> {
        let read = |(first, n): (*const TensorDesc, u32)| {
            if n == 0 {
                return Ok(Vec::new());
            }
            if first.is_null() {
                return Err(Failure::invalid("tensor descriptions are NULL"));
            }
            // SAFETY: there is at least one, and it begins with its size.
            let stride = unsafe { first.cast::<u32>().read_unaligned() };
            // SAFETY: `n` of them, by this function's contract.
            let all = (0..n).map_while(|i| unsafe { element(first, stride, i) });
            Ok(all.collect())
        };
        let (inputs, outputs) = (read(inputs)?, read(outputs)?);
        Ok(Self { op, revision, inputs, outputs, attributes, life: PhantomData })
    }

    /// Checks that revision, attributes and numbers of tensors agree with the schema. The backend
    /// validates ops that are not in the schema.
    pub(super) fn check(&self) -> Result<()> {
        let Some(row) = schema::find(self.op) else { return Ok(()) };
        if self.revision == 0 || self.revision > row.revision {
            let text =
                format!("this backend does not know revision {} of {}", self.revision, row.name);
            return Err(Failure::unsupported(text));
        }
        if row.attributes.fields.is_empty() {
            // The op has no attributes that a backend could read.
            // SAFETY: the host passes NULL or the op's struct, which begins with its size.
            let known = unsafe { crate::tail_is_zero(self.attributes.cast::<schema::NoAttrs>()) };
            if !known {
                return Err(Failure::unsupported("the attributes belong to a later revision"));
            }
        }
        let (n, most) = (self.inputs.len(), row.inputs.len());
        let least = row.inputs.iter().filter(|i| !i.optional).count();
        let many = row.inputs.iter().any(|i| i.many);
        if self.outputs.len() != 1 + row.more.len() || n < least || (n > most && !many) {
            let text = format!(
                "{} has {n} inputs and {} outputs, which is not its signature",
                row.name,
                self.outputs.len()
            );
            return Err(Failure::invalid(text));
        }
        Ok(())
    }

    /// Returns the operation's attributes, as the struct that the schema names.
    ///
    /// # Errors
    /// [`Failure::invalid`] if there are none. [`Failure::unsupported`] if the struct is longer
    /// than `A` and its additional bytes are not zero, because it then belongs to a later revision
    /// of the operation.
    pub fn attributes<A: Plain>(&self) -> Result<A> {
        // SAFETY: the host passes NULL or the op's struct, which begins with its size.
        let known: A = unsafe { crate::read_sized(self.attributes.cast::<A>()) }
            .ok_or_else(|| Failure::invalid("attributes are NULL"))?;
        // SAFETY: as above.
        if !unsafe { crate::tail_is_zero(self.attributes.cast::<A>()) } {
            return Err(Failure::unsupported("the attributes belong to a later revision"));
        }
        Ok(known)
    }

    /// Returns true if all inputs are row-major without gaps.
    pub fn contiguous(&self) -> bool {
        self.inputs.iter().all(|d| d.layout == layout::CONTIGUOUS)
    }

    /// Returns the index of input `index`'s dtype in [`schema::DTYPES`]; `None` if there is no such
    /// input or dtype.
    pub fn input_dtype(&self, index: usize) -> Option<usize> {
        self.inputs.get(index).and_then(|d| schema::dtype_index(d.dtype))
    }

    /// Returns the index of output `index`'s dtype in [`schema::DTYPES`]; `None` if there is no
    /// such output or dtype.
    pub fn output_dtype(&self, index: usize) -> Option<usize> {
        self.outputs.get(index).and_then(|d| schema::dtype_index(d.dtype))
    }
}

/// The commands of a submit, in order. If a submit fails, the host attributes the failure to the
/// command that was taken last. So take a command only after those before it are enqueued.
pub struct Commands<'a, D: Device> {
    first: *const Command,
    stride: u32,
    /// Number of commands that were taken so far.
    next: &'a Cell<u32>,
    n: u32,
    life: PhantomData<&'a D>,
}

impl<'a, D: Device> Commands<'a, D> {
    /// # Safety
    /// The arguments are those of a call of `submit`, and are valid for `'a`. Plans and buffers are
    /// those of a device of type `D`.
    pub(super) unsafe fn new(first: *const Command, n: u32, next: &'a Cell<u32>) -> Self {
        let n = if first.is_null() { 0 } else { n };
        // SAFETY: there is at least one, and it begins with its size.
        let stride = if n == 0 { 0 } else { unsafe { first.cast::<u32>().read_unaligned() } };
        Self { first, stride, next, n, life: PhantomData }
    }
}

impl<'a, D: Device> Iterator for Commands<'a, D> {
    type Item = CommandRef<'a, D>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next.get();
        if next == self.n {
            return None;
        }
        // SAFETY: below the count, by the constructor's contract.
        let command = unsafe { element(self.first, self.stride, next) }?;
        self.next.set(next + 1);
        Some(CommandRef { command, life: PhantomData })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.n - self.next.get()) as usize;
        (left, Some(left))
    }
}

/// A command: a plan with its tensors and scalars. It is valid during the call of `submit`.
pub struct CommandRef<'a, D: Device> {
    command: Command,
    life: PhantomData<&'a D>,
}

impl<'a, D: Device> CommandRef<'a, D> {
    /// # Safety
    /// The command is one of the host's, and is valid for `'a`. Plans and buffers are those of a
    /// device of type `D`.
    pub(super) unsafe fn new(command: *const Command) -> Option<Self> {
        // SAFETY: by this function's contract.
        unsafe { crate::read_sized(command) }.map(|command| Self { command, life: PhantomData })
    }

    /// Returns the bare struct.
    pub fn raw(&self) -> &Command {
        &self.command
    }

    /// Returns the plan of the command.
    ///
    /// # Errors
    /// [`Failure::invalid`] if it has none.
    pub fn plan(&self) -> Result<&'a D::Plan> {
        // SAFETY: `prepare` made the plan for a device of this type, and it is not released while
        // commands with it run.
        unsafe { self.command.plan.cast::<D::Plan>().as_ref() }
            .ok_or_else(|| Failure::invalid("the command has no plan"))
    }

    fn tensor(&self, first: *const Tensor, n: u32, index: u32) -> Result<TensorRef<'a, D>> {
        if index >= n || first.is_null() {
            return Err(Failure::invalid(format!("the command has no tensor {index}")));
        }
        // SAFETY: the index is below the count, so the array has the element.
        let tensor: Tensor = unsafe { element(first, self.command.tensor_stride, index) }
            .ok_or_else(|| Failure::invalid("a tensor is NULL"))?;
        let rank = tensor.dl.ndim;
        if rank < 0 || rank > crate::MAX_NDIM as i32 {
            return Err(Failure::invalid(format!("a tensor has rank {rank}, above the maximum")));
        }
        if rank > 0 && (tensor.dl.shape.is_null() || tensor.dl.strides.is_null()) {
            return Err(Failure::invalid("a tensor has no shape or no strides"));
        }
        Ok(TensorRef { tensor, life: PhantomData })
    }

    /// Returns input `index`.
    ///
    /// # Errors
    /// [`Failure::invalid`] if there is no such input, or it is malformed.
    pub fn input(&self, index: u32) -> Result<TensorRef<'a, D>> {
        self.tensor(self.command.inputs, self.command.n_inputs, index)
    }

    /// Returns output `index`.
    ///
    /// # Errors
    /// [`Failure::invalid`] if there is no such output, or it is malformed.
    pub fn output(&self, index: u32) -> Result<TensorRef<'a, D>> {
        self.tensor(self.command.outputs, self.command.n_outputs, index)
    }

    /// Returns the bits of scalar `index`: 16 bytes, of which the low ones hold the value.
    ///
    /// # Errors
    /// [`Failure::invalid`] if there is no such scalar.
    pub fn scalar(&self, index: u32) -> Result<[u64; 2]> {
        if index >= self.command.n_scalars || self.command.scalars.is_null() {
            return Err(Failure::invalid(format!("the command has no scalar {index}")));
        }
        // SAFETY: the index is below the count, so the array has the element.
        Ok(unsafe { self.command.scalars.add(index as usize).read_unaligned() })
    }

    /// Returns the number of inputs.
    pub fn n_inputs(&self) -> u32 {
        self.command.n_inputs
    }

    /// Returns the number of outputs.
    pub fn n_outputs(&self) -> u32 {
        self.command.n_outputs
    }

    /// Returns the workspace that the plan asked for: an address on devices with host memory, else
    /// a buffer's handle. NULL if it asked for none.
    pub fn workspace(&self) -> *mut c_void {
        self.command.workspace
    }
}

/// A tensor of a [`CommandRef`]: a part of a buffer, with shape, strides and dtype.
pub struct TensorRef<'a, D: Device> {
    tensor: Tensor,
    life: PhantomData<&'a D>,
}

impl<'a, D: Device> TensorRef<'a, D> {
    /// Returns the bare struct.
    pub fn raw(&self) -> &Tensor {
        &self.tensor
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DLDataType {
        self.tensor.dl.dtype
    }

    /// Returns the sizes.
    pub fn shape(&self) -> &'a [i64] {
        self.numbers(self.tensor.dl.shape)
    }

    /// Returns the strides in elements. They may be negative, and 0 for broadcast axes.
    pub fn strides(&self) -> &'a [i64] {
        self.numbers(self.tensor.dl.strides)
    }

    fn numbers(&self, first: *const i64) -> &'a [i64] {
        match self.tensor.dl.ndim {
            0 => &[],
            // SAFETY: not NULL (checked when this was made). There are as many as the rank, and
            // they are valid during the call.
            n => unsafe { core::slice::from_raw_parts(first, n as usize) },
        }
    }

    /// Returns the number of elements.
    pub fn len(&self) -> u64 {
        self.shape().iter().map(|n| *n as u64).product()
    }

    /// Returns true if it has no elements. The host sends no such tensors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of an element in bytes.
    pub fn element_bytes(&self) -> usize {
        (self.dtype().bits as usize * self.dtype().lanes as usize).div_ceil(8)
    }

    /// Returns the address of the first element. Only devices with host memory have one.
    pub fn data(&self) -> *mut u8 {
        self.tensor.dl.data.cast::<u8>().wrapping_add(self.tensor.dl.byte_offset as usize)
    }

    /// Returns the bytes from the beginning of the buffer to the first element.
    pub fn byte_offset(&self) -> u64 {
        self.tensor.dl.byte_offset
    }

    /// Returns the buffer that the tensor is a part of; `None` for memory of the host.
    pub fn buffer(&self) -> Option<&'a D::Buffer> {
        // SAFETY: NULL or a buffer that this device type made and that is not yet freed.
        unsafe { self.tensor.buffer.cast::<D::Buffer>().as_ref() }
    }

    /// Returns the tensor's first byte and the byte after its last one, as offsets from its first
    /// element. `None` if they overflow an i64.
    pub fn byte_range(&self) -> Option<(i64, i64)> {
        let axes = self.shape().iter().copied().zip(self.strides().iter().copied());
        ultramarine_dlpack::byte_range(axes, 8 * self.element_bytes())
    }
}
