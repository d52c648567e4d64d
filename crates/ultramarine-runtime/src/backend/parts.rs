//! Copies of parts of other devices' buffers that a job has made on its device. Other tasks of the
//! job that read the same part reuse them.

use super::{buffer::BufferRef, value::Value};
use crate::dtype::Dtype;
use crate::shape::{Shape, Strides};
use std::cell::RefCell;
use std::ops::Range;

/// The most parts that a job keeps.
const MOST: usize = 8;

struct Part {
    /// The original buffer. Holding it keeps other work from overwriting it.
    source: BufferRef,
    copy: BufferRef,
    content: Content,
}

/// The part of the original that a copy holds.
enum Content {
    /// The bytes of this range.
    Range(Range<usize>),
    /// The elements of a view, packed without gaps, with these strides.
    Packed(View, Strides),
}

/// A view of a buffer.
#[derive(PartialEq)]
struct View {
    offset: usize,
    shape: Shape,
    strides: Strides,
    dtype: Dtype,
}

impl View {
    fn of(value: &Value, shape: &[usize], dtype: Dtype) -> View {
        let strides = value.strides.clone();
        View { offset: value.offset, shape: Shape::from_slice(shape), strides, dtype }
    }
}

/// The parts that a job keeps: the most recent ones, until the job ends.
#[derive(Default)]
pub(super) struct Parts(RefCell<Vec<Part>>);

impl Parts {
    fn find<T>(&self, source: &BufferRef, f: impl Fn(&Part) -> Option<T>) -> Option<T> {
        let parts = self.0.borrow();
        parts.iter().filter(|p| std::ptr::eq(&*p.source, &**source)).find_map(f)
    }

    /// Returns the value in a copy of its buffer that has the bytes of `range`, if there is one.
    pub fn find_range(&self, value: &Value, range: &Range<usize>) -> Option<Value> {
        self.find(&value.buffer, |part| match &part.content {
            Content::Range(r) if r.start <= range.start && range.end <= r.end => Some(Value {
                buffer: part.copy.clone(),
                offset: value.offset - r.start,
                strides: value.strides.clone(),
            }),
            _ => None,
        })
    }

    /// Returns the packed copy of a value with this shape and dtype, if there is one.
    pub fn find_packed(&self, value: &Value, shape: &[usize], dtype: Dtype) -> Option<Value> {
        let wanted = View::of(value, shape, dtype);
        self.find(&value.buffer, |part| match &part.content {
            Content::Packed(view, strides) if *view == wanted => {
                Some(Value { buffer: part.copy.clone(), offset: 0, strides: strides.clone() })
            }
            _ => None,
        })
    }

    /// Keeps the copy of a range of a value's buffer. If there are too many parts, it replaces the
    /// oldest.
    pub fn keep_range(&self, value: &Value, range: Range<usize>, copy: &BufferRef) {
        self.keep(value, Content::Range(range), copy);
    }

    /// Keeps the packed copy of a value in the same way.
    pub fn keep_packed(&self, value: &Value, shape: &[usize], dtype: Dtype, copy: &Value) {
        let content = Content::Packed(View::of(value, shape, dtype), copy.strides.clone());
        self.keep(value, content, &copy.buffer);
    }

    fn keep(&self, value: &Value, content: Content, copy: &BufferRef) {
        let (source, copy) = (value.buffer.clone(), copy.clone());
        let mut parts = self.0.borrow_mut();
        let oldest = (parts.len() == MOST).then(|| parts.remove(0));
        parts.push(Part { source, copy, content });
        drop(parts);
        drop(oldest);
    }
}
