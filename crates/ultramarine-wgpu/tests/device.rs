//! The crate on the first device that Vulkan's loader lists; without one the tests say that they are skipped.

use std::mem::MaybeUninit;
use ultramarine_abi::helper::Device as _;
use ultramarine_wgpu::dtype::{Dtype, Wgsl as _};
use ultramarine_wgpu::hal::Adapters;
use ultramarine_wgpu::launch::Device;
use ultramarine_wgpu::memory::Buffer;
use ultramarine_wgpu::shader::source::{Bytes, groups_for};
use ultramarine_wgpu::shader::{Program, Tensor};
use ultramarine_wgpu::streams::{Batch, Stream};

/// A device, or none on this machine.
fn device() -> Option<Device> {
    let adapters = Adapters::enumerate();
    match adapters.and_then(|a| Device::open(&a.list[0]).map_err(|failure| failure.text)) {
        Ok(device) => Some(device),
        Err(why) => {
            #[allow(clippy::print_stderr, reason = "a test that does not run says so")]
            {
                eprintln!("SKIPPED: {why}");
            }
            None
        }
    }
}

fn read(device: &Device, stream: Option<&Stream>, buffer: &Buffer, bytes: usize) -> Vec<u8> {
    let mut target = vec![MaybeUninit::uninit(); bytes];
    device.download(stream, buffer, 0, &mut target).unwrap();
    // SAFETY: a download fills its target.
    target.into_iter().map(|byte| unsafe { byte.assume_init() }).collect()
}

#[test]
fn bytes_come_back_in_the_order_of_a_stream() {
    let Some(device) = device() else { return };
    let buffer = device.alloc(100_000).unwrap();
    let stream = device.stream().unwrap();
    for value in 0..20 {
        device.upload(Some(&stream), &buffer, 0, &vec![value; 100_000]).unwrap();
    }
    device.upload(Some(&stream), &buffer, 99_999, &[77]).unwrap();
    let bytes = read(&device, Some(&stream), &buffer, 100_000);
    assert!(bytes[..99_999].iter().all(|byte| *byte == 19));
    assert_eq!(bytes[99_999], 77);
}

#[test]
fn a_stream_waits_for_a_value_that_is_recorded_later() {
    let Some(device) = device() else { return };
    let buffer = device.alloc(16).unwrap();
    let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
    let event = device.event().unwrap();
    device.wait_stream(&second, &event, 1).unwrap();
    device.upload(Some(&second), &buffer, 0, &[2; 16]).unwrap();
    device.record(&second, &event, 2).unwrap();
    device.upload(Some(&first), &buffer, 0, &[1; 16]).unwrap();
    device.synchronize(&first).unwrap();
    assert_eq!(device.query(&event), 0);
    assert_eq!(read(&device, Some(&first), &buffer, 16), [1; 16]);
    device.record(&first, &event, 1).unwrap();
    device.wait_host(&event, 2).unwrap();
    assert_eq!(device.query(&event), 2);
    assert_eq!(read(&device, Some(&first), &buffer, 16), [2; 16]);
}

#[test]
fn buffers_above_the_limit_name_it() {
    let Some(device) = device() else { return };
    let most = device.context.properties.max_buffer;
    let failure = device.alloc(most + 1).err().unwrap();
    assert!(failure.text.contains("maxStorageBufferRange"), "{failure}");
    assert!(failure.text.contains(&most.to_string()), "{failure}");
    let buffer = device.alloc(32).unwrap();
    assert!(device.upload(None, &buffer, 8, &[0; 32]).is_err(), "behind the buffer's end");
}

#[test]
fn a_lost_device_says_so_to_all_that_follows() {
    let Some(device) = device() else { return };
    let (buffer, stream) = (device.alloc(16).unwrap(), device.stream().unwrap());
    let failure = device.context.abandon("running add of float32");
    for later in [
        device.alloc(16).map(drop),
        device.upload(Some(&stream), &buffer, 0, &[0; 16]),
        device.synchronize(&stream),
    ] {
        assert_eq!(later.unwrap_err().text, failure.text);
    }
    assert!(
        failure.text.contains("add of float32") && failure.text.contains("Restart the process")
    );
}

/// A device that is treated as a GPU.
fn gpu() -> Option<Device> {
    let mut adapters = Adapters::enumerate().ok()?;
    adapters.list[0].properties.gpu_kernels = true;
    Device::open(&adapters.list[0]).ok()
}

#[test]
fn memory_that_commands_use_comes_back_behind_a_barrier() {
    let Some(device) = gpu() else { return };
    // Buffers that are given back at once, each of which a command used since the last barrier.
    let mut ids = Vec::new();
    let mut used = |bytes| {
        let buffer = device.alloc(bytes).unwrap();
        buffer.0.mark_used();
        ids.push(buffer.0.id());
        ids.len() - 1
    };
    for _ in 0..20 {
        used(1000);
    }
    for _ in 0..6 {
        used(2 << 20);
    }
    let distinct = |ids: &[u64]| ids.iter().collect::<std::collections::HashSet<_>>().len();
    assert_eq!((distinct(&ids[..20]), distinct(&ids[20..])), (16, 4));
    assert_eq!((ids[16], ids[24]), (ids[0], ids[20]), "the oldest");
    device.context.count_barrier();
    let buffer = device.alloc(1000).unwrap();
    assert_eq!(buffer.0.id(), ids[19], "the last that was given back");
}

#[test]
fn barriers_stand_between_commands_that_meet_alone() {
    let Some(device) = gpu() else { return };
    let [a, out] = ["a", "out"].map(|name| Tensor { name, dtype: Dtype::Int32 });
    let program = Program::new(&[a, out]).body("store_out(i, load_a(i) * 3i + 1i);");
    let kernel = device.programs.get(program.build()).unwrap();
    let n = 100_u32;
    let buffers = [0; 5].map(|_| device.alloc(4 * u64::from(n)).unwrap());
    let given: Vec<u8> = (0..n).flat_map(u32::to_le_bytes).collect();
    device.upload(None, &buffers[0], 0, &given).unwrap();
    device.synchronize(&device.default_stream).unwrap();
    // Each command by what it reads and writes. The first begins a list.
    for (steps, barriers) in [
        (&[(0, 1), (0, 2), (0, 3)][..], 1),
        (&[(0, 1), (1, 2), (2, 3)], 3),
        (&[(0, 1), (0, 1)], 2),
        (&[(0, 1), (2, 3), (4, 2)], 2),
        (&[(0, 1), (2, 3), (3, 4), (0, 2)], 2),
    ] {
        let before = device.context.barriers();
        let mut batch = Batch::default();
        for (from, to) in steps {
            let groups = groups_for(n.into(), device.context.properties.max_groups);
            let blocks = [*from, *to].map(|i: usize| &buffers[i].0);
            batch.dispatch(&kernel, &blocks, (n, &[]), groups);
        }
        device.scheduler.submit(device.lane(None), batch).unwrap();
        device.synchronize(&device.default_stream).unwrap();
        assert_eq!(device.context.barriers() - before, barriers, "{steps:?}");
    }
    let bytes = read(&device, None, &buffers[1], 4 * n as usize);
    let expected: Vec<u8> = (0..n).flat_map(|i| (3 * i + 1).to_le_bytes()).collect();
    assert_eq!(bytes, expected);
}

/// The bytes that a hal without them has.
#[test]
fn bytes_in_words_are_those_of_bytes() {
    let Some(device) = device() else { return };
    let n = 1000u32;
    let given: Vec<u8> = (0..n).map(|i| (i * 7) as u8).collect();
    for dtype in [Dtype::Uint8, Dtype::Int8] {
        let results = [Bytes::Narrowed, Bytes::Words].map(|how| {
            let tensors = [Tensor { name: "a", dtype }, Tensor { name: "out", dtype }];
            let program = Program::new(&tensors);
            // Halved, so that signs count; neighbours are written by different invocations.
            let body = format!("store_out({}u - i, load_a(i) / {}(2));", n - 1, dtype.register());
            let kernel = device.programs.get(program.body(&body).build_with(how)).unwrap();
            let buffers = [0; 2].map(|_| device.alloc(n.into()).unwrap());
            device.upload(None, &buffers[0], 0, &given).unwrap();
            device.upload(None, &buffers[1], 0, &vec![255; n as usize]).unwrap();
            let mut batch = Batch::default();
            let blocks: Vec<_> = buffers.iter().map(|buffer| &buffer.0).collect();
            let groups = groups_for(n.into(), device.context.properties.max_groups);
            batch.dispatch(&kernel, &blocks, (n, &[]), groups);
            device.scheduler.submit(device.lane(None), batch).unwrap();
            read(&device, None, &buffers[1], n as usize)
        });
        let halved = |byte: u8| match dtype {
            Dtype::Int8 => (byte as i8 / 2) as u8,
            _ => byte / 2,
        };
        let expected: Vec<u8> = given.iter().rev().map(|byte| halved(*byte)).collect();
        assert_eq!(results, [expected.clone(), expected], "{dtype:?}");
    }
}
