//! Checkpoints that any number of processes can write and read, in the same format as Python's
//! `ultramarine.nn.checkpoints`.
//!
//! The files hold whole arrays. To write one, parts are gathered in the process that writes the file. To read, each
//! process reads only the bytes of its part. Programs of one process can therefore read the files too, with
//! [`ultramarine::io::load`] on the index or [`Module::load_weights`].
//!
//! ```
//! use ultramarine::{Result, distributed, random};
//! use ultramarine_nn::checkpoints::{Checkpoints, Split};
//! use ultramarine_nn::optimizers::{AdamW, Optimizer};
//! use ultramarine_nn::{Linear, Module};
//!
//! # let folder = std::env::temp_dir().join(format!("ultramarine-checkpoints-{}", std::process::id()));
//! // All processes call this. Here there is one, which has all of each array.
//! let group = distributed::init(false, "any")?;
//! random::seed(0)?;
//! let (mut model, mut optimizer) = (Linear::new(3, 2)?, AdamW::new(0.1));
//! optimizer.init(&model.parameters())?;
//!
//! let files = Checkpoints::new(&group).split_by(|name, _| (name == "weight").then(|| Split::along(0)));
//! files.save(&folder, &model, Some(&optimizer), &[("step".into(), "1".into())].into())?;
//! let metadata = files.load(&folder, &mut model, Some(&mut optimizer))?;
//! assert_eq!(metadata["step"], "1");
//! # std::fs::remove_dir_all(&folder).ok();
//! # Ok::<(), ultramarine::Error>(())
//! ```

mod agreement;
mod files;
mod plan;

use crate::Parameters;
use crate::layers::{base::Module, weights};
use crate::optimizers::Optimizer;
use agreement::agree;
use files::{FileSet, INDEX, referenced, remove, write_index};
use plan::Sharding;
pub use plan::Split;
use serde_json::Value;
use std::fmt;
use std::path::Path;
use ultramarine::distributed::Group;
use ultramarine::io::{self, Arrays, Loaded, Metadata};
use ultramarine::{Array, Error, Result, eval};

/// Largest number of bytes of a file, the same as Hugging Face's.
const MOST: u64 = 5 << 30;

/// Keys of an index's metadata that this module writes.
const OPTIMIZER: &str = "optimizer";
const TOTAL: &str = "total_size";

/// Writes and reads files of arrays that are split over the processes of a group. See the [module](self).
pub struct Checkpoints<'a> {
    group: &'a Group,
    sharding: Box<Sharding<'a>>,
    most: u64,
}

impl fmt::Debug for Checkpoints<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoints").field("group", self.group).finish_non_exhaustive()
    }
}

impl<'a> Checkpoints<'a> {
    /// Makes checkpoints for a group of processes. Unless [`Checkpoints::split_by`] says otherwise, each process has
    /// all arrays whole.
    pub fn new(group: &'a Group) -> Self {
        Checkpoints { group, sharding: Box::new(|_, _| None), most: MOST }
    }

    /// Splits arrays as a function of their names returns. The function also gets an array: the process's part when
    /// saving, and the whole array when reading. Entries of an optimizer's state are split as their parameters are.
    pub fn split_by(self, sharding: impl Fn(&str, &Array) -> Option<Split> + 'a) -> Self {
        Checkpoints { sharding: Box::new(sharding), ..self }
    }

    /// Sets the largest number of bytes of a file; only a single larger array may exceed it. 5 GiB by default.
    pub fn max_file_bytes(self, most: u64) -> Self {
        Checkpoints { most, ..self }
    }

    /// Writes arrays to files beside an index, whose path ends in `.safetensors.index.json`. All processes of the group
    /// have to call it and have access to the folder. The index is replaced last and atomically, so after a failure the
    /// index of an earlier save and its files still exist. The metadata is that of rank 0.
    ///
    /// # Errors
    /// [`Error::Value`] for a path with another suffix, and if the arrays of two processes do not fit; [`Error::Type`]
    /// for a storage dtype; [`Error::Io`] if files cannot be written; [`Error::Runtime`] if another process failed.
    pub fn save_arrays(
        &self,
        path: impl AsRef<Path>,
        arrays: &Arrays,
        metadata: &Metadata,
    ) -> Result<()> {
        let (op, path) = ("save_arrays", path.as_ref());
        let stem = path.file_name().and_then(|name| name.to_str()?.strip_suffix(INDEX));
        let Some(stem) = stem.filter(|stem| !stem.is_empty()) else {
            let text =
                format!("{}: the path is no index's. End it in NAME{INDEX}.", path.display());
            return Err(Error::value(op, text));
        };
        let folder = parent(path);
        let files =
            FileSet::new(op, (folder, stem), arrays, &*self.sharding, self.group, self.most)?;
        files.write(&with_format(metadata))?;
        self.commit(op, || {
            let before = referenced(path);
            write_index(op, path, &files.index(metadata))?;
            remove(folder, before);
            Ok(())
        })
    }

    /// Reads a process's parts of the arrays of an index, or of a file of named arrays, with its metadata. The
    /// processes do not communicate. Arrays are read when they are evaluated. For a part only its own bytes are read,
    /// unless they are in pieces of less than 4 KiB.
    ///
    /// # Errors
    /// [`Error::Value`] if an array has no such axis or segments; errors of [`ultramarine::io::load`].
    pub fn load_arrays(&self, path: impl AsRef<Path>) -> Result<(Arrays, Metadata)> {
        let (arrays, metadata) = read("load_arrays", path.as_ref())?;
        let part = |(name, x): (String, Array)| {
            let part = self.part("load_arrays", &name, &x, (self.sharding)(&name, &x))?;
            Ok((name, part))
        };
        Ok((arrays.into_iter().map(part).collect::<Result<_>>()?, metadata))
    }

    /// Writes a model's parameters and its optimizer's state to a folder. All processes of the group have to call it.
    /// The model's index `model.safetensors.index.json` is replaced last and atomically.
    ///
    /// # Errors
    /// As [`Checkpoints::save_arrays`]; [`Error::Value`] for metadata with a reserved name (`optimizer`, `total_size`),
    /// and if a split parameter has a state entry that is neither a number nor of the parameter's shape.
    pub fn save(
        &self,
        folder: impl AsRef<Path>,
        model: &dyn Module,
        optimizer: Option<&dyn Optimizer>,
        metadata: &Metadata,
    ) -> Result<()> {
        let (op, folder) = ("save", folder.as_ref());
        if let Some(name) = [OPTIMIZER, TOTAL].iter().find(|name| metadata.contains_key(**name)) {
            return Err(Error::value(
                op,
                format!("metadata has the reserved name {name:?}. Rename it."),
            ));
        }
        let parameters = model.parameters();
        let most = self.most;
        let own =
            FileSet::new(op, (folder, "model"), &parameters, &*self.sharding, self.group, most)?;
        let state = optimizer.map(|optimizer| optimizer.state());
        let beside = match &state {
            Some(state) => {
                let check = || Ok((self.check_state(op, state, &parameters)?, Value::Null));
                agree(op, self.group, check)?;
                let sharding = |name: &str, x: &Array| self.split_of_state(name, x, &parameters);
                Some(FileSet::new(op, (folder, OPTIMIZER), state, &sharding, self.group, most)?)
            }
            None => None,
        };
        for files in [Some(&own), beside.as_ref()].into_iter().flatten() {
            files.write(&with_format(metadata))?;
        }
        self.commit(op, || {
            let index = folder.join(format!("model{INDEX}"));
            let before = referenced(&index);
            let mut metadata = metadata.clone();
            if let Some(beside) = &beside {
                // The model's index names this file and is replaced last, so both belong to the same save.
                let name = format!("{OPTIMIZER}-{}{INDEX}", beside.id);
                write_index(op, &folder.join(&name), &beside.index(&metadata))?;
                metadata.insert(OPTIMIZER.to_owned(), name);
            }
            write_index(op, &index, &own.index(&metadata))?;
            remove(folder, before);
            Ok(())
        })
    }

    /// Replaces a model's parameters and its optimizer's state by those of a checkpoint, or by this process's parts of
    /// them, and returns the metadata. All processes of the group have to call it. Their number can differ from the
    /// number of processes that wrote the checkpoint. Without an optimizer, it also reads another program's
    /// `model.safetensors.index.json` or `model.safetensors`.
    ///
    /// # Errors
    /// [`Error::Value`] if names or shapes differ from those of the model, or if the checkpoint has no optimizer;
    /// [`Error::Io`] and [`Error::Runtime`] if a file is missing or damaged, or another process failed. After an error,
    /// model and optimizer are unchanged.
    pub fn load(
        &self,
        folder: impl AsRef<Path>,
        model: &mut dyn Module,
        optimizer: Option<&mut dyn Optimizer>,
    ) -> Result<Metadata> {
        let (op, folder) = ("load", folder.as_ref());
        let present = model.parameters();
        let wants_state = optimizer.is_some();
        let found = || {
            let index = folder.join(format!("model{INDEX}"));
            let single = folder.join("model.safetensors");
            let path = if !index.exists() && single.exists() { single } else { index };
            let (wholes, mut metadata) = read(op, &path)?;
            let other = metadata.remove(OPTIMIZER);
            metadata.remove(TOTAL);
            let mut parameters = Arrays::new();
            for (name, x) in &wholes {
                let part = self.part(op, name, x, (self.sharding)(name, x))?;
                parameters.insert(name.clone(), part);
            }
            weights::check(&present, &parameters, op, Some(&path), true)?;
            let state = match (wants_state, other) {
                (false, _) => None,
                (true, Some(other)) => {
                    let name = Path::new(&other).file_name().unwrap_or_default();
                    let (state, _) = read(op, &folder.join(name))?;
                    Some(self.parts_of_state(op, state, &wholes)?)
                }
                (true, None) => {
                    let text = format!(
                        "{} names no state of an optimizer. Load the model alone, or save both.",
                        path.display()
                    );
                    return Err(Error::value(op, text));
                }
            };
            let all: Vec<Array> =
                parameters.values().chain(state.iter().flat_map(Arrays::values)).cloned().collect();
            eval(&all)?;
            Ok(((parameters, state, metadata), Value::Null))
        };
        let ((parameters, state, metadata), _) = agree(op, self.group, found)?;
        if let (Some(optimizer), Some(state)) = (optimizer, state) {
            optimizer.set_state(state)?;
        }
        weights::assign(model, &parameters);
        Ok(metadata)
    }

    /// Runs the final step of a save in rank 0.
    fn commit(&self, op: &str, end: impl FnOnce() -> Result<()>) -> Result<()> {
        let own = || {
            let outcome = if self.group.rank() == 0 { end() } else { Ok(()) };
            outcome.map(|()| ((), Value::Null))
        };
        agree(op, self.group, own).map(drop)
    }

    fn part(&self, op: &str, name: &str, x: &Array, split: Option<Split>) -> Result<Array> {
        split.map_or_else(|| Ok(x.clone()), |split| split.part_of(op, name, x, self.group))
    }

    /// The split of a state entry: that of its parameter, unless the entry is a number.
    fn split_of_state(&self, name: &str, x: &Array, parameters: &Parameters) -> Option<Split> {
        let parameter = parameter_of(name, parameters).filter(|_| x.ndim() > 0)?;
        (self.sharding)(parameter, &parameters[parameter])
    }

    /// Checks that state entries can be split as their parameters are.
    fn check_state(&self, op: &str, state: &Arrays, parameters: &Parameters) -> Result<()> {
        for (name, x) in state {
            let parameter = parameter_of(name, parameters).map(|name| &parameters[name]);
            let (Some(_), Some(parameter)) = (self.split_of_state(name, x, parameters), parameter)
            else {
                continue;
            };
            if x.shape() != parameter.shape() {
                return Err(misshapen(op, name, x, parameter));
            }
        }
        Ok(())
    }

    /// This process's parts of the whole state.
    fn parts_of_state(&self, op: &str, state: Arrays, wholes: &Parameters) -> Result<Arrays> {
        self.check_state(op, &state, wholes)?;
        let part = |(name, x): (String, Array)| {
            let split = self.split_of_state(&name, &x, wholes);
            let part = self.part(op, &name, &x, split)?;
            Ok((name, part))
        };
        state.into_iter().map(part).collect()
    }
}

#[cold]
fn misshapen(op: &str, name: &str, x: &Array, parameter: &Array) -> Error {
    Error::value(
        op,
        format!(
            "the state {name} has the shape {:?}, and its parameter {:?}, which is split: entries of another shape cannot be. Use an \
             optimizer whose state has its parameters' shapes, such as AdamW, or the model alone.",
            x.shape(),
            parameter.shape()
        ),
    )
}

/// The parameter to which a state entry belongs: `layers.0.weight` for `states.1.layers.0.weight.m`.
fn parameter_of<'n>(name: &'n str, parameters: &Parameters) -> Option<&'n str> {
    let mut own = name;
    while let Some((number, rest)) = own.strip_prefix("states.").and_then(|s| s.split_once('.'))
        && number.bytes().all(|b| b.is_ascii_digit())
    {
        own = rest;
    }
    loop {
        if parameters.contains_key(own) {
            return Some(own);
        }
        own = own.rsplit_once('.')?.0;
    }
}

/// The arrays of an index or of a file of named arrays, and its metadata.
fn read(op: &str, path: &Path) -> Result<(Arrays, Metadata)> {
    match io::load(path)? {
        Loaded::Safetensors(arrays, metadata) => Ok((arrays, metadata)),
        Loaded::Arrays(arrays) | Loaded::Gguf(arrays, _) => Ok((arrays, Metadata::new())),
        Loaded::Array(_) => {
            let text = format!("{} has one array without a name. Name an index.", path.display());
            Err(Error::value(op, text))
        }
    }
}

/// The metadata that each file gets.
fn with_format(metadata: &Metadata) -> Metadata {
    let mut all = Metadata::from([("format".to_owned(), "mlx".to_owned())]);
    all.extend(metadata.clone());
    all
}

/// The folder of a path.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
