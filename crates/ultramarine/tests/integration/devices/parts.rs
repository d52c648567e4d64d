//! Reads of a part of a buffer on another device: how many bytes move, and that the values are right. The devices are
//! mocks, and say so: gpu:0 and gpu:1 are of one backend.

use crate::support::mock_device::*;
use std::sync::atomic::Ordering::SeqCst;
use ultramarine::{
    Array, Device, Result, Stream, TransferPolicy, TransferScope, default_stream, register,
    set_default_device, stats, with_stream,
};
use ultramarine_test_support::own_process;

const GPU0: Device = Device::gpu(0);
const GPU1: Device = Device::gpu(1);
const ROWS: usize = 1024;
const COLUMNS: usize = 64;
/// Bytes of the whole array, and of a row.
const WHOLE: u64 = (ROWS * COLUMNS * 4) as u64;
const ROW: u64 = (COLUMNS * 4) as u64;

/// Registers the mock's two devices; the CPU stays the default. Returns the first one's stream.
fn register_mock() -> Stream {
    // SAFETY: the mock keeps to the contract.
    assert_eq!(unsafe { register(init) }.unwrap(), [GPU0, GPU1]);
    set_default_device(Device::CPU).unwrap();
    default_stream(GPU0).unwrap()
}

fn element(row: usize, column: usize) -> f32 {
    // (The mock fails at one whole number.)
    (row * COLUMNS + column) as f32 + 0.5
}

/// Elements that are all different, in memory of the host.
fn on_host() -> Array {
    let data: Vec<f32> = (0..ROWS * COLUMNS).map(|i| element(0, i)).collect();
    Array::from_slice(&data, &[ROWS, COLUMNS]).unwrap()
}

/// The same in memory of a device: a sum, since a copy is a mirror that the host's array keeps.
fn on_device(gpu: Stream) -> Array {
    let zero = Array::scalar(0.0f32);
    let x = with_stream(gpu, || on_host().add(&zero)).unwrap();
    x.eval().unwrap();
    assert_eq!(x.value().unwrap().buffer.device(), gpu.device);
    x
}

/// Runs `f` and returns what it gave, with the bytes that moved to the host and to devices, and the whole buffers that
/// moved.
fn moved<T>(f: impl FnOnce() -> Result<T>) -> Result<(T, [u64; 3])> {
    let before = stats();
    let out = f()?;
    let after = stats();
    let moved = [
        after.bytes_to_host - before.bytes_to_host,
        after.bytes_to_devices - before.bytes_to_devices,
        after.mirrors - before.mirrors,
    ];
    Ok((out, moved))
}

fn rows(x: &Array, from: usize, to: usize) -> Result<Array> {
    let (from, to, columns) = (from as isize, to as isize, COLUMNS as isize);
    x.slice(&[from, 0], &[to, columns], &[1, 1])
}

fn column(x: &Array, at: usize) -> Result<Array> {
    let (rows, at) = (ROWS as isize, at as isize);
    x.slice(&[0, at], &[rows, at + 1], &[1, 1])?.squeeze(1)
}

/// Twice an array, computed on a device, whose result is read there by nobody.
fn doubled(gpu: Stream, x: &Array) -> Result<Array> {
    let y = with_stream(gpu, || x.add(x))?;
    y.eval()?;
    Ok(y)
}

/// A transfer of few bytes costs as much as one of fewer: elements that are read one by one need one.
#[test]
fn a_small_buffer_moves_once() -> Result<()> {
    own_process!();
    let gpu = register_mock();
    let few = rows(&on_device(gpu), 0, 100)?;
    let x = with_stream(gpu, || few.add(Array::scalar(0.0f32)))?;
    x.eval()?;
    let (_, bytes) = moved(|| {
        for row in 0..10 {
            assert_eq!(rows(&x, row, row + 1)?.to_vec::<f32>()?[1], element(row, 1));
        }
        Ok(())
    })?;
    assert_eq!(bytes, [100 * ROW, 0, 1]);
    Ok(())
}

#[test]
fn a_small_part_moves_by_its_range_and_a_large_one_as_a_mirror() -> Result<()> {
    own_process!();
    let gpu = register_mock();
    let x = on_host();
    let part = rows(&x, 32, 64)?;
    let (y, bytes) = moved(|| doubled(gpu, &part))?;
    assert_eq!(bytes, [0, 32 * ROW, 0], "32 rows, which two operands share");
    let want: Vec<f32> = (32 * COLUMNS..64 * COLUMNS).map(|i| 2.0 * element(0, i)).collect();
    assert_eq!(y.to_vec::<f32>()?, want);
    // Several tasks of an evaluation share what moved; another evaluation moves it again.
    let (z, bytes) = moved(|| {
        let z = with_stream(gpu, || part.add(&part)?.subtract(&part)?.maximum(&part))?;
        z.eval()?;
        Ok(z)
    })?;
    assert_eq!(bytes, [0, 32 * ROW, 0]);
    assert_eq!(z.to_vec::<f32>()?, part.to_vec::<f32>()?);
    // A quarter is large: the buffer has a mirror then, which smaller parts are read from, too.
    let quarter = rows(&x, 0, ROWS / 4)?;
    assert_eq!(moved(|| doubled(gpu, &quarter))?.1, [0, WHOLE, 1]);
    let (y, bytes) = moved(|| doubled(gpu, &rows(&x, 7, 8)?))?;
    assert_eq!(bytes, [0, 0, 0]);
    assert_eq!(y.to_vec::<f32>()?[1], 2.0 * element(7, 1));
    Ok(())
}

#[test]
fn the_host_reads_parts_of_a_device() -> Result<()> {
    own_process!();
    let gpu = register_mock();
    let x = on_device(gpu);
    let at = |row: isize, column: isize| {
        x.slice(&[row, column], &[row + 1, column + 1], &[1, 1])?.reshape(&[0usize; 0])
    };
    let (value, bytes) = moved(|| at(900, 3)?.item::<f32>())?;
    assert_eq!((value, bytes), (element(900, 3), [4, 0, 0]));
    let (values, bytes) = moved(|| rows(&x, 5, 7)?.to_vec::<f32>())?;
    assert_eq!((values[COLUMNS], bytes), (element(6, 0), [2 * ROW, 0, 0]));
    // A column is packed on the device; the host's kernels and printing read it likewise.
    let want: Vec<f32> = (0..ROWS).map(|row| element(row, 3)).collect();
    let packed = [4 * ROWS as u64, 0, 0];
    // (Of the packed column that is all.)
    let (values, bytes) = moved(|| column(&x, 3)?.to_vec::<f32>())?;
    assert!(values == want && bytes == [4 * ROWS as u64, 0, 1], "{bytes:?}");
    let cpu = default_stream(Device::CPU)?;
    let roots = || with_stream(cpu, || column(&x, 3)?.negative())?.to_vec::<f32>();
    let negative: Vec<f32> = want.iter().map(|v| -v).collect();
    let (values, bytes) = moved(roots)?;
    assert!(values == negative && bytes == packed, "{bytes:?}");
    let (text, bytes) = moved(|| Ok(column(&x, 3)?.to_string()))?;
    assert!(text.starts_with("array([3.5, 67.5, 131.5, ..., "), "{text}");
    assert_eq!(bytes, packed);
    // Back to front, and with a step.
    let some = x.slice(&[100, 63], &[90, -(COLUMNS as isize) - 1], &[-3, -1])?;
    let (values, bytes) = moved(|| with_stream(cpu, || some.negative())?.to_vec::<f32>())?;
    assert_eq!(bytes, [10 * ROW, 0, 0]);
    assert_eq!((values[0], values[3 * COLUMNS + 63]), (-element(100, 63), -element(91, 0)));
    // Broadcast elements move once, and none where there are none.
    let (values, bytes) =
        moved(|| with_stream(cpu, || rows(&x, 9, 10)?.broadcast_to(&[ROWS, COLUMNS])?.negative()))?;
    assert_eq!(bytes, [0, 0, 0]);
    assert_eq!(moved(|| values.eval())?.1, [ROW, 0, 0]);
    assert_eq!(values.to_vec::<f32>()?[ROW as usize], -element(9, 0));
    let (none, bytes) = moved(|| with_stream(cpu, || rows(&x, 9, 9)?.negative())?.to_vec::<f32>())?;
    assert_eq!((none.len(), bytes), (0, [0, 0, 0]));
    // All of it mirrors it, for later readers too.
    assert_eq!(moved(|| x.to_vec::<f32>())?.1, [WHOLE, 0, 1]);
    let later = || with_stream(cpu, || column(&x, 4)?.negative())?.eval();
    assert_eq!(moved(later)?.1, [0, 0, 0]);
    drop((x, some));
    assert_eq!(VIOLATIONS.load(SeqCst), 0);
    Ok(())
}

#[test]
fn sparse_parts_are_packed_where_they_are() -> Result<()> {
    own_process!();
    let gpu = register_mock();
    let x = on_host();
    let (y, bytes) = moved(|| doubled(gpu, &column(&x, 3)?))?;
    assert_eq!(bytes, [0, 4 * ROWS as u64, 0]);
    let want: Vec<f32> = (0..ROWS).map(|row| 2.0 * element(row, 3)).collect();
    assert_eq!(y.to_vec::<f32>()?, want);
    // Every eighth row, across: the result has the view's shape and its own strides.
    let some = x.slice(&[0, 0], &[ROWS as isize, COLUMNS as isize], &[8, 1])?.transpose()?;
    let (y, bytes) = moved(|| doubled(gpu, &some))?;
    assert_eq!(bytes, [0, WHOLE / 8, 0]);
    let values = y.to_vec::<f32>()?;
    assert_eq!(values[ROWS / 8 + 2], 2.0 * element(16, 1));
    Ok(())
}

#[test]
fn views_stay_where_their_operand_is() -> Result<()> {
    own_process!();
    let gpu = register_mock();
    let x = on_host();
    set_default_device(GPU0)?;
    // What has no home: no view of it goes anywhere, not even one that has to copy.
    let across = x.transpose()?.reshape(&[ROWS, COLUMNS])?;
    let chain = x.reshape(&[COLUMNS, ROWS])?.transpose()?.slice(&[3, 0], &[5, 64], &[1, 1])?;
    for view in [&across, &chain] {
        assert_eq!(moved(|| view.eval())?.1, [0, 0, 0]);
        assert_eq!(view.value()?.buffer.device(), Device::CPU);
    }
    assert_eq!(across.to_vec::<f32>()?[1], element(1, 0));
    // Its tensor says where it is, before it is computed, too.
    let lazy = rows(&x, 3, 4)?;
    assert_eq!(lazy.dlpack_device()?.device_type, ultramarine_abi::dlpack::device_type::CPU);
    let (sum, bytes) = moved(|| {
        let sum = chain.add(&chain)?;
        sum.eval()?;
        Ok(sum)
    })?;
    assert_eq!((sum.device(), bytes[2]), (GPU0, 0));
    assert!(bytes[1] <= 4 * 64 * 1024, "{bytes:?}");
    assert_eq!(sum.to_vec::<f32>()?[1], 2.0 * element(16, 3));
    // A scope is the user's word: what they hold goes there, by its range, and stays.
    let held = with_stream(gpu, || rows(&x, 3, 4))?;
    assert_eq!(moved(|| held.eval())?.1, [0, ROW, 0]);
    assert_eq!(held.value()?.buffer.device(), GPU0);
    assert_eq!(moved(|| doubled(gpu, &held))?.1, [0, 0, 0]);
    // What they do not hold does not.
    let inner = with_stream(gpu, || x.reshape(&[COLUMNS, ROWS])?.slice(&[1, 0], &[2, 8], &[1, 1]))?;
    assert_eq!(moved(|| inner.eval())?.1, [0, 32, 0]);
    // Identities of transforms move nothing either.
    let (gone, bytes) = moved(|| {
        let stop = x.stop_gradient();
        stop.eval()?;
        Ok(stop.value()?.buffer.device())
    })?;
    assert_eq!((gone, bytes), (Device::CPU, [0, 0, 0]));
    Ok(())
}

#[test]
fn imports_move_by_their_range_at_each_use() -> Result<()> {
    own_process!();
    let gpu = register_mock();
    let owner = on_host();
    let x = Array::from_dlpack(owner.to_dlpack()?)?;
    for _ in 0..2 {
        assert_eq!(moved(|| doubled(gpu, &rows(&x, 32, 64)?))?.1[0], 0);
        let (y, bytes) = moved(|| {
            let one = Array::scalar(1.0f32);
            let y = with_stream(gpu, || rows(&x, 32, 64)?.add(&one))?;
            y.eval()?;
            Ok(y)
        })?;
        assert!(bytes[1] <= 32 * ROW + 4 && bytes[2] <= 1, "{bytes:?}");
        assert_eq!(y.to_vec::<f32>()?[0], 1.0 + element(32, 0));
    }
    // There is no mirror to keep, so half of it moves as half, too.
    let half = rows(&x, 0, ROWS / 2)?;
    let one = Array::scalar(1.0f32);
    let (_, bytes) = moved(|| with_stream(gpu, || half.add(&one))?.eval())?;
    assert!(bytes[1] <= WHOLE / 2 + 4, "{bytes:?}");
    Ok(())
}

#[test]
fn parts_go_from_one_accelerator_to_another() -> Result<()> {
    own_process!();
    let gpu = register_mock();
    let _mixed = TransferScope::new(TransferPolicy::Host);
    let other = default_stream(GPU1)?;
    for peer in [false, true] {
        PEER.store(peer, SeqCst);
        let x = on_device(gpu);
        let (y, bytes) = moved(|| doubled(other, &rows(&x, 10, 12)?))?;
        let staged = if peer { 0 } else { 2 * ROW };
        assert_eq!(bytes, [staged, 2 * ROW, 0], "peer: {peer}");
        assert_eq!(y.to_vec::<f32>()?[1], 2.0 * element(10, 1));
        let (y, bytes) = moved(|| doubled(other, &column(&x, 5)?))?;
        let staged = if peer { 0 } else { 4 * ROWS as u64 };
        assert_eq!(bytes, [staged, 4 * ROWS as u64, 0], "peer: {peer}");
        assert_eq!(y.to_vec::<f32>()?[1], 2.0 * element(1, 5));
    }
    Ok(())
}
