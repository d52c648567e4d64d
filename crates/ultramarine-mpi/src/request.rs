//! Requests. A request is one collective or message over host memory.

use crate::dtype::Dtype;
use crate::error::Error;

/// The kind of a collective or message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Sum over all ranks; for bools, the logical or. The output has as many elements as the input.
    AllSum,
    /// Maximum over all ranks; NaN if any rank has a NaN. The output has as many elements as the
    /// input.
    AllMax,
    /// Minimum over all ranks; NaN if any rank has a NaN. The output has as many elements as the
    /// input.
    AllMin,
    /// The inputs of all ranks, one after the other. The output has `size` times the elements of
    /// the input.
    AllGather,
    /// Part `rank` of the sum over all ranks. The output has the elements of the input divided by
    /// `size`.
    SumScatter,
    /// Sends a message to a rank. There is no output.
    Send {
        /// The receiver.
        to: usize,
    },
    /// Receives a message from a rank. There is no input.
    Receive {
        /// The sender.
        from: usize,
    },
}

impl Kind {
    /// Returns the name, as users know it.
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

/// A collective or message, for [`Communicator`](crate::Communicator).
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The collective or message.
    pub kind: Kind,
    /// Element type of input and output.
    pub dtype: Dtype,
    /// The packed elements, aligned to their size. The pointer may dangle if there are no elements.
    pub input: *const u8,
    /// Memory for the result, with the alignment of the input. It does not overlap the input.
    pub output: *mut u8,
    /// The number of elements of the input; for [`Kind::Receive`], of the output.
    pub count: usize,
    /// A description for reports and errors, such as `all_sum(float32, (4, 8)), the 3rd of its
    /// group`.
    pub description: &'a str,
}

impl Request<'_> {
    /// Checks everything that can be checked without the other ranks.
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
