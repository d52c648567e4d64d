//! Tests in a process of their own: for state that belongs to a whole process (registered backends,
//! environment variables, counters, forks), which other tests of the binary would disturb.

use std::ffi::OsStr;
use std::process::Command;

/// Names the test that a child process runs.
const CHILD: &str = "ULTRAMARINE_TEST_CHILD";

/// Runs a test in a process of its own; the test's first statement:
///
/// ```ignore
/// #[test]
/// fn registers_a_device() -> Result<()> {
///     own_process!();
///     ...
/// }
/// ```
///
/// `own_process!("NAME" = value, ...)` also sets environment variables, before that process starts.
/// The test fails if the process does, with all that it printed.
#[macro_export]
macro_rules! own_process {
    ($($name:literal = $value:expr),* $(,)?) => {{
        fn here() {}
        let test = $crate::test_of(::std::any::type_name_of_val(&here));
        if !$crate::is_child(test) {
            $crate::run_child(
                test,
                &[$(($name, ::std::convert::AsRef::<::std::ffi::OsStr>::as_ref(&$value))),*],
            );
            return $crate::Passed::passed();
        }
    }};
}

/// The result of a test that passed.
pub trait Passed {
    /// Returns it.
    fn passed() -> Self;
}

impl Passed for () {
    fn passed() -> Self {}
}

impl<E> Passed for Result<(), E> {
    fn passed() -> Self {
        Ok(())
    }
}

/// The harness's name of a test, from the path of a function inside of it.
#[doc(hidden)]
pub fn test_of(inner: &'static str) -> &'static str {
    let path = inner.rsplit_once("::").map_or(inner, |(test, _)| test);
    path.split_once("::").map_or(path, |(_, inside)| inside)
}

/// Whether this process was started to run `test`.
#[doc(hidden)]
pub fn is_child(test: &str) -> bool {
    std::env::var(CHILD).is_ok_and(|name| name == test)
}

/// Runs `test` in a new process, and panics unless it passes there.
#[doc(hidden)]
#[track_caller]
#[allow(clippy::print_stdout, reason = "the harness captures what a test prints")]
pub fn run_child(test: &str, variables: &[(&str, &OsStr)]) {
    let program = std::env::current_exe().expect("a test binary knows its path");
    let output = Command::new(program)
        .args(["--exact", test, "--include-ignored", "--nocapture", "--test-threads=1"])
        .env(CHILD, test)
        .envs(variables.iter().copied())
        .output()
        .expect("a test binary can be started again");
    let printed = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    // A name that matches no test would pass without running any.
    let passed = output.status.success() && printed.contains("test result: ok. 1 passed");
    assert!(passed, "{test} in its own process: {}\n{printed}\n{complaints}", output.status);
    print!("{printed}");
    eprint!("{complaints}");
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    #[test]
    fn passes_in_a_child() {
        own_process!("ULTRAMARINE_TEST_VALUE" = "5");
        assert_eq!(std::env::var("ULTRAMARINE_TEST_VALUE").as_deref(), Ok("5"));
    }

    #[test]
    fn results_are_passed_on() -> Result<(), String> {
        let parent = std::process::id().to_string();
        own_process!("ULTRAMARINE_TEST_VALUE" = parent);
        assert_ne!(std::env::var("ULTRAMARINE_TEST_VALUE").as_deref(), Ok(parent.as_str()));
        Ok(())
    }

    #[test]
    #[ignore = "fails: run by `failures_are_seen`"]
    fn fails_in_a_child() {
        own_process!();
        panic!("on purpose");
    }

    #[test]
    fn failures_are_seen() {
        let failed = catch_unwind(fails_in_a_child).expect_err("it fails");
        let message = failed.downcast_ref::<String>().expect("a text");
        assert!(message.contains("on purpose"), "{message}");
        catch_unwind(|| super::run_child("no::such::test", &[])).expect_err("nothing ran");
    }
}
