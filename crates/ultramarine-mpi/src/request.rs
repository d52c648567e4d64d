//! Requests: one collective or message over host memory.

use crate::dtype::Dtype;
use crate::error::Error;

/// The kind of a collective or message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sum over all ranks; `or` of bools. Output: as many elements as the input.
    AllSum,
    /// Maximum over all ranks; NaN where any rank has one. Output: as many elements as the input.
    AllMax,
    /// Minimum over all ranks; NaN where any rank has one. Output: as many elements as the input.
    AllMin,
    /// Inputs of all ranks, one after the other. Output: `size` times the elements of the input.
    AllGather,
    /// Part `rank` of the sum over all ranks. Output: the elements of the input over `size`.
    SumScatter,
    /// A message to a rank. No output.
    Send {
        /// The receiver.
        to: usize,
    },
    /// A message from a rank. No input.
    Receive {
        /// The sender.
        from: usize,
    },
}

impl Kind {
    /// Name, as users know it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::AllSum => "all_sum",
            Kind::AllMax => "all_max",
            Kind::AllMin => "all_min",
            Kind::AllGather => "all_gather",
            Kind::SumScatter => "sum_scatter",
            Kind::Send { .. } => "send",
            Kind::Receive { .. } => "recv",
        }
    }
}

/// A collective or message, as [`Communicator`](crate::Communicator) takes it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The collective or message.
    pub kind: Kind,
    /// Element type of input and output.
    pub dtype: Dtype,
    /// Packed elements, aligned to their size; may dangle where there are none.
    pub input: *const u8,
    /// Memory for the result, aligned as the input, which it does not overlap.
    pub output: *mut u8,
    /// Elements of the input; of the output for [`Kind::Receive`].
    pub count: usize,
    /// Text for reports and errors, such as `all_sum(float32, (4, 8)), the 3rd of its group`.
    pub description: &'a str,
}

impl Request<'_> {
    /// Checks what can be known without the other ranks.
    pub(crate) fn validate(&self, size: usize) -> Result<(), Error> {
        let what = self.kind.name();
        if let Kind::Send { to: peer } | Kind::Receive { from: peer } = self.kind
            && peer >= size
        {
            return Err(Error::Argument(format!(
                "[{what}] there is no rank {peer} in a group of {size}. Give a rank from 0 to {}",
                size - 1
            )));
        }
        if self.kind == Kind::SumScatter && !self.count.is_multiple_of(size) {
            return Err(Error::Argument(format!(
                "[sum_scatter] {} elements cannot be divided among {size} ranks. Pad the first axis to a multiple of {size}",
                self.count
            )));
        }
        let all = if self.kind == Kind::AllGather { size } else { 1 };
        let bytes = self.count.checked_mul(self.dtype.size()).and_then(|n| n.checked_mul(all));
        if bytes.is_none_or(|n| isize::try_from(n).is_err()) {
            return Err(Error::Argument(format!(
                "[{what}] {} elements of {} on {size} ranks exceed the address space",
                self.count, self.dtype
            )));
        }
        Ok(())
    }
}
