//! A user's primitive: its table of rules, its identity, and its context, which is dropped with it.

use super::boundary::{list, read, text};
use super::errors::answer;
use super::types::{tensor_type, validated};
use crate::error::{Error, Result, ensure};
use crate::ops::rules::multi_output::{ForeignIdentity, Results};
use crate::ops::{Attribute, Opaque, OperationKey, attributes};
use crate::{
    array::Array, dtype::Dtype, graph::names::interned, memory::deferred_deleters, sync::lock,
};
use core::ffi::c_void;
use std::any::Any;
use std::collections::BTreeSet;
use std::fmt::{self, Debug, Formatter};
use std::sync::{Arc, Mutex};
use ultramarine_abi::extension::{self as abi, TensorType, primitive as flag};
use ultramarine_abi::{MAX_NDIM, dlpack::DLDataType};

/// Largest number of outputs; more indicate a mistake.
const MAX_OUTPUTS: u32 = 4096;
/// Attribute bytes that `Debug` shows.
const SHOWN: usize = 64;

/// A context of the extension, released once.
struct Release {
    context: *mut c_void,
    release: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: by contract a context may be released on any thread.
unsafe impl Send for Release {}

impl Drop for Release {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            // SAFETY: the primitive's own function with its context, once.
            unsafe { release(self.context) }
        }
    }
}

/// A user's primitive: its table of rules, its identity, and its context, which is dropped with it.
pub(crate) struct Primitive {
    pub name: &'static str,
    pub version: u32,
    pub allocates: bool,
    n_outputs: u32,
    attributes: Arc<[u8]>,
    /// The rules. The pointers to name and attributes inside are dangling.
    pub rules: abi::Primitive,
    release: Option<Release>,
    /// Languages of kernels that no device of an evaluation accepted.
    missing_languages: Mutex<BTreeSet<String>>,
}

// SAFETY: by contract rules may be called from any thread, also concurrently, with the same context.
unsafe impl Send for Primitive {}
// SAFETY: as above.
unsafe impl Sync for Primitive {}

impl Drop for Primitive {
    fn drop(&mut self) {
        if let Some(release) = self.release.take() {
            // Foreign code, which may wait for locks of its own.
            deferred_deleters::drop_outside(release);
        }
    }
}

impl Debug for Primitive {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.version)?;
        let shown = self.print();
        if !shown.is_empty() {
            write!(f, " {shown}")?;
        }
        if self.attributes.is_empty() {
            return Ok(());
        }
        f.write_str(" [")?;
        self.attributes.iter().take(SHOWN).try_for_each(|b| write!(f, "{b:02x}"))?;
        if self.attributes.len() > SHOWN {
            write!(f, "... {} bytes", self.attributes.len())?;
        }
        f.write_str("]")
    }
}

impl Primitive {
    /// A primitive from a table. It takes over the context, even if it fails.
    ///
    /// # Safety
    /// NULL or a table of the size that it states, with rules that follow the contract.
    pub unsafe fn new(at: *const abi::Primitive) -> Result<Primitive> {
        const OP: &str = "apply";
        // SAFETY: by this function's contract.
        let rules = unsafe { read(OP, at)? };
        let release = Release { context: rules.context, release: rules.release };
        // SAFETY: pointers of the table, valid during the call by contract.
        let (name, attributes) = unsafe {
            let name = text(OP, "the primitive's name", rules.name)?;
            let at = rules.attributes.cast::<u8>();
            (name, list(name, "attributes", at, rules.attribute_bytes)?)
        };
        let wrong = |text: &str| Err(Error::value(if name.is_empty() { OP } else { name }, text));
        if name.is_empty() {
            return wrong("The primitive has no name. Set `name`.");
        }
        if rules.n_outputs == 0 || rules.n_outputs > MAX_OUTPUTS {
            return wrong(&format!(
                "The primitive has {} outputs. Give it 1 to {MAX_OUTPUTS}.",
                rules.n_outputs
            ));
        }
        if rules.infer.is_none() {
            return wrong("The primitive has no infer. Write one.");
        }
        if rules.eval_cpu.is_none() && rules.eval_gpu.is_none() && rules.compose.is_none() {
            return wrong(
                "The primitive has neither eval_cpu, eval_gpu nor compose. Write one of them.",
            );
        }
        Ok(Primitive {
            name: interned(name),
            version: rules.version,
            allocates: rules.flags & flag::ALLOCATES != 0,
            n_outputs: rules.n_outputs,
            attributes: attributes.into(),
            rules,
            release: Some(release),
            missing_languages: Mutex::default(),
        })
    }

    /// Returns the first argument of the rules.
    pub fn context(&self) -> *mut c_void {
        self.rules.context
    }

    /// Returns the number of outputs.
    pub fn outputs(&self) -> usize {
        self.n_outputs as usize
    }

    /// Returns the identity of the primitive, which is the same in any process.
    pub fn identity(&self) -> ForeignIdentity {
        ForeignIdentity {
            name: self.name.to_owned(),
            version: self.version,
            outputs: self.n_outputs,
            attributes: self.attributes.clone(),
        }
    }

    /// Returns shapes and dtypes of the outputs, from the primitive's `infer`, after validation.
    ///
    /// # Errors
    /// Errors of the rule; [`Error::Value`] for results that arrays cannot have.
    pub fn infer(&self, inputs: &[Array]) -> Result<Results> {
        self.infer_types(inputs.iter().map(|a| tensor_type(a.shape(), a.dtype())).collect())
    }

    /// As [`Primitive::infer`], from types instead of arrays.
    pub fn infer_types(&self, types: Vec<TensorType>) -> Result<Results> {
        const UNSET: i32 = i32::MIN;
        let Some(rule) = self.rules.infer else { return Ok(Results::new()) };
        let blank = TensorType {
            size: size_of::<TensorType>() as u32,
            ndim: UNSET,
            dtype: DLDataType { code: u8::MAX, bits: 0, lanes: 0 },
            reserved: 0,
            shape: [-1; MAX_NDIM],
        };
        let mut outputs = vec![blank; self.outputs()];
        let mut error = std::ptr::null_mut();
        // SAFETY: the primitive's rule with its context; it gets as many types as it is told.
        let found = unsafe {
            let n = types.len() as u32;
            let code =
                rule(self.context(), types.as_ptr(), n, outputs.as_mut_ptr(), &raw mut error);
            answer(self.name, "infer", code, error)?
        };
        ensure!(
            found,
            self.name,
            "infer does not support these operands. Convert them to dtypes and shapes that the operation documents."
        );
        let validate = |(i, of): (usize, &TensorType)| {
            ensure!(
                of.ndim != UNSET,
                self.name,
                "infer left output {i} unset. Set its shape and dtype."
            );
            validated(self.name, &format!("infer's output {i}"), of)
        };
        outputs.iter().enumerate().map(validate).collect()
    }

    /// Returns the primitive's attributes as text.
    pub fn print(&self) -> String {
        let Some(print) = self.rules.print else { return String::new() };
        let mut room = vec![0u8; 256];
        for _ in 0..2 {
            // SAFETY: the primitive's function with its context; it writes no more than fits.
            let length = unsafe {
                print(self.context(), room.as_mut_ptr().cast(), room.len() as u64) as usize
            };
            if length <= room.len() {
                room.truncate(length);
                return String::from_utf8_lossy(&room).into_owned();
            }
            room.resize(length.min(1 << 16), 0);
        }
        String::from_utf8_lossy(&room).into_owned()
    }

    /// Records a language of kernels that a device does not accept.
    pub fn note_missing_language(&self, language: &str) {
        lock(&self.missing_languages).insert(language.to_owned());
    }

    /// Returns the languages of kernels that no device of an evaluation accepted.
    pub fn missing_languages(&self) -> Vec<String> {
        lock(&self.missing_languages).iter().cloned().collect()
    }
}

attributes! {
    /// A primitive applied to operands: the operation in the graph.
    #[derive(Clone)]
    pub(crate) struct Applied {
        pub primitive: Arc<Primitive>,
        /// The operands' dtypes, for all shapes.
        pub dtypes: Arc<[Dtype]>,
    }
}

impl Attribute for Arc<Primitive> {
    fn encode(&self, key: &mut OperationKey) {
        key.record(
            "Primitive",
            &[
                ("outputs", &self.n_outputs),
                ("attributes", &self.attributes),
                ("print", &self.print()),
            ],
        );
        // Contexts are not encoded: [`Opaque::same`] compares them.
        key.opaque(self.clone());
    }
}

impl Opaque for Primitive {
    fn same(&self, other: &dyn Opaque) -> bool {
        let Some(other) = (other as &dyn Any).downcast_ref::<Primitive>() else { return false };
        match (self.rules.equivalent, other.rules.equivalent) {
            _ if std::ptr::eq(self, other) => true,
            (None, None) => true,
            (Some(a), Some(b)) if a as usize == b as usize => {
                // SAFETY: both contexts belong to primitives with this function.
                unsafe { a(self.context(), other.context()) != 0 }
            }
            _ => false,
        }
    }
}

impl Debug for Applied {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.primitive.fmt(f)
    }
}
