//! The words of SPIR-V modules, as far as the passes here use them.

/// Opcodes.
pub mod op {
    #![allow(missing_docs, reason = "they are called as the specification calls them")]
    pub const EXTENSION: u32 = 10;
    pub const ENTRY_POINT: u32 = 15;
    pub const EXECUTION_MODE: u32 = 16;
    pub const CAPABILITY: u32 = 17;
    pub const TYPE_VOID: u32 = 19;
    pub const TYPE_BOOL: u32 = 20;
    pub const TYPE_INT: u32 = 21;
    pub const TYPE_FLOAT: u32 = 22;
    pub const TYPE_VECTOR: u32 = 23;
    pub const TYPE_MATRIX: u32 = 24;
    pub const TYPE_ARRAY: u32 = 28;
    pub const TYPE_RUNTIME_ARRAY: u32 = 29;
    pub const TYPE_STRUCT: u32 = 30;
    pub const TYPE_POINTER: u32 = 32;
    pub const TYPE_FORWARD_POINTER: u32 = 39;
    pub const CONSTANT_TRUE: u32 = 41;
    pub const SPEC_CONSTANT_OP: u32 = 52;
    pub const FUNCTION_END: u32 = 56;
    pub const VARIABLE: u32 = 59;
    pub const LOAD: u32 = 61;
    pub const STORE: u32 = 62;
    pub const ACCESS_CHAIN: u32 = 65;
    pub const DECORATE: u32 = 71;
    pub const MEMBER_DECORATE: u32 = 72;
    pub const U_CONVERT: u32 = 113;
    pub const S_CONVERT: u32 = 114;
    pub const F_CONVERT: u32 = 115;
    pub const F_ORD_NOT_EQUAL: u32 = 182;
    pub const F_UNORD_NOT_EQUAL: u32 = 183;
    pub const EXECUTION_MODE_ID: u32 = 331;
    pub const TYPE_COOPERATIVE_MATRIX: u32 = 4456;
    pub const COOPERATIVE_LOAD: u32 = 4457;
    pub const COOPERATIVE_STORE: u32 = 4458;
}

/// Words before the first instruction.
pub const HEADER: usize = 5;

/// Returns the instructions of a module, or the reason why it is invalid.
pub fn instructions(module: &[u32]) -> Result<Vec<&[u32]>, String> {
    let mut list = Vec::new();
    let mut rest = module.get(HEADER..).ok_or("a SPIR-V module without header")?;
    while let Some(first) = rest.first() {
        let length = (first >> 16) as usize;
        if length == 0 || length > rest.len() {
            return Err(format!("a SPIR-V instruction of {length} words"));
        }
        let (one, behind) = rest.split_at(length);
        list.push(one);
        rest = behind;
    }
    Ok(list)
}

/// The opcode of an instruction.
pub fn opcode(instruction: &[u32]) -> u32 {
    instruction[0] & 0xffff
}

/// Returns operand `i` of an instruction, or 0 if it has fewer operands.
pub fn operand(instruction: &[u32], i: usize) -> u32 {
    instruction.get(i + 1).copied().unwrap_or(0)
}

/// Appends an instruction.
pub fn push(to: &mut Vec<u32>, opcode: u32, operands: &[u32]) {
    to.push(opcode | (operands.len() as u32 + 1) << 16);
    to.extend_from_slice(operands);
}

/// Returns true for instructions that follow the annotations of a module: types, constants and
/// variables.
pub fn is_declaration(opcode: u32) -> bool {
    matches!(opcode,
        op::TYPE_VOID..=op::TYPE_FORWARD_POINTER
        | op::CONSTANT_TRUE..=op::SPEC_CONSTANT_OP
        | op::VARIABLE
        | 1)
}
