//! Tries one backend's file, in a process that may crash or hang, and says on standard output how far it came.
//! Started by the loader, see `ultramarine::backends::set_probe_command`.

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args_os().nth(1) {
        Some(path) => {
            ultramarine::backends::probe_here(path.as_ref());
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("usage: ultramarine-probe FILE");
            ExitCode::from(2)
        }
    }
}
