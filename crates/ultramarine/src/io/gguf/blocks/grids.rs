//! Codebooks of the formats IQ1, IQ2 and IQ3: rows of four or eight numbers, which llama.cpp's authors chose (MIT
//! licence).
//!
//! `python/tools/gguf_grids.py` writes `grids.bin` from the package `gguf`, for IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S
//! and IQ1_S. A row is 16 bits, little-endian; each group of two or four bits selects one of a few numbers.

const DATA: &[u8; 9216] = include_bytes!("grids.bin");

/// `R` rows of `N` numbers, beginning at byte `at`.
const fn rows<const R: usize, const N: usize>(at: usize, numbers: &[i8]) -> [[i8; N]; R] {
    let (bits, mut out, mut row) = (16 / N, [[0; N]; R], 0);
    while row < R {
        let word = DATA[at + 2 * row] as usize | (DATA[at + 2 * row + 1] as usize) << 8;
        let mut i = 0;
        while i < N {
            out[row][i] = numbers[word >> (bits * i) & ((1 << bits) - 1)];
            i += 1;
        }
        row += 1;
    }
    out
}

const TWO: &[i8] = &[0x08, 0x19, 0x2b];
pub static IQ2_XXS: [[i8; 8]; 256] = rows(0, TWO);
pub static IQ2_XS: [[i8; 8]; 512] = rows(512, TWO);
pub static IQ2_S: [[i8; 8]; 1024] = rows(1536, TWO);
pub static IQ3_XXS: [[i8; 4]; 256] = rows(3584, &[0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3e]);
pub static IQ3_S: [[i8; 4]; 512] = rows(4096, &[1, 3, 5, 7, 9, 11, 13, 15]);
/// Also for IQ1_M.
pub static IQ1_S: [[i8; 8]; 2048] = rows(5120, &[-1, 0, 1]);

/// The numbers of IQ4_NL and IQ4_XS.
pub const IQ4: [i8; 16] =
    [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
