//! `forerun replay`: a recorded run is decided again by a fresh engine, which must agree.
//!
//! The replaying is `forerun-sim`'s; here are the file, the message and the exit code: 0 and the
//! counts if every decision is the same, 1 and the first difference with its line if not, 2 if
//! the journal cannot be read as one.

use std::io::{BufReader, Write};

use forerun_sim::replay::{Difference, ReplayError, Replayed, replay};

use crate::args::Replay;
use crate::failure::Failure;
use crate::files;
use crate::quantity::rough_duration;

/// Runs the command.
///
/// # Errors
/// A journal that cannot be read, or whose decisions differ.
pub fn run(args: &Replay, out: &mut dyn Write) -> Result<(), Failure> {
    let path = &args.journal;
    let journal = files::open_stream(path)?;
    let replayed = replay(BufReader::new(journal)).map_err(|error| match error {
        ReplayError::Difference(difference) => Failure::broken(path, describe(&difference)),
        ReplayError::Io(e) => Failure::broken(path, e),
        malformed => Failure::unusable(path, malformed),
    })?;
    out.write_all(report(&replayed).as_bytes())
        .map_err(|e| Failure::output(&e))
}

fn describe(difference: &Difference) -> String {
    let Difference {
        line,
        expected,
        got,
        input,
        input_line,
    } = difference;
    format!(
        "line {line} differs\n  journal: {expected}\n  engine:  {got}\n  \
         after line {input_line}: {input}"
    )
}

fn report(replayed: &Replayed) -> String {
    let Replayed {
        inputs,
        outputs,
        last,
        complete,
    } = replayed;
    let end = if *complete {
        ""
    } else {
        "; the journal stops before the last decision"
    };
    let time = rough_duration(*last);
    format!("the same decisions: {inputs} inputs, {outputs} outputs, {time}{end}\n")
}
