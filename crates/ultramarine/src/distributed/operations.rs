//! The functions.

use super::collective::{appended, appended_at, shape_of};
use super::group::Group;
use super::transport::{Kind, Reduction};
use crate::device::{Device, DeviceType};
use crate::error::{Error, Result, bail};
use crate::shape::{self, Shape};
use crate::{array::Array, dtype::Dtype, stream};

/// Checks that arrays of a dtype are communicated.
fn check(kind: Kind, dtype: Dtype) -> Result<()> {
    if dtype.is_storage() {
        return Err(Error::type_(
            kind.name(),
            format!("{dtype} cannot be transferred. View the array as uint8, or convert it."),
        ));
    }
    Ok(())
}

/// The result where `x` is at home, or where the scope's stream is.
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

/// An operation of an array in a group of several processes.
pub(super) fn called(group: &Group, kind: Kind, x: &Array) -> Result<Array> {
    let shape = shape_of(kind, x.shape(), group.size())?;
    let (result, token) = appended(group, kind, Some(x), Some((shape, x.dtype())))?;
    match result {
        // The token is evaluated with the result, so that it does not keep the result's memory.
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

/// The sum of the arrays of all processes, element by element: in all processes, an array like `x`, which has the same
/// shape and dtype in all. Sums of bools are whether one is true; integers wrap around; halves are summed in float32.
///
/// Reverse mode passes the cotangent on, which is the same in all processes. Forward mode sums the tangents.
///
/// # Errors
/// [`Error::Type`] for a storage dtype. Evaluation is [`Error::Runtime`] if a process fails, calls something else
/// (`ULTRAMARINE_DISTRIBUTED_DEBUG=1`) or does not answer in time.
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

/// The maximum of the arrays of all processes, element by element, as [`all_sum`]. NaN where one is NaN; complex numbers
/// are ordered by their real parts, then by their imaginary parts. Derivatives go to the processes that have the maximum.
///
/// # Errors
/// As [`all_sum`].
pub fn all_max(x: &Array, group: &Group) -> Result<Array> {
    collective(Kind::AllReduce(Reduction::Max), x, group)
}

/// The minimum of the arrays of all processes, as [`all_max`].
///
/// # Errors
/// As [`all_sum`].
pub fn all_min(x: &Array, group: &Group) -> Result<Array> {
    collective(Kind::AllReduce(Reduction::Min), x, group)
}

/// The arrays of all processes behind one another along the first axis, in the order of ranks. Numbers give an array of one
/// axis; a group of one process returns its operand. Shape and dtype of `x` are the same in all processes.
///
/// # Errors
/// As [`all_sum`]; [`Error::Value`] for a result that is too large.
pub fn all_gather(x: &Array, group: &Group) -> Result<Array> {
    collective(Kind::AllGather, x, group)
}

/// Part `rank` of the sum of the arrays of all processes, whose first axis is cut into a part for each.
///
/// # Errors
/// As [`all_sum`]; [`Error::Value`] if the first axis cannot be cut into equal parts.
pub fn sum_scatter(x: &Array, group: &Group) -> Result<Array> {
    collective(Kind::SumScatter, x, group)
}

/// Sends an array to the process of rank `to`, which calls [`recv`] with its shape and dtype. Returns `x`, whose evaluation
/// sends.
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

/// Receives an array of this shape and dtype from the process of rank `from`, which calls [`send`].
///
/// # Errors
/// As [`all_sum`]; [`Error::Value`] if there is no such process.
pub fn recv(shape: &[usize], dtype: Dtype, from: i64, group: &Group) -> Result<Array> {
    at_home(None, received(None, shape, dtype, from, group)?)
}

/// An array from another process, for the device `home`.
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

/// As [`recv`], of an array with the shape and dtype of `x`.
///
/// # Errors
/// As [`recv`].
pub fn recv_like(x: &Array, from: i64, group: &Group) -> Result<Array> {
    at_home(Some(x), received(x.node().home(), x.shape(), x.dtype(), from, group)?)
}

/// The rank of another process.
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
