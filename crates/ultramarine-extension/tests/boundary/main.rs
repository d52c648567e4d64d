//! The SDK's side of the contract, against a fake host: no part of Ultramarine's core is here.

mod cpu;
mod fake_host;
mod gpu;
mod rules;
