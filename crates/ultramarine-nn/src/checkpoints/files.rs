//! Files of whole arrays, written by several processes that each have parts of some arrays.
//!
//! Each array is gathered in the process that writes it, so files do not depend on the number of processes that wrote
//! them. An index, in Hugging Face's form, names the file of each array.

use super::agreement::agree;
use super::plan::{Plan, Sharding, agree_on_plans, even_parts};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};
use ultramarine::distributed::{Group, recv, send};
use ultramarine::io::{Arrays, Metadata, safetensors};
use ultramarine::{Array, Error, Result, concatenate, eval};

/// The suffix of an index's name.
pub(super) const INDEX: &str = ".safetensors.index.json";

/// The files that the processes of a group write together.
pub(super) struct FileSet<'a> {
    op: &'static str,
    folder: &'a Path,
    arrays: &'a Arrays,
    group: &'a Group,
    /// Unique for this save. Files of an earlier save stay until the index refers to the new ones.
    pub id: String,
    plans: Vec<Plan>,
    /// By rank, the files with the numbers of their plans.
    files: Vec<Vec<Vec<usize>>>,
    /// By rank, the names of the files.
    names: Vec<Vec<String>>,
}

impl<'a> FileSet<'a> {
    /// Compares the arrays of all processes, and plans the files.
    pub fn new(
        op: &'static str,
        (folder, stem): (&'a Path, &str),
        arrays: &'a Arrays,
        sharding: &Sharding<'_>,
        group: &'a Group,
        most: u64,
    ) -> Result<FileSet<'a>> {
        let prepare = || {
            fs::create_dir_all(folder).map_err(|e| io_error(op, folder, e))?;
            // A random number, from the random state of the standard library's maps.
            Ok(format!("{:08x}", RandomState::new().hash_one(0u8) as u32))
        };
        let (id, plans) = agree_on_plans(op, arrays, sharding, group, prepare)?;
        let files = distributed(&plans, group.size(), most);
        let count: usize = files.iter().map(Vec::len).sum();
        let mut number = 0;
        let mut name = || {
            number += 1;
            format!("{stem}-{id}-{number:05}-of-{count:05}.safetensors")
        };
        let names = files.iter().map(|own| own.iter().map(|_| name()).collect()).collect();
        Ok(FileSet { op, folder, arrays, group, id, plans, files, names })
    }

    /// Writes the files. Each process holds the whole arrays of only one file at a time.
    pub fn write(&self, metadata: &Metadata) -> Result<()> {
        let own = self.group.rank();
        let mut failure = None;
        for turn in 0..self.files.iter().map(Vec::len).max().unwrap_or(0) {
            let (mut sent, mut whole) = (Vec::new(), Arrays::new());
            for (writer, files) in self.files.iter().enumerate() {
                for plan in files.get(turn).into_iter().flatten() {
                    self.gather(&self.plans[*plan], writer, &mut whole, &mut sent)?;
                }
            }
            sent.extend(whole.values().cloned());
            eval(&sent)?;
            // After a failure, the other processes still wait for this process's parts, so continue to send them.
            if let (Some(name), None) = (self.names[own].get(turn), &failure) {
                failure = safetensors::save(self.folder.join(name), &whole, metadata).err();
            }
        }
        let outcome = agree(self.op, self.group, || failure.map_or(Ok(((), Value::Null)), Err));
        if outcome.is_err() {
            remove(self.folder, self.names[own].iter().cloned().collect());
        }
        outcome.map(drop)
    }

    /// In the process that writes an array, adds it to `whole`. In the other processes, adds the message with their
    /// part to `sent`.
    fn gather(
        &self,
        plan: &Plan,
        writer: usize,
        whole: &mut Arrays,
        sent: &mut Vec<Array>,
    ) -> Result<()> {
        let (x, rank) = (&self.arrays[&plan.name], self.group.rank());
        let Some((axis, segments)) = plan.axis.as_ref().filter(|_| self.group.size() > 1) else {
            if rank == writer {
                whole.insert(plan.name.clone(), x.clone());
            }
            return Ok(());
        };
        if rank != writer {
            if x.size() > 0 {
                sent.push(send(x, writer as i64, self.group)?);
            }
            return Ok(());
        }
        let part = |(source, shape): (usize, &Vec<usize>)| match () {
            () if source == rank => Ok(x.clone()),
            () if shape.contains(&0) => Array::zeros(shape, plan.dtype),
            () => recv(shape, plan.dtype, source as i64, self.group),
        };
        let parts = plan.parts.iter().enumerate().map(part).collect::<Result<Vec<Array>>>()?;
        whole.insert(plan.name.clone(), joined(&parts, *axis, segments)?);
        Ok(())
    }

    /// Content of the index as JSON.
    pub fn index(&self, metadata: &Metadata) -> Value {
        let mut places = Map::new();
        for (files, names) in self.files.iter().zip(&self.names) {
            for (plans, name) in files.iter().zip(names) {
                let each = plans.iter().map(|plan| self.plans[*plan].name.clone());
                places.extend(each.map(|array| (array, Value::from(name.as_str()))));
            }
        }
        let mut texts = Map::new();
        let total: u64 = self.plans.iter().map(|plan| plan.bytes).sum();
        texts.insert("total_size".to_owned(), Value::from(total));
        texts.extend(metadata.iter().map(|(k, v)| (k.clone(), Value::from(v.as_str()))));
        let mut index = Map::new();
        index.insert("metadata".to_owned(), texts.into());
        index.insert("weight_map".to_owned(), places.into());
        index.into()
    }
}

/// The arrays for each file of each rank, distributed evenly, in the order of names.
fn distributed(plans: &[Plan], size: usize, most: u64) -> Vec<Vec<Vec<usize>>> {
    let mut own: Vec<Vec<usize>> = vec![Vec::new(); size];
    let mut amounts = vec![0u64; size];
    let mut order: Vec<usize> = (0..plans.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(plans[*i].bytes));
    for i in order {
        let least = (0..size).min_by_key(|rank| amounts[*rank]).unwrap_or(0);
        own[least].push(i);
        amounts[least] += plans[i].bytes;
    }
    let mut files: Vec<Vec<Vec<usize>>> = Vec::with_capacity(size);
    for mut numbers in own {
        // Plans are sorted by name, so sorting their numbers restores that order.
        numbers.sort_unstable();
        let (mut packed, mut room): (Vec<Vec<usize>>, u64) = (Vec::new(), 0);
        for i in numbers {
            let bytes = plans[i].bytes;
            match packed.last_mut().filter(|_| bytes <= room) {
                Some(last) => last.push(i),
                None => {
                    packed.push(vec![i]);
                    room = most;
                }
            }
            room = room.saturating_sub(bytes);
        }
        files.push(packed);
    }
    if files.iter().all(Vec::is_empty) {
        // Write one empty file, because an index without arrays would name no file.
        files[0].push(Vec::new());
    }
    files
}

/// Joins the parts of all ranks to the whole array.
fn joined(parts: &[Array], axis: usize, segments: &[usize]) -> Result<Array> {
    if segments.len() <= 1 {
        return concatenate(parts, axis as isize);
    }
    let mut starts = vec![0; parts.len()];
    let mut pieces = Vec::new();
    for length in segments {
        for (rank, own) in even_parts(*length, parts.len()).into_iter().enumerate() {
            let range = starts[rank]..starts[rank] + own;
            starts[rank] = range.end;
            pieces.push(ultramarine::io::part(&parts[rank], axis, &[range])?);
        }
    }
    concatenate(&pieces, axis as isize)
}

/// Files in the index's folder that an index names; empty if there is no such index.
pub(super) fn referenced(index: &Path) -> BTreeSet<String> {
    let read =
        |path: &Path| -> Option<Value> { serde_json::from_slice(&fs::read(path).ok()?).ok() };
    let files = |index: &Value| -> BTreeSet<String> {
        let places = index["weight_map"].as_object().into_iter().flatten();
        places.filter_map(|(_, file)| file.as_str().map(str::to_owned)).collect()
    };
    let Some(content) = read(index) else { return BTreeSet::new() };
    let mut names = files(&content);
    if let Some(other) = content["metadata"]["optimizer"].as_str()
        && let Some(name) = Path::new(other).file_name()
    {
        names.insert(other.to_owned());
        names.extend(
            read(&index.with_file_name(name)).map(|other| files(&other)).into_iter().flatten(),
        );
    }
    names
}

/// Replaces an index atomically.
pub(super) fn write_index(op: &str, path: &Path, content: &Value) -> Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    let text = serde_json::to_vec_pretty(content)
        .map_err(|e| Error::runtime(op, format!("{}: {e}", path.display())))?;
    let write = || {
        let mut file = File::create(&unfinished)?;
        file.write_all(&text)?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    };
    write().map_err(|e| io_error(op, path, e))
}

fn io_error(op: &str, path: &Path, error: std::io::Error) -> Error {
    Error::io(format!("[{op}] Failed to write {}", path.display()), error)
}

/// Removes files that a [`FileSet`] made, and no other files.
pub(super) fn remove(folder: &Path, names: BTreeSet<String>) {
    for name in names.iter().filter(|name| is_ours(name)) {
        // A file that cannot be removed only wastes space.
        let _ = fs::remove_file(folder.join(name));
    }
}

/// Returns true for `STEM-01234567-00001-of-00002.safetensors` and `STEM-01234567.safetensors.index.json`.
fn is_ours(name: &str) -> bool {
    let is_hex = |text: &str| {
        text.len() == 8 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let is_number = |text: &str| text.len() == 5 && text.bytes().all(|b| b.is_ascii_digit());
    let id = match name.strip_suffix(INDEX) {
        Some(rest) => Some(rest),
        None => name.strip_suffix(".safetensors").and_then(|rest| {
            let (rest, count) = rest.rsplit_once("-of-")?;
            let (rest, number) = rest.rsplit_once('-')?;
            (is_number(count) && is_number(number)).then_some(rest)
        }),
    };
    let id = id.and_then(|id| id.rsplit_once('-'));
    !name.contains(['/', '\\']) && id.is_some_and(|(stem, id)| !stem.is_empty() && is_hex(id))
}

#[cfg(test)]
mod tests {
    use super::is_ours;

    #[test]
    fn only_own_files_are_removed() {
        for name in [
            "model-0123abcd-00001-of-00002.safetensors",
            "optimizer-0123abcd.safetensors.index.json",
        ] {
            assert!(is_ours(name), "{name}");
        }
        for name in [
            "model.safetensors",
            "model-00001-of-00002.safetensors",
            "model-0123abcz-00001-of-00002.safetensors",
            "-0123abcd-00001-of-00002.safetensors",
            "../model-0123abcd-00001-of-00002.safetensors",
            "model.safetensors.index.json",
            "notes.txt",
        ] {
            assert!(!is_ours(name), "{name}");
        }
    }
}
