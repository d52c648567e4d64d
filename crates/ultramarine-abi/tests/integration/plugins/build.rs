//! Builds the plugins and opens them.

use super::host::Host;
pub use crate::compile::run;
use libloading::Library;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::null_mut;
use std::sync::OnceLock;
use ultramarine_abi::{
    BackendAbiInfo, BackendAbiInfoFn, BackendInit, BackendTable, inline_text, status, symbol,
};

/// Compiles `{source}` of this folder with more flags, to a library of its own name.
pub fn compile(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    crate::compile::library(&format!("plugins/{source}"), name, flags)
}

/// The plugin in Rust, which is an example of this crate.
pub fn in_rust() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--profile", "checked"]);
        cargo.args(["-p", "ultramarine-abi", "--example", "in_rust"]);
        run(cargo.current_dir(env!("CARGO_MANIFEST_DIR")));
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        target.join("checked/examples/libin_rust.so")
    })
}

/// A plugin that is open and initialised.
pub struct Plugin {
    pub table: BackendTable,
    pub info: BackendAbiInfo,
    pub host: Host,
    _library: Library,
}

impl Plugin {
    pub fn open(path: &Path) -> Self {
        // SAFETY: a library of this repository; its functions have the contract's types.
        unsafe {
            let library = Library::new(path).unwrap();
            let info_fn: BackendAbiInfoFn =
                *library.get(symbol::ABI_INFO.to_bytes_with_nul()).unwrap();
            let init: BackendInit = *library.get(symbol::INIT.to_bytes_with_nul()).unwrap();
            let mut info = BackendAbiInfo::here("", 0);
            info.name = inline_text("overwritten");
            assert_eq!(info_fn(&mut info), status::OK);
            assert_eq!(info_fn(null_mut()), status::INVALID);
            let host = Host::new();
            let mut table: BackendTable = std::mem::zeroed();
            table.size = size_of::<BackendTable>() as u32;
            assert_eq!(init(host.table(), &mut table, null_mut()), status::OK);
            Self { table, info, host, _library: library }
        }
    }
}
