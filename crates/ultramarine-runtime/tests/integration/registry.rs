//! The registry, and the backend that is linked in.

use ultramarine_runtime::{Device, DeviceType, Dtype, backend, devices};

#[test]
fn the_built_in_backend_is_opened_at_the_first_need() {
    let info = devices::backend_of(Device::CPU).expect("a CPU");
    assert_eq!((info.name.as_str(), info.device_type), ("stub", DeviceType::Cpu));
    assert!(backend::host().is_host());
    assert!(devices::get(Device { kind: DeviceType::Cpu, index: 1 }).is_err());
}

#[test]
fn memory_of_the_host_needs_no_kernels() {
    let buffer = backend::buffer::Buffer::new(Dtype::Float32.bytes_of(5), backend::host());
    assert_eq!(buffer.expect("memory").bytes(), 20);
}
