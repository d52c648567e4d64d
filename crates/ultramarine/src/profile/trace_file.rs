//! Events as JSON in Chrome's trace event format: complete events (`"ph": "X"`), a process for the host and for each device,
//! a row for each thread and each stream.

use super::{Clock, Dispatch, Event, Report, Tensor};
use crate::device::Device;
use std::fmt::Write;

/// A row: process and thread of the format.
type Place = (usize, u32);

/// Process of the host's threads. Devices follow.
const HOST: usize = 1;

/// An event of the file.
struct Complete {
    place: Place,
    name: String,
    category: &'static str,
    /// In nanoseconds.
    start: u64,
    end: u64,
    /// The fields of `args`, as JSON.
    args: String,
}

pub(super) fn json(report: &Report) -> String {
    let mut devices: Vec<(Device, &str)> = Vec::new();
    let mut all = Vec::new();
    for planning in &report.plannings {
        let args = format!("\"operations\":{},\"tasks\":{}", planning.operations, planning.tasks);
        let (start, end) = (planning.start, planning.start + planning.duration);
        let place = (HOST, planning.thread + 1);
        all.push(Complete { place, name: "plan".into(), category: "host", start, end, args });
    }
    for event in &report.events {
        let at = devices.iter().position(|(d, _)| *d == event.device).unwrap_or_else(|| {
            devices.push((event.device, event.backend));
            devices.len() - 1
        });
        let (name, start) = (event.operation(), event.start);
        // Views and fallbacks are the host's work, while the device does that of other tasks.
        let by_host = matches!(event.dispatch, Dispatch::View | Dispatch::Fallback)
            && event.clock == Clock::Host
            && event.device != Device::CPU;
        let place = match by_host {
            true => (HOST, event.thread + 1),
            false => (HOST + 1 + at, event.stream + 1),
        };
        let end = start + event.duration;
        all.push(Complete { place, name, category: "task", start, end, args: args(event) });
        // Of work that the host does itself, its rows would say the same again.
        if event.clock != Clock::Host && event.device != Device::CPU {
            let (name, start) = (event.operation(), event.host_start);
            let (place, end) = ((HOST, event.thread + 1), start + event.host_duration);
            let args = format!("\"device\":\"{}\"", event.device);
            all.push(Complete { place, name, category: "submit", start, end, args });
        }
    }
    nest(&mut all);
    let mut lines = names(report, &devices, &all);
    for event in &all {
        lines.push(format!(
            "{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"ts\":{},\"dur\":{},\"pid\":{},\"tid\":{},\"args\":{{{}}}}}",
            quoted(&event.name),
            event.category,
            microseconds(event.start),
            microseconds(event.end - event.start),
            event.place.0,
            event.place.1,
            event.args
        ));
    }
    let dropped = report.dropped;
    format!(
        "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"dropped\":{dropped}}},\"traceEvents\":[\n{}\n]}}\n",
        lines.join(",\n")
    )
}

/// The names of processes and rows.
fn names(report: &Report, devices: &[(Device, &str)], all: &[Complete]) -> Vec<String> {
    let name = |what: &str, (pid, tid): Place, name: &str| {
        let args = format!("\"args\":{{\"name\":{}}}", quoted(name));
        format!("{{\"name\":\"{what}\",\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},{args}}}")
    };
    let mut lines = vec![name("process_name", (HOST, 0), "host")];
    for (at, (device, backend)) in devices.iter().enumerate() {
        lines.push(name("process_name", (HOST + 1 + at, 0), &format!("{device} ({backend})")));
    }
    let mut places: Vec<Place> = all.iter().map(|e| e.place).collect();
    places.sort_unstable();
    places.dedup();
    for (pid, tid) in places {
        let row = match pid {
            HOST => report.threads.get(tid as usize - 1).map_or("unnamed", |n| n).to_owned(),
            _ => format!("stream {}", tid - 1),
        };
        lines.push(name("thread_name", (pid, tid), &row));
    }
    lines
}

/// Sorts events by row and time, and makes those of a row nest, as the format demands: clocks round, and what ends a few
/// nanoseconds into its neighbour would be left out by the viewers.
fn nest(all: &mut [Complete]) {
    all.sort_by_key(|e| (e.place, e.start, u64::MAX - e.end));
    let mut open: Vec<(Place, u64)> = Vec::new();
    for event in all {
        while let Some((place, end)) = open.last().copied() {
            if place != event.place || end <= event.start {
                open.pop();
            } else if event.end <= end {
                break;
            } else if end - event.start <= (event.end - event.start) / 2 {
                event.start = end;
                open.pop();
            } else {
                event.end = end;
                break;
            }
        }
        open.push((event.place, event.end));
    }
}

fn args(event: &Event) -> String {
    let list = |tensors: &[Tensor]| {
        let all: Vec<_> = tensors.iter().map(|t| quoted(&t.to_string())).collect();
        format!("[{}]", all.join(","))
    };
    let mut out = format!(
        "\"inputs\":{},\"outputs\":{},\"dispatch\":\"{}\",\"clock\":\"{}\",\"commands\":{},\"bytes_read\":{},\
         \"bytes_written\":{}",
        list(&event.inputs),
        list(&event.outputs),
        event.dispatch.name(),
        event.clock.name(),
        event.commands,
        event.bytes_read,
        event.bytes_written
    );
    if event.replayed {
        out.push_str(",\"replayed\":true");
    }
    if !event.fused.is_empty() {
        let fused: Vec<_> = event.fused.iter().map(|name| quoted(name)).collect();
        let _ = write!(out, ",\"fused\":[{}]", fused.join(","));
    }
    out
}

/// Nanoseconds as a number of microseconds.
fn microseconds(nanoseconds: u64) -> String {
    format!("{}.{:03}", nanoseconds / 1000, nanoseconds % 1000)
}

/// A JSON string.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
