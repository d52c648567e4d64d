//! Kernels in languages that are passed to drivers as source.

/// A kernel's source in MSL or HLSL, with the data that a launch needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// The source.
    pub source: String,
    /// Name of the entry point in the source.
    pub entry: String,
    /// Invocations of a workgroup.
    pub group: [u32; 3],
    /// A bit for each binding that the kernel may write.
    pub written: u32,
}

impl Text {
    /// Returns the text as bytes, for storing it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let [x, y, z] = self.group;
        let head = [x, y, z, self.written, self.entry.len() as u32];
        let head: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
        [&head, self.entry.as_bytes(), self.source.as_bytes()].concat()
    }

    /// The text of [`Text::to_bytes`].
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let mut head = [0; 5];
        for word in &mut head {
            let (bytes, behind) = rest.split_first_chunk()?;
            (*word, rest) = (u32::from_le_bytes(*bytes), behind);
        }
        let [x, y, z, written, length] = head;
        let (entry, source) = rest.split_at_checked(length as usize)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        Some(Self { source: text(source)?, entry: text(entry)?, group: [x, y, z], written })
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn bytes_have_all_of_a_kernel() {
        let text = |part: &str| part.to_owned();
        let text =
            Text { source: text("a b"), entry: text("main_"), group: [64, 2, 1], written: 5 };
        let bytes = text.to_bytes();
        assert_eq!(Text::of_bytes(&bytes), Some(text));
        assert_eq!(Text::of_bytes(&bytes[..22]), None);
    }
}
