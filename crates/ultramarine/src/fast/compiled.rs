//! Kernels in compiled form: PTX, a cubin or SPIR-V.

use super::kernel::{Launch, validate_group};
use crate::backend::{Argument, Exec, KernelSource, Operand, show_languages};
use crate::error::{Error, Result, bail};
use crate::ops::rules::multi_output::{MultiOutputJvp, MultiOutputRules, MultiOutputVjp};
use crate::ops::{Attribute, Call, Cotangents, Draft, Op, OperationKey, Vmap, attributes};
use crate::sync::lock;
use crate::{
    array::Array, devices, dtype::Dtype, graph::names::interned, node::Value, placement,
    scalar::Scalar, shape::Shape,
};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, Weak};

/// The languages of compiled code.
pub(crate) const COMPILED: [&str; 3] = ["cubin", "ptx", "spirv"];

/// First bytes of ELF files, and of NVIDIA's archives that contain several of them.
const BINARIES: [&[u8]; 2] = [b"\x7fELF", b"\x50\xed\x55\xba"];
/// First bytes of little-endian SPIR-V.
const SPIRV: [u8; 4] = 0x0723_0203_u32.to_le_bytes();

/// Compiled code. Equal code shares one object while that object lives.
#[derive(Debug)]
struct Code {
    bytes: Box<[u8]>,
    /// The code's number, unique in the process.
    number: u64,
}

impl Code {
    fn of(bytes: &[u8]) -> Arc<Code> {
        #[derive(Default)]
        struct Known {
            all: HashMap<u64, Vec<Weak<Code>>>,
            made: u64,
        }
        static KNOWN: Mutex<Option<Known>> = Mutex::new(None);
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let mut known = lock(&KNOWN);
        let known = known.get_or_insert_default();
        let same = known.all.entry(hasher.finish()).or_default();
        same.retain(|code| code.strong_count() > 0);
        let mut alive = same.iter().filter_map(Weak::upgrade);
        if let Some(code) = alive.find(|code| *code.bytes == *bytes) {
            return code;
        }
        known.made += 1;
        let code = Arc::new(Code { bytes: bytes.into(), number: known.made });
        same.push(Arc::downgrade(&code));
        if known.made.is_multiple_of(256) {
            known.all.retain(|_, same| same.iter().any(|code| code.strong_count() > 0));
        }
        code
    }

    fn language(&self) -> &'static str {
        match &*self.bytes {
            bytes if bytes.starts_with(&SPIRV) => "spirv",
            bytes if BINARIES.iter().any(|first| bytes.starts_with(first)) => "cubin",
            _ => "ptx",
        }
    }
}

impl Attribute for Arc<Code> {
    fn encode(&self, key: &mut OperationKey) {
        self.number.encode(key);
    }

    #[cfg(test)]
    fn sample(choices: &mut crate::graph::tests::Choices) -> Self {
        Code::of(choices.pick(&[&b".version 9.0"[..], &b".version 8.0"[..]]))
    }
}

attributes! {
    /// A compiled kernel with all arguments of a call except arrays.
    #[derive(Clone, Debug)]
    struct Definition {
        name: &'static str,
        code: Arc<Code>,
        scalars: Vec<Scalar>,
        shared_memory: u32,
        ensure_row_contiguous: bool,
    }
}

attributes! {
    /// A call, as an operation.
    #[derive(Clone, Debug)]
    struct CompiledCall {
        definition: Definition,
        launch: Launch,
    }
}

/// A kernel in compiled code. PTX, a cubin, or an archive of several ("fatbin") runs on devices with the languages
/// `ptx` and `cubin`; SPIR-V runs on devices with `spirv`.
///
/// Its parameters are the inputs, the outputs and the scalars, in this order. On CUDA they are addresses and values. On
/// Vulkan they are bindings of descriptor set 0: storage buffers, and a uniform buffer for each scalar. As a
/// [`Kernel`], it has no derivatives and no batching rule.
///
/// [`Kernel`]: super::Kernel
///
/// # Example
/// ```
/// use ultramarine::{Array, Dtype, fast::{CompiledKernel, Launch}};
///
/// let ptx = b".version 8.0 ..."; // of a compiler
/// let kernel = CompiledKernel::new("twice", ptx)?.scalar(3);
/// let x = Array::from_slice(&[1.0f32, 2.0, 3.0], &[3])?;
/// let launch = Launch::new([3, 1, 1], [64, 1, 1]).output(&[3], Dtype::Float32);
/// // The CPU takes no kernels.
/// assert!(kernel.call(&[&x], &launch).unwrap_err().to_string().contains("ptx"));
/// # Ok::<(), ultramarine::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CompiledKernel(Definition);

impl CompiledKernel {
    /// Makes a kernel from compiled code. `name` is the function's name in the code. The name is mangled unless the
    /// source declared the function `extern "C"`.
    ///
    /// # Errors
    /// [`Error::Value`] for an empty name or no code.
    pub fn new(name: &str, code: &[u8]) -> Result<CompiledKernel> {
        const OP: &str = "precompiled_kernel";
        if name.is_empty() || name.contains('\0') {
            bail!(
                OP,
                "The kernel's name `{name}` is empty or has a NUL. Pass the name of a function in the code."
            );
        }
        if code.is_empty() {
            bail!(OP, "The kernel {name} has no code. Pass PTX, a cubin or SPIR-V.");
        }
        Ok(CompiledKernel(Definition {
            name: interned(name),
            code: Code::of(code),
            scalars: Vec::new(),
            shared_memory: 0,
            ensure_row_contiguous: false,
        }))
    }

    /// Adds a scalar parameter, which is passed by value: a bool of one byte, an int32 or a float32. The kernel gets
    /// its scalars in the order of these calls, after the inputs and the outputs.
    pub fn scalar(self, value: impl Into<ScalarArgument>) -> CompiledKernel {
        self.scalar_of(value.into().0)
    }

    /// Adds a scalar parameter as [`CompiledKernel::scalar`] does, of any dtype. It has the size of one element of the
    /// dtype.
    pub fn scalar_of(mut self, value: Scalar) -> CompiledKernel {
        self.0.scalars.push(value);
        self
    }

    /// Sets the number of bytes of dynamic shared memory per group; 0 by default.
    pub fn shared_memory(mut self, bytes: u32) -> CompiledKernel {
        self.0.shared_memory = bytes;
        self
    }

    /// Sets whether inputs that are not row-major without gaps are copied; by default they are not. Without the copies,
    /// the kernel gets the address of the first element, whatever the strides are.
    pub fn ensure_row_contiguous(mut self, ensure: bool) -> CompiledKernel {
        self.0.ensure_row_contiguous = ensure;
        self
    }

    /// Calls the kernel and returns the outputs: lazy arrays. It runs on the device of its inputs,
    /// as an operation does.
    ///
    /// If the grid is not a multiple of the group, threads beyond the grid also run. The kernel has to return in these
    /// threads.
    ///
    /// # Errors
    /// [`Error::Runtime`] on a device that does not accept such code. [`Error::Value`] without outputs, for a group
    /// without threads, or with template arguments. If the driver rejects the code, the error comes when an output is
    /// needed.
    pub fn call(&self, inputs: &[&Array], launch: &Launch) -> Result<Vec<Array>> {
        let (op, language) = (self.0.name, self.0.code.language());
        let made = CompiledCall { definition: self.0.clone(), launch: launch.clone() };
        let outputs = match launch.outputs.is_empty() {
            true => Vec::new(),
            false => Array::multi_output(made, inputs, launch.outputs.iter().cloned().collect())?,
        };
        let place = match outputs.first() {
            Some(output) => output.node().place,
            None => placement::place(&Op::GIVEN, inputs)?,
        };
        let device = devices::get(place.stream.device)?;
        if !device.languages().iter().any(|l| l == language) {
            let text = format!(
                "The kernel is compiled code ({language}), but {} (backend {}) takes: {}. Compile it for one of these.",
                device.device,
                device.backend,
                show_languages(device.languages())
            );
            return Err(Error::runtime(op, text));
        }
        if outputs.is_empty() {
            bail!(op, "Must specify at least one output. Pass its shape and dtype.");
        }
        if let Some((name, _)) = launch.template.first() {
            bail!(op, "Compiled code has no template arguments, but got `{name}`. Leave them out.");
        }
        validate_group(op, launch)?;
        Ok(outputs)
    }
}

/// A scalar parameter of [`CompiledKernel::scalar`], made of a `bool`, an `i32` or an `f32`.
#[derive(Clone, Copy, Debug)]
pub struct ScalarArgument(Scalar);

impl From<bool> for ScalarArgument {
    fn from(value: bool) -> Self {
        ScalarArgument(Scalar::from_i64(Dtype::Bool, value.into()))
    }
}

impl From<i32> for ScalarArgument {
    fn from(value: i32) -> Self {
        ScalarArgument(Scalar::from_i64(Dtype::Int32, value.into()))
    }
}

impl From<f32> for ScalarArgument {
    fn from(value: f32) -> Self {
        ScalarArgument(Scalar::from_f64(Dtype::Float32, value.into()))
    }
}

impl CompiledCall {
    fn refuse<T>(&self, rule: &str) -> Result<T> {
        super::no_rule(self.definition.name, rule)
    }
}

impl MultiOutputRules for CompiledCall {
    fn name(&self) -> &'static str {
        self.definition.name
    }

    fn admits(&self, _: &Draft<'_>) -> bool {
        true
    }

    fn eval(&self, exec: &Exec, call: &Call<'_>, results: &[(Shape, Dtype)]) -> Result<Vec<Value>> {
        let (d, launch) = (&self.definition, &self.launch);
        let outputs = super::op::outputs(exec, results, launch.init_value)?;
        if launch.grid.contains(&0) {
            return Ok(outputs);
        }
        let inputs = (0..call.inputs.len()).map(|i| {
            let operand = call.operand(i);
            let copy = if d.ensure_row_contiguous { exec.contiguous(&operand)? } else { None };
            Ok(copy.unwrap_or_else(|| operand.value.clone()))
        });
        let inputs = inputs.collect::<Result<Vec<_>>>()?;
        let read = (0..inputs.len())
            .map(|i| Argument::Read(Operand { value: &inputs[i], ..call.operand(i) }));
        let written = outputs.iter().zip(results).map(|(value, (shape, dtype))| {
            Argument::Write(Operand { value, shape, dtype: *dtype })
        });
        let scalars = d.scalars.iter().map(|s| Argument::Scalar(*s));
        let arguments: Vec<Argument<'_>> = read.chain(written).chain(scalars).collect();
        let kernel = exec.user_kernel(&KernelSource {
            op: d.name,
            language: d.code.language(),
            code: Some(&d.code.bytes),
            entry: d.name,
            ..KernelSource::default()
        })?;
        // The code of SPIR-V itself sets the group size.
        let group = if d.code.language() == "spirv" { launch.group } else { launch.real_group() };
        exec.launch(&kernel, &arguments, launch.groups(group), group, d.shared_memory)?;
        drop(arguments);
        Ok(outputs)
    }

    fn vjp(&self, _: &MultiOutputVjp<'_>) -> Result<Cotangents> {
        self.refuse("vjp")
    }

    fn jvp(&self, _: &MultiOutputJvp<'_>) -> Result<Vec<Option<Array>>> {
        self.refuse("jvp")
    }

    fn vmap(&self, _: &Vmap<'_>) -> Result<Vec<(Array, Option<usize>)>> {
        self.refuse("vmap")
    }
}

#[cfg(test)]
mod tests {
    use super::{Code, CompiledCall};
    use crate::graph::tests::check_samples;
    use std::sync::Arc;

    #[test]
    fn calls_are_one_operation_where_code_and_arguments_are_equal() {
        check_samples::<CompiledCall>();
    }

    #[test]
    fn equal_code_is_one_and_says_its_language() {
        let [a, b] = [(); 2].map(|()| Code::of(b".version 8.0\n.target sm_90"));
        assert!(Arc::ptr_eq(&a, &b));
        assert_eq!(a.language(), "ptx");
        assert_eq!(Code::of(b"\x7fELF\0\0").language(), "cubin");
        assert_eq!(Code::of(b"\x50\xed\x55\xba\0").language(), "cubin");
        assert_eq!(Code::of(b"\x03\x02\x23\x07\0\0").language(), "spirv");
    }
}
