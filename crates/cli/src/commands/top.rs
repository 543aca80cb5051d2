//! `forerun top`.
use crate::args::Top;
use crate::failure::Failure;
/// Runs the command.
///
/// # Errors
/// See above.
pub fn run(_: &Top) -> Result<(), Failure> {
    Ok(())
}
