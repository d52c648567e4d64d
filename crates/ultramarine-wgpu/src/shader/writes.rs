//! The buffers that a kernel writes, as its SPIR-V shows.

use super::spirv::{instructions, op, opcode, operand};
use std::collections::HashMap;

/// Binding.
const BINDING: u32 = 33;
/// Storage class StorageBuffer.
const STORAGE_BUFFER: u32 = 12;

/// A bit for each binding that the kernel may write. A buffer that a function gets by pointer counts as written.
pub fn written(module: &[u32]) -> Result<u32, String> {
    let list = instructions(module)?;
    let mut bindings = HashMap::new();
    // The variable behind each pointer.
    let mut roots = HashMap::new();
    let mut written = 0;
    for instruction in &list {
        let operands = |i| operand(instruction, i);
        let mut write = |pointer: u32| {
            let binding = roots.get(&pointer).and_then(|variable| bindings.get(variable));
            written |= binding.and_then(|binding| 1_u32.checked_shl(*binding)).unwrap_or(0);
        };
        match opcode(instruction) {
            op::DECORATE if operands(1) == BINDING => {
                bindings.insert(operands(0), operands(2));
            }
            op::VARIABLE if operands(2) == STORAGE_BUFFER => {
                roots.insert(operands(1), operands(1));
            }
            op::ACCESS_CHAIN | op::IN_BOUNDS_ACCESS_CHAIN | op::COPY_OBJECT => {
                if let Some(root) = roots.get(&operands(2)).copied() {
                    roots.insert(operands(1), root);
                }
            }
            op::STORE | op::ATOMIC_STORE => write(operands(0)),
            op::ATOMIC_EXCHANGE..=op::ATOMIC_XOR => write(operands(2)),
            op::FUNCTION_CALL => {
                for pointer in instruction.iter().skip(4) {
                    write(*pointer);
                }
            }
            _ => {}
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::written;
    use crate::shader::compile;

    #[test]
    fn stores_atomics_and_pointers_count() {
        let text = "@group(0) @binding(0) var<storage, read> a: array<u32>;\n\
                    @group(0) @binding(1) var<storage, read_write> b: array<u32>;\n\
                    @group(0) @binding(2) var<storage, read_write> c: array<u32>;\n\
                    @group(0) @binding(3) var<storage, read_write> d: atomic<u32>;\n\
                    @group(0) @binding(4) var<storage, read_write> e: array<u32>;\n\
                    fn put(at: u32, value: u32) { b[at] = value; }\n\
                    @compute @workgroup_size(1) fn main() {\n\
                    put(a[0], c[1]);\natomicAdd(&d, 1u);\nlet p = &e[2];\n*p = 1u;\n}";
        assert_eq!(written(&compile::compile(text).unwrap()), Ok(0b11010));
    }
}
