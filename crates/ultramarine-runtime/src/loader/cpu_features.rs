//! Features of the processor, by the names that compilers use for them.

use super::reason::{Code, Reason};

/// Makes the function that checks if the processor has a feature.
macro_rules! detect {
    ($test:ident: $($names:literal)|* ; $($feature:tt $(= $($also:literal)*)? ,)*) => {
        fn detect(name: &str) -> Option<bool> {
            Some(match name {
                $($names)|* => true,
                $($feature $($(| $also)*)? => std::arch::$test!($feature),)*
                _ => return None,
            })
        }
    };
}

// The first name in a row is Rust's name of a feature; the others are those of C compilers. The
// names before the rows are features that every processor of the architecture has.
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
detect! { is_x86_feature_detected: "x86-64" | "cmov" | "mmx";
    "fxsr", "sse", "sse2", "sse3", "ssse3", "sse4.1", "sse4.2", "sse4a", "popcnt", "aes", "pclmulqdq" = "pclmul",
    "rdrand" = "rdrnd", "rdseed", "adx", "tbm", "sha", "f16c", "fma", "bmi1" = "bmi", "bmi2", "lzcnt" = "abm",
    "cmpxchg16b" = "cx16", "movbe", "xsave", "xsaveopt", "xsavec", "xsaves", "avx", "avx2", "gfni", "vaes",
    "vpclmulqdq", "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl", "avx512ifma", "avx512vbmi",
    "avx512vbmi2", "avx512vnni", "avx512bitalg", "avx512vpopcntdq", "avx512bf16", "avx512vp2intersect",
    "avx512fp16", "avxvnni", "avxifma", "avxneconvert", "avxvnniint8", "avxvnniint16",
}

#[cfg(target_arch = "aarch64")]
detect! { is_aarch64_feature_detected: "armv8-a" | "simd";
    "neon" = "asimd", "fp", "fp16" = "fphp" "asimdhp", "bf16", "i8mm", "dotprod" = "asimddp", "sve", "sve2", "f32mm",
    "f64mm", "fhm" = "fp16fml", "fcma", "jsconv", "lse", "rdm", "rcpc", "crc", "aes", "sha2", "sha3", "sm4",
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "x86", target_arch = "aarch64")))]
fn detect(_: &str) -> Option<bool> {
    None
}

/// Matrix tiles, which stable Rust's std does not detect. The operating system must also permit
/// their state. On Linux a program asks for this permission, so a plugin that needs tiles asks in
/// its init.
#[cfg(target_arch = "x86_64")]
fn tiles(name: &str) -> Option<bool> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    let bit = match name {
        "amx-bf16" => 22,
        "amx-tile" => 24,
        "amx-int8" => 25,
        _ => return None,
    };
    Some(__cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & (1 << bit) != 0)
}

#[cfg(not(target_arch = "x86_64"))]
fn tiles(_: &str) -> Option<bool> {
    None
}

/// Levels of an architecture. Each row has the features that the level adds to the one before it.
const LEVELS: &[(&str, &[&str])] = &[
    ("x86-64-v2", &["cmpxchg16b", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"]),
    ("x86-64-v3", &["avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"]),
    ("x86-64-v4", &["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"]),
];

/// Validates that this processor has each feature of a list. The list is separated by spaces or
/// commas.
pub(super) fn validate(features: &str) -> Result<(), Reason> {
    let mut missing = Vec::new();
    for name in features.split([' ', ',', '\t']).filter(|n| !n.is_empty()) {
        match LEVELS.iter().position(|(level, _)| *level == name) {
            Some(top) if detect("x86-64").is_some() => {
                let parts = LEVELS[..=top].iter().flat_map(|(_, parts)| parts.iter().copied());
                let absent: Vec<&str> = parts.filter(|p| detect(p) != Some(true)).collect();
                if !absent.is_empty() {
                    missing.push(format!("{name} ({})", absent.join(", ")));
                }
            }
            _ => match detect(name).or_else(|| tiles(name)) {
                Some(true) => {}
                Some(false) => missing.push(name.to_owned()),
                None => {
                    let text = format!(
                        "it needs the processor feature {name:?}, which is unknown for {}",
                        std::env::consts::ARCH
                    );
                    return Err(Reason::new(Code::UnknownCpuFeature, text));
                }
            },
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let text =
        format!("it needs processor features that this machine lacks: {}", missing.join(", "));
    Err(Reason::new(Code::CpuFeature, text))
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn features_are_known_by_all_their_names() {
        assert_eq!(validate(""), Ok(()));
        assert_eq!(validate("  sse2 x86-64,cmov "), Ok(()));
        for (ours, theirs) in [("bmi1", "bmi"), ("lzcnt", "abm"), ("pclmulqdq", "pclmul")] {
            assert_eq!(detect(ours), detect(theirs));
        }
        for (_, parts) in LEVELS {
            assert!(parts.iter().all(|p| detect(p).is_some()), "{parts:?}");
        }
        let unknown = validate("sse2 sve2").map_err(|r| r.code);
        assert_eq!(unknown, Err(Code::UnknownCpuFeature));
        let v4 = std::arch::is_x86_feature_detected!("avx512vl");
        assert_eq!(validate("x86-64-v4").is_ok(), v4);
        // A feature of a line of processors that ended in 2015.
        assert_eq!(validate("tbm").map_err(|r| r.code), Err(Code::CpuFeature));
    }
}
