//! Subjects of commits: `area: imperative verb ...`, at most 72 characters.

use crate::sh;
use anyhow::{Result, bail};

/// The last commit before this rule.
const BEFORE: &str = "494631b5eef8";

/// The longest subject in characters, because tools cut longer ones.
const MOST: usize = 72;

/// Checks the commits of this branch since the rule. In a shallow clone, checks the last commit.
pub fn check() -> Result<()> {
    let known = sh::read(sh::cmd("git", &["merge-base", "--is-ancestor", BEFORE, "HEAD"])).is_ok();
    let range = if known { format!("{BEFORE}..HEAD") } else { "-1".to_owned() };
    let log = sh::read(sh::cmd("git", &["log", "--no-merges", "--format=%h %s", &range]))?;
    let wrong: Vec<String> = log
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(hash, subject)| Some(format!("{hash} {subject}\n    {}", fault(subject)?)))
        .collect();
    if !wrong.is_empty() {
        bail!("subjects of commits:\n  {}", wrong.join("\n  "));
    }
    Ok(())
}

/// Returns the fault of a subject, if it has one.
fn fault(subject: &str) -> Option<String> {
    // `git revert` writes this.
    if subject.starts_with("Revert \"") {
        return None;
    }
    let length = subject.chars().count();
    if length > MOST {
        return Some(format!("{length} characters: shorten it to {MOST}"));
    }
    let Some((area, text)) = subject.split_once(": ") else {
        return Some("no area: write `area: imperative verb ...`".to_owned());
    };
    let named = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if area.is_empty() || !area.split(", ").all(|a| !a.is_empty() && a.chars().all(named)) {
        return Some(format!("{area:?} is no area: use lower-case words, such as `cpu`"));
    }
    let verb = text.split(' ').next().unwrap_or_default();
    if !verb.starts_with(|c: char| c.is_ascii_lowercase()) || text.ends_with('.') {
        return Some("begin with a verb in lower case, and end without a full stop".to_owned());
    }
    let imperative = ["embed", "feed", "need", "shed", "speed", "bring"];
    if !imperative.contains(&verb) && (verb.ends_with("ed") || verb.ends_with("ing")) {
        return Some(format!("{verb:?} is not imperative: write `add`, not `added` or `adding`"));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn subjects_have_an_area_and_a_verb() {
        let longest = format!("cpu: add {}", "x".repeat(63));
        for right in ["cpu: sum rows by lanes", "abi, runtime: embed the version", &longest] {
            assert_eq!(fault(right), None, "{right}");
        }
        let longer = format!("{longest}y");
        for wrong in
            ["sum rows", "CPU: sum", "cpu: Sum", "cpu: summed", "cpu: sum.", ": a", &longer]
        {
            assert!(fault(wrong).is_some(), "{wrong}");
        }
    }
}
