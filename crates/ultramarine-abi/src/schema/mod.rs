//! The operations of the contract: ids, codes, attributes, and rules for dtypes, shapes and
//! numbers.
//!
//! All of it is generated from `schema.toml`: the constants and attribute structs here, the table
//! [`OPS`] for tools, the C header `schema.h` and `docs/operations.md`, which specifies each
//! operation. Every attribute struct begins with its size. An op's revision grows when its
//! attributes do; a non-zero tail that a backend does not know means UNSUPPORTED.

mod attribute_structs;
mod codes;
mod rules;
mod table;

pub use codes::*;
pub use rules::*;
pub use table::*;

use ultramarine_dlpack::DLDataType;

/// Id of an operation: one of the constants of [`op`]. Ids are never renumbered.
pub type OpId = u32;

/// A module of codes with the list of their names.
macro_rules! code_module {
    ($(#[$m:meta])* pub mod $module:ident: $t:ty { $($(#[$d:meta])* $name:ident = $value:literal $text:literal,)* }) => {
        $(#[$m])*
        pub mod $module {
            $($(#[$d])* pub const $name: $t = $value;)*
            /// Schema names, indexed by code.
            pub const NAMES: &[&str] = &[$($text),*];
        }
    };
}

/// The families of operations.
macro_rules! families {
    ($($name:ident $text:literal,)*) => {
        /// A family of operations: the file or folder of that name in every layer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Family {
            $(#[doc = concat!("`", $text, "`")] $name,)*
        }
    };
}

/// Attribute structs, each beginning with its size.
macro_rules! attrs {
    ($($(#[$m:meta])* $name:ident { $($(#[$d:meta])* $field:ident: $t:ty,)* })*) => {$(
        $(#[$m])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name {
            /// Size of the writer's struct.
            pub size: u32,
            $($(#[$d])* pub $field: $t,)*
        }
        impl $name {
            /// The struct with its size filled in.
            #[allow(clippy::too_many_arguments, reason = "an argument for each field")]
            pub fn new($($field: $t),*) -> Self {
                Self { size: size_of::<Self>() as u32, $($field),* }
            }
        }
        // SAFETY: plain integers, the size first.
        unsafe impl crate::helper::Plain for $name {}
    )*};
}

use {attrs, code_module, families};

const fn dtype(code: u8, bits: u8) -> DLDataType {
    DLDataType { code, bits, lanes: 1 }
}

impl Default for NoAttrs {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the index of a dtype in [`DTYPES`], which is the number of its bit in the device masks.
pub fn dtype_index(dtype: DLDataType) -> Option<usize> {
    DTYPES.iter().position(|(_, known)| *known == dtype)
}

/// Returns the names of the dtypes of a mask, in the order of [`DTYPES`].
pub fn dtype_names(mask: u32) -> impl Iterator<Item = &'static str> {
    DTYPES.iter().enumerate().filter(move |(i, _)| mask >> i & 1 == 1).map(|(_, (name, _))| *name)
}

/// Returns the row of an operation in [`OPS`] by its id.
pub fn find(id: OpId) -> Option<&'static OpSchema> {
    OPS.get(id as usize)
}

/// Returns the row of an operation in [`OPS`] by its name.
pub fn find_name(name: &str) -> Option<&'static OpSchema> {
    OPS.iter().find(|op| op.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the codes that a module of that name has.
    fn names(module: &str) -> &'static [&'static str] {
        NAMES.iter().find(|(name, _)| *name == module).map_or(&[], |(_, names)| names)
    }

    #[test]
    fn the_table_agrees_with_the_constants() {
        assert_eq!(OPS.len(), op::NAMES.len());
        for (i, row) in OPS.iter().enumerate() {
            assert_eq!((row.id as usize, row.name), (i, op::NAMES[i]));
            assert_eq!(find(row.id).map(|r| r.name), Some(row.name));
            assert_eq!(find_name(row.name).map(|r| r.id), Some(row.id));
            assert_eq!(row.codes.is_empty(), row.code_table.is_none(), "{}", row.name);
            for code in row.codes {
                let module = row.code_table.unwrap_or_default();
                assert_eq!(names(module)[code.code as usize], code.name, "{}", row.name);
                assert_ne!(row.dtypes_of(Some(code)), 0, "{} {}", row.name, code.name);
            }
        }
        assert_eq!(find(OPS.len() as u32).map(|r| r.name), None);
    }

    #[test]
    fn outputs_follow_their_rules() {
        let dtype = |name| DTYPES.iter().position(|(n, _)| *n == name).unwrap();
        let row = |id: OpId| &OPS[id as usize];
        let unary = row(op::UNARY);
        let real = unary.code(unary::REAL);
        assert_eq!(unary.output_of(real, dtype("complex64")), 1 << dtype("float32"));
        assert_eq!(unary.output_of(real, dtype("float16")), 1 << dtype("float16"));
        let isnan = unary.code(unary::ISNAN);
        assert_eq!(unary.output_of(isnan, dtype("int8")), 1 << dtype("bool"));
        assert_eq!(row(op::COPY).output_of(None, 3), dtypes::ALL);
        assert_eq!(row(op::ARG_SORT).output_of(None, 0), 1 << dtype("uint32"));
        assert!(row(op::SCAN).code(reduce::ALL).is_none(), "scans have no all");
        assert!(row(op::REDUCE).code(reduce::LOGADDEXP).is_none(), "logaddexp only scans");
    }

    #[test]
    fn descriptions_of_attributes_lie_where_the_fields_do() {
        for row in ATTRIBUTES {
            let mut end = 4;
            for field in row.fields {
                assert_eq!(field.offset, end, "{}.{}", row.name, field.name);
                end += field.bytes();
            }
            assert_eq!(row.size, end.next_multiple_of(row.align));
        }
    }
}
