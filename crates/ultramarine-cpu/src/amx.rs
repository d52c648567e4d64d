//! AMX, the tile registers of x86-64 processors: detection, permission and configuration.

/// Rows of a tile, each of 64 bytes.
pub const TILE: usize = 16;

/// Returns true if the processor multiplies tiles of bfloat16 and of 8-bit integers, and the operating system permits
/// this process to use them. The first call requests the permission for all threads.
#[cfg(target_arch = "x86_64")]
pub fn is_available() -> bool {
    use std::sync::OnceLock;
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| has_instructions() && has_permission())
}

#[cfg(target_arch = "x86_64")]
fn has_instructions() -> bool {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    const EXTENDED_FEATURES: u32 = 7;
    // Bits of EDX.
    const BF16: u32 = 1 << 22;
    const TILES: u32 = 1 << 24;
    const INT8: u32 = 1 << 25;
    let all = BF16 | TILES | INT8;
    __cpuid(0).eax >= EXTENDED_FEATURES && __cpuid_count(EXTENDED_FEATURES, 0).edx & all == all
}

/// Linux saves tiles only for processes that request the permission. Versions without support for AMX reject the
/// request.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn has_permission() -> bool {
    const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
    const XFEATURE_XTILEDATA: libc::c_long = 18;
    // SAFETY: the call takes two numbers. It raises the stack size that signal handlers need, and fails if an existing
    // stack is too small.
    unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0 }
}

#[cfg(all(not(target_os = "linux"), target_arch = "x86_64"))]
fn has_permission() -> bool {
    false
}

/// This thread's tiles, each of [`TILE`] rows of 64 bytes. They are released on drop: a thread without tiles is saved
/// quickly, and no other code must find them configured.
pub struct Tiles(());

impl Tiles {
    /// Configures the tiles, if there are any.
    pub fn configure() -> Tiles {
        #[cfg(target_arch = "x86_64")]
        if is_available() {
            #[repr(C, align(64))]
            struct Configuration {
                palette: u8,
                start_row: u8,
                reserved: [u8; 14],
                row_bytes: [u16; 16],
                rows: [u8; 16],
            }
            let all = Configuration {
                palette: 1,
                start_row: 0,
                reserved: [0; 14],
                row_bytes: core::array::from_fn(|i| if i < 8 { 64 } else { 0 }),
                rows: core::array::from_fn(|i| if i < 8 { TILE as u8 } else { 0 }),
            };
            // SAFETY: tiles are available; the configuration is one of palette 1, which has eight.
            unsafe {
                core::arch::asm!(
                    "ldtilecfg [{all}]",
                    all = in(reg) &raw const all,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack, readonly, preserves_flags),
                );
            }
        }
        Tiles(())
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        if is_available() {
            // SAFETY: tiles are available.
            unsafe {
                core::arch::asm!(
                    "tilerelease",
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack, nomem, preserves_flags),
                );
            }
        }
    }
}
