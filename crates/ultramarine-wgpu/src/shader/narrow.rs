//! Buffers of bytes. naga does not support 8-bit integers, so programs declare such buffers with
//! 16-bit elements. This pass changes the buffers to arrays of bytes, and adds conversions to loads
//! and stores. Values in registers keep their 16 bits.

use super::spirv::{self, HEADER, instructions, op, opcode, operand, push};
use std::collections::HashMap;

/// Capabilities Int8 and StorageBuffer8BitAccess.
const CAPABILITIES: [u32; 2] = [39, 4448];
/// Decorations.
const BLOCK: u32 = 2;
const ARRAY_STRIDE: u32 = 6;
const BINDING: u32 = 33;
const OFFSET: u32 = 35;
/// Storage class of the buffers.
const STORAGE_BUFFER: u32 = 12;

/// The byte types of one signedness.
#[derive(Clone, Copy)]
struct Bytes {
    element: u32,
    element_pointer: u32,
}

/// A buffer that becomes an array of bytes.
#[derive(Clone, Copy)]
struct Narrowed {
    /// Type of the elements in registers, and its signedness.
    wide: u32,
    signed: bool,
    bytes: Bytes,
    pointer: u32,
    array_pointer: u32,
}

/// The types of a module, by their ids.
#[derive(Default)]
struct Types {
    integers: HashMap<u32, (u32, u32)>,
    arrays: HashMap<u32, u32>,
    structs: HashMap<u32, u32>,
    pointers: HashMap<u32, u32>,
    variables: HashMap<u32, u32>,
}

impl Types {
    fn of(list: &[&[u32]]) -> Self {
        let mut types = Self::default();
        for i in list {
            let id = operand(i, 0);
            match opcode(i) {
                op::TYPE_INT => _ = types.integers.insert(id, (operand(i, 1), operand(i, 2))),
                op::TYPE_RUNTIME_ARRAY => _ = types.arrays.insert(id, operand(i, 1)),
                op::TYPE_STRUCT => _ = types.structs.insert(id, operand(i, 1)),
                op::TYPE_POINTER => _ = types.pointers.insert(id, operand(i, 2)),
                op::VARIABLE => _ = types.variables.insert(operand(i, 1), id),
                _ => {}
            }
        }
        types
    }

    /// Returns a buffer's element type and its signedness. The buffer is a pointer to a struct with
    /// a runtime array of 16-bit integers.
    fn element(&self, variable: u32) -> Option<(u32, u32)> {
        let block = self.pointers.get(self.variables.get(&variable)?)?;
        let element = self.arrays.get(self.structs.get(block)?)?;
        match self.integers.get(element)? {
            (16, signed) => Some((*element, *signed)),
            _ => None,
        }
    }
}

/// Returns the module with byte elements in the buffers at these bindings.
pub fn narrow(module: &[u32], bindings: &[u32]) -> Result<Vec<u32>, String> {
    if bindings.is_empty() {
        return Ok(module.to_vec());
    }
    let list = instructions(module)?;
    let types = Types::of(&list);
    let mut bound = module[3];
    let mut fresh = || {
        bound += 1;
        bound - 1
    };
    let (mut decorations, mut declarations) = (Vec::new(), Vec::new());
    let mut bytes: HashMap<u32, Bytes> = HashMap::new();
    let mut narrowed: HashMap<u32, Narrowed> = HashMap::new();
    for decoration in &list {
        let is = opcode(decoration) == op::DECORATE && operand(decoration, 1) == BINDING;
        if !is || !bindings.contains(&operand(decoration, 2)) {
            continue;
        }
        let variable = operand(decoration, 0);
        let (wide, signed) = types.element(variable).ok_or_else(|| {
            format!("binding {} is no array of integers of 16 bits", operand(decoration, 2))
        })?;
        let bytes = *bytes.entry(signed).or_insert_with(|| {
            let made = Bytes { element: fresh(), element_pointer: fresh() };
            push(&mut declarations, op::TYPE_INT, &[made.element, 8, signed]);
            let pointer = [made.element_pointer, STORAGE_BUFFER, made.element];
            push(&mut declarations, op::TYPE_POINTER, &pointer);
            made
        });
        let [array, block, pointer, array_pointer] = [fresh(), fresh(), fresh(), fresh()];
        push(&mut declarations, op::TYPE_RUNTIME_ARRAY, &[array, bytes.element]);
        push(&mut declarations, op::TYPE_STRUCT, &[block, array]);
        push(&mut declarations, op::TYPE_POINTER, &[pointer, STORAGE_BUFFER, block]);
        push(&mut declarations, op::TYPE_POINTER, &[array_pointer, STORAGE_BUFFER, array]);
        push(&mut decorations, op::DECORATE, &[array, ARRAY_STRIDE, 1]);
        push(&mut decorations, op::DECORATE, &[block, BLOCK]);
        push(&mut decorations, op::MEMBER_DECORATE, &[block, 0, OFFSET, 0]);
        let signed = signed == 1;
        narrowed.insert(variable, Narrowed { wide, signed, bytes, pointer, array_pointer });
    }

    let mut out = module[..HEADER].to_vec();
    // Pointers to the arrays, and to elements, by their ids.
    let (mut arrays, mut elements) = (HashMap::new(), HashMap::new());
    let (mut in_capabilities, mut before_types, mut before_variables) = (true, true, true);
    for instruction in list {
        let code = opcode(instruction);
        if in_capabilities && code != op::CAPABILITY {
            in_capabilities = false;
            CAPABILITIES.iter().for_each(|c| push(&mut out, op::CAPABILITY, &[*c]));
        }
        if before_types && spirv::is_declaration(code) {
            before_types = false;
            out.append(&mut decorations);
        }
        if before_variables && code == op::VARIABLE {
            before_variables = false;
            out.append(&mut declarations);
        }
        let [first, second, third] = [0, 1, 2].map(|i| operand(instruction, i));
        match code {
            op::VARIABLE if narrowed.contains_key(&second) => {
                let mut words = instruction[1..].to_vec();
                words[0] = narrowed[&second].pointer;
                push(&mut out, op::VARIABLE, &words);
            }
            // naga makes either a chain from the variable to its array and another one to the
            // element, or a single chain.
            op::ACCESS_CHAIN if narrowed.contains_key(&third) => {
                let buffer = narrowed[&third];
                let mut words = instruction[1..].to_vec();
                if words.len() == 4 {
                    arrays.insert(second, buffer);
                    words[0] = buffer.array_pointer;
                } else {
                    elements.insert(second, buffer);
                    words[0] = buffer.bytes.element_pointer;
                }
                push(&mut out, op::ACCESS_CHAIN, &words);
            }
            op::ACCESS_CHAIN if arrays.contains_key(&third) => {
                let buffer: Narrowed = arrays[&third];
                elements.insert(second, buffer);
                let mut words = instruction[1..].to_vec();
                words[0] = buffer.bytes.element_pointer;
                push(&mut out, op::ACCESS_CHAIN, &words);
            }
            op::LOAD if elements.contains_key(&third) => {
                let buffer = elements[&third];
                let byte = fresh();
                push(&mut out, op::LOAD, &[buffer.bytes.element, byte, third]);
                let convert = if buffer.signed { op::S_CONVERT } else { op::U_CONVERT };
                push(&mut out, convert, &[buffer.wide, second, byte]);
            }
            op::STORE if elements.contains_key(&first) => {
                let buffer = elements[&first];
                let byte = fresh();
                let convert = if buffer.signed { op::S_CONVERT } else { op::U_CONVERT };
                push(&mut out, convert, &[buffer.bytes.element, byte, second]);
                push(&mut out, op::STORE, &[first, byte]);
            }
            _ => out.extend_from_slice(instruction),
        }
    }
    out[3] = bound;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::compile::compile;

    const TEXT: &str = "
        enable wgpu_int16;
        @group(0) @binding(1) var<storage, read_write> a: array<u16>;
        @group(0) @binding(2) var<storage, read_write> b: array<i16>;
        @group(0) @binding(3) var<storage, read_write> c: array<u16>;
        @compute @workgroup_size(1) fn main(@builtin(global_invocation_id) g: vec3<u32>) {
            c[g.x] = u16(u32(a[g.x]) + 1u);
            b[g.x] = i16(i32(b[g.x]) + 1);
        }";

    /// Number of instructions with a given opcode and operand.
    fn count(module: &[u32], code: u32, at: usize, value: u32) -> usize {
        let list = instructions(module).unwrap();
        list.iter().filter(|i| opcode(i) == code && operand(i, at) == value).count()
    }

    #[test]
    fn named_bindings_become_bytes() {
        let module = compile(TEXT).unwrap();
        let narrowed = narrow(&module, &[1, 2]).unwrap();
        assert_eq!(count(&narrowed, op::TYPE_INT, 1, 8), 2);
        assert_eq!(count(&narrowed, op::DECORATE, 1, ARRAY_STRIDE), {
            count(&module, op::DECORATE, 1, ARRAY_STRIDE) + 2
        });
        // For each buffer, a load and a store are converted; `c` keeps its 16 bits.
        let conversions =
            |m: &[u32], code| instructions(m).unwrap().iter().filter(|i| opcode(i) == code).count();
        let more = |code| conversions(&narrowed, code) - conversions(&module, code);
        assert_eq!((more(op::U_CONVERT), more(op::S_CONVERT)), (1, 2));
        assert!(narrowed[3] > module[3]);
    }

    #[test]
    fn bindings_of_other_types_are_refused() {
        let text = TEXT.replace("array<i16>", "array<i32>").replace("i16(", "i32(");
        assert!(narrow(&compile(&text).unwrap(), &[2]).unwrap_err().contains("binding 2"));
    }
}
