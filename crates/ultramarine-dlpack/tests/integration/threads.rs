//! Tensors between threads: read by several, dropped by any, given from one to another. The thread
//! sanitizer runs this, too (`cargo xtask sanitize`).

use crate::support::{foreign::Foreign, header::Header};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use ultramarine_dlpack::{DLDataType, DLDevice, Description, ManagedTensor};

const ROUNDS: usize = if cfg!(miri) { 10 } else { 500 };
const THREADS: usize = 8;

/// Memory that is written before it is given away, and by the owner when all is over.
struct Memory {
    numbers: Vec<u32>,
    over: Arc<AtomicUsize>,
}

impl Drop for Memory {
    fn drop(&mut self) {
        // A plain write: it must come after everybody's last read.
        self.numbers.fill(0);
        self.over.fetch_add(1, Ordering::Relaxed);
    }
}

fn tensor(value: u32, over: &Arc<AtomicUsize>) -> ManagedTensor {
    let mut memory = Box::new(Memory { numbers: vec![value; 6], over: Arc::clone(over) });
    let description = Description {
        data: memory.numbers.as_mut_ptr().cast(),
        device: DLDevice { device_type: 1, device_id: 0 },
        dtype: DLDataType { code: 1, bits: 32, lanes: 1 },
        shape: &[2, 3],
        strides: &[3, 1],
        byte_offset: 0,
        flags: 0,
    };
    // SAFETY: the vector's memory stays where it is while the owner lives.
    unsafe { ManagedTensor::new(memory, &description) }
}

/// Reads every element by way of the header.
fn sum(tensor: &ManagedTensor) -> u32 {
    let count = (0..tensor.ndim()).map(|i| tensor.size(i)).product();
    // SAFETY: contiguous memory that lives as long as the tensor.
    unsafe { core::slice::from_raw_parts(tensor.tensor().data.cast::<u32>(), count) }.iter().sum()
}

#[test]
fn the_last_of_several_readers_deletes() {
    let over = Arc::new(AtomicUsize::new(0));
    for round in 0..ROUNDS {
        let shared = Arc::new(tensor(round as u32, &over));
        let readers: Vec<_> = (0..THREADS)
            .map(|_| {
                let mine = Arc::clone(&shared);
                std::thread::spawn(move || sum(&mine))
            })
            .collect();
        drop(shared);
        for reader in readers {
            assert_eq!(reader.join().unwrap(), 6 * round as u32);
        }
    }
    assert_eq!(over.load(Ordering::SeqCst), ROUNDS);
}

#[test]
fn from_hand_to_hand_as_bare_pointers() {
    struct Pointer(*mut ultramarine_dlpack::DLManagedTensorVersioned);
    // SAFETY: DLPack lets a tensor be used and deleted on any thread.
    unsafe impl Send for Pointer {}

    let over = Arc::new(AtomicUsize::new(0));
    let (first, mut inbox) = mpsc::channel::<Pointer>();
    let mut threads = Vec::new();
    for _ in 0..4 {
        let (to, next) = mpsc::channel();
        let from = std::mem::replace(&mut inbox, next);
        threads.push(std::thread::spawn(move || {
            for Pointer(pointer) in from {
                // SAFETY: whole, and this thread's since it came.
                let (tensor, _) = unsafe { ManagedTensor::from_versioned(pointer) }.unwrap();
                let first = tensor.tensor().data.cast::<u32>();
                // SAFETY: one thread has it at a time.
                unsafe { first.write(first.read() + 1) };
                to.send(Pointer(tensor.into_versioned().unwrap().as_ptr())).unwrap();
            }
        }));
    }
    let (count, end) = (Arc::clone(&over), ROUNDS);
    let last = std::thread::spawn(move || {
        for Pointer(pointer) in inbox {
            // SAFETY: as above.
            let (tensor, _) = unsafe { ManagedTensor::from_versioned(pointer) }.unwrap();
            assert_eq!(sum(&tensor), 6 * 7 + 4);
        }
        assert_eq!(count.load(Ordering::SeqCst), end);
    });
    for _ in 0..ROUNDS {
        first.send(Pointer(tensor(7, &over).into_versioned().unwrap().as_ptr())).unwrap();
    }
    drop(first);
    threads.into_iter().for_each(|t| t.join().unwrap());
    last.join().unwrap();
}

#[test]
fn one_of_eight_takes_it() {
    // As threads race for one capsule: whoever changes its state first has the tensor.
    for _ in 0..ROUNDS {
        let foreign = Foreign::new(&Header::plain(&[2, 3]));
        let (tensor, _) = foreign.take().unwrap();
        let slot = std::sync::Mutex::new(Some(tensor));
        let winners = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    let taken = slot.lock().unwrap().take();
                    winners.fetch_add(usize::from(taken.is_some()), Ordering::Relaxed);
                });
            }
        });
        assert_eq!((winners.into_inner(), foreign.deleted()), (1, 1));
    }
}
