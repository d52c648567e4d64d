//! The report: a table for people, the capability sheet, the grade.

use crate::groups::LOAD;
use crate::options::{Grade, Options};
use crate::parent::{Check, Findings};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use ultramarine_abi::schema;

/// The most failures that are printed for each group, unless all are requested.
const SHOWN: usize = 5;

/// The grade, and the ops that are missing for the next one.
pub struct Verdict {
    /// The best grade that the backend reaches; `None` if a check failed.
    pub grade: Option<Grade>,
    /// The grade of the backend's native operations, even if checks failed.
    native: Option<Grade>,
    /// Ops that are missing for the next grade.
    pub missing: Vec<Missing>,
}

/// An op that is not native.
pub struct Missing {
    family: String,
    code: String,
    dtype: String,
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let gap = if self.code.is_empty() { "" } else { " " };
        write!(f, "{}{gap}{} {}", self.family, self.code, self.dtype)
    }
}

/// The result of a run, which the exit status says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The contract is kept, and the demanded grade is reached.
    Conforms,
    /// A check failed.
    Breaks,
    /// The contract is kept below the demanded grade.
    BelowGrade,
    /// No check failed, but some were not run because their group exceeded the time limit.
    Unfinished,
}

impl Verdict {
    /// The result for the options; a part of the kit has no grade.
    pub fn outcome(&self, options: &Options, findings: &Findings) -> Outcome {
        if findings.failed() {
            Outcome::Breaks
        } else if findings.slow() {
            Outcome::Unfinished
        } else if options.is_part() || self.grade >= options.grade {
            Outcome::Conforms
        } else {
            Outcome::BelowGrade
        }
    }
}

fn field<'a>(cell: &'a Value, name: &str) -> &'a str {
    cell[name].as_str().unwrap_or_default()
}

/// The name of a cell's op.
fn op(cell: &Value) -> String {
    match field(cell, "code") {
        "" => field(cell, "cell").to_owned(),
        code => format!("{} {code}", field(cell, "cell")),
    }
}

/// The verdict on the findings.
pub fn verdict(findings: &Findings) -> Verdict {
    let lacks = |grades: &[&str]| -> Vec<Missing> {
        findings
            .cells
            .iter()
            .filter(|c| grades.contains(&field(c, "need")) && field(c, "plain") != "native")
            .map(|c| Missing {
                family: field(c, "cell").to_owned(),
                code: field(c, "code").to_owned(),
                dtype: field(c, "dtype").to_owned(),
            })
            .collect()
    };
    let (basic, complete) = (lacks(&["basic"]), lacks(&["basic", "complete"]));
    let (native, missing) = if !basic.is_empty() {
        (None, basic)
    } else if !complete.is_empty() {
        (Some(Grade::Basic), complete)
    } else {
        (Some(Grade::Complete), Vec::new())
    };
    // Missing operations are also listed for a backend with failed checks.
    let whole = !findings.failed() && !findings.slow();
    Verdict { grade: native.filter(|_| whole), native, missing }
}

/// Returns lines that name all missing operations. Each has a family, and the dtypes that lack the
/// same codes.
fn missing_lines(missing: &[Missing]) -> Vec<String> {
    // In the order of the kit: family, dtype, codes.
    let mut lacks: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for m in missing {
        match lacks.iter_mut().find(|l| l.0 == m.family && l.1 == m.dtype) {
            Some(known) => known.2.push(&m.code),
            None => lacks.push((&m.family, &m.dtype, vec![&m.code])),
        }
    }
    let mut lines: Vec<(&str, Vec<&str>, Vec<&str>)> = Vec::new();
    for (family, dtype, codes) in lacks {
        match lines.iter_mut().find(|l| l.0 == family && l.2 == codes) {
            Some(line) => line.1.push(dtype),
            None => lines.push((family, vec![dtype], codes)),
        }
    }
    let line = |(family, dtypes, codes): &(&str, Vec<&str>, Vec<&str>)| {
        let codes = codes.join(" ");
        let colon = if codes.is_empty() { "" } else { ": " };
        format!("  {family} of {}{colon}{codes}", dtypes.join(", "))
    };
    lines.iter().map(line).collect()
}

/// The whole report as text.
pub fn text(options: &Options, findings: &Findings, verdict: &Verdict) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = groups(&mut out, findings);
    let _ = failures(&mut out, options, findings);
    let _ = sheet(&mut out, options, findings);
    let _ = matrix(&mut out, findings);
    if options.verbose {
        let _ = every_op(&mut out, findings);
    }
    let _ = close(&mut out, options, findings, verdict);
    out
}

/// The failures as text.
pub fn failed(options: &Options, findings: &Findings) -> String {
    let mut out = String::new();
    let _ = failures(&mut out, options, findings);
    out
}

fn groups(out: &mut String, findings: &Findings) -> std::fmt::Result {
    let mut order: Vec<&str> = Vec::new();
    for check in &findings.checks {
        if !order.contains(&check.group.as_str()) {
            order.push(&check.group);
        }
    }
    let width = order.iter().map(|g| g.len()).max().unwrap_or(0).max("group".len());
    writeln!(
        out,
        "{:width$} {:>7} {:>7} {:>8} {:>8}",
        "group", "passed", "failed", "skipped", "seconds"
    )?;
    for group in order {
        let count = |result: &str| {
            findings.checks.iter().filter(|c| c.group == group && c.result == result).count()
        };
        let time = findings.times.iter().find(|t| t.0 == group).map(|t| t.1.as_secs_f64());
        let time = time.map_or(String::new(), |t| format!("{t:.1}"));
        let (passed, failed, skipped) = (count("pass"), count("fail"), count("skip"));
        let slow = if count("slow") > 0 { "  took too long" } else { "" };
        writeln!(out, "{group:width$} {passed:>7} {failed:>7} {skipped:>8} {time:>8}{slow}")?;
    }
    writeln!(out)
}

fn failures(out: &mut String, options: &Options, findings: &Findings) -> std::fmt::Result {
    let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
    for check in findings.checks.iter().filter(|c| ["fail", "slow"].contains(&&*c.result)) {
        let n = shown.entry(&check.group).or_default();
        *n += 1;
        if *n > SHOWN && !options.verbose {
            continue;
        }
        let title = if check.result == "slow" { "TOOK TOO LONG" } else { "FAILED" };
        writeln!(out, "{title} {}\n  {}", check.name, check.text)?;
        writeln!(out, "  again: {}\n", again(options, check))?;
    }
    for (group, n) in shown.iter().filter(|(_, n)| **n > SHOWN && !options.verbose) {
        writeln!(out, "... and {} more failures in {group} (--verbose lists them)\n", n - SHOWN)?;
    }
    if options.verbose {
        for check in findings.checks.iter().filter(|c| !["fail", "slow"].contains(&&*c.result)) {
            writeln!(out, "{:7} {} {}", check.result, check.name, check.text)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The command that runs a check again, as the user calls the kit.
fn again(options: &Options, check: &Check) -> String {
    let mut words = vec![program()];
    let mut word = |text: &str| words.push(quoted(text));
    let name = check.name.strip_prefix(&check.group).unwrap_or_default();
    match check.group.as_str() {
        LOAD => {}
        // This check uses the findings of several groups.
        "file" if name == "/note agrees with abi_info" => {
            ["--group", "file", "--group", "abi"].iter().for_each(|w| word(w));
        }
        "abi" if name.starts_with("/arithmetic of") => {}
        group => {
            ["--group", group].iter().for_each(|w| word(w));
            // These names are the kit's own for events of a process, and not names of checks.
            let of_process = ["/exit", "/start", "/rest", "/between checks"].contains(&name);
            if !of_process {
                ["--check", &check.name].iter().for_each(|w| word(w));
            }
        }
    }
    if options.device != 0 {
        ["--device", &options.device.to_string()].iter().for_each(|w| word(w));
    }
    if options.full {
        word("--full");
    }
    if check.group == "bench" {
        return format!("{} --bench {}", words[0], quoted(&options.source.to_string()));
    }
    word(&options.source.to_string());
    words.join(" ")
}

/// Returns the command by which the user called the kit. If another program calls the kit, it
/// passes its own command.
fn program() -> String {
    let given = std::env::var("ULTRAMARINE_CONFORM_COMMAND").ok().filter(|c| !c.is_empty());
    let own = || std::env::args().next().map(|path| quoted(&path));
    given.or_else(own).unwrap_or_else(|| "ultramarine-conform".into())
}

/// Quotes a word for a shell.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:+,@%".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The most names that are suggested if no check is selected.
const NEAR: usize = 5;

/// Returns the message for a `--check` that selects no check, with similar names.
pub fn nothing_selected(options: &Options, names: &[String]) -> String {
    let asked = options.check.as_deref().unwrap_or_default();
    let parts = |text: &str| -> BTreeSet<[char; 3]> {
        let text: Vec<char> = text.to_lowercase().chars().collect();
        text.windows(3).map(|w| [w[0], w[1], w[2]]).collect()
    };
    let wanted = parts(asked);
    let mut near: Vec<(usize, usize, &String)> = names
        .iter()
        .map(|name| (wanted.intersection(&parts(name)).count(), name.len(), name))
        .filter(|(common, ..)| 3 * common >= wanted.len().max(1))
        .collect();
    near.sort_by_key(|(common, length, _)| (std::cmp::Reverse(*common), *length));
    near.dedup_by_key(|n| n.2);
    let near: Vec<&str> = near.iter().take(NEAR).map(|n| n.2.as_str()).collect();
    let place = match options.groups.as_slice() {
        [] => String::new(),
        groups => format!(" of {}", groups.join(", ")),
    };
    let remedy = match near.as_slice() {
        [] => "--verbose without --check lists all names".to_owned(),
        near => format!("near it: {}", near.join("; ")),
    };
    format!("--check {asked:?} is in the name of none of {} checks{place}; {remedy}", names.len())
}

/// A property's fields as lines.
fn sheet(out: &mut String, options: &Options, findings: &Findings) -> std::fmt::Result {
    writeln!(out, "capability sheet of {}", options.source)?;
    let mut lines: Vec<(String, String)> = Vec::new();
    for (key, value) in &findings.properties {
        match value {
            Value::Object(fields) => {
                lines.extend(fields.iter().map(|(name, v)| (format!("{key}: {name}"), plain(v))));
            }
            other => lines.push((key.clone(), plain(other))),
        }
    }
    let width = lines.iter().map(|l| l.0.len()).max().unwrap_or(0);
    for (key, value) in lines {
        writeln!(out, "  {key:width$} {value}")?;
    }
    writeln!(out)
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(plain).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// Families by dtypes.
fn matrix(out: &mut String, findings: &Findings) -> std::fmt::Result {
    if findings.cells.is_empty() {
        return Ok(());
    }
    let mut dtypes: Vec<&str> = Vec::new();
    let mut families: Vec<&str> = Vec::new();
    for cell in &findings.cells {
        let (family, dtype) = (field(cell, "cell"), field(cell, "dtype"));
        if !dtypes.contains(&dtype) {
            dtypes.push(dtype);
        }
        if !families.contains(&family) {
            families.push(family);
        }
    }
    let index = |d: &&str| schema::DTYPES.iter().position(|known| known.0 == *d);
    dtypes.sort_by_key(index);
    writeln!(
        out,
        "ops by dtype: # all native, * native but some layouts need contiguous inputs, n/m n of m \
         native,\n  . refused, ! wrong; empty: not defined. Below, the largest error in units of the last place."
    )?;
    let width = families.iter().map(|f| f.len()).max().unwrap_or(0);
    write!(out, "  {:width$}", "")?;
    for dtype in &dtypes {
        write!(out, " {:>8}", short(dtype))?;
    }
    writeln!(out)?;
    for family in families {
        write!(out, "  {family:width$}")?;
        let mut errors = Vec::new();
        for dtype in &dtypes {
            let cells: Vec<&Value> = findings
                .cells
                .iter()
                .filter(|c| field(c, "cell") == family && field(c, "dtype") == *dtype)
                .collect();
            write!(out, " {:>8}", state(&cells))?;
            let worst = cells.iter().filter_map(|c| c["ulp"].as_f64()).fold(0.0, f64::max);
            errors.push(if worst > 0.5001 { format!("{worst:.1}") } else { String::new() });
        }
        writeln!(out)?;
        if errors.iter().any(|e| !e.is_empty()) {
            write!(out, "  {:width$}", "")?;
            errors.iter().try_for_each(|e| write!(out, " {e:>8}"))?;
            writeln!(out)?;
        }
    }
    writeln!(out)
}

fn short(dtype: &str) -> String {
    dtype.replace("float", "f").replace("complex", "c").replace("uint", "u").replace("int", "i")
}

fn state(cells: &[&Value]) -> String {
    let count = |f: &dyn Fn(&Value) -> bool| cells.iter().filter(|c| f(c)).count();
    let native = count(&|c| field(c, "plain") == "native");
    let wrong = count(&|c| field(c, "plain") == "wrong");
    let copied = count(&|c| matches!(field(c, "strided"), "contiguous" | "refused"));
    match (cells.len(), native) {
        (0, _) => String::new(),
        _ if wrong > 0 => "!".into(),
        (_, 0) => ".".into(),
        (all, native) if native < all => format!("{native}/{all}"),
        _ if copied > 0 => "*".into(),
        _ => "#".into(),
    }
}

fn every_op(out: &mut String, findings: &Findings) -> std::fmt::Result {
    let width = findings.cells.iter().map(|c| op(c).len()).max().unwrap_or(0);
    for cell in &findings.cells {
        writeln!(
            out,
            "  {:width$} {:10} {:9} contiguous: {:8} strided: {:10} error: {:.2} ulp",
            op(cell),
            field(cell, "dtype"),
            field(cell, "need"),
            field(cell, "plain"),
            field(cell, "strided"),
            cell["ulp"].as_f64().unwrap_or(0.0)
        )?;
    }
    writeln!(out)
}

fn checks_fail(n: usize) -> String {
    if n == 1 { "1 check fails".to_owned() } else { format!("{n} checks fail") }
}

/// Returns the verdict if some groups took too long and no check failed.
fn unfinished(findings: &Findings) -> String {
    let slow: BTreeSet<&str> =
        findings.checks.iter().filter(|c| c.result == "slow").map(|c| c.group.as_str()).collect();
    let slow = slow.into_iter().collect::<Vec<_>>().join(", ");
    format!("not finished: no check failed, and {slow} took longer than --time-limit")
}

fn close(
    out: &mut String,
    options: &Options,
    findings: &Findings,
    verdict: &Verdict,
) -> std::fmt::Result {
    let count = |result: &str| findings.checks.iter().filter(|c| c.result == result).count();
    if options.is_part() {
        return match count("fail") {
            0 if findings.slow() => writeln!(out, "{}", unfinished(findings)),
            0 => writeln!(out, "no failures in what was run; a grade takes the whole kit"),
            n => writeln!(out, "breaks the contract: {} of those that were run", checks_fail(n)),
        };
    }
    let next = if verdict.native.is_none() { Grade::Basic } else { Grade::Complete };
    if !verdict.missing.is_empty() {
        let n = verdict.missing.len();
        writeln!(out, "operations that are not native and count for grade {} ({n}):", next.name())?;
        for line in missing_lines(&verdict.missing) {
            writeln!(out, "{line}")?;
        }
        writeln!(out, "the host runs them by others, or on the CPU\n")?;
    }
    let grade = verdict.grade.map_or("below basic", |g| g.name());
    let passed = match count("skip") {
        0 => format!("{} checks passed", count("pass")),
        n => format!("{} checks passed, {n} do not apply", count("pass")),
    };
    match verdict.outcome(options, findings) {
        Outcome::Breaks => {
            let grade = verdict.native.map_or("below basic", |g| g.name());
            writeln!(
                out,
                "breaks the contract: {}; grade by its native operations, once none does: {grade}",
                checks_fail(count("fail"))
            )
        }
        Outcome::Conforms => writeln!(out, "keeps the contract ({passed}); grade: {grade}"),
        Outcome::Unfinished => writeln!(out, "{}", unfinished(findings)),
        Outcome::BelowGrade => writeln!(
            out,
            "keeps the contract ({passed}); grade: {grade}, and {} was demanded",
            options.grade.map_or("none", |g| g.name())
        ),
    }
}
