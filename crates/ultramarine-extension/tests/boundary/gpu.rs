//! Evaluations on devices: what reaches the host of kernels and launches.

use crate::cpu::{call, tensor};
use crate::fake_host::{self, APPLIED, ASKED, FakeArray, FakeCall, take_error, with_call};
use std::ptr::null_mut;
use ultramarine_extension::abi::{Status, status};
use ultramarine_extension::{
    Array, Dtype, GpuCall, Place, Primitive, Result, TensorType, apply, f16,
};

type Body = fn(&mut GpuCall<'_>) -> Result<()>;

/// Evaluates by a function.
#[derive(Debug)]
struct OnGpu {
    body: Body,
    allocates: bool,
}

impl Primitive for OnGpu {
    fn name(&self) -> &str {
        "on_gpu"
    }
    fn allocates(&self) -> bool {
        self.allocates
    }
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>> {
        Ok(inputs.to_vec())
    }
    fn eval_gpu(&self, call: &mut GpuCall<'_>) -> Result<()> {
        (self.body)(call)
    }
}

/// Evaluates, and gives what it says and what was asked of the device.
fn eval(fake: &mut FakeCall, allocates: bool, body: Body) -> (Status, Option<String>, Vec<String>) {
    fake_host::connect();
    fake.languages = c"msl opencl-c";
    let x = Array::from_slice(&[0f32], &[1]).unwrap();
    drop(apply(OnGpu { body, allocates }, &[&x], Place::GPU).unwrap());
    let p = APPLIED.take().unwrap();
    ASKED.with(|asked| asked.borrow_mut().clear());
    let mut error = null_mut();
    // SAFETY: as the contract says; the error is the fake host's.
    unsafe {
        let code = with_call(fake, |c| p.eval_gpu.unwrap()(p.context, c, &mut error));
        p.release.unwrap()(p.context);
        (code, take_error(error).map(|e| e.1), ASKED.with(|asked| asked.borrow().clone()))
    }
}

fn transposed() -> FakeCall {
    let from = tensor(&[0f32; 6], &[2, 3], &[1, 2]);
    let to = FakeArray { data: Vec::new(), ..tensor(&[0f32; 6], &[2, 3], &[3, 1]) };
    call(vec![from], vec![to])
}

#[test]
fn kernels_and_launches_reach_the_host_as_they_were_said() {
    let body: Body = |call| {
        let (language, source) =
            call.pick("on_gpu", &[("cuda-c", "a"), ("opencl-c", "b"), ("msl", "c")])?;
        assert_eq!((language, source), ("opencl-c", "b"));
        assert_eq!(call.languages().collect::<Vec<_>>(), ["msl", "opencl-c"]);
        let kernel = call.kernel(language, source, "run").template(&["float", "4"]);
        let kernel = kernel.options("-DA").options("-DB").build()?;
        assert_eq!(call.properties(&kernel)?.max_group, 64);
        let strides = call.input(0)?.strides_i32();
        let room = call.temporary(40)?;
        let launch = call.launch(&kernel).input(0).output(0).temporary(room);
        let launch = launch.scalar(f16::ONE).scalar_of(Dtype::Int8, -1.0).constants(&strides);
        launch.grid([3, 2, 1]).group([64, 1, 1]).shared(16).run()
    };
    let (code, error, asked) = eval(&mut transposed(), false, body);
    assert_eq!((code, error), (status::OK, None));
    let launch = "launch 8: input 0, output 0, temporary 5, 2/16 3c00, 0/8 ff, \
                  [1, 0, 0, 0, 2, 0, 0, 0]; [3, 2, 1] [64, 1, 1] 16";
    assert_eq!(asked, ["opencl-c run [\"float\", \"4\"] -DA -DB", "temporary of 40", launch]);
}

#[test]
fn languages_of_both_sides_are_reported() {
    let body: Body = |call| call.pick("on_gpu", &[("cuda-c", ""), ("wgsl", "")]).map(drop);
    let (code, error, _) = eval(&mut transposed(), false, body);
    let text = "[on_gpu] It has kernels in cuda-c, wgsl, and the device takes msl, opencl-c. Run it on the CPU.";
    assert_eq!((code, error.as_deref()), (status::UNSUPPORTED, Some(text)));
}

#[test]
fn outputs_of_those_that_allocate_get_memory_once() {
    let body: Body = |call| {
        let kernel = call.kernel("msl", "", "run").build()?;
        call.launch(&kernel).output(0).run()?;
        call.launch(&kernel).output(0).run()
    };
    let (code, _, asked) = eval(&mut transposed(), true, body);
    assert_eq!((code, asked.len(), asked[1].as_str()), (status::OK, 4, "allocate 0"));
    let (_, _, asked) = eval(&mut transposed(), false, body);
    assert_eq!(asked.len(), 3);
}

#[test]
fn an_operand_is_copied_only_if_it_has_gaps() {
    let body: Body = |call| {
        assert!(!call.input(0)?.is_row_contiguous());
        call.contiguous(0)?;
        assert!(call.input(0)?.is_row_contiguous());
        call.contiguous(0)
    };
    let (code, _, asked) = eval(&mut transposed(), false, body);
    assert_eq!((code, asked), (status::OK, vec!["contiguous 0".to_owned()]));
}

#[test]
fn mistakes_are_errors_before_the_device_sees_them() {
    let failing: [(Body, &str); 4] = [
        (|call| call.kernel("msl", "wrong", "run").build().map(drop), "line 1"),
        (
            |call| call.kernel("msl", "a\0b", "run").build().map(drop),
            "[run] A string has a NUL in it. Remove it.",
        ),
        (
            |call| {
                let kernel = call.kernel("msl", "", "run").build()?;
                call.launch(&kernel).input(1).run()
            },
            "A launch names argument 1, and there are 1. Use a smaller index.",
        ),
        (|call| call.output(2).map(drop), "There is no output 2. Outputs are numbered from 0."),
    ];
    for (body, text) in failing {
        let (code, error, asked) = eval(&mut transposed(), false, body);
        assert_ne!(code, status::OK, "{text}");
        assert_eq!(error.as_deref(), Some(text));
        assert!(asked.iter().all(|a| !a.starts_with("launch")), "{asked:?}");
    }
}

#[test]
fn tensors_without_axes_have_constants_too() {
    let mut fake = call(vec![tensor(&[1f32], &[], &[])], vec![tensor(&[1f32], &[], &[])]);
    let body: Body = |call| {
        let (x, one) = (call.input(0)?, call.output(0)?);
        assert_eq!((x.shape_i32(), x.strides_i64(), x.len()), (vec![1], vec![0], 1));
        assert_eq!((one.shape_i64(), one.strides_i32()), (vec![1], vec![0]));
        assert_eq!(x.dtype()?, Dtype::Float32);
        Ok(())
    };
    assert_eq!(eval(&mut fake, false, body).0, status::OK);
}

#[test]
fn compiled_kernels_reach_the_host_with_their_length() {
    let body = |call: &mut GpuCall<'_>| {
        call.compiled_kernel("cubin", b"\x7fELF\0\x01", "run").build().map(drop)
    };
    let (code, _, asked) = eval(&mut transposed(), false, body);
    assert_eq!(
        (code, asked),
        (status::OK, vec!["cubin run of [127, 69, 76, 70, 0, 1]".to_owned()])
    );
}
