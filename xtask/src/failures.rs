//! The failed tests, printed again at the end, because logs are long and some services show only
//! the last part.

use std::sync::{Mutex, PoisonError};

/// The most lines that are kept of one test, and the most characters of a line.
const LINES: usize = 40;
const CHARACTERS: usize = 400;

static KEPT: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Collects the names and messages of failed tests from a command's output.
#[derive(Default)]
pub struct Failures {
    found: Vec<String>,
    /// True between the first and the second `failures:` of a Rust test program.
    in_details: bool,
    /// The number of lines that the current test has.
    lines: usize,
}

impl Failures {
    /// Takes the next line.
    pub fn see(&mut self, line: &str) {
        if line == "failures:" {
            self.in_details = !self.in_details;
        } else if self.in_details {
            if line.starts_with("---- ") {
                self.lines = 0;
            }
            self.lines += 1;
            if self.lines <= LINES && !line.trim().is_empty() {
                self.found.push(line.chars().take(CHARACTERS).collect());
            }
        } else if line.starts_with("FAILED ") || line.starts_with("ERROR ") {
            // pytest and the conformance kit begin such lines in this way.
            self.found.push(line.chars().take(CHARACTERS).collect());
        }
    }

    /// Stores the findings under the command's name, until [`show`] prints them.
    pub fn keep(self, command: &str) {
        if !self.found.is_empty() {
            let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
            kept.push(format!("{command}\n  {}", self.found.join("\n  ")));
        }
    }
}

/// Prints the messages of failed tests, for each command that failed.
pub fn show() {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if !kept.is_empty() {
        println!("\n== tests that failed");
    }
    for one in kept.iter() {
        println!("{one}");
    }
}

#[cfg(test)]
mod tests {
    use super::Failures;

    fn found(lines: &[&str]) -> Vec<String> {
        let mut failures = Failures::default();
        lines.iter().for_each(|line| failures.see(line));
        failures.found
    }

    #[test]
    fn the_details_of_rust_tests_are_found() {
        let lines = [
            "test a::b ... FAILED",
            "failures:",
            "",
            "---- a::b stdout ----",
            "thread 'a::b' panicked at src/a.rs:3:4:",
            "1 is not 2",
            "",
            "failures:",
            "    a::b",
            "test result: FAILED. 0 passed; 1 failed;",
        ];
        assert_eq!(found(&lines), [lines[3], lines[4], lines[5]]);
    }

    #[test]
    fn long_details_end() {
        let mut lines = vec!["failures:", "---- a stdout ----"];
        lines.extend(["x"; 100]);
        lines.extend(["---- b stdout ----", "y", "failures:"]);
        let found = found(&lines);
        assert_eq!(found.len(), super::LINES + 2);
        assert_eq!(found.last().map(String::as_str), Some("y"));
    }

    #[test]
    fn the_lines_of_pytest_and_of_the_kit_are_found() {
        let lines = ["3 passed", "FAILED test_a.py::test_b - ValueError: no", "FAILED add/empty"];
        assert_eq!(found(&lines), lines[1..]);
    }
}
