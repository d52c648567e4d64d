//! The steps from a request to actions: devices, plans, and tensors in the form in which kernels
//! address them.

mod axes;
mod device;
mod fours;
mod job;
mod places;
mod plan;
mod vectors;
mod view;
mod walk;

pub use axes::{Axes, count, split_axes};
pub use device::{Device, TICKETS};
pub use fours::Fours;
pub use job::Job;
pub use places::{AXES, Forms, Once, places};
pub use plan::{OpRequest, Plan, Work};
pub use ultramarine_abi::helper::{Desc, row_major};
pub use vectors::Vectors;
pub use view::View;
pub use walk::Walk;
