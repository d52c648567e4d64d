//! Evaluations on devices that take kernels.

use crate::{
    dtype::{Dtype, Element},
    error::{Error, Result},
    host::{self, asked, lent},
    tensor::{Tensor, layout, structs},
};
use std::ffi::{CStr, CString, c_void};
use std::marker::PhantomData;
use std::ptr::{null, null_mut};
use ultramarine_abi::extension::{
    self as raw, Binding, Dispatch, EvalCall, KernelHandle, KernelProperties, KernelText, bind,
};

/// An evaluation on a device: its operands, its outputs, and an encoder for launches of kernels.
///
/// Kernels are text in a language that the device takes, such as `opencl-c`, `cuda-c`, `msl` or `wgsl`; the language's
/// prelude (docs/kernels.md) stands before them. Each is compiled once for a device.
///
/// ```
/// use ultramarine_extension::{GpuCall, Result};
///
/// const SOURCES: &[(&str, &str)] = &[(
///     "opencl-c",
///     "__kernel void twice(__global const float *x, __global float *y, uint n) {
///          size_t i = get_global_id(0);
///          if (i < n) y[i] = 2 * x[i];
///      }",
/// )];
///
/// fn eval_gpu(call: &mut GpuCall<'_>) -> Result<()> {
///     let (language, source) = call.pick("twice", SOURCES)?;
///     call.contiguous(0)?;
///     let n = call.output(0)?.len() as u32;
///     let kernel = call.kernel(language, source, "twice").build()?;
///     let group = call.properties(&kernel)?.max_group.clamp(1, 256);
///     let launch = call.launch(&kernel).input(0).output(0).scalar(n);
///     launch.grid([n.div_ceil(group), 1, 1]).group([group, 1, 1]).run()
/// }
/// ```
pub struct GpuCall<'a> {
    inputs: Vec<GpuTensor>,
    outputs: Vec<GpuTensor>,
    /// True for outputs that have no memory yet.
    bare: Vec<bool>,
    languages: String,
    host_call: *mut c_void,
    life: PhantomData<fn(&'a ()) -> &'a ()>,
}

/// An operand or output in the memory of a device: its shape, strides and dtype. The elements
/// themselves are accessible to kernels only.
#[derive(Clone, Debug)]
pub struct GpuTensor {
    tensor: Tensor,
}

layout!(impl GpuTensor);

impl GpuTensor {
    /// Returns the dtype.
    ///
    /// # Errors
    /// An [`Error`] if the dtype only stores numbers.
    pub fn dtype(&self) -> Result<Dtype> {
        self.tensor.dtype()
    }

    /// Returns true if the elements are row-major without gaps.
    pub fn is_row_contiguous(&self) -> bool {
        self.tensor.is_row_contiguous()
    }

    /// Returns the sizes as constants of a kernel ([`Launch::constants`]). A tensor without axes
    /// gives one size of 1, so that the argument is never empty.
    pub fn shape_i32(&self) -> Vec<i32> {
        ints(self.tensor.shape.iter().map(|&n| n as i32), 1)
    }

    /// Returns the sizes as [`GpuTensor::shape_i32`] does, in 64 bits.
    pub fn shape_i64(&self) -> Vec<i64> {
        ints(self.tensor.shape.iter().map(|&n| n as i64), 1)
    }

    /// Returns the strides in elements as constants of a kernel. A tensor without axes gives one
    /// stride of 0.
    pub fn strides_i32(&self) -> Vec<i32> {
        ints(self.tensor.strides.iter().map(|&n| n as i32), 0)
    }

    /// Returns the strides as [`GpuTensor::strides_i32`] does, in 64 bits.
    pub fn strides_i64(&self) -> Vec<i64> {
        ints(self.tensor.strides.iter().map(|&n| n as i64), 0)
    }
}

fn ints<T>(all: impl Iterator<Item = T>, otherwise: T) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    if all.is_empty() {
        all.push(otherwise);
    }
    all
}

/// A compiled kernel, made by [`KernelBuilder::build`] and launched by [`GpuCall::launch`].
#[derive(Clone, Copy, Debug)]
pub struct Kernel<'a> {
    handle: *mut KernelHandle,
    life: PhantomData<&'a ()>,
}

/// Memory of the device for intermediate values, made by [`GpuCall::temporary`]. It is released
/// once the launches that use it are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Temporary(u32);

impl<'a> GpuCall<'a> {
    /// Wraps a call. `allocates` is true if the outputs come without memory.
    ///
    /// # Safety
    /// The call obeys the contract, and is valid for `'a`.
    pub(crate) unsafe fn new(call: &EvalCall, allocates: bool) -> Result<Self> {
        let stride = Some(call.view_stride);
        // SAFETY: as many views as the call says; the languages are NUL-terminated.
        unsafe {
            let one = |v| GpuTensor { tensor: Tensor::of(v) };
            let languages = match call.languages.is_null() {
                true => String::new(),
                false => CStr::from_ptr(call.languages).to_string_lossy().into_owned(),
            };
            Ok(Self {
                inputs: structs(call.inputs, call.n_inputs, stride)?.iter().map(one).collect(),
                outputs: structs(call.outputs, call.n_outputs, stride)?.iter().map(one).collect(),
                bare: vec![allocates; call.n_outputs as usize],
                languages,
                host_call: call.host_call,
                life: PhantomData,
            })
        }
    }

    /// Returns the number of operands.
    pub fn n_inputs(&self) -> usize {
        self.inputs.len()
    }

    /// Returns the number of outputs.
    pub fn n_outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Returns an operand.
    ///
    /// # Errors
    /// An [`Error`] if there is no such operand.
    pub fn input(&self, i: usize) -> Result<&GpuTensor> {
        self.inputs.get(i).ok_or_else(|| {
            Error::runtime(format!("There is no input {i}. Inputs are numbered from 0."))
        })
    }

    /// Returns an output, whose elements are row-major. If the primitive
    /// [`allocates`](crate::Primitive::allocates), the first launch that names the output makes
    /// memory for it.
    ///
    /// # Errors
    /// An [`Error`] if there is no such output.
    pub fn output(&self, i: usize) -> Result<&GpuTensor> {
        self.outputs.get(i).ok_or_else(|| {
            Error::runtime(format!("There is no output {i}. Outputs are numbered from 0."))
        })
    }

    /// Returns the languages of kernels that the device takes, in the order of its preference.
    pub fn languages(&self) -> impl Iterator<Item = &str> {
        self.languages.split_ascii_whitespace()
    }

    /// Returns the first of these sources (language and text) whose language the device takes.
    ///
    /// # Errors
    /// An error if the device takes none of them. It lists the languages of both sides. The host
    /// then tries `compose`.
    pub fn pick<'s>(
        &self,
        primitive: &str,
        sources: &[(&'s str, &'s str)],
    ) -> Result<(&'s str, &'s str)> {
        let known = |language: &str| self.languages().any(|l| l == language);
        sources.iter().copied().find(|(language, _)| known(language)).ok_or_else(|| {
            let has: Vec<_> = sources.iter().map(|s| s.0).collect();
            let takes: Vec<_> = self.languages().collect();
            Error::unsupported(format!(
                "[{primitive}] It has kernels in {}, and the device takes {}. Run it on the CPU.",
                has.join(", "),
                if takes.is_empty() { "none".into() } else { takes.join(", ") }
            ))
        })
    }

    /// Begins a kernel from compiled code that the extension ships, with this entry: PTX (language
    /// `ptx`), a cubin or an archive of several (`cubin`), or SPIR-V (`spirv`).
    /// [`GpuCall::languages`] lists the languages that the device takes.
    pub fn compiled_kernel<'s>(
        &mut self,
        language: &'s str,
        code: &'s [u8],
        entry: &'s str,
    ) -> KernelBuilder<'_, 'a, 's> {
        let (template, options) = (Vec::new(), String::new());
        KernelBuilder { call: self, language, source: code, entry, template, options, code: true }
    }

    /// Begins a kernel: the function `entry` of a source in `language`. [`KernelBuilder::build`]
    /// compiles it.
    pub fn kernel<'s>(
        &mut self,
        language: &'s str,
        source: &'s str,
        entry: &'s str,
    ) -> KernelBuilder<'_, 'a, 's> {
        let (template, options, source) = (Vec::new(), String::new(), source.as_bytes());
        KernelBuilder { call: self, language, source, entry, template, options, code: false }
    }

    /// Returns the properties of a kernel on the device.
    ///
    /// # Errors
    /// An [`Error`] if the device fails.
    pub fn properties(&self, kernel: &Kernel<'a>) -> Result<KernelProperties> {
        let ask = lent!(kernel_properties);
        let mut properties =
            KernelProperties { size: size_of::<KernelProperties>() as u32, ..Default::default() };
        // SAFETY: the host's function with the call's pointer and its kernel, and a struct of that size.
        asked("kernel_properties", |error| unsafe {
            ask(self.host_call, kernel.handle, &mut properties, error)
        })?;
        Ok(properties)
    }

    /// Allocates memory of the device, which is released when the launches are done.
    ///
    /// # Errors
    /// An [`Error`] if there is no memory.
    pub fn temporary(&mut self, bytes: usize) -> Result<Temporary> {
        let (make, mut number) = (lent!(temporary), 0);
        // SAFETY: the host's function with the call's pointer; the place is writable.
        asked("temporary", |error| unsafe {
            make(self.host_call, bytes as u64, &mut number, error)
        })?;
        Ok(Temporary(number))
    }

    /// Makes an operand row-major for the following launches, unless it is already.
    ///
    /// # Errors
    /// An [`Error`] if there is no such operand, or if the device fails.
    pub fn contiguous(&mut self, i: usize) -> Result<()> {
        if self.input(i)?.is_row_contiguous() {
            return Ok(());
        }
        let make = lent!(contiguous);
        let mut view = raw::View {
            size: size_of::<raw::View>() as u32,
            flags: 0,
            data: null_mut(),
            shape: null(),
            strides: null(),
            elements: 0,
            ndim: 0,
            dtype: self.input(i)?.tensor.dl,
        };
        // SAFETY: the host's function with the call's pointer and a struct of that size.
        asked("contiguous", |error| unsafe { make(self.host_call, i as u32, &mut view, error) })?;
        // SAFETY: a view by contract.
        self.inputs[i] = GpuTensor { tensor: unsafe { Tensor::of(&view) } };
        Ok(())
    }

    /// Allocates memory for an output that has none yet.
    fn allocate(&mut self, i: usize) -> Result<()> {
        if !self.bare.get(i).is_some_and(|&bare| bare) {
            return Ok(());
        }
        let give = lent!(allocate);
        if !self.output(i)?.is_empty() {
            // SAFETY: the host's function with the call's pointer; row-major strides, and no view is asked for.
            asked("allocate", |error| unsafe {
                give(self.host_call, i as u32, null(), null_mut(), error)
            })?;
        }
        self.bare[i] = false;
        Ok(())
    }

    /// Begins a launch of a kernel. Add its arguments in the order of the kernel's parameters, then
    /// call [`Launch::run`].
    pub fn launch<'s>(&mut self, kernel: &Kernel<'a>) -> Launch<'_, 'a, 's> {
        Launch {
            call: self,
            kernel: *kernel,
            bindings: Vec::new(),
            grid: [1; 3],
            group: [1; 3],
            shared: 0,
            failed: None,
            life: PhantomData,
        }
    }
}

/// Returns the text that the host puts before kernels of a language.
///
/// # Errors
/// An [`Error`] if the host has none for the language.
pub fn prelude(language: &str) -> Result<String> {
    let (ask, host) = (lent!(prelude), host::here()?.host);
    let missing = || {
        Error::value(format!(
            "[prelude] There is no prelude for \"{language}\". Use a language of the device."
        ))
    };
    let name = CString::new(language).map_err(|_| missing())?;
    // SAFETY: the host's function with the host's pointer; what it gives is NUL-terminated.
    unsafe {
        let text = ask(host, name.as_ptr());
        if text.is_null() {
            return Err(missing());
        }
        Ok(CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}

/// A kernel to be compiled, from [`GpuCall::kernel`] or [`GpuCall::compiled_kernel`].
pub struct KernelBuilder<'c, 'a, 's> {
    call: &'c mut GpuCall<'a>,
    language: &'s str,
    source: &'s [u8],
    entry: &'s str,
    template: Vec<String>,
    options: String,
    /// True if the source is compiled code.
    code: bool,
}

impl<'a> KernelBuilder<'_, 'a, '_> {
    /// Adds template arguments, as text.
    pub fn template(mut self, arguments: &[&str]) -> Self {
        self.template.extend(arguments.iter().map(|&a| a.to_owned()));
        self
    }

    /// Adds options for the compiler, such as `-DT=float`.
    pub fn options(mut self, options: &str) -> Self {
        if !self.options.is_empty() {
            self.options.push(' ');
        }
        self.options.push_str(options);
        self
    }

    /// Compiles the kernel, unless it was compiled before.
    ///
    /// # Errors
    /// An [`Error`] if the kernel does not compile, with the compiler's log and the source's lines;
    /// and if the device does not take the language.
    pub fn build(self) -> Result<Kernel<'a>> {
        let make = lent!(kernel);
        let text = |text: &str| {
            CString::new(text).map_err(|_| {
                Error::value(format!("[{}] A string has a NUL in it. Remove it.", self.entry))
            })
        };
        let template = self.template.iter().map(|t| text(t)).collect::<Result<Vec<_>>>()?;
        let template: Vec<_> = template.iter().map(|t| t.as_ptr()).collect();
        let language = text(self.language)?;
        let zero =
            |_| Error::value(format!("[{}] A string has a NUL in it. Remove it.", self.entry));
        // Hosts of contract 1.0 only know NUL-terminated texts.
        let (held, source, source_bytes) = match self.code {
            true if host::here()?.minor == 0 => return Err(Error::absent("compiled kernels")),
            true => (None, self.source.as_ptr().cast(), self.source.len() as u64),
            false => {
                let held = CString::new(self.source).map_err(zero)?;
                let source = held.as_ptr();
                (Some(held), source, 0)
            }
        };
        let (entry, options) = (text(self.entry)?, text(&self.options)?);
        let text = KernelText {
            size: size_of::<KernelText>() as u32,
            n_template_arguments: template.len() as u32,
            language: language.as_ptr(),
            source,
            entry: entry.as_ptr(),
            template_arguments: if template.is_empty() { null() } else { template.as_ptr() },
            options: if self.options.is_empty() { null() } else { options.as_ptr() },
            source_bytes,
        };
        let mut handle = null_mut();
        // SAFETY: the host's function with the call's pointer; texts and the place are there.
        asked("kernel", |error| unsafe { make(self.call.host_call, &text, &mut handle, error) })?;
        drop(held);
        Ok(Kernel { handle, life: PhantomData })
    }
}

/// A launch of a kernel, from [`GpuCall::launch`]. [`Launch::run`] submits it to the stream.
pub struct Launch<'c, 'a, 's> {
    call: &'c mut GpuCall<'a>,
    kernel: Kernel<'a>,
    bindings: Vec<Binding>,
    grid: [u32; 3],
    group: [u32; 3],
    shared: u32,
    failed: Option<Error>,
    life: PhantomData<&'s [u8]>,
}

impl<'s> Launch<'_, '_, 's> {
    fn bound(mut self, kind: u32, index: usize, there: usize) -> Self {
        if index >= there {
            let text = format!(
                "A launch names argument {index}, and there are {there}. Use a smaller index."
            );
            self.failed.get_or_insert(Error::runtime(text));
        }
        self.bindings.push(Binding { kind, index: index as u32, ..empty_binding() });
        self
    }

    /// Adds operand `i` as an argument.
    pub fn input(self, i: usize) -> Self {
        let n = self.call.inputs.len();
        self.bound(bind::INPUT, i, n)
    }

    /// Adds output `i` as an argument, which the kernel writes.
    pub fn output(self, i: usize) -> Self {
        let n = self.call.outputs.len();
        self.bound(bind::OUTPUT, i, n)
    }

    /// Adds a temporary as an argument, which the kernel may write.
    pub fn temporary(self, temporary: Temporary) -> Self {
        let index = temporary.0 as usize;
        self.bound(bind::TEMPORARY, index, index + 1)
    }

    /// Adds a number as an argument, by value.
    pub fn scalar<T: Element>(self, value: T) -> Self {
        self.scalar_bits(T::DTYPE, value.bits())
    }

    /// Adds a number as an argument, by value, in a dtype that is chosen at run time. It is
    /// converted as [`Dtype::bits_of`] does.
    pub fn scalar_of(self, dtype: Dtype, value: f64) -> Self {
        self.scalar_bits(dtype, dtype.bits_of(value))
    }

    fn scalar_bits(mut self, dtype: Dtype, scalar: [u64; 2]) -> Self {
        let dtype = dtype.to_dl();
        self.bindings.push(Binding { kind: bind::SCALAR, dtype, scalar, ..empty_binding() });
        self
    }

    /// Adds a read-only array as an argument: sizes, strides, tables.
    pub fn constants<T: Element>(mut self, values: &'s [T]) -> Self {
        let (constants, bytes) = (values.as_ptr().cast(), size_of_val(values) as u64);
        self.bindings.push(Binding { kind: bind::CONSTANTS, constants, bytes, ..empty_binding() });
        self
    }

    /// Sets the number of groups along x, y and z; 1 by default.
    pub fn grid(mut self, groups: [u32; 3]) -> Self {
        self.grid = groups;
        self
    }

    /// Sets the number of threads of a group along x, y and z; 1 by default.
    pub fn group(mut self, threads: [u32; 3]) -> Self {
        self.group = threads;
        self
    }

    /// Sets the bytes of a group's dynamic shared memory; 0 by default.
    pub fn shared(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    /// Submits the launch to the stream.
    ///
    /// # Errors
    /// An [`Error`] if an argument does not exist, if the device refuses the grid, or if the device
    /// fails.
    pub fn run(self) -> Result<()> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        for binding in self.bindings.iter().filter(|b| b.kind == bind::OUTPUT) {
            self.call.allocate(binding.index as usize)?;
        }
        let launch = lent!(launch);
        let dispatch = Dispatch {
            size: size_of::<Dispatch>() as u32,
            n_bindings: self.bindings.len() as u32,
            bindings: self.bindings.as_ptr(),
            binding_stride: size_of::<Binding>() as u32,
            shared_bytes: self.shared,
            grid: self.grid,
            group: self.group,
        };
        // SAFETY: the host's function with the call's pointer and its kernel; bindings and constants are there.
        asked("launch", |error| unsafe {
            launch(self.call.host_call, self.kernel.handle, &dispatch, error)
        })
    }
}

fn empty_binding() -> Binding {
    Binding {
        size: size_of::<Binding>() as u32,
        kind: bind::INPUT,
        index: 0,
        dtype: Dtype::Bool.to_dl(),
        scalar: [0; 2],
        constants: null(),
        bytes: 0,
    }
}
