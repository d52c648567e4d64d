//! Limits of the machine: memory bandwidth by plain loops with streaming stores over warm huge pages, and the
//! multiply-add peak, on one core and on all. The bench prints them beside the libraries' figures:
//! `cargo run --release -p ultramarine-bench --bin limits [--json]`.

use std::alloc::{Layout, alloc_zeroed};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;
use ultramarine_bench::{Figure, Report};

/// Elements of each array: 4096 x 4096, as in the bench.
const ELEMENTS: usize = 4096 * 4096;
/// Many and short, so that some are not disturbed.
const ROUNDS: usize = 100;

/// A loop over a part of the arrays.
#[derive(Clone, Copy)]
enum Loop {
    /// Sum of x: one stream read.
    Read,
    /// out = 4 x: one read, one written.
    Map,
    /// out = 4 x + 2 y: two read, one written.
    Axpby,
    /// Independent chains of multiply-adds in registers.
    MultiplyAdd,
}

/// Turns of the multiply-add loop in one measurement.
const TURNS: usize = 100_000;

#[cfg(target_arch = "x86_64")]
mod simd {
    use super::TURNS;
    use std::arch::x86_64::*;

    /// Generates the loops for one register width.
    macro_rules! loops {
        ($module:ident, $features:literal, $lanes:literal, $chains:literal, $vector:ty, $set:ident,
         $load:ident, $stream:ident, $add:ident, $mul:ident, $fma:ident, $store:ident, $fence:ident) => {
            pub mod $module {
                use super::*;

                /// Floating-point operations of one call of `multiply_add`.
                pub const FLOPS: f64 = (TURNS * $chains * $lanes * 2) as f64;

                #[target_feature(enable = $features)]
                pub fn read(x: &[f32]) -> f32 {
                    let mut sums = [$set(0.0); 8];
                    for block in x.chunks_exact(8 * $lanes) {
                        for (i, sum) in sums.iter_mut().enumerate() {
                            // SAFETY: i < 8, so the load ends inside the block.
                            *sum = $add(*sum, unsafe { $load(block.as_ptr().add(i * $lanes)) });
                        }
                    }
                    first(sums.into_iter().reduce(|a, b| $add(a, b)).unwrap_or($set(0.0)))
                }

                #[target_feature(enable = $features)]
                pub fn axpby(x: &[f32], y: Option<&[f32]>, out: &mut [f32]) {
                    let (four, two) = ($set(4.0), $set(2.0));
                    let n = x.len().min(out.len()).min(y.map_or(usize::MAX, <[f32]>::len));
                    for i in (0..n - n % $lanes).step_by($lanes) {
                        // SAFETY: i + lanes <= n, the least of the lengths; the arrays start on
                        // 2 MiB and parts on multiples of the register's size, which a
                        // streaming store needs.
                        unsafe {
                            let mut v = $mul(four, $load(x.as_ptr().add(i)));
                            if let Some(y) = y {
                                v = $add(v, $mul(two, $load(y.as_ptr().add(i))));
                            }
                            $stream(out.as_mut_ptr().add(i), v);
                        }
                    }
                    $fence();
                }

                #[target_feature(enable = $features)]
                pub fn multiply_add() -> f32 {
                    let mut sums = [$set(1.0); $chains];
                    let (a, b) =
                        ($set(std::hint::black_box(0.999)), $set(std::hint::black_box(0.001)));
                    for _ in 0..TURNS {
                        for sum in &mut sums {
                            *sum = $fma(*sum, a, b);
                        }
                    }
                    first(sums.into_iter().reduce(|a, b| $add(a, b)).unwrap_or(a))
                }

                #[target_feature(enable = $features)]
                fn first(v: $vector) -> f32 {
                    let mut lanes = [0f32; $lanes];
                    // SAFETY: the array holds exactly one register.
                    unsafe { $store(lanes.as_mut_ptr(), v) };
                    lanes.iter().sum()
                }
            }
        };
    }
    loops!(
        avx512,
        "avx512f",
        16,
        24,
        __m512,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_stream_ps,
        _mm512_add_ps,
        _mm512_mul_ps,
        _mm512_fmadd_ps,
        _mm512_storeu_ps,
        _mm_sfence
    );
    loops!(
        avx2,
        "avx2,fma",
        8,
        12,
        __m256,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_stream_ps,
        _mm256_add_ps,
        _mm256_mul_ps,
        _mm256_fmadd_ps,
        _mm256_storeu_ps,
        _mm_sfence
    );
}

/// The same without intrinsics, for other machines: what the compiler makes of it.
mod plain {
    use super::TURNS;

    const LANES: usize = 64;
    pub const FLOPS: f64 = (TURNS * LANES * 2) as f64;

    pub fn read(x: &[f32]) -> f32 {
        let mut sums = [0f32; LANES];
        for block in x.chunks_exact(LANES) {
            for (sum, v) in sums.iter_mut().zip(block) {
                *sum += v;
            }
        }
        sums.iter().sum()
    }

    pub fn axpby(x: &[f32], y: Option<&[f32]>, out: &mut [f32]) {
        match y {
            Some(y) => {
                for ((o, x), y) in out.iter_mut().zip(x).zip(y) {
                    *o = 4.0 * x + 2.0 * y;
                }
            }
            None => {
                for (o, x) in out.iter_mut().zip(x) {
                    *o = 4.0 * x;
                }
            }
        }
    }

    pub fn multiply_add() -> f32 {
        let mut sums = [1f32; LANES];
        let (a, b) = (std::hint::black_box(0.999f32), std::hint::black_box(0.001f32));
        for _ in 0..TURNS {
            for sum in &mut sums {
                *sum = if cfg!(target_arch = "aarch64") { sum.mul_add(a, b) } else { *sum * a + b };
            }
        }
        sums.iter().sum()
    }
}

/// The registers in use.
#[derive(Clone, Copy, PartialEq)]
enum Width {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Plain,
}

impl Width {
    fn detected() -> Width {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            if has!("avx512f") {
                return Width::Avx512;
            }
            if has!("avx2") && has!("fma") {
                return Width::Avx2;
            }
        }
        Width::Plain
    }

    fn name(self) -> &'static str {
        match self {
            #[cfg(target_arch = "x86_64")]
            Width::Avx512 => "avx512f",
            #[cfg(target_arch = "x86_64")]
            Width::Avx2 => "avx2",
            Width::Plain => "plain",
        }
    }

    fn flops(self) -> f64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            Width::Avx512 => simd::avx512::FLOPS,
            #[cfg(target_arch = "x86_64")]
            Width::Avx2 => simd::avx2::FLOPS,
            Width::Plain => plain::FLOPS,
        }
    }

    /// Runs a loop over one thread's part.
    fn run(self, which: Loop, x: &[f32], y: &[f32], out: &mut [f32]) {
        let y = matches!(which, Loop::Axpby).then_some(y);
        match (self, which) {
            // SAFETY, here and below: these widths are only made by `detected`, after their
            // features were found.
            #[cfg(target_arch = "x86_64")]
            (Width::Avx512, Loop::Read) => {
                // SAFETY: as above.
                _ = black_box(unsafe { simd::avx512::read(x) });
            }
            #[cfg(target_arch = "x86_64")]
            (Width::Avx512, Loop::MultiplyAdd) => {
                // SAFETY: as above.
                _ = black_box(unsafe { simd::avx512::multiply_add() });
            }
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            (Width::Avx512, _) => unsafe { simd::avx512::axpby(x, y, out) },
            #[cfg(target_arch = "x86_64")]
            (Width::Avx2, Loop::Read) => {
                // SAFETY: as above.
                _ = black_box(unsafe { simd::avx2::read(x) });
            }
            #[cfg(target_arch = "x86_64")]
            (Width::Avx2, Loop::MultiplyAdd) => {
                // SAFETY: as above.
                _ = black_box(unsafe { simd::avx2::multiply_add() });
            }
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            (Width::Avx2, _) => unsafe { simd::avx2::axpby(x, y, out) },
            (Width::Plain, Loop::Read) => _ = black_box(plain::read(x)),
            (Width::Plain, Loop::MultiplyAdd) => _ = black_box(plain::multiply_add()),
            (Width::Plain, _) => plain::axpby(x, y, out),
        }
    }
}

/// A zeroed array on huge pages where the system has them; never freed.
fn huge() -> &'static mut [f32] {
    let layout = Layout::array::<f32>(ELEMENTS)
        .and_then(|l| l.align_to(2 << 20))
        .unwrap_or_else(|_| std::process::exit(1));
    // SAFETY: the layout is not empty; zeroes are valid f32; nobody else holds the block, which
    // is never freed. The advice concerns memory that we own and changes nothing in it.
    unsafe {
        let start = alloc_zeroed(layout);
        if start.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        #[cfg(target_os = "linux")]
        libc::madvise(start.cast(), layout.size(), libc::MADV_HUGEPAGE);
        std::slice::from_raw_parts_mut(start.cast(), ELEMENTS)
    }
}

/// The best time in seconds of a loop shared by `threads` threads, over several rounds. The
/// threads wait by spinning, so that starting a round costs next to nothing.
fn best(which: Loop, threads: usize, x: &[f32], y: &[f32], out: &mut [f32]) -> f64 {
    let width = Width::detected();
    let (round, waiting, nanos) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicU64::new(u64::MAX));
    let part = ELEMENTS / threads / 64 * 64;
    std::thread::scope(|scope| {
        for ((x, y), out) in
            x.chunks(part).zip(y.chunks(part)).zip(out.chunks_mut(part)).take(threads)
        {
            let (round, waiting, nanos) = (&round, &waiting, &nanos);
            scope.spawn(move || {
                for n in 1..=ROUNDS {
                    // The last to come starts the round and takes the time from there.
                    if waiting.fetch_add(1, Ordering::AcqRel) + 1 == threads * (2 * n - 1) {
                        round.store(n, Ordering::Release);
                    }
                    spin(|| round.load(Ordering::Acquire) >= n);
                    let started = Instant::now();
                    width.run(which, x, y, out);
                    waiting.fetch_add(1, Ordering::AcqRel);
                    spin(|| waiting.load(Ordering::Acquire) >= threads * 2 * n);
                    // The first round makes the pages warm.
                    if n > 1 {
                        nanos.fetch_min(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    nanos.into_inner() as f64 * 1e-9
}

fn spin(done: impl Fn() -> bool) {
    while !done() {
        std::hint::spin_loop();
    }
}

fn main() {
    let report = Report::from_args("limits");
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (x, y, out) = (huge(), huge(), huge());
    x.fill(1.5);
    y.fill(-0.5);
    out.fill(0.0);
    let width = Width::detected();
    report.note(&format!("limits of this machine: {threads} threads, {} registers", width.name()));
    for (cores, n) in [("one core", 1), ("all cores", threads)] {
        let arrays = |streams: usize| (streams * 4 * ELEMENTS) as f64;
        for (name, which, work, unit) in [
            ("read", Loop::Read, arrays(1), "GB/s"),
            ("map", Loop::Map, arrays(2), "GB/s"),
            ("axpby", Loop::Axpby, arrays(3), "GB/s"),
            ("multiply-add", Loop::MultiplyAdd, width.flops() * n as f64, "GFLOP/s"),
        ] {
            let name = format!("{name}, {cores}");
            if !report.wants(&name) {
                continue;
            }
            let value = work / best(which, n, x, y, out) / 1e9;
            let figure = Figure::new(&name, value, unit, ROUNDS as u64);
            report.print(&Figure { library: "machine", ..figure });
            if matches!(which, Loop::Axpby) {
                // Threads get equal parts, which may leave a rest.
                let done = &out[..ELEMENTS / n / 64 * 64 * n];
                assert!(done.iter().all(|v| *v == 5.0), "4 * 1.5 + 2 * -0.5 is 5");
            }
        }
    }
}
