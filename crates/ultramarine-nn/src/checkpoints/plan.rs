//! Splits of arrays over processes, and the properties on which processes agree before they save an array together.

use super::agreement::agree;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use ultramarine::distributed::Group;
use ultramarine::io::{self, Arrays};
use ultramarine::{Array, Dtype, Error, Result};

/// The axis along which an array is split over processes.
///
/// An axis can have segments, such as the query, key and value in one matrix; each segment is split separately. The
/// parts are even. If a length is not a multiple of the number of processes, the first parts are longer by 1.
///
/// ```
/// use ultramarine_nn::checkpoints::Split;
/// let rows = Split::along(0);
/// let last_axis_in_three = Split::along(-1).segments(3);
/// let of_other_lengths = Split::along(0).segments_at([512, 640]);
/// # let _ = (rows, last_axis_in_three, of_other_lengths);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    axis: isize,
    segments: Segments,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segments {
    Equal(usize),
    /// The starts of all segments after the first.
    At(Vec<usize>),
}

/// A function from an array's name and the array to its split; `None`: all processes have the whole array.
pub(super) type Sharding<'a> = dyn Fn(&str, &Array) -> Option<Split> + 'a;

impl Split {
    /// Splits along an axis; a negative axis counts from the end.
    pub fn along(axis: isize) -> Split {
        Split { axis, segments: Segments::Equal(1) }
    }

    /// Divides the axis into `count` equal segments.
    pub fn segments(self, count: usize) -> Split {
        Split { segments: Segments::Equal(count), ..self }
    }

    /// Lets the segments after the first begin at these indices of the whole array.
    pub fn segments_at(self, starts: impl Into<Vec<usize>>) -> Split {
        Split { segments: Segments::At(starts.into()), ..self }
    }

    /// The axis, counted from the start.
    fn axis_of(&self, op: &str, name: &str, shape: &[usize]) -> Result<usize> {
        let rank = shape.len() as isize;
        let axis = if self.axis < 0 { self.axis + rank } else { self.axis };
        match (0..rank).contains(&axis) {
            true => Ok(axis as usize),
            false => Err(Error::value(
                op,
                format!(
                    "{name}: an array of the shape {shape:?} has no axis {}. Name the axis that is split, or None.",
                    self.axis
                ),
            )),
        }
    }

    /// Lengths of the segments of the axis.
    fn lengths(&self, op: &str, name: &str, length: usize) -> Result<Vec<usize>> {
        match &self.segments {
            Segments::Equal(0) => Err(Error::value(
                op,
                format!("{name}: an axis has no 0 segments. Give 1 for an axis without segments."),
            )),
            Segments::Equal(count) if !length.is_multiple_of(*count) => Err(Error::value(
                op,
                format!(
                    "{name}: an axis of length {length} has no {count} equal segments. Give a divisor of its length."
                ),
            )),
            Segments::Equal(count) => Ok(vec![length / count; *count]),
            Segments::At(starts) => {
                let ends = starts.iter().copied().chain([length]);
                let begins = [0].into_iter().chain(starts.iter().copied());
                let lengths: Option<Vec<usize>> =
                    ends.zip(begins).map(|(end, begin)| end.checked_sub(begin)).collect();
                lengths.ok_or_else(|| {
                    Error::value(
                        op,
                        format!(
                            "{name}: segments that begin at {starts:?} do not fit an axis of length {length}. Give indices in \
                             order."
                        ),
                    )
                })
            }
        }
    }

    fn described(&self, axis: usize) -> Value {
        match &self.segments {
            Segments::Equal(count) => json!([axis, count]),
            Segments::At(starts) => json!([axis, starts]),
        }
    }

    /// A process's part of a whole array. If the array comes from a file, only the part's bytes are read.
    pub(super) fn part_of(&self, op: &str, name: &str, x: &Array, group: &Group) -> Result<Array> {
        let axis = self.axis_of(op, name, x.shape())?;
        let (size, rank) = (group.size(), group.rank());
        let mut start = 0;
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for length in self.lengths(op, name, x.shape()[axis])? {
            let parts = even_parts(length, size);
            let first = start + parts[..rank].iter().sum::<usize>();
            ranges.push(first..first + parts[rank]);
            start += length;
        }
        if size == 1 { Ok(x.clone()) } else { io::part(x, axis, &ranges) }
    }
}

/// Lengths of the parts. If the length is not a multiple, the first parts are longer by 1.
pub(super) fn even_parts(length: usize, size: usize) -> Vec<usize> {
    (0..size).map(|rank| length / size + usize::from(rank < length % size)).collect()
}

/// Properties of an array to be saved, which all processes know.
pub(super) struct Plan {
    pub name: String,
    pub dtype: Dtype,
    /// The split axis, with the lengths of its segments; `None`: each process has the whole array.
    pub axis: Option<(usize, Vec<usize>)>,
    /// Shapes of the parts, by rank.
    pub parts: Vec<Vec<usize>>,
    /// Bytes of the whole array.
    pub bytes: u64,
}

/// Plans of all arrays in the order of names, with the id that rank 0 chose for this save.
///
/// # Errors
/// [`Error::Type`] for a storage dtype, [`Error::Value`] if the arrays of two processes do not fit; errors of other
/// processes.
pub(super) fn agree_on_plans(
    op: &str,
    arrays: &Arrays,
    sharding: &Sharding<'_>,
    group: &Group,
    prepare: impl FnOnce() -> Result<String>,
) -> Result<(String, Vec<Plan>)> {
    let describe = || {
        let mut described = serde_json::Map::new();
        let mut splits: BTreeMap<&str, Split> = BTreeMap::new();
        for (name, x) in arrays {
            if x.dtype().is_storage() {
                let text = format!(
                    "{name} is of the dtype {}, which is not communicated. Save its view as uint8.",
                    x.dtype()
                );
                return Err(Error::type_(op, text));
            }
            let split = sharding(name, x);
            let axis =
                split.as_ref().map(|split| split.axis_of(op, name, x.shape())).transpose()?;
            let axis = split.as_ref().zip(axis).map(|(split, axis)| split.described(axis));
            let entry = json!([x.dtype().to_string(), x.shape(), axis]);
            described.insert(name.clone(), entry);
            splits.extend(split.map(|split| (name.as_str(), split)));
        }
        let id = prepare()?;
        Ok((splits, json!({ "id": id, "arrays": described })))
    };
    let (splits, everyone) = agree(op, group, describe)?;
    let id = everyone[0]["id"].as_str().unwrap_or_default().to_owned();
    let described: Vec<_> = everyone.iter().map(|said| &said["arrays"]).collect();
    check_names(op, &described)?;
    let mut plans = Vec::new();
    for (name, x) in arrays {
        let split = splits.get(name.as_str());
        plans.push(plan(op, (name.as_str(), x), split, &described)?);
    }
    Ok((id, plans))
}

fn check_names(op: &str, described: &[&Value]) -> Result<()> {
    let names = |said: &Value| -> Vec<String> {
        said.as_object().map(|all| all.keys().cloned().collect()).unwrap_or_default()
    };
    let first = names(described[0]);
    for (rank, other) in described.iter().enumerate() {
        let other = names(other);
        let more = other.iter().find(|name| !first.contains(name)).map(|name| (name, rank, 0));
        let fewer = first.iter().find(|name| !other.contains(name)).map(|name| (name, 0, rank));
        if let Some((name, has, lacks)) = more.or(fewer) {
            return Err(Error::value(
                op,
                format!(
                    "rank {has} has an array {name}, and rank {lacks} has none. All processes save the same names."
                ),
            ));
        }
    }
    Ok(())
}

fn plan(
    op: &str,
    (name, x): (&str, &Array),
    split: Option<&Split>,
    described: &[&Value],
) -> Result<Plan> {
    let shape_of = |said: &Value| -> Vec<usize> {
        let lengths = said[name][1].as_array().into_iter().flatten();
        lengths.filter_map(|n| n.as_u64().map(|n| n as usize)).collect()
    };
    let axis = split.map(|split| split.axis_of(op, name, x.shape())).transpose()?;
    // The shape without the length of the split axis.
    let others = |shape: &[usize]| -> Vec<usize> {
        shape.iter().enumerate().filter(|(i, _)| Some(*i) != axis).map(|(_, n)| *n).collect()
    };
    let parts: Vec<Vec<usize>> = described.iter().map(|said| shape_of(said)).collect();
    for (rank, said) in described.iter().enumerate() {
        let (first, own) = (&described[0][name], &said[name]);
        let same = first[0] == own[0] && first[2] == own[2];
        if !same || others(&parts[rank]) != others(&parts[0]) {
            return Err(Error::value(
                op,
                format!(
                    "parts of {name} do not fit: rank 0 has {first}, and rank {rank} {own} (dtype, shape, axis and segments). Save \
                     arrays of one dtype, whose shapes differ along the axis that is split."
                ),
            ));
        }
    }
    let mut whole = x.shape().to_vec();
    let mut segments = Vec::new();
    if let (Some(split), Some(axis)) = (split, axis)
        && parts.len() > 1
    {
        let lengths: Vec<usize> = parts.iter().map(|part| part[axis]).collect();
        whole[axis] = lengths.iter().sum();
        segments = split.lengths(op, name, whole[axis])?;
        let wanted: Vec<usize> = (0..lengths.len())
            .map(|rank| segments.iter().map(|n| even_parts(*n, lengths.len())[rank]).sum())
            .collect();
        if segments.len() > 1 && lengths != wanted {
            return Err(Error::value(
                op,
                format!(
                    "parts of {name} have the lengths {lengths:?}, and segments of {segments:?} have parts of {wanted:?}. Split \
                     each segment evenly."
                ),
            ));
        }
    }
    let bytes = whole.iter().map(|n| *n as u64).product::<u64>() * x.dtype().size() as u64;
    let axis = axis.map(|axis| (axis, segments));
    Ok(Plan { name: name.to_owned(), dtype: x.dtype(), axis, parts, bytes })
}

#[cfg(test)]
mod tests {
    use super::{Split, even_parts};

    #[test]
    fn parts_are_even() {
        assert_eq!(even_parts(7, 3), [3, 2, 2]);
        assert_eq!(even_parts(1, 3), [1, 0, 0]);
        assert_eq!(even_parts(0, 2), [0, 0]);
    }

    #[test]
    fn segments_of_an_axis() {
        let lengths = |split: &Split, n| split.lengths("save", "w", n).ok();
        assert_eq!(lengths(&Split::along(0), 5), Some(vec![5]));
        assert_eq!(lengths(&Split::along(0).segments(3), 6), Some(vec![2, 2, 2]));
        assert_eq!(lengths(&Split::along(0).segments(3), 5), None);
        assert_eq!(lengths(&Split::along(0).segments(0), 5), None);
        assert_eq!(lengths(&Split::along(0).segments_at([1, 3]), 5), Some(vec![1, 2, 2]));
        assert_eq!(lengths(&Split::along(0).segments_at([3, 1]), 5), None);
        assert_eq!(lengths(&Split::along(0).segments_at([6]), 5), None);
        assert_eq!(Split::along(-1).axis_of("save", "w", &[2, 3]).ok(), Some(1));
        assert!(Split::along(2).axis_of("save", "w", &[2, 3]).is_err());
        assert!(Split::along(0).axis_of("save", "w", &[]).is_err());
    }
}
