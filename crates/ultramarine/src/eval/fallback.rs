//! The fallback of an operation whose kernel its device refused.
//!
//! The order of attempts for each operation:
//! 1. Before planning, lowering replaces composites such as softmax by compositions if the device
//!    has no kernel ([`super::lower`]).
//! 2. A fused program that the device refuses runs as single operations ([`super::run`]).
//! 3. The device's own kernel runs, on contiguous copies if it asks for them ([`Exec::run`]).
//! 4. If the kernel is refused, this module tries decompositions into simpler operations on the
//!    same device.
//! 5. The last fallback is the CPU, on host copies of the operands. The result is copied to the
//!    operation's device.
//!
//! A decomposition is taken whole or not at all: when one of its parts would have to go to
//! the CPU, the operation itself goes there, in one transfer and bitwise identical to the CPU's result.

use crate::backend::{self, Dispatch, Exec, Operand, WordHasher};
use crate::error::{Error, Message, Result};
use crate::node::{Inputs, Node, Value};
use crate::ops::{
    Call, Candidates, Decompose, OperationKey, Rules,
    copy::contiguous,
    rules::multi_output::{Compose, MultiOutput},
};
use crate::profile::{self, took};
use crate::{array::Array, device::Device, dtype::Dtype, shape, stream::Scope, sync::lock};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::{Arc, Mutex};

/// Greatest depth of nested decompositions.
const MAX_DEPTH: usize = 12;
/// Number of remembered operations. When it is reached, all are forgotten.
const MAX_CHOSEN: usize = 8192;
/// Remembered instead of a candidate if no decomposition works.
const NONE_HELPS: usize = usize::MAX;

thread_local! {
    /// Keys of the operations that this thread is decomposing, the outermost first.
    static NESTED: RefCell<Vec<CandidateKey>> = const { RefCell::new(Vec::new()) };
    /// True if a part of a decomposition was refused.
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

type Chosen = HashMap<CandidateKey, usize, BuildHasherDefault<WordHasher>>;

/// The index of the candidate that each operation uses.
static CHOSEN: Mutex<Option<Chosen>> = Mutex::new(None);

/// Returns true while this thread is inside a decomposition.
pub(super) fn is_nested() -> bool {
    NESTED.with_borrow(|u| !u.is_empty())
}

/// Runs an operation that was refused. `values` are its operands on the device.
pub(super) fn run(exec: &Exec, node: &Node, inputs: &Inputs, values: &[Value]) -> Result<Value> {
    let name = node.op.name();
    super::numbers::keep(inputs);
    if let Some(value) = primitive_composition(exec, node, inputs, values) {
        let value = value?;
        took(profile::Dispatch::Decomposed, [0; 3]);
        if !is_nested() {
            exec.count(name, Dispatch::Decomposed);
        }
        return Ok(value);
    }
    if let Some(value) = decomposed(exec, node, inputs, values)? {
        took(profile::Dispatch::Decomposed, [0; 3]);
        if !is_nested() {
            exec.count(name, Dispatch::Decomposed);
        }
        return Ok(value);
    }
    let unsupported = UnsupportedOp { exec, node, inputs };
    if is_nested() {
        // Not this part, but the operation that is being decomposed goes to the CPU.
        REFUSED.set(true);
        return Err(unsupported.caught());
    }
    if exec.device.is_host() {
        return Err(unsupported.error());
    }
    if !backend::may_fall_back(name) {
        return Err(unsupported.strict());
    }
    let value = on_cpu(exec, node, inputs)?;
    exec.count(name, Dispatch::Cpu);
    Ok(value)
}

/// Runs an extension's primitive as its composition of ordinary operations, each of which has its
/// own fallback.
fn primitive_composition(
    exec: &Exec,
    node: &Node,
    inputs: &Inputs,
    values: &[Value],
) -> Option<Result<Value>> {
    let many: &MultiOutput = node.op.get()?;
    let _scope = Scope::new(node.place.stream);
    let operands = &given(inputs, values);
    many.compose(&Compose { exec, operands, results: many.results(), evaluate: composed })
}

/// The values of a composition's results, on the device of `exec`.
fn composed(exec: &Exec, arrays: &[Array]) -> Result<Vec<Value>> {
    super::compute(arrays)?;
    let value = |a: &Array| match a.node().value() {
        Some(value) => exec.local(&Operand { value, shape: a.shape(), dtype: a.dtype() }),
        None => Err(Error::runtime(
            "compose",
            "An output of compose has no value. Report it to the author of the operation.",
        )),
    };
    arrays.iter().map(value).collect()
}

/// The operands as arrays that have their values.
fn given(inputs: &Inputs, values: &[Value]) -> SmallVec<[Array; 3]> {
    let each = inputs.iter().zip(values);
    each.map(|(i, v)| Array::given(v.clone(), i.shape.clone(), i.dtype)).collect()
}

/// Errors of an operation that cannot run.
struct UnsupportedOp<'a> {
    exec: &'a Exec,
    node: &'a Node,
    inputs: &'a Inputs,
}

impl UnsupportedOp<'_> {
    fn missing_kernel(&self) -> String {
        let names: Vec<_> = self.inputs.iter().map(|i| i.dtype.name()).collect();
        format!(
            "backend {} on {} has no kernel for ({}) -> {}",
            self.exec.device.backend,
            self.exec.device.device,
            names.join(", "),
            self.node.dtype
        )
    }

    fn error(&self) -> Error {
        Error::runtime(self.node.op.name(), format!("{}.", self.missing_kernel()))
    }

    /// The error for a part of a decomposition. [`decomposed`] catches it.
    fn caught(&self) -> Error {
        let text = format!("[{}] {}.", self.node.op.name(), self.missing_kernel());
        Error::Runtime(Message::without_line(text))
    }

    fn strict(&self) -> Error {
        let name = self.node.op.name();
        Error::runtime(
            name,
            format!(
                "{} and no decomposition, and strict mode forbids the fallback to the CPU. Run it \
                 on a stream of the CPU, allow it with set_strict(True, allow=[\"{name}\"]), or \
                 switch strict mode off (set_strict(False), ULTRAMARINE_STRICT=0).",
                self.missing_kernel()
            ),
        )
    }
}

/// Device, operation, dtypes, ranks and layouts. Sizes are left out, so that few keys have to be
/// remembered.
#[derive(Clone, PartialEq, Eq, Hash)]
struct CandidateKey {
    device: Device,
    operation: OperationKey,
    dtype: Dtype,
    /// Rank and dtype of each operand, and whether it is contiguous.
    operands: SmallVec<[(usize, Dtype, bool); 3]>,
}

impl CandidateKey {
    /// `None` if an attribute is opaque. Such operations have no decomposition, and the key would
    /// keep the attribute alive.
    fn new(
        rules: &dyn Rules,
        device: Device,
        node: &Node,
        inputs: &Inputs,
        values: &[Value],
    ) -> Option<CandidateKey> {
        let operation = OperationKey::new(rules);
        operation.serialised()?;
        let operand = |(input, value): (&Arc<Node>, &Value)| {
            let contiguous = shape::is_contiguous(&input.shape, &value.strides);
            (input.shape.len(), input.dtype, contiguous)
        };
        let operands = inputs.iter().zip(values).map(operand).collect();
        Some(CandidateKey { device, operation, dtype: node.dtype, operands })
    }
}

/// Marks an operation as being decomposed. Saves the flag that a part of the surrounding
/// decomposition was refused.
struct Entered {
    refused: bool,
}

impl Entered {
    /// `None` if the operation is being decomposed already, or if decompositions are nested too
    /// deeply.
    fn new(key: CandidateKey) -> Option<Entered> {
        NESTED.with_borrow_mut(|nested| {
            if nested.len() >= MAX_DEPTH || nested.contains(&key) {
                return None;
            }
            nested.push(key);
            Some(Entered { refused: REFUSED.replace(false) })
        })
    }

    /// Remembers which candidate the operation uses.
    fn remember(&self, index: usize) {
        let Some(key) = NESTED.with_borrow(|nested| nested.last().cloned()) else { return };
        let mut chosen = lock(&CHOSEN);
        let chosen = chosen.get_or_insert_with(Chosen::default);
        if chosen.len() >= MAX_CHOSEN {
            chosen.clear();
        }
        chosen.insert(key, index);
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        NESTED.with_borrow_mut(|u| _ = u.pop());
        REFUSED.set(self.refused);
    }
}

/// Computes the result by simpler operations on the same device. `None` if no candidate runs there.
fn decomposed(
    exec: &Exec,
    node: &Node,
    inputs: &Inputs,
    values: &[Value],
) -> Result<Option<Value>> {
    let Some(rules) = node.op.rules() else { return Ok(None) };
    let device = exec.device.device;
    let Some(key) = CandidateKey::new(rules, device, node, inputs, values) else {
        return Ok(None);
    };
    let chosen = lock(&CHOSEN).as_ref().and_then(|k| k.get(&key).copied());
    if chosen == Some(NONE_HELPS) {
        return Ok(None);
    }
    let nested = is_nested();
    let Some(entered) = Entered::new(key) else { return Ok(None) };
    let _scope = Scope::new(node.place.stream);
    let operands = given(inputs, values);
    let request = Decompose { inputs: &operands, shape: &node.shape, dtype: node.dtype };
    let mut memory = true;
    for index in chosen.unwrap_or(0).. {
        // Build the candidates again for each attempt: they may share nodes, and a node that failed
        // stays failed.
        let mut candidates = Candidates::default();
        rules.decompose(&request, &mut candidates);
        let Some(array) = candidates.0.get(index) else { break };
        debug_assert_eq!((array.shape(), array.dtype()), (&node.shape[..], node.dtype));
        let array = contiguous(array);
        match super::submit(&array) {
            Ok(()) => {
                if !nested && chosen != Some(index) {
                    entered.remember(index);
                }
                return Ok(array.node().value().cloned());
            }
            Err(_) if REFUSED.take() => {}
            // The CPU may need less memory.
            Err(error) if matches!(error.root(), Error::Memory(_)) => memory = false,
            Err(error) => return Err(error.root().clone()),
        }
    }
    // Inside another decomposition, a candidate may fail because of the surrounding one, so do not
    // remember the failure.
    if !nested && memory {
        entered.remember(NONE_HELPS);
    }
    Ok(None)
}

/// Runs an operation with the CPU's kernels on the host's copies of its operands, and
/// brings the result to the device.
fn on_cpu(exec: &Exec, node: &Node, inputs: &Inputs) -> Result<Value> {
    let Some(rules) = node.op.rules() else {
        return Err(Error::runtime("eval", "a stand-in has no value"));
    };
    // The host reads the operands below, so wait until the device has written them.
    exec.settle()?;
    let host = Exec::new(backend::host(), node.place.stream)?;
    let values: SmallVec<[Value; 3]> = inputs
        .iter()
        .map(|i| match i.outcome() {
            Some(Ok(value)) => host.local(&Operand { value, shape: &i.shape, dtype: i.dtype }),
            _ => Err(Error::runtime(node.op.name(), "an operand has no value")),
        })
        .collect::<Result<_>>()?;
    let descs: SmallVec<[(&[usize], Dtype); 3]> =
        inputs.iter().map(|i| (&i.shape[..], i.dtype)).collect();
    let call = Call {
        inputs: &values,
        descs: &descs,
        shape: &node.shape,
        dtype: node.dtype,
        donatable: 0,
    };
    let value = match node.op.get::<MultiOutput>() {
        Some(multi) => multi.run(&host, exec, &call)?,
        None => {
            let value = rules.eval(&host, &call)?;
            exec.local(&call.output(&value))?
        }
    };
    took(profile::Dispatch::Fallback, host.given());
    Ok(value)
}
