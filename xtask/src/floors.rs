//! Import circles between the top-level modules of a crate. Without circles, the modules form
//! layers: each imports only from lower ones, and can be read and changed without those above.

use crate::sh;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The crates whose modules must form layers.
const CRATES: &[&str] = &[
    "ultramarine",
    "ultramarine-cpu",
    "ultramarine-cuda",
    "ultramarine-mpi",
    "ultramarine-runtime",
    "ultramarine-wgpu",
];

/// The most imports of a crate that a message names.
const SHOWN: usize = 20;

/// An import: the importing module, the imported module, and its place in the source.
struct Import {
    from: String,
    to: String,
    place: String,
}

/// Fails if imports form a circle, and names these imports.
pub fn run() -> Result<()> {
    let mut circles = Vec::new();
    for name in CRATES {
        let imports = imports_of(Path::new("crates").join(name).join("src").as_path())?;
        if imports.is_empty() {
            bail!("{name} has no imports between its modules, so this check sees nothing");
        }
        for import in circular(&imports).into_iter().take(SHOWN) {
            circles.push(format!("{}: {} imports {}", import.place, import.from, import.to));
        }
    }
    if !circles.is_empty() {
        bail!("modules that import each other in a circle:\n  {}", circles.join("\n  "));
    }
    Ok(())
}

/// Returns the imports between top-level modules in the sources below `folder`, without tests.
fn imports_of(folder: &Path) -> Result<Vec<Import>> {
    let mut files = Vec::new();
    for file in sh::tree()? {
        if let Ok(inside) = file.strip_prefix(folder)
            && inside.extension().is_some_and(|e| e == "rs")
            && !inside.iter().any(|part| part == "tests" || part == "tests.rs")
        {
            let mut modules: Vec<String> = inside
                .with_extension("")
                .iter()
                .map(|part| part.to_string_lossy().into_owned())
                .collect();
            modules.pop_if(|last| last == "mod" || last == "lib");
            let text = std::fs::read_to_string(sh::root().join(&file))
                .with_context(|| format!("cannot read {}", file.display()))?;
            files.push((file.display().to_string(), modules, text));
        }
    }
    let tops: BTreeSet<String> = files.iter().filter_map(|(_, m, _)| m.first().cloned()).collect();
    let root = files.iter().find(|(_, modules, _)| modules.is_empty());
    let lent = root.map(|(_, _, text)| reexported(text, &tops)).unwrap_or_default();
    let mut imports = Vec::new();
    for (file, modules, text) in &files {
        let Some(from) = modules.first() else { continue };
        for (line, name) in named(text, modules.len()) {
            let to = lent.get(&name).cloned().unwrap_or(name);
            if to != *from && tops.contains(&to) {
                let place = format!("{file}:{line}");
                imports.push(Import { from: from.clone(), to, place });
            }
        }
    }
    Ok(imports)
}

/// Returns the lines without comments, and without everything after a `mod tests`.
fn code(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.starts_with("mod tests {"));
    lines.map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Returns the names, with their lines, that follow `crate::`. In a module at this depth, as many
/// `super::` as lead to the crate's root count too.
fn named(text: &str, depth: usize) -> Vec<(usize, String)> {
    let text = code(text);
    let up = "super::".repeat(depth);
    let mut found = Vec::new();
    for root in ["crate::", up.as_str()] {
        for (at, _) in text.match_indices(root) {
            let before = text[..at].chars().next_back();
            let longer =
                before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ':' | '$'));
            if longer || text[at + root.len()..].starts_with("super::") {
                continue;
            }
            let line = text[..at].matches('\n').count() + 1;
            for name in leading(&text[at + root.len()..]) {
                found.push((line, name));
            }
        }
    }
    found
}

/// Returns the names that the crate's root re-exports, each with its module: `crate::name` is then
/// an import of this module.
fn reexported(text: &str, tops: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for import in
        code(text).split(';').filter_map(|item| item.split_once("use ").map(|(_, path)| path))
    {
        let module = leading(import).remove(0);
        if let Some(names) = import.strip_prefix(module.as_str())
            && tops.contains(&module)
        {
            // A path ends in the name. Each path of a group ends in a name.
            let ends =
                names.split([',', '}']).filter_map(|path| path.rsplit([':', '{', ' ']).next());
            let ends = ends.map(str::trim).filter(|name| !name.is_empty() && !tops.contains(*name));
            found.extend(ends.map(|name| (name.to_owned(), module.clone())));
        }
    }
    found
}

/// Returns the first name of a path, or of each path of a group in braces.
fn leading(text: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(group) = text.strip_prefix('{') else { return vec![word(text)] };
    let (mut names, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            ',' if depth == 0 => {
                names.push(word(group[start..i].trim_start()));
                start = i + 1;
            }
            '}' if depth == 0 => {
                names.push(word(group[start..i].trim_start()));
                break;
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    names
}

/// Returns the imports that belong to circles. The rarest come first, because most imports respect
/// the order of the layers.
fn circular(imports: &[Import]) -> Vec<&Import> {
    let mut reach: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for import in imports {
        reach.entry(&import.from).or_default().insert(&import.to);
    }
    loop {
        let mut grown = false;
        for from in reach.keys().copied().collect::<Vec<_>>() {
            let further: BTreeSet<&str> =
                reach[from].iter().filter_map(|to| reach.get(to)).flatten().copied().collect();
            let known = reach.entry(from).or_default();
            let before = known.len();
            known.extend(further);
            grown |= known.len() > before;
        }
        if !grown {
            break;
        }
    }
    let reaches = |from: &str, to: &str| reach.get(from).is_some_and(|all| all.contains(to));
    let mut found: Vec<&Import> = imports.iter().filter(|i| reaches(&i.to, &i.from)).collect();
    let alike =
        |i: &Import| imports.iter().filter(|o| (&o.from, &o.to) == (&i.from, &i.to)).count();
    found.sort_by_cached_key(|i| alike(i));
    found
}

#[cfg(test)]
mod tests {
    use super::{Import, circular, named, reexported};
    use std::collections::BTreeSet;

    fn names(text: &str, depth: usize) -> Vec<String> {
        named(text, depth).into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn imports_are_seen_in_all_forms() {
        let text = "use crate::{a, b::{c, d}, e};\n// crate::no\nlet x = crate::f::g();\n\
                    $crate::h::i();\nmod tests {\n use crate::j;\n}";
        assert_eq!(names(text, 1), ["a", "b", "e", "f"]);
        assert_eq!(names("use super::x; use super::super::y;", 2), ["y"]);
        assert_eq!(named("\nuse crate::a;", 1), [(2, "a".to_owned())]);
    }

    #[test]
    fn names_of_the_root_are_those_of_a_module() {
        let text = "mod a;\nuse a::{b,\n c::{D, e::F}};\npub use a::G;\nuse other::h;\npub use eval::{eval, i};";
        let tops = BTreeSet::from(["a", "eval"].map(str::to_owned));
        let lent = reexported(text, &tops);
        let lent: Vec<(&str, &str)> = lent.iter().map(|(n, m)| (n.as_str(), m.as_str())).collect();
        assert_eq!(lent, [("D", "a"), ("F", "a"), ("G", "a"), ("b", "a"), ("i", "eval")]);
    }

    #[test]
    fn circles_through_other_modules_are_found() {
        let import = |from: &str, to: &str| Import {
            from: from.to_owned(),
            to: to.to_owned(),
            place: format!("{from}.rs:1"),
        };
        let mut imports = vec![import("a", "b"), import("b", "c"), import("d", "a")];
        assert!(circular(&imports).is_empty());
        imports.push(import("c", "a"));
        let places: Vec<&str> = circular(&imports).iter().map(|i| i.place.as_str()).collect();
        assert_eq!(places, ["a.rs:1", "b.rs:1", "c.rs:1"]);
    }
}
