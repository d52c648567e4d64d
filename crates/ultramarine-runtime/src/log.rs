//! The log on standard error. It shows warnings and errors, unless `ULTRAMARINE_LOG` requests more
//! (`info`, `debug`) or less (`error`, `off`).

use std::io::Write;
use std::sync::atomic::{AtomicU8, Ordering};

/// The severity of a line. The numbers are the contract's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    Error = 0,
    Warning = 1,
    Info = 2,
    Debug = 3,
}

impl Level {
    /// Returns the level with the contract's number. Larger numbers count as `Debug`.
    pub fn of(number: u32) -> Level {
        match number {
            0 => Level::Error,
            1 => Level::Warning,
            2 => Level::Info,
            _ => Level::Debug,
        }
    }

    fn name(self) -> &'static str {
        ["error", "warning", "info", "debug"][self as usize]
    }
}

/// 0 before the first use; afterwards the number of shown levels plus one.
static SHOWN: AtomicU8 = AtomicU8::new(0);

fn shown() -> u8 {
    match SHOWN.load(Ordering::Relaxed) {
        0 => {
            let levels = match std::env::var("ULTRAMARINE_LOG").as_deref().map(str::trim) {
                Ok("off") => 0,
                Ok("error") => 1,
                Ok("info") => 3,
                Ok("debug") => 4,
                _ => 2,
            };
            SHOWN.store(levels + 1, Ordering::Relaxed);
            levels
        }
        known => known - 1,
    }
}

/// Writes one line if lines of that level are shown. The text is formatted only then.
pub fn log(level: Level, text: impl std::fmt::Display) {
    if (level as u8) < shown() {
        // Write the line with one call, so that lines of several threads do not mix. If the write
        // fails, the line is lost.
        let line = format!("ultramarine: {}: {text}\n", level.name());
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}
