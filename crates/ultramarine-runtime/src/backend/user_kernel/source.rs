//! The source for a compiler, and the conversion of the compiler's errors to lines of the user's
//! source.

use super::KernelSource;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The most source lines that an error shows. Of a longer source, it shows the lines around the
/// errors.
const MOST_LINES: usize = 60;
const AROUND: usize = 4;

/// The whole source of a kernel.
pub(super) struct FullSource {
    pub whole: String,
    /// The name of the user's part in compilers' messages.
    label: String,
    /// The number of lines before the user's source, if the language cannot restart the count of
    /// lines.
    before: usize,
}

/// Returns true if the language has the C preprocessor.
fn has_lines(language: &str) -> bool {
    language != "wgsl"
}

impl FullSource {
    pub fn new(source: &KernelSource<'_>) -> FullSource {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let label: String = source.op.chars().map(|c| if plain(c) { c } else { '_' }).collect();
        let mut whole = String::with_capacity(
            source.head.len() + source.source.len() + source.tail.len() + label.len() + 32,
        );
        whole.push_str(source.head);
        if !whole.is_empty() && !whole.ends_with('\n') {
            whole.push('\n');
        }
        let mut before = 0;
        if has_lines(source.language) {
            let _ = writeln!(whole, "#line 1 \"{label}\"");
        } else {
            before = whole.matches('\n').count();
        }
        whole.push_str(source.source);
        if !source.source.ends_with('\n') {
            whole.push('\n');
        }
        whole.push_str(source.tail);
        FullSource { whole, label, before }
    }

    /// Returns the compiler's log, with line numbers of the user's source, followed by the user's
    /// lines.
    pub fn explain(&self, log: &str, source: &str) -> String {
        let lines: Vec<&str> = source.lines().collect();
        let mut named = BTreeSet::new();
        let mut text = String::with_capacity(log.len() + source.len() + 16 * lines.len());
        match self.before {
            0 => {
                text.push_str(log.trim_end());
                named.extend(named_after(log, &self.label));
            }
            before => shift(log.trim_end(), before, lines.len(), &mut text, &mut named),
        }
        text.push_str("\n\nThe source:\n");
        let width = lines.len().to_string().len();
        let near = |line: usize| {
            let low = line.saturating_sub(AROUND);
            lines.len() <= MOST_LINES || named.range(low..=line + AROUND).next().is_some()
        };
        let all = named.is_empty();
        let mut skipped = false;
        for (i, line) in lines.iter().enumerate() {
            let number = i + 1;
            if !(near(number) || all && number <= MOST_LINES) {
                if !std::mem::replace(&mut skipped, true) {
                    text.push_str("...\n");
                }
                continue;
            }
            skipped = false;
            let mark = if named.contains(&number) { '>' } else { ' ' };
            let _ = writeln!(text, "{mark} {number:width$} | {line}");
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// Parses the number at the beginning of a text.
fn number(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok().map(|n| (n, &text[end..]))
}

/// Returns the lines that a log names as `label:3:` or `label(3)`.
fn named_after<'a>(log: &'a str, label: &'a str) -> impl Iterator<Item = usize> + 'a {
    log.match_indices(label).filter_map(move |(at, _)| {
        let rest = log[at + label.len()..].trim_start_matches('"');
        number(rest.strip_prefix([':', '('])?).map(|(line, _)| line)
    })
}

/// Copies a log. Subtracts `before` from every `:line:column` (or `line │` of naga's excerpts) that
/// lies in the user's lines.
fn shift(log: &str, before: usize, lines: usize, text: &mut String, named: &mut BTreeSet<usize>) {
    for (i, row) in log.lines().enumerate() {
        if i > 0 {
            text.push('\n');
        }
        let ours = |line: usize| line > before && line <= before + lines;
        let trimmed = row.trim_start();
        if let Some((line, rest)) = number(trimmed)
            && ours(line)
            && rest.trim_start().starts_with(['│', '|'])
        {
            let _ = write!(text, "{}{}{rest}", &row[..row.len() - trimmed.len()], line - before);
            continue;
        }
        let mut rest = row;
        while let Some(at) = rest.find(':') {
            let (head, tail) = rest.split_at(at + 1);
            text.push_str(head);
            rest = tail;
            if let Some((line, after)) = number(tail)
                && ours(line)
                && after.starts_with(':')
            {
                named.insert(line - before);
                let _ = write!(text, "{}", line - before);
                rest = after;
            }
        }
        text.push_str(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source<'a>(language: &'a str, source: &'a str) -> KernelSource<'a> {
        KernelSource {
            op: "my kernel",
            language,
            head: "head\nhead",
            source,
            tail: "}\n",
            ..KernelSource::default()
        }
    }

    #[test]
    fn lines_are_the_users() {
        let full = FullSource::new(&source("opencl-c", "one\ntwo\nthree"));
        assert_eq!(full.whole, "head\nhead\n#line 1 \"my_kernel\"\none\ntwo\nthree\n}\n");
        let message = full.explain("my_kernel:2:5: error: no\n", "one\ntwo\nthree");
        let want = "my_kernel:2:5: error: no\n\nThe source:\n  1 | one\n> 2 | two\n  3 | three";
        assert_eq!(message, want);
        assert!(full.explain("my_kernel(3): error: no", "one\ntwo\nthree").contains("> 3 | three"));
    }

    #[test]
    fn without_a_preprocessor_the_log_is_rewritten() {
        let full = FullSource::new(&source("wgsl", "one\ntwo\nthree"));
        assert_eq!(full.whole, "head\nhead\none\ntwo\nthree\n}\n");
        let log = "error: no\n  ┌─ wgsl:4:7\n  │\n4 │ two\n  = :1:2 stays";
        let message = full.explain(log, "one\ntwo\nthree");
        assert!(
            message.starts_with("error: no\n  ┌─ wgsl:2:7\n  │\n2 │ two\n  = :1:2 stays\n"),
            "{message}"
        );
        assert!(message.contains("> 2 | two") && message.contains("  1 | one"), "{message}");
    }

    #[test]
    fn long_sources_are_cut_to_the_lines_with_errors() {
        let long: Vec<String> = (1..=200).map(|i| format!("line{i}")).collect();
        let long = long.join("\n");
        let full = FullSource::new(&source("cuda-c", &long));
        let message = full.explain("my_kernel(100): error: no", &long);
        assert!(
            message.contains("> 100 | line100\n") && message.contains("  96 | line96"),
            "{message}"
        );
        assert!(!message.contains("line95\n") && !message.contains("line105"), "{message}");
        assert!(full.explain("no idea", &long).contains("line60\n"));
    }
}
