//! Speed of matrix products beside the multiply-add peak of the machine:
//! `cargo run --release -p ultramarine-bench --bin gemm [--json] [FILTER]`.
//! Each figure is the best of many runs, on one thread and on all cores (of the process's CPU set).
#![allow(clippy::needless_range_loop)]

use core::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use std::time::{Duration, Instant};
use ultramarine_abi::{ABI_MAJOR, ABI_MINOR, HostTable, ParallelBody};
use ultramarine_bench::{Figure, Report};
use ultramarine_cpu::{
    dtype::DType,
    kernel::{Args, Context, Desc, Kernel, Signature, View},
    level::Level,
    matmul,
    par::Par,
};

/// A pool that spins: its workers take indices of one loop at a time.
struct Pool {
    threads: AtomicUsize,
    /// Grows by one for each loop.
    epoch: AtomicU64,
    body: AtomicUsize,
    context: AtomicUsize,
    count: AtomicU64,
    next: AtomicU64,
    idle: AtomicUsize,
}

static POOL: Pool = Pool {
    threads: AtomicUsize::new(1),
    epoch: AtomicU64::new(0),
    body: AtomicUsize::new(0),
    context: AtomicUsize::new(0),
    count: AtomicU64::new(0),
    next: AtomicU64::new(0),
    idle: AtomicUsize::new(0),
};

impl Pool {
    fn work(&self) {
        // SAFETY: the body was stored by `parallel_for` from a ParallelBody.
        let body: ParallelBody = unsafe { core::mem::transmute(self.body.load(Acquire)) };
        let (context, count) = (self.context.load(Acquire), self.count.load(Acquire));
        loop {
            let i = self.next.fetch_add(1, AcqRel);
            if i >= count {
                return;
            }
            // SAFETY: body and context belong together, and i is below the count.
            unsafe { body(context as *mut c_void, i) }
        }
    }

    fn threads(&self) -> usize {
        self.threads.load(Acquire)
    }

    fn start(&'static self) {
        let threads = std::thread::available_parallelism().map_or(2, |n| n.get());
        self.threads.store(threads, Release);
        for _ in 1..threads {
            std::thread::spawn(|| {
                let mut seen = 0;
                self.idle.fetch_add(1, AcqRel);
                loop {
                    let mut spins = 0u32;
                    while self.epoch.load(Acquire) == seen {
                        spins += 1;
                        if spins.is_multiple_of(4096) {
                            std::thread::yield_now()
                        } else {
                            core::hint::spin_loop()
                        }
                    }
                    seen += 1;
                    self.work();
                    self.idle.fetch_add(1, AcqRel);
                }
            });
        }
        while self.idle.load(Acquire) < threads - 1 {
            std::thread::yield_now();
        }
    }
}

unsafe extern "C" fn parallel_for(
    _: *mut c_void,
    count: u64,
    body: ParallelBody,
    context: *mut c_void,
) {
    POOL.body.store(body as usize, Release);
    POOL.context.store(context as usize, Release);
    POOL.count.store(count, Release);
    POOL.next.store(0, Release);
    POOL.idle.store(0, Release);
    POOL.epoch.fetch_add(1, AcqRel);
    POOL.work();
    let mut spins = 0u32;
    while POOL.idle.load(Acquire) < POOL.threads() - 1 {
        spins += 1;
        if spins.is_multiple_of(4096) { std::thread::yield_now() } else { core::hint::spin_loop() }
    }
}

unsafe extern "C" fn thread_count(_: *mut c_void) -> u32 {
    POOL.threads() as u32
}

fn host() -> HostTable {
    HostTable {
        size: size_of::<HostTable>() as u32,
        abi_major: ABI_MAJOR as u16,
        abi_minor: ABI_MINOR as u16,
        host: core::ptr::null_mut(),
        log: None,
        error_new: None,
        alloc: None,
        free: None,
        parallel_for: Some(parallel_for),
        thread_count: Some(thread_count),
        error_command: None,
    }
}

/// GFLOP/s of float32 multiply-adds in registers, of all indices of a loop.
#[cfg(target_arch = "x86_64")]
fn peak(par: &Par, threads: usize) -> f64 {
    const STEPS: usize = 40_000;
    #[target_feature(enable = "avx512f")]
    fn fma() -> f32 {
        use core::arch::x86_64::*;
        let mut acc = [_mm512_setzero_ps(); 24];
        let (a, b) = (
            _mm512_set1_ps(core::hint::black_box(0.5)),
            _mm512_set1_ps(core::hint::black_box(1.0)),
        );
        for _ in 0..STEPS {
            for i in 0..24 {
                acc[i] = _mm512_fmadd_ps(a, b, acc[i]);
            }
        }
        let mut sum = acc[0];
        for i in 1..24 {
            sum = _mm512_add_ps(sum, acc[i]);
        }
        _mm512_reduce_add_ps(sum)
    }
    if Level::detected() < Level::V4 {
        return f64::NAN;
    }
    let parts = 2 * threads;
    let mut best = f64::MAX;
    for _ in 0..4 {
        let start = now(threads);
        par.run(parts, |_| {
            // SAFETY: the level was detected.
            core::hint::black_box(unsafe { fma() });
        });
        best = best.min(now(threads) - start);
    }
    (parts * STEPS * 24 * 16 * 2) as f64 / best / 1e9
}
#[cfg(not(target_arch = "x86_64"))]
fn peak(_: &Par, _: usize) -> f64 {
    f64::NAN
}

/// Seconds: of this thread's processor time where that can be had (other programs
/// do not count then), else of the clock on the wall.
fn now(threads: usize) -> f64 {
    if let (1, Some(seconds)) = (threads, of_this_thread()) {
        return seconds;
    }
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

struct Case {
    name: &'static str,
    dtype: DType,
    batch: i64,
    mnk: [i64; 3],
    transposed: [bool; 2],
}

/// Arrays begin at huge pages, and lie in them, as the core's large arrays do.
const HUGE: usize = 2 << 20;

/// Best time in seconds, best peak between the runs, and the number of runs.
fn time(case: &Case, par: Par, threads: usize) -> (f64, f64, u64) {
    let [m, n, k] = case.mnk;
    let size = case.dtype.size();
    let make = |numbers: i64| {
        let mut bytes = vec![0u8; numbers as usize * size + HUGE];
        #[cfg(target_os = "linux")]
        if bytes.len() > 2 * HUGE {
            let data = bytes.as_mut_ptr();
            let pad = data.align_offset(HUGE);
            let whole = (bytes.len() - pad) / HUGE * HUGE;
            // SAFETY: whole pages of the buffer; the advice changes no contents.
            unsafe { libc::madvise(data.add(pad).cast(), whole, libc::MADV_HUGEPAGE) };
        }
        // One, in each of the float dtypes, near enough: small exponents vary.
        for (i, b) in bytes.iter_mut().enumerate() {
            *b = if i % size == size - 1 { 0x3f } else { (i * 37 % 97) as u8 };
        }
        bytes
    };
    let (mut a, mut b, mut c) =
        (make(case.batch * m * k), make(case.batch * k * n), make(case.batch * m * n));
    let strides = |rows: i64, cols: i64, t: bool| {
        if t { [rows * cols, 1, rows] } else { [rows * cols, cols, 1] }
    };
    let (sa, sb, sc) = (
        strides(m, k, case.transposed[0]),
        strides(k, n, case.transposed[1]),
        strides(m, n, false),
    );
    fn view<'a>(data: &mut [u8], dtype: DType, shape: &'a [i64], strides: &'a [i64]) -> View<'a> {
        let data = data.as_mut_ptr();
        View { data: data.wrapping_add(data.align_offset(HUGE)), dtype, shape, strides }
    }
    let (ha, hb, hc) = ([case.batch, m, k], [case.batch, k, n], [case.batch, m, n]);
    let inputs = [view(&mut a, case.dtype, &ha, &sa), view(&mut b, case.dtype, &hb, &sb)];
    let outputs = [view(&mut c, case.dtype, &hc, &sc)];
    let desc = Desc { dtype: case.dtype, ndim: 3, contiguous: false };
    let level = Level::current();
    let kernel: Box<dyn Kernel> =
        matmul::prepare(&Signature { inputs: &[desc; 2], outputs: &[desc] }, level)
            .expect("a dtype with products");
    let cx = Context { par, level };
    let args = Args { inputs: &inputs, outputs: &outputs, scalars: &[] };
    // SAFETY: the views are of live buffers of their sizes.
    let call = || unsafe { kernel.run(&cx, &args) }.expect("a valid product");
    call();
    let start = Instant::now();
    call();
    let inner = (50e-6 / start.elapsed().as_secs_f64().max(1e-9)).ceil() as u32;
    let (mut best, mut top, begin, mut runs) = (f64::MAX, 0f64, Instant::now(), 0u64);
    while runs < 20 || begin.elapsed() < Duration::from_millis(600) && runs < 2000 {
        if runs % 8 == 0 {
            top = top.max(peak(&par, threads));
        }
        let start = now(threads);
        for _ in 0..inner {
            call();
        }
        best = best.min((now(threads) - start) / inner as f64);
        runs += 1;
    }
    (best, top, runs)
}

fn main() {
    let report = Report::from_args("gemm");
    POOL.start();
    let pool = Par::new(host());
    let mut peaks = [0f64; 2];
    let case =
        |name, dtype, batch, mnk| Case { name, dtype, batch, mnk, transposed: [false, false] };
    use DType::*;
    let cases = [
        case("512", F32, 1, [512; 3]),
        case("1024", F32, 1, [1024; 3]),
        case("2048", F32, 1, [2048; 3]),
        Case { transposed: [true, false], ..case("1024 A^T", F32, 1, [1024; 3]) },
        Case { transposed: [false, true], ..case("1024 B^T", F32, 1, [1024; 3]) },
        case("1024 f64", F64, 1, [1024; 3]),
        case("1024 bf16", BF16, 1, [1024; 3]),
        case("1024 f16", F16, 1, [1024; 3]),
        case("512 c64", C64, 1, [512; 3]),
        case("512 i32", I32, 1, [512; 3]),
        case("512 i8", I8, 1, [512; 3]),
        case("batch 64x128", F32, 64, [128; 3]),
        case("batch 1000x4", F32, 1000, [4; 3]),
        case("A x 4096", F32, 1, [4096, 1, 4096]),
        case("x B 4096", F32, 1, [1, 4096, 4096]),
        case("A x 4096 bf16", BF16, 1, [4096, 1, 4096]),
        case("x B 4096 bf16", BF16, 1, [1, 4096, 4096]),
        case("8 x B 4096", F32, 1, [8, 4096, 4096]),
        case("28 x B 4096", F32, 1, [28, 4096, 4096]),
        case("8 x B 4096 bf16", BF16, 1, [8, 4096, 4096]),
        case("A x 8 4096", F32, 1, [4096, 8, 4096]),
        case("mlp 256x784x256", F32, 1, [256, 256, 784]),
        Case { transposed: [true, false], ..case("mlp A^T 784x256x256", F32, 1, [784, 256, 256]) },
        case("mlp 256x256x10", F32, 1, [256, 10, 256]),
        Case { transposed: [true, false], ..case("mlp A^T 256x10", F32, 1, [256, 10, 256]) },
        Case { transposed: [false, true], ..case("mlp B^T 256x256 k10", F32, 1, [256, 256, 10]) },
        case("4x4", F32, 1, [4; 3]),
        case("16x16", F32, 1, [16; 3]),
        case("64x64", F32, 1, [64; 3]),
    ];
    report.note(&format!("level {}", Level::current().name()));
    for c in cases.iter().filter(|c| report.wants(c.name)) {
        let [m, n, k] = c.mnk;
        let per = if c.dtype == C64 { 8 } else { 2 };
        let flops = (c.batch * m * n * k * per) as f64;
        for (i, (par, threads)) in
            [(Par::default(), 1), (pool, POOL.threads())].into_iter().enumerate()
        {
            let (t, top, runs) = time(c, par, threads);
            peaks[i] = peaks[i].max(top);
            let threads = match threads {
                1 => "one thread".into(),
                2 => "two threads".into(),
                n => format!("{n} threads"),
            };
            let name = format!("{}, {threads}", c.name);
            // Without AVX-512 there is no peak to compare with.
            let limit = (peaks[i] > 0.0).then_some(peaks[i]);
            report.print(&Figure { limit, ..Figure::new(&name, flops / t / 1e9, "GFLOP/s", runs) });
        }
    }
}

#[cfg(target_os = "linux")]
fn of_this_thread() -> Option<f64> {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut t) };
    (code == 0).then_some(t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9)
}

#[cfg(not(target_os = "linux"))]
fn of_this_thread() -> Option<f64> {
    None
}
