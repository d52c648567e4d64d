//! The public functions of collective operations and messages.

use super::collective::{appended, appended_at, shape_of};
use super::group::Group;
use super::transport::{Kind, Reduction};
use crate::device::{Device, DeviceType};
use crate::error::{Error, Result, bail};
use crate::shape::{self, Shape};
use crate::{array::Array, dtype::Dtype, stream};

/// Checks that arrays of a dtype can be communicated.
fn check(kind: Kind, dtype: Dtype) -> Result<()> {
    if dtype.is_storage() {
        return Err(Error::type_(
            kind.name(),
            format!("{dtype} cannot be transferred. View the array as uint8, or convert it."),
        ));
    }
    Ok(())
}

/// Brings the result to the scope's device, or otherwise to the home of `x`.
fn at_home(x: Option<&Array>, result: Array) -> Result<Array> {
    let scoped = stream::scoped().map(|stream| stream.device);
    let home = scoped.or_else(|| x.and_then(|x| x.node().home()));
    match home {
        Some(device) if device.kind == DeviceType::Gpu && device != result.device() => {
            result.copy_to(device)
        }
        _ => Ok(result),
    }
}

/// Calls an operation on an array in a group of several processes.
pub(super) fn called(group: &Group, kind: Kind, x: &Array) -> Result<Array> {
    let shape = shape_of(kind, x.shape(), group.size())?;
    let (result, token) = appended(group, kind, Some(x), Some((shape, x.dtype())))?;
    match result {
        // Evaluate the token together with the result, because otherwise it would keep the result's
        // memory.
        Some(result) => at_home(Some(x), result.after(&[token])),
        None => Ok(x.after(&[token])),
    }
}

fn collective(kind: Kind, x: &Array, group: &Group) -> Result<Array> {
    check(kind, x.dtype())?;
    if group.size() > 1 {
        return called(group, kind, x);
    }
    Ok(x.clone())
}

/// Returns the elementwise sum of the arrays of all processes, in all processes. Shape and dtype of
/// `x` must be the same in all processes. The sum of bools is their logical or. Integers wrap
/// around. Halves are summed in float32.
///
/// Reverse mode passes the cotangent on, which is the same in all processes. Forward mode sums the
/// tangents.
///
/// # Errors
/// [`Error::Type`] for a storage dtype. The evaluation fails with [`Error::Runtime`] if a process
/// fails, does not answer in time, or calls another operation (detected if
/// `ULTRAMARINE_DISTRIBUTED_DEBUG=1`).
///
/// ```
/// use ultramarine::{Array, distributed};
/// let group = distributed::init(false, "any")?;
/// let x = Array::from_slice(&[1.0f32, 2.0], &[2])?;
/// // One process here.
/// assert_eq!(distributed::all_sum(&x, &group)?.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub fn all_sum(x: &Array, group: &Group) -> Result<Array> {
    collective(Kind::AllReduce(Reduction::Sum), x, group)
}

/// Returns the elementwise maximum of the arrays of all processes, with the same conditions as
/// [`all_sum`]. It is NaN where an element is NaN. Complex numbers are ordered by their real parts,
/// then by their imaginary parts. Derivatives go to the processes that have the maximum.
///
/// # Errors
/// As [`all_sum`].
pub fn all_max(x: &Array, group: &Group) -> Result<Array> {
    collective(Kind::AllReduce(Reduction::Max), x, group)
}

/// Returns the elementwise minimum of the arrays of all processes, with the same conditions as
/// [`all_max`].
///
/// # Errors
/// As [`all_sum`].
pub fn all_min(x: &Array, group: &Group) -> Result<Array> {
    collective(Kind::AllReduce(Reduction::Min), x, group)
}

/// Concatenates the arrays of all processes along the first axis, in the order of ranks. Scalars
/// give an array with one axis. A group of one process returns its operand. Shape and dtype of `x`
/// must be the same in all processes.
///
/// # Errors
/// As [`all_sum`]; [`Error::Value`] if the result is too large.
pub fn all_gather(x: &Array, group: &Group) -> Result<Array> {
    collective(Kind::AllGather, x, group)
}

/// Returns one part of the sum of the arrays of all processes. The first axis of the sum is cut
/// into equal parts, one for each process, and the process with rank `rank` gets part `rank`.
///
/// # Errors
/// As [`all_sum`]; [`Error::Value`] if the first axis cannot be cut into equal parts.
pub fn sum_scatter(x: &Array, group: &Group) -> Result<Array> {
    collective(Kind::SumScatter, x, group)
}

/// Sends an array to the process with rank `to`, which has to call [`recv`] with the array's shape
/// and dtype. Returns `x`; its evaluation sends the array.
///
/// # Errors
/// As [`all_sum`]; [`Error::Value`] if there is no such process.
pub fn send(x: &Array, to: i64, group: &Group) -> Result<Array> {
    let to = peer("send", "to send to", "destination", to, group)?;
    let kind = Kind::Send { to };
    check(kind, x.dtype())?;
    let (_, token) = appended(group, kind, Some(x), None)?;
    Ok(x.after(&[token]))
}

/// Receives an array of this shape and dtype from the process with rank `from`, which has to call
/// [`send`].
///
/// # Errors
/// As [`all_sum`]; [`Error::Value`] if there is no such process.
pub fn recv(shape: &[usize], dtype: Dtype, from: i64, group: &Group) -> Result<Array> {
    at_home(None, received(None, shape, dtype, from, group)?)
}

/// Makes an array that is received from another process, for the device `home`.
fn received(
    home: Option<Device>,
    shape: &[usize],
    dtype: Dtype,
    from: i64,
    group: &Group,
) -> Result<Array> {
    let from = peer("recv", "to receive from", "source", from, group)?;
    let kind = Kind::Receive { from };
    check(kind, dtype)?;
    let shape = Shape::from_slice(shape);
    shape::check("recv", &shape)?;
    let (result, token) = appended_at(home, group, kind, None, Some((shape, dtype)))?;
    let result = result.ok_or_else(|| Error::runtime("recv", "no result"))?;
    Ok(result.after(&[token]))
}

/// Receives like [`recv`] an array with the shape and dtype of `x`.
///
/// # Errors
/// As [`recv`].
pub fn recv_like(x: &Array, from: i64, group: &Group) -> Result<Array> {
    at_home(Some(x), received(x.node().home(), x.shape(), x.dtype(), from, group)?)
}

/// Checks the rank of another process.
fn peer(function: &str, what: &str, role: &str, rank: i64, group: &Group) -> Result<usize> {
    let size = group.size();
    if size == 1 {
        bail!(
            function,
            "No process {rank} {what}: the group has 1 process. Start several by python -m ultramarine.launch."
        );
    }
    match usize::try_from(rank) {
        Ok(other) if other == group.rank() => {
            bail!(function, "Rank {rank} is the calling process itself. Choose another one.")
        }
        Ok(other) if other < size => Ok(other),
        _ => bail!(
            function,
            "Invalid {role}={rank} for a group of size {size}. Use a rank from 0 to {}.",
            size - 1
        ),
    }
}
