//! Plans. A plan is prepared once for each combination of op, dtypes, ranks and layout classes.

use super::{DeviceState, call::Operand, is_refusal, kernels::Kernels, pending_free, shutdown};
use crate::{dtype::Dtype, error::Result, host_table, log, shape, sync::lock};
use core::ffi::c_void;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex};
use ultramarine_abi::schema::{self, OpId, op as ops};
use ultramarine_abi::{
    self as abi, Status, TensorDesc,
    fused::{Anchor, Program},
    layout, status,
};

/// The properties that a plan depends on, as words. Sizes and values are not among them.
pub type PlanKey = SmallVec<[u64; 16]>;

/// The most plans kept per device. When there are more, the cache is emptied.
const MAX_PLANS: usize = 8192;

/// A hash for internal keys, which need no protection against attacks.
#[derive(Default)]
pub struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(word));
        }
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// A backend's plan for an operation, or its refusal. Both are cached by operation, dtypes, ranks
/// and layouts.
pub struct Plan {
    /// The table that made the plan. Commands and the release of the plan go to this table.
    pub kernels: &'static Kernels,
    pub raw: *mut c_void,
    /// OK, UNSUPPORTED, NEEDS_CONTIGUOUS, or NOT_YET. A plan with NOT_YET is not cached.
    pub status: Status,
    /// True if the op overwrites parts of its first input when the output has the input's memory.
    pub updates: bool,
}

// SAFETY: by the contract several threads may use a plan at the same time.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

impl Drop for Plan {
    fn drop(&mut self) {
        pending_free::free_plan(self.kernels, self.raw);
    }
}

type Map = HashMap<PlanKey, Arc<Plan>, BuildHasherDefault<WordHasher>>;

#[derive(Default)]
struct Cached {
    map: Map,
    /// Incremented when the cache is emptied.
    generation: u64,
}

#[derive(Default)]
pub(super) struct PlanCache(Mutex<Cached>);

impl PlanCache {
    fn get(&self, key: &PlanKey, make: impl FnOnce() -> Result<Plan>) -> Result<Arc<Plan>> {
        let generation = {
            let cached = lock(&self.0);
            if let Some(plan) = cached.map.get(key) {
                return Ok(plan.clone());
            }
            cached.generation
        };
        // Make the plan without the lock, because preparing may compile for a while.
        let plan = Arc::new(make()?);
        if plan.status == status::NOT_YET {
            return Ok(plan);
        }
        let mut cached = lock(&self.0);
        if cached.generation != generation {
            // The device has other tables by now, so use this plan only once and do not cache it.
            return Ok(plan);
        }
        if cached.map.len() >= MAX_PLANS {
            cached.map.clear();
        }
        Ok(cached.map.entry(key.clone()).or_insert(plan).clone())
    }

    fn generation(&self) -> u64 {
        lock(&self.0).generation
    }

    /// Forgets all plans. A plan that is in use lives until its use ends.
    #[inline]
    pub fn clear(&self) {
        let mut cached = lock(&self.0);
        cached.generation += 1;
        let old = std::mem::take(&mut cached.map);
        drop(cached);
        drop(old);
    }
}

/// Returns the layout class of a tensor.
fn layout_of(t: &Operand<'_>) -> u32 {
    match shape::is_contiguous(t.shape, &t.value.strides) {
        true => layout::CONTIGUOUS,
        false => layout::STRIDED,
    }
}

/// Describes a tensor as a word of the key.
fn word(dtype: Dtype, ndim: usize, layout: u32) -> u64 {
    (dtype as u64) << 32 | (ndim as u64) << 8 | layout as u64
}

/// Describes a tensor for `prepare`.
fn description(dtype: Dtype, ndim: usize, layout: u32) -> TensorDesc {
    TensorDesc {
        size: size_of::<TensorDesc>() as u32,
        ndim: ndim as i32,
        dtype: dtype.to_dl(),
        layout,
    }
}

/// Describes tensors for `prepare`. Only needed if the plan is not in the cache.
fn describe<'a>(tensors: impl Iterator<Item = &'a Operand<'a>>) -> Descriptions {
    tensors.map(|t| description(t.dtype, t.shape.len(), layout_of(t))).collect()
}

type Descriptions = SmallVec<[TensorDesc; 8]>;

/// Returns the bytes of a plain struct as words of a key.
pub fn words_of<A: Copy>(plain: &A) -> SmallVec<[u64; 8]> {
    // SAFETY: attribute structs are plain integers without padding that matters: `new` initialises
    // all bytes, and the key only needs equal bytes for equal plans.
    let bytes =
        unsafe { std::slice::from_raw_parts(plain as *const A as *const u8, size_of::<A>()) };
    let (whole, rest) = bytes.as_chunks();
    let mut words = SmallVec::new();
    whole.iter().for_each(|word| words.push(u64::from_le_bytes(*word)));
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        words.push(u64::from_le_bytes(word));
    }
    words
}

/// Interprets the answer of a table's `prepare`: a plan, or a request for another layout. `None` if
/// the table has no kernel.
fn finish(
    kernels: &'static Kernels,
    code: Status,
    error: *mut abi::Error,
    raw: *mut c_void,
) -> Result<Option<Plan>> {
    if is_refusal(code) || code == status::NOT_YET {
        // Ignore the message of a refusal, because another candidate is tried.
        let _ = host_table::check("prepare", code, error);
    } else {
        host_table::check("prepare", code, error)?;
    }
    Ok((code != status::UNSUPPORTED).then_some(Plan { kernels, raw, status: code, updates: false }))
}

impl DeviceState {
    /// Returns a number that grows when all plans are forgotten because the device's tables have
    /// changed.
    pub fn plan_generation(&self) -> u64 {
        self.plans.generation()
    }

    /// Returns the first plan that one of the device's tables makes. If the last table refuses,
    /// returns its refusal.
    fn first(
        &self,
        mut make: impl FnMut(&'static Kernels) -> Result<Option<Plan>>,
    ) -> Result<Plan> {
        let _compiling = match self.is_host() {
            true => None,
            false => Some(shutdown::Compiling::enter(self)?),
        };
        let list = self.kernels.get();
        let mut refused = None;
        for (i, kernels) in list.iter().copied().enumerate() {
            match make(kernels) {
                Ok(Some(plan)) => return Ok(plan),
                Ok(None) => refused = Some(kernels),
                // If an overlay fails, the built-in kernels are still tried.
                Err(error) if i + 1 < list.len() => {
                    let text = format!(
                        "backend {} made no plan, so the next one is asked: {error}",
                        kernels.backend
                    );
                    log::log(log::Level::Warning, text);
                }
                Err(error) => return Err(error),
            }
        }
        match refused {
            Some(kernels) => Ok(Plan {
                kernels,
                raw: std::ptr::null_mut(),
                status: status::UNSUPPORTED,
                updates: false,
            }),
            None => Err(self.lacks("kernels")),
        }
    }

    /// Returns the plan for one op.
    ///
    /// # Safety
    /// `attributes` is the op's attribute struct, and `words` holds the same bytes.
    pub(super) unsafe fn plan(
        &'static self,
        op: OpId,
        attributes: *const c_void,
        words: &[u64],
        inputs: &[Operand<'_>],
        outputs: &[Operand<'_>],
    ) -> Result<Arc<Plan>> {
        let mut key = PlanKey::new();
        key.push((op as u64) << 32 | (inputs.len() as u64) << 8 | outputs.len() as u64);
        key.extend_from_slice(words);
        for t in inputs.iter().chain(outputs) {
            key.push(word(t.dtype, t.shape.len(), layout_of(t)));
        }
        let tensors = || describe(inputs.iter().chain(outputs));
        // SAFETY: by this function's contract; the descriptions are of these tensors.
        unsafe { self.plan_of(op, attributes, &key, tensors, inputs.len()) }
    }

    /// Returns true if one of the device's tables has a kernel for contiguous tensors of these dtypes and ranks.
    pub fn offers<A: Copy>(
        &'static self,
        op: OpId,
        attributes: &A,
        inputs: &[(Dtype, usize)],
        outputs: &[(Dtype, usize)],
    ) -> Result<bool> {
        let mut key = PlanKey::new();
        key.push((op as u64) << 32 | (inputs.len() as u64) << 8 | outputs.len() as u64);
        key.extend_from_slice(&words_of(attributes));
        for (dtype, ndim) in inputs.iter().chain(outputs) {
            key.push(word(*dtype, *ndim, layout::CONTIGUOUS));
        }
        let tensors = || {
            let all = inputs.iter().chain(outputs);
            all.map(|(dtype, ndim)| description(*dtype, *ndim, layout::CONTIGUOUS)).collect()
        };
        let raw = attributes as *const A as *const c_void;
        // SAFETY: the op's attribute struct, whose bytes the key holds, and the descriptions.
        let plan = unsafe { self.plan_of(op, raw, &key, tensors, inputs.len()) }?;
        Ok(plan.status != status::UNSUPPORTED)
    }

    /// Returns the plan for an op with `n` inputs.
    ///
    /// # Safety
    /// `attributes` is the op's attribute struct. `key` holds the same bytes, and the descriptions
    /// that `tensors` gives.
    unsafe fn plan_of(
        &'static self,
        op: OpId,
        attributes: *const c_void,
        key: &PlanKey,
        tensors: impl FnOnce() -> Descriptions,
        n: usize,
    ) -> Result<Arc<Plan>> {
        let prepare_in = |descs: &[TensorDesc], kernels: &'static Kernels| {
            let Some(prepare) = kernels.table.prepare else { return Ok(None) };
            let (mut raw, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: descriptions and attributes are valid for the call, and the pointers are
            // valid for writing the answers.
            let code = unsafe {
                prepare(
                    kernels.handle,
                    op,
                    1,
                    attributes,
                    descs.as_ptr(),
                    n as u32,
                    descs[n..].as_ptr(),
                    (descs.len() - n) as u32,
                    &mut raw,
                    &mut error,
                )
            };
            // Contiguous copies cannot help if there are no inputs, or if the op itself is a copy.
            let copies =
                op != ops::COPY && descs[..n].iter().any(|d| d.layout != layout::CONTIGUOUS);
            let plan = finish(kernels, code, error, raw)?;
            Ok(plan.filter(|p| copies || p.status != status::NEEDS_CONTIGUOUS))
        };
        self.plans.get(key, || {
            let descs = tensors();
            let mut plan = self.first(|kernels| prepare_in(&descs, kernels))?;
            plan.updates = schema::find(op).is_some_and(|row| row.shape.updates());
            Ok(plan)
        })
    }

    /// Returns the plan for a fused program, which may have an anchor. `key` holds both in words.
    pub(super) fn fused_plan(
        &'static self,
        program: &Program,
        anchor: Option<&Anchor>,
        mut key: PlanKey,
        inputs: &[Operand<'_>],
        outputs: &[Operand<'_>],
    ) -> Result<Arc<Plan>> {
        for t in inputs.iter().chain(outputs) {
            key.push(word(t.dtype, t.shape.len(), layout_of(t)));
        }
        let prepare_in = |descs: &[TensorDesc], kernels: &'static Kernels| {
            if !kernels.takes_programs(program.n_instructions, inputs.len() as u32) {
                return Ok(None);
            }
            let (mut raw, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
            let (ins, outs) = (descs.as_ptr(), descs[inputs.len()..].as_ptr());
            let prepare = kernels.fused.and_then(|f| f.prepare);
            let anchored = kernels.anchored.and_then(|f| f.prepare);
            // SAFETY: program, anchor and descriptions are valid for the call, and the pointers are
            // valid for writing the answers.
            let code = unsafe {
                match (anchor, prepare, anchored) {
                    (None, Some(prepare), _) => {
                        prepare(kernels.handle, program, ins, outs, &mut raw, &mut error)
                    }
                    (Some(anchor), _, Some(prepare)) => {
                        prepare(kernels.handle, program, anchor, ins, outs, &mut raw, &mut error)
                    }
                    _ => return Ok(None),
                }
            };
            // For a program no contiguous copies are made. If the table wants them, the next table
            // is asked.
            let usable = |p: &Plan| matches!(p.status, status::OK | status::NOT_YET);
            Ok(finish(kernels, code, error, raw)?.filter(usable))
        };
        self.plans.get(&key, || {
            let descs = describe(inputs.iter().chain(outputs));
            self.first(|kernels| prepare_in(&descs, kernels))
        })
    }
}
