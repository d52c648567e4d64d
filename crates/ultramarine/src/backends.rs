//! The backends: which are loaded, and how more are found.
//!
//! A backend is a table of C functions. The CPU's is built in; [`register`] adds one that is linked into the
//! program. With the feature `loader` (on by default) others are found as shared libraries: at the
//! first need of a GPU, all in the [`search_paths`] that can run here are loaded, or the
//! program loads what it wants itself with [`load_all`], [`load_best`] and [`load`].
//! [`report`] tells of each file why it was left out.
//!
//! | variable | what |
//! | --- | --- |
//! | `ULTRAMARINE_BACKEND_PATH` | directories to search, and no others |
//! | `ULTRAMARINE_BACKEND_AUTOLOAD=0` | nothing is loaded by itself |
//! | `ULTRAMARINE_BACKEND_PROBE=1` | each candidate is tried in a child process first |
//! | `ULTRAMARINE_PROBE` | the program that does so: `ultramarine-probe` |
//! | `ULTRAMARINE_VALIDATE=1` | what host and backends do is checked, see [`validation_findings`]; index arrays that point outside are errors |
//! | `ULTRAMARINE_LOG` | `off`, `error`, `warning` (default), `info`, `debug` |

pub use crate::backend::{BackendInfo, backends, by_name, register};
pub use crate::devices::{backend_of as get, device_count};
pub use ultramarine_runtime::validation_layer::{validation_findings, with_validation_layer};

#[cfg(feature = "loader")]
pub use ultramarine_runtime::loader::{
    BackendProperties, Candidate, Code, DeviceProperties, Directory, Filter, LoadOptions, Offer,
    Outcome, Reason, Report, Rule, SearchPath, Stage, add_search_directory, load, load_all,
    load_best, loads_by_itself, probe_here, report, report_json, report_table, search_paths,
    set_probe_command, set_probe_timeout, set_search_paths, show_report,
};

use crate::device::DeviceType;

/// Returns true if there is a device of a type. For a type other than the CPU, this loads backends,
/// as [`devices`](crate::devices()) does.
pub fn is_available(kind: DeviceType) -> bool {
    device_count(kind) > 0
}
