//! The position of a thread: Metal's names for it, defined in every language for bodies that use
//! them.

use super::{Language, Signature};
use std::fmt::Write;

/// A name, whether it has three components, and its form in OpenCL C, CUDA C++ and WGSL. The forms
/// in C are expressions, in which `{i}` is the axis as a number and `{d}` as a letter; an empty
/// form means that the language has none. In WGSL it is a built-in value.
pub(super) struct Name {
    pub name: &'static str,
    pub wide: bool,
    opencl: &'static str,
    cuda: &'static str,
    pub wgsl: &'static str,
}

/// Each row lists a name, whether it has three components, and its forms.
macro_rules! names {
    ($($name:literal $wide:literal $opencl:literal $cuda:literal $wgsl:literal;)*) => {
        &[$(Name { name: $name, wide: $wide, opencl: $opencl, cuda: $cuda, wgsl: $wgsl }),*]
    };
}

/// All names of Metal's attributes that MLX offers.
pub(super) const NAMES: &[Name] = names! {
    "thread_position_in_grid" true "get_global_id({i})"
        "blockIdx.{d} * blockDim.{d} + threadIdx.{d}" "global_invocation_id";
    "thread_position_in_threadgroup" true "get_local_id({i})" "threadIdx.{d}" "local_invocation_id";
    "threadgroup_position_in_grid" true "get_group_id({i})" "blockIdx.{d}" "workgroup_id";
    "threadgroups_per_grid" true "get_num_groups({i})" "gridDim.{d}" "num_workgroups";
    "threads_per_threadgroup" true "get_local_size({i})" "blockDim.{d}" "";
    "dispatch_threads_per_threadgroup" true "get_local_size({i})" "blockDim.{d}" "";
    // This is the requested grid, not the grid rounded up to whole groups.
    "threads_per_grid" true "um_grid_{d}" "um_grid_{d}" "";
    "grid_size" true "um_grid_{d}" "um_grid_{d}" "";
    "grid_origin" true "0" "0" "";
    "thread_index_in_threadgroup" false
        "(get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) + get_local_id(0)"
        "(threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x"
        "local_invocation_index";
    "thread_index_in_simdgroup" false ""
        "((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) % warpSize" "";
    "simdgroup_index_in_threadgroup" false ""
        "((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) / warpSize" "";
    "simdgroups_per_threadgroup" false ""
        "(blockDim.x * blockDim.y * blockDim.z + warpSize - 1) / warpSize" "";
    "threads_per_simdgroup" false "" "warpSize" "";
    "thread_execution_width" false "" "warpSize" "";
    "dispatch_quadgroups_per_threadgroup" false "" "" "";
    "dispatch_simdgroups_per_threadgroup" false "" "" "";
    "quadgroup_index_in_threadgroup" false "" "" "";
    "quadgroups_per_threadgroup" false "" "" "";
    "thread_index_in_quadgroup" false "" "" "";
};

/// Names that stand for the requested grid.
const GRID: [&str; 2] = ["threads_per_grid", "grid_size"];

pub(super) fn is_grid(name: &str) -> bool {
    GRID.contains(&name)
}

/// True if the body names the grid.
pub(super) fn wants_grid(s: &Signature<'_>) -> bool {
    GRID.iter().any(|name| s.named(name))
}

/// Declarations of the names that the body uses, for OpenCL C and CUDA C++.
pub(super) fn declare(s: &Signature<'_>, head: &mut String) {
    for name in NAMES {
        let form = if s.language == Language::OpenCl { name.opencl } else { name.cuda };
        if form.is_empty() || !s.named(name.name) {
            continue;
        }
        let axis =
            |i: usize| form.replace("{i}", ["0", "1", "2"][i]).replace("{d}", ["x", "y", "z"][i]);
        let make = if s.language == Language::OpenCl { "(uint3)" } else { "make_uint3" };
        let _ = if name.wide {
            let [x, y, z] = [0, 1, 2].map(axis);
            writeln!(head, "  const uint3 {} = {make}({x}, {y}, {z});", name.name)
        } else {
            writeln!(head, "  const unsigned int {} = {form};", name.name)
        };
    }
}
