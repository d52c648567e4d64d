//! The design's list, case by case: what is taken, and what is refused for which reason.

use crate::support::{foreign::Foreign, header::Header, header::Memory, trial};
use ultramarine_dlpack::{Checked, DLDataType, Invalid, flag};

/// Takes a tensor (with all that `trial` looks at) and says where its elements lie.
fn taken(header: &Header) -> Checked {
    assert_eq!(trial::run(header), None, "{header:?}");
    let foreign = Foreign::new(header);
    let (tensor, found) = foreign.take().unwrap();
    let shape = format!("shape: {:?}", header.shape.as_deref().unwrap_or(&[]));
    assert!(format!("{tensor:?}").contains(&shape), "{tensor:?}");
    found
}

fn refused(header: &Header) -> Invalid {
    assert!(trial::run(header).is_some(), "{header:?}");
    let foreign = Foreign::new(header);
    let error = foreign.take().unwrap_err();
    foreign.discard();
    error
}

/// A plain tensor with something else.
fn with(shape: &[i64], change: impl FnOnce(&mut Header)) -> Header {
    let mut header = Header::plain(shape);
    change(&mut header);
    header
}

fn strided(shape: &[i64], strides: &[i64]) -> Header {
    with(shape, |h| h.strides = Some(strides.to_vec()))
}

fn typed(shape: &[i64], code: u8, bits: u8, lanes: u16) -> Header {
    with(shape, |h| h.dtype = DLDataType { code, bits, lanes })
}

/// Elements, bytes below the first, bytes.
fn extent(found: Checked) -> (usize, usize, usize) {
    (found.elements, found.below, found.bytes)
}

#[test]
fn both_structs_and_every_minor_version() {
    assert_eq!(extent(taken(&with(&[2, 3], |h| h.version = None))), (6, 0, 24));
    for minor in [0, 1, 3, 99, u32::MAX] {
        assert_eq!(extent(taken(&with(&[2, 3], |h| h.version = Some((1, minor))))), (6, 0, 24));
    }
}

#[test]
fn another_major_version_is_not_looked_at() {
    for major in [0, 2, 100, u32::MAX] {
        let error = refused(&with(&[3], |h| h.version = Some((major, 3))));
        assert_eq!(error, Invalid::Version { major, minor: 3 });
    }
}

#[test]
fn no_dimensions_with_and_without_pointers() {
    assert_eq!(extent(taken(&Header::plain(&[]))), (1, 0, 4));
    assert_eq!(extent(taken(&with(&[], |h| (h.shape, h.strides) = (None, None)))), (1, 0, 4));
    assert_eq!(refused(&with(&[], |h| h.memory = Memory::At(0))), Invalid::NoData);
}

#[test]
fn no_elements_whatever_the_rest_says() {
    for memory in [Memory::At(0), Memory::At(usize::MAX), Memory::Real] {
        for strides in [Some(vec![i64::MIN, i64::MAX, -1]), Some(vec![0; 3]), None] {
            for byte_offset in [0, u64::MAX] {
                let strides = strides.clone();
                let header = Header { memory, strides, byte_offset, ..Header::plain(&[4, 0, 5]) };
                assert_eq!(extent(taken(&header)), (0, 0, 0));
            }
        }
    }
}

#[test]
fn strides_of_single_elements_are_not_believed() {
    for stride in [999, 0, -7, i64::MAX, i64::MIN] {
        let found = taken(&strided(&[1, 3, 1], &[stride, 1, stride]));
        assert_eq!((extent(found), found.contiguous), ((3, 0, 12), true));
    }
    assert_eq!(extent(taken(&strided(&[1, 1], &[i64::MAX, i64::MAX]))), (1, 0, 4));
}

#[test]
fn views_of_every_kind() {
    let contiguous = |h: &Header| taken(h).contiguous;
    let found = taken(&with(&[2, 3], |h| h.strides = None));
    assert_eq!((extent(found), found.contiguous), ((6, 0, 24), true));
    // Transposed, with gaps, one element many times, backwards, in both directions.
    assert_eq!(extent(taken(&strided(&[3, 2], &[1, 3]))), (6, 0, 24));
    assert_eq!(extent(taken(&strided(&[2, 2], &[10, 3]))), (4, 0, 56));
    assert_eq!(extent(taken(&strided(&[1000, 2], &[0, 1]))), (2000, 0, 8));
    assert_eq!(extent(taken(&strided(&[5], &[-2]))), (5, 32, 36));
    assert_eq!(extent(taken(&strided(&[2, 4], &[4, -1]))), (8, 12, 32));
    assert!(!contiguous(&strided(&[3, 2], &[1, 3])) && !contiguous(&strided(&[1000], &[0])));
    assert!(!contiguous(&strided(&[5], &[-1])) && contiguous(&strided(&[2, 2], &[2, 1])));
    for byte_offset in [1, 4, 4096] {
        assert_eq!(extent(taken(&with(&[3], |h| h.byte_offset = byte_offset))), (3, 0, 12));
    }
    // As many dimensions as there may be.
    assert_eq!(taken(&Header::plain(&[1; 64])).elements, 1);
}

#[test]
fn every_type() {
    let whole = [(0, &[8, 16, 32, 64][..]), (1, &[8, 16, 32, 64]), (2, &[16, 32, 64])];
    let wide = [(4, &[16][..]), (5, &[32, 64, 128]), (6, &[8])];
    for (code, all) in whole.into_iter().chain(wide) {
        for bits in all {
            assert_eq!(taken(&typed(&[3], code, *bits, 1)).bytes, 3 * usize::from(*bits / 8));
        }
    }
    for code in 7..=14 {
        assert_eq!(extent(taken(&typed(&[3], code, 8, 1))), (3, 0, 3));
    }
}

#[test]
fn types_of_less_than_a_byte() {
    // Packed: bits are counted exactly. 3 * 6 and 4 * 6, 3 * 4 and 4 * 4 bits.
    for (code, bits, sizes) in [(15, 6, [3, 3]), (16, 6, [3, 3]), (17, 4, [2, 2])] {
        for (elements, bytes) in [3, 4].into_iter().zip(sizes) {
            let found = taken(&typed(&[elements], code, bits, 1));
            assert_eq!((found.bits, found.bytes), (bits as usize, bytes), "{elements} of {bits}");
        }
        let padded = with(&[5], |h| {
            h.dtype = DLDataType { code, bits, lanes: 1 };
            h.flags = flag::IS_SUBBYTE_TYPE_PADDED;
            h.strides = Some(vec![-2]);
        });
        let found = taken(&padded);
        assert_eq!((found.bits, extent(found)), (8, (5, 8, 9)));
        // Without a version there are no flags: packed.
        let legacy = with(&[5], |h| {
            h.version = None;
            *h = Header { dtype: padded.dtype, flags: padded.flags, ..h.clone() };
        });
        assert_eq!(taken(&legacy).bits, bits as usize);
        // Packed, an element may begin within a byte: only side by side.
        let gaps = Header { dtype: padded.dtype, ..strided(&[2, 3], &[1, 2]) };
        assert_eq!(refused(&gaps), Invalid::PackedStrides);
        // Their number may be more than that of all bits of an address space.
        let most = isize::MAX / 4;
        let many = Header { memory: Memory::At(64), ..typed(&[most as i64], code, bits, 1) };
        assert_eq!(taken(&many).bytes, (most as u128 * u128::from(bits)).div_ceil(8) as usize);
    }
    // Two in a byte, as torch gives them.
    let found = taken(&typed(&[3], 17, 4, 2));
    assert_eq!((found.bits, found.bytes), (8, 3));
    let both = with(&[3], |h| {
        h.dtype = DLDataType { code: 17, bits: 4, lanes: 2 };
        h.flags = flag::IS_SUBBYTE_TYPE_PADDED;
    });
    assert_eq!(refused(&both), Invalid::Lanes(both.dtype));
}

#[test]
fn unknown_flags_are_ignored() {
    assert_eq!(extent(taken(&with(&[3], |h| h.flags = !4))), (3, 0, 12));
    // Padding is said of whole bytes, too.
    assert_eq!(extent(taken(&with(&[3], |h| h.flags = u64::MAX))), (3, 0, 12));
}

#[test]
fn types_that_are_none() {
    let dtype = |code, bits, lanes| DLDataType { code, bits, lanes };
    for (code, bits) in [
        (0, 0),
        (0, 4),
        (1, 24),
        (0, 128),
        (2, 8),
        (2, 80),
        (2, 128),
        (4, 32),
        (5, 16),
        (6, 1),
        (7, 16),
        (14, 4),
        (15, 8),
        (16, 4),
        (17, 8),
        (18, 8),
        (255, 255),
    ] {
        assert_eq!(refused(&typed(&[3], code, bits, 1)), Invalid::Dtype(dtype(code, bits, 1)));
    }
    for (code, bits, lanes) in
        [(2, 32, 4), (0, 8, 0), (6, 8, 2), (9, 8, 2), (15, 6, 2), (17, 4, 3), (2, 64, u16::MAX)]
    {
        let error = refused(&typed(&[3], code, bits, lanes));
        assert_eq!(error, Invalid::Lanes(dtype(code, bits, lanes)));
    }
    assert_eq!(refused(&typed(&[3], 3, 64, 1)), Invalid::Opaque);
}

#[test]
fn devices() {
    for device_type in [1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18] {
        taken(&with(&[3], |h| h.device.device_type = device_type));
    }
    for device_type in [0, 5, 6, 19, -1, i32::MAX, i32::MIN] {
        let error = refused(&with(&[3], |h| h.device.device_type = device_type));
        assert_eq!(error, Invalid::Device(device_type));
    }
}

#[test]
fn headers_that_cannot_be() {
    for ndim in [-1, 65, i32::MIN, i32::MAX] {
        assert_eq!(refused(&with(&[3], |h| h.ndim = ndim)), Invalid::Dimensions(ndim));
    }
    assert_eq!(refused(&with(&[3], |h| h.shape = None)), Invalid::NoShape);
    assert_eq!(refused(&with(&[0], |h| h.shape = None)), Invalid::NoShape);
    for (shape, axis) in [([-1, 3], 0), ([3, -1], 1), ([0, i64::MIN], 1)] {
        let size = shape[axis];
        assert_eq!(refused(&Header::plain(&shape)), Invalid::NegativeSize { axis, size });
    }
    assert_eq!(refused(&with(&[3], |h| h.memory = Memory::At(0))), Invalid::NoData);
}

#[test]
fn sizes_and_strides_that_lead_out_of_memory() {
    let most = isize::MAX as i64;
    for shape in [&[most][..], &[most / 4 + 1], &[1 << 32, 1 << 32], &[0, most, 2], &[3, most]] {
        assert_eq!(refused(&Header::plain(shape)), Invalid::Overflow, "{shape:?}");
    }
    for (shape, strides) in [
        (&[2][..], &[most][..]),
        (&[2], &[i64::MIN]),
        (&[3], &[most / 2 + 1]),
        (&[3], &[-(most / 2) - 2]),
        (&[2, 2], &[most / 4, most / 4]),
        (&[2, 2], &[most / 4, -most / 4]),
        (&[2, 2], &[most, -most]),
    ] {
        assert_eq!(refused(&strided(shape, strides)), Invalid::Overflow, "{strides:?}");
    }
    // The largest that there are: an address space of bytes, but for those that one step misses.
    let at = |h: Header| Header { memory: Memory::At(64), ..h };
    assert_eq!(taken(&at(Header::plain(&[most / 4]))).elements, (most / 4) as usize);
    assert_eq!(taken(&at(strided(&[most / 4], &[0]))).bytes, 4);
    assert_eq!(taken(&at(strided(&[2], &[most / 4 - 1]))).bytes, (most / 4 * 4) as usize);
}

#[test]
fn offsets_and_addresses_that_lead_out_of_memory() {
    let at = |address, byte_offset| Header {
        memory: Memory::At(address),
        byte_offset,
        ..Header::plain(&[4])
    };
    assert_eq!(taken(&at(usize::MAX - 16, 0)).bytes, 16);
    assert_eq!(taken(&at(64, (usize::MAX - 80) as u64)).bytes, 16);
    for (address, byte_offset) in [(usize::MAX - 15, 0), (64, u64::MAX - 63), (64, u64::MAX - 70)] {
        assert_eq!(refused(&at(address, byte_offset)), Invalid::Overflow);
    }
    // Backwards, below address zero.
    let back = |address| Header { strides: Some(vec![-1]), ..at(address, 0) };
    assert_eq!(taken(&back(12)).below, 12);
    assert_eq!(refused(&back(11)), Invalid::Overflow);
}

#[test]
fn errors_say_what_came() {
    let text = |h: &Header| refused(h).to_string();
    assert!(text(&with(&[3], |h| h.version = Some((2, 7)))).contains("DLPack version 2.7"));
    assert!(text(&with(&[3], |h| h.ndim = -5)).contains("-5 dimensions"));
    assert!(text(&Header::plain(&[3, -8])).contains("dimension 1 has the negative size -8"));
    assert!(text(&typed(&[3], 2, 7, 1)).contains("code 2, 7 bits, 1 lanes"));
    assert!(text(&typed(&[3], 2, 32, 4)).contains("4 lanes"));
    assert!(text(&with(&[3], |h| h.device.device_type = 77)).contains("77"));
}

#[test]
fn nothing_at_all() {
    use core::ptr::null_mut;
    use ultramarine_dlpack::ManagedTensor;
    // SAFETY: NULL is allowed.
    unsafe {
        assert_eq!(ManagedTensor::from_versioned(null_mut()).unwrap_err(), Invalid::Null);
        assert_eq!(ManagedTensor::from_legacy(null_mut()).unwrap_err(), Invalid::Null);
        ManagedTensor::discard_versioned(null_mut());
        ManagedTensor::discard_legacy(null_mut());
    }
}
