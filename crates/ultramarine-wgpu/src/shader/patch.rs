//! Floating-point semantics of IEEE 754: no contraction, and infinities, NaNs and signs of zero are
//! preserved.

use super::spirv::{self, HEADER, instructions, op, opcode, operand, push};

/// NoContraction.
const NO_CONTRACTION: u32 = 42;

/// Execution modes with their capabilities, in the order of [`FloatControls`]' fields.
const SPECIALS: (u32, u32) = (4461, 4466);
const TO_NEAREST: (u32, u32) = (4462, 4467);
const SUBNORMALS: (u32, u32) = (4459, 4464);

/// The rounding modes and special values that SPIR-V may request from the driver, for types of 16,
/// 32 and 64 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FloatControls {
    /// SignedZeroInfNanPreserve.
    pub specials: [bool; 3],
    /// RoundingModeRTE.
    pub to_nearest: [bool; 3],
    /// DenormPreserve.
    pub subnormals: [bool; 3],
}

/// Returns true for floating-point arithmetic, whose results get the decoration.
fn is_float_arithmetic(opcode: u32) -> bool {
    // FNegate, FAdd, FSub, FMul, FDiv, FRem, FMod, VectorTimesScalar to Dot.
    matches!(opcode, 127 | 129 | 131 | 133 | 136 | 140..=148)
}

/// Returns the module with three changes: NoContraction on every result of floating-point
/// arithmetic; the modes that the device supports, for the widths in use; and a `!=` that is true
/// for NaN, which naga writes as an ordered comparison.
pub fn patch(module: &[u32], offered: &FloatControls) -> Result<Vec<u32>, String> {
    let list = instructions(module)?;
    // Types with a special encoding, such as bfloat16, have no modes.
    let plain = |i: &&&[u32]| opcode(i) == op::TYPE_FLOAT && i.len() == 3;
    let widths = list.iter().filter(plain).map(|i| operand(i, 1));
    let widths: Vec<u32> = widths.collect();
    let (mut capabilities, mut modes) = (Vec::new(), Vec::new());
    let entry = list.iter().find(|i| opcode(i) == op::ENTRY_POINT);
    let entry = operand(entry.ok_or("a kernel without entry point")?, 1);
    for ((mode, capability), flags) in [
        (SPECIALS, offered.specials),
        (TO_NEAREST, offered.to_nearest),
        (SUBNORMALS, offered.subnormals),
    ] {
        let used = [16, 32, 64].into_iter().zip(flags);
        let used: Vec<u32> =
            used.filter(|(width, there)| *there && widths.contains(width)).map(|u| u.0).collect();
        if !used.is_empty() {
            push(&mut capabilities, op::CAPABILITY, &[capability]);
        }
        for width in used {
            push(&mut modes, op::EXECUTION_MODE, &[entry, mode, width]);
        }
    }
    let mut decorations = Vec::new();
    for result in list.iter().filter(|i| is_float_arithmetic(opcode(i))) {
        push(&mut decorations, op::DECORATE, &[operand(result, 1), NO_CONTRACTION]);
    }

    let mut out = module[..HEADER].to_vec();
    let (mut in_capabilities, mut before_modes, mut before_types) = (true, true, true);
    for instruction in list {
        let code = opcode(instruction);
        if in_capabilities && code != op::CAPABILITY {
            in_capabilities = false;
            out.append(&mut capabilities);
        }
        // The modes follow the entry points. naga's own modes may come after them.
        if code == op::ENTRY_POINT {
            out.extend_from_slice(instruction);
            if std::mem::take(&mut before_modes) {
                out.append(&mut modes);
            }
            continue;
        }
        if before_types && spirv::is_declaration(code) {
            before_types = false;
            out.append(&mut decorations);
        }
        match code {
            op::F_ORD_NOT_EQUAL => {
                push(&mut out, op::F_UNORD_NOT_EQUAL, &instruction[1..]);
            }
            _ => out.extend_from_slice(instruction),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::compile::compile;

    const TEXT: &str = "
        @group(0) @binding(0) var<storage, read_write> a: array<f32>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) g: vec3<u32>) {
            let x = a[g.x];
            if (x != x) { a[g.x] = x * x + x; }
        }";

    fn count(module: &[u32], code: u32) -> usize {
        instructions(module).unwrap().iter().filter(|i| opcode(i) == code).count()
    }

    #[test]
    fn arithmetic_is_decorated_and_modes_are_asked_for() {
        let module = compile(TEXT).unwrap();
        let offered = FloatControls {
            specials: [true; 3],
            to_nearest: [true, true, false],
            subnormals: [true, false, true],
        };
        let patched = patch(&module, &offered).unwrap();
        let decorated = |m: &[u32]| {
            let list = instructions(m).unwrap();
            let is = |i: &&&[u32]| opcode(i) == op::DECORATE && operand(i, 1) == NO_CONTRACTION;
            list.iter().filter(is).count()
        };
        assert_eq!((decorated(&module), decorated(&patched)), (0, 2));
        // For the only width in use, two modes are supported.
        let modes = |m: &[u32]| count(m, op::EXECUTION_MODE);
        assert_eq!(modes(&patched), modes(&module) + 2);
        assert_eq!(count(&patched, op::CAPABILITY), count(&module, op::CAPABILITY) + 2);
        assert_eq!(count(&module, op::F_ORD_NOT_EQUAL), 1);
        assert_eq!(count(&patched, op::F_ORD_NOT_EQUAL), 0);
        assert_eq!(count(&patched, op::F_UNORD_NOT_EQUAL), 1);
    }

    #[test]
    fn what_is_no_module_is_refused() {
        let offered = FloatControls::default();
        assert!(patch(&[1, 2], &offered).is_err());
        assert!(patch(&[0, 0, 0, 0, 0, 9 << 16], &offered).is_err());
        assert!(patch(&[0; 5], &offered).is_err());
    }
}
