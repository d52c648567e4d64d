//! Plans: prepared once per op, dtypes, ranks and layout classes.

use super::{DeviceState, call::Operand, host, is_refusal};
use crate::{error::Result, shape, stream::lock};
use core::ffi::c_void;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex};
use ultramarine_abi::{
    self as abi, Status, TensorDesc, fused::Program, layout, schema::OpId, status,
};

/// What a plan depends on, as words. Never sizes or values.
pub(crate) type PlanKey = SmallVec<[u64; 16]>;

/// Plans kept per device before the cache starts afresh.
const MAX_PLANS: usize = 8192;

/// A hash for keys of our own making, where nobody attacks.
#[derive(Default)]
pub(crate) struct WordHasher(u64);

impl Hasher for WordHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
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

/// A backend's plan, or its refusal.
pub(crate) struct Plan {
    device: &'static DeviceState,
    pub raw: *mut c_void,
    /// OK, UNSUPPORTED or NEEDS_CONTIGUOUS.
    pub status: Status,
}

// SAFETY: plans may be used by many threads at once by contract.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

impl Drop for Plan {
    fn drop(&mut self) {
        if let (Some(release), false) = (self.device.table.plan_release, self.raw.is_null()) {
            // SAFETY: made by this device, released once.
            unsafe { release(self.device.handle, self.raw) };
        }
    }
}

type Map = HashMap<PlanKey, Arc<Plan>, BuildHasherDefault<WordHasher>>;

#[derive(Default)]
pub(super) struct PlanCache(Mutex<Map>);

impl PlanCache {
    fn get(&self, key: PlanKey, make: impl FnOnce() -> Result<Plan>) -> Result<Arc<Plan>> {
        if let Some(plan) = lock(&self.0).get(&key) {
            return Ok(plan.clone());
        }
        // Made without the lock: preparing may compile for a while.
        let plan = Arc::new(make()?);
        let mut map = lock(&self.0);
        if map.len() >= MAX_PLANS {
            map.clear();
        }
        Ok(map.entry(key).or_insert(plan).clone())
    }
}

/// Describes a tensor to `prepare`, and as a word of the key.
pub(super) fn describe(t: &Operand<'_>) -> (TensorDesc, u64) {
    let contiguous = shape::is_contiguous(t.shape, &t.value.strides);
    let layout = if contiguous { layout::CONTIGUOUS } else { layout::STRIDED };
    let desc = TensorDesc {
        size: size_of::<TensorDesc>() as u32,
        ndim: t.shape.len() as i32,
        dtype: t.dtype.to_dl(),
        layout,
    };
    (desc, (t.dtype as u64) << 32 | (t.shape.len() as u64) << 8 | layout as u64)
}

fn finish(
    device: &'static DeviceState,
    call: &str,
    code: Status,
    error: *mut abi::Error,
    raw: *mut c_void,
) -> Result<Plan> {
    if is_refusal(code) {
        // The words of a refusal are dropped: another way is tried.
        let _ = host::check(call, code, error);
    } else {
        host::check(call, code, error)?;
    }
    Ok(Plan { device, raw, status: code })
}

impl DeviceState {
    /// The plan for one op.
    ///
    /// # Safety
    /// `attributes` is the op's attribute struct, and `words` holds the same.
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
        let mut descs: SmallVec<[TensorDesc; 8]> = SmallVec::new();
        for t in inputs.iter().chain(outputs) {
            let (desc, word) = describe(t);
            descs.push(desc);
            key.push(word);
        }
        let n = inputs.len();
        self.plans.get(key, || {
            let Some(prepare) = self.table.prepare else { return Err(self.lacks("prepare")) };
            let (mut raw, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: descriptions and attributes are valid for the call, the places
            // for the answers too.
            let code = unsafe {
                prepare(
                    self.handle,
                    op,
                    1,
                    attributes,
                    descs.as_ptr(),
                    n as u32,
                    descs[n..].as_ptr(),
                    outputs.len() as u32,
                    &mut raw,
                    &mut error,
                )
            };
            finish(self, "prepare", code, error, raw)
        })
    }

    /// The plan for a fused program; `key` holds the program in words.
    pub(super) fn fused_plan(
        &'static self,
        program: &Program,
        mut key: PlanKey,
        inputs: &[Operand<'_>],
        outputs: &[Operand<'_>],
    ) -> Result<Arc<Plan>> {
        let mut descs: SmallVec<[TensorDesc; 16]> = SmallVec::new();
        for t in inputs.iter().chain(outputs) {
            let (desc, word) = describe(t);
            descs.push(desc);
            key.push(word);
        }
        self.plans.get(key, || {
            let Some(prepare) = self.fused.and_then(|f| f.prepare) else {
                return Ok(Plan {
                    device: self,
                    raw: std::ptr::null_mut(),
                    status: status::UNSUPPORTED,
                });
            };
            let (mut raw, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
            // SAFETY: program and descriptions are valid for the call, the places for
            // the answers too.
            let code = unsafe {
                prepare(
                    self.handle,
                    program,
                    descs.as_ptr(),
                    descs[inputs.len()..].as_ptr(),
                    &mut raw,
                    &mut error,
                )
            };
            finish(self, "prepare", code, error, raw)
        })
    }
}
