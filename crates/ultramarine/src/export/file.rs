//! The container: a safetensors file. The program is one tensor of bytes, and each constant is another tensor.
//!
//! A single file can be renamed into place atomically, any reader of the format can open it, and its constants are read
//! in the same way as weights.

use super::constants::Constants;
use super::program::{Reader, evaluate_constants, storable, written};
use super::signature::Signature;
use super::text::{ProgramText, TraceText, TypeText, VERSION, VersionText};
use crate::error::{Error, Result};
use crate::transforms::compile::graph::Graph;
use crate::{array::Array, io};
use std::collections::BTreeMap;
use std::io::Write;

/// The name of the program's tensor, and the value of the key `format` in the file's metadata.
const PROGRAM: &str = "program";
const FORMAT: &str = "ultramarine.function";
/// The key of the user's metadata.
const METADATA: &str = "metadata";

/// A trace with its signature.
pub(super) struct Trace {
    pub signature: Signature,
    pub graph: Graph,
}

/// The traces of a file, and the user's metadata.
pub(super) struct Contents {
    pub traces: Vec<Trace>,
    pub metadata: Option<String>,
}

fn trace_text(trace: &Trace, constants: &Constants) -> Result<TraceText> {
    let Signature { positional, keywords, shapeless } = &trace.signature;
    let arguments = positional.len() + keywords.len();
    let (steps, outputs) = written(&trace.graph, arguments, constants)?;
    Ok(TraceText {
        positional: positional.iter().map(|(s, d)| TypeText::new(s, *d)).collect(),
        keywords: keywords.iter().map(|(k, (s, d))| (k.clone(), TypeText::new(s, *d))).collect(),
        shapeless: *shapeless,
        steps,
        outputs,
    })
}

impl Trace {
    /// A recorded graph. Its constants are evaluated.
    ///
    /// # Errors
    /// [`Error::Value`] for an operation that files cannot contain; errors of evaluation.
    pub fn new(signature: Signature, graph: Graph) -> Result<Trace> {
        let graph = storable(graph)?;
        evaluate_constants(std::iter::once(&graph))?;
        Ok(Trace { signature, graph })
    }
}

impl Contents {
    /// Writes a file; `name` stands for it in errors.
    ///
    /// # Errors
    /// [`Error::Type`] for a constant of a dtype that safetensors files do not have, [`Error::Runtime`] when the file
    /// cannot be written.
    pub fn write(&self, writer: &mut dyn Write, name: &str) -> Result<()> {
        let constants = Constants::of(self.traces.iter().map(|trace| &trace.graph));
        let traces =
            self.traces.iter().map(|t| trace_text(t, &constants)).collect::<Result<_>>()?;
        let program = ProgramText { version: VERSION, traces };
        let text = serde_json::to_vec(&program)
            .map_err(|e| Error::runtime("export_function", format!("{name}: {e}")))?;
        let mut arrays = constants.arrays;
        arrays.insert(PROGRAM.into(), Array::from_slice(&text, &[text.len()])?);
        let mut metadata = io::Metadata::from([("format".into(), FORMAT.into())]);
        if let Some(text) = &self.metadata {
            metadata.insert(METADATA.into(), text.clone());
        }
        io::safetensors::write(writer, &arrays, &metadata, name)
    }

    /// The traces of a safetensors file. `name` stands for the file in errors.
    ///
    /// # Errors
    /// [`Error::Runtime`] for a file that does not contain a function, is malformed, or is newer than this program.
    pub fn of(
        (mut arrays, mut metadata): (io::Arrays, io::Metadata),
        name: &str,
    ) -> Result<Contents> {
        let wrong = |text: String| Error::runtime("import_function", format!("{name}: {text}."));
        let is_function = metadata.get("format").is_some_and(|format| format == FORMAT);
        let program = arrays.remove(PROGRAM).filter(|_| is_function);
        let program = program.ok_or_else(|| {
            wrong(
                "this safetensors file holds no function. Import a file that export_function wrote"
                    .into(),
            )
        })?;
        let text = program.to_vec::<u8>().map_err(|_| {
            wrong(format!(
                "the program should be uint8 but is {}. Export the function again",
                program.dtype()
            ))
        })?;
        let program = parsed(&text).map_err(wrong)?;
        let trace = |(i, text): (usize, &TraceText)| {
            trace(text, &arrays).map_err(|e| wrong(format!("trace {}: {e}", i + 1)))
        };
        let traces = program.traces.iter().enumerate().map(trace).collect::<Result<_>>()?;
        Ok(Contents { traces, metadata: metadata.remove(METADATA) })
    }
}

fn parsed(text: &[u8]) -> Result<ProgramText, String> {
    let bad = |e: serde_json::Error| format!("bad program: {e}");
    // Read the version first, because a newer version may have changed everything else.
    let VersionText { version } = serde_json::from_slice(text).map_err(bad)?;
    if version != VERSION {
        return Err(format!(
            "the file has version {version} of the format, and this program reads version {VERSION}. Export the function again, with this version of ultramarine"
        ));
    }
    serde_json::from_slice(text).map_err(bad)
}

fn trace(text: &TraceText, constants: &io::Arrays) -> Result<Trace, String> {
    let positional = text.positional.iter().map(TypeText::read).collect::<Result<Vec<_>, _>>()?;
    let keyword = |(name, text): (&String, &TypeText)| Ok((name.clone(), text.read()?));
    let keywords: BTreeMap<_, _> =
        text.keywords.iter().map(keyword).collect::<Result<_, String>>()?;
    let signature = Signature { positional, keywords, shapeless: text.shapeless };
    let mut reader = Reader::new(&signature.types(), constants);
    for (i, step) in text.steps.iter().enumerate() {
        reader.read(step).map_err(|e| format!("step {i}: {e}"))?;
    }
    Ok(Trace { graph: reader.finish(&text.outputs)?, signature })
}
