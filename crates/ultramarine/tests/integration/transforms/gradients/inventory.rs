//! Every operation of the core has its transforms tested: this table says where. It is
//! compared with the sources, so that an operation that is added without a row fails. Its attributes have to be in
//! the table of operation keys, too, and in that of functions as files.
//!
//! To add one: its transforms are tested here, by a case in `table/`, or (more of them, and by more
//! patterns) in Python, by a case in `python/tests/rules/`.

use super::table::{NOT_SMOOTH, cases};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where an operation's transforms are tested.
enum Where {
    /// Cases of `table/`: the beginnings of their names.
    Here(&'static [&'static str]),
    /// Cases in `python/tests/rules/`, by their names.
    Python(&'static [&'static str]),
    /// Nowhere, for a reason.
    Not(&'static str),
}
use Where::{Here, Not, Python};

/// By the type that implements `Rules` or `MultiOutputRules`.
const OPERATIONS: &[(&str, Where)] = &[
    ("Aligned", Not("of tests")),
    (
        "Applied",
        Not(
            "primitives from outside: integration/extension/, python/tests/extensions/test_axpby.py",
        ),
    ),
    ("Arange", Not("no operands")),
    ("ArgReduce", Python(&["argmax", "argmin"])),
    ("Attention", Python(&["fast.scaled_dot_product_attention"])),
    ("AttentionGradient", Python(&["fast.scaled_dot_product_attention"])),
    ("Bad", Not("of tests")),
    ("Binary", Here(&["add", "power"])), // all: the_table_names_every_op
    ("Cast", Here(&["astype"])),
    ("Cholesky", Python(&["linalg.cholesky", "linalg.cholesky, upper"])),
    ("Collective", Not("groups of threads: src/distributed/tests.rs; python/tests/distributed")),
    (
        "CompiledCall",
        Not("traced arguments see its graph: python/tests/transforms/test_executables.py"),
    ),
    ("Concatenate", Here(&["concatenate"])),
    ("Contiguous", Here(&["contiguous"])),
    ("Convolve", Here(&["conv2d", "conv_general", "depthwise", "conv_transpose1d", "convolve"])),
    ("Counted", Not("of tests")),
    ("CrossEntropy", Python(&["fast.cross_entropy"])),
    ("CrossEntropyGradient", Python(&["fast.cross_entropy"])),
    ("Dequantize", Python(&["dequantize", "dequantize, floats", "dequantize, a global scale"])),
    ("DynamicSlice", Here(&["slice_at"])),
    ("DynamicSliceUpdate", Here(&["slice_update_at"])),
    ("Eig", Python(&["linalg.eig"])),
    ("Eigh", Python(&["linalg.eigh"])),
    ("Eigvals", Python(&["linalg.eigvals"])),
    ("EigvalsH", Python(&["linalg.eigvalsh"])),
    ("Enclosed", Not("custom_function.rs")),
    ("Fill", Not("no operands")),
    ("Fresh", Python(&["copy"])),
    ("ForeignCall", Not("has none, and says so: python/tests/backends/test_foreign_kernels.py")),
    ("Gather", Here(&["take", "index"])),
    ("GatherAxis", Here(&["take_along_axis"])),
    ("GatherMatmul", Python(&["gather_mm", "gather_mm, in order"])),
    ("Identity", Not("stop_gradient_stops in special.rs; depends in custom_function.rs")),
    (
        "Launched",
        Not("kernels of users, without rules: backends/opencl/source_kernels/transforms.rs"),
    ),
    ("LayerNorm", Not("norms on devices that have them: src/ops/nn/norm/mod.rs")),
    ("Load", Not("a constant: files/lazy.rs")),
    ("Lu", Python(&["linalg.lu", "linalg.lu, tall", "linalg.lu, wide"])),
    ("Matmul", Here(&["matmul"])),
    ("MultiOutput", Not("calls MultiOutputRules: src/transforms/multi_output_tests.rs")),
    ("NormGradient", Python(&["fast.layer_norm", "fast.rms_norm"])),
    ("OutputOf", Not("calls MultiOutputRules: src/transforms/multi_output_tests.rs")),
    ("Pair", Not("of tests")),
    ("PseudoInverse", Python(&["linalg.pinv", "linalg.pinv, wide"])),
    ("Qr", Python(&["linalg.qr", "linalg.qr, tall", "linalg.qr, wide"])),
    (
        "QuantizedMatmul",
        Python(&[
            "quantized_matmul",
            "quantized_matmul, floats",
            "gather_qmm",
            "gather_qmm, not transposed",
        ]),
    ),
    ("RandomBits", Not("no derivatives; keys are mapped in ops/random.rs")),
    ("Recode", Not("storage dtypes: ops/copy/storage/")),
    ("Reduce", Here(&["sum", "prod", "min", "max"])),
    ("Rotation", Not("fast.rope on devices that have it: src/ops/nn/rope/rotation.rs")),
    ("Scan", Here(&["cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"])),
    ("Scatter", Here(&["index_update", "index_update, add", "index_update, multiply"])),
    ("ScatterAxis", Python(&["put_along_axis", "put_along_axis, mapped indices"])),
    ("SearchSorted", Python(&["searchsorted"])),
    ("SegmentedMatmul", Python(&["segmented_mm"])),
    ("Select", Here(&["where"])),
    ("Shaped", Not("only in shapeless traces: compile/shapeless.rs")),
    ("Share", Not("only in shapeless traces: compile/shapeless.rs")),
    ("SingularValues", Python(&["linalg.svd, values"])),
    ("Softmax", Not("softmax and logsumexp on devices that have them: src/ops/nn/softmax.rs")),
    ("SolveTriangular", Python(&["linalg.solve_triangular", "linalg.solve_triangular, upper"])),
    ("Sort", Here(&["sort"])),
    (
        "StraightThrough",
        Not("derivatives as if nothing were rounded: beyond_mlx/test_quantized_transforms.py"),
    ),
    ("Svd", Python(&["linalg.svd", "linalg.svd, tall", "linalg.svd, wide"])),
    ("Transfer", Not("devices/mirrors.rs")),
    ("Transform", Python(&["fft.rfft, real parts"])), // and ops/fft.rs
    ("Unary", Here(&["exp", "sin"])),                 // all: the_table_names_every_op
    ("Update", Here(&["slice_update"])),
    ("View", Here(&["reshape", "broadcast_to", "swapaxes", "slice", "diagonal", "as_strided"])),
    ("Xlogy", Here(&["xlogy"])),
];

/// Operations that are not in the table of keys, and why.
const NO_RANDOM_ATTRIBUTES: &[(&str, &str)] = &[
    ("Aligned", "of tests"),
    ("Applied", "foreign: extension/merged.rs"),
    ("Bad", "of tests"),
    ("Collective", "of a group: src/distributed/collective.rs"),
    ("CompiledCall", "a graph: src/transforms/compile/call.rs"),
    ("Counted", "of tests"),
    ("Enclosed", "a function: src/transforms/enclosed.rs"),
    ("ForeignCall", "a function: src/fast/foreign.rs"),
    ("Launched", "has a struct for its attributes: src/fast/op.rs"),
    ("Load", "the read of a file: src/io/lazy.rs"),
    ("MultiOutput", "calls MultiOutputRules"),
    ("Pair", "of tests"),
];

/// Operations that files of functions do not have, and why.
const NOT_IN_FILES: &[(&str, &str)] = &[
    ("Aligned", "of tests"),
    ("Applied", "by its package: export/foreign.rs"),
    ("Bad", "of tests"),
    ("Collective", "a group belongs to its process"),
    ("CompiledCall", "traced arguments see its graph; else its value"),
    ("Counted", "of tests"),
    ("Enclosed", "what it computes"),
    ("ForeignCall", "a function"),
    ("Launched", "code"),
    ("Load", "a constant: export/files.rs"),
    ("MultiOutput", "calls MultiOutputRules"),
    ("OutputOf", "a step of its own"),
    ("Pair", "of tests"),
    ("Transfer", "its operand: files name no devices"),
];

fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("a folder of the sources");
    for path in entries.map(|e| e.expect("an entry").path()) {
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.extension().is_some_and(|e| e == ending) {
            found.push(path);
        }
    }
}

/// The types in the sources that implement rules.
fn implemented() -> BTreeSet<String> {
    let mut sources = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "rs", &mut sources);
    let mut found = BTreeSet::new();
    for source in sources {
        let text = std::fs::read_to_string(&source).expect("a source file");
        for line in text.lines().map(str::trim).filter(|l| l.starts_with("impl")) {
            for of in [" Rules for ", " MultiOutputRules for "] {
                let Some((_, name)) = line.split_once(of) else { continue };
                // In a macro the name is a parameter.
                if name.starts_with('$') {
                    continue;
                }
                let end = name.find(|c: char| !c.is_alphanumeric() && c != '_');
                found.insert(name[..end.unwrap_or(name.len())].to_owned());
            }
        }
    }
    found
}

#[test]
fn every_operation_is_there() {
    let named: BTreeSet<String> = OPERATIONS.iter().map(|o| o.0.to_owned()).collect();
    assert_eq!(named.len(), OPERATIONS.len(), "a row twice");
    let implemented = implemented();
    let missing: Vec<_> = implemented.difference(&named).collect();
    assert!(missing.is_empty(), "without a row in transforms/gradients/inventory.rs: {missing:?}");
    let gone: Vec<_> = named.difference(&implemented).collect();
    assert!(gone.is_empty(), "not in the sources: {gone:?}");
}

#[test]
fn every_row_is_true() {
    let here: Vec<&str> = cases().iter().map(|c| c.name).collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/tests/rules");
    let mut tables = Vec::new();
    // A crate by itself has no Python beside it.
    if folder.is_dir() {
        files(&folder, "py", &mut tables);
    }
    let python: String =
        tables.iter().map(|t| std::fs::read_to_string(t).expect("a table")).collect();
    for (operation, tested) in OPERATIONS {
        match tested {
            Here(names) => {
                for name in *names {
                    let known = here.iter().any(|c| c.starts_with(name));
                    assert!(known && !NOT_SMOOTH.contains(name), "{operation}: no case {name}");
                }
            }
            Python(names) => {
                for name in names.iter().filter(|_| !python.is_empty()) {
                    let known = ["case(", "case(\n        ", "flat("]
                        .iter()
                        .any(|f| python.contains(&format!("{f}\"{name}\"")));
                    assert!(known, "{operation}: no case {name} in python/tests/rules");
                }
            }
            Not(why) => assert!(!why.is_empty(), "{operation}: without a reason"),
        }
    }
}

#[test]
fn every_operation_has_a_key() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/graph/tests.rs");
    let table = std::fs::read_to_string(table).expect("the table of keys");
    for (operation, _) in OPERATIONS {
        let excepted = NO_RANDOM_ATTRIBUTES.iter().any(|(name, _)| name == operation);
        let sampled = table.contains(&format!("::{operation},"));
        assert!(sampled != excepted, "{operation}: add it to src/graph/tests.rs");
    }
}

#[test]
fn every_operation_is_in_files() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/export/operations.rs");
    let table = std::fs::read_to_string(table).expect("the format's table");
    for (operation, _) in OPERATIONS {
        let excepted = NOT_IN_FILES.iter().any(|(name, _)| name == operation);
        let read = table.contains(&format!("::{operation};"));
        assert!(read != excepted, "{operation}: add it to src/export/operations.rs");
    }
}
