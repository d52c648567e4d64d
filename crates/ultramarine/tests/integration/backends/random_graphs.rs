//! Random graphs over streams of real backends, compared with the CPU: OpenCL, whose queues
//! run ahead and whose memory the host cannot see, and the minimal backend's two devices,
//! beside each other. OpenCL is left out where it is not installed.

use crate::opencl_process;
use crate::support::random_graph::{by_eight_threads, random_graph};
use crate::support::{minimal, opencl};
use ultramarine::memory::{active_on, peak_on, reset_peak_on, set_memory_limit_on};
use ultramarine::{
    Array, Device, Error, Result, Stream, TransferPolicy, TransferScope, async_eval, new_stream,
    register, stats, synchronize, with_stream,
};

/// Registers the backends; their devices, the minimal backend's two first.
fn register_all() -> Vec<Device> {
    let mut all = ultramarine::backends::load(minimal::library()).expect("it loads").devices;
    if let Some(init) = opencl::init() {
        // SAFETY: the backend keeps to the contract: that is what is tested here.
        all.extend(unsafe { register(init) }.expect("it starts"));
    }
    all
}

fn streams(devices: &[Device], each: usize) -> Vec<Stream> {
    let each = devices.iter().flat_map(|d| std::iter::repeat_n(*d, each));
    each.map(|d| new_stream(d).expect("a stream")).collect()
}

/// Nothing is left on the devices.
fn check_end(devices: &[Device], streams: &[Stream]) {
    streams.iter().for_each(|s| synchronize(*s).unwrap());
    for d in devices {
        assert_eq!(active_on(Some(*d)).unwrap(), 0, "{d} holds memory");
    }
}

#[test]
fn graphs_over_the_streams_of_a_device() -> Result<()> {
    opencl_process!();
    let devices = register_all();
    let cpu = streams(&[Device::CPU], 1);
    for device in &devices[1..] {
        let mut own = streams(&[*device], 3);
        own.push(cpu[0]);
        for seed in 0..25 {
            let want = random_graph(seed, &[cpu[0]; 4])?;
            assert_eq!(random_graph(seed, &own)?, want, "seed {seed} on {device}");
        }
        check_end(&[*device], &own);
    }
    Ok(())
}

#[test]
fn graphs_over_all_devices() -> Result<()> {
    opencl_process!();
    let devices = register_all();
    let _transfers = TransferScope::new(TransferPolicy::Host);
    let mut all = streams(&devices, 2);
    all.extend(streams(&[Device::CPU], 1));
    let cpu = vec![all[all.len() - 1]; all.len()];
    let before = stats().transfers;
    for seed in 100..125 {
        assert_eq!(random_graph(seed, &all)?, random_graph(seed, &cpu)?, "seed {seed}");
    }
    assert!(stats().transfers > before + 25, "devices did not mix");
    check_end(&devices, &all);
    Ok(())
}

#[test]
fn eight_threads() -> Result<()> {
    opencl_process!();
    let devices = register_all();
    let mut all = streams(&devices[devices.len() - 1..], 3);
    all.extend(streams(&[Device::CPU], 1));
    by_eight_threads(&all, 4);
    check_end(&devices, &all);
    Ok(())
}

#[test]
fn little_memory_and_arrays_dropped_in_flight() -> Result<()> {
    opencl_process!();
    let devices = register_all();
    for device in &devices {
        let own = streams(&[*device], 1);
        let gpu = Some(*device);
        let x = Array::from_slice(&[1.0f32; 25_000], &[25_000])?;
        let there = x.copy_to(*device)?;
        there.eval()?;
        reset_peak_on(gpu)?;
        // 100 kB each: of many steps, five arrays fit at a time.
        let before = set_memory_limit_on(550_000, gpu)?;
        let mut y = there.clone();
        for step in 0..200 {
            y = with_stream(own[0], || y.add(&there)?.subtract(&x))?;
            if step % 3 == 0 {
                async_eval(std::slice::from_ref(&y))?;
            }
            if step % 50 == 49 {
                // In flight, and nobody will ever look at it.
                let lost = with_stream(own[0], || y.multiply(&there)?.maximum(&x))?;
                async_eval(&[lost])?;
            }
        }
        assert_eq!(y.to_vec::<f32>()?, vec![1.0; 25_000]);
        assert!(peak_on(gpu)? <= 550_000, "{}", peak_on(gpu)?);
        // While a request above the limit is refused, its bytes count: none may be made beside it.
        own.iter().for_each(|s| synchronize(*s).unwrap());
        let large = Array::ones(&[200_000], ultramarine::Dtype::Float32)?.copy_to(*device)?;
        let error = large.eval().expect_err("it is more than the limit");
        assert!(matches!(error.root(), Error::Memory(_)), "{error}");
        set_memory_limit_on(before, gpu)?;
        large.add(&large)?.eval().expect_err("what failed stays failed");
        drop((x, there, y, large));
        check_end(&[*device], &own);
    }
    Ok(())
}
