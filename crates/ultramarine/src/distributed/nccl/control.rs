//! Control connections between the processes of a group. Each process keeps its connection to rank
//! 0 open. Over it, a process learns that another process has ended or failed, and in debug mode
//! processes compare their operations. Arrays are not sent over these connections.
//!
//! When a process ends for any reason, its connection is closed. Rank 0 informs the other
//! processes.

use crate::error::{Error, Result};
use crate::sync::lock;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Limit on the bytes of a message.
const MOST_BYTES: u32 = 16 << 20;
/// Time limit for a peer to receive a message.
const PATIENCE: Duration = Duration::from_secs(10);

/// Kinds of messages.
const ENDED: u8 = 1;
const FAILURE: u8 = 2;
const PART: u8 = 3;
const WHOLE: u8 = 4;

/// The connections of a process.
pub(super) struct Control(Arc<Shared>);

struct Shared {
    rank: usize,
    size: usize,
    /// By rank. Processes other than rank 0 are connected to rank 0 only.
    links: Vec<Option<Mutex<TcpStream>>>,
    known: Mutex<Known>,
    changed: Condvar,
}

#[derive(Default)]
struct Known {
    /// Processes that have ended, with the time at which this process learnt it.
    ended: Vec<(usize, Instant)>,
    /// The report of another process, with the time at which it arrived.
    failure: Option<(String, Instant)>,
    /// By number. On rank 0: the parts that have arrived. On other ranks: the parts that rank 0 has
    /// sent.
    gathered: HashMap<u64, Vec<Option<Vec<u8>>>>,
}

/// An event that ends the group, with the time at which this process learnt it.
pub(super) struct Bad {
    pub text: String,
    pub since: Instant,
}

fn send(stream: &Mutex<TcpStream>, kind: u8, number: u64, bytes: &[u8]) -> io::Result<()> {
    let mut said = vec![kind];
    said.extend(number.to_le_bytes());
    said.extend((bytes.len() as u32).to_le_bytes());
    said.extend(bytes);
    lock(stream).write_all(&said)
}

fn receive(stream: &mut TcpStream) -> io::Result<(u8, u64, Vec<u8>)> {
    let mut head = [0; 13];
    stream.read_exact(&mut head)?;
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (number, length) = (u64::from(word(1)) | u64::from(word(5)) << 32, word(9));
    if length > MOST_BYTES {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    stream.read_exact(&mut bytes)?;
    Ok((head[0], number, bytes))
}

/// Joins parts into one message. The next function splits them again.
fn joined(parts: &[Option<Vec<u8>>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in parts.iter().flatten() {
        bytes.extend((part.len() as u32).to_le_bytes());
        bytes.extend(part);
    }
    bytes
}

fn separated(mut bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let mut parts = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<4>() {
        let length = (u32::from_le_bytes(*head) as usize).min(rest.len());
        parts.push(Some(rest[..length].to_vec()));
        bytes = &rest[length..];
    }
    parts
}

impl Control {
    /// Keeps the connections open, and listens to them.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(rank: usize, size: usize, links: Vec<Option<TcpStream>>) -> io::Result<Control> {
        let mut readers = Vec::new();
        let mut writers = Vec::new();
        for (other, link) in links.into_iter().enumerate() {
            let Some(stream) = link else {
                writers.push(None);
                continue;
            };
            stream.set_nonblocking(false)?;
            stream.set_nodelay(true)?;
            stream.set_read_timeout(None)?;
            stream.set_write_timeout(Some(PATIENCE))?;
            readers.push((other, stream.try_clone()?));
            writers.push(Some(Mutex::new(stream)));
        }
        let (known, changed) = Default::default();
        let shared = Arc::new(Shared { rank, size, links: writers, known, changed });
        for (other, stream) in readers {
            let shared = shared.clone();
            let thread = std::thread::Builder::new().name("ultramarine-peers".to_owned());
            // The thread ends when the connection is closed.
            thread.stack_size(128 << 10).spawn(move || shared.listen(other, stream))?;
        }
        Ok(Control(shared))
    }

    /// Number of processes.
    pub fn size(&self) -> usize {
        self.0.size
    }

    /// Returns the reason why the group cannot continue. `None` if it can.
    pub fn bad(&self) -> Option<Bad> {
        let known = lock(&self.0.known);
        if let Some((rank, since)) = known.ended.first() {
            let text = format!("the process of rank {rank} has ended; its output says why");
            return Some(Bad { text, since: *since });
        }
        let (text, since) = known.failure.as_ref()?;
        Some(Bad { text: text.clone(), since: *since })
    }

    /// Reports to the other processes that this process gives up, with the reason.
    pub fn report(&self, text: &str) {
        self.0.tell_others(self.0.rank, FAILURE, self.0.rank as u64, text.as_bytes());
    }

    /// Gathers the bytes of all processes, by rank. Every process has to call it, with the same new
    /// `number`.
    ///
    /// # Errors
    /// [`Error::Runtime`] if a process has ended, or did not call it in time.
    pub fn gather(
        &self,
        number: u64,
        bytes: &[u8],
        limit: Option<Duration>,
    ) -> Result<Vec<Vec<u8>>> {
        let (shared, start) = (&*self.0, Instant::now());
        if shared.rank == 0 {
            shared.take_part(number, 0, bytes.to_vec());
        } else if let Some(link) = shared.links.first().and_then(Option::as_ref) {
            let sent = send(link, PART, number, bytes);
            sent.map_err(|why| Error::runtime("distributed", format!("rank 0: {why}")))?;
        }
        let mut known = lock(&shared.known);
        loop {
            let whole = known.gathered.get(&number).is_some_and(|parts| {
                parts.len() == shared.size && parts.iter().all(Option::is_some)
            });
            if whole {
                let parts = known.gathered.remove(&number).unwrap_or_default();
                return Ok(parts.into_iter().flatten().collect());
            }
            if let Some((rank, _)) = known.ended.first() {
                let text = format!("the process of rank {rank} has ended; its output says why");
                return Err(Error::runtime("distributed", text));
            }
            if limit.is_some_and(|limit| start.elapsed() >= limit) {
                known.gathered.remove(&number);
                let text = format!(
                    "a process did not arrive within {} s. Check that all processes run the same operations",
                    start.elapsed().as_secs()
                );
                return Err(Error::runtime("distributed", text));
            }
            let waited = shared.changed.wait_timeout(known, Duration::from_millis(100));
            known = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Shared {
    /// Reads a peer's messages until the connection ends.
    fn listen(&self, other: usize, mut stream: TcpStream) {
        while let Ok((kind, number, bytes)) = receive(&mut stream) {
            match kind {
                ENDED => self.note_end(number as usize),
                FAILURE => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    self.note(|known| {
                        known.failure.get_or_insert((text, Instant::now()));
                    });
                    if self.rank == 0 {
                        self.tell_others(number as usize, FAILURE, number, &bytes);
                    }
                }
                PART => self.take_part(number, other, bytes),
                WHOLE => self.note(|known| {
                    known.gathered.insert(number, separated(&bytes));
                }),
                _ => break,
            }
        }
        self.note_end(other);
        if self.rank == 0 {
            self.tell_others(other, ENDED, other as u64, &[]);
        }
    }

    fn note(&self, change: impl FnOnce(&mut Known)) {
        change(&mut lock(&self.known));
        self.changed.notify_all();
    }

    fn note_end(&self, rank: usize) {
        self.note(|known| {
            if !known.ended.iter().any(|(other, _)| *other == rank) {
                known.ended.push((rank, Instant::now()));
            }
        });
    }

    /// Sends a message to all connected processes except `but`.
    fn tell_others(&self, but: usize, kind: u8, number: u64, bytes: &[u8]) {
        for (_, link) in self.links.iter().enumerate().filter(|(rank, _)| *rank != but) {
            // Ignore errors: processes that have ended are recorded elsewhere.
            let _ = link.as_ref().map(|link| send(link, kind, number, bytes));
        }
    }

    /// On rank 0: takes a process's part, and sends all parts once they are complete.
    fn take_part(&self, number: u64, rank: usize, bytes: Vec<u8>) {
        let mut known = lock(&self.known);
        let parts = known.gathered.entry(number).or_default();
        parts.resize(self.size, None);
        if let Some(place) = parts.get_mut(rank) {
            *place = Some(bytes);
        }
        let whole = parts.iter().all(Option::is_some).then(|| joined(parts));
        drop(known);
        if let Some(whole) = whole {
            self.tell_others(0, WHOLE, number, &whole);
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rendezvous::Meeting;
    use super::*;
    use std::net::TcpListener;

    const LIMIT: Option<Duration> = Some(Duration::from_secs(20));

    /// Connects processes, which are threads here.
    fn met(size: usize) -> Vec<Control> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        drop(listener);
        let meet = |rank| {
            let meeting = Meeting { rank, size, host: "127.0.0.1".into(), port, limit: LIMIT };
            std::thread::spawn(move || meeting.meet(|| Ok(vec![1])).expect("met").1)
        };
        let threads: Vec<_> = (0..size).map(meet).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    }

    fn bad(control: &Control) -> String {
        let start = Instant::now();
        loop {
            if let Some(bad) = control.bad() {
                return bad.text;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "nothing is known");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn parts_are_gathered_by_rank() {
        let all = met(3);
        std::thread::scope(|scope| {
            for (rank, control) in all.iter().enumerate() {
                scope.spawn(move || {
                    for number in 0..20 {
                        let bytes = vec![rank as u8; rank + number as usize];
                        let parts = control.gather(number, &bytes, LIMIT).expect("gathered");
                        let wanted: Vec<Vec<u8>> =
                            (0..3).map(|r| vec![r as u8; r + number as usize]).collect();
                        assert_eq!(parts, wanted);
                    }
                });
            }
        });
        let limit = Some(Duration::from_millis(50));
        let late = all[1].gather(99, &[], limit).expect_err("rank 2 does not come");
        assert!(late.to_string().contains("did not arrive"), "{late}");
        assert!(all.iter().all(|control| control.bad().is_none()));
    }

    #[test]
    fn an_end_reaches_all() {
        let mut all = met(4);
        let ended = all.remove(2);
        for link in ended.0.links.iter().flatten() {
            lock(link).shutdown(std::net::Shutdown::Both).expect("open");
        }
        for control in &all {
            assert_eq!(bad(control), "the process of rank 2 has ended; its output says why");
        }
        let gathered = all[0].gather(0, &[], LIMIT).expect_err("rank 2 is gone");
        assert!(gathered.to_string().contains("rank 2 has ended"), "{gathered}");
    }

    #[test]
    fn a_failure_reaches_all() {
        let all = met(3);
        all[1].report("rank 1 waited too long");
        assert_eq!(bad(&all[0]), "rank 1 waited too long");
        assert_eq!(bad(&all[2]), "rank 1 waited too long");
        assert!(all[1].bad().is_none());
    }
}
