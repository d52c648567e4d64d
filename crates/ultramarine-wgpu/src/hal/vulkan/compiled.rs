//! Users' kernels in SPIR-V, made by other compilers. This module reads from their words what a launch needs to
//! know. It does not validate the module; the driver trusts the module, as it trusts every Vulkan application's.

use super::Code;
use crate::hal::{Compiled, Properties};
use crate::shader::spirv::{HEADER, instructions, op, opcode, operand};
use std::collections::BTreeMap;

const MAGIC: u32 = 0x0723_0203;
/// Version 1.5, the last that Vulkan 1.2 accepts, and version 1.3, the first with the storage class of
/// buffers.
const VERSIONS: [u32; 2] = [0x1_0500, 0x1_0300];
/// Maximum size of a scalar, in bytes.
const SCALAR_BYTES: u32 = 16;

/// Execution model of compute kernels.
const KERNEL: u32 = 5;
/// Execution mode that sets a workgroup's size.
const LOCAL_SIZE: u32 = 17;
/// The built-in constant that overrides the mode.
const WORKGROUP_SIZE: u32 = 25;

/// Storage classes.
mod class {
    pub const INPUT: u32 = 1;
    pub const UNIFORM: u32 = 2;
    pub const WORKGROUP: u32 = 4;
    pub const PRIVATE: u32 = 6;
    pub const FUNCTION: u32 = 7;
    pub const STORAGE_BUFFER: u32 = 12;
}

/// Decorations.
mod decoration {
    pub const BLOCK: u32 = 2;
    /// Decoration of buffers in code without their storage class.
    pub const BUFFER_BLOCK: u32 = 3;
    pub const BUILT_IN: u32 = 11;
    pub const NON_WRITABLE: u32 = 24;
    pub const BINDING: u32 = 33;
    pub const DESCRIPTOR_SET: u32 = 34;
}

/// Capabilities that devices support, by the features they are opened with: always; with float64 arithmetic; and by
/// bits of VkSubgroupFeatureFlagBits, starting with capability 61.
const CAPABILITIES: [u32; 8] = [0, 1, 11, 22, 39, 4433, 4434, 4448];
const FLOAT64: u32 = 10;
const SUBGROUPS: core::ops::RangeInclusive<u32> = 61..=68;
/// SignedZeroInfNanPreserve, RoundingModeRTE, DenormPreserve.
const FLOAT_CONTROLS: [u32; 3] = [4466, 4467, 4464];

/// The kernel of an entry point in a module.
pub fn compiled(bytes: &[u8], entry: &str, properties: &Properties) -> Result<Compiled, String> {
    let (words, rest) = bytes.as_chunks();
    let mut words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    if words.first() != Some(&MAGIC) || !rest.is_empty() || words.len() < HEADER {
        return Err(
            "the code is not SPIR-V of little-endian words. Compile it to SPIR-V".to_owned()
        );
    }
    let [last, first] = VERSIONS;
    if words[1] > last {
        let minor = words[1] >> 8 & 0xff;
        return Err(format!(
            "the code is SPIR-V 1.{minor}, and this device takes 1.5 at most. Compile for a lower version"
        ));
    }
    words[1] = words[1].max(first);
    let module = Module { list: instructions(&words)? };
    if module.list.last().is_none_or(|last| opcode(last) != op::FUNCTION_END) {
        return Err("the SPIR-V is truncated in its last function. Compile it again".to_owned());
    }
    module.check_capabilities(properties)?;
    let point = module.entry(entry)?;
    let group = module.group(point)?;
    module.check_shared(properties)?;
    let bindings = module.bindings()?;
    let written = bindings.iter().filter(|(_, b)| b.written);
    let written = written.filter_map(|(number, _)| 1_u32.checked_shl(*number));
    let written = written.fold(0, |all, bit| all | bit);
    let uniform = bindings.iter().map(|(number, b)| (*number, b.uniform)).collect();
    let code = module.with_buffers_for_uniforms(&words[..HEADER]);
    Ok(Compiled { code: Code::of_module(code, entry, written), group, uniform })
}

/// A variable that a launch binds.
#[derive(Clone, Copy)]
struct Bound {
    uniform: bool,
    written: bool,
}

struct Module<'a> {
    list: Vec<&'a [u32]>,
}

impl Module<'_> {
    fn all(&self, code: u32) -> impl Iterator<Item = &[u32]> {
        self.list.iter().copied().filter(move |i| opcode(i) == code)
    }

    /// The instruction that defines an id. Depending on the instruction, the id is its first or
    /// second operand.
    fn made(&self, id: u32) -> Option<&[u32]> {
        self.list.iter().copied().find(|i| match opcode(i) {
            op::TYPE_VOID..=op::TYPE_FORWARD_POINTER => operand(i, 0) == id,
            op::CONSTANT_TRUE..=op::SPEC_CONSTANT_OP => operand(i, 1) == id,
            _ => false,
        })
    }

    /// Returns the first operand of a decoration of an id.
    fn decoration(&self, id: u32, kind: u32) -> Option<u32> {
        let mut all = self.all(op::DECORATE);
        all.find(|i| operand(i, 0) == id && operand(i, 1) == kind).map(|i| operand(i, 2))
    }

    fn check_capabilities(&self, properties: &Properties) -> Result<(), String> {
        for capability in self.all(op::CAPABILITY).map(|i| operand(i, 0)) {
            let offered = match capability {
                FLOAT64 => properties.float64,
                _ if SUBGROUPS.contains(&capability) => {
                    let bit = capability - SUBGROUPS.start();
                    properties.subgroup_operations >> bit & 1 == 1
                }
                _ if let Some(i) = FLOAT_CONTROLS.iter().position(|c| *c == capability) => {
                    let floats = &properties.floats;
                    [floats.specials, floats.to_nearest, floats.subnormals][i].contains(&true)
                }
                _ => CAPABILITIES.contains(&capability),
            };
            if !offered {
                return Err(format!(
                    "the code needs SPIR-V's capability {capability}, which this device is not opened with. Compile without it"
                ));
            }
        }
        Ok(())
    }

    /// The id of a kernel, by its name.
    fn entry(&self, name: &str) -> Result<u32, String> {
        let kernels = self.all(op::ENTRY_POINT).filter(|i| operand(i, 0) == KERNEL);
        let kernels: Vec<(u32, String)> = kernels.map(|i| (operand(i, 1), text(&i[3..]))).collect();
        let found = kernels.iter().find(|(_, known)| known == name);
        found.map(|(id, _)| *id).ok_or_else(|| {
            let names: Vec<_> = kernels.iter().map(|(_, known)| known.as_str()).collect();
            format!("the code has no kernel {name}; it has: {}", names.join(", "))
        })
    }

    /// Invocations of a workgroup.
    fn group(&self, point: u32) -> Result<[u32; 3], String> {
        let built_in = self
            .all(op::DECORATE)
            .find(|i| operand(i, 1) == decoration::BUILT_IN && operand(i, 2) == WORKGROUP_SIZE);
        let constant = |id| self.made(id).map(|i| operand(i, 2));
        if let Some(made) = built_in.and_then(|i| self.made(operand(i, 0))) {
            let sizes = [2, 3, 4].map(|i| constant(operand(made, i)));
            if let [Some(x), Some(y), Some(z)] = sizes {
                return Ok([x, y, z]);
            }
        }
        let mut modes = self.all(op::EXECUTION_MODE);
        let mode = modes.find(|i| operand(i, 0) == point && operand(i, 1) == LOCAL_SIZE);
        let mode =
            mode.ok_or("the code does not set the size of a group. Declare it (LocalSize)")?;
        Ok([2, 3, 4].map(|i| operand(mode, i)))
    }

    /// Size of a type in bytes, without padding between the members of structs; 0 if the code does not
    /// define the size.
    fn bytes(&self, id: u32) -> u32 {
        let Some(made) = self.made(id) else { return 0 };
        let (of, count) = (operand(made, 1), operand(made, 2));
        match opcode(made) {
            op::TYPE_BOOL => 4,
            op::TYPE_INT | op::TYPE_FLOAT => of / 8,
            op::TYPE_VECTOR | op::TYPE_MATRIX => self.bytes(of).saturating_mul(count),
            op::TYPE_ARRAY => {
                let count = self.made(count).map_or(0, |i| operand(i, 2));
                self.bytes(of).saturating_mul(count)
            }
            op::TYPE_STRUCT => {
                made[2..].iter().fold(0, |sum: u32, member| sum.saturating_add(self.bytes(*member)))
            }
            _ => 0,
        }
    }

    /// The type that a variable's pointer points to.
    fn pointee(&self, variable: &[u32]) -> u32 {
        self.made(operand(variable, 0)).map_or(0, |pointer| operand(pointer, 2))
    }

    /// Checks the shared memory of a workgroup, because drivers need not check it.
    fn check_shared(&self, properties: &Properties) -> Result<(), String> {
        let shared = self.all(op::VARIABLE).filter(|i| operand(i, 2) == class::WORKGROUP);
        let bytes = shared.fold(0, |sum: u32, i| sum.saturating_add(self.bytes(self.pointee(i))));
        let most = properties.group_memory;
        if bytes > most {
            return Err(format!(
                "the code shares {bytes} bytes in a group, which has {most} on this device. Share less"
            ));
        }
        Ok(())
    }

    /// The variables that a launch binds, by their binding numbers.
    fn bindings(&self) -> Result<BTreeMap<u32, Bound>, String> {
        let mut found = BTreeMap::new();
        for variable in self.all(op::VARIABLE) {
            let (id, of) = (operand(variable, 1), self.pointee(variable));
            let uniform = match operand(variable, 2) {
                class::INPUT | class::WORKGROUP | class::PRIVATE | class::FUNCTION => continue,
                class::STORAGE_BUFFER => false,
                class::UNIFORM => self.decoration(of, decoration::BUFFER_BLOCK).is_none(),
                other => {
                    return Err(format!(
                        "the code has a variable of storage class {other}: arguments are storage buffers, and uniform \
                         buffers with one number each"
                    ));
                }
            };
            let number = self.decoration(id, decoration::BINDING);
            let set = self.decoration(id, decoration::DESCRIPTOR_SET);
            let (Some(number), Some(0)) = (number, set) else {
                return Err("an argument of the code has no binding in descriptor set 0. Give each argument a binding there".to_owned());
            };
            if uniform && self.bytes(of) > SCALAR_BYTES {
                return Err(format!(
                    "the uniform of binding {number} is not a number of at most {SCALAR_BYTES} bytes. Use a storage buffer"
                ));
            }
            let bound = Bound { uniform, written: !uniform && !self.is_read_only(id, of) };
            let known = found.entry(number).or_insert(bound);
            if known.uniform != uniform {
                return Err(format!(
                    "binding {number} is both a number and a storage buffer. Use two bindings"
                ));
            }
            known.written |= bound.written;
        }
        Ok(found)
    }

    /// True if the variable, or every member of its struct, is declared read-only.
    fn is_read_only(&self, id: u32, of: u32) -> bool {
        let members = self.made(of).map_or(0, |made| made.len().saturating_sub(2));
        let decorated = self
            .all(op::MEMBER_DECORATE)
            .filter(|i| operand(i, 0) == of && operand(i, 2) == decoration::NON_WRITABLE);
        self.decoration(id, decoration::NON_WRITABLE).is_some()
            || (members > 0 && decorated.count() >= members)
    }

    /// The module with uniform buffers replaced by storage buffers, because launches bind only these.
    fn with_buffers_for_uniforms(&self, header: &[u32]) -> Vec<u32> {
        let mut out = header.to_vec();
        for instruction in &self.list {
            let start = out.len();
            out.extend_from_slice(instruction);
            let (at, from, to) = match opcode(instruction) {
                op::TYPE_POINTER => (2, class::UNIFORM, class::STORAGE_BUFFER),
                op::VARIABLE => (3, class::UNIFORM, class::STORAGE_BUFFER),
                op::DECORATE => (2, decoration::BUFFER_BLOCK, decoration::BLOCK),
                _ => continue,
            };
            if let Some(word) = out.get_mut(start + at).filter(|word| **word == from) {
                *word = to;
            }
        }
        out
    }
}

/// A NUL-terminated text.
fn text(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).take_while(|byte| *byte != 0);
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
}
