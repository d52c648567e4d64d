//! Times of elementwise programs, copies and reductions through the backend's table: the best of many, on two
//! threads or, with `--one-thread`, on one. Small operations are in nanoseconds, large ones in GB/s.
//! `cargo run --release -p ultramarine-bench --bin elementwise [--json] [--one-thread] [FILTER]`

use std::{
    ffi::c_void,
    sync::atomic::{AtomicPtr, AtomicU64, Ordering::SeqCst},
    time::Instant,
};
use ultramarine_abi::{
    BackendTable, Command, HostTable, ParallelBody, Tensor, TensorDesc,
    dlpack::{DLDataType, DLDevice, DLTensor},
    fused::{self, FusedInterface, Instruction, family},
    layout,
    schema::{BinaryAttrs, DTYPES, NoAttrs, ReduceAttrs, UnaryAttrs, binary, op, reduce, unary},
};
use ultramarine_bench::{Figure, Report};

/// A loop that both threads work on.
struct Loop {
    body: ParallelBody,
    context: *mut c_void,
    count: u64,
    next: AtomicU64,
    workers: AtomicU64,
}

static LOOP: AtomicPtr<Loop> = AtomicPtr::new(std::ptr::null_mut());

fn work(l: &Loop) {
    loop {
        let i = l.next.fetch_add(1, SeqCst);
        if i >= l.count {
            return;
        }
        // SAFETY: the body is for this context, which lives until the loop is done.
        unsafe { (l.body)(l.context, i) };
    }
}

/// The worker takes the loop away from its place, so that it is entered once.
fn worker() {
    loop {
        let l = LOOP.swap(std::ptr::null_mut(), SeqCst);
        if l.is_null() {
            std::hint::spin_loop();
            continue;
        }
        // SAFETY: `parallel_for` waits for whoever took the loop.
        let l = unsafe { &*l };
        work(l);
        l.workers.fetch_sub(1, SeqCst);
    }
}

unsafe extern "C" fn parallel_for(
    _: *mut c_void,
    count: u64,
    body: ParallelBody,
    context: *mut c_void,
) {
    let mut l = Loop { body, context, count, next: AtomicU64::new(0), workers: AtomicU64::new(1) };
    LOOP.store(&raw mut l, SeqCst);
    work(&l);
    if LOOP.swap(std::ptr::null_mut(), SeqCst).is_null() {
        while l.workers.load(SeqCst) != 0 {
            std::hint::spin_loop();
        }
    }
}

unsafe extern "C" fn thread_count(_: *mut c_void) -> u32 {
    2
}

const F32: DLDataType = DTYPES[10].1;

/// Memory with a shape and strides.
struct Array {
    data: *mut u8,
    dtype: DLDataType,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

impl Array {
    fn new(dtype: DLDataType, shape: &[i64]) -> Array {
        let n = shape.iter().product::<i64>() as usize * usize::from(dtype.bits) / 8;
        let memory = std::alloc::Layout::from_size_align(n.max(64), 4096).expect("small");
        // SAFETY: the size is not zero; the array is never freed.
        let data = unsafe { std::alloc::alloc(memory) };
        for i in 0..n / 4 {
            // SAFETY: within the allocation.
            unsafe { *(data as *mut f32).add(i) = (i % 1000) as f32 / 1000.0 };
        }
        let mut strides = vec![1; shape.len()];
        for i in (1..shape.len()).rev() {
            strides[i - 1] = strides[i] * shape[i];
        }
        Array { data, dtype, shape: shape.to_vec(), strides }
    }

    fn view(&self, shape: &[i64], strides: &[i64]) -> Array {
        Array {
            data: self.data,
            dtype: self.dtype,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
        }
    }

    fn t(&self) -> Array {
        let turned = |v: &[i64]| v.iter().rev().copied().collect::<Vec<_>>();
        self.view(&turned(&self.shape), &turned(&self.strides))
    }

    fn contiguous(&self) -> bool {
        let mut n = 1;
        self.shape.iter().zip(&self.strides).rev().all(|(len, stride)| {
            let ok = *len == 1 || *stride == n;
            n *= len;
            ok
        })
    }

    fn desc(&self) -> TensorDesc {
        TensorDesc {
            size: size_of::<TensorDesc>() as u32,
            ndim: self.shape.len() as i32,
            dtype: self.dtype,
            layout: if self.contiguous() { layout::CONTIGUOUS } else { layout::STRIDED },
        }
    }

    fn tensor(&self) -> Tensor {
        Tensor {
            size: size_of::<Tensor>() as u32,
            flags: 0,
            dl: DLTensor {
                data: self.data as *mut c_void,
                device: DLDevice { device_type: 1, device_id: 0 },
                ndim: self.shape.len() as i32,
                dtype: self.dtype,
                shape: self.shape.as_ptr() as *mut i64,
                strides: self.strides.as_ptr() as *mut i64,
                byte_offset: 0,
            },
            buffer: std::ptr::null_mut(),
            buffer_size: 0,
            wait: std::ptr::null_mut(),
            wait_value: 0,
        }
    }
}

struct Bench {
    table: BackendTable,
    device: *mut c_void,
    report: Report,
}

impl Bench {
    /// Times a submit without commands, the cost of the boundary itself.
    fn empty_submit(&self) {
        let submit = std::hint::black_box(self.table.submit.expect("has submit"));
        let (null, n) = (std::ptr::null_mut::<c_void>(), 1_000_000);
        let best = (0..20)
            .map(|_| {
                let at = Instant::now();
                for _ in 0..n {
                    // SAFETY: there are no commands.
                    let status = unsafe { submit(self.device, null, null.cast(), 0, null.cast()) };
                    assert_eq!(status, 0);
                }
                at.elapsed().as_secs_f64() / f64::from(n)
            })
            .fold(f64::INFINITY, f64::min);
        if self.report.wants("empty submit") {
            self.report.print(&Figure::new("empty submit", best * 1e9, "ns", 20));
        }
    }

    /// Times a plan that moves at least `bytes`.
    fn time(
        &self,
        name: &str,
        plan: *mut c_void,
        ins: &[&Array],
        outs: &[&Array],
        scalars: &[[u64; 2]],
        bytes: usize,
    ) {
        let tensors = |a: &[&Array]| a.iter().map(|a| a.tensor()).collect::<Vec<_>>();
        let (ins, outs) = (tensors(ins), tensors(outs));
        let command = Command {
            size: size_of::<Command>() as u32,
            flags: 0,
            plan,
            inputs: ins.as_ptr(),
            outputs: outs.as_ptr(),
            scalars: scalars.as_ptr(),
            n_inputs: ins.len() as u32,
            n_outputs: outs.len() as u32,
            n_scalars: scalars.len() as u32,
            tensor_stride: size_of::<Tensor>() as u32,
            workspace: std::ptr::null_mut(),
        };
        if !self.report.wants(name) {
            return;
        }
        let submit = self.table.submit.expect("has submit");
        let null = std::ptr::null_mut();
        let many = if bytes < 1 << 16 { 1000 } else { 1 };
        let (mut best, mut samples) = (f64::INFINITY, 0);
        let start = Instant::now();
        while start.elapsed().as_secs_f64() < 0.5 {
            let at = Instant::now();
            for _ in 0..many {
                // SAFETY: the command's tensors live.
                let status = unsafe { submit(self.device, null, &command, 1, null as *mut _) };
                assert_eq!(status, 0);
            }
            best = best.min(at.elapsed().as_secs_f64() / f64::from(many));
            samples += 1;
        }
        self.report.print(&match many {
            1 => Figure::new(name, bytes as f64 / best / 1e9, "GB/s", samples),
            _ => Figure::new(name, best * 1e9, "ns", samples),
        });
    }

    fn op<A>(
        &self,
        name: &str,
        id: u32,
        attrs: &A,
        ins: &[&Array],
        out: &Array,
        scalars: &[[u64; 2]],
    ) {
        let descs: Vec<_> = ins.iter().map(|a| a.desc()).collect();
        let mut plan = std::ptr::null_mut();
        // SAFETY: the attributes are the op's.
        let status = unsafe {
            (self.table.prepare.expect("has prepare"))(
                self.device,
                id,
                1,
                attrs as *const A as *const c_void,
                descs.as_ptr(),
                descs.len() as u32,
                &out.desc(),
                1,
                &mut plan,
                std::ptr::null_mut(),
            )
        };
        if status != 0 {
            self.report.note(&format!("{name}: unsupported"));
            return;
        }
        self.time(name, plan, ins, &[out], scalars, traffic(ins, &[out]));
    }

    fn program(
        &self,
        name: &str,
        instructions: &[Instruction],
        constants: &[f32],
        epilogue: Option<(u32, u64)>,
        ins: &[&Array],
        out: &Array,
    ) {
        let descs: Vec<_> = ins.iter().map(|a| a.desc()).collect();
        let dtypes = vec![F32; constants.len()];
        let outputs = [(ins.len() + constants.len() + instructions.len() - 1) as u16];
        let (reduce, axes) = epilogue.unwrap_or((fused::NO_REDUCTION, 0));
        let program = fused::Program {
            size: size_of::<fused::Program>() as u32,
            reduce,
            axes,
            instructions: instructions.as_ptr(),
            constants: dtypes.as_ptr(),
            outputs: outputs.as_ptr(),
            n_instructions: instructions.len() as u32,
            n_constants: dtypes.len() as u32,
            n_outputs: 1,
            n_inputs: ins.len() as u32,
        };
        let mut plan = std::ptr::null_mut();
        // SAFETY: the interface is the one asked for; the program's arrays live.
        let status = unsafe {
            let found = (self.table.interface.expect("has interfaces"))(
                std::ptr::null_mut(),
                fused::INTERFACE.as_ptr(),
            ) as *const FusedInterface;
            ((*found).prepare.expect("has prepare"))(
                self.device,
                &program,
                descs.as_ptr(),
                &out.desc(),
                &mut plan,
                std::ptr::null_mut(),
            )
        };
        if status != 0 {
            self.report.note(&format!("{name}: unsupported"));
            return;
        }
        let scalars: Vec<_> = constants.iter().map(|c| [u64::from(c.to_bits()), 0]).collect();
        self.time(name, plan, ins, &[out], &scalars, traffic(ins, &[out]));
    }
}

/// Bytes of the distinct elements of inputs and outputs.
fn traffic(ins: &[&Array], outs: &[&Array]) -> usize {
    let bytes = |a: &&Array| {
        let n: i64 =
            a.shape.iter().zip(&a.strides).map(|(n, s)| if *s == 0 { 1 } else { *n }).product();
        n as usize * usize::from(a.dtype.bits) / 8
    };
    ins.iter().chain(outs).map(bytes).sum()
}

fn instruction(family: u8, op: u32, a: u16, b: u16) -> Instruction {
    Instruction { family, op: op as u8, a, b, c: 0, dtype: F32 }
}

fn main() {
    let report = Report::from_args("elementwise");
    let two = !report.has("--one-thread");
    if two {
        std::thread::spawn(worker);
    }
    let host = HostTable {
        size: size_of::<HostTable>() as u32,
        abi_major: 0,
        abi_minor: 1,
        host: std::ptr::null_mut(),
        log: None,
        error_new: None,
        alloc: None,
        free: None,
        parallel_for: if two { Some(parallel_for) } else { None },
        thread_count: Some(thread_count),
        error_command: None,
    };
    // SAFETY: no functions is a valid table.
    let mut table: BackendTable = unsafe { std::mem::zeroed() };
    table.size = size_of::<BackendTable>() as u32;
    // SAFETY: both tables are valid.
    unsafe { ultramarine_cpu::backend_init(&host, &mut table, std::ptr::null_mut()) };
    let mut device = std::ptr::null_mut();
    // SAFETY: the table's own function and handle.
    unsafe {
        let open = table.device_open.expect("has device_open");
        open(table.backend, 0, &mut device, std::ptr::null_mut())
    };
    let bench = Bench { table, device, report };
    bench.empty_submit();
    let n = 4096;
    let none = NoAttrs::new();
    let add = BinaryAttrs::new(binary::ADD);
    let (bin, un) = (family::BINARY, family::UNARY);

    let small = [(); 3].map(|_| Array::new(F32, &[4]));
    bench.op("add of 4", op::BINARY, &add, &[&small[0], &small[1]], &small[2], &[]);
    let one = Array::new(F32, &[1]);
    let wide = one.view(&[4], &[0]);
    bench.op("add of 4 and a broadcast", op::BINARY, &add, &[&small[0], &wide], &small[2], &[]);
    bench.op("sum of 4", op::REDUCE, &ReduceAttrs::new(reduce::SUM, 1), &[&small[0]], &one, &[]);
    bench.op("copy of 4", op::COPY, &none, &[&small[0]], &small[2], &[]);
    let middle = [(); 3].map(|_| Array::new(F32, &[1 << 16]));
    bench.op("add of 64 Ki", op::BINARY, &add, &[&middle[0], &middle[1]], &middle[2], &[]);

    let [x, y, z] = [(); 3].map(|_| Array::new(F32, &[n, n]));
    let row = Array::new(F32, &[n]).view(&[n, n], &[0, 1]);
    let column = Array::new(F32, &[n]).view(&[n, n], &[1, 0]);
    bench.op("x + y", op::BINARY, &add, &[&x, &y], &z, &[]);
    bench.op("x += y (donated)", op::BINARY, &add, &[&x, &y], &x, &[]);
    bench.program(
        "4*x + 2*y",
        &[
            instruction(bin, binary::MULTIPLY, 0, 2),
            instruction(bin, binary::MULTIPLY, 1, 3),
            instruction(bin, binary::ADD, 4, 5),
        ],
        &[4.0, 2.0],
        None,
        &[&x, &y],
        &z,
    );
    bench.op("x + row", op::BINARY, &add, &[&x, &row], &z, &[]);
    bench.op("x + column", op::BINARY, &add, &[&x, &column], &z, &[]);
    bench.op("x + y.T", op::BINARY, &add, &[&x, &y.t()], &z, &[]);
    bench.op("exp", op::UNARY, &UnaryAttrs::new(unary::EXP), &[&y], &z, &[]);
    bench.op("copy", op::COPY, &none, &[&x], &z, &[]);
    bench.op("copy of x.T", op::COPY, &none, &[&x.t()], &z, &[]);
    let f16 = Array::new(DTYPES[9].1, &[n, n]);
    bench.op("copy of x.T to float16", op::COPY, &none, &[&x.t()], &f16, &[]);
    let half = Array::new(DTYPES[9].1, &[n, n]);
    bench.op("copy of float16 x.T", op::COPY, &none, &[&half.t()], &f16, &[]);
    let byte = [(); 2].map(|_| Array::new(DTYPES[1].1, &[n, n]));
    bench.op("copy of uint8 x.T", op::COPY, &none, &[&byte[0].t()], &byte[1], &[]);
    let double = [(); 2].map(|_| Array::new(DTYPES[11].1, &[n, n / 2]));
    bench.op(
        "copy of float64 x.T",
        op::COPY,
        &none,
        &[&double[0].t()],
        &double[1].view(&[n / 2, n], &[n, 1]),
        &[],
    );
    let heads = x.view(&[64, 64, 32, 128], &[64 * 32 * 128, 128, 64 * 128, 1]);
    let out = Array::new(F32, &[64, 64, 32, 128]);
    bench.op("copy, heads to the front", op::COPY, &none, &[&heads], &out, &[]);
    let channels = x.view(&[16, 64, 128, 128], &[1 << 20, 1, 64 * 128, 64]);
    let out = Array::new(F32, &[16, 64, 128, 128]);
    bench.op("copy, channels to the front", op::COPY, &none, &[&channels], &out, &[]);
    let three = x.view(&[4 << 20, 3], &[4, 1]);
    let out = Array::new(F32, &[4 << 20, 3]);
    bench.op("copy of x[:, :3]", op::COPY, &none, &[&three], &out, &[]);
    bench.op("fill", op::FILL, &none, &[], &z, &[[u64::from(1f32.to_bits()), 0]]);

    let sum = |axes| ReduceAttrs::new(reduce::SUM, axes);
    let (down, across, all) =
        (Array::new(F32, &[1, n]), Array::new(F32, &[n, 1]), Array::new(F32, &[1, 1]));
    bench.op("sum over rows", op::REDUCE, &sum(2), &[&x], &across, &[]);
    bench.op("sum over columns", op::REDUCE, &sum(1), &[&x], &down, &[]);
    bench.op("sum of all", op::REDUCE, &sum(3), &[&x], &all, &[]);
    bench.op("max over rows", op::REDUCE, &ReduceAttrs::new(reduce::MAX, 2), &[&x], &across, &[]);
    bench.op("sum over rows of x.T", op::REDUCE, &sum(2), &[&x.t()], &across, &[]);
    bench.op("sum over columns of x.T", op::REDUCE, &sum(1), &[&x.t()], &down, &[]);
    let short = x.view(&[1 << 21, 8], &[8, 1]);
    let out = Array::new(F32, &[1 << 21, 1]);
    bench.op("sum over rows of 8", op::REDUCE, &sum(2), &[&short], &out, &[]);
    let narrow = Array::new(F32, &[1, 8]);
    bench.op("sum over columns of (2 Mi, 8)", op::REDUCE, &sum(1), &[&short], &narrow, &[]);
    let short = x.view(&[1 << 18, 64], &[64, 1]);
    let out = Array::new(F32, &[1 << 18, 1]);
    bench.op("sum over rows of 64", op::REDUCE, &sum(2), &[&short], &out, &[]);
    bench.program(
        "sum(x * y) over rows",
        &[instruction(bin, binary::MULTIPLY, 0, 1)],
        &[],
        Some((reduce::SUM, 2)),
        &[&x, &y],
        &across,
    );
    bench.program(
        "sum(exp(x - column)) over rows",
        &[instruction(bin, binary::SUBTRACT, 0, 1), instruction(un, unary::EXP, 2, 0)],
        &[],
        Some((reduce::SUM, 2)),
        &[&y, &column],
        &across,
    );
    bench.op(
        "sum of float16 over rows",
        op::REDUCE,
        &sum(2),
        &[&half],
        &Array::new(DTYPES[9].1, &[n, 1]),
        &[],
    );
}
