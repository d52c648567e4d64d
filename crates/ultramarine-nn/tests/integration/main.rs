//! The tests of the crate, in one program. Most compare with tables that the Python package wrote: `tests/tables/make.py`.

mod checkpoints;
mod compiled;
mod dtypes;
mod files;
mod generate;
mod init;
mod inventory;
mod layers;
mod losses;
mod modules;
mod optimizers;
mod support;
