//! Vulkan's memory model, which naga requests in kernels with cooperative matrices. In this model,
//! barriers order only accesses that are marked as non-private, but naga does not mark them.

use super::spirv::{HEADER, instructions, op, opcode, operand, push};
use std::collections::{HashMap, HashSet};

/// The capability VulkanMemoryModel.
const CAPABILITY: u32 = 5345;
/// NonPrivatePointer, a memory operand of an access.
const NOT_PRIVATE: u32 = 0x20;
/// The storage class Workgroup. Buffers need no marks, because invocations do not read from buffers
/// what other invocations of the kernel write.
const WORKGROUP: u32 = 4;

/// Returns the module with all accesses to workgroup memory marked, if it uses that memory model.
pub fn marked(module: &[u32]) -> Result<Vec<u32>, String> {
    let list = instructions(module)?;
    let model = |i: &&[u32]| opcode(i) == op::CAPABILITY && operand(i, 0) == CAPABILITY;
    if !list.iter().any(model) {
        return Ok(module.to_vec());
    }
    let mut pointers: HashMap<u32, u32> = HashMap::new();
    let mut room = HashSet::new();
    let mut out = module[..HEADER].to_vec();
    for i in list {
        let code = opcode(i);
        let mut operands = i[1..].to_vec();
        match code {
            op::TYPE_POINTER => _ = pointers.insert(operands[0], operands[1]),
            op::VARIABLE | op::ACCESS_CHAIN if pointers.get(&operands[0]) == Some(&WORKGROUP) => {
                room.insert(operands[1]);
            }
            // Memory operands come last, and naga writes none.
            op::LOAD | op::COOPERATIVE_LOAD if room.contains(&operands[2]) => {
                operands.push(NOT_PRIVATE);
            }
            op::STORE | op::COOPERATIVE_STORE if room.contains(&operands[0]) => {
                operands.push(NOT_PRIVATE);
            }
            _ => {}
        }
        push(&mut out, code, &operands);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::compile::compile;

    #[test]
    fn accesses_to_shared_memory_are_marked_in_kernels_with_matrices() {
        let body = "room[i] = a[i]; workgroupBarrier(); a[i] = room[31u - i];";
        let text = |enable: &str, more: &str| {
            format!(
                "{enable}\n@group(0) @binding(0) var<storage, read_write> a: array<f32>;\n\
                 var<workgroup> room: array<f32, 1024>;\n\
                 @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {{ {body} {more} }}"
            )
        };
        let plain = compile(&text("", "")).unwrap();
        assert_eq!(marked(&plain).unwrap(), plain);
        // naga requests the memory model if such a type is declared.
        let more = "var c: Sums = coopLoadT<Sums>(&room[0], 16u); coopStoreT(c, &a[0], 16u);";
        let enable = "enable wgpu_cooperative_matrix;\nalias Sums = coop_mat16x16<f32, C>;";
        let module = compile(&text(enable, more)).unwrap();
        let module = marked(&module).unwrap();
        let accesses = |code: u32, at: usize| {
            let list = instructions(&module).unwrap();
            let of = list.iter().filter(|i| opcode(i) == code);
            of.map(|i| operand(i, at)).collect::<Vec<_>>()
        };
        assert_eq!(accesses(op::COOPERATIVE_LOAD, 5), [NOT_PRIVATE]);
        // The first access, and one of every two others, is to a buffer.
        assert_eq!(accesses(op::COOPERATIVE_STORE, 4), [0]);
        assert_eq!(accesses(op::STORE, 2).iter().filter(|o| **o == NOT_PRIVATE).count(), 1);
        assert_eq!(accesses(op::LOAD, 3).iter().filter(|o| **o == NOT_PRIVATE).count(), 1);
    }
}
