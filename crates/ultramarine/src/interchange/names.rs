//! Names of DLPack's element types, for messages.

use ultramarine_abi::dlpack::{DLDataType, type_code};

/// Name of an element type in other libraries, such as `complex128`.
pub(super) fn of(d: DLDataType) -> String {
    use type_code::*;
    let (kind, sized) = match d.code {
        INT => ("int", true),
        UINT => ("uint", true),
        FLOAT => ("float", true),
        OPAQUE => ("opaque handles", false),
        BFLOAT => ("bfloat", true),
        COMPLEX => ("complex", true),
        BOOL => ("bool", false),
        FLOAT8_E3M4 => ("float8_e3m4", false),
        FLOAT8_E4M3 => ("float8_e4m3", false),
        FLOAT8_E4M3B11FNUZ => ("float8_e4m3b11fnuz", false),
        FLOAT8_E4M3FN => ("float8_e4m3fn", false),
        FLOAT8_E4M3FNUZ => ("float8_e4m3fnuz", false),
        FLOAT8_E5M2 => ("float8_e5m2", false),
        FLOAT8_E5M2FNUZ => ("float8_e5m2fnuz", false),
        FLOAT8_E8M0FNU => ("float8_e8m0fnu", false),
        FLOAT6_E2M3FN => ("float6_e2m3fn", false),
        FLOAT6_E3M2FN => ("float6_e3m2fn", false),
        FLOAT4_E2M1FN => ("float4_e2m1fn", false),
        _ => ("an unknown type", false),
    };
    if sized { format!("{kind}{}", d.bits) } else { kind.to_owned() }
}
