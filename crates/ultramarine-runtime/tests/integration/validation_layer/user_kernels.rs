//! Users' kernels through a watched table.

use super::*;
pub(super) use ultramarine_abi::interface::kernel::INTERFACE;
use ultramarine_abi::interface::kernel::{
    KernelArgument, KernelInfo, KernelInterface, KernelLaunch, KernelSource, argument,
};

unsafe extern "C" fn compile(
    _: Handle,
    _: *const KernelSource,
    kernel: *mut Handle,
    _: *mut *mut abi::Error,
) -> Status {
    // SAFETY: the caller's place.
    unsafe { give(kernel) }
}

unsafe extern "C" fn launch(
    _: Handle,
    _: Handle,
    _: Handle,
    _: *const KernelLaunch,
    _: *mut *mut abi::Error,
) -> Status {
    status::OK
}

unsafe extern "C" fn kernel_info(
    _: Handle,
    _: Handle,
    _: *mut KernelInfo,
    _: *mut *mut abi::Error,
) -> Status {
    status::OK
}

pub(super) static TABLE: KernelInterface = KernelInterface {
    size: size_of::<KernelInterface>() as u32,
    flags: 0,
    compile: Some(compile),
    launch: Some(launch),
    release: Some(end),
    info: Some(kernel_info),
};

fn source(language: &'static core::ffi::CStr) -> KernelSource {
    KernelSource {
        size: size_of::<KernelSource>() as u32,
        n_template_arguments: 0,
        language: language.as_ptr(),
        source: c"text".as_ptr(),
        source_bytes: 4,
        entry: c"name".as_ptr(),
        template_arguments: std::ptr::null(),
        options: std::ptr::null(),
    }
}

#[test]
fn users_kernels() {
    let t = Watched::new();
    let find = t.table.interface.expect("the mock has it");
    // SAFETY: the id's own struct, which is static.
    let i = unsafe { &*find(t.table.backend, INTERFACE.as_ptr()).cast::<KernelInterface>() };
    macro_rules! call_interface {
        ($name:ident, $($arg:expr),*) => {{
            let mut error = std::ptr::null_mut();
            // SAFETY: what the arguments point at is valid.
            let code = unsafe { (i.$name.expect("it"))(t.device, $($arg,)* &mut error) };
            host_table::check(stringify!($name), code, error)
        }};
    }
    let make = |language| {
        let mut kernel = std::ptr::null_mut();
        call_interface!(compile, &source(language), &mut kernel).map(|()| kernel)
    };
    assert_found(make(c"other-c"), "a kernel in other-c, for a device that takes mock-c");
    let kernel = make(c"mock-c").expect("a kernel");
    let mut reported = KernelInfo { size: size_of::<KernelInfo>() as u32, ..KernelInfo::default() };
    call_interface!(info, kernel, &mut reported).expect("properties");
    assert_found(call_interface!(info, 0x5 as Handle, &mut reported), "is unknown");

    let buffer = make!(t, buffer_alloc, 64).expect("a buffer");
    let run = |kernel: Handle, buffer: Handle, sizes: [i64; 1], grid: u32, kind: u32| {
        let tensor = Tensor {
            size: size_of::<Tensor>() as u32,
            flags: 0,
            dl: DLTensor {
                data: std::ptr::null_mut(),
                device: DLDevice { device_type: t.table.device_type, device_id: 0 },
                ndim: 1,
                dtype: DTYPES[10].1,
                shape: sizes.as_ptr().cast_mut(),
                strides: [1i64].as_ptr().cast_mut(),
                byte_offset: 0,
            },
            buffer,
            buffer_size: 64,
            wait: std::ptr::null_mut(),
            wait_value: 0,
        };
        let argument = KernelArgument {
            size: size_of::<KernelArgument>() as u32,
            kind,
            tensor: &tensor,
            scalar: [0; 2],
            dtype: DTYPES[10].1,
            written: 1,
        };
        let launch = KernelLaunch {
            size: size_of::<KernelLaunch>() as u32,
            n_arguments: 1,
            arguments: &argument,
            argument_stride: size_of::<KernelArgument>() as u32,
            shared_bytes: 0,
            grid: [grid, 1, 1],
            block: [1, 1, 1],
        };
        call_interface!(launch, t.stream, kernel, &launch)
    };
    run(kernel, buffer, [4], 1, argument::TENSOR).expect("a launch");
    run(kernel, std::ptr::null_mut(), [0], 1, argument::TENSOR).expect("nothing has no buffer");
    run(kernel, buffer, [4], 1, argument::SCALAR).expect("a number");
    assert_found(run(0x5 as Handle, buffer, [4], 1, argument::TENSOR), "is unknown");
    assert_found(run(kernel, 0x5 as Handle, [4], 1, argument::TENSOR), "argument 0");
    assert_found(run(kernel, buffer, [100], 1, argument::TENSOR), "of a buffer of 64 bytes");
    assert_found(run(kernel, buffer, [4], 0, argument::TENSOR), "without threads");
    assert_found(run(kernel, buffer, [4], 1, 7), "nothing that is known");

    // Both are in use until the stream is waited for.
    let release = |kernel: Handle| {
        let before = validation_findings();
        // SAFETY: the mock does nothing with handles.
        unsafe { (i.release.expect("it"))(t.device, kernel) };
        validation_findings() - before
    };
    let other = make(c"mock-c").expect("a kernel");
    run(other, buffer, [4], 1, argument::TENSOR).expect("a launch");
    assert_eq!(release(other), 1, "it may be running");
    assert_eq!(end!(t, buffer_free, buffer), 1, "so may be its buffer");
    call!(t, stream_synchronize, t.device, t.stream).expect("a wait");
    assert_eq!(release(kernel), 0);
    assert_eq!(release(kernel), 1, "twice");
}
