//! Sources and compiled code of users' kernels. They are checked against the device before its driver
//! sees them.

use crate::context::BINDINGS;
use crate::hal::{self, Code, Compiled, LANGUAGES, Properties};
use crate::shader::compile::{self, Parsed, Zeros};
use core::ffi::{CStr, c_char};
use naga::valid::Capabilities;
use naga::{AddressSpace, Module, StorageAccess};
use std::collections::BTreeMap;
use ultramarine_abi::helper::{Failure, Result};
use ultramarine_abi::interface::kernel::KernelSource;
use ultramarine_abi::status;

/// The source languages. All other languages are compiled code.
const WGSL: &str = "wgsl";
const MSL: &str = "msl";

/// A user's kernel, validated and ready for the driver.
pub struct Source {
    /// Name of the entry point.
    pub entry: String,
    /// The code for the driver.
    pub code: Code,
    /// Its bindings, numbered from 0.
    pub parameters: Vec<Parameter>,
    /// Invocations of a workgroup; `None` if the launch specifies them.
    pub group: Option<[u32; 3]>,
    /// True if the device supports workgroups of this size.
    pub fits: bool,
}

/// A parameter of a user's kernel, by the kind of its binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A storage buffer.
    Tensor,
    /// A `var<uniform>`, which is a scalar.
    Scalar,
    /// A buffer that may be a tensor or a scalar.
    Any,
}

/// Maximum size of a scalar, in bytes.
const SCALAR_BYTES: u32 = 16;

/// A text from the host.
///
/// # Safety
/// `text` is NULL or NUL-terminated and valid for `'a`.
unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str> {
    if text.is_null() {
        return Err(Failure::invalid(format!("the kernel has no {what}")));
    }
    // SAFETY: by this function's contract.
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .map_err(|_| Failure::invalid(format!("the {what} of the kernel is not UTF-8")))
}

impl Source {
    /// Compiles a source from the host.
    ///
    /// # Safety
    /// The source's pointers are valid by the contract.
    pub unsafe fn of(given: &KernelSource, properties: &Properties) -> Result<Self> {
        // SAFETY: by this function's contract.
        let (language, entry) =
            unsafe { (text(given.language, "language")?, text(given.entry, "name")?) };
        if !LANGUAGES.split(' ').any(|known| known == language) {
            let text = format!("the device takes kernels in {LANGUAGES}, not in {language}");
            return Err(Failure { code: status::UNSUPPORTED, text });
        }
        if given.n_template_arguments > 0 {
            return Err(Failure::invalid(format!(
                "{language} has no templates. Leave template arguments out"
            )));
        }
        // SAFETY: NULL, or NUL-terminated, by this function's contract.
        if !given.options.is_null() && !unsafe { CStr::from_ptr(given.options) }.is_empty() {
            return Err(Failure::invalid(format!(
                "the compiler of {language} has no options. Leave them out"
            )));
        }
        if given.source.is_null() {
            return Err(Failure::invalid("the kernel has no source"));
        }
        let bytes = usize::try_from(given.source_bytes).map_err(|_| {
            Failure::invalid("the length of the source is larger than the address space")
        })?;
        // SAFETY: by this function's contract, there are that many bytes.
        let source = unsafe { core::slice::from_raw_parts(given.source.cast::<u8>(), bytes) };
        if language != WGSL && language != MSL {
            return Self::compiled(source, entry, properties);
        }
        let source = core::str::from_utf8(source)
            .map_err(|_| Failure::invalid("the source of the kernel is not UTF-8"))?;
        match language {
            MSL => Self::msl(source, entry, properties),
            _ => Self::compile(source, entry, properties),
        }
    }

    fn msl(text: &str, entry: &str, properties: &Properties) -> Result<Self> {
        let (code, bindings) = hal::msl(text, entry).map_err(Failure::new)?;
        let kinds = (0..bindings as u32).map(|number| (number, Parameter::Any));
        let parameters = in_order(kinds.collect(), properties.buffers)?;
        Ok(Self { entry: entry.to_owned(), code, parameters, group: None, fits: true })
    }

    fn compiled(code: &[u8], entry: &str, properties: &Properties) -> Result<Self> {
        let Compiled { code, group, uniform } =
            hal::compiled(code, entry, properties).map_err(Failure::new)?;
        let kinds = uniform.into_iter().map(|(number, uniform)| {
            (number, if uniform { Parameter::Scalar } else { Parameter::Tensor })
        });
        let parameters = in_order(kinds.collect(), properties.buffers)?;
        let fits = fits(group, properties);
        Ok(Self { entry: entry.to_owned(), code, parameters, group: Some(group), fits })
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
            // The kernel will not run. The size is replaced because naga has its own limit and does
            // not report it.
            found.workgroup_size = [1; 3];
        }
        let parameters = parameters(&mut module, properties.buffers)?;
        let subgroups = properties.subgroup_operations;
        let parsed =
            Parsed::of(module, text, capabilities(properties), subgroups).map_err(Failure::new)?;
        check_shared(&parsed.module, properties)?;
        let code = Code::of(&parsed, entry, Zeros::Handled, &[], properties);
        let code = code.map_err(Failure::new)?;
        Ok(Self { entry: entry.to_owned(), code, parameters, group: Some(group), fits })
    }
}

/// True if the device supports workgroups of this size.
pub fn fits(group: [u32; 3], properties: &Properties) -> bool {
    let threads = group.iter().fold(1u64, |n, g| n.saturating_mul(u64::from(*g)));
    threads <= u64::from(properties.group_size)
        && group.iter().zip(properties.group_sizes).all(|(n, most)| *n <= most)
}

/// The device features that were requested when it was opened.
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

/// The bindings. A launch must be able to fill all of them. Variables of different kernels may share a binding.
/// Uniforms become storage buffers, because launches bind only these.
fn parameters(module: &mut Module, most: u32) -> Result<Vec<Parameter>> {
    let mut found = BTreeMap::new();
    let variables = module.global_variables.iter();
    let sizes = variables.map(|(_, v)| module.types[v.ty].inner.try_size(module.to_ctx()));
    let sizes: Vec<_> = sizes.collect();
    for ((_, variable), size) in module.global_variables.iter_mut().zip(sizes) {
        let refuse = |why: &str| {
            let name = variable.name.as_deref().unwrap_or("a variable");
            Err(Failure::new(format!("{name} {why}")))
        };
        let parameter = match (variable.space, variable.binding) {
            (AddressSpace::Storage { .. }, Some(binding)) if binding.group == 0 => {
                Parameter::Tensor
            }
            (AddressSpace::Uniform, Some(binding)) if binding.group == 0 => {
                if size.is_none_or(|bytes| bytes > SCALAR_BYTES) {
                    return refuse(&format!(
                        "is larger than a scalar of {SCALAR_BYTES} bytes. Use a storage buffer"
                    ));
                }
                Parameter::Scalar
            }
            (_, Some(_)) => {
                return refuse("is outside group 0. Use storage buffers and uniforms of group 0");
            }
            (AddressSpace::Private | AddressSpace::WorkGroup, None) => continue,
            _ => {
                return refuse(
                    "is in an address space that kernels do not support. Use storage or uniform",
                );
            }
        };
        let Some(binding) = variable.binding else { continue };
        let number = binding.binding;
        if *found.entry(number).or_insert(parameter) != parameter {
            return refuse(&format!(
                "shares binding {number} with a variable of another kind. Use two bindings"
            ));
        }
        if parameter == Parameter::Scalar {
            variable.space = AddressSpace::Storage { access: StorageAccess::LOAD };
        }
    }
    in_order(found, most)
}

/// The parameters, checked for bindings that a launch can fill: numbered from 0 without gaps, and
/// at most `most`.
fn in_order(found: BTreeMap<u32, Parameter>, most: u32) -> Result<Vec<Parameter>> {
    if !found.keys().copied().eq(0..found.len() as u32) {
        let numbers: Vec<_> = found.keys().collect();
        return Err(Failure::new(format!(
            "the bindings are numbered {numbers:?}. Number them from 0 without gaps"
        )));
    }
    let most = BINDINGS.min(most as usize);
    if found.len() > most {
        let n = found.len();
        return Err(Failure::new(format!(
            "{n} arguments, with those of shapes, strides and the grid: this device binds {most} at most. Use fewer"
        )));
    }
    Ok(found.into_values().collect())
}

/// Checks the shared memory of a workgroup, because drivers need not check it.
fn check_shared(module: &Module, properties: &Properties) -> Result<()> {
    let shared = module.global_variables.iter().filter(|(_, v)| v.space == AddressSpace::WorkGroup);
    let sizes = shared.map(|(_, v)| module.types[v.ty].inner.try_size(module.to_ctx()));
    let bytes = sizes.fold(0u64, |sum, size| sum + u64::from(size.unwrap_or(u32::MAX)));
    let most = properties.group_memory;
    if bytes > u64::from(most) {
        return Err(Failure::new(format!(
            "var<workgroup> has {bytes} bytes, and a group {most} on this device. Use less"
        )));
    }
    Ok(())
}
