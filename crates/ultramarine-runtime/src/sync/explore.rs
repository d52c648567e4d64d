//! Explores models with loom.

/// Runs a model under every schedule of its threads with at most this number of preemptions. What loom
/// cannot finish in `LOOM_MAX_DURATION` seconds is cut, and it says so.
pub fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(model);
}
