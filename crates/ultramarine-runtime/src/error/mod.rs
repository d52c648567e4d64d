//! The library's error type.

mod message;

pub use message::Message;
use std::fmt;
use std::sync::Arc;

/// The result of a fallible call, with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error. The variant is the kind of the error; each kind has its exception in Python. The text
/// names the operation and the offending shapes, dtypes or values. With `RUST_BACKTRACE=1` its
/// `Debug` form, which `main` and `unwrap` print, also has the line of the program
/// ([`Message::line`]).
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument has an invalid value: shapes that cannot be broadcast, an empty reduction, mixed
    /// devices. Python: `ValueError`.
    #[error("{0}")]
    Value(Message),
    /// An argument has the wrong type. Python: `TypeError`.
    #[error("{0}")]
    Type(Message),
    /// An axis or index is out of range. Python: `IndexError`.
    #[error("{0}")]
    Index(Message),
    /// Memory cannot be exported or imported as requested. Python: `InterchangeError`, which is a
    /// `BufferError` and a `ValueError`.
    #[error("{0}")]
    Buffer(Message),
    /// Memory cannot be exported or imported because of its device. Python:
    /// `InterchangeDeviceError`, which is an `InterchangeError` and a `TypeError`.
    #[error("{0}")]
    BufferDevice(Message),
    /// There is not enough memory. Python: `MemoryError`.
    #[error("{0}")]
    Memory(Message),
    /// A failure during execution. Python: `RuntimeError`.
    #[error("{0}")]
    Runtime(Message),
    /// The operating system refused to open or write a file ([`Error::io_kind`]). Python: `RuntimeError`.
    #[error("{what}: {source}")]
    Io {
        /// The file, and the attempted action.
        what: String,
        /// The system's error.
        source: Arc<std::io::Error>,
    },
    /// The error of a function that was passed to a transform, unchanged: see [`Error::other`].
    #[error("{0}")]
    Other(Arc<dyn std::error::Error + Send + Sync>),
    /// The array depends on an operation that failed earlier.
    #[error("{}", poisoned(op, cause))]
    Poisoned {
        /// The operation that failed.
        op: &'static str,
        /// The error of that operation.
        cause: Arc<Error>,
    },
}

/// The text of [`Error::Poisoned`], which contains the operation's name only once.
fn poisoned(op: &str, cause: &Error) -> String {
    let text = cause.to_string();
    let named = text.strip_prefix('[').and_then(|rest| rest.strip_prefix(op));
    match named.is_some_and(|rest| rest.starts_with(']')) {
        true => text,
        false => format!("[{op}] failed: {text}"),
    }
}

/// Prints the message, and the line if it is known, because `main` and `unwrap` print errors with
/// `Debug`.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        self.message().map_or(Ok(()), |message| message.write_line(f))
    }
}

impl Error {
    /// Returns the message of the first cause, if the cause is an error of this library.
    fn message(&self) -> Option<&Message> {
        match self.root() {
            Error::Value(text)
            | Error::Type(text)
            | Error::Index(text)
            | Error::Buffer(text)
            | Error::BufferDevice(text)
            | Error::Memory(text)
            | Error::Runtime(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the first cause of an error: the failure of the operation on which an array's other
    /// operations depend.
    pub fn cause(error: &Arc<Error>) -> &Arc<Error> {
        let mut cause = error;
        while let Error::Poisoned { cause: earlier, .. } = &**cause {
            cause = earlier;
        }
        cause
    }

    /// Makes an [`Error::Value`] about `op`, with the text `[op] text`.
    ///
    /// ```
    /// use ultramarine_runtime::Error;
    /// let error = Error::value("scale", "factor is 0. Pass another number.");
    /// assert_eq!(error.to_string(), "[scale] factor is 0. Pass another number.");
    /// ```
    pub fn value(op: &str, text: impl std::fmt::Display) -> Self {
        Error::Value(format!("[{op}] {text}").into())
    }

    /// Makes an [`Error::Type`] about `op`, with the text `[op] text`.
    pub fn type_(op: &str, text: impl std::fmt::Display) -> Self {
        Error::Type(format!("[{op}] {text}").into())
    }

    /// Makes an [`Error::Index`] about `op`, with the text `[op] text`.
    pub fn index(op: &str, text: impl std::fmt::Display) -> Self {
        Error::Index(format!("[{op}] {text}").into())
    }

    /// Makes an [`Error::Buffer`] about `op`, with the text `[op] text`.
    pub fn buffer(op: &str, text: impl std::fmt::Display) -> Self {
        Error::Buffer(format!("[{op}] {text}").into())
    }

    /// Makes an [`Error::BufferDevice`] about `op`, with the text `[op] text`.
    pub fn buffer_device(op: &str, text: impl std::fmt::Display) -> Self {
        Error::BufferDevice(format!("[{op}] {text}").into())
    }

    /// Makes an [`Error::Runtime`] about `op`, with the text `[op] text`.
    pub fn runtime(op: &str, text: impl std::fmt::Display) -> Self {
        Error::Runtime(format!("[{op}] {text}").into())
    }

    /// Wraps an error of the caller as [`Error::Other`], for functions that are passed to a
    /// transform. [`std::error::Error::source`] returns it.
    pub fn other(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Error::Other(Arc::new(error))
    }

    /// Returns the kind of the system's error behind an [`Error::Io`]; `None` for every other
    /// error.
    ///
    /// ```
    /// # use ultramarine_runtime::error::Error;
    /// use std::io::ErrorKind;
    /// let missing = std::fs::File::open("missing.npy").err().map(|e| Error::io("missing.npy", e));
    /// assert_eq!(missing.and_then(|e| e.io_kind()), Some(ErrorKind::NotFound));
    /// ```
    pub fn io_kind(&self) -> Option<std::io::ErrorKind> {
        match self.root() {
            Error::Io { source, .. } => Some(source.kind()),
            _ => None,
        }
    }

    /// Makes an [`Error::Io`] about `what`, such as a file's name.
    pub fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        Error::Io { what: what.into(), source: Arc::new(source) }
    }

    /// Returns the first cause, below any [`Error::Poisoned`].
    pub fn root(&self) -> &Error {
        match self {
            Error::Poisoned { cause, .. } => cause.root(),
            other => other,
        }
    }
}

/// Returns an [`Error::Value`] about an operation: `bail!(op, "text {}", values)`.
#[doc(hidden)]
#[macro_export]
macro_rules! bail {
    ($op:expr, $($text:tt)+) => {
        return Err($crate::Error::value($op, format_args!($($text)+)).into())
    };
}

/// Returns an error like [`bail!`] if a condition is false: `ensure!(condition, op, "text {}",
/// values)`.
#[doc(hidden)]
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $op:expr, $($text:tt)+) => {
        if !$condition {
            $crate::bail!($op, $($text)+);
        }
    };
}
#[doc(hidden)]
pub use {bail, ensure};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_named_once() {
        let text = |op: &'static str, cause: Error| {
            Error::Poisoned { op, cause: Arc::new(cause) }.to_string()
        };
        assert_eq!(text("add", Error::runtime("add", "no memory.")), "[add] no memory.");
        assert_eq!(
            text("exp", Error::runtime("expm1", "no memory.")),
            "[exp] failed: [expm1] no memory."
        );
        assert_eq!(text("exp", Error::Memory("none".into())), "[exp] failed: none");
    }
}
