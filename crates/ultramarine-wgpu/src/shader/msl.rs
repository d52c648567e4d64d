//! Kernels in the Metal Shading Language, written by naga, with these corrections:
//!
//! * Fast math is off for the whole source: there is no contraction, and NaN, infinities and signs
//!   of zero follow IEEE 754. The pragmas for this need Metal 3.2 (macOS 15).
//! * Buffers of bytes: naga's array of 16-bit elements becomes an array of bytes.
//! * Shared memory is declared in the kernel, because the hal sets no lengths for a kernel's
//!   arguments if the kernel is passed as source.

use super::compile::{Parsed, UNCHECKED, Zeros, without_float64};
use super::text::Text;
use naga::back::msl;
use naga::{ArraySize, Module, Scalar, ScalarKind, Type, TypeInner};
use std::fmt::Write as _;

/// Comes after naga's includes.
const EXACT: &str = "#if __METAL_VERSION__ < 320
#error \"Metal 3.2 is needed, which macOS 15 and iOS 18 have\"
#endif
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
";

/// Names of the arrays that become bytes, with their element types before and after.
const BYTES: [(&str, ScalarKind, &str, &str); 2] = [
    ("Bytes", ScalarKind::Uint, "ushort", "uchar"),
    ("SignedBytes", ScalarKind::Sint, "short", "char"),
];

/// Writes the kernel of an entry point. Immediates are buffer 0, and binding `i` of group 0 is
/// buffer `i` + 1. At the bindings in `bytes`, elements are bytes.
pub fn write(parsed: &Parsed, entry: &str, zeros: Zeros, bytes: &[u32]) -> Result<Text, String> {
    let mut module = parsed.module.clone();
    if let Some(function) = lengths(&module) {
        return Err(format!("{function} asks for arrayLength(), which Metal kernels here lack"));
    }
    name_bytes(&mut module, bytes)?;
    let parsed = without_float64(module)?;
    let globals = parsed.module.global_variables.iter();
    let bindings = globals.filter_map(|(_, variable)| variable.binding);
    let target = |binding: naga::ResourceBinding| {
        let buffer = u8::try_from(binding.binding + 1).ok();
        (binding, msl::BindTarget { buffer, mutable: true, ..Default::default() })
    };
    let resources = msl::EntryPointResources {
        resources: bindings.map(target).collect(),
        immediates_buffer: Some(0),
        // No kernel reads it.
        sizes_buffer: Some(30),
    };
    let options = msl::Options {
        lang_version: (3, 2),
        per_entry_point_map: [(entry.to_owned(), resources)].into_iter().collect(),
        fake_missing_bindings: false,
        bounds_check_policies: UNCHECKED,
        zero_initialize_workgroup_memory: zeros == Zeros::Handled,
        force_loop_bounding: false,
        emit_int_div_checks: zeros == Zeros::Handled,
        ..Default::default()
    };
    let pipeline = msl::PipelineOptions {
        entry_point: Some((naga::ShaderStage::Compute, entry.to_owned())),
        ..Default::default()
    };
    let (text, info) = msl::write_string(&parsed.module, &parsed.info, &options, &pipeline)
        .map_err(|e| e.to_string())?;
    let name = match info.entry_point_names.into_iter().next() {
        Some(name) => name.map_err(|e| e.to_string())?,
        None => return Err(format!("there is no kernel {entry}")),
    };
    let group = parsed.group(entry);
    let written = parsed.written(entry);
    Ok(Text { source: finished(&text, &name)?, entry: name, group, written })
}

/// Applies the module's corrections to naga's source.
fn finished(text: &str, entry: &str) -> Result<String, String> {
    let mut text = once(text, "\nusing metal::uint;\n", &format!("\n{EXACT}using metal::uint;\n"))?;
    for (name, _, before, behind) in BYTES {
        let declared = format!("typedef {before} {name}[1];");
        if text.contains(&declared) {
            text = once(&text, &declared, &format!("typedef {behind} {name}[1];"))?;
        }
    }
    // Metal functions that the schema requires to be exact. Other functions are exact, or their
    // users chose their precision.
    let text = text.replace("metal::sqrt(", "metal::precise::sqrt(");
    let unknown = || format!("naga's text of {entry} looks otherwise than expected");
    let start = format!("kernel void {entry}(\n");
    let (head, rest) = text.split_once(&start).ok_or_else(unknown)?;
    let (arguments, body) = rest.split_once("\n) {\n").ok_or_else(unknown)?;
    let (mut kept, mut shared) = (Vec::new(), String::new());
    for argument in arguments.lines() {
        let argument = argument.get(2..).ok_or_else(unknown)?;
        match argument.strip_prefix("threadgroup ") {
            Some(reference) => {
                let (kind, name) = reference.split_once("& ").ok_or_else(unknown)?;
                _ = writeln!(shared, "    threadgroup {kind} {name};");
            }
            None => kept.push(argument),
        }
    }
    Ok(format!("{head}{start}  {}\n) {{\n{shared}{body}", kept.join("\n, ")))
}

/// Replaces a part of a source that occurs exactly once.
fn once(text: &str, part: &str, by: &str) -> Result<String, String> {
    match text.matches(part).count() {
        1 => Ok(text.replacen(part, by, 1)),
        n => Err(format!("naga's text has {n} times {part:?}")),
    }
}

/// Names the arrays at the bindings, so that they can be found in the source.
fn name_bytes(module: &mut Module, bindings: &[u32]) -> Result<(), String> {
    for (_, variable) in module.global_variables.iter_mut() {
        let Some(binding) = variable.binding.filter(|b| bindings.contains(&b.binding)) else {
            continue;
        };
        let none = || format!("binding {} is no array of integers of 16 bits", binding.binding);
        let inner = module.types[variable.ty].inner.clone();
        let TypeInner::Array { base, size: ArraySize::Dynamic, .. } = inner else {
            return Err(none());
        };
        let TypeInner::Scalar(Scalar { kind, width: 2 }) = module.types[base].inner else {
            return Err(none());
        };
        let row = BYTES.iter().find(|row| row.1 == kind).ok_or_else(none)?;
        let named = Type { name: Some(row.0.to_owned()), inner };
        variable.ty = module.types.insert(named, naga::Span::UNDEFINED);
    }
    Ok(())
}

/// Returns the first function that queries the length of a buffer.
fn lengths(module: &Module) -> Option<String> {
    let points = module.entry_points.iter().map(|point| &point.function);
    let mut functions = module.functions.iter().map(|(_, function)| function).chain(points);
    let asks = |function: &&naga::Function| {
        let mut all = function.expressions.iter();
        all.any(|(_, expression)| matches!(expression, naga::Expression::ArrayLength(_)))
    };
    let found = functions.find(asks)?;
    Some(found.name.clone().unwrap_or_else(|| "the kernel".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::compile::parse;

    const TEXT: &str = "
        enable wgpu_int16;
        struct Immediates { base: u32, zero: u32 }
        var<immediate> im: Immediates;
        var<workgroup> tile: array<f32, 64>;
        var<workgroup> count: atomic<u32>;
        @group(0) @binding(0) var<storage, read> words: array<u32>;
        @group(0) @binding(1) var<storage, read_write> a: array<u16>;
        @group(0) @binding(2) var<storage, read_write> b: array<i16>;
        @group(0) @binding(3) var<storage, read_write> c: array<u16>;
        fn helper(i: u32) -> f32 { return tile[i] + sqrt(f32(a[i])); }
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>) {
            tile[g.x] = f32(words[g.x + im.base]);
            atomicAdd(&count, 1u);
            workgroupBarrier();
            c[g.x] = u16(u32(a[g.x]) + n.x + u32(helper(g.x)) + atomicLoad(&count));
            b[g.x] = i16(i32(b[g.x]) + 1);
        }";

    #[test]
    fn bytes_exactness_and_shared_memory_are_written() {
        let text = write(&parse(TEXT).unwrap(), "main", Zeros::Left, &[1, 2]).unwrap();
        let source = &text.source;
        assert_eq!((text.entry.as_str(), text.group), ("main_", [64, 1, 1]));
        let expected = [
            "#pragma METAL fp math_mode(safe)",
            "typedef uchar Bytes[1];",
            "typedef char SignedBytes[1];",
            "typedef ushort type_6[1];",
            "device Bytes const& a [[buffer(2)]]",
            "device type_6& c [[buffer(4)]]",
            "constant Immediates& im [[buffer(0)]]",
            ") {\n    threadgroup type_2 tile;\n    threadgroup metal::atomic_uint count;\n",
            "metal::precise::sqrt(",
        ];
        for part in expected {
            assert_eq!(source.matches(part).count(), 1, "{part} in\n{source}");
        }
        assert!(!source.contains(", threadgroup "), "{source}");
    }

    #[test]
    fn zeros_are_written_after_the_declaration() {
        let text = write(&parse(TEXT).unwrap(), "main", Zeros::Handled, &[]).unwrap();
        let at = |part: &str| text.source.find(part).unwrap();
        assert!(at("threadgroup type_2 tile;") < at("tile = {};"), "{}", text.source);
    }

    #[test]
    fn what_metal_cannot_do_is_said() {
        let lengths = TEXT.replace("n.x +", "arrayLength(&words) +");
        let parsed = parse(&lengths).unwrap();
        let why = write(&parsed, "main", Zeros::Left, &[]).unwrap_err();
        assert!(why.contains("arrayLength"), "{why}");
        let why = write(&parse(TEXT).unwrap(), "main", Zeros::Left, &[0]).unwrap_err();
        assert!(why.contains("binding 0"), "{why}");
        let float64 = TEXT.replace("f32(words[g.x + im.base])", "f32(f64(words[g.x]) / 3lf)");
        let why = write(&parse(&float64).unwrap(), "main", Zeros::Left, &[]).unwrap_err();
        assert!(why.contains("float64"), "{why}");
    }
}
