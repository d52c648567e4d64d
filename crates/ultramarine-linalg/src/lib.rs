//! Dense matrix decompositions over plain memory, for one matrix at a time and without threads of their own.
//!
//! The algorithms are faer's. They stand in a crate of their own, with one concrete function for each scalar type, because
//! generic decompositions take a minute to compile: so they are compiled once, and not with every change of a kernel.
