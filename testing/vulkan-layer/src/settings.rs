//! The environment variable that says what the layer does.

use std::sync::OnceLock;

/// The faults that the layer makes, and the calls that it counts.
#[derive(Debug, Default)]
pub struct Settings {
    pub lose: Option<u64>,
    pub range: Option<u64>,
    pub memory: Option<u64>,
    pub allocations: Option<u64>,
    pub twice: bool,
    pub idle: bool,
    pub count: bool,
}

/// As the process was started.
pub fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let mut settings = Settings::default();
        let text = std::env::var("ULTRAMARINE_TEST_LAYER").unwrap_or_default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let number = value.parse().ok();
            match name {
                "lose" => settings.lose = number,
                "range" => settings.range = number,
                "memory" => settings.memory = number,
                "allocations" => settings.allocations = number,
                "twice" => settings.twice = true,
                "idle" => settings.idle = true,
                "count" => settings.count = true,
                _ => report(&format!("{part} is unknown")),
            }
        }
        settings
    })
}

/// A line on the standard error.
pub fn report(line: &str) {
    use std::io::Write as _;
    // A test that closes it reads nothing.
    _ = writeln!(std::io::stderr(), "{}: {line}", crate::NAME);
}
