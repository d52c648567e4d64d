//! The definition of a kernel, and the checks of its calls.

use super::op::Launched;
use super::source::{Generated, Language, Signature, is_name};
use crate::error::{Error, Result, bail, ensure};
use crate::ops::{Op, attributes};
use crate::{
    array::Array, backend, devices, dtype::Dtype, graph::names::interned, placement, shape::Shape,
};
use std::collections::HashSet;
use std::io::Write;
use std::sync::Arc;

attributes! {
    /// The definition of a kernel.
    #[derive(Clone, Debug)]
    pub(super) struct Definition {
        pub name: &'static str,
        pub input_names: Vec<String>,
        pub output_names: Vec<String>,
        /// Bodies by language. The order decides if the device has no preference.
        pub sources: Vec<(String, String)>,
        /// Headers of single languages, and the header of all other languages.
        pub headers: Vec<(String, String)>,
        pub header: String,
        pub options: Vec<(String, String)>,
        pub ensure_row_contiguous: bool,
        pub atomic_outputs: bool,
        pub shared_memory: u32,
        /// True if the names of MLX's own headers are defined.
        pub mlx: bool,
    }
}

attributes! {
    /// A template argument of a call, added by [`Launch::template`]. The kernel is compiled once
    /// for each set of arguments.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Template {
        /// A type.
        Dtype(dtype: Dtype),
        /// A constant of 32 bits.
        Int(value: i32),
        /// A constant.
        Bool(value: bool),
    }
}

attributes! {
    /// Sizes, outputs and options of a call of a [`Kernel`] or of a
    /// [`CompiledKernel`](super::CompiledKernel). [`Launch::new`] makes one, the other functions
    /// add to it.
    #[derive(Clone, Debug)]
    pub struct Launch {
        pub(super) grid: [u32; 3],
        pub(super) group: [u32; 3],
        pub(super) outputs: Vec<(Shape, Dtype)>,
        pub(super) template: Vec<(String, Template)>,
        pub(super) init_value: Option<f64>,
        verbose: bool,
    }
}

impl Launch {
    /// Makes a launch of `grid` threads in total, in groups of `threadgroup`, along x, y and z. Groups larger than the
    /// grid are reduced to the grid's size.
    ///
    /// If the grid is not a multiple of the group, threads beyond it return at once. All threads of a group have to
    /// reach a barrier, so a body with barriers needs a grid that is a multiple of the group.
    pub fn new(grid: [u32; 3], threadgroup: [u32; 3]) -> Launch {
        Launch {
            grid,
            group: threadgroup,
            outputs: Vec::new(),
            template: Vec::new(),
            init_value: None,
            verbose: false,
        }
    }

    /// Adds an output of this shape and dtype. Outputs are added in the order of their names in
    /// [`Kernel::new`].
    pub fn output(mut self, shape: &[usize], dtype: Dtype) -> Launch {
        self.outputs.push((Shape::from_slice(shape), dtype));
        self
    }

    /// Adds a template argument: the body may use `name` for a type, an integer or a flag.
    pub fn template(mut self, name: &str, value: Template) -> Launch {
        self.template.push((name.to_owned(), value));
        self
    }

    /// Fills all outputs with a number, converted to their dtypes, before the kernel runs. Otherwise their elements are
    /// unspecified.
    pub fn init_value(mut self, value: f64) -> Launch {
        self.init_value = Some(value);
        self
    }

    /// Sets whether the call prints the kernel's source to the standard output; false by default.
    pub fn verbose(mut self, verbose: bool) -> Launch {
        self.verbose = verbose;
        self
    }
}

/// A kernel whose body is given in source form. See the [module](crate::fast).
///
/// It runs on devices whose backend accepts one of its languages. On other devices a call is an error that lists the
/// languages of both sides. The kernel has no derivatives and no batching rule; wrap its call in a [custom
/// function](crate::transforms::CustomFunction) to add them.
#[derive(Clone, Debug)]
pub struct Kernel(Arc<Definition>);

impl Kernel {
    /// Makes a kernel without a body. The names of inputs and outputs are variable names in the body.
    ///
    /// # Errors
    /// [`Error::Value`] without outputs, or for names that are not valid in a program, begin with `um_`, or occur
    /// twice.
    pub fn new(name: &str, input_names: &[&str], output_names: &[&str]) -> Result<Kernel> {
        Kernel::named("kernel", name, input_names, output_names)
    }

    /// As [`Kernel::new`]; `of` is the function that errors name.
    #[doc(hidden)]
    pub fn named(of: &str, name: &str, inputs: &[&str], outputs: &[&str]) -> Result<Kernel> {
        ensure!(!outputs.is_empty(), of, "Must specify at least one output. Pass its name.");
        let mut seen = HashSet::new();
        for name in inputs.iter().chain(outputs) {
            if !is_name(name) || name.starts_with("um_") {
                let why = "begin with a letter, have letters, digits and underscores, and not begin with um_";
                bail!(of, "`{name}` is not a name of an array. Names must {why}.");
            }
            ensure!(
                seen.insert(*name),
                of,
                "The name `{name}` is given twice. Rename one of the two."
            );
        }
        ensure!(!name.is_empty(), of, "The kernel's name is empty. Pass a name.");
        let all = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        Ok(Kernel(Arc::new(Definition {
            name: interned(name),
            input_names: all(inputs),
            output_names: all(outputs),
            sources: Vec::new(),
            headers: Vec::new(),
            header: String::new(),
            options: Vec::new(),
            ensure_row_contiguous: true,
            atomic_outputs: false,
            shared_memory: 0,
            mlx: false,
        })))
    }

    /// Sets the body in a language: `opencl-c`, `cuda-c`, `msl` or `wgsl`. If a device accepts several of the given
    /// languages, the device's own order decides.
    pub fn source(mut self, language: &str, body: &str) -> Kernel {
        let sources = &mut self.edit().sources;
        sources.retain(|(known, _)| known != language);
        sources.push((language.to_owned(), body.to_owned()));
        self
    }

    /// Sets a text that precedes the function, such as helper functions. It applies to every language without a header
    /// of its own ([`Kernel::header_of`]).
    pub fn header(mut self, text: &str) -> Kernel {
        self.edit().header = text.to_owned();
        self
    }

    /// Sets a text that precedes the function, for one language. It replaces that of [`Kernel::header`].
    pub fn header_of(mut self, language: &str, text: &str) -> Kernel {
        let headers = &mut self.edit().headers;
        headers.retain(|(known, _)| known != language);
        headers.push((language.to_owned(), text.to_owned()));
        self
    }

    /// Sets options for the compiler of a language, in the compiler's own form: `-DT=float` for
    /// `opencl-c`, for example.
    pub fn options(mut self, language: &str, text: &str) -> Kernel {
        let options = &mut self.edit().options;
        options.retain(|(known, _)| known != language);
        options.push((language.to_owned(), text.to_owned()));
        self
    }

    /// Sets whether inputs that are not row-major without gaps are copied; by default they are. Without the copies, the
    /// body has to index them with `NAME_shape`, `NAME_strides` and `NAME_ndim`.
    pub fn ensure_row_contiguous(mut self, ensure: bool) -> Kernel {
        self.edit().ensure_row_contiguous = ensure;
        self
    }

    /// Sets whether the body uses atomic operations on its outputs; false by default. If set, outputs have the
    /// language's atomic types.
    pub fn atomic_outputs(mut self, atomic: bool) -> Kernel {
        self.edit().atomic_outputs = atomic;
        self
    }

    /// Sets the number of bytes of shared memory per group, if its size is given at the launch: `extern __shared__` in
    /// cuda-c, the parameter `um_shared` in opencl-c.
    pub fn shared_memory(mut self, bytes: u32) -> Kernel {
        self.edit().shared_memory = bytes;
        self
    }

    /// Adds the names of MLX's own headers: `elem_to_loc`, `complex64_t` ...
    #[doc(hidden)]
    pub fn with_names_of_mlx(mut self) -> Kernel {
        self.edit().mlx = true;
        self
    }

    fn edit(&mut self) -> &mut Definition {
        Arc::make_mut(&mut self.0)
    }

    /// Returns the kernel's name, which errors and profiles show.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// Calls the kernel and returns the outputs, in the order of their names: lazy arrays. It runs
    /// on the device of its inputs, as an operation does; a [scope](crate::with_stream) chooses
    /// another stream.
    ///
    /// # Errors
    /// [`Error::Runtime`] on a device that accepts none of the kernel's languages. [`Error::Value`] when inputs,
    /// outputs or template arguments do not fit the definition, [`Error::Type`] for storage dtypes. Errors of the
    /// compiler or the device are returned when an output is needed.
    pub fn call(&self, inputs: &[&Array], launch: &Launch) -> Result<Vec<Array>> {
        let made = Launched::new(self.0.clone(), launch.clone(), inputs);
        let outputs = match launch.outputs.len() == self.0.output_names.len() {
            true => {
                Array::multi_output(made.clone(), inputs, launch.outputs.iter().cloned().collect())?
            }
            false => Vec::new(),
        };
        let device = self.device_of(&outputs, inputs)?;
        self.0.language_on(device)?;
        self.validate(inputs, launch)?;
        if launch.verbose {
            // A failure to print must not make the call fail.
            let _ = writeln!(std::io::stdout(), "{}", made.whole_source(device)?);
        } else {
            made.generated(device)?;
        }
        Ok(outputs)
    }

    /// The device on which a call runs, found from the outputs if they exist, else from the inputs.
    fn device_of(
        &self,
        outputs: &[Array],
        inputs: &[&Array],
    ) -> Result<&'static backend::DeviceState> {
        let place = match outputs.first() {
            Some(output) => output.node().place,
            None => placement::place(&Op::GIVEN, inputs)?,
        };
        devices::get(place.stream.device)
    }

    /// Returns the whole source that a call would compile on its device, as [`Launch::verbose`]
    /// prints it.
    ///
    /// # Errors
    /// As [`Kernel::call`].
    pub fn whole_source_here(&self, inputs: &[&Array], launch: &Launch) -> Result<String> {
        let device = self.device_of(&[], inputs)?;
        let language = self.0.language_on(device)?;
        self.whole_source(language.name(), inputs, launch)
    }

    /// Returns the whole source that a call compiles in one of the kernel's languages.
    ///
    /// # Errors
    /// As [`Kernel::call`]; [`Error::Value`] for a language without a body.
    pub fn whole_source(
        &self,
        language: &str,
        inputs: &[&Array],
        launch: &Launch,
    ) -> Result<String> {
        self.validate(inputs, launch)?;
        let made = Launched::new(self.0.clone(), launch.clone(), inputs);
        let found = Language::of(language).filter(|_| self.0.body(language).is_some());
        let Some(language) = found else {
            bail!(
                self.0.name,
                "The kernel has no source in {language}, only in {}. Add one.",
                self.0.languages()
            );
        };
        made.whole(language)
    }

    fn validate(&self, inputs: &[&Array], launch: &Launch) -> Result<()> {
        let d = &self.0;
        let op = d.name;
        if inputs.len() != d.input_names.len() {
            let (want, got) = (d.input_names.len(), inputs.len());
            bail!(
                op,
                "Expected `inputs` to have size {want} but got size {got}. Pass an array for each of `input_names`."
            );
        }
        if launch.outputs.len() != d.output_names.len() {
            let (want, got) = (d.output_names.len(), launch.outputs.len());
            bail!(
                op,
                "Expected `output_shapes` and `output_dtypes` to have size {want} but got size {got}. Pass one for each of `output_names`."
            );
        }
        let mut seen = HashSet::new();
        for (name, _) in &launch.template {
            let allowed = is_name(name) && !name.starts_with("um_");
            ensure!(
                allowed,
                op,
                "`{name}` cannot be the name of a template argument. Use an identifier that does not begin with um_."
            );
            let taken = d.input_names.iter().chain(&d.output_names).any(|n| n == name);
            let first = !taken && seen.insert(name);
            ensure!(
                first,
                op,
                "The name `{name}` of a template argument is given twice. Rename one of the two."
            );
        }
        let types = launch.template.iter().filter_map(|(_, t)| match t {
            Template::Dtype(dtype) => Some(*dtype),
            _ => None,
        });
        let arrays = inputs.iter().map(|i| i.dtype()).chain(launch.outputs.iter().map(|o| o.1));
        if let Some(dtype) = arrays.chain(types).find(|d| d.is_storage()) {
            let text = format!("Kernels have no type for {dtype}. Pass its bytes, by view(uint8).");
            return Err(Error::type_(op, text));
        }
        validate_group(op, launch)
    }
}

pub(super) fn validate_group(op: &str, launch: &Launch) -> Result<()> {
    let [x, y, z] = launch.group;
    let threads = !launch.group.contains(&0);
    ensure!(
        threads,
        op,
        "A threadgroup of ({x}, {y}, {z}) has no threads. Pass sizes of at least 1."
    );
    Ok(())
}

impl Definition {
    pub fn body(&self, language: &str) -> Option<&str> {
        self.sources.iter().find(|(known, _)| known == language).map(|(_, body)| &body[..])
    }

    /// The kernel's languages, for errors.
    fn languages(&self) -> String {
        backend::show_languages(&self.sources.iter().map(|(l, _)| &l[..]).collect::<Vec<_>>())
    }

    /// The first of the device's languages for which the kernel has a body.
    pub fn language_on(&self, device: &'static backend::DeviceState) -> Result<Language> {
        let theirs = device.languages();
        let found = theirs.iter().find(|l| self.body(l).is_some()).and_then(|l| Language::of(l));
        found.ok_or_else(|| {
            let text = format!(
                "The kernel is in {}, but {} (backend {}) takes: {}. Add a source in one of these.",
                self.languages(),
                device.device,
                device.backend,
                backend::show_languages(theirs)
            );
            Error::runtime(self.name, text)
        })
    }

    pub fn options_of(&self, language: Language) -> Option<&str> {
        let found = self.options.iter().find(|(known, _)| known == language.name());
        found.map(|(_, options)| &options[..])
    }

    /// The source of a call, without the body.
    pub fn generate(
        &self,
        language: Language,
        inputs: &[(usize, Dtype)],
        launch: &Launch,
    ) -> Result<Generated> {
        let header = self.headers.iter().find(|(known, _)| known == language.name());
        let group = launch.real_group();
        let signature = Signature {
            definition: self,
            body: self.body(language.name()).unwrap_or(""),
            header: header.map_or(&self.header, |(_, header)| header),
            language,
            inputs,
            outputs: &launch.outputs,
            template: &launch.template,
            group,
            guarded: launch.grid.iter().zip(group).any(|(n, group)| n % group != 0),
        };
        signature.generate()
    }
}

impl Launch {
    /// The group, reduced to the grid's size.
    pub(super) fn real_group(&self) -> [u32; 3] {
        std::array::from_fn(|i| self.group[i].min(self.grid[i]).max(1))
    }

    /// Number of groups of the given size.
    pub(super) fn groups(&self, group: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|i| self.grid[i].div_ceil(group[i]))
    }
}
