//! Messages of errors. A message can know the line of the program that caused the error.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// The text of an error. If backtraces are enabled (`RUST_BACKTRACE=1`), its `Debug` form, which
/// `main` and `unwrap` print, ends with the line of the program that made the call.
///
/// ```
/// use ultramarine_runtime::error::Message;
/// let message = Message::from("[add] Shapes (2, 3) and (4,) cannot be broadcast.");
/// assert!(message.starts_with("[add]"));
/// ```
#[derive(Clone)]
pub struct Message {
    text: String,
    /// `None` if backtraces are disabled, which then costs nothing. Names and lines of frames are
    /// resolved only when they are shown.
    backtrace: Option<Arc<Backtrace>>,
}

impl<T: Into<String>> From<T> for Message {
    #[cold]
    fn from(text: T) -> Message {
        let backtrace = Backtrace::capture();
        let captured = backtrace.status() == BacktraceStatus::Captured;
        Message { text: text.into(), backtrace: captured.then(|| Arc::new(backtrace)) }
    }
}

impl Message {
    /// Makes a message without a line of the program. It suits errors that are caught, because a
    /// backtrace for each would take long.
    #[cold]
    pub fn without_line(text: String) -> Message {
        Message { text, backtrace: None }
    }

    /// Returns the message with another text and the same line.
    #[must_use]
    pub fn map(self, f: impl FnOnce(String) -> String) -> Message {
        Message { text: f(self.text), ..self }
    }

    /// Returns the line of the program as `file:line:column`: the line of the first frame outside
    /// of this library. `None` if backtraces are disabled or the program has no debug information,
    /// and for errors of background work.
    pub fn line(&self) -> Option<String> {
        let backtrace = self.backtrace.as_ref()?.to_string();
        // The crates of this library lie side by side. Their sources do not count as the program's.
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent()?;
        line_in(&backtrace, &std::env::current_dir().ok()?, crates).map(str::to_owned)
    }

    /// Writes the line after a text, if the line is known.
    pub(super) fn write_line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.line().map_or(Ok(()), |line| write!(f, " at {line}"))
    }
}

impl Deref for Message {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)?;
        self.write_line(f)
    }
}

impl PartialEq<str> for Message {
    fn eq(&self, text: &str) -> bool {
        self.text == text
    }
}

impl PartialEq<&str> for Message {
    fn eq(&self, text: &&str) -> bool {
        self.text == *text
    }
}

/// Finds the program's first frame in a backtrace's text, and returns its location. The text has a
/// location in a line `at file:line:column`. (Names of functions do not suffice, because the names
/// of inlined functions may lack the crate.) Files in `here` are shown relative to it.
fn line_in<'a>(backtrace: &'a str, here: &Path, crates: &Path) -> Option<&'a str> {
    // Paths of Rust's own library: if its sources are not installed, if rustup installed them, or
    // if Debian did.
    let is_rusts = |place: &str| {
        place.starts_with("/rustc/")
            || place.contains("/rustlib/src/rust/library/")
            || place.starts_with("/usr/src/rustc-")
    };
    let is_programs = |place: &&str| {
        // Exclude libraries that cargo has fetched, and C code.
        let fetched = place.contains("/registry/src/");
        if is_rusts(place) || fetched || !place.contains(".rs:") {
            return false;
        }
        let file = here.join(place.strip_prefix("./").unwrap_or(place));
        let Ok(inside) = file.strip_prefix(crates) else { return true };
        let mut parts = inside.iter().map(|part| part.to_string_lossy());
        let ours = parts.next().is_some_and(|name| name.starts_with("ultramarine"));
        !(ours && parts.next().is_some_and(|folder| folder == "src"))
    };
    backtrace.lines().filter_map(|line| line.trim().strip_prefix("at ")).find(is_programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKTRACE: &str = "   0: from<T>
             at /home/me/crates/ultramarine-runtime/src/error/message.rs:26:25
   1: <&ultramarine::graph::array::Array as core::ops::arith::Add<T>>::add
             at /home/me/crates/ultramarine/src/ops/elementwise/operators.rs:22:17
   1: iter
             at /home/me/.cargo/registry/src/index.crates.io-1949/smallvec-1.16.5/src/lib.rs:2329:41
   2: core::ops::function::FnOnce::call_once
             at /rustc/5980/library/core/src/ops/function.rs:250:5
   2: core::convert::Into::into
             at /home/me/.rustup/toolchains/stable/lib/rustlib/src/rust/library/core/src/convert/mod.rs:778:9
   2: core::convert::Into::into
             at /usr/src/rustc-1.97.1/library/core/src/convert/mod.rs:778:9
   3: <net::Net as ultramarine::Layer>::call
             at ./src/net.rs:7:15
   4: main
             at ./src/main.rs:3:5
   5: __libc_start_call_main
             at ./csu/../csu/libc-start.c:360:3
";

    #[track_caller]
    fn check(here: &str, crates: &str, want: Option<&str>) {
        assert_eq!(line_in(BACKTRACE, Path::new(here), Path::new(crates)), want);
    }

    #[test]
    fn the_first_frame_outside() {
        check("/home/me/net", "/home/me/crates", Some("./src/net.rs:7:15"));
        check("/home/me/crates/ultramarine", "/home/me/crates", None);
        let own = line_in(
            "   0: f\n  at ./examples/f.rs:1:1",
            Path::new("/a/ultramarine"),
            Path::new("/a"),
        );
        assert_eq!(own, Some("./examples/f.rs:1:1"));
        assert_eq!(line_in("   0: stripped\n", Path::new("/a"), Path::new("/b")), None);
    }
}
