//! Copies and conversions.

mod storage;
