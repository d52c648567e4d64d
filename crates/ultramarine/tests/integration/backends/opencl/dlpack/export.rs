//! Our arrays for others.

use super::*;
use crate::opencl_process;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use ultramarine::interchange::{Kind, consumer_stream, current_work_stream, join_current_stream};
use ultramarine::{Error, async_eval, synchronize};

#[test]
fn the_memory_is_shared() -> Result<()> {
    opencl_process!("ULTRAMARINE_VALIDATE" = "1");
    let Some(bench) = Bench::new() else { return Ok(()) };
    let x = on(bench.device, &[1.0, 2.0, 3.0, 4.0])?;
    let tensor = x.to_dlpack()?;
    assert_eq!(tensor.device(), bench.dl());
    assert_eq!(x.dlpack_device()?, bench.dl());
    assert_eq!(foreign::context(tensor.tensor().data), bench.context);
    assert_eq!((tensor.flags(), tensor.size(0), tensor.stride(0)), (0, 4, Some(1)));
    assert_eq!(bench.floats(&tensor, 4), [1.0, 2.0, 3.0, 4.0]);
    // Another export of it is the same object.
    let again = x.to_dlpack_with(ExportOptions { kind: Kind::Legacy, ..Default::default() })?;
    assert_eq!(again.tensor().data, tensor.tensor().data);
    drop(again);
    // What others write is seen, whatever the host knew of it before.
    assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    let (header, new) = (tensor.tensor(), [7.0f32, 8.0]);
    assert_eq!(foreign::write(bench.queue, header.data, 4, 8, new.as_ptr().cast()), 0);
    assert_eq!(x.to_vec::<f32>()?, [1.0, 7.0, 8.0, 4.0]);
    // The array may go first.
    drop(x);
    assert_eq!(bench.floats(&tensor, 4), [1.0, 7.0, 8.0, 4.0]);
    drop(tensor);
    synchronize(default_stream(bench.device)?)
}

#[test]
fn views_say_where_they_are() -> Result<()> {
    opencl_process!("ULTRAMARINE_VALIDATE" = "1");
    let Some(bench) = Bench::new() else { return Ok(()) };
    let x = on(bench.device, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])?;
    let view = x.slice(&[6], &[0], &[-2])?;
    let tensor = view.to_dlpack()?;
    assert_eq!(tensor.tensor().data, x.to_dlpack()?.tensor().data);
    assert_eq!((tensor.size(0), tensor.stride(0)), (3, Some(-2)));
    assert_eq!(tensor.tensor().byte_offset, 24);
    assert_eq!(bench.floats(&tensor, 1), [6.0]);
    let none = x.slice(&[3], &[3], &[1])?.to_dlpack()?;
    assert!(none.tensor().data.is_null() && none.size(0) == 0);
    assert_eq!(none.device(), bench.dl());
    Ok(())
}

#[test]
fn a_copy_on_the_cpu() -> Result<()> {
    opencl_process!("ULTRAMARINE_VALIDATE" = "1");
    let Some(bench) = Bench::new() else { return Ok(()) };
    let x = on(bench.device, &[1.0, 2.0, 3.0, 4.0])?;
    assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    let there = ExportOptions { device: Some(CPU), ..ExportOptions::default() };
    let tensor = x.slice(&[1], &[3], &[1])?.to_dlpack_with(there.clone())?;
    assert!(tensor.is_copied() && tensor.device() == CPU);
    let data = tensor.tensor().data.cast::<f32>();
    // SAFETY: a tensor on the CPU of two elements, at its offset.
    let copy = unsafe {
        std::slice::from_raw_parts_mut(data.byte_add(tensor.tensor().byte_offset as usize), 2)
    };
    assert_eq!(copy, [2.0, 3.0]);
    copy.fill(0.0);
    assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    let whole = x.to_dlpack_with(there.clone())?;
    // SAFETY: as above, of four.
    let copy = unsafe { std::slice::from_raw_parts_mut(whole.tensor().data.cast::<f32>(), 4) };
    copy.fill(0.0);
    assert_eq!(x.to_vec::<f32>()?, [1.0, 2.0, 3.0, 4.0]);
    assert_eq!((&x + 1.0)?.to_vec::<f32>()?, [2.0, 3.0, 4.0, 5.0]);

    let error = x.to_dlpack_with(ExportOptions { copy: Some(false), ..there.clone() }).unwrap_err();
    assert!(matches!(error, Error::Buffer(_)), "{error:?}");
    let cuda = Some(DLDevice { device_type: 2, device_id: 0 });
    let error = x.to_dlpack_with(ExportOptions { device: cuda, ..there.clone() }).unwrap_err();
    assert!(matches!(&error, Error::BufferDevice(e) if e.contains("\"cuda\"")), "{error:?}");

    // And an array of the host's on the device.
    let host = Array::from_slice(&[5.0f32, 6.0], &[2])?;
    let tensor =
        host.to_dlpack_with(ExportOptions { device: Some(bench.dl()), ..there.clone() })?;
    assert!(tensor.is_copied() && tensor.device() == bench.dl());
    assert_eq!(bench.floats(&tensor, 2), [5.0, 6.0]);
    assert_eq!(
        foreign::write(bench.queue, tensor.tensor().data, 0, 4, [9.0f32].as_ptr().cast()),
        0
    );
    let there = host.copy_to(bench.device)?;
    assert_eq!(there.to_vec::<f32>()?, [5.0, 6.0], "the copy is nobody's mirror");
    Ok(())
}

#[test]
fn streams_of_consumers() -> Result<()> {
    opencl_process!("ULTRAMARINE_VALIDATE" = "1");
    let Some(bench) = Bench::new() else { return Ok(()) };
    let ours = consumer_stream(bench.dl())?.expect("a queue") as *mut c_void;
    assert_eq!(foreign::queue_context(ours), bench.context);
    assert_eq!(current_work_stream(bench.dl())?, ours);
    assert_eq!((consumer_stream(CPU)?, current_work_stream(CPU)?.is_null()), (None, true));
    let x = on(bench.device, &[1.0])?;
    for wrong in [0, 1, 2, -2] {
        let error = x.to_dlpack_with(stream(wrong)).unwrap_err();
        assert!(matches!(&error, Error::Value(e) if e.contains("OpenCL")), "{error:?}");
    }
    let other = foreign::queue(foreign::other_context(bench.context));
    let busy = {
        let _gate = Gate::new(&bench, ours);
        let busy = (&x + 1.0)?;
        async_eval(std::slice::from_ref(&busy))?;
        let error = busy.to_dlpack_with(stream(other as isize)).unwrap_err();
        assert!(error.to_string().contains("no command queue of the device's"), "{error}");
        busy
    };
    assert_eq!(busy.to_vec::<f32>()?, [2.0]);
    let host = Array::scalar(1.0f32);
    assert!(matches!(host.to_dlpack_with(stream(1)), Err(Error::Value(_))));
    assert!(matches!(host.to_dlpack_with(stream(-1)), Err(Error::Value(_))));
    Ok(())
}

/// Holds a queue up until it is dropped, so that a test that waits where it must not hangs
/// no longer than that.
struct Gate(*mut c_void);

impl Gate {
    fn new(bench: &Bench, queue: *mut c_void) -> Gate {
        let gate = foreign::gate(bench.context, queue);
        assert!(!gate.is_null());
        Gate(gate)
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        foreign::open(self.0);
    }
}

#[test]
fn a_consumers_queue_waits_and_the_host_does_not() -> Result<()> {
    opencl_process!("ULTRAMARINE_VALIDATE" = "1");
    let Some(bench) = Bench::new() else { return Ok(()) };
    let x = on(bench.device, &[1.0, 2.0])?;
    let ours = current_work_stream(bench.dl())?;
    let gate = Gate::new(&bench, ours);
    let y = (&x * 10.0)?;
    // Our work does not begin before the gate opens: who waits for it here, waits for ever.
    let unordered = y.to_dlpack_with(stream(-1))?;
    let ordered = y.to_dlpack_with(stream(bench.queue as isize))?;
    assert_eq!(ordered.tensor().data, unordered.tensor().data);
    assert!(!y.is_available());
    let mut seen = [0f32; 2];
    let data = ordered.tensor().data;
    assert_eq!(foreign::read_later(bench.queue, data, 8, seen.as_mut_ptr().cast()), 0);
    std::thread::sleep(Duration::from_millis(20));
    drop(gate);
    assert_eq!(foreign::finish(bench.queue), 0);
    assert_eq!(seen, [10.0, 20.0]);
    Ok(())
}

/// Its queue still reads the memory, and is no longer the consumer's: our next array may have that memory after the read.
#[test]
fn a_consumer_may_release_early() -> Result<()> {
    opencl_process!("ULTRAMARINE_VALIDATE" = "1");
    let Some(bench) = Bench::new() else { return Ok(()) };
    let x = on(bench.device, &[1.0, 2.0])?;
    let queue = foreign::queue(bench.context);
    let tensor = x.to_dlpack_with(stream(queue as isize))?;
    let gate = Gate::new(&bench, queue);
    let mut seen = [0f32; 2];
    let data = tensor.tensor().data;
    assert_eq!(foreign::read_later(queue, data, 8, seen.as_mut_ptr().cast()), 0);
    drop(tensor);
    foreign::release_queue(queue);
    // The array is used no more, so that its memory is written in place.
    let y = (&x * 10.0)?;
    drop(x);
    async_eval(std::slice::from_ref(&y))?;
    let again = y.to_dlpack_with(stream(-1))?;
    assert_eq!(again.tensor().data, data, "the memory was not reused, so that this tests nothing");
    std::thread::sleep(Duration::from_millis(20));
    assert!(!y.is_available());
    drop(gate);
    assert_eq!(y.to_vec::<f32>()?, [10.0, 20.0]);
    assert_eq!(seen, [1.0, 2.0]);
    Ok(())
}

#[test]
fn without_a_stream_the_host_waits() -> Result<()> {
    opencl_process!("ULTRAMARINE_VALIDATE" = "1");
    let Some(bench) = Bench::new() else { return Ok(()) };
    let x = on(bench.device, &[1.0, 2.0])?;
    let gate = Gate::new(&bench, current_work_stream(bench.dl())?);
    let y = (&x * 3.0)?;
    let opened = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let gate = Sent(gate);
        let opened = &opened;
        scope.spawn(move || {
            let Sent(gate) = { gate };
            std::thread::sleep(Duration::from_millis(50));
            opened.store(true, Ordering::SeqCst);
            drop(gate);
        });
        let tensor = y.to_dlpack()?;
        assert!(opened.load(Ordering::SeqCst), "nobody waited");
        assert!(y.is_available());
        assert_eq!(bench.floats(&tensor, 2), [3.0, 6.0]);
        Ok(())
    })
}

/// For another thread.
struct Sent(Gate);
// SAFETY: OpenCL's events may be used by any thread.
unsafe impl Send for Sent {}

#[test]
fn the_current_stream_follows_other_streams() -> Result<()> {
    opencl_process!("ULTRAMARINE_VALIDATE" = "1");
    let Some(bench) = Bench::new() else { return Ok(()) };
    let x = on(bench.device, &[1.0, 2.0])?;
    let side = ultramarine::new_stream(bench.device)?;
    let queue = with_stream(side, || current_work_stream(bench.dl()))?;
    assert_ne!(queue, current_work_stream(bench.dl())?);
    let gate = Gate::new(&bench, queue);
    let y = with_stream(side, || &x + 5.0)?;
    join_current_stream(&y)?;
    let tensor = y.to_dlpack_with(stream(-1))?;
    // The other library works behind our present queue.
    let ours = current_work_stream(bench.dl())?;
    let mut seen = [0f32; 2];
    assert_eq!(foreign::read_later(ours, tensor.tensor().data, 8, seen.as_mut_ptr().cast()), 0);
    std::thread::sleep(Duration::from_millis(20));
    drop(gate);
    assert_eq!(foreign::finish(ours), 0);
    assert_eq!(seen, [6.0, 7.0]);
    Ok(())
}
