//! The log on standard error. It shows warnings and errors, unless `ULTRAMARINE_LOG` requests more
//! (`info`, `debug`) or less (`error`, `off`).

use std::io::Write;
use std::sync::atomic::{AtomicU8, Ordering};

/// The severity of a line. The numbers are those of the ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Level {
    Error = 0,
    Warning = 1,
    Info = 2,
    Debug = 3,
}

impl Level {
    /// Returns the level of an ABI number. Higher numbers count as debugging.
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

/// 0: the environment has not been read yet. Otherwise the number of shown levels, plus one.
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

/// Writes a line, if lines of that level are shown. The text is formatted only in this case.
pub fn log(level: Level, text: impl std::fmt::Display) {
    if (level as u8) < shown() {
        // A single write, so that lines of several threads are not mixed. Failures are ignored.
        let line = format!("ultramarine: {}: {text}\n", level.name());
        let _ = std::io::stderr().write_all(line.as_bytes());
    }
}
