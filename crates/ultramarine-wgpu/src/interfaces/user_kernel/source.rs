//! Sources of users' kernels: checked against the device before its driver sees them.

use crate::context::BINDINGS;
use crate::shader::compile::{self, Parsed, Zeros};
use crate::vulkan::Properties;
use core::ffi::{CStr, c_char};
use naga::valid::Capabilities;
use naga::{AddressSpace, Module};
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::interface::kernel::KernelSource;
use ultramarine_abi::status;

/// The language, as users name it.
pub const LANGUAGE: &str = "wgsl";

/// A kernel before the driver compiles it.
pub struct Source {
    /// Name of the entry point.
    pub entry: String,
    /// SPIR-V.
    pub module: Vec<u32>,
    /// Its bindings, 0 up to this.
    pub bindings: usize,
    /// Invocations of a workgroup.
    pub group: [u32; 3],
    /// The device takes groups of that size.
    pub fits: bool,
}

/// A text of the host's.
///
/// # Safety
/// `text` is NULL or NUL-terminated and valid for `'a`.
unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str> {
    if text.is_null() {
        return Err(Failure::invalid(format!("a kernel without {what}")));
    }
    // SAFETY: by this function's contract.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .map_err(|_| Failure::invalid(format!("the {what} of a kernel is no UTF-8")))
}

impl Source {
    /// Compiles what the host gives.
    ///
    /// # Safety
    /// The source's pointers are as the contract has them.
    pub unsafe fn of(given: &KernelSource, properties: &Properties) -> Result<Self> {
        // SAFETY: by this function's contract.
        let (language, entry) =
            unsafe { (text(given.language, "language")?, text(given.entry, "name")?) };
        if language != LANGUAGE {
            let text = format!("kernels are in {LANGUAGE} here, not in {language}");
            return Err(Failure { code: status::UNSUPPORTED, text });
        }
        if given.n_template_arguments > 0 {
            return Err(Failure::invalid("WGSL has no templates"));
        }
        // SAFETY: NULL, or NUL-terminated, by this function's contract.
        if !given.options.is_null() && !unsafe { CStr::from_ptr(given.options) }.is_empty() {
            return Err(Failure::invalid("the compiler of WGSL takes no options"));
        }
        if given.source.is_null() {
            return Err(Failure::invalid("a kernel without source"));
        }
        let bytes = usize::try_from(given.source_bytes)
            .map_err(|_| Failure::invalid("a source that no memory holds"))?;
        // SAFETY: there are so many bytes, by this function's contract.
        let source = unsafe { core::slice::from_raw_parts(given.source.cast::<u8>(), bytes) };
        let source = core::str::from_utf8(source)
            .map_err(|_| Failure::invalid("the source of a kernel is no UTF-8"))?;
        Self::compile(source, entry, properties)
    }

    fn compile(text: &str, entry: &str, properties: &Properties) -> Result<Self> {
        let mut module = compile::read(text).map_err(Failure::new)?;
        let compute = naga::ShaderStage::Compute;
        let found = module.entry_points.iter_mut().find(|p| p.name == entry && p.stage == compute);
        let found =
            found.ok_or_else(|| Failure::new(format!("the source has no kernel {entry}")))?;
        let group = found.workgroup_size;
        let fits = fits(group, properties);
        if !fits {
            // It will not run; naga has a limit of its own, and does not say which.
            found.workgroup_size = [1; 3];
        }
        let subgroups = properties.subgroup_operations;
        let parsed =
            Parsed::of(module, text, capabilities(properties), subgroups).map_err(Failure::new)?;
        let bindings = bindings(&parsed.module, properties.buffers)?;
        check_shared(&parsed.module, properties)?;
        let module = parsed.write(entry, Zeros::Handled).map_err(Failure::new)?;
        Ok(Self { entry: entry.to_owned(), module, bindings, group, fits })
    }
}

/// True if the device takes groups of that size.
fn fits(group: [u32; 3], properties: &Properties) -> bool {
    let threads = group.iter().fold(1u64, |n, g| n.saturating_mul(u64::from(*g)));
    threads <= u64::from(properties.group_size)
        && group.iter().zip(properties.group_sizes).all(|(n, most)| *n <= most)
}

/// The features of the device that were asked for when it was opened.
fn capabilities(properties: &Properties) -> Capabilities {
    let mut all = Capabilities::SHADER_INT64
        | Capabilities::SHADER_INT16
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    if properties.float64 {
        all |= Capabilities::FLOAT64;
    }
    if properties.subgroup_operations != 0 {
        all |= Capabilities::SUBGROUP | Capabilities::SUBGROUP_BARRIER;
    }
    all
}

/// The number of bindings, which are all that a launch can fill.
fn bindings(module: &Module, most: u32) -> Result<usize> {
    let refuse = |name: &Option<String>, why: &str| {
        let name = name.as_deref().unwrap_or("a variable");
        Failure::new(format!("{name} {why}"))
    };
    let mut numbers = Vec::new();
    for (_, variable) in module.global_variables.iter() {
        match (variable.space, variable.binding) {
            (AddressSpace::Storage { .. }, Some(binding)) if binding.group == 0 => {
                numbers.push(binding.binding);
            }
            (_, Some(_)) => {
                let why = "is no argument: those are storage buffers of group 0";
                return Err(refuse(&variable.name, why));
            }
            (AddressSpace::Private | AddressSpace::WorkGroup, None) => {}
            _ => return Err(refuse(&variable.name, "is in an address space that kernels lack")),
        }
    }
    numbers.sort_unstable();
    if !numbers.iter().copied().eq(0..numbers.len() as u32) {
        return Err(Failure::new(format!("the bindings are numbered {numbers:?}, not from 0 on")));
    }
    let most = BINDINGS.min(most as usize);
    if numbers.len() > most {
        let n = numbers.len();
        return Err(Failure::new(format!(
            "{n} arrays, with those of shapes, strides and the grid: this device binds {most} at most"
        )));
    }
    Ok(numbers.len())
}

/// Drivers need not check how much memory a workgroup shares.
fn check_shared(module: &Module, properties: &Properties) -> Result<()> {
    let shared = module.global_variables.iter().filter(|(_, v)| v.space == AddressSpace::WorkGroup);
    let sizes = shared.map(|(_, v)| module.types[v.ty].inner.try_size(module.to_ctx()));
    let bytes = sizes.fold(0u64, |sum, size| sum + u64::from(size.unwrap_or(u32::MAX)));
    let most = properties.group_memory;
    if bytes > u64::from(most) {
        return Err(Failure::new(format!(
            "var<workgroup> of {bytes} bytes: a group has {most} on this device"
        )));
    }
    Ok(())
}
