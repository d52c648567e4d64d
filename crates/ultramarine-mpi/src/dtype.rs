//! Element types.

macro_rules! dtypes {
    ($($(#[$m:meta])* $name:ident $text:literal $size:literal;)*) => {
        /// An element type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Dtype { $($(#[$m])* $name,)* }

        impl Dtype {
            /// All of them.
            pub const ALL: [Dtype; 14] = [$(Dtype::$name),*];

            /// Returns the bytes of an element.
            pub const fn size(self) -> usize {
                match self { $(Dtype::$name => $size,)* }
            }

            /// Returns the name, such as `float32`.
            pub const fn name(self) -> &'static str {
                match self { $(Dtype::$name => $text,)* }
            }
        }
    };
}

dtypes! {
    /// One byte, 0 or 1.
    Bool "bool" 1;
    /// Unsigned, 8 bits.
    Uint8 "uint8" 1;
    /// Unsigned, 16 bits.
    Uint16 "uint16" 2;
    /// Unsigned, 32 bits.
    Uint32 "uint32" 4;
    /// Unsigned, 64 bits.
    Uint64 "uint64" 8;
    /// Signed, 8 bits.
    Int8 "int8" 1;
    /// Signed, 16 bits.
    Int16 "int16" 2;
    /// Signed, 32 bits.
    Int32 "int32" 4;
    /// Signed, 64 bits.
    Int64 "int64" 8;
    /// IEEE half precision.
    Float16 "float16" 2;
    /// The upper half of a `float32`.
    Bfloat16 "bfloat16" 2;
    /// IEEE single precision.
    Float32 "float32" 4;
    /// IEEE double precision.
    Float64 "float64" 8;
    /// Two `float32`: real part, imaginary part.
    Complex64 "complex64" 8;
}

impl std::fmt::Display for Dtype {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
