//! The functions for programs. A program contains only those that it uses, because compilers take
//! time for the others too.

use std::collections::{BTreeMap, BTreeSet};

/// WGSL functions and constants by name. A [`Program`](super::source::Program) contains those that
/// it uses.
#[derive(Clone, Default)]
pub struct Library<'a> {
    items: BTreeMap<&'a str, &'a str>,
}

impl<'a> Library<'a> {
    /// Adds the items of a source. Each begins with `fn` or `const` at the start of a line, and
    /// ends at a line that is `}`, or with its own line. If several items have the same name, the
    /// last one counts.
    pub fn add(&mut self, text: &'a str) {
        let mut at = 0;
        while let Some(line) = text[at..].split_inclusive('\n').next() {
            let end = at + line.len();
            let Some(name) = item_name(line) else {
                at = end;
                continue;
            };
            let one_line = line.trim_end().ends_with([';', '}']);
            let length = match text[at..].find("\n}\n") {
                Some(close) if !one_line => close + 3,
                _ => line.len(),
            };
            self.items.insert(name, &text[at..at + length]);
            at += length;
        }
    }

    /// Adds the items of another library.
    pub fn join(&mut self, other: Self) {
        self.items.extend(other.items);
    }

    /// Returns true if there is an item with that name.
    pub fn has(&self, name: &str) -> bool {
        self.items.contains_key(name)
    }

    /// Returns the items that a source names, and the items that these name.
    pub fn used_by(&self, text: &str) -> String {
        let mut found = BTreeSet::new();
        let mut open = vec![text];
        while let Some(text) = open.pop() {
            for word in words(text) {
                if let Some((name, item)) = self.items.get_key_value(word)
                    && found.insert(*name)
                {
                    open.push(item);
                }
            }
        }
        found.into_iter().map(|name| self.items[name]).collect()
    }
}

/// Adds a suffix to the words of a source for which `own` returns true.
pub fn renamed(text: &str, own: impl Fn(&str) -> bool, suffix: &str) -> String {
    let mut out = String::with_capacity(2 * text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(word);
        out.push_str(name);
        if !name.is_empty() && own(name) {
            out.push_str(suffix);
        }
        let other = behind.find(is_word).unwrap_or(behind.len());
        out.push_str(&behind[..other]);
        rest = &behind[other..];
    }
    out
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The name of the item that a line begins.
fn item_name(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("fn ").or_else(|| line.strip_prefix("const "))?;
    words(rest).next()
}

/// The identifiers in a source.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_word(c)).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_take_what_they_use() {
        let mut library = Library::default();
        library.add("const K: u32 = 1;\nfn a() -> u32 {\n  return b();\n}\n// no item\nfn b() -> u32 { return K; }\n");
        library.add("fn c() {\n  if true {\n  }\n}\n");
        assert!(library.has("a") && library.has("K") && !library.has("item"));
        let used = library.used_by("let x = a();");
        assert!(used.contains("fn a()") && used.contains("fn b()") && used.contains("const K"));
        assert!(!used.contains("fn c"));
        let names = renamed("let x = a() + ab;", |name| library.has(name), "_1");
        assert_eq!(names, "let x = a_1() + ab;");
        assert_eq!(library.used_by("c();"), "fn c() {\n  if true {\n  }\n}\n");
    }
}
