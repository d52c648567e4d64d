//! Operations for Ultramarine that are built outside of it, in Rust.

use std::sync::OnceLock;
use ultramarine_abi::extension::{EXTENSION_MAJOR, ExtensionHost};

static HOST: OnceLock<&'static ExtensionHost> = OnceLock::new();

/// Says whom this library's primitives belong to. The first call counts.
///
/// # Errors
/// A text that says both versions, if the host's contract has another major.
pub fn connect(host: &'static ExtensionHost) -> Result<(), String> {
    if host.major != EXTENSION_MAJOR {
        return Err(format!(
            "The extension was built for contract {EXTENSION_MAJOR} of Ultramarine, which here has {}.{}.",
            host.major, host.minor
        ));
    }
    HOST.get_or_init(|| host);
    Ok(())
}
