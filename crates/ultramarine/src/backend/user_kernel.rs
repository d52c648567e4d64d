//! Kernels in source form, by the backend's interface `ultramarine.kernel/1`: compiled once for each device, by content.

#![allow(dead_code)]

use super::{Exec, Operand};
use crate::{error::Result, scalar::Scalar};
use std::sync::Arc;

/// A kernel's text, whole: with prelude and signature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelSource<'a> {
    /// Whose operation it is, for errors.
    pub op: &'a str,
    pub language: &'a str,
    pub source: &'a str,
    pub entry: &'a str,
    pub template_arguments: &'a [String],
    pub options: Option<&'a str>,
}

/// A compiled kernel.
#[derive(Debug)]
pub(crate) struct UserKernel {}

/// What a device says of a kernel; 0 is unknown.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelFacts {
    pub max_group: u32,
    pub group_multiple: u32,
    pub max_shared: u32,
}

/// An argument of a launch.
pub(crate) enum Argument<'a> {
    Read(Operand<'a>),
    Write(Operand<'a>),
    Scalar(Scalar),
    /// A read-only array of bytes in the device's memory.
    Constants(&'a [u8]),
}

impl Exec {
    /// Languages of kernels that the device takes.
    pub fn languages(&self) -> &'static [String] {
        &[]
    }

    /// The kernel, compiled if it is new.
    pub fn user_kernel(&self, source: &KernelSource<'_>) -> Result<Arc<UserKernel>> {
        Err(self.refuse(source.op))
    }

    /// What the device says of it.
    pub fn kernel_facts(&self, _: &UserKernel) -> Result<KernelFacts> {
        Ok(KernelFacts::default())
    }

    /// Gives a launch to the stream: `grid` groups of `group` threads.
    pub fn launch(
        &self,
        _: &UserKernel,
        _: &[Argument<'_>],
        _grid: [u32; 3],
        _group: [u32; 3],
        _shared: u32,
    ) -> Result<()> {
        Err(self.refuse("kernel"))
    }
}
