//! The signature of a plan, and the check that a command matches it.

use super::Check;
use crate::dtype::Dtype;
use core::ffi::c_void;
use ultramarine_abi::schema::{self, op};
use ultramarine_abi::{MAX_NDIM, TensorDesc, dlpack::DLDataType, ensure, layout};

/// A tensor, as described to `prepare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Desc {
    pub ndim: i32,
    pub dtype: DLDataType,
    pub contiguous: bool,
}

/// A plan's op and tensors.
#[derive(Debug)]
pub(super) struct Signature {
    /// `None` for a fused program.
    pub op: Option<u32>,
    /// The name of the op's code, such as `exp` for UNARY. Empty if the op has no codes.
    pub code: &'static str,
    pub inputs: Vec<Desc>,
    pub outputs: Vec<Desc>,
    pub scalars: u32,
    /// True if an output may use the memory of an input with the same layout.
    pub donates: bool,
}

impl Signature {
    /// Reads the arguments that the host passes to `prepare`.
    ///
    /// # Safety
    /// `inputs` and `outputs` are readable for the given numbers of descriptions.
    pub unsafe fn new(
        op: Option<u32>,
        scalars: u32,
        donates: bool,
        inputs: (*const TensorDesc, u32),
        outputs: (*const TensorDesc, u32),
    ) -> Result<Signature, String> {
        // SAFETY: by this function's contract.
        let (inputs, outputs) = unsafe { (descs(inputs, "input")?, descs(outputs, "output")?) };
        Ok(Signature { op, code: "", inputs, outputs, scalars, donates })
    }

    /// Returns the number of scalars that an op of the table takes.
    pub fn scalars_of(op: u32) -> u32 {
        schema::find(op).map_or(0, |row| row.scalars.len() as u32)
    }

    /// Returns true for an op whose output may overwrite an input, because it reads each element
    /// before it writes it, or because it updates in place.
    pub fn donates_of(op: u32) -> bool {
        let elementwise = [op::COPY, op::UNARY, op::BINARY, op::SELECT];
        elementwise.contains(&op) || schema::find(op).is_some_and(|row| row.shape.updates())
    }

    /// Adds the name of the code in an op's attributes.
    ///
    /// # Safety
    /// `attributes` is NULL or a struct that begins with its size.
    pub unsafe fn with_code(mut self, attributes: *const c_void) -> Signature {
        // SAFETY: by this function's contract. All attributes are integers. In attributes with a
        // code, the code follows the size.
        let words = unsafe { ultramarine_abi::read_sized(attributes.cast::<[u32; 2]>()) };
        let row = self.op.and_then(schema::find);
        let code = words.and_then(|[_, code]| row?.code(code));
        self.code = code.map_or("", |code| code.name);
        self
    }

    /// Describes the request for a plan in words.
    pub fn describe(&self) -> String {
        let tensor = |d: &Desc| {
            let strided = if d.contiguous { "" } else { ", strided" };
            format!("{} of rank {}{strided}", dtype_name(d.dtype), d.ndim)
        };
        let all = |descs: &[Desc]| descs.iter().map(tensor).collect::<Vec<_>>().join("; ");
        format!("{} ({}) -> ({})", self.full_name(), all(&self.inputs), all(&self.outputs))
    }

    /// Returns the op's name with the name of its code.
    pub fn full_name(&self) -> String {
        let gap = if self.code.is_empty() { "" } else { " " };
        format!("{}{gap}{}", self.name(), self.code)
    }

    /// Returns the op's name.
    pub fn name(&self) -> &'static str {
        match self.op {
            Some(op) => op::NAMES.get(op as usize).copied().unwrap_or("an unknown op"),
            None => "a fused program",
        }
    }

    pub fn all_contiguous(&self) -> bool {
        self.inputs.iter().all(|d| d.contiguous)
    }

    /// Checks that a command has the plan's numbers of tensors and scalars.
    pub fn counts(&self, inputs: u32, outputs: u32, scalars: u32) -> Check {
        let own = (self.inputs.len() as u32, self.outputs.len() as u32, self.scalars);
        if (inputs, outputs, scalars) == own {
            return Ok(());
        }
        Err(format!(
            "a command with {inputs} inputs, {outputs} outputs and {scalars} scalars for a plan of {} \
             with {}, {} and {}",
            self.name(),
            own.0,
            own.1,
            own.2
        ))
    }
}

/// Returns the name of a dtype, or DLPack's numbers for an unknown one.
pub(super) fn dtype_name(dtype: DLDataType) -> String {
    match Dtype::from_dl(dtype) {
        Some(known) => known.name().to_owned(),
        None => format!("({}, {} bits)", dtype.code, dtype.bits),
    }
}

/// # Safety
/// The pointer is readable for the given number of descriptions.
unsafe fn descs((first, n): (*const TensorDesc, u32), what: &str) -> Result<Vec<Desc>, String> {
    ensure!(n == 0 || !first.is_null(), "no {what} descriptions");
    let mut out = Vec::with_capacity(n as usize);
    for i in 0..n as usize {
        // SAFETY: by this function's contract.
        let d = unsafe { &*first.add(i) };
        if (d.size as usize) < size_of::<TensorDesc>() {
            return Err(format!("{what} {i}: its description says {} bytes", d.size));
        }
        ensure!((0..=MAX_NDIM as i32).contains(&d.ndim), "{what} {i} has {} dimensions", d.ndim);
        if d.layout != layout::CONTIGUOUS && d.layout != layout::STRIDED {
            return Err(format!("{what} {i} has layout {}", d.layout));
        }
        out.push(Desc { ndim: d.ndim, dtype: d.dtype, contiguous: d.layout == layout::CONTIGUOUS });
    }
    Ok(out)
}
