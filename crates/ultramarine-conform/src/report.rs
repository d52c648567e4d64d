//! The report: a table for people, the capability sheet, the grade.

use crate::groups::LOAD;
use crate::options::{Grade, Options};
use crate::parent::Findings;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use ultramarine_abi::schema;

/// Failures that are printed for each group, unless all are asked for.
const SHOWN: usize = 5;

/// The grade, and what is missing for the next.
pub struct Verdict {
    /// The best grade that is reached; none if something is wrong.
    pub grade: Option<Grade>,
    /// Ops that keep the backend from the next grade.
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
}

impl Verdict {
    /// The result for the options; a part of the kit has no grade.
    pub fn outcome(&self, options: &Options, findings: &Findings) -> Outcome {
        if findings.failed() {
            Outcome::Breaks
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
    if findings.failed() {
        return Verdict { grade: None, missing: Vec::new() };
    }
    let (basic, complete) = (lacks(&["basic"]), lacks(&["basic", "complete"]));
    if !basic.is_empty() {
        Verdict { grade: None, missing: basic }
    } else if !complete.is_empty() {
        Verdict { grade: Some(Grade::Basic), missing: complete }
    } else {
        Verdict { grade: Some(Grade::Complete), missing: Vec::new() }
    }
}

/// Lines that name all missing operations: a family with the dtypes that lack the same codes.
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
    writeln!(
        out,
        "{:18} {:>7} {:>7} {:>8} {:>8}",
        "group", "passed", "failed", "skipped", "seconds"
    )?;
    let mut order: Vec<&str> = Vec::new();
    for check in &findings.checks {
        if !order.contains(&check.group.as_str()) {
            order.push(&check.group);
        }
    }
    for group in order {
        let count = |result: &str| {
            findings.checks.iter().filter(|c| c.group == group && c.result == result).count()
        };
        let time = findings.times.iter().find(|t| t.0 == group).map(|t| t.1.as_secs_f64());
        let time = time.map_or(String::new(), |t| format!("{t:.1}"));
        let (passed, failed, skipped) = (count("pass"), count("fail"), count("skip"));
        writeln!(out, "{group:18} {passed:>7} {failed:>7} {skipped:>8} {time:>8}")?;
    }
    writeln!(out)
}

fn failures(out: &mut String, options: &Options, findings: &Findings) -> std::fmt::Result {
    let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
    for check in findings.checks.iter().filter(|c| c.result == "fail") {
        let n = shown.entry(&check.group).or_default();
        *n += 1;
        if *n > SHOWN && !options.verbose {
            continue;
        }
        writeln!(out, "FAILED {}\n  {}", check.name, check.text)?;
        let again = match check.group.as_str() {
            LOAD => String::new(),
            group => format!("--group {group} --check '{}' ", check.name),
        };
        writeln!(out, "  again: ultramarine-conform {again}{}\n", options.source)?;
    }
    for (group, n) in shown.iter().filter(|(_, n)| **n > SHOWN && !options.verbose) {
        writeln!(out, "... and {} more failures in {group} (--verbose lists them)\n", n - SHOWN)?;
    }
    if options.verbose {
        for check in findings.checks.iter().filter(|c| c.result != "fail") {
            writeln!(out, "{:7} {} {}", check.result, check.name, check.text)?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A property's fields as lines.
fn sheet(out: &mut String, options: &Options, findings: &Findings) -> std::fmt::Result {
    writeln!(out, "capability sheet of {}", options.source)?;
    for (key, value) in &findings.properties {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    writeln!(out, "  {:28} {}", format!("{key}: {name}"), plain(value))?;
                }
            }
            other => writeln!(out, "  {key:28} {}", plain(other))?,
        }
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
    for cell in &findings.cells {
        writeln!(
            out,
            "  {:28} {:10} {:9} contiguous: {:8} strided: {:10} error: {:.2} ulp",
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

fn close(
    out: &mut String,
    options: &Options,
    findings: &Findings,
    verdict: &Verdict,
) -> std::fmt::Result {
    let count = |result: &str| findings.checks.iter().filter(|c| c.result == result).count();
    if options.is_part() {
        return match count("fail") {
            0 => writeln!(out, "no failures in what was run; a grade takes the whole kit"),
            n => writeln!(out, "breaks the contract: {} of those that were run", checks_fail(n)),
        };
    }
    let next = if verdict.grade.is_none() { Grade::Basic } else { Grade::Complete };
    if !verdict.missing.is_empty() {
        let n = verdict.missing.len();
        writeln!(out, "operations that are not native and count for grade {} ({n}):", next.name())?;
        for line in missing_lines(&verdict.missing) {
            writeln!(out, "{line}")?;
        }
        writeln!(out, "the host runs them by others, or on the CPU\n")?;
    }
    let grade = verdict.grade.map_or("below basic", |g| g.name());
    let passed = count("pass") + count("skip");
    match verdict.outcome(options, findings) {
        Outcome::Breaks => writeln!(out, "breaks the contract: {}", checks_fail(count("fail"))),
        Outcome::Conforms => writeln!(out, "keeps the contract ({passed} checks); grade: {grade}"),
        Outcome::BelowGrade => writeln!(
            out,
            "keeps the contract ({passed} checks); grade: {grade}, and {} was demanded",
            options.grade.map_or("none", |g| g.name())
        ),
    }
}
