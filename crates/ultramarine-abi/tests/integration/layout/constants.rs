//! Every constant of the headers with its value in Rust.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fmt::Write;
use std::path::Path;
use ultramarine_abi::{
    dlpack::{self, device_type, flag, type_code},
    extension::{self, attribute, bind, place, primitive, view},
    interface::{self, collective, kernel, memory, replay, statistics},
    *,
};

/// A value, as it is compared.
pub enum Value {
    /// An integer.
    Number(i64),
    /// A string.
    Text(String),
}

fn text(value: &CStr) -> Value {
    Value::Text(value.to_str().unwrap().to_owned())
}

/// Constants of a table of codes: `UM_{prefix}_{NAME}` and the count.
fn codes(prefix: &str, names: &[&str]) -> Vec<(String, Value)> {
    let name = |n: &str| format!("UM_{prefix}_{}", n.to_uppercase());
    let mut all: Vec<_> =
        names.iter().enumerate().map(|(i, n)| (name(n), Value::Number(i as i64))).collect();
    all.push((name("count"), Value::Number(names.len() as i64)));
    all
}

/// All of them.
pub fn all() -> Vec<(String, Value)> {
    macro_rules! numbers {
        ($($name:ident = $value:expr;)*) => {
            vec![$((stringify!($name).to_owned(), Value::Number($value as i64))),*]
        };
    }
    let mut all = numbers! {
        UM_ABI_MAJOR = ABI_MAJOR;
        UM_ABI_MINOR = ABI_MINOR;
        UM_DLPACK_MAJOR = DLPACK.0;
        UM_DLPACK_MINOR = DLPACK.1;
        UM_OK = status::OK;
        UM_ERROR = status::ERROR;
        UM_UNSUPPORTED = status::UNSUPPORTED;
        UM_NEEDS_CONTIGUOUS = status::NEEDS_CONTIGUOUS;
        UM_OUT_OF_MEMORY = status::OUT_OF_MEMORY;
        UM_FORKED = status::FORKED;
        UM_INVALID = status::INVALID;
        UM_NOT_YET = status::NOT_YET;
        UM_SANITIZER_ADDRESS = sanitizer::ADDRESS;
        UM_SANITIZER_THREAD = sanitizer::THREAD;
        UM_SANITIZER_MEMORY = sanitizer::MEMORY;
        UM_SANITIZER_OTHER = sanitizer::OTHER;
        UM_LITTLE_ENDIAN = endianness::LITTLE;
        UM_BIG_ENDIAN = endianness::BIG;
        UM_IDENTITY_UUID = identity::UUID;
        UM_IDENTITY_PCI = identity::PCI;
        UM_DEFAULT_SCORE = DEFAULT_SCORE;
        UM_MAX_SCORE = MAX_SCORE;
        UM_LOG_ERROR = helper::Level::Error;
        UM_LOG_WARNING = helper::Level::Warning;
        UM_LOG_INFO = helper::Level::Info;
        UM_LOG_DEBUG = helper::Level::Debug;
        UM_MAX_NDIM = MAX_NDIM;
        UM_LAYOUT_CONTIGUOUS = layout::CONTIGUOUS;
        UM_LAYOUT_STRIDED = layout::STRIDED;
        UM_PRECISION_HIGHEST = precision::HIGHEST;
        UM_PRECISION_HIGH = precision::HIGH;
        UM_PRECISION_MEDIUM = precision::MEDIUM;
        UM_DEVICE_DETERMINISTIC = device_flag::DETERMINISTIC;
        UM_DEVICE_FLUSHES_SUBNORMALS = device_flag::FLUSHES_SUBNORMALS;
        UM_DEVICE_REDUCED_PRECISION = device_flag::REDUCED_PRECISION;
        UM_DEVICE_WAITS_IN_COMMANDS = device_flag::WAITS_IN_COMMANDS;
        UM_DEVICE_UPLOADS_IN_ORDER = device_flag::UPLOADS_IN_ORDER;
        UM_NOTE_TYPE = note::TYPE;
        UM_FAMILY_UNARY = fused::family::UNARY;
        UM_FAMILY_BINARY = fused::family::BINARY;
        UM_FAMILY_SELECT = fused::family::SELECT;
        UM_FAMILY_CAST = fused::family::CAST;
        UM_NO_REDUCTION = fused::NO_REDUCTION;
        UM_POSITION_LAST = fused::position::LAST;
        UM_ARGUMENT_TENSOR = kernel::argument::TENSOR;
        UM_ARGUMENT_SCALAR = kernel::argument::SCALAR;
        UM_MEMORY_HOST = memory::kind::HOST;
        UM_MEMORY_DEVICE_POINTER = memory::kind::DEVICE_POINTER;
        UM_MEMORY_OPAQUE_FD = memory::kind::OPAQUE_FD;
        UM_MEMORY_MTL_BUFFER = memory::kind::MTL_BUFFER;
        UM_MEMORY_CL_MEM = memory::kind::CL_MEM;
        UM_MEMORY_READ_ONLY = memory::flag::READ_ONLY;
        UM_COLLECTIVE_MOST_ID_BYTES = collective::MOST_ID_BYTES;
        UM_COLLECTIVE_SUM = collective::kind::SUM;
        UM_COLLECTIVE_MAX = collective::kind::MAX;
        UM_COLLECTIVE_MIN = collective::kind::MIN;
        UM_COLLECTIVE_GATHER = collective::kind::GATHER;
        UM_COLLECTIVE_SUM_SCATTER = collective::kind::SUM_SCATTER;
        UM_COLLECTIVE_SEND = collective::kind::SEND;
        UM_COLLECTIVE_RECEIVE = collective::kind::RECEIVE;
        UM_SOURCE_FIXED = replay::source::FIXED;
        UM_SOURCE_BOUND = replay::source::BOUND;
        UM_SOURCE_ARENA = replay::source::ARENA;
        UM_FIXED_SCALAR = replay::FIXED_SCALAR;
        UM_LIMIT_MEMORY = statistics::limit::MEMORY;
        UM_LIMIT_CACHE = statistics::limit::CACHE;
        UM_LIMIT_WIRED = statistics::limit::WIRED;
        UM_EXTENSION_MAJOR = extension::EXTENSION_MAJOR;
        UM_EXTENSION_MINOR = extension::EXTENSION_MINOR;
        UM_PLACE_DEFAULT = place::DEFAULT;
        UM_PLACE_DEVICE = place::DEVICE;
        UM_PLACE_STREAM = place::STREAM;
        UM_DEVICE_CPU = place::CPU;
        UM_DEVICE_GPU = place::GPU;
        UM_VIEW_ROW_CONTIGUOUS = view::ROW_CONTIGUOUS;
        UM_VIEW_MAY_TAKE = view::MAY_TAKE;
        UM_BIND_INPUT = bind::INPUT;
        UM_BIND_OUTPUT = bind::OUTPUT;
        UM_BIND_TEMPORARY = bind::TEMPORARY;
        UM_BIND_SCALAR = bind::SCALAR;
        UM_BIND_CONSTANTS = bind::CONSTANTS;
        UM_PRIMITIVE_ALLOCATES = primitive::ALLOCATES;
        UM_ATTRIBUTE_INT = attribute::INT;
        UM_ATTRIBUTE_FLOAT = attribute::FLOAT;
        UM_ATTRIBUTE_INTS = attribute::INTS;
        UM_ATTRIBUTE_DTYPE = attribute::DTYPE;
        UM_ATTRIBUTE_TEXT = attribute::TEXT;
        kDLCPU = device_type::CPU;
        kDLCUDA = device_type::CUDA;
        kDLCUDAHost = device_type::CUDA_HOST;
        kDLOpenCL = device_type::OPENCL;
        kDLVulkan = device_type::VULKAN;
        kDLMetal = device_type::METAL;
        kDLVPI = device_type::VPI;
        kDLROCM = device_type::ROCM;
        kDLROCMHost = device_type::ROCM_HOST;
        kDLExtDev = device_type::EXT_DEV;
        kDLCUDAManaged = device_type::CUDA_MANAGED;
        kDLOneAPI = device_type::ONE_API;
        kDLWebGPU = device_type::WEBGPU;
        kDLHexagon = device_type::HEXAGON;
        kDLMAIA = device_type::MAIA;
        kDLTrn = device_type::TRN;
        kDLInt = type_code::INT;
        kDLUInt = type_code::UINT;
        kDLFloat = type_code::FLOAT;
        kDLOpaqueHandle = type_code::OPAQUE;
        kDLBfloat = type_code::BFLOAT;
        kDLComplex = type_code::COMPLEX;
        kDLBool = type_code::BOOL;
        kDLFloat8_e3m4 = type_code::FLOAT8_E3M4;
        kDLFloat8_e4m3 = type_code::FLOAT8_E4M3;
        kDLFloat8_e4m3b11fnuz = type_code::FLOAT8_E4M3B11FNUZ;
        kDLFloat8_e4m3fn = type_code::FLOAT8_E4M3FN;
        kDLFloat8_e4m3fnuz = type_code::FLOAT8_E4M3FNUZ;
        kDLFloat8_e5m2 = type_code::FLOAT8_E5M2;
        kDLFloat8_e5m2fnuz = type_code::FLOAT8_E5M2FNUZ;
        kDLFloat8_e8m0fnu = type_code::FLOAT8_E8M0FNU;
        kDLFloat6_e2m3fn = type_code::FLOAT6_E2M3FN;
        kDLFloat6_e3m2fn = type_code::FLOAT6_E3M2FN;
        kDLFloat4_e2m1fn = type_code::FLOAT4_E2M1FN;
        DLPACK_MAJOR_VERSION = dlpack::DLPACK_MAJOR;
        DLPACK_MINOR_VERSION = dlpack::DLPACK_MINOR;
        DLPACK_FLAG_BITMASK_READ_ONLY = flag::READ_ONLY;
        DLPACK_FLAG_BITMASK_IS_COPIED = flag::IS_COPIED;
        DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED = flag::IS_SUBBYTE_TYPE_PADDED;
    };
    for id in interface::IDS {
        let name = id.to_str().unwrap().trim_start_matches("ultramarine.");
        let name = match name {
            // Offered besides revision 1.
            "fused/2" => "ANCHORED".to_owned(),
            name => name.split('/').next().unwrap().to_uppercase(),
        };
        all.push((format!("UM_{name}_INTERFACE"), text(id)));
    }
    all.push(("UM_PYTHON_CAPSULE".into(), text(extension::PYTHON_CAPSULE)));
    let owner = String::from_utf8(note::OWNER.to_vec()).unwrap();
    all.push(("UM_NOTE_OWNER".into(), Value::Text(owner.trim_end_matches('\0').to_owned())));
    for (module, names) in schema::NAMES {
        all.extend(codes(&module.to_uppercase(), names));
    }
    all.extend(codes("DTYPE", &schema::DTYPES.map(|(name, _)| name)));
    all
}

/// Names of the constants that the headers of the contract define (not the helper's).
pub fn defined(folder: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in ["backend.h", "interfaces.h", "schema.h", "extension.h"] {
        for line in std::fs::read_to_string(folder.join(file)).unwrap().lines() {
            let Some(rest) = line.strip_prefix("#define UM_") else { continue };
            let Some((name, value)) = rest.split_once(' ') else { continue };
            // How functions are exported is no number, nor is a macro with parameters.
            if name != "EXPORT" && !name.contains('(') && !value.is_empty() {
                names.insert(format!("UM_{name}"));
            }
        }
    }
    let dlpack = std::fs::read_to_string(folder.join("dlpack.h")).unwrap();
    // `kDLName = number` and `#define DLPACK_NAME value`.
    let words = dlpack.split_whitespace().collect::<Vec<_>>();
    for pair in words.windows(2) {
        let constant = pair[0].starts_with("kDL") && pair[1] == "=";
        let macro_ = pair[0] == "#define" && pair[1].starts_with("DLPACK_");
        if constant || macro_ {
            names.insert(pair[usize::from(macro_)].to_owned());
        }
    }
    names
}

/// What Rust says.
pub fn lines(table: &[(String, Value)]) -> String {
    let mut out = String::new();
    for (name, value) in table {
        match value {
            Value::Number(value) => writeln!(out, "{name} {value}").unwrap(),
            Value::Text(value) => writeln!(out, "{name} {value}").unwrap(),
        }
    }
    out
}

/// A program that prints what C says.
pub fn c(table: &[(String, Value)]) -> String {
    let mut out =
        String::from("#include <stdio.h>\n#include <ultramarine/extension.h>\nint main(void) {\n");
    for (name, value) in table {
        match value {
            Value::Number(_) => {
                writeln!(out, "  printf(\"{name} %lld\\n\", (long long)({name}));").unwrap();
            }
            Value::Text(_) => writeln!(out, "  printf(\"{name} %s\\n\", {name});").unwrap(),
        }
    }
    out.push_str("  return 0;\n}\n");
    out
}
