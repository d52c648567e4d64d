//! The rendezvous of processes without MPI: rank 0 listens, the other processes connect, and rank 0
//! sends them the id of their group.
//!
//! A caller sends a magic word, its rank and the number of processes. The answer is the same word
//! with the id, or with the reason why the caller is refused. If a caller does not send the word,
//! it is not a process of the program, and is disconnected. The connections stay open
//! ([`Control`]).

use super::control::Control;
use crate::error::{Error, Result};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The magic word, with the version of the protocol.
const MAGIC: &[u8; 16] = b"ultramarine/ids1";

/// Time limit for a caller to identify itself.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two checks for callers, and between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(10);
/// Limit on the bytes of an answer.
const MOST_BYTES: u32 = 4096;

/// The processes that meet, and the place.
#[derive(Clone, Debug)]
pub(super) struct Meeting {
    pub rank: usize,
    pub size: usize,
    /// The address of rank 0: a host name or address, and a port.
    pub host: String,
    pub port: u16,
    /// `None`: waits without a limit.
    pub limit: Option<Duration>,
}

/// Ranks as text: "1, 2, 5 and 12 more".
pub(super) fn show_ranks(ranks: &[usize]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = ranks.iter().take(SHOWN).map(usize::to_string).collect();
    let more = ranks.len().saturating_sub(SHOWN);
    let noun = if ranks.len() == 1 { "rank" } else { "ranks" };
    match more {
        0 => format!("{noun} {}", shown.join(", ")),
        n => format!("{noun} {} and {n} more", shown.join(", ")),
    }
}

impl Meeting {
    fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    fn error(&self, text: impl std::fmt::Display) -> Error {
        Error::runtime("init", format!("rank {} of {}: {text}", self.rank, self.size))
    }

    fn is_over(&self, start: Instant) -> bool {
        self.limit.is_some_and(|limit| start.elapsed() >= limit)
    }

    /// Meets the other processes. Rank 0 makes the id, and all processes return it.
    ///
    /// # Errors
    /// [`Error::Runtime`] if a process did not arrive in time, or the address cannot be used.
    pub fn meet(&self, make_id: impl FnOnce() -> Result<Vec<u8>>) -> Result<(Vec<u8>, Control)> {
        match self.rank {
            0 => self.listen(make_id()?),
            _ => self.call(),
        }
    }

    fn listen(&self, id: Vec<u8>) -> Result<(Vec<u8>, Control)> {
        let start = Instant::now();
        let listener = self.bind(start)?;
        let (sender, callers) = mpsc::channel();
        let mut links: Vec<Option<TcpStream>> = (0..self.size).map(|_| None).collect();
        let mut refused = Vec::new();
        while links.iter().skip(1).any(Option::is_none) {
            match listener.accept() {
                Ok((stream, _)) => {
                    let sender = sender.clone();
                    // Use a thread for each caller, so that a silent caller does not delay the
                    // others.
                    std::thread::spawn(move || {
                        if let Ok(said) = greeting(&stream) {
                            let _ = sender.send((stream, said));
                        }
                    });
                    continue;
                }
                Err(why) if is_transient(&why) => {}
                Err(why) => return Err(self.error(format!("{}: {why}", self.place()))),
            }
            while let Ok((stream, (rank, size))) = callers.try_recv() {
                let refusal = match links.get(rank as usize) {
                    _ if size as usize != self.size => {
                        format!(
                            "rank 0 expects {} processes, and this one {size}. Start all with the same size",
                            self.size
                        )
                    }
                    None => format!(
                        "rank {rank} is not below the number of processes, {size}. Set another rank"
                    ),
                    Some(Some(_)) => format!(
                        "another process has rank {rank}. Give each process a rank of its own"
                    ),
                    Some(None) if rank == 0 => {
                        "another process has rank 0. Give each process a rank of its own".to_owned()
                    }
                    Some(None) => {
                        links[rank as usize] = Some(stream);
                        continue;
                    }
                };
                let _ = answer(&stream, 1, refusal.as_bytes());
                refused.push(refusal);
            }
            if self.is_over(start) {
                let missing: Vec<usize> =
                    (1..self.size).filter(|rank| links[*rank].is_none()).collect();
                let refused = match refused.last() {
                    Some(why) => format!(" A process was refused: {why}."),
                    None => String::new(),
                };
                return Err(self.error(format!(
                    "{} did not connect to {} within {} s. Check that all processes run, and reach that address.{refused}",
                    show_ranks(&missing),
                    self.place(),
                    start.elapsed().as_secs()
                )));
            }
            std::thread::sleep(PAUSE);
        }
        for stream in links.iter().flatten() {
            answer(stream, 0, &id).map_err(|why| self.error(why))?;
        }
        let control = Control::new(0, self.size, links).map_err(|why| self.error(why))?;
        Ok((id, control))
    }

    /// Retry, because a port that another program uses may become free soon.
    fn bind(&self, start: Instant) -> Result<TcpListener> {
        loop {
            let bound = TcpListener::bind((self.host.as_str(), self.port));
            match bound.and_then(|l| l.set_nonblocking(true).map(|()| l)) {
                Ok(listener) => return Ok(listener),
                Err(why) if why.kind() == io::ErrorKind::AddrInUse && !self.is_over(start) => {
                    std::thread::sleep(PAUSE);
                }
                Err(why) => {
                    return Err(self.error(format!(
                        "cannot listen at {}: {why}. Give an address of this host in NCCL_HOST_IP, and a free port in \
                         NCCL_PORT",
                        self.place()
                    )));
                }
            }
        }
    }

    fn call(&self) -> Result<(Vec<u8>, Control)> {
        let start = Instant::now();
        loop {
            let failure = match self.attempt() {
                Ok((0, id)) => return Ok(id),
                Ok((_, (refusal, _))) => {
                    return Err(self.error(format!(
                        "rank 0 at {} refused this process: {}",
                        self.place(),
                        String::from_utf8_lossy(&refusal)
                    )));
                }
                Err(why) => why,
            };
            if self.is_over(start) {
                return Err(self.error(format!(
                    "rank 0 did not answer at {} within {} s: {failure}. Check that it runs, and that this host reaches that \
                     address",
                    self.place(),
                    start.elapsed().as_secs()
                )));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Connects once. Returns the code of the answer, its bytes, and the connection.
    fn attempt(&self) -> io::Result<(u32, (Vec<u8>, Control))> {
        let places = (self.host.as_str(), self.port).to_socket_addrs()?;
        let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for place in places {
            match TcpStream::connect_timeout(&place, PATIENCE) {
                Ok(stream) => return self.introduce(stream),
                Err(why) => failure = why,
            }
        }
        Err(failure)
    }

    fn introduce(&self, mut stream: TcpStream) -> io::Result<(u32, (Vec<u8>, Control))> {
        let mut said = MAGIC.to_vec();
        said.extend((self.rank as u32).to_le_bytes());
        said.extend((self.size as u32).to_le_bytes());
        stream.write_all(&said)?;
        // The answer arrives when all processes are present.
        stream.set_read_timeout(self.limit)?;
        let mut head = [0; 24];
        stream.read_exact(&mut head)?;
        let (word, code, length) = (&head[..16], number(&head[16..20]), number(&head[20..]));
        if word != MAGIC || length > MOST_BYTES {
            let text = "the answer is not from a process of this program. Choose another port";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let mut bytes = vec![0; length as usize];
        stream.read_exact(&mut bytes)?;
        let mut links: Vec<Option<TcpStream>> = (0..self.size.max(1)).map(|_| None).collect();
        links[0] = Some(stream);
        Ok((code, (bytes, Control::new(self.rank, self.size, links)?)))
    }
}

fn is_transient(why: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(why.kind(), WouldBlock | Interrupted | ConnectionAborted)
}

fn number(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_le_bytes)
}

/// Reads the rank and the number of processes that a caller sends.
fn greeting(mut stream: &TcpStream) -> io::Result<(u32, u32)> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut said = [0; 24];
    stream.read_exact(&mut said)?;
    match said[..16] == *MAGIC {
        true => Ok((number(&said[16..20]), number(&said[20..]))),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn answer(mut stream: &TcpStream, code: u32, bytes: &[u8]) -> io::Result<()> {
    let mut said = MAGIC.to_vec();
    said.extend(code.to_le_bytes());
    said.extend((bytes.len() as u32).to_le_bytes());
    said.extend(bytes);
    stream.write_all(&said)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a meeting at a port that is currently free.
    fn meeting(size: usize, limit: Duration) -> Meeting {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        Meeting { rank: 0, size, host: "127.0.0.1".into(), port, limit: Some(limit) }
    }

    fn text<T>(outcome: Result<T>) -> String {
        outcome.err().map(|e| e.to_string()).unwrap_or_default()
    }

    #[test]
    fn all_get_the_id_of_rank_0_whoever_comes_first() {
        let meeting = meeting(3, Duration::from_secs(20));
        let meet = |rank: usize| {
            let meeting = Meeting { rank, ..meeting.clone() };
            std::thread::spawn(move || meeting.meet(|| Ok(vec![7; 128])))
        };
        let (second, first) = (meet(2), meet(1));
        // Two foreign callers: one sends something else, and one sends nothing.
        std::thread::sleep(Duration::from_millis(50));
        let zero = meet(0);
        let stranger = loop {
            if let Ok(stream) = TcpStream::connect((meeting.host.as_str(), meeting.port)) {
                break stream;
            }
        };
        let _ = (&stranger).write_all(b"GET / HTTP/1.1\r\n\r\n12345678901234567890");
        for thread in [zero, first, second] {
            let (id, _control) = thread.join().expect("no panic").expect("met");
            assert_eq!(id, [7; 128]);
        }
    }

    #[test]
    fn who_is_missing_is_named() {
        let alone = meeting(3, Duration::from_millis(200));
        let second = Meeting { rank: 2, ..alone.clone() };
        let thread = std::thread::spawn(move || second.meet(|| Ok(vec![])).map(drop));
        let said = text(alone.meet(|| Ok(vec![1])).map(drop));
        assert!(said.contains("rank 0 of 3: rank 1 did not connect to 127.0.0.1:"), "{said}");
        let said = text(thread.join().expect("no panic"));
        assert!(said.contains("rank 2 of 3: rank 0 did not answer"), "{said}");
    }

    #[test]
    fn processes_of_another_program_are_refused() {
        let here = meeting(2, Duration::from_secs(20));
        let others = [
            (
                Meeting { rank: 1, size: 4, ..here.clone() },
                "rank 0 expects 2 processes, and this one 4",
            ),
            (
                Meeting { rank: 5, size: 2, ..here.clone() },
                "rank 5 is not below the number of processes, 2",
            ),
        ];
        let zero = here.clone();
        let zero = std::thread::spawn(move || zero.meet(|| Ok(vec![3; 16])));
        for (other, why) in others {
            let said = text(other.meet(|| Ok(vec![])).map(drop));
            assert!(said.contains(why), "{said}");
        }
        let first = Meeting { rank: 1, ..here }.meet(|| Ok(vec![]));
        assert_eq!(first.map(|(id, _)| id).ok(), Some(vec![3; 16]));
        assert!(zero.join().expect("no panic").is_ok());
    }

    #[test]
    fn ranks_as_text() {
        assert_eq!(show_ranks(&[3]), "rank 3");
        let many: Vec<usize> = (1..20).collect();
        assert_eq!(show_ranks(&many), "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 11 more");
    }
}
