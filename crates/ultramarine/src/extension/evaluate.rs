//! Evaluation of primitives: on the CPU by `eval_cpu`, on a device that accepts kernels by `eval_gpu`, otherwise by
//! `compose` on the same device. The data never moves to the CPU unless the user requests it.

use super::call::{Current, Output, State, described, languages};
use super::derive::Deeper;
use super::errors::{answer, named, take_error};
use super::poison::{self, PATTERNS, Pattern};
use super::primitive::{Applied, Primitive};
use crate::backend::{Exec, Operand};
use crate::error::{Error, Result};
use crate::ops::{Call, rules::multi_output::Compose};
use crate::{array::Array, dtype::Dtype, node::Value, shape::Shape};
use ultramarine_abi::{extension::Evaluate, status};

/// The evaluation rule for a device, and its name.
fn rule(primitive: &Primitive, exec: &Exec) -> Option<(Evaluate, &'static str)> {
    if exec.device.is_host() {
        return primitive.rules.eval_cpu.map(|rule| (rule, "eval_cpu"));
    }
    let takes_kernels = !exec.languages().is_empty();
    primitive.rules.eval_gpu.filter(|_| takes_kernels).map(|rule| (rule, "eval_gpu"))
}

/// The values of a primitive's outputs. The evaluation is rejected if the primitive has none for the device.
pub(super) fn run(
    primitive: &Primitive,
    exec: &Exec,
    call: &Call<'_>,
    results: &[(Shape, Dtype)],
) -> Result<Vec<Value>> {
    if results.iter().all(|r| r.0.contains(&0)) {
        return results.iter().map(|(shape, dtype)| exec.alloc(shape, *dtype)).collect();
    }
    let Some(rule) = rule(primitive, exec) else { return Err(exec.refuse(primitive.name)) };
    let once = |pattern| attempt(primitive, rule, exec, call, results, pattern);
    let pattern = poison::poison().then_some(PATTERNS[0]);
    let Some(mut outputs) = once(pattern)? else { return Err(exec.refuse(primitive.name)) };
    if let Some(pattern) = pattern {
        let before = pattern.left(exec, &outputs, results)?;
        if before.iter().flatten().any(|left| *left) {
            let Some(again) = once(Some(PATTERNS[1]))? else {
                return Err(exec.refuse(primitive.name));
            };
            let after = PATTERNS[1].left(exec, &again, results)?;
            poison::check_written(primitive.name, &before, &after)?;
            outputs = again;
        }
    }
    count(exec, call, &outputs, results);
    Ok(outputs.into_iter().map(|o| o.value).collect())
}

/// Counts an evaluation on the CPU as a command that reads its operands and writes its outputs, except views. Commands
/// on devices are counted when they are launched.
fn count(exec: &Exec, call: &Call<'_>, outputs: &[Output], results: &[(Shape, Dtype)]) {
    let written = outputs.iter().zip(results).filter(|(output, _)| output.own);
    let writes: Vec<Operand<'_>> = written
        .map(|(output, (shape, dtype))| Operand { value: &output.value, shape, dtype: *dtype })
        .collect();
    if !exec.device.is_host() || writes.is_empty() {
        return;
    }
    let reads: Vec<Operand<'_>> = (0..call.inputs.len()).map(|i| call.operand(i)).collect();
    let (reads, writes): (Vec<_>, Vec<_>) = (reads.iter().collect(), writes.iter().collect());
    exec.launched(&reads, &writes);
}

/// Calls the rule, then the tasks that it enqueued; `None` if the rule reports that it is unsupported.
fn attempt(
    primitive: &Primitive,
    (rule, name): (Evaluate, &str),
    exec: &Exec,
    call: &Call<'_>,
    results: &[(Shape, Dtype)],
    pattern: Option<Pattern>,
) -> Result<Option<Vec<Output>>> {
    let state = State::new(primitive, exec, call, results, pattern)?;
    let languages = languages(exec);
    let described = described(&state, &languages);
    let mut error = std::ptr::null_mut();
    let answered = {
        let _current = Current::enter(&state);
        // SAFETY: the primitive's rule with its context; the call and everything that it points to live until the rule
        // returns.
        unsafe {
            let code = rule(primitive.context(), &described, &raw mut error);
            if code == status::UNSUPPORTED && primitive.rules.compose.is_some() {
                // The reason matters only if there is no other way to evaluate.
                drop(take_error(std::mem::replace(&mut error, std::ptr::null_mut())));
            }
            answer(primitive.name, name, code, error)
        }
    };
    // The device may have rejected something that the rule tried; only the rule's own result counts.
    exec.take_refusal();
    if !answered? {
        if state.has_taken() {
            let text = format!(
                "{name} took an input's memory and then returned UM_UNSUPPORTED. Return it before the first output has memory."
            );
            return Err(Error::runtime(primitive.name, text));
        }
        return Ok(None);
    }
    // Tasks run after the call, on its stream and in order. If one fails, the others are dropped.
    let tasks = state.tasks.take();
    tasks.into_iter().try_for_each(|task| task.run(primitive.name))?;
    state.finish(name).map(Some)
}

/// The values, computed by other operations on the same device.
pub(super) fn composed(own: &Applied, c: &Compose<'_>) -> Result<Vec<Value>> {
    let name = own.primitive.name;
    let _deeper = Deeper::new(name)?;
    let Some(arrays) = own.compose(c.operands, c.results)? else {
        return Err(neither(&own.primitive, c.exec, c.operands));
    };
    (c.evaluate)(c.exec, &arrays).map_err(|e| named(name, "compose", e.root().clone()))
}

/// The error for a primitive that cannot be evaluated on a device.
#[cold]
fn neither(primitive: &Primitive, exec: &Exec, operands: &[Array]) -> Error {
    let dtypes: Vec<_> = operands.iter().map(|a| a.dtype().name()).collect();
    let dtypes = dtypes.join(", ");
    let has = |there: bool, rule: &str| match there {
        true => format!("{rule} does not support ({dtypes})"),
        false => format!("it has no {rule}"),
    };
    let no_compose = match primitive.rules.compose {
        Some(_) => "compose does not support them either",
        None => "there is no compose",
    };
    if exec.device.is_host() {
        let cpu = has(primitive.rules.eval_cpu.is_some(), "eval_cpu");
        return Error::runtime(
            primitive.name,
            format!(
                "It cannot run on the CPU: {cpu}, and {no_compose}. Convert the operands, or run it on a device that it supports."
            ),
        );
    }
    let takes = match exec.languages() {
        [] => "takes no kernels".to_owned(),
        languages => format!("takes kernels in {}", languages.join(", ")),
    };
    let languages = primitive.missing_languages();
    let own = match (primitive.rules.eval_gpu.is_some(), &languages[..]) {
        (true, []) if !exec.languages().is_empty() => has(true, "eval_gpu"),
        (true, []) => "it has kernels in other languages".to_owned(),
        (true, languages) => format!("it has kernels in {}", languages.join(", ")),
        (false, _) => "it has no eval_gpu".to_owned(),
    };
    let device = exec.device;
    Error::runtime(
        primitive.name,
        format!(
            "It cannot run on {} (backend {}), which {takes}: {own}, and {no_compose}. Run it on a stream of the CPU.",
            device.device, device.backend
        ),
    )
}
