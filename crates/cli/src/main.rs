//! forerun: the command line.
fn main() {}
