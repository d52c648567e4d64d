//! Where a thread is: Metal's names, in every language, for bodies that name them.

use super::{Language, Signature};
use std::fmt::Write;

/// A name, whether it has three parts, and what it is in OpenCL C, CUDA C++ (expressions of
/// the axis as number, `{i}`, or letter, `{d}`; empty: not there) and WGSL (a built-in value).
pub(super) struct Name {
    pub name: &'static str,
    pub wide: bool,
    opencl: &'static str,
    cuda: &'static str,
    pub wgsl: &'static str,
}

const fn of(
    name: &'static str,
    wide: bool,
    opencl: &'static str,
    cuda: &'static str,
    wgsl: &'static str,
) -> Name {
    Name { name, wide, opencl, cuda, wgsl }
}

/// All names of Metal's attributes that MLX offers.
pub(super) const NAMES: &[Name] = &[
    of(
        "thread_position_in_grid",
        true,
        "get_global_id({i})",
        "blockIdx.{d} * blockDim.{d} + threadIdx.{d}",
        "global_invocation_id",
    ),
    of(
        "thread_position_in_threadgroup",
        true,
        "get_local_id({i})",
        "threadIdx.{d}",
        "local_invocation_id",
    ),
    of("threadgroup_position_in_grid", true, "get_group_id({i})", "blockIdx.{d}", "workgroup_id"),
    of("threadgroups_per_grid", true, "get_num_groups({i})", "gridDim.{d}", "num_workgroups"),
    of("threads_per_threadgroup", true, "get_local_size({i})", "blockDim.{d}", ""),
    of("dispatch_threads_per_threadgroup", true, "get_local_size({i})", "blockDim.{d}", ""),
    // The grid that was asked for, not what groups make of it.
    of("threads_per_grid", true, "um_grid_{d}", "um_grid_{d}", ""),
    of("grid_size", true, "um_grid_{d}", "um_grid_{d}", ""),
    of("grid_origin", true, "0", "0", ""),
    of(
        "thread_index_in_threadgroup",
        false,
        "(get_local_id(2) * get_local_size(1) + get_local_id(1)) * get_local_size(0) + get_local_id(0)",
        "(threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x",
        "local_invocation_index",
    ),
    of(
        "thread_index_in_simdgroup",
        false,
        "",
        "((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) % warpSize",
        "",
    ),
    of(
        "simdgroup_index_in_threadgroup",
        false,
        "",
        "((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) / warpSize",
        "",
    ),
    of(
        "simdgroups_per_threadgroup",
        false,
        "",
        "(blockDim.x * blockDim.y * blockDim.z + warpSize - 1) / warpSize",
        "",
    ),
    of("threads_per_simdgroup", false, "", "warpSize", ""),
    of("thread_execution_width", false, "", "warpSize", ""),
    of("dispatch_quadgroups_per_threadgroup", false, "", "", ""),
    of("dispatch_simdgroups_per_threadgroup", false, "", "", ""),
    of("quadgroup_index_in_threadgroup", false, "", "", ""),
    of("quadgroups_per_threadgroup", false, "", "", ""),
    of("thread_index_in_quadgroup", false, "", "", ""),
];

/// Names that stand for the grid as it was asked for.
const GRID: [&str; 2] = ["threads_per_grid", "grid_size"];

pub(super) fn is_grid(name: &str) -> bool {
    GRID.contains(&name)
}

/// True if the body names the grid.
pub(super) fn wants_grid(s: &Signature<'_>) -> bool {
    GRID.iter().any(|name| s.named(name))
}

/// Declarations of the names that the body has, for OpenCL C and CUDA C++.
pub(super) fn declare(s: &Signature<'_>, head: &mut String) {
    for name in NAMES {
        let form = if s.language == Language::OpenCl { name.opencl } else { name.cuda };
        if form.is_empty() || !s.named(name.name) {
            continue;
        }
        let axis =
            |i: usize| form.replace("{i}", ["0", "1", "2"][i]).replace("{d}", ["x", "y", "z"][i]);
        let _ = match (name.wide, s.language) {
            (true, Language::OpenCl) => writeln!(
                head,
                "  const uint3 {} = (uint3)({}, {}, {});",
                name.name,
                axis(0),
                axis(1),
                axis(2)
            ),
            (true, _) => writeln!(
                head,
                "  const uint3 {} = make_uint3({}, {}, {});",
                name.name,
                axis(0),
                axis(1),
                axis(2)
            ),
            (false, _) => writeln!(head, "  const unsigned int {} = {form};", name.name),
        };
    }
}
