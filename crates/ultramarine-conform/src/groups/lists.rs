//! Lists of commands in one submit. They are checked also for backends that leave streams to the
//! host.

use super::streams::{Mover, N};
use crate::device::{Buffer, Device};
use crate::dtype::{DType, Num};
use crate::record::{PASSED, Recorder, Result, skip};
use crate::run::{Buffers, tensor};
use ultramarine_abi::{Command, Tensor};

const NO_MOVER: &str = "no native fill and copy of float32";

/// Checks of the group of streams.
pub fn run(recorder: &mut Recorder, device: &Device<'_>) {
    recorder.check("streams/lists run in order", || chain(device));
    recorder.check("streams/lists end at the command that fails", || failing(device));
}

/// The commands of a list depend on each other through memory that is overwritten many times.
fn chain(device: &Device<'_>) -> Result {
    let Some(mover) = Mover::new(device, N)? else { return skip(NO_MOVER) };
    let mut buffers = Buffers::new(device);
    let all: Vec<Buffer> = (0..4).map(|_| mover.buffer(&mut buffers)).collect::<Result<_, _>>()?;
    let stream = device.stream()?;
    let places: Vec<[Tensor; 1]> =
        all.iter().map(|buffer| [tensor(device, &mover.shape, *buffer)]).collect();
    let scalars: Vec<[[u64; 2]; 1]> =
        (0..16).map(|i| [DType::F32.scalar(Num::Real(f64::from(i)))]).collect();
    let mut commands = Vec::new();
    for value in &scalars {
        commands.push(mover.filling(&places[0], value));
        commands.extend(places.windows(2).map(|pair| mover.copying(&pair[0], &pair[1])));
    }
    device.submit(stream, &commands)?;
    device.synchronize(stream)?;
    for (i, buffer) in all.iter().enumerate() {
        let named = |e| format!("after {} commands in one list, tensor {i}: {e}", commands.len());
        mover.expect(stream, *buffer, 15.0).map_err(named)?;
    }
    device.destroy_stream(stream);
    PASSED
}

/// A list ends at a command that fails: the commands before it run, those after it do not, and the
/// error names the failed one.
fn failing(device: &Device<'_>) -> Result {
    let Some(mover) = Mover::new(device, N)? else { return skip(NO_MOVER) };
    let mut buffers = Buffers::new(device);
    let [a, b] = [mover.buffer(&mut buffers)?, mover.buffer(&mut buffers)?];
    let stream = device.stream()?;
    let [from, to] = [a, b].map(|buffer| [tensor(device, &mover.shape, buffer)]);
    let values = [1.0, 2.0, 3.0].map(|x| [DType::F32.scalar(Num::Real(x))]);
    // The command has all its tensors, for a backend that does not check their number.
    let wrong = Command { n_inputs: 0, ..mover.copying(&from, &to) };
    for at in 0..3u32 {
        let mut commands = vec![
            mover.filling(&from, &values[0]),
            mover.copying(&from, &to),
            mover.filling(&from, &values[1]),
        ];
        commands.truncate(at as usize);
        commands.extend([wrong, mover.filling(&to, &values[2]), mover.filling(&from, &values[2])]);
        mover.fill(stream, a, 0.0)?;
        mover.fill(stream, b, 0.0)?;
        let ended = device.submit(stream, &commands);
        // Wait even after a failure, because the commands before the failed one may still be
        // running.
        device.synchronize(stream)?;
        let Err(failure) = ended else {
            device.destroy_stream(stream);
            return skip("a command with too few inputs for its plan is not refused");
        };
        let n = commands.len();
        match failure.command {
            Some(index) if index == at => {}
            Some(index) => {
                return Err(format!(
                    "command {at} of {n} fails, the error says {index}: {failure}"
                ));
            }
            None => {
                return Err(format!(
                    "command {at} of {n} fails, the error does not say so: {failure}"
                ));
            }
        }
        let expected = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]][at as usize];
        for (buffer, value) in [a, b].into_iter().zip(expected) {
            let ended = |e| format!("after command {at} of {n} failed: {e}");
            mover.expect(stream, buffer, value).map_err(ended)?;
        }
    }
    device.destroy_stream(stream);
    PASSED
}
