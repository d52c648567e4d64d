//! `cargo xtask prose`: measures how the comments of each crate read. The figures may only improve.
//!
//! The figures are in `xtask/prose.toml`. They count deviations from the style in `docs/`: comments
//! that begin with a question word, documentation of one line, missing links and examples in
//! documentation, and this project's own words instead of the field's.

use crate::sh;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

const FILE: &str = "xtask/prose.toml";

/// This project's own words, which have no other meaning in this repository.
const BANNED: [&str; 5] = ["resort", "grave", "strangers", "judged", "suspects"];
const QUESTIONS: [&str; 3] = ["What", "Whether", "Which"];

/// The percentage points by which a crate's share may get worse, because a new item changes it
/// slightly.
const SLACK: f64 = 1.0;

/// The comments of a crate.
#[derive(Default)]
struct Counts {
    comments: usize,
    questions: usize,
    docs: usize,
    one_line: usize,
    links: usize,
    examples: usize,
    banned: usize,
}

/// The bounds of a crate.
#[derive(Deserialize)]
struct Bounds {
    /// The most comments that begin with a question word.
    questions: usize,
    /// The most banned words.
    banned: usize,
    /// The largest share of documentation in one line, in per cent.
    one_line: f64,
    /// The fewest links in a hundred doc comments.
    links: f64,
    /// The fewest examples in a hundred doc comments.
    examples: f64,
}

/// `cargo xtask prose [--write]`: prints the figures, and compares or writes them.
pub fn command(args: &[String]) -> Result<()> {
    let write = match args {
        [] => false,
        [write] if write == "--write" => true,
        _ => bail!("usage: cargo xtask prose [--write]"),
    };
    let crates = count()?;
    println!(
        "{:<26} {:>8} {:>9} {:>8} {:>8} {:>8} {:>8}",
        "crate", "comments", "questions", "one line", "links", "examples", "banned"
    );
    for (name, counts) in &crates {
        println!(
            "{name:<26} {:>8} {:>9} {:>7.1}% {:>8.1} {:>8.1} {:>8}",
            counts.comments,
            counts.questions,
            counts.per_hundred(counts.one_line),
            counts.per_hundred(counts.links),
            counts.per_hundred(counts.examples),
            counts.banned
        );
    }
    if write {
        let path = sh::root().join(FILE);
        return std::fs::write(&path, file(&crates))
            .with_context(|| format!("cannot write {FILE}"));
    }
    compare(&crates)
}

/// The comparison alone, without the table.
pub fn check() -> Result<()> {
    compare(&count()?)
}

fn compare(crates: &BTreeMap<String, Counts>) -> Result<()> {
    let text = std::fs::read_to_string(sh::root().join(FILE))
        .with_context(|| format!("cannot read {FILE}"))?;
    let bounds: BTreeMap<String, Bounds> =
        toml::from_str(&text).with_context(|| format!("cannot read {FILE}"))?;
    let mut worse = Vec::new();
    for (name, counts) in crates {
        // The figures of a new crate have to be written once.
        match bounds.get(name) {
            Some(bounds) => worse.extend(counts.worse(bounds).map(|w| format!("{name}: {w}"))),
            None => worse.push(format!("{name} is not in {FILE}")),
        }
    }
    if !worse.is_empty() {
        bail!(
            "comments read worse than before. Rewrite them, or say why in a commit that runs \
             `cargo xtask prose --write`:\n  {}",
            worse.join("\n  ")
        );
    }
    Ok(())
}

impl Counts {
    fn per_hundred(&self, part: usize) -> f64 {
        100.0 * part as f64 / self.docs.max(1) as f64
    }

    /// The figures that are worse than the bounds.
    fn worse(&self, bounds: &Bounds) -> impl Iterator<Item = String> {
        let most = [
            ("comments begin with What, Whether or Which", self.questions, bounds.questions),
            ("banned words", self.banned, bounds.banned),
        ];
        let one_line = self.per_hundred(self.one_line);
        let fewest = [
            ("links in a hundred doc comments", self.per_hundred(self.links), bounds.links),
            (
                "examples in a hundred doc comments",
                self.per_hundred(self.examples),
                bounds.examples,
            ),
        ];
        let share = (one_line > bounds.one_line + SLACK).then(|| {
            format!("{one_line:.1} % of doc comments are one line, at most {:.1}", bounds.one_line)
        });
        let most = most.into_iter().filter(|(_, is, at_most)| is > at_most);
        let most = most.map(|(what, is, at_most)| format!("{is} {what}, at most {at_most}"));
        let fewest = fewest.into_iter().filter(|(_, is, least)| *is < *least - SLACK);
        let fewest = fewest.map(|(what, is, least)| format!("{is:.1} {what}, at least {least:.1}"));
        most.chain(fewest).chain(share)
    }

    /// Adds the comments of a file.
    fn add(&mut self, text: &str) {
        let mut block = Vec::new();
        let mut kind = "";
        // A line of code ends the last block.
        for line in text.lines().chain([""]) {
            let line = line.trim_start();
            let marks = ["///", "//!", "//"].into_iter().find(|marks| line.starts_with(marks));
            if marks != Some(kind) && !block.is_empty() {
                self.block(kind, &block);
                block.clear();
            }
            if let Some(marks) = marks {
                kind = marks;
                block.push(line[marks.len()..].trim());
            }
        }
    }

    fn block(&mut self, kind: &str, lines: &[&str]) {
        self.comments += 1;
        let first = lines.iter().find(|line| !line.is_empty()).copied().unwrap_or_default();
        let word = first.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        self.questions += usize::from(QUESTIONS.contains(&word));
        let text = lines.join("\n");
        let words = text.split(|c: char| !c.is_alphanumeric());
        self.banned += words.filter(|word| BANNED.contains(&word.to_lowercase().as_str())).count();
        if kind == "///" {
            self.docs += 1;
            self.one_line += usize::from(lines.len() == 1);
            self.links += text.matches("[`").count() + text.matches("](").count();
            self.examples += usize::from(text.contains("```"));
        }
    }
}

/// Returns the comments of all crates, by the crates' names.
fn count() -> Result<BTreeMap<String, Counts>> {
    let mut crates: BTreeMap<String, Counts> = BTreeMap::new();
    for file in sh::tree()?.into_iter().filter(|f| f.extension().is_some_and(|e| e == "rs")) {
        let Some(name) = crate_of(&file) else { continue };
        let text = std::fs::read_to_string(sh::root().join(&file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        crates.entry(name).or_default().add(&text);
    }
    Ok(crates)
}

/// Returns the crate to which a source file belongs; `None` for tests, examples and generated
/// tables.
fn crate_of(file: &Path) -> Option<String> {
    let mut parts = file.iter().filter_map(|part| part.to_str());
    let name = match parts.next()? {
        "crates" => parts.next()?,
        "python" => "ultramarine-python",
        "xtask" => "xtask",
        _ => return None,
    };
    let source =
        parts.next()? == "src" && file != Path::new("crates/ultramarine-abi/src/schema/table.rs");
    source.then(|| name.to_owned())
}

/// Returns the figures in the file's format.
fn file(crates: &BTreeMap<String, Counts>) -> String {
    let mut text =
        "# The figures of comments that may only get better: `cargo xtask prose --write` \
                    writes them.\n"
            .to_owned();
    for (name, counts) in crates {
        let _ = write!(
            text,
            "\n[{name}]\nquestions = {}\nbanned = {}\none_line = {:.1}\nlinks = {:.1}\nexamples = {:.1}\n",
            counts.questions,
            counts.banned,
            counts.per_hundred(counts.one_line),
            counts.per_hundred(counts.links),
            counts.per_hundred(counts.examples)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Bounds, Counts};

    const SOURCE: &str = "//! What a module has.\n\n/// One line.\nfn a() {}\n/// A link to [`a`].\n///\n\
        /// ```\n/// a();\n/// ```\nfn b() {\n    // Whether it is judged,\n    // as a last resort.\n    a();\n}\n";

    fn counts() -> Counts {
        let mut counts = Counts::default();
        counts.add(SOURCE);
        counts
    }

    #[test]
    fn comments_are_counted_by_blocks() {
        let counts = counts();
        assert_eq!((counts.comments, counts.docs), (4, 2));
        assert_eq!((counts.questions, counts.one_line), (2, 1));
        assert_eq!((counts.links, counts.examples, counts.banned), (1, 1, 2));
    }

    #[test]
    fn worse_figures_are_named() {
        let same =
            || Bounds { questions: 2, banned: 2, one_line: 50.0, links: 50.0, examples: 50.0 };
        assert_eq!(counts().worse(&same()).count(), 0);
        let stricter = [
            Bounds { questions: 1, ..same() },
            Bounds { banned: 1, ..same() },
            Bounds { one_line: 40.0, ..same() },
            Bounds { links: 60.0, ..same() },
            Bounds { examples: 60.0, ..same() },
        ];
        for bounds in stricter {
            assert_eq!(counts().worse(&bounds).count(), 1);
        }
    }
}
