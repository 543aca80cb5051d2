//! The `forerun` binary.

fn main() {}
