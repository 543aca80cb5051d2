//! `forerun explain`: cause and remedy of a message, by its code or by its text.

use std::io::Write;

use crate::args::Explain;
use crate::explain::{LIST, as_text, find};
use crate::failure::Failure;

/// Runs the command.
///
/// # Errors
/// No entry is of this code or message.
pub fn run(args: &Explain, out: &mut dyn Write) -> Result<(), Failure> {
    let text = match args.message.as_deref() {
        None => LIST
            .iter()
            .map(|entry| format!("{:<18}{}\n", entry.code, entry.printed))
            .collect(),
        Some(wanted) => {
            let found = find(wanted);
            if found.is_empty() {
                return Err(Failure::Usage(format!(
                    "{wanted:?}: neither a code nor a message of the list that `forerun explain` prints; \
                     `forerun doctor` looks at this machine"
                )));
            }
            found
                .into_iter()
                .map(as_text)
                .collect::<Vec<_>>()
                .join("\n")
        }
    };
    out.write_all(text.as_bytes())
        .map_err(|e| Failure::output(&e))
}
