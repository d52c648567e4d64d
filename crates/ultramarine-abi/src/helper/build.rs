//! CPU features that the compiler may use, as text for the ABI info.

use core::ffi::c_char;

/// Joins the names of the features that are available, separated by spaces. A feature whose name
/// would be cut is left out.
pub const fn features(list: &[(bool, &str)]) -> [c_char; 256] {
    let mut out = [0; 256];
    let (mut at, mut i) = (0, 0);
    while i < list.len() {
        let name = list[i].1.as_bytes();
        if list[i].0 && at + name.len() < 255 {
            if at > 0 {
                out[at] = b' ' as c_char;
                at += 1;
            }
            let mut j = 0;
            while j < name.len() {
                out[at] = name[j] as c_char;
                at += 1;
                j += 1;
            }
        }
        i += 1;
    }
    out
}

/// CPU features beyond the target's baseline with which the calling crate is compiled, in the form
/// of the field [`cpu_features`](crate::BackendAbiInfo::cpu_features).
#[macro_export]
macro_rules! compiled_cpu_features {
    () => {
        $crate::compiled_cpu_features!(@
            "sse3" "ssse3" "sse4.1" "sse4.2" "popcnt" "avx" "avx2" "fma" "f16c" "bmi1" "bmi2"
            "lzcnt" "movbe" "aes" "pclmulqdq" "avx512f" "avx512cd" "avx512bw" "avx512dq" "avx512vl"
            "avx512vbmi" "avx512vbmi2" "avx512ifma" "avx512vnni" "avx512bitalg" "avx512vpopcntdq"
            "avx512bf16" "avx512fp16" "avxvnni" "dotprod" "fp16" "bf16" "i8mm" "sve" "sve2" "lse")
    };
    (@ $($name:literal)*) => {
        $crate::helper::features(&[$((cfg!(target_feature = $name), $name)),*])
    };
}
