//! Compilation: a function is traced once for each set of shapes and dtypes. Later calls build the
//! simplified graph again without calling the function.
//!
//! ```text
//! call -> key of the arguments                                       trace_key.rs
//!      -> graph, recorded at the first call                          record.rs
//!      -> placed again for arguments at home elsewhere               placed.rs
//!      -> as it was recorded, where a transform traces the arguments graph.rs
//!      -> else after the passes, which are functions over the graph  passes/
//!         as one operation, if the graph is large enough             call.rs
//! ```
//!
//! In either case, the results are ordinary lazy arrays.

mod call;
pub(crate) mod graph;
mod passes;
mod placed;
mod recent;
pub(crate) mod record;
pub(crate) mod shapeless;
mod trace_key;

use trace_key::TraceKey;

use crate::distributed::{self, Group};
use crate::error::{Error, Result};
use crate::ops::rules::shapeless::{Shapeless, shapeless as shapeless_now};
use crate::{array::Array, arrays::Arrays, sync::lock};
use call::Callable;
use graph::Graph;
use placed::Homes;
use recent::Recent;
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// 0: the environment has not been read yet, 1: off, 2: on.
static ENABLED: AtomicU8 = AtomicU8::new(0);

/// Returns true if compiled functions use their graphs; otherwise they run uncompiled. Compilation
/// is on by default, unless the environment variable `ULTRAMARINE_DISABLE_COMPILE` is set;
/// [`set_compile`] overrides both.
pub fn compile_enabled() -> bool {
    match ENABLED.load(Ordering::Relaxed) {
        0 => {
            let on = std::env::var_os("ULTRAMARINE_DISABLE_COMPILE").is_none();
            ENABLED.store(1 + on as u8, Ordering::Relaxed);
            on
        }
        state => state == 2,
    }
}

/// Returns true if a compiled function that is called here uses its graph: compilation is on, and
/// no shapeless trace of another function surrounds the call. A shapeless trace has to see how
/// shapes depend on each other.
pub fn compiles_here() -> bool {
    compile_enabled() && !shapeless_now()
}

/// Switches compilation on or off for the process, also for functions that are compiled already. If
/// it is off, compiled functions run uncompiled.
pub fn set_compile(on: bool) {
    ENABLED.store(1 + on as u8, Ordering::Relaxed);
}

/// A traced function for one signature of its arguments: the recorded graph, and the graph after
/// the compiler's passes. [`Compiled`] keeps one for each signature.
pub struct Traced {
    /// The recorded graph, for transforms.
    recorded: Graph,
    /// The graph after the passes. Set by the first call whose arguments no transform traces.
    merged: OnceLock<(Graph, Option<Arc<Callable>>)>,
    /// True if shapes in the graph depend on the arguments' shapes.
    shapeless: bool,
    /// The groups that the function communicates in. The groups' tokens are the last inputs and
    /// outputs of the graph.
    groups: Vec<Group>,
    /// The arguments' homes during the trace.
    homes: Homes,
    /// Variants for arguments with other homes and, if shapeless, for the sizes of earlier calls.
    variants: Mutex<Recent<Arc<Traced>>>,
}

impl fmt::Debug for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traced").field("steps", &self.recorded.steps.len()).finish_non_exhaustive()
    }
}

impl Traced {
    /// Calls `f` once, on placeholders for `inputs` that have no values.
    ///
    /// The flag is true if the trace can be used after this call. It cannot if `f` closes over
    /// arrays of another transform that has not ended.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn new<E: From<Error>>(
        f: impl FnOnce(&[Array]) -> Result<Vec<Array>, E>,
        inputs: &[Array],
        shapeless: bool,
    ) -> Result<(Traced, bool), E> {
        let _shapes = Shapeless::begin(shapeless);
        let recorded = record::record(f, inputs)?;
        let mut traced = Traced::of(recorded.graph, placed::homes(inputs), shapeless);
        traced.groups = recorded.groups;
        Ok((traced, !recorded.once))
    }

    fn of(recorded: Graph, homes: Homes, shapeless: bool) -> Traced {
        let (groups, merged, variants) = (Vec::new(), OnceLock::new(), Mutex::default());
        Traced { recorded, groups, homes, shapeless, merged, variants }
    }

    /// Runs the passes, which the first call would otherwise run. (In a shapeless trace, the first
    /// call with each set of sizes runs them.) The passes may compute constants and wait for them.
    pub fn prepare(&self) {
        if !self.shapeless {
            self.merged();
        }
    }

    fn merged(&self) -> &(Graph, Option<Arc<Callable>>) {
        self.merged.get_or_init(|| {
            let graph = passes::merged(&self.recorded);
            let callable = Callable::of(&graph);
            (graph, callable)
        })
    }

    fn results(&self, inputs: &[Array]) -> Vec<Array> {
        if inputs.iter().any(|a| a.node().is_traced()) {
            return self.recorded.replay(inputs);
        }
        let (graph, callable) = self.merged();
        let called = callable.as_ref().and_then(|c| c.call(inputs));
        called.unwrap_or_else(|| graph.replay(inputs))
    }

    /// Returns lazy results for other arguments with the same key.
    ///
    /// # Errors
    /// [`Error::Value`] if the arguments are on accelerators that cannot be combined. For a
    /// shapeless trace, also if the shape of a result does not follow from the operands' shapes, or
    /// the shapes do not match.
    pub fn call(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        if self.groups.is_empty() {
            return self.call_with(inputs, &[]);
        }
        // Run the passes first, because they may compute constants, and the groups' chains need not
        // wait for these.
        self.prepare();
        distributed::through(&self.groups, |tokens| {
            let mut results = self.call_with(inputs, tokens)?;
            let after = results.split_off(results.len() - tokens.len());
            Ok((results, after))
        })
    }

    /// Returns the results for arguments and the groups' tokens.
    fn call_with(&self, inputs: &[Array], tokens: &[Array]) -> Result<Vec<Array>> {
        let all: Cow<'_, [Array]> = match tokens {
            [] => Cow::Borrowed(inputs),
            _ => Cow::Owned([inputs, tokens].concat()),
        };
        match !self.shapeless && placed::are_at(&self.homes, inputs) {
            true => Ok(self.results(&all)),
            false => Ok(self.variant(inputs, &all)?.results(&all)),
        }
    }

    /// Returns the trace for arguments with these sizes and homes. `all` are the graph's inputs.
    fn variant(&self, inputs: &[Array], all: &[Array]) -> Result<Arc<Traced>> {
        let key = TraceKey::of_variant(inputs);
        if let Some(known) = lock(&self.variants).get(&key) {
            return Ok(known);
        }
        let mut graph = self.recorded.clone();
        if self.shapeless {
            let shapes: Vec<&[usize]> = all.iter().map(Array::shape).collect();
            graph = shapeless::fitted(&graph, &shapes)?;
        }
        if !placed::are_at(&self.homes, inputs) {
            graph = graph.placed(all)?;
        }
        let variant = Arc::new(Traced::of(graph, placed::homes(inputs), false));
        // Drop without the lock, because the trace may keep arrays.
        let gone = lock(&self.variants).insert(key, variant.clone());
        drop(gone);
        Ok(variant)
    }
}

/// Traces of a function by signature, each with a value of the caller. The 256 most recently called
/// traces are kept.
pub struct Traces<T> {
    all: Mutex<Recent<Arc<(Traced, T)>>>,
}

impl<T> Default for Traces<T> {
    fn default() -> Self {
        Traces { all: Mutex::default() }
    }
}

impl<T> fmt::Debug for Traces<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traces").field("len", &self.len()).finish_non_exhaustive()
    }
}

impl<T> Traces<T> {
    fn get(&self, key: &TraceKey) -> Option<Arc<(Traced, T)>> {
        lock(&self.all).get(key)
    }

    fn insert(&self, key: TraceKey, trace: Arc<(Traced, T)>) {
        // Drop without the lock, because dropping the caller's value may run the caller's code.
        let gone = lock(&self.all).insert(key, trace);
        drop(gone);
    }

    /// Returns the number of traces.
    pub fn len(&self) -> usize {
        lock(&self.all).len()
    }

    /// Returns true if there are no traces.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls `f` with the caller's value of each trace. Does nothing if another thread is using the
    /// traces.
    ///
    /// # Errors
    /// The first error of `f`.
    pub fn try_each<E>(&self, mut f: impl FnMut(&T) -> Result<(), E>) -> Result<(), E> {
        match self.all.try_lock() {
            Ok(all) => all.values().try_for_each(|t| f(&t.1)),
            Err(_) => Ok(()),
        }
    }
}

type Function = dyn Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync;

/// A compiled function of arrays, made by [`compile`](fn@compile). [`Compiled::call`] calls it,
/// from any thread.
pub struct Compiled {
    f: Box<Function>,
    shapeless: bool,
    traces: Traces<()>,
}

impl fmt::Debug for Compiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compiled")
            .field("shapeless", &self.shapeless)
            .field("traces", &self.traces.len())
            .finish_non_exhaustive()
    }
}

/// Compiles a function of arrays.
///
/// The function is traced: it is called once for each set of shapes and dtypes of its arguments,
/// and each default stream, on arrays without values. Later calls build the traced graph without
/// calling the function. Equal operations are merged, and operations that lead to no result are
/// left out. Operations that no scope or argument placed follow their operands.
///
/// Therefore the function should be pure: arrays that it closes over are constants, and other
/// effects happen only once, during the trace. The 256 most recently called graphs are kept, with
/// the arrays that they close over.
///
/// ```
/// use ultramarine::{Array, transforms::compile};
/// let f = compile(|x| Ok(vec![(x[0].exp()? + x[0].exp()?)?]));
/// let x = Array::from_slice(&[0.0f32, 1.0], &[2])?;
/// let y = f.call(&[&x])?;
/// assert_eq!(y[0].to_vec::<f32>()?, (&x.exp()? * 2.0)?.to_vec::<f32>()?);
/// assert_eq!(f.traces(), 1);
/// # Ok::<(), ultramarine::Error>(())
/// ```
pub fn compile(f: impl Fn(&[Array]) -> Result<Vec<Array>> + Send + Sync + 'static) -> Compiled {
    Compiled { f: Box::new(f), shapeless: false, traces: Traces::default() }
}

impl Compiled {
    /// Makes the function traced once for each set of dtypes and ranks, for all sizes. The function
    /// must do the same for all sizes, because a size that it reads becomes a constant. The first
    /// call fails if a result's shape does not follow from the operands' shapes.
    pub fn shapeless(mut self) -> Compiled {
        self.shapeless = true;
        self
    }

    /// Returns the number of graphs. There is one for each signature of arguments, and at most 256.
    pub fn traces(&self) -> usize {
        self.traces.len()
    }

    /// Returns the function's results, as lazy arrays.
    ///
    /// # Errors
    /// During a trace, those of the function; [`Error::Value`] if the function evaluates an array
    /// that depends on an argument.
    pub fn call(&self, inputs: impl Arrays) -> Result<Vec<Array>> {
        self.call_owned(&inputs.owned())
    }

    fn call_owned(&self, inputs: &[Array]) -> Result<Vec<Array>> {
        if !compiles_here() {
            return (self.f)(inputs);
        }
        if let Some((outputs, _)) = self.traces.call(&[], inputs, self.shapeless)? {
            return Ok(outputs);
        }
        let (traced, reusable) = Traced::new(&self.f, inputs, self.shapeless)?;
        let outputs = traced.call(inputs)?;
        if reusable {
            self.traces.keep(&[], inputs, self.shapeless, Arc::new((traced, ())));
        }
        Ok(outputs)
    }
}

impl<T> Traces<T> {
    /// Returns the results for these arguments by an existing trace, and the trace. `caller_key`
    /// contains the number of arguments, and everything else that the results depend on.
    ///
    /// # Errors
    /// [`Error::Value`] if the shapes do not match the operations of a shapeless trace.
    pub fn call(
        &self,
        caller_key: &[u64],
        inputs: &[Array],
        shapeless: bool,
    ) -> Result<Option<Called<T>>> {
        match self.get(&TraceKey::new(caller_key, inputs, shapeless)) {
            Some(trace) => Ok(Some((trace.0.call(inputs)?, trace))),
            None => Ok(None),
        }
    }

    /// Stores a trace, so that [`Traces::call`] finds it for the same `caller_key` and arguments of
    /// the same signature.
    pub fn keep(
        &self,
        caller_key: &[u64],
        inputs: &[Array],
        shapeless: bool,
        trace: Arc<(Traced, T)>,
    ) {
        self.insert(TraceKey::new(caller_key, inputs, shapeless), trace);
    }
}

/// The results of a call of [`Traces::call`], and the trace that computed them.
pub type Called<T> = (Vec<Array>, Arc<(Traced, T)>);
