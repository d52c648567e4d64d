//! The macros that make a crate into a plugin.

/// Defines the ABI info of a plugin: a `const UM_ABI_INFO`, its note in the file, and the entry
/// point that returns it.
///
/// `cpu_features` may be left out. It is then the list of features that the crate is compiled with.
#[macro_export]
macro_rules! export_abi_info {
    (name: $name:expr, variant: $variant:expr, device_type: $device_type:expr,
     version: $version:expr $(, cpu_features: $features:expr)? $(,)?) => {
        /// ABI info of this binary.
        const UM_ABI_INFO: $crate::BackendAbiInfo = {
            let mut info = $crate::BackendAbiInfo::here($name, $device_type);
            info.variant = $crate::inline_text($variant);
            info.version = $crate::inline_text($version);
            info.cpu_features = $crate::compiled_cpu_features!();
            $(info.cpu_features = $crate::inline_text($features);)?
            info
        };

        #[cfg(not(any(windows, target_vendor = "apple")))]
        #[used]
        #[unsafe(link_section = ".note.ultramarine")]
        static UM_NOTE: $crate::ElfNote = $crate::ElfNote::new(UM_ABI_INFO);
        #[cfg(target_vendor = "apple")]
        #[used]
        #[unsafe(link_section = "__TEXT,__ultramarine")]
        static UM_NOTE: $crate::BackendAbiInfo = UM_ABI_INFO;
        #[cfg(windows)]
        #[used]
        #[unsafe(link_section = ".umnote")]
        static UM_NOTE: $crate::BackendAbiInfo = UM_ABI_INFO;

        /// The contract's entry point.
        ///
        /// # Safety
        /// `info` is NULL or points at a struct whose first field says its size.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn ultramarine_backend_abi_info(
            info: *mut $crate::BackendAbiInfo,
        ) -> $crate::Status {
            // SAFETY: by this function's contract.
            match unsafe { $crate::write_sized(info, &UM_ABI_INFO) } {
                true => $crate::status::OK,
                false => $crate::status::INVALID,
            }
        }
    };
}

/// Makes the crate (of type `cdylib`) into a plugin of a [`Backend`](crate::helper::Backend), with
/// entry points, ABI info and note. All arguments except `backend` are constants.
#[macro_export]
macro_rules! export_backend {
    (backend: $backend:ty, name: $name:expr, variant: $variant:expr,
     device_type: $device_type:expr, version: $version:expr
     $(, cpu_features: $features:expr)? $(,)?) => {
        $crate::export_abi_info! {
            name: $name, variant: $variant, device_type: $device_type, version: $version
            $(, cpu_features: $features)?
        }

        /// The contract's entry point.
        ///
        /// # Safety
        /// `score` is NULL or as the contract says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn ultramarine_backend_score(
            score: *mut $crate::BackendScore,
        ) -> $crate::Status {
            // SAFETY: by this function's contract.
            unsafe { $crate::helper::score::<$backend>(score) }
        }

        /// The contract's entry point.
        ///
        /// # Safety
        /// `host`, `table` and `error` are as the contract says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn ultramarine_backend_init(
            host: *const $crate::HostTable,
            table: *mut $crate::BackendTable,
            error: *mut *mut $crate::Error,
        ) -> $crate::Status {
            const TEXT: &str = $name;
            const BYTES: [u8; TEXT.len() + 1] = $crate::helper::nul_terminated(TEXT);
            const NAME: &::core::ffi::CStr =
                match ::core::ffi::CStr::from_bytes_with_nul(&BYTES) {
                    Ok(name) => name,
                    Err(_) => panic!("the name has a NUL"),
                };
            // SAFETY: by this function's contract.
            unsafe {
                $crate::helper::init::<$backend>(NAME, UM_ABI_INFO.device_type, host, table, error)
            }
        }
    };
}

/// Returns a text with a NUL at the end. `N` is the text's length plus one.
pub const fn nul_terminated<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.split_at_mut(text.len()).0.copy_from_slice(text.as_bytes());
    bytes
}
