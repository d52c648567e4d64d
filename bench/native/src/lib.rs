//! Figures of the native benchmarks, printed as a table or, with `--json`, as JSON lines in the format of
//! `bench/README.md`.
#![allow(clippy::print_stdout)] // its purpose

use serde_json::{Map, Value, json};

/// One measured value.
#[derive(Clone, Copy, Debug)]
pub struct Figure<'a> {
    /// The workload.
    pub name: &'a str,
    /// The measured library; `machine` for the limits of the processor and its memory.
    pub library: &'a str,
    /// The value, in `unit`.
    pub value: f64,
    /// `ms`, `us` or `ns` (less is better), `GB/s` or `GFLOP/s` (more is better).
    pub unit: &'a str,
    /// The machine's limit in the same unit, where it is known.
    pub limit: Option<f64>,
    /// The value that the project aims at, in the same unit.
    pub target: Option<f64>,
    /// The number of timed runs.
    pub samples: u64,
}

impl<'a> Figure<'a> {
    /// A value of Ultramarine without a limit or a target.
    pub fn new(name: &'a str, value: f64, unit: &'a str, samples: u64) -> Figure<'a> {
        let (limit, target) = (None, None);
        Figure { name, library: "ultramarine", value, unit, limit, target, samples }
    }

    /// The figure as an object of the JSON format.
    pub fn to_json(&self, group: &str) -> Value {
        let mut object = Map::new();
        object.insert("group".to_owned(), json!(group));
        object.insert("name".to_owned(), json!(self.name));
        object.insert("library".to_owned(), json!(self.library));
        object.insert("on".to_owned(), json!("cpu"));
        object.insert("value".to_owned(), json!(self.value));
        object.insert("unit".to_owned(), json!(self.unit));
        for (key, value) in [("limit", self.limit), ("target", self.target)] {
            if let Some(value) = value {
                object.insert(key.to_owned(), json!(value));
            }
        }
        object.insert("samples".to_owned(), json!(self.samples));
        Value::Object(object)
    }

    /// The figure as a line of a table.
    pub fn to_row(&self) -> String {
        let mut row = format!("{:<46} {:>11.3} {:<8}", self.name, self.value, self.unit);
        let more_is_better = self.unit.ends_with("/s");
        if let Some(limit) = self.limit {
            let share = if more_is_better { self.value / limit } else { limit / self.value };
            row += &format!(" {:5.1}% of the limit", 100.0 * share);
        }
        if let Some(target) = self.target {
            let met = if more_is_better { self.value >= target } else { self.value <= target };
            row += &format!(" target {target:.0}: {}", if met { "met" } else { "NOT MET" });
        }
        row.trim_end().to_owned()
    }
}

/// The output of one benchmark program.
#[derive(Clone, Debug)]
pub struct Report {
    group: &'static str,
    json: bool,
    filter: String,
    flags: Vec<String>,
}

impl Report {
    /// The report of a group, from the program's arguments: `--json`, other flags, and a part of the names to run.
    pub fn from_args(group: &'static str) -> Report {
        Report::new(group, std::env::args().skip(1))
    }

    fn new(group: &'static str, args: impl Iterator<Item = String>) -> Report {
        let (flags, words): (Vec<_>, Vec<_>) = args.partition(|arg| arg.starts_with("--"));
        let json = flags.iter().any(|flag| flag == "--json");
        Report { group, json, filter: words.into_iter().next().unwrap_or_default(), flags }
    }

    /// Whether a flag was given.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|given| given == flag)
    }

    /// Whether the figure of that name was asked for.
    pub fn wants(&self, name: &str) -> bool {
        name.contains(&self.filter)
    }

    /// Prints a figure.
    pub fn print(&self, figure: &Figure<'_>) {
        match self.json {
            true => println!("{}", figure.to_json(self.group)),
            false => println!("{}", figure.to_row()),
        }
    }

    /// Prints a line of the table that is no figure; nothing with `--json`.
    pub fn note(&self, text: &str) {
        if !self.json {
            println!("{text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Figure, Report};

    #[test]
    fn arguments_choose_names_and_format() {
        let args = |words: &[&str]| {
            Report::new("g", words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>().into_iter())
        };
        let all = args(&[]);
        assert!(all.wants("copy") && !all.json);
        let some = args(&["--json", "--one-thread", "sum"]);
        assert!(some.json && some.has("--one-thread") && !some.has("--two"));
        assert!(some.wants("sum of 4") && !some.wants("copy"));
    }

    #[test]
    fn figures_have_a_row_and_an_object() {
        let rate = Figure { limit: Some(80.0), ..Figure::new("read", 40.0, "GB/s", 3) };
        assert!(rate.to_row().ends_with("50.0% of the limit"), "{}", rate.to_row());
        let time = Figure { target: Some(25.0), ..Figure::new("call", 30.0, "ns", 3) };
        assert!(time.to_row().ends_with("target 25: NOT MET"), "{}", time.to_row());
        let object = time.to_json("boundary");
        assert_eq!((&object["group"], &object["unit"]), (&"boundary".into(), &"ns".into()));
        assert_eq!((&object["value"], &object["samples"]), (&30.0.into(), &3.into()));
        assert!(object.get("limit").is_none());
    }
}
