//! Links in Markdown: the files and headings of this repository that they name have to exist.

use crate::sh;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// The repository's address. The README names files by it, because package indexes show the README
/// too.
const REPOSITORY: &str = "https://github.com/ultramarine-array/ultramarine/";

/// The address of its raw files, for pictures.
const RAW: &str = "https://raw.githubusercontent.com/ultramarine-array/ultramarine/main/";

/// Checks the links of all pages in Markdown.
pub fn check() -> Result<()> {
    let mut pages = BTreeMap::new();
    for file in sh::tree()?.into_iter().filter(|f| f.extension().is_some_and(|e| e == "md")) {
        let text = std::fs::read_to_string(sh::root().join(&file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        pages.insert(file, text);
    }
    let mut broken = Vec::new();
    for (file, text) in &pages {
        for (line, link) in links(text) {
            let Some((path, anchor)) = target(file, link) else { continue };
            let exists = sh::root().join(&path).exists();
            let heading = match pages.get(&path) {
                Some(page) if !anchor.is_empty() => headings(page).contains(anchor),
                _ => true,
            };
            if !exists || !heading {
                broken.push(format!("{}:{line}: {link}", file.display()));
            }
        }
    }
    if !broken.is_empty() {
        bail!("links that lead nowhere:\n  {}", broken.join("\n  "));
    }
    Ok(())
}

/// Returns the lines of a page that are not code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        if line.trim_start().starts_with("```") {
            code = !code;
            return None;
        }
        (!code).then_some((number + 1, line))
    })
}

/// The targets of a page's links, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        // Every second part is between backticks.
        for part in line.split('`').step_by(2) {
            found.extend(ends(part).map(|link| (number, link)));
        }
    }
    found
}

/// The targets in `](...)`.
fn ends(part: &str) -> impl Iterator<Item = &str> {
    part.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next())
}

/// Returns the file that a link names, relative to the root, and the heading in it. Returns `None`
/// for links to other sites.
fn target<'a>(page: &Path, link: &'a str) -> Option<(PathBuf, &'a str)> {
    if let Some(path) = link.strip_prefix(RAW) {
        return Some((path.into(), ""));
    }
    if let Some(rest) = link.strip_prefix(REPOSITORY) {
        let path = rest.strip_prefix("blob/main/").or_else(|| rest.strip_prefix("tree/main/"))?;
        let (path, anchor) = path.split_once('#').unwrap_or((path, ""));
        return Some((path.into(), anchor));
    }
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    if path.is_empty() {
        return Some((page.to_owned(), anchor));
    }
    let mut full = PathBuf::new();
    for part in page.parent().unwrap_or(Path::new("")).join(path).components() {
        match part {
            Component::ParentDir => drop(full.pop()),
            Component::CurDir => {}
            part => full.push(part),
        }
    }
    Some((full, anchor))
}

/// The anchors of a page's headings, as GitHub makes them.
fn headings(text: &str) -> BTreeSet<String> {
    let titles = prose(text).filter_map(|(_, line)| {
        let title = line.trim_start_matches('#');
        (line.starts_with('#') && title.starts_with(' ')).then_some(title.trim())
    });
    titles.map(anchor).collect()
}

fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::{anchor, headings, links, target};
    use std::path::Path;

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "see [a](b.md#c) and [d](e)\n`[no](f)`\n```\n[no](g)\n```\n[h](i)\n";
        assert_eq!(links(text), [(1, "b.md#c"), (1, "e"), (6, "i")]);
    }

    #[test]
    fn targets_are_relative_to_the_root() {
        let page = Path::new("docs/api/nn.md");
        assert_eq!(target(page, "../models.md#a"), Some(("docs/models.md".into(), "a")));
        assert_eq!(target(page, "#b"), Some((page.to_owned(), "b")));
        assert_eq!(target(page, "../../README.md"), Some(("README.md".into(), "")));
        let link = "https://github.com/ultramarine-array/ultramarine/blob/main/docs/x.md#y";
        assert_eq!(target(page, link), Some(("docs/x.md".into(), "y")));
        assert_eq!(target(page, "https://example.org/x.md"), None);
    }

    #[test]
    fn headings_have_the_anchors_of_github() {
        assert_eq!(
            anchor("What `naga` has: 2 things, and_more"),
            "what-naga-has-2-things-and_more"
        );
        assert!(headings("# A b\n```\n# no\n```\n#no\n").iter().eq(["a-b"]));
    }
}
