//! Deleters run exactly once, whatever becomes of a tensor.

use crate::support::{foreign::Foreign, foreign::Raw, header::Header};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use ultramarine_dlpack::{DLDataType, DLDevice, DLManagedTensor, Description, ManagedTensor, flag};

const KINDS: [Option<(u32, u32)>; 2] = [Some((1, 3)), None];

fn foreign(version: Option<(u32, u32)>) -> Foreign {
    Foreign::new(&Header { version, ..Header::plain(&[2, 3]) })
}

/// Counts how often it is dropped; larger and wider aligned than a pointer.
#[repr(align(64))]
struct Owner(Arc<AtomicUsize>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn description<'a>(shape: &'a [usize], strides: &'a [isize]) -> Description<'a> {
    Description {
        data: core::ptr::without_provenance_mut(64),
        device: DLDevice { device_type: 1, device_id: 0 },
        dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
        shape,
        strides,
        byte_offset: 8,
        flags: flag::READ_ONLY,
    }
}

/// A tensor of ours, of either kind, and the count of its owner's drops.
fn ours(versioned: bool, shape: &[usize], strides: &[isize]) -> (ManagedTensor, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let (owner, d) = (Owner(Arc::clone(&count)), description(shape, strides));
    // SAFETY: the memory is never read.
    let tensor = unsafe {
        match versioned {
            true => ManagedTensor::new(owner, &d),
            false => ManagedTensor::new_legacy(owner, &d),
        }
    };
    (tensor, count)
}

#[test]
fn taken_and_dropped() {
    for kind in KINDS {
        let foreign = foreign(kind);
        let (tensor, _) = foreign.take().unwrap();
        assert_eq!(foreign.deleted(), 0);
        drop(tensor);
        assert_eq!(foreign.deleted(), 1);
    }
}

#[test]
fn taken_and_given_on() {
    for kind in KINDS {
        let foreign = foreign(kind);
        let (tensor, _) = foreign.take().unwrap();
        // As the other kind it stays what it is.
        let tensor = match kind {
            Some(_) => tensor.into_legacy().unwrap_err(),
            None => tensor.into_versioned().unwrap_err(),
        };
        let same = match (kind, foreign.raw) {
            (Some(_), Raw::Versioned(was)) => tensor.into_versioned().unwrap().as_ptr() == was,
            (None, Raw::Legacy(was)) => tensor.into_legacy().unwrap().as_ptr() == was,
            _ => false,
        };
        assert!(same);
        assert_eq!(foreign.deleted(), 0, "given away, so not ours to delete");
        foreign.discard();
        assert_eq!(foreign.deleted(), 1);
    }
}

#[test]
fn without_a_deleter() {
    for version in KINDS {
        let foreign =
            Foreign::new(&Header { version, has_deleter: false, ..Header::plain(&[2, 3]) });
        drop(foreign.take().unwrap());
        // A second time, as nobody was told.
        drop(foreign.take().unwrap());
        foreign.discard();
        assert_eq!(foreign.deleted(), 0);
    }
}

#[test]
fn refused_and_given_back() {
    for version in [None, Some((1, 3)), Some((0, 8)), Some((2, 0))] {
        let header = Header::plain(&[2, -3]);
        let foreign = Foreign::new(&Header { version, ..header });
        assert!(foreign.take().is_err());
        assert!(foreign.take().is_err(), "a refused tensor stays what it is");
        assert_eq!(foreign.deleted(), 0);
        foreign.discard();
        assert_eq!(foreign.deleted(), 1);
    }
}

#[test]
fn dropped_on_another_thread_and_during_a_panic() {
    for kind in KINDS {
        let away = foreign(kind);
        let (tensor, _) = away.take().unwrap();
        std::thread::spawn(move || drop(tensor)).join().unwrap();
        assert_eq!(away.deleted(), 1);

        let lost = foreign(kind);
        let (tensor, _) = lost.take().unwrap();
        let panicked = std::thread::spawn(move || {
            let _held = tensor;
            std::panic::resume_unwind(Box::new("on purpose"));
        });
        assert!(panicked.join().is_err());
        assert_eq!(lost.deleted(), 1);
    }
}

#[test]
fn what_is_made_drops_its_owner_once() {
    for versioned in [true, false] {
        for (shape, strides) in
            [(&[][..], &[][..]), (&[3], &[-1]), (&[2, 3, 4], &[12, 4, 1]), (&[1; 64], &[7; 64])]
        {
            let (tensor, count) = ours(versioned, shape, strides);
            assert_eq!(tensor.version().is_some(), versioned);
            assert_eq!(tensor.is_read_only(), versioned, "flags are not for those without version");
            let seen: Vec<_> =
                (0..tensor.ndim()).map(|i| (tensor.size(i), tensor.stride(i).unwrap())).collect();
            let said: Vec<_> = shape.iter().copied().zip(strides.iter().copied()).collect();
            assert_eq!(seen, said);
            assert_eq!(tensor.tensor().byte_offset, 8);
            assert_eq!(count.load(Ordering::SeqCst), 0);
            drop(tensor);
            assert_eq!(count.load(Ordering::SeqCst), 1);
        }
    }
}

#[test]
fn a_consumer_may_spoil_the_header() {
    // It is told nowhere that a consumer must leave the header as it was: the deleter relies on
    // nothing in it.
    let (tensor, count) = ours(true, &[2, 3], &[3, 1]);
    let pointer = tensor.into_versioned().unwrap().as_ptr();
    // SAFETY: ours alone by now.
    unsafe {
        (*pointer).dl_tensor.ndim = -1;
        (*pointer).dl_tensor.shape = core::ptr::null_mut();
        (*pointer).dl_tensor.strides = core::ptr::null_mut();
        (*pointer).dl_tensor.data = core::ptr::null_mut();
        (*pointer).flags = u64::MAX;
        (*pointer).deleter.unwrap()(pointer);
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
}

#[test]
fn a_chain_of_imports_and_exports_ends_at_its_first_owner() {
    let first = foreign(Some((1, 1)));
    let (mut tensor, found) = first.take().unwrap();
    for round in 0..100 {
        let data = tensor.tensor().data;
        let d = Description { data, byte_offset: 0, ..description(&[2, 3], &[3, 1]) };
        // SAFETY: the same memory, owned by the tensor before; the first says that it may be read.
        tensor = unsafe {
            if round % 2 == 0 {
                let made: *mut DLManagedTensor =
                    ManagedTensor::new_legacy(tensor, &d).into_legacy().unwrap().as_ptr();
                ManagedTensor::from_legacy(made).unwrap().0
            } else {
                let made = ManagedTensor::new(tensor, &d).into_versioned().unwrap().as_ptr();
                let (made, again) = ManagedTensor::from_versioned(made).unwrap();
                assert_eq!(again, found);
                made
            }
        };
        assert_eq!(first.deleted(), 0);
    }
    drop(tensor);
    assert_eq!(first.deleted(), 1);
}

#[test]
fn what_cannot_be_described_panics_before_anything_is_made() {
    let many = [1usize; 65];
    for (shape, strides) in [(&[2usize, 3][..], &[1isize][..]), (&many, &[1isize; 65])] {
        let count = Arc::new(AtomicUsize::new(0));
        let owner = Owner(Arc::clone(&count));
        // SAFETY: the memory is never read.
        let made = std::panic::catch_unwind(move || unsafe {
            ManagedTensor::new(owner, &description(shape, strides));
        });
        assert!(made.is_err());
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn axes_that_are_not_there_panic() {
    let (tensor, _) = ours(true, &[2], &[1]);
    let tensor = std::panic::AssertUnwindSafe(&tensor);
    assert!(std::panic::catch_unwind(|| tensor.size(1)).is_err());
    assert!(std::panic::catch_unwind(|| tensor.stride(usize::MAX)).is_err());
}
