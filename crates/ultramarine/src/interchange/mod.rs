//! Arrays from elsewhere and for others, without a copy: [DLPack](https://dmlc.github.io/dlpack/latest/).
//!
//! - [`Array::from_dlpack`] takes a tensor of another library as an array.
//! - [`Array::to_dlpack`] gives an array as a tensor.
//!
//! An import is *escaped* memory: its owner may write to it at any time, and work that was not
//! evaluated yet sees that. The same holds for an array's memory while an export of it lives.
//!
//! ```text
//! import.rs   which tensors arrays can be, in two steps: judge (nothing is taken yet), take
//! export.rs   tensors of arrays; lend.rs   such as nobody owns, for a call
//! device.rs   DLPack's devices and ours; device_memory.rs   memory of backends' devices
//! ```

mod copy;
mod device;
mod device_memory;
mod export;
mod import;
mod lend;
mod names;

pub(crate) use import::alignment;

pub use device_memory::{consumer_stream, current_work_stream, join_current_stream};
pub use export::{ExportOptions, Kind};
pub use import::{Import, ImportOptions, Plain, refusal};
pub use lend::{device_of, dl_device, has_accelerators};
pub use ultramarine_abi::dlpack::{self, DLDevice, ManagedTensor};
