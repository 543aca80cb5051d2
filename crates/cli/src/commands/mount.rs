//! `forerun mount`: shows a directory at another place, read ahead.
//!
//! In the foreground this is the mount itself; else it starts one in the background and returns
//! once that works. The mount itself is [`crate::mount`].

use forerun_core::settings::SettingsError;

use crate::args::Mount;
use crate::composition::name_the_flag;
use crate::failure::Failure;
use crate::mount::running::Running;
use crate::mount::sockets::Sockets;
use crate::mount::{background, point};

/// Runs the command.
///
/// # Errors
/// An argument that cannot be mounted, or a failure to mount.
pub fn run(args: &Mount, sockets: &Sockets) -> Result<(), Failure> {
    // In the words of the user, before a part of it is taken off.
    if let Err(error @ SettingsError::MemoryAbove { .. }) =
        args.preset.settings(args.composition.memory)
    {
        return Err(name_the_flag(error));
    }
    if args.report_ready {
        background::leave_session();
        let begun = start(args, sockets).and_then(|running| {
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
        start(args, sockets)?.wait().map(drop)
    } else {
        background::start()
    }
}

fn start(args: &Mount, sockets: &Sockets) -> Result<Running, Failure> {
    let checked = point::check(&args.source, &args.mountpoint, args.nonempty)?;
    if args.control.is_some() {
        return Running::start(args, checked);
    }
    // Where no socket can be made the mount works all the same.
    let control = sockets.name().map_err(|error| {
        tracing::info!("`forerun top` will not find this mount: {error}");
    });
    let args = Mount {
        control: control.ok(),
        ..args.clone()
    };
    Running::start(&args, checked)
}
