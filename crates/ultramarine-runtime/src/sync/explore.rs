//! Explores models by loom.

use std::sync::Once;

/// Runs a model under every schedule of its threads that has at most this number of preemptions.
/// Exploration stops after `LOOM_MAX_DURATION` seconds. The first model that fails ends the
/// process: otherwise the library's `catch_unwind` would continue with threads that no longer
/// exist.
pub fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            print(panic);
            std::process::abort();
        }));
    });
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(preemptions);
    builder.check(model);
}
