//! The elementary functions on the first device that Vulkan's loader lists, against references of higher precision and
//! at their special values; without a device the tests say that they are skipped.

mod complex64;
mod device;
mod float32;
mod float64;
