//! `forerun mount`: shows a directory at another place, read ahead.
//!
//! In the foreground this is the mount itself; else it starts one in the background and returns
//! once that works. What a mount is stands in [`crate::mount`].

use crate::args::Mount;
use crate::failure::Failure;
use crate::mount::running::Running;
use crate::mount::{background, point};

/// Runs the command.
///
/// # Errors
/// Says what is not as it should be, or what went wrong.
pub fn run(args: &Mount) -> Result<(), Failure> {
    if args.report_ready {
        background::leave_session();
        let begun = start(args).and_then(|running| {
            let gone = |e| Failure::Run(format!("whoever started the mount is gone: {e}"));
            background::report_ready().map_err(gone)?;
            Ok(running)
        });
        match begun {
            Ok(running) => {
                let ended = running.wait().map(drop);
                if let Err(failure) = &ended {
                    background::log_failure(failure);
                }
                ended
            }
            Err(failure) => {
                background::report_failure(&failure);
                Ok(())
            }
        }
    } else if args.foreground {
        start(args)?.wait().map(drop)
    } else {
        background::start()
    }
}

fn start(args: &Mount) -> Result<Running, Failure> {
    let checked = point::check(&args.source, &args.mountpoint, args.nonempty)?;
    Running::start(args, checked)
}
