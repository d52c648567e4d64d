//! Events by operation, as a table.

use super::{Clock, Dispatch, Event, Report};
use crate::device::Device;
use std::collections::HashMap;
use std::fmt::Write;

/// Events of one operation with tensors of the same shapes and dtypes, on one device and by the
/// same means, summed up. [`Report::rows`] makes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// As [`Event::operation`].
    pub operation: String,
    /// As [`Event::tensors`].
    pub tensors: String,
    /// Where it ran; of a fallback, where it should have.
    pub device: Device,
    /// The means.
    pub dispatch: Dispatch,
    /// Clock that timed it.
    pub clock: Clock,
    /// Number of events.
    pub calls: u64,
    /// Those among them that ran by recorded commands.
    pub replayed: u64,
    /// Nanoseconds that they took in all.
    pub total: u64,
    /// Bytes that they read and wrote in all.
    pub bytes: u64,
}

impl Row {
    /// Returns the mean time of a call in nanoseconds.
    pub fn mean(&self) -> f64 {
        self.total as f64 / self.calls as f64
    }

    /// Returns the bytes read and written per nanosecond, which is GB/s; 0 if no time passed.
    pub fn bandwidth(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.bytes as f64 / self.total as f64 }
    }
}

type Key<'a> = (&'a str, &'a [&'static str], String, Device, Dispatch, Clock);

pub(super) fn rows(events: &[Event]) -> Vec<Row> {
    let mut places: HashMap<Key<'_>, usize> = HashMap::new();
    let mut rows: Vec<Row> = Vec::new();
    for event in events.iter().filter(|e| !e.part && e.dispatch != Dispatch::Compiled) {
        let tensors = event.tensors();
        let key = (
            event.op,
            &event.fused[..],
            tensors.clone(),
            event.device,
            event.dispatch,
            event.clock,
        );
        let at = *places.entry(key).or_insert_with(|| {
            rows.push(Row {
                operation: event.operation(),
                tensors,
                device: event.device,
                dispatch: event.dispatch,
                clock: event.clock,
                calls: 0,
                replayed: 0,
                total: 0,
                bytes: 0,
            });
            rows.len() - 1
        });
        let row = &mut rows[at];
        row.calls += 1;
        row.replayed += u64::from(event.replayed);
        row.total += event.duration;
        row.bytes += event.bytes();
    }
    rows.sort_by(|a, b| b.total.cmp(&a.total).then_with(|| a.operation.cmp(&b.operation)));
    rows
}

/// Widest operation, and widest list of tensors, of a line.
const WIDTHS: [usize; 2] = [40, 56];

/// The text in at most so many characters, its end left out.
fn cut(text: &str, width: usize) -> String {
    match text.chars().count() > width {
        true => text.chars().take(width - 3).chain("...".chars()).collect(),
        false => text.to_owned(),
    }
}

const HEAD: [&str; 11] = [
    "operation",
    "tensors",
    "device",
    "dispatch",
    "clock",
    "calls",
    "replayed",
    "total ms",
    "mean us",
    "MB",
    "GB/s",
];

/// Columns of words, which stand left; numbers stand right.
const WORDS: usize = 5;

pub(super) fn text(report: &Report, limit: usize) -> String {
    let rows = rows(&report.events);
    let mut cells = vec![HEAD.map(str::to_owned)];
    for row in rows.iter().take(limit) {
        let bandwidth = match row.clock {
            Clock::Submission => "-".to_owned(),
            _ => format!("{:.2}", row.bandwidth()),
        };
        cells.push([
            cut(&row.operation, WIDTHS[0]),
            cut(&row.tensors, WIDTHS[1]),
            row.device.to_string(),
            row.dispatch.name().to_owned(),
            row.clock.name().to_owned(),
            row.calls.to_string(),
            row.replayed.to_string(),
            format!("{:.3}", row.total as f64 / 1e6),
            format!("{:.2}", row.mean() / 1e3),
            format!("{:.3}", row.bytes as f64 / 1e6),
            bandwidth,
        ]);
    }
    let width = |c: usize| cells.iter().map(|line| line[c].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let mut out = String::new();
    for line in &cells {
        let padded =
            line.iter().zip(&widths).enumerate().map(|(c, (cell, width))| match c < WORDS {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            });
        let _ = writeln!(out, "{}", padded.collect::<Vec<_>>().join("  ").trim_end());
    }
    foot(report, &rows, limit, &mut out);
    out
}

/// The lines below the table.
fn foot(report: &Report, rows: &[Row], limit: usize, out: &mut String) {
    if rows.len() > limit {
        let left: u64 = rows[limit..].iter().map(|r| r.total).sum();
        let _ = writeln!(out, "{} more rows: {:.3} ms", rows.len() - limit, left as f64 / 1e6);
    }
    let tasks: u64 = rows.iter().map(|r| r.calls).sum();
    let total: u64 = rows.iter().map(|r| r.total).sum();
    let planning: u64 = report.plannings.iter().map(|p| p.duration).sum();
    let _ = writeln!(
        out,
        "{tasks} tasks: {:.3} ms; {} evaluations planned on the host: {:.3} ms",
        total as f64 / 1e6,
        report.plannings.len(),
        planning as f64 / 1e6
    );
    if rows.iter().any(|r| r.clock == Clock::Submission) {
        let _ = writeln!(
            out,
            "clock `submission`: the backend has no clock (ultramarine.timing/1), so these are the host's times of the \
             submission, not of the work."
        );
    }
    if report.dropped > 0 {
        let _ = writeln!(out, "{} more tasks were not recorded.", report.dropped);
    }
}
