//! The state of a wrapped backend's handles: which are alive, what uses them, and what the device
//! is known to have completed.

use super::{Check, collective::GroupState, replay::Recording, signature::Signature};
use crate::sync::lock;
use core::ffi::c_void;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use ultramarine_abi::{DeviceInfo, ensure};

/// A handle together with its device's handle.
pub(super) type HandleKey = (usize, usize);

pub(super) fn key(device: *mut c_void, handle: *mut c_void) -> HandleKey {
    (device as usize, handle as usize)
}

/// The most released handles that are remembered.
const REMEMBERED: usize = 1 << 16;

/// Handles of one kind.
#[derive(Debug)]
pub(super) struct Live<T> {
    what: &'static str,
    alive: HashMap<HandleKey, T>,
    gone: HashSet<HandleKey>,
}

impl<T> Live<T> {
    fn new(what: &'static str) -> Self {
        Live { what, alive: HashMap::new(), gone: HashSet::new() }
    }

    fn missing(&self, key: HandleKey) -> String {
        let why = if self.gone.contains(&key) { "is gone already" } else { "is unknown" };
        format!("{} {:#x} {why}", self.what, key.1)
    }

    pub fn get(&self, key: HandleKey) -> Result<&T, String> {
        self.alive.get(&key).ok_or_else(|| self.missing(key))
    }

    pub fn get_mut(&mut self, key: HandleKey) -> Result<&mut T, String> {
        if self.alive.contains_key(&key) {
            return self.alive.get_mut(&key).ok_or_else(String::new);
        }
        Err(self.missing(key))
    }

    /// Adds a handle that the backend made. Returns `Err` if it is alive already.
    pub fn add(&mut self, key: HandleKey, value: T) -> Check {
        self.gone.remove(&key);
        match self.alive.insert(key, value) {
            None => Ok(()),
            Some(_) => Err(format!("it gave {} {:#x} twice", self.what, key.1)),
        }
    }

    pub fn remove(&mut self, key: HandleKey) -> Result<T, String> {
        let Some(value) = self.alive.remove(&key) else { return Err(self.missing(key)) };
        if self.gone.len() >= REMEMBERED {
            self.gone.clear();
        }
        self.gone.insert(key);
        Ok(value)
    }

    fn count_of(&self, device: usize) -> usize {
        self.alive.keys().filter(|k| k.0 == device).count()
    }
}

#[derive(Debug)]
pub(super) struct DeviceState {
    /// How many times the device is open under this handle.
    open: u32,
    pub info: DeviceInfo,
}

#[derive(Debug, Default)]
pub(super) struct BufferState {
    pub bytes: u64,
    /// The buffer's address for the host, once the host has asked for it.
    pub address: usize,
    /// True if the memory belongs to another library, which chooses its alignment.
    pub foreign: bool,
    /// For each stream, the last work that uses the buffer.
    uses: Vec<(HandleKey, u64)>,
}

impl BufferState {
    pub fn new(bytes: u64) -> Self {
        BufferState { bytes, ..BufferState::default() }
    }

    /// Makes the state of a buffer over foreign memory.
    pub fn imported(bytes: u64) -> Self {
        BufferState { bytes, foreign: true, ..BufferState::default() }
    }
}

#[derive(Debug, Default)]
pub(super) struct StreamState {
    /// How many times the stream was made, because a backend may use one stream for all.
    alive: u32,
    user: Option<ThreadId>,
    /// The number of the last submit, and of the last one that is known to be done.
    submitted: u64,
    done: u64,
    /// Waits: from the first number on, this stream's work comes after the given number of another
    /// stream.
    waits: Vec<(u64, HandleKey, u64)>,
}

#[derive(Debug, Default)]
pub(super) struct EventState {
    recorded: u64,
    reached: u64,
    /// Marks: when the event has reached the value, that stream has done its work up to the number.
    marks: Vec<(u64, HandleKey, u64)>,
}

#[derive(Debug)]
pub(super) struct State {
    devices: HashMap<usize, DeviceState>,
    pub buffers: Live<BufferState>,
    pub streams: Live<StreamState>,
    pub events: Live<EventState>,
    /// Signatures of the plans of a handle, because a backend may use one handle for several plans.
    pub plans: Live<Vec<Arc<Signature>>>,
    /// Users' kernels, with the last launch on each stream.
    pub kernels: Live<Vec<(HandleKey, u64)>>,
    /// Recorded lists of commands.
    pub recordings: Live<Arc<Mutex<Recording>>>,
    /// Timestamps, with their times once they are known.
    pub slots: Live<Option<u64>>,
    /// Memory that is lent for uploads, with its size in bytes.
    pub lent: Live<u64>,
    /// Groups of collectives.
    pub groups: Live<GroupState>,
    /// The number of retentions of each foreign stream.
    pub retained: HashMap<HandleKey, usize>,
}

impl Default for State {
    fn default() -> Self {
        State {
            devices: HashMap::new(),
            buffers: Live::new("buffer"),
            streams: Live::new("stream"),
            events: Live::new("event"),
            plans: Live::new("plan"),
            kernels: Live::new("kernel"),
            recordings: Live::new("recording"),
            slots: Live::new("slot"),
            lent: Live::new("lent memory"),
            groups: Live::new("group"),
            retained: HashMap::new(),
        }
    }
}

impl EventState {
    /// Returns the value that the event has once it has reached `value`: the next recorded value.
    fn next(&self, value: u64) -> u64 {
        let later = self.marks.iter().map(|m| m.0).filter(|recorded| *recorded >= value);
        if value <= self.reached { value } else { later.min().unwrap_or(value) }
    }
}

impl State {
    /// Ends one retention of a foreign stream. Returns false if there is none.
    pub fn release_stream(&mut self, stream: HandleKey) -> bool {
        match self.retained.get_mut(&stream) {
            Some(1) => self.retained.remove(&stream).is_some(),
            Some(count) => {
                *count -= 1;
                true
            }
            None => false,
        }
    }

    pub fn device(&self, device: *mut c_void) -> Result<&DeviceState, String> {
        let found = self.devices.get(&(device as usize));
        found.ok_or_else(|| format!("device {device:p} is not open"))
    }

    pub fn opened(&mut self, device: *mut c_void, info: DeviceInfo) {
        self.devices.entry(device as usize).or_insert(DeviceState { open: 0, info }).open += 1;
    }

    pub fn closed(&mut self, device: *mut c_void) -> Check {
        let at = device as usize;
        let state = self.devices.get_mut(&at).ok_or(format!("device {device:p} is not open"))?;
        if state.open > 1 {
            state.open -= 1;
            return Ok(());
        }
        self.devices.remove(&at);
        let left = [
            ("buffers", self.buffers.count_of(at)),
            ("streams", self.streams.count_of(at)),
            ("events", self.events.count_of(at)),
            ("plans", self.plans.count_of(at)),
            ("kernels", self.kernels.count_of(at)),
            ("recordings", self.recordings.count_of(at)),
            ("slots", self.slots.count_of(at)),
            ("pieces of lent memory", self.lent.count_of(at)),
            ("groups", self.groups.count_of(at)),
        ];
        match left.iter().find(|(_, n)| *n > 0) {
            Some((what, n)) => Err(format!("{n} {what} of the device are still alive")),
            None => Ok(()),
        }
    }

    /// Records that a stream was made. The same stream may be made again.
    pub fn stream_made(&mut self, key: HandleKey) {
        match self.streams.get_mut(key) {
            Ok(stream) => stream.alive += 1,
            Err(_) => {
                let made = StreamState { alive: 1, ..StreamState::default() };
                let _ = self.streams.add(key, made);
            }
        }
    }

    pub fn stream_gone(&mut self, key: HandleKey) -> Check {
        let stream = self.streams.get_mut(key)?;
        ensure!(stream.user.is_none() || stream.alive != 1, "a call is using the stream");
        stream.alive -= 1;
        if stream.alive == 0 { self.streams.remove(key).map(|_| ()) } else { Ok(()) }
    }

    pub fn event_made(&mut self, key: HandleKey) -> Check {
        self.events.add(key, EventState::default())
    }

    /// Takes a stream for a call, because only one call at a time is allowed.
    pub fn enter(&mut self, stream: Option<HandleKey>) -> Check {
        let Some(key) = stream else { return Ok(()) };
        let stream = self.streams.get_mut(key)?;
        if stream.alive == 1 && stream.user.is_some() {
            return Err(format!("two calls at once on stream {:#x}", key.1));
        }
        stream.user = Some(std::thread::current().id());
        Ok(())
    }

    pub fn leave(&mut self, stream: Option<HandleKey>) {
        if let Some(Ok(stream)) = stream.map(|key| self.streams.get_mut(key)) {
            stream.user = None;
        }
    }

    /// Records a successful submit: the stream's work uses these buffers.
    pub fn submitted(&mut self, stream: HandleKey, buffers: &[HandleKey]) {
        let Ok(state) = self.streams.get_mut(stream) else { return };
        state.submitted += 1;
        let number = state.submitted;
        for key in buffers {
            if let Ok(buffer) = self.buffers.get_mut(*key) {
                match buffer.uses.iter_mut().find(|u| u.0 == stream) {
                    Some(found) => found.1 = number,
                    None => buffer.uses.push((stream, number)),
                }
            }
        }
    }

    /// Records that the stream's last submit failed, so that it uses nothing.
    pub fn not_submitted(&mut self, stream: HandleKey) {
        let Ok(number) = self.streams.get(stream).map(|s| s.submitted) else { return };
        for buffer in self.buffers.alive.values_mut() {
            buffer.uses.retain(|u| *u != (stream, number));
        }
    }

    /// Records that the stream has done its work up to `number`, and so has the work that it waited
    /// for.
    fn completed(&mut self, stream: HandleKey, number: u64) {
        let mut known = vec![(stream, number)];
        while let Some((stream, number)) = known.pop() {
            let Ok(state) = self.streams.get_mut(stream) else { continue };
            if number <= state.done && number != state.submitted {
                continue;
            }
            state.done = state.done.max(number);
            let (before, later) = state.waits.drain(..).partition(|w| w.0 <= number);
            state.waits = later;
            known.extend(Vec::into_iter(before).map(|(_, other, number)| (other, number)));
        }
    }

    /// Records that all of a stream's work is done.
    pub fn drained(&mut self, stream: HandleKey) {
        let Ok(state) = self.streams.get_mut(stream) else { return };
        let (submitted, waits) = (state.submitted, std::mem::take(&mut state.waits));
        self.completed(stream, submitted);
        for (_, other, number) in waits {
            self.completed(other, number);
        }
    }

    pub fn may_record(&self, event: HandleKey, value: u64) -> Check {
        let recorded = self.events.get(event)?.recorded;
        ensure!(value > recorded, "value {value} is recorded after {recorded}: it may only grow");
        Ok(())
    }

    pub fn recorded(&mut self, stream: HandleKey, event: HandleKey, value: u64) {
        let submitted = self.streams.get(stream).map_or(0, |s| s.submitted);
        if let Ok(event) = self.events.get_mut(event) {
            event.recorded = event.recorded.max(value);
            event.marks.push((value, stream, submitted));
        }
    }

    /// Records that the stream's next work waits for the event.
    pub fn waits(&mut self, stream: HandleKey, event: HandleKey, value: u64) {
        let marks: Vec<_> = match self.events.get(event) {
            Ok(event) => {
                let until = event.next(value);
                event.marks.iter().filter(|m| m.0 <= until).map(|m| (m.1, m.2)).collect()
            }
            Err(_) => return,
        };
        if let Ok(stream) = self.streams.get_mut(stream) {
            let from = stream.submitted + 1;
            stream.waits.extend(marks.into_iter().map(|(other, number)| (from, other, number)));
        }
    }

    pub fn may_wait(&self, event: HandleKey, value: u64) -> Check {
        let recorded = self.events.get(event)?.recorded;
        ensure!(value <= recorded, "waits for {value}, but no more than {recorded} was recorded");
        Ok(())
    }

    /// Records that a wait for the event to reach `value` has ended.
    pub fn waited(&mut self, event: HandleKey, value: u64) -> Check {
        let reached = self.events.get(event).map_or(value, |state| state.next(value));
        self.reached(event, reached)
    }

    /// Records that the event was seen to have reached `value`.
    pub fn reached(&mut self, event: HandleKey, value: u64) -> Check {
        let Ok(state) = self.events.get_mut(event) else { return Ok(()) };
        let recorded = state.recorded;
        state.reached = state.reached.max(value.min(recorded));
        let (reached, left): (Vec<_>, Vec<_>) = state.marks.drain(..).partition(|m| m.0 <= value);
        state.marks = left;
        for (_, stream, number) in reached {
            self.completed(stream, number);
        }
        ensure!(
            value <= recorded,
            "the event says {value}, but no more than {recorded} was recorded"
        );
        Ok(())
    }

    /// Records that the stream's last work launches the kernel.
    pub fn kernel_used(&mut self, kernel: HandleKey, stream: HandleKey) {
        let number = self.streams.get(stream).map_or(0, |s| s.submitted);
        if let Ok(uses) = self.kernels.get_mut(kernel) {
            uses.retain(|u| u.0 != stream);
            uses.push((stream, number));
        }
    }

    /// Checks that nothing uses an object that is released.
    fn idle(&self, what: &str, key: HandleKey, uses: &[(HandleKey, u64)]) -> Check {
        let runs_ahead = self.devices.get(&key.0).is_some_and(|d| d.info.synchronous == 0);
        let busy = uses
            .iter()
            .find(|(stream, number)| self.streams.get(*stream).is_ok_and(|s| s.done < *number));
        match busy {
            Some((stream, _)) if runs_ahead => Err(format!(
                "{what} {:#x} may still be in use: stream {:#x} is not known to have passed it",
                key.1, stream.1
            )),
            _ => Ok(()),
        }
    }

    /// Checks that no recording holds an object that is released.
    fn unrecorded(&self, what: &str, key: HandleKey) -> Check {
        let holds =
            |(by, r): &(&HandleKey, &Arc<Mutex<Recording>>)| by.0 == key.0 && lock(r).holds(key.1);
        match self.recordings.alive.iter().find(holds) {
            Some((by, _)) => Err(format!("recording {:#x} holds {what} {:#x}", by.1, key.1)),
            None => Ok(()),
        }
    }

    /// Records that the stream's last work replays a recording.
    pub fn replayed(&self, recording: &mut Recording, stream: HandleKey) {
        let number = self.streams.get(stream).map_or(0, |s| s.submitted);
        recording.last = Some((stream, number));
    }

    /// Checks that a recording may be replayed. It runs once at a time, so new work of `stream` has
    /// to come after the last replay.
    pub fn may_replay(&self, recording: &Recording, stream: HandleKey) -> Check {
        let Some((other, number)) = recording.last else { return Ok(()) };
        let over = self.streams.get(other).map_or(true, |s| s.done >= number);
        ensure!(
            other == stream || over || self.waits_for(stream, other, number),
            "its last replay, on stream {:#x}, may still run, and the stream does not wait for it",
            other.1
        );
        Ok(())
    }

    /// Records that a recording is released.
    pub fn recording_gone(&mut self, key: HandleKey) -> Check {
        let recording = self.recordings.remove(key)?;
        let last = lock(&recording).last;
        self.idle("recording", key, last.as_slice())
    }

    /// Records that a buffer is released.
    pub fn buffer_gone(&mut self, key: HandleKey) -> Check {
        self.unrecorded("buffer", key)?;
        let buffer = self.buffers.remove(key)?;
        self.idle("buffer", key, &buffer.uses)
    }

    /// Returns true if new work of `stream` comes after work `number` of stream `other`.
    fn waits_for(&self, stream: HandleKey, other: HandleKey, number: u64) -> bool {
        let (mut seen, mut next) = (HashSet::new(), vec![stream]);
        while let Some(stream) = next.pop() {
            let Ok(state) = self.streams.get(stream) else { continue };
            if state.waits.iter().any(|w| w.1 == other && w.2 >= number) {
                return true;
            }
            if seen.insert(stream) {
                next.extend(state.waits.iter().map(|w| w.1));
            }
        }
        false
    }

    /// Records that a buffer is released in the order of a stream. The stream's work may still use
    /// it, and so may the work that the stream waits for.
    pub fn buffer_gone_in_order(&mut self, key: HandleKey, stream: HandleKey) -> Check {
        self.streams.get(stream)?;
        self.unrecorded("buffer", key)?;
        let mut buffer = self.buffers.remove(key)?;
        ensure!(!buffer.foreign, "buffer {:#x} is over foreign memory", key.1);
        buffer.uses.retain(|(by, number)| *by != stream && !self.waits_for(stream, *by, *number));
        self.idle("buffer", key, &buffer.uses)
    }

    /// Records that a kernel is released.
    pub fn kernel_gone(&mut self, key: HandleKey) -> Check {
        let uses = self.kernels.remove(key)?;
        self.idle("kernel", key, &uses)
    }

    pub fn event_gone(&mut self, key: HandleKey) -> Check {
        self.events.remove(key).map(|_| ())
    }

    pub fn plan_gone(&mut self, key: HandleKey) -> Check {
        self.unrecorded("plan", key)?;
        let signatures = self.plans.get_mut(key)?;
        signatures.pop();
        if signatures.is_empty() { self.plans.remove(key).map(|_| ()) } else { Ok(()) }
    }
}
