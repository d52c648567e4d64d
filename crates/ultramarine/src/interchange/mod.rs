//! Exchange of arrays with other libraries, without a copy: [DLPack](https://dmlc.github.io/dlpack/latest/).
//!
//! - [`Array::from_dlpack`](crate::Array::from_dlpack) takes a tensor of another library as an array.
//! - [`Array::to_dlpack`](crate::Array::to_dlpack) gives an array as a tensor.
//!
//! An example, with a library that accepts and returns the C struct:
//!
//! ```
//! use ultramarine::{Array, interchange::ManagedTensor};
//!
//! // Out: the consumer gets a pointer, and runs the tensor's deleter when it has done with it.
//! let x = Array::from_slice(&[1.0f32, 2.0, 3.0, 4.0], &[2, 2])?;
//! let pointer = x.transpose()?.to_dlpack()?.into_versioned().expect("it has a version");
//!
//! // In: tensors are validated before use, and owned from then on.
//! // SAFETY: a whole tensor, which nobody else frees.
//! let (tensor, _) = unsafe { ManagedTensor::from_versioned(pointer.as_ptr()) }.expect("valid");
//! let y = Array::from_dlpack(tensor)?;
//! assert_eq!(y.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
//!
//! // No element was copied.
//! assert_eq!(y.value()?.data(), x.value()?.data());
//! # Ok::<(), ultramarine::Error>(())
//! ```
//!
//! # Who owns what
//!
//! An import keeps its tensor until no array, view or unfinished work needs the memory. Then the tensor's deleter runs
//! once, on any thread, and holds no locks of this library. An export keeps the array's memory, not the array; it can
//! be dropped on any thread.
//!
//! An import is *escaped* memory: its owner may write to it at any time, and unevaluated work sees these writes. The
//! same holds for an array's memory while an export of it lives. Results are never written to escaped memory, and no
//! copies of it are cached on other devices. Two kinds of memory are exceptions and count as the array's own: an import
//! whose flag says that it was copied, and memory whose exports have all been dropped.
//!
//! ```
//! use ultramarine::Array;
//! let x = Array::from_slice(&[1i32, 2, 3], &[3])?;
//! let tensor = x.to_dlpack()?;
//! let sum = (&x + 1)?;
//! // SAFETY: three numbers, which nobody else looks at now.
//! unsafe { tensor.tensor().data.cast::<i32>().write(10) };
//! assert_eq!(sum.to_vec::<i32>()?, [11, 3, 4]); // it was not evaluated before
//! # Ok::<(), ultramarine::Error>(())
//! ```
//!
//! ```text
//! import.rs   which tensors arrays can be, in two steps: validate (nothing is taken yet), take
//! export.rs   tensors of arrays; lend.rs   such as nobody owns, for a call
//! copy.rs     copies in host memory, of misaligned elements too; names.rs   types in messages
//! device.rs   DLPack's devices and ours; kinds.rs   what each type of device is to others
//! device_memory.rs   memory of backends' devices
//! ```

mod copy;
mod device;
mod device_memory;
mod export;
mod import;
mod kinds;
mod lend;
mod names;

pub use device_memory::{consumer_stream, current_work_stream, join_current_stream};
pub use export::{ExportOptions, Kind, StreamKeeper};
pub use import::{Import, ImportOptions, Plain, refusal};
pub use lend::{device_of, dl_device, has_accelerators};
pub use ultramarine_abi::dlpack::{self, DLDevice, ManagedTensor};
