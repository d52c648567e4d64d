//! Cooperative matrices of halves. naga takes the type of a matrix from the array that it is loaded
//! from, and does not support bfloat16. The kernels here load from arrays of words, with two halves
//! in each. This pass converts matrices of unsigned words to float16, and matrices of signed words
//! to bfloat16 (`SPV_KHR_bfloat16`).
//!
//! Kernels without matrices use halves only for conversions to bfloat16 by the device, which
//! [`by_device`] substitutes for functions. Their halves become bfloat16, too.

use super::source::Source;
use super::spirv::{HEADER, instructions, op, opcode, operand, push};
use std::borrow::Cow;
use std::collections::HashMap;

/// BFloat16TypeKHR and BFloat16CooperativeMatrixKHR.
const CAPABILITIES: [u32; 2] = [5116, 5118];
const EXTENSION: &str = "SPV_KHR_bfloat16";
/// The encoding BFloat16KHR of a float type.
const BFLOAT16: u32 = 0;
/// Bits of a word.
const WORD: u32 = 32;

/// The functions of `numbers.wgsl` that round to bfloat16, and their replacements by the device's
/// conversion. The bits of bfloat16 are no words, so they are obtained by the opposite conversion.
const CONVERSIONS: [(&str, &str); 3] = [
    (
        "fn bf16_down(x: f32) -> u32 {\n",
        "fn bf16_down(x: f32) -> u32 { return bitcast<u32>(f32(f16(x))) >> 16u; }\n",
    ),
    (
        "fn bf16_high(x: f32) -> u32 {\n",
        "fn bf16_high(x: f32) -> u32 { return bitcast<u32>(f32(f16(x))); }\n",
    ),
    (
        "fn bf16_rounded(x: f32) -> f32 {\n",
        "fn bf16_rounded(x: f32) -> f32 { return f32(f16(x)); }\n",
    ),
];

/// Returns the program with rounding to bfloat16 by the device, unless it already has halves, or
/// rounds no numbers.
pub fn by_device(source: &Source) -> Cow<'_, Source> {
    const HEAD: &str = "enable wgpu_int16;\n";
    let Some(rest) = source.text.strip_prefix(HEAD) else { return Cow::Borrowed(source) };
    let mut text = format!("enable wgpu_int16, f16;\n{rest}");
    let mut found = false;
    for (head, by) in CONVERSIONS {
        let Some(at) = text.find(head) else { continue };
        let Some(length) = text[at..].find("\n}\n") else { continue };
        text.replace_range(at..at + length + 3, by);
        found = true;
    }
    match found {
        true => Cow::Owned(Source { text, ..source.clone() }),
        false => Cow::Borrowed(source),
    }
}

/// Returns the module with its matrices of words converted to halves.
pub fn made(module: &[u32]) -> Result<Vec<u32>, String> {
    let list = instructions(module)?;
    let all = |code: u32| list.iter().copied().filter(move |i| opcode(i) == code);
    let words: HashMap<u32, bool> = all(op::TYPE_INT)
        .filter(|i| operand(i, 1) == WORD)
        .map(|i| (operand(i, 0), operand(i, 2) == 1))
        .collect();
    let signed: Vec<bool> = all(op::TYPE_COOPERATIVE_MATRIX)
        .filter_map(|i| words.get(&operand(i, 1)).copied())
        .collect();
    // The source has declared the float16 types, which come before all others and are not used.
    let half = all(op::TYPE_FLOAT).find(|i| operand(i, 1) == 16).map(|i| operand(i, 0));
    let matrices = all(op::TYPE_COOPERATIVE_MATRIX).next().is_some();
    let bfloat16 = match signed.first() {
        Some(signed) => *signed,
        None if half.is_some() && !matrices => true,
        None => return Ok(module.to_vec()),
    };
    if signed.contains(&!bfloat16) {
        return Err("matrices of float16 and of bfloat16 in one kernel".to_owned());
    }
    let half = half.ok_or("matrices of halves without their type")?;
    let capabilities = if matrices { &CAPABILITIES[..] } else { &CAPABILITIES[..1] };

    let mut out = module[..HEADER].to_vec();
    let (mut in_capabilities, mut in_extensions) = (bfloat16, bfloat16);
    for instruction in list {
        let code = opcode(instruction);
        if in_capabilities && code != op::CAPABILITY {
            in_capabilities = false;
            capabilities.iter().for_each(|c| push(&mut out, op::CAPABILITY, &[*c]));
        }
        if in_extensions && !matches!(code, op::CAPABILITY | op::EXTENSION) {
            in_extensions = false;
            push(&mut out, op::EXTENSION, &text(EXTENSION));
        }
        match code {
            op::TYPE_FLOAT if bfloat16 && operand(instruction, 0) == half => {
                push(&mut out, code, &[half, 16, BFLOAT16]);
            }
            op::TYPE_COOPERATIVE_MATRIX if operand(instruction, 1) == half => {}
            op::TYPE_COOPERATIVE_MATRIX if words.contains_key(&operand(instruction, 1)) => {
                let mut operands = instruction[1..].to_vec();
                operands[1] = half;
                push(&mut out, code, &operands);
            }
            _ => out.extend_from_slice(instruction),
        }
    }
    Ok(out)
}

/// Encodes a text as operands: its bytes, with at least one NUL, in words.
fn text(text: &str) -> Vec<u32> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len() / 4 * 4 + 4, 0);
    let words = bytes.chunks_exact(4).filter_map(|word| word.try_into().ok());
    words.map(u32::from_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::Program;
    use crate::shader::compile::compile;

    fn module(word: &str) -> Vec<u32> {
        compile(&format!(
            "enable f16, wgpu_cooperative_matrix;\n\
             alias Left = coop_mat16x16<f16, A>;\nalias Right = coop_mat16x16<f16, B>;\nalias Sums = coop_mat16x16<f32, C>;\n\
             @group(0) @binding(0) var<storage, read_write> out: array<f32>;\n\
             var<workgroup> room: array<vec4<{word}>, 64>;\n\
             @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {{\n\
             room[i] = vec4<{word}>(); workgroupBarrier();\n\
             let a = coopLoadT<Left>(&room[0], 2u); let b = coopLoad<Right>(&room[32], 2u);\n\
             let c = coopMultiplyAdd(a, b, Sums()); coopStoreT(c, &out[0], 16u); }}"
        ))
        .unwrap()
    }

    #[test]
    fn matrices_of_words_become_those_of_halves() {
        for (word, bfloat16) in [("u32", false), ("i32", true)] {
            let made = made(&module(word)).unwrap();
            let list = instructions(&made).unwrap();
            let all = |code: u32| list.iter().copied().filter(move |i| opcode(i) == code);
            let half = all(op::TYPE_FLOAT).find(|i| operand(i, 1) == 16).unwrap();
            assert_eq!(half.len(), if bfloat16 { 4 } else { 3 });
            let matrices = all(op::TYPE_COOPERATIVE_MATRIX);
            let of_halves = matrices.filter(|i| operand(i, 1) == operand(half, 0));
            // One matrix is a left operand and the other a right one, so their types differ.
            let uses: Vec<u32> = of_halves.map(|i| operand(i, 5)).collect();
            assert_eq!(uses.len(), 2, "{word}");
            assert_ne!(uses[0], uses[1]);
            let words = all(op::TYPE_INT).map(|i| operand(i, 0)).collect::<Vec<_>>();
            assert!(all(op::TYPE_COOPERATIVE_MATRIX).all(|i| !words.contains(&operand(i, 1))));
            let asked = all(op::CAPABILITY).any(|i| operand(i, 0) == CAPABILITIES[1]);
            assert_eq!(asked, bfloat16);
            let named = all(op::EXTENSION).any(|i| i[1..] == text(EXTENSION)[..]);
            assert_eq!(named, bfloat16);
        }
    }

    #[test]
    fn devices_round_to_bfloat16() {
        let body =
            "let x = bitcast<f32>(i); out[i] = bf16_down(bf16_rounded(x)) ^ bf16_pair(x, x);";
        let source = Program::new(&[]).array("out", "u32").body(body).build();
        let changed = by_device(&source);
        assert!(!changed.text.contains("0x7fffu"), "{}", changed.text);
        let made = made(&compile(&changed.text).unwrap()).unwrap();
        let list = instructions(&made).unwrap();
        let all = |code: u32| list.iter().copied().filter(move |i| opcode(i) == code);
        let half = all(op::TYPE_FLOAT).find(|i| operand(i, 1) == 16).unwrap();
        assert_eq!(&half[2..], [16, BFLOAT16]);
        let asked: Vec<_> = all(op::CAPABILITY).map(|i| operand(i, 0)).collect();
        assert!(asked.contains(&CAPABILITIES[0]) && !asked.contains(&CAPABILITIES[1]));
        // Three functions convert in both directions.
        assert_eq!(all(op::F_CONVERT).count(), 6);
        // Programs with nothing to round, or with halves of another kind.
        let none = Program::new(&[]).array("out", "u32").body("out[i] = i;");
        assert!(matches!(by_device(&none.clone().build()), Cow::Borrowed(_)));
        let enabled = Program::new(&[]).array("out", "u32").enable(", f16").body(body).build();
        assert!(matches!(by_device(&enabled), Cow::Borrowed(_)));
    }

    #[test]
    fn other_modules_stay_as_they_are() {
        let module = compile("@compute @workgroup_size(1) fn main() { }").unwrap();
        assert_eq!(made(&module).unwrap(), module);
        assert!(made(&[1]).is_err());
    }
}
