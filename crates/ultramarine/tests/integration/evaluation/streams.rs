//! Streams that come and go: they share threads.

use ultramarine::{
    Array, Device, Dtype, Result, Stream, async_eval, new_stream, synchronize, with_stream,
};
use ultramarine_test_support::own_process;

/// Has the stream's thread compute something.
fn use_stream(stream: Stream) -> Result<()> {
    let x = with_stream(stream, || Array::ones(&[100], Dtype::Float32)?.exp()?.sum(None, false))?;
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
