//! NVIDIA's libraries, found at run time: tables of their functions.

pub mod cublaslt;
pub mod cufft;
pub mod driver;
pub mod find;
pub mod nvrtc;
pub mod nvtx;

/// A struct of a library's functions, looked up by their exported names. A function that is
/// missing is an error that names it; those behind `?` are `None` then.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident {
        $($field:ident = $symbol:literal fn($($argument:ty),* $(,)?) $(-> $result:ty)?;)*
        $(? $maybe:ident = $name:literal fn($($taken:ty),* $(,)?) $(-> $given:ty)?;)*
    }) => {
        $(#[$doc])*
        #[allow(missing_docs, clippy::type_complexity)] // names and types are NVIDIA's
        pub struct $table {
            $(pub $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            $(pub $maybe: Option<unsafe extern "C" fn($($taken),*) $(-> $given)?>,)*
            _library: libloading::Library,
        }

        impl $table {
            /// The functions of an open library, which stays open as long as they do.
            pub fn of(library: libloading::Library) -> Result<Self, String> {
                Ok(Self {
                    // SAFETY: the types are those of NVIDIA's headers.
                    $($field: *unsafe { library.get($symbol) }
                        .map_err(|_| $crate::sys::lacks($symbol))?,)*
                    // SAFETY: as above.
                    $($maybe: unsafe { library.get($name) }.ok().map(|f| *f),)*
                    _library: library,
                })
            }
        }
    };
}
pub(crate) use functions;

/// The error for a library that lacks one of its functions.
pub(crate) fn lacks(symbol: &str) -> String {
    format!("it has no {symbol}: its version is too old")
}
