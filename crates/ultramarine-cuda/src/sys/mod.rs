//! NVIDIA's libraries, found at run time (`find.rs`), with a table of functions for each. If a
//! library is missing, the operations that need it are unsupported, and the error says what to
//! install.

pub mod cublas;
pub mod cublaslt;
pub mod cudnn;
pub mod cufft;
pub mod cusolver;
pub mod driver;
pub mod find;
pub mod nccl;
pub mod nvrtc;
pub mod nvtx;

/// A struct of a library's functions, looked up by their exported names. A missing function is an
/// error that names it. Functions after `?` are optional: they are `None` if they are missing.
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
            /// The functions of an open library. They keep it open as long as they live.
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

/// Like [`functions!`], for routines that exist for several dtypes. `#` in a name stands for the dtype's letter. A second
/// name is that of the complex routine, if it differs.
macro_rules! routines {
    ($(#[$doc:meta])* $table:ident {
        $($field:ident = $symbol:literal $(or $complex:literal)? fn($($argument:ty),* $(,)?);)*
    }) => {
        $(#[$doc])*
        #[allow(missing_docs, clippy::type_complexity)] // names and types are NVIDIA's
        pub struct $table {
            $(pub $field: unsafe extern "C" fn($($argument),*) -> core::ffi::c_int,)*
        }

        impl $table {
            /// The routines for the dtype with a letter: `S`, `D` or `C`.
            fn of(library: &libloading::Library, letter: &str) -> Result<Self, String> {
                Ok(Self {
                    $($field: {
                        let names: &[&str] = &[$symbol $(, $complex)?];
                        let last = if letter == "C" { names.len() - 1 } else { 0 };
                        let name = names[last].replace('#', letter);
                        // SAFETY: the types are those of NVIDIA's headers, except that pointers to elements are
                        // untyped.
                        *unsafe { library.get(name.as_str()) }
                            .map_err(|_| $crate::sys::lacks(&name))?
                    },)*
                })
            }
        }
    };
}
pub(crate) use routines;

/// The error for a library that lacks a function.
pub(crate) fn lacks(symbol: &str) -> String {
    format!("it has no {symbol}: its version is too old")
}
