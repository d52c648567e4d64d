//! Streams that come and go: they share threads, and are given out again.

use std::collections::HashSet;
use ultramarine::{
    Array, Device, Dtype, Result, Stream, async_eval, default_stream, new_stream, release_stream,
    synchronize, with_stream,
};
use ultramarine_runtime::stream;
use ultramarine_test_support::own_process;

/// Has the stream's thread compute something.
fn use_stream(stream: Stream) -> Result<()> {
    let x = with_stream(stream, || Array::ones(&[100], Dtype::Float32)?.exp()?.sum(None))?;
    async_eval(std::slice::from_ref(&x))?;
    synchronize(stream)?;
    assert!((x.item::<f32>()? - 100.0 * 1f32.exp()).abs() < 1e-3);
    Ok(())
}

#[cfg(target_os = "linux")]
#[test]
fn streams_share_threads() -> Result<()> {
    own_process!();
    let threads = || {
        let all = std::fs::read_dir("/proc/self/task").expect("Linux has it");
        let name = |t: std::fs::DirEntry| std::fs::read_to_string(t.path().join("comm"));
        all.flatten()
            .filter_map(|t| name(t).ok())
            .filter(|n| n.starts_with("ultramarine-str"))
            .count()
    };
    let streams = (0..300).map(|_| new_stream(Device::CPU)).collect::<Result<Vec<_>>>()?;
    let mut most = 0;
    for stream in &streams {
        use_stream(*stream)?;
        most = most.max(threads());
    }
    assert!((1..=24).contains(&most), "{most} threads for one stream at a time");
    // All at once, and again with the threads that there are.
    for _ in 0..2 {
        let compute = |s: &Stream| with_stream(*s, || Array::ones(&[10], Dtype::Float32)?.exp());
        let all = streams.iter().map(compute).collect::<Result<Vec<_>>>()?;
        all.iter().try_for_each(|x| async_eval(std::slice::from_ref(x)))?;
        for x in &all {
            assert!((x.to_vec::<f32>()?[9] - 1f32.exp()).abs() < 1e-5);
        }
    }
    Ok(())
}

#[test]
fn released_streams_are_given_out_again() -> Result<()> {
    own_process!();
    let default = default_stream(Device::CPU)?;
    let mut known = HashSet::new();
    for _ in 0..1000 {
        let stream = new_stream(Device::CPU)?;
        use_stream(stream)?;
        known.insert(stream);
        release_stream(stream);
    }
    assert_eq!(known.len(), 1);
    // Once, however often it is released.
    let stream = new_stream(Device::CPU)?;
    (0..3).for_each(|_| release_stream(stream));
    let (a, b) = (new_stream(Device::CPU)?, new_stream(Device::CPU)?);
    assert_eq!((a, a == b), (stream, false));
    // Default streams stay.
    release_stream(default);
    assert!(new_stream(Device::CPU)? != default);
    // One at work waits for its work, not its next owner.
    let state = stream::state(a).expect("it exists");
    let owned = state.try_own();
    assert!(owned.is_some());
    release_stream(a);
    let other = new_stream(Device::CPU)?;
    assert!(other != a);
    drop(owned);
    assert_eq!(new_stream(Device::CPU)?, a);
    // Arrays that are to be computed on a released stream are.
    let x = with_stream(b, || Array::ones(&[4], Dtype::Float32)?.add(Array::scalar(1.0f32)))?;
    release_stream(b);
    assert_eq!((x.stream(), x.to_vec::<f32>()?), (b, vec![2.0; 4]));
    Ok(())
}
