//! Uploads: enqueued behind the stream's earlier work, with the bytes that the source had.

use crate::host::{Device, apart};
use core::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Shares a value between the threads that call the backend.
struct Shared<T>(T);
// SAFETY: the backend's functions and handles may be used from any thread.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    fn get(&self) -> &T {
        &self.0
    }
}

/// A stream that waits for value 1 of an event, and a stream that can record it.
struct Held<'a> {
    device: &'a Device,
    stream: *mut c_void,
    other: *mut c_void,
    event: *mut c_void,
}

impl<'a> Held<'a> {
    fn new(device: &'a Device) -> Self {
        let (stream, other) = (device.stream().expect("a"), device.stream().expect("b"));
        let event = device.event().expect("an event");
        device.wait_stream(stream, event, 1).expect("a wait for what nobody has recorded");
        Held { device, stream, other, event }
    }

    fn release(&self) {
        self.device.record(self.other, self.event, 1).expect("a record");
    }

    fn end(self) {
        for stream in [self.stream, self.other] {
            self.device.synchronize(stream).expect("all that was enqueued");
            self.device.destroy_stream(stream);
        }
        self.device.destroy_event(self.event);
    }
}

/// Longer than anything here takes on a loaded machine.
const LONG: Duration = Duration::from_secs(60);

/// Bytes that differ from place to place, and from one seed to another.
fn pattern(seed: usize, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 31 + i / 251 + seed * 7 + 1) as u8).collect()
}

/// Each upload returns while its stream waits for something else, has the bytes that the source
/// had when it was called, and comes when it is its turn.
#[test]
fn an_upload_waits_for_no_other_work() {
    apart(&[], || {
        let device = Device::open();
        let sizes = [1, 4096, 4097, 65536, 65537, 200_000];
        let buffers = sizes.map(|bytes| device.alloc(bytes as u64).expect("memory"));
        for (buffer, bytes) in buffers.iter().zip(sizes) {
            device.write(*buffer, &vec![0; bytes]).expect("a write");
        }
        let held = Shared(Held::new(&device));
        let (held, returned) = (&held, AtomicBool::new(false));
        let late = std::thread::scope(|scope| {
            // Who waits for the stream would wait for ever.
            let watch = scope.spawn(|| {
                let begun = Instant::now();
                while !returned.load(Ordering::Acquire) && begun.elapsed() < LONG {
                    std::thread::sleep(Duration::from_millis(5));
                }
                let late = !returned.load(Ordering::Acquire);
                if late {
                    held.get().release();
                }
                late
            });
            let (stream, other) = (held.0.stream, held.0.other);
            for (i, (buffer, bytes)) in buffers.iter().zip(sizes).enumerate() {
                let mut source = pattern(i, bytes);
                device.upload(stream, *buffer, 0, &source).expect("an upload");
                source.fill(0xee);
            }
            returned.store(true, Ordering::Release);
            let late = watch.join().expect("the watch");
            for (buffer, bytes) in buffers.iter().zip(sizes) {
                let there = device.read(other, *buffer, bytes).expect("a read");
                assert!(late || there == vec![0; bytes], "{bytes} bytes went ahead of the stream");
            }
            late
        });
        assert!(!late, "an upload waited for the stream");
        held.0.release();
        for (i, (buffer, bytes)) in buffers.iter().zip(sizes).enumerate() {
            let there = device.read(held.0.stream, *buffer, bytes).expect("a read");
            assert!(there == pattern(i, bytes), "{bytes} bytes are not the source's");
        }
        buffers.iter().for_each(|buffer| device.free(*buffer));
    });
}

/// When a stream has all the pinned memory, its next upload waits for the stream, and that of
/// another stream does not.
#[test]
fn more_uploads_than_there_is_pinned_memory() {
    apart(&[], || {
        let device = Device::open();
        let device = &Shared(device);
        let (many, size) = (1000, 8);
        let of = |i: usize| pattern(i, size);
        let buffer = Shared(device.0.alloc((many * size) as u64).expect("memory"));
        let (held, done) = (Shared(Held::new(&device.0)), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let (buffer, held, done) = (&buffer, &held, &done);
            scope.spawn(move || {
                for i in 0..many {
                    let mut source = of(i);
                    let at = (i * size) as u64;
                    let uploaded = device.0.upload(held.0.stream, buffer.0, at, &source);
                    uploaded.expect("an upload");
                    source.fill(0xee);
                    done.fetch_add(1, Ordering::AcqRel);
                }
            });
            let begun = Instant::now();
            while done.load(Ordering::Acquire) < 256 && begun.elapsed() < LONG {
                std::thread::sleep(Duration::from_millis(2));
            }
            // It would go on now if it did not wait.
            std::thread::sleep(Duration::from_millis(50));
            let early = done.load(Ordering::Acquire);
            let apart = device.0.alloc(64).expect("memory");
            device.0.upload(held.0.other, apart, 0, &pattern(3, 64)).expect("another stream's");
            let there = device.0.read(held.0.other, apart, 64).expect("a read");
            held.0.release();
            assert_eq!(there, pattern(3, 64));
            assert!((256..many).contains(&early), "{early} uploads did not wait");
            device.0.free(apart);
        });
        let there = device.0.read(held.0.stream, buffer.0, many * size).expect("a read");
        for (i, found) in there.chunks(size).enumerate() {
            assert_eq!(found, of(i), "upload {i}");
        }
        held.0.end();
        device.0.free(buffer.0);
    });
}

/// Uploads and reads by several threads, each with a stream: more than there is pinned memory
/// for, with as much as there may be, and with none.
#[test]
fn streams_upload_at_once() {
    apart(&[], || {
        let device = &Shared(Device::open());
        let former = device.0.set_pinned_limit(u64::MAX).expect("a limit");
        for limit in [former, 2 << 20, 0] {
            device.0.set_pinned_limit(limit).expect("a limit");
            std::thread::scope(|scope| {
                for thread in 0..4 {
                    scope.spawn(move || {
                        let stream = device.0.stream().expect("a stream");
                        let buffer = device.0.alloc(6 << 20).expect("memory");
                        for (i, bytes) in
                            [1, 3000, 5 << 20, 70_000, 50_000, 900_001].into_iter().enumerate()
                        {
                            let mut source = pattern(10 * thread + i, bytes);
                            device.0.upload(stream, buffer, 0, &source).expect("an upload");
                            source.fill(0);
                            // As a small and as a large copy.
                            let there = device.0.read(stream, buffer, bytes).expect("a read");
                            assert!(there == pattern(10 * thread + i, bytes), "{bytes} bytes");
                        }
                        device.0.synchronize(stream).expect("the end");
                        device.0.destroy_stream(stream);
                        device.0.free(buffer);
                    });
                }
            });
        }
    });
}
