//! Plugins that misbehave on purpose (their sources are in the runtime's `tests/misbehaving`): while they are loaded, when
//! their code crashes or hangs, and once they run.

mod crashing;
mod loading;
mod running;
