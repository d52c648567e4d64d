use ultramarine::Array;
use ultramarine_nn::{Linear, Module};

#[derive(Module)]
struct Scaled {
    inner: Linear,
    scale: Array,
}

fn main() {}
