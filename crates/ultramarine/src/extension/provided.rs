//! Primitives by name: restores the primitives of files.

use super::boundary::{guard, text};
use super::errors::answer;
use super::primitive::{Applied, Primitive};
use crate::dtype::Dtype;
use crate::error::{Error, Result, ensure};
use crate::ops::rules::multi_output::{ForeignIdentity, MultiOutput, Results};
use crate::sync::lock;
use core::ffi::{c_char, c_void};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use ultramarine_abi::extension::{self as abi, Restore};
use ultramarine_abi::{self as raw, Status};

/// Restores primitives of a name.
#[derive(Clone)]
struct Provider {
    package: String,
    restore: Restore,
    context: *mut c_void,
}

// SAFETY: by contract the context is used from any thread, as long as the process lives.
unsafe impl Send for Provider {}

static PROVIDERS: Mutex<BTreeMap<String, Provider>> = Mutex::new(BTreeMap::new());

pub(super) unsafe extern "C" fn provide(
    _: *mut c_void,
    name: *const c_char,
    package: *const c_char,
    restore: Restore,
    context: *mut c_void,
    error: *mut *mut raw::Error,
) -> Status {
    // SAFETY: the caller's pointers, by contract.
    unsafe {
        guard("provide", error, || {
            let name = text("provide", "the name", name)?.to_owned();
            let package = text("provide", "the package", package)?.to_owned();
            ensure!(!name.is_empty(), "provide", "The primitive has no name. Set `name`.");
            lock(&PROVIDERS).insert(name, Provider { package, restore, context });
            Ok(())
        })
    }
}

/// The package that provides primitives of a name.
pub(crate) fn package(name: &str) -> Option<String> {
    lock(&PROVIDERS).get(name).map(|provider| provider.package.clone())
}

/// Receives the primitive that a restoration makes.
struct Receiver(Option<Result<Primitive>>);

unsafe extern "C" fn receive(receiver: *mut c_void, primitive: *const abi::Primitive) {
    // SAFETY: `restored` passed this receiver and waits for it; the table is valid by contract, and its context is
    // taken over.
    unsafe {
        let made = Primitive::new(primitive);
        if let Some(receiver) = receiver.cast::<Receiver>().as_mut() {
            receiver.0 = Some(made);
        }
    }
}

/// The operation of a primitive that a file identifies, for operands of these dtypes. `package` is the package named in
/// the file.
///
/// # Errors
/// [`Error::Value`] if no package provides it, or if the restored primitive is a different one; errors of the
/// extension.
pub(crate) fn restored(
    identity: &ForeignIdentity,
    package: &str,
    dtypes: Arc<[Dtype]>,
    results: Results,
) -> Result<MultiOutput> {
    let name = &*identity.name;
    let known = lock(&PROVIDERS).get(name).cloned();
    let Some(provider) = known else {
        let text = format!(
            "The operation belongs to the package {package}, which is not imported. Install it, and import it before the function."
        );
        return Err(Error::value(name, text));
    };
    let (mut receiver, mut error) = (Receiver(None), std::ptr::null_mut());
    let attributes = &identity.attributes;
    // SAFETY: the extension's function with its context, the bytes of the stated length, and a receiver that is alive.
    unsafe {
        let code = (provider.restore)(
            provider.context,
            identity.version,
            attributes.as_ptr().cast(),
            attributes.len() as u64,
            receive,
            (&raw mut receiver).cast(),
            &raw mut error,
        );
        let made = answer(name, "restore", code, error)?;
        ensure!(
            made,
            name,
            "restore does not support these attributes. Update the package, or export the function again."
        );
    }
    let Some(primitive) = receiver.0.transpose()? else {
        return Err(Error::runtime(
            name,
            "restore returned no primitive. Report it to the author of the package.",
        ));
    };
    let made = primitive.identity();
    let (version, is_same) = (identity.version, made == *identity);
    ensure!(
        is_same,
        name,
        "The package {} made another primitive than version {version} with these attributes. Install the version that exported it.",
        provider.package
    );
    let applied = Applied { primitive: Arc::new(primitive), dtypes };
    Ok(MultiOutput::new(applied, results, SmallVec::new()))
}
