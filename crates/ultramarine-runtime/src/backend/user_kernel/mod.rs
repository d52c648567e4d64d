//! Users' kernels, by the backend's interface `ultramarine.kernel/1`. They are compiled or loaded
//! once for each device, and found again by their content.

mod cache;
mod source;

use super::{DeviceState, Exec, Operand, call, pending_free, shutdown, transfer};
use crate::error::{Error, Result, bail};
use crate::{
    backend::buffer::BufferRef, backend::value::Value, dtype::Dtype, host_table, scalar::Scalar,
    shape::Strides, sync::lock,
};
use cache::Bounded;
use core::ffi::c_void;
use smallvec::SmallVec;
use source::FullSource;
use std::ffi::CString;
use std::sync::{Arc, Mutex, OnceLock};
use ultramarine_abi::Tensor;
use ultramarine_abi::interface::kernel::{self as abi, KernelInterface, argument};

/// The most kernels kept for each device.
const MOST_KERNELS: usize = 512;
/// The most arrays of constants kept for each device, and the most bytes of an array that is kept.
const MOST_CONSTANTS: usize = 1024;
const MOST_BYTES: usize = 4096;

/// The code of a kernel. The compiler gets `head`, `source` and `tail`.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelSource<'a> {
    /// The name of the operation. Errors name it.
    pub op: &'a str,
    pub language: &'a str,
    /// The source before the user's source: prelude and signature.
    pub head: &'a str,
    /// The user's source. Errors show its lines, and count them from one.
    pub source: &'a str,
    /// The source after the user's source.
    pub tail: &'a str,
    /// Compiled code instead of a source.
    pub code: Option<&'a [u8]>,
    pub entry: &'a str,
    pub template_arguments: &'a [String],
    pub options: Option<&'a str>,
}

impl KernelSource<'_> {
    /// Returns the whole source that is compiled.
    pub fn whole(&self) -> String {
        FullSource::new(self).whole
    }

    /// Returns the key of the kernel. Equal keys mean equal kernels.
    fn key(&self, full: &[u8]) -> Box<[u8]> {
        let mut key = Vec::with_capacity(full.len() + self.entry.len() + 32);
        key.extend_from_slice(full);
        let arguments = self.template_arguments.iter().map(String::as_str);
        for part in [self.language, self.entry].into_iter().chain(self.options).chain(arguments) {
            key.push(0);
            key.extend_from_slice(part.as_bytes());
        }
        // Mark options and arguments differently, so that one cannot be mistaken for the other.
        key.extend_from_slice(if self.options.is_some() { b"\0o" } else { b"\0" });
        key.into_boxed_slice()
    }
}

/// Properties of a compiled kernel on a device; 0 means unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelProperties {
    /// The most threads of a group.
    pub max_group: u32,
    /// Group sizes that suit the device are multiples of this.
    pub group_multiple: u32,
    /// The bytes of shared memory of a group.
    pub max_shared: u32,
}

/// An argument of a launch of a [`UserKernel`].
pub enum Argument<'a> {
    Read(Operand<'a>),
    Write(Operand<'a>),
    Scalar(Scalar),
    /// A read-only array of bytes in the device's memory.
    Constants(&'a [u8]),
}

/// A backend's handle of a kernel, and the function that frees it.
pub struct Compiled {
    device: &'static DeviceState,
    interface: KernelInterface,
    raw: *mut c_void,
}

// SAFETY: any thread may query and free kernels; launches hold the stream's lock.
unsafe impl Send for Compiled {}
// SAFETY: as above.
unsafe impl Sync for Compiled {}

impl Compiled {
    /// Releases the kernel. No launch uses it any more.
    pub fn release(self) {
        if let Some(release) = self.interface.release {
            // SAFETY: this device's backend made the kernel, it is released once, and no launch
            // uses it.
            unsafe { release(self.device.handle, self.raw) };
        }
    }
}

/// A compiled kernel of a user on one device. It is cached by its content.
pub struct UserKernel {
    /// `None` after this was dropped.
    compiled: Option<Compiled>,
    properties: OnceLock<KernelProperties>,
}

impl std::fmt::Debug for UserKernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UserKernel").field("properties", &self.properties).finish_non_exhaustive()
    }
}

impl Drop for UserKernel {
    fn drop(&mut self) {
        if let Some(compiled) = self.compiled.take() {
            pending_free::free_kernel(compiled.device, compiled);
        }
    }
}

/// Constants in a device's memory, with their lengths in bytes.
type Uploaded = SmallVec<[(Value, [usize; 1]); 8]>;

/// A place for a kernel. The first thread that needs the kernel compiles it, and other threads
/// wait. Empty after a failure.
type Slot = Arc<Mutex<Option<Arc<UserKernel>>>>;

/// A device's state for users' kernels.
pub(super) struct UserKernels {
    interface: OnceLock<Option<KernelInterface>>,
    languages: OnceLock<Vec<String>>,
    kernels: Mutex<Bounded<Box<[u8]>, Slot>>,
    constants: Mutex<Bounded<Box<[u8]>, BufferRef>>,
}

impl Default for UserKernels {
    fn default() -> Self {
        UserKernels {
            interface: OnceLock::new(),
            languages: OnceLock::new(),
            kernels: Mutex::new(Bounded::new(MOST_KERNELS)),
            constants: Mutex::new(Bounded::new(MOST_CONSTANTS)),
        }
    }
}

impl DeviceState {
    /// Returns the kernel languages that the device takes, the best first.
    pub fn languages(&'static self) -> &'static [String] {
        self.user_kernels.languages.get_or_init(|| {
            if self.kernel_interface().is_none() {
                return Vec::new();
            }
            let named = ultramarine_abi::inline_str(&self.info.kernel_languages);
            named.split_whitespace().map(str::to_owned).collect()
        })
    }

    fn kernel_interface(&self) -> Option<&KernelInterface> {
        let find = || {
            let found: KernelInterface = self.interface(abi::INTERFACE)?;
            (found.compile.is_some() && found.launch.is_some()).then_some(found)
        };
        self.user_kernels.interface.get_or_init(find).as_ref()
    }
}

impl DeviceState {
    /// Returns memory of the device with these bytes in it. Small arrays are cached by content,
    /// because the same shapes and strides recur.
    fn constants(&'static self, bytes: &[u8]) -> Result<BufferRef> {
        if bytes.len() > MOST_BYTES {
            return transfer::bytes_to_device(bytes, self);
        }
        if let Some(known) = lock(&self.user_kernels.constants).get(bytes) {
            return Ok(known);
        }
        let made = transfer::bytes_to_device(bytes, self)?;
        let gone = lock(&self.user_kernels.constants).insert(bytes.into(), made.clone());
        drop(gone);
        Ok(made)
    }
}

/// The code that is passed to a backend.
enum Full<'a> {
    Source(FullSource),
    Code(&'a [u8]),
}

impl<'a> Full<'a> {
    fn of(source: &KernelSource<'a>) -> Full<'a> {
        match source.code {
            Some(code) => Full::Code(code),
            None => Full::Source(FullSource::new(source)),
        }
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Full::Source(full) => full.whole.as_bytes(),
            Full::Code(code) => code,
        }
    }
}

/// Makes the backend compile a kernel.
fn compile(
    device: &'static DeviceState,
    interface: KernelInterface,
    source: &KernelSource<'_>,
    full: &Full<'_>,
) -> Result<Arc<UserKernel>> {
    let op = source.op;
    let string = |what: &str, text: &str| {
        let zero =
            |_| Error::value(op, format!("The {what} of the kernel has a NUL byte. Remove it."));
        CString::new(text).map_err(zero)
    };
    let (language, entry) = (string("language", source.language)?, string("name", source.entry)?);
    let options = source.options.map(|o| string("options", o)).transpose()?;
    let arguments = source.template_arguments.iter().map(|a| string("template arguments", a));
    let arguments = arguments.collect::<Result<Vec<_>>>()?;
    let pointers: Vec<_> = arguments.iter().map(|a| a.as_ptr()).collect();
    let given = abi::KernelSource {
        size: size_of::<abi::KernelSource>() as u32,
        n_template_arguments: pointers.len() as u32,
        language: language.as_ptr(),
        source: full.bytes().as_ptr().cast(),
        source_bytes: full.bytes().len() as u64,
        entry: entry.as_ptr(),
        template_arguments: pointers.as_ptr(),
        options: options.as_ref().map_or(std::ptr::null(), |o| o.as_ptr()),
    };
    let Some(make) = interface.compile else { return Err(device.lacks("compile")) };
    let (mut raw, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: the source and everything it points at are valid for the call, and the pointers are
    // valid for writing the answers.
    let code = unsafe { make(device.handle, &given, &mut raw, &mut error) };
    host_table::check("compile", code, error).map_err(|e| match e {
        Error::Memory(_) => e,
        e => {
            let (log, on) = (e.to_string(), device.device);
            let (language, backend) = (source.language, &device.backend);
            let text = match full {
                Full::Source(full) => {
                    let message = full.explain(&log, source.source);
                    format!(
                        "The kernel does not compile as {language} on {on} (backend {backend}):\n{message}"
                    )
                }
                Full::Code(code) => {
                    let bytes = code.len();
                    format!(
                        "{bytes} bytes of {language} cannot be used on {on} (backend {backend}): {log}"
                    )
                }
            };
            Error::runtime(op, text)
        }
    })?;
    let compiled = Some(Compiled { device, interface, raw });
    Ok(Arc::new(UserKernel { compiled, properties: OnceLock::new() }))
}

/// Checks that the kernel can run with groups of this size.
fn check_group(
    op: &str,
    device: &DeviceState,
    properties: &KernelProperties,
    group: [u32; 3],
    shared: u32,
) -> Result<()> {
    let [x, y, z] = group;
    if group.contains(&0) {
        return Err(Error::value(
            op,
            format!("A group of ({x}, {y}, {z}) has no threads. Pass sizes of at least 1."),
        ));
    }
    let threads = group.iter().fold(1u64, |n, g| n.saturating_mul(*g as u64));
    if properties.max_group > 0 && threads > properties.max_group as u64 {
        bail!(
            op,
            "A group of ({x}, {y}, {z}) has {threads} threads, but {} (backend {}) takes at most {} for this kernel. Use smaller groups.",
            device.device,
            device.backend,
            properties.max_group
        );
    }
    if properties.max_shared > 0 && shared > properties.max_shared {
        bail!(
            op,
            "A group needs {shared} bytes of shared memory, but {} (backend {}) has {}. Use less.",
            device.device,
            device.backend,
            properties.max_shared
        );
    }
    Ok(())
}

/// Returns the kernel languages that a device takes, as text for errors.
pub fn show_languages<S: AsRef<str>>(languages: &[S]) -> String {
    match languages {
        [] => "none".to_owned(),
        all => all.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", "),
    }
}

impl Exec {
    /// Returns the kernel languages that the device takes, the best first.
    pub fn languages(&self) -> &'static [String] {
        self.device.languages()
    }

    /// Returns the kernel, and compiles it if it is new. If another thread is compiling it, waits
    /// for that thread.
    ///
    /// # Errors
    /// [`Error::Runtime`] when the device does not take the language, or when the compiler rejects
    /// the source. The error then has the compiler's log and the lines of [`KernelSource::source`].
    pub fn user_kernel(&self, source: &KernelSource<'_>) -> Result<Arc<UserKernel>> {
        let device = self.device;
        shutdown::check(device)?;
        let interface = match device.kernel_interface() {
            Some(found) if device.languages().iter().any(|l| l == source.language) => *found,
            _ => {
                let text = format!(
                    "The kernel is in {}, but {} (backend {}) takes: {}. Write it in one of these.",
                    source.language,
                    device.device,
                    device.backend,
                    show_languages(device.languages())
                );
                return Err(Error::runtime(source.op, text));
            }
        };
        let full = Full::of(source);
        let key = source.key(full.bytes());
        let slot = {
            let mut kernels = lock(&device.user_kernels.kernels);
            let found = kernels.get(&*key);
            let (slot, gone) = match found {
                Some(slot) => (slot, None),
                None => {
                    let slot = Slot::default();
                    let gone = kernels.insert(key.clone(), slot.clone());
                    (slot, gone)
                }
            };
            drop(kernels);
            drop(gone);
            slot
        };
        let mut place = lock(&slot);
        if let Some(kernel) = &*place {
            return Ok(kernel.clone());
        }
        let compiled = shutdown::Compiling::enter(device)
            .and_then(|_compiling| compile(device, interface, source, &full));
        match compiled {
            Ok(kernel) => Ok(place.insert(kernel).clone()),
            Err(error) => {
                drop(place);
                let mut kernels = lock(&device.user_kernels.kernels);
                kernels.remove(&*key, |other| Arc::ptr_eq(other, &slot));
                Err(error)
            }
        }
    }

    /// Returns the properties of a kernel on the device; zeros if the backend does not report them.
    pub fn kernel_properties(&self, kernel: &UserKernel) -> Result<KernelProperties> {
        if let Some(known) = kernel.properties.get() {
            return Ok(*known);
        }
        let Some(compiled) = &kernel.compiled else { return Ok(KernelProperties::default()) };
        let mut reported = abi::KernelInfo {
            size: size_of::<abi::KernelInfo>() as u32,
            ..abi::KernelInfo::default()
        };
        if let Some(info) = compiled.interface.info {
            shutdown::check(compiled.device)?;
            let mut error = std::ptr::null_mut();
            // SAFETY: a live kernel of this device, and pointers that are valid for writing the
            // answers.
            let code =
                unsafe { info(compiled.device.handle, compiled.raw, &mut reported, &mut error) };
            host_table::check("info", code, error)?;
        }
        let properties = KernelProperties {
            max_group: reported.max_threads,
            group_multiple: reported.thread_multiple,
            max_shared: reported.max_shared,
        };
        Ok(*kernel.properties.get_or_init(|| properties))
    }

    /// Returns an input in a form that kernels can access. It is copied to row-major order if some
    /// of its elements lie before the first and the device's language has no pointers into the
    /// middle of a buffer.
    pub fn reachable(&self, operand: &Operand<'_>) -> Result<Option<Value>> {
        let before = operand.value.strides.iter().zip(operand.shape).any(|(s, n)| *s < 0 && *n > 1);
        let pointers = self.languages().iter().any(|l| l == "cuda-c" || l == "msl");
        if before && !pointers { self.contiguous(operand) } else { Ok(None) }
    }

    /// Gives a launch to the stream: `grid` groups of `group` threads, with `shared` bytes of
    /// shared memory for each group. A grid of size zero does nothing.
    ///
    /// # Errors
    /// [`Error::Value`] for a group size or a size of shared memory that the kernel cannot have.
    pub fn launch(
        &self,
        kernel: &UserKernel,
        arguments: &[Argument<'_>],
        grid: [u32; 3],
        group: [u32; 3],
        shared: u32,
    ) -> Result<()> {
        let properties = self.kernel_properties(kernel)?;
        check_group(self.op.get(), self.device, &properties, group, shared)?;
        let Some(Compiled { interface: KernelInterface { launch: Some(launch), .. }, raw, .. }) =
            kernel.compiled
        else {
            return Err(self.refuse(self.op.get()));
        };
        if grid.contains(&0) {
            return Ok(());
        }
        let constants = self.upload(arguments)?;
        let (tensors, values) = self.describe(arguments, &constants);
        let launched = abi::KernelLaunch {
            size: size_of::<abi::KernelLaunch>() as u32,
            n_arguments: values.len() as u32,
            arguments: values.as_ptr(),
            argument_stride: size_of::<abi::KernelArgument>() as u32,
            shared_bytes: shared,
            grid,
            block: group,
        };
        let (mut reads, mut writes) = (SmallVec::<[_; 8]>::new(), SmallVec::<[_; 4]>::new());
        for argument in arguments {
            match argument {
                Argument::Read(t) => reads.push(t),
                Argument::Write(t) => writes.push(t),
                Argument::Scalar(_) | Argument::Constants(_) => {}
            }
        }
        self.launched(&reads, &writes);
        let read =
            reads.iter().map(|t| &*t.value.buffer).chain(constants.iter().map(|c| &*c.0.buffer));
        let written = writes.iter().map(|t| &*t.value.buffer);
        self.enqueue(read, written, |stream| {
            let mut error = std::ptr::null_mut();
            // SAFETY: the launch and everything it points at are valid for the call, the kernel is
            // alive, and this thread holds the stream's lock.
            let code = unsafe { launch(self.device.handle, stream, raw, &launched, &mut error) };
            let failed = |e: Error| match e {
                Error::Memory(_) => e,
                e => Error::runtime(self.op.get(), format!("The launch failed: {e}")),
            };
            host_table::check("launch", code, error).map_err(failed)
        })?;
        drop((tensors, values));
        Ok(())
    }

    /// Uploads the constants among the arguments to the device. Returns them with their lengths.
    fn upload(&self, arguments: &[Argument<'_>]) -> Result<Uploaded> {
        let mut uploaded = SmallVec::new();
        for argument in arguments {
            if let Argument::Constants(bytes) = argument {
                let buffer = self.device.constants(bytes)?;
                let strides = Strides::from_slice(&[1]);
                uploaded.push((Value { buffer, offset: 0, strides }, [bytes.len()]));
            }
        }
        Ok(uploaded)
    }

    /// Converts the arguments to the contract's form. Arguments that are tensors point into the
    /// first list.
    fn describe(
        &self,
        arguments: &[Argument<'_>],
        constants: &Uploaded,
    ) -> (Vec<Tensor>, SmallVec<[abi::KernelArgument; 16]>) {
        // Reserve the full capacity, so that the addresses stay valid.
        let mut tensors = Vec::<Tensor>::with_capacity(arguments.len());
        let mut values = SmallVec::new();
        let mut constants = constants.iter();
        let kernels = self.device.kernels.get();
        for one in arguments {
            let mut value = abi::KernelArgument {
                size: size_of::<abi::KernelArgument>() as u32,
                kind: argument::TENSOR,
                tensor: std::ptr::null(),
                scalar: [0; 2],
                dtype: Dtype::Uint8.to_dl(),
                written: matches!(one, Argument::Write(_)) as u32,
            };
            let Some(own) = kernels.last() else { continue };
            let tensor = match one {
                Argument::Scalar(scalar) => {
                    value.kind = argument::SCALAR;
                    value.scalar[0] = scalar.bits();
                    value.dtype = scalar.dtype().to_dl();
                    None
                }
                Argument::Write(t) => Some(call::tensor(own, t)),
                Argument::Read(t) => {
                    let mut tensor = call::tensor(own, t);
                    if self.device.waits_in_commands() {
                        self.wait_in_command(&mut tensor, &t.value.buffer);
                    }
                    Some(tensor)
                }
                Argument::Constants(_) => constants.next().map(|(value, shape)| {
                    call::tensor(own, &Operand { value, shape, dtype: Dtype::Uint8 })
                }),
            };
            if let Some(tensor) = tensor {
                tensors.push(tensor);
                value.tensor = tensors.last().map_or(std::ptr::null(), |t| t);
            }
            values.push(value);
        }
        (tensors, values)
    }
}
