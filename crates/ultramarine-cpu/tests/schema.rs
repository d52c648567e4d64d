//! The CPU backend prepares every op for every dtype that the schema lists, through its table,
//! and reads structs of other versions by their sizes.

use core::ffi::c_void;
use std::ptr::null_mut;
use ultramarine_abi::{
    BackendTable, Command, DeviceInfo, HostTable, Tensor, TensorDesc,
    dlpack::{DLDevice, DLTensor},
    fused, layout,
    schema::{self, DTYPES, Grade, InputDtype, OPS, OpSchema, ShapeRule, op},
    status,
};

struct Cpu {
    table: BackendTable,
    device: *mut c_void,
}

impl Cpu {
    fn new() -> Self {
        // SAFETY: no functions is a valid table for both sides.
        let (mut host, mut table): (HostTable, BackendTable) = unsafe { std::mem::zeroed() };
        host.size = size_of::<HostTable>() as u32;
        table.size = size_of::<BackendTable>() as u32;
        let mut device = null_mut();
        // SAFETY: both tables are valid, and the handle is the table's own.
        unsafe {
            assert_eq!(ultramarine_cpu::backend_init(&host, &mut table, null_mut()), status::OK);
            let open = table.device_open.unwrap();
            assert_eq!(open(table.backend, 0, &mut device, null_mut()), status::OK);
        }
        Self { table, device }
    }

    /// Asks for a plan with the attributes' bytes and releases it.
    fn prepare(&self, id: u32, attributes: &[u64], ins: &[TensorDesc], out: TensorDesc) -> i32 {
        let mut plan = null_mut();
        // SAFETY: the arrays have the lengths that are said.
        unsafe {
            let status = self.table.prepare.unwrap()(
                self.device,
                id,
                1,
                attributes.as_ptr().cast(),
                ins.as_ptr(),
                ins.len() as u32,
                &out,
                1,
                &mut plan,
                null_mut(),
            );
            if status == status::OK {
                self.table.plan_release.unwrap()(self.device, plan);
            }
            status
        }
    }
}

fn desc(dtype: usize, ndim: i32) -> TensorDesc {
    let size = size_of::<TensorDesc>() as u32;
    TensorDesc { size, ndim, dtype: DTYPES[dtype].1, layout: layout::CONTIGUOUS }
}

fn bits(mask: u32) -> impl Iterator<Item = usize> {
    (0..DTYPES.len()).filter(move |i| mask >> i & 1 == 1)
}

/// Attribute bytes of an op: its size, the code, one index array of one dimension.
fn attributes(row: &OpSchema, code: Option<u32>) -> Vec<u64> {
    let mut bytes = vec![0u8; row.attributes.size.next_multiple_of(8)];
    let mut put = |offset: usize, value: u32| {
        bytes[offset..offset + 4].copy_from_slice(&value.to_ne_bytes());
    };
    put(0, row.attributes.size as u32);
    for field in row.attributes.fields {
        match field.name {
            "op" => put(field.offset, code.unwrap()),
            "n_indices" | "index_ndim" | "inclusive" | "axes" if field.kind != "u8[32]" => {
                put(field.offset, 1);
            }
            _ => {}
        }
    }
    bytes.chunks_exact(8).map(|c| u64::from_ne_bytes(c.try_into().unwrap())).collect()
}

/// Ranks of the op's inputs and of its output.
fn ranks(shape: ShapeRule) -> (&'static [i32], i32) {
    match shape {
        ShapeRule::Free | ShapeRule::Line => (&[], 1),
        ShapeRule::Gather => (&[2, 1], 3),
        ShapeRule::Scatter => (&[2, 1, 3], 2),
        _ => (&[2, 2, 2], 2),
    }
}

#[test]
fn every_dtype_of_the_schema_has_a_plan() {
    let cpu = Cpu::new();
    let mut refused = Vec::new();
    let mut asked = 0;
    // What no grade asks for has tests of its own.
    for row in OPS.iter().filter(|row| row.grade != Grade::Extra) {
        let codes: Vec<_> = match row.codes.is_empty() {
            true => vec![None],
            false => row.codes.iter().map(Some).collect(),
        };
        for code in codes {
            let attributes = attributes(row, code.map(|c| c.code));
            let (ranks, rank) = ranks(row.shape);
            for main in bits(row.dtypes_of(code)) {
                let index = DTYPES.iter().position(|(n, _)| *n == "int32").unwrap();
                let ins: Vec<_> = row
                    .inputs
                    .iter()
                    .zip(ranks)
                    .map(|(input, rank)| match input.dtype {
                        InputDtype::Main => desc(main, *rank),
                        InputDtype::Of(mask) if mask >> index & 1 == 1 => desc(index, *rank),
                        InputDtype::Of(mask) => desc(bits(mask).next().unwrap(), *rank),
                    })
                    .collect();
                for out in bits(row.output_of(code, main)) {
                    asked += 1;
                    if cpu.prepare(row.id, &attributes, &ins, desc(out, rank)) != status::OK {
                        let code = code.map_or("", |c| c.name);
                        let (main, out) = (DTYPES[main].0, DTYPES[out].0);
                        refused.push(format!("{} {code} {main} -> {out}", row.name));
                    }
                }
            }
        }
    }
    assert!(asked > 1000, "{asked}");
    assert!(refused.is_empty(), "{} of {asked}:\n{}", refused.len(), refused.join("\n"));
}

#[test]
fn unlisted_operations_are_refused() {
    let cpu = Cpu::new();
    let dtype = |name| DTYPES.iter().position(|(n, _)| *n == name).unwrap();
    for (code, name) in [
        (schema::unary::SQRT, "int32"),
        (schema::unary::EXPM1, "complex64"),
        (schema::unary::BITWISE_INVERT, "float32"),
    ] {
        let main = dtype(name);
        let row = &OPS[op::UNARY as usize];
        assert_eq!(row.code(code).unwrap().dtypes >> main & 1, 0);
        let refused =
            cpu.prepare(op::UNARY, &attributes(row, Some(code)), &[desc(main, 1)], desc(main, 1));
        assert_eq!(refused, status::UNSUPPORTED);
    }
    let float = desc(dtype("float32"), 1);
    assert_eq!(cpu.prepare(999, &[4], &[float], float), status::UNSUPPORTED, "an unknown op");
    // A later revision's attribute that is not zero.
    let long = [16 | (u64::from(schema::unary::ABS) << 32), 1];
    assert_eq!(cpu.prepare(op::UNARY, &long, &[float], float), status::UNSUPPORTED);
    let long = [16 | (u64::from(schema::unary::ABS) << 32), 0];
    assert_eq!(cpu.prepare(op::UNARY, &long, &[float], float), status::OK, "a tail of zeros");
}

/// A struct of the contract with `more` bytes behind it, as a later version's would have.
#[repr(C)]
#[derive(Clone, Copy)]
struct Longer<T> {
    known: T,
    more: [u64; 3],
}

#[test]
fn arrays_are_walked_by_the_sizes_they_say() {
    let cpu = Cpu::new();
    let float = DTYPES.iter().position(|(n, _)| *n == "float32").unwrap();
    let longer = |ndim| {
        let mut known = desc(float, ndim);
        known.size = size_of::<Longer<TensorDesc>>() as u32;
        Longer { known, more: [u64::MAX; 3] }
    };
    let (ins, out) = ([longer(1), longer(1)], longer(1));
    let attributes = schema::BinaryAttrs::new(schema::binary::SUBTRACT);
    let mut plan = null_mut();
    // SAFETY: the arrays have the lengths and strides that are said.
    unsafe {
        let status = cpu.table.prepare.unwrap()(
            cpu.device,
            op::BINARY,
            1,
            (&raw const attributes).cast(),
            (&raw const ins).cast(),
            2,
            (&raw const out).cast(),
            1,
            &mut plan,
            null_mut(),
        );
        assert_eq!(status, status::OK);
    }

    let (mut shape, mut strides) = ([4i64], [1i64]);
    let mut data = [[0.0f32; 4], [10.0, 20.0, 30.0, 40.0], [1.0, 2.0, 3.0, 4.0], [0.0; 4]];
    let mut tensor = |at: usize| {
        let dl = DLTensor {
            data: (&raw mut data[at]).cast(),
            device: DLDevice { device_type: 1, device_id: 0 },
            ndim: 1,
            dtype: DTYPES[float].1,
            shape: shape.as_mut_ptr(),
            strides: strides.as_mut_ptr(),
            byte_offset: 0,
        };
        let size = size_of::<Longer<Tensor>>() as u32;
        let (buffer, wait) = (null_mut(), null_mut());
        let known = Tensor { size, flags: 0, dl, buffer, buffer_size: 0, wait, wait_value: 0 };
        Longer { known, more: [u64::MAX; 3] }
    };
    let (ins, first, second) = ([tensor(1), tensor(2)], tensor(0), tensor(3));
    let command = |out: &Longer<Tensor>| {
        let known = Command {
            size: size_of::<Longer<Command>>() as u32,
            flags: 0,
            plan,
            inputs: (&raw const ins).cast(),
            outputs: (&raw const *out).cast(),
            scalars: std::ptr::null(),
            n_inputs: 2,
            n_outputs: 1,
            n_scalars: 0,
            tensor_stride: size_of::<Longer<Tensor>>() as u32,
            workspace: null_mut(),
        };
        Longer { known, more: [u64::MAX; 3] }
    };
    let commands = [command(&first), command(&second)];
    // SAFETY: all that the commands point at lives.
    let status = unsafe {
        cpu.table.submit.unwrap()(
            cpu.device,
            null_mut(),
            (&raw const commands).cast(),
            2,
            null_mut(),
        )
    };
    assert_eq!(status, status::OK);

    // A command that ends before its last field, as an earlier version's might.
    let mut short = commands[0].known;
    short.size = std::mem::offset_of!(Command, workspace) as u32;
    // SAFETY: as above, the plan is released last.
    unsafe {
        let submit = cpu.table.submit.unwrap();
        assert_eq!(submit(cpu.device, null_mut(), &short, 1, null_mut()), status::OK);
        short.size = 8;
        assert_eq!(submit(cpu.device, null_mut(), &short, 1, null_mut()), status::INVALID);
        short = commands[0].known;
        short.n_inputs = 1;
        assert_eq!(submit(cpu.device, null_mut(), &short, 1, null_mut()), status::INVALID);
        assert_eq!(submit(null_mut(), null_mut(), &short, 1, null_mut()), status::INVALID);
        cpu.table.plan_release.unwrap()(cpu.device, plan);
    }
    assert_eq!(data[0], [9.0, 18.0, 27.0, 36.0]);
    assert_eq!(data[3], data[0]);
}

#[test]
fn short_structs_are_not_overrun() {
    let cpu = Cpu::new();
    // SAFETY: zero is a valid description of a device.
    let mut info: DeviceInfo = unsafe { std::mem::zeroed() };
    info.size = std::mem::offset_of!(DeviceInfo, fused_max_inputs) as u32;
    info.memory = 77;
    // SAFETY: the place says how much of it there is.
    unsafe {
        let ask = cpu.table.device_info.unwrap();
        assert_eq!(ask(cpu.table.backend, 0, &mut info, null_mut()), status::OK);
        assert_eq!(ask(cpu.table.backend, 1, &mut info, null_mut()), status::INVALID);
    }
    assert_eq!((info.size, info.synchronous, info.memory), (24, 1, 77));
    assert_eq!((info.fused_max_instructions, info.fused_max_inputs), (64, 0), "beyond the place");

    // SAFETY: no functions is a valid table for both sides.
    let (mut host, mut table): (HostTable, BackendTable) = unsafe { std::mem::zeroed() };
    host.size = 8;
    table.size = std::mem::offset_of!(BackendTable, prepare) as u32;
    // SAFETY: both say their sizes.
    let status = unsafe { ultramarine_cpu::backend_init(&host, &mut table, null_mut()) };
    assert_eq!(status, status::OK);
    assert!(table.device_open.is_some() && table.prepare.is_none() && table.submit.is_none());
    // SAFETY: NULL is what is asked about.
    let status = unsafe { ultramarine_cpu::backend_init(std::ptr::null(), &mut table, null_mut()) };
    assert_eq!(status, status::INVALID);
}

#[test]
fn every_init_has_its_own_host() {
    let (a, b) = (Cpu::new(), Cpu::new());
    assert_ne!(a.device, b.device);
    // SAFETY: an id is NUL-terminated.
    let found = unsafe { a.table.interface.unwrap()(a.table.backend, fused::INTERFACE.as_ptr()) };
    assert!(!found.is_null());
}

#[test]
fn a_longer_program_may_not_ask_for_more() {
    let cpu = Cpu::new();
    let float = DTYPES.iter().position(|(n, _)| *n == "float32").unwrap();
    let unary = fused::family::UNARY;
    let step = fused::Instruction {
        family: unary,
        op: schema::unary::NEGATIVE as u8,
        a: 0,
        b: 0,
        c: 0,
        dtype: DTYPES[float].1,
    };
    let outputs = [1u16];
    let known = fused::Program {
        size: size_of::<Longer<fused::Program>>() as u32,
        reduce: fused::NO_REDUCTION,
        axes: 0,
        instructions: &step,
        constants: std::ptr::null(),
        outputs: outputs.as_ptr(),
        n_instructions: 1,
        n_constants: 0,
        n_outputs: 1,
        n_inputs: 1,
    };
    let ask = |program: &Longer<fused::Program>| {
        let mut plan = null_mut();
        // SAFETY: the interface is a static table; the arrays have the lengths that are said.
        unsafe {
            let find = cpu.table.interface.unwrap();
            let found = find(cpu.table.backend, fused::INTERFACE.as_ptr());
            let prepare = (*found.cast::<fused::FusedInterface>()).prepare.unwrap();
            let (x, y) = (desc(float, 1), desc(float, 1));
            let program = (&raw const *program).cast();
            let status = prepare(cpu.device, program, &x, &y, &mut plan, null_mut());
            cpu.table.plan_release.unwrap()(cpu.device, plan);
            status
        }
    };
    assert_eq!(ask(&Longer { known, more: [0; 3] }), status::OK);
    assert_eq!(ask(&Longer { known, more: [0, 0, 1] }), status::UNSUPPORTED);
    let short = fused::Program { size: 40, ..known };
    assert_eq!(ask(&Longer { known: short, more: [0; 3] }), status::UNSUPPORTED);
}
