//! Agreement of the processes of a group: a step that all processes run. If it fails in one process, it is an error in
//! all of them.

use serde_json::{Value, json};
use ultramarine::distributed::{Group, all_gather};
use ultramarine::{Array, Error, Result};

/// Runs a step in all processes, and exchanges the value that each step reports. Returns this process's result, and the
/// reports by rank.
///
/// # Errors
/// The step's own error; [`Error::Runtime`] if it failed in another process.
pub(super) fn agree<T>(
    op: &str,
    group: &Group,
    step: impl FnOnce() -> Result<(T, Value)>,
) -> Result<(T, Vec<Value>)> {
    let (own, said) = match step() {
        Ok((own, value)) => (Ok(own), json!({ "value": value })),
        Err(error) => {
            let text = error.to_string();
            (Err(error), json!({ "error": text }))
        }
    };
    let everyone = gather(said.to_string().as_bytes(), group);
    // This process's own failure is more specific than that of the exchange.
    let (own, everyone) = (own?, everyone?);
    let mut values = Vec::with_capacity(everyone.len());
    for (rank, text) in everyone.iter().enumerate() {
        let said: Value = serde_json::from_slice(text).map_err(|e| {
            Error::runtime(op, format!("rank {rank} sent no JSON: {e}. All ranks call {op}."))
        })?;
        if let Some(error) = said.get("error") {
            let text = error.as_str().unwrap_or_default();
            return Err(Error::runtime(op, format!("rank {rank} failed: {text}")));
        }
        values.push(said.get("value").cloned().unwrap_or_default());
    }
    Ok((own, values))
}

/// Gathers bytes of all processes, by rank.
fn gather(text: &[u8], group: &Group) -> Result<Vec<Vec<u8>>> {
    if group.size() == 1 {
        return Ok(vec![text.to_vec()]);
    }
    let lengths = all_gather(&Array::from_slice(&[text.len() as i64], &[1])?, group)?;
    let lengths = lengths.to_vec::<i64>()?;
    let longest = lengths.iter().copied().max().unwrap_or_default() as usize;
    let mut row = text.to_vec();
    row.resize(longest, b' ');
    let rows = all_gather(&Array::from_slice(&row, &[1, longest])?, group)?.to_vec::<u8>()?;
    let rows = rows.chunks(longest.max(1)).zip(lengths);
    Ok(rows.map(|(row, length)| row[..(length as usize).min(row.len())].to_vec()).collect())
}
