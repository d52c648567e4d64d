//! Compiled kernels, by the content of their programs. Each is compiled once, and stored on disk.

mod kept;

use crate::context::{Context, lock};
use crate::hal::{self, Code};
use crate::shader::compile::{self, Zeros};
use crate::shader::halves;
use crate::shader::source::Source;
use kept::Kept;
pub use kept::directory;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, OnceLock};
use ultramarine_abi::helper::{Failure, Result};
use wgpu_hal::{
    ComputePipelineDescriptor, Device as _, PipelineCacheDescriptor, ProgrammableStage,
    ShaderModuleDescriptor,
};
use wgpu_types::ShaderRuntimeChecks;

/// A kernel on the device: a compute pipeline.
pub struct Kernel {
    context: Arc<Context>,
    pipeline: Option<hal::ComputePipeline>,
    bindings: usize,
    /// A bit for each binding that the kernel may write.
    written: u32,
}

impl Kernel {
    fn of(context: &Arc<Context>, source: &Source) -> Result<Self> {
        let changed = context.properties.rounds_bfloat16.then(|| halves::by_device(source));
        let source = changed.as_deref().unwrap_or(source);
        keep(source);
        let bytes: Vec<u8> = source.bytes.iter().flat_map(|b| b.to_le_bytes()).collect();
        let key = kept::key(context, &[source.text.as_bytes(), &bytes]);
        let compile = || {
            let parsed = compile::parse(&source.text)?;
            Code::of(&parsed, "main", Zeros::Left, &source.bytes, &context.properties)
        };
        Self::kept(context, &key, compile, 1 + source.tensors)
    }

    /// Makes a kernel whose bindings are storage buffers of group 0, numbered from 0.
    pub fn new(context: &Arc<Context>, code: &Code, bindings: usize) -> Result<Self> {
        let key = kept::key(context, &[&code.to_bytes()]);
        Self::kept(context, &key, || Ok(code.clone()), bindings)
    }

    /// Returns the kernel that is stored with a key, or a new one.
    fn kept(
        context: &Arc<Context>,
        key: &[u8],
        compile: impl FnOnce() -> core::result::Result<Code, String>,
        bindings: usize,
    ) -> Result<Self> {
        if let Some(Kept { code, pipeline }) = kept::get(key) {
            return Self::load(context, &code, bindings, &pipeline).map(|(kernel, _)| kernel);
        }
        let refused = |why| Failure::new(format!("a kernel does not compile: {why}"));
        let code = compile().map_err(refused)?;
        let (kernel, pipeline) = Self::load(context, &code, bindings, &[])?;
        kept::put(key, &Kept { code, pipeline });
        Ok(kernel)
    }

    /// Loads a kernel, from the driver's compiled form if that is known. Returns the driver's
    /// compiled form.
    fn load(
        context: &Arc<Context>,
        code: &Code,
        bindings: usize,
        known: &[u8],
    ) -> Result<(Self, Vec<u8>)> {
        let layout = context.layout(bindings)?;
        let descriptor = ShaderModuleDescriptor {
            label: None,
            runtime_checks: ShaderRuntimeChecks::unchecked(),
        };
        let device = &context.device;
        // SAFETY: naga validated the program, and the passes keep it valid. This crate's kernels stay inside
        // their buffers, and users' kernels have to.
        let module = unsafe { device.create_shader_module(&descriptor, code.input()) };
        let module =
            module.map_err(|why| Failure::new(format!("the driver refuses a kernel: {why}")))?;
        let data = (!known.is_empty()).then_some(known);
        // SAFETY: the key guarantees that the data is from this driver; it is complete.
        let cache =
            unsafe { device.create_pipeline_cache(&PipelineCacheDescriptor { label: None, data }) };
        // Without a pipeline cache, the driver compiles the kernel.
        let cache = cache.ok();
        let descriptor = ComputePipelineDescriptor {
            label: None,
            layout: &layout.pipeline,
            stage: ProgrammableStage {
                module: &module,
                entry_point: code.entry(),
                constants: &Default::default(),
                zero_initialize_workgroup_memory: false,
            },
            cache: cache.as_ref(),
        };
        // SAFETY: the layout has the program's bindings.
        let pipeline = unsafe { device.create_compute_pipeline(&descriptor) };
        let mut made = Vec::new();
        // SAFETY: the pipeline does not need the module and the cache any more.
        unsafe {
            device.destroy_shader_module(module);
            if let Some(cache) = cache {
                if known.is_empty() {
                    made = device.pipeline_cache_get_data(&cache).unwrap_or_default();
                }
                device.destroy_pipeline_cache(cache);
            }
        }
        let pipeline =
            pipeline.map_err(|why| Failure::new(format!("the driver refuses a kernel: {why}")))?;
        let written = code.written();
        let kernel = Self { context: context.clone(), pipeline: Some(pipeline), bindings, written };
        Ok((kernel, made))
    }

    /// The hal's pipeline.
    pub fn pipeline(&self) -> &hal::ComputePipeline {
        // It is taken out only when the kernel is dropped.
        self.pipeline.as_ref().expect("a kernel without pipeline")
    }

    /// Returns true if the kernel may write a binding.
    pub fn writes(&self, binding: usize) -> bool {
        self.written.checked_shr(binding as u32).is_none_or(|bits| bits & 1 == 1)
    }

    /// Number of bindings.
    pub fn bindings(&self) -> usize {
        self.bindings
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let pipeline = self.pipeline.take().filter(|_| !self.context.forked());
        if let Some(pipeline) = pipeline {
            // SAFETY: batches that use it hold a reference until they have completed.
            unsafe { self.context.device.destroy_compute_pipeline(pipeline) };
        }
    }
}

/// A kernel that is compiled at its first use.
pub struct Deferred {
    source: Source,
    made: OnceLock<Result<Arc<Kernel>>>,
}

impl Deferred {
    /// The kernel of a program.
    pub fn new(source: Source) -> Self {
        Self { source, made: OnceLock::new() }
    }

    /// The kernel.
    pub fn get(&self, programs: &Programs) -> Result<Arc<Kernel>> {
        self.made.get_or_init(|| programs.get(self.source.clone())).clone()
    }
}

/// Writes a program to the directory that `ULTRAMARINE_WGPU_SOURCES` names, for reading and for
/// tests. Its last line lists the bindings whose elements are bytes.
fn keep(source: &Source) {
    let Some(directory) = std::env::var_os("ULTRAMARINE_WGPU_SOURCES") else { return };
    let mut hasher = DefaultHasher::new();
    source.hash(&mut hasher);
    let name = format!("{:016x}.wgsl", hasher.finish());
    let text = format!("{}// bytes: {:?}\n", source.text, source.bytes);
    // Ignore failures, because nothing depends on the file.
    _ = std::fs::write(std::path::Path::new(&directory).join(name), text);
}

type Slot = Arc<OnceLock<Result<Arc<Kernel>>>>;

/// The kernels of a device, by the content of their [`Source`]. Each is compiled once.
pub struct Programs {
    context: Arc<Context>,
    kernels: Mutex<HashMap<Source, Slot>>,
}

impl Programs {
    /// Makes an empty cache.
    pub fn new(context: Arc<Context>) -> Self {
        Self { context, kernels: Mutex::default() }
    }

    /// Returns the kernel of a program. Several kernels may be compiled at the same time, but each
    /// only once.
    pub fn get(&self, source: Source) -> Result<Arc<Kernel>> {
        let slot = lock(&self.kernels).entry(source.clone()).or_default().clone();
        let made = slot.get_or_init(|| Kernel::of(&self.context, &source).map(Arc::new));
        made.clone()
    }
}
