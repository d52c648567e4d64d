//! The CPU kernels as a plugin that overlays those that are linked in, for one instruction set.
//!
//! The environment variable `ULTRAMARINE_CPU_VARIANT` (`x86_64_v4` or `x86_64_v3`) chooses the
//! instruction set at compile time; `cargo xtask plugins` builds both. The
//! plugin has its own copy of the kernels with statics of its own, and runs at its level (with AMX
//! where x86-64-v4's machine has it) whatever the host runs at, unless `ULTRAMARINE_CPU_LEVEL` asks for a lower one.

use ultramarine_abi::{
    BackendScore, BackendTable, Error, HostTable, Status,
    dlpack::device_type,
    helper::{Failure, Host, guard},
    inline_text, read_sized, status, write_sized,
};
use ultramarine_cpu::level::Level;

/// The variant that is compiled: its name, the highest level that it runs at, its score, and the CPU features that it needs.
struct Variant {
    name: &'static str,
    level: Level,
    score: u32,
    features: &'static str,
    /// The first of them that the machine lacks.
    missing: fn() -> Option<&'static str>,
}

macro_rules! variants {
    ($($name:literal $constant:ident $level:ident $score:literal [$first:tt $($feature:tt)*];)*) => {
        $(#[cfg(target_arch = "x86_64")]
        const $constant: Variant = Variant {
            name: $name,
            level: Level::$level,
            score: $score,
            features: concat!($first, $(" ", $feature),*),
            missing: || {
                $(if !std::arch::is_x86_feature_detected!($feature) { return Some($feature); })*
                if std::arch::is_x86_feature_detected!($first) { None } else { Some($first) }
            },
        };)*
    };
}

variants! {
    "x86_64_v4" V4 Amx 400 ["avx512f" "avx512bw" "avx512cd" "avx512dq" "avx512vl"
        "avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "movbe" "popcnt"];
    "x86_64_v3" V3 V3 300 ["avx2" "fma" "f16c" "bmi1" "bmi2" "lzcnt" "movbe" "popcnt"];
}

#[cfg(target_arch = "x86_64")]
const VARIANT: Variant = match option_env!("ULTRAMARINE_CPU_VARIANT") {
    None => V4,
    Some(name) if same(name, V4.name) => V4,
    Some(name) if same(name, V3.name) => V3,
    Some(_) => panic!("ULTRAMARINE_CPU_VARIANT is neither x86_64_v4 nor x86_64_v3"),
};

/// Other architectures have the target's baseline only.
#[cfg(not(target_arch = "x86_64"))]
const VARIANT: Variant = Variant {
    name: "baseline",
    level: Level::Baseline,
    score: 200,
    features: "",
    missing: || None,
};

/// `==` for constants.
#[cfg(target_arch = "x86_64")]
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

ultramarine_abi::export_abi_info! {
    name: "cpu",
    variant: VARIANT.name,
    device_type: device_type::CPU,
    version: env!("CARGO_PKG_VERSION"),
    cpu_features: VARIANT.features,
}

/// Message that names the CPU feature that is missing.
fn lacks() -> Option<String> {
    (VARIANT.missing)().map(|name| format!("this CPU has no {name}"))
}

/// The contract's entry point: 400 for x86-64-v4, 300 for v3, or 0 with the feature that the
/// machine lacks.
///
/// # Safety
/// `score` is NULL or as the contract says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ultramarine_backend_score(score: *mut BackendScore) -> Status {
    // SAFETY: by this function's contract; zero is a valid score.
    let Some(mut answer) = (unsafe { read_sized(score) }) else { return status::INVALID };
    match lacks() {
        None => (answer.score, answer.device_count) = (VARIANT.score, 1),
        Some(reason) => (answer.score, answer.reason) = (0, inline_text(&reason)),
    }
    // SAFETY: by this function's contract.
    unsafe { write_sized(score, &answer) };
    status::OK
}

/// The contract's entry point.
///
/// # Safety
/// `host`, `table` and `error` are as the contract says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ultramarine_backend_init(
    host: *const HostTable,
    table: *mut BackendTable,
    error: *mut *mut Error,
) -> Status {
    if let Some(reason) = lacks() {
        // SAFETY: by this function's contract.
        return unsafe {
            let host = Host::new(host);
            guard(host.as_ref(), error, || Err(Failure::new(reason)))
        };
    }
    // SAFETY: passed on from the caller.
    unsafe { ultramarine_cpu::backend_init_at(VARIANT.level, host, table, error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ultramarine_abi::{BackendAbiInfo, inline_str, negotiate};

    #[test]
    fn its_abi_info_is_taken_and_names_the_features() {
        let mut info = BackendAbiInfo::here("", 0);
        // SAFETY: the place says its size.
        assert_eq!(unsafe { ultramarine_backend_abi_info(&mut info) }, status::OK);
        assert_eq!(negotiate::check(&info), Ok(()));
        assert_eq!(inline_str(&info.name), "cpu");
        assert_eq!(inline_str(&info.cpu_features), VARIANT.features);
        assert_eq!(inline_str(&info.target), inline_str(&BackendAbiInfo::here("", 0).target));
    }

    #[test]
    fn the_score_follows_the_machine() {
        // SAFETY: zero is a valid score.
        let mut score: BackendScore = unsafe { std::mem::zeroed() };
        score.size = size_of::<BackendScore>() as u32;
        // SAFETY: the place says its size.
        assert_eq!(unsafe { ultramarine_backend_score(&mut score) }, status::OK);
        let can = Level::detected() >= VARIANT.level.min(Level::V4);
        assert_eq!(score.score, if can { VARIANT.score } else { 0 });
        assert_eq!(inline_str(&score.reason).is_empty(), can);
    }

    #[test]
    fn it_can_be_started_twice() {
        // SAFETY: no functions is a valid table for both sides.
        let (mut host, mut a): (HostTable, BackendTable) = unsafe { std::mem::zeroed() };
        (host.size, a.size) = (size_of_val(&host) as u32, size_of_val(&a) as u32);
        let mut b = a;
        let error = std::ptr::null_mut();
        let can = Level::detected() >= VARIANT.level.min(Level::V4);
        for table in [&mut a, &mut b] {
            // SAFETY: both tables are valid.
            let status = unsafe { ultramarine_backend_init(&host, table, error) };
            assert_eq!(status, if can { status::OK } else { status::ERROR });
        }
        assert!(!can || (a.backend != b.backend && a.submit.is_some() && b.submit.is_some()));
    }
}
