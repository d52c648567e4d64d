//! Instruction-set levels, chosen at run time.
//!
//! A kernel's loop is a [`Body`]: written once, `#[inline(always)]`, and compiled into one function per level, for
//! which the compiler vectorises it.

use std::sync::OnceLock;

/// An x86-64 microarchitecture level (on other machines only `Baseline`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The target's guarantee: SSE2 on x86-64, NEON on AArch64.
    Baseline,
    /// x86-64-v3: AVX2, FMA, F16C, BMI.
    V3,
    /// x86-64-v4: AVX-512 F, BW, CD, DQ, VL.
    V4,
    /// [`Level::V4`], and AMX in products of bfloat16 and of 8-bit integers.
    Amx,
}

impl Level {
    /// All levels that this machine supports and for which most kernels are compiled, lowest first.
    pub fn available() -> &'static [Level] {
        const ALL: [Level; 3] = [Level::Baseline, Level::V3, Level::V4];
        &ALL[..=Level::detected().min(Level::V4) as usize]
    }

    /// All levels that this machine supports and for which matrix products are compiled, lowest first.
    pub fn of_products() -> &'static [Level] {
        const ALL: [Level; 4] = [Level::Baseline, Level::V3, Level::V4, Level::Amx];
        // Builds with debug assertions emulate AMX, for tests.
        let most = match Level::detected() {
            Level::V4 if cfg!(debug_assertions) => Level::Amx,
            level => level,
        };
        &ALL[..=most as usize]
    }

    /// The highest level of this machine. AMX is chosen only if `ULTRAMARINE_CPU_LEVEL` does not request a lower level,
    /// because its permission enlarges the stacks that signal handlers need.
    pub fn detected() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let v3 = has!("avx2")
                && has!("fma")
                && has!("f16c")
                && has!("bmi1")
                && has!("bmi2")
                && has!("lzcnt")
                && has!("movbe");
            let v4 = v3
                && has!("avx512f")
                && has!("avx512bw")
                && has!("avx512cd")
                && has!("avx512dq")
                && has!("avx512vl");
            if v4 {
                return match Level::asked() {
                    Level::Amx if crate::amx::is_available() => Level::Amx,
                    _ => Level::V4,
                };
            }
            if v3 {
                return Level::V3;
            }
        }
        Level::Baseline
    }

    /// The level in use: the detected one, or a lower one requested by the environment variable `ULTRAMARINE_CPU_LEVEL`
    /// (`baseline`, `v3`, `v4`, `amx`).
    pub fn current() -> Level {
        static LEVEL: OnceLock<Level> = OnceLock::new();
        *LEVEL.get_or_init(|| Level::asked().min(Level::detected()))
    }

    /// The level that the environment requests, or the highest one.
    fn asked() -> Level {
        static ASKED: OnceLock<Level> = OnceLock::new();
        *ASKED.get_or_init(|| match std::env::var("ULTRAMARINE_CPU_LEVEL").as_deref() {
            Ok("baseline") => Level::Baseline,
            Ok("v3") => Level::V3,
            Ok("v4") => Level::V4,
            _ => Level::Amx,
        })
    }

    /// The name that `ULTRAMARINE_CPU_LEVEL` takes.
    pub fn name(self) -> &'static str {
        match self {
            Level::Baseline => "baseline",
            Level::V3 => "v3",
            Level::V4 => "v4",
            Level::Amx => "amx",
        }
    }
}

/// The properties of a level, as constants for which a loop can be compiled. [`Level::Amx`] has no type of its own: its
/// loops are those of [`Level::V4`].
pub trait Isa: Copy + Send + Sync + 'static {
    /// The level.
    const LEVEL: Level;
    /// Set if `mul_add` is one instruction. Otherwise it is a slow library call, so use a product and a sum.
    const FMA: bool;
}

macro_rules! isa {
    ($name:ident, $level:ident, $fma:expr) => {
        #[doc = concat!("Marker for [`Level::", stringify!($level), "`].")]
        #[derive(Clone, Copy)]
        pub struct $name;
        impl Isa for $name {
            const LEVEL: Level = Level::$level;
            const FMA: bool = $fma;
        }
    };
}
isa!(IsaBaseline, Baseline, cfg!(target_arch = "aarch64"));
isa!(IsaV3, V3, true);
isa!(IsaV4, V4, true);

/// A loop to be compiled once per level. Mark `call` (and everything it calls)
/// `#[inline(always)]`: only what is inlined gets the level's instructions.
pub trait Body {
    /// The loop's result.
    type Output;
    /// The loop.
    fn call<I: Isa>(self, isa: I) -> Self::Output;
}

/// Runs `body` as compiled for `level`.
#[inline]
pub fn at<B: Body>(level: Level, body: B) -> B::Output {
    match level {
        Level::Baseline => body.call(IsaBaseline),
        // SAFETY: a Level above Baseline is only made by `detected`, `current` and
        // `available`, after its features were found.
        #[cfg(target_arch = "x86_64")]
        Level::V3 => unsafe { v3(body) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Level::V4 | Level::Amx => unsafe { v4(body) },
        #[cfg(not(target_arch = "x86_64"))]
        _ => body.call(IsaBaseline),
    }
}

/// Runs a body with the features of x86-64-v3.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt")]
pub(crate) fn v3<B: Body>(body: B) -> B::Output {
    body.call(IsaV3)
}

/// Runs a body with the features of x86-64-v4.
#[cfg(target_arch = "x86_64")]
#[target_feature(
    enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,movbe,popcnt"
)]
pub(crate) fn v4<B: Body>(body: B) -> B::Output {
    body.call(IsaV4)
}
